// SPDX-License-Identifier: Apache-2.0
#include "codegen/ptx/text/source_lines.hpp"

#include <map>

namespace ikat::ptx {
namespace {

std::map<std::uint64_t, const char*> files_of(const Module& module) {
    std::map<std::uint64_t, const char*> out;
    for (const Directive& directive : module.directives) {
        const auto operands = module.operands(directive.operands);
        if (module.text(directive.name) == ".file" && operands.size() >= 2)
            out[operands[0].value] = intern(module.text(operands[1].name));
    }
    return out;
}

}  // namespace

std::vector<Location> source_lines(const Module& module) {
    const auto files = files_of(module);
    std::vector<Location> out;
    if (files.empty()) return out;
    const auto location_of = [&](const Directive& directive) -> Location {
        const auto operands = module.operands(directive.operands);
        const auto file = operands.size() < 3 ? files.end() : files.find(operands[0].value);
        if (file == files.end()) return {};
        return {file->second, std::uint32_t(operands[1].value), std::uint32_t(operands[2].value)};
    };
    for (const Function& function : module.functions) {
        Location current;
        for (const Statement& statement : function.body) {
            if (statement.kind == Statement::Kind::Directive) {
                const Directive& directive = function.body_directives[statement.index];
                if (module.text(directive.name) == ".loc") current = location_of(directive);
            }
            if (statement.kind != Statement::Kind::Instruction || !current.known()) continue;
            const std::uint32_t line = function.instructions[statement.index].where.line;
            if (out.size() <= line) out.resize(line + 1);
            out[line] = current;
        }
    }
    return out;
}

}  // namespace ikat::ptx
