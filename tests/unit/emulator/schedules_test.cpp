// SPDX-License-Identifier: Apache-2.0
// Orders by name: what each finds that others do not, and that none of them accuses a right kernel. Of two kernels in
// one text, <a|b> is a in the right one and b in the wrong one.
#include "runtime/emulator/core/schedule.hpp"

#include <algorithm>
#include <set>

#include "runtime/emulator/host/host_options.hpp"
#include "runtime/emulator/machine/order.hpp"
#include "tests/unit/emulator/machine.hpp"
#include "tests/unit/emulator/twin.hpp"

namespace ikat::tests::schedules {

using emulator::read_schedule;
using emulator::Schedule;

namespace {

/// %r1 is the thread, %r3 its warp, %r20 the block, %r21 the rank in its cluster; %r4 the address of the thread's word
/// of `tile`, %r5 that of tile, 512 bytes, %r6 that of bar; %p1 is thread 0. %d1 is its word of p0, of those of all
/// blocks, %d2 = p0, which are 1; %d3 = p1, which are 0. `bar` and `empty` are barriers for one arrival. %r9 are zeros.
struct Twins {
    const char* name;
    const char* body;
    std::uint32_t expected;  // in %r30 of each thread, which is stored to its word of p0
    std::uint32_t threads = 96, blocks = 1;
    bool is_cluster = false;
    bool has_copies = true;  // with the class `copies`, which else is off
};

std::string text_of(const Twins& twins, bool is_right) {
    return R"(.version 8.6
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 p0, .param .u64 p1) {
    .reg .pred %p<16>; .reg .b32 %r<64>; .reg .b64 %d<16>;
    .shared .align 8 .b64 bar; .shared .align 8 .b64 empty; .shared .align 128 .b8 tile[512];
    mov.u32 %r1, %tid.x; shr.u32 %r3, %r1, 5; mov.u32 %r20, %ctaid.x; mov.u32 %r21, %cluster_ctarank; mov.u32 %r9, 0;
    mov.u32 %r5, tile; mov.u32 %r6, bar; shl.b32 %r4, %r1, 2; add.u32 %r4, %r4, %r5; setp.eq.u32 %p1, %r1, 0;
    ld.param.u64 %d2, [p0]; ld.param.u64 %d3, [p1]; mov.u32 %r7, %ntid.x; mad.lo.u32 %r8, %r20, %r7, %r1;
    mul.wide.u32 %d1, %r8, 4; add.u64 %d1, %d1, %d2; mov.u32 %r30, 0;
    @%p1 mbarrier.init.shared.b64 [bar], 1; @%p1 mbarrier.init.shared.b64 [empty], 1;
    @%p1 fence.mbarrier_init.release.cluster; fence.proxy.async; bar.sync 15;
)" + twin(twins.body, is_right) +
           "\n    st.global.u32 [%d1], %r30; ret;\n}\n";
}

/// Whether the result is right and nothing is found.
bool passes(const Twins& twins, bool is_right, const Schedule& schedule, unsigned threads = 1) {
    Machine machine;
    static_cast<Schedule&>(machine.options) = schedule;
    machine.options.threads = threads;
    machine.options.step_budget = 8000000;
    machine.options.launch_budget = 400000000;
    if (!twins.has_copies) machine.options.checks.set(emulator::Check::Copies, emulator::Action::Off);
    const std::uint32_t count = twins.threads * twins.blocks;
    const auto x = machine.buffer("x", std::vector<std::uint32_t>(std::max(count, 1024u), 1));
    const auto flags = machine.buffer("flags", std::vector<std::uint32_t>(1024));
    emulator::Launch launch{.grid = {twins.blocks, 1, 1}, .block = {twins.threads, 1, 1}};
    if (twins.is_cluster) launch.cluster = {twins.blocks, 1, 1};
    const std::string said = machine.failure(text_of(twins, is_right), launch, x, flags);
    INFO(said);
    if (is_right) CHECK(said == "no failure");
    return said == "no failure" &&
           machine.get<std::uint32_t>(x, count) == std::vector<std::uint32_t>(count, twins.expected);
}

Schedule schedule(std::string_view text) {
    const auto read = read_schedule(text);
    INFO(text);
    REQUIRE(read);
    return *read;
}

/// For each seed from 0 on.
// Under the sanitizers, which look for other mistakes, few do.
#ifdef __SANITIZE_ADDRESS__
constexpr unsigned usual_seeds = 2;
#else
constexpr unsigned usual_seeds = 8;
#endif
std::vector<Schedule> each_seed(const std::string& words, unsigned seeds = usual_seeds) {
    std::vector<Schedule> all;
    for (unsigned seed = 0; seed < seeds; ++seed) all.push_back(schedule(std::to_string(seed) + words));
    return all;
}

/// The right one passes in all orders, the wrong one in all orders of these words, except that orders with `finds` show
/// it: some of them, or each.
void check(const Twins& twins, const std::vector<std::string>& passed, const std::string& finds, bool always = false) {
    INFO(twins.name);
    INFO(text_of(twins, false));
    for (const char* const words :
         {"", ",lanes", ",ascending", ",descending", ",priorities", ",early", ",late", ",missed-waits",
          ",starved-block", ",any-blocks", ",priorities,lanes,early,missed-waits,starved-block,any-blocks",
          ",lanes,late,missed-waits,starved-block,any-blocks"})
        for (const Schedule& order : each_seed(words)) {
            INFO(to_string(order));
            CHECK(passes(twins, true, order));
        }
    for (const std::string& words : passed)
        for (const Schedule& order : each_seed(words)) {
            INFO(to_string(order));
            CHECK(passes(twins, false, order));
        }
    int found = 0;
    const std::vector<Schedule> orders = each_seed(finds, 24);
    for (const Schedule& order : orders) found += !passes(twins, false, order);
    INFO(finds << " finds it " << found << " times");
    CHECK(found >= (always ? int(orders.size()) : 1));
}

}  // namespace

