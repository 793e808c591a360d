// SPDX-License-Identifier: Apache-2.0
// Where the parameters of entries lie, for those that the driver must be given one by one.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "runtime/backend.hpp"

namespace ikat::runtime::cuda {

/// Where the parameters of an entry start in the bytes of a launch, and how many bytes they take.
struct Layout {
    std::vector<std::uint64_t> offsets;
    std::uint64_t bytes = 0;
};
using Layouts = std::map<std::string, Layout, std::less<>>;  // by the entry's name

/// The driver takes parameters in one piece, but then each where it has it itself, which depends on the device: after
/// 0x210 bytes of its own on sm_90, which are no multiple of 32. It is those of wide parameters that are given one by
/// one.
Layouts layouts_of(const PtxText& ptx);

}  // namespace ikat::runtime::cuda
