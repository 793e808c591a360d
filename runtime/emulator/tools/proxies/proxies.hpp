// SPDX-License-Identifier: Apache-2.0
// Finds fences of proxies that are missing. Copies and products access memory by another way than ordinary
// instructions, the asynchronous proxy (PTX ISA, "Proxies"). Between an ordinary write and what reads or overwrites it
// by that way there must be a fence.proxy.async: of the thread that has written, of the one that starts the operation,
// or of a thread that has met the first before it meets the second (warp_order.hpp). Whether the threads meet between
// write, fence and operation is not checked if the fence is of one of the two: in some orders of the warps it comes too
// early.
#pragma once
#include "runtime/emulator/tools/proxies/generic_writes.hpp"
#include "runtime/emulator/tools/proxies/warp_order.hpp"

namespace ikat::emulator {

/// For kernels that have such operations.
const Tool& proxies();

class Proxies final : public BlockTool {
public:
    Proxies(ThreadBlock& block, std::size_t slot) : block_(block), slot_(slot), writes_(block, order_) {}
    /// That of another block of the launch.
    Proxies& of(const ThreadBlock& block) const { return static_cast<Proxies&>(*block.tool(slot_)); }
    WarpOrder& order() { return order_; }
    GenericWrites& writes() { return writes_; }

    void start() override;
    void forget_finding() override { found_ = {}; }
    void arrive(const Warp& warp, std::uint32_t, const Meeting& at, bool) override {
        if (&block_of(&warp) == &block_) order_.arrive(warp.index, at);
    }
    void complete(const Meeting& at, bool) override { order_.complete(at); }
    void leave(const Warp& warp, std::uint32_t, const Meeting& at) override { order_.leave(warp.index, at); }
    void forget(const Meeting& at) override { order_.forget(at); }
    void release(const Warp& warp) override { order_.release(warp.index); }
    void acquire_released() override { order_.acquire_released(); }
    void begin(const Warp& warp, unsigned lane, const Meeting& at, const ptx::Instruction* by) override;
    bool access(const AgentAccess& access) override;
    void land(const AgentAccess& access) override;
    bool describe(Diagnostic& diagnostic, const Fault& fault, std::string_view by) const override;

private:
    bool is_shown(const AgentAccess& access, Shown shown, const GenericWrites::Write& write) const;
    bool is_shown_map(const AgentAccess& access, const GenericWrites::Write& write) const;
    bool access_shared(const AgentAccess& access);
    bool access_global(const AgentAccess& access);
    bool arrive_at_barrier(const AgentAccess& access);
    bool find(const AgentAccess& access, Fault fault, const GenericWrites::Write& write, std::string_view fence);
    bool find(const AgentAccess& access, Fault fault, std::string what, const ThreadBlock& by, std::uint32_t thread,
              const ptx::Instruction* instruction);

    /// The write that a finding is about.
    struct Found {
        const ThreadBlock* by = nullptr;
        std::uint32_t thread = 0;
        const ptx::Instruction* instruction = nullptr;
    };
    /// Who has made a barrier in shared memory.
    struct Made {
        std::uint32_t thread = 0, when = 0;
        const ptx::Instruction* by = nullptr;
    };

    ThreadBlock& block_;
    const std::size_t slot_;
    WarpOrder order_;
    GenericWrites writes_;
    std::unordered_map<std::uint64_t, Made> barriers_;  // by address
    Found found_{};
};

}  // namespace ikat::emulator
