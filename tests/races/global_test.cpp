// SPDX-License-Identifier: Apache-2.0
// Races in global memory: inside a block, and between blocks that nothing orders; how races are reported.
#include "tests/races/twins.hpp"

using namespace ikat;
using namespace ikat::tests::races;
using ikat::tests::Machine;

namespace {

constexpr Twins in_a_block[] = {
    between("threads exchange words", 1, 64,
            "st.global.u32 [%d1], %r1; <bar.sync 0;|> xor.b32 %r10, %r1, 32; mad.wide.u32 %d5, %r10, 4, %d2; "
            "ld.global.u32 %r9, [%d5];"),
    between(
        "lanes exchange words", 1, 32,
        "st.global.u32 [%d1], %r1; <bar.warp.sync -1;|shfl.sync.bfly.b32 %r8, %r1, 1, 31, -1;> xor.b32 %r10, %r1, 1; "
        "mad.wide.u32 %d5, %r10, 4, %d2; ld.global.u32 %r9, [%d5];",
        "are ordered by nothing but a shuffle or a vote"),
    between("a word is written again where others have read it", 1, 64,
            "xor.b32 %r10, %r1, 32; mad.wide.u32 %d5, %r10, 4, %d2; ld.global.u32 %r9, [%d5]; <bar.sync 0;|> "
            "st.global.u32 [%d1], %r9;"),
    between(
        "through a generic address, too", 1, 64,
        "st.u32 [%d1], %r1; <bar.sync 0;|> xor.b32 %r10, %r1, 32; mad.wide.u32 %d5, %r10, 4, %d2; ld.u32 %r9, [%d5];"),
    between("cp.async of what another warp has stored", 1, 64,
            R"(st.global.u32 [%d1], %r1; <bar.sync 0;|> xor.b32 %r10, %r1, 32; mad.wide.u32 %d5, %r10, 4, %d2;
    cp.async.ca.shared.global [%r4], [%d5], 4; cp.async.wait_all;)"),
    between("the source of cp.async is written again", 1, 64,
            R"(xor.b32 %r10, %r1, 32; mad.wide.u32 %d5, %r10, 4, %d2; cp.async.ca.shared.global [%r4], [%d5], 4;
    <cp.async.wait_all; bar.sync 0;|bar.sync 0;> st.global.u32 [%d1], 1; cp.async.wait_all;)"),
    between("a bulk store is read when its source has been read", 1, 64,
            R"(st.shared.u32 [%r4], %r1; fence.proxy.async; bar.sync 0;
    @%p1 cp.async.bulk.global.shared::cta.bulk_group [%d2], [%r5], 256; @%p1 cp.async.bulk.commit_group;
    @%p1 cp.async.bulk.wait_group<|.read> 0; bar.sync 0; ld.global.u32 %r9, [%d1];)"),
    between("two bulk stores to one place", 1, 64,
            R"(st.shared.u32 [%r4], %r1; fence.proxy.async; bar.sync 0;
    @%p1 cp.async.bulk.global.shared::cta.bulk_group [%d2], [%r5], 128; @%p1 cp.async.bulk.commit_group;
    @%p1 cp.async.bulk.wait_group<|.read> 0;
    @%p1 cp.async.bulk.global.shared::cta.bulk_group [%d2], [%r5], 128; @%p1 cp.async.bulk.commit_group;
    @%p1 cp.async.bulk.wait_group 0;)"),
    between("the source of a bulk load is written again", 1, 64,
            R"(setp.ne.u32 %p3, %r1, 0; @%p3 mbarrier.arrive.shared.b64 %d9, [bar]; @%p3 bra $wait_for_it;
    mbarrier.arrive.expect_tx.shared.b64 %d9, [bar], 128;
    cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%r5], [%d2], 128, [bar];
$wait_for_it: <$wait bar, 0;|> setp.eq.u32 %p4, %r1, 40; @%p4 st.global.u32 [%d2], 1; <|$wait bar, 0;>)",
            "", "bulk-not-visible"),
    between("sums by the memory beside plain loads", 1, 64,
            R"(st.shared.u32 [%r4], %r1; fence.proxy.async; bar.sync 0;
    @%p1 cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%d2], [%r5], 128; @%p1 cp.async.bulk.commit_group;
    @%p1 cp.async.bulk.wait_group<|.read> 0; bar.sync 0; setp.eq.u32 %p4, %r1, 40; @%p4 ld.global.u32 %r9, [%d2];)"),
    between("the last lane writes where all have read", 1, 32,
            "ld.global.u32 %r9, [%d2]; <bar.warp.sync -1;|> setp.eq.u32 %p3, %r2, 31; @%p3 st.global.u32 [%d2], 5;"),
    between(
        "a thread writes what its own copy reads", 1, 32,
        "cp.async.ca.shared.global [%r4], [%d1], 4; <cp.async.wait_all;|> st.global.u32 [%d1], 5; cp.async.wait_all;"),
    between(
        "half of the readers of a warp have arrived", 1, 32,
        R"(@%p1 mbarrier.inval.shared.b64 [bar]; @%p1 mbarrier.init.shared.b64 [bar], 16; bar.sync 0; and.b32 %r10, %r1, 16;
    mad.wide.u32 %d5, %r10, 4, %d2; ld.global.u32 %r9, [%d5]; setp.lt.u32 %p3, %r2, 16; @!%p3 bra $end;
    mbarrier.arrive.shared.b64 _, [bar]; @!%p1 bra $end; <$wait bar, 0;|> st.global.u32 [%d2], 5; $wait bar, 0;)"),
    between(
        "half of the readers of two warps have arrived", 1, 64,
        R"(@%p1 mbarrier.inval.shared.b64 [bar]; @%p1 mbarrier.init.shared.b64 [bar], 32; bar.sync 0; and.b32 %r10, %r1, 16;
    mad.wide.u32 %d5, %r10, 4, %d2; ld.global.u32 %r9, [%d5]; setp.lt.u32 %p3, %r2, 16; @!%p3 bra $end;
    mbarrier.arrive.shared.b64 _, [bar]; @!%p1 bra $end; <$wait bar, 0;|> st.global.u32 [%d2], 5; $wait bar, 0;)"),
    between("local memory through generic addresses", 1, 64,
            ".local .b32 own; mov.u64 %d5, own; cvta.local.u64 %d5, %d5; st.u32 [<%d5|%d2>], %r1; ld.u32 %r9, [%d5];"),
};

