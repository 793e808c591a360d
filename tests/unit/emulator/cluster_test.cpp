// SPDX-License-Identifier: Apache-2.0
// Clusters of several blocks: their barrier, ranks, and the shared memory of other blocks (PTX ISA: mapa, getctarank,
// isspacep, cvta and the state space .shared::cluster).
#include "tests/unit/emulator/machine.hpp"

using namespace ikat;
using tests::contains;
using tests::Machine;

namespace {

/// A kernel of clusters of 2 x 2 blocks: %r1 the thread, %r2 and %r3 the block, %r4 its rank, %d1 = &p0[its number].
/// Each block has an array `tile` of 64 words in shared memory.
std::string in_clusters(const std::string& body, const std::string& size = "2, 2, 1") {
    return ".version 8.0\n.target sm_90\n.address_size 64\n.entry k(.param .u64 p0) .reqnctapercluster " + size + R"({
    .shared .align 16 .b32 tile[64]; .reg .pred %p<4>; .reg .b32 %r<32>; .reg .b64 %d<16>;
    mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ctaid.y; mov.u32 %r4, %cluster_ctarank;
    mov.u32 %r5, %nctaid.x; mad.lo.u32 %r6, %r3, %r5, %r2; ld.param.u64 %d1, [p0]; mad.wide.u32 %d1, %r6, 4, %d1;
)" + body + "\n    ret;\n}\n";
}

}  // namespace

TEST_CASE("the blocks of a cluster synchronise and know their rank") {
    // each writes its rank and reads that of its neighbour within the cluster
    const std::string text = in_clusters(R"(
    st.global.u32 [%d1], %r4;
    barrier.cluster.arrive.release; barrier.cluster.wait.acquire;
    and.b32 %r7, %r4, 1; setp.eq.u32 %p1, %r7, 0;
    @%p1 ld.global.u32 %r8, [%d1+4]; @!%p1 ld.global.u32 %r8, [%d1-4];
    barrier.cluster.arrive; barrier.cluster.wait;
    mov.u32 %r9, %clusterid.x; mov.u32 %r10, %nclusterid.x; mov.u32 %r11, %cluster_ctaid.y;
    mov.u32 %r12, %cluster_nctaid.y; mov.u32 %r13, %cluster_nctarank; mov.pred %p2, %is_explicit_cluster;
    mad.lo.u32 %r8, %r9, 10, %r8; mad.lo.u32 %r8, %r10, 100, %r8; mad.lo.u32 %r8, %r11, 1000, %r8;
    mad.lo.u32 %r8, %r12, 10000, %r8; mad.lo.u32 %r8, %r13, 100000, %r8; @%p2 add.u32 %r8, %r8, 1000000;
    st.global.u32 [%d1], %r8;)");
    for (const unsigned host : {1u, 3u})
        for (const std::uint32_t seed : {0u, 1u, 2u}) {
            Machine machine;
            machine.options.threads = host;
            machine.options.seed = seed;
            const auto out = machine.empty<std::uint32_t>("out", 6 * 4);
            machine.run(text, {.grid = {6, 4, 1}, .block = {64, 1, 1}}, out);
            const auto result = machine.get<std::uint32_t>(out, 6 * 4);
            for (std::uint32_t y = 0; y < 4; ++y)
                for (std::uint32_t x = 0; x < 6; ++x) {
                    const std::uint32_t neighbour = (1 - x % 2) + 2 * (y % 2);
                    CHECK(result[6 * y + x] == 1420300 + 1000 * (y % 2) + 10 * (x / 2) + neighbour);
                }
        }
}

