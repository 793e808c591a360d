// SPDX-License-Identifier: Apache-2.0
// Products of quantised weights: all formats with all numbers of tokens, types and places; all code assembled. Of these
// cases a sample, without IKAT_ALL_CASES.
#include "codegen/pipeline/compile.hpp"
#include "stdlib/quantised/product_kernels.hpp"
#include "tests/device.hpp"
#include "tests/differential/stdlib/quantised_product.hpp"
#include "tests/ptxas.hpp"
#include "tests/targets.hpp"

namespace ikat::test {

using stdlib::Activations;
constexpr Activations all_activations[] = {Activations::exact, Activations::q8_1};

TEST_CASE("quantised products of all formats and all numbers of tokens and rows") {
    const runtime::Device device = open_device();
    tests::Sample sample(5);
    for (const Quantised format : quantised_formats())
        for (const Activations activations : all_activations)
            for (const std::uint32_t tokens : {1u, 2u, 3u, 4u, 5u, 6u, 7u, 8u, 9u, 17u}) {
                if (tokens > 8 && activations == Activations::exact) continue;  // on tensor cores
                for (const std::uint32_t rows : {1u, 3u, 4u, 5u, 7u, 8u, 9u, 17u})
                    for (const std::uint64_t columns : columns_of(format)) {
                        if (!sample.next()) continue;
                        const ProductWeights weights(device, format, rows, columns, 0, 0);
                        check_product<float, float>(device, weights, tokens, activations, Place::packed);
                    }
            }
}

TEST_CASE("quantised products of all formats, types and places") {
    const runtime::Device device = open_device();
    tests::Sample sample(11);
    for (const Quantised format : quantised_formats())
        for (const Activations activations : all_activations)
            for (const Place place : {Place::packed, Place::aligned, Place::odd})
                for (const std::uint32_t first : {0u, 2u, 16u, 22u})
                    for (const std::uint32_t tokens : {1u, 2u, 7u, 8u}) {
                        const ProductWeights weights(device, format, 9, columns_of(format)[1], first % 3, first);
                        const auto check = [&]<class X, class Y>() {
                            if (sample.next()) check_product<X, Y>(device, weights, tokens, activations, place);
                        };
                        const auto check_to_all = [&]<class X>() {
                            check.operator()<X, float>(), check.operator()<X, half>(), check.operator()<X, bfloat16>();
                        };
                        check_to_all.operator()<float>();
                        check_to_all.operator()<half>();
                        check_to_all.operator()<bfloat16>();
                    }
}

TEST_CASE("quantised products of all formats in all orders of warps") {
    const runtime::Device device = open_device({.check = "races", .schedules = 8});
    tests::Sample sample(5);
    for (const Quantised format : quantised_formats())
        for (const Activations activations : all_activations)
            for (const std::uint32_t tokens : {1u, 2u, 8u}) {
                if (!sample.next()) continue;
                const ProductWeights weights(device, format, 9, columns_of(format)[2], 1, 2);
                check_product<half, float>(device, weights, tokens, activations, Place::odd);
                check_product<bfloat16, half>(device, weights, tokens, activations, Place::packed);
            }
}

TEST_CASE("all quantised products are assembled without spills") {
    if (tests::skip_without_ptxas()) return;
    tests::Sample sample(23);
    for (const Quantised format : quantised_formats())
        for (const ir::Type x : {ir::Type::F32, ir::Type::F16, ir::Type::U32})
            for (std::uint32_t tokens = 1; tokens <= 8; ++tokens)
                for (const bool are_aligned : {false, true})
                    for (const char* const target : {"sm_80", "sm_90a"}) {
                        if (!sample.next()) continue;
                        const stdlib::ProductKernel is{format, tokens, x, ir::Type::F16, are_aligned, are_aligned};
                        const auto report = tests::assemble(compile(is.handle().ast(), {.target = target}).ptx, target);
                        INFO(is.name() << ", for " << target << "\n" << report.log);
                        CHECK(report.clean());
                    }
}

}  // namespace ikat::test
