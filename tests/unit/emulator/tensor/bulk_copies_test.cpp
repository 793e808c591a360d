// SPDX-License-Identifier: Apache-2.0
// Copies in bulk (PTX ISA, cp.async.bulk) without tensor maps, and what is found about them.
#include <bit>

#include "tests/unit/emulator/machine.hpp"

namespace ikat::tests::bulk {

namespace {

constexpr std::uint32_t seeds[] = {0, 1, 2, 3, 4, 5, 6, 7};

/// A kernel with a barrier `bar` for one arrival and `tile` of 512 bytes: %r1 the thread, %r2 the address of bar, %r3
/// that of tile, %r4 that of its word there, %r5 the block, %d1 = p0 and %d2 = p1 + 512 * the block, %d3 = p1 + 4 * its
/// number in the grid; %p1 is thread 0. $wait; waits for a phase of parity %r9, which is 0.
std::string with_tile(std::string body, const std::string& attributes) {
    for (std::size_t at; (at = body.find("$wait;")) != body.npos;)
        body.replace(
            at, 6, "{ .reg .pred p; $again: mbarrier.try_wait.parity.shared::cta.b64 p, [bar], %r9; @!p bra $again; }");
    return ".version 8.6\n.target sm_90a\n.address_size 64\n.visible .entry k(.param .u64 p0, .param .u64 p1) " +
           attributes + R"({
    .reg .pred %p<8>; .reg .b16 %h<8>; .reg .b32 %r<40>; .reg .b64 %d<20>;
    .shared .align 8 .b64 bar; .shared .align 8 .b64 other; .shared .align 128 .b8 tile[512];
    mov.u32 %r1, %tid.x; mov.u32 %r2, bar; mov.u32 %r3, tile; shl.b32 %r4, %r1, 2; add.u32 %r4, %r4, %r3;
    mov.u32 %r5, %ctaid.x; mov.u32 %r9, 0; setp.eq.u32 %p1, %r1, 0; ld.param.u64 %d1, [p0]; ld.param.u64 %d2, [p1];
    mul.wide.u32 %d4, %r5, 512; add.u64 %d1, %d1, %d4; add.u64 %d2, %d2, %d4; mul.wide.u32 %d4, %r1, 4;
    add.u64 %d3, %d2, %d4;
    @%p1 mbarrier.init.shared.b64 [bar], 1; fence.mbarrier_init.release.cluster; bar.sync 0;
)" + body + "\n$end: ret;\n}\n";
}

std::vector<std::uint32_t> numbered(std::size_t count, std::uint32_t first = 1000) {
    std::vector<std::uint32_t> values(count);
    for (std::size_t i = 0; i < count; ++i) values[i] = first + std::uint32_t(i);
    return values;
}

struct Outcome {
    std::string code, said;
    std::vector<std::uint32_t> y;
};
/// Blocks of 128 threads; x and y have 128 words for each.
Outcome run(const std::string& body, std::uint32_t seed, std::uint32_t blocks, const std::string& attributes,
            unsigned host = 1) {
    Machine machine;
    machine.options.seed = seed;
    machine.options.threads = host;
    machine.options.step_budget = 1000000;
    const auto x = machine.buffer("x", numbered(128 * blocks)), y = machine.buffer("y", numbered(128 * blocks, 5));
    const std::string said =
        machine.failure(with_tile(body, attributes), {.grid = {blocks, 1, 1}, .block = {128, 1, 1}}, x, y);
    return {machine.code, said, machine.get<std::uint32_t>(y, 128 * blocks)};
}

/// With each seed the same.
std::vector<std::uint32_t> result_of(const std::string& body, std::uint32_t blocks = 1,
                                     const std::string& attributes = "") {
    std::vector<std::uint32_t> first;
    for (const std::uint32_t seed : seeds) {
        const Outcome outcome = run(body, seed, blocks, attributes, 1 + seed % 2);
        INFO("seed " << seed);
        CHECK(outcome.said == "no failure");
        if (seed == 0) first = outcome.y;
        CHECK(outcome.y == first);
    }
    return first;
}

