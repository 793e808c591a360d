// SPDX-License-Identifier: Apache-2.0
// The special registers of a thread: %tid.x, %laneid, %clock64.
#pragma once
#include <string_view>

#include "codegen/ptx/table/target.hpp"
#include "codegen/ptx/table/types.hpp"

namespace ikat::ptx {

struct SpecialRegister {
    std::string_view name;  // families end in '*': "%envreg*"
    Type type;
    bool is_vector = false;  // has .x .y .z
    Feature feature = Feature::None;
};

/// nullptr for a name that is not special.
const SpecialRegister* find_special_register(std::string_view name);

}  // namespace ikat::ptx
