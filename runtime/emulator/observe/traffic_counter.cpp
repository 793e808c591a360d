// SPDX-License-Identifier: Apache-2.0
#include "runtime/emulator/observe/traffic_counter.hpp"

#include <algorithm>
#include <bit>

#include "runtime/emulator/agents/async_copies.hpp"
#include "runtime/emulator/decode/lowering.hpp"
#include "runtime/emulator/observe/shared_traffic.hpp"
#include "runtime/emulator/ops/matrix.hpp"

namespace ikat::emulator {

namespace {

/// The part of one sector that lanes request: a bit for each byte.
struct Piece {
    std::uint64_t sector = 0;
    std::uint32_t bytes = 0;
};

/// The sectors of a warp instruction, ascending, each once.
class Pieces {
public:
    Pieces(std::span<const std::uint64_t> addresses, std::uint32_t bytes) {
        for (const std::uint64_t address : addresses) add(address, bytes);
        std::sort(pieces_.begin(), pieces_.begin() + count_,
                  [](const Piece& a, const Piece& b) { return a.sector < b.sector; });
        std::size_t last = 0;
        for (std::size_t i = 1; i < count_; ++i) {
            if (pieces_[i].sector != pieces_[last].sector)
                pieces_[++last] = pieces_[i];
            else
                pieces_[last].bytes |= pieces_[i].bytes;
        }
        count_ = std::min(count_, last + 1);
    }
    const Piece* begin() const { return pieces_.data(); }
    const Piece* end() const { return pieces_.data() + count_; }

private:
    void add(std::uint64_t address, std::uint32_t bytes) {
        while (bytes) {
            const std::uint64_t sector = address / sector_bytes, first = address % sector_bytes;
            const auto here = std::uint32_t(std::min<std::uint64_t>(sector_bytes - first, bytes));
            const auto set = std::uint32_t(((std::uint64_t{1} << here) - 1) << first);
            if (count_ && pieces_[count_ - 1].sector == sector)
                pieces_[count_ - 1].bytes |= set;
            else
                pieces_[count_++] = {sector, set};
            address += here;
            bytes -= here;
        }
    }

