// SPDX-License-Identifier: Apache-2.0
// Fat binaries: NVIDIA's container of PTX and machine code for several targets. PTX is read, plain or compressed by LZ4
// or zstd; machine code is not. What is linked or assembled here is a fat binary of the PTX, too, where a program
// expects a cubin.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "codegen/ptx/table/target.hpp"

namespace ikat::cuda_driver {

/// Whether an image begins as a fat binary, or as the wrapper of one.
bool is_fat_binary(const void* image);

/// The PTX in a fat binary, in its order. Throws Error for damaged ones.
std::vector<std::string> ptx_in(const void* image);

/// A fat binary of one PTX text for a target.
std::string fat_binary_of(std::string_view ptx, std::uint32_t target_number);

/// The number of a target that the device runs code for, sm_90, else 0: of older ones, and with a letter after the
/// number only of its own.
unsigned accepted_number(const ptx::Target& device, std::string_view target);

/// The PTX in a fat binary that is for the newest target of those that the device runs code for. Throws Error if there
/// is none.
std::string ptx_for(const ptx::Target& device, const void* image);

}  // namespace ikat::cuda_driver
