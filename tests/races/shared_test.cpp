// SPDX-License-Identifier: Apache-2.0
// Races in shared memory between the threads of a block that meet at bar.sync.
#include "tests/races/twins.hpp"

using namespace ikat::tests::races;

namespace {

constexpr Twins shared_twins[] = {
    {"a neighbour's word is read without a barrier",
     "st.shared.u32 [%r4], %r1; <bar.sync 0;|> ld.shared.u32 %r9, [%r6]; st.global.u32 [%d1], %r9;", 128,
     "the bytes are 0x000000"},
    {"a barrier before the write instead of after it",
     "<st.shared.u32 [%r4], %r1; bar.sync 0;|bar.sync 0; st.shared.u32 [%r4], %r1;> ld.shared.u32 %r9, [%r6];"},
    {"a word is read by its own thread, and then by another warp",
     R"(st.shared.u32 [%r4], %r1; ld.shared.u32 %r9, [%r4]; <bar.sync 0;|> setp.eq.u32 %p3, %r3, 1;
    @%p3 ld.shared.u32 %r9, [%r4-128];)",
     64},
    {"rows of several lines, of which two share the last one",
     R"(shl.b32 %r8, %r2, 4; add.u32 %r8, %r8, %r5; shr.u32 %r9, %r3, 1; mul.lo.u32 %r9, %r9, <512|496>; add.u32 %r8, %r8, %r9;
    setp.lt.u32 %p3, %r3, 2; and.b32 %r10, %r3, 1; setp.eq.u32 %p4, %r10, 0; @!%p4 bra $end;
    @%p3 ld.shared.v4.u32 {%r11, %r12, %r13, %r14}, [%r8]; @!%p3 st.shared.v4.u32 [%r8], {%r1, %r1, %r1, %r1};)"},
    {"a word is overwritten while others may still read it",
     "st.shared.u32 [%r4], %r1; bar.sync 0; ld.shared.u32 %r9, [%r6]; <bar.sync 0;|> st.shared.u32 [%r4], %r9;", 128,
     "a race: a load and a store of 4 bytes"},
    {"two threads write one word",
     "shr.u32 %r8, %r1, <0|1>; shl.b32 %r8, %r8, 2; add.u32 %r8, %r8, %r5; st.shared.u32 [%r8], %r1;", 128,
     "a race: a store and a store of 4 bytes"},
    {"all threads write one word", "<@%p1 |>st.shared.u32 [tile], %r1;", 128, "hint: let one thread do it"},
    {"a double buffer with one barrier for each round",
     R"(mov.u32 %r10, 0;
$loop: and.b32 %r11, %r10, <1|0>; shl.b32 %r11, %r11, 10; add.u32 %r12, %r4, %r11; st.shared.u32 [%r12], %r10;
    bar.sync 0; add.u32 %r13, %r6, %r11; ld.shared.u32 %r14, [%r13]; add.u32 %r10, %r10, 1;
    setp.lt.u32 %p3, %r10, 6; @%p3 bra $loop;)"},
    {"a loop without the barrier after its reads",
     R"(mov.u32 %r10, 0;
$loop: st.shared.u32 [%r4], %r10; bar.sync 0; ld.shared.u32 %r14, [%r6]; <bar.sync 0;|> add.u32 %r10, %r10, 1;
    setp.lt.u32 %p3, %r10, 4; @%p3 bra $loop;)"},
    {"a tree whose levels do not meet",
     R"(st.shared.u32 [%r4], %r1; bar.sync 0; mov.u32 %r10, 64;
$loop: setp.lt.u32 %p3, %r1, %r10; shl.b32 %r11, %r10, 2; add.u32 %r11, %r11, %r4;
    @!%p3 bra $skip; ld.shared.u32 %r12, [%r4]; ld.shared.u32 %r13, [%r11]; add.u32 %r12, %r12, %r13;
    st.shared.u32 [%r4], %r12;
$skip: <bar.sync 0;|> shr.u32 %r10, %r10, 1; setp.gt.u32 %p4, %r10, 0; @%p4 bra $loop;)"},
    {"a tree whose last barrier is left out",
     R"(st.shared.u32 [%r4], %r1; bar.sync 0; @!%p1 bra $skip; st.shared.u32 [tile], %r7;
$skip: <bar.sync 0;|> ld.shared.u32 %r9, [tile];)"},
    {"a scan in place",
     R"(st.shared.u32 [%r4], %r1; bar.sync 0; setp.ge.u32 %p3, %r1, 1; mov.u32 %r10, 0;
    @%p3 ld.shared.u32 %r10, [%r4-4]; ld.shared.u32 %r11, [%r4]; <bar.sync 0;|> add.u32 %r11, %r11, %r10;
    st.shared.u32 [%r4], %r11;)"},
    {"a stencil in place",
     R"(st.shared.u32 [%r4], %r1; bar.sync 0; ld.shared.u32 %r10, [%r6]; add.u32 %r10, %r10, 1;
    st.shared.u32 [%r4<+1024|>], %r10;)"},
    {"a transpose that reads its columns too early",
     R"(st.shared.u32 [%r4], %r1; <bar.sync 0;|> and.b32 %r10, %r1, 15; shr.u32 %r11, %r1, 4; mad.lo.u32 %r10, %r10, 8, %r11;
    shl.b32 %r10, %r10, 2; add.u32 %r10, %r10, %r5; ld.shared.u32 %r12, [%r10];)"},
    {"a histogram without atomics",
     R"(and.b32 %r10, %r1, 7; shl.b32 %r10, %r10, 2; add.u32 %r10, %r10, %r5; @%p1 st.shared.v4.u32 [tile], {%r9, %r9, %r9, %r9};
    @%p1 st.shared.v4.u32 [tile+16], {%r9, %r9, %r9, %r9}; bar.sync 0;
    <red.shared.add.u32 [%r10], 1;|ld.shared.u32 %r11, [%r10]; add.u32 %r11, %r11, 1; st.shared.u32 [%r10], %r11;>)"},
    {"a histogram that is cleared while others count",
     R"(@%p1 st.shared.u32 [tile], 0; <bar.sync 0;|> red.shared.add.u32 [tile], 1;)", 128, "an atomic"},
    {"a histogram that is read while others count",
     R"(@%p1 st.shared.u32 [tile], 0; bar.sync 0; red.shared.add.u32 [tile], 1; <bar.sync 0;|> @%p1 ld.shared.u32 %r9, [tile];)"},
    {"neighbouring bytes, and the same byte",
     R"(shr.u32 %r10, %r1, <0|1>; add.u32 %r10, %r10, %r5; cvt.u16.u32 %h1, %r1; st.shared.u8 [%r10], %h1;)", 128,
     "of 1 byte at offset"},
    {"a word of which a neighbour has written a byte",
     R"(add.u32 %r10, %r5, %r1; cvt.u16.u32 %h1, %r1; st.shared.u8 [%r10], %h1; <bar.sync 0;|>
    shr.u32 %r11, %r1, 2; shl.b32 %r11, %r11, 2; add.u32 %r11, %r11, %r5; ld.shared.u32 %r12, [%r11];)"},
    {"halves that two threads exchange",
     R"(shl.b32 %r10, %r1, 1; add.u32 %r10, %r10, %r5; cvt.u16.u32 %h1, %r1; st.shared.u16 [%r10], %h1; <bar.sync 0;|>
    xor.b32 %r11, %r1, 1; shl.b32 %r11, %r11, 1; add.u32 %r11, %r11, %r5; ld.shared.u16 %h2, [%r11];)",
     128, "of 2 bytes"},
    {"vectors that overlap",
     R"(shl.b32 %r10, %r1, <4|3>; and.b32 %r10, %r10, 0xff0; add.u32 %r10, %r10, %r5;
    st.shared.v4.u32 [%r10], {%r1, %r1, %r1, %r1};)"},
    {"a vector of which another thread reads a part",
     R"(setp.lt.u32 %p3, %r1, 64; shl.b32 %r10, %r1, 4; add.u32 %r10, %r10, %r5;
    @%p3 st.shared.v4.u32 [%r10], {%r1, %r1, %r1, %r1}; <bar.sync 0;|> ld.shared.u32 %r11, [%r4];)"},
    {"64 bits of which another thread reads a half",
     R"(setp.lt.u32 %p3, %r1, 64; shl.b32 %r10, %r1, 3; add.u32 %r10, %r10, %r5; cvt.u64.u32 %d5, %r1;
    @%p3 st.shared.u64 [%r10], %d5; <bar.sync 0;|> ld.shared.u32 %r11, [%r4];)"},
    {"a generic address",
     R"(cvt.u64.u32 %d5, %r6; cvta.shared.u64 %d5, %d5; st.shared.u32 [%r4], %r1; <bar.sync 0;|> ld.u32 %r9, [%d5];)"},
    {"a value that one warp broadcasts",
     R"(setp.eq.u32 %p3, %r3, 0; @%p3 st.shared.u32 [%r4], %r1; <bar.sync 0;|> ld.shared.u32 %r9, [tile+4];)"},
    {"a flag that is polled without order",
     R"(@%p1 st.<volatile.|>shared.u32 [tile], 1; ld.<volatile.|>shared.u32 %r9, [tile];)"},
    {"a flag in an atomic and in a plain load",
     R"(@%p1 st.shared.u32 [tile], 0; bar.sync 0; @%p1 atom.shared.exch.b32 %r9, [tile], 1;
    <atom.shared.or.b32 %r10, [tile], 0;|ld.shared.u32 %r10, [tile];>)",
     128, "an atomic"},
    {"an atomic and a plain store",
     R"(@%p1 st.shared.u32 [tile], 0; bar.sync 0; <@%p1 |>atom.shared.add.u32 %r9, [tile], 1; @%p1 st.shared.u32 [tile], 3;)"},
    {"a branch that leaves out the barrier of one half",
     R"(setp.lt.u32 %p3, %r1, 64; @%p3 bra $low; st.shared.u32 [%r4], %r1; <bar.sync 0;|bar.sync 0; st.shared.u32 [%r4], %r1;>
    bra $end;
$low: bar.sync 0; ld.shared.u32 %r9, [%r4+256];)"},
    {"warps that have exited have written before",
     R"(setp.ge.u32 %p3, %r1, 64; @!%p3 bra $low; st.shared.u32 [%r4], %r1; bra $end;
$low: <bar.sync 0; bar.sync 0;|> ld.shared.u32 %r9, [%r4+256];)"},
    {"a predicated barrier in place of one for all",
     R"(st.shared.u32 [%r4], %r1; setp.<ge|gt>.u32 %p3, %r7, 128; @%p3 bar.sync 0; ld.shared.u32 %r9, [%r6];)"},
    {"the result of a barrier's vote, and one without",
     R"(st.shared.u32 [%r4], %r1; <barrier.red.popc.u32 %r10, 0, %p1;|> ld.shared.u32 %r9, [%r6];)"},
    {"a warp runs ahead into the next round",
     R"(mov.u32 %r10, 0;
$loop: @%p1 st.shared.u32 [tile+2048], %r10; bar.sync 0; ld.shared.u32 %r11, [tile+2048]; <bar.sync 0;|>
    add.u32 %r10, %r10, 1; setp.lt.u32 %p3, %r10, 3; @%p3 bra $loop;)"},
    {"one warp reads what another writes, each with its own loop",
     R"(setp.eq.u32 %p3, %r3, 1; mov.u32 %r10, 0;
$loop: @!%p3 st.shared.u32 [%r4], %r10; <bar.sync 0;|> @%p3 ld.shared.u32 %r11, [%r4-128]; bar.sync 0;
    add.u32 %r10, %r10, 1; setp.lt.u32 %p4, %r10, 3; @%p4 bra $loop;)",
     64},
    {"blocks that use the same memory one after the other",
     R"(st.shared.u32 [%r4], %r1; <bar.sync 0;|> ld.shared.u32 %r9, [%r6];)", 64, "", "", 20},
    {"a byte beside one that the same thread has stored before",
     R"(cvt.u16.u32 %h1, %r1; @%p1 st.shared.u8 [tile], %h1; @%p1 st.shared.u8 [tile+1], %h1; <bar.sync 0;|> setp.eq.u32 %p3, %r1, 32;
    @%p3 ld.shared.u8 %r9, [tile];)",
     64},
    {"the last reader writes, and another has read",
     R"(bar.sync 0; @%p2 ld.shared.u32 %r9, [tile]; <bar.sync 0;|> setp.eq.u32 %p3, %r1, 32; @%p3 st.shared.u32 [tile], 5;)",
     64},
};

}  // namespace

