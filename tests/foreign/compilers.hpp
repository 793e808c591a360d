// SPDX-License-Identifier: Apache-2.0
// PTX that ikat did not write, made by other compilers while the tests run, and what ptxas makes of a text.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace ikat::tests {

/// PTX of CUDA source by nvcc ($PATH, else /usr/local/cuda/bin); nothing where there is none.
std::optional<std::string> nvcc_ptx(std::string_view source, std::string_view options);

/// PTX of C++ source by clang++-19; nothing where there is none.
std::optional<std::string> clang_ptx(std::string_view source, std::string_view options);

/// PTX of the kernels in triton_kernels.py, by file: "0_vector_add.sm_80.ptx"; nothing where `python3` has no Triton.
std::optional<std::map<std::string, std::string>> triton_ptx();

/// The machine code that ptxas makes of the text, by section: ".text.saxpy". Precondition: find_ptxas(). Throws
/// std::runtime_error with the log where it does not assemble.
std::map<std::string, std::string> machine_code(std::string_view ptx, std::string_view target);

/// What ptxas lays into global and constant memory, and where addresses are to be put in, by section.
std::map<std::string, std::string> initial_values(std::string_view ptx, std::string_view target);

}  // namespace ikat::tests
