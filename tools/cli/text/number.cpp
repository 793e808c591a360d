// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/text/number.hpp"

#include <fmt/format.h>

#include <bit>
#include <charconv>
#include <limits>
#include <type_traits>

#include "codegen/support/diagnostic.hpp"

namespace ikat::cli {
namespace {

constexpr NumberType number_types[] = {
    {ir::Type::U8},        {ir::Type::U16},       {ir::Type::U32},       {ir::Type::U64},  {ir::Type::I8},
    {ir::Type::I16},       {ir::Type::I32},       {ir::Type::I64},       {ir::Type::F16},  {ir::Type::BF16},
    {ir::Type::F32},       {ir::Type::F64},       {ir::Type::E4M3},      {ir::Type::E5M2}, {ir::Type::U8, true},
    {ir::Type::U16, true}, {ir::Type::U32, true}, {ir::Type::U64, true},
};

[[noreturn]] void bad_number(NumberType type, std::string_view text, std::string hint) {
    throw Error(fmt::format("'{}' is not a valid {}", text, type.name()), std::move(hint));
}

template <class T>
bool read_whole(std::string_view text, T& value, auto... format) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, format...);
    return error == std::errc{} && end == text.data() + text.size();
}

template <class T>
T parse_integer(NumberType type, std::string_view text) {
    const std::string range = fmt::format("an integer from {} to {}, decimal or 0x...", +std::numeric_limits<T>::min(),
                                          +std::numeric_limits<T>::max());
    const bool negative = text.starts_with('-');
    const std::string_view digits = text.substr(negative);
    const bool hexadecimal = digits.starts_with("0x") || digits.starts_with("0X");
    std::uint64_t magnitude = 0;
    if (!read_whole(digits.substr(hexadecimal ? 2 : 0), magnitude, hexadecimal ? 16 : 10))
        bad_number(type, text, range);
    const std::uint64_t max = negative ? std::is_signed_v<T> ? std::uint64_t(std::numeric_limits<T>::max()) + 1 : 0
                                       : std::uint64_t(std::numeric_limits<T>::max());
    if (magnitude > max) bad_number(type, text, range);
    return T(negative ? 0 - magnitude : magnitude);
}

template <class T>
T parse_float(NumberType type, std::string_view text) {
    using Read = std::conditional_t<is_small_float<T>, double, T>;
    Read value = 0;
    const std::string_view unsigned_text = text.substr(text.starts_with('+'));
    if (!read_whole(unsigned_text, value))
        bad_number(type, text,
                   fmt::format("a decimal number within range, inf or nan; b{}:0x... for its bits", 8 * type.bytes()));
    if constexpr (is_small_float<T>)
        return T(value);
    else
        return value;
}

template <class T>
using Bits = std::conditional_t<sizeof(T) == 1, std::uint8_t,
                                std::conditional_t<sizeof(T) == 2, std::uint16_t,
                                                   std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>>>;

template <class T>
inline constexpr bool is_float = std::is_floating_point_v<T> || is_small_float<T>;

template <class T>
constexpr int significant_digits() {
    if constexpr (is_small_float<T>)
        return T::format.mantissa_bits + 1;
    else
        return std::numeric_limits<T>::digits;
}

}  // namespace

std::string NumberType::name() const { return raw ? fmt::format("b{}", 8 * bytes()) : std::string(info(type).name); }

std::optional<NumberType> number_type(std::string_view name) {
    for (const NumberType type : number_types)
        if (type.name() == name) return type;
    return {};
}

std::string number_type_names() {
    std::string out;
    for (const NumberType type : number_types) out += (out.empty() ? "" : " ") + type.name();
    return out;
}

std::uint64_t parse_number(NumberType type, std::string_view text) {
    return with_type(type.type, [&]<class T>() -> std::uint64_t {
        if constexpr (std::is_same_v<T, bool> || is_pair<T>)
            return 0;  // not a number type
        else if constexpr (is_float<T>)
            return std::bit_cast<Bits<T>>(parse_float<T>(type, text));
        else
            return Bits<T>(parse_integer<T>(type, text));
    });
}

std::string format_number(NumberType type, std::uint64_t bits) {
    if (type.raw) return fmt::format("{:#x}", bits);
    return with_type(type.type, [&]<class T>() -> std::string {
        if constexpr (std::is_same_v<T, bool> || is_pair<T>)
            return {};  // not a number type
        else if constexpr (is_small_float<T>)
            return fmt::format("{}", float(std::bit_cast<T>(Bits<T>(bits))));
        else
            return fmt::format("{}", std::bit_cast<T>(Bits<T>(bits)));
    });
}

/// SplitMix64 (Steele, Lea, Flood 2014).
std::uint64_t Random::number(NumberType type) {
    std::uint64_t z = state_ += 0x9e3779b97f4a7c15;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    z ^= z >> 31;
    return with_type(type.type, [&]<class T>() -> std::uint64_t {
        if constexpr (is_float<T>) {
            constexpr int digits = significant_digits<T>();
            const double unit = double(z >> (64 - digits)) / double(std::uint64_t{1} << digits);  // exact
            return std::bit_cast<Bits<T>>(T(2 * unit - 1));
        } else {
            return Bits<T>(z);
        }
    });
}

}  // namespace ikat::cli
