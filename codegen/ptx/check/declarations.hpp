// SPDX-License-Identifier: Apache-2.0
// What a declaration may be, by itself: its space, type, alignment, extents and initialiser; and what a function's
// parameters may be. Names are looked up elsewhere.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "codegen/ptx/text/module.hpp"

namespace ikat::nvptx {

/// Where a variable is declared.
enum class Place : std::uint8_t { Module, Body, EntryParameter, Parameter, LastParameter, Result };

struct Layout {
    std::uint64_t bytes = 0, alignment = 1;
};

/// Of one declarator; nothing where its extents are not known or no memory has so many bytes.
std::optional<Layout> layout(const Module& module, const Variable& variable, const Variable::Declarator& declarator);

using Report = std::function<void(Position where, std::string message, std::string hint)>;

void check_declaration(const Module& module, const Variable& variable, Place place, const Report& report);

/// The space of its parameters. `large_parameters`: the target has room for more than
/// 4352 bytes.
void check_signature(const Module& module, const Function& function, bool large_parameters, const Report& report);

/// "its parameter 2 has another type", or nothing where both declare the same function.
std::string difference(const Module& module, const Function& a, const Function& b);

/// The bytes of the module's constant memory, which one bank has to hold.
void check_constants(const Module& module, const Report& report);

}  // namespace ikat::nvptx