// Loads with one base are noted by one op before the first of them.
constexpr Twins grouped_twins[] = {
    {"the second of three loads with one base",
     R"(setp.eq.u32 %p3, %r3, 0; @!%p3 bra $store;
    ld.shared.u32 %r9, [%r4]; ld.shared.u32 %r10, [%r4+512]; ld.shared.u32 %r11, [%r4+256]; bra $end;
$store: st.shared.u32 [%r4+<640|384>], %r1;)",
     64, "ld.shared.u32 %r10, [%r4+512]"},
    {"... the last one",
     R"(setp.eq.u32 %p3, %r3, 0; @!%p3 bra $store;
    ld.shared.u32 %r9, [%r4+512]; mul.lo.u32 %r12, %r9, 3; ld.shared.u32 %r10, [%r4+256]; ld.shared.u32 %r11, [%r4]; bra $end;
$store: st.shared.u32 [%r4<|-128>], %r1;)",
     64, "ld.shared.u32 %r11, [%r4]"},
    {"the base changes between",
     R"(setp.eq.u32 %p3, %r3, 0; mov.u32 %r10, %r4; @!%p3 bra $store;
    ld.shared.u32 %r9, [%r10]; add.u32 %r10, %r10, 1024; ld.shared.u32 %r9, [%r10+256]; bra $end;
$store: st.shared.u32 [%r4+<128|1152>], %r1;)",
     64, "ld.shared.u32 %r9, [%r10+256]"},
    {"a barrier is between",
     R"(setp.eq.u32 %p3, %r3, 0; setp.eq.u32 %p4, %r3, 1; ld.shared.u32 %r9, [%r4]; @%p4 st.shared.u32 [%r4+384], %r1;
    <bar.sync 0;|> ld.shared.u32 %r10, [%r4+512];)",
     64, "ld.shared.u32 %r10, [%r4+512]"},
    {"some lanes alone load the second",
     R"(setp.eq.u32 %p3, %r3, 0; setp.ge.u32 %p4, %r2, <16|15>; @!%p3 bra $store;
    ld.shared.u32 %r9, [%r4]; @%p4 ld.shared.u32 %r10, [%r4+512]; bra $end;
$store: @!%p4 st.shared.u32 [%r4+384], %r1; setp.eq.u32 %p5, %r2, 15; @%p5 st.shared.u32 [%r4+384], %r1;)",
     64, "ld.shared.u32 %r10, [%r4+512]"},
    {"the warp stores between them, what another one does, too",
     R"(setp.eq.u32 %p3, %r3, 0; @!%p3 bra $store;
    ld.shared.u32 %r9, [%r4]; st.shared.u32 [%r4+512], %r1; ld.shared.u32 %r10, [%r4+512]; bra $end;
$store: st.shared.u32 [%r4+<640|384>], %r1;)",
     64},
};

