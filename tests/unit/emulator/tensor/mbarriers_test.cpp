// SPDX-License-Identifier: Apache-2.0
// Barriers in shared memory (PTX ISA, mbarrier): arrivals, bytes, phases, states and parities, and what is found about
// them.
#include "tests/unit/emulator/machine.hpp"

namespace ikat::tests::mbarriers {

namespace {

constexpr std::uint32_t seeds[] = {0, 1, 2, 3, 4, 5};

/// A kernel with a barrier `bar` and `tile` of 256 bytes: %r1 the thread, %r2 the address of bar, %r3 that of its word
/// of tile, %d1 = p0 + 4 * its number. $wait in `body` stands for a loop that waits for a phase of parity %r9.
std::string with_barrier(std::string body, const std::string& attributes = "") {
    for (std::size_t at; (at = body.find("$wait;")) != body.npos;)
        body.replace(
            at, 6, "{ .reg .pred p; $again: mbarrier.try_wait.parity.shared::cta.b64 p, [%r2], %r9; @!p bra $again; }");
    return ".version 8.6\n.target sm_90a\n.address_size 64\n.visible .entry k(.param .u64 p0) " + attributes + R"({
    .reg .pred %p<8>; .reg .b16 %h<8>; .reg .b32 %r<40>; .reg .b64 %d<20>;
    .shared .align 8 .b64 bar; .shared .align 8 .b64 other; .shared .align 16 .b8 tile[256];
    mov.u32 %r1, %tid.x; mov.u32 %r2, bar; shl.b32 %r4, %r1, 2; and.b32 %r4, %r4, 255; mov.u32 %r3, tile;
    add.u32 %r3, %r3, %r4; setp.eq.u32 %p1, %r1, 0; ld.param.u64 %d1, [p0]; mad.wide.u32 %d1, %r1, 4, %d1;
)" + body + "\n$end: ret;\n}\n";
}

/// With each seed the same.
std::vector<std::uint32_t> result_of(const std::string& body, std::uint32_t threads = 64) {
    std::vector<std::uint32_t> first;
    for (const std::uint32_t seed : seeds) {
        Machine machine;
        machine.options.seed = seed;
        const auto out = machine.buffer("out", std::vector<std::uint32_t>(threads));
        machine.run(with_barrier(body), {.block = {threads, 1, 1}}, out);
        const auto result = machine.get<std::uint32_t>(out, threads);
        if (seed == 0) first = result;
        CHECK(result == first);
    }
    return first;
}

std::string finding(const std::string& body, std::uint32_t threads = 64, const std::string& attributes = "",
                    std::uint32_t blocks = 1) {
    std::string first, code;
    for (const std::uint32_t seed : seeds) {
        Machine machine;
        machine.options.seed = seed;
        machine.options.step_budget = 1000000;
        const auto out = machine.buffer("out", std::vector<std::uint32_t>(threads));
        const std::string said =
            machine.failure(with_barrier(body, attributes), {.grid = {blocks, 1, 1}, .block = {threads, 1, 1}}, out);
        if (seed == 0) first = said, code = machine.code;
        INFO("seed " << seed << ": " << said);
        CHECK(machine.code == code);
    }
    return code + ": " + first;
}

/// By thread 0, before all others continue.
std::string init(const std::string& count) {
    return "@%p1 mbarrier.init.shared.b64 [bar], " + count +
           "; fence.mbarrier_init.release.cluster; fence.proxy.async.shared::cta; bar.sync 0;\n";
}
/// The same for a block of one thread.
std::string alone(const std::string& body, std::uint32_t count = 1) { return init(std::to_string(count)) + body; }

const std::string store = "st.global.u32 [%d1], %r20;\n";

std::vector<std::uint32_t> same(std::size_t count, std::uint32_t value) {
    return std::vector<std::uint32_t>(count, value);
}

}  // namespace

