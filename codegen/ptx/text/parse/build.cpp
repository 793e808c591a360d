// SPDX-License-Identifier: Apache-2.0
#include "codegen/ptx/text/parse/build.hpp"

#include <algorithm>
#include <charconv>
#include <utility>

namespace ikat::ptx {
namespace {

constexpr std::size_t deepest_operand = 32;   // brackets within brackets; real PTX has two
constexpr std::uint32_t deepest_scope = 256;  // braces within braces in a body

/// What the comment after the declaration of an array in dynamic shared memory tells; see Variable::Part.
std::optional<Variable::Part> part_of(std::string_view comment) {
    const auto take = [&](std::string_view text) {
        const bool is_there = comment.starts_with(text);
        if (is_there) comment.remove_prefix(text.size());
        return is_there;
    };
    const auto take_number = [&](std::uint64_t& number) {
        const auto [rest, error] = std::from_chars(comment.data(), comment.data() + comment.size(), number);
        comment.remove_prefix(std::size_t(rest - comment.data()));
        return error == std::errc{} && number <= ~0u;
    };
    Variable::Part part;
    const bool begins = take("the rest, at ") || (take_number(part.bytes) && part.bytes > 0 && take(" bytes at "));
    if (!begins || !take_number(part.offset) || !comment.empty()) return {};
    return part;
}

}  // namespace

Build::Build(std::string_view text, std::string_view file) : source(text, file) { module.file = source.file(); }

std::string Build::subject() const {
    const auto text = [this](Name name) { return std::string(module.text(name)); };
    switch (reading_) {
        case Reading::Module: return "the module";
        case Reading::Instruction: {
            std::string out = text(instruction_.spelling);
            for (Name modifier : modifiers_) out += module.text(modifier);
            return out;
        }
        case Reading::Variable:
            if (!variable_.declarators.empty()) return text(variable_.declarators.back().name);
            return text(variable_.space) + ' ' + text(variable_.type);
        case Reading::Function: {
            const Function& function = module.functions.back();
            return function.name == no_name ? function.is_entry ? ".entry" : ".func" : text(function.name);
        }
        case Reading::Directive: return text(directive_.name);
    }
    return {};
}

void Build::push_negated(Operand operand) {
    operand.negated = true;
    push(operand);
}

void Build::push_minus(Operand operand) {
    operand.minus = true;
    push(operand);
}

bool Build::location_clause(Name name) {
    push_word(name);
    return module.text(name) == "function_name" || module.text(name) == "inlined_at";
}

void Build::offset(const Operand& bytes) {
    stack_.back().has_offset = true;
    stack_.back().value = bytes.value;
}

bool Build::open() {
    marks_.push_back(std::uint32_t(stack_.size()));
    return marks_.size() <= deepest_operand;
}

void Build::close(Operand::Kind kind) {
    const Span children = take_operands(marks_.back());
    marks_.pop_back();
    push({.kind = kind, .children = children});
}

void Build::join(Operand::Kind kind) {
    const Span children = take_operands(stack_.size() - 2);
    push({.kind = kind, .children = children});
}

void Build::mask() {
    const Span child = take_operands(stack_.size() - 1);
    stack_.back().kind = Operand::Kind::Mask;
    stack_.back().children = child;
}

Span Build::take_operands(std::size_t first) {
    const Span span = module.add_operands(std::span(stack_).subspan(first));
    stack_.resize(first);
    return span;
}

void Build::opcode(Name name) {
    reading_ = Reading::Instruction;
    instruction_.spelling = name;
    instruction_.where = where_;
    modifiers_.clear();
}

bool Build::may_end_here() { return info(module.opcode(instruction_.spelling)).is(OpcodeInfo::Bare); }

void Build::instruction() {
    instruction_.opcode = module.opcode(instruction_.spelling);
    instruction_.modifiers = module.add_modifiers(modifiers_);
    instruction_.operands = take_operands(0);
    statement(Statement::Kind::Instruction, function().instructions.size());
    function().instructions.push_back(instruction_);
    instruction_ = {};
}

void Build::label() { statement(Statement::Kind::Label, index(instruction_.spelling)); }

bool Build::scope_begin() {
    statement(Statement::Kind::ScopeBegin, 0);
    return ++scope_depth_ <= deepest_scope;
}

void Build::scope_end() {
    statement(Statement::Kind::ScopeEnd, 0);
    --scope_depth_;
}

void Build::variable(Name space) {
    reading_ = Reading::Variable;
    variable_.space = space;
    variable_.where = where_;
}

/// `.const[2]` is one name.
void Build::bank(const Operand& number) {
    const std::string text = std::string(module.text(variable_.space)) + '[' + std::to_string(number.value) + ']';
    variable_.space = module.intern(text);
}

bool Build::alignment(const Operand& bytes) {
    if (bytes.value == 0) return false;  // which would mean none
    if (variable_.pointer.empty()) {
        variable_.alignment = std::uint32_t(bytes.value);
    } else {
        variable_.pointer.push_back(module.intern(".align"));
        variable_.pointer.push_back(module.intern(std::to_string(bytes.value)));
    }
    return true;
}

bool Build::specifier(Name name) {
    const std::string_view text = module.text(name);
    if (text == ".ptr" || !variable_.pointer.empty()) {
        variable_.pointer.push_back(name);
        return variable_.pointer.size() <= 4;
    }
    const bool is_vector = text.size() > 2 && text[1] == 'v' && characters::is(text[2], characters::Digit);
    Name& place = is_vector ? variable_.vector : variable_.type;
    if (place != no_name) return false;
    place = name;
    return true;
}

void Build::declarator(Name name) {
    variable_.declarators.emplace_back();
    variable_.declarators.back().name = name;
}

void Build::range(const Operand& count) {
    variable_.declarators.back().has_range = true;
    variable_.declarators.back().range = std::uint32_t(count.value);
}

void Build::initialiser() { variable_.declarators.back().initialiser = take_operands(0); }

Variable Build::take_variable() {
    variable_.linkage = std::exchange(linkage_, {});
    return std::exchange(variable_, {});
}

void Build::module_variable() {
    module.items.push_back({Module::Item::Kind::Variable, std::uint32_t(module.variables.size())});
    module.variables.push_back(take_variable());
    Variable& made = module.variables.back();
    const bool is_dynamic = module.text(made.space) == ".shared" && made.declarators.size() == 1 &&
                            made.declarators[0].extents == std::vector<std::int64_t>{-1};
    if (is_dynamic) made.part = part_of(source.comment_after());
}

void Build::body_variable() {
    statement(Statement::Kind::Variable, function().variables.size());
    function().variables.push_back(take_variable());
}

void Build::entry_begin() {
    function_begin();
    function().is_entry = true;
}

void Build::function_begin() {
    reading_ = Reading::Function;
    module.items.push_back({Module::Item::Kind::Function, std::uint32_t(module.functions.size())});
    Function& made = module.functions.emplace_back();
    made.linkage = std::exchange(linkage_, {});
    made.where = where_;
}

void Build::directive(Name name) {
    reading_ = Reading::Directive;
    directive_.name = name;
    directive_.where = where_;
}

void Build::raw_body(std::string_view text) {
    directive_.raw = text;
    directive_.has_body = true;
}

Directive Build::take_directive() {
    directive_.operands = take_operands(0);
    return std::exchange(directive_, {});
}

void Build::module_directive() {
    module.items.push_back({Module::Item::Kind::Directive, std::uint32_t(module.directives.size())});
    module.directives.push_back(take_directive());
}

void Build::body_directive() {
    statement(Statement::Kind::Directive, function().body_directives.size());
    function().body_directives.push_back(take_directive());
}

}  // namespace ikat::ptx