    static constexpr std::size_t largest_access = 64;
    std::array<Piece, warp_size*(largest_access / sector_bytes + 1)> pieces_;
    std::size_t count_ = 0;
};

/// Adds everything except `touched`.
void sum(Traffic& to, const Traffic& more) {
    to.accesses += more.accesses;
    to.requested += more.requested;
    to.sectors += more.sectors;
    to.moved += more.moved;
}

void touch(std::vector<std::atomic<std::uint64_t>>& set, std::uint64_t i) {
    const std::uint64_t bit = std::uint64_t{1} << i % 64;
    if (!(set[i / 64].load(std::memory_order_relaxed) & bit)) set[i / 64].fetch_or(bit, std::memory_order_relaxed);
}

std::uint64_t bytes_of(const std::vector<std::atomic<std::uint64_t>>& set) {
    std::uint64_t sectors = 0;
    for (const auto& word : set) sectors += unsigned(std::popcount(word.load(std::memory_order_relaxed)));
    return sectors * sector_bytes;
}

}  // namespace

TrafficOfLaunch::Buffer& TrafficOfLaunch::buffer(const View& view) {
    const std::lock_guard lock(mutex_);
    return buffers_.try_emplace(view.base, view.base, view.bytes).first->second;
}

void TrafficOfLaunch::add(Buffer& to, const std::array<Traffic, directions>& counts) {
    const std::lock_guard lock(mutex_);
    for (std::size_t i = 0; i < directions; ++i) sum(to.counts[i], counts[i]);
}

void TrafficOfLaunch::add(const nvptx::Instruction* instruction, const SharedTraffic& counts) {
    const std::lock_guard lock(mutex_);
    shared_[instruction].add(counts);
}

std::vector<BufferTraffic> TrafficOfLaunch::result(const Memory::State& memory) const {
    std::vector<BufferTraffic> out;
    BufferTraffic heap{.name = std::string(heap_name)};
    for (const auto& [base, buffer] : buffers_) {
        const auto known = memory.describe(base);
        const bool on_heap = known && known->name == heap_name;
        if (!on_heap) out.push_back({.name = known ? known->name : "", .address = base});
        BufferTraffic& to = on_heap ? heap : out.back();
        to.bytes += buffer.bytes;
        Traffic* const counts[directions] = {&to.read, &to.written, &to.atomic};
        for (std::size_t i = 0; i < directions; ++i) {
            sum(*counts[i], buffer.counts[i]);
            counts[i]->touched += bytes_of(buffer.touched[i]);
        }
    }
    if (heap.bytes) out.push_back(heap);
    return out;
}

TrafficCounter::Share& TrafficCounter::share_of(const View& view) {
    for (Share& share : shares_)
        if (share.buffer->base == view.base) return share;
    return shares_.emplace_back(&launch_.buffer(view));
}

void TrafficCounter::count(const Warp& warp, Direction direction, bool cached, std::span<const std::uint64_t> addresses,
                           std::uint32_t bytes) {
    SectorCache& cache = caches_[warp.index];
    View view;
    Share* share = nullptr;
    for (const Piece& piece : Pieces(addresses, bytes)) {
        const std::uint64_t address = piece.sector * sector_bytes;
        const bool same = share && address - view.base < view.bytes;
        if (!same) {
            view = warp.memory->find(address);
            share = address - view.base < view.bytes ? &share_of(view) : nullptr;
            if (!share) continue;  // the access will fail
            ++share->counts[std::size_t(direction)].accesses;
        }
        Traffic& traffic = share->counts[std::size_t(direction)];
        traffic.requested += unsigned(std::popcount(piece.bytes));
        traffic.sectors += 1;
        const bool held =
            cached && (direction == Direction::Read ? cache.read(piece.sector) : cache.write(piece.sector));
        traffic.moved += held ? 0 : sector_bytes;
        touch(share->buffer->touched[std::size_t(direction)], (address - view.base) / sector_bytes);
    }
}

void TrafficCounter::finish() const {
    for (const Share& share : shares_) launch_.add(*share.buffer, share.counts);
    for (const auto& [instruction, counts] : shared_) launch_.add(instruction, counts);
}

namespace {

/// Separate from the handler, whose last call is a jump only if no address of its locals escapes.
[[gnu::noinline]] void count_lanes(const MicroOp* op, const Warp* w, const std::byte* frame, std::uint32_t mask) {
    const auto* const from = reinterpret_cast<const std::uint64_t*>(frame + op->a);
    std::array<std::uint64_t, warp_size> addresses;
    std::size_t count = 0;
    for (std::uint32_t rest = mask; rest; rest &= rest - 1) {
        const std::uint64_t address = from[std::countr_zero(rest)] + std::uint64_t(std::int64_t(std::int32_t(op->x)));
        if (address >> window_bits > std::uint64_t(Space::Const)) addresses[count++] = address;
    }
    w->traffic->count(*w, Direction(op->c), op->y == 0, {addresses.data(), count}, op->b);
}

}  // namespace

Observer observe_traffic() {
    const auto count_shared = [](Lowering& code, std::uint32_t base, std::uint32_t offset, std::uint32_t bytes,
                                 Direction direction, std::uint32_t lanes) {
        const std::uint32_t is_wide = code.values[base].slot == 8 ? 256 : 0;
        code.put({.run = count_shared_traffic,
                  .fields = {0, base, bytes, std::uint32_t(direction), offset, lanes | is_wide},
                  .reads = A});
    };
    return {.access =
                [count_shared](Lowering& code, const MemoryAccess& access) {
                    const bool is_generic = access.space == Space::Generic;
                    if (is_generic || access.space == Space::Shared)
                        count_shared(code, index(access.base), std::uint32_t(access.offset), access.bytes,
                                     access.direction, warp_size | (is_generic ? 512 : 0));
                    if (access.space == Space::Shared) return;
                    code.put({.run = count_traffic,
                              .fields = {0, index(access.base), access.bytes, std::uint32_t(access.direction),
                                         std::uint32_t(access.offset), access.cached ? 0u : 1u},
                              .reads = A});
                },
            .op =
                [count_shared](Lowering& code, Micro& op) {
                    const bool loads = op.run == select_load_matrices(false);
                    if (loads || op.run == select_store_matrices(false)) {
                        const MatrixAccess access = MatrixAccess::of(op.fields[5]);
                        count_shared(code, op.fields[1], op.fields[2], 16, loads ? Direction::Read : Direction::Write,
                                     8u * access.matrices | (access.is_generic ? 512 : 0) | 1024);
                    } else if (op.run == start_copies) {
                        count_shared(code, op.fields[1], op.fields[4], CopyForm::of(op.fields[0]).bytes,
                                     Direction::Write, warp_size);
                    }
                }};
}

const MicroOp* count_traffic(const MicroOp* op, Warp* w, std::byte* frame, std::uint32_t mask) {
    count_lanes(op, w, frame, mask);
    IKAT_NEXT;
}

}  // namespace ikat::emulator
