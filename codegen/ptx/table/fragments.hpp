// SPDX-License-Identifier: Apache-2.0
// The registers in which each thread of a warp (mma) or of four warps (wgmma) holds its part of a matrix.
#pragma once
#include <optional>
#include <string_view>

#include "codegen/ptx/table/forms.hpp"

namespace ikat::nvptx {

struct Fragment {
    std::uint32_t registers = 0;
    Type type;  // of each
};

/// Of the matrix d, a, b or c, or of the half of a that a sparse product keeps; none for another name.
std::optional<Fragment> fragment(const Match& match, std::string_view matrix);

}  // namespace ikat::nvptx
