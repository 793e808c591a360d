// SPDX-License-Identifier: Apache-2.0
// NVIDIA's assembler as a second opinion on PTX that the tests generate. It is optional: a test without it calls
// skip_without_ptxas() and returns.
#pragma once
#include <optional>
#include <string>
#include <string_view>

namespace ikat::tests {

/// What ptxas said about one file. `log` is everything it printed with -v.
struct PtxasReport {
    bool assembled = false;  ///< exit status 0
    bool warned = false;     ///< any warning, in particular C75xx (serialised wgmma)
    int spill_bytes = 0;     ///< stores and loads of all entries together
    int registers = 0;       ///< the most that an entry uses
    std::string log{};

    /// Assembled without a warning or a spill.
    bool clean() const { return assembled && !warned && spill_bytes == 0; }
};

/// The path of ptxas: $IKAT_PTXAS, else the first in $PATH, else /usr/local/cuda/bin/ptxas. IKAT_PTXAS=none hides it.
std::optional<std::string> find_ptxas();

/// If there is no ptxas, prints "skipped: no ptxas" and returns true.
bool skip_without_ptxas();

/// Assembles text for a target such as "sm_90a". Precondition: find_ptxas().
PtxasReport assemble(std::string_view ptx, std::string_view target);

/// Reads the output of `ptxas -v`; separate, so that it can be tested without ptxas.
PtxasReport read_ptxas_log(int exit_status, std::string log);

}  // namespace ikat::tests