TEST_CASE("a schedule's text is read as the same schedule, and what is none is not") {
    std::set<std::string> texts;
    std::size_t count = 0;
    for (const std::uint32_t seed : {0u, 1u, ~0u})
        for (unsigned bits = 0; bits < 64; ++bits)
            for (int turns = 0; turns < 4; ++turns)
                for (int arrivals = 0; arrivals < 3; ++arrivals) {
                    const auto is = [&](int bit) { return (bits >> bit & 1) != 0; };
                    const Schedule all{.seed = seed,
                                       .turns = Schedule::Turns(turns),
                                       .arrivals = Schedule::Arrivals(arrivals),
                                       .lanes = is(0),
                                       .moved_shared = is(1),
                                       .any_leader = is(2),
                                       .missed_waits = is(3),
                                       .starved_block = is(4),
                                       .any_blocks = is(5)};
                    ++count;
                    texts.insert(to_string(all));
                    CHECK(read_schedule(to_string(all)) == all);
                }
    CHECK(texts.size() == count);
    CHECK(to_string(schedule("7,late,lanes,lanes,missed-waits,descending")) == "7,lanes,descending,late,missed-waits");
    CHECK(schedule("random,early").seed != 0);
    for (const char* const none : {"", ",", "late", "7,", "7,erly", "7,early,late", "7,ascending,priorities", "-1",
                                   "7 ", "4294967296", "7,,early", "random7"}) {
        INFO(none);
        CHECK(!read_schedule(none));
    }
}

TEST_CASE("the orders of a launch that runs in several") {
    std::vector<std::string> texts;
    for (unsigned number = 0; number < 11; ++number)
        texts.push_back(to_string(emulator::order_after(schedule("3,any-leader"), number)));
    CHECK(texts == std::vector<std::string>{"3,any-leader", "4,any-leader,descending,late",
                                            "5,lanes,any-leader,missed-waits,starved-block,any-blocks",
                                            "6,any-leader,priorities,early", "7,lanes,any-leader,priorities,late",
                                            "8,any-leader,descending,early",
                                            "9,lanes,any-leader,priorities,missed-waits,starved-block,any-blocks",
                                            "10,any-leader,ascending,late",
                                            "11,lanes,any-leader,early,missed-waits,starved-block,any-blocks",
                                            "12,any-leader,priorities,early,missed-waits,starved-block,any-blocks",
                                            "13,lanes,any-leader,late,missed-waits,starved-block,any-blocks"});
    // the seed is never that of no random choices
    CHECK(emulator::order_after(Schedule::of(~0u), 1).seed == 1);
}

