// SPDX-License-Identifier: Apache-2.0
// Kernels of the classes in public suites of races, each named after the suite and the class there: GPUVerify's tests,
// and the samples and the manual of NVIDIA's compute-sanitizer.
#include <ikat/catch.hpp>
#include <ikat/ikat.hpp>

#include "tests/races/twins.hpp"

using namespace ikat;
using ikat::tests::races::between;
using ikat::tests::races::in_cluster;
using PtxTwins = ikat::tests::races::Twins;

namespace {

constexpr PtxTwins gpuverify[] = {
    // GPUVerify lets the wrong one pass: its warps run in step. Here lanes are ordered by barriers alone.
    {"GPUVerify warpsync: a scan of a block by scans of its warps",
     R"(st.shared.u32 [%r4], %r1; <bar.warp.sync -1;|> mov.u32 %r10, 1;
$scan: setp.ge.u32 %p3, %r2, %r10; shl.b32 %r11, %r10, 2; sub.u32 %r11, %r4, %r11; mov.u32 %r12, 0;
    @%p3 ld.shared.u32 %r12, [%r11]; ld.shared.u32 %r13, [%r4]; <bar.warp.sync -1;|> add.u32 %r13, %r13, %r12;
    @%p3 st.shared.u32 [%r4], %r13; <bar.warp.sync -1;|> shl.b32 %r10, %r10, 1; setp.lt.u32 %p4, %r10, 32; @%p4 bra $scan;
    shl.b32 %r14, %r3, 2; add.u32 %r14, %r14, %r5; setp.eq.u32 %p5, %r2, 31; @%p5 st.shared.u32 [%r14+1024], %r13;
    bar.sync 0; mov.u32 %r15, 0; mov.u32 %r16, %r5;
$before: setp.ge.u32 %p6, %r15, %r3; @%p6 bra $sum; ld.shared.u32 %r17, [%r16+1024]; add.u32 %r13, %r13, %r17;
    add.u32 %r16, %r16, 4; add.u32 %r15, %r15, 1; bra $before;
$sum: st.global.u32 [%d1], %r13;)",
     128, "hint: lanes of a warp are ordered by bar.warp.sync"},
    // GPUVerify lets this one pass as well, for the same reason.
    {"GPUVerify warpsync: a small matrix is transposed in place",
     R"(and.b32 %r10, %r1, 3; shr.u32 %r11, %r1, 2; mad.lo.u32 %r12, %r10, 4, %r11; mad.lo.u32 %r13, %r11, 4, %r10;
    shl.b32 %r12, %r12, 2; add.u32 %r12, %r12, %r5; shl.b32 %r13, %r13, 2; add.u32 %r13, %r13, %r5;
    ld.global.u32 %r14, [%d1]; st.shared.u32 [%r12], %r14; bar.warp.sync 0xffff; ld.shared.u32 %r15, [%r13];
    <bar.warp.sync 0xffff;|> st.shared.u32 [%r12], %r15; bar.sync 0; ld.shared.u32 %r15, [%r13]; st.global.u32 [%d1], %r15;)",
     16, "a race: a load and a store of 4 bytes"},
    between(
        "GPUVerify warpsync: warps of half the width in a rotation by one", 1, 64,
        R"(add.u32 %r10, %r2, 1; and.b32 %r10, %r10, 31; mad.lo.u32 %r10, %r3, 32, %r10; mad.wide.u32 %d5, %r10, 4, %d2;
    ld.global.u32 %r11, [%d5];
    <bar.warp.sync -1;|setp.lt.u32 %p3, %r2, 16; @%p3 bra $low; bar.warp.sync 0xffff0000; bra $met; $low: bar.warp.sync 0xffff;>
$met: st.global.u32 [%d1], %r11;)",
        "a race: a load and a store of 4 bytes"),
    between("GPUVerify cooperative_groups: a shift by one after the grid's barrier, and after the block's", 4, 64,
            R"(ld.global.u32 %r10, [%d4+4]; bar.sync 0;
    <@!%p1 bra $met; red.release.gpu.global.add.u32 [%d3], 1;
$spin: ld.acquire.gpu.global.u32 %r9, [%d3]; setp.lt.u32 %p4, %r9, 4; @%p4 bra $spin;
$met: bar.sync 0;|> st.global.u32 [%d4], %r10;)",
            "hint: blocks are ordered by launches"),
    // Thread 0 adds nothing, and so the next one gets its place.
    between("GPUVerify atomics: places in a list from an atomic that adds one, and one that adds the thread", 1, 32,
            "atom.global.add.u32 %r9, [%d3], <1|%r1>; mad.wide.u32 %d5, %r9, 4, %d2; add.u32 %r10, %r1, 100; "
            "st.global.u32 [%d5], %r10;",
            "a race: a store and a store of 4 bytes at offset 0"),
    between("GPUVerify atomics: one thread takes a place that is not from the counter", 2, 64,
            R"(mov.u32 %r9, 12; setp.ne.u32 %p3, %r21, 13; <|@%p3 >atom.global.add.u32 %r9, [%d3], 1;
    mad.wide.u32 %d5, %r9, 4, %d2; st.global.u32 [%d5], %r21;)",
            "a race: a store and a store of 4 bytes at offset 48 of buffer 'x'"),
    between("GPUVerify atomics: places in a list of all blocks from a counter of each block", 3, 64,
            R"(@%p1 st.shared.u32 [tile], 0; bar.sync 0; atom.shared.add.u32 %r9, [tile], 1;
    <mad.lo.u32 %r9, %r20, %r7, %r9;|> mad.wide.u32 %d5, %r9, 4, %d2; st.global.u32 [%d5], %r21;)",
            "hint: blocks are ordered by launches"),
    {"GPUVerify benign_race_tests: 64 threads that store thread / 64, and 65",
     R"(setp.lt.u32 %p3, %r1, <64|65>; shr.u32 %r10, %r1, 6; @%p3 st.shared.u32 [tile+40], %r10;)", 96,
     "a race: a store and a store of 4 bytes at offset 40"},
    // GPUVerify lets the wrong one pass, since what is stored has been there. Here a load has to be ordered with it.
    {"GPUVerify benign_race_tests: all store again what all have read",
     R"(@%p1 st.shared.u32 [tile], 5; bar.sync 0; ld.shared.u32 %r10, [tile]; <bar.sync 0;|> st.shared.u32 [tile], %r10;)",
     128, "a race: a load and a store of 4 bytes"},
    between("GPUVerify inter_group: blocks store their threads' numbers at one place, and those of all threads", 2, 32,
            "st.global.u32 [%d1], <%r1|%r21>;", "by block (0,0,0) thread"),
    // GPUVerify reports both: it knows nothing of what the array holds. Here the values are looked at.
    {"GPUVerify loop_unwind: all threads copy an array, and one with their number in it",
     R"(mov.u32 %r10, 0; mov.u32 %r11, %r5; mov.u64 %d5, %d2;
$copy: ld.global.u32 %r12, [%d5]; <|add.u32 %r12, %r12, %r1;> st.shared.u32 [%r11], %r12; add.u64 %d5, %d5, 4;
    add.u32 %r11, %r11, 4; add.u32 %r10, %r10, 1; setp.lt.u32 %p3, %r10, 10; @%p3 bra $copy;)",
     64, "a race: a store and a store of 4 bytes"},
    {"GPUVerify async_work_group_copy: a barrier after each of two waits, and after one",
     R"(cp.async.ca.shared.global [%r4], [%d1], 4; cp.async.commit_group;
    cp.async.ca.shared.global [%r4+512], [%d1+512], 4; cp.async.commit_group; cp.async.wait_group 1; bar.sync 0;
    ld.shared.u32 %r10, [%r6]; cp.async.wait_group 0; <bar.sync 0;|> ld.shared.u32 %r11, [%r6+512];
    add.u32 %r10, %r10, %r11; st.global.u32 [%d1+1024], %r10;)",
     128, "a race: a write by an operation in flight"},
    between(
        "GPUVerify async_work_group_copy: blocks copy to a place of each, and to one of all", 2, 32,
        R"(st.shared.u32 [%r4], %r21; fence.proxy.async; bar.sync 0; mul.lo.u32 %r10, %r20, <128|0>; cvt.u64.u32 %d5, %r10;
    add.u64 %d5, %d5, %d2; @%p1 cp.async.bulk.global.shared::cta.bulk_group [%d5], [%r5], 128;
    @%p1 cp.async.bulk.commit_group; @%p1 cp.async.bulk.wait_group 0;)",
        "by block (0,0,0) and block (1,0,0) thread (0,0,0)"),
    // A plain copy would store what the neighbour stores: for GPUVerify a race, and here one of the class of its own.
    between("GPUVerify memcpy: a structure of six bytes, and one more", 1, 32,
            R"(mul.wide.u32 %d5, %r1, 6; add.u64 %d5, %d5, %d2; mov.u32 %r10, 0; cvt.u16.u32 %h1, %r1;
$copy: ld.global.u16 %h2, [%d5]; add.u16 %h2, %h2, %h1; st.global.u16 [%d5+2048], %h2; add.u64 %d5, %d5, 2;
    add.u32 %r10, %r10, 1; setp.lt.u32 %p3, %r10, <3|6>; @%p3 bra $copy;)",
            "a race: a store and a store of 2 bytes"),
    {"GPUVerify misc: rows move up in a loop, by steps of four and of two",
     R"(mov.u32 %r10, 0;
$fill: shl.b32 %r11, %r10, 9; add.u32 %r11, %r11, %r4; st.shared.u32 [%r11], %r10; add.u32 %r10, %r10, 1;
    setp.lt.u32 %p3, %r10, 8; @%p3 bra $fill; bar.sync 0; mov.u32 %r10, 0;
$up: shl.b32 %r11, %r10, 7; add.u32 %r11, %r11, %r4; ld.shared.u32 %r12, [%r11+128]; bar.sync 0;
    st.shared.u32 [%r11], %r12; add.u32 %r10, %r10, <4|2>; setp.lt.u32 %p3, %r10, 24; @%p3 bra $up;)",
     128, "of 'tile' in shared memory (4096 bytes) are not ordered"},
    between("GPUVerify curand: a generator for each thread, and one for the same thread of all blocks", 2, 32,
            R"(mov.u32 %r10, 0;
$draw: ld.global.u32 %r11, [<%d4|%d1>]; mad.lo.u32 %r11, %r11, 1664525, 1013904223; st.global.u32 [<%d4|%d1>], %r11;
    shr.u32 %r11, %r11, 8; st.global.u32 [%d4+2048], %r11; add.u32 %r10, %r10, 1; setp.lt.u32 %p3, %r10, 3; @%p3 bra $draw;)",
            "hint: blocks are ordered by launches"),
    // GPUVerify reports both as a divergence of the barrier. In PTX what counts is that all warps arrive.
    {"GPUVerify barrier divergence: the warps of two nested loops meet as often, with two buffers and with one",
     R"(setp.eq.u32 %p3, %r3, 0; selp.u32 %r10, 4, 1, %p3; selp.u32 %r11, 1, 4, %p3; st.shared.u32 [%r4], %r1;
    mov.u32 %r12, 0; mov.u32 %r14, 0;
$outer: mov.u32 %r13, 0;
$inner: bar.sync 0; add.u32 %r15, %r6, %r14; ld.shared.u32 %r16, [%r15]; xor.b32 %r17, %r14, 1024; add.u32 %r15, %r4, %r17;
    st.shared.u32 [%r15], %r16; <mov.u32 %r14, %r17;|> add.u32 %r13, %r13, 1; setp.lt.u32 %p4, %r13, %r11; @%p4 bra $inner;
    <|mov.u32 %r14, %r17;> add.u32 %r12, %r12, 1; setp.lt.u32 %p5, %r12, %r10; @%p5 bra $outer;)",
     64, "of 'tile' in shared memory (4096 bytes) are not ordered"},
    {"GPUVerify pointertests: a scan between two buffers that change places, and of which one stays",
     R"(st.shared.u32 [%r4], %r1; mov.u32 %r10, %r4; add.u32 %r11, %r4, 512; mov.u32 %r12, 1; bar.sync 0;
$step: ld.shared.u32 %r13, [%r10]; shl.b32 %r14, %r12, 2; sub.u32 %r14, %r10, %r14; setp.ge.u32 %p3, %r1, %r12;
    mov.u32 %r15, 0; @%p3 ld.shared.u32 %r15, [%r14]; add.u32 %r13, %r13, %r15; st.shared.u32 [%r11], %r13; bar.sync 0;
    mov.u32 %r16, %r10; mov.u32 %r10, %r11; <mov.u32 %r11, %r16;|> shl.b32 %r12, %r12, 1; setp.lt.u32 %p4, %r12, 64;
    @%p4 bra $step; ld.shared.u32 %r13, [%r10]; st.global.u32 [%d1], %r13;)",
     64, "of 'tile' in shared memory (4096 bytes) are not ordered"},
};

