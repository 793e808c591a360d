// SPDX-License-Identifier: Apache-2.0
// The instruction sets of the emulator, one after the other.
//
//     for (const std::int64_t target : tests::targets()) {
//         const tests::OnTarget chosen(target);
//         ...
//     }
#pragma once
#include <cstdint>
#include <vector>

#include "runtime/emulator/ops/dispatch.hpp"

namespace ikat::tests {

/// The instruction sets the handlers are built for, best first.
inline std::vector<std::int64_t> targets() {
    std::vector<std::int64_t> list;
    for (const std::int64_t target : {std::int64_t(HWY_AVX3), std::int64_t(HWY_AVX2), std::int64_t(HWY_STATIC_TARGET)})
        if ((emulator::machine_targets() & target) || target == HWY_STATIC_TARGET) list.push_back(target);
    return list;
}

/// Kernels that are decoded while it lives use this one.
struct OnTarget {
    explicit OnTarget(std::int64_t target) { emulator::limit_targets(target); }
    ~OnTarget() { emulator::limit_targets(emulator::all_targets); }
};

}  // namespace ikat::tests
