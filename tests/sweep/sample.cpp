// SPDX-License-Identifier: Apache-2.0
// The sweeps over samples. The n-th sample depends only on n.
#include <algorithm>
#include <bit>
#include <cmath>
#include <iterator>
#include <limits>
#include <vector>

#include "dsl/kernel/kernel.hpp"
#include "dsl/threads/simt.hpp"
#include "tests/sweep/outcome.hpp"

namespace ikat::test {
namespace {

constexpr std::size_t slice = 1 << 17;

/// A number of 64 random bits from n (splitmix64).
std::uint64_t random(std::uint64_t n) {
    n = (n + 1) * 0x9e3779b97f4a7c15;
    n = (n ^ n >> 30) * 0xbf58476d1ce4e5b9;
    n = (n ^ n >> 27) * 0x94d049bb133111eb;
    return n ^ n >> 31;
}
/// A number from 0 to 1 from 53 of the bits.
double unit_interval(std::uint64_t bits) { return double(bits >> 11) * 0x1p-53; }
double between(double low, double high, std::uint64_t bits) { return low + (high - low) * unit_interval(bits); }

using Limits = std::numeric_limits<double>;
const double special[] = {0,
                          -0.0,
                          1,
                          -1,
                          Limits::infinity(),
                          -Limits::infinity(),
                          Limits::quiet_NaN(),
                          Limits::min(),
                          -Limits::min(),
                          Limits::denorm_min(),
                          -Limits::denorm_min(),
                          Limits::max(),
                          Limits::lowest()};

double argument(std::uint64_t n) {
    if (n < std::size(special)) return special[n];
    const std::uint64_t bits = random(n);
    constexpr double ranges[] = {1, 10, 100, 1000};
    if (n % 2 == 0) return std::bit_cast<double>(bits);
    const double range = ranges[n / 2 % std::size(ranges)];
    return between(-range, range, bits);
}

constexpr float inf = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
constexpr float edges[] = {0.0f,        -0.0f,           1.0f,   -1.0f, 2.0f, -2.0f,  3.0f,    -3.0f, 0.5f,   -0.5f,
                           1.5f,        -2.5f,           inf,    -inf,  nan,  1e-40f, -1e-40f, 1e30f, -1e30f, 0x1p24f,
                           0x1p24f + 2, -0x1.fffffep23f, 0.999f, 1.001f};

struct Pair {
    float x, y;
};
/// A y such that x^y is equally likely in each binade, including a few outside the range of floats.
float exponent_for(float x, std::uint64_t bits) { return float(between(-151, 129, bits) / std::log2(double(x))); }

Pair pair(std::uint64_t n) {
    constexpr std::uint64_t side = std::size(edges);
    if (n < side * side) return {edges[n / side], edges[n % side]};
    const std::uint64_t bits = random(2 * n), more = random(2 * n + 1);
    const auto any = [](std::uint64_t b) { return std::bit_cast<float>(std::uint32_t(b)); };
    const auto exponent = [](std::uint64_t b, std::uint64_t e) {
        return std::uint32_t((b & 0x807fffff) | (e & 255) << 23);
    };
    switch (n % 4) {
        case 0: return {any(exponent(bits, n >> 2)), any(exponent(more, n >> 10))};
        case 1: {
            const float x = any(bits & 0x7fffffff);
            return {x, exponent_for(x, more)};
        }
        case 2: {
            const auto x = float(1 + std::ldexp(between(-0.5, 0.5, bits), -int(bits & 15)));
            return {x, exponent_for(x, more)};
        }
        default: return {any(bits), float(std::round(between(-80, 80, more)) / 2)};
    }
}

template <class T>
auto made(const Function<T>& function) {
    return kernel("sample", params("x", "y", "n"), [f = function.device](In<T> x, Out<T> y, u32 n) {
        for (auto i : grid_stride(n)) y[i] = f(value(x[i]));
    });
}
auto made(const Power& power) {
    return kernel("sample", params("x", "y", "z", "n"),
                  [f = power.device](In<float> x, In<float> y, Out<float> z, u32 n) {
                      for (auto i : grid_stride(n)) z[i] = f(value(x[i]), value(y[i]));
                  });
}

/// The results of a kernel on arrays of arguments.
template <class T>
std::vector<T> results(const runtime::Device& device, const auto& kernel, const std::vector<T>& first,
                       const auto&... more) {
    auto out = device.upload(std::vector<T>(first.size(), T(-77)), "results");
    device.launch(kernel, runtime::grid(std::min<std::size_t>(first.size(), 1 << 16), 256), device.upload(first),
                  device.upload(more)..., out, std::uint32_t(first.size()));
    return out.download();
}

/// Calls body(from, to) for slices of 0 ... count - 1.
void for_each_slice(std::uint64_t count, auto&& body) {
    for (std::uint64_t from = 0; from < count; from += slice) body(from, std::min<std::uint64_t>(count, from + slice));
}

double error_of(const Power& power, float x, float y, float got, double want) {
    if (!power.unit) return ulps_between(got, want);
    const double unit = power.unit(x, y, want), apart = distance(got, want);
    return apart == 0 || std::isinf(unit) ? 0 : apart / unit;
}
double host(float x, float y) { return std::pow(double(x), double(y)); }

}  // namespace

Outcome<double> sweep(const Function<double>& function, const runtime::Device& device, std::uint32_t stride) {
    const auto kernel = made(function);
    Outcome<double> outcome{.arguments = (std::uint64_t{1} << 26) / stride};
    for_each_slice(outcome.arguments, [&](std::uint64_t from, std::uint64_t to) {
        std::vector<double> x;
        for (std::uint64_t n = from; n < to; ++n) x.push_back(argument(n));
        const auto y = results(device, kernel, x);
        for (std::size_t i = 0; i < x.size(); ++i) {
            const long double want = function.host(x[i]);
            outcome.digest += digest_of(from + i, y[i]);
            note(outcome, x[i], 0.0, y[i], want, [&] { return error_of(function, x[i], y[i], want); });
        }
    });
    return outcome;
}

Outcome<float> sweep(const Power& power, const runtime::Device& device, std::uint32_t stride) {
    const auto kernel = made(power);
    Outcome<float> outcome{.arguments = (std::uint64_t{1} << 30) / stride};
    for_each_slice(outcome.arguments, [&](std::uint64_t from, std::uint64_t to) {
        std::vector<float> x, y;
        for (std::uint64_t n = from; n < to; ++n) x.push_back(pair(n).x), y.push_back(pair(n).y);
        const auto z = results(device, kernel, x, y);
        for (std::size_t i = 0; i < x.size(); ++i) {
            const double want = host(x[i], y[i]);
            outcome.digest += digest_of(from + i, z[i]);
            note(outcome, x[i], y[i], z[i], want, [&] { return error_of(power, x[i], y[i], z[i], want); });
        }
    });
    return outcome;
}

template <class T>
double error_at(const Function<T>& function, const runtime::Device& device, T x) {
    return error_of(function, x, results(device, made(function), std::vector<T>{x})[0], function.host(x));
}
template double error_at(const Function<float>&, const runtime::Device&, float);
template double error_at(const Function<double>&, const runtime::Device&, double);

double error_at(const Power& power, const runtime::Device& device, float x, float y) {
    const auto z = results(device, made(power), std::vector<float>{x}, std::vector<float>{y});
    return error_of(power, x, y, z[0], host(x, y));
}

}  // namespace ikat::test