std::string finding(const std::string& body, std::uint32_t blocks = 1, const std::string& attributes = "") {
    Outcome first;
    for (const std::uint32_t seed : seeds) {
        const Outcome outcome = run(body, seed, blocks, attributes);
        if (seed == 0) first = outcome;
        INFO("seed " << seed << ": " << outcome.said);
        CHECK(outcome.code == first.code);
    }
    return first.code + ": " + first.said;
}

const std::string expect = "@%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 512;\n";
const std::string load =
    "@%p1 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [tile], [%d1], 512, [bar];\n";
const std::string take = "ld.shared.u32 %r20, [%r4]; st.global.u32 [%d3], %r20;\n";
const std::string fill =
    "add.u32 %r20, %r1, 70; st.shared.u32 [%r4], %r20; fence.proxy.async.shared::cta; bar.sync 0;\n";
const std::string store = "@%p1 cp.async.bulk.global.shared::cta.bulk_group [%d2], [tile], 512;\n";
const std::string commit = "cp.async.bulk.commit_group;\n", wait_all = "cp.async.bulk.wait_group 0;\n",
                  wait_read = "cp.async.bulk.wait_group.read 0;\n";

}  // namespace

TEST_CASE("a bulk copy to shared memory arrives at a barrier") {
    CHECK(result_of(expect + load + "$wait;" + take) == numbered(128));
    CHECK(result_of(load + expect + "$wait;" + take) == numbered(128));
    CHECK(result_of(expect +
                    "@%p1 cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes.L2::cache_hint "
                    "[%r3], [%d1], 512, [%r2], %d1; $wait;" +
                    take) == numbered(128));
    // in parts, each by another thread; one after the other into the same bytes
    CHECK(
        result_of("setp.lt.u32 %p2, %r1, 4; mul.lo.u32 %r10, %r1, 128; add.u32 %r11, %r10, %r3; cvt.u64.u32 %d5, %r10;"
                  "add.u64 %d5, %d5, %d1;" +
                  expect +
                  "@%p2 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r11], [%d5], 128, [bar];"
                  "$wait;" +
                  take) == numbered(128));
    auto twice = numbered(128);
    for (std::uint32_t i = 0; i < 128; ++i) twice[i] += 1000 + i;
    CHECK(result_of(expect + load + "$wait; ld.shared.u32 %r21, [%r4]; bar.sync 0;" + expect + load +
                    "mov.u32 %r9, 1; $wait; ld.shared.u32 %r20, [%r4]; add.u32 %r20, %r20, %r21;"
                    "st.global.u32 [%d3], %r20;") == twice);
    // generic addresses are none of .shared::cluster: 32 bits of it are
    CHECK(result_of(expect +
                    "cvt.u64.u32 %d5, %r3; cvt.u64.u32 %d6, %r2; @%p1 cp.async.bulk.shared::cluster.global"
                    ".mbarrier::complete_tx::bytes [%d5], [%d1], 512, [%d6]; $wait;" +
                    take) == numbered(128));
    CHECK(result_of(expect + load + "$wait;" + take, 5) == numbered(640));
}

