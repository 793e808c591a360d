// SPDX-License-Identifier: Apache-2.0
// Kernels that never end, and those that only look like it.
#include "runtime/emulator/tools/progress/progress.hpp"
#include "tests/unit/emulator/evaluate.hpp"

using namespace ikat;
using tests::contains;
using tests::kernel;
using tests::Machine;

namespace {

/// The message of a launch on two words, both 0; the budget is the default, which takes seconds.
std::string run(const std::string& body, std::uint32_t blocks = 1, std::uint32_t threads = 64, unsigned host = 1) {
    Machine machine;
    machine.options.threads = host;
    const auto words = machine.buffer("words", std::vector<std::uint32_t>{0, 0});
    return machine.failure(kernel("ld.param.u64 %d1, [p0]; mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x;\n" + body),
                           {.grid = {blocks, 1, 1}, .block = {threads, 1, 1}}, words, 0ull, 0ull, 0u);
}

const std::string poll = "$wait: ld.volatile.global.u32 %r3, [%d1]; setp.eq.u32 %p2, %r3, 0; @%p2 bra $wait;\n";

}  // namespace

TEST_CASE("a loop that returns to the same state is endless, and is reported immediately") {
    const std::string message = run("$loop: bra $loop;");
    CHECK_THAT(message,
               contains("an endless loop: its values repeat, and it reads nothing that could change, in block (0,0,0) "
                        "thread (0,0,0)"));
    CHECK_THAT(message, contains("bra $loop;"));
    // Some lanes alone, two branches in the loop, a divergent condition, stores to local memory.
    CHECK_THAT(run("setp.ne.u32 %p1, %r1, 40; @%p1 bra $end; $loop: bra $loop; $end: ret;"),
               contains("an endless loop: its values repeat, and it reads nothing that could change, "
                        "in block (0,0,0) thread (40,0,0)"));
    CHECK_THAT(run("setp.lt.u32 %p1, %r1, 7; $loop: @%p1 bra $loop; bra $loop;"), contains("an endless loop"));
    CHECK_THAT(run(".local .u32 i; $loop: mov.u32 %r3, 1; st.local.u32 [i], %r3; ld.local.u32 %r4, [i]; "
                   "setp.eq.u32 %p1, %r4, 1; @%p1 bra $loop; ret;"),
               contains("an endless loop"));
    CHECK_THAT(run("mov.u32 %r3, 0; $loop: add.u32 %r3, %r3, 1; and.b32 %r3, %r3, 255; setp.lt.u32 %p1, %r3, 256; "
                   "@%p1 bra $loop; ret;"),
               contains("an endless loop"));
}

TEST_CASE("endless loops are found in the checked code, too") {
    for (const char* body : {"$loop: bra $loop;",
                             "mov.u32 %r3, 0; $loop: add.u32 %r3, %r3, 1; and.b32 %r3, %r3, 255;"
                             "setp.lt.u32 %p1, %r3, 256; @%p1 bra $loop; ret;"}) {
        Machine machine;
        machine.check_registers(true);
        CHECK_THAT(machine.failure(kernel(body), {.block = {64, 1, 1}}, 0ull, 0ull, 0ull, 0u),
                   contains("an endless loop"));
        // a warp that switches to it inside the loop
        CHECK_THAT(run(".shared .u32 s; ld.shared.u32 %r9, [s]; " + std::string(body)), contains("an endless loop"));
    }
    // What the loop reads is determined by the checked ops, not by the plain ops at the same positions.
    std::string sums = "setp.eq.u32 %p1, %r2, 1; @%p1 bra $write;\n";
    for (int i = 0; i < 60; ++i) sums += "add.u32 %r9, %r1, 1;\n";
    Machine machine;
    machine.check_registers(true);
    const auto words = machine.buffer("words", std::vector<std::uint32_t>{0, 0});
    CHECK(machine.failure(kernel("ld.param.u64 %d1, [p0]; mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x;\n" + sums +
                                 "bra $wait;\n" + poll + "ret; $write: st.volatile.global.u32 [%d1], 1; ret;"),
                          {.grid = {2, 1, 1}, .block = {64, 1, 1}}, words, 0ull, 0ull, 0u) == "no failure");
}

