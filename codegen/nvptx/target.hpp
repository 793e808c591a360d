// SPDX-License-Identifier: Apache-2.0
// NVIDIA's GPUs, for which PTX is written, as targets of the compiler.
#pragma once
#include "codegen/target.hpp"

namespace ikat::nvptx {

/// The target of that name, as .target has it; throws Error, which lists the known ones.
const Target& target(std::string_view name);

}  // namespace ikat::nvptx
