// SPDX-License-Identifier: Apache-2.0
// Rules of simplify for conversions. Their conditions involve three types and would not read better as patterns.
//
//     convert.u32.u64(convert.u64.u32(x))  ==>  x
//     convert.f32.i64(convert.i64.i32(x))  ==>  convert.f32.i32(x)
//     bitcast.u32.f32(bitcast.f32.i32(x))  ==>  bitcast.u32.i32(x)
#pragma once
#include <optional>
#include <vector>

#include "codegen/ir/function.hpp"

namespace ikat::passes {

/// The replacement for the result of a Convert or Bitcast; new instructions are appended to made.
std::optional<ir::Value> simplify_conversion(ir::Function& fn, ir::Inst inst, std::vector<ir::Inst>& made);

}  // namespace ikat::passes
