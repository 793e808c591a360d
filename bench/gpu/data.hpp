// SPDX-License-Identifier: Apache-2.0
// What cases are made of: the words of their lines, arrays of random numbers, the comparison of results.
#pragma once
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <initializer_list>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "bench/gpu/cases.hpp"
#include "codegen/support/half.hpp"

namespace ikat::bench {

using runtime::Buffer;
using runtime::Device;
using runtime::Queue;

/// The words of a line, taken one by one.
class Words {
public:
    explicit Words(std::string_view line) : line_(line), rest_(std::string(line)) {}

    std::string word(std::string_view what) {
        std::string out;
        if (!(rest_ >> out)) fail(fmt::format("{} is missing", what));
        return out;
    }
    std::uint32_t number(std::string_view what) {
        const std::string text = word(what);
        std::uint32_t out = 0;
        const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), out);
        if (failure != std::errc{} || end != text.data() + text.size() || out == 0)
            fail(fmt::format("{} is {}, which is no number from 1 to 4294967295", what, text));
        return out;
    }
    /// The number of the word among these.
    std::size_t one_of(std::string_view what, std::initializer_list<std::string_view> names) {
        const std::string text = word(what);
        std::size_t at = 0;
        for (const std::string_view name : names) {
            if (name == text) return at;
            ++at;
        }
        fail(fmt::format("{} is {}, which is none of {}", what, text, fmt::join(names, ", ")));
    }
    /// Whether there is another word.
    bool has_more() { return (rest_ >> std::ws).good(); }
    void end() {
        if (has_more()) fail(fmt::format("'{}' is too much", word("")));
    }
    [[noreturn]] void fail(std::string_view message) const {
        throw Error(fmt::format("case '{}': {}", line_, message), "bench_gpu --help shows the forms of cases");
    }

private:
    std::string_view line_;
    std::istringstream rest_;
};

inline std::uint64_t mixed(std::uint64_t x) {
    x += 0x9e3779b97f4a7c15;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
    x = (x ^ x >> 27) * 0x94d049bb133111eb;
    return x ^ x >> 31;
}

/// Nearly normal: the sum of four numbers from 0 to 65535, scaled.
inline float normal(std::uint64_t seed) {
    const std::uint64_t bits = mixed(seed);
    const auto sum = double((bits & 0xffff) + (bits >> 16 & 0xffff) + (bits >> 32 & 0xffff) + (bits >> 48));
    return float((sum - 2 * 65535.0) / 37837.2);
}

/// An array on the host and on the device.
template <class T>
struct Data {
    std::vector<T> host;
    Buffer<T> buffer;
};

template <class T>
Data<T> random(const Device& device, std::uint64_t size, std::uint64_t seed, const char* name) {
    std::vector<T> host(size);
    for (std::uint64_t i = 0; i < size; ++i) {
        const float value = normal(seed << 40 ^ i);
        if constexpr (std::is_integral_v<T>)
            host[i] = T(std::lround(value * 16));
        else
            host[i] = T(value);
    }
    Buffer<T> buffer = device.upload(host, name);
    return {std::move(host), std::move(buffer)};
}

/// Results on the device: NaN, or -1, until they are written.
template <class T>
Buffer<T> results(const Device& device, std::uint64_t size, const char* name) {
    Buffer<T> out = device.buffer<T>(size, name);
    if constexpr (std::is_integral_v<T>)
        out.fill(T(-1));
    else
        out.fill(T(std::nanf("")));
    return out;
}

/// The norm of differences by the norm of what is expected.
class Difference {
public:
    void add(double result, double expected) {
        difference_ += (result - expected) * (result - expected);
        expected_ += expected * expected;
    }
    double value() const { return std::sqrt(difference_ / std::max(expected_, 1e-300)); }

private:
    double difference_ = 0, expected_ = 0;
};

inline constexpr int samples = 64;

template <class T>
double allowed_of() {
    if constexpr (std::is_same_v<T, bfloat16>) return 1e-2;
    if constexpr (std::is_same_v<T, half>) return 2e-3;
    return std::is_integral_v<T> ? 0 : 1e-5;
}

/// Calls f with a value of the type that the next word names.
template <class... T>
Case of_type(Words& words, auto&& f) {
    std::size_t type = words.one_of("the type", {ir::info(ir::type_of<T>).name...});
    std::optional<Case> out;
    ((type-- == 0 ? void(out = f(T{})) : void()), ...);
    return std::move(*out);
}

Case flash_attention_case(const Device& device, Words& words);
Case incremental_attention_case(const Device& device, Words& words);
Case quantised_gemv_case(const Device& device, Words& words);
Case quantised_gemm_case(const Device& device, Words& words);
Case gate_up_swiglu_case(const Device& device, Words& words);
Case qkv_case(const Device& device, Words& words);

}  // namespace ikat::bench