TEST_CASE("a cluster barrier that not all blocks can reach") {
    const auto failure = [](const std::string& text, std::array<std::uint32_t, 3> grid = {4, 2, 1}) {
        Machine machine;
        const auto out = machine.buffer("out", std::vector<std::uint32_t>(8));
        const std::string said = machine.failure(text, {.grid = grid, .block = {32, 1, 1}}, out);
        return machine.code + ": " + said;
    };
    // exited blocks are no longer waited for
    CHECK(failure(in_clusters("setp.eq.u32 %p1, %r4, 1; @%p1 ret; barrier.cluster.arrive; barrier.cluster.wait;")) ==
          ": no failure");
    // one waits for memory that another would write after the barrier
    const std::string waits = failure(in_clusters(
        "setp.eq.u32 %p1, %r4, 1; @!%p1 bra $meet;\n"
        "$wait: ld.volatile.global.u32 %r7, [%d1]; setp.eq.u32 %p2, %r7, 0; @%p2 bra $wait;\n"
        "$meet: barrier.cluster.arrive; barrier.cluster.wait; mov.u32 %r8, 1; st.global.u32 [%d1+4], %r8;"));
    CHECK_THAT(waits, contains("deadlock: ") && contains("deadlock in block (0,0,0): no warp can continue") &&
                          contains("wait at the cluster's barrier"));
    CHECK_THAT(failure(in_clusters(""), {3, 2, 1}),
               contains("launch-refused: ") && contains("a grid of (3,2,1) blocks in clusters of (2,2,1)"));
    CHECK_THAT(failure(in_clusters("", "17, 1, 1"), {17, 1, 1}), contains("a cluster has 1 to 16 blocks"));
}

namespace {

const std::string meet = "barrier.cluster.arrive.release; barrier.cluster.wait.acquire;\n";

/// Each thread writes 100 * its rank + its number to the tile; %r10 is the address of its word there, %r11 the next
/// rank.
const std::string fill = R"(
    mov.u32 %r10, tile; mad.lo.u32 %r10, %r1, 4, %r10; mad.lo.u32 %r12, %r4, 100, %r1; st.shared.u32 [%r10], %r12;
    add.u32 %r11, %r4, 1; and.b32 %r11, %r11, 3;
)";
/// p0[thread] of its block = %r20, at the end.
const std::string store_result = R"(
    ld.param.u64 %d1, [p0]; mad.lo.u32 %r6, %r6, 64, %r1; mad.wide.u32 %d1, %r6, 4, %d1; st.global.u32 [%d1], %r20;)";

/// The results of 64 threads in each block of a grid of 4 x 2 blocks, two clusters; `expected` gives them by rank and
/// thread. In each order of warps and blocks.
template <class F>
void check_clusters(const std::string& body, F expected) {
    for (const unsigned host : {1u, 2u})
        for (const std::uint32_t seed : {0u, 1u, 2u, 3u}) {
            INFO("host threads " << host << ", seed " << seed);
            Machine machine;
            machine.options.threads = host;
            machine.options.seed = seed;
            const auto out = machine.empty<std::uint32_t>("out", 8 * 64);
            machine.run(in_clusters(body + store_result), {.grid = {4, 2, 1}, .block = {64, 1, 1}}, out);
            const auto got = machine.get<std::uint32_t>(out, 8 * 64);
            bool all = true;
            for (std::uint32_t i = 0; i < got.size(); ++i) {
                const std::uint32_t block = i / 64, rank = block % 2 + 2 * (block / 4);
                all = all && got[i] == std::uint32_t(expected(rank, i % 64));
            }
            CHECK(all);
        }
}

/// The code and the message of the first seed that finds something, of four; in one cluster.
std::string found(const std::string& body, std::uint32_t threads = 32) {
    for (const std::uint32_t seed : {0u, 1u, 2u, 3u}) {
        Machine machine;
        machine.options.seed = seed;
        const auto out = machine.buffer("out", std::vector<std::uint32_t>(4 * 64));
        const std::string said = machine.failure(in_clusters(body), {.grid = {2, 2, 1}, .block = {threads, 1, 1}}, out);
        if (said != "no failure") return machine.code + ": " + said;
    }
    return "no failure";
}

}  // namespace

