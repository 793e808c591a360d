// SPDX-License-Identifier: Apache-2.0
// A wrong allocation is found, and reported with its function.
#include "codegen/nvptx/emit/allocation.hpp"

#include <algorithm>
#include <vector>

#include "codegen/ir/text/parse.hpp"
#include "codegen/nvptx/target.hpp"
#include "codegen/pipeline/stages.hpp"
#include "tests/catch.hpp"

using namespace ikat;
using tests::contains;

namespace {

ir::Function selected() {
    ir::Function fn = ir::parse_function(R"(kernel @twice(%n: u32, %y: out u32*) {
^0:
  %0 = param.u32 %n
  %1 = special.u32 tid.x
  %2 = add.u32 %0, %1
  %3 = mul.u32 %2, %1
  %4 = param.u64 %y
  store.u32 global [%4], %3
  return
}
)",
                                         "twice.ir");
    pipeline::select(fn, nvptx::target("sm_80"));
    return fn;
}

}  // namespace

TEST_CASE("an allocation that gives two live values one register is reported with the function") {
    const ir::Function fn = selected();
    for (regalloc::Method method : {regalloc::Method::Simplest, regalloc::Method::Colouring}) {
        Registers registers = nvptx::allocate(fn, {.method = method});
        CHECK(nvptx::complaint(fn, registers).empty());
        registers.allocation.registers[1] =
            registers.allocation.registers[0];  // tid.x overwrites n, which is still to be added
        const std::string findings = nvptx::complaint(fn, registers);
        CHECK_THAT(findings, contains("block0, place 2: use 0 wants v0 but finds v1\n"));
        CHECK_THAT(findings, contains("v0:b32.0 =\n"));
        CHECK_THAT(findings, contains("kernel @twice"));
        CHECK_THAT(findings, contains("// %r0"));
    }
}

// PTX ISA, wgmma.fence: it comes between a product and other accesses to its registers, also by what came before.
TEST_CASE("after a fence nothing but products uses the registers of their sums") {
    ir::Function fn = ir::parse_function(R"(kernel @overwrites(%y: out f32*, %a: u64, %n: u32) {
^0:
  %0 = param.u64 %y
  %1 = param.u64 %a
  %2 = param.u32 %n
  wgmma_fence
  %3 = mul.u32 %2, %2
  %4 = xor.u32 %3, %2
  %5 = sub.u32 %4, %3
  %6 = and.u32 %5, %4
  %7 = convert.u64.u32 %6
  %8 = or.u64 %1, %7
  %9, %10, %11, %12 = wgmma.f32 m64n8k16.bf16.bf16.f32.overwrite, %8, %8
  wgmma_commit
  %13: f32, %14: f32, %15: f32, %16: f32 = wgmma_wait 0, %9, %10, %11, %12 tie 0=0 count 4
  store.f32 global [%0], %13
  return
}
)",
                                         "overwrites.ir");
    pipeline::select(fn, nvptx::target("sm_90a"));
    for (const regalloc::Method method : {regalloc::Method::Simplest, regalloc::Method::Colouring}) {
        const Registers registers = nvptx::allocate(fn, {.method = method});
        CHECK(nvptx::complaint(fn, registers).empty());
        std::vector<regalloc::Register> others, sums;
        bool is_after = false;
        for (const ir::Inst inst : fn[ir::Block{0}].instructions) {
            is_after |= fn[inst].op == ir::Op::WgmmaFence;
            const bool is_product = fn[inst].op == ir::Op::Wgmma;
            for (const ir::Value value : fn.results(inst))
                if (is_after && (is_product || fn.type(value) == ir::Type::U32))
                    (is_product ? sums : others).push_back(registers.of(value));
            if (is_product) break;
        }
        REQUIRE(sums.size() == 4);
        REQUIRE(others.size() == 4);
        for (const regalloc::Register sum : sums) CHECK(std::ranges::find(others, sum) == others.end());
    }
}