// The same load or store once more, by the same warp, is not written down again.
constexpr Twins repeated_twins[] = {
    {"a loop whose load goes from line to line, and a store to the third one",
     R"(setp.eq.u32 %p3, %r3, 0; mov.u32 %r10, 0; mov.u32 %r11, %r4; @!%p3 bra $store;
$loop: ld.shared.u32 %r9, [%r11]; add.u32 %r11, %r11, 128; add.u32 %r10, %r10, 1; setp.lt.u32 %p4, %r10, 4;
    @%p4 bra $loop; bra $end;
$store: st.shared.u32 [%r4+<512|128>], %r1;)",
     64},
    {"a loop whose store goes from line to line, and a load of the third one",
     R"(setp.eq.u32 %p3, %r3, 0; mov.u32 %r10, 0; mov.u32 %r11, %r4; @!%p3 bra $load;
$loop: st.shared.u32 [%r11], %r1; add.u32 %r11, %r11, 128; add.u32 %r10, %r10, 1; setp.lt.u32 %p4, %r10, 4;
    @%p4 bra $loop; bra $end;
$load: ld.shared.u32 %r9, [%r4+<512|128>];)",
     64},
    {"a lane loads a word again after the meeting of its warp, and another one stores there",
     R"(setp.eq.u32 %p3, %r2, 1; mov.u32 %r10, 0;
$loop: <|bar.warp.sync -1;> @%p2 ld.shared.u32 %r9, [tile]; <bar.warp.sync -1;|> add.u32 %r10, %r10, 1;
    setp.lt.u32 %p4, %r10, 2; @%p4 bra $loop; @%p3 st.shared.u32 [tile], 1;)",
     32},
};

