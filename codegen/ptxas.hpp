// SPDX-License-Identifier: Apache-2.0
// NVIDIA's assembler, if it is installed; ikat does not need it. It gives machine code, a second opinion on PTX, and
// the registers and memory that a kernel really uses.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ikat::ptxas {

/// The path of ptxas: $IKAT_PTXAS, else the first in $PATH, else /usr/local/cuda/bin/ptxas. IKAT_PTXAS=none hides it.
std::optional<std::string> find();

struct Output {
    int exit_status = 0;
    std::string log;               // all output
    std::vector<std::byte> cubin;  // if the status is 0
};

/// `ptxas -v -arch=TARGET OPTIONS`, options as the shell takes them. Throws Error if the program cannot be started.
Output assemble(const std::string& program, std::string_view ptx, std::string_view target,
                std::string_view options = {});

/// The figures for one entry from the log of -v. Bytes and registers per thread; shared memory per block.
struct Figures {
    std::string entry, target;
    std::uint32_t registers = 0, barriers = 0;
    std::uint32_t stack_bytes = 0, spill_store_bytes = 0, spill_load_bytes = 0;
    std::uint32_t shared_bytes = 0;    // static
    std::uint32_t constant_bytes = 0;  // all banks, including the parameters
};
std::vector<Figures> read_log(std::string_view log);

}  // namespace ikat::ptxas
