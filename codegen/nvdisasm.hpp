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

/// An innermost loop, found by opcodes: the one with most instructions of `anchor`, of which it has `each` per element,
/// among those that have `with` and none of `without`. So a loop that has been unrolled is told from what makes its
/// last rounds, and from others of the kernel.
struct Loop {
    std::string_view anchor;
    double each = 1;
    std::string_view with{};
    std::vector<std::string_view> without{};
};

/// The instructions of the loop for an element. Without such a loop, those of the whole kernel.
double instructions_per_element(std::string_view sass, const Loop& loop);

/// The size of the section .text.NAME in bytes, if there is no disassembler.
std::size_t text_size(const std::vector<std::byte>& cubin);

}  // namespace ikat::nvdisasm