TEST_CASE("a bulk copy to global memory is a group of its thread") {
    CHECK(result_of(fill + store + commit + wait_all) == numbered(128, 70));
    CHECK(result_of(fill + store + commit + wait_read) == numbered(128, 70));
    // when its source is free again, something else may be there
    CHECK(result_of(fill + store + commit + wait_read + "bar.sync 0; st.shared.u32 [%r4], 3;") == numbered(128, 70));
    const std::string halves = "@%p1 cp.async.bulk.global.shared::cta.bulk_group [%d2], [tile], 256;" + commit +
                               "@%p1 cp.async.bulk.global.shared::cta.bulk_group [%d2+256], [tile+256], 256;" + commit;
    CHECK(result_of(fill + halves +
                    "cp.async.bulk.wait_group.read 1; setp.lt.u32 %p2, %r1, 64; bar.sync 0;"
                    "@%p2 st.shared.u32 [%r4], 3;" +
                    wait_read) == numbered(128, 70));
    CHECK_THAT(finding(fill + halves +
                       "cp.async.bulk.wait_group.read 1; setp.ge.u32 %p2, %r1, 64; bar.sync 0;"
                       "@%p2 st.shared.u32 [%r4], 3; bar.sync 0;" +
                       wait_read),
               contains("copy-source-changed: ") && contains("at offset 256 of 'tile'"));
    // what is not committed is not waited for
    CHECK_THAT(finding(fill + commit + store + wait_all), contains("bulk-at-exit: "));
    CHECK(result_of(fill + store + commit + wait_all, 5).size() == 640);
}

TEST_CASE("a bulk copy to the other block of a cluster") {
    const std::string pair = ".reqnctapercluster 2, 1, 1";
    const std::string meet = "barrier.cluster.arrive.release; barrier.cluster.wait.acquire;\n";
    const std::string peer =
        "xor.b32 %r10, %r5, 1; and.b32 %r10, %r10, 1; mapa.shared::cluster.u32 %r11, %r3, %r10;"
        "mapa.shared::cluster.u32 %r12, %r2, %r10;" +
        meet;
    const std::string own =
        ".shared .align 16 .b8 source[512]; mov.u32 %r13, source; shl.b32 %r14, %r1, 2;"
        "add.u32 %r14, %r14, %r13; mad.lo.u32 %r20, %r5, 128, %r1; st.shared.u32 [%r14], %r20;"
        "fence.proxy.async.shared::cta; bar.sync 0;\n";
    const auto send = [](const std::string& barrier) {
        return "@%p1 cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%r11], [source], 512, [" +
               barrier + "];\n";
    };
    auto swapped = numbered(256, 0);
    for (std::uint32_t i = 0; i < 256; ++i) swapped[i] = i ^ 128;
    CHECK(result_of(own + peer + expect + send("%r12") + "$wait;" + take + meet, 2, pair) == swapped);
    CHECK_THAT(finding(own + peer + expect + send("bar") + "$wait;" + take + meet, 2, pair),
               contains("bulk-barrier: ") && contains("at offset 0 of 'bar'"));
    CHECK_THAT(
        finding(own + peer + expect + send("%r12") + "@%p1 st.shared.u32 [%r14], 7; $wait;" + take + meet, 2, pair),
        contains("copy-source-changed: ") && contains("of 'source' in shared memory"));
    CHECK_THAT(finding(own + peer + expect + "ld.shared::cluster.u32 %r20, [%r11];" + send("%r12") +
                           "ld.shared.u32 %r20, [%r4]; $wait;" + meet,
                       2, pair),
               contains("copy-not-awaited: ") || contains("mbarrier-missing"));
    // sums in the other block's memory: nothing says when, but the barrier
    const std::string add =
        "@%p1 cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.add.u32 "
        "[%r11], [source], 512, [%r12];\n";
    auto sums = numbered(256, 0);
    for (std::uint32_t i = 0; i < 256; ++i) sums[i] = (i ^ 128) + 9;
    CHECK(result_of(own + "st.shared.u32 [%r4], 9; fence.proxy.async;" + peer + expect + add + "$wait;" + take + meet,
                    2, pair) == sums);
    CHECK_THAT(finding(own + peer + expect + add + "$wait;" + meet, 2, pair), contains("unwritten: "));

    // a multicast: each block loads half of the tile for both
    const std::string cast =
        "mul.lo.u32 %r15, %r5, 256; add.u32 %r16, %r15, %r3; cvt.u64.u32 %d5, %r15;"
        "ld.param.u64 %d6, [p0]; add.u64 %d5, %d5, %d6; mov.b16 %h1, 3;"
        "@%p1 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster "
        "[%r16], [%d5], 256, [bar], %h1;\n";
    auto both = numbered(128);
    both.insert(both.end(), both.begin(), both.begin() + 128);
    CHECK(result_of(meet + expect + cast + "$wait;" + take + meet, 2, pair) == both);
    CHECK_THAT(finding(meet + expect + cast + meet, 2, pair), contains("bulk-at-exit: "));
    CHECK_THAT(finding(meet + "mov.b16 %h1, 5; setp.eq.u32 %p3, %r5, 1; @%p3 bra $end; @%p1 "
                              "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"
                              ".multicast::cluster [%r3], [%d1], 256, [bar], %h1;",
                       2, pair),
               contains("bulk-blocks: ") && contains("block 2 of the cluster"));
    // what one block does wrong is found, and not that the other waits for it
    CHECK_THAT(finding(peer + expect + "setp.eq.u32 %p3, %r5, 1; @%p3 trap; $wait;", 2, pair), contains("trap: "));
    // a block waits for what only the other one sends, and it has ended
    CHECK_THAT(finding(meet + expect + "setp.eq.u32 %p3, %r5, 1; @%p3 bra $end; $wait;", 2, pair),
               contains("deadlock: ") && contains("lacks 512 bytes"));
}

