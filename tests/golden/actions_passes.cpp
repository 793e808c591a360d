// SPDX-License-Identifier: Apache-2.0
// Actions for golden files of passes: `opt simplify,dce` runs those passes, `opt` the whole pipeline, on each function
// of the input, which is verified before and after each pass.
#include "codegen/ir/text/parse.hpp"
#include "codegen/ir/text/print.hpp"
#include "codegen/ir/verify.hpp"
#include "codegen/pipeline/stages.hpp"
#include "tools/testing/golden.hpp"

namespace ikat {
namespace {

std::string optimised(const golden::Case& test) {
    ir::Module module = ir::parse(test.input, test.file);
    ir::verify(module);
    pipeline::run_passes(module.functions, {.passes = test.args, .after = [](const auto&, const ir::Function& after) {
                                                if (auto found = ir::problems(after); !found.empty())
                                                    throw Error(std::move(found));
                                            }});
    return print(module);
}

const golden::Registration passes_actions({{"opt", optimised}});

}  // namespace
}  // namespace ikat
