// SPDX-License-Identifier: Apache-2.0
#include "runtime/emulator/agents/bulk/bulk_copies.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "runtime/emulator/agents/agents.hpp"
#include "runtime/emulator/agents/mbarriers.hpp"
#include "runtime/emulator/machine/messages.hpp"

namespace ikat::emulator {

namespace {

/// A finding about a copy, at its instruction; the address is in memory of a block, or global with none.
Error error_about(const BulkCopies::Copy& copy, FaultCode code, const ThreadBlock* of, std::uint64_t address,
                  std::uint32_t bytes, std::uint32_t count = 0) {
    ScheduledWarp& warp = copy.by->warp(copy.warp);
    warp.fault = {.code = code,
                  .space = of ? Space::Generic : Space::Global,
                  .store = true,
                  .lane = copy.lane,
                  .bytes = bytes,
                  .address = of ? copy.by->address_of(*of, address) : address,
                  .lanes = count};
    if (code == FaultCode::BulkAtExit) agent<InFlight>(*copy.by).found = &copy;
    return fault_error(*copy.by, warp, copy.instruction);
}

}  // namespace

Image MemoryRange::image() const {
    Image image(bytes);
    std::copy_n(host, bytes, image.bytes.begin());
    image.take_written(0, bits, offset, bytes);
    return image;
}

void BulkCopies::start() {
    loads_.clear();
    stores_.clear();
    groups_.clear();
    chances_.state = block_.seed_of(2u << 30);
}

std::array<std::uint32_t, warp_size>& BulkCopies::groups_of(const Warp* w) {
    if (w->index >= groups_.size()) groups_.resize(w->index + 1);
    return groups_[w->index];
}

// ---- arriving

void BulkCopies::land(Copy& load) {
    load.has_arrived = true;
    const MemoryRange& to = load.shared;
    if (!load.form.reduces) {
        std::ranges::copy(load.image.bytes, to.host);
    } else {
        if (!written::all(to.bits, to.offset, to.bytes))
            load.by->report(error_about(load, FaultCode::Unwritten, &block_, to.address, std::uint32_t(to.bytes)));
        reduce(load, to.host, load.image.bytes.data(), to.bytes);
    }
    const auto count = std::uint32_t(to.bytes);
    Mbarriers::Barrier* const barrier = agent<Mbarriers>(block_).find(load.barrier);
    if (!barrier) throw error_about(load, FaultCode::MbarrierMissing, &block_, load.barrier, mbarrier_bytes);
    if (written::any(barrier->bits, barrier->offset, mbarrier_bytes))
        throw error_about(load, FaultCode::MbarrierOverwritten, &block_, load.barrier, mbarrier_bytes);
    load.phase = barrier->phase;
    block_.each_tool([&](BlockTool& tool) {
        tool.arrive_for(load.operation, 1u << load.lane, {Meeting::Kind::Mbarrier, load.barrier});
    });
    if (const auto code = agent<Mbarriers>(block_).add_bytes(*barrier, -std::int64_t(count)))
        throw error_about(load, *code, &block_, load.barrier, mbarrier_bytes, count);
}

void BulkCopies::write(Copy& store) {
    store.has_arrived = true;
    if (!store.box) return write_piece(store, store.image, {store.other.address, 0, store.other.bytes});
    const Image plain = store.box->swizzled(store.image);
    store.box->each_piece([&](const TensorBox::Piece& piece) { return write_piece(store, plain, piece), true; });
}

void BulkCopies::write_piece(const Copy& store, const Image& image, const TensorBox::Piece& piece) {
    const View view = block_.launch_state().memory.find(piece.address);
    const std::uint64_t offset = piece.address - view.base;
    if (view.bytes < piece.bytes || offset > view.bytes - piece.bytes)  // it has been freed
        throw error_about(store, FaultCode::OutOfBounds, nullptr, piece.address, std::uint32_t(piece.bytes));
    const std::uint64_t bytes = std::min(piece.bytes + piece.tail, view.bytes - offset);
    if (store.form.reduces) {
        if (view.bits && !written::all(view.bits, offset, piece.bytes))
            store.by->report(
                error_about(store, FaultCode::Unwritten, nullptr, piece.address, std::uint32_t(piece.bytes)));
        return reduce(store, view.host + offset, image.bytes.data() + piece.place, bytes);
    }
    std::memcpy(view.host + offset, image.bytes.data() + piece.place, bytes);
    if (view.bits) written::copy(view.bits, offset, image.written.data(), piece.place, bytes);
}

void BulkCopies::reduce(const Copy& copy, std::byte* to, const std::byte* from, std::size_t bytes) const {
    const Type type = copy.box ? element_type(copy.box->map().type) : copy.form.type;
    const bool parallel = copy.form.kind == BulkForm::Kind::Store && block_.launch_state().parallel;
    select_reducer(copy.form.atomic, type)(to, from, bytes / ir::info(type).bytes, parallel);
}

void BulkCopies::some_arrive() {
    if (!chances_ || (loads_.empty() && stores_.empty())) return;
    const auto is_due = [&](const Copy& copy) {
        return copy.arrival == Arrival::Later && !copy.has_arrived && chances_.draw(4) == 0;
    };
    for (Copy& load : loads_)
        if (is_due(load)) land(load);
    for (Copy& store : stores_)
        if (is_due(store)) write(store);
}

bool BulkCopies::last_arrives() {
    const auto left = std::size_t(std::ranges::count(loads_, false, &Copy::has_arrived));
    if (!left) return false;
    std::size_t skip = chances_ ? chances_.draw(unsigned(left)) : 0;
    for (Copy& load : loads_)
        if (!load.has_arrived && skip-- == 0) return land(load), true;
    return false;
}

// ---- waiting

bool BulkCopies::end_phase(const MicroOp* op, Warp* w, unsigned lane, std::uint64_t barrier, std::uint64_t phase) {
    const auto is_covered = [&](const Copy& load) {
        return load.has_arrived && load.barrier == barrier && load.phase < phase;
    };
    for (Copy& load : loads_)
        if (is_covered(load) && !end(op, w, lane, load)) return false;
    std::erase_if(loads_, is_covered);
    return true;
}

/// A thread knows that the load has arrived. False on a finding.
bool BulkCopies::end(const MicroOp* op, Warp* w, unsigned lane, const Copy& load) {
    const MemoryRange &to = load.shared, &from = load.other;
    const bool has_values = load.form.kind == BulkForm::Kind::Values;
    if (load.form.reduces) return has_values || is_unchanged(op, w, lane, load, from);
    if (written::any(to.bits, to.offset, to.bytes)) {
        agent<InFlight>(block_).found = &load;
        if (!passes_access(w, op, FaultCode::CopyOverwritten, Space::Shared, lane, to.address, std::uint32_t(to.bytes),
                           true))
            return false;
    }
    if (!has_values && !is_unchanged(op, w, lane, load, from)) return false;
    written::copy(to.bits, to.offset, load.image.written.data(), 0, to.bytes);
    agent<InFlight>(block_).end(to.bits, to.offset, to.bytes);
    return true;
}

/// Whether what has been copied is still there; else a finding.
bool BulkCopies::is_unchanged(const MicroOp* op, Warp* w, unsigned lane, const Copy& copy, const MemoryRange& from) {
    const bool is_global = copy.form.kind == BulkForm::Kind::Load;
    const auto changed = [&](Space space, std::uint64_t address, std::uint64_t bytes) {
        agent<InFlight>(block_).found = &copy;
        return passes_access(w, op, FaultCode::CopySourceChanged, space, lane, address, std::uint32_t(bytes), true);
    };
    if (is_global && copy.box) {
        const Memory::State& memory = block_.launch_state().memory;
        const Image plain = copy.box->swizzled(copy.image);
        return copy.box->each_piece([&](const TensorBox::Piece& piece) {
            const View view = memory.find(piece.address);
            const bool is_same = view.bytes && std::memcmp(view.host + (piece.address - view.base),
                                                           plain.bytes.data() + piece.place, piece.bytes) == 0;
            return is_same || changed(Space::Global, piece.address, piece.bytes);
        });
    }
    if (std::memcmp(from.host, copy.image.bytes.data(), from.bytes) == 0) return true;
    if (is_global) return changed(Space::Global, from.address, from.bytes);
    return changed(Space::Generic, block_.address_of(*copy.by, from.address), from.bytes);
}

void BulkCopies::commit(const Warp* w, std::uint32_t mask) {
    block_.some_arrive();
    auto& groups = groups_of(w);
    for (unsigned lane = 0; lane < warp_size; ++lane) groups[lane] += mask >> lane & 1;
}

bool BulkCopies::await(const MicroOp* op, Warp* w, std::uint32_t mask) {
    block_.some_arrive();
    const auto& groups = groups_of(w);
    const auto is_covered = [&](const Copy& store) {
        return store.warp == w->index && (mask >> store.lane & 1) &&
               store.group + std::uint64_t(op->x) < groups[store.lane];
    };
    for (Copy& store : stores_) {
        if (!is_covered(store)) continue;
        if (!store.was_read && !is_unchanged(op, w, store.lane, store, store.shared)) return false;
        store.was_read = true;
        store.was_awaited |= !op->y;
        block_.each_tool([&](BlockTool& tool) { tool.await(*w, 1u << store.lane, store.operation, op->y != 0); });
        if (!op->y && !store.has_arrived) write(store);
    }
    std::erase_if(stores_, [&](const Copy& store) { return store.has_arrived && store.was_awaited; });
    return true;
}

void BulkCopies::finish() {
    const auto at_exit = [](const Copy& copy, const ThreadBlock& of, const MemoryRange& range) {
        return error_about(copy, FaultCode::BulkAtExit, &of, range.address, std::uint32_t(range.bytes));
    };
    for (const Copy& load : loads_) block_.report(at_exit(load, block_, load.shared));
    loads_.clear();
    for (Copy& store : stores_) {
        if (!store.was_read) block_.report(at_exit(store, block_, store.shared));
        if (!store.has_arrived) write(store);
    }
    stores_.clear();
    for (std::uint32_t rank = 0; rank < block_.peers(); ++rank)
        for (const Copy& load : agent<BulkCopies>(block_.peer(rank)).loads_)
            if (load.by == &block_ && load.form.kind == BulkForm::Kind::Exchange)
                block_.report(at_exit(load, block_, load.other));
}

const BulkCopies::Copy* BulkCopies::over(std::uint64_t address, std::uint64_t bytes) const {
    for (const Copy& load : loads_)
        if (!load.form.reduces && load.shared.address < address + bytes &&
            address < load.shared.address + load.shared.bytes)
            return &load;
    return nullptr;
}

std::optional<FaultCode> BulkCopies::claim(std::uint64_t address, std::uint64_t bytes, bool writes) const {
    if (!over(address, bytes)) return {};
    return writes ? FaultCode::CopyOverwritten : FaultCode::CopyNotAwaited;
}

namespace {

// Separate from the handlers, whose last calls are jumps only if no address of their locals escapes.
[[gnu::noinline]] bool start_lanes(const MicroOp* op, Warp* w, std::byte* frame, std::uint32_t mask) {
    return agent<BulkCopies>(w).start(op, w, frame, mask);
}
[[gnu::noinline]] bool await_lanes(const MicroOp* op, Warp* w, std::uint32_t mask) {
    return agent<BulkCopies>(w).await(op, w, mask);
}

}  // namespace

const MicroOp* start_bulk(const MicroOp* op, Warp* w, std::byte* frame, std::uint32_t mask) {
    if (!start_lanes(op, w, frame, mask)) return nullptr;
    IKAT_NEXT;
}

const MicroOp* commit_bulk(const MicroOp* op, Warp* w, [[maybe_unused]] std::byte* frame, std::uint32_t mask) {
    agent<BulkCopies>(w).commit(w, mask);
    IKAT_NEXT;
}

const MicroOp* await_bulk(const MicroOp* op, Warp* w, [[maybe_unused]] std::byte* frame, std::uint32_t mask) {
    if (!await_lanes(op, w, mask)) return nullptr;
    IKAT_NEXT;
}

}  // namespace ikat::emulator
