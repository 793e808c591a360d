// SPDX-License-Identifier: Apache-2.0
// The syntax of a form, for messages: "add{.rn|.rz}.f32 d, a, b".
#include "codegen/ptx/table/forms.hpp"

namespace ikat::ptx {
namespace {

std::string modifiers(const Form& form) {
    std::string out;
    for (const Group& group : form.groups) {
        if (group.rest) {
            out += "...";
            continue;
        }
        out += group.optional ? "{" : group.alternatives.size() > 1 ? "(" : "";
        for (std::string_view separator = "."; const Modifier each : group.alternatives) {
            out += std::string(separator) + std::string(name(each));
            separator = "|.";
        }
        out += group.optional ? "}" : group.alternatives.size() > 1 ? ")" : "";
    }
    return out;
}

/// Sources are called a, b, c in order, destinations d and p.
std::string name_of(char letter, char& next) {
    switch (letter) {
        case 'd':
        case 'o':
        case 'w':
        case 'D':
        case 'M': return "d";
        case 'q': return "p";
        case 'V': return "{d, ...}";
        case 'v': return std::string("{") + next++ + ", ...}";
        case 'm':
        case 'y': return std::string("[") + next++ + "]";
        case 'T':
        case 'X': return std::string("[") + next++ + ", {x, ...}]";
        case 'i': return "number";
        case 'p': return "predicate";
        case 'l':
        case 'L': return "label";
        default: return std::string(1, next++);
    }
}

}  // namespace

std::string syntax(std::span<const OperandRule> rules) {
    std::string out;
    char next = 'a';
    for (std::string_view separator = " "; const OperandRule& rule : rules) {
        if (rule.letter == '*') return out + std::string(separator) + "...";
        const std::string text = std::string(separator) + name_of(rule.letter, next) + (rule.second ? "{|p}" : "");
        out += rule.optional || rule.modifier != Modifier::Unknown ? "{" + text + "}" : text;
        separator = ", ";
    }
    return out;
}

std::string syntax(const Form& form) {
    return std::string(info(form.opcode).name) + modifiers(form) + syntax(form.operands);
}

}  // namespace ikat::ptx
