// SPDX-License-Identifier: Apache-2.0
#include "runtime/emulator/tools/proxies/generic_writes.hpp"

#include <algorithm>

namespace ikat::emulator {

namespace {

constexpr std::uint32_t checked_place = 1u << 20;  // of an op of the checked code

}  // namespace

void GenericWrites::clear(bool has_global) {
    has_global_ = has_global;
    pages_.clear();
    const std::span<const std::uint8_t> written = block_.shared_written();
    written_ = written.data();
    words_.assign(2 * written.size() + 4, 0);  // a bit for each byte
}

std::uint64_t GenericWrites::word_of(std::uint32_t thread, const DecodedKernel& code, const MicroOp* op) const {
    const std::uint64_t place =
        (std::uint64_t(op - code.code.data()) & (checked_place - 1)) | (code.is_checked() ? checked_place : 0);
    return std::uint64_t(thread + 1) << thread_at | place << place_at | order_.now();
}

std::optional<GenericWrites::Write> GenericWrites::write_of(std::uint64_t word) {
    if (!word) return {};
    const auto place = std::uint32_t(word >> place_at);
    return Write{.thread = std::uint32_t(word >> thread_at) - 1,
                 .op = place & (checked_place - 1),
                 .when = std::uint32_t(word),
                 .by_checked = (place & checked_place) != 0};
}

void GenericWrites::fill(const std::uint8_t* bits, std::uint64_t at, std::uint64_t count, std::uint64_t word) {
    const auto first = words_.begin() + std::ptrdiff_t(index(bits, at));
    std::fill(first, words_.begin() + std::ptrdiff_t(index(bits, at + count + word_bytes - 1)), word);
}

void GenericWrites::fill_global(std::uint64_t address, std::uint64_t count, std::uint64_t word) {
    for (std::uint64_t at = address / word_bytes, end = (address + count + word_bytes - 1) / word_bytes; at < end;
         ++at) {
        const std::uint64_t number = at * word_bytes >> page_bits;
        auto found = pages_.find(number);
        if (found == pages_.end()) {
            if (!word) continue;
            found = pages_.emplace(number, std::make_unique<Page>()).first;
        }
        (*found->second)[at % found->second->size()] = word;
    }
}

void GenericWrites::note(std::uint32_t thread, const DecodedKernel& code, const MicroOp* op, const std::uint8_t* bits,
                         std::uint64_t at, std::uint64_t count) {
    fill(bits, at, count, word_of(thread, code, op));
}

void GenericWrites::note_global(std::uint32_t thread, const DecodedKernel& code, const MicroOp* op,
                                std::uint64_t address, std::uint64_t count) {
    if (has_global_) fill_global(address, count, word_of(thread, code, op));
}

std::optional<GenericWrites::Write> GenericWrites::next_global(std::uint64_t& address, std::uint64_t end) const {
    for (; address < end; address += word_bytes) {
        const auto page = pages_.find(address >> page_bits);
        if (page == pages_.end()) {
            address |= (std::uint64_t{1} << page_bits) - word_bytes;
            continue;
        }
        if (const auto write = write_of((*page->second)[address / word_bytes % page->second->size()])) return write;
    }
    return {};
}

}  // namespace ikat::emulator
