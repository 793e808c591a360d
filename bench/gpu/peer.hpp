// SPDX-License-Identifier: Apache-2.0
// Products by cuBLASLt, in the same process and over the same memory.
#pragma once
#include <cstdint>
#include <functional>
#include <vector>

#include "codegen/ir/type.hpp"

namespace ikat::bench {

/// C = A B in row-major order, each in device memory, rows without gaps.
struct Product {
    ir::Type type = ir::Type::F32;  // of A and B
    bool c_is_f32 = false;          // where these are of 16 bits
    bool tf32 = false;              // float may be multiplied as tf32
    bool a_by_columns = false, b_by_columns = false;
    std::uint64_t m = 0, n = 0, k = 0;
    std::uint64_t a = 0, b = 0, c = 0, workspace = 0;  // addresses
    std::uint64_t workspace_bytes = 0;
};

/// What cuBLASLt's heuristic names for the product, the best guess first, at most eight; each function enqueues it on
/// the default stream of the current context. They own what they need. Throws Error where there is no cuBLASLt, or it
/// has no such product.
std::vector<std::function<void()>> cublaslt_choices(const Product& product);

}  // namespace ikat::bench
