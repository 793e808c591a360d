// SPDX-License-Identifier: Apache-2.0
// Matches instructions with the forms of their opcode.
#include <algorithm>

#include "codegen/ptx/table/forms.hpp"
#include "codegen/ptx/table/forms/modifiers.hpp"

namespace ikat::ptx {
namespace {

/// Removes and returns the number at the front of text.
std::uint32_t take_number(std::string_view& text) {
    std::uint32_t number = 0;
    for (; !text.empty() && text[0] >= '0' && text[0] <= '9' && number < 1000; text.remove_prefix(1))
        number = number * 10 + std::uint32_t(text[0] - '0');
    return number;
}

/// "m64nNk16" for ".m64n24k16"; Unknown for other words.
Modifier shape_of_any_width(std::string_view text) {
    constexpr std::string_view begin = ".m64n";
    if (!text.starts_with(begin)) return Modifier::Unknown;
    text.remove_prefix(begin.size());
    const std::uint32_t number = take_number(text);
    if (number < 8 || number > 256 || number % 8) return Modifier::Unknown;
    return find_modifier("m64nN" + std::string(text));
}

/// The factor of a group :n on the number of registers.
std::uint32_t registers_of(std::string_view text) {
    if (text == "16x128b" || text == "m16n16") return 2;
    if (text == "16x256b") return 4;
    if (text[0] != 'v' && text[0] != 'x') return 1;
    text.remove_prefix(1);
    return take_number(text);
}

/// A texture has one, two or four coordinate registers; the fourth may be unused.
std::uint32_t coordinates_of(std::string_view text) {
    if (text == "a1d") return 2;
    if (text.size() == 2) return std::uint32_t(text[0] - '0');
    return 4;
}

/// "m16n8k16"
MatrixShape read_shape(std::string_view text) {
    std::uint32_t sizes[3] = {};
    for (std::uint32_t& size : sizes) {
        if (!text.empty()) text.remove_prefix(1);
        size = take_number(text);
    }
    return {sizes[0], sizes[1], sizes[2]};
}

std::uint32_t element_bits(std::string_view type) {
    if (type == "f64") return 64;
    if (type == "f32" || type == "s32" || type == "tf32") return 32;
    if (type == "f16" || type == "bf16") return 16;
    if (type == "u4" || type == "s4") return 4;
    return type == "b1" ? 1 : 8;
}

/// A modifier of an instruction.
struct Spelled {
    Name spelling = no_name;
    Modifier modifier = Modifier::Unknown;
    Modifier of_any_width = Modifier::Unknown;  // the same shape in forms that take any N

    bool is_one_of(std::span<const Modifier> alternatives) const {
        return std::ranges::any_of(alternatives,
                                   [this](Modifier each) { return each == modifier || each == of_any_width; });
    }
};

std::vector<Spelled> spelled(const Module& module, const Instruction& instruction) {
    std::vector<Spelled> out;
    for (const Name spelling : module.modifiers(instruction.modifiers)) {
        const std::string_view text = module.text(spelling);
        out.push_back({spelling, spelled_modifier(text), shape_of_any_width(text)});
    }
    return out;
}

/// One form matched with the modifiers.
struct Attempt {
    const Module& module;
    Match match;
    std::vector<bool> taken;

    Attempt(const Module& m, const Form& form) : module(m), taken(form.groups.size()) { match.form = &form; }

    /// Stops where it has more problems than that: then it is not the best.
    void run(std::span<const Spelled> modifiers, std::size_t max_problems) {
        for (const Spelled& modifier : modifiers) {
            place(modifier);
            if (match.problems > max_problems) return;
        }
        const std::span<const Group> groups = match.form->groups;
        for (std::size_t i = 0; i < groups.size(); ++i) {
            if (taken[i] || groups[i].optional || groups[i].rest) continue;
            if (!match.missing) match.missing = &groups[i];
            ++match.problems;
        }
        const std::span<const OperandRule> rules = match.form->operands;
        for (std::size_t i = 0; i < rules.size(); ++i)
            if (const Modifier only_with = rules[i].modifier;
                only_with != Modifier::Unknown &&
                std::ranges::find(modifiers, only_with, &Spelled::modifier) == modifiers.end())
                match.left_out |= 1u << i;
    }

    void place(const Spelled& modifier) {
        const std::span<const Group> groups = match.form->groups;
        bool is_known = false;
        for (std::size_t i = 0; i < groups.size(); ++i) {
            if (groups[i].rest) return;
            if (!modifier.is_one_of(groups[i].alternatives)) continue;
            is_known = true;
            if (taken[i] || is_passed(i)) continue;
            taken[i] = true;
            if (groups[i].slot) note(groups[i], module.text(modifier.spelling).substr(1));
            return;
        }
        ++match.problems;
        if (match.unexpected != no_name) return;
        match.unexpected = modifier.spelling;
        match.is_duplicate = is_known;
    }

    /// Whether the group is one of two types whose second is taken: cvt.f32.f16 is not cvt.f16.f32.
    bool is_passed(std::size_t i) const {
        const auto is_type = [](const Group& group) { return group.slot == 't' || group.slot == 'u'; };
        const std::span<const Group> groups = match.form->groups;
        if (!is_type(groups[i])) return false;
        for (std::size_t j = i + 1; j < groups.size(); ++j)
            if (taken[j] && is_type(groups[j])) return true;
        return false;
    }

