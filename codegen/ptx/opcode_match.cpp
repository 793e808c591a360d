// SPDX-License-Identifier: Apache-2.0
// Reads the rows of the table once and holds instructions against them.
#include <algorithm>
#include <iterator>
#include <map>

#include "codegen/ptx/opcodes.hpp"
#include "codegen/support/diagnostic.hpp"

namespace ikat::nvptx {
namespace {

/// Takes what stands before the separator off the front of text.
std::string_view take(std::string_view& text, char separator) {
    const std::size_t end = std::min(text.find(separator), text.size());
    const std::string_view part = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    return part;
}

bool drop_suffix(std::string_view& text, char suffix) {
    if (!text.ends_with(suffix)) return false;
    text.remove_suffix(1);
    return true;
}

std::string_view named(std::span<const table::Set> sets, std::string_view name) {
    const auto found = std::ranges::find(sets, name, &table::Set::name);
    IKAT_ASSERT(found != sets.end(), "the opcode table has no set called " + std::string(name));
    return found->alternatives;
}

/// "$round|approx?" or "f32|f64:t"
Group read_group(std::string_view text) {
    Group group;
    if (text.size() > 2 && text[text.size() - 2] == ':') {
        group.slot = text.back();
        text.remove_suffix(2);
    }
    group.optional = drop_suffix(text, '?');
    group.rest = text == "*";
    while (!text.empty()) {
        std::string_view word = take(text, '|');
        if (!word.starts_with('$')) {
            group.alternatives.push_back(word);
            continue;
        }
        for (std::string_view set = named(table::sets(), word.substr(1)); !set.empty();)
            group.alternatives.push_back(take(set, '|'));
    }
    return group;
}

void read_groups(std::string_view text, std::vector<Group>& groups) {
    while (!text.empty()) {
        const std::string_view word = take(text, ' ');
        if (word.starts_with('@'))
            read_groups(named(table::group_lists(), word.substr(1)), groups);
        else
            groups.push_back(read_group(word));
    }
}

/// "s:t", "r:b64?", "o:t|q"
OperandRule read_operand(std::string_view text) {
    OperandRule rule;
    rule.optional = drop_suffix(text, '?');
    if (text.size() > 2 && text[text.size() - 2] == '|') {
        rule.second = text.back();
        text.remove_suffix(2);
    }
    rule.letter = text[0];
    if (text.size() > 2) rule.type = text.substr(2);
    return rule;
}

Form read_form(const table::Row& row) {
    Form form{.stem = row.stem, .groups = {}, .operands = {}, .feature = row.feature};
    read_groups(row.modifiers, form.groups);
    for (std::string_view text = row.operands; !text.empty();) form.operands.push_back(read_operand(take(text, ' ')));
    return form;
}

using Forms = std::map<std::string_view, std::vector<Form>>;

const Forms& all_forms() {
    static const Forms forms = [] {
        Forms made;
        for (const table::Row& row : table::rows()) made[row.stem].push_back(read_form(row));
        return made;
    }();
    return forms;
}

std::string_view without_dot(std::string_view modifier) { return modifier.substr(1); }

/// One form held against the modifiers.
struct Attempt {
    const Module& module;
    Match match;
    std::vector<bool> taken;

    Attempt(const Module& m, const Form& form) : module(m), taken(form.groups.size()) { match.form = &form; }

    void run(std::span<const Name> modifiers) {
        for (Name modifier : modifiers) place(modifier);
        const std::vector<Group>& groups = match.form->groups;
        for (std::size_t i = 0; i < groups.size(); ++i) {
            if (taken[i] || groups[i].optional || groups[i].rest) continue;
            if (!match.missing) match.missing = &groups[i];
            ++match.problems;
        }
    }

    void place(Name modifier) {
        const std::vector<Group>& groups = match.form->groups;
        const std::string_view text = without_dot(module.text(modifier));
        bool is_known = false;
        for (std::size_t i = 0; i < groups.size(); ++i) {
            if (groups[i].rest) return;
            if (std::ranges::find(groups[i].alternatives, text) == groups[i].alternatives.end()) continue;
            is_known = true;
            if (taken[i]) continue;
            taken[i] = true;
            note(groups[i], text);
            return;
        }
        ++match.problems;
        if (match.unexpected != no_name) return;
        match.unexpected = modifier;
        match.is_duplicate = is_known;
    }

    void note(const Group& group, std::string_view text) {
        if (group.slot == 't') match.t = find_type(text);
        if (group.slot == 'u') match.u = find_type(text);
        if (group.slot == 'n') match.vector = std::uint32_t(text[1] - '0');
    }
};

std::size_t distance(std::size_t a, std::size_t b) { return a > b ? a - b : b - a; }

/// By how many operands the instruction misses what the form takes.
std::size_t operand_misfit(const Form& form, std::size_t count) {
    if (form.takes_any_operands()) return 0;
    if (count > form.operands.size()) return count - form.operands.size();
    return count < form.fewest_operands() ? distance(form.fewest_operands(), count) : 0;
}

void append(std::vector<Feature>& features, Feature feature) {
    if (feature != Feature::None && std::ranges::find(features, feature) == features.end()) features.push_back(feature);
}

}  // namespace

std::size_t Form::fewest_operands() const {
    return std::size_t(
        std::ranges::count_if(operands, [](const OperandRule& rule) { return !rule.optional && rule.letter != '*'; }));
}

std::span<const Form> forms_of(std::string_view stem) {
    const auto found = all_forms().find(stem);
    return found == all_forms().end() ? std::span<const Form>{} : std::span<const Form>(found->second);
}

Match match(const Module& module, const Instruction& instruction) {
    Match best;
    std::size_t best_misfit = 0;
    for (const Form& form : forms_of(module.text(instruction.opcode))) {
        Attempt attempt(module, form);
        attempt.run(module.modifiers(instruction.modifiers));
        const std::size_t misfit = operand_misfit(form, instruction.operands.count);
        const auto better = [&] {
            return std::pair(attempt.match.problems, misfit) < std::pair(best.problems, best_misfit);
        };
        if (best.form && !better()) continue;
        best = attempt.match;
        best_misfit = misfit;
    }
    return best;
}

std::string syntax(const Form& form) {
    std::string out(form.stem);
    for (const Group& group : form.groups) {
        if (group.rest) {
            out += "...";
            continue;
        }
        out += group.optional ? "{" : group.alternatives.size() > 1 ? "(" : "";
        for (std::string_view separator = "."; std::string_view each : group.alternatives) {
            out += std::string(separator) + std::string(each);
            separator = "|.";
        }
        out += group.optional ? "}" : group.alternatives.size() > 1 ? ")" : "";
    }
    return out;
}

void add_features(const Module& module, const Instruction& instruction, const Match& match,
                  std::vector<Feature>& features) {
    if (match.form) append(features, match.form->feature);
    for (Name modifier : module.modifiers(instruction.modifiers))
        for (const table::ModifierFeature& row : table::features())
            if (row.modifier == without_dot(module.text(modifier)) &&
                (row.stem.empty() || row.stem == module.text(instruction.opcode)))
                append(features, row.feature);
    if (match.vector * match.t.bits > 128) append(features, Feature::Wide256);
}

}  // namespace ikat::nvptx
