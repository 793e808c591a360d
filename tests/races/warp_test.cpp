// SPDX-License-Identifier: Apache-2.0
// Races between the lanes of a warp.
#include "tests/races/twins.hpp"

using namespace ikat::tests::races;

namespace {

constexpr Twins warp_twins[] = {
    {"lanes exchange words", "st.shared.u32 [%r4], %r1; <bar.warp.sync 0xffffffff;|> ld.shared.u32 %r9, [%r6];", 32},
    {"a shuffle orders no memory",
     "st.shared.u32 [%r4], %r1; <bar.warp.sync 0xffffffff;|shfl.sync.bfly.b32 %r8, %r1, 1, 31, 0xffffffff;> "
     "ld.shared.u32 %r9, [%r6];",
     32, "are ordered by nothing but a shuffle or a vote"},
    {"a vote orders no memory",
     "st.shared.u32 [%r4], %r1; <bar.warp.sync -1;|vote.sync.ballot.b32 %r8, %p1, 0xffffffff;> ld.shared.u32 %r9, "
     "[%r6];",
     32, "are ordered by nothing but a shuffle or a vote"},
    {"a reduction orders no memory",
     "st.shared.u32 [%r4], %r1; redux.sync.add.u32 %r8, %r1, 0xffffffff; <bar.warp.sync -1;|> ld.shared.u32 %r9, "
     "[%r6];",
     32, "are ordered by nothing but a shuffle or a vote"},
    {"a sum over a warp in step",
     R"(st.shared.u32 [%r4], %r1; bar.warp.sync -1; mov.u32 %r10, 16;
$loop: setp.lt.u32 %p3, %r2, %r10; shl.b32 %r11, %r10, 2; add.u32 %r11, %r11, %r4; mov.u32 %r13, 0;
    @%p3 ld.shared.u32 %r13, [%r11]; <bar.warp.sync -1;|> @%p3 ld.shared.u32 %r12, [%r4]; @%p3 add.u32 %r12, %r12, %r13;
    @%p3 st.shared.u32 [%r4], %r12; <bar.warp.sync -1;|> shr.u32 %r10, %r10, 1; setp.gt.u32 %p4, %r10, 0; @%p4 bra $loop;)",
     32},
    {"volatile accesses are ordered by nothing, and race with nothing",
     R"(st.volatile.shared.u32 [%r4], %r1; ld.<volatile.|>shared.u32 %r9, [%r6];)", 32},
    {"all lanes read what one has stored",
     "@%p2 st.shared.u32 [tile], 5; <bar.warp.sync -1;|> ld.shared.u32 %r9, [tile];", 32},
    {"a lane writes where all have read",
     R"(@%p2 st.shared.u32 [tile], 5; bar.warp.sync -1; ld.shared.u32 %r9, [tile]; <bar.warp.sync -1;|>
    @%p2 st.shared.u32 [tile], 6;)",
     32},
    {"a lane writes where it alone has read",
     R"(@%p2 st.shared.u32 [tile], 5; bar.warp.sync -1; <@%p2 |>ld.shared.u32 %r9, [tile]; @%p2 st.shared.u32 [tile], 6;)",
     32},
    {"half a warp meets", R"(setp.lt.u32 %p3, %r2, 16; @!%p3 bra $end; st.shared.u32 [%r4], %r1;
    bar.warp.sync 0xffff; xor.b32 %r10, %r2, <8|0>; shl.b32 %r10, %r10, 2; add.u32 %r10, %r10, %r5;
    ld.shared.u32 %r9, [%r10]; <bar.warp.sync 0xffff;|> xor.b32 %r10, %r2, 4; shl.b32 %r10, %r10, 2;
    add.u32 %r10, %r10, %r5; st.shared.u32 [%r10], %r1;)",
     32},
    {"the other half of a warp has not met",
     R"(st.shared.u32 [%r4], %r1; setp.lt.u32 %p3, %r2, 16; @!%p3 bra $high; bar.warp.sync 0xffff;
    xor.b32 %r10, %r2, <8|16>; shl.b32 %r10, %r10, 2; add.u32 %r10, %r10, %r5; ld.shared.u32 %r9, [%r10]; bra $end;
$high: bar.warp.sync 0xffff0000;)",
     32},
    {"two halves meet one after the other",
     R"(st.shared.u32 [%r4], %r1; setp.lt.u32 %p3, %r2, 16; @%p3 bra $low; bar.warp.sync 0xffff0000; bra $meet;
$low: bar.warp.sync 0xffff;
$meet: <bar.warp.sync -1;|> xor.b32 %r10, %r2, 16; shl.b32 %r10, %r10, 2; add.u32 %r10, %r10, %r5;
    ld.shared.u32 %r9, [%r10];)",
     32},
    {"a warp meets, and two have to",
     R"(st.shared.u32 [%r4], %r1; <bar.sync 0;|bar.warp.sync -1;> xor.b32 %r10, %r1, 32; shl.b32 %r10, %r10, 2;
    add.u32 %r10, %r10, %r5; ld.shared.u32 %r9, [%r10];)",
     64},
    {"ldmatrix of what lanes have stored",
     R"(st.shared.u32 [%r4], %r1; <bar.warp.sync -1;|> and.b32 %r10, %r2, 7; xor.b32 %r10, %r10, 1; shl.b32 %r10, %r10, 4;
    add.u32 %r10, %r10, %r5; ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r11}, [%r10];)",
     32},
    {"a store to what the warp's own ldmatrix has read, and another warp's",
     R"(@%p1 st.shared.v4.u32 [tile], {%r1, %r1, %r1, %r1}; bar.sync 0; setp.eq.u32 %p3, %r3, <0|1>; @!%p3 bra $skip;
    ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r11}, [%r5];
