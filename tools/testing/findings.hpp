// SPDX-License-Identifier: Apache-2.0
// Runs what a test gives it on the emulator with every check, each launch in several orders of its warps.
//
//     const auto found = ikat::testing::findings_in([](const Device& device) {
//         Buffer<float> y = device.buffer<float>(n);
//         device.launch(fill, grid(n, 256), 1.0f, y);
//     });
//     CHECK(found.text == "");
// The matcher for Catch2 is has_no_findings(), in ikat/catch.hpp.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/device.hpp"

namespace ikat::testing {

/// What is checked, in how many orders of the warps, on which target, and which findings are known (a file).
struct CheckOptions {
    std::string_view check = "strict,registers,races";  // as OpenOptions::check
    std::uint32_t schedules = 8;
    std::string_view target{};
    std::string_view suppressions{};
};

/// What was found, and how much was looked at.
struct Findings {
    std::string text;  // errors and warnings, and that nothing was launched; empty: none
    std::vector<emulator::Coverage> coverage;
};

/// An Error of the body, such as a wrong argument, is a finding, too.
Findings findings_in(const std::function<void(const runtime::Device&)>& body, const CheckOptions& options = {});

}  // namespace ikat::testing
