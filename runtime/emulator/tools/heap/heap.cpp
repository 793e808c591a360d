// SPDX-License-Identifier: Apache-2.0
#include "runtime/emulator/tools/heap/heap.hpp"

#include <algorithm>
#include <bit>
#include <mutex>
#include <unordered_map>

#include "runtime/emulator/core/definedness.hpp"
#include "runtime/emulator/decode/lowering.hpp"
#include "runtime/emulator/machine/messages.hpp"

namespace ikat::emulator {

namespace {

class LaunchHeap final : public LaunchTool {
public:
    explicit LaunchHeap(const LaunchState& launch) : launch_(launch) {}
    std::unique_ptr<BlockTool> of(ThreadBlock&) override;

    void add(std::uint64_t address, std::uint32_t op, std::uint64_t bytes) {
        const std::lock_guard lock(mutex_);
        live_[address] = {op, bytes};
    }
    void remove(std::uint64_t address) {
        const std::lock_guard lock(mutex_);
        live_.erase(address);
    }
    void end(Statistics& statistics) override {
        std::map<std::uint32_t, std::uint64_t> bytes;
        for (const auto& [address, block] : live_) bytes[block.op] += block.bytes;
        for (const auto& [op, count] : bytes) {
            const Location at = location(launch_, *launch_.kernel.instructions[op]);
            statistics.heap_left.push_back({at.file, at.line, count});
        }
    }

private:
    struct Block {
        std::uint32_t op = 0;
        std::uint64_t bytes = 0;
    };
    const LaunchState& launch_;
    std::unordered_map<std::uint64_t, Block> live_;  // by address
    std::mutex mutex_;
};

struct BlockHeap final : BlockTool {
    explicit BlockHeap(LaunchHeap& launch) : launch(launch) {}
    LaunchHeap& launch;
};

std::unique_ptr<BlockTool> LaunchHeap::of(ThreadBlock&) { return std::make_unique<BlockHeap>(*this); }

LaunchHeap& heap_of(const Warp* w, std::uint32_t slot) { return static_cast<BlockHeap&>(*w->tools[slot]).launch; }

[[gnu::noinline]] void add_lanes(const MicroOp* op, const Warp* w, const std::byte* frame, std::uint32_t mask) {
    const auto* const addresses = reinterpret_cast<const std::uint64_t*>(frame + op->a);
    const auto* const bytes = reinterpret_cast<const std::uint64_t*>(frame + op->b);
    for (; mask; mask &= mask - 1) {
        const auto lane = unsigned(std::countr_zero(mask));
        if (addresses[lane]) heap_of(w, op->c).add(addresses[lane], plain_index_of(w, op), bytes[lane]);
    }
}

/// After malloc: a has the addresses, b how many bytes; c is the tool's slot.
const MicroOp* note_malloc(const MicroOp* op, Warp* w, std::byte* frame, std::uint32_t mask) {
    add_lanes(op, w, frame, mask);
    IKAT_NEXT;
}

[[gnu::noinline]] void remove_lanes(const MicroOp* op, const Warp* w, const std::byte* frame, std::uint32_t mask) {
    const auto* const addresses = reinterpret_cast<const std::uint64_t*>(frame + op->a);
    for (; mask; mask &= mask - 1) heap_of(w, op->c).remove(addresses[std::countr_zero(mask)]);
}

/// Before free(a); c is the tool's slot.
const MicroOp* note_free(const MicroOp* op, Warp* w, std::byte* frame, std::uint32_t mask) {
    remove_lanes(op, w, frame, mask);
    IKAT_NEXT;
}

class Finder final : public Tool {
public:
    std::string_view name() const override { return "heap"; }
    void before_op(Lowering& code, Micro& op) const override {
        if (op.info.operation == OwnOp::Free)
            code.put({.run = note_free, .fields = {0, op.fields[1], 0, code.asked}, .reads = A});
    }
    void after_op(Lowering& code, const Micro& op) const override {
        if (op.info.operation == OwnOp::Malloc)
            code.put({.run = note_malloc, .fields = {0, op.fields[0], op.fields[1], code.asked}, .reads = A | B});
    }
    std::unique_ptr<LaunchTool> of(LaunchState& launch, std::size_t) const override {
        return std::make_unique<LaunchHeap>(launch);
    }
};

}  // namespace

const Tool& heap_left() {
    static const Finder finder;
    return finder;
}

}  // namespace ikat::emulator
