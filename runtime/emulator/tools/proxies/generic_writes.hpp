// SPDX-License-Identifier: Apache-2.0
// What ordinary instructions of a block have written: of each word the last write, until it is known to be shown to the
// asynchronous proxy (proxies.hpp). Writes of other blocks are not noted.
#pragma once
#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "runtime/emulator/machine/block.hpp"
#include "runtime/emulator/tools/proxies/warp_order.hpp"

namespace ikat::emulator {

class GenericWrites {
public:
    static constexpr std::uint32_t word_bytes = 4;
    /// Who has written a word, by which op, and when (WarpOrder::now).
    struct Write {
        std::uint32_t thread = 0, op = 0, when = 0;
        bool by_checked = false;  // the op is of the checked code
    };

    GenericWrites(ThreadBlock& block, const WarpOrder& order) : block_(block), order_(order) {}
    /// A new block begins. Writes to global memory are noted if `has_global`.
    void clear(bool has_global);
    /// Places in shared memory are those in the bits of a variable's written bytes.
    void note(std::uint32_t thread, const DecodedKernel& code, const MicroOp* op, const std::uint8_t* bits,
              std::uint64_t at, std::uint64_t count);
    void note_global(std::uint32_t thread, const DecodedKernel& code, const MicroOp* op, std::uint64_t address,
                     std::uint64_t count);
    /// An operation that is no ordinary instruction writes them.
    void forget(const std::uint8_t* bits, std::uint64_t at, std::uint64_t count) { fill(bits, at, count, 0); }
    void forget_global(std::uint64_t address, std::uint64_t count) {
        if (!pages_.empty()) fill_global(address, count, 0);
    }
    bool has_global() const { return !pages_.empty(); }
    /// Whether nothing is known about 16 bytes, from one of offset 0 of the bits on.
    bool is_clear(const std::uint8_t* bits) const {
        const std::uint64_t* const four = words_.data() + 2 * (bits - written_);
        return (four[0] | four[1] | four[2] | four[3]) == 0;
    }
    /// The write of the word at offset `at`; nothing if none is known.
    std::optional<Write> at(const std::uint8_t* bits, std::uint64_t at) const {
        return write_of(words_[index(bits, at)]);
    }
    /// ... in global memory, at a multiple of 4, from an address on, up to an end; the address moves to it.
    std::optional<Write> next_global(std::uint64_t& address, std::uint64_t end) const;

private:
    // A word is the thread + 1, the place of the op and when it was written; 0: nothing.
    static constexpr int place_at = 32, thread_at = 53;
    std::size_t index(const std::uint8_t* bits, std::uint64_t at) const {
        return (8 * std::uint64_t(bits - written_) + at) / word_bytes;
    }
    std::uint64_t word_of(std::uint32_t thread, const DecodedKernel& code, const MicroOp* op) const;
    static std::optional<Write> write_of(std::uint64_t word);
    void fill(const std::uint8_t* bits, std::uint64_t at, std::uint64_t count, std::uint64_t word);
    void fill_global(std::uint64_t address, std::uint64_t count, std::uint64_t word);

    ThreadBlock& block_;
    const WarpOrder& order_;
    const std::uint8_t* written_ = nullptr;
    std::vector<std::uint64_t> words_;  // of shared memory, of 4 bytes each
    static constexpr std::uint64_t page_bits = 12;
    using Page = std::array<std::uint64_t, (std::uint64_t{1} << page_bits) / word_bytes>;
    std::unordered_map<std::uint64_t, std::unique_ptr<Page>> pages_;  // of global memory, by number
    bool has_global_ = false;
};

}  // namespace ikat::emulator
