// SPDX-License-Identifier: Apache-2.0
// Kernels that move elements: transposition, rotary position embedding, writing rows to a cache. f32, f16 or bf16;
// caches also of e4m3 and of Q8_0.
#pragma once
#include "dsl/kernel/kernel.hpp"
#include "stdlib/spec/recipe.hpp"

namespace ikat::stdlib {

/// y[b, column, row] = x[b, row, column] for `batch` matrices of rows x columns, all row-major, one after the other,
/// with fewer than 2^32 elements in all. The arguments are x, y, batch, rows, columns.
template <class T>
using TransposeKernel = Kernel<In<T>, Out<T>, u32, u32, u32>;
template <class T>
const TransposeKernel<T>& transpose_kernel();

/// Which two elements of a head form a pair, which is rotated together.
enum class Rope : std::uint8_t {
    Interleaved,  // 2 i and 2 i + 1, as in GPT-J
    Neox,         // i and i + rotary / 2, as in GPT-NeoX
};
/// Rotary position embedding in place: of each head of each token, pair i < rotary / 2 is turned by the angle
/// sign * position * base^(-2 i / rotary); sign 1 is forward, -1 backward. Elements from `rotary` on stay. x is
/// tokens x heads x head_dim with fewer than 2^32 elements; head_dim and rotary <= head_dim are even. Angles are
/// computed in f64, once for all heads of a token: their error is at most 2^-23 + 2^-47 position (for a base of up to
/// 10^7), and the sine and cosine are within 1 ulp of those of the computed angle. The arguments are x, positions (one
/// per token), tokens, heads, head_dim, rotary, base, sign.
template <class T>
using RopeKernel = Kernel<InOut<T>, In<std::uint32_t>, u32, u32, u32, u32, f32, f32>;
template <class T>
const RopeKernel<T>& rope_kernel(Rope form);

/// cache[slots[t], column] = x[t, column] for t < tokens, where slots[t] < cache_rows. Tokens with other slots are
/// skipped: give them to padding. Rows have `width` elements. Two tokens with the same slot are a race. The arguments
/// are x, slots, cache, tokens, width, cache_rows.
template <class T>
using ScatterKernel = Kernel<In<T>, In<std::uint32_t>, Out<T>, u32, u32, u32>;
template <class T>
const ScatterKernel<T>& kv_scatter_kernel();

// The functions. They throw Error for shapes and types that do not fit, and for 2^32 elements or more.
extern const Recipe transpose_recipe, rope_recipe, kv_scatter_recipe;
/// y[..., column, row] = x[..., row, column]: matrices of any pitches, whose planes are any distance apart.
void transpose(const Queue& queue, const TensorView& x, const MutableTensorView& y);
/// x is tokens×heads×head_dim, which may be any part of rows of Q, K and V; positions has a std::uint32_t for each
/// token.
void rope(const Queue& queue, Rope form, const MutableTensorView& x, const TensorView& positions, std::uint32_t rotary,
          float base, bool backward = false);
/// Row t of x to row slots[t] of the cache, where there is such a row; slots are std::uint32_t. Rows are the dimensions
/// after the first one, as in tokens×heads×head_dim; their elements follow each other, rows are any distance apart. The
/// cache has elements of x's type; or, quantised, blocks of Q8_0, quantised_view(bytes, Quantised::Q8_0, ...), with the
/// bytes of quantise(), or e4m3: numbers are rounded to nearest, those beyond 448, and infinities, become 448 with
/// their sign, and NaNs stay NaN.
void kv_scatter(const Queue& queue, const TensorView& x, const TensorView& slots, const MutableTensorView& cache);
/// What rope() and then kv_scatter() write to the cache, with its bits, in one launch that leaves x as it is: row t of
/// x, turned by the angles of positions[t], goes to row slots[t] of the cache, where there is such a row. x is
/// tokens×heads×head_dim, the cache cache_rows×heads×head_dim, of any type that kv_scatter() takes; tokens, rows and
/// heads are any distance apart. rotary is up to 512.
void rope_scatter(const Queue& queue, Rope form, const TensorView& x, const TensorView& positions,
                  const TensorView& slots, const MutableTensorView& cache, std::uint32_t rotary, float base);

/// y[t, h] = x[h, t]: x is heads×tokens×head_dim, y tokens×heads×head_dim, or sequences of these, of f32, f16 or bf16,
/// with any pitches. Bits stay as they are. Throws Error for shapes and types that do not fit.
void interleave_heads(const Queue& queue, const TensorView& x, const MutableTensorView& y);
/// The same back: x is tokens×heads×head_dim, y heads×tokens×head_dim.
void deinterleave_heads(const Queue& queue, const TensorView& x, const MutableTensorView& y);

}  // namespace ikat::stdlib
