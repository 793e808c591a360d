// SPDX-License-Identifier: Apache-2.0
// NVIDIA's assembler accepts every kernel of the registry, compiled for one target or for all, without a warning or a
// spill; its registry row documents what a user must know.
#include <iterator>

#include "codegen/pipeline/compile.hpp"
#include "stdlib/registry.hpp"
#include "tests/catch.hpp"
#include "tests/ptxas.hpp"
#include "tests/targets.hpp"

namespace ikat::tests {
namespace {

TEST_CASE("registered kernels are assembled without spills") {
    if (skip_without_ptxas()) return;
    constexpr const char* targets[] = {"sm_75", "sm_80", "sm_90", "sm_120"};
    std::size_t number = 0;
    for (const stdlib::Entry& entry : stdlib::registry()) {
        for (std::size_t which = 0; which < std::size(targets); ++which) {
            if (!is_for_target(number, which, std::size(targets))) continue;
            const char* const target = targets[which];
            const PtxasReport report = assemble(compile(entry.kernel(), {.target = target}).ptx, target);
            INFO(entry.name << " for " << target << "\n" << report.log);
            CHECK(report.clean());
        }
        ++number;
    }
}

TEST_CASE("the registry is consistent and documents its kernels") {
    std::string_view before;
    for (const stdlib::Entry& entry : stdlib::registry()) {
        INFO(entry.name);
        CHECK(before < entry.name);
        CHECK(entry.name == entry.kernel().name);
        CHECK_FALSE(entry.summary.empty());
        CHECK(entry.document.size() > 40);
        CHECK(stdlib::find(entry.name) == &entry);
        before = entry.name;
    }
    CHECK(stdlib::find("no such kernel") == nullptr);
}

}  // namespace
}  // namespace ikat::tests
