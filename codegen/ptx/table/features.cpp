// SPDX-License-Identifier: Apache-2.0
// The features that a module needs, found from its instructions, registers and directives.
#include <algorithm>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "codegen/ptx/table/forms.hpp"
#include "codegen/ptx/table/special_registers.hpp"
#include "codegen/ptx/table/target.hpp"

namespace ikat::ptx {
namespace {

constexpr std::string_view cluster_directives[] = {".reqnctapercluster", ".explicitcluster", ".maxclusterrank",
                                                   ".blocksareclusters"};

/// Caches the features of instructions by spelling, with operands distinguished by their brackets, as in match(). They
/// are the same in all modules, and kernels share most of their spellings.
class Spellings {
public:
    const std::vector<Feature>& needs(const Module& module, const Instruction& instruction) {
        key_.assign(1, char(instruction.opcode));
        for (Name modifier : module.modifiers(instruction.modifiers)) key_ += module.text(modifier);
        for (const Operand& operand : module.operands(instruction.operands)) key_ += char(1 + int(operand.kind));
        const auto found = known_.find(key_);
        if (found != known_.end()) return found->second;
        if (known_.size() >= max_known) known_.clear();  // in case of modules full of misspelt instructions
        std::vector<Feature>& features = known_[key_];
        add_features(module, instruction, match(module, instruction), features);
        return features;
    }

private:
    static constexpr std::size_t max_known = 4096;
    std::unordered_map<std::string, std::vector<Feature>> known_;
    std::string key_;
};

/// Most instructions and names repeat, so each spelling and each name is looked up once. Instructions of one spelling
/// from the emitter share their modifiers in the module's pool.
class Search {
public:
    explicit Search(const Module& module) : module_(module) {}

    void add(const Function& function) {
        for (const Directive& directive : function.directives)
            if (std::ranges::find(cluster_directives, module_.text(directive.name)) != std::end(cluster_directives))
                features.push_back(Feature::Clusters);
        static thread_local Spellings spellings;
        for (const Instruction& instruction : function.instructions) {
            if (is_new(instruction)) add(spellings.needs(module_, instruction));
            add_registers(instruction.operands);
        }
    }

    std::vector<Feature> features;

private:
    void add(const std::vector<Feature>& more) { features.insert(features.end(), more.begin(), more.end()); }
    bool is_new(const Instruction& instruction) {
        const std::uint64_t modifiers = std::uint64_t{instruction.modifiers.first} << 8 | instruction.modifiers.count;
        return instructions_
            .insert(std::uint64_t(instruction.opcode) << 48 ^ modifiers << 8 ^ instruction.operands.count)
            .second;
    }
    void add_registers(Span operands) {
        for (const Operand& operand : module_.operands(operands)) {
            if (operand.kind == Operand::Kind::Symbol && is_new(operand.name))
                if (const SpecialRegister* special = find_special_register(module_.text(operand.name)))
                    features.push_back(special->feature);
            if (operand.children.count > 0) add_registers(operand.children);
        }
    }
    bool is_new(Name name) {
        if (index(name) >= names_.size()) names_.resize(index(name) + 1);
        return !std::exchange(names_[index(name)], true);
    }

    const Module& module_;
    std::unordered_set<std::uint64_t> instructions_;
    std::vector<char> names_;
};

}  // namespace

std::vector<Feature> features_of(const Module& module) {
    Search search(module);
    for (const Function& function : module.functions) search.add(function);
    std::vector<Feature> features = std::move(search.features);
    std::ranges::sort(features);
    features.erase(std::ranges::unique(features).begin(), features.end());
    std::erase(features, Feature::None);
    return features;
}

}  // namespace ikat::ptx