TEST_CASE("threads meet at a barrier, by state and by parity") {
    // what a thread has stored before it arrives, another finds after its wait
    const std::string publish = "st.shared.u32 [%r3], %r1;\n";
    const std::string take =
        "mov.u32 %r21, tile; xor.b32 %r22, %r4, 252; add.u32 %r21, %r21, %r22;"
        "ld.shared.u32 %r20, [%r21];\n" +
        store;
    std::vector<std::uint32_t> reversed(64);
    for (std::uint32_t i = 0; i < 64; ++i) reversed[i] = 63 - i;
    CHECK(result_of(init("64") + publish +
                    "mbarrier.arrive.shared.b64 %d2, [%r2];\n"
                    "$l: mbarrier.test_wait.shared.b64 %p2, [bar], %d2; @!%p2 bra $l;\n" +
                    take) == reversed);
    CHECK(result_of(init("64") + publish +
                    "mbarrier.arrive.release.cta.shared::cta.b64 _, [bar];\n"
                    "mov.u32 %r9, 0; $wait;\n" +
                    take) == reversed);
    // by generic addresses, each thread for two, a state and a time limit
    CHECK(result_of(init("128") + publish +
                    "cvt.u64.u32 %d4, %r2; cvta.shared.u64 %d4, %d4; mbarrier.arrive.b64 %d2, [%d4], 2;\n"
                    "$l: mbarrier.try_wait.acquire.cta.b64 %p2, [%d4], %d2, 1000; @!%p2 bra $l;\n" +
                    take) == reversed);
    // in one warp, where a lane arrives only after others have asked
    CHECK(result_of(init("1") +
                        "@%p1 bra $first;\n"
                        "mov.u32 %r9, 0; $wait; ld.shared.u32 %r20, [tile]; bra $done;\n"
                        "$first: mov.u32 %r20, 5; st.shared.u32 [tile], %r20; mbarrier.arrive.shared.b64 _, [bar];\n"
                        "$done:" +
                        store,
                    32) == same(32, 5));
}

TEST_CASE("a phase has as many arrivals as init says, and parities take turns") {
    const std::string phase =
        "mbarrier.test_wait.parity.shared.b64 %p2, [bar], 0; selp.u32 %r21, 1, 0, %p2;"
        "mbarrier.test_wait.parity.shared.b64 %p2, [bar], 1; selp.u32 %r22, 1, 0, %p2;"
        "shl.b32 %r20, %r20, 4; mad.lo.u32 %r20, %r22, 2, %r20; add.u32 %r20, %r20, %r21;\n";
    const std::string arrive = "mbarrier.arrive.shared.b64 %d2, [bar];\n";
    // of a new barrier the phase before phase 0 is over, which has parity 1
    CHECK(result_of(alone("mov.u32 %r20, 0;" + phase + arrive + phase + arrive + phase + arrive + phase + arrive +
                              phase + store,
                          2),
                    1) == same(1, 0x22112));
    // with more than one arrival at once
    CHECK(result_of(alone("mov.u32 %r20, 0; mbarrier.arrive.shared.b64 _, [bar], 2;" + phase +
                              "mbarrier.arrive.shared.b64 _, [bar], 3;" + phase + store,
                          5),
                    1) == same(1, 0x21));
    // who drops out does not count in the next phase any more
    CHECK(result_of(alone("mov.u32 %r20, 0; mbarrier.arrive_drop.shared.b64 %d2, [bar];" + phase + arrive + phase +
                              arrive + phase + store,
                          2),
                    1) == same(1, 0x212));
    CHECK(result_of(alone("mov.u32 %r20, 0; mbarrier.arrive_drop.shared::cta.b64 _, [bar], 2;" + phase + arrive +
                              phase + arrive + phase + store,
                          3),
                    1) == same(1, 0x212));
    // a state that is one phase old is of the phase before
    CHECK(result_of(alone(arrive + "mbarrier.test_wait.shared.b64 %p2, [bar], %d2; selp.u32 %r20, 1, 0, %p2;" + store),
                    1) == same(1, 1));
    CHECK(
        result_of(alone(arrive + "mbarrier.test_wait.shared.b64 %p2, [bar], %d2; selp.u32 %r20, 1, 0, %p2;" + store, 2),
                  1) == same(1, 0));
}

TEST_CASE("what is pending before an arrival") {
    CHECK(result_of(alone("mbarrier.arrive.noComplete.shared.b64 %d2, [bar], 3; mbarrier.pending_count.b64 %r20, %d2;" +
                              store,
                          9),
                    1) == same(1, 9));
    CHECK(result_of(alone("mbarrier.arrive.shared.b64 _, [bar];"
                          "mbarrier.arrive_drop.noComplete.release.cta.shared.b64 %d2, [bar], 3;"
                          "mbarrier.pending_count.b64 %r20, %d2;" +
                              store,
                          9),
                    1) == same(1, 8));
    // at the limits
    CHECK(
        result_of(alone("mbarrier.arrive.shared.b64 %d2, [bar], 1048575; mbarrier.pending_count.b64 %r20, %d2;" + store,
                        1048575),
                  1) == same(1, 1048575));
}

