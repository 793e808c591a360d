// SPDX-License-Identifier: Apache-2.0
// `stdlib NAME TARGET`: the PTX of a kernel of the standard library, as users get it except with one register per
// value, so that an unrelated change does not recolour the file. A further word `colouring` gives the default
// allocation; `outline` gives only the mnemonics, for kernels that are long.
#include <cctype>
#include <sstream>
#include <utility>

#include "codegen/pipeline/compile.hpp"
#include "stdlib/catalogue/registry.hpp"
#include "tools/testing/golden.hpp"

namespace ikat {
namespace {

const ast::KernelTree& kernel_of(const std::string& name) {
    const stdlib::Entry* entry = stdlib::find(name);
    if (!entry) throw Error("no kernel called " + name, "stdlib/catalogue/registry.cpp lists them");
    return entry->handle().ast();
}

/// The mnemonic of a line; nothing where it has no instruction. A branch keeps its target.
std::string mnemonic_of(const std::string& line) {
    std::istringstream words(line);
    std::string mnemonic, target;
    words >> mnemonic;
    const bool is_guarded = mnemonic.starts_with('@');
    if (is_guarded) words >> mnemonic;
    if (!line.starts_with("    ") || mnemonic.empty() || !std::isalpha(mnemonic[0])) return {};
    if (mnemonic.starts_with("bra")) words >> target;
    std::string out = (is_guarded ? "@" : "") + mnemonic + (target.empty() ? "" : ' ' + target);
    if (out.ends_with(';')) out.pop_back();
    return out;
}

std::string outline(const std::string& ptx) {
    constexpr std::size_t widest = 100;
    std::istringstream lines(ptx);
    std::string out, row, last;
    std::size_t times = 0;
    const auto end_row = [&] {
        if (!row.empty()) out += "    " + std::exchange(row, {}) + '\n';
    };
    const auto end_run = [&] {
        if (last.empty()) return;
        const std::string run = last + (times > 1 ? " x " + std::to_string(times) : "");
        if (row.size() + run.size() > widest) end_row();
        row += (row.empty() ? "" : ", ") + run;
        last.clear(), times = 0;
    };
    for (std::string line; std::getline(lines, line);) {
        const std::string mnemonic = mnemonic_of(line);
        if (mnemonic != last) end_run();
        last = mnemonic, ++times;
        if (mnemonic.empty()) end_row(), out += line + '\n', times = 0;
    }
    return end_run(), end_row(), out;
}

std::string ptx_of(const golden::Case& test) {
    std::istringstream words(test.args);
    std::string name, form;
    CompileOptions options{.verify_each = true};
    words >> name >> options.target >> form;
    options.allocation = form == "colouring" ? regalloc::Method::Colouring : regalloc::Method::Simplest;
    const std::string ptx = compile(kernel_of(name), options).ptx;
    return form == "outline" ? outline(ptx) : ptx;
}

const golden::Registration stdlib_actions({{"stdlib", ptx_of}});

}  // namespace
}  // namespace ikat
