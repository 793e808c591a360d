// SPDX-License-Identifier: Apache-2.0
// Indigo's codes on graphs, with their planted bugs: in PTX and in the language.
#include <ikat/catch.hpp>
#include <ikat/ikat.hpp>

#include "tests/races/twins.hpp"

using namespace ikat;
using ikat::tests::races::between;
using PtxTwins = ikat::tests::races::Twins;

namespace {

/// A mesh of 8 x 8 vertices, each with edges to those beside it, above and below: those of vertex v are list[first[v]]
/// up to list[first[v + 1]]. The parent of v is v / 2, its label v.
struct Graph {
    std::vector<std::uint32_t> first = {0}, list, parents, labels;
    Graph() {
        for (std::uint32_t v = 0; v < 64; ++v) {
            if (v >= 8) list.push_back(v - 8);
            if (v % 8 > 0) list.push_back(v - 1);
            if (v % 8 < 7) list.push_back(v + 1);
            if (v < 56) list.push_back(v + 8);
            first.push_back(std::uint32_t(list.size()));
            parents.push_back(v / 2);
            labels.push_back(v);
        }
        list.push_back(0);  // one is after the last, for those who go too far
    }
};

std::string array(std::string_view name, const std::vector<std::uint32_t>& values) {
    std::string out = ".global .align 4 .b32 " + std::string(name) + "[" + std::to_string(values.size()) + "] = {";
    for (std::size_t i = 0; i < values.size(); ++i) out += (i == 0 ? "" : ", ") + std::to_string(values[i]);
    return out + "};\n";
}

// The edges of the thread's vertex, of all blocks: %r30 is the first one, %r31 one after the last. EDGE: %r32 is the
// vertex at its other end, %d9 the address of that one's word of p0.
#define VERTEX                                                                                          \
    "mul.wide.u32 %d5, %r21, 4; mov.u64 %d6, first; add.u64 %d6, %d6, %d5; ld.global.u32 %r30, [%d6]; " \
    "ld.global.u32 %r31, [%d6+4]; mov.u64 %d7, list; "
#define EDGE(label) \
    " " label ": mad.wide.u32 %d8, %r30, 4, %d7; ld.global.u32 %r32, [%d8]; mad.wide.u32 %d9, %r32, 4, %d2; "
#define NEXT(label, less) " add.u32 %r30, %r30, 1; setp." less ".u32 %p9, %r30, %r31; @%p9 bra " label "; "
// %r41 is the sum of those of the lanes.
#define SUM_OF_WARP(label)                                                      \
    " mov.u32 %r42, 16; " label                                                 \
    ": shfl.sync.bfly.b32 %r43, %r41, %r42, 31, -1; add.u32 %r41, %r41, %r43; " \
    "shr.u32 %r42, %r42, 1; setp.gt.u32 %p8, %r42, 0; @%p8 bra " label "; "
// `to` is the last parent of `from`, with the parents halved on the way.
#define FIND(from, to, label)                                                                             \
    " mov.u32 " to ", " from "; " label ": mad.wide.u32 %d8, " to                                         \
    ", 4, %d10; ld.<relaxed.gpu.|>global.u32 %r35, [%d8]; setp.eq.u32 %p7, %r35, " to "; @%p7 bra " label \
    "_found; mad.wide.u32 %d11, %r35, 4, %d10; ld.<relaxed.gpu.|>global.u32 %r36, [%d11]; "               \
    "st.<relaxed.gpu.|>global.u32 [%d8], %r36; mov.u32 " to ", %r36; bra " label "; " label "_found: "

#define OF_STATUS "<relaxed.gpu.|>global.u32"

constexpr PtxTwins indigo[] = {
    between("Indigo conditional-vertex, block, persistent: atomicBug", 4, 32,
            R"(mov.u32 %r40, %r20; mov.u64 %d6, first; mov.u64 %d7, list;
$vertex: mad.wide.u32 %d5, %r40, 4, %d6; ld.global.u32 %r30, [%d5]; ld.global.u32 %r31, [%d5+4]; mov.u32 %r41, 0;
    add.u32 %r30, %r30, %r1;
$edges: setp.lt.u32 %p3, %r30, %r31; mov.u32 %r32, %r40; mad.wide.u32 %d8, %r30, 4, %d7; @%p3 ld.global.u32 %r32, [%d8];
    setp.lt.u32 %p4, %r40, %r32; barrier.red.popc.u32 %r33, 0, %p4; add.u32 %r41, %r41, %r33; add.u32 %r30, %r30, %r7;
    setp.lt.u32 %p5, %r30, %r31; barrier.red.or.pred %p6, 0, %p5; @%p6 bra $edges; @!%p1 bra $next;
    <red.global.add.u32 [%d3], %r41;|ld.global.u32 %r9, [%d3]; add.u32 %r9, %r9, %r41; st.global.u32 [%d3], %r9;>
$next: add.u32 %r40, %r40, 4; setp.lt.u32 %p7, %r40, 64; @%p7 bra $vertex;)",
            "of buffer 'flags'"),
    between("Indigo push to the neighbours: atomicBug", 2, 32,
            VERTEX EDGE("$edge") R"(setp.lt.u32 %p3, %r21, %r32; @!%p3 bra $skip;
    <red.global.min.u32 [%d9], %r21;|ld.global.u32 %r33, [%d9]; min.u32 %r33, %r33, %r21; st.global.u32 [%d9], %r33;> $skip:)" NEXT(
                "$edge", "lt"),
            "of buffer 'x' (4096 bytes) are not ordered"),
    between("Indigo3 push to the edges: NbrBoundsBug", 2, 32,
            VERTEX EDGE("$edge") "mad.wide.u32 %d9, %r30, 4, %d2; st.global.u32 [%d9], %r21; " NEXT("$edge", "<lt|le>"),
            "a race: a store and a store of 4 bytes"),
    between(
        "Indigo pull by a warp: a word of each vertex by one lane, and by all", 2, 64,
        R"(mov.u64 %d6, first; mov.u64 %d7, list; mad.lo.u32 %r40, %r20, 2, %r3;
$vertex: mad.wide.u32 %d5, %r40, 4, %d6; ld.global.u32 %r30, [%d5]; ld.global.u32 %r31, [%d5+4]; mov.u32 %r41, 0;
    add.u32 %r30, %r30, %r2; setp.lt.u32 %p3, %r30, %r31; @!%p3 bra $sum; mad.wide.u32 %d8, %r30, 4, %d7;
    ld.global.u32 %r32, [%d8]; mad.wide.u32 %d9, %r32, 4, %d2; ld.global.u32 %r41, [%d9]; $sum:)" SUM_OF_WARP("$fold")
            R"(mad.wide.u32 %d5, %r40, 4, %d2; <@!%p2 bra $next;|> ld.global.u32 %r9, [%d5+2048]; add.u32 %r9, %r9, %r41;
    add.u32 %r9, %r9, %r2; st.global.u32 [%d5+2048], %r9;
