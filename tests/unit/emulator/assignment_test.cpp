// SPDX-License-Identifier: Apache-2.0
// Which registers a kernel may read before it assigns them, and what the check of registers then finds.
#include "tests/unit/emulator/machine.hpp"

using namespace ikat;
using Catch::Matchers::Contains;
using tests::kernel;
using tests::Machine;

namespace {

/// How many registers may be read unassigned, with %r1 the thread, %d1 a buffer and %p1 true in some of the threads.
std::uint32_t unassigned(const std::string& body, const std::string& scope = "") {
    emulator::Memory memory;
    const std::string text = kernel(
        "mov.u32 %r1, %tid.x; ld.param.u64 %d1, [p0]; setp.lt.u32 %p1, %r1, 7;\n" + body + "\n$end: ret;", scope);
    return emulator::Program(ptx::parse(text, "kernel.ptx"), memory).entry("k").unassigned_reads;
}

}  // namespace

TEST_CASE("a register is assigned where it is on all paths") {
    CHECK(unassigned("add.u32 %r2, %r1, 1; st.global.u32 [%d1], %r2;") == 0);
    CHECK(unassigned("add.u32 %r2, %r3, %r3; add.u32 %r4, %r3, %r2;") == 1);
    CHECK(unassigned("add.u32 %r2, %r3, %r4; st.global.u64 [%d1], %d2; @%p2 bra $end;") == 4);
    const std::string branches = "@%p1 bra $a; mov.u32 %r2, 1; bra $b; $a: ";
    CHECK(unassigned(branches + "mov.u32 %r2, 2; $b: st.global.u32 [%d1], %r2;") == 0);
    CHECK(unassigned(branches + "mov.u32 %r3, 2; $b: st.global.u32 [%d1], %r2;") == 1);
    CHECK(unassigned(branches + "ret; $b: st.global.u32 [%d1], %r2;") == 0);
    // around a loop: assigned after its use, or before it
    const std::string rest = "add.u32 %r4, %r4, 1; setp.lt.u32 %p2, %r4, 9; @%p2 bra $a; st.global.u32 [%d1], %r3;";
    CHECK(unassigned("mov.u32 %r4, 0; $a: mov.u32 %r3, %r2; mov.u32 %r2, %r4; " + rest) == 1);
    CHECK(unassigned("mov.u32 %r4, 0; mov.u32 %r2, 0; $a: mov.u32 %r3, %r2; mov.u32 %r2, %r4; " + rest) == 0);
    CHECK(unassigned("$a: mov.u32 %r3, 0; " + rest) == 1);
    // code that nothing reaches does not count
    CHECK(unassigned("bra $end; add.u32 %r2, %r3, %r4;") == 0);
}

TEST_CASE("an assignment under a guard counts under the same guard, and with the opposite one") {
    CHECK(unassigned("@%p1 mov.u32 %r2, 1; st.global.u32 [%d1], %r2;") == 1);
    CHECK(unassigned("@%p1 mov.u32 %r2, 1; @%p1 st.global.u32 [%d1], %r2;") == 0);
    CHECK(unassigned("@%p1 mov.u32 %r2, 1; @!%p1 st.global.u32 [%d1], %r2;") == 1);
    CHECK(unassigned("@%p1 mov.u32 %r2, 1; @!%p1 mov.u32 %r2, 2; st.global.u32 [%d1], %r2;") == 0);
    CHECK(unassigned("mov.u32 %r2, 0; @%p1 mov.u32 %r2, 1; st.global.u32 [%d1], %r2;") == 0);
    const std::string change = "setp.lt.u32 %p1, %r1, 9; ";
    CHECK(unassigned("@%p1 mov.u32 %r2, 1; " + change + "@%p1 st.global.u32 [%d1], %r2;") == 1);
    CHECK(unassigned("@%p1 mov.u32 %r2, 1; " + change + "@!%p1 mov.u32 %r2, 2; st.global.u32 [%d1], %r2;") == 1);
    CHECK(unassigned("@%p1 setp.lt.u32 %p1, %r1, 3; @%p1 mov.u32 %r2, 1; @%p1 st.global.u32 [%d1], %r2;") == 0);
    CHECK(unassigned("@%p1 mov.u32 %r2, 1; @%p1 setp.lt.u32 %p1, %r1, 3; @%p1 st.global.u32 [%d1], %r2;") == 1);
    // values inside of an instruction are assigned under its guard, too
    CHECK(unassigned("@%p1 ld.global.v2.u16 {%h1, %h2}, [%d1]; @%p1 cvt.u32.u16 %r2, %h2;") == 0);
}