TEST_CASE("reductions in global memory: all types and operations") {
    const auto reduced = [](const std::string& operation, std::uint32_t mine, std::uint32_t there) {
        std::vector<std::uint32_t> first;
        for (const std::uint32_t seed : seeds) {
            Machine each;
            each.options.seed = seed;
            each.options.threads = 1 + seed % 3;
            const auto x = each.buffer("x", std::vector<std::uint32_t>(128 * 3, mine));
            const auto y = each.buffer("y", std::vector<std::uint32_t>(128 * 3, there));
            each.run(with_tile("mov.u32 %r20, " + std::to_string(mine) +
                                   "; st.shared.u32 [%r4], %r20;"
                                   "fence.proxy.async.shared::cta; bar.sync 0;"
                                   "@%p1 cp.reduce.async.bulk.global.shared::cta.bulk_group." +
                                   operation + " [%d2], [tile], 512;" + commit + wait_all,
                               ""),
                     {.grid = {3, 1, 1}, .block = {128, 1, 1}}, x, y);
            const auto result = each.get<std::uint32_t>(y, 384);
            if (seed == 0) first = result;
            CHECK(result == first);
            CHECK(std::ranges::count(result, result[0]) >= 192);
        }
        return std::pair(first[0], first[1]);
    };
    using Pair = std::pair<std::uint32_t, std::uint32_t>;
    const auto both = [](std::uint32_t value) { return Pair(value, value); };
    const auto f = [](float value) { return std::bit_cast<std::uint32_t>(value); };
    CHECK(reduced("add.u32", 7, 0xfffffffe) == both(5));
    CHECK(reduced("add.s32", 7, 3) == both(10));
    CHECK(reduced("add.u64", 0xffffffff, 1) == Pair(0, 1));
    CHECK(reduced("min.u32", 0xffffffff, 3) == both(3));
    CHECK(reduced("min.s32", 0xffffffff, 3) == both(0xffffffff));
    CHECK(reduced("max.u32", 0xffffffff, 3) == both(0xffffffff));
    CHECK(reduced("max.s64", 0xffffffff, 3) == both(3));
    CHECK(reduced("max.u64", 0xffffffff, 3) == both(0xffffffff));
    CHECK(reduced("inc.u32", 4, 4) == both(0));
    CHECK(reduced("inc.u32", 4, 3) == both(4));
    CHECK(reduced("dec.u32", 4, 0) == both(4));
    CHECK(reduced("and.b32", 12, 10) == both(8));
    CHECK(reduced("or.b64", 12, 10) == both(14));
    CHECK(reduced("xor.b32", 12, 10) == both(6));
    CHECK(reduced("add.f32", f(1.5f), f(2.25f)) == both(f(3.75f)));
    CHECK(reduced("add.f32", 1, 1) == both(0));  // subnormals are flushed
    CHECK(reduced("add.noftz.f16", 0x3c003c00, 0x40003c00) == both(0x42004000));
    CHECK(reduced("add.noftz.bf16", 0x3f803f80, 0x40003f80) == both(0x40404000));
    CHECK(reduced("max.f16", 0x3c00c000, 0x4000bc00) == both(0x4000bc00));
    CHECK(reduced("min.bf16", 0x3f803f80, 0x40003f00) == both(0x3f803f00));
    const auto d = std::bit_cast<std::array<std::uint32_t, 2>>(2.0 * std::bit_cast<double>(std::array{7u, 7u}));
    CHECK(reduced("add.f64", 7, 7) == Pair(d[0], d[1]));
    CHECK_THAT(finding(fill +
                       "ld.param.u64 %d2, [p1]; @%p1 cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f16 "
                       "[%d2], [tile], 512;" +
                       commit + wait_all),
               contains("not-emulated: "));
}