$next: add.u32 %r40, %r40, 4; setp.lt.u32 %p7, %r40, 16; @%p7 bra $vertex;)",
        "a race: a load and a store of 4 bytes"),
    between("Indigo pull by a block, shfl, persistent: a barrier before the next vertex, and none", 2, 64,
            R"(mov.u64 %d6, first; mov.u64 %d7, list; mov.u32 %r40, %r20;
$vertex: <bar.sync 0;|> mad.wide.u32 %d5, %r40, 4, %d6; ld.global.u32 %r30, [%d5]; ld.global.u32 %r31, [%d5+4];
    mov.u32 %r41, 0; add.u32 %r30, %r30, %r1; setp.lt.u32 %p3, %r30, %r31; @!%p3 bra $sum; mad.wide.u32 %d8, %r30, 4, %d7;
    ld.global.u32 %r32, [%d8]; mad.wide.u32 %d9, %r32, 4, %d2; ld.global.u32 %r41, [%d9]; $sum:)" SUM_OF_WARP("$fold")
                R"(shl.b32 %r44, %r3, 2; add.u32 %r44, %r44, %r5; @%p2 st.shared.u32 [%r44], %r41; bar.sync 0;
    setp.ne.u32 %p5, %r3, 0; @%p5 bra $next; setp.lt.u32 %p6, %r2, 2; mov.u32 %r41, 0; @%p6 ld.shared.u32 %r41, [%r4];)" SUM_OF_WARP(
                    "$again") R"(mad.wide.u32 %d5, %r40, 4, %d2; @%p1 st.global.u32 [%d5+2048], %r41;