constexpr PtxTwins array_of_the_module =
    between("GPUVerify globalarray: an array of the module, by all threads and by those of a block", 2, 64,
            "mov.u64 %d5, table; mad.wide.u32 %d5, <%r21|%r1>, 4, %d5; st.global.u32 [%d5], %r21;", "'table'");

#define CLUSTER "barrier.cluster.arrive.release; barrier.cluster.wait.acquire;"
#define BINS                                                                                                        \
    "setp.lt.u32 %p3, %r1, 16; @%p3 st.shared.u32 [%r4], 0; mad.lo.u32 %r10, %r1, 7, %r20; and.b32 %r10, %r10, 31;" \
    "shr.u32 %r11, %r10, 4; and.b32 %r10, %r10, 15; shl.b32 %r10, %r10, 2; add.u32 %r10, %r10, %r5;"                \
    "mapa.shared::cluster.u32 %r12, %r10, %r11; "
#define COUNT " red.relaxed.cluster.shared::cluster.add.u32 [%r12], 1; "
#define COUNTED                                                                                              \
    " @%p3 ld.shared.u32 %r13, [%r4]; mad.lo.u32 %r14, %r20, 16, %r1; mad.wide.u32 %d5, %r14, 4, %d2; @%p3 " \
    "st.global.u32 [%d5], %r13; barrier.cluster.arrive.relaxed; barrier.cluster.wait;"

