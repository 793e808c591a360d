// SPDX-License-Identifier: Apache-2.0
#include "codegen/pipeline/work.hpp"

#include <algorithm>
#include <set>

#include "codegen/ir/text/print.hpp"
#include "codegen/lower/lower.hpp"
#include "codegen/nvptx/emit/emit.hpp"

namespace ikat::pipeline {
namespace {

/// The texts of the functions, one after another.
std::string each(const Work& work, std::string (*text)(const ir::Function&, const nvptx::Registers&)) {
    std::string out;
    for (std::size_t i = 0; i < work.registers.size(); ++i) {
        const std::string part = text(work.module.functions[i], work.registers[i]);
        out += (out.empty() || part.empty() ? "" : "\n") + part;
    }
    return out;
}

/// Converts source locations by instruction to source locations by PTX line.
std::vector<Location> by_line(const std::vector<Location>& places, const std::vector<std::uint32_t>& lines) {
    std::vector<Location> out(lines.empty() ? 1 : lines.back() + 1);
    for (std::size_t i = 0; i < lines.size(); ++i) out[lines[i]] = places[i];
    return out;
}

/// ... and of the kernel's arrays, at the lines of their declarations.
void add_declarations(std::string_view ptx, const std::vector<ir::Symbol>& symbols, std::vector<Location>& lines) {
    std::size_t line = 1;
    auto left = std::ranges::count_if(
        symbols, [](const ir::Symbol& it) { return it.space == ir::Space::Shared || it.space == ir::Space::Local; });
    for (std::size_t end; left > 0 && line < lines.size() && (end = ptx.find('\n')) != ptx.npos;
         ++line, ptx.remove_prefix(end + 1)) {
        std::string_view text = ptx.substr(0, end);
        text = text.substr(0, text.find('['));
        if (!text.contains(".shared ") && !text.contains(".local ")) continue;
        const auto found = std::ranges::find(symbols, text.substr(text.rfind(' ') + 1), &ir::Symbol::name);
        if (found != symbols.end()) lines[line] = found->where, --left;
    }
}

}  // namespace

bool check_tree(Work& work) {
    if (work.kernel->checked) return true;
    if (auto findings = ast::check(*work.kernel); !findings.empty()) throw Error(std::move(findings));
    return true;
}

bool lower_tree(Work& work) {
    work.module = lower::lower_module(*work.kernel);
    return true;
}

bool keep_called(Work& work) {
    ir::Module& module = work.module;
    if (module.functions.size() == 1) return false;
    std::set<std::string, std::less<>> called{module.functions.back().name};
    for (auto fn = module.functions.rbegin(); fn != module.functions.rend(); ++fn)
        if (called.contains(fn->name))
            for (ir::Block block : fn->blocks())
                for (ir::Inst inst : (*fn)[block].instructions)
                    if (info((*fn)[inst].op).attribute == ir::Attribute::Callee)
                        called.insert(fn->texts[(*fn)[inst].attribute]);
    return std::erase_if(module.functions, [&](const ir::Function& fn) { return !called.contains(fn.name); }) > 0;
}

bool allocate(Work& work) {
    for (const ir::Function& fn : work.module.functions)
        work.registers.push_back(nvptx::allocate(fn, {.method = work.allocation}));
    return true;
}

bool emit(Work& work) {
    const nvptx::Emitted emitted = nvptx::emit(work.module, work.registers, *work.target, work.line_info);
    std::vector<std::vector<std::uint32_t>> lines;
    work.ptx = ptx::print(emitted.module, lines);
    work.source_lines = by_line(emitted.places, lines.back());
    add_declarations(work.ptx, work.module.functions.back().symbols, work.source_lines);
    return true;
}

std::string tree_text(const Work& work) { return ast::print(*work.kernel); }
std::string functions_text(const Work& work) { return ir::print(work.module.functions); }
std::string registers_text(const Work& work) { return each(work, nvptx::print); }
std::string ptx_text(const Work& work) { return work.ptx; }
std::string registers_complaint(const Work& work) { return each(work, nvptx::complaint); }

}  // namespace ikat::pipeline
