// SPDX-License-Identifier: Apache-2.0
#include "runtime/emulator/tools/traffic/counter.hpp"

#include <algorithm>
#include <bit>

#include "runtime/emulator/agents/async_copies.hpp"
#include "runtime/emulator/decode/lowering.hpp"
#include "runtime/emulator/machine/block.hpp"
#include "runtime/emulator/ops/matrix/matrix.hpp"
#include "runtime/emulator/tools/traffic/shared.hpp"

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
    explicit Pieces(std::span<const TrafficCounter::Request> requests) {
        for (const TrafficCounter::Request& request : requests) add(request.address, request.bytes);
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

void TrafficOfLaunch::add(const ptx::Instruction* instruction, const SharedTraffic& counts) {
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

TrafficCounter::Share* TrafficCounter::next_share(const Warp& warp, Direction direction, std::uint64_t address,
                                                  View& view, Share* share) {
    if (share && address - view.base < view.bytes) return share;
    view = warp.memory->find(address);
    if (address - view.base >= view.bytes) return nullptr;  // the access will fail
    Share& next = share_of(view);
    ++next.counts[std::size_t(direction)].accesses;
    return &next;
}

void TrafficCounter::count(const Warp& warp, Direction direction, bool cached, std::span<const Request> requests) {
    SectorCache& cache = caches_[warp.index];
    View view;
    Share* share = nullptr;
    for (const Piece& piece : Pieces(requests)) {
        const std::uint64_t address = piece.sector * sector_bytes;
        share = next_share(warp, direction, address, view, share);
        if (!share) continue;
        Traffic& traffic = share->counts[std::size_t(direction)];
        traffic.requested += unsigned(std::popcount(piece.bytes));
        traffic.sectors += 1;
        const bool held =
            cached && (direction == Direction::Read ? cache.read(piece.sector) : cache.write(piece.sector));
        traffic.moved += held ? 0 : sector_bytes;
        touch(share->buffer->touched[std::size_t(direction)], (address - view.base) / sector_bytes);
    }
}

/// A bulk copy passes by the caches. Its ranges ascend, or are far apart.
bool TrafficCounter::access(const AgentAccess& access) {
    if (access.of != AgentAccess::Of::BulkCopy || access.owner) return true;
    const Warp& warp = *access.w;
    const Direction direction = access.direction;
    View view;
    Share* share = nullptr;
    std::uint64_t last = ~std::uint64_t{0};
    for (const AgentAccess::Range& request : access.ranges) {
        const std::uint64_t end = request.address + request.bytes;
        for (std::uint64_t at = request.address; at < end;) {
            const std::uint64_t sector = at / sector_bytes, next = std::min(end, (sector + 1) * sector_bytes);
            share = next_share(warp, direction, at, view, share);
            if (share) {
                Traffic& traffic = share->counts[std::size_t(direction)];
                traffic.requested += next - at;
                if (sector != last) {
                    traffic.sectors += 1;
                    traffic.moved += sector_bytes;
                    touch(share->buffer->touched[std::size_t(direction)],
                          (sector * sector_bytes - view.base) / sector_bytes);
                }
            }
            last = sector;
            at = next;
        }
    }
    return true;
}

void TrafficCounter::finish() {
    for (const Share& share : shares_) launch_.add(*share.buffer, share.counts);
    for (const auto& [instruction, counts] : shared_) launch_.add(instruction, counts);
}

namespace {

bool is_global(std::uint64_t address) { return address >> window_bits > std::uint64_t(Space::Const); }

using Requests = std::array<TrafficCounter::Request, warp_size>;

// Separate from the handlers, whose last call is a jump only if no address of their locals escapes.
[[gnu::noinline]] void count_lanes(const MicroOp* op, const Warp* w, const std::byte* frame, std::uint32_t mask) {
    const auto* const from = reinterpret_cast<const std::uint64_t*>(frame + op->a);
    Requests requests;
    std::size_t count = 0;
    for (std::uint32_t rest = mask; rest; rest &= rest - 1) {
        const std::uint64_t address = from[std::countr_zero(rest)] + std::uint64_t(std::int64_t(std::int32_t(op->x)));
        if (is_global(address)) requests[count++] = {address, op->b};
    }
    counter_of(w, op->d).count(*w, Direction(op->c), op->y == 0, {requests.data(), count});
}

[[gnu::noinline]] void count_lanes_of_copies(const MicroOp* op, const Warp* w, const std::byte* frame,
                                             std::uint32_t mask) {
    const CopyForm form = CopyForm::of(op->d);
    const auto* const from = reinterpret_cast<const std::uint64_t*>(frame + op->b);
    const auto* const limits = reinterpret_cast<const std::uint32_t*>(frame + op->c);
    Requests requests;
    std::size_t count = 0;
    for (std::uint32_t rest = mask; rest; rest &= rest - 1) {
        const auto lane = unsigned(std::countr_zero(rest));
        const std::uint64_t address = from[lane] + std::uint64_t(std::int64_t(std::int32_t(op->y)));
        const bool is_ignored = form.source == CopyForm::Source::Ignored && (*limits >> lane & 1);
        const std::uint32_t limit = form.source == CopyForm::Source::Bytes ? limits[lane] : form.bytes;
        const std::uint32_t bytes = is_ignored ? 0 : std::min<std::uint32_t>(limit, form.bytes);
        if (bytes && is_global(address)) requests[count++] = {address, bytes};
    }
    counter_of(w, op->x).count(*w, Direction::Read, form.is_cached, {requests.data(), count});
}

/// Before an access of b bytes at address a (a register of 8 bytes) + x: c is its Direction, y whether it bypasses the
/// cache, d the tool's slot.
const MicroOp* count_accesses(const MicroOp* op, Warp* w, std::byte* frame, std::uint32_t mask) {
    count_lanes(op, w, frame, mask);
    IKAT_NEXT;
}

/// Before copies that read as many bytes as an operand says, with the fields of start_copies (agents/async_copies.hpp),
/// but for x, which is the tool's slot.
const MicroOp* count_copies(const MicroOp* op, Warp* w, std::byte* frame, std::uint32_t mask) {
    count_lanes_of_copies(op, w, frame, mask);
    IKAT_NEXT;
}

class Counter final : public Tool {
public:
    explicit Counter(std::function<void(const LaunchTraffic&)> told) : told_(std::move(told)) {}
    std::string_view name() const override { return "traffic"; }

    void before_access(Lowering& code, const MemoryAccess& access) const override {
        const bool is_generic = access.space == Space::Generic;
        if (is_generic || access.space == Space::Shared)
            count_shared(code, index(access.base), std::uint32_t(access.offset), access.bytes, access.direction,
                         warp_size | (is_generic ? 512 : 0));
        if (access.space == Space::Shared || access.is_limited) return;
        code.put({.run = count_accesses,
                  .fields = {code.asked, index(access.base), access.bytes, std::uint32_t(access.direction),
                             std::uint32_t(access.offset), access.cached ? 0u : 1u},
                  .reads = A});
    }

    void before_op(Lowering& code, Micro& op) const override {
        const Operation operation = op.info.operation;
        if (operation == Op::LoadMatrix || operation == Op::StoreMatrix) {
            const MatrixAccess access = MatrixAccess::of(op.fields[5]);
            count_shared(code, op.fields[1], op.fields[2], 16, op.info.access.direction,
                         8u * access.matrices | (access.is_generic ? 512 : 0) | 1024);
        } else if (operation == Op::CopyAsync) {
            count_shared(code, op.fields[1], op.fields[4], CopyForm::of(op.fields[0]).bytes, Direction::Write,
                         warp_size);
            if (CopyForm::of(op.fields[0]).source == CopyForm::Source::Whole) return;
            std::array<std::uint32_t, 6> fields = op.fields;
            fields[4] = code.asked;
            code.put({.run = count_copies, .fields = fields, .reads = op.reads});
        }
    }

    std::unique_ptr<LaunchTool> of(LaunchState& launch, std::size_t) const override {
        return std::make_unique<OfLaunch>(*this, launch);
    }

private:
    static void count_shared(Lowering& code, std::uint32_t base, std::uint32_t offset, std::uint32_t bytes,
                             Direction direction, std::uint32_t lanes) {
        const std::uint32_t is_wide = code.values[base].slot == 8 ? 256 : 0;
        code.put({.run = count_shared_traffic,
                  .fields = {code.asked, base, bytes, std::uint32_t(direction), offset, lanes | is_wide},
                  .reads = A});
    }

    class OfLaunch final : public LaunchTool {
    public:
        OfLaunch(const Counter& counter, LaunchState& launch) : counter_(counter), launch_(launch) {}
        std::unique_ptr<BlockTool> of(ThreadBlock& block) override {
            return std::make_unique<TrafficCounter>(traffic_, block.warps().size());
        }
        void end(Statistics& statistics) override {
            counter_.told_({.entry = std::string(launch_.launch.entry),
                            .warp_instructions = statistics.warp_instructions,
                            .lane_instructions = statistics.lane_instructions,
                            .buffers = traffic_.result(launch_.memory),
                            .shared = traffic_.shared(launch_.module, launch_.source_lines)});
        }

    private:
        const Counter& counter_;
        LaunchState& launch_;
        TrafficOfLaunch traffic_;
    };

    std::function<void(const LaunchTraffic&)> told_;
};

}  // namespace

std::shared_ptr<const Tool> count_traffic(std::function<void(const LaunchTraffic&)> told) {
    return std::make_shared<Counter>(std::move(told));
}

}  // namespace ikat::emulator