constexpr PtxTwins compute_sanitizer[] = {
    {"compute-sanitizer block_error: one thread sums what the block has stored",
     R"(ld.global.u32 %r10, [%d1]; add.u32 %r10, %r10, %r1; st.shared.u32 [%r4], %r10; <bar.sync 0;|> @!%p1 bra $end;
    mov.u32 %r11, 0; mov.u32 %r12, %r5; st.global.u32 [%d3], 0;
$sum: ld.shared.u32 %r13, [%r12]; ld.global.u32 %r14, [%d3]; add.u32 %r14, %r14, %r13; st.global.u32 [%d3], %r14;
    add.u32 %r12, %r12, 4; add.u32 %r11, %r11, 1; setp.lt.u32 %p3, %r11, %r7; @%p3 bra $sum;)",
     128, "a race: a store and a load of 4 bytes"},
    // For racecheck a warning: the author may have relied on warps in step. Here it is a race as any other.
    {"compute-sanitizer warp_error: one lane sums what its warp has stored, and a thread the sums of the warps",
     R"(ld.global.u32 %r10, [%d1]; add.u32 %r10, %r10, %r1; st.shared.u32 [%r4], %r10; <bar.warp.sync -1;|>
    shl.b32 %r11, %r3, 2; add.u32 %r11, %r11, %r5; @!%p2 bra $met; mov.u32 %r12, 0; mov.u32 %r13, %r4; st.shared.u32 [%r11+2048], 0;
$sum: ld.shared.u32 %r14, [%r13]; ld.shared.u32 %r15, [%r11+2048]; add.u32 %r15, %r15, %r14; st.shared.u32 [%r11+2048], %r15;
    add.u32 %r13, %r13, 4; add.u32 %r12, %r12, 1; setp.lt.u32 %p3, %r12, 32; @%p3 bra $sum;
$met: bar.sync 0; @!%p1 bra $end; ld.shared.v2.u32 {%r14, %r15}, [tile+2048]; add.u32 %r14, %r14, %r15; st.global.u32 [%d3], %r14;)",
     64, "hint: lanes of a warp are ordered by bar.warp.sync"},
    // Racecheck has a level of its own for hazards without effect, and here stores of one value are a class of their
    // own.
    {"compute-sanitizer WAW hazard: all who have found something say so, and say who they are",
     R"(@%p1 st.shared.u32 [tile], 0; bar.sync 0; ld.global.u32 %r10, [%d1]; setp.eq.u32 %p3, %r10, 1;
    @%p3 st.shared.u32 [tile], <1|%r1>; bar.sync 0; ld.shared.u32 %r11, [tile]; setp.ne.u32 %p4, %r11, 0;
    @%p4 st.global.u32 [%d1], %r1;)",
     128, "a race: a store and a store of 4 bytes"},
    {"compute-sanitizer cuda::barrier: a consumer gives back its stage before it reads, of two stages and of one",
     R"(@%p1 mbarrier.inval.shared.b64 [bar]; @%p1 mbarrier.inval.shared.b64 [empty]; @%p1 mbarrier.init.shared.b64 [bar], 32;
    @%p1 mbarrier.init.shared.b64 [empty], 32; bar.sync 0; mov.u32 %r10, 0; setp.eq.u32 %p3, %r3, 0; @!%p3 bra $consume;
$produce: setp.eq.u32 %p4, %r10, 0; @%p4 bra $fill; add.u32 %r12, %r10, 1; and.b32 %r12, %r12, 1; $wait empty, %r12;
$fill: and.b32 %r11, %r10, <1|0>; shl.b32 %r11, %r11, 10; add.u32 %r11, %r11, %r4;
    cp.async.ca.shared.global [%r11], [%d1], 4; cp.async.mbarrier.arrive.noinc.shared.b64 [bar]; add.u32 %r10, %r10, 1;
    setp.lt.u32 %p5, %r10, 4; @%p5 bra $produce; bra $end;
$consume: and.b32 %r12, %r10, 1; $wait bar, %r12; mbarrier.arrive.shared.b64 _, [empty]; and.b32 %r11, %r10, <1|0>;
    shl.b32 %r11, %r11, 10; add.u32 %r11, %r11, %r4; ld.shared.u32 %r13, [%r11-128]; st.global.u32 [%d1+1024], %r13;
    add.u32 %r10, %r10, 1; setp.lt.u32 %p5, %r10, 4; @%p5 bra $consume;)",
     64, "a race: a load and a write by an operation in flight"},
    {"compute-sanitizer cp.async.bulk: the next tile is copied to another stage while this one is read, and to the "
     "same",
     R"(@%p1 mbarrier.inval.shared.b64 [bar]; @%p1 mbarrier.init.shared.b64 [bar], 1;
    @%p1 fence.mbarrier_init.release.cluster; bar.sync 0; mov.u32 %r10, 0; @!%p1 bra $round;
    mbarrier.arrive.expect_tx.shared.b64 %d9, [bar], 256;
    cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r5], [%d2], 256, [bar];
