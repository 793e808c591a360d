// SPDX-License-Identifier: Apache-2.0
// Registers of several elements become registers of one:
//
//     .reg .v2 .f32 v;  ld.global.v2.f32 v, [a];  add.f32 v.x, v.y, v.x;
//     .reg .f32 v.x, v.y;  ld.global.v2.f32 {v.x, v.y}, [a];  add.f32 v.x, v.y, v.x;
// where the new `v.x` are plain names, which cannot occur in PTX text.
#pragma once
#include "codegen/ptx/text/module.hpp"

namespace ikat::emulator {

ptx::Module without_vector_registers(ptx::Module module);

}  // namespace ikat::emulator