TEST_CASE("a loop that waits by loading a matrix ends when another warp has stored") {
    CHECK(run(".shared .align 32 .b8 tile[1024]; mov.u32 %r1, %tid.x; shl.b32 %r7, %r1, 2; mov.u32 %r8, tile;"
              "add.u32 %r8, %r8, %r7; mov.u32 %r9, 0; st.shared.b32 [%r8], %r9; st.shared.b32 [%r8+256], %r9;"
              "st.shared.b32 [%r8+512], %r9; st.shared.b32 [%r8+768], %r9; bar.sync 0;"
              "setp.lt.u32 %p1, %r1, 32; @%p1 bra $spin; mov.u32 %r5, 0;"
              "$delay: add.u32 %r5, %r5, 1; setp.lt.u32 %p2, %r5, 400000; @%p2 bra $delay;"
              "mov.u32 %r8, tile; mov.u32 %r9, 1; st.shared.b32 [%r8], %r9; bra $end;"
              "$spin: mov.u32 %r8, tile; wmma.load.c.sync.aligned.row.m16n16k16.shared.s32"
              "{%r10, %r11, %r12, %r13, %r14, %r15, %r16, %r17}, [%r8], 16;"
              "shfl.sync.idx.b32 %r20, %r10, 0, 31, -1; setp.eq.u32 %p3, %r20, 0; @%p3 bra $spin; $end: ret;") ==
          "no failure");
}

TEST_CASE("waiting for memory that no thread can change any more is found immediately") {
    const std::string global = run(poll + "ret;");
    CHECK_THAT(global,
               contains("block (0,0,0) waits for memory to change, and no thread is left that could change it"));
    CHECK_THAT(global, contains("warps 0-1 lanes 0-31 read the same memory again and again"));
    CHECK_THAT(run(".shared .u32 s; mov.u32 %r3, 0; st.shared.u32 [s], %r3; bar.sync 0; setp.lt.u32 %p1, %r1, 32;"
                   "@%p1 bra $barrier; $wait: ld.volatile.shared.u32 %r3, [s]; setp.eq.u32 %p2, %r3, 0;"
                   "@%p2 bra $wait; $barrier: bar.sync 0; ret;"),
               contains("warp 0 lanes 0-31 wait at barrier 0, which 32 of 64 threads have reached"));
    // A lock that is never released: a failed compare-and-swap changes nothing.
    CHECK_THAT(run("$try: atom.global.cas.b32 %r3, [%d1], 0, 1; setp.ne.u32 %p1, %r3, 0; @%p1 bra $try; ret;"),
               contains("waits for memory to change"));
    // Lanes of one warp, of which the one that would write waits for the others.
    CHECK_THAT(run("setp.eq.u32 %p1, %r1, 0; @%p1 bra $late;" + poll +
                       "$late: bar.warp.sync -1; mov.u32 %r3, 1; "
                       "st.global.u32 [%d1], %r3; ret;",
                   1, 32),
               contains("waits for memory to change"));
    // All blocks wait, on one host thread and on several; the first is named.
    for (const unsigned host : {1u, 3u})
        CHECK_THAT(run(poll + "ret;", 20, 64, host), contains("block (0,0,0) waits for memory to change"));
    // ... or all but one that has exited without writing.
    CHECK_THAT(run("setp.eq.u32 %p1, %r2, 7; @%p1 bra $end;" + poll + "$end: ret;", 20),
               contains("block (0,0,0) waits"));
}

