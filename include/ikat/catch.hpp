// SPDX-License-Identifier: Apache-2.0
// For tests that use Catch2, of either version; include it before or after Catch2's own header.
//
//     REQUIRE_THAT([](const Device& device) { Buffer<float> y = device.buffer<float>(n); device.launch(fill, …, y); },
//                  testing::has_no_findings());
#pragma once
#if __has_include(<catch2/matchers/catch_matchers.hpp>)
#include <catch2/matchers/catch_matchers.hpp>
#else
#include <catch2/catch.hpp>
#endif

#include <functional>
#include <string>

#include "tools/testing/findings.hpp"

namespace ikat::testing {

/// Launches, with every check and in several orders.
using Launches = std::function<void(const runtime::Device&)>;

/// What both versions of Catch2 have a matcher of these derive from.
#if __has_include(<catch2/matchers/catch_matchers.hpp>)
using LaunchesMatcher = Catch::Matchers::MatcherBase<Launches>;
#else
using LaunchesMatcher = Catch::MatcherBase<Launches>;
#endif

/// A matcher of Launches, which has_no_findings() makes.
class HasNoFindings final : public LaunchesMatcher {
public:
    explicit HasNoFindings(const CheckOptions& options) : options_(options) {}
    /// Launches them, with the checks and orders of the options.
    bool match(const Launches& launches) const override {
        text_ = findings_in(launches, options_).text;
        return text_.empty();
    }
    std::string describe() const override {
        return text_.empty() ? "has no findings" : "has no findings, but:\n" + text_;
    }

private:
    CheckOptions options_;
    mutable std::string text_;
};

/// Matches what launches kernels on the Device that it is given, if the emulator finds nothing wrong.
inline HasNoFindings has_no_findings(const CheckOptions& options = {}) { return HasNoFindings(options); }

}  // namespace ikat::testing
