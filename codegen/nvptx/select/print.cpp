// SPDX-License-Identifier: Apache-2.0
// Prepares print for vprintf: conversions in the text, values promoted as C promotes variadic arguments, and two
// results for the addresses that the call needs (see emit/print.cpp).
//
//     print "x = {}\n", %f32      ==>  %0 = convert.f64.f32 %f32
//                                      %1, %2 = print "x = %g\n", %0
//
// Needs: the original types of the values, so it runs before legalise().
#include <algorithm>

#include "codegen/ir/edit/rewriter.hpp"
#include "codegen/ir/text/format.hpp"
#include "codegen/nvptx/select/steps.hpp"

namespace ikat::nvptx {
namespace {

using ir::Inst, ir::Instruction, ir::Op, ir::Type, ir::Value;

std::string doubled(std::string_view text) {
    std::string out;
    for (char c : text) out.append(c == '%' ? 2 : 1, c);
    return out;
}

/// Each hole becomes the conversion of its value; "%" is doubled. Holes without a value stay as they are.
std::string format(const ir::Function& fn, const std::string& text, std::span<const Value> values) {
    const std::optional<ir::Format> read = ir::read_format(text);
    if (!read) return doubled(text);
    std::string out = doubled(read->text[0]);
    for (std::size_t k = 0; k < read->holes.size(); ++k) {
        if (k < values.size())
            out += ir::conversion(read->holes[k], fn.type(values[k])).value_or("%g");
        else
            out += "{}";
        out += doubled(read->text[k + 1]);
    }
    return out;
}

Value promoted(ir::Rewriter& walk, Value value, const Location& where) {
    const Type type = walk.fn.type(value);
    if (type == Type::Pred) {
        const Value one = walk.constant(Type::U32, 1, where), zero = walk.constant(Type::U32, 0, where);
        return walk.make({.op = Op::Select, .type = Type::U32, .where = where}, {one, zero, value}, Type::U32);
    }
    if (type == Type::F64 || contains(ir::Int, type)) return value;
    const Type wide = ir::is_float(type) ? Type::F64 : ir::is_signed(type) ? Type::I32 : Type::U32;
    return walk.make({.op = Op::Convert, .type = wide, .from = type, .where = where}, {value}, wide);
}

void expand(ir::Rewriter& walk, Inst inst) {
    ir::Function& fn = walk.fn;
    Instruction it = fn[inst];
    std::vector<Value> values(fn.operands(inst).begin(), fn.operands(inst).end());
    it.attribute = fn.add_text(format(fn, fn.texts[it.attribute], values));
    for (Value& value : values) value = promoted(walk, value, it.where);
    fn.append(walk.block(), it, values, std::array{Type::U64, Type::U64});
}

}  // namespace

Changed expand_prints(ir::Function& fn) {
    ir::Rewriter walk(fn);
    walk.run([&](Inst inst) { fn[inst].op == Op::Print ? expand(walk, inst) : walk.keep(inst); });
    return analysis::instructions_if(walk.changed());
}

}  // namespace ikat::nvptx
