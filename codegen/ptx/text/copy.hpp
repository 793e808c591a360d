// SPDX-License-Identifier: Apache-2.0
// Parts of one module copied into another, whose names and operands are its own.
#pragma once
#include <map>
#include <vector>

#include "codegen/ptx/text/module.hpp"

namespace ikat::ptx {

class Copier {
public:
    /// `renamed`: symbols of `from` that have another name in `to`. All three must live as long as this.
    Copier(const Module& from, Module& to, const std::map<Name, Name>* renamed = nullptr)
        : from_(from), to_(to), renamed_(renamed) {}

    /// A word of the language.
    Name word(Name name) const { return name == no_name ? no_name : to_.intern(from_.text(name)); }
    std::vector<Name> words(std::span<const Name> names) const;
    /// The name of a register, a variable, a label or a function.
    Name symbol(Name name) const {
        if (!renamed_ || !renamed_->contains(name)) return word(name);
        return renamed_->at(name);
    }
    std::vector<Operand> operands(Span span) const;
    Variable variable(const Variable& from) const;
    Instruction instruction(const Instruction& from) const;
    Directive directive(const Directive& from) const;

private:
    const Module& from_;
    Module& to_;
    const std::map<Name, Name>* renamed_;
};

}  // namespace ikat::ptx