constexpr Twins between_blocks[] = {
    between("two blocks write a word", 2, 32, "st.global.u32 [<%d4|%d1>], %r20;", "by block (0,0,0) thread"),
    between("a block reads what another writes", 2, 32,
            "@%p10 st.global.u32 [%d1], 7; @!%p10 ld.global.u32 %r9, [%d1<+128|>];"),
    between("a block writes what another reads", 2, 32,
            "@%p10 ld.global.u32 %r9, [%d1<+128|>]; @!%p10 st.global.u32 [%d1], 7;"),
    between("counts by atomics, and by loads and stores", 4, 32,
            "<red.global.add.u32 [%d3], 1;|ld.global.u32 %r9, [%d3]; add.u32 %r9, %r9, 1; st.global.u32 [%d3], %r9;>"),
    between("an atomic beside a store", 2, 32,
            "@%p1 <red.global.add.u32|st.global.u32> [%d3], %r20; red.global.add.u32 [%d3], 1;"),
    between("atomics in the scope of a block", 2, 32, "@%p1 red.relaxed.<gpu|cta>.global.add.u32 [%d3], 1;",
            "an atomic and an atomic"),
    between("neighbouring bytes", 2, 32,
            "mov.u16 %h1, 5; and.pred %p3, %p1, %p10; @%p3 st.global.<b8|b16> [%d2], %h1; not.pred %p4, %p10; and.pred "
            "%p4, "
            "%p4, %p1; @%p4 st.global.b8 [%d2+1], %h1;"),
    between(
        "neighbouring halves", 2, 32,
        "mov.u16 %h1, 5; cvt.u64.u32 %d5, %r20; shl.b64 %d5, %d5, 1; add.u64 %d5, %d5, %d2; @%p1 st.global.b16 [%d5], "
        "%h1; <|@%p1 ld.global.u32 %r9, [%d2];>"),
    between("a stencil in place", 4, 32,
            "ld.global.u32 %r9, [%d4]; ld.global.u32 %r10, [%d4+4]; add.u32 %r9, %r9, %r10; bar.sync 0; st.global.u32 "
            "[%d4<+2048|>], %r9;"),
    between("a block's part is a word too long", 4, 32,
            "st.global.u32 [%d4], %r20; setp.eq.u32 %p3, %r1, 31; @%p3 st.global.u32 [%d4+<0|4>], %r20;"),
    between(
        "atomics in two scopes", 2, 32,
        "@!%p1 bra $end; @%p10 red.relaxed.gpu.global.add.u32 [%d3], 1; @!%p10 red.relaxed.<gpu|cta>.global.add.u32 "
        "[%d3], 1;"),
    between("atomics in the scope of a cluster", 2, 32, "@%p1 red.relaxed.<gpu|cluster>.global.add.u32 [%d3], 1;"),
    between("a reader writes what another reads, too", 2, 32,
            "@!%p1 bra $end; ld.global.u32 %r9, [%d2]; @!%p10 st.global.u32 [%d2+<4|0>], 5;"),
    between("a word is stored, and then counted in", 2, 32,
            "@!%p1 bra $end; <|@%p10 st.global.u32 [%d3], 5;> red.global.add.u32 [%d3], 1;"),
    between("one of those who count reads plainly", 2, 32,
            "@!%p1 bra $end; red.global.add.u32 [%d3], 1; @!%p10 ld.<relaxed.gpu.|>global.u32 %r9, [%d3];"),
    between("a byte of another block's word", 2, 32,
            "@!%p1 bra $end; @%p10 st.global.u32 [%d2], 5; @!%p10 ld.global.u8 %r9, [%d2+<5|1>];"),
};

}  // namespace

