// SPDX-License-Identifier: Apache-2.0
// Where the parameters of entries lie, for those that the driver must be given one by one.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
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

/// The parameters of a launch as the driver takes them: each by its offset, or, if none are given, in one piece. Refers
/// to the bytes.
class LaunchParameters {
public:
    LaunchParameters(std::span<const std::byte> bytes, std::span<const std::uint64_t> offsets);
    LaunchParameters(const LaunchParameters&) = delete;
    LaunchParameters& operator=(const LaunchParameters&) = delete;

    void** one_by_one() { return pointers_.empty() ? nullptr : pointers_.data(); }
    void** in_one_piece() { return bytes_ > 0 && pointers_.empty() ? piece_ : nullptr; }

private:
    std::size_t bytes_;
    std::vector<void*> pointers_;
    void* piece_[5];
};

}  // namespace ikat::runtime::cuda
