// SPDX-License-Identifier: Apache-2.0
// Every vectorised handler compared with its scalar line of semantics.hpp, on edge values of its type, on every
// instruction set of this machine, with all lanes and with some.
#include <cmath>
#include <limits>

#include "codegen/ir/op/semantics.hpp"
#include "runtime/emulator/ops/handlers.hpp"
#include "tests/unit/emulator/evaluate.hpp"
#include "tests/unit/emulator/targets.hpp"

using namespace ikat;
using tests::evaluate;
using tests::OnTarget;
using tests::Row;
using tests::targets;
namespace sem = ir::sem;

namespace {

template <class T>
std::uint64_t bits(T x) {
    if constexpr (std::is_same_v<T, half>)
        return x.bits;
    else if constexpr (std::is_same_v<T, float>)
        return std::bit_cast<std::uint32_t>(x);
    else if constexpr (std::is_same_v<T, double>)
        return std::bit_cast<std::uint64_t>(x);
    else if constexpr (std::is_same_v<T, bool>)
        return x;
    else
        return std::make_unsigned_t<T>(x);
}

template <class T>
T of_bits(std::uint64_t x) {
    if constexpr (std::is_same_v<T, half>)
        return half::from_bits(std::uint16_t(x));
    else if constexpr (std::is_same_v<T, float>)
        return std::bit_cast<float>(std::uint32_t(x));
    else if constexpr (std::is_same_v<T, double>)
        return std::bit_cast<double>(x);
    else
        return T(x);
}

template <class T>
std::vector<std::uint64_t> edges() {
    std::vector<std::uint64_t> list;
    if constexpr (sem::is_float<T>) {
        for (const double x :
             {0.0,        1.0,          1.5,          2.0,           3.1415926535, 0.1,   1e-3,  65504.0, 65520.0,
              1e10,       2147483648.0, 4294967296.0, 9.3e18,        1.9e19,       255.5, 127.5, 0.5,     2.5,
              0.99999994, 1e-45,        1e-40,        1.1754944e-38, 3.4e38,       1e300, 6e-8})
            for (const double y : {x, -x}) {
                if constexpr (std::is_same_v<T, half>)
                    list.push_back(half(y).bits);
                else
                    list.push_back(bits(T(y)));
            }
        const auto infinity = bits(T(std::numeric_limits<double>::infinity()));
        const std::uint64_t sign = std::uint64_t{1} << (sizeof(T) * 8 - 1);
        for (const std::uint64_t special :
             {infinity, infinity | sign, infinity + 1, (infinity + 5) | sign, infinity - 1, std::uint64_t{1}, sign | 1})
            list.push_back(special);
    } else {
        using U = std::make_unsigned_t<T>;
        const U top = U(U(1) << (sizeof(T) * 8 - 1));
        for (const U x : {U(0), U(1), U(2), U(3), U(31), U(32), U(100), U(255), U(-1), U(-2), U(-100), top, U(top - 1),
                          U(top + 1), U(0x1234567890abcdefull)})
            list.push_back(x);
    }
    return list;
}

/// The suffix of a type, and the letter of the registers it lives in.
template <class T>
std::string suffix() {
    const std::string bits = std::to_string(sizeof(T) * 8);
    return "." + std::string(sem::is_float<T> ? "f" : std::is_signed_v<T> ? "s" : "u") + bits;
}
template <class T>
std::string letter() {
    return sizeof(T) == 8 ? "d" : sizeof(T) == 4 ? "r" : "h";
}

template <class T>
std::vector<Row> pairs() {
    std::vector<Row> rows;
    for (const std::uint64_t a : edges<T>())
        for (const std::uint64_t b : edges<T>())
            rows.push_back({a, b, edges<T>()[(rows.size() * 7) % edges<T>().size()]});
    return rows;
}

/// Compares `code` with `line(row)` on all rows and every target.
void compare(const std::string& code, const std::vector<Row>& rows, auto&& line) {
    for (const std::int64_t target : targets()) {
        const OnTarget on(target);
        for (const std::uint32_t lanes : {~0u, 0x0ff0a5f3u}) {
            const auto results = evaluate(code, rows, lanes);
            std::size_t wrong = 0;
            for (std::size_t i = 0; i < rows.size(); ++i) {
                const std::uint64_t expected = lanes >> i % 32 & 1             ? line(rows[i])
                                               : code.find("%p0") != code.npos ? 0
                                                                               : 0x5555;
                if (results[i] == expected || wrong++ > 2) continue;
                FAIL_CHECK(emulator::instruction_set()
                           << "  " << code << std::hex << "  " << rows[i][0] << ' ' << rows[i][1] << ' ' << rows[i][2]
                           << "  gives " << results[i] << ", the line " << expected);
            }
            CHECK(wrong == 0);
        }
    }
}

template <class T, const auto& Line>
void binary(const std::string& name) {
    const std::string r = letter<T>();
    compare(name + suffix<T>() + " %" + r + "0, %" + r + "1, %" + r + "2;", pairs<T>(), [](const Row& row) {
        return bits(T(Line.template operator()<T>(of_bits<T>(row[0]), of_bits<T>(row[1]))));
    });
}

template <class T, const auto& Line>
void unary(const std::string& name) {
    const std::string r = letter<T>();
    compare(name + suffix<T>() + " %" + r + "0, %" + r + "1;", pairs<T>(),
            [](const Row& row) { return bits(T(Line.template operator()<T>(of_bits<T>(row[0])))); });
}

template <class T, const auto& Line>
void ternary(const std::string& name) {
    const std::string r = letter<T>();
    compare(name + suffix<T>() + " %" + r + "0, %" + r + "1, %" + r + "2, %" + r + "3;", pairs<T>(),
            [](const Row& row) {
                return bits(T(Line.template operator()<T>(of_bits<T>(row[0]), of_bits<T>(row[1]), of_bits<T>(row[2]))));
            });
}

template <class T, const auto& Line>
void comparison(const std::string& name) {
    const std::string r = letter<T>();
    compare("setp." + name + suffix<T>() + " %p0, %" + r + "1, %" + r + "2;", pairs<T>(), [](const Row& row) {
        return std::uint64_t(Line.template operator()<T>(of_bits<T>(row[0]), of_bits<T>(row[1])));
    });
}

template <class T, const auto& Line>
void shift(const std::string& name) {
    const std::string r = letter<T>();
    compare(name + " %" + r + "0, %" + r + "1, %r2;", pairs<T>(), [](const Row& row) {
        return bits(T(Line.template operator()<T>(of_bits<T>(row[0]), std::uint32_t(row[1]))));
    });
}

template <class T>
void numbers() {
    const std::string lo = std::is_integral_v<T> ? ".lo" : "";
    binary<T, sem::Add>("add");
    binary<T, sem::Sub>("sub");
    binary<T, sem::Mul>("mul" + lo);
    ternary<T, sem::Fma>(std::is_integral_v<T> ? "mad.lo" : "fma.rn");
    binary<T, sem::Min>("min");
    binary<T, sem::Max>("max");
    comparison<T, sem::Eq>("eq");
    comparison<T, sem::Ne>(std::is_integral_v<T> ? "ne" : "neu");
    comparison<T, sem::Lt>("lt");
    comparison<T, sem::Le>("le");
    comparison<T, sem::Gt>("gt");
    comparison<T, sem::Ge>("ge");
}

template <class T>
void integers() {
    numbers<T>();
    binary<T, sem::Div>("div");
    binary<T, sem::Rem>("rem");
    const std::string b = ".b" + std::to_string(sizeof(T) * 8);
    shift<T, sem::Shl>("shl" + b);
    shift<T, sem::Shr>("shr" + suffix<T>());
    if constexpr (sizeof(T) >= 4) binary<T, sem::MulHi>("mul.hi");
    if constexpr (std::is_signed_v<T>) {
        unary<T, sem::Neg>("neg");
        unary<T, sem::Abs>("abs");
    }
}

template <class T>
void floats() {
    numbers<T>();
    unary<T, sem::Neg>("neg");
    unary<T, sem::Abs>("abs");
}

template <class To, class From>
void convert(const std::string& modifiers, Rounding rounding, bool saturate = false) {
    const std::string r = sizeof(To) == 1 ? "r" : letter<To>();
    const std::uint64_t mask = sizeof(To) == 1 ? 255 : ~std::uint64_t{0};
    const std::string from = sizeof(From) == 1 ? "r" : letter<From>();
    const std::string narrow = sizeof(To) == 1 ? " and.b32 %r0, %r0, 255;" : "";
    std::vector<Row> rows;
    for (const std::uint64_t a : edges<From>()) rows.push_back({a, 0, 0});
    compare("cvt" + modifiers + suffix<To>() + suffix<From>() + " %" + r + "0, %" + from + "1;" + narrow, rows,
            [=](const Row& row) { return bits(sem::convert<To>(of_bits<From>(row[0]), rounding, saturate)) & mask; });
}

template <class To>
void convert_to_integer() {
    const std::pair<const char*, Rounding> roundings[] = {
        {".rni", Rounding::Nearest}, {".rzi", Rounding::Zero}, {".rmi", Rounding::Down}, {".rpi", Rounding::Up}};
    for (const auto& [modifier, rounding] : roundings) {
        convert<To, half>(modifier, rounding);
        convert<To, float>(modifier, rounding);
        convert<To, double>(modifier, rounding);
    }
    convert<To, std::int8_t>("", Rounding::Nearest);
    convert<To, std::uint16_t>("", Rounding::Nearest);
    convert<To, std::int32_t>("", Rounding::Nearest);
    convert<To, std::int64_t>("", Rounding::Nearest);
    convert<To, std::int64_t>(".sat", Rounding::Nearest, true);
    convert<To, std::uint64_t>(".sat", Rounding::Nearest, true);
}

template <class To>
void convert_to_float() {
    const std::pair<const char*, Rounding> roundings[] = {
        {".rn", Rounding::Nearest}, {".rz", Rounding::Zero}, {".rm", Rounding::Down}, {".rp", Rounding::Up}};
    for (const auto& [modifier, rounding] : roundings) {
        convert<To, std::int8_t>(modifier, rounding);
        convert<To, std::uint16_t>(modifier, rounding);
        convert<To, std::int32_t>(modifier, rounding);
        convert<To, std::uint32_t>(modifier, rounding);
        convert<To, std::int64_t>(modifier, rounding);
        convert<To, std::uint64_t>(modifier, rounding);
        if constexpr (sizeof(To) < 8) convert<To, double>(modifier, rounding);
        if constexpr (sizeof(To) < 4) convert<To, float>(modifier, rounding);
    }
    if constexpr (sizeof(To) > 2) convert<To, half>("", Rounding::Nearest);
    if constexpr (sizeof(To) > 4) convert<To, float>("", Rounding::Nearest);
}

}  // namespace

