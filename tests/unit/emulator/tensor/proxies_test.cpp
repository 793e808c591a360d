// SPDX-License-Identifier: Apache-2.0
// What ordinary instructions have written, and bulk copies read or overwrite: a fence.proxy.async must be between them.
#include <algorithm>
#include <regex>

#include "runtime/emulator/agents/bulk/tensor_map.hpp"
#include "tests/unit/emulator/machine.hpp"

namespace ikat::tests::proxies {

namespace {

/// A kernel with a barrier `bar`, `meet` and `met` for one arrival and `tile` of 512 bytes: %r1 the thread of 128, %r4
/// the address of its word there, %d1 = p0, %d2 = p1 and %d3 the address of its word there; %p0 is thread 0, %p1 is
/// thread 32, %p2 is thread 64.
std::string with_tile(std::string body, const std::string& made = "fence.mbarrier_init.release.cluster; bar.sync 0;") {
    for (const std::string name : {"bar", "meet", "met"}) {
        const std::string wait = "$wait_" + name + ";";
        for (std::size_t at; (at = body.find(wait)) != body.npos;)
            body.replace(at, wait.size(),
                         "{ .reg .pred p; $again: mbarrier.try_wait.parity.shared::cta.b64 p, [" + name +
                             "], 0; @!p bra $again; }");
    }
    return R"(.version 8.6
.target sm_90a
.address_size 64
.visible .entry k(.param .align 64 .b8 map[128], .param .u64 p0, .param .u64 p1) {
    .reg .pred %p<8>; .reg .b32 %r<40>; .reg .b64 %d<40>;
    .shared .align 8 .b64 bar; .shared .align 8 .b64 meet; .shared .align 8 .b64 met;
    .shared .align 128 .b8 tile[512];
    mov.u32 %r1, %tid.x; mov.u32 %r3, tile; shl.b32 %r4, %r1, 2; add.u32 %r4, %r4, %r3;
    mov.b64 %d4, map; cvta.param.u64 %d4, %d4;
    ld.param.u64 %d1, [p0]; ld.param.u64 %d2, [p1]; mul.wide.u32 %d3, %r1, 4; add.u64 %d3, %d3, %d2;
    setp.eq.u32 %p0, %r1, 0; setp.eq.u32 %p1, %r1, 32; setp.eq.u32 %p2, %r1, 64;
    @%p0 mbarrier.init.shared.b64 [bar], 1; @%p0 mbarrier.init.shared.b64 [meet], 1;
    @%p0 mbarrier.init.shared.b64 [met], 1;
)" + made + "\n" +
           body + "\nret;\n}\n";
}

const emulator::TensorMap whole{.type = emulator::MapType::U32, .rank = 1, .extents = {128}, .box = {128}};

/// Twelve seeds, twelve with priorities, and each word alone.
const std::vector<emulator::Schedule>& orders() {
    static const std::vector<emulator::Schedule> all = [] {
        using enum emulator::Schedule::Turns;
        std::vector<emulator::Schedule> made;
        for (const auto turns : {BySeed, Priorities})
            for (std::uint32_t seed = 0; seed < 12; ++seed) made.push_back({.seed = seed, .turns = turns});
        for (const std::string word : {"lanes", "moved-shared", "any-leader", "ascending", "descending", "priorities",
                                       "early", "late", "missed-waits", "starved-block", "any-blocks"})
            made.push_back(emulator::read_schedule("1," + word).value());
        return made;
    }();
    return all;
}
/// A code for each of them.
std::vector<std::string> in_all(const std::string& code) { return std::vector(orders().size(), code); }

/// The code of what is found in each order, in one cluster of the blocks.
std::vector<std::string> codes(const std::string& text, std::string* said = nullptr,
                               emulator::TensorMap description = whole, std::uint32_t blocks = 1,
                               bool check_barriers = true) {
    std::vector<std::string> all;
    for (const emulator::Schedule& order : orders()) {
        Machine machine;
        static_cast<emulator::Schedule&>(machine.options) = order;
        machine.check_registers(order.seed % 3 == 2);
        if (!check_barriers) machine.options.checks.set(emulator::Check::BarrierFences, emulator::Action::Off);
        const auto x = machine.buffer("x", std::vector<std::uint32_t>(128, 5));
        const auto y = machine.buffer("y", std::vector<std::uint32_t>(128, 7));
        description.address = y;
        const auto map = encode(description);
        const std::string text_of =
            machine.failure(text, {.grid = {blocks, 1, 1}, .block = {128, 1, 1}, .cluster = {blocks, 1, 1}}, map, x, y);
        INFO(to_string(order) << ": " << text_of);
        CHECK((machine.code.empty() || machine.code == "bulk-not-visible" || machine.code == "copy-not-visible" ||
               machine.code == "bulk-barrier-not-fenced" || machine.code == "cluster-barrier-not-fenced"));
        if (said && !machine.code.empty()) *said = text_of;
        all.push_back(machine.code);
    }
    return all;
}

void check_fine(const std::string& text) { CHECK(codes(text) == in_all("")); }
/// What every order finds.
std::string found_by_all(const std::string& text, const std::string& code = "bulk-not-visible") {
    std::string said;
    CHECK(codes(text, &said) == in_all(code));
    return said;
}
/// Some orders of the warps show it.
void check_found(const std::string& text) {
    const auto all = codes(text);
    CHECK(std::ranges::count(all, "bulk-not-visible") > 0);
    CHECK(std::ranges::count(all, "") > 0);
}

const std::string meet = "bar.sync 0;\n", fence = "fence.proxy.async;\n";
const std::string write = "st.shared.u32 [%r4], %r1;\n";
const std::string done = "cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;\n";
const std::string store = "@%p0 cp.async.bulk.global.shared::cta.bulk_group [%d2], [tile], 512;\n" + done;
const std::string load =
    "@%p0 mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 512;\n@%p0 cp.async.bulk.shared::cluster.global"
    ".mbarrier::complete_tx::bytes [tile], [%d2], 512, [bar];\n$wait_bar;";
const std::string boxes_out = "@%p0 cp.async.bulk.tensor.1d.global.shared::cta.bulk_group [%d4, {0}], [tile];\n" + done;
const std::string boxes_in =
    "@%p0 mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 512;\n@%p0 cp.async.bulk.tensor.1d.shared::cluster.global"
    ".mbarrier::complete_tx::bytes [tile], [%d4, {0}], [bar];\n$wait_bar;";

}  // namespace

TEST_CASE("a bulk copy reads or overwrites shared memory that ordinary instructions have written") {
    for (const std::string& copy : {store, load, boxes_out, boxes_in}) {
        const auto with = [&](const std::string& before) { return with_tile(before + copy); };
        const bool reads = copy.find("bulk_group") != copy.npos;
        CHECK_THAT(found_by_all(with(write + meet)),
                   contains(reads ? "a bulk copy reads 4 bytes at offset 0 of 'tile'"
                                  : "a bulk copy overwrites 4 bytes at offset 0 of 'tile'") &&
                       contains("which thread (0,0,0) has written without fence.proxy.async before it") &&
                       contains("note: the write, by block (0,0,0) thread (0,0,0): st.shared.u32 [%r4], %r1;"));
        check_fine(with(write + fence + meet));
        check_fine(with(write + "fence.proxy.async.shared::cta;" + meet));
        check_fine(with(write + "fence.proxy.async::generic.release.sync_restrict::shared::cta.cluster;" + meet));
        check_fine(with(write + meet + "fence.proxy.async::generic.acquire.sync_restrict::shared::cluster.cluster;"));
        check_fine(with(write + meet + fence));
        check_fine(with(write + meet + "@%p0 " + fence));
        CHECK_THAT(found_by_all(with(write + "fence.proxy.async.global; fence.acq_rel.cta;" + meet)),
                   contains("of 'tile'"));
        CHECK_THAT(found_by_all(with(fence + write + meet)), contains("of 'tile'"));
        // only some of those that write
        check_found(with(write + "@!%p2 " + fence + meet));
        // earlier loads need none
        check_fine(with(write + fence + meet + "ld.shared.u32 %r8, [%r4];\n" + meet));
    }
    check_fine(with_tile(load + "ld.shared.u32 %r8, [%r4]; st.global.u32 [%d3], %r8;\n"));
}

TEST_CASE("a third thread fences what it has met before it meets who copies") {
    const std::string others =
        "and.b32 %r9, %r1, 0xffffffdf; setp.ne.u32 %p3, %r9, 0; @%p3 " + write + "@%p3 " + fence + meet;
    const std::string by_one = "@%p1 st.shared.u32 [%r4], 9; @%p1 st.shared.u32 [tile], 9;\n";
    const auto with = [&](const std::string& between) { return with_tile(others + by_one + between + store); };
    check_fine(with(meet + "@%p2 " + fence + meet));
    check_found(with(meet + "@%p1 " + fence));  // too late, in some orders of the warps
    CHECK_THAT(found_by_all(with("@%p2 " + fence + meet)), contains("which thread (32,0,0) has written"));
    CHECK_THAT(found_by_all(with(meet + "@%p2 " + fence)), contains("which thread (32,0,0) has written"));
    // by barriers in shared memory
    const std::string arrive = "@%p1 mbarrier.arrive.shared.b64 _, [meet];\n",
                      and_on = "@%p2 mbarrier.arrive.shared.b64 _, [met];\n";
    const std::string first = "{ .reg .pred q; setp.lt.u32 q, %r1, 64; @q bra $on;\n",
                      second = "$on: setp.ge.u32 q, %r1, 32; @q bra $over;\n";
    check_fine(with(arrive + first + "$wait_meet; @%p2 " + fence + and_on + second + "$wait_met;\n$over: }\n"));
    CHECK_THAT(found_by_all(
                   with(arrive + first + "@%p2 " + fence + "$wait_meet;" + and_on + second + "$wait_met;\n$over: }\n")),
               contains("which thread (32,0,0) has written"));
    CHECK_THAT(found_by_all(
                   with(arrive + first + "$wait_meet;" + and_on + "@%p2 " + fence + second + "$wait_met;\n$over: }\n")),
               contains("which thread (32,0,0) has written"));
    // the lanes of a warp meet
    const std::string lane = "{ .reg .pred q; setp.eq.u32 q, %r1, 33; ";
    check_fine(with("bar.warp.sync -1;" + lane + "@q " + fence + "}" + meet));
    CHECK_THAT(found_by_all(with(lane + "@q " + fence + "}" + meet)), contains("which thread (32,0,0) has written"));
}

TEST_CASE("a bulk copy reads or overwrites global memory that its block has written") {
    const std::string change = "st.global.u32 [%d3], %r1;\n", ready = write + fence;
    for (const std::string& copy : {store, load, boxes_out, boxes_in}) {
        const bool reads = copy.find("bulk_group") == copy.npos;
        const auto with = [&](const std::string& before) { return with_tile(ready + meet + before + copy); };
        CHECK_THAT(found_by_all(with(change + meet)),
                   contains(reads ? "a bulk copy reads 4 bytes at offset 0 of buffer 'y'"
                                  : "a bulk copy overwrites 4 bytes at offset 0 of buffer 'y'") &&
                       contains("note: the write, by block (0,0,0) thread (0,0,0): st.global.u32 [%d3], %r1;"));
        check_fine(with(change + fence + meet));
        check_fine(with(change + "fence.proxy.async.global;" + meet));
        check_fine(with(change + meet + "fence.proxy.async.global;"));
        CHECK_THAT(found_by_all(with(change + "fence.proxy.async.shared::cta;" + meet)), contains("buffer 'y'"));
        CHECK_THAT(found_by_all(
                       with(change + "fence.proxy.async::generic.release.sync_restrict::shared::cta.cluster;" + meet)),
                   contains("buffer 'y'"));
        CHECK_THAT(found_by_all(with("st.u32 [%d3], %r1;" + meet)), contains("st.u32 [%d3], %r1;"));
        CHECK_THAT(found_by_all(with("red.global.add.u32 [%d3], 1;" + meet)), contains("buffer 'y'"));
        check_fine(with("@%p0 st.global.u32 [%d1], 1;\n"));  // elsewhere
        check_fine(with("ld.global.u32 %r8, [%d3];\n" + meet));
    }
    // the other half of a word at the edge of a box
    const emulator::TensorMap halves{.type = emulator::MapType::U16, .rank = 1, .extents = {63}, .box = {64}};
    const std::string copy = std::regex_replace(boxes_in, std::regex("512"), "128");
    const auto beside = [&](int at) {
        return codes(with_tile(ready + meet + "@%p1 st.global.u16 [%d2+" + std::to_string(at) + "], 1;" + meet + copy),
                     nullptr, halves);
    };
    CHECK(beside(126) == in_all(""));
    CHECK(beside(120) == in_all("bulk-not-visible"));
    // what a bulk copy has overwritten is no ordinary write any more
    check_fine(with_tile(write + "st.global.u32 [%d3], %r1;" + fence + meet + store + meet + load));
}

TEST_CASE("a barrier that has been made is fenced before a bulk copy of its block arrives there") {
    const std::string copy =
        "@%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 512;\n@%p1 cp.async.bulk"
        ".shared::cluster.global.mbarrier::complete_tx::bytes [tile], [%d2], 512, [bar];\n$wait_bar;";
    const std::string init = "fence.mbarrier_init.release.cluster;", not_fenced = "bulk-barrier-not-fenced";
    const auto found_after = [&](const std::string& made) { return found_by_all(with_tile(copy, made), not_fenced); };
    CHECK_THAT(
        found_after(meet),
        contains("a bulk copy arrives at the barrier at offset 0 of 'bar'") &&
            contains("which thread (0,0,0) has made without fence.mbarrier_init or fence.proxy.async after it") &&
            contains(".mbarrier::complete_tx::bytes [tile], [%d2], 512, [bar];") &&
            contains("note: the write, by block (0,0,0) thread (0,0,0): @%p0 mbarrier.init.shared.b64 [bar], 1;") &&
            contains("no-barrier-fences"));
    CHECK(codes(with_tile(copy, meet), nullptr, whole, 1, false) == in_all(""));
    // by the thread that has made it, by that which copies, and by another that meets both
    check_fine(with_tile(copy, "@%p0 " + init + meet));
    check_fine(with_tile(copy, fence + meet));
    check_fine(with_tile(copy, "@%p0 fence.proxy.async.shared::cta;" + meet));
    check_fine(with_tile(copy, meet + "@%p1 " + fence));
    check_fine(with_tile(copy, meet + "@%p2 " + fence + meet));
    CHECK_THAT(found_after("@%p2 " + fence + meet), contains("'bar'"));
    CHECK_THAT(found_after(meet + "@%p2 " + fence), contains("'bar'"));
    // that fence is for barriers of its own thread, and not for stores
    for (const std::string thread : {"@%p1 ", "@%p2 "})
        CHECK_THAT(found_after(meet + thread + init + meet), contains("'bar'"));
    CHECK_THAT(found_by_all(with_tile("@%p0 " + write + meet + copy)), contains("overwrites"));
    CHECK_THAT(found_after("fence.proxy.async.global; fence.acq_rel.cta;" + meet), contains("'bar'"));
    // a fence of the cluster's scope, or its barrier, serves as well
    const std::string at_cluster = "barrier.cluster.wait.acquire;\n";
    check_fine(with_tile(copy, "@%p0 fence.acq_rel.cluster;" + meet));
    check_fine(with_tile(copy, "barrier.cluster.arrive.release;" + at_cluster));
    check_fine(with_tile(copy, "barrier.cluster.arrive;" + at_cluster));
    CHECK_THAT(found_after("barrier.cluster.arrive.relaxed;" + at_cluster), contains("'bar'"));
    // what threads do there needs none, nor do copies to global memory
    check_fine(with_tile("@%p1 mbarrier.arrive.shared.b64 _, [bar];\n$wait_bar;" + write + fence + meet + store, meet));
}

TEST_CASE("a barrier is fenced again when it has been made again") {
    const std::string copy =
        "@%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 512;\n@%p1 cp.async.bulk"
        ".shared::cluster.global.mbarrier::complete_tx::bytes [tile], [%d2], 512, [bar];\n$wait_bar;";
    const std::string again = meet + "@%p0 mbarrier.inval.shared.b64 [bar]; @%p0 mbarrier.init.shared.b64 [bar], 1;\n";
    check_fine(with_tile(copy + again + "@%p0 fence.mbarrier_init.release.cluster;" + meet + copy));
    CHECK_THAT(found_by_all(with_tile(copy + again + meet + copy), "bulk-barrier-not-fenced"),
               contains("mbarrier.inval") || contains("mbarrier.init"));
}

TEST_CASE("a barrier that has been made is fenced before a bulk copy of another block arrives there") {
    const std::string meet = "barrier.cluster.arrive.release; barrier.cluster.wait.acquire;\n",
                      meet_relaxed = "barrier.cluster.arrive.relaxed; barrier.cluster.wait.acquire;\n";
    const std::string body = R"({ .reg .b16 h; mov.b16 h, 2; mov.u32 %r9, %cluster_ctarank;
    setp.eq.and.u32 %p3, %r9, 0, %p1; setp.eq.and.u32 %p4, %r9, 1, %p0; setp.eq.u32 %p5, %r9, 0;
    @%p4 mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 512;
    @%p3 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [tile], [%d2], 512, [bar], h;
    @%p5 bra $over; $wait_bar; $over: }
)" + meet;
    const auto outcome = [&](const std::string& made) {
        std::string said;
        const std::vector<std::string> all = codes(with_tile(body, made), &said, whole, 2);
        CHECK(std::ranges::count(all, all.front()) == std::ptrdiff_t(all.size()));
        CHECK((said.empty() || all.front() == "cluster-barrier-not-fenced"));
        // That check is for copies of the own block.
        CHECK(codes(with_tile(body, made), nullptr, whole, 2, false) == all);
        return said;
    };
    CHECK(outcome("fence.mbarrier_init.release.cluster;" + meet) == "");
    CHECK(outcome("@%p0 fence.mbarrier_init.release.cluster;" + meet) == "");
    CHECK(outcome("@%p0 fence.proxy.async.shared::cta;" + meet) == "");
    CHECK(outcome(meet) == "");
    CHECK(outcome("@%p0 fence.acq_rel.cluster;" + meet_relaxed) == "");
    CHECK_THAT(outcome(meet_relaxed),
               contains("a bulk copy arrives at the barrier at offset 0 of 'bar' in shared memory of block (1,0,0)") &&
                   contains("which thread (0,0,0) has made without fence.mbarrier_init") &&
                   contains("block (1,0,0) thread (0,0,0): @%p0 mbarrier.init.shared.b64 [bar], 1;"));
    CHECK_THAT(outcome("@%p2 fence.mbarrier_init.release.cluster;" + meet_relaxed), contains("'bar'"));
    CHECK_THAT(outcome("fence.proxy.async.global; fence.acq_rel.cta;" + meet_relaxed), contains("'bar'"));
}

