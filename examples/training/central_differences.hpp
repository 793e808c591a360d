// SPDX-License-Identifier: Apache-2.0
// Gradients without a backward pass, in float64, to compare one with:
//
//     slope of a parameter p = (f(p + h) - f(p - h)) / 2 h
//
// The error is about h² times the third derivative, and 1e-16 f / h from the roundings of f.
#pragma once
#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

namespace ikat::training {

/// The slopes of a loss that is a mean of terms. `largest` is the largest mean of the terms' absolute slopes: what the
/// roundings of a sum of them are in proportion to.
struct Slopes {
    std::vector<double> slopes{};
    double largest = 0;
};

/// The slopes for each of the parameters; terms() gives the terms of the loss for what the parameters are now.
template <class F>
Slopes central_differences(std::span<double> parameters, F terms, double h = 1e-6) {
    Slopes out;
    for (double& parameter : parameters) {
        const double middle = parameter;
        parameter = middle + h;
        const std::vector<double> above = terms();
        parameter = middle - h;
        const std::vector<double> below = terms();
        parameter = middle;
        double sum = 0, absolute = 0;
        for (std::size_t i = 0; i < above.size(); ++i) {
            const double slope = (above[i] - below[i]) / (2 * h);
            sum += slope;
            absolute += std::abs(slope);
        }
        out.slopes.push_back(sum / double(above.size()));
        out.largest = std::max(out.largest, absolute / double(above.size()));
    }
    return out;
}

/// The largest difference of a gradient from the slopes; infinite where there are not as many, or one is a NaN.
inline double largest_difference(const Slopes& slopes, std::span<const float> gradient) {
    if (gradient.size() != slopes.slopes.size()) return INFINITY;
    double largest = 0;
    for (std::size_t i = 0; i < gradient.size(); ++i) {
        const double difference = std::abs(gradient[i] - slopes.slopes[i]);
        if (!(difference <= largest)) largest = std::isnan(difference) ? INFINITY : difference;
    }
    return largest;
}

}  // namespace ikat::training