TEST_CASE("a phase waits for the bytes that it expects") {
    const std::string phase =
        "mbarrier.test_wait.parity.shared.b64 %p2, [bar], 0; selp.u32 %r21, 1, 0, %p2;"
        "shl.b32 %r20, %r20, 4; add.u32 %r20, %r20, %r21;\n";
    const std::string expect = "mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 96;\n";
    const std::string more = "mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [bar], 32;\n";
    const auto deliver = [](int bytes) {
        return "mbarrier.complete_tx.relaxed.cluster.shared::cta.b64 [bar], " + std::to_string(bytes) + ";\n";
    };
    const std::string start = "mov.u32 %r20, 0;\n";
    CHECK(result_of(alone(start + expect + phase + deliver(64) + phase + deliver(32) + phase + store), 1) ==
          same(1, 1));
    CHECK(result_of(alone(start + more + expect + deliver(64) + phase + deliver(64) + phase + store), 1) == same(1, 1));
    // bytes may be there before they are expected
    CHECK(result_of(alone(start + deliver(96) + phase + expect + phase + store), 1) == same(1, 1));
    CHECK(result_of(alone(start + deliver(96) + phase + more + phase +
                          "mbarrier.arrive_drop.expect_tx.shared.b64 _, [bar], 64;" + phase + store),
                    1) == same(1, 1));
    // the phase waits for bytes after its last arrival
    CHECK(result_of(alone(start + more + "mbarrier.arrive.shared.b64 _, [bar];" + phase + deliver(32) + phase + store),
                    1) == same(1, 1));
}

TEST_CASE("an arrival after a thread's copies") {
    // the data of out goes to tile and back
    const std::string copy = "shl.b32 %r5, %r1, 2; cp.async.ca.shared.global [%r3], [%d1], 4;\n";
    const std::string take = "ld.shared.u32 %r20, [%r3]; add.u32 %r20, %r20, 7;\n" + store;
    CHECK(result_of(init("64") + copy + "cp.async.mbarrier.arrive.noinc.shared.b64 [bar]; mov.u32 %r9, 0; $wait;\n" +
                    take) == same(64, 7));
    CHECK(result_of(init("64") + copy +
                    "cp.async.mbarrier.arrive.shared::cta.b64 [bar];"
                    "mbarrier.arrive.shared.b64 %d2, [bar]; mov.u32 %r9, 0; $wait;\n" +
                    take) == same(64, 7));
    // what another thread has copied
    CHECK(result_of(init("64") + copy +
                    "cp.async.mbarrier.arrive.noinc.shared.b64 [bar]; mov.u32 %r9, 0; $wait;\n"
                    "mov.u32 %r3, tile; xor.b32 %r4, %r4, 252; add.u32 %r3, %r3, %r4;" +
                    take) == same(64, 7));
    CHECK(result_of(init("64") + "cp.async.mbarrier.arrive.noinc.shared.b64 [bar];" + copy +
                    "mov.u32 %r9, 0; $wait; cp.async.wait_all;\n" + take) == same(64, 7));
    CHECK_THAT(finding(init("64") + "cp.async.mbarrier.arrive.noinc.shared.b64 [bar];" + copy +
                       "mov.u32 %r9, 0; $wait;\n" + take),
               contains("copy-not-awaited: "));
    CHECK_THAT(finding(init("64") + copy + "cp.async.mbarrier.arrive.noinc.shared.b64 [bar];" + take),
               contains("copy-not-awaited: "));
    CHECK_THAT(finding(init("64") + copy +
                       "cp.async.mbarrier.arrive.noinc.shared.b64 [bar]; st.shared.u32 [%r3], %r1;"
                       "mov.u32 %r9, 0; $wait;\n"),
               contains("copy-overwritten: "));
    CHECK_THAT(finding(init("64") + copy + "cp.async.mbarrier.arrive.shared.b64 [other];"),
               contains("mbarrier-missing: ") && contains("'other'"));
    // without .noinc it adds nothing to what is counted
    CHECK_THAT(finding(init("64") + copy + "cp.async.mbarrier.arrive.shared.b64 [bar]; mov.u32 %r9, 0; $wait;"),
               contains("deadlock: ") && contains("lacks 64 of 64 arrivals"));
    CHECK_THAT(finding(init("1048575") + "cp.async.mbarrier.arrive.shared.b64 [bar];"),
               contains("mbarrier-count: ") || contains("no failure"));
}

