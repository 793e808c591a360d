// SPDX-License-Identifier: Apache-2.0
// Races with words of global memory that several threads have read.
#include "tests/races/twins.hpp"

using namespace ikat::tests::races;

namespace {

// Several have read a word; what is kept of it is a set.
constexpr Twins by_sets[] = {
    between("three lanes read a word, of which the last one says so", 1, 64,
            R"(setp.eq.u32 %p3, %r2, 1; setp.eq.u32 %p4, %r2, 2; setp.eq.u32 %p5, %r3, 0; @!%p5 bra $other;
    @%p2 ld.global.u32 %r9, [%d2]; @%p3 ld.global.u32 %r9, [%d2]; @%p4 ld.global.u32 %r9, [%d2]; <bar.warp.sync -1;|>
    @%p4 st.release.gpu.global.u32 [%d3], 1; bra $end;
$other: ld.acquire.gpu.global.u32 %r9, [%d3]; setp.eq.u32 %p6, %r9, 0; @%p6 bra $other; @%p2 st.global.u32 [%d2], 5;)"),
};

// Of blocks that nothing orders, two readers of a word are kept.
constexpr Twins by_readers[] = {
    between("all blocks read the words that one of them writes", 5, 32,
            "ld.global.u32 %r9, [%d1]; ld.global.u32 %r10, [%d1+128]; setp.eq.u32 %p3, %r20, 3; "
            "@%p3 st.global.u32 [%d1+<256|128>], %r1;",
            "a race: a load and a store of 4 bytes"),
    between("... one of them as bytes", 5, 32,
            "ld.global.u32 %r9, [%d1]; ld.global.u32 %r10, [%d1+128]; setp.eq.u32 %p3, %r20, 3; add.u64 %d5, %d2, %r1; "
            "@%p3 st.global.u8 [%d5+<256|129>], %r1;"),
    between("all blocks read what one of them changes by an atomic", 5, 32,
            "ld.global.u32 %r9, [%d1]; setp.eq.u32 %p3, %r20, 1; @%p3 red.global.add.u32 [%d1+<256|0>], 1;"),
    between("each block has words of its own, and reads those of all", 4, 64,
            "ld.global.u32 %r9, [%d1]; st.global.u32 [%d4+<1024|0>], %r9;"),
    between(
        "the first block to read waits until the other one has read, and writes", 2, 32,
        R"(ld.global.u32 %r9, [%d1]; @%p10 bra $wait; bar.warp.sync -1; @%p1 st.volatile.global.u32 [%d3], 1; bra $end;
$wait: ld.volatile.global.u32 %r10, [%d3]; setp.eq.u32 %p3, %r10, 0; @%p3 bra $wait; st.global.u32 [%d1+<256|0>], %r9;)"),
    between(
        "two warps of a block, after the reads of all blocks", 4, 64,
        R"(ld.global.u32 %r9, [%d1]; ld.global.u32 %r10, [%d1+256]; mul.wide.u32 %d5, %r21, 4; add.u64 %d5, %d5, %d2;
    st.global.u32 [%d5+1024], %r1; <bar.sync 0;|> xor.b32 %r11, %r1, 32; sub.u32 %r11, %r11, %r1; mul.wide.s32 %d6, %r11, 4;
    add.u64 %d5, %d5, %d6; ld.global.u32 %r9, [%d5+1024];)"),
    between(
        "the last of those that have said that they have read writes", 4, 32,
        R"(ld.global.u32 %r9, [%d1]; <|setp.eq.u32 %p3, %r20, 2; @!%p3 bra $count; @%p1 atom.relaxed.gpu.global.inc.u32 %r10, [%d3], 9;
    bra $end; $count:> bar.warp.sync -1; @!%p1 bra $end; atom.acq_rel.gpu.global.inc.u32 %r10, [%d3], 9; setp.eq.u32 %p3, %r10, 3;
    @%p3 st.global.u32 [%d2], 1; <|@%p3 bra $end; setp.eq.u32 %p3, %r20, 3; @%p3 st.global.u32 [%d2], 2;>)"),
};

}  // namespace

TEST_CASE("races with words that several threads have read") {
    for (const Twins& each : by_sets) check(each);
    for (const Twins& each : by_readers) check(each);
}
