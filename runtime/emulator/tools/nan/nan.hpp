// SPDX-License-Identifier: Apache-2.0
// Finds where a NaN or an infinity is made of numbers: all that an op takes is finite, and what it gives is not. What
// already is a NaN or infinite, a literal or in memory, makes others, and that is no finding. Which ops are looked at,
// the rules say (Arithmetic, core/micro_info.hpp). A product of matrices is looked at as a whole.
#pragma once
#include <array>
#include <optional>

#include "runtime/emulator/core/tool.hpp"
#include "runtime/emulator/core/warp.hpp"

namespace ikat::emulator {

/// Used where the class `nan` is not off.
const Tool& made_of_numbers();

namespace nans {

/// What a finding says.
struct Found {
    Operation operation{};
    const ptx::Instruction* instruction = nullptr;
    Type to = Type::Void;
    double result = 0;
    bool is_of_matrices = false;
    unsigned count = 0;
    std::array<Type, 3> from{};
    std::array<std::uint64_t, 3> operands{};  // in the low bits; of a product of matrices, the largest numbers as f64
};

class BlockNans final : public BlockTool {
public:
    explicit BlockNans(ThreadBlock& block) : block_(block) {}
    void before_product(const WarpgroupWork& work) override;
    bool after_product(const WarpgroupWork& work, Warp& warp, const MicroOp* op) override;
    /// False after a finding that stops the warp.
    bool report(Warp* w, const MicroOp* op, unsigned lane, const Found& found);
    bool describe(Diagnostic& diagnostic, const Fault& fault, std::string_view by) const override;
    void forget_finding() override { found_.reset(); }

private:
    ThreadBlock& block_;
    std::optional<double> largest_sum_;  // to which the product in hand is added; none: one is not finite
    std::optional<Found> found_;
};

}  // namespace nans

}  // namespace ikat::emulator
