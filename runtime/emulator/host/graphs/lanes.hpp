// SPDX-License-Identifier: Apache-2.0
// The nodes of a graph on streams: each lane is a stream of its own, and events order nodes of different lanes.
//
//     const Lanes lanes = lanes_of(std::vector<std::vector<std::uint32_t>>{{}, {0}, {0}, {1, 2}});
//     // nodes 0, 1 and 3 are on lane 0, node 2 on lane 1; node 2 waits for 0, and node 3 for 2
#pragma once
#include <cstdint>
#include <span>
#include <vector>

namespace ikat::emulator {

struct Lanes {
    struct Node {
        std::uint32_t lane = 0;
        std::vector<std::uint32_t> waits_for{};  // nodes of other lanes
        bool is_waited_for = false;              // by a node of another lane
    };
    std::vector<Node> nodes;
    std::vector<std::uint32_t> ends;  // the last node of each lane, which the end of the graph is after
};

/// `after` has for each node those that it comes after; these are before it in the list.
Lanes lanes_of(std::span<const std::vector<std::uint32_t>> after);

}  // namespace ikat::emulator
