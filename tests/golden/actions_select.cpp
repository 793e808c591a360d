// SPDX-License-Identifier: Apache-2.0
// The action for golden files of selection: `select sm_80` shows the selected function.
#include "codegen/ir/text/parse.hpp"
#include "codegen/ir/text/print.hpp"
#include "codegen/ir/verify.hpp"
#include "codegen/nvptx/target.hpp"
#include "codegen/pipeline/stages.hpp"
#include "tools/testing/golden.hpp"

namespace ikat {
namespace {

std::string selected(const golden::Case& test) {
    ir::Function fn = ir::parse_function(test.input, test.file);
    ir::verify(fn);
    pipeline::select(fn, nvptx::target(test.args));
    const std::string text = print(fn);
    const std::string findings = ir::complaint(fn, ir::Level::Selected);
    return findings.empty() ? text : findings;
}

const golden::Registration select_actions({{"select", selected}});

}  // namespace
}  // namespace ikat
