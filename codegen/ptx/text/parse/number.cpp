// SPDX-License-Identifier: Apache-2.0
#include "codegen/ptx/text/parse/number.hpp"

#include <bit>
#include <charconv>
#include <system_error>

namespace ikat::ptx {
namespace {

using characters::is;

constexpr const char* integers_hint =
    "integers are written 12, -12, 0x1f, 017 or 0b101, with the suffix U for unsigned";

struct Literal {
    Build& build;
    const char* const start;  // of the literal, including its sign
    const char* place;        // after the sign and blanks
    bool minus;

    const char* end() const { return build.source.end(); }
    bool letter(std::size_t at, char lower) const {
        return std::size_t(end() - place) > at && (place[at] | 0x20) == lower;
    }
    const char* skip(const char* from, std::uint8_t wanted) const {
        while (from != end() && is(*from, wanted)) ++from;
        return from;
    }

    /// 0f and 8 digits, 0d and 16: the bits.
    Operand float_bits(int digits, Operand::Kind kind) {
        const char* stop = skip(place + 2, characters::Follow);
        std::uint64_t bits = 0;
        const auto [read, error] = std::from_chars(place + 2, stop, bits, 16);
        if (read != stop || stop - (place + 2) != digits || minus)
            build.source.fail(start, "malformed floating-point literal " + std::string(start, stop),
                              "0f takes exactly 8 hexadecimal digits and 0d takes 16; the sign is in the digits");
        return finish({.kind = kind, .value = bits}, stop);
    }

    Operand decimal_float(const char* stop) {
        double value = 0;
        const auto [read, error] = std::from_chars(place, stop, value);
        if (read != stop || error != std::errc{} || (stop != end() && is(*stop, characters::Follow)))
            build.source.fail(start, "malformed floating-point literal " + std::string(start, stop),
                              "write it as 1.5, 1.5e-3, 0f3FC00000 or 0d3FF8000000000000");
        return finish({.kind = Operand::Kind::Float64, .value = std::bit_cast<std::uint64_t>(minus ? -value : value)},
                      stop);
    }

    Operand integer() {
        const char* stop = skip(place, characters::Follow);
        const bool is_unsigned = stop[-1] == 'U' || stop[-1] == 'u';
        const bool has_prefix = place[0] == '0' && stop - place > 1;
        const int base = letter(1, 'x') ? 16 : letter(1, 'b') ? 2 : has_prefix ? 8 : 10;
        const char* digits = place + (has_prefix && (base == 16 || base == 2) ? 2 : 0);
        std::uint64_t value = 0;
        const auto [read, error] = std::from_chars(digits, stop - is_unsigned, value, has_prefix ? base : 10);
        if (error == std::errc::result_out_of_range)
            build.source.fail(start, "the integer " + std::string(start, stop) + " does not fit in 64 bits", {});
        if (read != stop - is_unsigned || read == digits)
            build.source.fail(start, "malformed number " + std::string(start, stop), integers_hint);
        return finish({.kind = Operand::Kind::Integer, .value = minus ? -value : value}, stop);
    }

    /// Keeps the spelling unless the printer would choose it anyway.
    Operand finish(Operand operand, const char* stop) {
        const std::string_view spelling(start, stop);
        if (!is_canonical(operand, spelling)) {
            std::string text(place, stop);
            operand.name = build.module.intern(minus ? '-' + text : text);
        }
        place = stop;
        return operand;
    }

    bool is_canonical(const Operand& operand, std::string_view spelling) const {
        if (operand.kind == Operand::Kind::Integer) {
            std::array<char, 24> digits;
            const auto written =
                std::to_chars(digits.data(), digits.data() + digits.size(), std::int64_t(operand.value));
            return spelling == std::string_view(digits.data(), written.ptr);
        }
        const std::string_view prefix = operand.kind == Operand::Kind::Float32 ? "0f" : "0d";
        if (!spelling.starts_with(prefix)) return false;
        for (char c : spelling.substr(2))
            if (c >= 'a') return false;
        return true;
    }

    /// The end of a decimal float, or place if there is none.
    const char* decimal_float_end() const {
        const char* stop = skip(place, characters::Digit);
        const bool has_point = stop != end() && *stop == '.';
        if (has_point) stop = skip(stop + 1, characters::Digit);
        const bool has_exponent = stop != end() && (*stop | 0x20) == 'e';
        if (has_exponent) {
            ++stop;
            if (stop != end() && (*stop == '-' || *stop == '+')) ++stop;
            stop = skip(stop, characters::Digit);
        }
        return has_point || has_exponent ? stop : place;
    }
};

}  // namespace

bool scan_number(Build& build, const char*& first, Operand& out) {
    Literal literal{build, first, first, build.source.at(first, '-')};
    const char* const end = build.source.end();
    if (literal.minus) literal.place = literal.skip(first + 1, characters::Blank);
    if (literal.place == end || !is(*literal.place, characters::Digit)) return false;
    const bool zero = *literal.place == '0';
    const bool has_prefix = zero && (literal.letter(1, 'x') || literal.letter(1, 'b'));
    if (zero && literal.letter(1, 'f'))
        out = literal.float_bits(8, Operand::Kind::Float32);
    else if (zero && literal.letter(1, 'd'))
        out = literal.float_bits(16, Operand::Kind::Float64);
    else if (const char* stop = literal.decimal_float_end(); !has_prefix && stop != literal.place)
        out = literal.decimal_float(stop);
    else
        out = literal.integer();
    first = build.source.finish(literal.place);
    return true;
}

}  // namespace ikat::ptx
