// SPDX-License-Identifier: Apache-2.0
// The elementary functions on a sample of their arguments, and the table of measured errors.
#include <fmt/format.h>

#include <fstream>
#include <map>
#include <regex>
#include <sstream>
#include <string>

#include "codegen/support/environment.hpp"
#include "tests/catch.hpp"
#include "tests/device.hpp"
#include "tests/sweep/measured.hpp"
#include "tests/sweep/page.hpp"
#include "tests/sweep/sweep.hpp"
#include "tools/testing/golden.hpp"

using namespace ikat;
using namespace ikat::test;

namespace {

void check_sample(const auto& functions) {
    const runtime::Device device = open_device();
    for (const auto& function : functions) {
        const auto found = sweep(function, device, sample_stride);
        INFO(function.name << "(" << found.at << ", " << found.y << ") = " << found.got);
        CHECK(found.error <= function.bound);
        INFO("its results have changed: measure it again with sweep_math " << function.name);
        if (!function.unit) CHECK(found.digest == measured(function.name).sample_digest);
    }
}

std::string four_places(double error) { return fmt::format("{:.4f}", error); }

/// Checks the error at the argument where it was largest.
void check_measured(const auto& function, auto&& error_at) {
    const Measured& before = measured(function.name);
    INFO(function.name << ": measure it again with sweep_math " << function.name);
    CHECK(before.name == function.name);
    CHECK(before.error <= function.bound);
    if (!function.unit) CHECK(four_places(error_at(before)) == four_places(before.error));
}

/// The program may have been copied to a machine where the source is somewhere else: scripts/gpu says where.
std::string source_file(std::string_view name) {
    const std::string_view folder = environment("IKAT_SOURCE");
    return std::string(folder.empty() ? IKAT_SOURCE_DIR : folder).append(name);
}

/// The comments of stdlib/math/math.hpp above each IKAT_BOTH(name) and IKAT_SINGLE(name).
std::map<std::string, std::string> comments_by_function() {
    std::map<std::string, std::string> out;
    std::ifstream header(source_file("/stdlib/math/math.hpp"));
    std::string comment;
    const std::regex declaration(R"(IKAT_(?:BOTH|SINGLE)\((\w+)\))");
    for (std::string line, before; std::getline(header, line); before = line) {
        std::smatch match;
        if (line.starts_with("///")) {
            comment = (before.starts_with("///") ? comment : "") + line;
        } else if (std::regex_match(line, match, declaration)) {
            out[match[1]] = comment;
        }
    }
    return out;
}

/// The page with its table replaced.
std::string with_table(const std::string& page, const std::string& table) {
    const std::size_t begin = page.find("| function |"), end = page.find("\n\n", begin);
    REQUIRE(begin != page.npos);
    REQUIRE(end != page.npos);
    return page.substr(0, begin) + table + page.substr(end + 1);
}

}  // namespace

TEST_CASE("elementary functions of f32 are within their bounds, and give the same bits on every device") {
    check_sample(f32_functions());
}
TEST_CASE("powers are within their bounds, and give the same bits on every device") { check_sample(power_functions()); }
TEST_CASE("elementary functions of f64 are within their bounds, and give the same bits on every device") {
    check_sample(f64_functions());
}

TEST_CASE("the table of errors is that of these functions") {
    const runtime::Device device = open_device();
    for (const auto& f : f32_functions())
        check_measured(f, [&](const Measured& m) { return error_at(f, device, float(m.at)); });
    for (const auto& f : f64_functions())
        check_measured(f, [&](const Measured& m) { return error_at(f, device, m.at); });
    for (const auto& f : power_functions())
        check_measured(f, [&](const Measured& m) { return error_at(f, device, float(m.at), float(m.y)); });
}

TEST_CASE("docs/math.md shows the table of errors") {
    const std::string file = source_file("/docs/math.md");
    std::ostringstream page;
    page << std::ifstream(file).rdbuf();
    const auto result = golden::compare(file, with_table(page.str(), table_of_errors()));
    INFO(result.message);
    CHECK(result.passed);
}

TEST_CASE("stdlib/math/math.hpp promises the bounds of the table") {
    const auto comments = comments_by_function();
    const auto promises = [&](const std::string& name, const std::string& pattern, double bound) {
        INFO(name << " " << bound);
        REQUIRE(comments.contains(name));
        CHECK(std::regex_search(comments.at(name), std::regex(fmt::format("{}: {} ulp", pattern, bound))));
    };
    for (const auto& f : f32_functions())
        if (!f.unit) promises(std::string(f.name), "f32( and f64)?", f.bound);
    for (const auto& f : f64_functions())
        if (f.name != "f64:sqrt") promises(std::string(f.name.substr(4)), "f64", f.bound);
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