TEST_CASE("bytes that are no barrier, and barriers made twice") {
    const std::string missing = "mbarrier.arrive.shared.b64 _, [bar];";
    CHECK_THAT(finding(missing), contains("mbarrier-missing: kernel.ptx:") &&
                                     contains("the 8 bytes at offset 0 of 'bar' in shared memory (8 bytes) are not a "
                                              "barrier, by block (0,0,0) thread (0,0,0)") &&
                                     contains("mbarrier.init makes a barrier"));
    CHECK_THAT(finding(init("1") + "mbarrier.test_wait.parity.shared.b64 %p2, [other], 0;"),
               contains("mbarrier-missing: "));
    CHECK_THAT(finding("mbarrier.inval.shared.b64 [bar];"), contains("mbarrier-missing: "));
    CHECK_THAT(finding(init("1") + "bar.sync 0; @%p1 mbarrier.inval.shared.b64 [bar]; bar.sync 0;" + missing),
               contains("mbarrier-missing: "));
    CHECK_THAT(finding("@%p1 mbarrier.expect_tx.shared::cta.b64 [bar], 4;"), contains("mbarrier-missing: "));
    CHECK_THAT(finding(init("1") + init("1")),
               contains("mbarrier-live: ") && contains("kernel.ptx:9:") && contains("the barrier: @%p1 mbarrier.init"));
    CHECK(finding(init("1") + "bar.sync 0; @%p1 mbarrier.inval.shared.b64 [bar];" + init("2")) == ": no failure");
    CHECK_THAT(finding("mov.u64 %d2, 4096; mbarrier.inval.b64 [%d1];"), contains("not-shared: "));
    CHECK_THAT(finding("mbarrier.init.shared.b64 [tile+4], 1;"),
               contains("misaligned: ") && contains("8 bytes are needed"));
    CHECK_THAT(finding("mbarrier.init.shared.b64 [tile+256], 1;"), contains("out-of-bounds: "));
    CHECK_THAT(finding("ld.shared.u32 %r2, [tile]; mbarrier.init.shared.b64 [%r2], 1;"),
               contains("undefined-barrier: "));
}

TEST_CASE("counts that are out of range, and arrivals too many") {
    const auto in = [](const std::string& body, std::uint32_t count = 1) { return finding(alone(body, count), 1); };
    CHECK_THAT(finding("mbarrier.init.shared.b64 [bar], 0;"),
               contains("mbarrier-count: ") && contains("to count 0 arrivals"));
    CHECK_THAT(finding("mbarrier.init.shared.b64 [bar], 1048576;"), contains("mbarrier-count: "));
    CHECK_THAT(in("mbarrier.arrive.shared.b64 _, [bar], 0;"), contains("mbarrier-count: "));
    CHECK_THAT(in("mbarrier.arrive.shared.b64 _, [bar], 3;", 2),
               contains("mbarrier-arrivals: ") && contains("3 arrivals at the barrier at offset 0 of 'bar'") &&
                   contains("which lacks 2 of 2 arrivals in phase 0"));
    // no phase ends while bytes are missing
    CHECK_THAT(in("mbarrier.arrive.expect_tx.shared.b64 _, [bar], 8; mbarrier.arrive.shared.b64 _, [bar];"),
               contains("mbarrier-arrivals: ") && contains("which lacks 8 bytes in phase 0"));
    CHECK_THAT(in("mbarrier.arrive_drop.shared.b64 _, [bar]; mbarrier.arrive.shared.b64 _, [bar];"),
               contains("mbarrier-arrivals: "));
    CHECK_THAT(
        in("mbarrier.expect_tx.shared::cta.b64 [bar], 1048575; mbarrier.expect_tx.shared::cta.b64 [bar], 1;"),
        contains("mbarrier-bytes: ") && contains("1 byte more for the barrier") && contains("1048575 pending bytes"));
    CHECK_THAT(
        in("mbarrier.complete_tx.shared::cta.b64 [bar], 1048575; mbarrier.complete_tx.shared::cta.b64 [bar], 1;"),
        contains("mbarrier-bytes: "));
    CHECK_THAT(in("mbarrier.arrive.expect_tx.shared.b64 _, [bar], 1048576;"), contains("mbarrier-bytes: "));
    CHECK_THAT(in("mbarrier.arrive.noComplete.shared.b64 %d2, [bar], 2;", 2),
               contains("mbarrier-no-complete: ") && contains("2 arrivals with .noComplete"));
    CHECK(in("mbarrier.arrive.noComplete.shared.b64 %d2, [bar], 1;", 2) == ": no failure");
}

