// SPDX-License-Identifier: Apache-2.0
// The kernels that are measured: ours, and with each how both are launched, and what of the machine code is counted.
#pragma once
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "codegen/ast/ast.hpp"

namespace ikat::bench {

using Bytes = std::vector<std::uint8_t>;

struct Row {
    const char* name;  // of the entry in both
    const char* title;
    const ast::Kernel& ours;
    std::uint32_t grid[2], block[2];
    std::vector<std::variant<Bytes, std::uint32_t, float>> arguments;
    /// Machine instructions of which the innermost loop has `each` for every element: they tell how many elements a
    /// trip computes. "" where the whole kernel is counted, because nothing in it is repeated.
    const char* anchor = "";
    double each = 1;
    double tolerance = 0;  // of f32 results, relative; 0: the same bits
};

std::vector<Row> rows();

}  // namespace ikat::bench
