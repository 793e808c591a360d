// SPDX-License-Identifier: Apache-2.0
// `lower NAME`: the kernel of that name in tests/golden/kernels_*.cpp as SSA, before any pass. The file's input
// describes what it shows.
#include "codegen/ir/text/print.hpp"
#include "codegen/ir/verify.hpp"
#include "codegen/lower/lower.hpp"
#include "tests/golden/kernels.hpp"
#include "tools/testing/golden.hpp"

namespace ikat {
namespace {

std::string lowered(const golden::Case& test) {
    const ast::KernelTree& kernel = tests::kernel_named(test.args).ast();
    if (auto findings = ast::check(kernel); !findings.empty()) throw Error(std::move(findings));
    const ir::Function fn = lower::ast_to_ssa(kernel);
    const std::string findings = ir::complaint(fn, ir::Level::Typed);
    return findings.empty() ? ir::print(fn) : findings;
}

const golden::Registration lower_actions({{"lower", lowered}});

}  // namespace
}  // namespace ikat
