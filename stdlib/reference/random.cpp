// SPDX-License-Identifier: Apache-2.0
// What depends on random numbers: the words of Philox on the host, and what kernels make of them.
#include <cmath>
#include <numbers>

#include "stdlib/random/philox.hpp"
#include "stdlib/reference/bounds.hpp"
#include "stdlib/spec/expected.hpp"

namespace ikat::stdlib::reference {
namespace {

std::uint64_t words_64(std::uint32_t low, std::uint32_t high) { return std::uint64_t(high) << 32 | low; }

/// The words of n elements.
std::vector<std::uint32_t> words_of(const Example& e, std::size_t n) {
    std::array<std::uint32_t, 2> key{};
    std::uint64_t offset = words_64(e.number("offset_low"), e.number("offset_high"));
    if (e.name().starts_with("dropout_state")) {
        const std::vector<std::uint32_t> state = e.words("state");
        key = {state[0], state[1]}, offset += words_64(state[2], state[3]);
    } else {
        key = {e.number("seed_low"), e.number("seed_high")};
    }
    std::vector<std::uint32_t> out;
    for (std::size_t i = 0; i < n; ++i) {
        const std::uint64_t counter = offset + i / 4;
        out.push_back(philox({std::uint32_t(counter), std::uint32_t(counter >> 32), 0, 0}, key)[i % 4]);
    }
    return out;
}

}  // namespace

void dropout(Example& e) {
    const std::vector<float> x = e["x"];
    const std::vector<std::uint32_t> words = words_of(e, x.size());
    std::vector<double> y;
    for (std::size_t i = 0; i < x.size(); ++i)
        y.push_back(words[i] >> 1 < e.number("threshold") ? 0 : double(x[i]) * double(e.real("scale")));
    e.expect("y", std::move(y), epsilon);
}

void fill_uniform(Example& e) {
    std::vector<double> x;
    for (const std::uint32_t word : words_of(e, e.number("n")))
        x.push_back(double(word >> 8) * 0x1p-24 * double(e.real("range")) + double(e.real("low")));
    e.expect("x", std::move(x), epsilon);
}

void fill_normal(Example& e) {
    const std::size_t n = e.number("n");
    const std::vector<std::uint32_t> words = words_of(e, n + 1);
    std::vector<double> x, errors;
    for (std::size_t i = 0; i < n; ++i) {
        // u and the angle have the bits of the kernel; from there on the logarithm, the sine and the cosine are within
        // an ulp, the root and the product are rounded.
        const float u = std::fma(float(words[i & ~std::size_t{1}]), 0x1p-32f, 0x1p-33f);
        const float angle = float(words[i | 1] >> 8) * 0x1p-24f * float(2 * std::numbers::pi);
        const double radius = std::sqrt(-2 * std::log(double(u)));
        const double z = radius * (i % 2 == 0 ? std::cos(double(angle)) : std::sin(double(angle)));
        x.push_back(double(e.real("mean")) + double(e.real("deviation")) * z);
        errors.push_back(5 * epsilon * std::abs(double(e.real("deviation")) * z));
    }
    e.expect("x", std::move(x), 2 * epsilon, std::move(errors));
}

void advance_random(Example& e) {
    const std::vector<std::uint32_t> state = e.words("state");
    const std::uint64_t offset = words_64(state[2], state[3]) + e.number("offsets");
    std::vector<double> out{double(state[0]), double(state[1]), double(std::uint32_t(offset)), double(offset >> 32)};
    for (std::size_t i = 4; i < state.size(); ++i) out.push_back(double(state[i]));
    e.expect("state", std::move(out));
}

}  // namespace ikat::stdlib::reference
