// SPDX-License-Identifier: Apache-2.0
#include "runtime/emulator/host/graphs/lanes.hpp"

#include <algorithm>

namespace ikat::emulator {

Lanes lanes_of(std::span<const std::vector<std::uint32_t>> after) {
    Lanes out;
    out.nodes.resize(after.size());
    for (std::uint32_t i = 0; i < after.size(); ++i) {
        Lanes::Node& node = out.nodes[i];
        const auto is_end = [&](std::uint32_t before) { return out.ends[out.nodes[before].lane] == before; };
        if (const auto found = std::ranges::find_if(after[i], is_end); found != after[i].end()) {
            node.lane = out.nodes[*found].lane;
            out.ends[node.lane] = i;
        } else {
            node.lane = std::uint32_t(out.ends.size());
            out.ends.push_back(i);
        }
        for (const std::uint32_t before : after[i]) {
            if (out.nodes[before].lane == node.lane) continue;
            node.waits_for.push_back(before);
            out.nodes[before].is_waited_for = true;
        }
    }
    return out;
}

}  // namespace ikat::emulator