TEST_CASE("orders of warps") {
    check({"a warp reads what one before it has written", R"(
    setp.eq.u32 %p2, %r3, 0; @%p2 st.shared.u32 [%r4], 7; <bar.sync 0;|>
    and.b32 %r10, %r1, 31; shl.b32 %r10, %r10, 2; add.u32 %r10, %r10, %r5; ld.shared.u32 %r30, [%r10];)",
           7},
          {",ascending"}, ",descending", true);
    check({"a warp reads what one after it has written", R"(
    setp.eq.u32 %p2, %r3, 2; @%p2 st.shared.u32 [%r4], 7; <bar.sync 0;|>
    and.b32 %r10, %r1, 31; shl.b32 %r10, %r10, 2; add.u32 %r10, %r10, %r5; ld.shared.u32 %r30, [%r10+256];)",
           7},
          {",descending"}, ",ascending", true);
    // Two warps meet often, while the third, which nobody waits for, might not have begun.
    check({"two warps meet so often that the third must be done", R"(
    mov.u32 %r30, 7; setp.eq.u32 %p2, %r3, 2; @!%p2 bra $meet;
    st.shared.u32 [tile], 7; bra $end;
    $meet: mov.u32 %r10, 0;
    $again: bar.sync 1, 64; add.u32 %r10, %r10, 1; setp.lt.u32 %p3, %r10, 20; @%p3 bra $again;
    $end: <bar.sync 0;|> @%p2 bra $out; ld.shared.u32 %r30, [tile]; $out:)",
           7},
          {"", ",lanes", ",descending", ",ascending"}, ",priorities");
    check({"two warps hand over to each other so often that the third must be done", R"(
    mov.u32 %r30, 7; setp.eq.u32 %p2, %r3, 2; @!%p2 bra $pair; st.shared.u32 [tile], 7; bra $met;
    $pair: and.b32 %r11, %r1, 31; setp.ne.u32 %p5, %r11, 0; setp.eq.u32 %p6, %r3, 0; mov.u32 %r10, 0;
    @%p5 bra $met; @%p6 bra $first;
    $second: and.b32 %r13, %r10, 1;
    $full: mbarrier.try_wait.parity.shared::cta.b64 %p3, [bar], %r13; @!%p3 bra $full;
    mbarrier.arrive.shared.b64 _, [empty];
    add.u32 %r10, %r10, 1; setp.lt.u32 %p4, %r10, 20; @%p4 bra $second; bra $met;
    $first: and.b32 %r13, %r10, 1; mbarrier.arrive.shared.b64 _, [bar];
    $free: mbarrier.try_wait.parity.shared::cta.b64 %p3, [empty], %r13; @!%p3 bra $free;
    add.u32 %r10, %r10, 1; setp.lt.u32 %p4, %r10, 20; @%p4 bra $first;
    $met: bar.warp.sync -1; <bar.sync 0;|> @%p2 bra $out; ld.shared.u32 %r30, [tile]; $out:)",
           7},
          {"", ",lanes", ",descending", ",ascending"}, ",priorities");
    // What is seen only if one warp is far ahead of the other first, and then stays behind.
    check({"a warp has begun, and is not done", R"(
    @%p1 st.shared.v2.u32 [tile], {%r9, %r9}; bar.sync 0; mov.u32 %r30, 7; setp.eq.u32 %p2, %r3, 0; mov.u32 %r10, 0;
    @!%p2 bra $looks; st.volatile.shared.u32 [tile], 1;
    $again: bar.sync 1, 32; add.u32 %r10, %r10, 1; setp.lt.u32 %p3, %r10, 30; @%p3 bra $again;
    st.volatile.shared.u32 [tile+4], 1;
    $looks: <bar.sync 0;|> setp.eq.u32 %p3, %r3, 1; @!%p3 bra $out;
    ld.volatile.shared.u32 %r11, [tile]; ld.volatile.shared.u32 %r12, [tile+4]; setp.ne.u32 %p4, %r11, %r12;
    @%p4 mov.u32 %r30, 0; $out:)",
           7},
          {",descending"}, ",priorities");
    // Two wait for the third, and meet each time that they look.
    check({"warps that meet again and again wait for another", R"(
    @%p1 st.shared.u32 [tile], 0; bar.sync 0; mov.u32 %r30, 7; setp.eq.u32 %p2, %r3, 2; @!%p2 bra $looks;
    st.volatile.shared.u32 [tile], 7; bra $out;
    $looks: bar.sync 1, 64; @%p1 ld.volatile.shared.u32 %r10, [tile]; @%p1 st.volatile.shared.u32 [tile+8], %r10;
    bar.sync 1, 64; ld.volatile.shared.u32 %r30, [tile+8]; setp.eq.u32 %p3, %r30, 0; <@%p3 bra $looks;|> $out:)",
           7},
          {}, ",priorities");
    // The first says that it is done before it is; the second is woken while the first continues.
    check({"a warp arrives before it has written", R"(
    mov.u32 %r30, 7; setp.eq.u32 %p2, %r3, 0; @!%p2 bra $reads; mov.u32 %r10, 0;
    <st.shared.u32 [tile], 7;|> @%p1 mbarrier.arrive.shared.b64 _, [bar];
    $on: add.u32 %r10, %r10, 1; setp.lt.u32 %p3, %r10, 20; @%p3 bra $on;
    <|st.shared.u32 [tile], 7;> bra $out;
    $reads: mbarrier.test_wait.parity.shared.b64 %p4, [bar], 0; @!%p4 bra $reads; ld.shared.u32 %r30, [tile]; $out:)",
           7},
          {"", ",descending", ",ascending"}, ",priorities");
}