$round: and.b32 %r11, %r10, 1; $wait bar, %r11; bar.sync 0; and.b32 %r11, %r10, <1|0>; add.u32 %r10, %r10, 1;
    setp.lt.u32 %p3, %r10, 4; and.pred %p4, %p1, %p3; @!%p4 bra $asked; and.b32 %r12, %r10, <1|0>; shl.b32 %r12, %r12, 10;
    add.u32 %r12, %r12, %r5; mbarrier.arrive.expect_tx.shared.b64 %d9, [bar], 256;
    cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r12], [%d2], 256, [bar];
$asked: shl.b32 %r11, %r11, 10; add.u32 %r11, %r11, %r6; ld.shared.u32 %r13, [%r11]; st.global.u32 [%d1+1024], %r13;
    @%p3 bra $round;)",
     64, "a race: a load and a write by an operation in flight", "copy-not-awaited"},
    // Of clusters, racecheck looks at the entry and the exit of blocks. Here these are of another check.
    in_cluster("compute-sanitizer cluster: bins of another block are counted in before it has cleared them", 2, 64,
               "barrier.cluster.arrive.relaxed; barrier.cluster.wait; " BINS "<" CLUSTER
               "|bar.sync 0;>" COUNT CLUSTER COUNTED,
               "are not ordered"),
    in_cluster("compute-sanitizer cluster: bins are read while another block counts in them", 2, 64,
               BINS CLUSTER COUNT "<" CLUSTER "|bar.sync 0;>" COUNTED, "are not ordered"),
};

}  // namespace

TEST_CASE("races of the classes in GPUVerify's tests") {
    for (const PtxTwins& each : gpuverify) check(each);
    check(array_of_the_module, ".global .align 4 .b32 table[128];\n");
}
TEST_CASE("races of the classes in compute-sanitizer's samples and manual") {
    for (const PtxTwins& each : compute_sanitizer) check(each);
}
