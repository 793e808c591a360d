// SPDX-License-Identifier: Apache-2.0
// What tests of fused products of quantised weights share: products in double, with the bounds of product.hpp.
#pragma once
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "runtime/exec/recorder.hpp"
#include "stdlib/quantised/fused.hpp"
#include "tests/differential/stdlib/quantised_product.hpp"

namespace ikat::test {

inline constexpr Place packed = Place::packed, aligned = Place::aligned, odd = Place::odd;
inline constexpr stdlib::Activations both[] = {stdlib::Activations::exact, stdlib::Activations::q8_1};

/// By how much half a step of T may change a number, relative to it.
template <class T>
constexpr double rounding_of = std::is_same_v<T, float>  ? 0x1p-24
                               : std::is_same_v<T, half> ? 0x1p-11
                                                         : 0x1p-8;

/// An element of X W', and how far an exact product may be from it.
struct BoundedSum {
    double sum = 0, bound = 0;
};
/// A row of weights times a token. `rounding` is the error of X on tensor cores: 2^-11 for f32, else 0.
inline BoundedSum bounded_sum(const ProductWeights& weights, std::uint64_t row, std::span<const float> token,
                              bool is_on_tensor_cores, double rounding) {
    const auto w = stdlib::reference::quantised_weights(weights.format(), weights.row(row));
    double sum = 0, size = 0, of_parts = 0, of_weights = 0, largest = 0;
    for (std::size_t k = 0; k < token.size(); ++k) {
        const double x = token[k], weight = w[k].product - w[k].minimum;
        const double parts = std::abs(double(w[k].product)) + std::abs(double(w[k].minimum));
        sum += weight * x, size += std::abs(weight * x);
        of_parts += parts * std::abs(x), of_weights += parts, largest = std::max(largest, std::abs(x));
    }
    const double columns = double(token.size()), e = (12 + std::ceil(columns / 1024)) * 0x1p-24;
    if (!is_on_tensor_cores) return {sum, e / (1 - e) * size};
    return {sum, (rounding + (48 + columns / 8) * 0x1p-24) * of_parts + 0x1p-38 * largest * of_weights};
}

/// The names of the kernels that a call launches.
template <class Call>
std::vector<std::string> launched(const runtime::Device& device, Call&& call) {
    const runtime::Recorder recorder(device, runtime::Recorder::Runs::No);
    call(recorder);
    std::vector<std::string> out;
    for (const auto& launch : recorder.launches()) out.emplace_back(launch.kernel->name());
    return out;
}

/// The product by gemm(), in f32.
inline std::vector<float> product_of(const runtime::Device& device, const ProductWeights& weights, const TensorView& x,
                                     stdlib::Activations activations) {
    auto y = device.buffer<float>(x.extents[0] * weights.rows(), "product");
    stdlib::gemm(device, weights.view(), x, y.view(x.extents[0], weights.rows()), {.activations = activations});
    return y.download();
}

}  // namespace ikat::test
