// SPDX-License-Identifier: Apache-2.0
// The code of products of quantised weights: assembled without a spill or a warning; what more tokens cost.
#include <algorithm>
#include <vector>

#include "codegen/pipeline/compile.hpp"
#include "runtime/device.hpp"
#include "stdlib/gemm/gemm.hpp"
#include "stdlib/math/math.hpp"
#include "stdlib/quantised/packed_tensor_product.hpp"
#include "stdlib/quantised/product.hpp"
#include "stdlib/quantised/product_kernels.hpp"
#include "stdlib/quantised/quantised.hpp"
#include "stdlib/quantised/tensor_product.hpp"
#include "tests/catch.hpp"
#include "tests/differential/stdlib/samples.hpp"
#include "tests/ptxas.hpp"
#include "tests/targets.hpp"

namespace ikat::test {
namespace {

using stdlib::Activations, stdlib::ArrangeKernel, stdlib::PackedTensorKernel, stdlib::ProductKernel, stdlib::Quantised,
    stdlib::TensorProductKernel;

/// Of the kernels that it is given, each for two targets, every fifth; all with IKAT_ALL_CASES.
class Assembler {
public:
    void check(const auto& is, std::initializer_list<const char*> targets = {"sm_80", "sm_90a"}) {
        for (const char* const target : targets) {
            if (!sample_.next()) continue;
            const auto report = tests::assemble(compile(is.handle().ast(), {.target = target}).ptx, target);
            INFO(is.name() << ", for " << target << "\n" << report.log);
            CHECK(report.clean());
        }
    }

private:
    tests::Sample sample_{5};
};

}  // namespace

TEST_CASE("quantised products are assembled without spills") {
    if (tests::skip_without_ptxas()) return;
    Assembler assembler;
    for (const Quantised format : quantised_formats())
        for (const ir::Type x : {ir::Type::F32, ir::Type::U32}) assembler.check(ProductKernel{format, 8, x});
}

TEST_CASE("quantised products of other types and places are assembled without spills") {
    if (tests::skip_without_ptxas()) return;
    Assembler assembler;
    for (const Quantised format : {Quantised::Q5_0, Quantised::Q5_K, Quantised::MXFP4})
        for (const std::uint32_t tokens : {1u, 8u}) {
            assembler.check(ProductKernel{format, tokens, ir::Type::F16, ir::Type::F16});
            assembler.check(ProductKernel{format, tokens, ir::Type::BF16, ir::Type::BF16, false, false});
            assembler.check(ProductKernel{format, tokens, ir::Type::F32, ir::Type::BF16, false, false});
            assembler.check(ProductKernel{format, tokens, ir::Type::U32, ir::Type::F16, false, false});
        }
}

TEST_CASE("quantised products on tensor cores are assembled without spills") {
    if (tests::skip_without_ptxas()) return;
    Assembler assembler;
    for (const Quantised format : quantised_formats())
        for (const bool is_aligned : {true, false})
            assembler.check(TensorProductKernel{.format = format, .tokens = 64, .w_is_aligned = is_aligned});
    for (const Quantised format : quantised_formats())
        for (const bool is_aligned : {true, false})
            assembler.check(TensorProductKernel{.format = format, .w_is_aligned = is_aligned, .is_gated = true});
    for (const std::uint32_t tokens : {16u, 32u})
        assembler.check(TensorProductKernel{.format = Quantised::Q6_K, .tokens = tokens, .y = ir::Type::BF16});
    for (const ir::Type x : {ir::Type::F32, ir::Type::F16, ir::Type::BF16})
        for (const std::uint32_t sums : {0u, 16u, 32u, 48u}) assembler.check(ArrangeKernel{x, sums});
}

TEST_CASE("quantised products by wgmma are assembled without spills") {
    if (tests::skip_without_ptxas()) return;
    Assembler assembler;
    for (const Quantised format : quantised_formats())
        for (const bool is_aligned : {true, false})
            assembler.check(TensorProductKernel{.format = format, .tokens = 128, .w_is_aligned = is_aligned},
                            {"sm_90a"});
}

TEST_CASE("quantised products of bytes on tensor cores are assembled without spills") {
    if (tests::skip_without_ptxas()) return;
    Assembler assembler;
    for (const Quantised format : quantised_formats())
        for (const bool is_aligned : {true, false})
            for (const bool is_gated : {false, true})
                assembler.check(PackedTensorKernel{.format = format, .w_is_aligned = is_aligned, .is_gated = is_gated});
    for (const std::uint32_t tokens : {16u, 32u})
        assembler.check(PackedTensorKernel{.format = Quantised::Q2_K, .tokens = tokens, .y = ir::Type::F16});
}

TEST_CASE("quantised products by stream-k are assembled without spills") {
    if (tests::skip_without_ptxas()) return;
    Assembler assembler;
    for (const Quantised format : quantised_formats())
        for (const bool is_aligned : {true, false}) {
            TensorProductKernel is{.format = format,
                                   .tokens = stdlib::max_tokens_of_stream(format),
                                   .w_is_aligned = is_aligned,
                                   .is_streamed = true};
            assembler.check(is);
            is.tokens = 128;
            assembler.check(is, {"sm_90a"});
            assembler.check(PackedTensorKernel{.format = format, .w_is_aligned = is_aligned, .is_streamed = true});
        }
    for (const ir::Type y : {ir::Type::F32, ir::Type::F16, ir::Type::BF16})
        assembler.check(stdlib::JoinSharesKernel{.y = y});
}

TEST_CASE("epilogues of quantised products are assembled without spills") {
    if (tests::skip_without_ptxas()) return;
    Assembler assembler;
    const auto device = runtime::Device::open({.device = "emulator"});
    const auto bias = device.buffer<float>(16, "bias");
    const auto gate = device.buffer<half>(16, "gate");
    const stdlib::EpilogueCode code(stdlib::epilogue(
        "layer", [](auto sum, auto at, auto bias, auto gate) { return stdlib::silu(sum + bias[at.column]) * gate[at]; },
        bias, gate.view(1, 16)));
    for (const Quantised format : {Quantised::Q4_0, Quantised::Q2_K, Quantised::Q6_K}) {
        assembler.check(TensorProductKernel{.format = format, .w_is_aligned = false, .epilogue = code});
        assembler.check(PackedTensorKernel{.format = format, .w_is_aligned = false, .epilogue = code});
        for (const ir::Type x : {ir::Type::F32, ir::Type::U32})
            assembler.check(ProductKernel{.format = format, .tokens = 8, .x = x, .epilogue = code});
    }
    for (const ir::Type y : {ir::Type::F32, ir::Type::F16}) assembler.check(stdlib::AddPartsKernel{y, code});
}

namespace {

struct Cost {
    std::uint64_t lane_instructions = 0, weights_moved = 0;
    emulator::SharedTraffic shared{};  // all of it
};
/// Of rows of 4096 weights.
Cost cost_of(Quantised format, std::uint64_t rows, std::uint32_t tokens, Activations activations,
             const char* target = "sm_80") {
    std::vector<emulator::LaunchTraffic> traffic;
    const auto device =
        runtime::Device::open({.device = "emulator", .target = target, .threads = 1, .traffic = &traffic});
    const std::uint64_t columns = 4096;
    const auto w = device.upload(random_blocks(format, rows * columns / stdlib::weights_of(format), 1), "W");
    const auto x = device.upload(std::vector<float>(tokens * columns, 1), "X");
    auto y = device.buffer<float>(tokens * rows, "Y");
    stdlib::gemm(device, stdlib::quantised_view(w, format, {rows, columns}), x.view(tokens, columns),
                 y.view(tokens, rows), {.activations = activations});
    for (const emulator::LaunchTraffic& launch : traffic) {
        const auto of_w =
            std::ranges::find(launch.buffers, w.memory().whole().address(), &emulator::BufferTraffic::address);
        if (of_w == launch.buffers.end()) continue;
        Cost out{launch.lane_instructions, of_w->read.moved};
        for (const emulator::SharedTraffic& each : launch.shared) out.shared.add(each);
        return out;
    }
    FAIL("no launch reads the weights");
    return {};
}

}  // namespace

TEST_CASE("weights are moved once for eight tokens, which cost less than four times one") {
    for (const Quantised format : quantised_formats())
        for (const Activations activations : {Activations::exact, Activations::q8_1}) {
            const Cost one = cost_of(format, 16, 1, activations), eight = cost_of(format, 16, 8, activations);
            INFO("format " << int(format) << ", activations " << int(activations) << ": " << one.lane_instructions
                           << " and " << eight.lane_instructions);
            const double bytes = 16.0 * 4096 / stdlib::weights_of(format) * stdlib::bytes_of(format);
            CHECK(double(eight.weights_moved) >= bytes);
            CHECK(double(eight.weights_moved) <= 1.06 * bytes);  // some sectors are of two pieces
            CHECK(eight.lane_instructions <= one.lane_instructions * (activations == Activations::exact ? 3 : 4));
        }
}

TEST_CASE("products of weights on tensor cores are few instructions, without bank conflicts") {
    // Of a warp, for 4096 products, one or two of which are mma; the prologue and the results are among them.
    struct Limit {
        Quantised format;
        double exact, q8_1, by_wgmma;
    };
    for (const Limit& limit : {Limit{Quantised::Q4_0, 14.5, 25.9, 10.4}, Limit{Quantised::Q8_0, 15.6, 24.7, 10.9},
                               Limit{Quantised::Q4_K, 13.8, 36.8, 7.9}, Limit{Quantised::Q6_K, 26, 48.4, 18.6}}) {
        INFO("format " << int(limit.format));
        const auto cost = [&](std::uint32_t tokens, Activations activations, const char* target = "sm_80") {
            const Cost all = cost_of(limit.format, 128, tokens, activations, target);
            CHECK(all.shared.wavefronts == all.shared.possible);
            const double bytes = 128.0 * 4096 / stdlib::weights_of(limit.format) * stdlib::bytes_of(limit.format);
            CHECK(double(all.weights_moved) <= 1.25 * bytes);  // slices begin and end within sectors
            return double(all.lane_instructions) / 32 / (128 * tokens);
        };
        CHECK(cost(64, Activations::exact) <= limit.exact);
        CHECK(cost(64, Activations::q8_1) <= limit.q8_1);
        CHECK(cost(128, Activations::exact, "sm_90a") <= limit.by_wgmma);
    }
}

}  // namespace ikat::test
