// SPDX-License-Identifier: Apache-2.0
// KernelInfo beside PTX: a section at the end of the text, which assemblers pass over.
//
//     .section .ikat
//     {
//         // what a launch has to know of gemm
//         .b64 0x0000000301010101, 0x...
//     }
// Its words are bytes, the lowest first: numbers in groups of 7 bits, texts after their lengths. Locations have the
// name of their file without its folder, so that the text does not depend on where it was made.
#pragma once
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "codegen/kernel/kernel_info.hpp"

namespace ikat {

/// The section of a kernel.
std::string section_of(const KernelInfo& kernel);

/// The text with the sections of its kernels, laid out as ptx::print does.
std::string with_sections(std::string_view ptx, std::span<const KernelInfo> kernels);

/// What the sections of a text of PTX say, in their order. `file` names it in messages. Throws Error, with the line,
/// for a section that cannot be read or describes no kernel.
std::vector<KernelInfo> infos_in(std::string_view ptx, std::string_view file);

/// The text without its sections, and without the empty line before them.
std::string without_sections(std::string_view ptx);

}  // namespace ikat
