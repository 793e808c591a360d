// SPDX-License-Identifier: Apache-2.0
// Bodies, scopes, values and operands; see lowering.hpp. The opcodes are in the other files of this folder.
#include "runtime/emulator/decode/lowering.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "codegen/ptx/text/layout.hpp"
#include "codegen/ptx/text/words.hpp"
#include "runtime/emulator/decode/rules/rules.hpp"
#include "runtime/emulator/machine/messages.hpp"

namespace ikat::emulator {

namespace {

/// Instructions that involve the scheduler, or are not straight-line code, cannot run under a narrowed mask.
bool needs_branch(ptx::Opcode opcode) {
    return info(opcode).is(ptx::OpcodeInfo::Convergent) || info(opcode).is(ptx::OpcodeInfo::Jumps);
}

}  // namespace

void Lowering::unsupported(std::string_view why, std::string_view hint) const {
    Diagnostic diagnostic = diagnostic_of(FaultCode::NotRun);
    diagnostic.where = location(module, current ? current->where : kernel.where);
    diagnostic.message += fmt::format(": {}", why);
    if (!hint.empty()) diagnostic.hint = hint;
    if (current) diagnostic.excerpt = "    " + ptx::print(module, *current);
    throw Error(std::move(diagnostic));
}

void Lowering::refuse(FaultCode code, std::string message) const {
    Diagnostic diagnostic = diagnostic_of(code);
    diagnostic.where = location(module, current->where);
    diagnostic.message = std::move(message);
    diagnostic.excerpt = "    " + ptx::print(module, *current);
    throw Error(std::move(diagnostic));
}

Lowering::Lowering(const ptx::Module& module, const ModuleMemory& variables, DecodedKernel& kernel,
                   const DynamicPlaces& dynamic, const Tools& tools)
    : module(module),
      variables(variables),
      kernel(kernel),
      dynamic_(dynamic),
      known_modifiers_(module),
      rules_(std::make_unique<Rules>(module)),
      tools_(tools) {}
Lowering::~Lowering() = default;

// ---- bodies

void Lowering::define(ptx::Name name, const Binding& binding) { scopes.back()[name] = binding; }

const Binding* Lowering::find(ptx::Name name) {
    for (std::size_t i = scopes.size(); i-- > function_base;)
        if (const auto found = scopes[i].find(name); found != scopes[i].end()) return &found->second;
    if (const auto found = module_scope_.find(name); found != module_scope_.end()) return &found->second;
    if (const auto found = variables.variables.find(name); found != variables.variables.end()) {
        const ModuleMemory::Variable& variable = found->second;
        return &(module_scope_[name] = {.kind = Binding::Kind::Memory,
                                        .space = variable.space,
                                        .address = variable.address,
                                        .bytes = variable.bytes});
    }
    module_shared(name);
    const auto found = module_scope_.find(name);
    return found == module_scope_.end() ? nullptr : &found->second;
}

/// .shared variables at module scope belong to the kernels that use them.
void Lowering::module_shared(ptx::Name name) {
    for (const ptx::Variable& variable : module.variables) {
        if (space_of(module, variable) != ptx::StateSpace::Shared) continue;
        for (const auto& declarator : variable.declarators)
            if (declarator.name == name) module_scope_[name] = declare_memory(variable, declarator);
    }
    if (const ptx::Function* function = module.find_function(module.text(name)))
        module_scope_[name] = {.kind = Binding::Kind::Function, .function = function};
}

void Lowering::declare_registers(const ptx::Variable& variable) {
    const std::string_view text = module.text(variable.type);
    const auto width = std::uint8_t(ptx::element_bytes(text));
    const bool is_predicate = ptx::is_predicate(module, variable);
    if (!is_predicate && (width == 0 || width > 16))
        unsupported(fmt::format("registers of type {} are not supported", text));
    const std::uint8_t slot = is_predicate ? 0 : width >= 8 ? 8 : 4;
    const auto new_register = [&](ptx::Name name) {
        if (width > 8) return Binding{.value = new_value(8, 8), .high = new_value(8, 8), .is_pair = true};
        const Binding binding{.value = new_value(slot, width)};
        values.back().keeps_slot = slot == 4 && of_products_ && of_products_->contains(name);
        return binding;
    };
    constexpr std::uint32_t max_registers = 1 << 20;
    for (const auto& declarator : variable.declarators) {
        if (declarator.range > max_registers) unsupported("over a million registers in one declaration");
        if (!declarator.has_range) {
            define(declarator.name, new_register(declarator.name));
            continue;
        }
        for (std::uint32_t i = 0; i < declarator.range; ++i) {  // unused names were never interned
            const ptx::Name name = module.find(fmt::format("{}{}", module.text(declarator.name), i));
            if (name != ptx::no_name) define(name, new_register(name));
        }
    }
}

/// What its name stands for: the start of dynamic shared memory, from which offsets lead to its part.
std::uint64_t Lowering::dynamic_place(const ptx::Variable& variable, const ptx::Variable::Declarator& declarator) {
    const auto part = variable.part.value_or(ptx::Variable::Part{});
    if (part.bytes == 0) {
        kernel.dynamic_name = module.text(declarator.name);
        kernel.own_dynamic_bytes = std::max(kernel.own_dynamic_bytes, std::uint32_t(part.offset));
        return dynamic_.rest - part.offset;
    }
    dynamic_arrays[part.offset] = {module.text(declarator.name), part.bytes, variable.where.line};
    kernel.own_dynamic_bytes = std::max(kernel.own_dynamic_bytes, std::uint32_t(part.offset + part.bytes));
    const auto found = dynamic_.arrays.find(part.offset);
    return (found == dynamic_.arrays.end() ? 0 : found->second) - part.offset;
}

Binding Lowering::declare_memory(const ptx::Variable& variable, const ptx::Variable::Declarator& declarator) {
    const bool shared = space_of(module, variable) == ptx::StateSpace::Shared;
    const std::uint64_t bytes = ptx::variable_bytes(module, variable, declarator);
    const std::uint64_t alignment = ptx::variable_alignment(module, variable);
    if (shared)
        if (const auto known = shared_of_functions_.find(&declarator); known != shared_of_functions_.end())
            return known->second;
    const bool is_on_stack = !shared && on_stack;
    const bool dynamic = shared && !declarator.extents.empty() && declarator.extents.front() < 0;
    Variables& all = shared ? kernel.shared : kernel.local;
    constexpr std::uint64_t max_bytes = 1 << 20, max_cells = 1 << 14;
    if ((is_on_stack ? frame_used : all.packed) + bytes > max_bytes || all.cells > max_cells)
        unsupported(fmt::format("variables in {} take more than {} bytes, or there are more than {}",
                                module.text(variable.space), max_bytes, max_cells / 2));
    Binding binding{.kind = Binding::Kind::Memory,
                    .space = shared ? Space::Shared : Space::Local,
                    .bytes = bytes,
                    .on_stack = is_on_stack};
    if (is_on_stack) {
        binding.address = rounded_up(frame_used, alignment);
        frame_used = std::uint32_t(binding.address + bytes);
    } else if (dynamic) {
        binding.address = dynamic_place(variable, declarator);
    } else {
        NamedRange& range = all.add(module.text(declarator.name), bytes, alignment);
        range.line = variable.where.line;
        binding.address = range.address;
    }
    if (shared) shared_of_functions_[&declarator] = binding;
    if (dynamic) dynamic_alignment = std::max(dynamic_alignment, std::max<std::uint64_t>(alignment, 16));
    return binding;
}

void Lowering::declare(const ptx::Variable& variable) {
    using enum ptx::StateSpace;
    const ptx::StateSpace space = space_of(module, variable);
    if (space == Register) return declare_registers(variable);
    if (space == Global || space == Const) {
        for (const auto& declarator : variable.declarators) {
            const ModuleMemory::Variable& placed = variables.of_functions.at(&declarator);
            define(declarator.name, {.kind = Binding::Kind::Memory,
                                     .space = placed.space,
                                     .address = placed.address,
                                     .bytes = placed.bytes});
        }
        return;
    }
    if (space == Other)
        unsupported(fmt::format("a {} variable inside a function is not supported", module.text(variable.space)),
                    "declare it at module scope");
    for (const auto& declarator : variable.declarators) define(declarator.name, declare_memory(variable, declarator));
}

/// Labels are visible in their whole scope.
void Lowering::open_scope(std::span<const ptx::Statement> statements, const ptx::Function& function) {
    using Kind = ptx::Statement::Kind;
    scopes.emplace_back();
    int depth = 0;
    for (std::size_t i = 0; i < statements.size() && depth >= 0; ++i) {
        if (statements[i].kind == Kind::ScopeBegin) ++depth;
        if (statements[i].kind == Kind::ScopeEnd) --depth;
        if (statements[i].kind != Kind::Label || depth != 0) continue;
        const ptx::Name name = ptx::Name(statements[i].index);
        if (i + 1 < statements.size() && statements[i + 1].kind == Kind::Directive) {
            const ptx::Directive& directive = function.body_directives[statements[i + 1].index];
            const ptx::DirectiveKind kind = kind_of(module, directive);
            if (kind == ptx::DirectiveKind::BranchTargets) {
                define(name, {.kind = Binding::Kind::Table, .targets = directive.operands});
                continue;
            }
            if (kind == ptx::DirectiveKind::CallPrototype || kind == ptx::DirectiveKind::CallTargets) {
                define(name, {.kind = Binding::Kind::Prototype, .directive = &directive});
                continue;
            }
        }
        define(name, {.kind = Binding::Kind::Label, .label = new_label()});
    }
}

void Lowering::body(const ptx::Function& function) {
    using Kind = ptx::Statement::Kind;
    const std::span<const ptx::Statement> statements(function.body);
    const auto found = products_of_functions_.find(&function);
    const Names* const outer =
        std::exchange(of_products_, found == products_of_functions_.end() ? nullptr : &found->second);
    open_scope(statements, function);
    for (std::size_t i = 0; i < statements.size(); ++i) {
        const ptx::Statement& statement = statements[i];
        switch (statement.kind) {
            case Kind::Instruction: instruction(function.instructions[statement.index]); break;
            case Kind::Label:
                if (const Binding* binding = find(ptx::Name(statement.index)); binding->kind == Binding::Kind::Label)
                    place_label(binding->label);
                break;
            case Kind::Variable: declare(function.variables[statement.index]); break;
            case Kind::Directive: break;
            case Kind::ScopeBegin: open_scope(statements.subspan(i + 1), function); break;
            case Kind::ScopeEnd: scopes.pop_back(); break;
        }
    }
    scopes.pop_back();
    of_products_ = outer;
}

void Lowering::instruction(const ptx::Instruction& instruction) {
    current = &instruction;
    first = true;
    if (instruction.guard == ptx::no_name || instruction.opcode == ptx::Opcode::Bra)
        return instruction_body(instruction);

    ptx::Operand operand{.kind = ptx::Operand::Kind::Symbol};
    operand.name = instruction.guard;
    const VReg guard = predicate(operand);
    if (needs_branch(instruction.opcode)) {
        const std::uint32_t after = new_label();
        branch_to(after, guard, !instruction.guard_negated);
        instruction_body(instruction);
        current = &instruction;
        place_label(after);
        return;
    }
    static const Behaviour narrows[] = {{guard_if, {.operation = OwnOp::Guard, .use = DefinedUse::Guard}},
                                        {guard_unless, {.operation = OwnOp::GuardUnless, .use = DefinedUse::Guard}}};
    const std::ptrdiff_t begin = &emit(narrows[instruction.guard_negated], 0, A, {0, index(guard)}) - micros.data();
    guarded_ = true;
    instruction_body(instruction);
    guarded_ = false;
    const std::ptrdiff_t end = &emit({unguard, {OwnOp::Unguard}}, 0, 0, {}) - micros.data();
    micros[std::size_t(begin)].fields[4] = std::uint32_t(end + 1 - begin);
}

void Lowering::instruction_body(const ptx::Instruction& instruction) {
    Modifiers modifiers(known_modifiers_, module.modifiers(instruction.modifiers));
    const Rule rule = rules_->find(instruction);
    if (!rule)
        unsupported(fmt::format("{}opcode '{}'", rules_->runs(instruction.opcode) ? "this form of " : "",
                                module.text(instruction.spelling)));
    // An inlined call lowers other instructions in between.
    const std::vector<const ptx::Operand*> outer = std::exchange(unused_offsets_, {});
    note_offsets(module.operands(instruction.operands));
    try {
        rule(*this, modifiers, module.operands(instruction.operands));
    } catch (const MissingOperand&) {
        unsupported("it has too few operands", "give the operands that the PTX ISA lists for the instruction");
    }
    if (const ptx::Name left = modifiers.left(); left != ptx::no_name)
        unsupported(fmt::format("modifier '{}'", module.text(left)));
    if (!unused_offsets_.empty())
        unsupported(fmt::format("the offset of '{}' is not allowed here", ptx::print(module, *unused_offsets_.front())),
                    "add it in an instruction of its own");
    unused_offsets_ = outer;
    if (first) emit({nothing, {OwnOp::Nothing}}, 0, 0, {});  // so that it is counted
}

void Lowering::run(const ptx::Function& entry) {
    bool copies_boxes = false;  // which are swizzled by bits of addresses
    for (const ptx::Function& function : module.functions) {
        if (function.is_entry && &function != &entry) continue;
        Names names = registers_of_products(module, function);
        if (!names.empty()) products_of_functions_.emplace(&function, std::move(names));
        for (const ptx::Instruction& each : function.instructions) {
            if (each.opcode != ptx::Opcode::Cp) continue;
            kernel.has_bulk_copies |= has(module, each, ptx::Modifier::Bulk);
            copies_boxes |= has(module, each, ptx::Modifier::Tensor);
        }
    }
    kernel.has_products = !products_of_functions_.empty();
    kernel.shared.are_described = kernel.has_products || copies_boxes;
    for (const Tool*& tool : tools_)
        if (!tool->watches(kernel)) tool = nullptr;
    scopes.emplace_back();
    const std::vector<std::uint64_t> offsets = ptx::parameter_offsets(module, entry);
    for (std::size_t i = 0; i < offsets.size(); ++i) {
        const ptx::Variable& variable = entry.parameters[i];
        const auto& declarator = variable.declarators.front();
        const std::uint64_t offset = offsets[i], bytes = ptx::variable_bytes(module, variable, declarator);
        define(declarator.name,
               {.kind = Binding::Kind::Memory, .space = Space::Param, .address = offset, .bytes = bytes});
        kernel.parameters.push_back({std::string(module.text(declarator.name)), std::string(module.text(variable.type)),
                                     offset, bytes, ptx::variable_alignment(module, variable)});
        kernel.parameter_bytes = offset + bytes;
    }
    return_label = ~0u;
    micros.reserve(2 * entry.instructions.size());
    callers.push_back(&entry);
    body(entry);
    current = nullptr;
    Micro end = micro_of({end_lanes, {OwnOp::End}});  // a body may end without ret
    end.flow = Flow::End;
    end.counts = true;
    emit(end);
    lower_functions(*this);
}

}  // namespace ikat::emulator
