// SPDX-License-Identifier: Apache-2.0
#include "codegen/ir/object.hpp"

namespace ikat::ir {
namespace {

constexpr int most_additions = 16;  // how many we look through

Object walk(const Function& fn, Value value, int depth) {
    const Inst inst = fn[value].instruction;
    if (inst == no_inst || depth == most_additions) return {};
    const auto from = [&](std::size_t i) { return walk(fn, fn.operands(inst)[i], depth + 1); };
    const Word attribute = fn[inst].attribute;
    switch (fn[inst].op) {
        case Op::Param:
            if (fn.parameters[parameter_of(attribute)].access == Access::Value) return {};
            return {Object::Parameter, parameter_of(attribute)};
        case Op::ParamAddress: return {Object::Parameter, parameter_of(attribute)};
        case Op::Symbol: return {Object::Symbol, std::uint32_t(attribute)};
        case Op::Add: {
            const Object left = from(0), right = from(1);
            if (left.kind != Object::Unknown && right.kind != Object::Unknown) return {};
            return left.kind != Object::Unknown ? left : right;
        }
        case Op::Sub:
        case Op::At: return from(0);
        case Op::Fma:
        case Op::MadWide: return from(2);
        default: return {};
    }
}

}  // namespace

Object object_of(const Function& fn, Value address) { return walk(fn, address, 0); }

}  // namespace ikat::ir
