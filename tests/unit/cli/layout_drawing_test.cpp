// SPDX-License-Identifier: Apache-2.0
// The pictures that `ikat layout` draws are XML. What tables show is in tests/golden/cli/layout.txt.
#include "tools/cli/draw/layout_drawing.hpp"

#include <map>
#include <regex>

#include "tests/catch.hpp"

namespace ikat::tests {
namespace {

/// How often each element occurs in a text that is XML: tags that are closed in order, quoted attributes, nothing else
/// that begins with < or &. Empty if it is not.
std::map<std::string, int> elements_of(const std::string& xml) {
    static const std::regex item(R"(<(/?)(\w+)((?: [\w-]+="[^"<&]*")*)(/?)>|[^<&]+|&(?:lt|gt|amp);)");
    std::map<std::string, int> out;
    std::vector<std::string> open;
    std::size_t end = 0;
    for (std::sregex_iterator at(xml.begin(), xml.end(), item), stop; at != stop; ++at) {
        if (std::size_t(at->position()) != end) return {};
        end += std::size_t(at->length());
        const std::string name = at->str(2);
        if (name.empty()) continue;
        if (at->str(1).empty()) {
            if (open.empty() && !out.empty()) return {};  // a second root
            ++out[name];
            if (at->str(4).empty()) open.push_back(name);
        } else {
            if (open.empty() || open.back() != name) return {};
            open.pop_back();
        }
    }
    return open.empty() && end == xml.size() ? out : std::map<std::string, int>();
}

TEST_CASE("a layout's picture is XML with a rectangle for each element, of a colour for each bank") {
    CHECK(elements_of("<a b=\"1\"><c/>&lt;</a>") == std::map<std::string, int>{{"a", 1}, {"c", 1}});
    CHECK(elements_of("<a><b></a></b>").empty());
    CHECK(elements_of("<a>Sw<3></a>").empty());
    CHECK(elements_of("<a>&</a>").empty());
    const std::string svg = cli::LayoutDrawing(parse_layout("Sw<3,0,3> o (8,8):(8,1)"), 16).svg();
    auto found = elements_of(svg);
    CHECK(found["svg"] == 1);
    CHECK(found["title"] == 1);
    CHECK(found["rect"] == 64);
    CHECK(found["text"] == 1 + 8 + 8 + 2 * 64);
    std::map<std::string, int> colours;
    const std::regex fill("fill=\"(#[0-9a-f]{6})\"");
    for (std::sregex_iterator at(svg.begin(), svg.end(), fill), end; at != end; ++at) ++colours[at->str(1)];
    CHECK(colours.size() == 8);  // elements of 16 bytes begin in every fourth bank
    for (const auto& [colour, count] : colours) CHECK(count == 8);
    CHECK(svg.find("<title>Sw&lt;3,0,3&gt; o (8,8):(8,1), elements of 16 bytes</title>") != svg.npos);
    const std::string words = cli::LayoutDrawing(parse_layout("32:1"), 4).svg();
    colours.clear();
    for (std::sregex_iterator at(words.begin(), words.end(), fill), end; at != end; ++at) ++colours[at->str(1)];
    CHECK(colours.size() == 32);
}

}  // namespace
}  // namespace ikat::tests
