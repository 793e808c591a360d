// SPDX-License-Identifier: Apache-2.0
// Q, K, V and O of the functions of attention that have names: heads of rows or, _heads_in_rows, rows of heads.
#pragma once
#include <string_view>

#include "stdlib/attention/attention.hpp"
#include "stdlib/spec/named_functions.hpp"

namespace ikat::stdlib {

struct HeadsShape {
    OperandShape heads_of_rows, rows_of_heads;

    NamedFunction::Array array(std::string_view name, const CacheElements& are, bool is_in_rows) const {
        NamedFunction::Array out = are.array(name, is_in_rows ? rows_of_heads : heads_of_rows);
        if (is_in_rows) out.row = 2;
        return out;
    }
    /// Q or O, of the type that K and V have or are decoded to.
    NamedFunction::Array decoded(std::string_view name, const CacheElements& are, bool is_in_rows,
                                 Access access) const {
        NamedFunction::Array out = input(name, is_in_rows ? rows_of_heads : heads_of_rows, are.decoded());
        if (is_in_rows) out.row = 2;
        out.access = access;
        return out;
    }
};

/// What K and V may be.
inline constexpr CacheElements named_elements[] = {
    {ir::Type::F16}, {ir::Type::BF16}, {ir::Type::F32}, {ir::Type::E4M3}, {ir::Type::Void}};
/// In pages.
inline constexpr HeadsShape paged_shape{"pages kv_heads page_rows head_dim", "pages page_rows kv_heads head_dim"};

/// The setting `path`: the names of AttentionPath.
inline constexpr std::string_view attention_paths[] = {"chosen", "mma_sync", "wgmma"};

/// An array of this shape, as heads of rows.
inline MutableTensorView heads_of(const MutableTensorView& given, bool is_in_rows) {
    return is_in_rows ? MutableTensorView(given.of_rank(4).permuted({0, 2, 1, 3})) : given;
}

inline std::string_view call_of_heads(bool is_in_rows) {
    return is_in_rows ? "heads_in_rows(Q), heads_in_rows(K), heads_in_rows(V), heads_in_rows(O)" : "Q, K, V, O";
}

}  // namespace ikat::stdlib