TEST_CASE("waits for what a barrier does not know") {
    const auto in = [](const std::string& body, std::uint32_t count = 1) { return finding(alone(body, count), 1); };
    const std::string arrive = "mbarrier.arrive.shared.b64 %d2, [bar];",
                      test = "mbarrier.test_wait.shared.b64 %p2, [bar], %d2;";
    CHECK(in(arrive + test + test) == ": no failure");
    CHECK_THAT(in(arrive + "mbarrier.arrive.shared.b64 _, [bar];" + test),
               contains("mbarrier-phase: ") && contains("which is 2 phases further"));
    CHECK_THAT(in("mov.u64 %d2, 0;" + test), contains("mbarrier-state: "));
    CHECK_THAT(in(arrive + "mbarrier.inval.shared.b64 [bar];" + init("1") + test), contains("mbarrier-state: "));
    CHECK_THAT(in("mbarrier.init.shared.b64 [other], 1; mbarrier.arrive.shared.b64 %d2, [other];" + test),
               contains("mbarrier-state: "));
    CHECK_THAT(in("mbarrier.test_wait.parity.shared.b64 %p2, [bar], 2;"),
               contains("mbarrier-parity: ") && contains("parity 2"));
}

TEST_CASE("loads and stores of a live barrier") {
    CHECK_THAT(finding(init("1") + "ld.shared.u32 %r20, [bar+4];"),
               contains("mbarrier-read: ") && contains("a load of 4 bytes at offset 4 of 'bar'") &&
                   contains("the barrier: @%p1 mbarrier.init"));
    CHECK_THAT(finding(init("64") + "atom.shared.add.u32 %r20, [bar], 1;"),
               contains("mbarrier-read: ") && contains("an atomic"));
    CHECK_THAT(finding(init("64") + "st.shared.b8 [bar+7], 0; mbarrier.arrive.shared.b64 _, [bar];"),
               contains("mbarrier-overwritten: ") && contains("have been written"));
    CHECK_THAT(finding(init("64") + "atom.shared.exch.b32 %r20, [bar], 1; mbarrier.arrive.shared.b64 _, [bar];"),
               contains("mbarrier-overwritten: "));
    CHECK_THAT(finding(init("64") + "ld.shared.b32 %r20, [tile]; st.shared.b32 [bar], %r20;"),
               contains("mbarrier-overwritten: "));
    CHECK_THAT(finding(init("64") + "cp.async.ca.shared.global [bar], [%d1], 4;"), contains("mbarrier-overwritten: "));
    // an array of which other bytes are all written, and a barrier in what had been
    const std::string all = "st.shared.u32 [%r3], %r1; bar.sync 0;\n";
    CHECK_THAT(finding(all + "@%p1 mbarrier.init.shared.b64 [tile+8], 1; bar.sync 0; ld.shared.u32 %r20, [%r3];"),
               contains("mbarrier-read: "));
    CHECK(finding(all +
                  "@%p1 mbarrier.init.shared.b64 [tile+8], 1; bar.sync 0; @%p1 mbarrier.inval.shared.b64 [tile+8];"
                  "bar.sync 0; st.shared.u32 [%r3], %r1; bar.sync 0; ld.shared.u32 %r20, [%r3];" +
                  store) == ": no failure");
}

