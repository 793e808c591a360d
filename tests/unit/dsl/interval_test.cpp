// SPDX-License-Identifier: Apache-2.0
// Intervals: whatever they tell surely holds for all values in them, and what they call impossible for none.
#include <ikat/ikat.hpp>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <random>
#include <vector>

#include "dsl/values/interval.hpp"
#include "tests/catch.hpp"

namespace {

using namespace ikat;

/// A formula on the device, of values or intervals, and on the host.
struct Formula {
    const char* text;
    std::function<Truth(const Interval<std::int32_t>&, const Interval<std::int32_t>&)> device;
    bool (*host)(std::int32_t, std::int32_t);
};

#define FORMULA(...)                                                                                                     \
    {                                                                                                                    \
#__VA_ARGS__,                                                                                                    \
            [](const auto& x,                                                                                            \
               const auto&                                                                                               \
                   y) { return (void)(y), detail::truth_of(__VA_ARGS__); },                                              \
                                                                         [](std::int32_t x, std::int32_t y)              \
                                                                              -> bool { return (void)(y), __VA_ARGS__; } \
    }
using std::abs, std::max, std::min;
/// As the device's.
std::int32_t select(bool condition, std::int32_t a, std::int32_t b) { return condition ? a : b; }
template <class T>
float as_f32(T x) {
    return float(x);
}
Interval<float> as_f32(const Interval<std::int32_t>& x) { return cast<f32>(x); }

const Formula formulas[] = {
    FORMULA((y <= x) & ((y + 5 > x) | (y < 4))),
    FORMULA(x - y >= 3),
    FORMULA(3 - y < -x),
    FORMULA(x* y < 10),
    FORMULA(x * -2 > y),
    FORMULA(x / 4 == y / 4),
    FORMULA(x / -3 != y),
    FORMULA(x % 4 == 1),
    FORMULA(y % 3 < x),
    FORMULA((x >> 2u) == (y >> 2u)),
    FORMULA(abs(x - y) < 4),
    FORMULA(abs(x) <= abs(y)),
    FORMULA(min(x, 3) > max(y, -2)),
    FORMULA(!(x < y) ^ (y == 2)),
    FORMULA(select(x < y, x, 3) >= y),
    FORMULA(select(x < 0, x, y) == 1),
    FORMULA(as_f32(x) * 0.5f > as_f32(y)),
    FORMULA((x != y) | (x == 0)),
};

}  // namespace

TEST_CASE("intervals: what they tell holds for all values in them") {
    constexpr std::uint32_t count = 256, formula_count = std::uint32_t(std::size(formulas));
    std::mt19937 random(1);
    std::vector<std::int32_t> bounds;
    for (std::uint32_t i = 0; i < 2 * count; ++i) {
        const auto low = std::int32_t(random() % 16) - 8;
        bounds.push_back(low), bounds.push_back(low + std::int32_t(random() % 6) * std::int32_t(i % 3 != 0));
    }
    const auto told = kernel("told", params("bounds", "y"), [=](In<std::int32_t> bounds, Out<std::uint32_t> y) {
        const auto i = value(global_id().x);
        const auto bound = [&](std::uint32_t k) { return value(bounds[i * 4u + k]); };
        const Interval<std::int32_t> a{bound(0), bound(1)}, b{bound(2), bound(3)};
        for (std::uint32_t f = 0; f < formula_count; ++f) {
            const Truth all = formulas[f].device(a, b);
            y[i * formula_count + f] = select(all.surely, 2u, 0u) + select(all.possibly, 1u, 0u);
        }
    });
    const Device device = Device::open({.device = "emulator"});
    const auto x = device.upload(bounds, "bounds");
    auto y = device.buffer<std::uint32_t>(count * formula_count, "y");
    device.launch(told, Grid{{count / 32}, {32}}, x, y);
    const auto got = y.download();
    for (std::uint32_t f = 0; f < formula_count; ++f) {
        std::uint32_t wrong = 0, points = 0, known = 0;
        for (std::uint32_t i = 0; i < count; ++i) {
            const auto* const of = &bounds[i * 4];
            bool all = true, any = false;
            for (std::int32_t a = of[0]; a <= of[1]; ++a)
                for (std::int32_t b = of[2]; b <= of[3]; ++b) {
                    const bool holds = formulas[f].host(a, b);
                    all &= holds, any |= holds;
                }
            const bool surely = got[i * formula_count + f] & 2, possibly = got[i * formula_count + f] & 1;
            wrong += (surely && !all) || (any && !possibly) || (surely && !possibly);
            const bool is_point = of[0] == of[1] && of[2] == of[3];
            points += is_point && surely != possibly && f != 7 && f != 8;  // a remainder is not told exactly
            known += surely == possibly;
        }
        INFO(formulas[f].text);
        CHECK(wrong == 0);
        CHECK(points == 0);  // of single values all is known
        CHECK(known > count / 4);
    }
}

namespace {

/// With x known and y unknown, what each says of x; the last ones depend on y.
const std::vector<std::function<Truth(const Interval<std::int32_t>&, const Unknown&)>> with_unknown = {
    [](const auto& x, const auto& y) { return (x < 3) & (y == 2); },
    [](const auto& x, const auto& y) { return (x < 3) | (3 - y * 2 > x); },
    [](const auto& x, const auto& y) { return (x < 3) & ((y >> 1u) + x % 4 <= abs(-y) / 3); },
    [](const auto& x, const auto& y) { return (x < 3) | (min(y, x) != max(4, y % 5)); },
    [](const auto& x, const auto& y) { return (x < 3) & (cast<f32>(y) >= 0.5f); },
    [](const auto& x, const auto& y) { return (x < 3) | (select(x < 3, y, 1) < select(y == 1, x, y)); },
};

}  // namespace

TEST_CASE("intervals: of what is unknown a comparison may hold or not") {
    const auto told = kernel("told", params("x", "y"), [](In<std::int32_t> x, Out<std::uint32_t> y) {
        const auto low = value(x[0]), high = value(x[1]);
        for (std::uint32_t f = 0; f < with_unknown.size(); ++f) {
            const Truth all = with_unknown[f]({low, high}, Unknown{});
            y[f] = select(all.surely, 2u, 0u) + select(all.possibly, 1u, 0u);
        }
    });
    const Device device = Device::open({.device = "emulator"});
    auto y = device.buffer<std::uint32_t>(with_unknown.size(), "y");
    const auto of = [&](std::int32_t low, std::int32_t high) {
        device.launch(told, Grid{{1}, {1}}, device.upload(std::vector<std::int32_t>{low, high}, "x"), y);
        return y.download();
    };
    // `&` with what may hold is impossible or may hold, `|` is sure or may hold.
    CHECK(of(0, 2) == std::vector<std::uint32_t>{1, 3, 1, 3, 1, 3});
    CHECK(of(3, 9) == std::vector<std::uint32_t>{0, 1, 0, 1, 0, 1});
    CHECK(of(0, 9) == std::vector<std::uint32_t>{1, 1, 1, 1, 1, 1});
}
