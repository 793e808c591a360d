// SPDX-License-Identifier: Apache-2.0
#include "runtime/emulator/core/memory/variables.hpp"

namespace ikat::emulator {

NamedRange& Variables::add(std::string_view name, std::uint64_t bytes, std::uint64_t alignment) {
    packed = rounded_up(packed, alignment);
    ranges.push_back({.name = std::string(name), .address = next_address(), .bytes = bytes, .host = host_bytes});
    cells += ((packed_bits() + bytes) >> Cells::bits) + 2;
    if (are_described) cells = rounded_up(cells, described_bytes >> Cells::bits);
    packed += bytes;
    host_bytes = rounded_up(host_bytes + bytes, 64);
    return ranges.back();
}

std::vector<View> Variables::views(std::byte* host, std::uint64_t lane_stride, bool writable,
                                   std::uint8_t* written) const {
    std::vector<View> out(cells + 1);
    for (std::size_t i = 0; i < ranges.size(); ++i) {
        const NamedRange& range = ranges[i];
        const std::uint64_t end = i + 1 < ranges.size() ? ranges[i + 1].address >> Cells::bits : cells;
        std::uint8_t* const bits = written ? written + range.host / 8 : nullptr;
        for (std::uint64_t cell = range.address >> Cells::bits; cell < end; ++cell)
            out[cell] = {host + range.host, range.address, range.bytes, lane_stride,
                         writable,          bits,          bits,        FaultCode::ReadOnly};
    }
    return out;
}

const NamedRange* Variables::nearest(std::uint64_t address) const {
    const NamedRange* best = nullptr;
    std::uint64_t shortest = ~std::uint64_t{0};
    for (const NamedRange& range : ranges) {
        const std::uint64_t end = range.address + range.bytes;
        // before the first variable an address of 32 bits is negative
        const std::uint64_t before = std::uint32_t(range.address - address);
        const std::uint64_t away = address < range.address || address >> 31 ? before
                                   : address < end                          ? 0
                                                                            : address - end;
        if (away < shortest) best = &range, shortest = away;
    }
    return best;
}

}  // namespace ikat::emulator