TEST_CASE("waiting for a late thread is not a finding", "[long]") {
    const std::string late = R"(
    mov.u32 %r4, 0;
$work: add.u32 %r4, %r4, 1; setp.lt.u32 %p3, %r4, 100000; @%p3 bra $work;
    mov.u32 %r5, 1; st.volatile.global.u32 [%d1], %r5; ret;
)";
    for (const unsigned host : {1u, 3u}) {
        CAPTURE(host);
        // The last warp of a block, the last lane of a warp, the last block of a grid.
        CHECK(run("setp.ge.u32 %p1, %r1, 32; @%p1 bra $late;" + poll + "ret; $late:" + late, 1, 64, host) ==
              "no failure");
        CHECK(run("setp.eq.u32 %p1, %r1, 31; @%p1 bra $late;" + poll + "ret; $late:" + late, 1, 32, host) ==
              "no failure");
        CHECK(run("setp.eq.u32 %p1, %r2, 9; @%p1 bra $late;" + poll + "ret; $late:" + late, 10, 64, host) ==
              "no failure");
    }
    // A clock advances while nothing else changes.
    CHECK(run("mov.u32 %r4, %clock; $wait: mov.u32 %r3, %clock; sub.u32 %r3, %r3, %r4; setp.lt.u32 %p1, %r3, 400000; "
              "@%p1 bra $wait; ret;") == "no failure");
    // Blocks that pass on a word.
    CHECK(run("$wait: ld.volatile.global.u32 %r3, [%d1]; setp.ne.u32 %p2, %r3, %r2; @%p2 bra $wait; "
              "add.u32 %r3, %r3, 1; bar.sync 0; st.volatile.global.u32 [%d1], %r3; ret;",
              100, 32) == "no failure");
    // The same word goes round three times: the thread that has just written waits again in the same turn.
    CHECK(run("mov.u32 %r5, 0; $again: $wait: ld.volatile.global.u32 %r3, [%d1]; rem.u32 %r4, %r3, 40; "
              "setp.ne.u32 %p2, %r4, %r2; @%p2 bra $wait; add.u32 %r3, %r3, 1; st.volatile.global.u32 [%d1], %r3; "
              "add.u32 %r5, %r5, 1; setp.lt.u32 %p1, %r5, 3; @%p1 bra $again; ret;",
              40, 1) == "no failure");
}

TEST_CASE("an endless counter ends at the step budget, which restarts at barriers") {
    const std::string count = "mov.u32 %r3, 0; $loop: add.u32 %r3, %r3, 1; setp.ne.u32 %p1, %r3, 0; @%p1 bra $loop;";
    Machine machine;
    const auto failure = [&](const std::string& body) {
        return machine.failure(kernel(body), {.block = {64, 1, 1}}, 0ull, 0ull, 0ull, 0u);
    };
    machine.options.step_budget = 300000;
    const std::string message = failure(count);
    CHECK_THAT(message, contains("warp 0 has executed 300"));
    CHECK_THAT(message, contains("since it began or passed its last barrier, in block (0,0,0) thread (0,0,0)"));
    CHECK_THAT(message, contains("raise the step budget (--steps)"));
    const std::string rounds =
        "mov.u32 %r4, 0; $again: mov.u32 %r3, 0; $loop: add.u32 %r3, %r3, 1; "
        "setp.lt.u32 %p1, %r3, 60000; @%p1 bra $loop; bar.sync 0; add.u32 %r4, %r4, 1; "
        "setp.lt.u32 %p1, %r4, 4; @%p1 bra $again; ret;";
    CHECK(failure(rounds) == "no failure");
    machine.options.step_budget = 100000;
    CHECK_THAT(failure(rounds), contains("has executed 100"));
    machine.options.step_budget = 1000000;
    machine.options.launch_budget = 300000;
    CHECK_THAT(failure(rounds), contains("the launch has not ended after 300000 warp instructions"));
}

TEST_CASE("a long launch reports its progress") {
    Machine machine;
    std::vector<std::uint64_t> done;
    const auto tell = [&](const emulator::Progress& at, std::chrono::seconds) {
        CHECK(at.entry == "k");
        CHECK(at.blocks == 5);
        done.push_back(at.blocks_done);
    };
    machine.options.tools = {emulator::tell_progress(std::chrono::milliseconds(0), tell)};
    machine.run(kernel("ret;"), {.grid = {5, 1, 1}, .block = {64, 1, 1}}, 0ull, 0ull, 0ull, 0u);
    CHECK(done == std::vector<std::uint64_t>{0, 1, 2, 3, 4});
    done.clear();
    machine.options.tools = {emulator::tell_progress(std::chrono::hours(1), tell)};
    machine.run(kernel("ret;"), {.grid = {5, 1, 1}, .block = {64, 1, 1}}, 0ull, 0ull, 0ull, 0u);
    CHECK(done.empty());
}

