// SPDX-License-Identifier: Apache-2.0
// A wrong allocation is found, and reported with its function.
#include "codegen/nvptx/emit/allocation.hpp"

#include "codegen/ir/text/parse.hpp"
#include "codegen/pipeline/stages.hpp"
#include "codegen/ptx/table/target.hpp"
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
        nvptx::Registers registers = nvptx::allocate(fn, {.method = method});
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
