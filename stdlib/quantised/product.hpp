// SPDX-License-Identifier: Apache-2.0
// Products of quantised weights with several rows of activations, of which each is a token: Y = X W'.
//
//     const auto W = quantised_view(weights, Quantised::Q4_K, {rows, columns});
//     gemm(device, W, X.view(tokens, columns), Y.view(tokens, rows));
//     gemm(device, W, X.view(tokens, columns), Y.view(tokens, rows), {.activations = Activations::q8_1});
//     gemm(device, W, X.view(tokens, columns), Y.view(tokens, rows),
//          epilogue("biased", [](auto sum, auto at, auto bias) { return sum + bias[at.column]; }, bias));
//
// Up to eight tokens: weights are read from memory once for all of them, and decoded once. The bits of a token's row of
// Y do not depend on the others: they are those of a call with that token alone, and in f32 those of gemv(). A weight
// is rounded to f32, as dequantise() gives it; products and sums are in f32. An element of Y is at most
//
//     (12 + n) 2^-24 / (1 - (12 + n) 2^-24) sum |w x|, n = columns / 1024 rounded up
//
// from the exact sum of the rounded weights, before it is rounded to the type of Y: a product is rounded in at most 7
// sums of its 32, in n more of its lane and in 5 of the lanes. Infinities and NaN are those of that sum.
//
// More tokens: on tensor cores, for sm_90a more than 64 by wgmma. The integers of weights are f16, which is exact, and
// X is rounded to f16, after it has been multiplied by a power of two that brings the largest number of its row to 2^14
// or more. With w = scale q - minimum, and r = 2^-11 for X in f32 or 0 for f16 and bf16, an element of Y is at most
//
//     (r + (48 + columns / 8) 2^-24) sum (|scale q| + |minimum|) |x|  +  2^-38 max |x| sum (|scale q| + |minimum|)
//
// from the exact sum. This is also a bound for up to eight tokens. Where X or a scale is not finite, Y is not; nor
// where a sum before it is divided by that power is beyond f32, which takes weights of 2^100. A device without room for
// the tiles (TensorProductKernel::shared_bytes()), or for sm_75, takes tokens eight by eight.
//
// With Q8_1, X becomes what quantise_q8_1() makes of it, and of up to eight tokens an element is what gemv() makes of
// that. More tokens: on tensor cores, see packed_tensor_product.hpp. Either is at most
//
//     (3 + columns / 8) 2^-24 sum (|scale q| + |minimum|) |x|
//
// from the exact sum of these x. A NaN in X counts as 0 then, and an infinity makes its row of Y NaN.
//
// By stream-k, the same bounds hold: no element is added up in more steps, since a share has a slice at least. Bits are
// the same in every run, and for the same number of multiprocessors.
//
// An epilogue is called with these sums in f32, and what it gives is rounded to the type of Y. It is part of the kernel
// that multiplies or, where columns are in parts or shares, or there are row sums, of the one that adds up.
#pragma once
#include <optional>

#include "runtime/tensor_view.hpp"
#include "stdlib/epilogue/epilogue.hpp"
#include "stdlib/spec/recipe.hpp"
#include "stdlib/spec/workspace.hpp"
#include "stdlib/tile/gemm_schedule.hpp"

namespace ikat::stdlib {

/// What weights are multiplied with: the activations in f32, or rounded to 8 bits, blocks of 32 by themselves, which
/// takes fewer instructions.
enum class Activations : std::uint8_t { exact, q8_1 };

/// How quantised weights are multiplied.
struct QuantisedGemmOptions {
    /// The same at every number of tokens: nothing is chosen by it.
    Activations activations = Activations::exact;
    /// Y = epilogue(X W'), see epilogue.hpp: a function of f32 sums. A row of C is a token, a column is a row of W.
    std::optional<Epilogue> epilogue{};
    /// Which blocks make which tiles of Y, of more than eight tokens on tensor cores. chosen: a block for each tile, or
    /// for each part of the columns where there are few; bits depend on sizes alone. stream_k: blocks divide the
    /// columns of the tiles equally that do not keep all of them busy, wherever tiles end, and sums are added in order;
    /// bits depend on the number of multiprocessors, and on whether there is wgmma, too. There are no others.
    GemmSchedule schedule = GemmSchedule::chosen;
    /// Of stream_k: for how many multiprocessors tiles are divided, 1 to 16384. 0: for those of the device. The same
    /// number gives the same bits on all devices with, or without, wgmma.
    std::uint32_t multiprocessors = 0;
    /// For activations in Q8_1, or in f16 for tensor cores, and for sums: gemm_workspace() bytes. Without it, a
    /// function allocates its own.
    WorkspaceSlice workspace{};
};

/// Y = X W': W has rows x columns quantised weights, with any pitch, X is tokens x columns, of f32, f16 or bf16, Y is
/// tokens x rows, of one of these, too. Rows of X and of Y may be any distance apart; any sizes, or 0: Y is 0 where
/// there are no columns. Throws Error for types and shapes that do not fit, where Y overlaps another operand, and for a
/// schedule that there is not, such as stream_k without tensor cores.
/// gemm() with a W of quantised weights and no options calls it.
void quantised_gemm(const Queue& queue, const TensorView& W, const TensorView& X, const MutableTensorView& Y,
                    const QuantisedGemmOptions& options = {});
/// The same by the name that products of other matrices have.
inline void gemm(const Queue& queue, const TensorView& W, const TensorView& X, const MutableTensorView& Y,
                 const QuantisedGemmOptions& options) {
    quantised_gemm(queue, W, X, Y, options);
}
/// The same with an epilogue of your own.
inline void gemm(const Queue& queue, const TensorView& W, const TensorView& X, const MutableTensorView& Y,
                 const Epilogue& epilogue, QuantisedGemmOptions options = {}) {
    options.epilogue = epilogue;
    quantised_gemm(queue, W, X, Y, options);
}
/// The bytes of workspace that the same call needs: 0 for exact activations of up to eight tokens, unless there is an
/// epilogue with row sums.
std::uint64_t gemm_workspace(const Queue& queue, const TensorView& W, const TensorView& X, const MutableTensorView& Y,
                             const QuantisedGemmOptions& options);

}  // namespace ikat::stdlib