TEST_CASE("everybody waits at barriers: what is missing is said") {
    const std::string wait = "mov.u32 %r9, 0; $wait;\n";
    const std::string said = finding(init("65") + "mbarrier.arrive.shared.b64 _, [bar];" + wait);
    CHECK_THAT(said, contains("deadlock: ") && contains("deadlock in block (0,0,0): no warp can continue; warp ") &&
                         contains("waits for phase 0 of the barrier at offset 0 of 'bar' in shared memory (8 bytes), "
                                  "which lacks 1 of 65 arrivals"));
    CHECK_THAT(finding(init("64") +
                       "mbarrier.expect_tx.shared::cta.b64 [bar], 32; mbarrier.arrive.shared.b64 _, [bar];" + wait),
               contains("deadlock: ") && contains("which lacks 2048 bytes"));
    CHECK_THAT(finding(init("64") +
                       "@%p1 mbarrier.expect_tx.shared::cta.b64 [bar], 32; setp.eq.u32 %p3, %r1, 7;"
                       "@!%p3 mbarrier.arrive.shared.b64 _, [bar];" +
                       wait),
               contains("deadlock: ") && contains("which lacks 1 of 64 arrivals and 32 bytes"));
    // by state and test_wait; other warps have exited or wait at another barrier
    CHECK_THAT(finding(init("64") + "setp.lt.u32 %p3, %r1, 32; @%p3 bra $end; mbarrier.arrive.shared.b64 %d2, [bar];\n"
                                    "$l: mbarrier.test_wait.shared.b64 %p2, [bar], %d2; @!%p2 bra $l;"),
               contains("deadlock: ") && contains("lacks 32 of 64 arrivals"));
    CHECK_THAT(finding(init("64") + "setp.lt.u32 %p3, %r1, 32; @%p3 bra $a; mbarrier.arrive.shared.b64 %d2, [bar];" +
                       wait + "$a: bar.sync 0;"),
               contains("deadlock: ") && contains("wait at barrier 0"));
    // one of them polls ordinary memory
    CHECK_THAT(finding(init("64") + "st.shared.u32 [%r3], 0; bar.sync 0; setp.lt.u32 %p3, %r1, 32; @%p3 bra $a;" +
                       wait + "$a: ld.volatile.shared.u32 %r20, [tile]; setp.eq.u32 %p2, %r20, 0; @%p2 bra $a;"),
               contains("endless-wait: ") && contains("which lacks 64 of 64 arrivals"));
    // a wait that somebody ends late is none
    CHECK(finding(init("32") + "setp.lt.u32 %p3, %r1, 32; @%p3 bra $a;" + wait +
                  "bra $end;\n"
                  "$a: mov.u32 %r20, 100000; $count: sub.u32 %r20, %r20, 1; setp.ne.u32 %p4, %r20, 0; @%p4 bra $count;"
                  "mbarrier.arrive.shared.b64 _, [bar];") == ": no failure");
}

namespace {

const std::string meet = "barrier.cluster.arrive.release; barrier.cluster.wait.acquire;\n";
/// In clusters of two: %r10 is the address of the other block's barrier, %d10 that of the own in the cluster.
const std::string of_both =
    "mov.u32 %r11, %cluster_ctarank; xor.b32 %r12, %r11, 1; mapa.shared::cluster.u32 %r10, %r2, %r12;"
    "cvta.shared.u64 %d9, 0; cvt.u64.u32 %d10, %r2; cvta.shared.u64 %d10, %d10;"
    "mapa.u64 %d11, %d10, %r12;\n";
std::string in_pairs(const std::string& body) {
    return finding(of_both + init("64") + meet + body + meet, 64, ".reqnctapercluster 2, 1, 1", 2);
}

}  // namespace

TEST_CASE("barriers of the other block of a cluster") {
    const std::string wait = "mov.u32 %r9, 0; $wait;\n";
    CHECK(in_pairs("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r10];" + wait) == ": no failure");
    CHECK(in_pairs("mbarrier.arrive.b64 _, [%d11];" + wait) == ": no failure");
    CHECK(in_pairs("mbarrier.arrive.expect_tx.shared::cluster.b64 _, [%r10], 16;"
                   "mbarrier.complete_tx.shared::cluster.b64 [%r10], 16;" +
                   wait) == ": no failure");
    // only one block arrives
    CHECK_THAT(in_pairs("setp.eq.u32 %p3, %r11, 0; @%p3 mbarrier.arrive.shared::cluster.b64 _, [%r10];" + wait),
               contains("deadlock: ") && contains("lacks 64 of 64 arrivals"));
    CHECK_THAT(in_pairs("mbarrier.test_wait.parity.b64 %p3, [%d11], 0;"),
               contains("mbarrier-remote: ") && contains("only threads of its own block can wait at the barrier"));
    CHECK_THAT(in_pairs("mbarrier.arrive.shared::cluster.b64 %d2, [%r10];"),
               contains("not-emulated: ") && contains("write _ for it"));
    CHECK_THAT(in_pairs("mbarrier.arrive.shared.b64 _, [%r10];"), contains("wrong-space: "));
    CHECK_THAT(in_pairs("ld.u32 %r20, [%d11];"), contains("mbarrier-read: ") && contains("of block ("));
}

}  // namespace ikat::tests::mbarriers
