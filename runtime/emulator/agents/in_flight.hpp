// SPDX-License-Identifier: Apache-2.0
// The bytes of a block's shared memory to which copies are in flight, by threads (async_copies.hpp) or in bulk
// (bulk_copies.hpp). They count as unwritten until the copy has been waited for.
#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

#include "runtime/emulator/machine/written.hpp"

namespace ikat::nvptx {
struct Instruction;
}

namespace ikat::emulator {

class ThreadBlock;

/// What a copy in flight is, in messages.
struct Flight {
    const nvptx::Instruction* instruction = nullptr;
    ThreadBlock* by = nullptr;  // the block of the thread that has started it
    std::uint32_t warp = 0, lane = 0;
    bool is_bulk = false;
};

class InFlight {
public:
    /// A new block begins, of which these bits tell the written bytes of shared memory.
    void clear(std::vector<std::uint8_t>& written) {
        written_ = &written;
        found = nullptr;
        if (is_used_) std::ranges::fill(flags_, std::uint8_t{0});
        is_used_ = false;
    }
    /// Places are those in the bits of a variable's written bytes.
    bool any(const std::uint8_t* bits, std::uint64_t at, std::uint64_t count) const {
        return is_used_ && written::any(flags_.data() + (bits - written_->data()), at, count);
    }
    void begin(std::uint8_t* bits, std::uint64_t at, std::uint64_t count) {
        is_used_ = true;
        flags_.resize(written_->size());
        written::set(bits, at, count, false, false);
        written::set(flags_.data() + (bits - written_->data()), at, count, false);
    }
    void end(const std::uint8_t* bits, std::uint64_t at, std::uint64_t count) {
        written::set(flags_.data() + (bits - written_->data()), at, count, false, false);
    }

    const Flight* found = nullptr;  // that a finding is about

private:
    std::vector<std::uint8_t>* written_ = nullptr;
    std::vector<std::uint8_t> flags_;  // laid out like the bits of written bytes
    bool is_used_ = false;
};

}  // namespace ikat::emulator
