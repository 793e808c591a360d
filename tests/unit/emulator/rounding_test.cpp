// SPDX-License-Identifier: Apache-2.0
// Unary operations on floats in each rounding, at ties of both signs and next to them, compared with the host's
// arithmetic in its rounding modes: none of our code computes the expected values.
#include <cfenv>
#include <cmath>

#include "codegen/support/half.hpp"
#include "tests/unit/emulator/evaluate.hpp"

namespace ikat::tests {
namespace {

struct Mode {
    const char *integral, *rounds;
    int host;
};
constexpr Mode modes[] = {{".rni", ".rn", FE_TONEAREST},
                          {".rzi", ".rz", FE_TOWARDZERO},
                          {".rmi", ".rm", FE_DOWNWARD},
                          {".rpi", ".rp", FE_UPWARD}};

/// Ties, their neighbours in f32 and in f64, zeros, and numbers too large to have a fraction.
std::vector<double> arguments() {
    std::vector<double> out;
    for (double x : {0.0, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 2.5, 3.5, 4.5, 100.5, 1023.5, 8388607.5, 8388609.0, 1e9})
        for (double y : {x, double(std::nextafterf(float(x), 1e30f)), std::nextafter(x, 0.0)})
            out.insert(out.end(), {y, -y});
    return out;
}

/// The host's result of `compute` in a rounding mode; volatile keeps the compiler from computing it in another.
template <class T>
T in_mode(int mode, double x, auto&& compute) {
    std::fesetround(mode);
    const volatile T argument = T(x);
    const volatile T result = compute(argument);
    std::fesetround(FE_TONEAREST);
    return result;
}

/// Compares `code` (of %r1 or %d1) with the host.
template <class T>
void compare(const std::string& code, int mode, auto&& compute, bool (*is_argument)(double) = nullptr) {
    std::vector<Row> rows;
    std::vector<T> expected;
    for (double x : arguments()) {
        if (is_argument && !is_argument(double(T(x)))) continue;
        rows.push_back({sizeof(T) == 4 ? F(float(x)) : D(x)});
        expected.push_back(in_mode<T>(mode, double(T(x)), compute));
    }
    const auto got = evaluate(code, rows);
    for (std::size_t i = 0; i < rows.size(); ++i) {
        INFO(code << " of " << std::hexfloat << arguments()[i]);
        const std::uint64_t bits = sizeof(T) == 4 ? F(float(expected[i])) : D(double(expected[i]));
        if (expected[i] == expected[i]) CHECK(got[i] == bits);
    }
}

template <class T>
void check_type(const std::string& type, const std::string& r) {
    const std::string operands = " %" + r + "0, %" + r + "1;";
    for (const Mode& mode : modes) {
        const auto nearby = [](T x) { return std::nearbyint(x); };
        compare<T>("cvt" + std::string(mode.integral) + type + type + operands, mode.host, nearby);
        compare<T>(
            "sqrt" + std::string(mode.rounds) + type + operands, mode.host, [](T x) { return std::sqrt(x); },
            [](double x) { return x >= 0 && !std::signbit(x); });
        compare<T>("rcp" + std::string(mode.rounds) + type + operands, mode.host, [](T x) { return T(1) / x; });
        const std::string immediate = sizeof(T) == 4 ? ", 0f3DCCCCCD;" : ", 0d3FB999999999999A;";
        for (const char* op : {"add", "mul"})
            compare<T>(op + std::string(mode.rounds) + type + " %" + r + "0, %" + r + "1" + immediate, mode.host,
                       [=](T x) { return *op == 'a' ? x + T(0.1) : x * T(0.1); });
    }
    compare<T>("neg" + type + operands, FE_TONEAREST, [](T x) { return -x; });
    compare<T>("abs" + type + operands, FE_TONEAREST, [](T x) { return std::abs(x); });
}

template <class To>
void check_to_integer(const std::string& to, const std::string& d) {
    for (const Mode& mode : modes)
        for (const bool wide : {false, true}) {
            std::vector<Row> rows;
            std::vector<To> expected;
            for (double x : arguments()) {
                const double argument = wide ? x : double(float(x));
                const double whole = in_mode<double>(mode.host, argument, [](double v) { return std::nearbyint(v); });
                if (whole < double(std::numeric_limits<To>::min()) || whole > double(std::numeric_limits<To>::max()))
                    continue;
                rows.push_back({wide ? D(x) : F(float(x))});
                expected.push_back(To(whole));
            }
            const std::string code =
                "cvt" + std::string(mode.integral) + to + (wide ? ".f64 %" + d + "0, %d1;" : ".f32 %" + d + "0, %r1;");
            const auto got = evaluate(code, rows);
            for (std::size_t i = 0; i < rows.size(); ++i) {
                INFO(code << " of 0x" << std::hex << rows[i][0]);
                CHECK(To(got[i]) == expected[i]);
            }
        }
}

}  // namespace

TEST_CASE("unary float operations at ties, in each rounding") {
    check_type<float>(".f32", "r");
    check_type<double>(".f64", "d");
}

TEST_CASE("f16 to an integral f16 at ties, in each rounding") {
    for (const Mode& mode : modes) {
        std::vector<Row> rows;
        std::vector<std::uint16_t> expected;
        for (std::uint32_t h = 0; h < 0x10000; ++h) {
            const double x = double(half::from_bits(std::uint16_t(h)));
            if (!std::isfinite(x)) continue;
            rows.push_back({h});
            expected.push_back(half(in_mode<double>(mode.host, x, [](double v) { return std::nearbyint(v); })).bits);
        }
        const auto got = evaluate("cvt" + std::string(mode.integral) + ".f16.f16 %h0, %h1;", rows);
        int wrong = 0;
        for (std::size_t i = 0; i < rows.size(); ++i) wrong += got[i] != expected[i];
        INFO(mode.integral);
        CHECK(wrong == 0);
    }
}

TEST_CASE("floats to integers at ties, in each rounding") {
    check_to_integer<std::int32_t>(".s32", "r");
    check_to_integer<std::uint32_t>(".u32", "r");
    check_to_integer<std::int64_t>(".s64", "d");
    check_to_integer<std::int16_t>(".s16", "h");
}

}  // namespace ikat::tests
