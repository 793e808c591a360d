// SPDX-License-Identifier: Apache-2.0
#include "stdlib/reference.hpp"

#include <cmath>
#include <limits>

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
    double most = -std::numeric_limits<double>::infinity();
    for (T element : x) most = std::fmax(most, double(float(element)));
    return most;
}

}  // namespace

std::vector<double> saxpy(double a, std::span<const float> x, std::span<const float> y) {
    std::vector<double> out(y.size());
    for (std::size_t i = 0; i < y.size(); ++i) out[i] = a * double(x[i]) + double(y[i]);
    return out;
}

double sum(std::span<const float> x) { return sum_of(x); }
double sum(std::span<const half> x) { return sum_of(x); }
double max(std::span<const float> x) { return max_of(x); }
double max(std::span<const half> x) { return max_of(x); }

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
        double most = -std::numeric_limits<double>::infinity(), sum = 0;
        for (double v : y) most = std::fmax(most, v);
        for (double v : y) sum += std::exp(v - most);
        for (double& v : y) v = v - most - std::log(sum);
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

}  // namespace ikat::stdlib::reference
