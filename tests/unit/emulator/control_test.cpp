// SPDX-License-Identifier: Apache-2.0
// Divergence, loops, barriers, warp-wide instructions, calls: kernels whose lanes and warps take different paths.
#include <numeric>

#include "tests/unit/emulator/evaluate.hpp"
#include "tests/unit/emulator/targets.hpp"

using namespace ikat;
using tests::contains;
using tests::evaluate;
using tests::kernel;
using tests::Machine;
using tests::Row;

namespace {

/// The result of a kernel that writes one word per thread to p0[thread].
std::vector<std::uint32_t> words(const std::string& text, std::uint32_t threads, std::uint32_t seed = 0,
                                 std::uint32_t blocks = 1, unsigned host_threads = 1) {
    Machine machine;
    machine.options.seed = seed;
    machine.options.threads = host_threads;
    const auto out = machine.empty<std::uint32_t>("out", std::size_t(threads) * blocks);
    machine.run(text, {.grid = {blocks, 1, 1}, .block = {threads, 1, 1}}, out, out, out, threads);
    return machine.get<std::uint32_t>(out, std::size_t(threads) * blocks);
}

const std::string store_r1_in_grid = R"(
    mov.u32 %r60, %tid.x; mov.u32 %r61, %ctaid.x; mov.u32 %r62, %ntid.x;
    mad.lo.u32 %r60, %r61, %r62, %r60;
    ld.param.u64 %d30, [p0]; mad.wide.u32 %d30, %r60, 4, %d30; st.global.u32 [%d30], %r1;
    ret;
)";

}  // namespace

TEST_CASE("a loop whose trip count differs from lane to lane") {
    const std::string text = kernel(R"(
    mov.u32 %r2, %tid.x; mov.u32 %r1, 0; mov.u32 %r3, 0;
$loop:
    setp.ge.u32 %p1, %r3, %r2; @%p1 bra $end;
    add.u32 %r1, %r1, %r3; add.u32 %r3, %r3, 1; bra.uni $loop;
$end:
)" + store_r1_in_grid);
    for (const std::uint32_t seed : {0u, 1u, 2u, 3u}) {
        const auto result = words(text, 70, seed);
        for (std::uint32_t i = 0; i < 70; ++i) CHECK(result[i] == i * (i - 1) / 2);
    }
}

TEST_CASE("nested divergence reconverges") {
    const std::string text = kernel(R"(
    mov.u32 %r2, %laneid; and.b32 %r3, %r2, 1; and.b32 %r4, %r2, 2;
    setp.eq.u32 %p1, %r3, 0; setp.eq.u32 %p2, %r4, 0;
    mov.u32 %r1, 0;
    @%p1 bra $even;
    @%p2 bra $odd_low;
    add.u32 %r1, %r1, 3; bra $odd_end;
$odd_low:
    add.u32 %r1, %r1, 1;
$odd_end:
    bra $end;
$even:
    @!%p2 bra $even_high;
    bra $end;
$even_high:
    add.u32 %r1, %r1, 2;
$end:
    activemask.b32 %r5; shl.b32 %r5, %r5, 0; popc.b32 %r5, %r5; mad.lo.u32 %r1, %r5, 100, %r1;
)" + store_r1_in_grid);
    const auto result = words(text, 32);
    for (std::uint32_t i = 0; i < 32; ++i) CHECK(result[i] == 3200 + i % 4);
}

