// SPDX-License-Identifier: Apache-2.0
// Products of quantised weights with what comes before or after them in a transformer's layer, in one launch.
//
//     gate_up_swiglu(device, Wg, Wu, X.view(tokens, columns), Y.view(tokens, rows));        // Y = silu(X Wg') (X Wu')
//     rmsnorm_gemv(device, W, x, gamma, y, 1e-5f);                                          // y = W rmsnorm(x)
//     gemm_parts(device, X.view(tokens, columns), {{Wq, Q.view(tokens, heads * head_dim)},  // Q = X Wq', K = X Wk' ...
//                                                  {Wk, K.view(tokens, kv_heads * head_dim)},
//                                                  {Wv, V.view(tokens, kv_heads * head_dim)}});
//
// Matrices are those of gemm() (product.hpp): each W has any format and pitch, X and Y are f32, f16 or bf16, each as it
// likes, with rows at any pitches. Up to eight tokens are one launch, more are products on tensor cores. All have any
// sizes, or 0. They throw Error for types and shapes that do not fit, and where what is written overlaps another
// operand.
#pragma once
#include <vector>

#include "stdlib/quantised/product.hpp"

namespace ikat::stdlib {

/// How several products of quantised weights are computed: as by gemm() with these.
struct FusedProductOptions {
    Activations activations = Activations::exact;
    WorkspaceSlice workspace{};
};

/// Y = silu(X Wg') (X Wu'), element by element: the first half of a gated feed-forward layer. Wg and Wu have the same
/// shape, rows x columns. Both products are in f32, silu is that of fused_swiglu(), and Y is rounded once. So with
/// products g and u that are off by at most a and b, by the bounds of gemm(), an element is at most
///
///     1.1 a (|u| + b) + |silu(g)| b + 2^-21 (|silu(g)| + 1.1 a) (|u| + b)
///
/// from silu(g) u, before it is rounded to the type of Y. Up to eight tokens: the products have the bits of gemm().
/// More, which gemm() multiplies on tensor cores: if both have the same format, a block computes a tile of both, unless
/// there are so few that their columns are divided into parts; it adds up a tile in order, where gemm(), with half as
/// many tiles, may have parts. Otherwise two products go to a workspace, and then follows fused_swiglu().
void gate_up_swiglu(const Queue& queue, const TensorView& Wg, const TensorView& Wu, const TensorView& X,
                    const MutableTensorView& Y, const FusedProductOptions& options = {});
/// The bytes of workspace that the same call needs: 0 for exact activations of up to eight tokens.
std::uint64_t gate_up_swiglu_workspace(const Queue& queue, const TensorView& Wg, const TensorView& Wu,
                                       const TensorView& X, const MutableTensorView& Y,
                                       const FusedProductOptions& options = {});

/// y = W n, where n = x / sqrt(mean of x^2 + epsilon) gamma, as of rmsnorm(), stays in f32 and in the kernel. x is a
/// row of `columns` elements, or tokens x columns, y of `rows`, or tokens x rows; gamma has an element for each column,
/// of f32, f16 or bf16. Each block computes the norm by itself, in an order that depends on `columns` alone: the bits
/// of a token's y are those of a call with it alone. With an epsilon of 2^-100 or more they are right for all finite x:
/// where squares overflow, those of x 2^-100 are added. An element of y is at most
///
///     e / (1 - e) sum |w n|, e = (22 + 5 columns / 1024 rounded up) 2^-24
///
/// from the exact sum, before it is rounded to the type of y. It takes tokens eight by eight; for many of them
/// rmsnorm() and gemm() are faster.
void rmsnorm_gemv(const Queue& queue, const TensorView& W, const TensorView& x, const TensorView& gamma,
                  const MutableTensorView& y, float epsilon);

/// W and Y of one of several products with the same X.
struct ProductPart {
    TensorView W;
    MutableTensorView Y;
};
/// Y = X W' for each part, such as the queries, keys and values of attention: with the bits of gemm(). The parts may
/// have different formats, numbers of rows and types of Y; several Y may be columns of one matrix. A launch is for up
/// to four parts. Many tokens, which gemm() multiplies on tensor cores, are arranged for them, or rounded to Q8_1,
/// once; then follows one product after the other.
void gemm_parts(const Queue& queue, const TensorView& X, const std::vector<ProductPart>& parts,
                const FusedProductOptions& options = {});
/// The bytes of workspace that the same call needs: 0 for exact activations of up to eight tokens.
std::uint64_t gemm_parts_workspace(const Queue& queue, const TensorView& X, const std::vector<ProductPart>& parts,
                                   const FusedProductOptions& options = {});

}  // namespace ikat::stdlib
