// SPDX-License-Identifier: Apache-2.0
// GGML's formats of quantised weights: a row is whole blocks, each of some weights in some bytes.
#pragma once
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string_view>

namespace ikat::runtime {
// clang-format off
/// A row for each format: its name in C++, its name elsewhere, the weights and the bytes of a block.
#define IKAT_QUANTISED_FORMATS(row) \
    row(Q4_0, q4_0, 32, 18)         \
    row(Q4_1, q4_1, 32, 20)         \
    row(Q5_0, q5_0, 32, 22)         \
    row(Q5_1, q5_1, 32, 24)         \
    row(Q8_0, q8_0, 32, 34)         \
    row(Q2_K, q2_k, 256, 84)        \
    row(Q3_K, q3_k, 256, 110)       \
    row(Q4_K, q4_k, 256, 144)       \
    row(Q5_K, q5_k, 256, 176)       \
    row(Q6_K, q6_k, 256, 210)       \
    row(IQ4_NL, iq4_nl, 32, 18)     \
    row(IQ4_XS, iq4_xs, 256, 136)   \
    row(MXFP4, mxfp4, 32, 17)
// clang-format on
/// The formats of GGML.
enum class Quantised : std::uint8_t {
#define IKAT_ROW(format, name, weights, bytes) format,
    IKAT_QUANTISED_FORMATS(IKAT_ROW)
#undef IKAT_ROW
};

/// A format: how many weights a block has, and how many bytes.
struct QuantisedInfo {
    std::string_view name;         // "q4_0"
    std::uint32_t weights, bytes;  // of a block
};
/// By the numbers of Quantised.
inline constexpr QuantisedInfo quantised_formats[] = {
#define IKAT_ROW(format, name, weights, bytes) {#name, weights, bytes},
    IKAT_QUANTISED_FORMATS(IKAT_ROW)
#undef IKAT_ROW
};

/// nullptr for a number that is none of them.
constexpr const QuantisedInfo* find_info(Quantised format) {
    return std::size_t(format) < std::size(quantised_formats) ? &quantised_formats[std::size_t(format)] : nullptr;
}

}  // namespace ikat::runtime