    void note(const Group& group, std::string_view text) {
        switch (group.slot) {
            case 't': match.t = find_type(text); break;
            case 'u': match.u = find_type(text); break;
            case 'n': match.vector *= registers_of(text); break;
            case 'g': match.coordinates = coordinates_of(text); break;
            case 's': match.shape = read_shape(text); break;
            case 'd': match.elements[0] = {text, element_bits(text)}; break;
            case 'a': match.elements[1] = {text, element_bits(text)}; break;
            case 'b': match.elements[2] = {text, element_bits(text)}; break;
            case 'c': match.elements[3] = {text, element_bits(text)}; break;
            case 'A': match.elements[1] = {text, 4}; break;
            case 'B': match.elements[2] = {text, 4}; break;
            default: break;
        }
    }
};

/// Whether an operand can match the rule, judged only by its brackets.
bool has_form(const Operand& operand, const OperandRule& rule) {
    using Kind = Operand::Kind;
    if (operand.kind == Kind::Pair) return rule.second != 0;
    switch (rule.letter) {
        case 'm':
        case 'y':
        case 'T':
        case 'X': return operand.kind == Kind::Address;
        case 'g': return operand.kind == Kind::Address || operand.kind == Kind::Symbol;
        case 'f':
        case 'v':
        case 'V': return operand.kind == Kind::Vector || operand.kind == Kind::Symbol;
        case 'i': return operand.kind == Kind::Integer;
        case 'p': return operand.kind == Kind::Symbol || operand.kind == Kind::Integer;
        case 'D':
        case 'S':
        case 'M':
        case 'P':
        case 'Q':
        case 'A': return operand.kind != Kind::Address;
        default: return operand.kind != Kind::Address && operand.kind != Kind::Vector;
    }
}

/// How far the operands are from the form: first by their number, then by their brackets.
std::pair<std::size_t, std::size_t> misfit(const Match& match, std::span<const Operand> given) {
    const std::vector<OperandRule> rules = match.rules();
    if (takes_any_operands(rules)) return {};
    std::size_t forms = 0;
    for (std::size_t i = 0; i < std::min(given.size(), rules.size()); ++i) forms += !has_form(given[i], rules[i]);
    if (given.size() > rules.size()) return {given.size() - rules.size(), forms};
    const std::size_t fewest = fewest_operands(rules);
    return {given.size() < fewest ? fewest - given.size() : 0, forms};
}

void append(std::vector<Feature>& features, Feature feature) {
    if (feature != Feature::None && std::ranges::find(features, feature) == features.end()) features.push_back(feature);
}

}  // namespace

Modifier spelled_modifier(std::string_view spelling) {
    const Modifier modifier = spelling.starts_with('.') ? find_modifier(spelling.substr(1)) : Modifier::Unknown;
    const bool is_pattern = modifier >= Modifier::M64nNk16 && modifier <= Modifier::M64nNk8;
    return is_pattern ? Modifier::Unknown : modifier;
}

std::vector<OperandRule> Match::rules() const {
    std::vector<OperandRule> out;
    out.reserve(form->operands.size());
    for (std::size_t i = 0; i < form->operands.size(); ++i)
        if (!(left_out >> i & 1)) {
            out.push_back(form->operands[i]);
            out.back().modifier = {};
        }
    return out;
}

bool takes_any_operands(std::span<const OperandRule> rules) { return !rules.empty() && rules.back().letter == '*'; }

std::size_t fewest_operands(std::span<const OperandRule> rules) {
    return std::size_t(
        std::ranges::count_if(rules, [](const OperandRule& rule) { return !rule.optional && rule.letter != '*'; }));
}

Match match(const Module& module, const Instruction& instruction, const Form& form) {
    const std::vector<Spelled> modifiers = spelled(module, instruction);
    Attempt attempt(module, form);
    attempt.run(modifiers, modifiers.size());
    return attempt.match;
}

Match match(const Module& module, const Instruction& instruction) {
    const std::vector<Spelled> modifiers = spelled(module, instruction);
    Match best;
    std::pair<std::size_t, std::size_t> best_misfit;
    for (const Form& form : forms_of(instruction.opcode)) {
        Attempt attempt(module, form);
        attempt.run(modifiers, best.form ? best.problems : modifiers.size());
        if (best.form && attempt.match.problems > best.problems) continue;
        const auto how_far = misfit(attempt.match, module.operands(instruction.operands));
        if (best.form && attempt.match.problems == best.problems && how_far >= best_misfit) continue;
        best = attempt.match;
        best_misfit = how_far;
    }
    return best;
}

void add_features(const Module& module, const Instruction& instruction, const Match& match,
                  std::vector<Feature>& features) {
    if (match.form) append(features, match.form->feature);
    for (const Name spelling : module.modifiers(instruction.modifiers)) {
        const Modifier modifier = spelled_modifier(module.text(spelling));
        for (const table::ModifierFeature& row : table::feature_of_modifier)
            if (row.word.modifier == modifier &&
                (row.stem.opcode == Opcode::Unknown || row.stem.opcode == instruction.opcode))
                append(features, row.feature);
    }
    const bool plain = instruction.opcode == Opcode::Ld || instruction.opcode == Opcode::St;
    if (plain && match.vector * match.t.bits > 128) append(features, Feature::Wide256);
}

}  // namespace ikat::ptx
