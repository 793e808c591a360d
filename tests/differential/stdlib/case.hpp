// SPDX-License-Identifier: Apache-2.0
// One launch of a kernel of the registry: its arguments and its expected outputs. The registry's launch helper chooses
// the grid.
//
//     Case c;
//     c.in(x).out<float>(want, bound).number(n);      // in the order of the kernel's parameters
//     c.run(device, "relu");                          // CHECKs each output, element by element
//
// Outputs are poisoned before the launch: with NaN, or with -1 for integers.
#pragma once
#include <algorithm>
#include <cstdint>
#include <functional>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/device.hpp"

namespace ikat::test {

class Case {
public:
    template <runtime::Element T>
    Case& in(const std::vector<T>& elements) {
        arguments_.push_back({.type = ir::type_of<T>, .bytes = bytes_of(elements)});
        return *this;
    }
    /// An output of as many elements as `want`, each within `bound` (one for all, or one each) plus the rounding to T.
    template <runtime::Element T>
    Case& out(std::vector<double> want, std::vector<double> bound) {
        std::vector<std::byte> poison(want.size() * sizeof(T), std::byte{0xff});
        arguments_.push_back({.type = ir::type_of<T>,
                              .bytes = std::move(poison),
                              .want = std::move(want),
                              .bound = std::move(bound),
                              .read = &read<T>});
        return *this;
    }
    /// The same for a buffer that the kernel changes; it initially contains `elements`.
    template <runtime::Element T>
    Case& inout(const std::vector<T>& elements, std::vector<double> want, std::vector<double> bound) {
        out<T>(std::move(want), std::move(bound));
        arguments_.back().bytes = bytes_of(elements);
        return *this;
    }
    Case& number(std::uint32_t n) { return scalar(ir::Type::U32, n); }
    Case& number(float x) { return scalar(ir::Type::F32, std::bit_cast<std::uint32_t>(x)); }

    void run(const runtime::Device& device, std::string_view kernel) const;

private:
    struct Argument {
        ir::Type type{};
        std::vector<std::byte> bytes{};
        std::vector<double> want{}, bound{};
        double (*read)(const std::byte* at) = nullptr;  // for outputs
        bool is_scalar = false;
        std::uint64_t bits = 0;
    };
    Case& scalar(ir::Type type, std::uint64_t bits) {
        arguments_.push_back({.type = type, .is_scalar = true, .bits = bits});
        return *this;
    }
    template <class T>
    static std::vector<std::byte> bytes_of(const std::vector<T>& elements) {
        const auto bytes = std::as_bytes(std::span(elements));
        return {bytes.begin(), bytes.end()};
    }
    template <class T>
    static double read(const std::byte* at) {
        T element;
        std::copy_n(at, sizeof element, reinterpret_cast<std::byte*>(&element));
        if constexpr (!std::is_arithmetic_v<T>)
            return double(float(element));
        else
            return double(element);
    }
    static void compare(const Argument& argument, std::span<const std::byte> got);

    std::vector<Argument> arguments_;
};

/// Pseudo-random numbers that are the same in every run.
template <class T>
std::vector<T> random_elements(std::size_t count, std::uint32_t seed, float low = -1, float high = 1) {
    std::mt19937 random(seed);
    std::uniform_real_distribution<float> uniform(low, high);
    std::vector<T> out(count);
    for (T& x : out) x = T(uniform(random));
    return out;
}

template <class T>
std::vector<float> floats(const std::vector<T>& x) {
    return {x.begin(), x.end()};
}

/// "relu", "relu_f16" or "relu_bf16".
template <class T>
std::string name_of(const std::string& name) {
    return name + (std::is_same_v<T, half> ? "_f16" : std::is_same_v<T, bfloat16> ? "_bf16" : "");
}

/// Calls check<T>(arguments...) for each type that kernels support.
#define IKAT_EACH_TYPE(check, ...) (check<float>(__VA_ARGS__), check<half>(__VA_ARGS__), check<bfloat16>(__VA_ARGS__))

/// The relative error of one rounding to T: half a unit in the last place.
template <class T>
inline constexpr double rounding = std::is_same_v<T, half>       ? 0x1p-11
                                   : std::is_same_v<T, bfloat16> ? 0x1p-8
                                                                 : 0x1p-24;
/// The rounding error of f32.
inline constexpr double epsilon = rounding<float>;
/// Below this, the error of rounding to T is absolute.
template <class T>
inline constexpr double tiny = std::is_same_v<T, half>       ? 0x1p-25
                               : std::is_same_v<T, bfloat16> ? 0x1p-134
                                                             : 0x1p-150;

}  // namespace ikat::test
