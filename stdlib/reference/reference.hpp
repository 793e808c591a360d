// SPDX-License-Identifier: Apache-2.0
// What the kernels of the library compute, on the host in double precision: plain loops that can be checked by reading.
// Tests compare with them, and users can.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "codegen/support/half.hpp"

namespace ikat::stdlib {
struct Convolution;
}
namespace ikat::stdlib::reference {

/// a x + y, element by element.
std::vector<double> saxpy(double a, std::span<const float> x, std::span<const float> y);

/// Added in f64, one after the other.
double sum(std::span<const float> x);
double sum(std::span<const half> x);
double sum(std::span<const bfloat16> x);
/// -infinity for no elements; NaNs are ignored.
double max(std::span<const float> x);
double max(std::span<const half> x);
double max(std::span<const bfloat16> x);

/// C[m×n] = A[m×k] · B[k×n], row-major.
std::vector<double> gemm(std::span<const float> A, std::span<const float> B, std::uint32_t m, std::uint32_t n,
                         std::uint32_t k);

/// Of each row of a row-major matrix; any number of columns.
std::vector<double> softmax(std::span<const float> x, std::uint32_t rows, std::uint32_t columns);
std::vector<double> log_softmax(std::span<const float> x, std::uint32_t rows, std::uint32_t columns);
/// gamma and beta may be empty: 1 and 0.
std::vector<double> layernorm(std::span<const float> x, std::span<const float> gamma, std::span<const float> beta,
                              std::uint32_t rows, std::uint32_t columns, double epsilon);
std::vector<double> rmsnorm(std::span<const float> x, std::span<const float> gamma, std::uint32_t rows,
                            std::uint32_t columns, double epsilon);

/// Rotary embedding as rope_kernel does it.
std::vector<double> rope(std::span<const float> x, std::span<const std::uint32_t> positions, std::uint32_t heads,
                         std::uint32_t head_dim, std::uint32_t rotary, double base, double sign, bool neox);

/// NCHW, as the kernel has it.
std::vector<double> conv2d(std::span<const float> x, std::span<const float> w, const Convolution& shape);

}  // namespace ikat::stdlib::reference