TEST_CASE("completions: early, and late") {
    const std::string begin =
        "@%p1 mov.u32 %r9, 7; @%p1 st.shared.v4.u32 [tile], {%r9, %r9, %r9, %r9}; fence.proxy.async; bar.sync 0;\n";
    const std::string store =
        "cp.async.bulk.global.shared::cta.bulk_group [%d3], [tile], 16; cp.async.bulk.commit_group;\n";
    const std::string read_early = begin + "@!%p1 bra $met;" + store + R"(
    cp.async.bulk.wait_group<| .read> 0; $met: bar.sync 0; ld.global.u32 %r30, [%d3];)";
    check({"global memory is read when the source of a copy has been read", read_early.c_str(), 7}, {",early"}, ",late",
          true);
    const std::string written_early = begin + R"(
    setp.eq.u32 %p2, %r3, 2; <@%p2 ld.global.u32 %r30, [%d3]; bar.sync 0;|> @!%p1 bra $read;)" +
                                      store + R"(
    $read: <|@%p2 ld.global.u32 %r30, [%d3]; bar.sync 0;> @%p1 cp.async.bulk.wait_group 0;)";
    check({"a copy to what others still read", written_early.c_str(), 0}, {",late"}, ",early");
    check({"shared memory is read before the copy to it is there", R"(
    @%p1 st.shared.v4.u32 [tile], {%r9, %r9, %r9, %r9}; bar.sync 0;
    @%p1 cp.async.ca.shared.global [tile], [%d2], 16; <@%p1 cp.async.wait_all;|> bar.sync 0;
    ld.shared.u32 %r30, [tile]; <|@%p1 cp.async.wait_all;>)",
           1, 96, 1, false, false},
          {",early"}, ",late", true);
    check({"the source of a copy is used again", R"(
    @!%p1 bra $met; mov.u32 %r10, 7; cp.async.ca.shared.global [tile], [%d3], 16; <cp.async.wait_all;|>
    st.global.u32 [%d3], %r10; <|cp.async.wait_all;> $met: bar.sync 0; ld.shared.u32 %r30, [tile];)",
           0, 96, 1, false, false},
          {",early"}, ",late", true);
}

TEST_CASE("a wait that answers no") {
    const Twins twins{"it asks once", R"(
    @!%p1 bra $met; mbarrier.arrive.expect_tx.shared.b64 _, [bar], 16;
    cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [tile], [%d2], 16, [bar];
    $met: bar.sync 0;
    $again: mbarrier.try_wait.parity.shared::cta.b64 %p2, [bar], 0; <@!%p2 bra $again;|>
    ld.shared.u32 %r30, [tile];)",
                      1};
    check(twins, {}, ",early,missed-waits", true);
    CHECK(passes(twins, false, schedule("0,early")));
}

