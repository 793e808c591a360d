// SPDX-License-Identifier: Apache-2.0
// The registers for each thread's part of a matrix that is distributed over a warp (mma) or four warps (wgmma).
#pragma once
#include <optional>
#include <string_view>

#include "codegen/ptx/table/forms.hpp"

namespace ikat::ptx {

struct Fragment {
    std::uint32_t registers = 0;
    Type type;  // of each
};

/// The fragment of the matrix d, a, b or c, or `half` for a sparse a; none for other names.
std::optional<Fragment> fragment(const Match& match, std::string_view matrix);

}  // namespace ikat::ptx
