// SPDX-License-Identifier: Apache-2.0
// The IR as text: one line per instruction. parse.hpp reads it back.
//
//     kernel @saxpy(%a: f32, %x: in f32* align 4, %y: inout f32*, %n: u32) max_threads 256 {
//       shared $tile: f32[1024] align 16
//     ^0:
//       %0 = special.u32 tid.x
//       %1 = param.u32 %n
//       %2 = lt.u32 %0, %1
//       branch %2, ^1, ^2
// Values are numbered in the order in which the text defines them, so that the same function always prints the same
// text, whatever its arenas look like.
#pragma once
#include <functional>
#include <span>
#include <string>

#include "codegen/ir/function.hpp"

namespace ikat::ir {

struct PrintOptions {
    bool locations = false;                      // `loc "file":line:column` after each line
    std::function<std::string(Inst)> note{};     // shown as a comment after the instruction
    std::function<std::string(Block)> remark{};  // … after the block's name
};

std::string print(const Function& fn, const PrintOptions& options = {});
std::string print(std::span<const Function> functions, const PrintOptions& options = {});
inline std::string print(const Module& module, const PrintOptions& options = {}) {
    return print(std::span(module.functions), options);
}

/// One line of the function, without indentation, for messages.
std::string print(const Function& fn, Inst inst);
std::string print(const Function& fn, const Terminator& terminator);
/// "%7", numbered as in print(fn).
std::string print(const Function& fn, Value value);

/// ".rz.ftz.sat.approx.contract": what is not the default.
std::string print(const FloatInfo& fp);
/// "global.nc.relaxed.gpu.volatile"; count and offset are elsewhere in the line.
std::string print(const MemoryInfo& memory);

/// A text in quotes, with \n, \t, \" and \\ escaped, other control characters as \xNN.
std::string quoted(std::string_view text);

inline constexpr std::string_view rounding_names[] = {"rn", "rz", "rm", "rp"};

}  // namespace ikat::ir
