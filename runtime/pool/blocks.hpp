// SPDX-License-Identifier: Apache-2.0
// The bookkeeping of a pool: which bytes of which segments are used, and who may have those that are free. It knows no
// device: memory comes and goes as addresses.
//
//     Blocks blocks;
//     const QueueId stream = blocks.add_queue();
//     blocks.add_segment(address, segment_bytes(1000));
//     const std::optional<BlockId> block = blocks.take(1000, stream);
//     const Ticket ticket = blocks.give(*block, stream);   // work of the same queue may have it again at once
//     blocks.reached(stream, ticket);                      // ... and now everybody
// A segment is divided into blocks without gaps. A request takes a block that is large enough from the smallest class
// that has one, and what is left of it stays free. Free neighbours that the same queue may have become one block. The
// same calls give the same blocks in every run. Not for several threads at once.
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "runtime/pool/report.hpp"

namespace ikat::runtime::pool {

enum class BlockId : std::uint32_t {};
enum class QueueId : std::uint32_t {};
/// The number of a release: later ones have higher numbers.
enum class Ticket : std::uint64_t {};

/// Free blocks of this queue are for everybody.
inline constexpr QueueId everybody = QueueId(0);

inline constexpr std::uint64_t block_step = 256;  // bytes; what devices align memory to
inline constexpr std::uint64_t segment_step = std::uint64_t{2} << 20;
/// The bytes of the largest request: more have no size of a segment.
inline constexpr std::uint64_t most_bytes = std::uint64_t{1} << 62;

/// The bytes of a block for a request, at least 256, and of a segment for one that no segment has room for.
constexpr std::uint64_t block_bytes(std::uint64_t bytes) {
    return bytes == 0 ? block_step : (bytes + block_step - 1) / block_step * block_step;
}
constexpr std::uint64_t segment_bytes(std::uint64_t bytes) {
    return (block_bytes(bytes) + segment_step - 1) / segment_step * segment_step;
}

class Blocks {
public:
    Blocks();

    /// A queue of work, such as a stream. One that has ended gives and takes nothing more, and its number is that of
    /// another queue later.
    QueueId add_queue();
    void end_queue(QueueId queue);

    /// A block of at least that many bytes, which are used from now on: one that work of the same queue has given back,
    /// else one for everybody. Nothing if there is no such block that is large enough.
    std::optional<BlockId> take(std::uint64_t bytes, QueueId queue);
    /// It is free for what follows in the queue.
    Ticket give(BlockId block, QueueId queue);
    /// The last release, of any queue.
    Ticket last_ticket() const { return Ticket(tickets_); }
    /// What the queue, or any queue, has given back up to this release is for everybody.
    void reached(QueueId queue, Ticket ticket);
    void reached(Ticket ticket);

    void add_segment(std::uint64_t address, std::uint64_t bytes);
    /// Takes out the segments of which nothing is used and all is for everybody; their addresses.
    std::vector<std::uint64_t> trim();
    /// The addresses of all segments.
    std::vector<std::uint64_t> segments() const;

    std::uint64_t address(BlockId block) const;
    std::uint64_t bytes(BlockId block) const { return blocks_[index(block)].bytes; }

    std::uint64_t used() const { return used_; }
    std::uint64_t reserved() const { return reserved_; }
    /// Whether some queue has blocks that are not for everybody.
    bool has_waiting() const;
    PoolReport report() const;

private:
    static constexpr std::uint32_t none = ~std::uint32_t{0};
    /// Classes by size: four for each power of two of block_step.
    static constexpr std::size_t bins = 256;

    struct Block {
        std::uint64_t offset = 0, bytes = 0;
        std::uint32_t segment = none;
        std::uint32_t before = none, after = none;   // its neighbours in the segment
        std::uint32_t previous = none, next = none;  // others of its list, if it is free
        QueueId queue = everybody;                   // who may have it, if it is free
        Ticket ticket{};                             // its last release
        bool is_used = false;
    };
    struct Segment {
        std::uint64_t address = 0, bytes = 0, number = 0;
        std::uint32_t first = none;  // its first block; none: there is no such segment
    };
    /// The free blocks of a queue: a list for each class, and which of these have some.
    struct Queue {
        std::array<std::uint32_t, bins> first{};
        std::array<std::uint64_t, bins / 64> has{};
        std::uint32_t count = 0;  // blocks
        bool has_ended = false;
    };

    static std::uint32_t index(BlockId block) { return std::uint32_t(block); }
    static std::uint32_t bin_of(std::uint64_t bytes);
    Queue& queue(QueueId id) { return queues_[std::uint32_t(id)]; }
    std::uint32_t find(const Queue& in, std::uint64_t bytes) const;
    std::uint32_t new_block(const Block& block);
    void drop_block(std::uint32_t block);
    void insert(std::uint32_t block);
    void remove(std::uint32_t block);
    void split(std::uint32_t block, std::uint64_t bytes);
    void merge_and_insert(std::uint32_t block);
    void absorb_next(std::uint32_t block);

    std::vector<Block> blocks_;
    std::vector<std::uint32_t> unused_blocks_;
    std::vector<Segment> segments_;
    std::vector<std::uint32_t> unused_segments_;
    std::vector<Queue> queues_;
    std::vector<std::uint32_t> unused_queues_;
    std::uint64_t used_ = 0, reserved_ = 0, peak_used_ = 0, tickets_ = 0, segment_count_ = 0;
};

}  // namespace ikat::runtime::pool
