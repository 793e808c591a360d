// SPDX-License-Identifier: Apache-2.0
#include "stdlib/reference/reference.hpp"

#include <cmath>
#include <limits>

#include "stdlib/conv/conv2d.hpp"

namespace ikat::stdlib::reference {
namespace {

template <class T>
double sum_of(std::span<const T> x) {
    double total = 0;
    for (T element : x) total += double(float(element));
    return total;
}

template <class T>
double max_of(std::span<const T> x) {
    double maximum = -std::numeric_limits<double>::infinity();
    for (T element : x) maximum = std::fmax(maximum, double(float(element)));
    return maximum;
}

}  // namespace

std::vector<double> saxpy(double a, std::span<const float> x, std::span<const float> y) {
    std::vector<double> out(y.size());
    for (std::size_t i = 0; i < y.size(); ++i) out[i] = a * double(x[i]) + double(y[i]);
    return out;
}

double sum(std::span<const float> x) { return sum_of(x); }
double sum(std::span<const half> x) { return sum_of(x); }
double sum(std::span<const bfloat16> x) { return sum_of(x); }
double max(std::span<const float> x) { return max_of(x); }
double max(std::span<const half> x) { return max_of(x); }
double max(std::span<const bfloat16> x) { return max_of(x); }

std::vector<double> gemm(std::span<const float> A, std::span<const float> B, std::uint32_t m, std::uint32_t n,
                         std::uint32_t k) {
    std::vector<double> C(std::size_t(m) * n);
    for (std::size_t i = 0; i < m; ++i)
        for (std::size_t l = 0; l < k; ++l)
            for (std::size_t j = 0; j < n; ++j) C[i * n + j] += double(A[i * k + l]) * double(B[l * n + j]);
    return C;
}

std::vector<double> log_softmax(std::span<const float> x, std::uint32_t rows, std::uint32_t columns) {
    std::vector<double> out(x.begin(), x.end());
    for (std::size_t row = 0; row < rows; ++row) {
        const std::span<double> y(out.data() + row * columns, columns);
        double maximum = -std::numeric_limits<double>::infinity(), sum = 0;
        for (double v : y) maximum = std::fmax(maximum, v);
        for (double v : y) sum += std::exp(v - maximum);
        for (double& v : y) v = v - maximum - std::log(sum);
    }
    return out;
}

std::vector<double> softmax(std::span<const float> x, std::uint32_t rows, std::uint32_t columns) {
    std::vector<double> out = log_softmax(x, rows, columns);
    for (double& v : out) v = std::exp(v);
    return out;
}

std::vector<double> layernorm(std::span<const float> x, std::span<const float> gamma, std::span<const float> beta,
                              std::uint32_t rows, std::uint32_t columns, double epsilon) {
    std::vector<double> out(x.begin(), x.end());
    for (std::size_t row = 0; row < rows; ++row) {
        double* const y = out.data() + row * columns;
        double mean = 0, variance = 0;
        for (std::size_t i = 0; i < columns; ++i) mean += y[i] / columns;
        for (std::size_t i = 0; i < columns; ++i) variance += (y[i] - mean) * (y[i] - mean) / columns;
        for (std::size_t i = 0; i < columns; ++i) {
            const double weight = gamma.empty() ? 1 : double(gamma[i]), bias = beta.empty() ? 0 : double(beta[i]);
            y[i] = (y[i] - mean) / std::sqrt(variance + epsilon) * weight + bias;
        }
    }
    return out;
}

std::vector<double> rmsnorm(std::span<const float> x, std::span<const float> gamma, std::uint32_t rows,
                            std::uint32_t columns, double epsilon) {
    std::vector<double> out(x.begin(), x.end());
    for (std::size_t row = 0; row < rows; ++row) {
        double* const y = out.data() + row * columns;
        double squares = 0;
        for (std::size_t i = 0; i < columns; ++i) squares += y[i] * y[i] / columns;
        for (std::size_t i = 0; i < columns; ++i) y[i] = y[i] / std::sqrt(squares + epsilon) * double(gamma[i]);
    }
    return out;
}

std::vector<double> rope(std::span<const float> x, std::span<const std::uint32_t> positions, std::uint32_t heads,
                         std::uint32_t head_dim, std::uint32_t rotary, double base, double sign, bool neox) {
    std::vector<double> out(x.begin(), x.end());
    for (std::size_t row = 0; row < positions.size() * heads; ++row)
        for (std::size_t pair = 0; pair < rotary / 2; ++pair) {
            const double angle = sign * positions[row / heads] * std::pow(base, -2.0 * double(pair) / rotary);
            double& a = out[row * head_dim + (neox ? pair : 2 * pair)];
            double& b = out[row * head_dim + (neox ? pair + rotary / 2 : 2 * pair + 1)];
            const double first = a * std::cos(angle) - b * std::sin(angle);
            b = a * std::sin(angle) + b * std::cos(angle);
            a = first;
        }
    return out;
}

namespace {

/// One element of a convolution's result.
double convolved(std::span<const float> x, std::span<const float> w, const Convolution& c, std::size_t image,
                 std::size_t filter, std::size_t row, std::size_t column) {
    const std::size_t depth = c.channels / c.groups, group = filter / (c.filters / c.groups);
    double sum = 0;
    for (std::size_t channel = 0; channel < depth; ++channel)
        for (std::size_t r = 0; r < c.kernel_h; ++r)
            for (std::size_t s = 0; s < c.kernel_w; ++s) {
                const std::int64_t i = std::int64_t(row * c.stride_h + r * c.dilation_h) - c.pad_h;
                const std::int64_t j = std::int64_t(column * c.stride_w + s * c.dilation_w) - c.pad_w;
                if (i < 0 || j < 0 || i >= c.height || j >= c.width) continue;
                const std::size_t plane = image * c.channels + group * depth + channel;
                sum += double(x[(plane * c.height + std::size_t(i)) * c.width + std::size_t(j)]) *
                       double(w[((filter * depth + channel) * c.kernel_h + r) * c.kernel_w + s]);
            }
    return sum;
}

}  // namespace

std::vector<double> conv2d(std::span<const float> x, std::span<const float> w, const Convolution& c) {
    std::vector<double> y;
    for (std::size_t image = 0; image < c.batch; ++image)
        for (std::size_t filter = 0; filter < c.filters; ++filter)
            for (std::size_t row = 0; row < c.out_h(); ++row)
                for (std::size_t column = 0; column < c.out_w(); ++column)
                    y.push_back(convolved(x, w, c, image, filter, row, column));
    return y;
}

}  // namespace ikat::stdlib::reference
