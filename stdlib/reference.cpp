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

}  // namespace ikat::stdlib::reference
