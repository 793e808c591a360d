// SPDX-License-Identifier: Apache-2.0
// Test helpers: matrices of small whole numbers as the elements of any type that a product has.
#pragma once
#include <bit>
#include <cstdint>
#include <cstring>
#include <random>
#include <vector>

#include <ikat/mma.hpp>

namespace ikat::test {

/// An element as bits, and back.
template <class T>
struct Coding {
    using Bits =
        std::conditional_t<sizeof(T) == 8, std::uint64_t,
                           std::conditional_t<sizeof(T) == 4, std::uint32_t,
                                              std::conditional_t<sizeof(T) == 2, std::uint16_t, std::uint8_t>>>;
    static constexpr int width = 8 * sizeof(T);
    static std::uint64_t bits(int value) { return std::bit_cast<Bits>(T(value)); }
    static double number(std::uint64_t bits) { return double(std::bit_cast<T>(Bits(bits))); }
};
template <>
struct Coding<tf32> : Coding<float> {};
template <int width_>
struct SmallCoding {
    static constexpr int width = width_;
    static std::uint64_t bits(int value) { return std::uint64_t(value) & ((1u << width) - 1); }
};
template <>
struct Coding<s4> : SmallCoding<4> {};
template <>
struct Coding<u4> : SmallCoding<4> {};
template <>
struct Coding<b1> : SmallCoding<1> {};

template <class T>
inline constexpr bool is_unsigned_matrix =
    std::is_same_v<T, std::uint8_t> || std::is_same_v<T, u4> || std::is_same_v<T, b1>;

inline std::mt19937 random_numbers(20260101);

template <class T>
std::vector<int> random_matrix(int elements) {
    std::vector<int> out;
    const int low = is_unsigned_matrix<T> ? 0 : -4, high = std::is_same_v<T, b1> ? 1 : 4;
    for (int i = 0; i < elements; ++i) out.push_back(std::uniform_int_distribution(low, high)(random_numbers));
    return out;
}

/// Elements as they lie in memory, the first lowest.
template <class T, class Register>
std::vector<Register> packed(const std::vector<int>& elements) {
    std::vector<std::uint8_t> bytes(elements.size() * Coding<T>::width / 8);
    for (std::size_t i = 0; i < elements.size(); ++i)
        for (int bit = 0; bit < Coding<T>::width; ++bit)
            if (const std::size_t at = i * Coding<T>::width + bit; Coding<T>::bits(elements[i]) >> bit & 1)
                bytes[at / 8] |= std::uint8_t(1 << at % 8);
    std::vector<Register> out(bytes.size() / sizeof(Register));
    std::memcpy(out.data(), bytes.data(), bytes.size());
    return out;
}
template <class T, class Register>
std::vector<double> numbers(const std::vector<Register>& registers) {
    std::vector<double> out;
    const auto* bytes = reinterpret_cast<const std::uint8_t*>(registers.data());
    for (std::size_t at = 0; at < registers.size() * sizeof(Register); at += sizeof(T)) {
        std::uint64_t bits = 0;
        std::memcpy(&bits, bytes + at, sizeof(T));
        out.push_back(Coding<T>::number(bits));
    }
    return out;
}

}  // namespace ikat::test