TEST_CASE("what is in flight may neither be read nor written") {
    CHECK_THAT(finding(expect + load + "bar.sync 0;\n" + take),
               contains("copy-not-awaited: kernel.ptx:") && contains("a load of 4 bytes at offset ") &&
                   contains("of 'tile' in shared memory (512 bytes), to which a copy is in flight") &&
                   contains("the copy, by block (0,0,0) thread (0,0,0): @%p1 cp.async.bulk.shared::cluster.global") &&
                   contains("wait for the phase of the barrier that counts the bytes"));
    // A second copy: to wait for the phase of the first is not to wait for it, even if its bytes have long arrived.
    const std::string expect_more = "@%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 1024;\n";
    CHECK_THAT(
        finding(expect + load + "$wait; ld.shared.u32 %r21, [%r4]; bar.sync 0;" + expect_more + load + "$wait;" + take),
        contains("copy-not-awaited: "));
    CHECK_THAT(
        finding(expect + load + "@%p1 st.shared.u32 [%r4], 1; $wait;"),
        contains("copy-overwritten: ") && contains("512 bytes at offset 0 of 'tile'") && contains("the copy, by"));
    CHECK_THAT(finding(expect + expect.substr(0, 4) + " mbarrier.expect_tx.shared::cta.b64 [bar], 512;" + load + load +
                       "$wait;"),
               contains("mbarrier-") || contains("copy-overwritten: "));
    CHECK_THAT(finding(load + load), contains("copy-overwritten: "));
    CHECK_THAT(finding(expect + load + "cp.async.ca.shared.global [%r4], [%d1], 4;"), contains("copy-overwritten: "));
    CHECK_THAT(finding(expect + load + "@%p1 st.global.u32 [%d1+8], 1; $wait;"),
               contains("copy-source-changed: ") && contains("at offset 0 of buffer 'x'") &&
                   contains("while they were being copied by block (0,0,0) thread (0,0,0)"));
    CHECK_THAT(finding(expect + load + "@%p1 cp.async.bulk.global.shared::cta.bulk_group [%d2], [tile], 512;"),
               contains("copy-not-awaited: ") && contains("a load of 512 bytes"));
    CHECK_THAT(finding(fill + store + commit + "@%p1 st.shared.u32 [%r4], 1;" + wait_read),
               contains("copy-source-changed: ") && contains("wait_group.read 0") && contains("cp.async.bulk.global"));
    CHECK_THAT(
        finding("@%p1 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r2], [%d1], 16, [other];"),
        contains("out-of-bounds: ") || contains("mbarrier-overwritten: "));
    const std::string part =
        "setp.lt.u32 %p2, %r1, 127; @%p2 st.shared.u32 [%r4], %r1; @!%p2 st.shared.u16 [%r4], 7;"
        "fence.proxy.async; bar.sync 0;";
    CHECK(finding(part + store + commit + wait_all) == ": no failure");  // padding
    CHECK_THAT(finding("setp.lt.u32 %p2, %r1, 127; @%p2 st.shared.u32 [%r4], %r1; fence.proxy.async; bar.sync 0;" +
                       store + commit + wait_all),
               contains("bulk-unwritten: ") && contains("4 bytes at offset 508 of 'tile'"));
}

