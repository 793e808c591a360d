// SPDX-License-Identifier: Apache-2.0
// Which threads agree on what an operation gives, and which have to come to it together: by the columns of its row and
// by its form; and one rule for how agreement goes from operands to results. ast/uniformity walks the kernel as
// captured with it, analysis/uniformity the IR.
//
//     special.u32 ctaid.x          Block: the same in all threads of a block
//     special.u32 tid.x            Thread: nothing in common
//     vote_all %p, 0xffffffff      Warp
//     add.u32 %a, %b               as far as both operands
//     barrier 0                    all threads of a block have to come to it together, or none
#pragma once
#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "codegen/ir/op/effects.hpp"
#include "codegen/ir/op/forms/barriers.hpp"

namespace ikat::ir {

/// What is taken of a value of which this cannot be known: loaded by all threads from one address, handed on by a
/// shuffle, tid.y in blocks of any shape.
enum class Doubt : std::uint8_t {
    Differs,  // to prove that threads agree
    Agrees,   // to find threads that do not, on any grid but odd ones: blocks are multiples of 32 threads wide
};

/// What is known of a value.
struct Spread {
    Extent extent = Extent::Cluster;
    // With Doubt::Agrees:
    bool linear = false;    // tid.x or the lane, plus something that is the same throughout a warp
    bool combined = false;  // made of other lanes' values, as a reduction is: taken to be the same everywhere
    bool warps = false;     // tid.x / 32, plus something that is the same throughout a warpgroup
    bool operator==(const Spread&) const = default;
};
/// Below every other, where a walk begins that lets values differ as it finds out.
inline constexpr Spread anything_yet{Extent::Cluster, true, true, true};

/// A value that is one or the other, by the way that a thread has come; the ways have parted `parted`.
constexpr Spread either(const Spread& a, const Spread& b, Extent parted) {
    const bool alike = parted != Extent::Thread;
    return {std::max({a.extent, b.extent, parted}), a.linear && b.linear && alike, a.combined && b.combined && alike,
            a.warps && b.warps && parted <= Extent::Warpgroup};
}

// ---- what ops and special registers give

constexpr Extent extent_of(SpecialRegister which, Doubt doubt) {
    using enum SpecialRegister;
    switch (which) {
        case TidX:
        case LaneId:
        case LanemaskEq:
        case LanemaskLe:
        case LanemaskLt:
        case LanemaskGe:
        case LanemaskGt: return Extent::Thread;
        case TidY:  // of rows of whole warps or warpgroups
        case TidZ: return doubt == Doubt::Agrees ? Extent::Warpgroup : Extent::Thread;
        case WarpId: return Extent::Warp;
        case CtaidX:  // a condition may be about whole clusters
        case CtaidY:
        case CtaidZ: return doubt == Doubt::Agrees ? Extent::Cluster : Extent::Block;
        case SmId:
        case ClusterCtaidX:
        case ClusterCtaidY:
        case ClusterCtaidZ:
        case ClusterCtarank: return Extent::Block;
        default: return changes(which) ? Extent::Thread : Extent::Cluster;
    }
}

/// Who gets the same from an operation to which threads come together.
constexpr Extent given_by(Op op, Form attribute, Doubt doubt) {
    const Conduct does = conduct(op, attribute);
    return doubt == Doubt::Agrees ? does.likely : does.gives;
}

/// Who has to come to an operation together, or not at all. `members`: its last operand, where that is constant; in a
/// block of one warp the one is the other.
constexpr Extent needed_by(Op op, Form attribute, std::optional<Word> members, std::uint32_t max_threads) {
    switch (conduct(op, attribute).meets) {
        case Meeting::None:
        case Meeting::Whoever: return Extent::Thread;
        case Meeting::Members: return members == Word{0xffffffff} ? Extent::Warp : Extent::Thread;
        case Meeting::Warp: return Extent::Warp;
        case Meeting::Warpgroup: return Extent::Warpgroup;
        case Meeting::Block: return max_threads > 0 && max_threads <= 32 ? Extent::Warp : Extent::Block;
        case Meeting::Cluster: return Extent::Cluster;
    }
    return Extent::Thread;
}

// ---- from operands to results

/// An operation as this sees it. Operands: spread(i); constant(i), the bits of one that is a constant; whole_warps(i),
/// whether it is surely a multiple of 32.
template <class Spreads, class Constants, class Wholes>
struct Operation {
    Op op{};
    Type type{};
    Form attribute = 0;
    std::size_t operands = 0;
    Spreads spread;
    Constants constant;
    Wholes whole_warps;
    Doubt doubt = Doubt::Differs;