$skip: @%p1 st.shared.u32 [tile], %r1;)",
     64},
    {"stmatrix of what other lanes load",
     R"(and.b32 %r10, %r2, 7; shl.b32 %r10, %r10, 4; add.u32 %r10, %r10, %r5;
    stmatrix.sync.aligned.m8n8.x1.shared.b16 [%r10], {%r1}; <bar.warp.sync -1;|> ld.shared.u32 %r11, [%r6];)",
     32},
    {"diverged lanes write for those that stay",
     R"(setp.eq.u32 %p3, %r2, 3; @!%p3 bra $skip; st.shared.u32 [tile], %r1;
$skip: <bar.warp.sync -1;|> ld.shared.u32 %r9, [tile];)",
     32},
    {"a warp that has fewer than 32 lanes", R"(st.shared.u32 [%r4], %r1; <bar.sync 0;|> ld.shared.u32 %r9, [%r6];)",
     40},
    {"ldmatrix of eight rows, and of sixteen",
     R"(setp.eq.u32 %p3, %r3, 0; @%p3 bra $load; st.shared.u32 [%r4], %r1; bra $end;
$load: shl.b32 %r10, %r2, 4; add.u32 %r10, %r10, %r5; ldmatrix.sync.aligned.m8n8.<x1|x2>.shared.b16 {%r11<|, %r12>}, [%r10];)",
     64},
    {"ldmatrix of eight rows, and of sixteen, by generic addresses",
     R"(setp.eq.u32 %p3, %r3, 0; @%p3 bra $load; st.shared.u32 [%r4], %r1; bra $end;
$load: shl.b32 %r10, %r2, 4; add.u32 %r10, %r10, %r5; cvt.u64.u32 %d5, %r10; cvta.shared.u64 %d5, %d5;
    ldmatrix.sync.aligned.m8n8.<x1|x2>.b16 {%r11<|, %r12>}, [%d5];)",
     64},
};

}  // namespace

TEST_CASE("races between lanes of a warp, and their right twins") {
    for (const Twins& each : warp_twins) check(each);
}