TEST_CASE("nothing is in flight when a block ends") {
    CHECK_THAT(finding(expect + load), contains("bulk-at-exit: kernel.ptx:") &&
                                           contains("block (0,0,0) ends while 512 bytes at offset 0 of 'tile'") &&
                                           contains("are in flight"));
    CHECK_THAT(finding(fill + store), contains("bulk-at-exit: "));
    CHECK_THAT(finding(fill + store + commit), contains("bulk-at-exit: ") && contains("cp.async.bulk.global"));
    // another thread's wait is for its own
    CHECK_THAT(finding(fill + store + commit + "@%p1 bra $end;" + wait_all), contains("bulk-at-exit: "));
    CHECK(result_of(fill + store + commit + wait_read + "@!%p1 bra $end;").size() == 128);
}

TEST_CASE("sizes, addresses and barriers of bulk copies") {
    const auto of = [](const std::string& to, const std::string& from, const std::string& bytes,
                       const std::string& bar = "bar") {
        return finding("@%p1 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [" + to + "], [" + from +
                       "], " + bytes + ", [" + bar + "];");
    };
    CHECK_THAT(of("tile", "%d1", "24"), contains("bulk-size: ") && contains("a bulk copy of 24 bytes"));
    CHECK_THAT(of("tile+8", "%d1", "16"), contains("misaligned: ") && contains("16 bytes are needed"));
    CHECK_THAT(of("tile", "%d1+4", "16"), contains("misaligned: ") && contains("buffer 'x'"));
    CHECK_THAT(of("tile", "%d1+256", "272"),
               contains("out-of-bounds: ") && contains("16 bytes across the end of buffer 'x'"));
    CHECK_THAT(of("tile+256", "%d1", "272"), contains("out-of-bounds: ") && contains("across the end of 'tile'"));
    CHECK_THAT(of("tile", "%d1", "16", "other"), contains("mbarrier-missing: ") && contains("'other'"));
    CHECK_THAT(of("tile", "%d1", "16", "tile"), contains("mbarrier-missing: "));
    CHECK_THAT(finding(fill + "@%p1 cp.async.bulk.global.shared::cta.bulk_group [%d2+16], [tile], 512;"),
               contains("out-of-bounds: ") && contains("buffer 'y'"));
    CHECK_THAT(
        finding("ld.shared.u32 %r20, [tile]; @%p1 cp.async.bulk.global.shared::cta.bulk_group [%d2], [tile], %r20;"),
        contains("undefined-address: "));
    CHECK(finding("@%p1 cp.async.bulk.prefetch.L2.global [%d1], 512;") == ": no failure");
    CHECK_THAT(finding("@%p1 cp.async.bulk.prefetch.L2.global [%d1+8], 512;"), contains("bulk-alignment: "));
    CHECK_THAT(finding("@%p1 cp.async.bulk.prefetch.L2.global [%d1], 8;"), contains("bulk-size: "));
    // the barrier ends, or is written to, while a copy is on its way to it
    CHECK_THAT(
        finding(load + "@%p1 mbarrier.inval.shared.b64 [bar]; bar.sync 0; @%p1 mbarrier.init.shared.b64 [other], 1;"
                       "bar.sync 0; @%p1 mbarrier.arrive.shared.b64 _, [other];"),
        contains("bulk-at-exit: ") || contains("mbarrier-missing: "));
}

}  // namespace ikat::tests::bulk
