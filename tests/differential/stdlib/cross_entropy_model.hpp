// SPDX-License-Identifier: Apache-2.0
// Cross entropy in double precision, and how far off kernels may be that compute in f32.
#pragma once
#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

#include "stdlib/loss/cross_entropy.hpp"
#include "stdlib/reference/bounds.hpp"

namespace ikat::test::loss {

using stdlib::CrossEntropyOptions;
using stdlib::LossReduction;
using stdlib::reference::epsilon;

/// A number, and how far off it may be.
struct Near {
    double value = 0, error = 0;
};

struct Expected {
    std::vector<Near> losses{}, gradient{};  // of each row; of each logit
    Near loss{};                             // the mean or the sum
};

/// The targets of rows that count: -1 for the others.
inline std::vector<long> targets_of(const std::vector<std::int32_t>& targets, std::size_t tokens,
                                    const CrossEntropyOptions& options) {
    std::vector<long> out;
    for (std::size_t r = 0; r < targets.size(); ++r) {
        const bool is_there = !options.shift || (r + 1) % tokens != 0;
        const std::int32_t target = is_there ? targets[r + (options.shift ? 1 : 0)] : options.ignored;
        out.push_back(target == options.ignored ? -1 : target);
    }
    return out;
}

/// A row's loss and gradient, before `factor` multiplies the gradient.
class RowOfLogits {
public:
    RowOfLogits(std::span<const float> x, long target, const CrossEntropyOptions& options, double factor)
        : x_(x), target_(target), options_(options), factor_(factor), classes_(double(x.size())) {
        const double largest = *std::max_element(x.begin(), x.end());
        double sum = 0, distance = 0;
        for (const float v : x) sum += std::exp(v - largest), distance += std::exp(v - largest) * (largest - v);
        distance /= sum;
        // A thread makes so many steps, each with an exponential that scales its sum; so do blocks and clusters.
        const double steps = 10 + classes_ / 4096 + 3;
        relative_ = (distance + 3 * steps + 8 + 16) * epsilon;
        largest_ = largest, of_scaled_ = {std::log(sum), (relative_ + 2 * epsilon * std::abs(std::log(sum))) * 1.01};
        log_sum_.value = largest + of_scaled_.value;
        log_sum_.error = of_scaled_.error + epsilon * std::abs(log_sum_.value);
        for (const float v : x) plain_.value += v, plain_.error += std::abs(v) * (8 * steps + 20) * epsilon;
    }
    Near loss() const {
        const double smoothing = options_.smoothing, z = options_.z_loss, l = log_sum_.value;
        const double below = largest_ - x_[std::size_t(target_)], of_target = below + of_scaled_.value;
        const double of_target_error = of_scaled_.error + epsilon * (below + std::abs(of_target));
        const double even = smoothing * l, mean = smoothing / classes_ * plain_.value;
        const double even_error = smoothing * log_sum_.error + smoothing / classes_ * plain_.error +
                                  4 * epsilon * (std::abs(even) + std::abs(mean));
        Near out;
        out.value = (1 - smoothing) * of_target + even - mean + z * l * l;
        out.error = of_target_error + even_error + 3 * z * std::abs(l) * log_sum_.error +
                    4 * epsilon * (std::abs(of_target) + std::abs(even) + std::abs(mean) + z * l * l);
        return out;
    }
    Near gradient(std::size_t c) const {
        const double smoothing = options_.smoothing, l = log_sum_.value, twice = 2 * double(options_.z_loss);
        const double p = std::exp(x_[c] - l);
        const double p_error = p * (relative_ + epsilon * (largest_ - x_[c]) + 4 * epsilon) * 1.01 + 0x1p-149;
        const double up = factor_ * (1 + twice * l);
        const double up_error =
            std::abs(factor_) * twice * log_sum_.error + 6 * epsilon * std::abs(factor_) * (1 + twice * std::abs(l));
        const double even = factor_ * smoothing / classes_;
        const double hit = long(c) == target_ ? factor_ * (1 - smoothing) : 0;
        Near out;
        out.value = p * up - even - hit;
        out.error = std::abs(up) * p_error + p * up_error + 8 * epsilon * std::abs(even) + 6 * epsilon * std::abs(hit) +
                    epsilon * (std::abs(p * up - even) + std::abs(out.value));
        return out;
    }

private:
    std::span<const float> x_;
    long target_;
    const CrossEntropyOptions& options_;
    double factor_, classes_;
    double relative_ = 0, largest_ = 0;  // of the sum of exp(x - largest)
    Near of_scaled_{}, log_sum_{}, plain_{};
};

/// Of rows of logits, of which `tokens` are a sequence. `scale` multiplies the gradient.
inline Expected expected(const std::vector<float>& logits, std::size_t classes, std::size_t tokens,
                         const std::vector<std::int32_t>& targets, const CrossEntropyOptions& options, double scale) {
    const std::vector<long> of_rows = targets_of(targets, tokens, options);
    const auto count = double(std::ranges::count_if(of_rows, [](long target) { return target >= 0; }));
    const double factor = options.reduction == LossReduction::mean ? 1 / count : 1;
    Expected out;
    double magnitudes = 0;
    for (std::size_t r = 0; r < of_rows.size(); ++r) {
        const bool counts = of_rows[r] >= 0;
        const RowOfLogits row(std::span<const float>(logits).subspan(r * classes, classes), std::max(of_rows[r], 0l),
                              options, factor * scale);
        out.losses.push_back(counts ? row.loss() : Near{});
        for (std::size_t c = 0; c < classes; ++c) out.gradient.push_back(counts ? row.gradient(c) : Near{});
        out.loss.value += out.losses[r].value, out.loss.error += out.losses[r].error;
        magnitudes += std::abs(out.losses[r].value);
    }
    out.loss.error += (double(of_rows.size()) / 1024 + 12) * epsilon * magnitudes;
    out.loss.value *= factor, out.loss.error = out.loss.error * factor + 3 * epsilon * std::abs(out.loss.value);
    return out;
}

}  // namespace ikat::test::loss