TEST_CASE("loads from the shared memory of another block") {
    const auto neighbour = [](std::uint32_t rank, std::uint32_t i) { return 100 * ((rank + 1) % 4) + i; };
    for (const char* load :
         {"mapa.shared::cluster.u32 %r13, %r10, %r11; ld.shared::cluster.u32 %r20, [%r13];",
          "mapa.shared::cluster.u32 %r13, tile, %r11; mad.lo.u32 %r13, %r1, 4, %r13;"
          "ld.shared::cluster.u32 %r20, [%r13];",
          "mapa.shared::cluster.u32 %r13, tile+64, %r11; mad.lo.u32 %r13, %r1, 4, %r13;"
          "ld.shared::cluster.u32 %r20, [%r13-64];",
          "cvt.u64.u32 %d5, %r10; mapa.shared::cluster.u64 %d5, %d5, %r11; ld.shared::cluster.u32 %r20, [%d5];",
          "cvt.u64.u32 %d5, %r10; cvta.shared.u64 %d5, %d5; mapa.u64 %d5, %d5, %r11; ld.u32 %r20, [%d5];",
          // from an address that is another block's already
          "mapa.shared::cluster.u32 %r13, %r10, 3; mapa.shared::cluster.u32 %r13, %r13, %r11;"
          "ld.shared::cluster.u32 %r20, [%r13];",
          // generic addresses and those of the window are a constant apart
          "mapa.shared::cluster.u32 %r13, %r10, %r11; cvt.u64.u32 %d5, %r13; cvta.shared::cluster.u64 %d5, %d5;"
          "ld.u32 %r20, [%d5];",
          "cvt.u64.u32 %d5, %r10; cvta.shared.u64 %d5, %d5; mapa.u64 %d5, %d5, %r11;"
          "cvta.to.shared::cluster.u64 %d5, %d5; ld.shared::cluster.u32 %r20, [%d5];",
          // a negative index that the offset compensates, with 32 bits
          "mapa.shared::cluster.u32 %r13, tile, %r11; mad.lo.u32 %r13, %r1, 4, %r13; sub.u32 %r14, %r13, %r13;"
          "sub.u32 %r14, %r14, 64; add.u32 %r13, %r13, %r14; ld.shared::cluster.u32 %r20, [%r13+64];",
          "mapa.shared::cluster.u32 %r13, %r10, %r11; setp.lt.u32 %p1, %r1, 40;"
          "@%p1 ld.shared::cluster.u32 %r20, [%r13]; @!%p1 ld.volatile.shared::cluster.u32 %r20, [%r13];"}) {
        INFO(load);
        check_clusters(fill + meet + load + meet, neighbour);
    }
    check_clusters(fill + meet +
                       "mapa.shared::cluster.u32 %r13, tile, %r11; and.b32 %r14, %r1, 60;"
                       "mad.lo.u32 %r13, %r14, 4, %r13; ld.shared::cluster.v4.u32 {%r16, %r17, %r18, %r19}, [%r13];"
                       "add.u32 %r20, %r16, %r17; add.u32 %r20, %r20, %r18; add.u32 %r20, %r20, %r19;" +
                       meet,
                   [](std::uint32_t rank, std::uint32_t i) { return 400 * ((rank + 1) % 4) + 4 * (i & ~3u) + 6; });
}

