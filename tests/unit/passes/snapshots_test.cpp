// SPDX-License-Identifier: Apache-2.0
// A compilation that is stopped after a stage, and continues from there.
#include <ikat/ikat.hpp>

#include "codegen/ir/text/parse.hpp"
#include "codegen/ir/text/print.hpp"
#include "codegen/pipeline/compile.hpp"
#include "stdlib/catalogue/registry.hpp"
#include "tests/catch.hpp"
#include "tests/message.hpp"

namespace ikat::tests {
namespace {

const auto doubled = device_fn("doubled", params("x"), [](f32 x) { return x + x; });
const auto calls = kernel("calls", params("x", "n"), [](InOut<float> x, u32 n) {
    u32 i = global_id().x;
    if_(i < n, [&] { x[i] = doubled(x[i]); });
});

bool stops_there(const std::string& stage) { return stage != "ast" && stage != "registers" && stage != "ptx"; }

}  // namespace

TEST_CASE("snapshots: what continues from any stage is what is compiled at once") {
    const trace::KernelHandle kernels[] = {calls, stdlib::find("saxpy")->handle(),
                                           stdlib::find("gemm_tiled")->handle()};
    for (const trace::KernelHandle& kernel : kernels)
        for (const std::string target : {"sm_80", "sm_90a"}) {
            const Compiled whole = compile(kernel.ast(), {.target = target, .keep_stages = true});
            std::size_t stopped = 0;
            for (const Compiled::Stage& stage : whole.stages) {
                if (!stops_there(stage.name)) continue;
                INFO(kernel.name() << " for " << target << " after " << stage.name);
                ++stopped;
                const Compiled part = compile(kernel.ast(), {.target = target, .stop_after = stage.name});
                CHECK(part.ptx.empty());
                CHECK(part.snapshot.stage == stage.name);
                CHECK(part.stages.back().name == stage.name);
                CHECK(ir::print(part.snapshot.module.functions) == stage.text);
                const Compiled rest = compile(part.snapshot, {.target = target});
                CHECK(rest.ptx == whole.ptx);
                CHECK(rest.info == whole.info);
                if (stage.name == "select") break;
                // In two steps.
                const Compiled later = compile(part.snapshot, {.target = target, .stop_after = "select"});
                CHECK(compile(later.snapshot, {.target = target}).ptx == whole.ptx);
            }
            CHECK(stopped + 3 == whole.stages.size());
        }
}

TEST_CASE("snapshots: dynamic shared memory that a launch gives, and a kernel's own") {
    const auto own = kernel("own", [](Out<float> y) {
        Shared<float, 16384> s;
        s[thread_id().x] = 1.0f;
        y[thread_id().x] = s[thread_id().x];
    });
    const auto given = kernel("given", [](Out<float> y, u32 n) {
        Shared<float, 16384> s;
        const auto more = dynamic_shared<float>(n);
        more[thread_id().x] = 1.0f;
        s[thread_id().x] = more[thread_id().x];
        y[thread_id().x] = s[thread_id().x];
    });
    for (const char* const stage : {"ssa", "opt", "shared", "select"})
        for (const trace::KernelHandle& kernel : {trace::KernelHandle(own.handle()), given.handle()}) {
            INFO(kernel.name() << " after " << stage);
            Snapshot left = compile(kernel.ast(), {.target = "sm_90a", .stop_after = stage}).snapshot;
            left.info = {};
            const KernelInfo info = compile(left, {.target = "sm_90a"}).info;
            CHECK(info.takes_dynamic_shared == (kernel.name() == std::string("given")));
            CHECK(info.own_dynamic_shared_bytes == 65536);
        }
}

TEST_CASE("snapshots: of other options, and stages that there are not") {
    const auto& saxpy = stdlib::find("saxpy")->handle().ast();
    const Compiled chosen = compile(saxpy, {.passes = "cse,dce,cse,cse", .stop_after = "cse.3"});
    CHECK(chosen.snapshot.stage == "cse.3");
    CHECK(compile(chosen.snapshot, {.passes = "cse,dce,cse,cse"}).ptx ==
          compile(saxpy, {.passes = "cse,dce,cse,cse"}).ptx);
    CHECK_THAT(message_of([&] { compile(chosen.snapshot); }), contains("there is no stage 'cse.3'"));
    CHECK_THAT(message_of([&] { compile(saxpy, {.stop_after = "cse.9"}); }),
               contains("there is no stage 'cse.9'") && contains("stages are ast, ssa, grids, unroll, cfg, "));
    for (const char* const stage : {"ast", "registers", "ptx"})
        CHECK_THAT(message_of([&] { compile(saxpy, {.stop_after = stage}); }),
                   contains("the compiler cannot stop after stage '" + std::string(stage) + "'"));
    const Compiled late = compile(saxpy, {.stop_after = "opt"});
    CHECK_THAT(message_of([&] { compile(late.snapshot, {.stop_after = "ssa"}); }),
               contains("cannot stop after stage 'ssa'"));
    CHECK_THAT(message_of([&] { compile(Snapshot{}); }), contains("a snapshot of nothing"));
}

}  // namespace ikat::tests
