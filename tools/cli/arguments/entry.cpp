// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/arguments/entry.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstring>

#include "codegen/support/diagnostic.hpp"

namespace ikat::cli {
namespace {

/// The size of a type such as ".u64"; 0 for types that no argument can have (.texref).
std::size_t type_bytes(std::string_view type) {
    std::size_t bits = 0;
    const auto digits = std::min(type.find_first_of("0123456789"), type.size());
    std::from_chars(type.data() + digits, type.data() + type.size(), bits);
    return digits == 2 ? bits / 8 : 0;  // a dot and one letter
}

EntryParameter describe(const ptx::Module& module, const ptx::Variable& variable, std::size_t& end) {
    const ptx::Variable::Declarator& declarator = variable.declarators.front();
    EntryParameter out{.name = std::string(module.text(declarator.name)),
                       .type = std::string(module.text(variable.type))};
    const std::size_t width = type_bytes(out.type);
    if (width == 0)
        throw Error(fmt::format("parameter '{}' is a {}, which no argument can be", out.name, out.type),
                    "run an entry that takes numbers and addresses");
    out.is_array = !declarator.extents.empty();
    out.bytes = width;
    for (const std::int64_t extent : declarator.extents) out.bytes *= std::size_t(extent);
    const std::size_t alignment = std::max<std::size_t>(variable.alignment, width);
    out.offset = (end + alignment - 1) / alignment * alignment;
    end = out.offset + out.bytes;
    return out;
}

std::vector<std::string_view> entry_names(const ptx::Module& module) {
    std::vector<std::string_view> out;
    for (const ptx::Function& function : module.functions)
        if (function.is_entry) out.push_back(module.text(function.name));
    return out;
}

const ptx::Function& find_function(const ptx::Module& module, std::string_view name) {
    const std::vector<std::string_view> names = entry_names(module);
    const std::string hint = fmt::format("it has: {}", fmt::join(names, ", "));
    if (names.empty()) throw Error("the file has no entry", "a kernel is declared with .entry");
    if (name.empty() && names.size() > 1)
        throw Error(fmt::format("the file has {} entries", names.size()), "choose one with --entry; " + hint);
    const ptx::Function* function = module.find_function(name.empty() ? names.front() : name);
    if (function && function->is_entry) return *function;
    std::vector<std::string_view> similar;  // a part of a mangled name is enough
    for (const std::string_view each : names)
        if (each.find(name) != each.npos) similar.push_back(each);
    if (similar.size() == 1) return *module.find_function(similar.front());
    if (similar.empty()) throw Error(fmt::format("the file has no entry '{}'", name), hint);
    throw Error(fmt::format("'{}' is part of the names of {} entries", name, similar.size()),
                fmt::format("choose one of: {}", fmt::join(similar, ", ")));
}

[[noreturn]] void mismatch(const EntryParameter& parameter, const ParsedArgument& argument, std::string hint) {
    throw Error(fmt::format("argument '{}' does not fit parameter '{}', which is {}", argument.text, parameter.name,
                            parameter.type),
                std::move(hint));
}

/// A structure is passed by value: it is given as a buffer of exactly its size, without an output.
void check_structure(const EntryParameter& parameter, const ParsedArgument& argument) {
    const bool is_structure = argument.kind == ParsedArgument::Kind::Structure;
    const bool is_value = argument.kind == ParsedArgument::Kind::Buffer && argument.has_contents();
    const std::uint64_t bytes = is_structure ? argument.bytes : argument.elements * argument.type.bytes();
    if ((!is_structure && !is_value) || bytes != parameter.bytes)
        mismatch(
            parameter, argument,
            fmt::format("it is a structure of {0} bytes, passed by value: write its fields as b8[{0}]:{{u32:7,&0}} "
                        "or its bytes as b8[{0}]:@file.bin",
                        parameter.bytes));
    if (!argument.output.empty()) mismatch(parameter, argument, "a structure is passed by value and has no output");
}

/// "f32" for ".f32", "u32" for ".u32", "i32" for ".s32", "b32" for ".b32".
std::string argument_type(std::string_view type) {
    return type.starts_with(".s") ? fmt::format("i{}", type.substr(2)) : std::string(type.substr(1));
}

}  // namespace

PtxEntry find_entry(const ptx::Module& module, std::string_view name) {
    const ptx::Function& function = find_function(module, name);
    PtxEntry out{.name = std::string(module.text(function.name)), .parameters = {}};
    std::size_t end = 0;
    for (const ptx::Variable& parameter : function.parameters)
        out.parameters.push_back(describe(module, parameter, end));
    return out;
}

void check_argument(const EntryParameter& parameter, const ParsedArgument& argument) {
    if (parameter.is_array) return check_structure(parameter, argument);
    if (argument.kind == ParsedArgument::Kind::Structure)
        mismatch(parameter, argument,
                 fmt::format("it is not a structure; write {}:...", argument_type(parameter.type)));
    if (argument.kind != ParsedArgument::Kind::Scalar) {
        if (parameter.bytes != 8 || parameter.type == ".f64")
            mismatch(parameter, argument,
                     fmt::format("a buffer is an address of 8 bytes; write {}:...", argument_type(parameter.type)));
        return;
    }
    const bool is_float = parameter.type.starts_with(".f");
    const bool same_kind =
        parameter.type.starts_with(".b") || argument.type.raw || is_float == ir::is_float(argument.type.type);
    if (argument.type.bytes() != parameter.bytes || !same_kind)
        mismatch(parameter, argument,
                 fmt::format("write {}:... for a number, b{}:0x... for bits", argument_type(parameter.type),
                             8 * parameter.bytes));
}

std::vector<std::byte> pack(const PtxEntry& entry, std::span<const PassedValue> values) {
    std::vector<std::byte> out;
    for (std::size_t i = 0; i < values.size(); ++i) {
        const EntryParameter& parameter = entry.parameters[i];
        const void* from = parameter.is_array ? static_cast<const void*>(values[i].bytes.data()) : &values[i].bits;
        out.resize(parameter.offset + parameter.bytes);
        if (parameter.bytes > 0) std::memcpy(out.data() + parameter.offset, from, parameter.bytes);
    }
    return out;
}

}  // namespace ikat::cli
