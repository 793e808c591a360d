// SPDX-License-Identifier: Apache-2.0
// Races in the shared memory of the blocks of a cluster.
#include "tests/races/twins.hpp"

using namespace ikat;
using namespace ikat::tests::races;
using ikat::tests::Machine;

namespace {

// %r22 is the other block of two, %r23 the address of the thread's word there.
#define OTHER                                                                                          \
    "xor.b32 %r22, %r20, 1; mapa.shared::cluster.u32 %r23, %r4, %r22; mapa.shared::cluster.u32 %r24, " \
    "%r5, %r22; "
#define MEET "barrier.cluster.arrive.release; barrier.cluster.wait.acquire; "
#define BYE " barrier.cluster.arrive.relaxed; barrier.cluster.wait;"

constexpr Twins cluster_twins[] = {
    in_cluster("a block reads what the other has stored", 2, 64,
               OTHER "barrier.cluster.arrive.relaxed; barrier.cluster.wait; st.shared.u32 [%r4], %r1; <" MEET
                     "|> ld.shared::cluster.u32 %r9, [%r23];" BYE,
               "block ("),
    in_cluster("an arrival that releases nothing", 2, 64,
               OTHER
               "st.shared.u32 [%r4], %r1; barrier.cluster.arrive.<release|relaxed>; barrier.cluster.wait.acquire; "
               "ld.shared::cluster.u32 %r9, [%r23];" BYE),
    in_cluster("a block writes again what the other reads", 2, 64,
               OTHER "st.shared.u32 [%r4], %r1; " MEET "ld.shared::cluster.u32 %r9, [%r23]; <" MEET
                     "|> st.shared.u32 [%r4], 5;" BYE),
    in_cluster("stores into the other block", 2, 64,
               OTHER MEET "st.shared::cluster.u32 [%r23], %r1; <" MEET "|> ld.shared.u32 %r9, [%r4];" BYE),
    in_cluster("stores into the other block, and a barrier of one", 2, 64,
               OTHER MEET "st.shared::cluster.u32 [%r23], %r1; <" MEET "|bar.sync 0;> ld.shared.u32 %r9, [%r4];" BYE),
    in_cluster("two blocks store into a third", 4, 32,
               MEET
               "mapa.shared::cluster.u32 %r23, %r5, 3; mad.lo.u32 %r23, %r20, <4|0>, %r23; @%p1 st.shared::cluster.u32 "
               "[%r23], %r20;" BYE),
    in_cluster("two blocks count in a third", 4, 32,
               MEET "mapa.shared::cluster.u32 %r23, %r5, 3; mapa.shared::cluster.u32 %r24, %r6, 3; @%p1 "
                    "<red|st>.<relaxed.cluster.|>shared::cluster.<add.|>u32 [%r23], %r20;" BYE),
    in_cluster(
        "atomics in the scope of a block", 4, 32,
        MEET
        "mapa.shared::cluster.u32 %r23, %r5, 3; @%p1 red.relaxed.<cluster|cta>.shared::cluster.add.u32 [%r23], 1;" BYE),
    in_cluster("a flag in the other block", 2, 64,
               OTHER "@%p1 st.shared.u32 [tile], 0; " MEET
                     "@!%p1 bra $met; @!%p10 bra $reader; st.shared::cluster.u32 [%r24+16], 5; "
                     "st.<release|relaxed>.cluster.shared::cluster.u32 [%r24], 1; bra $met;"
                     "$reader: ld.acquire.cluster.shared.u32 %r9, [tile]; setp.eq.u32 %p4, %r9, 0; @%p4 bra $reader; "
                     "ld.shared.u32 %r9, [tile+16]; $met:" BYE),
    in_cluster(
        "an arrival at the other block's barrier", 2, 64,
        OTHER
        "mov.u32 %r10, bar; mapa.shared::cluster.u32 %r11, %r10, %r22; " MEET
        "st.shared::cluster.u32 [%r23], %r1; <mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r11]; $wait "
        "bar, 0;|> ld.shared.u32 %r9, [%r4];" BYE),
    in_cluster("an arrival before the store", 2, 64,
               OTHER
               "mov.u32 %r10, bar; mapa.shared::cluster.u32 %r11, %r10, %r22; " MEET
               "<st.shared::cluster.u32 [%r23], %r1;|> mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r11]; "
               "<|st.shared::cluster.u32 [%r23], %r1;> $wait bar, 0; ld.shared.u32 %r9, [%r4];" BYE),
    in_cluster("st.async is there when its barrier says so", 2, 32,
               OTHER
               "mov.u32 %r10, empty; mapa.shared::cluster.u32 %r11, %r10, %r22; "
               "@%p1 mbarrier.expect_tx.shared.b64 [empty], 128; mbarrier.arrive.shared.b64 %d9, [empty];" MEET
               "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.u32 [%r23], %r1, [%r11]; <$wait empty, 0;|> "
               "ld.shared.u32 %r9, [%r4]; <|$wait empty, 0;>" BYE,
               "", "copy-not-awaited"),
    in_cluster(
        "what the other block reads is filled again by a bulk copy", 2, 32,
        OTHER
        "st.shared.u32 [%r4], %r1; " MEET "ld.shared::cluster.u32 %r9, [%r23]; <" MEET
        "|> setp.ne.u32 %p3, %r1, 0; fence.proxy.async; @%p3 mbarrier.arrive.shared.b64 %d9, [bar]; @%p3 bra $asks; "
        "mbarrier.arrive.expect_tx.shared.b64 %d9, [bar], 128; "
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r5], [%d2], 128, [bar]; $asks: "
        "$wait bar, 0;" BYE),
    in_cluster(
        "a copy for both blocks, before the other one has read", 2, 32,
        OTHER "st.shared.u32 [%r4], %r1; fence.proxy.async; fence.mbarrier_init.release.cluster; "
              "@%p1 mbarrier.expect_tx.shared.b64 [bar], 128; mbarrier.arrive.shared.b64 %d9, [bar]; " MEET
              "ld.shared.u32 %r9, [%r6]; <" MEET "|> mov.u16 %h1, 3; @!%p10 bra $asks; @!%p1 bra $asks; "
              "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%r5], [%d2], 128, "
              "[bar], %h1; $asks: $wait bar, 0; ld.shared.u32 %r9, [%r6];" BYE),
    in_cluster("threads of one block, in a cluster", 2, 64,
               "st.shared.u32 [%r4], %r1; <bar.sync 0;|> xor.b32 %r10, %r1, 32; shl.b32 %r10, %r10, 2; add.u32 %r10, "
               "%r10, %r5; "
               "ld.shared.u32 %r9, [%r10];"),
    in_cluster("a store after the arrival", 2, 64,
               OTHER "<st.shared.u32 [%r4], %r1;|> barrier.cluster.arrive.release; <|st.shared.u32 [%r4], %r1;> "
                     "barrier.cluster.wait.acquire; ld.shared::cluster.u32 %r9, [%r23];" BYE),
    in_cluster("a reader that leaves the barrier when the other has arrived again", 2, 32,
               OTHER "barrier.cluster.arrive.release; @%p10 bra $write; $again: ld.volatile.global.u32 %r9, [%d3]; "
                     "setp.eq.u32 %p4, %r9, 0; @%p4 bra $again; barrier.cluster.wait.acquire; <" MEET
                     "|> ld.shared::cluster.u32 %r9, [%r23]; <|" MEET
                     "> bra $over; $write: barrier.cluster.wait.acquire; st.shared.u32 [%r4], %r1; "
                     "barrier.cluster.arrive.release; st.volatile.global.u32 [%d3], 1; barrier.cluster.wait.acquire; "
                     "$over:" BYE),
    in_cluster("lanes after the barrier", 2, 32,
               MEET "st.shared.u32 [%r4], %r1; <bar.warp.sync -1;|> ld.shared.u32 %r9, [%r6];" BYE),
    in_cluster("a warp that has ended has stored before", 2, 64,
               OTHER "@!%p10 bra $reader; st.shared.u32 [%r4], %r1; setp.eq.u32 %p3, %r3, 1; @%p3 bra $end; " MEET
                     "bra $over; $reader: <" MEET "|> ld.shared::cluster.u32 %r9, [%r23]; <|" MEET "> $over:" BYE),
    in_cluster("a warp that has ended has stored before, and the other arrives without releasing", 2, 64,
               OTHER
               "@!%p10 bra $reader; setp.eq.u32 %p3, %r3, <1|0>; @%p3 st.shared.u32 [%r4], %r1; setp.eq.u32 %p3, "
               "%r3, 1; @%p3 bra $end; barrier.cluster.arrive.relaxed; barrier.cluster.wait; bra $over; $reader: " MEET
               "ld.shared::cluster.u32 %r9, [%r23]; $over:" BYE),
    in_cluster("the blocks of a cluster count in its scope", 4, 32,
               R"(@!%p1 bra $end; mad.wide.u32 %d5, %r20, 4, %d2; st.global.u32 [%d5], %r20;
    atom.<acq_rel|relaxed>.cluster.global.add.u32 %r9, [%d3], 1; setp.ne.u32 %p4, %r9, 3; @%p4 bra $end;
    ld.global.v4.u32 {%r10, %r11, %r12, %r13}, [%d2];)"),
};

}  // namespace

