// SPDX-License-Identifier: Apache-2.0
// NVIDIA's assembler accepts every kernel of the registry, compiled for one target or for all, without a warning or a
// spill; its registry row documents what a user must know.
#include <iterator>

#include "codegen/kernel/section.hpp"
#include "codegen/pipeline/compile.hpp"
#include "codegen/ptx/text/module.hpp"
#include "stdlib/catalogue/registry.hpp"
#include "tests/catch.hpp"
#include "tests/ptxas.hpp"
#include "tests/targets.hpp"

namespace ikat::tests {
namespace {

/// For one target or for all, by the kernel's number.
void check_assembled(const KernelHandle& kernel, std::size_t number) {
    constexpr const char* targets[] = {"sm_75", "sm_80", "sm_90", "sm_120"};
    const bool is_of_cluster = kernel.info().bounds.cluster_blocks() > 1;
    for (std::size_t which = 0; which < std::size(targets); ++which) {
        if (!is_for_target(number, which, std::size(targets))) continue;
        const char* const target = targets[is_of_cluster ? 2 + which % 2 : which];
        const PtxasReport report = assemble(file_text(compile(kernel.ast(), {.target = target})), target);
        INFO(kernel.name() << " for " << target << "\n" << report.log);
        CHECK(report.clean());
    }
}

/// Whether it is time for a kernel of this variant: those of rows in shared memory are long, and much alike.
bool is_due(const stdlib::Variant& variant) {
    static Sample sample(4);
    return !variant.shared || std::getenv("IKAT_ALL_TARGETS") || sample.next();
}

TEST_CASE("registered kernels are assembled without spills") {
    if (skip_without_ptxas()) return;
    std::size_t number = 0;
    for (const stdlib::Entry& entry : stdlib::registry())
        if (is_due(*entry.variant)) check_assembled(entry.handle(), number++);
}

/// Of those that keep a row in registers, some spill a word where the row has pitches.
bool keeps_rows(const stdlib::Variant& kernel) { return kernel.passes != 0 && !kernel.shared; }

TEST_CASE("kernels for arrays with gaps are assembled without spills") {
    if (skip_without_ptxas()) return;
    std::size_t number = 0;
    for (const stdlib::Recipe* recipe : stdlib::recipes())
        for (const stdlib::Variant& variant : recipe->variants())
            for (const stdlib::Instances& kernels : {variant.pitched, variant.parts, variant.clusters})
                for (const auto kernel : kernels)
                    if (kernel && !keeps_rows(variant) && is_due(variant)) check_assembled(kernel(), number++);
    CHECK(number > 100);
}

TEST_CASE("registered kernels: what a launch has to know is not lost when their PTX is printed") {
    for (const stdlib::Entry& entry : stdlib::registry()) {
        INFO(entry.name);
        const Compiled compiled = compile(entry.handle().ast(), {.target = "sm_80"});
        const std::string text = file_text(compiled);
        CHECK(ptx::print(ptx::parse(text, entry.name)) == text);
        CHECK(without_sections(text) == compiled.ptx);
        const std::vector<KernelInfo> infos = infos_in(text, entry.name);
        REQUIRE(infos.size() == 1);
        CHECK(section_of(infos[0]) == section_of(compiled.info));
        CHECK(infos[0].parameters == entry.info().parameters);
        CHECK(infos[0].sizes == entry.info().sizes);
        CHECK(infos[0].bounds == entry.info().bounds);
    }
}

TEST_CASE("the registry is consistent and documents its kernels") {
    std::string_view before;
    for (const stdlib::Entry& entry : stdlib::registry()) {
        INFO(entry.name);
        CHECK(before < entry.name);
        CHECK(entry.name == entry.info().name);
        CHECK_FALSE(entry.summary.empty());
        CHECK(entry.document.size() > 40);
        CHECK(stdlib::find(entry.name) == &entry);
        before = entry.name;
    }
    CHECK(stdlib::find("no such kernel") == nullptr);
}

}  // namespace
}  // namespace ikat::tests