TEST_CASE("the registers of each function begin unassigned") {
    const std::string recursive =
        ".func (.reg .b32 o) f (.reg .b32 i) { .reg .b32 %x<3>; .reg .pred %q; setp.eq.u32 %q, i, 0; @%q bra $out;\n"
        "sub.u32 %x0, i, 1; call (%x1), f, (%x0); $out: add.u32 o, @, 1; ret; }\n";
    const auto with = [&](const std::string& read) {
        std::string text = recursive;
        return text.replace(text.find('@', text.find("$out:")), 1, read);
    };
    CHECK(unassigned("call (%r2), f, (%r1); st.global.u32 [%d1], %r2;", with("i")) == 0);
    // ... of the copy in the kernel, and of the one that calls itself
    CHECK(unassigned("call (%r2), f, (%r1); st.global.u32 [%d1], %r2;", with("%x1")) == 2);
}

TEST_CASE("a product that always adds reads its sums") {
    const std::string scope =
        "    .shared .align 1024 .b8 tile[4096]; .reg .f32 %f<32>;\n"
        "mov.u64 %d2, 0x4000004000010000; wgmma.fence.sync.aligned;\n";
    std::string sums = "{%f0";
    for (int i = 1; i < 4; ++i) sums += ", %f" + std::to_string(i);
    const auto product = [&](const std::string& adds) {
        std::string text = kernel(scope + "setp.ne.u32 %p1, 1, 0; wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 " +
                                  sums + "}, %d2, %d2, " + adds + ", 1, 1, 0, 0; ret;");
        text.replace(text.find("sm_80"), 5, "sm_90a");
        emulator::Memory memory;
        return emulator::Program(ptx::parse(text, "kernel.ptx"), memory).entry("k").unassigned_reads;
    };
    CHECK(product("1") == 4);
    CHECK(product("0") == 0);
    CHECK(product("%p1") == 0);
}

TEST_CASE("the use of an unassigned register is an error by default") {
    Machine machine;
    const auto x = machine.buffer("x", std::vector<std::uint32_t>(32));
    const auto failure = [&](const std::string& body) {
        return machine.failure(
            kernel("mov.u32 %r1, %tid.x; ld.param.u64 %d1, [p0]; setp.lt.u32 %p1, %r1, 7;\n" + body + " ret;"),
            {.block = {32, 1, 1}}, x, x, x, 0u);
    };
    CHECK_THAT(failure("@%p1 mov.u32 %r2, 1; add.u32 %r3, %r2, 1; st.global.u32 [%d1], %r3;"),
               Contains("an undefined value is stored to a buffer, by block (0,0,0) thread (7,0,0)") &&
                   Contains("note: a register that nothing has assigned") &&
                   Contains("hint: assign the register on every path that leads here"));
    CHECK(machine.code == "undefined-store");
    // what may be read unassigned is not an error if it never is
    CHECK(failure("setp.lt.u32 %p2, %r1, 5; @%p1 mov.u32 %r2, 1; @%p2 st.global.u32 [%d1], %r2;") == "no failure");
    machine.check_registers(false);
    CHECK(failure("@%p1 mov.u32 %r2, 1; add.u32 %r3, %r2, 1; st.global.u32 [%d1], %r3;") == "no failure");
}