TEST_CASE("a bra.uni at which the threads of a warp diverge is a finding") {
    const std::string before = "mov.u32 %r1, 7; mov.u32 %r2, %tid.x; shr.u32 %r3, %r2, 5; setp.eq.u32 %p1, %r3, 0; ";
    const std::string after = "mov.u32 %r1, 8; $on:" + store_r1_in_grid;
    CHECK(words(kernel(before + "@%p1 bra.uni $on; " + after), 64)[31] == 7);  // warps may differ
    CHECK(words(kernel(before + "@!%p1 bra.uni $on; " + after), 64)[32] == 7);
    Machine machine;
    for (const std::string guard : {"@%p2 ", "@!%p2 "}) {
        const std::string text = kernel(before + "setp.lt.u32 %p2, %r2, 31; " + guard + "bra.uni $on; " + after);
        CHECK_THAT(machine.failure(text, {.block = {32, 1, 1}}, 0ull, 0ull, 0ull, 0u), contains("marked .uni"));
    }
}

TEST_CASE("brx.idx jumps by table, and an index beyond it is a finding") {
    const std::string text = kernel(R"(
    mov.u32 %r2, %tid.x; rem.u32 %r2, %r2, 3;
    ts: .branchtargets $a, $b, $c;
    brx.idx %r2, ts;
$a: mov.u32 %r1, 10; bra $end;
$b: mov.u32 %r1, 20; bra $end;
$c: mov.u32 %r1, 30;
$end:
)" + store_r1_in_grid);
    const auto result = words(text, 32);
    for (std::uint32_t i = 0; i < 32; ++i) CHECK(result[i] == 10 + 10 * (i % 3));
    std::string wrong = text;
    wrong.replace(wrong.find("rem.u32 %r2, %r2, 3"), 19, "rem.u32 %r2, %r2, 4");
    Machine machine;
    CHECK_THAT(machine.failure(wrong, {.block = {32, 1, 1}}, 0ull, 0ull, 0ull, 0u), contains("brx.idx"));
}

TEST_CASE("a lane may spin for another lane of its warp") {
    // Lane 0 sets the flag on a path after the loop in which all others wait.
    const std::string text = kernel(R"(
    .shared .u32 flag;
    mov.u32 %r2, %tid.x; setp.eq.u32 %p1, %r2, 0;
    mov.u32 %r4, 0; @%p1 st.shared.u32 [flag], %r4;
    bar.sync 0;
    @%p1 bra $set;
$wait:
    ld.volatile.shared.u32 %r3, [flag]; setp.eq.u32 %p2, %r3, 0; @%p2 bra $wait;
    bra $end;
$set:
    mov.u32 %r4, 1; st.volatile.shared.u32 [flag], %r4;
$end:
    ld.volatile.shared.u32 %r1, [flag];
)" + store_r1_in_grid);
    for (const std::uint32_t seed : {0u, 5u}) CHECK(words(text, 32, seed) == std::vector<std::uint32_t>(32, 1));
}

TEST_CASE("a lock between warps and lanes, taken with cas") {
    const std::string text = kernel(R"(
    .shared .u32 lock; .shared .u32 count;
    mov.u32 %r2, %tid.x; setp.eq.u32 %p1, %r2, 0; mov.u32 %r4, 0;
    @%p1 st.shared.u32 [lock], %r4; @%p1 st.shared.u32 [count], %r4;
    bar.sync 0;
$try:
    atom.shared.cas.b32 %r3, [lock], 0, 1; setp.ne.u32 %p2, %r3, 0; @%p2 bra $try;
    ld.volatile.shared.u32 %r5, [count]; add.u32 %r5, %r5, 1; st.volatile.shared.u32 [count], %r5;
    membar.cta; atom.shared.exch.b32 %r3, [lock], 0;
    bar.sync 0;
    ld.shared.u32 %r1, [count];
)" + store_r1_in_grid);
    for (const std::uint32_t seed : {0u, 1u, 9u}) CHECK(words(text, 96, seed) == std::vector<std::uint32_t>(96, 96));
}

