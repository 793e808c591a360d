// SPDX-License-Identifier: Apache-2.0
// The formats of 32 weights with a step between neighbours, and MXFP4; the function for all formats.
#include "stdlib/quantised/quantise.hpp"

#include <fmt/format.h>

#include <cstring>

#include "codegen/support/diagnostic.hpp"
#include "stdlib/quantised/fit.hpp"

namespace ikat::stdlib::stored {
namespace {

/// q is 0 ... 2 middle - 1, and the number farthest from 0 has q 0: it keeps all its bits.
void fit_around(std::span<const float> x, auto& block, int middle) {
    const float d = farthest(x) / float(-middle), inverse = inverse_of(d);
    block.d = half(d);
    for (std::uint32_t i = 0; i < x.size(); ++i)
        block.set(i, std::min(whole(x[i] * inverse + (float(middle) + 0.5f)), 2 * middle - 1));
}

/// q is 0 for the smallest number and `last` for the largest.
void fit_between(std::span<const float> x, auto& block, int last) {
    const float smallest = std::ranges::min(x), largest = std::ranges::max(x);
    const float d = (largest - smallest) / float(last), inverse = inverse_of(d);
    block.d = half(d);
    block.m = half(smallest);
    for (std::uint32_t i = 0; i < x.size(); ++i)
        block.set(i, std::min(whole((x[i] - smallest) * inverse + 0.5f), last));
}

/// The place of the nearest of MXFP4's numbers, the first of two.
int nearest_mxfp4(float x, float half_unit) {
    int out = 0;
    for (int q = 1; q < int(mxfp4_doubled.size()); ++q) {
        const auto distance = [&](int of) { return std::abs(float(mxfp4_doubled[std::size_t(of)]) * half_unit - x); };
        if (distance(q) < distance(out)) out = q;
    }
    return out;
}

void check_finite(std::span<const float> x) {
    const auto bad = std::ranges::find_if_not(x, [](float each) { return std::isfinite(each); });
    if (bad == x.end()) return;
    throw Error(fmt::format("number {} to quantise is {}", bad - x.begin(), *bad),
                "blocks of quantised weights have finite numbers only");
}

const runtime::QuantisedInfo& info_of(Quantised format) {
    if (const runtime::QuantisedInfo* const info = runtime::find_info(format)) return *info;
    throw Error(fmt::format("quantised format {}", int(format)),
                fmt::format("formats are numbered from 0 to {}", std::size(runtime::quantised_formats) - 1));
}

/// `what` is the start of a sentence about this many numbers.
void check_whole(const runtime::QuantisedInfo& info, const char* what, std::uint64_t count) {
    if (count % info.weights == 0) return;
    throw Error(fmt::format("{} {} to quantise to {}", what, count, info.name),
                fmt::format("a block has {} weights, and there are only whole blocks", info.weights));
}

template <class Block>
std::vector<std::uint8_t> blocks_of(std::span<const float> x) {
    constexpr std::size_t weights = runtime::find_info(Block::format)->weights;
    std::vector<std::uint8_t> out(x.size() / weights * sizeof(Block));
    for (std::size_t at = 0; at < x.size() / weights; ++at) {
        Block block;
        fit(x.subspan(at * weights, weights), block);
        std::memcpy(out.data() + at * sizeof(Block), &block, sizeof(Block));
    }
    return out;
}

}  // namespace

void fit(std::span<const float> x, Q4_0& block) { fit_around(x, block, 8); }
void fit(std::span<const float> x, Q5_0& block) { fit_around(x, block, 16); }
void fit(std::span<const float> x, Q4_1& block) { fit_between(x, block, 15); }
void fit(std::span<const float> x, Q5_1& block) { fit_between(x, block, 31); }

void fit(std::span<const float> x, Q8_0& block) {
    const float d = std::abs(farthest(x)) / 127, inverse = inverse_of(d);
    block.d = half(d);
    for (std::uint32_t i = 0; i < x.size(); ++i) block.set(i, whole(std::round(x[i] * inverse)));
}

void fit(std::span<const float> x, MXFP4& block) {
    const float largest = std::abs(farthest(x));
    // The largest of the numbers is 6, 1.5 times 2^2. A logarithm just below an integer is rounded to it, in float.
    const auto exponent = int(std::floor(float(std::log2(double(std::max(largest, 0x1p-149f))))));
    block.exponent = std::uint8_t(std::max(exponent - 2 + 127, 0));
    const float half_unit = std::ldexp(1.0f, block.exponent - 128);
    for (std::uint32_t i = 0; i < x.size(); ++i) block.set(i, nearest_mxfp4(x[i], half_unit));
}

std::vector<std::uint8_t> quantise(Quantised format, std::span<const float> x) {
    check_whole(info_of(format), "numbers:", x.size());
    check_finite(x);
    switch (format) {
#define IKAT_ROW(format, name, weights, bytes) \
    case Quantised::format: return blocks_of<format>(x);
        IKAT_QUANTISED_FORMATS(IKAT_ROW)
#undef IKAT_ROW
    }
    return {};
}

std::vector<std::uint8_t> quantise(Quantised format, std::span<const float> x, std::uint64_t columns) {
    check_whole(info_of(format), "rows of", columns);
    if (columns == 0 ? !x.empty() : x.size() % columns != 0)
        throw Error(fmt::format("{} numbers to quantise in rows of {}", x.size(), columns), "a matrix has whole rows");
    return quantise(format, x);
}

}  // namespace ikat::stdlib::stored
