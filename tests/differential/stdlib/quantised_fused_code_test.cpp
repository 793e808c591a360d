// SPDX-License-Identifier: Apache-2.0
// The code of fused products of quantised weights: assembled without a spill or a warning; what it costs.
#include <algorithm>

#include "codegen/pipeline/compile.hpp"
#include "stdlib/quantised/fused.hpp"
#include "stdlib/quantised/fused_kernels.hpp"
#include "tests/catch.hpp"
#include "tests/differential/stdlib/samples.hpp"
#include "tests/ptxas.hpp"

namespace ikat::test {
namespace {

using stdlib::NormProductKernel, stdlib::PartsKernel, stdlib::Quantised, stdlib::SwigluKernel;

void check_code(const auto& is, std::initializer_list<const char*> targets) {
    for (const char* const target : targets) {
        const auto report = tests::assemble(compile(is.handle().ast(), {.target = target}).ptx, target);
        INFO(is.name() << ", for " << target << "\n" << report.log);
        CHECK(report.clean());
    }
}

}  // namespace

TEST_CASE("fused quantised products are assembled without spills") {
    if (tests::skip_without_ptxas()) return;
    for (const auto& [a, b] : {std::pair{Quantised::Q4_K, Quantised::Q6_K}, {Quantised::Q5_0, Quantised::Q5_K}})
        for (const std::uint32_t tokens : {1u, 8u}) {
            for (const ir::Type x : {ir::Type::F16, ir::Type::U32}) {
                check_code(SwigluKernel{.formats = {a, b}, .tokens = tokens, .x = x}, {"sm_80", "sm_90a"});
                check_code(PartsKernel{.parts = {{a}, {a}, {b}}, .tokens = tokens, .x = x}, {"sm_90a"});
            }
            check_code(NormProductKernel{.format = a, .tokens = tokens}, {"sm_80", "sm_90a"});
            check_code(NormProductKernel{b, tokens, ir::Type::F16, ir::Type::F32, ir::Type::F16, false, false, false},
                       {"sm_90a"});
        }
}

namespace {

/// Of 16 rows of 4096 weights of Q4_K. The buffers are those of the call.
struct Traffic {
    std::vector<emulator::LaunchTraffic> launches{};
    const runtime::Device device = runtime::Device::open({.device = "emulator", .threads = 1, .traffic = &launches});
    static constexpr std::uint64_t rows = 16, columns = 4096, bytes = rows * columns / 256 * 144;
    runtime::Buffer<std::uint8_t> a = device.upload(random_blocks(Quantised::Q4_K, rows*columns / 256, 1), "a"),
                                  b = device.upload(random_blocks(Quantised::Q4_K, rows*columns / 256, 2), "b");

    runtime::TensorView weights(const runtime::Buffer<std::uint8_t>& of) const {
        return stdlib::quantised_view(of, Quantised::Q4_K, {rows, columns});
    }
    std::uint64_t moved(const runtime::Buffer<std::uint8_t>& of) const {
        std::uint64_t out = 0;
        for (const auto& launch : launches)
            for (const auto& each : launch.buffers)
                if (each.address == of.memory().whole().address()) out += each.read.moved;
        return out;
    }
};

}  // namespace

TEST_CASE("fused quantised products move their weights once") {
    for (const std::uint64_t tokens : {1u, 8u}) {
        for (const bool are_parts : {false, true}) {
            Traffic of;
            const auto x = of.device.upload(std::vector<float>(tokens * of.columns, 1), "x");
            auto y = of.device.buffer<float>(tokens * of.rows, "y"), z = of.device.buffer<float>(tokens * of.rows, "z");
            const auto X = x.view(tokens, of.columns);
            const auto Y = y.view(tokens, of.rows), Z = z.view(tokens, of.rows);
            if (are_parts)
                stdlib::gemm_parts(of.device, X, {{of.weights(of.a), Y}, {of.weights(of.b), Z}});
            else
                stdlib::gate_up_swiglu(of.device, of.weights(of.a), of.weights(of.b), X, Y);
            INFO(tokens << " tokens");
            CHECK(of.launches.size() == 1);
            for (const auto* each : {&of.a, &of.b}) CHECK(double(of.moved(*each)) <= 1.06 * double(of.bytes));
        }
        Traffic of;
        const auto x = of.device.upload(std::vector<float>(tokens * of.columns, 1), "x");
        auto y = of.device.buffer<float>(tokens * of.rows, "y");
        const auto gamma = of.device.upload(std::vector<float>(of.columns, 1), "gamma");
        stdlib::rmsnorm_gemv(of.device, of.weights(of.a), x.view(tokens, of.columns), gamma, y.view(tokens, of.rows),
                             1e-5f);
        CHECK(of.launches.size() == 1);
        CHECK(double(of.moved(of.a)) <= 1.06 * double(of.bytes));
    }
}

}  // namespace ikat::test
