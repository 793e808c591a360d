// SPDX-License-Identifier: Apache-2.0
// Layouts as CuTe writes them, and values of the types of matrices.
#pragma once
#include <bit>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "codegen/ir/type.hpp"

namespace ikat::tests::matrices {

/// CuTe's (extents):(strides), the first extent fastest.
using Modes = std::vector<std::pair<int, int>>;
inline int at(const Modes& modes, int i) {
    int sum = 0;
    for (const auto& [extent, stride] : modes) sum += i % extent * stride, i /= extent;
    return sum;
}
inline int size_of(const Modes& modes) {
    int size = 1;
    for (const auto& [extent, stride] : modes) size *= extent;
    return size;
}

inline int bits_of(const std::string& type) {
    if (type == "b1") return 1;
    if (type == "s4" || type == "u4") return 4;
    if (type == "f64") return 64;
    if (type == "f16" || type == "bf16") return 16;
    return type.size() == 2 || type[0] == 'e' ? 8 : 32;
}

/// Some values that the type has, and their bits.
using Value = std::pair<double, std::uint64_t>;
inline Value value_of(const std::string& type, unsigned random) {
    const auto integer = [&](int bits, bool is_signed) {
        const int all = 1 << bits, x = int(random % unsigned(all));
        return Value{is_signed && x >= all / 2 ? x - all : x, std::uint64_t(x)};
    };
    if (type == "b1") return integer(1, false);
    if (type == "u4" || type == "s4") return integer(4, type == "s4");
    if (type == "u8" || type == "s8") return integer(8, type == "s8");
    if (type == "s32") return {int(random) >> 4, std::uint32_t(int(random) >> 4)};
    constexpr double numbers[] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
    constexpr unsigned e4m3[] = {0, 0x30, 0x38, 0x3c, 0x40, 0x44, 0x48, 0x4c},
                       e5m2[] = {0, 0x38, 0x3c, 0x3e, 0x40, 0x42, 0x44, 0x46};
    const unsigned which = random % 8;
    const bool is_negative = random & 8;
    const double x = is_negative ? -numbers[which] : numbers[which];
    if (type == "e4m3" || type == "e5m2") return {x, (type == "e4m3" ? e4m3 : e5m2)[which] | (is_negative ? 0x80 : 0)};
    if (type == "f64") return {x, std::bit_cast<std::uint64_t>(x)};
    if (type == "f16") return {x, half(float(x)).bits};
    const auto bits = std::bit_cast<std::uint32_t>(float(x));
    return {x, type == "bf16" ? bits >> 16 : bits};
}
inline double number_of(const std::string& type, std::uint64_t bits) {
    if (type == "f64") return std::bit_cast<double>(bits);
    if (type == "f16") return double(float(half::from_bits(std::uint16_t(bits))));
    if (type == "s32") return double(std::int32_t(bits));
    return double(std::bit_cast<float>(std::uint32_t(bits)));
}

}  // namespace ikat::tests::matrices