TEST_CASE("a loop with a barrier in each round is endless if all warps come back to the same state") {
    for (const std::string body :
         {"$loop: bar.sync 0; bra $loop;", "$loop: bar.sync 0; mov.u32 %r5, 1; bar.sync 1; mov.u32 %r5, 2; bra $loop;",
          ".shared .u32 s; st.shared.u32 [s], 1; bar.sync 0; $loop: ld.shared.u32 %r5, [s]; setp.eq.u32 %p1, %r5, 1;"
          "bar.sync 0; @%p1 bra $loop; ret;",
          "mov.u32 %r5, 0; $loop: xor.b32 %r5, %r5, 1; barrier.sync 3; setp.lt.u32 %p1, %r5, 2; @%p1 bra $loop; ret;",
          "setp.lt.u32 %p1, %r1, 32; $loop: @%p1 bra $first; bar.sync 0; bra $loop; $first: bar.sync 0; bra $loop;"})
        for (const unsigned host : {1u, 2u}) {
            INFO(body);
            CHECK_THAT(
                run(body, 3, 64, host),
                contains(
                    "an endless loop: its values repeat, and it reads nothing that could change, in block (0,0,0)"));
        }
    // These come to an end: they count, write what they read, or wait for another block.
    CHECK(run("mov.u32 %r5, 0; $loop: bar.sync 0; add.u32 %r5, %r5, 1; setp.lt.u32 %p1, %r5, 20000; @%p1 bra $loop; "
              "ret;") == "no failure");
    CHECK(run(".shared .u32 s; st.shared.u32 [s], 0; bar.sync 0; $loop: ld.shared.u32 %r5, [s]; bar.sync 0;"
              "setp.eq.u32 %p2, %r1, 0; @%p2 red.shared.add.u32 [s], 1; setp.lt.u32 %p1, %r5, 3000; bar.sync 0;"
              "@%p1 bra $loop; ret;") == "no failure");
    const std::string waits =
        "setp.eq.u32 %p1, %r2, 1; @%p1 bra $write;\n"
        "$loop: ld.volatile.global.u32 %r3, [%d1]; bar.sync 0; setp.eq.u32 %p2, %r3, 0; "
        "@%p2 bra $loop; ret;\n$write: mov.u32 %r4, 0; $count: add.u32 %r4, %r4, 1; "
        "setp.lt.u32 %p3, %r4, 300000; @%p3 bra $count; st.volatile.global.u32 [%d1], 1; ret;";
    for (const unsigned host : {1u, 2u}) CHECK(run(waits, 2, 64, host) == "no failure");
}

TEST_CASE("all warps of a launch together may execute as much as is asked for") {
    Machine machine;
    machine.options.launch_budget = 100000;
    const auto words = machine.buffer("words", std::vector<std::uint32_t>{0, 0});
    const std::string text = kernel(
        "ld.param.u64 %d1, [p0]; $loop: bar.sync 0; ld.volatile.global.u32 %r3, [%d1];"
        "setp.eq.u32 %p2, %r3, 0; @%p2 bra $loop; ret;");
    CHECK_THAT(machine.failure(text, {.block = {64, 1, 1}}, words, 0ull, 0ull, 0u),
               contains("the launch has not ended after 100000 warp instructions") && contains("(--launch-steps)"));
}

