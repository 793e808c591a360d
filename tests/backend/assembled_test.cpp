// SPDX-License-Identifier: Apache-2.0
// Every function among the golden files of selection and emission, compiled for each target in each way, parses back
// and is accepted by NVIDIA's assembler.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "codegen/compile.hpp"
#include "codegen/ir/parse.hpp"
#include "codegen/ptx/check.hpp"
#include "codegen/ptx/module.hpp"
#include "tests/catch.hpp"
#include "tests/ptxas.hpp"

namespace ikat::tests {
namespace {

namespace fs = std::filesystem;

std::vector<fs::path> golden_files() {
    std::vector<fs::path> out;
    for (const char* area : {"select", "ptx_emit"})
        for (const auto& entry : fs::directory_iterator(fs::path(IKAT_SOURCE_DIR) / "tests/golden" / area))
            out.push_back(entry.path());
    std::ranges::sort(out);
    return out;
}

/// The input of a golden file: what stands above the expectation.
ir::Function input_of(const fs::path& file) {
    std::ifstream stream(file);
    std::stringstream text;
    text << stream.rdbuf();
    const std::string whole = text.str();
    return ir::parse_function(std::string_view(whole).substr(0, whole.find("// ---- expect")), file.string());
}

constexpr const char* assembled_targets[] = {"sm_75", "sm_80", "sm_90", "sm_120"};

std::vector<CompileOptions> ways(const char* target) {
    return {{.target = target, .verify_each = true},
            {.target = target, .allocation = regalloc::Method::Simplest, .optimise = false, .line_info = true}};
}

TEST_CASE("emitted PTX parses back to itself") {
    REQUIRE(golden_files().size() > 20);
    for (const fs::path& file : golden_files())
        for (const CompileOptions& options : ways("sm_80")) {
            INFO(file);
            const Compiled compiled = compile(input_of(file), options);
            const ptx::Module module = ptx::parse(compiled.ptx, "(emitted)");
            CHECK(ptx::print(module) == compiled.ptx);
            for (const Diagnostic& finding : ptx::check(module)) FAIL_CHECK(to_string(finding));
            CHECK(compile(input_of(file), options).ptx == compiled.ptx);
        }
}

TEST_CASE("emitted PTX is accepted for every target") {
    if (skip_without_ptxas()) return;
    for (const fs::path& file : golden_files())
        for (const char* target : assembled_targets)
            for (const CompileOptions& options : ways(target)) {
                const Compiled compiled = compile(input_of(file), options);
                const PtxasReport report = assemble(compiled.ptx, target);
                INFO(file << " for " << target << "\n" << report.log << "\n" << compiled.ptx);
                CHECK(report.assembled);
                CHECK_FALSE(report.warned);
            }
}

}  // namespace
}  // namespace ikat::tests