TEST_CASE("a tensor map that the kernel has written is acquired") {
    const std::string put = R"({ .reg .pred q; setp.lt.u32 q, %r1, 32; mov.b64 %d4, map; cvta.param.u64 %d4, %d4;
    mul.wide.u32 %d5, %r1, 4; add.u64 %d4, %d4, %d5; @q ld.u32 %r8, [%d4]; add.u64 %d5, %d5, %d1;
    @q st.global.u32 [%d5], %r8; }
)",
                      copy = "@%p1 cp.async.bulk.prefetch.tensor.1d.L2.global [%d1, {0}];\n",
                      acquire = "fence.proxy.tensormap::generic.acquire.gpu [%d1], 128;\n",
                      release = "fence.proxy.tensormap::generic.release.gpu;\n";
    check_fine(with_tile(put + release + meet + acquire + copy));
    CHECK_THAT(found_by_all(with_tile(put + meet + acquire + copy)),
               contains("without fence.proxy.tensormap::generic.release before it"));
    CHECK_THAT(found_by_all(with_tile(put + release + meet + copy)),
               contains("a bulk copy uses a tensor map with 4 bytes at offset 0 of buffer 'x'") &&
                   contains("without fence.proxy.tensormap::generic.acquire before it") &&
                   contains("@q st.global.u32"));
    CHECK_THAT(found_by_all(with_tile(put + release + fence + meet + copy)), contains("buffer 'x'"));
}

}  // namespace ikat::tests::proxies
