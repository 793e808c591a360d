// SPDX-License-Identifier: Apache-2.0
// Kernels of functions for training that are made when they are asked for, which the catalogue's own test does not see:
// ptxas takes them for every target, without spills.
#include <set>

#include "codegen/pipeline/compile.hpp"
#include "runtime/exec/recorder.hpp"
#include "stdlib/embedding/embedding.hpp"
#include "stdlib/gemm/gemm.hpp"
#include "stdlib/layout/layout.hpp"
#include "stdlib/reduction/axes.hpp"
#include "tests/catch.hpp"
#include "tests/ptxas.hpp"
#include "tests/targets.hpp"

namespace ikat::test {
namespace {
namespace made_by_key {

using runtime::Device, runtime::MutableTensorView, runtime::Queue;

/// Calls that together have most of the kernels, of one type.
template <class T>
void call_all(const Device& device, const Queue& queue) {
    auto x = device.buffer<T>(4096), y = device.buffer<T>(4096);
    auto sums = device.buffer<float>(4096), numbers = device.buffer<float>(4096);
    const auto ids = device.buffer<std::uint32_t>(2048);
    auto indices = device.buffer<std::uint32_t>(64);
    for (const std::uint32_t tokens : {64, 1024, 2048})  // of one tile of the sort, and of several
        stdlib::scatter_add_rows(queue, ids.slice(0, tokens), x.view(tokens, 2), sums.view(100, 2));
    stdlib::interleave_heads(queue, x.view(2, 32, 64), y.view(32, 2, 64));
    stdlib::interleave_heads(queue, x.view(2, 33, 61), y.view(33, 2, 61));
    for (const auto what : {stdlib::Reduction::sum, stdlib::Reduction::variance, stdlib::Reduction::max}) {
        stdlib::reduce(queue, what, x.view(64, 64), y.slice(0, 64), {1});
        stdlib::reduce(queue, what, x.view(64, 64), y.slice(0, 64), {0});
        stdlib::reduce(queue, what, x, y.slice(0, 1), {0});
    }
    stdlib::reduce(queue, stdlib::Reduction::argmax, x.view(64, 64), indices, {1});
    if constexpr (std::is_same_v<T, float>)
        for (const auto a : {stdlib::MatrixOrder::Rows, stdlib::MatrixOrder::Columns})
            for (const auto b : {stdlib::MatrixOrder::Rows, stdlib::MatrixOrder::Columns})
                stdlib::gemm_f32(queue, x.view(64, 64), y.view(64, 64), sums.view(64, 64), {.a = a, .b = b});
}

}  // namespace made_by_key
}  // namespace

TEST_CASE("training: kernels that are made when they are asked for are assembled without spills") {
    if (tests::skip_without_ptxas()) return;
    const auto device = runtime::Device::open({.device = "emulator", .is_plan = true});
    runtime::Recorder recorder(device, runtime::Recorder::Runs::No);
    made_by_key::call_all<float>(device, recorder);
    made_by_key::call_all<half>(device, recorder);
    made_by_key::call_all<bfloat16>(device, recorder);
    constexpr const char* targets[] = {"sm_75", "sm_80", "sm_90", "sm_120"};
    std::set<std::string> names;
    for (const auto& launch : recorder.launches()) {
        if (!names.insert(launch.kernel->name()).second) continue;
        for (std::size_t which = 0; which < std::size(targets); ++which) {
            if (!tests::is_for_target(names.size(), which, std::size(targets))) continue;
            const std::string ptx = file_text(compile(launch.kernel->ast(), {.target = targets[which]}));
            const tests::PtxasReport report = tests::assemble(ptx, targets[which]);
            INFO(launch.kernel->name() << " for " << targets[which] << "\n" << report.log);
            CHECK(report.clean());
        }
    }
    CHECK(names.size() >= 30);
}

}  // namespace ikat::test
