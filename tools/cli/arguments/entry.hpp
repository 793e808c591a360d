// SPDX-License-Identifier: Apache-2.0
// The parameters of an entry of a PTX file, and how arguments are packed for them.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "codegen/ptx/text/module.hpp"
#include "tools/cli/arguments/argument.hpp"

namespace ikat::cli {

struct EntryParameter {
    std::string name, type;  // "x", ".u64"
    std::size_t offset = 0, bytes = 0;
    bool is_array = false;
};

struct PtxEntry {
    std::string name;
    std::vector<EntryParameter> parameters;
};

/// The entry of that name, or the only one whose name contains it, or, if the name is empty, the only one. Throws
/// Error.
PtxEntry find_entry(const ptx::Module& module, std::string_view name);

/// Throws Error unless the argument can be passed as the parameter: a buffer as an address, or as the bytes of a
/// structure, a scalar as a number of its width and kind.
void check_argument(const EntryParameter& parameter, const ParsedArgument& argument);

/// What is passed for a parameter: the bytes of a structure, else the scalar or address.
struct PassedValue {
    std::uint64_t bits = 0;
    std::span<const std::byte> bytes{};
};

/// The entry's parameters in memory.
std::vector<std::byte> pack(const PtxEntry& entry, std::span<const PassedValue> values);

}  // namespace ikat::cli
