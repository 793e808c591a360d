// SPDX-License-Identifier: Apache-2.0
// How bulk copies start: what each moves, whether it may, and what it reads then.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <vector>

#include "runtime/emulator/agents/agents.hpp"
#include "runtime/emulator/agents/bulk/bulk_copies.hpp"
#include "runtime/emulator/agents/mbarriers.hpp"
#include "runtime/emulator/core/definedness.hpp"
#include "runtime/emulator/machine/messages.hpp"

namespace ikat::emulator {

namespace {

constexpr std::uint32_t unit = 16;      // addresses and sizes are multiples of it
constexpr std::size_t max_stores = 64;  // of a block, that are kept though their source is free again

/// As in stores to global memory, what nothing has written may be padding inside a word, but not all of one.
constexpr std::uint32_t word_bytes = 4;
std::optional<std::size_t> unwritten_word(const Image& image, std::size_t at, std::size_t bytes) {
    if (written::all(image.written.data(), at, bytes)) return {};
    for (const std::size_t end = at + bytes; at < end; at += word_bytes)
        if (!written::any(image.written.data(), at, std::min<std::size_t>(word_bytes, end - at))) return at;
    return {};
}

}  // namespace

/// An instruction of a lane.
struct BulkCopies::Start {
    const MicroOp* op;
    Warp* w;
    const std::byte* frame;
    unsigned lane;
    BulkForm form = BulkForm::of(op->x);

    std::uint64_t source(unsigned i) const {
        const std::uint32_t* const at = w->lists + op->d + 1 + 2 * i;
        return at[1] == 8 ? reinterpret_cast<const std::uint64_t*>(frame + at[0])[lane]
                          : reinterpret_cast<const std::uint32_t*>(frame + at[0])[lane];
    }
    std::uint64_t shared() const { return source(0); }
    std::uint64_t other() const { return source(1); }
    std::uint32_t bytes() const { return std::uint32_t(source(2)); }
    std::uint64_t barrier() const { return source(3); }
    std::uint32_t blocks() const { return std::uint32_t(source(4)); }
    std::int32_t coordinate(unsigned i) const { return std::int32_t(source(5 + i)); }

    Image values() const {
        const std::size_t bytes = this->bytes(), of_each = ir::info(form.type).bytes;
        Image image(bytes);
        for (std::size_t at = 0; at < bytes; at += of_each) {
            const std::uint64_t value = source(unsigned(5 + at / of_each));
            std::memcpy(image.bytes.data() + at, &value, of_each);
        }
        std::ranges::fill(image.written, std::uint8_t{0xff});
        return image;
    }

