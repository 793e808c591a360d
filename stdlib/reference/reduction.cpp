// SPDX-License-Identifier: Apache-2.0
#include "stdlib/reference/reduction.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "stdlib/reference/bounds.hpp"

namespace ikat::stdlib::reference {
namespace {

/// The most roundings on the way from an element to the result: a thread has an eighth of the elements or fewer; then
/// come its vector, the warp, the warps of a block, and the shares.
double roundings(std::size_t elements) { return double(elements) / 8 + 45; }

Bounded sum_of(std::span<const double> elements, auto&& term) {
    double sum = 0, magnitudes = 0;
    for (const double x : elements) sum += term(x), magnitudes += std::abs(term(x));
    return {sum, roundings(elements.size()) * epsilon * magnitudes};
}

/// Each step of the means is at most 4 roundings of the largest element off; by how much, 2 d of it enters a product
/// of a distance d, and the sum of all d is at most that of elements that are a deviation from the mean.
Bounded variance_of(std::span<const double> elements, double divisor) {
    double mean = 0, squares = 0, largest = 0;
    for (const double x : elements) mean += x / double(elements.size()), largest = std::max(largest, std::abs(x));
    for (const double x : elements) squares += (x - mean) * (x - mean);
    const double steps = roundings(elements.size()) * epsilon, of_mean = 4 * steps * largest;
    const double n = double(elements.size()), variance = squares / divisor;
    return {variance, 6 * steps * variance + (2 * of_mean * std::sqrt(squares / n) + of_mean * of_mean) * n / divisor};
}

/// The index of the first extremum; a NaN is one.
std::size_t extremum(std::span<const double> elements, bool largest) {
    std::size_t out = 0;
    for (std::size_t i = 1; i < elements.size() && !std::isnan(elements[out]); ++i)
        if (std::isnan(elements[i]) || (largest ? elements[i] > elements[out] : elements[i] < elements[out])) out = i;
    return out;
}

}  // namespace

Bounded reduced(Reduction what, std::span<const double> elements, bool unbiased) {
    const auto n = double(elements.size());
    const auto itself = [](double x) { return x; };
    const auto is_set = [](double x) { return x != 0; };
    switch (what) {
        case Reduction::sum: return sum_of(elements, itself);
        case Reduction::mean: {
            const Bounded sum = sum_of(elements, itself);
            return {sum.value / n, (sum.error + epsilon * std::abs(sum.value)) / n};
        }
        case Reduction::variance: return variance_of(elements, unbiased ? n - 1 : n);
        case Reduction::norm2: {
            const Bounded squares = sum_of(elements, [](double x) { return x * x; });
            const double root = std::sqrt(squares.value);
            return {root, squares.value == 0 ? 0 : (squares.error / squares.value + 2 * epsilon) * root};
        }
        case Reduction::max: return {elements[extremum(elements, true)], 0};
        case Reduction::min: return {elements[extremum(elements, false)], 0};
        case Reduction::argmax: return {double(extremum(elements, true)), 0};
        case Reduction::argmin: return {double(extremum(elements, false)), 0};
        case Reduction::any: return {double(std::ranges::any_of(elements, is_set)), 0};
        case Reduction::all: return {double(std::ranges::all_of(elements, is_set)), 0};
    }
    return {std::numeric_limits<double>::quiet_NaN(), 0};
}

}  // namespace ikat::stdlib::reference
