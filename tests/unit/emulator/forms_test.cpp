// SPDX-License-Identifier: Apache-2.0
// The table of forms compared with the emulator: each form, with some choices of modifiers and registers as operands,
// is decoded, or is listed here as not run.
#include <algorithm>
#include <set>
#include <utility>

#include "codegen/ptx/check/check.hpp"
#include "codegen/ptx/table/forms.hpp"
#include "codegen/ptx/table/fragments.hpp"
#include "tests/unit/emulator/machine.hpp"

using namespace ikat;
using ptx::Form;
using ptx::Group;
using ptx::OperandRule;

namespace {

constexpr std::size_t max_choices = 80;  // per form

/// Opcodes and forms that the emulator does not support: the text before "..." begins the instruction.
constexpr std::string_view not_run[] = {"clusterlaunchcontrol.",
                                        "cp.async.bulk",
                                        "cp.async.mbarrier",
                                        "cp.reduce",
                                        "ldmatrix.sync.aligned.m16n16",
                                        "ldmatrix.sync.aligned.m8n16",
                                        "mbarrier.",
                                        "mma.sp",
                                        "mma.sync.aligned.row.col.m16n8k32.kind::",
                                        "mma.sync.aligned.row.col.m16n8k64.kind::",
                                        "multimem.",
                                        "stmatrix.sync.aligned.m16n8",
                                        "suld.",
                                        "suq.",
                                        "sured.",
                                        "sust.",
                                        "tcgen05.",
                                        "tensormap.",
                                        "tex.",
                                        "tld4.",
                                        "txq.",
                                        "wgmma.mma_async.sp",
                                        "st.async",
                                        "st.bulk",
                                        "red.async",
                                        "cvt.rs.",
                                        "fma.rn.oob"};

/// Choice number k of a modifier for each group; empty after the last.
std::vector<std::string> choice(const Form& form, std::uint64_t k) {
    std::vector<std::string> modifiers;
    for (const Group& group : form.groups) {
        const std::uint64_t count = group.alternatives.size() + (group.optional ? 1 : 0);
        const std::uint64_t number = k % count;
        k /= count;
        if (number < group.alternatives.size()) modifiers.emplace_back(ptx::name(group.alternatives[number]));
    }
    return modifiers;
}

std::uint64_t choices(const Form& form) {
    std::uint64_t count = 1;
    for (const Group& group : form.groups) count *= group.alternatives.size() + (group.optional ? 1 : 0);
    return count;
}

class Operands {
public:
    Operands(const ptx::Match& match, bool short_addresses) : match_(match), short_(short_addresses) {}

    std::string operator()(const OperandRule& rule) {
        const std::string first = operand(rule);
        return rule.second ? first + "|" + reg(ptx::find_type("pred")) : first;
    }

private:
    std::string operand(const OperandRule& rule) {
        const ptx::Type type = type_of(rule);
        switch (rule.letter) {
            case 'm': {
                const bool second = std::exchange(has_address_, true);  // of a copy: in global memory
                return short_ && !(second && is_copy()) ? "[%r8]" : "[%d8]";
            }
            case 'l': return "L";
            case 'L': return "targets";
            case 'i': return is_copy() ? "16" : is_number_of_registers() ? "32" : "3";
            case 'p':
            case 'q': return reg(ptx::find_type("pred"));
            case 'v':
            case 'V':
                if (const auto matrix = ptx::fragment(match_, rule.type))
                    return vector(matrix->type, matrix->registers);
                return vector(type, rule.parts ? rule.parts : match_.vector);
            case 'D':
            case 'S': return match_.vector > 1 ? vector(type, match_.vector) : reg(type);
            default: return reg(type);
        }
    }

    ptx::Type type_of(const OperandRule& rule) const {
        if (rule.type == "t") return match_.t;
        if (rule.type == "u") return match_.u;
        if (rule.type == "wide") return {match_.t.kind, std::uint16_t(2 * match_.t.bits)};
        const ptx::Type type = ptx::find_type(rule.type);
        return type ? type : ptx::find_type("b32");
    }

    std::string vector(ptx::Type type, std::uint32_t count) {
        std::string out = "{" + reg(type);
        for (std::uint32_t i = 1; i < count; ++i) out += ", " + reg(type);
        return out + "}";
    }

