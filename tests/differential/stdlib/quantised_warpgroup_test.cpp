// SPDX-License-Identifier: Apache-2.0
// Exact products of quantised weights by wgmma, with the bits of those by mma.sync: the emulator adds up both in the
// same order.
#include <vector>

#include <fmt/format.h>

#include "stdlib/quantised/product_call.hpp"
#include "tests/differential/stdlib/quantised_product.hpp"
#include "tests/targets.hpp"

namespace ikat::test {
namespace {

using namespace stdlib;

/// What a product is for a target.
template <class X, class Y>
std::vector<Y> product(const char* target, Quantised format, std::uint64_t rows, std::uint64_t columns,
                       std::uint32_t first, std::uint64_t tokens, Place place,
                       const runtime::OpenOptions& options = {}) {
    runtime::OpenOptions open = options;
    open.device = "emulator", open.target = target;
    const auto device = runtime::Device::open(open);
    const ProductWeights weights(device, format, rows, columns, first != 0, first);
    const Placed<X> x(device, place, {tokens, columns}, 1);
    const Placed<Y> y(device, place, {tokens, rows}, 2);
    gemm(device, weights.view(), x, y);
    CHECK(y.changed_gaps() == 0);
    return y.exact();
}
template <class X, class Y>
void check_same(Quantised format, std::uint64_t rows, std::uint64_t columns, std::uint32_t first, std::uint64_t tokens,
                Place place) {
    INFO("format " << int(format) << ", " << rows << " x " << columns << ", " << tokens << " tokens, from byte "
                   << first << ", place " << int(place));
    const auto of = [&](const char* target) {
        return product<X, Y>(target, format, rows, columns, first, tokens, place);
    };
    const std::vector<Y> got = of("sm_90a"), want = of("sm_80");
    std::size_t different = 0;
    for (std::size_t i = 0; i < want.size(); ++i) different += !(float(got[i]) == float(want[i]));
    CHECK(different == 0);
}

}  // namespace

TEST_CASE("quantised products by wgmma have the bits of those by mma.sync") {
    std::uint32_t number = 0;
    tests::Sample cases(3);
    for (const Quantised format : quantised_formats()) {
        const std::uint64_t weights = weights_of(format);
        const std::uint32_t odd_byte = format == Quantised::MXFP4 ? 17 : 18;
        // Of blocks of 32: a part of a slice; of all: two slices, and two parts of the columns.
        if (cases.next()) check_same<half, float>(format, 129, weights == 32 ? 96 : 512, 0, 65, Place::packed);
        if (cases.next()) check_same<float, half>(format, 5, 2048 + weights, odd_byte, 127 + number++ % 3, Place::odd);
    }
}

TEST_CASE("quantised products by wgmma of all numbers of tokens and rows") {
    tests::Sample cases(5);
    for (const Quantised format : {Quantised::Q4_0, Quantised::Q6_K, Quantised::Q5_K}) {
        const std::uint64_t columns = 2 * weights_of(format);
        for (const std::uint64_t tokens : {66u, 128u, 129u, 257u})
            if (cases.next()) check_same<half, float>(format, 3, columns, 0, tokens, Place::aligned);
        for (const std::uint64_t rows : {1u, 127u, 128u, 200u})
            if (cases.next()) check_same<bfloat16, bfloat16>(format, rows, columns, 0, 70, Place::odd);
    }
}

TEST_CASE("quantised products by wgmma in all orders of warps") {
    for (const Quantised format : {Quantised::Q4_K, Quantised::Q5_1, Quantised::Q6_K}) {
        const auto got = product<float, float>("sm_90a", format, 9, 512, 2, 65, Place::odd,
                                               {.threads = 1, .check = "races", .schedules = 4});
        CHECK(got == product<float, float>("sm_80", format, 9, 512, 2, 65, Place::odd));
    }
}

TEST_CASE("quantised products of more than 64 tokens are by wgmma where it is") {
    const auto tokens = [](const char* target, std::uint64_t count) {
        const auto device = runtime::Device::open({.device = "emulator", .target = target});
        const Queue queue(device);
        return tokens_of_product_tile(queue, Quantised::Q8_0, count);
    };
    CHECK(tokens("sm_90a", 65) == 128);
    CHECK(tokens("sm_90a", 64) == 64);
    CHECK(tokens("sm_90", 65) == 64);
    CHECK(tokens("sm_80", 4096) == 64);
}

}  // namespace ikat::test
