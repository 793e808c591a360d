// SPDX-License-Identifier: Apache-2.0
// Fences of proxies that are missing between blocks: one has written by ordinary instructions what a bulk copy or a
// product of another reads or overwrites, which is ordered after it.
#include "runtime/emulator/agents/bulk/tensor_map.hpp"
#include "tests/races/twins.hpp"

namespace ikat::tests::races {

namespace {

// Block 0 stores the first 128 bytes of p0 and releases a flag, after which block 1 begins.
#define STORES "@!%p10 bra $reader; st.global.u32 [%d1], %r1; "
#define RELEASES " bar.sync 0; @%p1 st.release.gpu.global.u32 [%d3], 1; bra $end; "
#define ACQUIRES "$reader: ld.acquire.gpu.global.u32 %r9, [%d3]; setp.eq.u32 %p4, %r9, 0; @%p4 bra $reader; "
// Thread 0 starts a copy, and all of the block wait for it.
#define EXPECTS(bytes)                                                                     \
    " setp.ne.u32 %p3, %r1, 0; @%p3 mbarrier.arrive.shared.b64 _, [bar]; @%p3 bra $asks; " \
    "mbarrier.arrive.expect_tx.shared.b64 _, [bar], " bytes "; "
#define LOADS_FROM(address, bytes)                                                                    \
    EXPECTS(bytes)                                                                                    \
    "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [tile], [" address "], " bytes \
    ", [bar]; "                                                                                       \
    "$asks: $wait bar, 0; "
#define LOADS LOADS_FROM("%d2", "128")
// %d5: what the next block of eight has stored.
#define OF_THE_NEXT "add.u32 %r22, %r20, 1; and.b32 %r22, %r22, 7; mad.wide.u32 %d5, %r22, 128, %d2; "
#define FILLS "st.shared.u32 [%r4], %r1; fence.proxy.async.shared::cta; bar.sync 0; "
#define ENDS "@%p1 cp.async.bulk.commit_group; @%p1 cp.async.bulk.wait_group 0; "
// %r22 is the other block of the cluster, %r23 and %r24 the thread's word and the tile there, %r11 `bar`; %d5 128 bytes
// of p0 for each block.
#define PEER                                                                                           \
    "xor.b32 %r22, %r20, 1; mapa.shared::cluster.u32 %r23, %r4, %r22; mapa.shared::cluster.u32 %r24, " \
    "%r5, %r22; mov.u32 %r10, bar; mapa.shared::cluster.u32 %r11, %r10, %r22; mad.wide.u32 %d5, %r20, 128, %d2; "
#define BLOCKS_MEET "barrier.cluster.arrive.release; barrier.cluster.wait.acquire; "
#define BLOCKS_LEAVE " barrier.cluster.arrive.relaxed; barrier.cluster.wait;"
#define PUTS "@%p1 cp.async.bulk.global.shared::cta.bulk_group [%d5], [tile], 128; " ENDS

constexpr Twins fences_by_flags[] = {
    between("the writer's fence after its stores", 2, 32, STORES "<fence.proxy.async;|>" RELEASES ACQUIRES LOADS),
    between("the writer's fence of global memory", 2, 32,
            STORES "fence.proxy.async.<global|shared::cta>;" RELEASES ACQUIRES LOADS),
    between("... and one of the cluster's shared memory", 2, 32,
            STORES "fence.proxy.async<|.shared::cluster>;" RELEASES ACQUIRES LOADS),
    between(
        "the writer's fence before its stores", 2, 32,
        "@!%p10 bra $reader; <|fence.proxy.async;> st.global.u32 [%d1], %r1; <fence.proxy.async;|>" RELEASES ACQUIRES
            LOADS),
    between("the fence of the one who copies, after the flag", 2, 32,
            STORES RELEASES ACQUIRES "<fence.proxy.async;|>" LOADS),
    between("the fence of the one who copies, of global memory", 2, 32,
            STORES RELEASES ACQUIRES "fence.proxy.async.<global|shared::cta>;" LOADS),
    between("the fence of the one who copies, before the flag", 2, 32,
            STORES RELEASES "$reader: <|fence.proxy.async;> ld.acquire.gpu.global.u32 %r9, [%d3]; "
                            "setp.eq.u32 %p4, %r9, 0; @%p4 bra $reader; <fence.proxy.async;|>" LOADS),
    between("another thread of the writers' block fences what it has met", 2, 64,
            STORES "<bar.sync 0; @%p1 fence.proxy.async;|@%p1 fence.proxy.async; bar.sync 0;> @%p1 "
                   "st.release.gpu.global.u32 [%d3], 1; bra $end; " ACQUIRES LOADS_FROM("%d2", "256"),
            "thread (1,0,0) has written"),
    between("a lane fences what its warp has stored", 2, 32,
            STORES "<bar.warp.sync -1; @%p1 fence.proxy.async;|@%p1 fence.proxy.async; bar.warp.sync -1;> @%p1 "
                   "st.release.gpu.global.u32 [%d3], 1; bra $end; " ACQUIRES LOADS,
            "thread (1,0,0) has written"),
    between("a fence after the release", 2, 32,
            STORES "bar.sync 0; <@%p1 fence.proxy.async;|> @%p1 st.release.gpu.global.u32 [%d3], 1; <|@%p1 "
                   "fence.proxy.async;> bra $end; " ACQUIRES LOADS),
    between("fences around a relaxed flag", 2, 32,
            STORES "bar.sync 0; @!%p1 bra $end; <fence.proxy.async;|> fence.acq_rel.gpu; st.relaxed.gpu.global.u32 "
                   "[%d3], 1; bra $end; $reader: ld.relaxed.gpu.global.u32 %r9, [%d3]; setp.eq.u32 %p4, %r9, 0; "
                   "@%p4 bra $reader; fence.acq_rel.gpu; " LOADS),
    between("a fence between that of the release and its flag", 2, 32,
            STORES "bar.sync 0; @!%p1 bra $end; fence.acq_rel.gpu; <fence.proxy.async;|> st.relaxed.gpu.global.u32 "
                   "[%d3], 1; <|fence.proxy.async;> bra $end; $reader: ld.relaxed.gpu.global.u32 %r9, [%d3]; "
                   "setp.eq.u32 %p4, %r9, 0; @%p4 bra $reader; fence.acq_rel.gpu; " LOADS),
    between("a third block fences between the two", 3, 32,
            "setp.eq.u32 %p11, %r20, 1; @%p11 bra $third; " STORES RELEASES
            "$third: @!%p1 bra $end; <|fence.proxy.async;> $again: ld.acquire.gpu.global.u32 %r9, [%d3]; setp.eq.u32 "
            "%p4, %r9, 0; @%p4 bra $again; <fence.proxy.async;|> st.release.gpu.global.u32 [%d3+4], 1; "
            "<|fence.proxy.async;> bra $end; $reader: ld.acquire.gpu.global.u32 %r9, [%d3+4]; setp.eq.u32 %p4, %r9, "
            "0; @%p4 bra $reader; " LOADS,
            "block (0,0,0) thread (0,0,0) has written"),
    between("an atomic is an ordinary write", 2, 32,
            "@!%p10 bra $reader; red.global.add.u32 [%d1], %r1; <fence.proxy.async;|>" RELEASES ACQUIRES LOADS,
            "red.global.add.u32"),
    between(
        "halves of words", 2, 32,
        "@!%p10 bra $reader; cvt.u16.u32 %h1, %r1; st.global.u16 [%d1+2], %h1; <fence.proxy.async;|>" RELEASES ACQUIRES
            LOADS),
    between("a bulk store over what the other block has stored", 2, 32,
            STORES "<fence.proxy.async;|>" RELEASES ACQUIRES FILLS
                   "@%p1 cp.async.bulk.global.shared::cta.bulk_group [%d2], [tile], 128; " ENDS,
            "a bulk copy overwrites"),
    between("a sum by the memory over what the other block has stored", 2, 32,
            STORES "<fence.proxy.async;|>" RELEASES ACQUIRES FILLS
                   "@%p1 cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%d2], [tile], 128; " ENDS,
            "a bulk copy overwrites"),
    between(
        "a box of a tensor", 2, 32,
        STORES "<fence.proxy.async.global;|>" RELEASES ACQUIRES EXPECTS(
            "128") "add.u64 %d6, %d2, 2048; mov.u32 %r9, 0; "
                   "cp.async.bulk.tensor.1d.shared::cluster.global.mbarrier::complete_tx::bytes [tile], [%d6, {%r9}], "
                   "[bar]; $asks: $wait bar, 0;",
        "at offset 0 of buffer 'x'"),
    between("a box of a tensor over what the other block has stored", 2, 32,
            STORES RELEASES ACQUIRES
            "<fence.proxy.async.global;|>" FILLS "add.u64 %d6, %d2, 2048; mov.u32 %r9, 0; "
            "@%p1 cp.async.bulk.tensor.1d.global.shared::cta.bulk_group [%d6, {%r9}], [tile]; " ENDS,
            "a bulk copy overwrites"),
    between("the last block copies what another has stored", 8, 32,
            "st.global.u32 [%d4], %r1; <fence.proxy.async.global;|> bar.sync 0; @!%p1 bra $met; "
            "atom.acq_rel.gpu.global.add.u32 %r9, [%d3], 1; st.shared.u32 [tile+3072], %r9; $met: bar.sync 0; "
            "ld.shared.u32 %r9, [tile+3072]; setp.ne.u32 %p4, %r9, 7; @%p4 bra $end; " OF_THE_NEXT LOADS_FROM("%d5",
                                                                                                              "128")),
    between(
        "the last block fences itself", 8, 32,
        "st.global.u32 [%d4], %r1; <|@%p1 fence.proxy.async.global;> bar.sync 0; @!%p1 bra $met; "
        "atom.acq_rel.gpu.global.add.u32 %r9, [%d3], 1; <fence.proxy.async.global;|> st.shared.u32 [tile+3072], "
        "%r9; $met: bar.sync 0; ld.shared.u32 %r9, [tile+3072]; setp.ne.u32 %p4, %r9, 7; @%p4 bra $end; " OF_THE_NEXT
            LOADS_FROM("%d5", "128"),
        "thread (1,0,0) has written"),
    between("the blocks of a grid meet", 2, 32,
            "st.global.u32 [%d4], %r1; <fence.proxy.async;|> bar.sync 0; @!%p1 bra $met; fence.acq_rel.gpu; "
            "red.global.add.u32 [%d3], 1; $spin: ld.volatile.global.u32 %r9, [%d3]; setp.lt.u32 %p4, %r9, 2; @%p4 bra "
            "$spin; fence.acq_rel.gpu; $met: bar.sync 0; xor.b32 %r22, %r20, 1; mad.wide.u32 %d5, %r22, 128, "
            "%d2; " LOADS_FROM("%d5", "128")),
    between("what is stored again is fenced again", 2, 32,
            STORES
            "fence.proxy.async; bar.sync 0; @%p1 st.release.gpu.global.u32 [%d3], 1; "
            "$back: ld.acquire.gpu.global.u32 %r9, [%d3+4]; setp.eq.u32 %p4, %r9, 0; @%p4 bra $back; "
            "st.global.u32 [%d1], 7; <fence.proxy.async;|> bar.sync 0; @%p1 st.release.gpu.global.u32 [%d3+8], 1; "
            "bra $end; " ACQUIRES LOADS
            "@%p1 st.release.gpu.global.u32 [%d3+4], 1; $more: ld.acquire.gpu.global.u32 %r9, [%d3+8]; "
            "setp.eq.u32 %p4, %r9, 0; @%p4 bra $more; @%p3 mbarrier.arrive.shared.b64 _, [bar]; @%p3 bra $ask; "
            "mbarrier.arrive.expect_tx.shared.b64 _, [bar], 128; cp.async.bulk.shared::cluster.global.mbarrier::"
            "complete_tx::bytes [tile], [%d2], 128, [bar]; $ask: $wait bar, 1;"),
};

constexpr Twins fences_in_clusters[] = {
    in_cluster("a block puts where the other has stored, by the cluster's barrier", 2, 32,
               PEER BLOCKS_MEET
               "st.shared::cluster.u32 [%r23], %r1; <fence.proxy.async;|> " BLOCKS_MEET PUTS BLOCKS_LEAVE,
               "a bulk copy reads"),
    in_cluster(
        "the writer's fence is of the cluster's shared memory", 2, 32,
        PEER BLOCKS_MEET
        "st.shared::cluster.u32 [%r23], %r1; fence.proxy.async.shared::<cluster|cta>; " BLOCKS_MEET PUTS BLOCKS_LEAVE,
        "of 'tile' in shared memory"),
    in_cluster("the owner's fence is of its shared memory", 2, 32,
               PEER BLOCKS_MEET "st.shared::cluster.u32 [%r23], %r1; " BLOCKS_MEET
                                "fence.proxy.async.<shared::cta|global>; " PUTS BLOCKS_LEAVE),
    in_cluster("a fence in one direction, of the writer and of the owner", 2, 32,
               PEER BLOCKS_MEET
               "st.shared::cluster.u32 [%r23], %r1; <|fence.proxy.async::generic.release."
               "sync_restrict::shared::cta.cluster; > " BLOCKS_MEET
               "<fence.proxy.async::generic.acquire.sync_restrict::shared::cluster.cluster;|> " PUTS BLOCKS_LEAVE),
    in_cluster("the owner's fence before the barrier", 2, 32,
               PEER BLOCKS_MEET "st.shared::cluster.u32 [%r23], %r1; <|@!%p10 fence.proxy.async;> " BLOCKS_MEET
                                "<fence.proxy.async;|> @%p10 bra $over; " PUTS "$over: " BLOCKS_LEAVE),
    in_cluster("an arrival at the other block's barrier", 2, 32,
               PEER BLOCKS_MEET
               "st.shared::cluster.u32 [%r23], %r1; <fence.proxy.async;|> "
               "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r11]; $wait bar, 0; " PUTS BLOCKS_LEAVE,
               "which block ("),
    in_cluster("a fence after the arrival at the other block's barrier", 2, 32,
               PEER BLOCKS_MEET
               "st.shared::cluster.u32 [%r23], %r1; <fence.proxy.async;|> "
               "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r11]; <|@%p10 fence.proxy.async;> "
               "$wait bar, 0; @%p10 bra $over; " PUTS "$over: " BLOCKS_LEAVE),
    in_cluster("a block fills what it has stored in the other", 2, 32,
               PEER BLOCKS_MEET
               "@%p10 st.shared::cluster.u32 [%r23], %r1; @%p10 fence.proxy.async.shared::<cluster|cta>; "
               "@%p10 bra $met; setp.ne.u32 %p3, %r1, 0; @%p3 mbarrier.arrive.shared.b64 _, [bar]; @!%p3 "
               "mbarrier.arrive.expect_tx.shared.b64 _, [bar], 128; $met: " BLOCKS_MEET
               "@!%p10 bra $owner; @%p1 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "
               "[%r24], [%d2], 128, [%r11]; bra $over; $owner: $wait bar, 0; $over: " BLOCKS_LEAVE,
               "a bulk copy overwrites"),
    in_cluster("global memory, by the cluster's barrier", 2, 32,
               PEER
               "st.global.u32 [%d4], %r1; <fence.proxy.async.global;|fence.proxy.async.shared::cluster;> " BLOCKS_MEET
               "mad.wide.u32 %d5, %r22, 128, %d2; " LOADS_FROM("%d5", "128") BLOCKS_LEAVE,
               "of buffer 'x'"),
};

constexpr Twins fences_of_products[] = {
    in_cluster(
        "a product of what the other block has stored", 2, 128,
        PEER BLOCKS_MEET
        "st.shared::cluster.u32 [%r23], %r1; " BLOCKS_MEET
        "<fence.proxy.async.shared::cta;|> shr.u32 %r30, %r5, 4; and.b32 %r30, %r30, 0x3fff; cvt.u64.u32 %d10, %r30; "
        "or.b64 %d10, %d10, 0x1000080000; add.u64 %d11, %d10, 128; wgmma.fence.sync.aligned; "
        "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f1, %f2, %f3, %f4}, %d10, %d11, 0, 1, 1, "
        "0, 0; wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0; " BLOCKS_LEAVE,
        "a product reads"),
};

/// What is found in twins with a map of the first 128 bytes of p0 at byte 2048.
std::string found_in_twin(const Twins& twins, bool is_right, std::uint32_t seed, std::string* said = nullptr,
                          std::string_view checks = "races", std::vector<Diagnostic>* warnings = nullptr) {
    Machine machine;
    machine.options.seed = seed;
    machine.options.step_budget = 1000000;
    set_checks(machine, checks);
    const auto x = machine.buffer("x", std::vector<std::uint32_t>(1024, 1));
    const auto flags = machine.buffer("flags", std::vector<std::uint32_t>(64));
    const auto map = emulator::encode(
        emulator::TensorMap{.type = emulator::MapType::U32, .rank = 1, .address = x, .extents = {32}, .box = {32}});
    machine.memory.write(x + 2048, std::as_bytes(std::span(map)));
    emulator::Launch launch{.grid = {twins.blocks, 1, 1}, .block = {twins.threads, 1, 1}};
    if (twins.is_cluster) launch.cluster = {twins.blocks, 1, 1};
    const std::string failure = machine.failure(module_of(twin(twins.body, is_right)), launch, x, flags);
    if (said) *said = failure;
    if (warnings) *warnings = machine.warnings;
    return machine.code;
}

void check_fences(const Twins& twins, const std::string& code = "bulk-not-visible") {
    INFO(twins.name);
    for (const std::uint32_t seed : {0u, 1u, 2u, 3u, 4u, 5u, 6u, 7u}) {
        INFO("schedule " << seed);
        std::string said;
        CHECK(found_in_twin(twins, true, seed, &said) == "");
        INFO(said);
        CHECK(found_in_twin(twins, false, seed, &said) == code);
        INFO(said);
        CHECK_THAT(said, contains(twins.says) && contains("without fence.proxy.async before it"));
    }
}

}  // namespace

TEST_CASE("fences of proxies between blocks that a flag orders", "[long]") {
    for (const Twins& each : fences_by_flags) check_fences(each);
}
TEST_CASE("fences of proxies between the blocks of a cluster") {
    for (const Twins& each : fences_in_clusters) check_fences(each);
    for (const Twins& each : fences_of_products) check_fences(each, "product-not-visible");
}

TEST_CASE("what needs no fence of proxies between blocks") {
    constexpr Twins fine[] = {
        between("what another block has only read", 2, 32,
                "@!%p10 bra $reader; ld.global.u32 %r9, [%d1]; " RELEASES ACQUIRES FILLS
                "@%p1 cp.async.bulk.global.shared::cta.bulk_group [%d2], [tile], 128; " ENDS),
        between("what a bulk copy of another block has written", 2, 32,
                "@!%p10 bra $reader; " FILLS
                "@%p1 cp.async.bulk.global.shared::cta.bulk_group [%d2], [tile], 128; " ENDS RELEASES ACQUIRES LOADS),
        between("bytes beside it", 2, 32, "@!%p10 bra $reader; st.global.u32 [%d1+128], %r1; " RELEASES ACQUIRES LOADS),
        between("what the block has written before, and a bulk copy has overwritten", 2, 32,
                STORES
                "fence.proxy.async; bar.sync 0; " FILLS
                "@%p1 cp.async.bulk.global.shared::cta.bulk_group [%d2], [tile], 128; " ENDS RELEASES ACQUIRES LOADS),
    };
    for (const Twins& each : fine)
        for (const std::uint32_t seed : {0u, 1u, 2u, 3u}) {
            INFO(each.name);
            std::string said;
            CHECK(found_in_twin(each, true, seed, &said) == "");
            INFO(said);
            CHECK(said == "no failure");
        }
}

TEST_CASE("a missing fence of proxies is found once, and what is a race is only that") {
    const Twins race = between("", 2, 32, STORES "fence.acq_rel.gpu; bra $end; $reader: " LOADS),
                other = between("", 2, 32, STORES RELEASES ACQUIRES LOADS),
                both = between("", 2, 32, STORES RELEASES ACQUIRES "@%p1 st.global.u32 [%d2+64], 5; " LOADS);
    for (const std::uint32_t seed : {0u, 1u, 2u, 3u}) {
        CHECK(found_in_twin(race, true, seed) == "race");
        CHECK(found_in_twin(other, true, seed, nullptr, "races,no-proxy-fences") == "");
        CHECK(found_in_twin(other, true, seed, nullptr, "races-shared") == "");
        for (const Twins* each : {&other, &both}) {
            std::vector<Diagnostic> warnings;
            CHECK(found_in_twin(*each, true, seed, nullptr, "races,proxy-fences=warning", &warnings) == "");
            REQUIRE(warnings.size() == 1);
            CHECK(std::string_view(warnings[0].code) == "bulk-not-visible");
        }
    }
    std::string said;
    found_in_twin(other, true, 0, &said);
    CHECK_THAT(said, contains("a bulk copy reads 4 bytes at offset 0 of buffer 'x' (4096 bytes), which block (0,0,0) "
                              "thread (0,0,0) has written without fence.proxy.async before it, by block (1,0,0) thread "
                              "(0,0,0)") &&
                         contains("note: the write, by block (0,0,0) thread (0,0,0): st.global.u32 [%d1], %r1;") &&
                         contains("hint: let each thread that writes what a bulk copy reads"));
}

}  // namespace ikat::tests::races