TEST_CASE("integer handlers mean what their lines say") {
    integers<std::int16_t>();
    integers<std::uint16_t>();
    integers<std::int32_t>();
    integers<std::uint32_t>();
    integers<std::int64_t>();
    integers<std::uint64_t>();
}

TEST_CASE("float handlers mean what their lines say") {
    floats<half>();
    floats<float>();
    floats<double>();
    binary<float, sem::Div>("div.rn");
    binary<double, sem::Div>("div.rn");
    unary<float, sem::Sqrt>("sqrt.rn");
    unary<double, sem::Sqrt>("sqrt.rn");
    unary<float, sem::Rcp>("rcp.rn");
    unary<float, sem::Exp2>("ex2.approx");
    unary<float, sem::Log2>("lg2.approx");
    unary<float, sem::Rsqrt>("rsqrt.approx");
}

TEST_CASE("conversions mean what their lines say") {
    convert_to_integer<std::int8_t>();
    convert_to_integer<std::uint8_t>();
    convert_to_integer<std::int16_t>();
    convert_to_integer<std::uint16_t>();
    convert_to_integer<std::int32_t>();
    convert_to_integer<std::uint32_t>();
    convert_to_integer<std::int64_t>();
    convert_to_integer<std::uint64_t>();
    convert_to_float<half>();
    convert_to_float<float>();
    convert_to_float<double>();
}