    /// Which threads agree on all of these operands.
    constexpr Extent common(std::size_t count) const {
        Extent out = Extent::Cluster;
        for (std::size_t i = 0; i < count; ++i) out = std::max(out, spread(i).extent);
        return any_combined() ? Extent::Cluster : out;
    }
    constexpr bool any_combined() const {
        if (doubt == Doubt::Differs) return false;
        for (std::size_t i = 0; i < operands; ++i)
            if (spread(i).combined) return true;
        return false;
    }

    /// Whether adding it to a linear value leaves that linear.
    constexpr bool is_offset(std::size_t i) const {
        return spread(i).extent != Extent::Thread && (!constant(i) || whole_warps(i));
    }
    constexpr bool is_linear() const {
        const auto linear = [&](std::size_t i) { return spread(i).linear; };
        switch (op) {
            case Op::Add: return (linear(0) && is_offset(1)) || (linear(1) && is_offset(0));
            case Op::Sub: return linear(0) && is_offset(1);
            case Op::Fma: return linear(2) && common(2) != Extent::Thread;
            case Op::Convert: return linear(0) && contains(Int, type);
            default: return false;
        }
    }
    /// Whether the first operand counts something, and the operation tells apart only groups of that many: of a
    /// constant that is not one of such groups, surely not.
    constexpr bool divides_by(std::uint32_t group) const {
        if (operands < 2) return false;
        const auto number = constant(1);
        const auto is_multiple = [&] { return number ? *number % group == 0 : group != 32 || whole_warps(1); };
        switch (op) {
            case Op::Div:
            case Op::Lt:
            case Op::Ge:
            case Op::And: return is_multiple();
            case Op::Le:
            case Op::Gt: return number && *number % group == group - 1;
            case Op::Shr:
            case Op::ExtractBits: return number && (*number >= 32 || (std::uint64_t{1} << *number) % group == 0);
            default: return false;
        }
    }
    /// Who gets the same from an operation on a number of a thread or of a warp.
    constexpr Extent extent_of_count() const {
        const Extent all = common(operands);
        const bool threads = operands > 0 && spread(0).linear, warps = operands > 0 && spread(0).warps;
        if ((threads && divides_by(32) && divides_by(128)) || (warps && divides_by(4)))
            return std::min(all, Extent::Warpgroup);
        return threads && divides_by(32) ? std::min(all, Extent::Warp) : all;
    }
    /// Whether it gives the number of a warp, as such a value.
    constexpr bool counts_warps() const {
        const auto warps = [&](std::size_t i) { return spread(i).warps; };
        const auto is_offset = [&](std::size_t i) {
            return spread(i).extent <= Extent::Warpgroup && (!constant(i) || *constant(i) % 4 == 0);
        };
        switch (op) {
            case Op::Add: return (warps(0) && is_offset(1)) || (warps(1) && is_offset(0));
            case Op::Sub: return warps(0) && is_offset(1);
            case Op::Convert: return warps(0) && contains(Int, type);
            case Op::Div: return spread(0).linear && constant(1) == Word{32};
            case Op::Shr: return spread(0).linear && constant(1) == Word{5};
            default: return false;
        }
    }
    /// A value that each lane takes from one lane of its warp, which all know.
    constexpr std::optional<Spread> broadcast(std::optional<Word> members, Extent here) const {
        if (op != Op::Shuffle || unpack<ShuffleForm>(attribute).mode != ShuffleMode::Idx) return {};
        const Spread given = spread(0);
        if (doubt == Doubt::Differs) {
            const bool whole =
                members == Word{0xffffffff} && constant(2) == Word{31} && spread(1).extent <= Extent::Warp;
            if (!whole) return {};
            return Spread{std::max({std::min(given.extent, Extent::Warp), spread(1).extent, here})};
        }
        if (given.extent < Extent::Thread) return given;
        if (given.linear && constant(1)) return Spread{.extent = Extent::Warp, .linear = true};
        return {};
    }

