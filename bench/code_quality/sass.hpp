// SPDX-License-Identifier: Apache-2.0
// Machine code as nvdisasm prints it, counted.
#pragma once
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ikat::bench {

/// $IKAT_NVDISASM, else the first nvdisasm in $PATH or beside ptxas.
std::optional<std::string> find_nvdisasm();

/// `nvdisasm -c` of the cubin. Throws Error where it cannot be run.
std::string disassemble(const std::string& nvdisasm, const std::vector<std::byte>& cubin);

/// The instructions of a kernel, without the padding behind its end.
std::size_t count_instructions(std::string_view sass);

/// Of the innermost loop that has the most instructions with `anchor` in their opcode: how many instructions there are
/// for `each` of those. Without such a loop, of the whole kernel.
double instructions_per_element(std::string_view sass, std::string_view anchor, double each);

/// Bytes of the section .text.NAME, for want of a disassembler.
std::size_t text_size(const std::vector<std::byte>& cubin);

}  // namespace ikat::bench
