// SPDX-License-Identifier: Apache-2.0
#include "runtime/facts/launch_view.hpp"

#include <algorithm>
#include <utility>

namespace ikat::emulator {

std::vector<std::size_t> outwards(std::span<const std::uint64_t> pitches) {
    std::vector<std::size_t> out;
    for (std::size_t d = pitches.size(); d-- > 0;) out.push_back(d);
    std::ranges::sort(out, {}, [&](std::size_t d) { return std::pair(pitches[d], pitches.size() - d); });
    return out;
}

}  // namespace ikat::emulator