TEST_CASE("a warp may spin for another warp") {
    const std::string text = kernel(R"(
    .shared .u32 flag;
    mov.u32 %r2, %tid.x; setp.lt.u32 %p1, %r2, 32; setp.eq.u32 %p3, %r2, 0;
    mov.u32 %r4, 0; @%p3 st.shared.u32 [flag], %r4; bar.sync 0;
    mov.u32 %r1, 5;
    @!%p1 bra $set;
$wait:
    ld.volatile.shared.u32 %r1, [flag]; setp.eq.u32 %p2, %r1, 0; @%p2 bra $wait;
    bra $end;
$set:
    mov.u32 %r4, 7; st.volatile.shared.u32 [flag], %r4;
$end:
)" + store_r1_in_grid);
    const auto result = words(text, 64);
    for (std::uint32_t i = 0; i < 64; ++i) CHECK(result[i] == (i < 32 ? 7 : 5));
}

TEST_CASE("blocks may wait for later blocks") {
    const std::string text = kernel(R"(
    mov.u32 %r2, %ctaid.x; ld.param.u64 %d1, [p1];
    setp.eq.u32 %p1, %r2, 0; @!%p1 bra $arrive;
$wait:
    ld.relaxed.gpu.global.u32 %r3, [%d1]; setp.lt.u32 %p2, %r3, 7; @%p2 bra $wait;
    bra $end;
$arrive:
    red.release.gpu.global.add.u32 [%d1], 1;
$end:
    mov.u32 %r1, %r2;
)" + store_r1_in_grid);
    for (const unsigned threads : {1u, 2u}) {
        Machine machine;
        machine.options.threads = threads;
        const auto out = machine.empty<std::uint32_t>("out", 8);
        const auto arrived = machine.buffer("arrived", std::vector<std::uint32_t>{0});
        machine.run(text, {.grid = {8, 1, 1}, .block = {1, 1, 1}}, out, arrived, 0ull, 0u);
        CHECK(machine.get<std::uint32_t>(out, 8) == std::vector<std::uint32_t>{0, 1, 2, 3, 4, 5, 6, 7});
    }
}

TEST_CASE("barriers: named, counted, arrive and reduce") {
    // Warp 0 produces for warp 1 through barrier 1; all meet at 0; reductions count even threads.
    const std::string text = kernel(R"(
    .shared .u32 cell[32];
    mov.u32 %r2, %tid.x; mov.u32 %r3, %laneid; mov.u32 %r4, cell; mad.lo.u32 %r4, %r3, 4, %r4;
    setp.ge.u32 %p1, %r2, 32; @%p1 bra $consume;
    add.u32 %r5, %r3, 100; st.shared.u32 [%r4], %r5;
    bar.arrive 1, 64; mov.u32 %r1, 1; bra $meet;
$consume:
    bar.sync 1, 64; ld.shared.u32 %r1, [%r4];
$meet:
    and.b32 %r6, %r2, 1; setp.eq.u32 %p2, %r6, 0;
    bar.red.popc.u32 %r7, 0, %p2;
    bar.red.and.pred %p3, 0, %p2; selp.u32 %r8, 1, 0, %p3;
    bar.red.or.pred %p4, 0, %p2; selp.u32 %r9, 1, 0, %p4;
    mad.lo.u32 %r7, %r7, 1000, %r1; mad.lo.u32 %r7, %r8, 1000000, %r7; mad.lo.u32 %r1, %r9, 10000000, %r7;
)" + store_r1_in_grid);
    for (const std::uint32_t seed : {0u, 1u, 2u}) {
        const auto result = words(text, 64, seed);
        for (std::uint32_t i = 0; i < 64; ++i) CHECK(result[i] == 10000000 + 32000 + (i < 32 ? 1 : 100 + i - 32));
    }
}

