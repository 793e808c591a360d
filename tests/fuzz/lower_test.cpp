// SPDX-License-Identifier: Apache-2.0
// Random structured kernels, run as an AST and, lowered, as IR, before and after unrolling: all must leave the same
// memory. IKAT_FUZZ_COUNT sets how many, IKAT_FUZZ_SEED the first seed. Failures are shrunk.
#include "codegen/lower/lower.hpp"
#include "codegen/ast/ast.hpp"
#include "codegen/ir/text/print.hpp"
#include "codegen/ir/verify.hpp"
#include "codegen/pipeline/stages.hpp"
#include "tests/catch.hpp"
#include "tests/fuzz/ast_meaning.hpp"
#include "tests/fuzz/random_ast.hpp"
#include "tests/fuzz/seeds.hpp"
#include "tests/fuzz/shrink.hpp"
#include "tests/interpreter/interpreter.hpp"

namespace ikat::test {
namespace {

/// The final contents of its buffer; nothing if it does not end.
std::vector<ir::Word> run_lowered(const ir::Function& fn) {
    constexpr std::uint64_t base = 1 << 20;  // of the buffer
    const std::uint64_t size = ir::info(fn.parameters[0].element).bytes;
    Thread thread{.scalars = {base}};
    if (interpret(fn, thread) != End::Returned) return {};
    std::vector<ir::Word> memory(RandomAst::words);
    for (const auto& [address, byte] : thread.memory)
        memory.at((address - base) / size) |= ir::Word(byte) << (8 * ((address - base) % size));
    return memory;
}

bool right(const ast::KernelTree& kernel) {
    std::vector<ir::Word> expected;
    try {
        expected = meaning(kernel, 1, 1);
    } catch (const std::exception&) { return true; }  // made smaller, it does not end or leaves its memory
    ir::Function fn = lower::ast_to_ssa(kernel);
    if (!complaint(fn).empty() || run_lowered(fn) != expected) return false;
    pipeline::run_passes(fn, {.passes = "unroll"});
    return complaint(fn).empty() && run_lowered(fn) == expected;
}

}  // namespace

TEST_CASE("a lowered kernel does what its AST says") {
    for (ir::Type type : RandomAst::types)
        for (std::uint32_t seed = first_seed(1), end = seed + seed_count(750); seed < end; ++seed) {
            const ast::KernelTree kernel = RandomAst(seed, {.type = type})();
            const bool as_it_says = right(kernel);
            CHECK(as_it_says);
            if (as_it_says) continue;
            const ast::KernelTree small =
                shrunk(kernel, [](const ast::KernelTree& candidate) { return !right(candidate); });
            const ir::Function fn = lower::ast_to_ssa(small);
            FAIL("seed " << seed << ": lowered,\n" << print(small) << "is\n" << print(fn) << complaint(fn));
        }
}

}  // namespace ikat::test
