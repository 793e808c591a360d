// SPDX-License-Identifier: Apache-2.0
// The addresses of variables in shared, local and constant memory. A device packs them; here each variable has its own
// cells of 64 KiB of addresses, followed by at least one empty cell:
//
//     | tile ....            |                      | sums ..              |
//     0                      0x10000                0x20000
// so an index beyond an array never lands in the next one, and an access is checked against the bounds of the variable.
// Limits apply to the packed size, as on a device, and addresses have the same alignment as there: their low bits are
// those of the packed address. If a kernel uses descriptors of shared memory, which have 18 bits of an address, all of
// these are, and variables are 256 KiB apart.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "runtime/emulator/core/memory/memory.hpp"

namespace ikat::emulator {

constexpr std::uint64_t rounded_up(std::uint64_t n, std::uint64_t to) { return (n + to - 1) / to * to; }

struct NamedRange {
    std::string name;
    std::uint64_t address = 0, bytes = 0;
    std::uint64_t host = 0;  // start of its bytes on the host
    std::uint32_t line = 0;  // of its declaration in the PTX; 0: none
};

struct Variables {
    std::vector<NamedRange> ranges;  // by address
    std::uint64_t packed = 0;        // bytes on a device
    std::uint64_t host_bytes = 0;    // a multiple of 64
    std::uint64_t cells = 0;
    bool are_described = false;  // by descriptors

    static constexpr std::uint64_t described_bytes = 1 << 18;
    /// The packed address, if they are described.
    static constexpr std::uint64_t on_device(std::uint64_t address) { return address % described_bytes; }
    /// The address of the next variable to be added.
    std::uint64_t next_address() const { return (cells << Cells::bits) + packed_bits(); }
    NamedRange& add(std::string_view name, std::uint64_t bytes, std::uint64_t alignment);
    /// The view of each cell, followed by an empty view. `written` has a bit for each byte; nullptr: all are written.
    std::vector<View> views(std::byte* host, std::uint64_t lane_stride, bool writable,
                            std::uint8_t* written = nullptr) const;
    /// The variable that contains an address or is nearest to it, or nullptr.
    const NamedRange* nearest(std::uint64_t address) const;

private:
    std::uint64_t packed_bits() const { return packed % (are_described ? described_bytes : 256); }
};

inline Cells cells_of(const View* views, const Variables& variables) { return {views, variables.cells}; }

}  // namespace ikat::emulator
