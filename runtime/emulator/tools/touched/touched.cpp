// SPDX-License-Identifier: Apache-2.0
#include "runtime/emulator/tools/touched/touched.hpp"

#include <algorithm>
#include <bit>
#include <utility>

#include "runtime/emulator/decode/lowering.hpp"
#include "runtime/emulator/machine/block.hpp"

namespace ikat::emulator {

void RangeCollector::merge() {
    std::ranges::sort(kept_, {}, &ByteRanges::Range::begin);
    std::size_t last = 0;
    for (std::size_t i = 1; i < kept_.size(); ++i) {
        if (kept_[i].begin <= kept_[last].end)
            kept_[last].end = std::max(kept_[last].end, kept_[i].end);
        else
            kept_[++last] = kept_[i];
    }
    kept_.resize(std::min(kept_.size(), last + 1));
    limit_ = std::max<std::size_t>(1024, 2 * kept_.size());
}

std::vector<ByteRanges::Range> RangeCollector::take() {
    if (used_ != 0) kept_.reserve(kept_.size() + std::size_t(std::popcount(used_)));
    for (; used_ != 0; used_ &= used_ - 1) kept_.push_back(std::exchange(runs_[std::countr_zero(used_)], {}));
    if (kept_.size() > 1) merge();
    return std::move(kept_);
}

namespace {

/// Field c of note_access.
struct AccessForm {
    std::uint8_t slot = 0;  // of the tool
    std::uint8_t bytes = 4;
    Touch touch = Touch::Read;

    std::uint32_t bits() const { return slot | std::uint32_t(bytes) << 8 | std::uint32_t(touch) << 16; }
    static AccessForm of(std::uint32_t bits) {
        return {std::uint8_t(bits), std::uint8_t(bits >> 8), Touch(bits >> 16 & 3)};
    }
};

/// Ranges one after the other; those that follow each other in memory are added as one.
class Run {
public:
    explicit Run(RangeCollector& to) : to_(to) {}
    ~Run() { end(); }
    Run(const Run&) = delete;
    Run& operator=(const Run&) = delete;
    void add(std::uint64_t begin, std::uint64_t bytes) {
        if (begin != end_) {
            end();
            begin_ = begin;
        }
        end_ = begin + bytes;
    }

private:
    void end() {
        if (begin_ != end_) to_.add(begin_, end_);
    }
    RangeCollector& to_;
    std::uint64_t begin_ = 0, end_ = 0;
};

/// Blocks of a host thread, one after the other. Generic addresses may be of shared or local memory.
class BlockTouched final : public BlockTool {
public:
    explicit BlockTouched(LaunchState& launch) : launch_(launch) {}

    bool is_told() const override { return false; }
    RangeCollector& bytes(Touch touch) { return bytes_[std::size_t(touch)]; }

    bool access(const AgentAccess& access) override {
        if (access.owner || access.of == AgentAccess::Of::Product || access.of == AgentAccess::Of::Arrival) return true;
        const Touch touch = access.direction == Direction::Read    ? Touch::Read
                            : access.direction == Direction::Write ? Touch::Write
                                                                   : Touch::Strong;
        Run run(bytes(touch));
        for (const AgentAccess::Range& range : access.ranges) run.add(range.address, range.bytes);
        return true;
    }
    void finish() override {
        TouchedMemory& all = *launch_.launch.touched;
        const std::lock_guard lock(all.mutex);
        for (std::size_t i = 0; i < touches; ++i)
            for (const ByteRanges::Range& range : bytes_[i].take()) all.bytes[i].add(range.begin, range.end);
    }

private:
    LaunchState& launch_;
    std::array<RangeCollector, touches> bytes_;
};

struct LaunchTouched final : LaunchTool {
    explicit LaunchTouched(LaunchState& state) : launch(state) {}
    std::unique_ptr<BlockTool> of(ThreadBlock&) override { return std::make_unique<BlockTouched>(launch); }
    LaunchState& launch;
};

/// Lanes that follow each other in memory are one range.
[[gnu::noinline]] void note_lanes(const MicroOp* op, const Warp* w, const std::byte* frame, std::uint32_t mask) {
    const AccessForm form = AccessForm::of(op->c);
    const auto* const from = reinterpret_cast<const std::uint64_t*>(frame + op->a);
    const std::uint64_t offset = std::uint64_t(std::int64_t(std::int32_t(op->x)));
    BlockTouched& touched = static_cast<BlockTouched&>(*w->tools[form.slot]);
    if (mask == ~std::uint32_t{0}) {
        std::uint64_t differs = 0;
        for (unsigned i = 0; i < warp_size; ++i) differs |= from[i] ^ (from[0] + i * form.bytes);
        if (!differs) return touched.bytes(form.touch).add(from[0] + offset, from[0] + offset + warp_size * form.bytes);
    }
    Run run(touched.bytes(form.touch));
    for (; mask; mask &= mask - 1) run.add(from[std::countr_zero(mask)] + offset, form.bytes);
}

/// Before an access: a + x is its address, b the lanes that give one, c the form.
const MicroOp* note_access(const MicroOp* op, Warp* w, std::byte* frame, std::uint32_t mask) {
    note_lanes(op, w, frame, mask & op->b);
    IKAT_NEXT;
}

class Touched final : public Tool {
public:
    std::string_view name() const override { return "touched"; }

    void before_op(Lowering& code, Micro& op) const override {
        const MicroInfo::Access& access = op.info.access;
        if (!access.bytes || (access.space != Space::Global && access.space != Space::Generic)) return;
        const AccessForm form{.slot = std::uint8_t(code.asked),
                              .bytes = std::uint8_t(access.bytes),
                              .touch = access.is_strong                       ? Touch::Strong
                                       : access.direction == Direction::Write ? Touch::Write
                                                                              : Touch::Read};
        code.put({.run = note_access,
                  .fields = {0, op.fields[1], access.lanes, form.bits(), std::uint32_t(access.offset)},
                  .reads = A});
    }
    std::unique_ptr<LaunchTool> of(LaunchState& launch, std::size_t) const override {
        return std::make_unique<LaunchTouched>(launch);
    }
};

}  // namespace

const Tool& touched_memory() {
    static const Touched tool;
    return tool;
}

}  // namespace ikat::emulator