TEST_CASE("races between the blocks of a cluster") {
    for (const Twins& each : cluster_twins) check(each);
}

namespace {

/// What is found in a grid of 4 x 4 blocks in clusters of 2 x 2; %r30 is the block's number.
std::string found_in_square(std::string_view body) {
    Machine machine;
    machine.options.checks.set(emulator::Check::Races, emulator::Action::Error);
    const auto x = machine.buffer("x", std::vector<std::uint32_t>(1024, 1));
    const auto flags = machine.buffer("flags", std::vector<std::uint32_t>(64));
    machine.failure(
        module_of("mov.u32 %r29, %ctaid.y; mad.lo.u32 %r30, %r29, 4, %r20; mul.wide.u32 %d5, %r30, 4; add.u64 "
                  "%d5, %d5, %d2; " +
                  std::string(body)),
        {.grid = {4, 4, 1}, .block = {32, 1, 1}, .cluster = {2, 2, 1}}, x, flags);
    return machine.code;
}

}  // namespace

TEST_CASE("clusters of several rows, one after the other") {
    // Each block stores for the one that is diagonal to it in its cluster.
    const std::string stores =
        "xor.b32 %r31, %r30, 5; mul.wide.u32 %d6, %r31, 4; add.u64 %d6, %d6, %d2; @%p1 "
        "st.global.u32 [%d6], %r30; ";
    CHECK(found_in_square(stores + MEET "@%p1 ld.global.u32 %r9, [%d5];") == "");
    CHECK(found_in_square(stores + "@%p1 ld.global.u32 %r9, [%d5];") == "race");
    // The blocks of a cluster count, and so do those of the same column.
    const auto count = [](std::string_view scope, std::string_view of) {
        return "shr.u32 %r10, %r20, 1; shr.u32 %r11, %r29, 1; mad.lo.u32 %r10, %r11, 2, %r10; mov.u32 %r11, %r20; "
               "mad.wide.u32 %d6, " +
               std::string(of) + ", 4, %d3; @%p1 red.relaxed." + std::string(scope) + ".global.add.u32 [%d6], 1;";
    };
    CHECK(found_in_square(count("cluster", "%r10")) == "");
    CHECK(found_in_square(count("cta", "%r10")) == "race");
    CHECK(found_in_square(count("gpu", "%r11")) == "");
    CHECK(found_in_square(count("cluster", "%r11")) == "race");
    // What one cluster has done with its memory is nothing to the next one, which has the same.
    CHECK(found_in_square(
              MEET "mapa.shared::cluster.u32 %r23, %r4, 3; @%p1 st.shared::cluster.u32 [%r23], %r30;" BYE) == "race");
    CHECK(found_in_square(
              "mapa.shared::cluster.u32 %r23, %r4, 3; mov.u32 %r24, %cluster_ctarank; setp.eq.u32 %p3, %r24, 0; " MEET
              "@%p3 st.shared::cluster.u32 [%r23], 5;" BYE) == "");
}
