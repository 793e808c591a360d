// SPDX-License-Identifier: Apache-2.0
#include "tests/ptxas.hpp"

#include <algorithm>
#include <cstdio>
#include <sstream>

#include "codegen/ptxas.hpp"

namespace ikat::tests {

std::optional<std::string> find_ptxas() { return ptxas::find(); }

bool skip_without_ptxas() {
    if (find_ptxas()) return false;
    std::puts("skipped: no ptxas");
    return true;
}

PtxasReport assemble(std::string_view ptx, std::string_view target) {
    ptxas::Output output = ptxas::assemble(find_ptxas().value(), ptx, target);
    return read_ptxas_log(output.exit_status, std::move(output.log));
}

PtxasReport read_ptxas_log(int exit_status, std::string log) {
    PtxasReport report{.assembled = exit_status == 0};
    std::istringstream lines(log);
    for (std::string line; std::getline(lines, line);) {
        // It is about what a later device may do.
        const bool is_advice = line.find("'.multicast::cluster' modifier") != line.npos;
        report.warned |= (line.find("warning") != line.npos && !is_advice) || line.find("(C75") != line.npos;
    }
    for (const ptxas::Figures& entry : ptxas::read_log(log)) {
        report.spill_bytes += int(entry.spill_store_bytes + entry.spill_load_bytes);
        report.registers = std::max(report.registers, int(entry.registers));
    }
    report.log = std::move(log);
    return report;
}

}  // namespace ikat::tests