TEST_CASE("shuffles") {
    const auto lanes = [](const std::string& code, std::uint32_t threads = 32) {
        return words(kernel("    mov.u32 %r2, %laneid; mov.pred %p1, 0;\n" + code + store_r1_in_grid), threads);
    };
    const auto up = lanes("shfl.sync.up.b32 %r1|%p1, %r2, 1, 0, -1; selp.u32 %r3, 100, 0, %p1; add.u32 %r1, %r1, %r3;");
    const auto down =
        lanes("shfl.sync.down.b32 %r1|%p1, %r2, 2, 31, -1; selp.u32 %r3, 100, 0, %p1; add.u32 %r1, %r1, %r3;");
    const auto butterfly = lanes("shfl.sync.bfly.b32 %r1, %r2, 5, 31, 0xffffffff;");
    const auto index = lanes("shfl.sync.idx.b32 %r1, %r2, 3, 0x1807, 0xffffffff;");  // segments of 8
    const auto backwards = lanes("sub.u32 %r3, 31, %r2; shfl.sync.idx.b32 %r1, %r2, %r3, 31, -1;");
    for (std::uint32_t i = 0; i < 32; ++i) {
        CHECK(up[i] == (i ? 100 + i - 1 : 0));
        CHECK(down[i] == (i + 2 < 32 ? 100 + i + 2 : i));
        CHECK(butterfly[i] == (i ^ 5));
        CHECK(index[i] == i / 8 * 8 + 3);
        CHECK(backwards[i] == 31 - i);
    }
    const auto tail = lanes("shfl.sync.bfly.b32 %r1, %r2, 1, 31, -1;", 8);  // a partial warp
    for (std::uint32_t i = 0; i < 8; ++i) CHECK(tail[i] == (i ^ 1));
}

TEST_CASE("lanes wait at a shuffle for those that come later") {
    const std::string text = kernel(R"(
    mov.u32 %r2, %laneid; setp.lt.u32 %p1, %r2, 16; mov.u32 %r3, 1000;
    @%p1 bra $join;
    mov.u32 %r3, 2000; mov.u32 %r4, 0;
$loop: add.u32 %r4, %r4, 1; setp.lt.u32 %p2, %r4, %r2; @%p2 bra $loop;
$join:
    add.u32 %r3, %r3, %r2; shfl.sync.bfly.b32 %r1, %r3, 16, 31, -1;
)" + store_r1_in_grid);
    for (const std::uint32_t seed : {0u, 1u, 2u, 3u}) {
        const auto result = words(text, 32, seed);
        for (std::uint32_t i = 0; i < 32; ++i) CHECK(result[i] == (i < 16 ? 2016 + i : 1000 + i - 16));
    }
}

TEST_CASE("a shuffle with literals gives the same as one with registers") {
    std::string body = "mov.u32 %r1, %laneid; mad.lo.u32 %r1, %r1, 77, 5; mov.u32 %r9, 0;\n";
    int shuffles = 0;
    for (const std::string mode : {"up", "down", "bfly", "idx"})
        for (const std::string distance : {"0", "1", "5", "16", "31", "37"})
            for (const std::string clamp : {"0", "31", "7199", "6144", "4113"}) {
                const std::string form = "shfl.sync." + mode + ".b32 ";
                body += "mov.u32 %r3, " + distance + "; mov.u32 %r4, " + clamp + "; mov.u32 %r8, %r1;\n" + form +
                        "%r8|%p1, %r8, " + distance + ", " + clamp + ", -1;\n" + form +
                        "%r6|%p2, %r1, %r3, %r4, -1;\n"
                        "setp.eq.u32 %p3, %r8, %r6; xor.pred %p1, %p1, %p2; not.pred %p1, %p1; "
                        "and.pred %p3, %p3, %p1; selp.u32 %r7, 1, 0, %p3; add.u32 %r9, %r9, %r7;\n";
                ++shuffles;
            }
    for (const std::int64_t target : tests::targets()) {
        const tests::OnTarget chosen(target);
        CAPTURE(hwy::TargetName(target));
        for (const std::uint32_t count : words(kernel(body + "mov.u32 %r1, %r9;" + store_r1_in_grid), 32))
            CHECK(count == std::uint32_t(shuffles));
    }
}