// Where warps write the same lines, words are looked at.
constexpr Twins column_twins[] = {
    {"warps write columns of a tile, and two of them one",
     R"(shr.u32 %r8, %r3, <0|1>; mad.lo.u32 %r8, %r8, 4, %r5; mad.lo.u32 %r8, %r2, 128, %r8; st.shared.u32 [%r8], %r1;)",
     128, "a race: a store and a store of 4 bytes"},
    {"... and the first row of all is one of the two",
     R"(shr.u32 %r8, %r3, <0|1>; mad.lo.u32 %r8, %r8, 4, %r5; mad.lo.u32 %r8, %r2, 128, %r8; st.shared.u32 [%r8], %r1;)",
     64, "a race: a store and a store of 4 bytes"},
    {"columns of halves of a word",
     R"(shr.u32 %r8, %r3, <0|1>; mad.lo.u32 %r8, %r8, 2, %r5; mad.lo.u32 %r8, %r2, 128, %r8; st.shared.u16 [%r8], %r1;)",
     128, "a race: a store and a store of 2 bytes"},
    {"lanes write words from the last to the first, and two of them one",
     "sub.u32 %r8, 31, %r2; and.b32 %r8, %r8, <-1|-2>; mad.lo.u32 %r8, %r8, 4, %r5; st.shared.u32 [%r8], %r1;", 32,
     "a race: a store and a store of 4 bytes"},
    {"a column is read that another warp has written",
     R"(mad.lo.u32 %r8, %r3, 4, %r5; mad.lo.u32 %r8, %r2, 128, %r8; st.shared.u32 [%r8], %r1; <bar.sync 0;|>
    xor.b32 %r9, %r3, 1; mad.lo.u32 %r8, %r9, 4, %r5; mad.lo.u32 %r8, %r2, 128, %r8; ld.shared.u32 %r9, [%r8];)",
     128, "a race: a load and a store of 4 bytes"},
    {"columns are written again after a barrier, and before it",
     R"(mad.lo.u32 %r8, %r3, 4, %r5; mad.lo.u32 %r8, %r2, 128, %r8; st.shared.u32 [%r8], %r1; <bar.sync 0;|>
    xor.b32 %r9, %r3, 1; mad.lo.u32 %r8, %r9, 4, %r5; mad.lo.u32 %r8, %r2, 128, %r8; st.shared.u32 [%r8], %r1;)"},
};

