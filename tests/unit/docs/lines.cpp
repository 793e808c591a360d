// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/docs/lines.hpp"

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <regex>
#include <sstream>

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

Output output_of(const std::string& command) {
    std::FILE* pipe = popen(("{ " + command + "; } 2>&1").c_str(), "r");
    REQUIRE(pipe);
    std::stringstream text;
    char piece[4096];
    while (const std::size_t count = std::fread(piece, 1, sizeof piece, pipe))
        text.write(piece, std::streamsize(count));
    const bool is_done = pclose(pipe) == 0;
    return {lines_of(text), is_done};
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