TEST_CASE("lanes that wait at a warp-wide instruction continue when the others exit late") {
    // Lanes 20 to 31 count for a while and exit; the others wait for them meanwhile.
    const std::string late = R"(
    mov.u32 %r2, %tid.x; setp.lt.u32 %p1, %r2, 20; setp.lt.u32 %p2, %r2, 3; mov.u32 %r3, 0; @%p1 bra $meet;
$late: add.u32 %r3, %r3, 1; setp.lt.u32 %p3, %r3, 500; @%p3 bra $late;
    exit;
$meet:
)";
    const auto all = [&](const std::string& meet, std::uint32_t expected) {
        for (const std::uint32_t seed : {0u, 1u, 2u}) {
            const auto result = words(kernel(late + meet + store_r1_in_grid), 32, seed);
            for (std::uint32_t i = 0; i < 20; ++i) CHECK(result[i] == expected);
        }
    };
    all("vote.sync.ballot.b32 %r1, %p2, -1;", 7);
    all("vote.sync.all.pred %p4, %p1, -1; selp.u32 %r1, 1, 0, %p4;", 1);
    all("redux.sync.add.s32 %r1, %r2, -1;", 190);
    all("match.any.sync.b32 %r1, %r3, -1;", 0xfffff);
    all("bar.warp.sync -1; mov.u32 %r1, 5;", 5);
    all("bar.sync 0; mov.u32 %r1, 6;", 6);
}

TEST_CASE("lanes that leave a loop one after the other reconverge after it") {
    const auto result = words(kernel(R"(
    mov.u32 %r2, %tid.x; mov.u32 %r3, 0; mov.u32 %r4, 0;
$outer:
    mov.u32 %r5, 0;
$inner:
    add.u32 %r5, %r5, 1; setp.gt.u32 %p2, %r5, %r4; @%p2 bra $next; add.u32 %r3, %r3, %r5;
    setp.lt.u32 %p1, %r5, %r2; @%p1 bra $inner;
$next:
    add.u32 %r4, %r4, 1; setp.le.u32 %p1, %r4, %r2; @%p1 bra $outer;
    activemask.b32 %r1; popc.b32 %r1, %r1; mad.lo.u32 %r1, %r1, 100000, %r3;
)" + store_r1_in_grid),
                              32);
    for (std::uint32_t i = 0; i < 32; ++i) {
        std::uint32_t sum = 0;
        for (std::uint32_t outer = 0; outer <= i; ++outer)
            for (std::uint32_t inner = 1; inner <= std::min(outer, std::max(i, 1u)); ++inner) sum += inner;
        CHECK(result[i] == 3200000 + sum);
    }
}

TEST_CASE("votes, matches, reductions over a warp") {
    const auto one = [](const std::string& code, std::uint32_t threads = 32) {
        return words(kernel("    mov.u32 %r2, %laneid; setp.lt.u32 %p1, %r2, 3; setp.lt.u32 %p2, %r2, 32; setp.ge.u32 "
                            "%p3, %r2, 32;\n" +
                            code + store_r1_in_grid),
                     threads);
    };
    const auto all_are = [](const std::vector<std::uint32_t>& v, std::uint32_t x) {
        return v == std::vector<std::uint32_t>(v.size(), x);
    };
    CHECK(all_are(one("vote.sync.ballot.b32 %r1, %p1, -1;"), 7));
    CHECK(all_are(one("vote.sync.ballot.b32 %r1, !%p1, 0xff;", 8), 0xf8));
    CHECK(all_are(one("vote.sync.any.pred %p4, %p1, -1; selp.u32 %r1, 1, 0, %p4;"), 1));
    CHECK(all_are(one("vote.sync.all.pred %p4, %p1, -1; selp.u32 %r1, 1, 0, %p4;"), 0));
    CHECK(all_are(one("vote.sync.all.pred %p4, %p2, -1; selp.u32 %r1, 1, 0, %p4;"), 1));
    CHECK(all_are(one("vote.sync.all.pred %p4, !%p3, -1; selp.u32 %r1, 1, 0, %p4;"), 1));
    CHECK(all_are(one("vote.sync.uni.pred %p4, %p1, -1; selp.u32 %r1, 1, 0, %p4;"), 0));
    CHECK(all_are(one("vote.sync.uni.pred %p4, %p3, -1; selp.u32 %r1, 1, 0, %p4;"), 1));
    CHECK(all_are(one("redux.sync.add.u32 %r1, %r2, -1;"), 496));
    CHECK(all_are(one("redux.sync.max.s32 %r1, %r2, -1;"), 31));
    CHECK(all_are(one("sub.u32 %r2, %r2, 5; redux.sync.min.s32 %r1, %r2, -1;"), 0xfffffffb));
    CHECK(all_are(one("elect.sync %r1|%p4, -1;"), 0));
    const auto match = one("and.b32 %r3, %r2, 3; match.any.sync.b32 %r1, %r3, -1;");
    for (std::uint32_t i = 0; i < 32; ++i) CHECK(match[i] == 0x11111111u << i % 4);
    CHECK(all_are(one("and.b32 %r3, %r2, 3; match.all.sync.b32 %r1|%p4, %r3, -1;"), 0));
}