TEST_CASE("f16 fma rounds once") {
    std::vector<Row> rows;
    std::uint64_t state = 12345;
    const auto next = [&] { return (state = state * 6364136223846793005u + 1442695040888963407u) >> 48; };
    // Products next to their addend, and addends far below or above the product's last bit.
    for (int i = 0; i < 20000; ++i) rows.push_back({next(), next(), next()});
    for (int i = 0; i < 20000; ++i)
        rows.push_back({0x3c00 | (next() & 0x83ff), 0x3c00 | (next() & 0x3ff), next() & 0xbfff});
    compare("fma.rn.f16 %h0, %h1, %h2, %h3;", rows, [](const Row& row) {
        return bits(sem::fma(of_bits<half>(row[0]), of_bits<half>(row[1]), of_bits<half>(row[2])));
    });
}

TEST_CASE("every half, to f32 and back") {
    std::vector<Row> rows;
    for (std::uint64_t h = 0; h < 65536; ++h) rows.push_back({h, 0, 0});
    compare("cvt.f32.f16 %r0, %h1;", rows,
            [](const Row& row) { return bits(sem::convert<float>(of_bits<half>(row[0]), Rounding::Nearest)); });
    // every f32 whose upper half is h, at, above and below the rounding boundaries of f16
    for (Row& row : rows) row[0] = row[0] << 16 | (0x1000 + row[0] % 3 - 1);
    compare("cvt.rn.f16.f32 %h0, %r1;", rows,
            [](const Row& row) { return bits(sem::convert<half>(of_bits<float>(row[0]), Rounding::Nearest)); });
}

TEST_CASE("the tests above run on the instruction set that they ask for") {
    for (const std::int64_t target : targets()) {
        const OnTarget chosen(target);
        CHECK(emulator::target_name() == hwy::TargetName(target));
    }
}
