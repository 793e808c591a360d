// SPDX-License-Identifier: Apache-2.0
// What is known about the size of integers: an interval that holds the value, and a divisor of it. Enough to prove that
// the index computations of kernels do not wrap.
//
//     %0 = special.u32 tid.x          0 … 255 in a kernel with max_threads 256
//     %1 = const.u32 4
//     %2 = mul.u32 %0, %1             0 … 1020, a multiple of 4
//     %3 = lt.u32 %2, %n
//     branch %3, ^1, ^2
//   ^1:                               here %2 is less than %n's upper bound: %2 + 1 does not wrap
//
// Facts come from constants, contracts (`multiple`, launch bounds), the limits of special registers, the operations
// and, at a given block, the branches that lead there. A loop counter is bounded by the test that guards its step.
//
// Everything is computed on demand; results for values are cached. Valid until the function changes (new instructions
// are harmless).
#pragma once
#include <optional>
#include <vector>

#include "codegen/analysis/dominators.hpp"

namespace ikat::analysis {

using Int128 = __int128;  // holds every value of every integer type, sums and products of two of them (saturated)

struct Interval {
    Int128 low = 0, high = 0;    // inclusive
    std::uint64_t multiple = 1;  // the value is a multiple of it; 0: the value is 0

    bool contains(Int128 value) const { return low <= value && value <= high; }
    bool within(const Interval& other) const { return other.low <= low && high <= other.high; }
    bool operator==(const Interval&) const = default;
};

/// The whole range of an integer type.
Interval full(ir::Type type);

class Ranges {
public:
    Ranges(const ir::Function& fn, const Dominators& dominators) : fn_(fn), dominators_(dominators) {}

    /// For a value of an integer type, wherever it is used.
    Interval of(ir::Value value);
    /// … in a block, using the branches that lead there.
    Interval at(ir::Value value, ir::Block block);
    /// Whether an Add, Sub, Mul, Shl or Fma of integers computes in `block` what it would in unbounded integers. It
    /// depends on the branches before the block, so it is asked where the index is used: a mark on the address that its
    /// index does not wrap would be wrong wherever else a pass moves or merges it.
    bool is_exact(ir::Inst inst, ir::Block block);

private:
    Interval computed(ir::Value value);
    Interval parameter(ir::Value value);
    Interval operation(ir::Inst inst);
    struct Step {
        Int128 by, guard, test;  // i + by, where i is at most guard and i + by at most test
    };
    std::optional<Int128> step(ir::Value value, ir::Value argument) const;
    Interval refined(ir::Value value, ir::Block block, Interval known);
    Interval on_edge(ir::Value value, ir::Block from, std::size_t way, Interval known);
    void assume(ir::Value condition, bool holds, ir::Value value, Interval& known, int depth);
    /// The result in unbounded integers, with the operands' intervals given by `range`.
    static Interval unbounded(const ir::Function& fn, ir::Inst inst, auto&& range);

    static constexpr std::uint32_t unknown = 0, busy = 1, first_known = 2;
    const ir::Function& fn_;
    const Dominators& dominators_;
    std::vector<std::uint32_t> states_;  // by value: unknown, busy, or first_known + the number of its interval
    std::vector<Interval> intervals_;
    int depth_ = 0;
};

}  // namespace ikat::analysis