/// One after the other, they may have the same shared memory of the emulator.
constexpr Twins of_several_blocks{
    "warps of a block have words that others had in the block before it",
    R"(shl.b32 %r8, %r20, 5; and.b32 %r8, %r8, 32; xor.b32 %r8, %r1, %r8; mad.lo.u32 %r8, %r8, 4, %r5;
    st.shared.u32 [%r8], %r1; xor.b32 %r10, %r8, <0|128>; ld.shared.u32 %r9, [%r10];)",
    64,
    "a race: a ",
    "",
    8};

TEST_CASE("races between warps of a block, and their right twins") {
    check(of_several_blocks);
    for (const Twins& each : shared_twins) check(each);
    for (const Twins& each : grouped_twins) check(each);
    for (const Twins& each : repeated_twins) check(each);
    for (const Twins& each : column_twins) check(each);
}

TEST_CASE("loads that are noted together by a warp that has loaded what nobody has written") {
    // Both warps run the checked code from the first load on.
    const std::string body =
        R"(ld.shared.u32 %r8, [tile+2048]; st.shared.u32 [%r4], %r1; st.shared.u32 [%r4+512], %r1; bar.sync 0;
    setp.eq.u32 %p3, %r3, 0; @!%p3 bra $store;
    ld.shared.u32 %r8, [tile+2048]; ld.shared.u32 %r9, [%r4]; mul.lo.u32 %r8, %r8, 3; ld.shared.u32 %r10, [%r4+512]; mul.lo.u32 %r8, %r8, 3;
    ld.shared.u32 %r11, [%r4+256]; bra $end;
$store: st.shared.u32 [%r4+<640|384>], %r1;)";
    for (const std::uint64_t seed : {0u, 1u, 2u, 3u}) {
        ikat::tests::Machine machine;
        machine.options.seed = seed;
        machine.options.checks.set(ikat::emulator::Check::SharedRaces, ikat::emulator::Action::Error);
        const auto x = machine.buffer("x", std::vector<std::uint32_t>(1024));
        const ikat::emulator::Launch launch{.block = {64, 1, 1}};
        CHECK(machine.failure(module_of(ikat::tests::twin(body.c_str(), true)), launch, x, x) == "no failure");
        const std::string said = machine.failure(module_of(ikat::tests::twin(body.c_str(), false)), launch, x, x);
        CHECK_THAT(said, ikat::tests::contains("ld.shared.u32 %r10, [%r4+512]"));
    }
}
