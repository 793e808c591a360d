// SPDX-License-Identifier: Apache-2.0
// NVIDIA's disassembler, if it is installed, and counts in the machine code that it prints.
#pragma once
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ikat::nvdisasm {

/// $IKAT_NVDISASM, else the first nvdisasm in $PATH or beside ptxas.
std::optional<std::string> find();

/// The output of `nvdisasm -c` for the cubin. Throws Error if it cannot be run.
std::string disassemble(const std::string& nvdisasm, const std::vector<std::byte>& cubin);

/// The instructions of a kernel, without the padding after its end.
std::size_t count_instructions(std::string_view sass);

/// In the innermost loop that has the most instructions with `anchor` in their opcode: the number of instructions per
/// `each` of those. Without such a loop, in the whole kernel.
double instructions_per_element(std::string_view sass, std::string_view anchor, double each);

/// The size of the section .text.NAME in bytes, if there is no disassembler.
std::size_t text_size(const std::vector<std::byte>& cubin);

}  // namespace ikat::nvdisasm
