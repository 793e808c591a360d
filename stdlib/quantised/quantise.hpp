// SPDX-License-Identifier: Apache-2.0
// Floats to GGML's blocks on the host, with the bits of GGML's own reference.
//
//     const std::vector<std::uint8_t> bytes = stored::quantise(Quantised::Q4_K, weights, columns);
//     auto w = device.upload(bytes);                  for quantised_view(w, Quantised::Q4_K, {rows, columns})
//
// The bytes are those of GGML's quantize_row_*_ref on x86-64, compiled without fused multiply-add. How each format
// chooses its numbers:
//
//     Q4_0 Q5_0 Q8_0         d from the number farthest from 0, then each q to nearest
//     Q4_1 Q5_1              d and m from the smallest and the largest number
//     Q2_K Q4_K Q5_K         for each part several scales are tried, with the best minimum for each; the scales and
//                            the minima are rounded, then each q anew
//     Q3_K                   single q are moved by one step or more as long as that lowers the error of a part
//     Q6_K IQ4_XS            for each part several scales are tried
//     IQ4_NL                 the best scale for the numbers that the first scale chooses
//     MXFP4                  the exponent of the number farthest from 0, less 2
//
// Errors are weighted by the numbers themselves: there are no importance weights.
//
// NaN and infinity are an Error. Finite numbers of any size are not, but floats have their limits: a d beyond 65504 is
// infinite, weights that are too small for a d of f16 become 0, and a search whose sums overflow or vanish, as those of
// Q3_K do for numbers above 1e4 or below 1e-5, stops early. GGML does the same. It leaves bytes open where it converts
// a number that does not fit, or does not write what it stores. Here q is then 0, and so is the exponent of an MXFP4
// block whose numbers are all below 2^-125.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "runtime/quantised_format.hpp"

namespace ikat::stdlib::stored {

/// The blocks of x. Throws Error where x is no whole blocks, or not finite.
std::vector<std::uint8_t> quantise(runtime::Quantised format, std::span<const float> x);
/// The same for a matrix: rows of `columns` numbers each. Throws Error also where a row is no whole blocks.
std::vector<std::uint8_t> quantise(runtime::Quantised format, std::span<const float> x, std::uint64_t columns);

}  // namespace ikat::stdlib::stored
