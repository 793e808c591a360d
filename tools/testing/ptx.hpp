// SPDX-License-Identifier: Apache-2.0
// PTX for golden files: a kernel's PTX with registers numbered in code order. Adding or removing a value shifts later
// numbers, but does not change all of them, as colouring would.
#pragma once
#include <string>
#include <string_view>

#include "dsl/record/capture.hpp"

namespace ikat::golden {

/// Throws Error for mistakes in the kernel, as a launch would.
std::string ptx(const trace::KernelHandle& kernel, std::string_view target = "sm_80");

}  // namespace ikat::golden
