// SPDX-License-Identifier: Apache-2.0
#include "codegen/ptx/text/copy.hpp"

namespace ikat::ptx {

std::vector<Name> Copier::words(std::span<const Name> names) const {
    std::vector<Name> made;
    for (const Name name : names) made.push_back(word(name));
    return made;
}

std::vector<Operand> Copier::operands(Span span) const {
    std::vector<Operand> made;
    for (Operand each : from_.operands(span)) {
        each.name = each.kind == Operand::Kind::Symbol ? symbol(each.name) : word(each.name);
        each.suffix = word(each.suffix);
        if (each.children.count) each.children = to_.add_operands(operands(each.children));
        made.push_back(each);
    }
    return made;
}

Variable Copier::variable(const Variable& from) const {
    Variable made = from;
    made.linkage = words(from.linkage);
    made.space = word(from.space), made.attribute = word(from.attribute);
    made.vector = word(from.vector), made.type = word(from.type);
    made.pointer = words(from.pointer);
    for (Variable::Declarator& each : made.declarators) {
        each.name = symbol(each.name);
        if (each.initialiser.count) each.initialiser = to_.add_operands(operands(each.initialiser));
    }
    return made;
}

Instruction Copier::instruction(const Instruction& from) const {
    Instruction made = from;
    made.spelling = word(from.spelling);
    made.modifiers = to_.add_modifiers(words(from_.modifiers(from.modifiers)));
    made.operands = to_.add_operands(operands(from.operands));
    if (from.guard != no_name) made.guard = symbol(from.guard);
    return made;
}

Directive Copier::directive(const Directive& from) const {
    Directive made = from;
    made.name = word(from.name);
    made.operands = to_.add_operands(operands(from.operands));
    return made;
}

}  // namespace ikat::ptx
