// SPDX-License-Identifier: Apache-2.0
// Checks declarations in isolation: space, type, alignment, extents and initialiser; and the parameters of functions.
// Names are resolved elsewhere.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "codegen/ptx/text/module.hpp"

namespace ikat::ptx {

/// Where a variable is declared.
enum class Place : std::uint8_t { Module, Body, EntryParameter, Parameter, LastParameter, Result };

struct Layout {
    std::uint64_t bytes = 0, alignment = 1;
};

/// The layout of one declarator; nothing if its extents are not known or the size is impossible.
std::optional<Layout> layout(const Module& module, const Variable& variable, const Variable::Declarator& declarator);

using Report = std::function<void(Position where, std::string message, std::string hint)>;

void check_declaration(const Module& module, const Variable& variable, Place place, const Report& report);

/// Checks the size and space of its parameters. `large_parameters`: the target supports more than 4352 bytes.
void check_signature(const Module& module, const Function& function, bool large_parameters, const Report& report);

/// "its parameter 2 has another type", or nothing if both declare the same function.
std::string difference(const Module& module, const Function& a, const Function& b);

/// Checks the size of the module's constant memory, which must fit one bank.
void check_constants(const Module& module, const Report& report);

}  // namespace ikat::ptx
