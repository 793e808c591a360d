// SPDX-License-Identifier: Apache-2.0
// A copy of a piece of memory, with what is known of it.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "runtime/emulator/core/memory/written.hpp"

namespace ikat::emulator {

struct Image {
    std::vector<std::byte> bytes;
    std::vector<std::uint8_t> written;  // a bit for each byte: whether something has written it

    /// Of this many bytes, all written.
    explicit Image(std::size_t count = 0) : bytes(count), written(count / 8 + 2, 0xff) {}
    /// Takes the bits of a part from those of a buffer or variable; nullptr: all are written.
    void take_written(std::size_t at, const std::uint8_t* bits, std::uint64_t from, std::size_t count) {
        if (bits) written::copy(written.data(), at, bits, from, count);
    }
};

}  // namespace ikat::emulator
