// SPDX-License-Identifier: Apache-2.0
#include "runtime/emulator/agents/generic_writes.hpp"

#include <algorithm>
#include <bit>

#include "runtime/emulator/machine/block.hpp"

namespace ikat::emulator {

void GenericWrites::clear(const std::vector<std::uint8_t>& written, std::size_t threads, bool is_used) {
    is_used_ = is_used;
    if (!is_used) return;
    written_ = written.data();
    words_.assign(2 * written.size() + 4, 0);  // a bit for each byte
    fenced_.assign(threads, 0);
    fences_ = 0;
}

void GenericWrites::fill(const std::uint8_t* bits, std::uint64_t at, std::uint64_t count, std::uint64_t word) {
    const std::uint64_t first = 8 * std::uint64_t(bits - written_) + at;
    std::fill(words_.begin() + std::ptrdiff_t(first / 4), words_.begin() + std::ptrdiff_t((first + count + 3) / 4),
              word);
}

void GenericWrites::fence(const Warp* w, std::uint32_t lanes) {
    if (!is_used_) return;
    ++fences_;
    for (std::uint32_t rest = lanes; rest; rest &= rest - 1)
        fenced_[w->index * warp_size + unsigned(std::countr_zero(rest))] = fences_;
}

std::optional<std::uint32_t> GenericWrites::unfenced(const Warp* reader, const std::uint8_t* bits, std::uint64_t at) {
    const auto of_reader = fenced_.begin() + reader->index * warp_size;
    const std::uint64_t last = *std::max_element(of_reader, of_reader + warp_size);
    std::uint64_t* const four = words_.data() + (8 * std::uint64_t(bits - written_) + at) / 4;
    for (unsigned i = 0; i < 4; ++i) {
        if (!four[i]) continue;
        const auto thread = std::uint32_t(four[i] >> number_bits) - 1;
        const std::uint64_t before = four[i] & ((std::uint64_t{1} << number_bits) - 1);
        if (std::max(last, fenced_[thread]) <= before) return thread;
        four[i] = 0;
    }
    return {};
}

namespace {

[[gnu::noinline]] void note_write(const MicroOp* op, const Warp* w, const std::byte* frame, std::uint32_t mask) {
    for (std::uint32_t rest = mask & op->b; rest; rest &= rest - 1) {
        const auto lane = unsigned(std::countr_zero(rest));
        const std::uint64_t base = op->y == 8 ? reinterpret_cast<const std::uint64_t*>(frame + op->a)[lane]
                                              : reinterpret_cast<const std::uint32_t*>(frame + op->a)[lane];
        std::uint64_t address = with_offset(op, Space(op->c), base);
        if (Space(op->c) == Space::Generic) {
            if (address >> window_bits != std::uint64_t(Space::Shared)) continue;
            address &= window_bytes - 1;
        }
        const View& view = w->windows[int(Space::Shared)].at(address);
        const std::uint64_t at = address - view.base;
        if (view.bytes < op->d || at > view.bytes - op->d) continue;  // of another block, or a finding
        w->block->generic_writes.note(w->index * warp_size + lane, view.bits, at, op->d);
    }
}

}  // namespace

const MicroOp* note_generic_write(const MicroOp* op, Warp* w, std::byte* frame, std::uint32_t mask) {
    note_write(op, w, frame, mask);
    IKAT_NEXT;
}

const MicroOp* fence_proxies(const MicroOp* op, Warp* w, [[maybe_unused]] std::byte* frame, std::uint32_t mask) {
    w->block->generic_writes.fence(w, mask);
    IKAT_NEXT;
}

}  // namespace ikat::emulator