TEST_CASE("stores and atomics to the shared memory of another block") {
    check_clusters(fill + meet +
                       "mapa.shared::cluster.u32 %r13, %r10, %r11; add.u32 %r14, %r12, 1000;"
                       "st.shared::cluster.u32 [%r13], %r14;" +
                       meet + "ld.shared.u32 %r20, [%r10];",
                   [](std::uint32_t rank, std::uint32_t i) { return 1000 + 100 * ((rank + 3) % 4) + i; });
    // all threads of the cluster add to one word
    for (const char* add :
         {"atom.shared::cluster.add.u32 %r14, [%r13+8], 2;", "red.shared::cluster.add.u32 [%r13+8], 2;",
          "red.relaxed.cluster.shared::cluster.add.u32 [%r13+8], 2;",
          "cvt.u64.u32 %d5, %r13; cvta.shared::cluster.u64 %d5, %d5; atom.add.u32 %r14, [%d5+8], 2;"}) {
        INFO(add);
        check_clusters(fill + meet + "mapa.shared::cluster.u32 %r13, tile, 2;" + add + meet +
                           "ld.shared::cluster.u32 %r20, [%r13+8];" + meet,
                       [](std::uint32_t, std::uint32_t) { return 202 + 2 * 4 * 64; });
    }
    check_clusters(fill + meet +
                       "mapa.shared::cluster.u32 %r13, tile, 0; setp.eq.u32 %p1, %r1, 0;"
                       "@%p1 atom.shared::cluster.cas.b32 %r14, [%r13], 0, 7; @%p1 atom.shared::cluster.exch.b32 %r14, "
                       "[%r13+4], 9;" +
                       meet + "ld.shared::cluster.v2.u32 {%r15, %r16}, [%r13]; mad.lo.u32 %r20, %r15, 10, %r16;" + meet,
                   [](std::uint32_t, std::uint32_t) { return 79; });
}

TEST_CASE("which block an address belongs to") {
    check_clusters(fill + R"(
        getctarank.shared::cluster.u32 %r20, %r10; mapa.shared::cluster.u32 %r13, %r10, %r11;
        getctarank.shared::cluster.u32 %r14, %r13; mad.lo.u32 %r20, %r14, 10, %r20;
        cvt.u64.u32 %d5, %r13; cvta.shared::cluster.u64 %d5, %d5; getctarank.u64 %r14, %d5; mad.lo.u32 %r20, %r14, 100, %r20;
        cvt.u64.u32 %d6, %r10; cvta.shared.u64 %d6, %d6; getctarank.u64 %r14, %d6; mad.lo.u32 %r20, %r14, 1000, %r20;
        mapa.u64 %d7, %d6, %r4; ld.u32 %r14, [%d7]; setp.ne.u32 %p1, %r14, %r12; @%p1 mov.u32 %r20, 0;
        ld.shared::cluster.u32 %r14, [%r10]; setp.ne.u32 %p1, %r14, %r12; @%p1 mov.u32 %r20, 0;)" +
                       meet,
                   [](std::uint32_t rank, std::uint32_t) {
                       const std::uint32_t next = (rank + 1) % 4;
                       return rank + 10 * next + 100 * next + 1000 * rank;
                   });
    // own, another block's, global: .shared, .shared::cta, .shared::cluster
    const char* const spaces[] = {"shared", "shared::cta", "shared::cluster"};
    std::string asked =
        fill + "cvt.u64.u32 %d6, %r10; cvta.shared.u64 %d6, %d6; mapa.u64 %d5, %d6, %r11; mov.u32 %r20, 0;";
    for (const char* address : {"%d6", "%d5", "%d1"})
        for (const char* space : spaces)
            asked += std::string("isspacep.") + space + " %p1, " + address +
                     "; mul.lo.u32 %r20, %r20, 10; @%p1 add.u32 %r20, %r20, 1;";
    check_clusters(asked, [](std::uint32_t, std::uint32_t) { return 111001000; });
}

