// SPDX-License-Identifier: Apache-2.0
#include "runtime/emulator/agents/bulk/map_changes.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <optional>

#include "runtime/emulator/core/definedness.hpp"
#include "runtime/emulator/machine/block.hpp"

namespace ikat::emulator {

namespace {

std::uint64_t address_in(const std::byte* frame, std::uint32_t offset, unsigned lane) {
    return reinterpret_cast<const std::uint64_t*>(frame + offset)[lane];
}

/// A lane's access to the bytes of a map.
struct MapOfLane {
    const MicroOp* op;
    Warp* w;
    unsigned lane;
    Space space;
    std::uint64_t address;
    View view{};
    std::uint64_t offset = 0;

    bool is_shared() const {
        return space == Space::Shared ||
               (space == Space::Generic && address >> window_bits == std::uint64_t(Space::Shared));
    }
    std::span<std::byte, tensor_map_bytes> bytes() const {
        return std::span<std::byte, tensor_map_bytes>(view.host + offset, tensor_map_bytes);
    }
    bool wrong(std::string what) const {
        block_of(w).finding = std::move(what);
        return fail_access(w, op, FaultCode::MapChange, space, lane, address, tensor_map_bytes, true);
    }

    bool find(bool writes) {
        view = view_of(*w, space, address);
        offset = address - view.base;
        const bool is_inside = view.bytes >= tensor_map_bytes && offset <= view.bytes - tensor_map_bytes;
        if (is_inside && address % tensor_map_alignment == 0 && !view.lane_stride && (view.writable || !writes))
            return true;
        const bool is_read_only = writes && is_inside && !view.writable;
        return fail_access(w, op, is_read_only ? FaultCode::ReadOnly : FaultCode::OutOfBounds, space, lane, address,
                           is_inside ? tensor_map_alignment : tensor_map_bytes, writes);
    }
    bool is_written(bool writes) const {
        if (!view.written || written::all(view.written, offset, tensor_map_bytes)) return true;
        if (is_shared() && touches_agent(w, op, space, lane, address, tensor_map_bytes, writes)) return false;
        return wrong("nothing has written some of its bytes");
    }
    void note_write() const {
        if (view.written) written::set(view.written, offset, tensor_map_bytes, w->parallel);
        ThreadBlock& block = block_of(w);
        AgentAccess::Range range{address, tensor_map_bytes, view.bits, offset, address & (window_bytes - 1)};
        AgentAccess write{.code = w->kernel,
                          .op = op,
                          .w = w,
                          .lanes = 1u << lane,
                          .of = AgentAccess::Of::TensorMap,
                          .by_async_proxy = false,
                          .direction = Direction::Write,
                          .space = space,
                          .ranges = {&range, 1}};
        if (is_shared()) {
            const auto [owner, place] = block.shared_place(range.place);
            range.place = place;
            write.owner = &owner;
        } else {
            w->bytes_written += tensor_map_bytes;
        }
        block.each_tool([&](BlockTool& tool) { tool.land(write); });
    }
};

[[gnu::noinline]] bool change_maps(const MicroOp* op, Warp* w, const std::byte* frame, std::uint32_t mask) {
    const MapChange change = MapChange::of(op->x);
    for (std::uint32_t rest = mask; rest; rest &= rest - 1) {
        const auto lane = unsigned(std::countr_zero(rest));
        MapOfLane map{op, w, lane, change.space, address_in(frame, op->a, lane)};
        if (!map.find(true) || !map.is_written(true)) return false;
        std::string what = replace(map.bytes(), change.field, change.dimension, address_in(frame, op->b, lane));
        if (!what.empty()) return map.wrong(std::move(what));
        map.note_write();
    }
    return true;
}

[[gnu::noinline]] bool copy_maps(const MicroOp* op, Warp* w, const std::byte* frame, std::uint32_t mask) {
    if (w->live & ~mask) {
        w->leave = Leave::Rendezvous;
        w->pc = w->index_of(op);
        w->mask = mask;
        return false;
    }
    for (std::uint32_t rest = mask; rest; rest &= rest - 1) {
        const auto lane = unsigned(std::countr_zero(rest));
        MapOfLane to{op, w, lane, Space::Global, address_in(frame, op->a, lane)},
            from{op, w, lane, Space::Shared, address_in(frame, op->b, lane)};
        if (!from.find(false) || !from.is_written(false) || !to.find(true)) return false;
        std::ranges::copy(from.bytes(), to.bytes().begin());
        to.note_write();
    }
    return true;
}

}  // namespace

const MicroOp* change_map(const MicroOp* op, Warp* w, std::byte* frame, std::uint32_t mask) {
    if (!change_maps(op, w, frame, mask)) return nullptr;
    IKAT_NEXT;
}

const MicroOp* copy_map(const MicroOp* op, Warp* w, std::byte* frame, std::uint32_t mask) {
    if (!copy_maps(op, w, frame, mask)) return nullptr;
    IKAT_NEXT;
}

}  // namespace ikat::emulator
