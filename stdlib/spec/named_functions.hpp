// SPDX-License-Identifier: Apache-2.0
// What descriptions of functions with names have in common:
//
//     constexpr auto family = family_of("gemm_FORMAT", "Y = X W'", "W is ...", settings, sizes);
//     out.arrays = {blocks_of(Quantised::Q4_K, "W", "rows columns"), input("X", "tokens columns"),
//                   output("Y", "tokens rows")};
#pragma once
#include <algorithm>
#include <span>
#include <string_view>

#include "runtime/quantised_format.hpp"
#include "stdlib/spec/functions.hpp"

namespace ikat::stdlib {

/// A family of functions whose names have this form: the prefix is what is before the parts that differ, "gemm" of
/// "gemm_FORMAT", "gemm_(q4_0|q8_0)" and "gemm[_bias]".
constexpr NamedFunction::Family family_of(std::string_view form, std::string_view summary, std::string_view document,
                                          std::span<const NamedFunction::Setting> settings,
                                          std::span<const NamedFunction::Size> sizes) {
    std::size_t end = std::min(form.find_first_of("[(ABCDEFGHIJKLMNOPQRSTUVWXYZ"), form.size());
    while (end != 0 && form[end - 1] == '_') --end;
    return {.prefix = form.substr(0, end),
            .form = form,
            .summary = summary,
            .document = document,
            .settings = settings,
            .sizes = sizes};
}
using NamedArrays = std::span<const MutableTensorView>;

/// Read: of a type or, if it is not said, f32, f16 or bf16, the same for all such arrays of the function.
constexpr NamedFunction::Array input(std::string_view name, const OperandShape& shape, ir::Type type = ir::Type::Void) {
    return {.name = name, .type = type, .shape = shape};
}
/// The same, written.
constexpr NamedFunction::Array output(std::string_view name, const OperandShape& shape,
                                      ir::Type type = ir::Type::Void) {
    return {.name = name, .type = type, .shape = shape, .access = Access::Out};
}
/// Blocks of quantised weights, which the extents count.
constexpr NamedFunction::Array blocks_of(runtime::Quantised format, std::string_view name, const OperandShape& shape,
                                         Access access = Access::In) {
    const auto& [of_format, weights, bytes] = *runtime::find_info(format);
    return {.name = name,
            .type = ir::Type::U8,
            .shape = shape,
            .access = access,
            .blocks = {of_format, bytes, weights, format}};
}

/// What a cache of keys or values has, and what names call it: elements of a type, or, Void, blocks of Q8_0.
struct CacheElements {
    ir::Type type = ir::Type::F32;

    bool are_blocks() const { return type == ir::Type::Void; }
    bool are_encoded() const { return are_blocks() || type == ir::Type::E4M3; }
    /// "f16", "e4m3", "q8_0".
    std::string_view name() const {
        return are_blocks() ? runtime::find_info(runtime::Quantised::Q8_0)->name : ir::info(type).name;
    }
    /// Of arrays that are not encoded: the same or, beside encoded ones, any of f32, f16 and bf16, as of input().
    ir::Type decoded() const { return are_encoded() ? ir::Type::Void : type; }
    NamedFunction::Array array(std::string_view name, const OperandShape& shape, Access access = Access::In) const {
        if (are_blocks()) return blocks_of(runtime::Quantised::Q8_0, name, shape, access);
        return {.name = name, .type = type, .shape = shape, .access = access};
    }
};

}  // namespace ikat::stdlib