TEST_CASE("addresses that no block of the cluster has") {
    const std::string mapped = fill + meet + "mapa.shared::cluster.u32 %r13, tile, %r11;\n";
    CHECK_THAT(found(mapped + "ld.shared::cluster.u32 %r20, [%r13+256];" + meet),
               contains("out-of-bounds: kernel.ptx:") &&
                   contains("right past the end of 'tile' in shared memory of block (1,0,0) (256 bytes)"));
    CHECK_THAT(found(mapped + "st.shared::cluster.u32 [%r13-4], 0;" + meet),
               contains("out-of-bounds: ") &&
                   contains("4 bytes before the start of 'tile' in shared memory of block (1,0,0)"));
    CHECK_THAT(found(mapped + "atom.shared::cluster.add.u32 %r20, [%r13+1024], 0;" + meet),
               contains("out-of-bounds: ") && contains("in shared memory of block (1,0,0)"));
    CHECK_THAT(found(mapped + "ld.shared::cluster.u32 %r20, [%r13+2];" + meet),
               contains("misaligned: ") && contains("at 0x2 of shared memory of block (1,0,0)"));
    CHECK_THAT(found(mapped + "ld.shared.u32 %r20, [%r13];" + meet),
               contains("wrong-space: ") && contains("an address that mapa gave") && contains("use .shared::cluster"));
    CHECK_THAT(found(mapped + "st.shared::cta.u32 [%r13], 0;" + meet), contains("wrong-space: "));
    CHECK_THAT(found(mapped + "mov.u32 %r13, 0x40000000; ld.shared::cluster.u32 %r20, [%r13];"),
               contains("out-of-bounds: "));
    CHECK_THAT(
        found("mov.u32 %r7, 4; mapa.shared::cluster.u32 %r13, tile, %r7;"),
        contains("cluster-rank: kernel.ptx:") && contains("does not have (rank 4 of 4 blocks), by block (0,0,0)"));
    CHECK_THAT(found("mov.u32 %r7, -1; mapa.shared::cluster.u32 %r13, tile, %r7;"),
               contains("cluster-rank: ") && contains("rank 4294967295 of 4 blocks"));
    CHECK_THAT(found("mapa.u64 %d5, %d1, 1;"), contains("not-shared: kernel.ptx:") && contains("cvta.shared"));
    CHECK_THAT(found(mapped + "getctarank.u64 %r20, %d1;"), contains("not-shared: "));
    CHECK_THAT(found(mapped + "cvt.u64.u32 %d5, %r13; getctarank.u64 %r20, %d5;"), contains("not-shared: "));
}

TEST_CASE("a block that has exited takes its shared memory with it") {
    const std::string mapped =
        fill + meet + "mapa.shared::cluster.u32 %r13, tile, 1; setp.eq.u32 %p1, %r4, 1; @%p1 exit;\n";
    for (const char* access : {"ld.shared::cluster.u32 %r20, [%r13];", "st.shared::cluster.u32 [%r13], 0;",
                               "red.shared::cluster.add.u32 [%r13], 1;",
                               "cvt.u64.u32 %d5, %r13; cvta.shared::cluster.u64 %d5, %d5; ld.u32 %r20, [%d5];"}) {
        INFO(access);
        CHECK_THAT(found(mapped + access), contains("exited-block: kernel.ptx:") &&
                                               contains("at 0x0 of shared memory of block (1,0,0), which has exited"));
        CHECK(found(fill + meet + "mapa.shared::cluster.u32 %r13, tile, 1;" + access + meet) == "no failure");
    }
    // in the next cluster it is there again: 16 clusters, one after the other
    Machine machine;
    const auto out = machine.empty<std::uint32_t>("out", 64);
    machine.run(in_clusters(fill + meet +
                            "mapa.shared::cluster.u32 %r13, tile, %r11; ld.shared::cluster.u32 %r20, [%r13];"
                            "st.global.u32 [%d1], %r20;" +
                            meet),
                {.grid = {8, 8, 1}, .block = {1, 1, 1}}, out);
    CHECK(machine.get<std::uint32_t>(out, 3) == std::vector<std::uint32_t>{100, 200, 100});
}