namespace {

/// Warps 0 to 3 fill a ring of two places, whose empty barriers nobody arrives at; the others wait for the third
/// filling. %r2 is the block: only blocks from `first` on do that.
std::string ring(std::uint32_t first) {
    std::string text = kernel(R"(
    .shared .align 8 .b64 full[2]; .shared .align 8 .b64 empty[2];
    mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x; setp.eq.u32 %p1, %r1, 0; mov.u32 %r8, full; mov.u32 %r9, empty;
    @%p1 mbarrier.init.shared.b64 [full], 1; @%p1 mbarrier.init.shared.b64 [full+8], 1;
    @%p1 mbarrier.init.shared.b64 [empty], 8; @%p1 mbarrier.init.shared.b64 [empty+8], 8; bar.sync 0;
    setp.lt.u32 %p2, %r2, )" + std::to_string(first) +
                              R"(; @%p2 bra $end;
    mov.u32 %r3, 0; setp.ge.u32 %p3, %r1, 128; @%p3 bra $consume;
$produce: and.b32 %r4, %r3, 1; shr.u32 %r5, %r3, 1; and.b32 %r5, %r5, 1; xor.b32 %r5, %r5, 1; shl.b32 %r6, %r4, 3;
    add.u32 %r7, %r9, %r6;
$empty: mbarrier.try_wait.parity.shared.b64 %p4, [%r7], %r5; @!%p4 bra $empty;
    add.u32 %r7, %r8, %r6; @%p1 mbarrier.arrive.shared.b64 %d3, [%r7];
    add.u32 %r3, %r3, 1; setp.lt.u32 %p5, %r3, 8; @%p5 bra $produce; bra $end;
$consume: and.b32 %r4, %r3, 1; shr.u32 %r5, %r3, 1; and.b32 %r5, %r5, 1; shl.b32 %r6, %r4, 3; add.u32 %r7, %r8, %r6;
$full: mbarrier.try_wait.parity.shared.b64 %p4, [%r7], %r5; @!%p4 bra $full;
    add.u32 %r3, %r3, 1; setp.lt.u32 %p5, %r3, 8; @%p5 bra $consume;
$end: ret;)");
    text.replace(text.find("sm_80"), 5, "sm_90");
    return text;
}

}  // namespace

TEST_CASE("blocks that wait for ever are found with any number of host threads, and the lowest is reported") {
    for (const bool registers : {false, true})
        for (const std::uint32_t first : {0u, 3u}) {
            std::string reported;
            for (int i = 0; i < 60; ++i)
                for (const unsigned host : {1u, 2u, 4u}) {
                    Machine machine;
                    machine.options.threads = host;
                    machine.options.seed = 5;
                    machine.check_registers(registers);
                    const std::string said = machine.failure(
                        ring(first), {.grid = {first + 5, 1, 1}, .block = {384, 1, 1}}, 0ull, 0ull, 0ull, 0u);
                    if (reported.empty()) reported = said;
                    CHECK(said == reported);
                }
            CHECK_THAT(reported, contains("error: deadlock in block (" + std::to_string(first) + ",0,0)"));
        }
}

TEST_CASE("blocks that wait for each other for ever are found with any number of host threads", "[long]") {
    // Each waits for the next one's flag, and the last for the first's.
    const std::string text = kernel(
        "ld.param.u64 %d1, [p0]; mov.u32 %r1, %ctaid.x; mov.u32 %r2, %nctaid.x; add.u32 %r1, %r1, 1;\n"
        "rem.u32 %r1, %r1, %r2; mul.wide.u32 %d2, %r1, 4; add.u64 %d1, %d1, %d2;\n"
        "$wait: ld.volatile.global.u32 %r3, [%d1]; setp.eq.u32 %p2, %r3, 0; @%p2 bra $wait; ret;");
    for (int i = 0; i < 15; ++i)
        for (const unsigned host : {1u, 2u, 4u}) {
            Machine machine;
            machine.options.threads = host;
            machine.options.seed = std::uint32_t(i);
            const auto flags = machine.buffer("flags", std::vector<std::uint32_t>(16));
            CHECK_THAT(machine.failure(text, {.grid = {16, 1, 1}, .block = {64, 1, 1}}, flags, 0ull, 0ull, 0u),
                       contains("block (0,0,0) waits for memory to change"));
        }
}