    /// The next register that holds the type.
    std::string reg(ptx::Type type) {
        next_ = next_ % 8 + 1;
        const char* const name = type.kind == ptx::Type::Kind::Predicate ? "%p"
                                 : type.bits <= 8                        ? "%b"
                                 : type.bits <= 16                       ? "%h"
                                 : type.bits <= 32                       ? "%r"
                                 : type.bits <= 64                       ? "%d"
                                                                         : "%q";
        return name + std::to_string(next_);
    }

    bool is_copy() const { return match_.form->opcode == ptx::Opcode::Cp; }
    bool is_number_of_registers() const { return match_.form->opcode == ptx::Opcode::Setmaxnreg; }

    const ptx::Match& match_;
    bool short_, has_address_ = false;
    int next_ = 0;
};

/// The instruction; "" if the modifiers cannot be combined.
std::string instruction(const Form& form, const std::vector<std::string>& modifiers) {
    ptx::Module module;
    std::vector<ptx::Name> names;
    std::string text(ptx::info(form.opcode).name);
    bool short_addresses = false;
    for (const std::string& each : modifiers) {
        text += "." + each;
        names.push_back(module.intern("." + each));
        short_addresses |= each.starts_with("shared");
    }
    ptx::Instruction bare{.opcode = form.opcode, .modifiers = module.add_modifiers(names)};
    ptx::Match match = ptx::match(module, bare);
    const bool in_call = text.find(".param") != text.npos;  // which names its parameters
    if (match.problems || in_call) return "";
    match.form = &form;
    Operands operand(match, short_addresses);
    const char* separator = " ";
    for (const OperandRule& rule : form.operands) {
        const bool absent = rule.modifier != ptx::Modifier::Unknown &&
                            std::ranges::find(modifiers, ptx::name(rule.modifier)) == modifiers.end();
        if (absent || rule.optional) continue;
        text += separator + operand(rule);
        separator = ", ";
    }
    return text + ";";
}

/// The instruction with a branch around it, so that it is decoded but not executed.
std::string skipped(const std::string& instruction) {
    return ".version 9.0\n.target sm_100a\n.address_size 64\n.visible .entry k(.param .u32 n) .maxnreg 32\n{\n"
           ".reg .pred %p<9>; .reg .b8 %b<9>; .reg .b16 %h<9>; .reg .b32 %r<9>; .reg .b64 %d<9>; .reg .b128 %q<9>;\n"
           "targets: .branchtargets L;\nbra L;\n@%p1 bra M;\n" +
           instruction + "\nM:\nL:\nret;\n}\n";
}

bool is_accepted(const std::string& text) {
    return std::ranges::none_of(ptx::check(ptx::parse(text, "k.ptx"), {.unknown_opcodes = Severity::Error}),
                                [](const Diagnostic& each) { return each.severity == Severity::Error; });
}

}  // namespace

TEST_CASE("every form of the table is run, or is known not to be") {
    std::set<std::string_view> used;
    std::size_t decoded = 0;
    for (std::size_t i = 1; i < ptx::opcode_count; ++i) {
        if (ptx::Opcode(i) == ptx::Opcode::Call) continue;  // its operands are those of a function
        if (ptx::Opcode(i) == ptx::Opcode::Wmma) continue;  // the table does not know its registers
        for (const Form& form : ptx::forms_of(ptx::Opcode(i))) {
            const std::uint64_t all = choices(form), step = std::max<std::uint64_t>(1, all / max_choices) | 1;
            for (std::uint64_t k = 0; k < all; k += step) {
                const std::string text = instruction(form, choice(form, k));
                if (text.empty()) continue;
                INFO(text);
                const auto known = std::ranges::find_if(not_run, [&](auto name) { return text.starts_with(name); });
                if (known != std::end(not_run)) {
                    used.insert(*known);
                    continue;
                }
                const std::string kernel = skipped(text);
                if (!is_accepted(kernel)) continue;
                tests::Machine machine;
                CHECK(machine.failure(kernel, {}, 0) == "no failure");
                ++decoded;
            }
        }
    }
    CHECK(decoded > 5000);
    CHECK(used.size() == std::size(not_run));
}
