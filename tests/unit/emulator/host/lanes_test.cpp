// SPDX-License-Identifier: Apache-2.0
// Lanes order exactly what the graph does, against the definition: all paths of random graphs.
#include "runtime/emulator/host/graphs/lanes.hpp"

#include <catch2/catch.hpp>
#include <random>
#include <set>
#include <vector>

using namespace ikat::emulator;

namespace {
namespace lanes_test {

using After = std::vector<std::vector<std::uint32_t>>;

/// What each node comes after, by any path.
std::vector<std::set<std::uint32_t>> closure(const After& after) {
    std::vector<std::set<std::uint32_t>> out(after.size());
    for (std::size_t i = 0; i < after.size(); ++i)
        for (const std::uint32_t before : after[i]) {
            out[i].insert(before);
            out[i].insert(out[before].begin(), out[before].end());
        }
    return out;
}

After random_graph(std::mt19937& random) {
    After out(1 + random() % 24);
    for (std::uint32_t i = 1; i < out.size(); ++i) {
        std::set<std::uint32_t> before;
        for (unsigned edges = random() % 4; edges > 0; --edges) before.insert(std::uint32_t(random() % i));
        out[i].assign(before.begin(), before.end());
    }
    return out;
}

}  // namespace lanes_test
}  // namespace

TEST_CASE("lanes: a chain is one lane, and a fork takes another") {
    const Lanes lanes = lanes_of(lanes_test::After{{}, {0}, {0}, {1, 2}});
    REQUIRE(lanes.nodes.size() == 4);
    CHECK(lanes.ends == std::vector<std::uint32_t>{3, 2});
    CHECK(lanes.nodes[2].lane == 1);
    CHECK(lanes.nodes[2].waits_for == std::vector<std::uint32_t>{0});
    CHECK(lanes.nodes[3].waits_for == std::vector<std::uint32_t>{2});
    CHECK(lanes.nodes[0].is_waited_for);
    CHECK_FALSE(lanes.nodes[1].is_waited_for);
    CHECK(lanes_of({}).nodes.empty());
}

TEST_CASE("lanes: streams and events order what the graph orders, and no more") {
    std::mt19937 random(7);
    for (int i = 0; i < 500; ++i) {
        const lanes_test::After graph = lanes_test::random_graph(random);
        const Lanes lanes = lanes_of(graph);
        lanes_test::After by_lanes(graph.size());
        std::vector<std::uint32_t> last(lanes.ends.size(), ~0u);
        for (std::uint32_t n = 0; n < graph.size(); ++n) {
            const Lanes::Node& node = lanes.nodes[n];
            if (last[node.lane] != ~0u) by_lanes[n].push_back(last[node.lane]);
            for (const std::uint32_t before : node.waits_for) {
                CHECK(lanes.nodes[before].is_waited_for);
                by_lanes[n].push_back(before);
            }
            last[node.lane] = n;
        }
        CHECK(lanes_test::closure(by_lanes) == lanes_test::closure(graph));
        CHECK(last == lanes.ends);
    }
}