TEST_CASE("races in global memory inside a block") {
    for (const Twins& each : in_a_block) check(each);
}
TEST_CASE("races between blocks that nothing orders") {
    for (const Twins& each : between_blocks) check(each);
}

namespace {

/// The code of what is found with these classes, and what is said.
std::pair<std::string, std::string> found_in(std::string_view body, std::string_view checks, std::uint32_t blocks = 1) {
    Machine machine;
    set_checks(machine, checks);
    const auto x = machine.buffer("x", std::vector<std::uint32_t>(1024, 1));
    const auto flags = machine.buffer("flags", std::vector<std::uint32_t>(64));
    const std::string said =
        machine.failure(module_of(std::string(body)), {.grid = {blocks, 1, 1}, .block = {64, 1, 1}}, x, flags);
    return {machine.code, said};
}

}  // namespace

TEST_CASE("stores of the same value are a class of their own") {
    const char* const same = "mov.u32 %r9, 7; st.global.u32 [%d2], %r9;";
    CHECK(found_in(same, "races").first == "");
    CHECK(found_in(same, "races,races-benign").first == "benign-race");
    CHECK(found_in(same, "races-benign").first == "");
    CHECK(found_in("mov.u32 %r9, 7; st.shared.u32 [%r5], %r9;", "races-shared").first == "");
    CHECK(found_in("mov.u32 %r9, 7; st.shared.u32 [%r5], %r9;", "races-shared,races-benign").first == "benign-race");
    // Of several elements each is looked at, and of lanes of one instruction their registers.
    CHECK(found_in("mov.u32 %r9, 7; st.global.v2.u32 [%d2], {%r9, %r2};", "races").first == "race");
    CHECK(found_in("mov.u32 %r9, 7; st.global.v2.u32 [%d2], {%r9, %r3};", "races").first == "race");
    CHECK(found_in("st.shared.u32 [%r5], %r2;", "races-shared").first == "shared-race");
    CHECK(found_in("mov.u16 %h1, 258; st.global.b16 [%d2], %h1; st.global.b8 [%d2], %h1;", "races").first == "");
    CHECK(found_in("mov.u16 %h1, 258; st.global.b16 [%d2], %h1; st.global.b8 [%d2+1], %h1;", "races").first == "race");
    CHECK(found_in("mov.u16 %h1, 258; mov.u16 %h2, 1; @!%p1 st.global.b16 [%d2], %h1; @%p1 st.global.b8 [%d2+1], %h2;",
                   "races")
              .first == "");
    CHECK(found_in("mov.u32 %r9, 7; mov.u32 %r10, 8; st.global.v2.u32 [%d2], {%r9, %r10};", "races").first == "");
    // The registers of a lane have changed since it has stored: lane 1 stores 5, and then lanes 0 and 1 store 6.
    CHECK(found_in("mov.u32 %r10, 0; setp.le.u32 %p5, %r1, 1; $loop: add.u32 %r11, %r1, %r10; setp.ge.and.u32 %p3, "
                   "%r11, 1, %p5; add.u32 %r9, %r10, 5; @%p3 st.global.u32 [%d2], %r9; fence.acq_rel.cta; add.u32 "
                   "%r10, %r10, 1; setp.lt.u32 %p4, %r10, 2; @%p4 bra $loop;",
                   "races")
              .first == "race");
    // Lane 0 is about to store 0, and lane 1 what is there already.
    CHECK(found_in("setp.lt.u32 %p3, %r1, 2; @%p3 st.global.u32 [%d2], %r1;", "races").first == "race");
    // A load and a store are not of it.
    CHECK(found_in("ld.global.u32 %r9, [%d2]; @%p1 st.global.u32 [%d2], 1;", "races").first == "race");
    // Thread 5 stores 5, then 6, and thread 3 stores 6: what thread 5 is about to store is not what it has stored.
    CHECK(
        found_in("mov.u32 %r10, 0; $loop: setp.eq.u32 %p3, %r1, 5; setp.eq.u32 %p4, %r1, 3; setp.eq.u32 %p5, %r10, 1; "
                 "and.pred %p4, %p4, %p5; or.pred %p3, %p3, %p4; add.u32 %r9, %r10, 5; @%p3 st.global.u32 [%d2], %r9; "
                 "add.u32 %r10, %r10, 1; setp.lt.u32 %p6, %r10, 2; @%p6 bra $loop;",
                 "races")
            .first == "race");
    // The value is there already.
    CHECK(found_in("and.b32 %r9, %r1, 32; @%p2 st.global.u32 [%d2], 1;", "races").first == "");
    CHECK(found_in("@%p2 st.global.u32 [%d2], %r20; @%p2 ld.global.u32 %r9, [%d2];", "races", 2).first == "race");
}

