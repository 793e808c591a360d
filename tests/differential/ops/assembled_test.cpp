// SPDX-License-Identifier: Apache-2.0
// NVIDIA's assembler accepts every op, type and modifier, on registers and on immediates, for one target or for all.
// One file holds many entries, because starting the assembler costs more than an entry.
#include <iterator>

#include "codegen/pipeline/compile.hpp"
#include "tests/catch.hpp"
#include "tests/differential/ops/op_kernel.hpp"
#include "tests/ptxas.hpp"
#include "tests/targets.hpp"

namespace ikat::test {
namespace {

constexpr std::size_t entries_per_file = 64;
constexpr const char* targets[] = {"sm_75", "sm_80", "sm_90"};

/// Combines several modules of one entry each: the header of the newest, all entries.
class Bundle {
public:
    explicit Bundle(const char* target) : target_(target) {}

    void add(ir::Function fn, bool optimise) {
        fn.name = "op" + std::to_string(count_++);
        const std::string ptx =
            compile(std::move(fn), {.target = target_, .optimise = optimise, .verify_each = true}).ptx;
        const std::size_t body = ptx.find(".visible");
        if (ptx.substr(0, body) > header_) header_ = ptx.substr(0, body);
        entries_ += ptx.substr(body);
    }
    void assemble_if_full(std::size_t limit) {
        if (count_ < limit || count_ == 0) return;
        const tests::PtxasReport report = tests::assemble(header_ + entries_, target_);
        INFO(report.log << "\n" << header_ << entries_);
        CHECK(report.assembled);
        CHECK_FALSE(report.warned);
        *this = Bundle(target_);
    }

private:
    const char* target_;
    std::size_t count_ = 0;
    std::string header_, entries_;
};

void check(const std::vector<OpCase>& cases, std::size_t which) {
    const char* const target = targets[which];
    Bundle bundle(target);
    for (std::size_t number = 0; number < cases.size(); ++number) {
        const OpCase& test = cases[number];
        if (!tests::is_for_target(number, which, std::size(targets))) continue;
        if (!has_way(test, ptx::target(target))) continue;
        const Arguments all = edge_arguments(test);
        const Arguments some{all.front(), all[all.size() / 2], all.back()};
        bundle.add(memory_kernel(test), true);
        bundle.add(constant_kernel(test, some), false);
        bundle.assemble_if_full(entries_per_file);
    }
    bundle.assemble_if_full(1);
}

TEST_CASE("every op is assembled") {
    if (tests::skip_without_ptxas()) return;
    for (std::size_t which = 0; which < std::size(targets); ++which) {
        check(arithmetic_cases(), which);
        check(conversion_cases(), which);
    }
}

}  // namespace
}  // namespace ikat::test
