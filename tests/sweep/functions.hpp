// SPDX-License-Identifier: Apache-2.0
// The table of the library's elementary functions: the device's and the host's, and the allowed error. measured.hpp has
// the measured error.
#pragma once
#include <cstdint>
#include <span>
#include <string_view>

#include "dsl/values/math.hpp"
#include "tests/sweep/error.hpp"

namespace ikat::test {

/// How f(-x) is obtained from f(x).
enum class Symmetry { None, Odd, Even };

template <class T>
struct Function {
    using Value = T;

    std::string_view name;  // of f64 with the prefix f64:
    Leaf<T> (*device)(const Leaf<T>&);
    WideOf<T> (*host)(WideOf<T>);
    double bound;
    Symmetry symmetry = Symmetry::None;
    /// The unit of errors, if not an ulp of the result. The text describes it; the bound is then 1.
    double (*unit)(double x, double want) = nullptr;
    std::string_view unit_text{};
};

struct Power {
    std::string_view name;
    Leaf<float> (*device)(const Leaf<float>&, const Leaf<float>&);
    double bound;
    double (*unit)(double x, double y, double want) = nullptr;
    std::string_view unit_text{};
};

std::span<const Function<float>> f32_functions();
std::span<const Function<double>> f64_functions();
std::span<const Power> power_functions();

/// The error of a result in the function's units; infinite if its kind is wrong.
template <class T>
double error_of(const Function<T>& function, T x, T got, WideOf<T> want) {
    if (!function.unit) return double(ulps_between(got, want));
    const WideOf<T> apart = distance(got, want);
    return apart == 0 ? 0 : double(apart / function.unit(double(x), double(want)));
}

}  // namespace ikat::test
