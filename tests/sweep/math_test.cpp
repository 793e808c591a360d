// SPDX-License-Identifier: Apache-2.0
// The elementary functions on a sample of their arguments, and what the table says of all.
#include <fmt/format.h>

#include <fstream>
#include <sstream>

#include "tests/catch.hpp"
#include "tests/device.hpp"
#include "tests/sweep/page.hpp"
#include "tests/sweep/sweep.hpp"
#include "tools/testing/golden.hpp"

using namespace ikat;
using namespace ikat::test;

namespace {

void check_sample(const auto& functions, std::uint64_t count_or_stride) {
    const runtime::Device device = open_device();
    for (const auto& function : functions) {
        const auto found = sweep(function, device, count_or_stride);
        INFO(function.name << "(" << found.at << ", " << found.y << ") = " << found.got);
        CHECK(found.error <= function.bound);
    }
}

std::string four_places(double error) { return fmt::format("{:.4f}", error); }

void check_recorded(const auto& function, double error) {
    INFO(function.name << ": another error where the largest was; run sweep_math " << function.name);
    if (function.recorded.digest != 0) CHECK(four_places(error) == four_places(function.recorded.error));
    CHECK(function.recorded.error <= function.bound);
}

/// The page with its table replaced.
std::string with_table(const std::string& page, const std::string& table) {
    const std::size_t begin = page.find("| function |"), end = page.find("\n\n", begin);
    REQUIRE(begin != page.npos);
    REQUIRE(end != page.npos);
    return page.substr(0, begin) + table + page.substr(end + 1);
}

}  // namespace

TEST_CASE("elementary functions of f32 are within their bounds on a sample") { check_sample(f32_functions(), 4001); }
TEST_CASE("powers are within their bounds on a sample") { check_sample(power_functions(), 200'000); }
TEST_CASE("elementary functions of f64 are within their bounds on a sample") { check_sample(f64_functions(), 50'000); }

TEST_CASE("the table of errors is that of these functions") {
    const runtime::Device device = open_device();
    for (const auto& f : f32_functions()) check_recorded(f, error_at(f, device, f.recorded.at));
    for (const auto& f : f64_functions()) check_recorded(f, error_at(f, device, f.recorded.at));
    for (const auto& f : power_functions()) check_recorded(f, error_at(f, device, f.recorded.at, f.recorded_y));
}

TEST_CASE("docs/math.md shows the table of errors") {
    const std::string file = IKAT_SOURCE_DIR "/docs/math.md";
    std::ostringstream page;
    page << std::ifstream(file).rdbuf();
    const auto result = golden::compare(file, with_table(page.str(), table_of_errors()));
    INFO(result.message);
    CHECK(result.passed);
}

TEST_CASE("an error is counted in units of the exact result, and kinds must agree") {
    const double next = 1 + 0x1p-23, inf = HUGE_VAL, nan = NAN;
    CHECK(ulps_between(1.0f, next) == 1);
    CHECK(ulps_between(float(next), 1.0) == 1);
    CHECK(ulps_between(0.0f, 0x1p-149) == 1);
    CHECK(ulps_between(HUGE_VALF, 0x1.fffffep+127) == 1);
    CHECK(ulps_between(HUGE_VALF, 0x1.ffffffp+127) == 0);
    CHECK(ulps_between(HUGE_VALF, 1e300) == 0);
    CHECK(ulps_between(0x1.fffffep+127f, inf) == inf);
    CHECK(ulps_between(-0.0f, 0.0) == inf);
    CHECK(ulps_between(1.0f, nan) == inf);
    CHECK(ulps_between(NAN, 1.0) == inf);
    CHECK(ulps_between(NAN, nan) == 0);
    CHECK(correctly_rounded(1.0f, 1 + 0x1p-25));
    CHECK_FALSE(correctly_rounded(-0.0f, 0.0));
}
