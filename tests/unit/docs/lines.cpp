// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/docs/lines.hpp"

#include <algorithm>
#include <fstream>
#include <regex>

#include "tests/catch.hpp"

namespace ikat::tests {

Lines lines_of(std::istream& in) {
    static const std::regex place(R"(^(\S*/)?(\w+\.(cpp|hpp|ptx)):\d+:\d+)");
    Lines out;
    for (std::string line; std::getline(in, line);) {
        const std::size_t first = line.find_first_not_of(' ');
        out.push_back(first == line.npos ? "" : std::regex_replace(line.substr(first), place, "$2"));
    }
    return out;
}

Lines lines_of_file(const std::filesystem::path& path) {
    std::ifstream file(path);
    REQUIRE(file);
    return lines_of(file);
}

std::vector<Lines> blocks_of(const Lines& page, const std::string& fence) {
    std::vector<Lines> out;
    bool inside = false;
    for (const std::string& line : page) {
        if (line == fence) out.emplace_back();
        if (inside && line != "```") out.back().push_back(line);
        if (line.starts_with("```")) inside = line == fence;
    }
    return out;
}

bool contains(const Lines& whole, const Lines& block) {
    return std::search(whole.begin(), whole.end(), block.begin(), block.end()) != whole.end();
}

}  // namespace ikat::tests
