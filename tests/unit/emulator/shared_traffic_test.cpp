// SPDX-License-Identifier: Apache-2.0
// The emulator's counts of wavefronts of shared memory, on accesses small enough to count by hand.
#include "runtime/emulator/tools/traffic/shared.hpp"

#include <algorithm>
#include <map>

#include "tests/unit/emulator/machine.hpp"

using namespace ikat;
using emulator::Direction;
using emulator::SharedTraffic;
using tests::Machine;

namespace {

/// Runs `body`; %r1 is the number of the thread, %r2 the address of 8 KiB of shared memory, %d1 its generic address,
/// %d2 a buffer.
std::vector<SharedTraffic> shared_of(const std::string& body, std::uint32_t threads = 32, std::uint32_t blocks = 1) {
    Machine machine;
    std::vector<SharedTraffic> out;
    machine.options.tools = {
        emulator::count_traffic([&](const emulator::LaunchTraffic& traffic) { out = traffic.shared; })};
    const auto x = machine.buffer("x", std::vector<std::uint32_t>(1 << 14));
    // Each thread fills its part of the memory, so that nothing is uninitialised; those stores are on a line of theirs.
    machine.run(
        tests::kernel("    .shared .align 128 .b8 s[8192]; .reg .b32 %z; mov.u32 %z, 0;\n"
                      "    mov.u32 %r1, %tid.x; mov.u32 %r2, s; cvta.shared.u64 %d1, s; ld.param.u64 %d2, [p0];\n"
                      "    mov.u32 %r3, %r1; F: mad.lo.u32 %r4, %r3, 4, %r2;\n"
                      "    st.shared.u32 [%r4], %z;\n"
                      "    add.u32 %r3, %r3, " +
                      std::to_string(threads) + "; setp.lt.u32 %p1, %r3, 2048; @%p1 bra F; bar.sync 0;\n" + body +
                      "\n    ret;"),
        {.grid = {blocks, 1, 1}, .block = {threads, 1, 1}}, x, 0ull, 0ull, 0u);
    REQUIRE(!out.empty());
    CHECK(out[0].wavefronts == out[0].possible);  // the fill
    out.erase(out.begin());
    return out;
}

/// %r4 = the address + tid * bytes
std::string places(int bytes) { return "mad.lo.u32 %r4, %r1, " + std::to_string(bytes) + ", %r2;\n"; }

/// Accesses, wavefronts, possible, of the only line.
std::vector<std::uint64_t> counts(const std::string& body, std::uint32_t threads = 32, std::uint32_t blocks = 1) {
    const auto all = shared_of(body, threads, blocks);
    REQUIRE(all.size() == 1);
    return {all[0].accesses, all[0].wavefronts, all[0].possible};
}
using Counts = std::vector<std::uint64_t>;

}  // namespace

TEST_CASE("shared memory: words of all banks take a wavefront, of one bank one each") {
    CHECK(counts(places(4) + "ld.shared.u32 %r5, [%r4];") == Counts{1, 1, 1});
    CHECK(counts(places(8) + "ld.shared.u32 %r5, [%r4];") == Counts{1, 2, 1});
    CHECK(counts(places(12) + "ld.shared.u32 %r5, [%r4];") == Counts{1, 1, 1});
    CHECK(counts(places(128) + "ld.shared.u32 %r5, [%r4];") == Counts{1, 32, 1});
    CHECK(counts(places(132) + "ld.shared.u32 %r5, [%r4];") == Counts{1, 1, 1});
    CHECK(counts("ld.shared.u32 %r5, [%r2];") == Counts{1, 1, 1});  // one word for all
    CHECK(counts(places(1) + "ld.shared.u8 %r5, [%r4];") == Counts{1, 1, 1});
    CHECK(counts(places(2) + "st.shared.u16 [%r4], %h1;") == Counts{1, 1, 1});
    CHECK(counts(places(16) + "st.shared.u32 [%r4+4], %r1;") == Counts{1, 4, 1});
}

TEST_CASE("shared memory: wide accesses are served by half or a quarter of the lanes") {
    CHECK(counts(places(8) + "ld.shared.u64 %d5, [%r4];") == Counts{1, 2, 2});
    CHECK(counts(places(16) + "ld.shared.v2.u32 {%r5, %r6}, [%r4];") == Counts{1, 4, 2});
    CHECK(counts(places(16) + "ld.shared.v4.u32 {%r5, %r6, %r7, %r8}, [%r4];") == Counts{1, 4, 4});
    CHECK(counts(places(32) + "ld.shared.v4.u32 {%r5, %r6, %r7, %r8}, [%r4];") == Counts{1, 8, 4});
    CHECK(counts(places(144) + "ld.shared.v2.u64 {%d5, %d6}, [%r4];") == Counts{1, 4, 4});
    CHECK(counts(places(128) + "ld.shared.v2.u64 {%d5, %d6}, [%r4];") == Counts{1, 32, 4});
}

