// SPDX-License-Identifier: Apache-2.0
// `regalloc [simplest] [spill]`: a problem, and the answer with moves in place. The checker verifies the answer first.
#include <string_view>

#include "codegen/support/diagnostic.hpp"
#include "regalloc/text/text.hpp"
#include "tools/testing/golden.hpp"

namespace ikat::regalloc {
namespace {

Options options_of(std::string_view arguments) {
    const auto has = [&](std::string_view word) { return arguments.find(word) != arguments.npos; };
    return {.method = has("simplest") ? Method::Simplest : Method::Colouring, .spill = has("spill")};
}

std::string solve(const golden::Case& test) {
    const NamedProblem named = parse_problem(test.input, test.file);
    const Allocation answer = allocate(named.problem, options_of(test.args));
    std::string out;
    for (const std::string& violation : check(named.problem, answer)) out += violation + '\n';
    return out + to_string(named.problem, answer, named.classes);
}

/// Pressure before every instruction and terminator, a column per class.
std::string show_pressure(const golden::Case& test) {
    const NamedProblem named = parse_problem(test.input, test.file);
    const auto table = pressure(named.problem);
    std::string out;
    for (std::size_t b = 0; b < table.size(); ++b)
        for (std::size_t place = 0; place < table[b].size(); ++place) {
            out += "block" + std::to_string(b) + ", place " + std::to_string(place) + ':';
            for (std::size_t c = 0; c < table[b][place].size(); ++c)
                out += ' ' + named.classes[c] + ' ' + std::to_string(table[b][place][c]);
            out += '\n';
        }
    return out;
}

const golden::Registration regalloc({{"regalloc", solve}, {"pressure", show_pressure}});

}  // namespace
}  // namespace ikat::regalloc
