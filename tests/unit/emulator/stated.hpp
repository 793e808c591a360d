// SPDX-License-Identifier: Apache-2.0
// What rules say of their ops (core/micro_info.hpp) has to fit together. Every kernel that the unit tests of the
// emulator decode is held against it.
#pragma once
#include <algorithm>
#include <bit>
#include <initializer_list>
#include <memory>
#include <string_view>

#include "runtime/emulator/decode/lowering.hpp"
#include "tests/catch.hpp"

namespace ikat::tests {

/// What is wrong with what is said of an op; "" if nothing is.
inline std::string_view problem_of(const emulator::Micro& op) {
    using namespace emulator;
    const auto& [operation, access, synchronises, effects, arithmetic, propagation, parameter, use, used, checked] =
        op.info;
    const auto is = [&, what = operation](std::initializer_list<Operation> some) {
        return std::ranges::find(some, what) != some.end();
    };
    const bool has_results = op.writes || op.list.results;
    if (operation == OwnOp::Unknown || operation == OwnOp::Watch) return "its operation is not said";
    if (effects & ~(ReadsBlock | ReadsOthers | Changes)) return "effects that follow from the rest are said";
    if (checked == op.run) return "in the checked code it has the same handler";

    const bool is_atomic =
        Operation(Op::AtomicAdd).number <= operation.number && operation.number <= Operation(Op::AtomicCas).number;
    const bool loads = is({Op::Load, Op::LoadMatrix}), stores = is({Op::Store, Op::StoreMatrix});
    if ((access.bytes != 0) != (loads || stores || is_atomic)) return "it accesses memory, or does not";
    if (access.bytes) {
        if (!access.lanes || !(op.reads & A)) return "no lane has an address";
        if (!std::has_single_bit(access.bytes)) return "it accesses a number of bytes that is no power of two";
        const Direction direction = loads ? Direction::Read : stores ? Direction::Write : Direction::Atomic;
        if (access.direction != direction) return "its direction is another";
        if (has_results == stores) return "a load has results, a store has none";
        if (is_atomic && use != DefinedUse::Atomic) return "an atomic uses its operands";
        const int elements = std::popcount(unsigned(loads ? op.writes : op.reads & ~A));
        if (!checked && !is_atomic && access.bytes % unsigned(elements)) return "its elements are not its bytes";
    }

    const bool orders = synchronises.acquires || synchronises.releases;
    if (is({Op::Barrier}) && !synchronises.releases) return "a barrier releases";
    if (is({Op::SyncWarp, OwnOp::CopyMap}) != synchronises.meets_warp) return "the lanes meet, or do not";
    if (orders && !is({Op::Barrier, Op::ClusterBarrier, Op::Fence, OwnOp::CopyMap})) return "it orders nothing";
    if (orders && synchronises.scope == Scope::Thread && operation != OwnOp::CopyMap) return "it orders no threads";

    if (is({OwnOp::Branch}) && op.reads && use != DefinedUse::Branch) return "a branch uses its condition";
    if (is({OwnOp::Guard, OwnOp::GuardUnless}) && use != DefinedUse::Guard) return "a guard uses its condition";
    if (propagation != Propagation::Mix && (op.list.count || std::popcount(op.writes) != 1))
        return "only one result follows bit by bit from its sources";
    const bool extends = propagation == Propagation::ZeroExtend || propagation == Propagation::SignExtend;
    if (extends ? parameter == 0 || parameter > 8 : propagation != Propagation::Mix && parameter)
        return "its parameter has no meaning";
    if (!use && used != all_fields) return "what is used is said, and not as what";

    const bool starts = is({Op::CopyAsync, Op::CopyArrive, Op::BulkCopy, OwnOp::ChangeMap, OwnOp::CopyMap});
    const bool leaves = is({Op::Print, Op::Check, Op::Call, Op::Sample, OwnOp::Malloc, OwnOp::Free, OwnOp::Alloca});
    if ((starts || leaves) && !(effects & Changes)) return "it changes what nobody compares";
    return "";
}

/// Checks the ops of each kernel that is decoded.
inline std::shared_ptr<const emulator::Tool> check_stated() {
    struct Checker final : emulator::Tool {
        std::string_view name() const override { return "what rules say"; }
        void before_op(emulator::Lowering& code, emulator::Micro& op) const override {
            const std::string_view problem = problem_of(op);
            if (problem.empty()) return;
            INFO((code.current ? ptx::print(code.module, *code.current) : std::string("no instruction")));
            INFO("operation " << op.info.operation.number);
            FAIL_CHECK(problem);
        }
    };
    return std::make_shared<Checker>();
}

}  // namespace ikat::tests
