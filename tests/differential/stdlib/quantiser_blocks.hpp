// SPDX-License-Identifier: Apache-2.0
// What tests of the device's quantisers share: numbers of all kinds, and the comparison with those of the host.
#pragma once
#include <bit>
#include <cmath>
#include <random>
#include <vector>

#include "stdlib/quantised/quantise.hpp"
#include "stdlib/quantised/quantised.hpp"
#include "tests/catch.hpp"
#include "tests/device.hpp"

namespace ikat::test {

using stdlib::Quantised;
inline constexpr Quantised quantised_by_devices[] = {Quantised::Q4_0, Quantised::Q8_0, Quantised::MXFP4};

/// Blocks of 32 finite numbers, each of another kind than the one before.
inline std::vector<float> numbers_of_blocks(std::size_t blocks, std::uint32_t seed) {
    std::mt19937 random(seed);
    const auto below = [&](std::uint32_t end) { return std::uint32_t(random() % end); };
    const auto of_exponent = [&](std::uint32_t biased) {
        return std::bit_cast<float>(below(2) << 31 | biased << 23 | below(1u << 23));
    };
    std::vector<float> out;
    for (std::size_t block = 0; block < blocks; ++block) {
        const std::uint32_t exponent = below(255);  // of the block
        const float constant = of_exponent(exponent);
        for (std::uint32_t i = 0; i < 32; ++i) switch (block % 8) {
                case 0: out.push_back(float(std::int32_t(below(1 << 24)) - (1 << 23)) * 0x1p-23f); break;
                case 1: out.push_back(of_exponent(100 + below(40))); break;
                case 2: out.push_back(below(2) ? constant : -constant); break;
                case 3: out.push_back(below(40) ? 0.0f : of_exponent(0)); break;
                case 4: out.push_back(of_exponent(below(3))); break;
                case 5:
                    out.push_back(float(std::int32_t(below(33)) - 16) * std::ldexp(0.5f, int(exponent) - 127));
                    break;
                case 6: out.push_back(of_exponent(exponent)); break;
                default: out.push_back(below(2) ? -0.0f : of_exponent(std::min(exponent + below(3), 254u))); break;
            }
        // Just below a power of two, where a rounded logarithm is an integer.

        if (block % 16 == 6) out.back() = std::bit_cast<float>((exponent << 23 | 0x7fffffu) - below(64));
    }
    for (float& each : out)
        if (!std::isfinite(each)) each = 1;
    return out;
}

/// How many bytes of these blocks are not those of the host.
template <class X>
std::size_t different_bytes(const runtime::Device& device, Quantised format, const std::vector<float>& numbers) {
    std::vector<X> x;
    std::vector<float> kept;
    for (const float each : numbers) {
        const X rounded(each);
        x.push_back(std::isfinite(float(rounded)) ? rounded : X(1.0f));
        kept.push_back(float(x.back()));
    }
    const std::vector<std::uint8_t> want = stdlib::stored::quantise(format, kept);
    auto w = device.upload(std::vector<std::uint8_t>(want.size(), 0xa5), "W");
    stdlib::quantise(device, device.upload(x, "x"),
                     runtime::MutableTensorView(stdlib::quantised_view(w, format, {numbers.size()})));
    const std::vector<std::uint8_t> got = w.download();
    std::size_t out = 0;
    for (std::size_t i = 0; i < want.size(); ++i) out += got[i] != want[i];
    return out;
}

}  // namespace ikat::test