$next: add.u32 %r40, %r40, 2; setp.lt.u32 %p7, %r40, 16; @%p7 bra $vertex;)",
            "'tile'"),
    // 1 is undecided, 2 is in the set, and 0 is not.
    between("Indigo3 MIS, push: RaceBug", 2, 32,
            VERTEX "ld." OF_STATUS " %r33, [%d4]; setp.ne.u32 %p3, %r33, 1; @%p3 bra $end; "
                   "mul.lo.u32 %r34, %r21, 0x9e3779b1; mov.u32 %r40, %r30; "  //
            EDGE("$edge") "ld." OF_STATUS " %r35, [%d9]; setp.eq.u32 %p4, %r35, 0; @%p4 bra $skip; "
                          "mul.lo.u32 %r36, %r32, 0x9e3779b1; setp.gt.u32 %p5, %r36, %r34; @%p5 bra $end; $skip: "  //
            NEXT("$edge", "lt") "st." OF_STATUS " [%d4], 2; mov.u32 %r30, %r40; "                                   //
            EDGE("$out") "st." OF_STATUS " [%d9], 0; " NEXT("$out", "lt"),
            "of buffer 'x'"),
    between("Indigo3 MST, sets that are joined: RaceBug", 2, 32,
            VERTEX "mov.u64 %d10, labels; " EDGE("$edge") "setp.lt.u32 %p3, %r21, %r32; @!%p3 bra $skip; " FIND(
                "%r21", "%r33", "$mine") FIND("%r32", "%r34", "$other")
                R"(setp.eq.u32 %p4, %r33, %r34; @%p4 bra $skip;
$join: max.u32 %r38, %r33, %r34; min.u32 %r33, %r33, %r34; mad.wide.u32 %d8, %r38, 4, %d10;
    atom.global.cas.b32 %r34, [%d8], %r38, %r33; setp.ne.u32 %p4, %r34, %r38; @%p4 bra $join; $skip:)" NEXT("$edge",
                                                                                                            "lt"),
            "'labels'"),
    between("Indigo3 PR, push: RaceBug", 2, 32,
            VERTEX "sub.u32 %r33, %r31, %r30; cvt.rn.f32.u32 %f1, %r33; mov.f32 %f2, 0f3f800000; "
                   "div.rn.f32 %f3, %f2, %f1; "  //
            EDGE("$edge") "<red.global.add.f32 [%d9], %f3;|ld.global.f32 %f4, [%d9]; add.f32 %f4, %f4, %f3; "
                          "st.global.f32 [%d9], %f4;>"  //
            NEXT("$edge", "lt"),
            "a race: a load and a store of 4 bytes"),
    between(
        "Indigo3 PR, sums of blocks: SyncBug", 2, 32,
        R"(@%p1 st.shared.u32 [tile], 0; bar.sync 0; )" VERTEX
        R"(ld.global.u32 %r33, [%d4]; sub.u32 %r34, %r31, %r30; mad.lo.u32 %r34, %r34, 3, %r33; st.global.u32 [%d4], %r34;
    sub.u32 %r34, %r34, %r33; red.shared.add.u32 [tile], %r34; <bar.sync 0;|> @!%p1 bra $end; ld.shared.u32 %r35, [tile];
    red.global.add.u32 [%d3], %r35;)",
        "an atomic and a load of 4 bytes"),
};

}  // namespace

TEST_CASE("races of the patterns in Indigo's suites") {
    const Graph graph;
    const std::string arrays = array("first", graph.first) + array("list", graph.list) + array("labels", graph.labels);
    for (const PtxTwins& each : indigo) check(each, arrays);
}

namespace {

using Edges = In<std::uint32_t>;
using Words = InOut<std::uint32_t>;

/// x begins with the parents of the graph's vertices, y with zeros; two blocks of 32 threads, one for each vertex.
struct Patterns {
    const char* name;
    std::function<void(bool is_right, const Edges& first, const Edges& list, const Words& x, const Words& y)> body;
    const char* says;
    std::uint32_t threads = 32;
};

void check(const Patterns& twins) {
    INFO(twins.name);
    const Graph graph;
    for (const bool is_right : {true, false}) {
        const auto twin =
            kernel("twin", params("first", "list", "x", "y"),
                   [&](Edges first, Edges list, Words x, Words y) { twins.body(is_right, first, list, x, y); });
        const auto found = testing::findings_in(
            [&](const Device& device) {
                const Buffer<std::uint32_t> first = device.upload(graph.first), list = device.upload(graph.list);
                Buffer<std::uint32_t> x = device.upload(graph.parents),
                                      y = device.upload(std::vector<std::uint32_t>(256));
                device.launch(twin, grid(64, twins.threads), first, list, x, y);
            },
            {.check = "strict,races", .target = "sm_80"});
        if (is_right)
            CHECK(found.text == "");
        else
            CHECK_THAT(found.text, tests::contains(twins.says));
    }
}

}  // namespace

