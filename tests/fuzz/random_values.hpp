// SPDX-License-Identifier: Apache-2.0
// Random choices for the statements of random IR: types, values in scope, constants, addresses in the thread's slice.
#pragma once
#include <algorithm>
#include <map>
#include <vector>

#include "codegen/ir/builder.hpp"
#include "codegen/ir/op/forms/all.hpp"
#include "codegen/ir/op/shape.hpp"
#include "tests/fuzz/choices.hpp"

namespace ikat::test {

class RandomValues : public Choices {
public:
    // A slice has a few working slots, so that accesses overlap, and more for the sample of values at the end.
    static constexpr std::uint32_t slots = 8, slot_bytes = 16;

protected:
    using Op = ir::Op;
    using Type = ir::Type;
    using Value = ir::Value;
    using Block = ir::Block;
    using Word = ir::Word;

    RandomValues(std::uint32_t seed, ir::TypeSet allowed)
        : Choices(seed), build_(fn_, fn_.add_block()), allowed_(allowed), values_(ir::type_count) {}

    /// A type of the set; mostly the one this kernel favours, so that its operations can be combined.
    Type type_in(ir::TypeSet set) {
        if (ir::contains(set, favourite_) && !one_in(3)) return favourite_;
        std::vector<Type> types;
        for (int t = 1; t < ir::type_count; ++t)
            if (ir::contains(set & allowed_, Type(t))) types.push_back(Type(t));
        return types.empty() ? Type::Void : any_of(types);
    }

    // Values in scope, by type.
    void add(Value value) { values_[std::size_t(fn_.type(value))].push_back(value); }
    bool has(Type type) const { return !values_[std::size_t(type)].empty(); }
    /// A value of the type: one in scope, preferably a recent one, or a constant.
    Value some(Type type) {
        const auto& list = values_[std::size_t(type)];
        if (list.empty() || one_in(5)) return build_.constant(type, edge(type));
        return one_in(2) ? recent(list) : any_of(list);
    }
    Value recent(const std::vector<Value>& list) {
        const auto count = std::uint32_t(list.size());
        return list[count - 1 - pick(std::min(count, 3u))];
    }
    /// … or, like indices, a sum with a small constant.
    Value operand(Type type) {
        const Value value = some(type);
        if (!ir::contains(ir::Int, type) || !one_in(6)) return value;
        return build_.make(Op::Add, type, {value, build_.constant(type, 1 + pick(4))});
    }

    // Memory: slots of 16 bytes in the slice, by a constant or a computed index.
    Value address(Value base) {
        const auto known = addresses_.find(base);
        if (known != addresses_.end() && !known->second.empty() && !one_in(3)) return recent(known->second);
        return addresses_[base].emplace_back(new_address(base));
    }
    Value new_address(Value base) {
        if (one_in(3)) return signed_address(base);
        const Value index = build_.make(Op::And, Type::U32, {some(Type::U32), build_.constant(Type::U32, slots - 1)});
        if (one_in(4))
            return build_.make(Op::MadWide, Type::U32, {index, build_.constant(Type::U32, slot_bytes), base});
        return at(base, index);
    }
    /// Of an index that is below the number of slots: as it is, of more bits, or a number of bytes.
    Value at(Value base, Value index) {
        ir::Instruction inst{.op = Op::At, .type = Type::U64, .from = Type::U32};
        ir::AddressForm form{.scale = slot_bytes};
        if (one_in(3)) {
            const Word more = pick(slots);
            form.constant = -std::int32_t(more * slot_bytes);
            index = build_.make(Op::Add, Type::U32, {index, build_.constant(Type::U32, more)});
        }
        if (one_in(3)) {
            index = build_.make(Op::Mul, Type::U32, {index, build_.constant(Type::U32, 4)});
            form.scale /= 4;
        }
        if (one_in(3)) index = build_.convert(inst.from = one_in(2) ? Type::U64 : Type::I64, index);
        inst.attribute = ir::pack(form);
        return build_.make(inst, std::array{base, index});
    }
    /// base + c * 16 + (index - c) * 16, where the index may be below c.
    Value signed_address(Value base) {
        const Word c = pick(slots);
        Value index = build_.make(Op::And, Type::I32, {some(Type::I32), build_.constant(Type::I32, slots - 1)});
        const bool subtracts = one_in(2);
        const Word by = subtracts ? c : Word(std::uint32_t(0 - std::uint32_t(c)));
        index = build_.make(subtracts ? Op::Sub : Op::Add, Type::I32, {index, build_.constant(Type::I32, by)});
        if (one_in(2)) {
            const Value far = build_.make(Op::Add, Type::U64, {base, build_.constant(Type::U64, c * slot_bytes)});
            const Value size = build_.constant(Type::I32, slot_bytes);
            return build_.convert(Type::U64,
                                  build_.make(Op::MadWide, Type::I32, {index, size, build_.convert(Type::I64, far)}));
        }
        Value wide = build_.convert(Type::I64, index);
        wide = build_.make(Op::Shl, Type::I64, {wide, build_.constant(Type::U32, 4)});
        const Value at = build_.make(Op::Add, Type::U64, {base, build_.convert(Type::U64, wide)});
        return build_.make(Op::Add, Type::U64, {at, build_.constant(Type::U64, c * slot_bytes)});
    }
    ir::Instruction access(Op op, Type type) {
        const std::uint32_t offset = ir::bits(type) <= 32 ? 4 * pick(3) : 8 * pick(2);
        return {.op = op, .type = type, .memory = {.space = ir::Space::Global, .offset = std::int32_t(offset)}};
    }
    /// Makes the access two elements wide if they stay in the slot and are aligned.
    static bool make_pair(ir::Instruction& inst) {
        if (ir::bits(inst.type) > 32) return false;
        inst.memory.offset &= ~7;
        inst.memory.count = 2;
        return true;
    }

    ir::Function fn_;
    ir::Builder build_;
    ir::TypeSet allowed_;
    std::vector<std::vector<Value>> values_;           // in scope, by type
    std::map<Value, std::vector<Value>> addresses_{};  // in scope, by base
    Type favourite_ = Type::U32;
};

}  // namespace ikat::test
