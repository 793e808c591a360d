// SPDX-License-Identifier: Apache-2.0
// Random kernels compiled from their AST to PTX and run on the emulator, two blocks of two warps: with and without
// passes and colouring they compute what the AST says. IKAT_FUZZ_COUNT sets how many, IKAT_FUZZ_SEED the first.
// Failures are shrunk, and the pass at fault is named.
#include <cstring>

#include "codegen/analysis/uniformity.hpp"
#include "codegen/lower/lower.hpp"
#include "runtime/device.hpp"
#include "tests/catch.hpp"
#include "tests/fuzz/ast_meaning.hpp"
#include "tests/fuzz/guilty.hpp"
#include "tests/fuzz/random_ast.hpp"
#include "tests/fuzz/seeds.hpp"
#include "tests/fuzz/shrink.hpp"

namespace ikat::test {
namespace {

constexpr std::uint32_t blocks = 2, threads = RandomAst::block_threads;

runtime::Device& device() {
    static runtime::Device opened = runtime::Device::open({.device = "emulator", .step_budget = 1 << 20});
    return opened;
}

std::vector<ir::Word> run(const ast::KernelTree& kernel, const CompileOptions& options) {
    const Compiled compiled = compile(kernel, options);
    const std::size_t size = ir::info(kernel.parameters[0].element).bytes;
    const auto out = device().upload(std::vector<std::uint8_t>(blocks * threads * RandomAst::words * size));
    const std::uint64_t address = out.address();
    const auto* parameter = reinterpret_cast<const std::byte*>(&address);
    device().launch(device().load(compiled.ptx, "random"), compiled.info.name, runtime::grid(blocks * threads, threads),
                    std::vector(parameter, parameter + sizeof address));
    const std::vector<std::uint8_t> bytes = out.download();
    std::vector<ir::Word> words(bytes.size() / size);
    for (std::size_t i = 0; i < words.size(); ++i) std::memcpy(&words[i], &bytes[i * size], size);
    return words;
}

/// The fault of the kernel compiled with these options, compared with its AST: "" if there is none. A kernel without a
/// defined result has no fault.
std::string fault(const ast::KernelTree& kernel, const CompileOptions& options) {
    std::vector<ir::Word> expected;
    try {
        expected = meaning(kernel, blocks, threads);
    } catch (const std::exception&) { return ""; }  // made smaller, it does not end, or leaves its memory
    try {
        return run(kernel, options) == expected ? "" : "it computes something else";
    } catch (const Error& error) { return std::string("it is rejected: ") + error.what(); }
}

}  // namespace

TEST_CASE("a compiled kernel does what its AST says") {
    for (ir::Type type : RandomAst::types)
        for (std::uint32_t seed = first_seed(), end = seed + seed_count(40); seed < end; ++seed)
            for (const CompileOptions& options : {plain, full}) {
                const ast::KernelTree kernel = RandomAst(seed, {.type = type, .together = seed % 4 != 0})();
                const std::string seen = fault(kernel, options).substr(0, 5);
                CHECK(seen == "");
                if (seen.empty()) continue;
                const ast::KernelTree small = shrunk(kernel, [&](const ast::KernelTree& candidate) {
                    return fault(candidate, options).substr(0, 5) == seen;
                });
                const auto right = [&](const CompileOptions& other) { return fault(small, other).empty(); };
                FAIL("seed " << seed << ": " << fault(small, options) << ", by "
                             << guilty(lower::ast_to_ssa(small), right) << "\n"
                             << print(small));
            }
}

TEST_CASE("where threads come together as captured, they do in the IR") {
    std::uint64_t meetings = 0;
    for (std::uint32_t seed = first_seed(), end = seed + seed_count(200); seed < end; ++seed) {
        const ast::KernelTree kernel = RandomAst(seed, {.type = ir::Type::U32, .together = true})();
        const ir::Function fn = lower::ast_to_ssa(kernel);
        const auto findings = analysis::divergent_operations(fn, analysis::Dominators(fn));
        if (!findings.empty()) FAIL("seed " << seed << ": " << to_string(findings[0]) << "\n" << print(kernel));
        for (const ast::NodeInfo& node : kernel.nodes)
            meetings += node.kind == ast::Kind::Operation && ir::is_collective(node.op);
    }
    CHECK(meetings > 1000);  // or the test says nothing
}

}  // namespace ikat::test
