// SPDX-License-Identifier: Apache-2.0
// The arrays that the measured kernels are launched with.
#pragma once
#include <cstring>

#include "bench/code_quality/kernels.hpp"

namespace ikat::bench {

template <class T>
Bytes bytes(const std::vector<T>& values) {
    Bytes out(values.size() * sizeof(T));
    std::memcpy(out.data(), values.data(), out.size());
    return out;
}
/// Small numbers, whose sums are exact.
inline Bytes floats(std::size_t count) {
    std::vector<float> out(count);
    for (std::size_t i = 0; i < count; ++i) out[i] = float(int(i * 2654435761u >> 20 & 31) - 16) / 8;
    return bytes(out);
}
inline Bytes words(std::size_t count) {
    std::vector<std::uint32_t> out(count);
    for (std::size_t i = 0; i < count; ++i) out[i] = std::uint32_t(i * 2654435761u ^ i >> 3);
    return bytes(out);
}
inline Bytes brain_floats(std::size_t count) {
    const Bytes wide = floats(count);
    Bytes out(count * 2);
    for (std::size_t i = 0; i < count; ++i) std::memcpy(&out[2 * i], &wide[4 * i + 2], 2);
    return out;
}
inline Bytes zeros(std::size_t count) { return Bytes(count * 4); }

/// Super-blocks of Q4_K with the scales 1 and 1/2.
inline Bytes quantised(std::size_t blocks) {
    Bytes out = words(blocks * 36);
    for (std::size_t b = 0; b < blocks; ++b) std::memcpy(&out[b * 144], "\x00\x3c\x00\x38", 4);
    return out;
}

}  // namespace ikat::bench
