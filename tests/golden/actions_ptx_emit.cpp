// SPDX-License-Identifier: Apache-2.0
// Actions for golden files of emission: `emit sm_80 …` compiles a function of IR to PTX, without passes. Further words:
// `colouring` for the default allocation (else one register per value, so that an unrelated change does not recolour
// the file), `optimised` for the passes, `loc` for line_info, `lines` for the table of source lines.
#include "codegen/ir/text/parse.hpp"
#include "codegen/pipeline/compile.hpp"
#include "codegen/ptx/text/module.hpp"
#include "tools/testing/golden.hpp"

namespace ikat {
namespace {

/// Appends the source line to each line of PTX that has one.
std::string with_source_lines(const Compiled& compiled) {
    std::string out;
    std::size_t number = 0;
    for (std::size_t begin = 0, end; begin < compiled.ptx.size(); begin = end + 1) {
        end = compiled.ptx.find('\n', begin);
        out += compiled.ptx.substr(begin, end - begin);
        if (++number < compiled.info.source_lines.size() && compiled.info.source_lines[number].known())
            out += "  // " + to_string(compiled.info.source_lines[number]);
        out += '\n';
    }
    return out;
}

std::string emitted(const golden::Case& test) {
    const auto asks = [&](std::string_view word) { return test.args.find(word) != test.args.npos; };
    CompileOptions options{.target = test.args.substr(0, test.args.find(' ')),
                           .allocation = regalloc::Method::Simplest,
                           .optimise = asks("optimised"),
                           .verify_each = true,
                           .line_info = asks("loc")};
    if (asks("colouring")) options.allocation = regalloc::Method::Colouring;
    const Compiled compiled = compile(ir::parse(test.input, test.file), options);
    if (ptx::print(ptx::parse(compiled.ptx, "(emitted)")) != compiled.ptx)
        return "does not print the same when parsed again:\n" + compiled.ptx;
    return asks("lines") ? with_source_lines(compiled) : compiled.ptx;
}

const golden::Registration emit_actions({{"emit", emitted}});

}  // namespace
}  // namespace ikat