TEST_CASE("shared memory: only lanes that take part count") {
    const std::string some = "setp.lt.u32 %p1, %r1, 9; ";
    CHECK(counts(places(128) + some + "@%p1 ld.shared.u32 %r5, [%r4];") == Counts{1, 9, 1});
    CHECK(counts(places(16) + some + "@%p1 ld.shared.v4.u32 {%r5, %r6, %r7, %r8}, [%r4];") == Counts{1, 2, 2});
    CHECK(shared_of("setp.lt.u32 %p1, %r1, 0; @%p1 ld.shared.u32 %r5, [%r2];").empty());
}

TEST_CASE("shared memory: atomics on one word follow each other") {
    CHECK(counts(places(4) + "red.shared.add.u32 [%r4], 1;") == Counts{1, 1, 1});
    CHECK(counts("atom.shared.add.u32 %r5, [%r2], 1;") == Counts{1, 32, 1});
    CHECK(counts("shr.u32 %r4, %r1, 1; mad.lo.u32 %r4, %r4, 4, %r2; red.shared.add.u32 [%r4], 1;") == Counts{1, 2, 1});
}

TEST_CASE("shared memory: generic accesses count where they are to shared memory") {
    CHECK(counts("mul.wide.u32 %d3, %r1, 8; add.u64 %d3, %d3, %d1; ld.u32 %r5, [%d3];") == Counts{1, 2, 1});
    CHECK(shared_of("mul.wide.u32 %d3, %r1, 8; add.u64 %d3, %d3, %d2; ld.u32 %r5, [%d3];").empty());
    // some lanes here, some there
    CHECK(counts("mul.wide.u32 %d3, %r1, 128; setp.lt.u32 %p1, %r1, 5; selp.b64 %d4, %d1, %d2, %p1;"
                 "add.u64 %d3, %d3, %d4; ld.u32 %r5, [%d3];") == Counts{1, 5, 1});
    CHECK(counts("mul.wide.u32 %d3, %r1, 4; add.u64 %d3, %d3, %d1; atom.add.u32 %r5, [%d3], 1;") == Counts{1, 1, 1});
}

TEST_CASE("shared memory: matrices are eight rows each, and copies write") {
    const std::string four = "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r5, %r6, %r7, %r8}, ";
    CHECK(counts(places(16) + four + "[%r4];") == Counts{1, 4, 4});
    CHECK(counts(places(128) + four + "[%r4+16];") == Counts{1, 32, 4});
    CHECK(counts(places(144) + four + "[%r4];") == Counts{1, 4, 4});
    CHECK(counts(places(64) + "ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%r5, %r6}, [%r4];") == Counts{1, 8, 2});
    CHECK(counts(places(32) + "ldmatrix.sync.aligned.m8n8.x1.b16 {%r5}, [%d1];") == Counts{1, 1, 1});
    CHECK(counts(places(16) + "mul.wide.u32 %d3, %r1, 16; add.u64 %d3, %d3, %d2;"
                              "cp.async.cg.shared.global [%r4], [%d3], 16; cp.async.wait_all;") == Counts{1, 4, 4});
    CHECK(counts(places(128) + "mul.wide.u32 %d3, %r1, 16; add.u64 %d3, %d3, %d2;"
                               "cp.async.cg.shared.global [%r4], [%d3], 16; cp.async.wait_all;") == Counts{1, 32, 4});
    CHECK(counts(places(8) + "mul.wide.u32 %d3, %r1, 4; add.u64 %d3, %d3, %d2;"
                             "cp.async.ca.shared.global [%r4], [%d3], 4; cp.async.wait_all;") == Counts{1, 2, 1});
}

TEST_CASE("shared memory: counts are by line and instruction, over warps and blocks") {
    const auto all = shared_of(places(8) +
                                   "ld.shared.u32 %r5, [%r4]; ld.shared.u32 %r5, [%r4+4]; st.shared.u32 [%r4], %r5;\n"
                                   "ld.shared.u32 %r6, [%r4];",
                               64, 3);
    REQUIRE(all.size() == 3);
    CHECK(all[0].instruction == "ld");
    CHECK(all[0].accesses == 2 * 2 * 3);
    CHECK(all[0].wavefronts == 2 * all[0].accesses);
    CHECK(all[0].possible == all[0].accesses);
    CHECK(all[1].instruction == "st");
    CHECK(all[1].accesses == 2 * 3);
    CHECK(all[1].where.line == all[0].where.line);
    CHECK(all[2].where.line == all[0].where.line + 1);
    CHECK(all[2].instruction == "ld");
}
