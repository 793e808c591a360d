// SPDX-License-Identifier: Apache-2.0
// The device's quantisers: 24 000 blocks of each format; their code assembled.
#include "codegen/pipeline/compile.hpp"
#include "stdlib/quantised/quantiser_kernels.hpp"
#include "tests/differential/stdlib/quantiser_blocks.hpp"
#include "tests/ptxas.hpp"

namespace ikat::test {

TEST_CASE("many of a device's quantised blocks are the host's") {
    const runtime::Device device = open_device();
    for (const Quantised format : quantised_by_devices)
        for (std::uint32_t seed = 10; seed < 34; ++seed) {
            INFO("format " << int(format) << ", seed " << seed);
            const std::vector<float> numbers = numbers_of_blocks(1000, seed);
            CHECK(different_bytes<float>(device, format, numbers) == 0);
            CHECK(different_bytes<half>(device, format, numbers) == 0);
            CHECK(different_bytes<bfloat16>(device, format, numbers) == 0);
        }
}

TEST_CASE("a device's quantisers are assembled without spills") {
    if (tests::skip_without_ptxas()) return;
    for (const Quantised format : quantised_by_devices)
        for (const ir::Type x : {ir::Type::F32, ir::Type::F16, ir::Type::BF16})
            for (const bool is_aligned : {false, true})
                for (const char* const target : {"sm_80", "sm_90a"}) {
                    const stdlib::QuantiserKernel is{format, x, is_aligned};
                    const auto report = tests::assemble(compile(is.handle().ast(), {.target = target}).ptx, target);
                    INFO(is.name() << ", for " << target << "\n" << report.log);
                    CHECK(report.clean());
                }
}

}  // namespace ikat::test
