// SPDX-License-Identifier: Apache-2.0
// Addresses of a loop whose index grows evenly with the loop's counter, for unroll, which makes two loops of one: in
// the one that makes several rounds a trip their indices do not wrap, so that 64-bit addresses can take their place.
//
//     ^3(%i: u32):                        ^1:                               in front of the trips
//       %1 = mul.u32 %row, %n               %1 = mul.u32 %row, %n
//       %2 = add.u32 %1, %i                 %a = at.u64.u32 4, %A, %1
//       %3 = at.u64.u32 4, %A, %2           …                               does no index wrap?
//       %4 = mul.u32 %i, %n         ==>   ^3(%i: u32, %b: u64):
//       %5 = at.u64.u32 4, %B, %4           %3 = at.u64.u32 4, %a, %i
//       %next = add.u32 %i, 1               %5 = at.u64.u32 4, %b, 0
//                                           %c = at.u64.u32 4, %b, %n       of the next round
//
// An index is first + factor * counter, modulo 2^32, where first and factor do not change in the loop. It does not wrap
// if it does not at the last counter. A factor that is a constant becomes part of the address's; else the address
// itself goes from round to round. An index that a constant may bring below 0 is left alone, and so is
// what has the counter alone as its index: of that, use_ranges knows. So are loops with convergent operations: threads
// whose indices wrap leave the others.
#pragma once
#include <optional>
#include <span>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "codegen/ir/builder.hpp"
#include "codegen/ir/edit/clone.hpp"

namespace ikat::passes {

class Strides {
public:
    /// Of a loop of these blocks, with a counter among the header's parameters that grows by `step`. `build` is where
    /// what does not change in the loop is computed, in front of it.
    Strides(ir::Function& fn, std::span<const ir::Block> region, ir::Value counter, ir::Word step, ir::Builder& build);

    /// Whether there are indices that could wrap.
    bool asks() const { return !asked_.empty(); }
    /// Whether none does, as a condition, for counters up to `limit` + step - 1, a number of the counter's type.
    ir::Value exact(ir::Value limit);
    /// The addresses that go from round to round, at a counter.
    std::vector<ir::Value> begin(ir::Value counter);
    /// Rewrites the addresses of a round, in a copy of the loop.
    void rewrite(const ir::Copy& round, std::span<const ir::Value> moving);
    /// The addresses of the next round, at the end of the builder's block.
    std::vector<ir::Value> next(std::span<const ir::Value> moving) const;

private:
    /// A sum, of which the part that is known is kept apart.
    struct Sum {
        ir::Value rest = ir::no_value;  // no_value: 0
        std::uint32_t known = 0;
        bool is(std::uint32_t number) const { return rest == ir::no_value && known == number; }
        bool operator==(const Sum&) const = default;
    };
    struct Index {
        Sum first, factor;
        bool operator==(const Index&) const = default;
    };
    /// An address that goes from round to round, by that many bytes for each step of the counter.
    struct Moving {
        ir::Value base, factor;
        std::uint64_t scale;
        bool operator==(const Moving&) const = default;
    };
    struct Place {
        ir::Value address;
        ir::Value base;           // with what does not change of the index
        std::uint32_t scale = 0;  // of the counter; 0: the address is one that moves
        std::int32_t constant = 0;
        std::size_t moving = 0;
    };

    void look_at(ir::Inst inst);
    std::optional<Index> index_of(ir::Value value);
    std::optional<Index> computed(ir::Value value);
    std::optional<Index> operation(ir::Inst inst);
    /// A value that does not change in the loop, computed in front of it.
    std::optional<ir::Value> invariant(ir::Value value);
    std::optional<ir::Value> copied(ir::Value value);

    ir::Value made(ir::Op op, ir::Value a, ir::Value b);
    ir::Value number(std::uint32_t known);
    ir::Value address(ir::Value base, ir::Value index, std::uint64_t scale) const;
    ir::Value value_of(const Sum& sum);
    Sum sum(const Sum& a, const Sum& b);
    Sum difference(const Sum& a, const Sum& b);
    Sum product(const Sum& a, const Sum& b);

    ir::Function& fn_;
    ir::Builder& build_;
    ir::Value counter_, zero_ = ir::no_value;
    ir::Word step_;
    std::unordered_set<ir::Block> blocks_;  // of the loop
    std::unordered_set<ir::Inst> instructions_;
    std::unordered_map<ir::Value, std::optional<Index>> indices_;
    std::unordered_map<ir::Value, std::optional<ir::Value>> invariants_;
    std::vector<Place> places_;
    std::vector<Index> asked_;  // the indices that must not wrap
    std::vector<Moving> moving_;
};

}  // namespace ikat::passes