TEST_CASE("what no block has written in shared memory is undefined to all") {
    const std::string mapped = "mapa.shared::cluster.u32 %r13, tile, %r11;\n";
    const std::string own = "add.u32 %r11, %r4, 1; and.b32 %r11, %r11, 3; mov.u32 %r12, 5; mov.u32 %r10, tile;\n";
    CHECK_THAT(found(own + mapped +
                     "ld.shared::cluster.u32 %r20, [%r13]; add.u32 %r20, %r20, 1; st.global.u32 [%d1], %r20;" + meet),
               contains("undefined-store: ") && contains("in shared memory of block (1,0,0) (256 bytes)"));
    CHECK_THAT(found(own + mapped + meet + "red.shared::cluster.add.u32 [%r13], 1;" + meet),
               contains("unwritten: ") && contains("in shared memory of block (1,0,0)"));
    // without the barrier some order finds it, here that a block runs before the one of the rank below
    const std::string below = "sub.u32 %r11, %r4, 1; setp.gt.u32 %p1, %r4, 0; @!%p1 mov.u32 %r11, 0;" + mapped;
    CHECK_THAT(found(fill + below +
                     "ld.shared::cluster.u32 %r20, [%r13]; add.u32 %r20, %r20, 1; st.global.u32 [%d1], %r20;" + meet),
               contains("undefined-store: "));
    CHECK(found(fill + meet + mapped +
                "ld.shared::cluster.u32 %r20, [%r13]; add.u32 %r20, %r20, 1; st.global.u32 [%d1], %r20;" + meet) ==
          "no failure");
    // another block's store defines it, also for its own block
    CHECK(found(own + mapped + meet + "st.shared::cluster.u32 [%r13], %r12;" + meet +
                "ld.shared.u32 %r20, [%r10]; add.u32 %r20, %r20, 1; st.global.u32 [%d1], %r20;") == "no failure");
    // and an undefined value undefines it: a tile that is complete at a barrier is tracked again
    CHECK_THAT(
        found(".shared .b32 other[2];" + fill + "bar.sync 0;" + meet + mapped +
                  "ld.shared.u32 %r14, [other]; setp.eq.u32 %p1, %r4, 0; @%p1 st.shared::cluster.u32 [%r13], %r14;" +
                  meet + "ld.shared.u32 %r20, [tile]; add.u32 %r20, %r20, 1; st.global.u32 [%d1], %r20;",
              64),
        contains("undefined-store: ") && contains("at offset 0 of 'tile' in shared memory (256 bytes)"));
}

TEST_CASE("blocks of a cluster wait for each other's stores") {
    const std::string poll = R"(
        mov.u32 %r10, tile; setp.eq.u32 %p1, %r1, 0; @%p1 st.shared.u32 [%r10], 0;
        barrier.cluster.arrive; barrier.cluster.wait;
        add.u32 %r11, %r4, 1; and.b32 %r11, %r11, 3; mapa.shared::cluster.u32 %r13, tile, %r11; setp.eq.u32 %p2, %r4, 0;
    )";
    const std::string wait = "$wait: ld.volatile.shared.u32 %r20, [%r10]; setp.eq.u32 %p3, %r20, 0; @%p3 bra $wait;\n";
    // rank 0 starts a ring; each block polls its own shared memory
    check_clusters(poll + "@%p2 st.shared::cluster.u32 [%r13], 7;" + wait +
                       "add.u32 %r21, %r20, 1; @!%p2 st.shared::cluster.u32 [%r13], %r21; " + meet,
                   [](std::uint32_t rank, std::uint32_t) { return rank == 0 ? 10 : 6 + rank; });
    CHECK_THAT(found(poll + wait + meet), contains("endless-wait: "));
}

TEST_CASE("a cluster with too many variables in shared memory") {
    std::string variables;
    for (int i = 0; i < 7000; ++i) variables += ".shared .b8 v" + std::to_string(i) + ";";
    CHECK_THAT(found(variables + "mapa.shared::cluster.u32 %r13, tile, 1;"),
               contains("launch-refused: ") && contains("7001 variables in shared memory in a cluster of 4 blocks"));
    CHECK(found(variables) == "no failure");
}

