// SPDX-License-Identifier: Apache-2.0
// check() compared with ptxas, form by form: each row of the table gives instructions, one for each alternative of its
// modifiers and for each pair of types, which both judge for every target and every version of PTX. What differs and is
// not in forms_known.txt fails, and so does what is there and no longer differs. `BLESS=1` writes the file anew.
#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "codegen/ptx/check/check.hpp"
#include "codegen/ptx/table/forms.hpp"
#include "codegen/ptx/table/fragments.hpp"
#include "tests/catch.hpp"
#include "tests/ptxas.hpp"

using namespace ikat;

namespace {

constexpr ptx::Version versions[] = {{6, 3}, {6, 4}, {6, 5}, {7, 0}, {7, 1}, {7, 2}, {7, 3}, {7, 4},
                                     {7, 5}, {7, 6}, {7, 7}, {7, 8}, {8, 0}, {8, 1}, {8, 2}, {8, 3},
                                     {8, 4}, {8, 5}, {8, 6}, {8, 7}, {8, 8}, {9, 0}};

const std::string registers =
    ".reg .pred %p<3>;\n.reg .b16 %h<9>;\n.reg .b32 %r<9>;\n.reg .b64 %rd<9>;\n.reg .f32 %f<9>;\n.reg .f64 %fd<9>;\n";
constexpr std::size_t first_line = 11;  // of the instructions

std::string kernel(const std::vector<std::string>& lines, ptx::Version version, std::string_view target) {
    std::string text = ".version " + ptx::to_text(version) + "\n.target " + std::string(target) +
                       "\n.address_size 64\n.visible .entry k()\n" + "{ " + registers;
    for (const std::string& line : lines) text += line + '\n';
    return text + "ret;\n}\n";
}

std::string name_of(ptx::Type type, unsigned number) {
    const std::string digit = std::to_string(number);
    if (type.kind == ptx::Type::Kind::Predicate) return "%p" + std::to_string(number % 3);
    if (type.kind == ptx::Type::Kind::Float && type.bits >= 32) return (type.bits == 32 ? "%f" : "%fd") + digit;
    return (type.bits == 16 ? "%h" : type.bits == 64 ? "%rd" : "%r") + digit;
}

std::string braces(unsigned count, ptx::Type type, unsigned number) {
    std::string out;
    for (unsigned i = 0; i < count; ++i) out += (i ? ", " : "") + name_of(type, (number + i) % 9);
    return '{' + out + '}';
}

std::string immediate(const ptx::Form& form) {
    switch (form.opcode) {
        case ptx::find_opcode("cp"): return "16";
        case ptx::find_opcode("applypriority"):
        case ptx::find_opcode("discard"):
        case ptx::find_opcode("fence"):
        case ptx::find_opcode("tensormap"): return "128";
        default: return "1";
    }
}

/// An operand for a rule, or nothing for those that need declarations of their own.
std::optional<std::string> operand(const ptx::Match& match, const ptx::OperandRule& rule, unsigned number) {
    const auto fragment = ptx::fragment(match, rule.type);
    const ptx::Type type = rule.type == "t"      ? match.t
                           : rule.type == "u"    ? match.u
                           : rule.type == "wide" ? ptx::Type{match.t.kind, std::uint16_t(2 * match.t.bits)}
                           : fragment            ? fragment->type
                                                 : ptx::find_type(rule.type);
    const unsigned parts = rule.parts ? rule.parts : fragment ? fragment->registers : match.vector;
    const ptx::Type any = type ? type : ptx::Type{ptx::Type::Kind::Bits, 32};
    std::string first;
    switch (rule.letter) {
        case 'm': return "[%rd1]";
        case 'y': return "[%r1]";
        case 'T':
            return "[%rd1, " + braces(rule.parts ? rule.parts : match.coordinates, ptx::find_type("b32"), 1) + ']';
        case 'g': return "%r1";
        case 'f': return "%rd1";
        case 'v':
        case 'V': return braces(parts, any, number);
        case 'i': return immediate(*match.form);
        case 'p':
        case 'q': return "%p" + std::to_string(number % 3);
        case 'X':
        case 'l':
        case 'L':
        case '*': return {};
        case 'D':
        case 'S':
        case 'P':
        case 'Q': first = match.vector > 1 ? braces(match.vector, any, number) : name_of(any, number); break;
        default: first = name_of(any, number);
    }
    return rule.second ? first + "|%p1" : first;
}

/// The instruction with these modifiers, if this form is the one for it and its operands can be written.
std::optional<std::string> instruction(const ptx::Form& form, const std::vector<ptx::Modifier>& chosen) {
    ptx::Module module;
    std::string text(ptx::info(form.opcode).name);
    std::vector<ptx::Name> names;
    for (const ptx::Modifier each : chosen) {
        std::string name = "." + std::string(ptx::name(each));
        if (const std::size_t at = name.find("nN"); at != name.npos) name.replace(at + 1, 1, "16");
        names.push_back(module.intern(name));
        text += name;
    }
    const ptx::Match match =
        ptx::match(module, {.opcode = form.opcode, .modifiers = module.add_modifiers(names)}, form);
    const char* separator = " ";
    unsigned number = 0;
    for (const ptx::OperandRule& rule : match.rules()) {
        const auto one = operand(match, rule, ++number);
        if (!one) return {};
        if (rule.optional) break;
        text += separator + *one;
        separator = ", ";
    }
    return text + ';';
}

/// Each alternative of each group, with the first of the others and without the optional ones; each pair of types.
void add_instructions(const ptx::Form& form, std::set<std::string>& to) {
    const auto& groups = form.groups;
    const auto add = [&](auto choose) {
        std::vector<ptx::Modifier> chosen;
        for (std::size_t i = 0; i < groups.size(); ++i) {
            if (groups[i].rest) return;
            const ptx::Modifier one = choose(i);
            if (one != ptx::Modifier::Unknown) chosen.push_back(one);
        }
        if (const auto text = instruction(form, chosen)) to.insert(*text);
    };
    const auto usual = [&](std::size_t i) {
        return groups[i].optional ? ptx::Modifier::Unknown : groups[i].alternatives[0];
    };
    add(usual);
    const bool has_pairs = std::ranges::any_of(groups, [](const ptx::Group& group) { return group.slot == 'u'; });
    for (std::size_t i = 0; i < groups.size(); ++i)
        for (const ptx::Modifier each : groups[i].alternatives) {
            add([&](std::size_t j) { return j == i ? each : usual(j); });
            for (std::size_t k = 0; k < groups.size(); ++k) {
                const bool are_types = groups[i].slot == 't' && groups[k].slot == 'u';
                const bool is_extra = has_pairs && groups[k].optional && k != i && groups[i].slot == 't';
                if (!are_types && !is_extra) continue;
                for (const ptx::Modifier other : groups[k].alternatives)
                    add([&](std::size_t j) { return j == i ? each : j == k ? other : usual(j); });
            }
        }
}

std::vector<std::string> instructions() {
    std::set<std::string> out;
    for (std::size_t opcode = 1; opcode < ptx::opcode_count; ++opcode)
        for (const ptx::Form& form : ptx::forms_of(ptx::Opcode(opcode))) add_instructions(form, out);
    return {out.begin(), out.end()};
}

/// Which of the lines check() accepts.
std::vector<bool> accepted_by_check(const std::vector<std::string>& lines, ptx::Version version,
                                    std::string_view target) {
    std::vector<bool> out(lines.size(), true);
    for (const Diagnostic& each : ptx::check(ptx::parse(kernel(lines, version, target), "k.ptx")))
        if (each.severity == Severity::Error && each.where.line >= first_line &&
            each.where.line < first_line + lines.size())
            out[each.where.line - first_line] = false;
    return out;
}

/// The same of ptxas. A run names all lines with errors, unless one is fatal; what is wrong with the others is found
/// when those are gone.
std::vector<bool> accepted_by_ptxas(std::vector<std::string> lines, ptx::Version version, std::string_view target) {
    std::vector<bool> out(lines.size(), true);
    for (;;) {
        const tests::PtxasReport report = tests::assemble(kernel(lines, version, target), target);
        if (report.assembled) return out;
        bool found = false;
        std::istringstream log(report.log);
        for (std::string text; std::getline(log, text);) {
            const std::size_t at = text.find(", line ");
            if (at == text.npos || text.find("<builtin>") != text.npos ||
                (text.find("; error") == text.npos && text.find("; fatal") == text.npos))
                continue;
            const std::size_t line = std::stoul(text.substr(at + 7)) - first_line;
            if (line >= lines.size() || lines[line].empty()) continue;
            out[line] = false;
            lines[line].clear();
            found = true;
        }
        if (!found) return out;  // what is wrong has no line: the program as a whole
    }
}

/// "7.8-8.1,9.0": versions in order, those that follow each other joined.
std::string ranges(const std::vector<ptx::Version>& given) {
    const auto number_of = [](const ptx::Version& version) {
        const auto is_it = [&](const ptx::Version& each) { return !(each < version) && !(version < each); };
        return std::ranges::find_if(versions, is_it) - std::begin(versions);
    };
    std::string out;
    for (std::size_t i = 0; i < given.size(); ++i) {
        std::size_t last = i;
        while (last + 1 < given.size() && number_of(given[last + 1]) == number_of(given[last]) + 1) ++last;
        out += (out.empty() ? "" : ",") + ptx::to_text(given[i]);
        if (last > i) out += '-' + ptx::to_text(given[last]);
        i = last;
    }
    return out;
}

/// By instruction and by who accepts it, the targets and versions where they differ.
std::map<std::string, std::string> differences() {
    const std::vector<std::string> lines = instructions();
    CHECK(lines.size() > 2000);
    std::map<std::string, std::map<std::string, std::vector<ptx::Version>>> found;
    for (const ptx::Target& target : ptx::targets())
        for (const ptx::Version version : versions) {
            if (version < target.version) continue;
            const std::vector<bool> ours = accepted_by_check(lines, version, target.name),
                                    theirs = accepted_by_ptxas(lines, version, target.name);
            for (std::size_t i = 0; i < lines.size(); ++i) {
                if (ours[i] == theirs[i]) continue;
                found[(theirs[i] ? "ptxas: " : "ikat: ") + lines[i]][std::string(target.name)].push_back(version);
            }
        }
    std::map<std::string, std::string> out;
    for (const auto& [what, where] : found)
        for (const auto& [target, at] : where) out[what] += "  " + target + ' ' + ranges(at);
    return out;
}

const std::string known_file = IKAT_SOURCE_DIR "/tests/foreign/forms_known.txt";

}  // namespace

TEST_CASE("check() accepts of each form what ptxas accepts, for each target and version") {
    if (tests::skip_without_ptxas()) return;
    std::map<std::string, std::string> now = differences();
    if (std::getenv("BLESS")) {
        std::ofstream out(known_file);
        out << "# Instructions that only ptxas 13.0 accepts, or only ikat, and for which targets and versions\n"
               "# (forms_test.cpp). Immediates that a form restricts are not the table's matter.\n";
        for (const auto& [what, where] : now) out << what << where << '\n';
        return;
    }
    std::set<std::string> known;
    std::ifstream in(known_file);
    for (std::string line; std::getline(in, line);)
        if (!line.starts_with('#')) known.insert(line);
    std::size_t differs = 0;
    for (const auto& [what, where] : now)
        if (!known.erase(what + where)) {
            UNSCOPED_INFO("differs: " << what << where);
            ++differs;
        }
    for (const std::string& line : known) UNSCOPED_INFO("no longer differs: " << line);
    CHECK(differs + known.size() == 0);
}
