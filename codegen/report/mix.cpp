// SPDX-License-Identifier: Apache-2.0
#include "codegen/report/mix.hpp"

#include <algorithm>

namespace ikat {
namespace {

using enum nvptx::OpcodeKind;

/// A row of the report: the opcodes of one kind and, if a modifier is given, only instructions that have it. The first
/// match counts.
struct Row {
    std::string_view name;
    nvptx::OpcodeKind kind;
    std::string_view modifier{};
};

constexpr Row rows[] = {
    {"global loads", Load, ".global"},
    {"global stores", Store, ".global"},
    {"shared loads", Load, ".shared"},
    {"shared stores", Store, ".shared"},
    {"local loads", Load, ".local"},
    {"local stores", Store, ".local"},
    {"parameter loads", Load, ".param"},
    {"constant loads", Load, ".const"},
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

bool is_floating(std::string_view modifier) { return modifier.starts_with(".f") || modifier.starts_with(".bf"); }

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

std::string_view kind_of(const nvptx::Module& module, const nvptx::Instruction& instruction) {
    const nvptx::OpcodeKind kind = nvptx::info(instruction.opcode).kind;
    const auto modifiers = module.modifiers(instruction.modifiers);
    const auto has = [&](std::string_view wanted) {
        return std::ranges::any_of(modifiers, [&](nvptx::Name name) {
            const std::string_view modifier = module.text(name);
            return modifier == wanted ||
                   (modifier.starts_with(wanted) && modifier.substr(wanted.size()).starts_with("::"));
        });
    };
    for (const Row& row : rows)
        if (row.kind == kind && (row.modifier.empty() || has(row.modifier))) return row.name;
    const bool computes_floats =
        std::ranges::any_of(modifiers, [&](nvptx::Name name) { return is_floating(module.text(name)); });
    return computes_floats ? floating : integer;
}

}  // namespace ikat
