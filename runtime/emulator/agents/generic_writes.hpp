// SPDX-License-Identifier: Apache-2.0
// What ordinary instructions of a block have written, in kernels with products in flight or bulk copies, which access
// memory by another way, the asynchronous proxy (PTX ISA, "Proxies"). Between the write and what reads or overwrites
// it by that way there must be a fence.proxy.async: of the thread that has written, of the one that starts the
// operation, or of a thread that has met the first before it meets the second (warp_order.hpp). Whether the threads
// meet between write, fence and operation is not checked if the fence is of one of the two: in some orders of the warps
// it comes too early.
//
// The decoder inserts note_generic_write before each op that writes shared or global memory, and fence_proxies for the
// fences. Writes of other blocks are not noted.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "runtime/emulator/agents/warp_order.hpp"

namespace ikat::nvptx {
struct Instruction;
}

namespace ikat::emulator {

/// d bytes are about to be written at address a + x, which has y bytes, in space c, by the lanes b.
const MicroOp* note_generic_write(const MicroOp* op, Warp* w, std::byte* frame, std::uint32_t mask);

class GenericWrites {
public:
    /// An op as writes note it.
    static std::uint32_t place(const Warp* w, const MicroOp* op);
    /// Who reads or overwrites by the asynchronous proxy: a lane, or all of a warp.
    struct Issuer {
        const MicroOp* op;
        Warp* w;
        std::optional<unsigned> lane{};
    };

    explicit GenericWrites(ThreadBlock& block) : block_(block) {}
    /// A new block begins, of which these bits tell the written bytes of shared memory. Writes are noted if
    /// `is_used`, and those to global memory if `has_global`.
    void clear(const std::vector<std::uint8_t>& written, bool is_used, bool has_global);
    /// Places in shared memory are those in the bits of a variable's written bytes.
    void note(std::uint32_t thread, std::uint32_t place, const std::uint8_t* bits, std::uint64_t at,
              std::uint64_t count);
    void note_global(std::uint32_t thread, std::uint32_t place, std::uint64_t address, std::uint64_t count);
    /// A copy that is no ordinary instruction writes them.
    void forget(const std::uint8_t* bits, std::uint64_t at, std::uint64_t count) {
        if (is_used_) fill(bits, at, count, 0);
    }
    void forget_global(std::uint64_t address, std::uint64_t count) {
        if (!pages_.empty()) fill_global(address, count, 0);
    }
    /// Whether nothing is known about 16 bytes.
    bool is_clear(const std::uint8_t* bits) const {
        const std::uint64_t* const four = words_.data() + 2 * (bits - written_);
        return (four[0] | four[1] | four[2] | four[3]) == 0;
    }
    /// Whether all writes to these bytes are shown to the operation of an issuer. If not, the finding, of the code, has
    /// the first word that is not, at the issuer's address of it, and what the operation does with it.
    bool is_shown(const Issuer& issuer, FaultCode code, const char* does, const std::uint8_t* bits, std::uint64_t at,
                  std::uint64_t count, Space space, std::uint64_t address);
    bool is_shown_global(const Issuer& issuer, Shown shown, const char* does, std::uint64_t address,
                         std::uint64_t count);
    /// The same of a barrier in its shared memory at which a copy arrives.
    bool is_shown_barrier(const Issuer& issuer, std::uint32_t thread, std::uint32_t when,
                          const nvptx::Instruction* made, std::uint64_t address);

    /// The write that a finding is about.
    struct Found {
        const ThreadBlock* by = nullptr;
        std::uint32_t thread = 0;
        const nvptx::Instruction* instruction = nullptr;
    };
    Found found{};

private:
    // A word is the thread + 1, the place and when it was written; 0: nothing.
    static constexpr int place_at = 32, thread_at = 53;
    std::uint64_t word_of(std::uint32_t thread, std::uint32_t place) const;
    static std::uint32_t thread_of(std::uint64_t word) { return std::uint32_t(word >> thread_at) - 1; }
    void fill(const std::uint8_t* bits, std::uint64_t at, std::uint64_t count, std::uint64_t word);
    void fill_global(std::uint64_t address, std::uint64_t count, std::uint64_t word);
    bool is_shown_word(const Issuer& issuer, Shown shown, std::uint32_t thread, std::uint32_t when) const;
    bool find(const Issuer& issuer, Fault fault, std::string what, std::uint64_t word);

    ThreadBlock& block_;
    const std::uint8_t* written_ = nullptr;
    std::vector<std::uint64_t> words_;  // of shared memory, of 4 bytes each
    static constexpr std::uint64_t page_bits = 12;
    using Page = std::array<std::uint64_t, (std::uint64_t{1} << page_bits) / 4>;
    std::unordered_map<std::uint64_t, std::unique_ptr<Page>> pages_;  // of global memory, by number
    bool is_used_ = false, has_global_ = false;
};

}  // namespace ikat::emulator