TEST_CASE("a block of a cluster that is starved") {
    // Two blocks meet so often that the third must have written.
    const Twins twins{"shared memory of a block that nobody has met again", R"(
    barrier.cluster.arrive; barrier.cluster.wait; mov.u32 %r10, 0; setp.eq.u32 %p5, %r21, 0;
    setp.eq.u32 %p2, %r21, 2; @!%p2 bra $pair; @%p1 st.shared.u32 [tile], 7; bra $met;
    $pair: xor.b32 %r11, %r21, 1; mapa.shared::cluster.u32 %r12, %r6, %r11; @!%p1 bra $met;
    $more: @%p5 mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r12]; and.b32 %r13, %r10, 1;
    $again: mbarrier.try_wait.parity.shared::cta.b64 %p3, [bar], %r13; @!%p3 bra $again;
    @!%p5 mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r12];
    add.u32 %r10, %r10, 1; setp.lt.u32 %p4, %r10, 30; @%p4 bra $more;
    $met: bar.warp.sync -1; <barrier.cluster.arrive; barrier.cluster.wait;|>
    mapa.shared::cluster.u32 %r14, %r5, 2; ld.shared::cluster.u32 %r30, [%r14];
    barrier.cluster.arrive; barrier.cluster.wait;)", 7, 32, 3, true};
    check(twins, {"", ",lanes", ",descending", ",ascending"}, ",starved-block");
}

TEST_CASE("blocks in any order, and some at a time", "[long]") {
    const std::vector<std::string> others{"", ",lanes", ",descending", ",priorities", ",starved-block,missed-waits"};
    check({"the first block runs first", R"(
    setp.ne.u32 %p2, %r20, 0; @%p2 bra $wait; @%p1 st.volatile.global.u32 [%d3], 7;
    $wait: <ld.volatile.global.u32 %r30, [%d3]; setp.eq.u32 %p3, %r30, 0; @%p3 bra $wait;|ld.global.u32 %r30, [%d3];>)",
           7, 32, 5},
          others, ",any-blocks");
    check({"a block runs alone", R"(
    <mul.wide.u32 %d4, %r20, 4;|mov.u64 %d4, 0;> add.u64 %d4, %d4, %d3; ld.volatile.global.u32 %r10, [%d4];
    add.u32 %r11, %r10, 1; bar.sync 0; @%p1 st.volatile.global.u32 [%d4], %r11; bar.sync 0;
    ld.volatile.global.u32 %r12, [%d4]; sub.u32 %r30, %r12, %r10;)",
           1, 64, 7},
          others, ",any-blocks");
    // All of them meet; then each reads what the next has written.
    check({"the blocks of a grid meet", R"(
    mul.wide.u32 %d4, %r20, 4; add.u64 %d4, %d4, %d3; @%p1 st.global.u32 [%d4+64], 7; mov.u32 %r11, %nctaid.x;
    <@!%p1 bra $met; fence.acq_rel.gpu; red.global.add.u32 [%d3], 1;
    $wait: ld.acquire.gpu.global.u32 %r10, [%d3]; setp.lt.u32 %p3, %r10, %r11; @%p3 bra $wait;
    $met: bar.sync 0;|> add.u32 %r12, %r20, 1; rem.u32 %r12, %r12, %r11;
    mul.wide.u32 %d4, %r12, 4; add.u64 %d4, %d4, %d3; ld.global.u32 %r30, [%d4+64];)",
           7, 32, 40},
          {}, ",any-blocks", true);
    // Each waits for that which has drawn the number before its own.
    check({"blocks wait for those that have begun before", R"(
    @!%p1 bra $met; <atom.global.add.u32 %r10, [%d3], 1;|mov.u32 %r10, %r20;> mul.wide.u32 %d4, %r10, 4; add.u64 %d4, %d4, %d3;
    setp.eq.u32 %p2, %r10, 0; @%p2 bra $first;
    $wait: ld.acquire.gpu.global.u32 %r11, [%d4+64]; <setp.eq.u32 %p3, %r11, 0; @%p3 bra $wait;|>
    $first: add.u32 %r11, %r11, 1; @%p2 mov.u32 %r11, 1; st.release.gpu.global.u32 [%d4+68], %r11; sub.u32 %r30, %r11, %r10;
    st.shared.u32 [tile], %r30; $met: bar.sync 0; ld.shared.u32 %r30, [tile];)",
           1, 64, 100},
          others, ",any-blocks", true);
}

