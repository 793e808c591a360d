// SPDX-License-Identifier: Apache-2.0
// Tables of names, with "" for entries without a name.
#pragma once
#include <algorithm>
#include <cstddef>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>

namespace ikat {

/// The index of a name in the table, or nothing.
std::optional<std::size_t> find_name(const auto& names, std::string_view name) {
    const auto found = std::ranges::find(names, name);
    if (name.empty() || found == std::end(names)) return {};
    return std::size_t(found - std::begin(names));
}

/// "a, b, c", without entries that have no name.
std::string list_names(const auto& names) {
    std::string out;
    for (std::string_view name : names)
        if (!name.empty()) (out += out.empty() ? "" : ", ") += name;
    return out;
}

}  // namespace ikat