    /// What it gives, if it depends on its operands and on other threads alone, in a place that is reached by the
    /// threads `here`. `members` as in needed_by.
    constexpr Spread result(std::optional<Word> members, Extent here) const {
        if (info(op).attribute == Attribute::Special) {
            const auto which = SpecialRegister(Word{attribute});
            const bool counts_threads = which == SpecialRegister::TidX || which == SpecialRegister::LaneId;
            return {extent_of(which, doubt), counts_threads && doubt == Doubt::Agrees};
        }
        if (effects(op).convergent) {
            const Extent given = given_by(op, attribute, doubt);
            if (const auto one = broadcast(members, here)) return *one;
            if (given == Extent::Thread) return {Extent::Thread};
            if (doubt == Doubt::Agrees) return {.extent = Extent::Cluster, .combined = true};
            return {given == Extent::Block || members == Word{0xffffffff} ? std::max(given, here) : Extent::Thread};
        }
        if (doubt == Doubt::Differs) return {common(operands)};
        return {extent_of_count(), is_linear(), any_combined(), counts_warps()};
    }
};
template <class S, class C, class W>
Operation(Op, Type, Form, std::size_t, S, C, W, Doubt) -> Operation<S, C, W>;

/// What threads' own arrays in local memory hold, by symbol, with Doubt::Agrees: a place in an array surely differs
/// only if everything that is ever stored in the array does, as any of it may be there. So a walk begins with arrays of
/// which all differs, tells at its end what each store has stored, and is repeated as long as that differs less.
class OwnArrays {
public:
    explicit OwnArrays(const auto& symbols) : stored_(symbols.size()) {
        for (const auto& symbol : symbols)
            held_.push_back({symbol.space == Space::Local ? Extent::Thread : Extent::Cluster});
    }

    /// What a load gives, at indices that threads `agree` on.
    Spread load(std::size_t symbol, Extent agree) const { return either(held_[symbol], held_[symbol], agree); }

    void store(std::size_t symbol, const Spread& value) {
        auto& stored = stored_[symbol];
        stored = stored ? minimum(*stored, value) : value;
    }
    void store_in_any(const Spread& value) {
        for (std::size_t i = 0; i < stored_.size(); ++i) store(i, value);
    }
    /// Whether an array differs less than was assumed: then the next walk assumes that.
    bool settle() {
        bool changed = false;
        for (std::size_t i = 0; i < held_.size(); ++i) {
            const auto stored = std::exchange(stored_[i], std::nullopt);
            if (held_[i].extent == Extent::Cluster) continue;                 // not less than that
            const Spread now = minimum(held_[i], stored.value_or(Spread{}));  // nothing stored: nothing differs
            changed |= now != held_[i];
            held_[i] = now;
        }
        return changed;
    }

private:
    static constexpr Spread minimum(const Spread& a, const Spread& b) {
        return {std::min(a.extent, b.extent), a.linear || b.linear, a.combined || b.combined, a.warps || b.warps};
    }
    std::vector<Spread> held_;
    std::vector<std::optional<Spread>> stored_;
};

/// What a load gives if nothing is known of what is stored: at addresses that threads `agree` on, in a place that is
/// reached by the threads `here`.
constexpr Spread loaded(const MemoryInfo& memory, bool constant_memory, Extent agree, Extent here, Doubt doubt) {
    if (doubt == Doubt::Agrees) return {agree};
    if (memory.space == Space::Local || !is_weak(memory)) return {Extent::Thread};
    return {constant_memory ? agree : std::max(agree, here)};
}

}  // namespace ikat::ir
