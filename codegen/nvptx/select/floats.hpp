// SPDX-License-Identifier: Apache-2.0
// Part of legalisation: floats smaller than f32, operations on them that PTX or the target lacks, and packed floats.
//
// clang-format off
//     %1 = add.bf16 %a, %b            ==>  fma.bf16 %a, 1, %b                    sm_80: exact, as are sub and mul
//     %1 = min.bf16x2 %a, %b          ==>  lane by lane in f32, converted back   sm_75: exact but for fma, which it lacks
//     %1 = convert.f32.bf16 %a        ==>  mov.b32 {0, %a}                       a bf16 is the upper half of an f32
//     %1 = convert.bf16.f32 %a        ==>  integers that round                   sm_75, and roundings cvt does not have
//     %1 = convert.bf16.i32 %a        ==>  an f32 made odd if it is not exact, then as that; below sm_90
//     %1 = low.f16x2 %a               ==>  mov.b32 {%1, %2}, %a                  which serves high, too
//     %1 = pack.f16x2 of two converts ==>  cvt.rn.f16x2.f32
//     %1 = convert.e4m3.f32 %a        ==>  cvt.rn.satfinite.e4m3x2.f32 of 0 and %a
// clang-format on
#pragma once
#include <map>
#include <optional>
#include <span>

#include "codegen/ir/edit/rewriter.hpp"
#include "codegen/ptx/table/target.hpp"

namespace ikat::nvptx {

class FloatForms {
public:
    FloatForms(ir::Rewriter& walk, const ptx::Target& target) : walk_(walk), fn_(walk.fn), target_(target) {}

    /// The replacement for the result of `inst`, made of instructions that the target has; nothing if the target has
    /// `inst` itself, or it is not handled here. Throws Error if the target cannot do it.
    std::optional<ir::Value> rewrite(ir::Inst inst);

private:
    using Values = std::span<const ir::Value>;

    ir::Value make(ir::Op op, ir::Type type, std::initializer_list<ir::Value> operands);
    ir::Value convert(ir::Type to, ir::Type from, ir::Value value, Rounding rounding = Rounding::Nearest);
    ir::Value constant(ir::Type type, ir::Word bits) { return walk_.constant(type, bits, where_); }
    ir::Value number(ir::Type type, double value);

    bool has_form(ir::Op op, ir::Type type) const;
    ir::Value arithmetic(ir::Op op, ir::Type type, Values operands);
    ir::Value with_fma(ir::Op op, ir::Type type, Values operands);
    ir::Value by_lanes(ir::Op op, ir::Type type, Values operands);
    ir::Value set_lanes(const ir::Instruction& it, Values operands);
    ir::Value in_float(ir::Op op, ir::Type type, Values operands);

    std::optional<ir::Value> converted(const ir::Instruction& it, ir::Type result, ir::Value x);
    ir::Value to_bfloat(ir::Value single, Rounding rounding);
    ir::Value rounded_bits(ir::Value bits, Rounding rounding);
    ir::Value odd_float(ir::Value x, ir::Type from);
    ir::Value to_float8(ir::Type to, ir::Type from, ir::Value x);
    ir::Value from_float8(ir::Type to, ir::Type from, ir::Value x);

    ir::Value part(ir::Op op, ir::Type type, ir::Value packed);
    std::optional<ir::Value> packed(ir::Type type, Values lanes);
    std::optional<ir::Value> converted_from(ir::Value lane, ir::Type packed) const;
    [[noreturn]] void lacking(const std::string& what, const std::string& hint) const;

    ir::Rewriter& walk_;
    ir::Function& fn_;
    const ptx::Target& target_;
    Location where_{};
    struct Lanes {
        ir::Value low, high;
    };
    std::map<ir::Value, Lanes> taken_apart_;  // in the current block
    ir::Block block_ = no_id<ir::Block>;
};

}  // namespace ikat::nvptx
