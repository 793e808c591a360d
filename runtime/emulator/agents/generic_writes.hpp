// SPDX-License-Identifier: Apache-2.0
// Shared memory that ordinary instructions have written, in kernels with products of matrices in flight, which read it
// by another way, the asynchronous proxy (PTX ISA, "Proxies"). Between the write and the product there must be a
// fence.proxy.async: of the thread that has written, or of the warp that reads.
//
// The decoder inserts note_generic_write before each op that writes shared memory, and fence_proxies for the fence.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "runtime/emulator/machine/machine.hpp"

namespace ikat::emulator {

/// d bytes are about to be written at address a + x, which has y bytes, in space c, by the lanes b.
const MicroOp* note_generic_write(const MicroOp* op, Warp* w, std::byte* frame, std::uint32_t mask);
/// fence.proxy.async
const MicroOp* fence_proxies(const MicroOp* op, Warp* w, std::byte* frame, std::uint32_t mask);

class GenericWrites {
public:
    /// A new block begins, of which these bits tell the written bytes of shared memory. Writes are noted if `is_used`.
    void clear(const std::vector<std::uint8_t>& written, std::size_t threads, bool is_used);
    bool is_used() const { return is_used_; }
    /// Places are those in the bits of a variable's written bytes.
    void note(std::uint32_t thread, const std::uint8_t* bits, std::uint64_t at, std::uint64_t count) {
        if (is_used_) fill(bits, at, count, std::uint64_t(thread + 1) << number_bits | fences_);
    }
    /// A copy that is no ordinary instruction writes them.
    void forget(const std::uint8_t* bits, std::uint64_t at, std::uint64_t count) {
        if (is_used_) fill(bits, at, count, 0);
    }
    void fence(const Warp* w, std::uint32_t lanes);
    /// Whether nothing is known about 16 bytes.
    bool is_clear(const std::uint8_t* bits) const {
        const std::uint64_t* const four = words_.data() + 2 * (bits - written_);
        return (four[0] | four[1] | four[2] | four[3]) == 0;
    }
    /// A thread that has written some of 16 bytes which a warp is about to read, without a fence of either. What has
    /// been fenced is forgotten.
    std::optional<std::uint32_t> unfenced(const Warp* reader, const std::uint8_t* bits, std::uint64_t at);

private:
    static constexpr int number_bits = 48;
    void fill(const std::uint8_t* bits, std::uint64_t at, std::uint64_t count, std::uint64_t word);

    const std::uint8_t* written_ = nullptr;
    std::vector<std::uint64_t>
        words_;  // of 4 bytes each: the thread + 1, and how many fences there had been; 0: nothing
    std::vector<std::uint64_t> fenced_;  // by thread: the number of its last fence
    std::uint64_t fences_ = 0;           // of the block, by warps
    bool is_used_ = false;
};

}  // namespace ikat::emulator