TEST_CASE("races of the patterns in Indigo's suites, in the language") {
    const std::vector<Patterns> all = {
        {"Indigo conditional-edge: guardBug",
         [](bool is_right, const Edges& first, const Edges& list, const Words&, const Words& y) {
             u32 v = global_id().x;
             for (auto j : range(first[v], first[v + 1])) {
                 u32 w = list[j];
                 u32 largest;
                 if (is_right)
                     largest = atomic_load(y[0]);
                 else
                     largest = y[0];
                 if_(largest < w, [&] { atomic_max(y[0], w); });
             }
         },
         "of buffer"},
        {"Indigo populate-worklist: atomicBug",
         [](bool is_right, const Edges& first, const Edges& list, const Words&, const Words& y) {
             u32 v = global_id().x;
             for (auto j : range(first[v], first[v + 1])) {
                 if_(v < list[j], [&] {
                     u32 place;
                     if (is_right) {
                         place = atomic_add(y[0], 1);
                     } else {
                         place = y[0];
                         y[0] = place + 1;
                     }
                     y[1 + place] = j;
                 });
             }
         },
         "at offset 0 of buffer"},
        {"Indigo path-compression: raceBug",
         [](bool is_right, const Edges&, const Edges&, const Words& x, const Words&) {
             u32 v = global_id().x;
             const auto parent_of = [&](const u32& w) -> u32 {
                 if (is_right) return atomic_load(x[w]);
                 return x[w];
             };
             u32 at = v;
             u32 up = parent_of(at);
             while_([&] { return up < at; },
                    [&] {
                        at = up;
                        up = parent_of(at);
                    });
             if (is_right)
                 atomic_store(x[v], at);
             else
                 x[v] = at;
         },
         "are not ordered"},
        {"Indigo path-compression: traverse, in place",
         [](bool is_right, const Edges&, const Edges&, const Words& x, const Words& y) {
             u32 v = global_id().x;
             u32 at = v;
             while_([&] { return x[at] < at; }, [&] { at = x[at]; });
             if (is_right)
                 y[v] = at;
             else
                 x[v] = at;
         },
         "are not ordered"},
        {"Indigo pull by a block: syncBug",
         [](bool is_right, const Edges& first, const Edges& list, const Words& x, const Words& y) {
             Shared<std::uint32_t, 64> sums;
             u32 i = thread_id().x;
             for (int v = 10; v < 12; ++v) {
                 u32 sum = 0;
                 for (auto j : range(first[v] + i, first[v + 1], block_dim().x)) sum += x[list[j]];
                 sums[i] = sum;
                 if (is_right) sync_block();
                 for (int step = 32; step > 0; step /= 2) {
                     if_(i < u32(step), [&] { sums[i] = sums[i] + sums[i + step]; });
                     sync_block();
                 }
                 if_(i == 0, [&] { y[v] = sums[0]; });
             }
         },
         "in shared memory (256 bytes) are not ordered", 64},
        {"Indigo2 BFS by levels: a barrier after the loads, and none",
         [](bool is_right, const Edges& first, const Edges& list, const Words&, const Words& y) {
             Shared<std::uint32_t, 64> levels;
             u32 v = thread_id().x;
             levels[v] = select(v == 0, u32(0), u32(99));
             sync_block();
             for (auto round [[maybe_unused]] : range(3)) {
                 u32 minimum = levels[v];
                 for (auto j : range(first[v], first[v + 1])) minimum = min(minimum, levels[list[j]] + 1);
                 if (is_right) sync_block();
                 levels[v] = minimum;
                 sync_block();
             }
             y[v] = levels[v];
         },
         "in shared memory (256 bytes) are not ordered", 64},
        {"Indigo2 CC, pull: labels of the round before, and those that change",
         [](bool is_right, const Edges& first, const Edges& list, const Words& x, const Words& y) {
             u32 v = global_id().x;
             u32 minimum = x[v];
             for (auto j : range(first[v], first[v + 1])) minimum = min(minimum, x[list[j]]);
             if (is_right)
                 y[v] = minimum;
             else
                 x[v] = minimum;
         },
         "a race: a"},
    };
    for (const Patterns& each : all) check(each);
}
