// SPDX-License-Identifier: Apache-2.0
// Q, K, V and O of the functions of attention that have names: heads of rows or, _heads_in_rows, rows of heads.
#pragma once
#include <string_view>

#include "stdlib/attention/attention.hpp"
#include "stdlib/spec/functions.hpp"

namespace ikat::stdlib {

struct HeadsShape {
    OperandShape heads_of_rows, rows_of_heads;

    constexpr NamedFunction::Array array(std::string_view name, ir::Type type, bool is_in_rows) const {
        NamedFunction::Array out{name, type, is_in_rows ? rows_of_heads : heads_of_rows};
        if (is_in_rows) out.row = 2;
        return out;
    }
};

/// An array of this shape, as heads of rows.
inline MutableTensorView heads_of(const MutableTensorView& given, bool is_in_rows) {
    return is_in_rows ? MutableTensorView(given.of_rank(4).permuted({0, 2, 1, 3})) : given;
}

inline std::string_view call_of_heads(bool is_in_rows) {
    return is_in_rows ? "heads_in_rows(Q), heads_in_rows(K), heads_in_rows(V), heads_in_rows(O)" : "Q, K, V, O";
}

}  // namespace ikat::stdlib