TEST_CASE("races with a shuffle between them are a class of their own") {
    const std::string store = "st.shared.u32 [%r4], %r1; ", load = "xor.b32 %r8, %r4, 4; ld.shared.u32 %r9, [%r8];",
                      shuffle = "shfl.sync.bfly.b32 %r8, %r1, 1, 31, 0xffffffff; ";
    const auto code = [](const std::string& body, const std::string& checks) { return found_in(body, checks).first; };
    CHECK(code(store + shuffle + load, "races-shared") == "shuffle-race");
    CHECK(code(store + shuffle + load, "races-shared,no-races-shuffles") == "");
    CHECK(code(store + shuffle + load, "races,no-races-shuffles") == "");
    CHECK(code(store + shuffle + load, "races-shuffles") == "");
    // What comes after the shuffle, or is of lanes that were not in it, or of another warp, is a race.
    CHECK(code(shuffle + store + load, "races-shared,no-races-shuffles") == "shared-race");
    CHECK(code(store + shuffle + store + load, "races-shared,no-races-shuffles") == "shared-race");
    CHECK(code(store + "setp.ne.u32 %p3, %r2, 3; @%p3 shfl.sync.bfly.b32 %r8, %r1, 1, 31, 0xfffffff7; " +
                   "setp.eq.u32 %p4, %r2, 2; @%p4 ld.shared.u32 %r9, [%r4+4];",
               "races-shared,no-races-shuffles") == "shared-race");
    CHECK(code(store + shuffle + "xor.b32 %r8, %r4, 128; ld.shared.u32 %r9, [%r8];",
               "races-shared,no-races-shuffles") == "shared-race");
}