TEST_CASE("members of two groups shuffle in one instruction") {
    const auto result = words(kernel(R"(
    mov.u32 %r2, %laneid; setp.lt.u32 %p1, %r2, 16; selp.b32 %r3, 0xffff, 0xffff0000, %p1;
    vote.sync.ballot.b32 %r1, %p1, %r3;
)" + store_r1_in_grid),
                              32);
    for (std::uint32_t i = 0; i < 32; ++i) CHECK(result[i] == (i < 16 ? 0xffff : 0));
}

TEST_CASE("bar.warp.sync may be reached at different instructions") {
    const std::string text = kernel(R"(
    .shared .u32 cell;
    mov.u32 %r2, %laneid; setp.eq.u32 %p1, %r2, 0; @%p1 bra $one;
    bar.warp.sync 0xffffffff; ld.shared.u32 %r1, [cell]; bra $end;
$one:
    mov.u32 %r3, 77; st.shared.u32 [cell], %r3; bar.warp.sync 0xffffffff; mov.u32 %r1, 77;
$end:
)" + store_r1_in_grid);
    for (const std::uint32_t seed : {0u, 1u, 2u}) CHECK(words(text, 32, seed) == std::vector<std::uint32_t>(32, 77));
}

TEST_CASE("functions are called with parameters and results") {
    const std::string functions = R"(
.func (.param .b32 result) triple (.param .b32 x)
{
    .reg .b32 %r<4>; .reg .pred %p<2>;
    ld.param.b32 %r1, [x];
    setp.gt.u32 %p1, %r1, 20; @%p1 bra $big;
    mul.lo.u32 %r2, %r1, 3; st.param.b32 [result], %r2; ret;
$big:
    mov.u32 %r2, 999; st.param.b32 [result], %r2; ret;
}
.func (.reg .b32 out) plus (.reg .b32 a, .reg .b32 b) { add.u32 out, a, b; ret; }
)";
    const std::string text = kernel(R"(
    mov.u32 %r2, %tid.x;
    {
        .param .b32 x; .param .b32 y;
        st.param.b32 [x], %r2; call.uni (y), triple, (x); ld.param.b32 %r3, [y];
    }
    call (%r1), plus, (%r3, 5);
)" + store_r1_in_grid,
                                    functions);
    const auto result = words(text, 32);
    for (std::uint32_t i = 0; i < 32; ++i) CHECK(result[i] == (i > 20 ? 999 : 3 * i) + 5);
}

