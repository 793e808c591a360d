// SPDX-License-Identifier: Apache-2.0
#include "codegen/ir/text/literal.hpp"

#include <charconv>
#include <cmath>
#include <limits>

#include "codegen/ir/op/semantics.hpp"

namespace ikat::ir {
namespace {

constexpr std::uint64_t shown_in_hexadecimal = std::uint64_t{1} << 31;  // from here on: masks, mostly

std::string in_base(auto number, int base) {
    char text[72];
    return {text, std::to_chars(text, text + sizeof text, number, base).ptr};
}

std::string hexadecimal(Word bits) { return "0x" + in_base(bits, 16); }

template <class T>
std::string float_text(T x, Word bits) {
    if (x != x) return bits == to_word(sem::canonical_nan<T>()) ? "nan" : hexadecimal(bits);
    char text[64];
    std::string out(text, std::to_chars(text, text + sizeof text, sem::wide(x)).ptr);
    if (out.find_first_of(".en") == out.npos) out += ".0";
    return out;
}

template <class T>
std::optional<T> number(std::string_view text, auto... base) {
    T out{};
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out, base...);
    if (error != std::errc{} || end != text.data() + text.size()) return {};
    return out;
}

/// A conversion to a small float may clamp; a literal must be in range, or it is not valid.
template <class T>
std::optional<Word> small_float(double x) {
    const Word sign = Word{std::signbit(x)} << (T::format.mantissa_bits + T::format.exponent_bits);
    if (std::isinf(x)) return T::format.no_infinity ? std::nullopt : std::optional(sign | T::format.infinity());
    const double largest = decode(T::format.beyond() - 1, T::format);
    const double half_unit = std::ldexp(1.0, std::ilogb(largest) - T::format.mantissa_bits - 1);
    if (std::abs(x) >= largest + half_unit) return {};
    return to_word(T(x));
}

template <class T>
std::optional<Word> parse(std::string_view text) {
    if constexpr (std::is_same_v<T, bool>) {
        if (text == "true" || text == "false") return text == "true";
        return {};
    } else if constexpr (std::is_integral_v<T>) {
        if (const auto x = number<T>(text, 10)) return to_word(*x);
        return {};
    } else if constexpr (is_pair<T>) {
        return {};
    } else {
        if (text == "nan") return to_word(sem::canonical_nan<T>());
        using Parsed = std::conditional_t<is_small_float<T>, double, T>;
        const auto x = number<Parsed>(text);
        if (!x || std::isnan(*x)) return {};
        if constexpr (is_small_float<T>)
            return small_float<T>(*x);
        else
            return to_word(*x);
    }
}

}  // namespace

std::string literal_text(Type type, Word bits) {
    return with_type(type, [&]<class T>() -> std::string {
        const T x = from_word<T>(bits);
        if constexpr (std::is_same_v<T, bool>)
            return x ? "true" : "false";
        else if constexpr (is_pair<T>)
            return hexadecimal(bits);
        else if constexpr (sem::is_float<T>)
            return float_text(x, bits);
        else
            return std::is_unsigned_v<T> && std::uint64_t(x) >= shown_in_hexadecimal ? hexadecimal(bits)
                                                                                     : in_base(x, 10);
    });
}

std::optional<Word> literal_bits(Type type, std::string_view text) {
    if (text.starts_with("0x")) {
        const auto bits = number<Word>(text.substr(2), 16);
        return bits && fits(type, *bits) ? bits : std::nullopt;
    }
    return with_type(type, [&]<class T>() { return parse<T>(text); });
}

}  // namespace ikat::ir