TEST_CASE("blocks that wait for each other in a way that is not seen get what they wait for") {
    // Each waits for the next one, and asks for the time.
    const Twins twins{"", R"(
    mul.wide.u32 %d4, %r20, 4; add.u64 %d4, %d4, %d3; st.volatile.global.u32 [%d4], 7; mov.u32 %r11, %nctaid.x;
    add.u32 %r12, %r20, 1; rem.u32 %r12, %r12, %r11; mul.wide.u32 %d4, %r12, 4; add.u64 %d4, %d4, %d3;
    $wait: mov.u32 %r13, %clock; ld.volatile.global.u32 %r30, [%d4]; setp.eq.u32 %p3, %r30, 0; @%p3 bra $wait;)",
                      7, 32, 9};
    for (const Schedule& each : each_seed(",any-blocks")) CHECK(passes(twins, true, each));
    Twins cluster = twins;
    cluster.blocks = 3;
    cluster.is_cluster = true;
    for (const Schedule& each : each_seed(",starved-block", 3)) CHECK(passes(cluster, true, each));
}

TEST_CASE("in any order, each cluster starts once, and another than the first one comes first") {
    std::set<std::size_t> at_a_time;
    for (const std::uint64_t clusters : {1u, 2u, 3u, 7u, 64u, 96u, 210u}) {
        std::set<std::vector<std::uint64_t>> orders;
        for (const Schedule& each : each_seed(",any-blocks", 20)) {
            const emulator::StartOrder order(each, clusters);
            at_a_time.insert(order.at_a_time());
            std::vector<std::uint64_t> numbers;
            for (std::uint64_t turn = 0; turn < clusters; ++turn) numbers.push_back(order.at(turn));
            CHECK((clusters == 1 || numbers[0] != 0));
            orders.insert(numbers);
            CHECK(std::set(numbers.begin(), numbers.end()).size() == clusters);
            CHECK(std::ranges::max(numbers) == clusters - 1);
        }
        CHECK(orders.size() >= std::min<std::size_t>(clusters > 2 ? clusters - 1 : 1, 15));
    }
    CHECK(at_a_time == std::set<std::size_t>{1, 2, 4, 8, 16, 32});
    const emulator::StartOrder plain(schedule("7"), 5);
    CHECK(plain.at_a_time() == 0);
    for (std::uint64_t turn = 0; turn < 5; ++turn) CHECK(plain.at(turn) == turn);
    // a product of such numbers would not fit
    CHECK(emulator::StartOrder(schedule("7,any-blocks"), std::uint64_t{1} << 40).at(3) < std::uint64_t{1} << 40);
}

TEST_CASE("in any order of blocks, too, what is found and printed does not depend on the number of host threads") {
    const std::string text = kernel(R"(
    mov.u32 %r1, %ctaid.x; and.b32 %r2, %r1, 7; setp.eq.u32 %p1, %r2, 5; @%p1 trap; ret;)");
    std::set<std::string> said;
    for (const Schedule& order : each_seed(",any-blocks", 8)) {
        std::string first;
        for (const unsigned threads : {1u, 4u}) {
            Machine machine;
            static_cast<Schedule&>(machine.options) = order;
            machine.options.threads = threads;
            const std::string now = machine.failure(text, {.grid = {64, 1, 1}, .block = {32, 1, 1}}, std::uint64_t{0},
                                                    std::uint64_t{0}, std::uint64_t{0}, 0u);
            if (threads == 1) first = now;
            CHECK_THAT(now, contains("trap"));
            CHECK(now == first);
        }
        said.insert(first);
    }
    CHECK(said.size() > 2);
}

TEST_CASE("in any order of blocks, the finding is that of the block that has started first") {
    // All blocks fail, those with small numbers after a long time.
    const std::string text = kernel(R"(
    mov.u32 %r1, %ctaid.x; sub.u32 %r2, 64, %r1; shl.b32 %r2, %r2, 10;
$again: sub.u32 %r2, %r2, 1; setp.ne.u32 %p1, %r2, 0; @%p1 bra $again; trap; ret;)");
    for (const Schedule& order : each_seed(",any-blocks", 8))
        for (const unsigned threads : {1u, 4u}) {
            Machine machine;
            static_cast<Schedule&>(machine.options) = order;
            machine.options.threads = threads;
            const std::string said = machine.failure(text, {.grid = {64, 1, 1}, .block = {32, 1, 1}}, std::uint64_t{0},
                                                     std::uint64_t{0}, std::uint64_t{0}, 0u);
            const std::uint64_t first = emulator::StartOrder(order, 64).at(0);
            CHECK_THAT(said, contains("block (" + std::to_string(first) + ",0,0)"));
        }
}

}  // namespace ikat::tests::schedules
