// SPDX-License-Identifier: Apache-2.0
// Lines of PTX or of machine code, and what is in a loop of them.
#pragma once
#include <algorithm>
#include <cstddef>
#include <map>
#include <string_view>
#include <vector>

namespace ikat::tests::code {

using Code = std::vector<std::string_view>;

inline bool is(std::string_view line, std::string_view name) { return line.find(name) != line.npos; }
inline std::size_t count(const Code& code, std::string_view name) {
    return std::size_t(std::ranges::count_if(code, [&](std::string_view line) { return is(line, name); }));
}

/// The lines of the shortest loop with `min_products` products. Labels begin with `mark`, and `product` is in the name
/// of one.
inline Code loop_of(std::string_view text, char mark, std::string_view product, std::size_t min_products) {
    std::map<std::string_view, std::size_t> labels;  // the number of the line after each
    Code all, best;
    for (; !text.empty(); text.remove_prefix(std::min(text.size(), text.find('\n') + 1))) {
        const std::string_view line = text.substr(0, text.find('\n'));
        const std::size_t begin = line.find(mark), end = line.find_first_of(":;)", std::min(begin, line.size()));
        if (begin != line.npos && end != line.npos && line[end] == ':')
            labels[line.substr(begin, end - begin)] = all.size();
        all.push_back(line);
        const bool is_branch = is(line, "bra") || is(line, "BRA");
        if (!is_branch || begin == line.npos) continue;
        const auto found = labels.find(line.substr(begin, end - begin));
        if (found == labels.end()) continue;
        const Code loop(all.begin() + std::ptrdiff_t(found->second), all.end());
        if (count(loop, product) >= min_products && (best.empty() || loop.size() < best.size())) best = loop;
    }
    return best;
}

/// What is between the line with `from` and that with `to` after it.
inline Code between(const Code& code, std::string_view from, std::string_view to) {
    const auto begin = std::ranges::find_if(code, [&](std::string_view line) { return is(line, from); });
    const auto end = std::find_if(begin, code.end(), [&](std::string_view line) { return is(line, to); });
    return {begin, end};
}

}  // namespace ikat::tests::code
