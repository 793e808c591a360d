// SPDX-License-Identifier: Apache-2.0
// GGML's block formats on the host, written from the description in stdlib/quantised/quantised.hpp, independently of
// the kernels: every weight is decoded by itself.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "stdlib/quantised/quantised.hpp"

namespace ikat::stdlib::reference {

/// A weight is product - minimum; all three are rounded to f32. The minimum is 0 in formats without minima. The product
/// is that of a scale and an integer.
struct QuantisedWeight {
    float product, minimum;
    float scale;
    int q;
};
/// The weights of whole blocks.
std::vector<QuantisedWeight> quantised_weights(Quantised format, std::span<const std::uint8_t> blocks);
std::vector<float> dequantise(Quantised format, std::span<const std::uint8_t> blocks);

/// Activations as words of Q8_1, 9 for each 32 elements. The sum of the 32 is in f32 and in the order of the kernel: of
/// four neighbours each, then of those of the eight sums that are 4, 2 and 1 apart.
std::vector<std::uint32_t> quantise_q8_1(std::span<const float> x);
/// The values that they represent.
std::vector<float> dequantise_q8_1(std::span<const std::uint32_t> words);

}  // namespace ikat::stdlib::reference
