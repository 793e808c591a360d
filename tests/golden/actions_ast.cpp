// SPDX-License-Identifier: Apache-2.0
// `ast NAME`: the kernel of that name in one of the kernels_*.cpp, captured and printed. The file's input describes
// what it shows.
#include "codegen/ast/ast.hpp"
#include "tests/golden/kernels.hpp"
#include "tools/testing/golden.hpp"

namespace ikat {
namespace {

std::string ast(const golden::Case& test) { return ast::print(tests::kernel_named(test.args).ast()); }

const golden::Registration ast_actions({{"ast", ast}});

}  // namespace
}  // namespace ikat
