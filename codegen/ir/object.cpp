// SPDX-License-Identifier: Apache-2.0
#include "codegen/ir/object.hpp"

#include "codegen/ir/op/families.hpp"

namespace ikat::ir {
namespace {

/// What a part of an address is.
struct Part {
    enum Kind : std::uint8_t {
        Number,   // surely
        Opaque,   // not computed here: beside an object taken to be a number
        Pointer,  // into the object
        Mixed,    // of several objects, or too long a sum: an address made with it is of no known object
    } kind = Opaque;
    Object object{};
};

Part sum(const Part& left, const Part& right) {
    if (left.kind == Part::Mixed || right.kind == Part::Mixed) return {Part::Mixed};
    if (left.kind == Part::Pointer && right.kind == Part::Pointer) return {Part::Mixed};
    return left.kind > right.kind ? left : right;
}

/// The distance of two places in one object is a number; that of others leads from one object to the other.
Part difference(const Part& left, const Part& right) {
    if (left.kind == Part::Pointer && right.kind == Part::Pointer)
        return {left.object == right.object ? Part::Number : Part::Mixed};
    if (right.kind == Part::Pointer || (left.kind == Part::Pointer && right.kind != Part::Number)) return {Part::Mixed};
    return sum(left, right);
}

class Walk {
public:
    explicit Walk(const Function& fn) : fn_(fn) {}

    Part part(Value value) {
        const Inst inst = fn_[value].instruction;
        if (inst == no_inst) return {};
        if (left_ == 0) return {Part::Mixed};
        --left_;
        const auto operand = [&](std::size_t i) { return part(fn_.operands(inst)[i]); };
        const Form attribute = fn_[inst].attribute;
        switch (fn_[inst].op) {
            case Op::Const:
            case Op::Special:
            case Op::Mul: return {Part::Number};
            case Op::Param:
                if (fn_.parameters[parameter_of(attribute)].access == Access::Value) return {};
                return {Part::Pointer, {Object::Parameter, parameter_of(attribute)}};
            case Op::ParamAddress: return {Part::Pointer, {Object::Parameter, parameter_of(attribute)}};
            case Op::Symbol: return {Part::Pointer, {Object::Symbol, std::uint32_t(attribute)}};
            case Op::Add: {
                const Part left = operand(0);
                return sum(left, operand(1));
            }
            case Op::Sub: {
                const Part left = operand(0);
                return difference(left, operand(1));
            }
            case Op::At: {
                const Part base = operand(0);
                return unpack<AddressForm>(attribute).scale == 1 ? sum(base, operand(1)) : base;
            }
            case Op::Fma:
            case Op::MadWide: return operand(2);
            default: return {};
        }
    }

private:
    const Function& fn_;
    int left_ = 64;  // values to look at: sums of sums double
};

}  // namespace

Object object_of(const Function& fn, Value address) { return Walk(fn).part(address).object; }

}  // namespace ikat::ir
