// SPDX-License-Identifier: Apache-2.0
#include "codegen/ir/text/format.hpp"

#include <algorithm>

namespace ikat::ir {

std::optional<Format> read_format(std::string_view text) {
    Format out{.text = {""}, .holes = {}};
    while (!text.empty()) {
        const char c = text[0];
        if (c != '{' && c != '}') {
            out.text.back() += c;
            text.remove_prefix(1);
        } else if (text.size() > 1 && text[1] == c) {
            out.text.back() += c;
            text.remove_prefix(2);
        } else {
            const std::size_t end = text.find('}');
            const std::string_view inside = text.substr(1, end == text.npos ? 0 : end - 1);
            if (c == '}' || end == text.npos || (!inside.empty() && inside[0] != ':')) return {};
            out.holes.emplace_back(inside.substr(inside.empty() ? 0 : 1));
            out.text.emplace_back();
            text.remove_prefix(end + 1);
        }
    }
    return out;
}

namespace {

/// Removes leading characters that are in `any`, and returns them.
std::string_view take(std::string_view& text, std::string_view any) {
    const std::size_t end = std::min(text.find_first_not_of(any), text.size());
    const std::string_view out = text.substr(0, end);
    text.remove_prefix(end);
    return out;
}

}  // namespace

std::optional<std::string> conversion(std::string_view hole, Type type) {
    const bool floating = is_float(type);
    std::string out = "%";
    if (const std::string_view side = take(hole, "<>"); side.size() > 1)
        return {};
    else if (side == "<")
        out += '-';
    out += take(hole, "+ #0");
    const std::string_view width = take(hole, "0123456789");
    out += width;
    if (hole.starts_with('.')) {
        if (!floating) return {};
        hole.remove_prefix(1);
        const std::string_view precision = take(hole, "0123456789");
        if (precision.empty() || precision.size() > 2) return {};
        out += '.' + std::string(precision);
    }
    constexpr std::string_view floats = "fFeEgGaA", integers = "dxXo";
    if (hole.size() > 1 || width.size() > 3) return {};
    if (!hole.empty() && (floating ? floats : integers).find(hole[0]) == std::string_view::npos) return {};
    if (floating) return out + (hole.empty() ? 'g' : hole[0]);
    if (bits(type) == 64) out += "ll";
    if (hole.empty() || hole == "d") return out + (is_signed(type) ? 'd' : 'u');
    return out + hole[0];
}

}  // namespace ikat::ir
