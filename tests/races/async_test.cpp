// SPDX-License-Identifier: Apache-2.0
// Races with asynchronous work: copies, and products.
#include "tests/races/twins.hpp"

using namespace ikat::tests::races;

namespace {

constexpr Twins async_twins[] = {
    {"each waits for its copies, and they meet or do not",
     R"(cp.async.ca.shared.global [%r4], [%d1], 4; cp.async.wait_all; <bar.sync 0;|> ld.shared.u32 %r9, [%r6];)"},
    {"a barrier before the wait instead of after it",
     R"(cp.async.ca.shared.global [%r4], [%d1], 4; cp.async.commit_group; <cp.async.wait_group 0; bar.sync 0;|bar.sync 0; cp.async.wait_group 0;>
    ld.shared.u32 %r9, [%r6];)"},
    {"a copy to what others may still read",
     R"(st.shared.u32 [%r4], %r1; bar.sync 0; ld.shared.u32 %r9, [%r6]; <bar.sync 0;|> cp.async.ca.shared.global [%r4], [%d1], 4;
    cp.async.wait_all;)"},
    {"a copy to what others have written",
     R"(st.shared.u32 [%r6], %r1; <bar.sync 0;|> cp.async.ca.shared.global [%r4], [%d1], 4; cp.async.wait_all;)"},
    {"a pipeline of two stages without the barrier after its reads",
     R"(mov.u32 %r10, 0; cp.async.ca.shared.global [%r4], [%d1], 4; cp.async.commit_group;
$loop: and.b32 %r11, %r10, 1; xor.b32 %r12, %r11, 1; shl.b32 %r11, %r11, 10; shl.b32 %r12, %r12, 10; add.u32 %r13, %r4, %r12;
    cp.async.ca.shared.global [%r13], [%d1+512], 4; cp.async.commit_group; cp.async.wait_group 1; bar.sync 0;
    add.u32 %r14, %r6, %r11; ld.shared.u32 %r15, [%r14]; <bar.sync 0;|> add.u32 %r10, %r10, 1; setp.lt.u32 %p3, %r10, 4;
    @%p3 bra $loop; cp.async.wait_all;)"},
    {"a pipeline of three stages whose next copy is after the barrier, and before it",
     R"(mov.u32 %r10, 0; cp.async.ca.shared.global [%r4], [%d1], 4; cp.async.commit_group;
    cp.async.ca.shared.global [%r4+512], [%d1], 4; cp.async.commit_group;
$loop: rem.u32 %r11, %r10, 3; add.u32 %r12, %r10, 2; rem.u32 %r12, %r12, 3; shl.b32 %r11, %r11, 9; shl.b32 %r12, %r12, 9;
    add.u32 %r13, %r4, %r12; <cp.async.wait_group 1; bar.sync 0; cp.async.ca.shared.global [%r13], [%d1], 4; cp.async.commit_group;|cp.async.ca.shared.global [%r13], [%d1], 4; cp.async.commit_group; cp.async.wait_group 2; bar.sync 0;>
    add.u32 %r14, %r6, %r11; ld.shared.u32 %r15, [%r14]; add.u32 %r10, %r10, 1; setp.lt.u32 %p3, %r10, 6; @%p3 bra $loop;
    cp.async.wait_all;)"},
    {"copies that arrive at a barrier",
     R"(cp.async.ca.shared.global [%r4], [%d1], 4; cp.async.mbarrier.arrive.noinc.shared.b64 [bar]; <$wait bar, 0;|cp.async.wait_all;>
    ld.shared.u32 %r9, [%r6]; <|$wait bar, 0;>)"},
    {"copies that have arrived at a barrier are over for whom a warp that has waited there meets",
     R"(cp.async.ca.shared.global [%r4], [%d1], 4; cp.async.mbarrier.arrive.noinc.shared.b64 [bar];
    setp.eq.u32 %p3, %r3, 0; @!%p3 bra $meet; $wait bar, 0;
$meet: <bar.sync 1, 64;|> ld.shared.u32 %r9, [%r6]; $wait bar, 0;)",
     64, "", "copy-not-awaited"},
    {"a bulk load that one thread has awaited",
     R"(@%p1 mbarrier.inval.shared.b64 [bar]; @%p1 mbarrier.init.shared.b64 [bar], 1; @%p1 fence.mbarrier_init.release.cluster; bar.sync 0;
    @!%p1 bra $skip; mbarrier.arrive.expect_tx.shared.b64 _, [bar], 512;
    cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [tile], [%d2], 512, [bar]; $wait bar, 0;
$skip: <bar.sync 0;|> ld.shared.u32 %r9, [%r4]; bar.sync 0;)",
     128, "", "copy-not-awaited"},
    {"a bulk load to what others may still read",
     R"(@%p1 mbarrier.inval.shared.b64 [bar]; @%p1 mbarrier.init.shared.b64 [bar], 1; @%p1 fence.mbarrier_init.release.cluster;
    st.shared.u32 [%r4], %r1; fence.proxy.async; bar.sync 0; ld.shared.u32 %r9, [%r6]; <bar.sync 0;|> @!%p1 bra $skip;
    mbarrier.arrive.expect_tx.shared.b64 _, [bar], 512;
    cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [tile], [%d2], 512, [bar];
$skip: $wait bar, 0;)"},
    {"a stage that is filled again before a warp has read it",
     R"(@%p1 mbarrier.inval.shared.b64 [bar]; @%p1 mbarrier.inval.shared.b64 [empty]; @%p1 mbarrier.init.shared.b64 [bar], 1;
    @%p1 mbarrier.init.shared.b64 [empty], 32; @%p1 fence.mbarrier_init.release.cluster; bar.sync 0;
    setp.eq.u32 %p3, %r3, 0; @!%p3 bra $consume; @!%p1 bra $end;
    mbarrier.arrive.expect_tx.shared.b64 _, [bar], 128;
    cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [tile], [%d2], 128, [bar]; <$wait empty, 0;|$wait bar, 0;>
    mbarrier.arrive.expect_tx.shared.b64 _, [bar], 128;
    cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [tile], [%d2], 128, [bar]; $wait bar, 1; bra $end;
$consume: $wait bar, 0; ld.shared.u32 %r9, [%r4-128]; mbarrier.arrive.shared.b64 _, [empty]; $wait bar, 1;)",
     64, "", "copy-not-awaited deadlock"},
    {"an arrival after copies, for which their thread waits, too",
     R"(@%p1 mbarrier.inval.shared.b64 [bar]; @%p1 mbarrier.init.shared.b64 [bar], 32; bar.sync 0;
    setp.eq.u32 %p3, %r3, 0; @!%p3 bra $consume;
    cp.async.ca.shared.global [%r4], [%d1], 4; cp.async.mbarrier.arrive.noinc.shared.b64 [bar]; cp.async.wait_all; bra $end;
$consume: <$wait bar, 0;|> ld.shared.u32 %r9, [%r4-128];)",
     64, "", "copy-not-awaited"},
    {"a bulk store's source is used again after its wait, and before it",
     R"(st.shared.u32 [%r4], %r1; fence.proxy.async; bar.sync 0; @!%p1 bra $skip;
    cp.async.bulk.global.shared::cta.bulk_group [%d2], [tile], 512; cp.async.bulk.commit_group; <cp.async.bulk.wait_group.read 0;|>
$skip: bar.sync 0; st.shared.u32 [%r4], %r1; <|@%p1 cp.async.bulk.wait_group.read 0;>)"},
    {"a bulk store of what others have not finished writing",
     R"(st.shared.u32 [%r4], %r1; fence.proxy.async; <bar.sync 0;|bar.warp.sync -1;> @!%p1 bra $skip;
    cp.async.bulk.global.shared::cta.bulk_group [%d2], [tile], 512; cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;
$skip:)"},
    {"one lane has awaited its copy, which another warp reads while the others' continues",
     R"(@%p1 st.shared.u32 [tile+2048], 0; bar.sync 0; cp.async.ca.shared.global [%r4], [%d1], 4; @%p1 cp.async.wait_all; <bar.sync 0;|>
    setp.eq.u32 %p3, %r3, 1; @%p3 bra $read;
$wait_for_it: ld.volatile.shared.u32 %r9, [tile+2048]; setp.eq.u32 %p4, %r9, 0; @%p4 bra $wait_for_it; cp.async.wait_all; bra $end;
$read: @%p2 ld.shared.u32 %r9, [tile]; @%p2 st.volatile.shared.u32 [tile+2048], 1; cp.async.wait_all;)",
     64, "", "copy-not-awaited"},
};

