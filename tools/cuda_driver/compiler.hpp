// SPDX-License-Identifier: Apache-2.0
// What stands for NVIDIA's assembler: PTX is checked for a device, and what is wrong with it is told in the assembler's
// words, which programs search for line numbers.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "codegen/ptx/table/target.hpp"
#include "codegen/ptx/text/module.hpp"
#include "codegen/support/diagnostic.hpp"
#include "tools/cuda_driver/abi.hpp"

namespace ikat::cuda_driver {

/// PTX that was refused.
struct NotAssembled {
    CUresult result = CUDA_ERROR_INVALID_PTX;
    std::string log{};
};

/// Parses PTX and checks it for the device: all of a program, or a part that others will be linked to. `input` is what
/// the log calls it. Throws NotAssembled.
ptx::Module assemble(const ptx::Target& device, std::string_view text, std::string_view input, bool is_complete);

/// A text for the linker, with a name for messages.
struct LinkInput {
    std::string name, text;
};
/// One text of several: a program, or a part of one. Throws NotAssembled.
std::string link_texts(const ptx::Target& device, const std::vector<LinkInput>& inputs, bool is_complete = true);

/// Of a text of several lines, the log of an error in the assembler's words.
std::string log_of(const Error& error, std::string_view input);

}  // namespace ikat::cuda_driver