TEST_CASE("a kernel prints in the order of its blocks") {
    const std::string text = kernel(R"(
    .local .align 8 .b8 buffer[40]; .reg .b64 %b<4>;
    mov.u32 %r1, %ctaid.x; mov.u64 %b1, buffer; cvta.local.u64 %b2, %b1;
    st.local.u32 [%b1], %r1; mov.f64 %d1, 0d4004000000000000; st.local.f64 [%b1+8], %d1;
    mov.u64 %d2, -5; st.local.u64 [%b1+16], %d2; mov.u32 %r2, 65; st.local.u32 [%b1+24], %r2;
    mov.u64 %d3, word; cvta.global.u64 %d3, %d3; st.local.u64 [%b1+32], %d3;
    mov.u64 %d4, format; cvta.global.u64 %d4, %d4;
    {
        .param .b64 p; .param .b64 q; .param .b32 r;
        st.param.b64 [p], %d4; st.param.b64 [q], %b2;
        call.uni (r), vprintf, (p, q);
    }
    ret;
)",
                                    R"(.extern .func (.param .b32 r) vprintf (.param .b64 a, .param .b64 b);
.global .align 1 .b8 format[32] = {37,100,32,37,46,50,102,32,37,108,108,100,32,37,99,32,37,115,32,37,37,10,0};
.global .align 1 .b8 word[4] = {104, 105, 0, 0};
)");
    std::string expected;
    for (int b = 0; b < 20; ++b) expected += std::to_string(b) + " 2.50 -5 A hi %\n";
    for (const unsigned threads : {1u, 2u}) {
        Machine machine;
        machine.options.threads = threads;
        machine.run(text, {.grid = {20, 1, 1}}, 0ull, 0ull, 0ull, 0u);
        CHECK(machine.printed == expected);
    }
}

TEST_CASE("a long run needs no stack") {
    // Handlers end in sibling calls; an ordinary call would overflow the stack here.
    const std::string text = kernel(R"(
    .shared .align 16 .b8 tile[1024];
    mov.u32 %r2, %tid.x; shl.b32 %r3, %r2, 2; mov.u32 %r1, 0; mov.u32 %r4, 0; ld.param.u64 %d1, [p0];
    setp.eq.u32 %p4, %r2, %r2; mov.f32 %r10, 0f3F800000; st.shared.u32 [%r3+896], 0;
$loop:
    and.b32 %r5, %r4, 15; shl.b32 %r5, %r5, 2; st.shared.u32 [%r3], %r4; ld.shared.u32 %r6, [%r5];
    xor.b32 %r15, %r3, 12; ld.shared.u32 %r7, [%r15]; st.shared.u32 [%r15], %r4;
    mul.wide.u32 %d2, %r2, 4; add.u64 %d3, %d1, %d2; st.global.u32 [%d3], %r4; ld.global.u32 %r8, [%d3];
    fma.rn.f32 %r9, %r10, %r10, %r10; div.rn.f32 %r9, %r9, %r10; cvt.rn.f16.f32 %h1, %r9; add.f16 %h1, %h1, %h1;
    cvt.f32.f16 %r9, %h1; cvt.rzi.s32.f32 %r9, %r9; max.f32 %r9, %r9, %r10; add.rz.f32 %r9, %r9, %r10;
    shfl.sync.bfly.b32 %r11, %r9, 1, 31, -1; vote.sync.ballot.b32 %r12, %p4, -1; bar.warp.sync -1;
    @%p4 add.u32 %r13, %r11, %r12; selp.b32 %r13, %r12, %r11, %p4; atom.shared.add.u32 %r14, [tile+1020], 1;
    and.b32 %r7, %r7, 0; setp.lt.u32 %p5, %r4, 100; @%p5 bra $next; membar.cta;
$next:
    add.u32 %r4, %r4, 1; setp.lt.u32 %p1, %r4, 30000; @%p1 bra $loop;
    mov.u32 %r1, %r4;
)" + store_r1_in_grid);
    CHECK(words(text, 32) == std::vector<std::uint32_t>(32, 30000));
}
