// SPDX-License-Identifier: Apache-2.0
// How boxes of tensors fill arrays in shared memory, and how products read them: both sides say by how many bytes rows
// are swizzled, and it is the same.
#pragma once
#include <string>
#include <vector>

#include "codegen/ast/ast.hpp"
#include "codegen/support/diagnostic.hpp"

namespace ikat::trace {

/// A place of an array that a box is copied to, or that a descriptor is made of.
struct SwizzledPlace {
    bool is_filled = false;  // or read
    std::uint32_t symbol = 0;
    ast::Node address = ast::no_node;
    std::uint32_t swizzle = 0;
    const char* what = "";
    Location where{};
};

/// "swizzled within 128 bytes", "not swizzled".
std::string swizzle_text(std::uint32_t swizzle);

/// Finds descriptors of arrays that boxes alone fill, none of them with the descriptor's swizzle.
std::vector<Diagnostic> wrong_swizzles(const ast::KernelTree& kernel, const std::vector<SwizzledPlace>& places);

}  // namespace ikat::trace
