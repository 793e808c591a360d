// SPDX-License-Identifier: Apache-2.0
// What a module needs of its target, found in its instructions, registers and directives.
#include <algorithm>

#include "codegen/ptx/opcodes.hpp"
#include "codegen/ptx/special_registers.hpp"
#include "codegen/ptx/target.hpp"

namespace ikat::ptx {
namespace {

constexpr std::string_view cluster_directives[] = {".reqnctapercluster", ".explicitcluster", ".maxclusterrank",
                                                   ".blocksareclusters"};

void add_registers(const Module& module, Span operands, std::vector<Feature>& features) {
    for (const Operand& operand : module.operands(operands)) {
        if (operand.kind == Operand::Kind::Symbol)
            if (const SpecialRegister* special = find_special_register(module.text(operand.name)))
                features.push_back(special->feature);
        add_registers(module, operand.children, features);
    }
}

void add_function(const Module& module, const Function& function, std::vector<Feature>& features) {
    for (const Directive& directive : function.directives)
        if (std::ranges::find(cluster_directives, module.text(directive.name)) != std::end(cluster_directives))
            features.push_back(Feature::Clusters);
    for (const Instruction& instruction : function.instructions) {
        add_features(module, instruction, match(module, instruction), features);
        add_registers(module, instruction.operands, features);
    }
}

}  // namespace

std::vector<Feature> features_of(const Module& module) {
    std::vector<Feature> features;
    for (const Function& function : module.functions) add_function(module, function, features);
    std::ranges::sort(features);
    features.erase(std::ranges::unique(features).begin(), features.end());
    std::erase(features, Feature::None);
    return features;
}

}  // namespace ikat::ptx
