// SPDX-License-Identifier: Apache-2.0
// Asynchronous products of matrices (wgmma).
//
// The four warps of a warpgroup come to a product one after the other, each in its own turn. The first reads the
// operands in shared memory, the last lets the product be computed. A warp may run ahead of the others up to a
// wgmma.wait_group that covers products to which they have not come.
//
// On a GPU a product reads and writes at any time from its start to the wait that covers it. Here it does so at once,
// and what would show the difference is found: a register of d or a that another instruction touches, and, at the first
// wait that covers the product, operands that are no longer what they were. For its registers each warp has to wait
// itself: the groups are those of the warp that commits them, and a wait of another says nothing about its own. The
// operands in shared memory are free at the first of the four waits: it says that the product is complete, which all
// four warps execute together. Kernels rely on that, in which one thread of a warpgroup tells who copies that a tile
// has been read. For the registers, the decoder inserts an op (touch_registers) before each op that uses a register
// which is d or a of some product (decode/rules/warpgroup.cpp); other kernels have no such ops. By the schedule, a warp
// lets others run before it waits.
#pragma once
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "codegen/ptx/text/module.hpp"
#include "runtime/emulator/agents/descriptors.hpp"
#include "runtime/emulator/agents/slots.hpp"
#include "runtime/emulator/core/agent.hpp"
#include "runtime/emulator/core/tool.hpp"
#include "runtime/emulator/ops/matrix/warpgroup.hpp"

namespace ikat::emulator {

class ThreadBlock;
class ScheduledWarp;

/// Registers, the list d, are about to be used.
const MicroOp* touch_registers(const MicroOp* op, Warp* w, std::byte* frame, std::uint32_t mask);
/// wgmma.fence
const MicroOp* fence_registers(const MicroOp* op, Warp* w, std::byte* frame, std::uint32_t mask);
/// wgmma.mma_async: the list d has d and, if a is in registers, a; a and b are descriptors, c a predicate: whether d is
/// added; x are the members, y is WarpgroupProduct::bits().
Behaviour select_start_product();
const MicroOp* commit_products(const MicroOp* op, Warp* w, std::byte* frame, std::uint32_t mask);
/// Waits until only the last y groups of the warp are in flight. x: a barrier of the warpgroup (control.hpp).
const MicroOp* await_products(const MicroOp* op, Warp* w, std::byte* frame, std::uint32_t mask);

/// Those of a block.
class AsyncProducts final : public Agent {
public:
    static constexpr AgentSlot slot = AgentSlot::Products;
    explicit AsyncProducts(ThreadBlock& block) : block_(block) {}
    void start() override;
    bool touch(const MicroOp* op, Warp* w);
    void fence(const Warp* w) { ++of(w).fences; }
    bool begin(const MicroOp* op, Warp* w, std::byte* frame);
    void commit(const Warp* w);
    enum class Wait { Over, ForOthers, Later, Finding, Recheck };
    Wait await(const MicroOp* op, Warp* w);
    /// Of a warp that waits for the others of its group.
    bool is_met(const Warp& warp) override;
    std::string awaited_by(const Warp& warp) const override;
    FaultCode deadlock() const override { return FaultCode::DivergentWarpgroup; }
    /// Throws Error if a warp must not end now.
    void end_warp(const Warp& warp) override;
    bool describe(Diagnostic& diagnostic, const Fault& fault, std::string_view by) const override;
    void forget_finding() override { found = nullptr; }

    /// An instruction that a finding is also about, and what it is.
    const ptx::Instruction* found = nullptr;
    const char* found_is = "";

private:
    /// What all threads of a warpgroup agree in.
    struct Issue {
        const ptx::Instruction* instruction = nullptr;
        WarpgroupProduct form;
        std::uint64_t a = 0, b = 0;  // descriptors
        bool adds = false;
    };
    struct Product : Issue {
        ListedOperands registers{};
        std::uint64_t operation = 0;
        std::uint32_t came = 0;      // warps of the group, as a set
        bool is_over = false;        // a wait has covered it
        bool has_undefined = false;  // elements of a or b
        std::array<std::byte*, warps_of_group> frames{};
        std::uint64_t undefined_rows = 0;
        std::array<std::uint32_t, 8> undefined_columns{};
        alignas(64) std::array<std::byte, 16 * block_bytes> rows;
        alignas(64) std::array<std::byte, 64 * block_bytes> columns;
    };
    /// A register that is d or a of some product. A use of it by another instruction, and by a product in another way,
    /// must be followed by a fence before the next product uses it.
    struct Register {
        std::uint64_t in_flight_to = 0;             // until this many products are over
        std::uint32_t used_as = 0;                  // by that product: its place in d, with the shape; 0: in a
        std::uint32_t used_at = 0, touched_at = 0;  // how many fences there had been
        const ptx::Instruction *used_by = nullptr, *touched_by = nullptr;
    };
    struct OfWarp {
        std::uint64_t started = 0, over = 0, awaits = 0;  // products
        std::uint32_t fences = 0;
        bool lets_others = false;           // run, or has done so, at the wait that it has come to
        std::vector<std::uint64_t> groups;  // how many had been started at each commit
        std::vector<Register> registers;    // by slot of 32 bits
    };
    struct Group {
        std::deque<std::unique_ptr<Product>> products;
        std::uint64_t first = 0;  // the number of the first of them
        std::array<OfWarp, warps_of_group> warps;
        std::uint64_t computed() const;
    };
    struct Operand;
    struct PartOfShared;
    OfWarp& of(const Warp* w);
    Group& group_of(const Warp* w);
    static Register& register_at(OfWarp& of, const Warp* w, std::uint32_t offset);
    bool find(const MicroOp* op, Warp* w, FaultCode code, std::string what, const ptx::Instruction* other = nullptr,
              const char* is = "");
    bool has_whole_group(const MicroOp* op, Warp* w);
    bool take_registers(const MicroOp* op, Warp* w, const WarpgroupProduct& form);
    bool may_take(const MicroOp* op, Warp* w, const OfWarp& mine, const Register& its, std::uint32_t used_as);
    bool read_operands(const MicroOp* op, Warp* w, const std::byte* frame, Issue& now);
    bool agrees(const MicroOp* op, Warp* w, const Issue& first, const Issue& now);
    bool is_valid(const MicroOp* op, Warp* w, const MatrixDescriptor& descriptor, std::uint64_t bits,
                  const Operand& operand);
    static std::span<const Operand> operands_of(Product& product, std::array<Operand, 2>& all);
    template <class F>
    bool each_row(const MicroOp* op, Warp* w, const Operand& operand, F f);
    template <class F>
    static bool each_row_of_one(Warp* w, const Operand& operand, F f);
    bool gather(const MicroOp* op, Warp* w, Product& product);
    bool tell(const MicroOp* op, Warp* w, Product& product);
    bool complete(const MicroOp* op, Warp* w, Product& product);
    std::unique_ptr<Product> new_product(const Issue& issue, ListedOperands registers);
    unsigned draw(unsigned choices);
    bool is_late();

    ThreadBlock& block_;
    std::vector<Group> groups_;  // empty until there is a product
    std::vector<std::unique_ptr<Product>> spare_;
    std::vector<AgentAccess::Range> ranges_;
    std::uint32_t state_ = 0;  // of the random order; 0: there is none
};

}  // namespace ikat::emulator
