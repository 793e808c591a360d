// SPDX-License-Identifier: Apache-2.0
// Weights in GGML's block formats, bit for bit: decoded to f32, and multiplied with a vector without being decoded
// first.
//
//     const auto W = quantised_view(weights, Quantised::Q4_K, {rows, columns});    // of a Buffer<std::uint8_t>
//     stdlib::gemv(device, W, x, y);                                               // y = W x, gemm/gemv.hpp
//
// A matrix is row-major; a row is columns / weights_of(format) blocks one after the other, so columns is a multiple of
// that. Rows may be at pitches of whole blocks, quantised_view(weights, format, {rows, columns}, {pitch}), and begin at
// any even byte, those of MXFP4 at any. A kernel takes weights that have fewer than 2^32 elements and bytes and begin
// at a multiple of 16 bytes.
//
//     format   weights  bytes  a block holds
//     Q4_0     32       18     f16 d, 16 bytes: d (q - 8), element j in the low half of byte j, j + 16 in the high half
//     Q4_1     32       20     f16 d and m, 16 bytes: d q + m
//     Q5_0     32       22     f16 d, a fifth bit of each q in 4 bytes, 16 bytes: d (q - 16)
//     Q5_1     32       24     f16 d and m, the fifth bits, 16 bytes: d q + m
//     Q8_0     32       34     f16 d, 32 signed bytes: d q
//     Q2_K     256      84     16 scales and minima of 4 bits, 64 bytes of 2 bits, f16 d and dmin: d sc q - dmin m
//     Q3_K     256      110    32 bytes of third bits, 64 of 2 bits, 16 scales of 6 bits in 12 bytes, f16 d:
//                              d (sc - 32) (q - 4)
//     Q4_K     256      144    f16 d and dmin, 8 scales and minima of 6 bits in 12 bytes, 128 bytes: d sc q - dmin m
//     Q5_K     256      176    the same with a fifth bit of each q in 32 bytes before the others
//     Q6_K     256      210    128 bytes of 4 bits, 64 of 2 bits, 16 signed scales, f16 d: d sc (q - 32)
//     IQ4_NL   32       18     as Q4_0, but d times one of 16 numbers, which q chooses, from -127 to 113
//     IQ4_XS   256      136    f16 d, 8 scales of 6 bits in 6 bytes, 128 bytes: d (sc - 32) times the same numbers
//     MXFP4    32       17     e, 16 bytes: 2^(e - 127) times a number of e2m1
#pragma once
#include <utility>

#include "dsl/kernel/kernel.hpp"
#include "stdlib/spec/recipe.hpp"

namespace ikat::stdlib {

using runtime::Quantised;
using runtime::quantised_view;

/// Its number. Throws Error for one that no format has.
constexpr std::uint32_t number_of(Quantised format) {
    if (!runtime::find_info(format)) {
        SizeCheck{"Quantised"}.enumerator("format", std::size_t(format), std::size(runtime::quantised_formats));
        std::unreachable();  // it has thrown, which compilers do not know
    }
    return std::uint32_t(format);
}
/// The weights and the bytes of one block.
constexpr std::uint32_t weights_of(Quantised format) { return runtime::quantised_formats[number_of(format)].weights; }
constexpr std::uint32_t bytes_of(Quantised format) { return runtime::quantised_formats[number_of(format)].bytes; }

/// Parameters w, y, n: y[i] = weight i, for all weights of n blocks. The same bits as GGML's own decoder.
using DequantiseKernel = Kernel<In<std::uint8_t>, Out<float>, u32>;
const DequantiseKernel& dequantise_kernel(Quantised format);

/// Parameters w, x, y, rows, columns: y = W x. x has `columns` elements, fewer than 2^30; y has `rows`. A warp computes
/// a row, with sums in f32. Weights are copied to shared memory in whole sectors of 32 bytes (stdlib/tile/stage.hpp).
/// So is x, once for the four rows of a block.
using QuantisedGemvKernel = Kernel<In<std::uint8_t>, In<float>, Out<float>, u32, u32>;
const QuantisedGemvKernel& gemv_kernel(Quantised format);

/// Parameters x, q, n: 32 n activations become n blocks of GGML's Q8_1. A block is 9 words, 36 bytes: f16 d = max |x| /
/// 127, f16 s = sum of x, 32 signed bytes x / d, rounded to nearest, halves away from zero. A warp makes eight blocks.
using QuantiseKernel = Kernel<In<float>, Out<std::uint32_t>, u32>;
const QuantiseKernel& quantise_q8_1_kernel();

/// Parameters w, x, y, rows, columns: y = W x, where x is columns / 32 blocks of Q8_1. One instruction (dp4a)
/// multiplies four weights with four activations. A warp computes four rows, or two where these are of many bytes, and
/// reads x once for all of them.
using PackedGemvKernel = Kernel<In<std::uint8_t>, In<std::uint32_t>, Out<float>, u32, u32>;
const PackedGemvKernel& gemv_q8_1_kernel(Quantised format);

/// For the catalogue: names, launches, checks and references.
extern const Recipe dequantise_recipe, quantised_gemv_recipe, packed_gemv_recipe, quantise_q8_1_recipe;
// The functions. They throw Error for shapes and types that do not fit. Arrays begin anywhere, W as above, and
// have up to five dimensions. Those without gaps may have more elements than are needed.
/// y = all weights of W, of float and of W's shape with any pitches, or an array of as many without gaps.
void dequantise(const Queue& queue, const TensorView& W, const MutableTensorView& y);
/// y = W x, which gemv() calls: W has rows×columns quantised weights, with any pitches, x has `columns` elements of
/// float, or columns / 32 blocks of Q8_1, 9 std::uint32_t each, without gaps; y has `rows` of float, which are any
/// distance apart. W may have more dimensions of rows; y has the same ones, or is without gaps.
void quantised_gemv(const Queue& queue, const TensorView& W, const TensorView& x, const MutableTensorView& y);
/// All of x, of float, half or bfloat16, to blocks of Q8_1, of std::uint32_t. The size of x is a multiple of 32; q has
/// 9 words for every 32 elements. Rows of x and of q may be at any pitches: then rows of x have a multiple of 32
/// elements, and those of q 9 words for 32, in the same dimensions or without gaps.
void quantise_q8_1(const Queue& queue, const TensorView& x, const MutableTensorView& q);

/// All of x, of float, half or bfloat16, to blocks of W, whose format is Q8_0, Q4_0 or MXFP4: the bytes of
/// stored::quantise(). x has the shape of W, and rows of both may be at any pitches; without gaps x may have any shape
/// of as many elements. A block that has a NaN or an infinity becomes one that decodes to NaN, of MXFP4 to infinity.
void quantise(const Queue& queue, const TensorView& x, const MutableTensorView& W);

}  // namespace ikat::stdlib
