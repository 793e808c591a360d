// SPDX-License-Identifier: Apache-2.0
// The gradients of a product C = A B, whose own gradient is dC: dA = dC B' and dB = A' dC, where ' is the transpose.
//
//     gemm_backward_a(device, dC.view(m, n), B.view(k, n), dA.view(m, k));
//     gemm_backward_b(device, A.view(m, k), dC.view(m, n), dB.view(k, n), {.accumulate = true});     dB += A' dC
//
// Operands are read as they are stored, by rows or by columns: nothing is transposed in memory.
#pragma once
#include "stdlib/gemm/tensor_core.hpp"

namespace ikat::stdlib {

/// How float is multiplied: by fma, or on tensor cores as tf32, which cuts off the low 13 bits of both factors.
enum class FloatProduct : std::uint8_t { fma, tf32 };

/// Of which product the gradients are, and how they are computed.
struct GemmBackwardOptions {
    /// How A and B of that product are stored; dA is stored as A is, dB as B.
    MatrixOrder a = MatrixOrder::Rows, b = MatrixOrder::Rows;
    /// What the product was multiplied by: C = alpha A B.
    float alpha = 1;
    /// Whether the gradient is added to what dA or dB holds, instead of replacing it.
    bool accumulate = false;
    FloatProduct floats = FloatProduct::fma;
    /// As for gemm_tensor_core(): how the sum over n or m is divided, and the workspace for that, of as many bytes as
    /// the functions below say.
    GemmSchedule schedule = GemmSchedule::chosen;
    std::uint32_t parts = 0;
    WorkspaceSlice workspace{};
};

/// dA = alpha dC B', or with `accumulate` dA + alpha dC B': dC is m x n, B is k x n, or, by columns, n x k, dA is m x
/// k, or, by columns, k x m. dC and B have one type, f32, f16 or bf16; dA has it, too, or is f32. Sums are f32, and
/// rounded once. Views are (rows, columns), or (matrices, rows, columns), with any pitches. Any sizes; where n is 0, dA
/// is 0 or stays. Throws Error for sizes and types that do not fit.
void gemm_backward_a(const Queue& queue, const TensorView& dC, const TensorView& B, const MutableTensorView& dA,
                     const GemmBackwardOptions& options = {});
/// dB = alpha A' dC in the same way: A is m x k, or, by columns, k x m, dB is k x n, or, by columns, n x k.
void gemm_backward_b(const Queue& queue, const TensorView& A, const TensorView& dC, const MutableTensorView& dB,
                     const GemmBackwardOptions& options = {});

/// The bytes of workspace that the call of gemm_backward_a(), or of gemm_backward_b(), with the same arguments needs.
std::uint64_t gemm_backward_a_workspace(const Queue& queue, const TensorView& dC, const TensorView& B,
                                        const MutableTensorView& dA, const GemmBackwardOptions& options = {});
std::uint64_t gemm_backward_b_workspace(const Queue& queue, const TensorView& A, const TensorView& dC,
                                        const MutableTensorView& dB, const GemmBackwardOptions& options = {});

}  // namespace ikat::stdlib
