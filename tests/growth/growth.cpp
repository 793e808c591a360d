// SPDX-License-Identifier: Apache-2.0
// Compiles one function of many operations of a kind, for the test that counts the instructions which that takes:
//
//     test_compile_growth chains 30000
//
// The function comes as IR, so that all of the compiler after the recorder is measured; without arguments, small ones
// of all kinds are compiled.
#include <fmt/format.h>

#include <cstdlib>
#include <string>
#include <string_view>

#include "codegen/ir/text/parse.hpp"
#include "codegen/pipeline/compile.hpp"

namespace {

using namespace ikat;

/// What is around the operations: they make a number of an f32, of which %a and %i are at hand.
constexpr std::string_view head = R"(kernel @many(%x: inout f32*, %a: f32) {
  shared $s: f32[30000] align 4
^0:
  %x = param.u64 %x
  %a = param.f32 %a
  %s = symbol.u32 $s
  %i = special.u32 tid.x
  %zero = const.u32 0
  %one = const.u32 1
)";

/// What one operation adds to the text. It makes %v<n + 1> of %v<n>, in a block that it leaves open.
struct Kind {
    std::string_view name, callee;
    std::string (*operation)(int n);
};
const Kind kinds[] = {
    {"chains", "", [](int n) { return fmt::format("  %v{} = add.f32 %v{}, %a\n", n + 1, n); }},
    {"loads", "",
     [](int n) {
         return fmt::format("  %l{0} = load.f32 shared [%s+{2}]\n  %v{1} = add.f32 %v{0}, %l{0}\n", n, n + 1, 4 * n);
     }},
    {"branches", "",
     [](int n) {
         return fmt::format(
             "  %c{0} = lt.f32 %v{0}, %a\n  branch %c{0}, ^{2}, ^{3}(%v{0})\n^{2}:\n  store.f32 shared [%s], %v{0}\n"
             "  %w{0} = mul.f32 %v{0}, %a\n  jump ^{3}(%w{0})\n^{3}(%v{1}: f32):\n",
             n, n + 1, 2 * n + 1, 2 * n + 2);
     }},
    {"loops", "",
     [](int n) {
         return fmt::format(
             "  jump ^{2}(%v{0}, %zero)\n^{2}(%u{0}: f32, %k{0}: u32):\n  %v{1} = mul.f32 %u{0}, %a\n"
             "  %m{0} = lt.u32 %k{0}, %i\n  %j{0} = add.u32 %k{0}, %one\n  branch %m{0}, ^{2}(%v{1}, %j{0}), ^{3}\n"
             "^{3}:\n",
             n, n + 1, 2 * n + 1, 2 * n + 2);
     }},
    {"calls",
     "function @half(%x: f32) -> f32 {\n^0:\n  %x = param.f32 %x\n  %h = const.f32 0.5\n  %y = mul.f32 %x, %h\n"
     "  return %y\n}\n",
     [](int n) { return fmt::format("  %v{}: f32 = call @half, %v{}\n", n + 1, n); }},
};

std::size_t compile_many(const Kind& kind, int count) {
    std::string text(kind.callee);
    text += head;
    text += "  %v0 = load.f32 global [%x]\n";
    for (int n = 0; n < count; ++n) text += kind.operation(n);
    text += fmt::format("  store.f32 global [%x], %v{}\n  return\n}}\n", count);
    return compile(ir::parse(text), {.target = "sm_80"}).ptx.size();
}

}  // namespace

int main(int argc, char** argv) {
    for (const Kind& kind : kinds)
        if (argc < 3 || kind.name == argv[1])
            fmt::print("{}: {} bytes of PTX\n", kind.name, compile_many(kind, argc < 3 ? 100 : std::atoi(argv[2])));
}
