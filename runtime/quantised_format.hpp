// SPDX-License-Identifier: Apache-2.0
// GGML's formats of quantised weights: a row is whole blocks, each of some weights in some bytes.
#pragma once
#include <cstdint>
#include <string_view>

namespace ikat::runtime {

/// The formats of GGML.
enum class Quantised : std::uint8_t { Q4_0, Q8_0, Q4_K, Q5_K, Q6_K };

/// A format: its weights come in blocks, each of a fixed number of weights and of bytes.
struct QuantisedInfo {
    std::string_view name;         // "q4_0"
    std::uint32_t weights, bytes;  // of a block
};
/// By the numbers of Quantised.
inline constexpr QuantisedInfo quantised_formats[] = {
    {"q4_0", 32, 18}, {"q8_0", 32, 34}, {"q4_k", 256, 144}, {"q5_k", 256, 176}, {"q6_k", 256, 210}};

/// nullptr for a number that is none of them.
constexpr const QuantisedInfo* find_info(Quantised format) {
    return std::size_t(format) < std::size(quantised_formats) ? &quantised_formats[std::size_t(format)] : nullptr;
}

}  // namespace ikat::runtime