constexpr Twins by_words[] = {
    {"a bulk store of words that two warps have read, and a third one has changed the last",
     R"(setp.eq.u32 %p3, %r1, 96; shr.u32 %r10, %r1, 5; sub.u32 %r10, %r10, 1; setp.lt.u32 %p4, %r10, 2; mad.lo.u32 %r8, %r2, 4, %r5;
    st.shared.u32 [%r4], %r1; fence.proxy.async; bar.sync 0;
    @%p4 ld.volatile.shared.u32 %r9, [%r8]; @%p3 red.shared.add.u32 [tile+124], 1; @%p3 fence.proxy.async; <bar.sync 0;|>
    @%p1 cp.async.bulk.global.shared::cta.bulk_group [%d2], [%r5], 128; @%p1 cp.async.bulk.commit_group;
    @%p1 cp.async.bulk.wait_group 0;)",
     128, "", "bulk-not-visible bulk-changed"},
    {"a barrier of two warps after one of all, and a third that reads what one of them has written",
     R"(setp.eq.u32 %p3, %r3, 1; setp.lt.u32 %p4, %r3, 2; setp.eq.u32 %p5, %r3, 3; mad.lo.u32 %r8, %r2, 4, %r5; bar.sync 0;
    @!%p4 bra $others; @%p3 st.shared.u32 [%r8], %r1; bar.sync 1, 64; ld.shared.u32 %r9, [%r8]; <bar.sync 0;|> bra $end;
$others: <bar.sync 0;|> @%p5 ld.shared.u32 %r9, [%r8];)"},
};

}  // namespace

TEST_CASE("races with asynchronous work, and their right twins") {
    for (const Twins& each : async_twins) check(each);
    for (const Twins& each : by_words) check(each);
}
