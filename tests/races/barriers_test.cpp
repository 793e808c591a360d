// SPDX-License-Identifier: Apache-2.0
// Races between warps that meet at named barriers, and at barriers in shared memory.
#include "tests/races/twins.hpp"

using namespace ikat::tests::races;

namespace {

constexpr Twins barriers_twins[] = {
    {"a producer arrives and a consumer waits, at one barrier and at two",
     R"(setp.lt.u32 %p3, %r1, 64; @!%p3 bra $consume; st.shared.u32 [%r4], %r1; bar.arrive <1|2>, 128; bar.sync 3, 64; bra $end;
$consume: <|bar.arrive 2, 128;> bar.sync <1, 128|4, 64>; ld.shared.u32 %r9, [%r4-256];)"},
    {"a producer that writes after its arrival",
     R"(setp.lt.u32 %p3, %r1, 64; @!%p3 bra $consume; <st.shared.u32 [%r4], %r1; bar.arrive 1, 128;|bar.arrive 1, 128; st.shared.u32 [%r4], %r1;>
    bra $end;
$consume: bar.sync 1, 128; ld.shared.u32 %r9, [%r4-256];)"},
    {"a consumer that does not say that it has read",
     R"(setp.lt.u32 %p3, %r1, 64; mov.u32 %r10, 0; @!%p3 bra $consume;
$produce: <bar.sync 2, 128;|> st.shared.u32 [%r4], %r10; bar.arrive 1, 128; add.u32 %r10, %r10, 1; setp.lt.u32 %p4, %r10, 3;
    <|bar.sync 3, 64;> @%p4 bra $produce; bra $end;
$consume: <bar.arrive 2, 128;|> bar.sync 1, 128; ld.shared.u32 %r9, [%r4-256]; add.u32 %r10, %r10, 1;
    setp.lt.u32 %p4, %r10, 3; @%p4 bra $consume;)"},
    {"a barrier of two warps, and a third that reads",
     R"(setp.lt.u32 %p3, %r1, 64; @%p3 st.shared.u32 [%r4], %r1; @%p3 bar.sync 1, 64; <@%p3 |>ld.shared.u32 %r9, [tile+<132|4>];)",
     96},
    {"two groups, each with a barrier of its own",
     R"(shr.u32 %r10, %r1, 6; add.u32 %r10, %r10, 1; st.shared.u32 [%r4], %r1; bar.sync %r10, 64;
    xor.b32 %r11, %r1, <32|64>; shl.b32 %r11, %r11, 2; add.u32 %r11, %r11, %r5; ld.shared.u32 %r9, [%r11];)"},
    {"readers of two groups, and one group's barrier before the write",
     R"(@%p1 st.shared.u32 [tile], 1; bar.sync 0; ld.shared.u32 %r9, [tile]; setp.lt.u32 %p3, %r1, 64; <bar.sync 1, 128;|@%p3 bar.sync 1, 64;>
    @%p1 st.shared.u32 [tile], 2;)"},
    {"an arrival after the writes, and before them",
     R"(<st.shared.u32 [%r4], %r1; mbarrier.arrive.shared.b64 _, [bar];|mbarrier.arrive.shared.b64 _, [bar]; st.shared.u32 [%r4], %r1;>
    $wait bar, 0; ld.shared.u32 %r9, [%r6];)"},
    {"a wait for the phase, and none",
     R"(st.shared.u32 [%r4], %r1; mbarrier.arrive.shared.b64 _, [bar]; <$wait bar, 0;|> ld.shared.u32 %r9, [%r6]; $wait bar, 0;)"},
    {"a wait for the phase before",
     R"(mbarrier.arrive.shared.b64 _, [bar]; $wait bar, 0; st.shared.u32 [%r4], %r1; mbarrier.arrive.shared.b64 _, [bar];
    $wait bar, <1|0>; ld.shared.u32 %r9, [%r6]; $wait bar, 1;)"},
    {"a question whose answer is not looked at",
     R"(st.shared.u32 [%r4], %r1; mbarrier.arrive.shared.b64 %d5, [bar];
$ask: mbarrier.test_wait.shared.b64 %p3, [bar], %d5; <@!%p3 bra $ask;|@!%p3 bra $read;
$read:> ld.shared.u32 %r9, [%r6];
    <|$wait bar, 0; ld.shared.u32 %r9, [%r6]; st.shared.u32 [%r6], %r9;>)"},
    {"one lane arrives for its warp, which has met, and has not",
     R"(@%p1 mbarrier.inval.shared.b64 [bar]; @%p1 mbarrier.init.shared.b64 [bar], 4; bar.sync 0; st.shared.u32 [%r4], %r1;
    <bar.warp.sync -1;|> @%p2 mbarrier.arrive.shared.b64 _, [bar]; $wait bar, 0; ld.shared.u32 %r9, [%r6];)"},
    {"one lane waits for its warp, which meets it, and does not",
     R"(st.shared.u32 [%r4], %r1; mbarrier.arrive.shared.b64 _, [bar]; @!%p2 bra $skip; $wait bar, 0;
$skip: <bar.warp.sync -1;|> xor.b32 %r10, %r1, 32; shl.b32 %r10, %r10, 2; add.u32 %r10, %r10, %r5; ld.shared.u32 %r9, [%r10];)"},
    {"a ring whose stage is released before it has been read",
     R"(@%p1 mbarrier.inval.shared.b64 [bar]; @%p1 mbarrier.inval.shared.b64 [empty]; @%p1 mbarrier.init.shared.b64 [bar], 32;
    @%p1 mbarrier.init.shared.b64 [empty], 32; bar.sync 0; mov.u32 %r10, 0; setp.eq.u32 %p3, %r3, 0; @!%p3 bra $consume;
$produce: setp.eq.u32 %p4, %r10, 0; @%p4 bra $fill; add.u32 %r12, %r10, 1; and.b32 %r12, %r12, 1; $wait empty, %r12;
$fill: st.shared.u32 [%r4], %r10; mbarrier.arrive.shared.b64 _, [bar]; add.u32 %r10, %r10, 1; setp.lt.u32 %p5, %r10, 4;
    @%p5 bra $produce; bra $end;
$consume: and.b32 %r12, %r10, 1; $wait bar, %r12; <ld.shared.u32 %r9, [%r4-128]; mbarrier.arrive.shared.b64 _, [empty];|mbarrier.arrive.shared.b64 _, [empty]; ld.shared.u32 %r9, [%r4-128];>
    add.u32 %r10, %r10, 1; setp.lt.u32 %p5, %r10, 4; @%p5 bra $consume;)",
     64},
    {"a ring in which the producer does not wait for what is free",
     R"(@%p1 mbarrier.inval.shared.b64 [bar]; @%p1 mbarrier.inval.shared.b64 [empty]; @%p1 mbarrier.init.shared.b64 [bar], 32;
    @%p1 mbarrier.init.shared.b64 [empty], 32; bar.sync 0; setp.eq.u32 %p3, %r3, 0; @!%p3 bra $consume;
    st.shared.u32 [%r4], 1; mbarrier.arrive.shared.b64 _, [bar]; <$wait empty, 0;|$wait bar, 0;> st.shared.u32 [%r4], 2;
    bra $end;
$consume: $wait bar, 0; ld.shared.u32 %r9, [%r4-128]; mbarrier.arrive.shared.b64 _, [empty];)",
     64},
    {"two consumers of a stage, of which one releases it",
     R"(@%p1 mbarrier.inval.shared.b64 [bar]; @%p1 mbarrier.inval.shared.b64 [empty]; @%p1 mbarrier.init.shared.b64 [bar], 32;
    @%p1 mbarrier.init.shared.b64 [empty], <64|32>; bar.sync 0; setp.eq.u32 %p3, %r3, 0; setp.eq.u32 %p4, %r3, 1; @!%p3 bra $consume;
    st.shared.u32 [%r4], 1; mbarrier.arrive.shared.b64 _, [bar]; $wait empty, 0; st.shared.u32 [%r4], 2; bra $end;
$consume: $wait bar, 0; ld.shared.u32 %r9, [tile]; <|@%p4 >mbarrier.arrive.shared.b64 _, [empty];)",
     96},
    {"one lane waits for a phase that is over, and the others know nothing",
     R"(@%p1 mbarrier.inval.shared.b64 [bar]; @%p1 mbarrier.init.shared.b64 [bar], 32; @%p1 st.shared.u32 [tile+2048], 0; bar.sync 0;
    setp.eq.u32 %p3, %r3, 0; @%p3 bra $read; st.shared.u32 [%r4], %r1; mbarrier.arrive.shared.b64 _, [bar]; bar.warp.sync -1;
    @%p2 st.volatile.shared.u32 [tile+2048], 1; bra $end;
$read: ld.volatile.shared.u32 %r9, [tile+2048]; setp.eq.u32 %p4, %r9, 0; @%p4 bra $read; @!%p2 bra $skip; $wait bar, 0;
$skip: <bar.warp.sync -1;|> ld.shared.u32 %r9, [%r4+128];)",
     64},
};

}  // namespace

TEST_CASE("races between warps that meet otherwise, and their right twins") {
    for (const Twins& each : barriers_twins) check(each);
}
