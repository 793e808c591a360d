// SPDX-License-Identifier: Apache-2.0
// The host's memory of a buffer. Large pieces have pages of their own only where something writes:
//
//     allocated    zero pages                                    what is only zeroed is never touched
//     poisoned     the pages of one small file, again and again  a write copies the page that it meets
#pragma once
#include <cstddef>

namespace ikat::emulator {

struct HostMemory {
    std::byte* begin = nullptr;  // aligned to 256 bytes; null if there is no memory
    std::size_t bytes = 0;
    bool is_mapped = false;  // whole pages of its own

    explicit operator bool() const { return begin; }
};

/// Zeroed memory; none if the host has not as much.
HostMemory allocate_host(std::size_t bytes);
void release_host(const HostMemory& memory) noexcept;

/// Fills it with 0xff: a NaN in every float type, -1 in every signed integer.
void poison_host(const HostMemory& memory);

}  // namespace ikat::emulator
