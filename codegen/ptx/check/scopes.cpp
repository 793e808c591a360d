// SPDX-License-Identifier: Apache-2.0
#include "codegen/ptx/check/scopes.hpp"

#include <charconv>
#include <ranges>
#include <string>

namespace ikat::ptx {

const Declared* Scopes::declare(Name name, const Declared& symbol) {
    if (const Declared* earlier = in_ranges(open_.back(), name)) return earlier;
    const auto [place, is_new] = open_.back().symbols.emplace(name, symbol);
    return is_new ? nullptr : &place->second;
}

const Declared* Scopes::declare_range(Name prefix, std::uint32_t count, const Declared& symbol) {
    Scope& scope = open_.back();
    const Declared* earlier = nullptr;
    for (const Range& range : scope.ranges)
        if (range.prefix == prefix) earlier = &range.symbol;
    for (const auto& [name, each] : scope.symbols)
        if (const auto parts = numbered(name); parts && parts->number < count && parts->prefix == module_.text(prefix))
            earlier = &each;
    if (!earlier) scope.ranges.push_back({prefix, count, symbol});
    return earlier;
}

const Declared* Scopes::in_ranges(const Scope& scope, Name name) const {
    if (scope.ranges.empty()) return nullptr;
    const std::optional<Numbered> parts = numbered(name);
    if (!parts) return nullptr;
    for (const Range& range : scope.ranges)
        if (parts->number < range.count && module_.text(range.prefix) == parts->prefix) return &range.symbol;
    return nullptr;
}

std::optional<Scopes::Numbered> Scopes::numbered(Name name) const {
    const std::string_view text = module_.text(name);
    const std::size_t first = text.find_last_not_of("0123456789") + 1;
    const std::string_view digits = text.substr(first);
    if (digits.empty() || digits.size() > 10 || (digits.size() > 1 && digits[0] == '0')) return std::nullopt;
    Numbered parts{text.substr(0, first), 0};
    std::from_chars(digits.data(), digits.data() + digits.size(), parts.number);
    return parts;
}

const Declared* Scopes::find(Name name) const {
    for (const Scope& scope : std::views::reverse(open_)) {
        if (const auto found = scope.symbols.find(name); found != scope.symbols.end()) return &found->second;
        if (const Declared* found = in_ranges(scope, name)) return found;
    }
    return nullptr;
}

std::string Scopes::past_the_end(Name name) const {
    const std::optional<Numbered> parts = numbered(name);
    if (!parts) return {};
    for (const Scope& scope : std::views::reverse(open_))
        for (const Range& range : scope.ranges) {
            if (module_.text(range.prefix) != parts->prefix || range.count == 0) continue;
            const std::string prefix(parts->prefix);
            return prefix + '<' + std::to_string(range.count) + "> ends with " + prefix +
                   std::to_string(range.count - 1);
        }
    return {};
}

}  // namespace ikat::ptx
