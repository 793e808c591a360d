// SPDX-License-Identifier: Apache-2.0
// The names of ops in IR text, made from those of the rows while ikat is compiled.
#include "codegen/ir/op/op.hpp"

namespace ikat::ir {

namespace {

struct OpName {
    char text[20]{};
    std::uint8_t size = 0;
    constexpr operator std::string_view() const { return {text, size}; }
};

constexpr OpName make_name(Op op) {
    OpName out;
    for (char c : info(op).row) {
        const bool upper = c >= 'A' && c <= 'Z';
        if (upper && out.size) out.text[out.size++] = '_';
        out.text[out.size++] = upper ? char(c - 'A' + 'a') : c;
    }
    return out;
}

constexpr auto op_names = [] {
    std::array<OpName, op_count> names;
    for (int i = 0; i < op_count; ++i) names[i] = make_name(Op(i));
    return names;
}();

}  // namespace

std::string_view name(Op op) { return op_names[int(op)]; }

std::optional<Op> op_named(std::string_view text) {
    for (int i = 0; i < op_count; ++i)
        if (op_names[i] == text) return Op(i);
    return {};
}

}  // namespace ikat::ir
