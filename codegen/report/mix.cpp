// SPDX-License-Identifier: Apache-2.0
#include "codegen/report/mix.hpp"

#include <algorithm>
#include <ranges>

#include "codegen/ptx/table/modifier.hpp"

namespace ikat {
namespace {

using enum ptx::OpcodeKind;
using ptx::Modifier;

/// A row of the report: the opcodes of one kind and, if a space is given, only instructions in that space. The first
/// match counts.
struct Row {
    std::string_view name;
    ptx::OpcodeKind kind;
    Modifier space = Modifier::Unknown;
};

constexpr Row rows[] = {
    {"global loads", Load, Modifier::Global},
    {"global stores", Store, Modifier::Global},
    {"shared loads", Load, Modifier::Shared},
    {"shared stores", Store, Modifier::Shared},
    {"local loads", Load, Modifier::Local},
    {"local stores", Store, Modifier::Local},
    {"parameter loads", Load, Modifier::Param},
    {"constant loads", Load, Modifier::Const},
    {"shared loads", SharedLoad},
    {"shared stores", SharedStore},
    {"other loads and stores", Load},
    {"other loads and stores", Store},
    {"atomics", Atomic},
    {"asynchronous copies", AsyncCopy},
    {"textures and surfaces", Texture},
    {"matrix products", MatrixProduct},
    {"barriers and fences", Barrier},
    {"warp operations", WarpOperation},
    {"control flow", ControlFlow},
    {"conversions", Conversion},
    {"comparisons and selections", Comparison},
    {"moves", Move},
    {"hints and settings", Setting},
    {"stack", Stack},
    {"bit operations", Bits},
    {"special functions", SpecialFunction},
};

constexpr std::string_view floating = "floating point", integer = "integer arithmetic";

bool is_floating(Modifier modifier) {
    using enum Modifier;
    constexpr Modifier types[] = {F16, F16x2, F32, F32x2, F64, Bf16, Bf16x2};
    return std::ranges::find(types, modifier) != std::end(types);
}

}  // namespace

std::vector<std::string_view> instruction_kinds() {
    std::vector<std::string_view> out;
    const auto add = [&](std::string_view kind) {
        if (std::ranges::find(out, kind) == out.end()) out.push_back(kind);
    };
    for (const Row& row : rows) add(row.name);
    add(floating), add(integer);
    return out;
}

std::string_view kind_of(const ptx::Module& module, const ptx::Instruction& instruction) {
    const ptx::OpcodeKind kind = ptx::info(instruction.opcode).kind;
    const auto modifiers = module.modifiers(instruction.modifiers) | std::views::transform([&](ptx::Name name) {
                               return ptx::spelled_modifier(module.text(name));
                           });
    const auto is_in = [&](Modifier space) {
        return space == Modifier::Unknown || std::ranges::find(modifiers, space, ptx::space_of) != modifiers.end();
    };
    for (const Row& row : rows)
        if (row.kind == kind && is_in(row.space)) return row.name;
    return std::ranges::any_of(modifiers, is_floating) ? floating : integer;
}

}  // namespace ikat
