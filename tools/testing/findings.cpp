// SPDX-License-Identifier: Apache-2.0
#include "tools/testing/findings.hpp"

#include <algorithm>

namespace ikat::testing {

Findings findings_in(const std::function<void(const runtime::Device&)>& body, const CheckOptions& options) {
    Findings out;
    std::vector<Diagnostic> warnings;
    std::string printed;
    try {
        body(runtime::Device::open({.device = "emulator",
                                    .target = options.target,
                                    .check = options.check,
                                    .suppressions = options.suppressions,
                                    .schedules = options.schedules,
                                    .warnings = &warnings,
                                    .printed = &printed,
                                    .coverage = &out.coverage},
                                   Location{}));
    } catch (const Error& error) { out.text = error.what(); }
    for (const Diagnostic& each : warnings)
        if (each.severity != Severity::Note) out.text += (out.text.empty() ? "" : "\n") + to_string(each);
    if (out.text.empty() && out.coverage.empty()) out.text = "nothing was launched, so nothing has been checked";
    const auto is_incomplete = [](const emulator::Coverage& each) { return each.races.unchecked > 0; };
    if (out.text.empty() && std::ranges::any_of(out.coverage, is_incomplete))
        out.text = "not all accesses have been looked at for races";
    return out;
}

}  // namespace ikat::testing
