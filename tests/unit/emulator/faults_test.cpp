// SPDX-License-Identifier: Apache-2.0
// The codes of the emulator's findings, for programs.
#include <fstream>
#include <set>
#include <sstream>

#include "runtime/emulator/core/checks/faults.hpp"
#include "tests/unit/emulator/machine.hpp"

using namespace ikat;
using tests::kernel;
using tests::Machine;

namespace {

/// The code of the finding in a body, with %r1 the thread and %d1 a buffer of 64 words that the host has written.
std::string code(const std::string& body, std::uint32_t threads = 32, const std::string& scope = "") {
    Machine machine;
    machine.options.step_budget = 100000;
    const auto x = machine.buffer("x", std::vector<std::uint32_t>(64)), y = machine.empty<std::uint32_t>("y", 64);
    machine.failure(kernel("    .shared .align 4 .b8 tile[64]; mov.u32 %r1, %tid.x; ld.param.u64 %d1, [p0];\n"
                           "    ld.param.u64 %d2, [p1]; setp.eq.u32 %p1, %r1, 0;\n" +
                               body + "\n$end: ret;",
                           scope),
                    {.block = {threads, 1, 1}}, x, y, 0ull, 0u);
    return machine.code;
}

}  // namespace

TEST_CASE("each code has its own name and is documented") {
    std::ifstream file(IKAT_SOURCE_DIR "/docs/emulator.md");
    std::stringstream page;
    page << file.rdbuf();
    std::set<std::string> names;
    for (const emulator::FaultInfo& row : emulator::fault_rows) {
        INFO(row.name);
        CHECK(names.insert(row.name).second);
        CHECK(page.str().find("| `" + std::string(row.name) + "` |") != std::string::npos);
    }
}

TEST_CASE("findings have codes") {
    CHECK(code("ld.global.u32 %r2, [%d1+256];") == "out-of-bounds");
    CHECK(code("ld.shared.u32 %r2, [tile+64];") == "out-of-bounds");
    CHECK(code("ld.global.u32 %r2, [%d1+2];") == "misaligned");
    CHECK(code("st.shared.u32 [tile+2], %r1;") == "misaligned");
    CHECK(code("ld.global.u32 %r2, [16];") == "null-pointer");
    CHECK(code("mov.u64 %d3, 0x7fff00000000; ld.global.u32 %r2, [%d3];") == "no-buffer");
    CHECK(code("cvta.shared.u64 %d3, 0; ld.global.u32 %r2, [%d3];") == "wrong-space");
    CHECK(code("cvta.param.u64 %d3, 0; st.u32 [%d3], %r1;") == "read-only");
    CHECK(code("atom.shared.add.u32 %r2, [tile], 1;") == "unwritten");
    CHECK(code("ld.global.u32 %r2, [%d2]; add.u32 %r2, %r2, 1; st.global.u32 [%d1], %r2;") == "undefined-store");
    CHECK(code("ld.global.u64 %d3, [%d2]; ld.global.u32 %r2, [%d3];") == "undefined-address");
    CHECK(code("ld.global.u32 %r2, [%d2]; setp.eq.u32 %p2, %r2, 0; @%p2 bra $end;") == "undefined-branch");
    CHECK(code("bar.warp.sync 2;") == "not-own-member");
    CHECK(code("shl.b32 %r2, %r1, 8; or.b32 %r2, %r2, 255; @!%p1 mov.u32 %r2, -1; bar.warp.sync %r2;") ==
          "masks-disagree");
    CHECK(code("@%p1 bra $end; shfl.sync.idx.b32 %r2, %r1, 0, 31, -1;") == "exited-member");
    CHECK(code("@%p1 bra.uni $end; add.u32 %r1, %r1, 1;") == "uniform-branch");
    CHECK(code("@%p1 bra $a; bar.sync 0; bra $end; $a: bar.sync 0;") == "divergent-barrier");
    CHECK(code("@%p1 bra $a; bar.warp.sync -1; bra $end; $a: bar.sync 0;") == "divergent-barrier");
    CHECK(code("setp.lt.u32 %p2, %r1, 32; @%p2 bra $end; bar.sync 0, 64;", 64) == "deadlock");
    CHECK(code("bar.sync 16;") == "barrier-number");
    CHECK(code("bar.sync 0, 33;") == "barrier-threads");
    CHECK(code("barrier.cluster.wait;") == "cluster-barrier");
    CHECK(code("$loop: bra $loop;") == "endless-loop");
    CHECK(code("$loop: ld.volatile.global.u32 %r2, [%d1]; setp.eq.u32 %p2, %r2, 0; @%p2 bra $loop;") == "endless-wait");
    CHECK(code("mov.u64 %d3, 0; $loop: add.u64 %d3, %d3, 1; setp.ne.u64 %p2, %d3, 0; @%p2 bra $loop;") ==
          "step-budget");
    CHECK(code("t: .branchtargets $end, $end; brx.idx %r1, t;") == "branch-index");
    CHECK(code("mov.u64 %d3, 5; p: .callprototype _ (); call %d3, (), p;") == "no-function");
    CHECK(code("mov.u64 %d3, 100000; alloca.u64 %d4, %d3;") == "full-stack");
    CHECK(code("mov.u32 %r2, 1; mapa.u64 %d3, %d1, %r2;") == "cluster-rank");
    CHECK(code("{ .param .b64 a; st.param.b64 [a], %d1; call free, (a); }", 32,
               ".extern .func free (.param .b64 a);") == "heap-free");
    CHECK(code("trap;") == "trap");
    CHECK(code("tex.1d.v4.f32.s32 {%r2, %r3, %r4, %r5}, [%d1, {%r1}];") == "not-emulated");
    CHECK(code("", 2000) == "launch-refused");
    CHECK(code("") == "");
}