TEST_CASE("a store to another block before the blocks of the cluster have met") {
    const auto found = [](const std::string& body) {
        Machine machine;
        const auto out = machine.buffer("out", std::vector<std::uint32_t>(8));
        const std::string said = machine.failure(in_clusters(body), {.grid = {4, 2, 1}, .block = {32, 1, 1}}, out);
        return machine.code + ": " + said;
    };
    const std::string next =
        "mov.u32 %r10, tile; mad.lo.u32 %r10, %r1, 4, %r10; add.u32 %r11, %r4, 1;\n"
        "and.b32 %r11, %r11, 3; mapa.shared::cluster.u32 %r12, %r10, %r11;\n";
    const std::string store = "st.shared::cluster.u32 [%r12], %r1;\n",
                      end = "barrier.cluster.arrive; barrier.cluster.wait;";
    CHECK_THAT(found(next + store + end), contains("block-not-started: ") &&
                                              contains("a store of 4 bytes at offset 0 of 'tile' in shared memory of "
                                                       "block (1,0,0)") &&
                                              contains("before the blocks of the cluster have met"));
    CHECK_THAT(found(next +
                     "mov.u32 %r13, 1; st.shared.u32 [%r10], %r13;\n"
                     "atom.shared::cluster.add.u32 %r14, [%r12], 1;\n" +
                     end),
               contains("block-not-started: "));
    CHECK(found(next + meet + store + end) == ": no failure");
    // its own memory, at the address that mapa gives
    CHECK(found("mov.u32 %r10, tile; mapa.shared::cluster.u32 %r12, %r10, %r4;\n" + store + end) == ": no failure");
}

TEST_CASE("st.async and red.async arrive at the barrier of another block") {
    // Each block sends its tile's words, in vectors and one by one, to the next, and adds 1 to a count there.
    const std::string begin = R"(
    .shared .align 16 .b32 inbox[64]; .shared .b32 count; .shared .b64 bar;
    mov.u32 %r20, bar; mov.u32 %r21, inbox; mov.u32 %r22, count; setp.eq.u32 %p1, %r1, 0;
    mov.u32 %r23, 0; @%p1 st.shared.u32 [count], %r23; @%p1 mbarrier.init.shared.b64 [%r20], 1;
    @%p1 mbarrier.arrive.expect_tx.shared.b64 _, [%r20], 320;
)" + meet + R"(
    add.u32 %r11, %r4, 1; and.b32 %r11, %r11, 3; mapa.shared::cluster.u32 %r24, %r20, %r11;
    mapa.shared::cluster.u32 %r25, %r21, %r11; mapa.shared::cluster.u32 %r26, %r22, %r11;
    mad.lo.u32 %r27, %r1, 16, %r25; mad.lo.u32 %r28, %r4, 100, %r1;
    add.u32 %r30, %r28, 7; setp.lt.u32 %p2, %r1, 8; setp.ge.u32 %p3, %r1, 32;
    @%p2 st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.b32 [%r27], {%r28, %r28, %r28, %r30}, [%r24];
    mad.lo.u32 %r29, %r1, 4, %r25;
    @%p3 st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.u32 [%r29], %r28, [%r24];
    setp.lt.u32 %p2, %r1, 16;
    @%p2 red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32 [%r26], 2, [%r24];
)";
    const std::string wait = R"(
$wait: mbarrier.try_wait.parity.shared.b64 %p1, [%r20], 0; @!%p1 bra $wait;
)";
    const std::string take = R"(
    mad.lo.u32 %r21, %r1, 4, %r21; ld.shared.u32 %r20, [%r21]; ld.shared.u32 %r22, [count];
    mad.lo.u32 %r20, %r22, 1000, %r20;
)" + meet;
    const auto expected = [](std::uint32_t rank, std::uint32_t thread) {
        const std::uint32_t from = 100 * ((rank + 3) % 4);
        return 32000 + from + (thread >= 32 ? thread : thread / 4 + (thread % 4 == 3 ? 7 : 0));
    };
    check_clusters(begin + wait + take, expected);
    Machine machine;
    const auto out = machine.buffer("out", std::vector<std::uint32_t>(512));
    machine.options.seed = 0;  // they arrive as late as they may
    const std::string early =
        machine.failure(in_clusters(begin + take + store_result), {.grid = {4, 2, 1}, .block = {64, 1, 1}}, out);
    CHECK_THAT(machine.code + early, contains("copy-not-awaited") && contains("the copy, by block"));
}
