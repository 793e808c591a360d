// SPDX-License-Identifier: Apache-2.0
// What kernels say of other grids, through the compiler: nothing moves across a wait, and older targets have none.
#include <ikat/compile.hpp>
#include <ikat/ikat.hpp>

#include "codegen/ir/text/parse.hpp"
#include "codegen/ir/text/print.hpp"
#include "codegen/ir/verify.hpp"
#include "codegen/pipeline/stages.hpp"
#include "tests/catch.hpp"
#include "tests/message.hpp"

namespace ikat::tests {
namespace {

/// Loads of the same and of other places before and after a wait, of read-only memory, too; in a loop that nothing but
/// the wait keeps from being emptied.
constexpr const char* text = R"(kernel @grids(%x: in f32*, %y: inout f32*, %n: u32) {
^0:
  %x = param.u64 %x
  %y = param.u64 %y
  %n = param.u32 %n
  %zero = const.u32 0
  %before = load.f32 global.nc [%x+4]
  %old = load.f32 global [%y+4]
  store.f32 global [%y+8], %before
  grid_wait
  %after = load.f32 global.nc [%x+4]
  %new = load.f32 global [%y+4]
  %stored = load.f32 global [%y+8]
  store.f32 global [%y+12], %after
  launch_next
  store.f32 global [%y+16], %new
  store.f32 global [%y+20], %old
  store.f32 global [%y+24], %stored
  jump ^1(%zero)
^1(%i: u32):
  grid_wait
  %again = load.f32 global.nc [%x+4]
  store.f32 global [%y+28], %again
  %one = const.u32 1
  %next = add.u32 %i, %one
  %more = lt.u32 %next, %n
  branch %more, ^1(%next), ^2
^2:
  return
}
)";

/// "load grid_wait load": what touches memory or other grids, in the order of the text.
std::string effects_in(const std::string& code) {
    constexpr std::pair<std::string_view, std::string_view> words[] = {
        {"griddepcontrol.wait", "wait "},
        {"griddepcontrol.launch_dependents", "launch "},
        {"grid_wait", "wait "},
        {"launch_next", "launch "},
        {"load.f32", "load "},
        {"ld.global", "load "},
        {"store.f32", "store "},
        {"st.global", "store "},
    };
    std::string out;
    for (std::size_t at = 0; at < code.size(); ++at)
        for (const auto& [word, means] : words)
            if (code.compare(at, word.size(), word) == 0) out += means;
    return out;
}

constexpr std::string_view in_order =
    "load load store wait load load load store launch store store store wait load store ";

std::string ptx_of(const trace::KernelHandle& kernel, const std::string& target) {
    return compile(kernel.ast(), {.target = target}).ptx;
}
std::string without_names(std::string ptx, const std::string& name) {
    for (std::size_t at; (at = ptx.find(name)) != ptx.npos;) ptx.erase(at, name.size());
    return ptx;
}

const auto body = [](bool overlaps) {
    return [=](In<float> x, In<float> w, Out<float> y, u32 n) {
        u32 i = global_id().x;
        if (overlaps) grid_wait();
        if_(i < n, [&] {
            f32 sum = 0;
            for (auto k : range(n)) sum += x[k] * w[i];
            if (overlaps) launch_next();
            y[i] = sum + x[i];
        });
    };
};
const auto overlapping = kernel("overlapping", params("x", "w", "y", "n"), body(true));
const auto apart = kernel("apart", params("x", "w", "y", "n"), body(false));

}  // namespace

TEST_CASE("grids: no pass moves an access across a wait") {
    REQUIRE(effects_in(text) == in_order);
    std::vector<std::string> passes{""};  // all, in their order
    for (const pipeline::Stage* pass : pipeline::all_passes())
        if (pass->name != "unroll") passes.emplace_back(pass->name);  // which copies them
    for (const std::string& pass : passes) {
        INFO(pass);
        ir::Function fn = ir::parse(text, "grids.ir").functions[0];
        pipeline::run_passes({&fn, 1},
                             {.passes = pass.empty() ? "cfg,fold,simplify,ranges,cse,forward,licm,dce,cfg" : pass});
        CHECK(effects_in(ir::print(fn)) == in_order);
    }
}

TEST_CASE("grids: nor does selection, and what may change is not read as what never does") {
    const Compiled compiled = compile(ir::parse(text, "grids.ir"),
                                      {.target = "sm_90a", .passes = "cse,forward,licm,dce", .verify_each = true});
    CHECK(effects_in(compiled.ptx) == in_order);
    CHECK_THAT(compiled.ptx, !contains(".nc"));
    CHECK_THAT(ptx_of(overlapping, "sm_90a"), !contains(".nc"));
    CHECK_THAT(ptx_of(apart, "sm_90a"), contains(".nc"));
}

TEST_CASE("grids: below sm_90 a kernel is what it is without") {
    for (const std::string target : {"sm_75", "sm_80", "sm_89"}) {
        CHECK(without_names(ptx_of(overlapping, target), "overlapping") ==
              without_names(ptx_of(apart, target), "apart"));
        CHECK_THAT(ptx_of(overlapping, target), !contains("griddepcontrol"));
    }
    for (const std::string target : {"sm_90", "sm_90a", "sm_100a"}) {
        CHECK_THAT(ptx_of(overlapping, target), contains("griddepcontrol.wait;"));
        CHECK_THAT(ptx_of(overlapping, target), contains("griddepcontrol.launch_dependents;"));
        CHECK_THAT(ptx_of(overlapping, target), contains(".version 7.8") || !contains("sm_90\n"));
    }
}

TEST_CASE("grids: only kernels wait") {
    const auto waiting = device_fn("waiting", params("x"), [](f32 x) {
        grid_wait();
        return x;
    });
    const auto calls = kernel("calls", params("x"), [=](InOut<float> x) { x[0] = waiting(x[0]); });
    CHECK_THAT(message_of([&] { calls.check(); }), contains("grid_wait() or launch_next() in a device function"));
    const ir::Module module =
        ir::parse("function @f(%x: u32) -> u32 {\n^0:\n  %0 = param.u32 %x\n  grid_wait\n  return %0\n}\n", "f.ir");
    CHECK_THAT(ir::complaint(module.functions), contains("only a kernel waits for other grids"));
}

}  // namespace ikat::tests