    /// What is told to tools; without the owner it is in global memory.
    AgentAccess access(Direction direction, std::span<const AgentAccess::Range> ranges,
                       AgentAccess::Of of = AgentAccess::Of::BulkCopy, std::uint64_t operation = 0) const {
        return {.code = w->kernel,
                .op = op,
                .w = w,
                .lanes = 1u << lane,
                .operation = operation,
                .of = of,
                .by_async_proxy = form.kind != BulkForm::Kind::Values,
                .direction = direction,
                .ranges = ranges};
    }
    AgentAccess access(Direction direction, ThreadBlock& owner, Space space, const AgentAccess::Range& range,
                       AgentAccess::Of of = AgentAccess::Of::BulkCopy, std::uint64_t operation = 0) const {
        AgentAccess access = this->access(direction, {&range, 1}, of, operation);
        access.owner = &owner;
        access.space = space;
        return access;
    }
    bool wrong(FaultCode code, Space space, std::uint64_t address, std::uint32_t bytes, bool store) const {
        return fail_access(w, op, code, space, lane, address, bytes, store);
    }
    bool passes(FaultCode code, Space space, std::uint64_t address, std::uint32_t bytes, bool store) const {
        return passes_access(w, op, code, space, lane, address, bytes, store);
    }
    /// The memory at an address, if all of it is there and aligned; else a finding.
    std::optional<MemoryRange> range(Space space, std::uint64_t address, std::uint32_t bytes, bool store,
                                     std::uint32_t alignment = unit) const {
        if (space == Space::Generic && address >> window_bits != std::uint64_t(Space::Shared))
            return wrong(FaultCode::NotShared, space, address, bytes, store), std::nullopt;
        const View view = view_of(*w, space, address);
        const std::uint64_t offset = address - view.base;
        const bool is_inside = view.bytes >= bytes && offset <= view.bytes - bytes;
        if (!is_inside || address % alignment)
            return wrong(FaultCode::OutOfBounds, space, address, is_inside ? alignment : bytes, store), std::nullopt;
        return MemoryRange{address, view.host + offset, view.bits, offset, bytes};
    }
    /// The ranges of global memory that are read or written.
    std::vector<AgentAccess::Range> in_global(const TensorBox* box) const {
        std::vector<AgentAccess::Range> ranges;
        if (!box) ranges.push_back({.address = other(), .bytes = bytes()});
        if (box)
            box->each_piece([&](const TensorBox::Piece& piece) {
                const View view = view_of(*w, Space::Global, piece.address);
                const std::uint64_t bytes =
                    std::min(piece.bytes + piece.tail, view.bytes - (piece.address - view.base));
                ranges.push_back({.address = piece.address, .bytes = std::uint32_t(bytes)});
                return true;
            });
        return ranges;
    }
    /// Whether neither a copy to a source in shared memory is in flight nor a barrier is there; else a finding.
    bool is_there(const MemoryRange& source) const {
        return written::all(source.bits, source.offset, source.bytes) ||
               !touches_agent(w, op, Space::Shared, lane, source.address, std::uint32_t(source.bytes), false);
    }
};

bool BulkCopies::start(const MicroOp* op, Warp* w, std::byte* frame, std::uint32_t mask) {
    block_.some_arrive();
    for (std::uint32_t rest = mask; rest; rest &= rest - 1)
        if (!start_lane(op, w, frame, unsigned(std::countr_zero(rest)))) return false;
    return true;
}

bool BulkCopies::start_lane(const MicroOp* op, Warp* w, const std::byte* frame, unsigned lane) {
    const Start start{op, w, frame, lane};
    const BulkForm form = start.form;
    if (form.kind == BulkForm::Kind::PrefetchMap) return find_map(start).has_value();
    const bool has_values = form.kind == BulkForm::Kind::Values;
    if (!has_values && start.bytes() % unit)
        return start.wrong(FaultCode::BulkSize, Space::Global, 0, start.bytes(), false);
    Copy copy{{.instruction = w->kernel->instructions[w->index_of(op)],
               .by = &block_,
               .warp = w->index,
               .lane = lane,
               .is_bulk = true}};
    copy.form = form;
    copy.arrival = drawn_arrival(block_.schedule(), chances_, Arrival::AtLast);
    if (form.dimensions && !find_box(start, copy)) return false;
    switch (form.kind) {
        case BulkForm::Kind::Load:
        case BulkForm::Kind::Values:
        case BulkForm::Kind::Exchange: return start_loads(start, copy);
        case BulkForm::Kind::Store: return start_store(start, copy);
        case BulkForm::Kind::Prefetch:
        case BulkForm::Kind::PrefetchMap: break;
    }
    const std::uint64_t address = copy.box ? 0 : start.other();
    return address % unit == 0 || start.wrong(FaultCode::BulkAlignment, Space::Global, address, unit, false);
}

/// A tensor's map; nothing after a finding. One that is only fetched may have been written without a fence.
std::optional<TensorMap> BulkCopies::find_map(const Start& start) {
    std::uint64_t address = start.other();
    // mov gives the address of a parameter without its window.
    if (address < block_.launch_state().kernel.parameter_bytes) address += window_address(Space::Param);
    const View view = view_of(*start.w, Space::Generic, address);
    const std::uint64_t offset = address - view.base;
    const bool is_inside = view.bytes >= tensor_map_bytes && offset <= view.bytes - tensor_map_bytes;
    if (!is_inside || address % tensor_map_alignment || view.lane_stride)
        return start.wrong(FaultCode::OutOfBounds, Space::Generic, address,
                           is_inside ? tensor_map_alignment : tensor_map_bytes, false),
               std::nullopt;
    const bool copies = start.form.kind != BulkForm::Kind::PrefetchMap;
    const AgentAccess::Range range{.address = address, .bytes = tensor_map_bytes};
    if (copies && !block_.tell(start.access(Direction::Read, {&range, 1}, AgentAccess::Of::TensorMap))) return {};
    const auto map = decode(std::span<const std::byte, tensor_map_bytes>(view.host + offset, tensor_map_bytes));
    const std::uint32_t dimensions = start.form.dimensions;
    block_.finding = !map ? "these bytes are none"
                     : copies && map->rank != dimensions
                         ? fmt::format("a copy in {} dimensions, of rank {}", dimensions, map->rank)
                         : problem(*map);
    if (!block_.finding.empty())
        return start.wrong(FaultCode::BulkMap, Space::Generic, address, tensor_map_bytes, false), std::nullopt;
    return map;
}

/// The map and the box of a copy of a tensor, all of whose bytes are in buffers; else a finding.
bool BulkCopies::find_box(const Start& start, Copy& copy) {
    const std::optional<TensorMap> map = find_map(start);
    if (!map) return false;
    const auto wrong = [&](std::string what) {
        block_.finding = std::move(what);
        return start.wrong(FaultCode::BulkMap, Space::Generic, start.other(), tensor_map_bytes, false);
    };
    const std::uint32_t dimensions = start.form.dimensions;
    std::array<std::int32_t, 5> at{};
    for (unsigned i = 0; i < dimensions; ++i) at[i] = start.coordinate(i);
    const bool is_moved = start.form.kind != BulkForm::Kind::Prefetch;
    auto box =
        std::make_shared<TensorBox>(*map, at, is_moved ? start.shared() : 0, start.form.kind == BulkForm::Kind::Store);
    const std::uint32_t row = box_row_bytes(*map),
                        span = map->swizzle == MapSwizzle::None ? row : unit << int(map->swizzle);
    if (row != span)
        return wrong(fmt::format("rows of {} bytes, swizzled by {}: where they go is not known", row, span));
    if (start.form.reduces && !select_reducer(start.form.atomic, element_type(map->type)))
        return wrong("this reduction has no elements of its type");
    if (block_.finding = box->problem(); is_moved && !block_.finding.empty())
        return start.wrong(FaultCode::BulkPlace, Space::Global, map->address, row,
                           start.form.kind == BulkForm::Kind::Store);
    const Memory::State& memory = block_.launch_state().memory;
    if (memory.find(map->address).bytes == 0)
        return start.wrong(FaultCode::OutOfBounds, Space::Global, map->address, row, false);
    if (const auto outside = box->outside(memory); outside && start.form.kind != BulkForm::Kind::Prefetch)
        return start.wrong(FaultCode::OutOfBounds, Space::Global, outside->address, std::uint32_t(outside->bytes),
                           start.form.kind == BulkForm::Kind::Store);
    copy.box = std::move(box);
    return true;
}

/// Tells the tools what is read, and in global memory what is written. A load is over for a barrier of the judge. False
/// on a finding.
bool BulkCopies::tell(const Start& start, const Copy& copy, ThreadBlock* judge, std::uint64_t barrier) {
    const bool stores = copy.form.kind == BulkForm::Kind::Store;
    const MemoryRange& from = stores ? copy.shared : copy.other;
    const AgentAccess::Range range{from.address, std::uint32_t(from.bytes), from.bits, from.offset, from.address};
    const auto note_judge = [&](AgentAccess& access) {
        access.numbered_by = judge;
        access.barrier = barrier;
    };
    if (copy.form.kind != BulkForm::Kind::Load) {
        AgentAccess read =
            start.access(Direction::Read, block_, Space::Shared, range, AgentAccess::Of::BulkCopy, copy.operation);
        if (!stores) note_judge(read);
        if (!block_.tell(read)) return false;
    }
    if (copy.form.kind == BulkForm::Kind::Exchange) return true;
    const Direction direction = !stores ? Direction::Read : copy.form.reduces ? Direction::Atomic : Direction::Write;
    const std::vector<AgentAccess::Range> ranges = start.in_global(copy.box.get());
    AgentAccess access = start.access(direction, ranges, AgentAccess::Of::BulkCopy, copy.operation);
    access.of_tensor = copy.box != nullptr;
    if (!stores) note_judge(access);
    return block_.tell(access);
}

bool BulkCopies::start_loads(const Start& start, Copy& copy) {
    const BulkForm form = start.form;
    const bool is_global = form.kind == BulkForm::Kind::Load;
    const bool has_values = form.kind == BulkForm::Kind::Values;
    if (has_values) {
        copy.image = start.values();
    } else if (copy.box) {
        copy.image = copy.box->read(block_.launch_state().memory);
    } else {
        const auto source = start.range(is_global ? Space::Global : Space::Shared, start.other(), start.bytes(), false);
        if (!source || (!is_global && !start.is_there(*source))) return false;
        copy.other = *source;
        copy.image = source->image();
    }
    const auto [owner, place] = block_.shared_place(start.shared() & (window_bytes - 1));
    const auto [judge, barrier] = block_.shared_place(start.barrier() & (window_bytes - 1));
    // Of several blocks the first one tells that the source has been read.
    const auto first = std::uint32_t(std::countr_zero(form.is_multicast ? start.blocks() : 0));
    ThreadBlock& to = first < block_.peers() ? block_.peer(first) : judge;
    copy.operation = to.next_operation();
    if (!has_values && !tell(start, copy, &to, barrier)) return false;
    const auto bytes = std::uint32_t(copy.image.bytes.size());
    if (is_global) start.w->bytes_read += bytes;
    const std::uint32_t alignment = has_values ? bytes : copy.box ? TensorBox::alignment : unit;
    if (!start.range(form.space, start.shared(), bytes, true, alignment)) return false;
    if (!form.is_multicast) {
        if (&owner != &judge) return start.wrong(FaultCode::BulkBarrier, form.space, start.barrier(), 8, true);
        return agent<BulkCopies>(owner).start_load(start, copy, place, barrier);
    }
    for (std::uint32_t rest = start.blocks(); rest; rest &= rest - 1) {
        const auto rank = std::uint32_t(std::countr_zero(rest));
        if (rank >= start.w->cluster_blocks) return start.wrong(FaultCode::BulkBlocks, Space::Global, rank, 0, true);
        if (rank != first) copy.operation = block_.peer(rank).next_operation();
        if (!agent<BulkCopies>(block_.peer(rank)).start_load(start, copy, place, barrier)) return false;
    }
    return true;
}

/// To a place in this block.
bool BulkCopies::start_load(const Start& start, Copy copy, std::uint64_t place, std::uint64_t barrier) {
    const std::uint64_t address = copy.by->address_of(block_, place);
    const auto bytes = std::uint32_t(copy.image.bytes.size());
    const View view = block_.shared_view(place);
    if (block_.has_ended() || view.bytes < bytes || place - view.base > view.bytes - bytes)
        return start.wrong(FaultCode::OutOfBounds, Space::Generic, address, bytes, true);
    if (copy.by != &block_ && !copy.by->has_met_cluster())
        return start.wrong(FaultCode::BlockNotStarted, Space::Generic, address, bytes, true);
    copy.shared = {place, view.host + (place - view.base), view.bits, place - view.base, bytes};
    copy.barrier = barrier;
    const MemoryRange& to = copy.shared;
    if (agent<InFlight>(block_).any(to.bits, to.offset, to.bytes) &&
        !start.passes(FaultCode::CopyOverwritten, Space::Generic, address, bytes, true))
        return false;
    if (agent<Mbarriers>(block_).over(place, to.bytes))
        return start.wrong(FaultCode::MbarrierOverwritten, Space::Generic, address, bytes, true);
    const Mbarriers::Barrier* const judge = agent<Mbarriers>(block_).find(barrier);
    if (!judge)
        return start.wrong(FaultCode::MbarrierMissing, Space::Generic, copy.by->address_of(block_, barrier),
                           mbarrier_bytes, true);
    const AgentAccess::Range range{address, bytes, to.bits, to.offset, place},
        at{copy.by->address_of(block_, barrier), mbarrier_bytes, judge->bits, judge->offset, barrier};
    const Direction direction = copy.form.reduces ? Direction::Atomic : Direction::Write;
    AgentAccess write =
        start.access(direction, block_, Space::Generic, range, AgentAccess::Of::BulkCopy, copy.operation);
    write.barrier = barrier;
    if (!block_.tell(write) ||
        !block_.tell(start.access(Direction::Atomic, block_, Space::Generic, at, AgentAccess::Of::Arrival)))
        return false;
    if (!copy.form.reduces) {
        if (!view.written) block_.reopen(place);
        agent<InFlight>(block_).begin(to.bits, to.offset, to.bytes);
    }
    loads_.push_back(std::move(copy));
    if (loads_.back().arrival == Arrival::Over) land(loads_.back());
    return true;
}

bool BulkCopies::start_store(const Start& start, Copy& copy) {
    const auto source = copy.box ? start.range(Space::Shared, start.shared(), std::uint32_t(copy.box->bytes()), false,
                                               TensorBox::alignment)
                                 : start.range(Space::Shared, start.shared(), start.bytes(), false);
    if (!source || !start.is_there(*source)) return false;
    copy.shared = *source;
    copy.operation = block_.next_operation();
    copy.image = source->image();
    std::optional<std::size_t> unwritten;
    const auto bytes = std::uint32_t(source->bytes);
    if (copy.box) {
        const Image plain = copy.box->swizzled(copy.image);
        copy.box->each_piece([&](const TensorBox::Piece& piece) {
            unwritten = unwritten_word(plain, piece.place, piece.bytes);
            return !unwritten;
        });
        const bool passes = copy.box->each_piece([&](const TensorBox::Piece& piece) {
            return piece.tail == 0 || start.passes(FaultCode::BulkTail, Space::Global, piece.address + piece.bytes,
                                                   std::uint32_t(piece.tail), true);
        });
        if (!passes) return false;
        if (unwritten) unwritten = copy.box->swizzled(*unwritten);
    } else {
        const auto target = start.range(Space::Global, start.other(), bytes, true);
        if (!target) return false;
        copy.other = *target;
        unwritten = unwritten_word(copy.image, 0, bytes);
    }
    if (unwritten &&
        !start.passes(FaultCode::BulkUnwritten, Space::Shared, source->address + *unwritten, word_bytes, false))
        return false;
    if (!tell(start, copy, nullptr, 0)) return false;
    copy.group = groups_of(start.w)[start.lane];
    start.w->bytes_written += bytes;
    if (copy.form.reduces) start.w->bytes_read += bytes;
    while (stores_.size() >= max_stores && stores_.front().was_read) {
        if (!stores_.front().has_arrived) write(stores_.front());
        stores_.pop_front();
    }
    stores_.push_back(std::move(copy));
    if (stores_.back().arrival == Arrival::Over) write(stores_.back());
    return true;
}

}  // namespace ikat::emulator