TEST_CASE("a shuffle gives what it gives without the checks") {
    Machine machine;
    machine.options.checks.set(emulator::Check::Races, emulator::Action::Error);
    const auto x = machine.buffer("x", std::vector<std::uint32_t>(1024));
    const auto flags = machine.buffer("flags", std::vector<std::uint32_t>(64));
    machine.run(module_of("mov.u32 %r8, %r1; shfl.sync.down.b32 %r8, %r8, 1, 31, 0xffffffff; "
                          "st.global.u32 [%d1], %r8;"),
                {.grid = {1, 1, 1}, .block = {32, 1, 1}}, x, flags);
    const auto found = machine.get<std::uint32_t>(x, 32);
    for (std::uint32_t i = 0; i < 31; ++i) CHECK(found[i] == i + 1);
}

TEST_CASE("a race is reported with both accesses, and what would order them") {
    using Catch::Matchers::Contains;
    const auto [code, said] = found_in("st.global.u32 [%d1], %r20;", "races", 2);
    CHECK_THAT(said, Contains("a race: a store and a store of 4 bytes at offset 0 of buffer 'x' (4096 bytes) are not "
                              "ordered, by block (0,0,0) thread (0,0,0) and block (1,0,0) thread (0,0,0)"));
    CHECK_THAT(said, Contains("note: the one before, by block (0,0,0) thread (0,0,0): st.global.u32 [%d1], %r20;"));
    CHECK_THAT(said, Contains("hint: blocks are ordered by launches"));
    CHECK_THAT(found_in("@%p1 red.relaxed.cta.global.add.u32 [%d3], 1;", "races", 2).second,
               Contains("in scopes that do not reach the other thread"));
    CHECK_THAT(found_in("@!%p10 bra $second; @!%p1 bra $end; st.global.u32 [%d2], 5; fence.acq_rel.cta; "
                        "st.relaxed.gpu.global.u32 [%d3], 1; bra $end; $second: ld.acquire.gpu.global.u32 %r9, [%d3]; "
                        "setp.eq.u32 %p4, %r9, 0; @%p4 bra $second; ld.global.u32 %r9, [%d2];",
                        "races", 2)
                   .second,
               Contains("ordered in a scope that does not reach both threads"));
    CHECK_THAT(found_in("st.global.u32 [%d1], %r1; @%p1 ld.global.u32 %r9, [%d2+4];", "races").second,
               Contains("hint: lanes of a warp are ordered by bar.warp.sync"));
}

TEST_CASE("memory of the heap that another thread has freed is new") {
    // Each uses the first word and the last one of its own.
    const char* const body = R"({ .param .u64 bytes; .param .u64 at; st.param.u64 [bytes], 8192;
    call.uni (at), malloc, (bytes); ld.param.u64 %d5, [at]; }
    st.global.u32 [%d5], %r1; st.global.u32 [%d5+8188], %r1; { .param .u64 at; st.param.u64 [at], %d5; call.uni free, (at); })";
    Machine machine;
    machine.options.checks.set(emulator::Check::Races, emulator::Action::Error);
    const std::string text = module_of(body);
    const std::string declared =
        text.substr(0, text.find(".visible")) +
        ".extern .func (.param .u64 r) malloc(.param .u64 n); .extern .func free(.param .u64 p);\n" +
        text.substr(text.find(".visible"));
    const auto x = machine.buffer("x", std::vector<std::uint32_t>(1024, 1));
    CHECK(machine.failure(declared, {.grid = {40, 1, 1}, .block = {64, 1, 1}}, x, x) == "no failure");
}
