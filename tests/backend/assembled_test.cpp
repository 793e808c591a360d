// SPDX-License-Identifier: Apache-2.0
// Every function among the golden files of selection and emission, compiled for each target in each way, parses back
// and is accepted by NVIDIA's assembler.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>

#include "codegen/ir/text/parse.hpp"
#include "codegen/pipeline/compile.hpp"
#include "codegen/ptx/check/check.hpp"
#include "codegen/ptx/text/module.hpp"
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

std::string text_of(const fs::path& file) {
    std::stringstream text;
    text << std::ifstream(file).rdbuf();
    return text.str();
}

/// The input of a golden file: the part above the expectation.
ir::Module input_of(const fs::path& file) {
    const std::string whole = text_of(file);
    return ir::parse(std::string_view(whole).substr(0, whole.find("// ---- expect")), file.string());
}

/// The target in a golden file's first line, such as sm_80.
std::string target_of(const fs::path& file) {
    const std::string whole = text_of(file);
    const std::size_t begin = whole.find("sm_");
    return whole.substr(begin, whole.find_first_of(" \n", begin) - begin);
}

int generation(std::string_view target) { return std::atoi(target.data() + std::string_view("sm_").size()); }

/// Whether code for the file's target runs on this one, too: on no other than sm_90a where that is the file's.
bool includes(std::string_view target, std::string_view own) {
    return target == own || (own.back() != 'a' && generation(target) >= generation(own));
}

/// Nothing if the target lacks an instruction, as others than those that include the file's own may.
std::optional<Compiled> compiled(const fs::path& file, const CompileOptions& options) {
    try {
        return compile(input_of(file), options);
    } catch (const Error&) {
        if (includes(options.target, target_of(file))) throw;
        return {};
    }
}

constexpr const char* assembled_targets[] = {"sm_75", "sm_80", "sm_90", "sm_90a", "sm_120"};

std::vector<CompileOptions> ways(const std::string& target) {
    return {{.target = target, .verify_each = true},
            {.target = target, .allocation = regalloc::Method::Simplest, .optimise = false, .line_info = true}};
}

TEST_CASE("emitted PTX parses back to itself") {
    REQUIRE(golden_files().size() > 20);
    for (const fs::path& file : golden_files())
        for (const CompileOptions& options : ways(target_of(file))) {
            INFO(file);
            const std::string emitted = compile(input_of(file), options).ptx;
            const ptx::Module module = ptx::parse(emitted, "(emitted)");
            CHECK(ptx::print(module) == emitted);
            for (const Diagnostic& finding : ptx::check(module)) FAIL_CHECK(to_string(finding));
            CHECK(compile(input_of(file), options).ptx == emitted);
        }
}

TEST_CASE("emitted PTX is accepted for every target", "[long]") {
    if (skip_without_ptxas()) return;
    for (const fs::path& file : golden_files())
        for (const char* target : assembled_targets)
            for (const CompileOptions& options : ways(target)) {
                const auto emitted = compiled(file, options);
                if (!emitted) continue;
                const PtxasReport report = assemble(emitted->ptx, target);
                INFO(file << " for " << target << "\n" << report.log << "\n" << emitted->ptx);
                CHECK(report.assembled);
                CHECK_FALSE(report.warned);
            }
}

}  // namespace
}  // namespace ikat::tests
