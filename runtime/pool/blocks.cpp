// SPDX-License-Identifier: Apache-2.0
#include "runtime/pool/blocks.hpp"

#include <algorithm>
#include <bit>
#include <map>
#include <utility>

#include "codegen/support/diagnostic.hpp"

namespace ikat::runtime::pool {

Blocks::Blocks() { static_cast<void>(add_queue()); }

QueueId Blocks::add_queue() {
    if (unused_queues_.empty()) {
        unused_queues_.push_back(std::uint32_t(queues_.size()));
        queues_.emplace_back();
    }
    const std::uint32_t id = unused_queues_.back();
    unused_queues_.pop_back();
    queues_[id] = {};
    queues_[id].first.fill(none);
    return QueueId(id);
}

void Blocks::end_queue(QueueId id) {
    queue(id).has_ended = true;
    if (queue(id).count == 0) unused_queues_.push_back(std::uint32_t(id));
}

/// The class of the largest size that is not above `bytes`: its power of two, and the two bits after the first.
std::uint32_t Blocks::bin_of(std::uint64_t bytes) {
    const std::uint64_t steps = bytes / block_step;
    const int level = std::bit_width(steps) - 1;
    const std::uint64_t quarter = level >= 2 ? steps >> (level - 2) : steps << (2 - level);
    return std::uint32_t(level) * 4 + std::uint32_t(quarter & 3);
}

/// Those of the request's own class may be too small; all of higher ones are large enough.
std::uint32_t Blocks::find(const Queue& in, std::uint64_t bytes) const {
    if (in.count == 0) return none;
    const std::uint32_t own = bin_of(bytes);
    for (std::uint32_t block = in.first[own]; block != none; block = blocks_[block].next)
        if (blocks_[block].bytes >= bytes) return block;
    const std::uint32_t above = own + 1;
    for (std::uint32_t word = above / 64; word < in.has.size(); ++word) {
        const std::uint64_t has = word == above / 64 ? in.has[word] & (~std::uint64_t{0} << above % 64) : in.has[word];
        if (has) return in.first[word * 64 + std::uint32_t(std::countr_zero(has))];
    }
    return none;
}

std::optional<BlockId> Blocks::take(std::uint64_t asked, QueueId id) {
    if (asked > most_bytes) return {};
    const std::uint64_t bytes = block_bytes(asked);
    std::uint32_t found = find(queue(id), bytes);
    if (found == none && id != everybody) found = find(queue(everybody), bytes);
    if (found == none) return {};
    remove(found);
    if (blocks_[found].bytes > bytes) split(found, bytes);
    blocks_[found].is_used = true;
    used_ += bytes;
    peak_used_ = std::max(peak_used_, used_);
    return BlockId(found);
}

Ticket Blocks::give(BlockId id, QueueId to) {
    Block& block = blocks_[index(id)];
    IKAT_ASSERT(block.is_used, "a block of a pool is given back twice");
    used_ -= block.bytes;
    block.is_used = false, block.queue = to, block.ticket = Ticket(++tickets_);
    merge_and_insert(index(id));
    return last_ticket();
}

void Blocks::reached(QueueId id, Ticket ticket) {
    if (id == everybody || queue(id).count == 0) return;
    std::vector<std::uint32_t> free;
    for (std::uint32_t word = 0; word < bins / 64; ++word)
        for (std::uint64_t has = queue(id).has[word]; has; has &= has - 1) {
            const std::uint32_t bin = word * 64 + std::uint32_t(std::countr_zero(has));
            for (std::uint32_t block = queue(id).first[bin]; block != none; block = blocks_[block].next)
                if (blocks_[block].ticket <= ticket) free.push_back(block);
        }
    for (const std::uint32_t block : free) {
        remove(block);
        blocks_[block].queue = everybody;
    }
    // Only now, so that none of them is merged away before its turn.
    for (const std::uint32_t block : free) insert(block);
    for (const std::uint32_t block : free) {
        if (blocks_[block].segment == none) continue;  // part of another by now
        remove(block);
        merge_and_insert(block);
    }
    if (queue(id).has_ended && queue(id).count == 0) unused_queues_.push_back(std::uint32_t(id));
}

void Blocks::reached(Ticket ticket) {
    for (std::uint32_t id = 1; id < queues_.size(); ++id) reached(QueueId(id), ticket);
}

void Blocks::add_segment(std::uint64_t address, std::uint64_t bytes) {
    if (unused_segments_.empty()) {
        unused_segments_.push_back(std::uint32_t(segments_.size()));
        segments_.emplace_back();
    }
    const std::uint32_t segment = unused_segments_.back();
    unused_segments_.pop_back();
    const std::uint32_t block = new_block({.bytes = bytes, .segment = segment});
    segments_[segment] = {.address = address, .bytes = bytes, .number = segment_count_++, .first = block};
    reserved_ += bytes;
    insert(block);
}

std::vector<std::uint64_t> Blocks::trim() {
    std::vector<std::uint64_t> out;
    for (std::uint32_t i = 0; i < segments_.size(); ++i) {
        Segment& segment = segments_[i];
        if (segment.first == none) continue;
        const Block& block = blocks_[segment.first];
        if (block.is_used || block.queue != everybody || block.bytes != segment.bytes) continue;
        remove(segment.first);
        drop_block(segment.first);
        out.push_back(segment.address);
        reserved_ -= segment.bytes;
        segment = {};
        unused_segments_.push_back(i);
    }
    return out;
}

std::vector<std::uint64_t> Blocks::segments() const {
    std::vector<std::uint64_t> out;
    for (const Segment& segment : segments_)
        if (segment.first != none) out.push_back(segment.address);
    return out;
}

std::uint64_t Blocks::address(BlockId id) const {
    const Block& block = blocks_[index(id)];
    return segments_[block.segment].address + block.offset;
}

bool Blocks::has_waiting() const {
    return std::any_of(queues_.begin() + 1, queues_.end(), [](const Queue& queue) { return queue.count > 0; });
}

PoolReport Blocks::report() const {
    PoolReport out{.used = used_, .reserved = reserved_, .peak_used = peak_used_};
    std::map<std::uint64_t, PoolReport::SizeClass> classes;
    for (const Segment& segment : segments_) {
        if (segment.first == none) continue;
        PoolReport::Segment its{.number = segment.number, .bytes = segment.bytes};
        for (std::uint32_t i = segment.first; i != none; i = blocks_[i].after) {
            const Block& block = blocks_[i];
            const auto state = block.is_used              ? PoolReport::State::Used
                               : block.queue != everybody ? PoolReport::State::Waiting
                                                          : PoolReport::State::Free;
            its.blocks.push_back({block.offset, block.bytes, state});
            PoolReport::SizeClass& size = classes[std::bit_floor(block.bytes)];
            ++(block.is_used ? size.used : size.free);
            if (!block.is_used) out.largest_free = std::max(out.largest_free, block.bytes);
        }
        out.segments.push_back(std::move(its));
    }
    std::ranges::sort(out.segments, {}, &PoolReport::Segment::number);
    for (const auto& [bytes, size] : classes) out.classes.push_back({bytes, size.used, size.free});
    return out;
}

std::uint32_t Blocks::new_block(const Block& block) {
    if (unused_blocks_.empty()) {
        blocks_.push_back(block);
        return std::uint32_t(blocks_.size() - 1);
    }
    const std::uint32_t id = unused_blocks_.back();
    unused_blocks_.pop_back();
    blocks_[id] = block;
    return id;
}

void Blocks::drop_block(std::uint32_t block) {
    blocks_[block].segment = none;
    unused_blocks_.push_back(block);
}

void Blocks::insert(std::uint32_t id) {
    Block& block = blocks_[id];
    Queue& its = queue(block.queue);
    const std::uint32_t bin = bin_of(block.bytes);
    block.previous = none, block.next = its.first[bin];
    if (block.next != none) blocks_[block.next].previous = id;
    its.first[bin] = id;
    its.has[bin / 64] |= std::uint64_t{1} << bin % 64;
    ++its.count;
}

void Blocks::remove(std::uint32_t id) {
    const Block& block = blocks_[id];
    Queue& its = queue(block.queue);
    const std::uint32_t bin = bin_of(block.bytes);
    (block.previous == none ? its.first[bin] : blocks_[block.previous].next) = block.next;
    if (block.next != none) blocks_[block.next].previous = block.previous;
    if (its.first[bin] == none) its.has[bin / 64] &= ~(std::uint64_t{1} << bin % 64);
    --its.count;
}

/// Leaves `bytes` of a block that is in no list; what is behind them is free for whom the block was.
void Blocks::split(std::uint32_t id, std::uint64_t bytes) {
    Block rest = blocks_[id];
    rest.offset += bytes, rest.bytes -= bytes, rest.before = id;
    const std::uint32_t behind = new_block(rest);
    if (rest.after != none) blocks_[rest.after].before = behind;
    blocks_[id].bytes = bytes, blocks_[id].after = behind;
    insert(behind);
}

void Blocks::merge_and_insert(std::uint32_t id) {
    const auto may_join = [&](std::uint32_t neighbour) {
        return neighbour != none && !blocks_[neighbour].is_used && blocks_[neighbour].queue == blocks_[id].queue;
    };
    if (may_join(blocks_[id].after)) {
        remove(blocks_[id].after);
        absorb_next(id);
    }
    if (may_join(blocks_[id].before)) {
        id = blocks_[id].before;
        remove(id);
        absorb_next(id);
    }
    insert(id);
}

/// The one behind it, which is in no list, becomes part of a block that is in none. Both are free when both are.
void Blocks::absorb_next(std::uint32_t id) {
    Block& block = blocks_[id];
    const std::uint32_t next = block.after;
    block.bytes += blocks_[next].bytes;
    block.ticket = std::max(block.ticket, blocks_[next].ticket);
    block.after = blocks_[next].after;
    if (block.after != none) blocks_[block.after].before = id;
    drop_block(next);
}

}  // namespace ikat::runtime::pool
