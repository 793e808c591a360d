// SPDX-License-Identifier: Apache-2.0
#include "tests/differential/stdlib/samples.hpp"

#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <random>

#include "codegen/ast/ast.hpp"
#include "stdlib/reference/quantised.hpp"
#include "tests/catch.hpp"

namespace ikat::test {
namespace {

using Rows = std::vector<std::vector<std::uint32_t>>;
struct Samples {
    std::string_view names;
    Rows values;
};

/// By the names of all parameters, or of those that are numbers.
const Samples all_samples[] = {
    {"w y n", {{0}, {1}, {2}, {3}, {7}, {16}, {33}, {200}}},
    {"x q n", {{0}, {1}, {2}, {3}, {4}, {5}, {31}, {100}}},
    {"x y seed_low seed_high offset_low offset_high threshold scale n",
     {{0, 0, 0, 0, 1u << 30, 0}, {1, 2, 3, 4, 1u << 31, 5}, {7, ~0u, ~0u, 5, 3u << 28, 1003}, {8, 0, 1, 0, 0, 2}}},
    {"x state y offset_low offset_high threshold scale n",
     {{0, 0, 1u << 30, 0}, {~0u, 4, 1u << 29, 35}, {5, 0, 1u << 30, 1003}}},
    {"seed_low seed_high offset_low offset_high n",
     {{0, 0, 0, 0, 0}, {1, 2, 3, 4, 1}, {7, ~0u, ~0u, 5, 1003}, {9, 0, ~0u, ~0u, 34}}},
    {"offsets", {{0}, {1}, {~0u}}},
    {"n", {{0}, {1}, {3}, {4}, {31}, {32}, {33}, {1000}, {2049}, {10007}, {100003}}},
    {"norm loss_scale scale step max_norm", {{0}, {1}}},
    {"interval", {{0}, {1}, {2}}},
    {"w x y rows columns", {{0, 1}, {3, 0}, {1, 1}, {2, 3}, {5, 1}, {9, 4}, {64, 2}, {33, 7}, {3, 65}, {2, 133}}},
    // The last of them are longer than what registers hold.
    {"rows columns",
     {{0, 8},
      {3, 0},
      {1, 1},
      {5, 3},
      {4, 4},
      {7, 31},
      {9, 32},
      {6, 128},
      {3, 1000},
      {2, 1023},
      {130, 64},
      {33, 65},
      {257, 2},
      {5, 1028},
      {100, 100},
      {2, 8192},
      {2, 8196},
      {1, 10007}}},
    {"rows columns queries first_row",
     {{0, 8, 1, 0},
      {3, 0, 3, 0},
      {1, 1, 1, 0},
      {5, 3, 5, 0},
      {7, 31, 4, 2},
      {9, 32, 3, 0},
      {6, 128, 40, 17},
      {3, 1000, 700, 698},
      {33, 65, 33, 0},
      {5, 1028, 1028, 1000},
      {2, 4100, 4000, 3990}}},
    {"batch rows columns",
     {{1, 1, 1}, {0, 3, 4}, {2, 0, 5}, {1, 32, 32}, {1, 33, 31}, {3, 64, 40}, {2, 1, 100}, {2, 100, 1}, {5, 7, 9}}},
    {"m n k",
     {{1, 1, 1},
      {64, 64, 16},
      {64, 64, 64},
      {65, 63, 17},
      {1, 200, 33},
      {130, 1, 40},
      {128, 64, 0},
      {0, 5, 3},
      {5, 0, 3},
      {100, 75, 50},
      {7, 9, 300},
      {2, 3, 1},
      {63, 65, 15},
      {128, 128, 32}}},
    {"tokens heads head_dim rotary",
     {{0, 2, 4, 4},
      {1, 1, 1, 1},
      {3, 2, 4, 4},
      {5, 3, 3, 3},
      {4, 2, 32, 16},
      {2, 1, 5, 2},
      {7, 4, 64, 64},
      {3, 2, 4, 0},
      {40, 8, 40, 40}}},
    {"tokens width cache_rows",
     {{0, 4, 3}, {1, 1, 1}, {3, 0, 4}, {2, 5, 7}, {5, 128, 9}, {9, 1030, 20}, {1, 3, 1}, {4, 64, 4}, {20, 31, 9}}},
    {"tokens width table_rows", {{0, 4, 3}, {1, 1, 1}, {3, 0, 4}, {5, 7, 2}, {5, 128, 9}, {9, 1030, 20}, {6, 4, 0}}},
    {"from_extent0 from_extent1 from_pitch to_extent0 to_extent1 to_pitch",
     {{1, 1, 1, 1, 1, 1},
      {0, 5, 5, 0, 5, 5},
      {5, 0, 0, 5, 0, 7},
      {3, 4, 4, 3, 4, 4},
      {7, 33, 40, 7, 33, 33},
      {9, 5, 5, 10, 6, 64},
      {300, 2, 3, 300, 2, 2},
      {2, 700, 701, 3, 800, 1024},
      {64, 64, 64, 64, 64, 65},
      {17, 31, 31, 17, 31, 32},
      {4, 256, 256, 4, 256, 256}}},
    {"batch channels height width filters kernel_h kernel_w stride_h stride_w pad_h pad_w dilation_h dilation_w groups "
     "out_h out_w",
     {{1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 1, 1, 1, 1, 1},
      {2, 3, 7, 9, 4, 3, 3, 1, 1, 0, 0, 1, 1, 1, 5, 7},
      {1, 2, 8, 8, 5, 3, 3, 1, 1, 1, 1, 1, 1, 1, 8, 8},
      {1, 4, 11, 10, 6, 3, 2, 2, 3, 1, 0, 1, 1, 2, 6, 3},
      {1, 6, 9, 9, 6, 3, 3, 1, 1, 2, 2, 2, 2, 6, 9, 9},
      {3, 1, 1, 30, 2, 1, 5, 1, 1, 0, 2, 1, 1, 1, 1, 30},
      {1, 2, 4, 4, 3, 1, 1, 1, 1, 2, 1, 1, 1, 1, 8, 6},
      {0, 2, 4, 4, 3, 1, 1, 1, 1, 0, 0, 1, 1, 1, 4, 4},
      {1, 1, 2, 2, 1, 3, 3, 1, 1, 0, 0, 1, 1, 1, 0, 0},
      {1, 3, 16, 20, 8, 5, 5, 4, 4, 2, 2, 1, 1, 1, 4, 5}}},
};

/// Of the numbers that are no sizes; `odd` is the first size.
float number_of(std::string_view name, bool odd) {
    if (name == "epsilon") return 1e-3f;
    if (name == "base") return 10000;
    if (name == "sign") return odd ? 1 : -1;
    if (name == "high") return 1.5f;
    if (name == "rate") return 0.125f;
    if (name == "beta1" || name == "beta2") return odd ? 0.9f : 0.97f;
    if (name == "root") return 0.3f;
    return -0.75f;
}

template <class T>
void put(std::span<std::byte> bytes, std::size_t i, float x) {
    const T element = T(x);
    std::memcpy(&bytes[i * sizeof(T)], &element, sizeof element);
}

/// Random numbers; with `special`, small ones, an infinity and a NaN among them.
template <class T>
void fill(std::span<std::byte> bytes, float magnitude, bool special, std::uint32_t seed) {
    std::mt19937 random(seed);
    std::uniform_real_distribution<float> uniform(-magnitude / 2, magnitude);  // their mean is not 0
    const std::size_t count = bytes.size() / sizeof(T);
    for (std::size_t i = 0; i < count; ++i) put<T>(bytes, i, uniform(random) * (special && i % 11 == 0 ? 1e-3f : 1));
    if (special && count > 900) put<T>(bytes, 7, HUGE_VALF), put<T>(bytes, 70, NAN);
}

double element(std::span<const std::uint8_t> bytes, std::size_t i, ir::Type type) {
    const auto as = [&]<class T>(T x) {
        std::memcpy(&x, &bytes[i * sizeof x], sizeof x);
        return x;
    };
    if (type == ir::Type::F16) return double(float(as(half())));
    if (type == ir::Type::BF16) return double(float(as(bfloat16())));
    return type == ir::Type::F32 ? double(as(float())) : double(as(std::uint32_t()));
}

/// Whether each element is treated by itself.
bool by_element(const stdlib::Recipe& recipe) {
    const std::string_view function = recipe.function();
    return function == "elementwise" || function == "cast" || function == "residual_add" ||
           function.starts_with("swiglu_backward");
}

/// Weights in blocks, or activations in blocks of Q8_1.
std::vector<std::byte> blocks(const stdlib::Entry& entry, ir::Type type, std::size_t elements, std::uint32_t seed) {
    const auto as_bytes = [](const auto& list) {
        const auto bytes = std::as_bytes(std::span(list));
        return std::vector<std::byte>(bytes.begin(), bytes.end());
    };
    if (type == ir::Type::U32) {
        std::vector<float> x(elements / 9 * 32);
        fill<float>(std::as_writable_bytes(std::span(x)), 1, false, seed);
        return as_bytes(stdlib::reference::quantise_q8_1(x));
    }
    const auto format = stdlib::Quantised(entry.variant - entry.recipe->kernels);
    return as_bytes(random_blocks(format, elements / stdlib::bytes_of(format), seed));
}

std::vector<std::byte> contents(const stdlib::Entry& entry, const ir::Parameter& parameter, std::size_t elements,
                                std::uint32_t seed) {
    const float magnitude = entry.recipe->magnitude;
    const bool special = by_element(*entry.recipe);
    std::vector<std::byte> out(elements * info(parameter.element).bytes, std::byte{0xff});
    if (parameter.access == ir::Access::Out) return out;
    const bool is_quantised = entry.info().parameters[0].element == ir::Type::U8;
    if (is_quantised && parameter.element != ir::Type::F32) return blocks(entry, parameter.element, elements, seed);
    switch (parameter.element) {
        case ir::Type::F32: fill<float>(out, magnitude, special, seed); break;
        case ir::Type::F16: fill<half>(out, magnitude, special, seed); break;
        case ir::Type::BF16: fill<bfloat16>(out, magnitude, special, seed); break;
        default:
            for (std::uint32_t i = 0; i < elements; ++i)
                if (i % 4 != 3) std::memcpy(&out[4 * i], &i, 4);
    }
    if (parameter.name == "second" && parameter.access == ir::Access::InOut)  // the mean of squares of an optimiser
        for (std::size_t i = 3; i < out.size(); i += 4) out[i] &= std::byte{0x7f};
    return out;
}

}  // namespace

std::vector<stdlib::Quantised> quantised_formats() {
    std::vector<stdlib::Quantised> out;
    for (std::size_t i = 0; i < std::size(runtime::quantised_formats); ++i) out.push_back(stdlib::Quantised(i));
    return out;
}

/// The offsets of a format's f16.
static std::vector<std::size_t> halves_of(stdlib::Quantised format) {
    using enum stdlib::Quantised;
    switch (format) {
        case Q4_1:
        case Q5_1:
        case Q4_K:
        case Q5_K: return {0, 2};
        case Q2_K: return {80, 82};
        case Q3_K: return {108};
        case Q6_K: return {208};
        case MXFP4: return {};
        default: return {0};
    }
}

std::vector<std::uint8_t> random_blocks(stdlib::Quantised format, std::size_t count, std::uint32_t seed, bool edges) {
    std::mt19937 random(seed);
    const std::size_t size = stdlib::bytes_of(format);
    std::vector<std::uint8_t> out(count * size);
    for (std::uint8_t& byte : out) byte = std::uint8_t(random());
    const std::uint16_t special[] = {0x0000, 0x8000, 0x0001, 0x83ff, 0x0400, 0x7bff};
    const std::uint8_t exponents[] = {0, 1, 2, 127, 254, 255};
    for (std::size_t block = 0; block < count; ++block) {
        for (const std::size_t offset : halves_of(format)) {
            std::uint16_t bits = half(double(random() % 2001) / 1e5 - 0.01).bits;
            if (edges && block < std::size(special)) bits = special[block];
            out[block * size + offset] = std::uint8_t(bits);
            out[block * size + offset + 1] = std::uint8_t(bits >> 8);
        }
        if (format != stdlib::Quantised::MXFP4) continue;
        const bool is_edge = edges && block < std::size(exponents);
        out[block * size] = is_edge ? exponents[block] : std::uint8_t(116 + random() % 8);
    }
    return out;
}

std::span<const std::vector<std::uint32_t>> samples_of(const KernelInfo& kernel) {
    std::string all, names;
    for (const ir::Parameter& parameter : kernel.parameters) {
        all += (all.empty() ? "" : " ") + parameter.name;
        if (parameter.type == ir::Type::U32) names += (names.empty() ? "" : " ") + parameter.name;
    }
    for (const Samples& samples : all_samples)
        if (samples.names == all || samples.names == names) return samples.values;
    throw Error(fmt::format("'{}' has the numbers {}, and there are no samples of these", kernel.name, names),
                "add them to tests/differential/stdlib/samples.cpp");
}

std::vector<stdlib::Example::Argument> arguments_of(const stdlib::Entry& entry, std::span<const std::uint32_t> values) {
    const KernelInfo& kernel = entry.info();
    const bool odd = values.front() % 2 == 1;
    std::vector<stdlib::Example::Argument> out;
    std::vector<runtime::Argument> numbers;
    for (const ir::Parameter& parameter : kernel.parameters) {
        stdlib::Example::Argument argument{.type = parameter.type, .is_number = true};
        if (parameter.access != ir::Access::Value)
            argument = {.type = parameter.element};
        else if (parameter.type == ir::Type::U32)
            argument.bits = values[0] * parameter.multiple, values = values.subspan(1);
        else
            argument.bits = std::bit_cast<std::uint32_t>(number_of(parameter.name, odd));
        numbers.push_back({.type = argument.type, .bits = argument.bits});
        out.push_back(std::move(argument));
    }
    const stdlib::Call call(kernel, numbers);
    for (std::uint32_t i = 0; i < out.size(); ++i) {
        if (out[i].is_number) continue;
        const ir::Parameter& parameter = kernel.parameters[i];
        const std::size_t elements =
            kernel.view_at(i) ? std::size_t(call[parameter.name + "_extent0"]) * call[parameter.name + "_pitch"]
                              : call.elements(entry.recipe->sizes_of(*entry.variant), parameter.name).value_or(1);
        out[i].bytes = contents(entry, parameter, elements, i + 1);
    }
    return out;
}

void check_expected(const stdlib::Example::Expected& expected, ir::Type type, std::span<const std::uint8_t> got) {
    std::size_t wrong = 0, first = 0;
    REQUIRE(expected.wanted.size() * info(type).bytes == got.size());
    for (std::size_t i = 0; i < expected.wanted.size(); ++i) {
        const double x = element(got, i, type), wanted = expected.wanted[i];
        const bool is_too_large = type == ir::Type::F16 && std::isinf(float(half(float(wanted))));
        const bool right = x == (is_too_large ? double(float(half(float(wanted)))) : wanted) ||
                           std::abs(x - wanted) <= expected.bound(i, type) || (std::isnan(wanted) && std::isnan(x));
        if (!right && wrong++ == 0) first = i;
    }
    if (wrong == 0) return;
    FAIL_CHECK(wrong << " of " << expected.wanted.size() << " elements are wrong, the first is " << first << ": "
                     << element(got, first, type) << " instead of " << expected.wanted[first] << " +- "
                     << expected.bound(first, type));
}

}  // namespace ikat::test
