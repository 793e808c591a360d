// SPDX-License-Identifier: Apache-2.0
#include "runtime/emulator/machine/cluster.hpp"

namespace ikat::emulator {

namespace {

using Coordinates = std::array<std::uint32_t, 3>;

Coordinates coordinates_in(const Coordinates& extents, std::uint64_t index) {
    return {std::uint32_t(index % extents[0]), std::uint32_t(index / extents[0] % extents[1]),
            std::uint32_t(index / extents[0] / extents[1])};
}

}  // namespace

Cluster::Cluster(LaunchState& state) : state_(state) {
    for (std::uint32_t rank = 0; rank < state.kernel.blocks_in_cluster(); ++rank)
        blocks_.emplace_back(state, rank, blocks_);
}

void Cluster::start(std::uint64_t number) {
    const Coordinates &size = state_.kernel.cluster, &grid = state_.launch.grid;
    const Coordinates at = coordinates_in({grid[0] / size[0], grid[1] / size[1], grid[2] / size[2]}, number);
    for (std::uint32_t rank = 0; rank < blocks_.size(); ++rank) {
        const Coordinates in = coordinates_in(size, rank);
        blocks_[rank].start({at[0] * size[0] + in[0], at[1] * size[1] + in[1], at[2] * size[2] + in[2]});
    }
    running_ = (1u << blocks_.size()) - 1;
}

}  // namespace ikat::emulator
