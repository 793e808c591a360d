// SPDX-License-Identifier: Apache-2.0
// Where the variables of shared, local and constant memory are. A device lays them out one behind the other; here each
// has cells of 64 KiB of addresses to itself, with nothing behind it for a cell at least:
//
//     | tile ....            |                      | sums ..              |
//     0                      0x10000                0x20000
//
// so an index beyond an array never lands in the next one, and the bounds of an access are those of the variable. What
// counts against a limit is the sum as a device has it, and an address is aligned as it would be there: the low bits
// are those of the packed place.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "runtime/emulator/machine/memory.hpp"

namespace ikat::emulator {

constexpr std::uint64_t rounded_up(std::uint64_t n, std::uint64_t to) { return (n + to - 1) / to * to; }

struct NamedRange {
    std::string name;
    std::uint64_t address = 0, bytes = 0;
    std::uint64_t host = 0;  // where its bytes begin on the host
};

struct Variables {
    std::vector<NamedRange> ranges;  // by address
    std::uint64_t packed = 0;        // bytes on a device
    std::uint64_t host_bytes = 0;    // a multiple of 64
    std::uint64_t cells = 0;

    /// Where one that is added now has its address.
    std::uint64_t next_address() const { return (cells << Cells::bits) + packed % 256; }
    NamedRange& add(std::string_view name, std::uint64_t bytes, std::uint64_t alignment);
    /// The variable of each cell, and last one of nothing. `written` has a bit for each byte; nullptr: all have been.
    std::vector<View> views(std::byte* host, std::uint64_t lane_stride, bool writable,
                            std::uint8_t* written = nullptr) const;
    /// The one that an address lies in or nearest to, or nullptr.
    const NamedRange* nearest(std::uint64_t address) const;
};

inline Cells cells_of(const View* views, const Variables& variables) { return {views, variables.cells}; }

}  // namespace ikat::emulator
