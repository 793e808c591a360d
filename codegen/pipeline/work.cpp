// SPDX-License-Identifier: Apache-2.0
#include "codegen/pipeline/work.hpp"

#include <algorithm>
#include <set>

#include "codegen/analysis/memory.hpp"
#include "codegen/ir/text/print.hpp"
#include "codegen/lower/lower.hpp"

namespace ikat::pipeline {
namespace {

/// The texts of the functions, one after another.
std::string each(const Work& work, std::string (*text)(const ir::Function&, const Registers&)) {
    std::string out;
    for (std::size_t i = 0; i < work.registers.size(); ++i) {
        const std::string part = text(work.module.functions[i], work.registers[i]);
        out += (out.empty() || part.empty() ? "" : "\n") + part;
    }
    return out;
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

bool settle_grids(Work& work) {
    const bool overlap = work.target->grids_overlap;
    const bool reads_anew = overlap && std::ranges::any_of(work.module.functions, analysis::waits_for_grids);
    bool changed = false;
    for (ir::Function& fn : work.module.functions)
        for (ir::Block block : fn.blocks()) {
            const auto goes = [&](ir::Inst inst) {
                return fn[inst].op == ir::Op::GridWait || fn[inst].op == ir::Op::LaunchNext;
            };
            if (!overlap) changed |= std::erase_if(fn[block].instructions, goes) != 0;
            for (ir::Inst inst : fn[block].instructions) {
                ir::CacheOperator& cache = fn[inst].memory.cache;
                if (!reads_anew || cache != ir::CacheOperator::Nc) continue;
                cache = ir::CacheOperator::None, changed = true;
            }
        }
    return changed;
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
        work.registers.push_back(work.target->allocate(fn, {.method = work.allocation}));
    return true;
}

bool emit(Work& work) {
    work.text = work.target->emit(work.module, work.registers, *work.target, work.line_info);
    return true;
}

std::string tree_text(const Work& work) { return ast::print(*work.kernel); }
std::string functions_text(const Work& work) { return ir::print(work.module.functions); }
std::string registers_text(const Work& work) { return each(work, work.target->print); }
std::string target_text(const Work& work) { return work.text.text; }
std::string registers_complaint(const Work& work) { return each(work, work.target->complaint); }

}  // namespace ikat::pipeline
