// SPDX-License-Identifier: Apache-2.0
// What four warps do together: asynchronous products of matrices (agents/async_products.hpp),
// and changes of their number of registers (agents/register_pool.hpp).
#include <fmt/format.h>

#include "runtime/emulator/agents/async_products.hpp"
#include "runtime/emulator/agents/register_pool.hpp"
#include "runtime/emulator/decode/rules/rules.hpp"
#include "runtime/emulator/machine/messages.hpp"

namespace ikat::emulator {

namespace {

constexpr std::uint32_t waits_for(AgentSlot agent) {
    return BarrierAgent | BarrierAligned | std::uint32_t(agent) << barrier_agent_at;
}

using Element = MatrixProduct::Element;
using Sum = MatrixProduct::Sum;

/// An immediate operand, one of two; without one, the first.
bool is_second(Lowering& code, Operands operands, std::size_t at, std::int64_t first, std::int64_t second) {
    if (at >= operands.size()) return false;
    const ptx::Operand& operand = operands[at];
    const auto value = std::int64_t(operand.value);
    if (operand.kind == ptx::Operand::Kind::Integer && (value == first || value == second)) return value == second;
    code.refuse(FaultCode::WrongImmediate,
                fmt::format("operand {} of wgmma.mma_async must be {} or {}", at + 1, first, second));
}

/// An op of the whole warp, for which it waits.
Micro together(Lowering& code, const Behaviour& behaviour) {
    code.count_here();
    Micro micro = micro_of(behaviour);
    micro.fields[4] = index(code.constant(all_lanes, 4));
    micro.reads = X;
    return micro;
}

void wgmma(Lowering& code, Modifiers& modifiers, Operands operands) {
    if (code.on_stack) code.unsupported("a product in a function that is called rather than inlined");
    const ptx::Match match = ptx::match(code.module, *code.current);
    const auto a = element_named(match.elements[1].type), b = element_named(match.elements[2].type);
    const auto d = sum_named(match.elements[0].type);
    if (!a || !b || !d || match.problems || match.shape.n == 0)
        code.unsupported("its shape or its types are not supported");
    const bool a_in_registers = operands[1].kind == ptx::Operand::Kind::Vector;
    const std::size_t adds = 3, immediates = 4, transposed = 6;
    if (operands[adds].kind == ptx::Operand::Kind::Integer) is_second(code, operands, adds, 0, 1);
    WarpgroupProduct product{.a = *a,
                             .b = *b,
                             .d = *d,
                             .columns = std::uint16_t(match.shape.n),
                             .a_in_registers = a_in_registers,
                             .saturates = modifiers.has(Modifier::Satfinite)};
    product.negates = is_second(code, operands, immediates, 1, -1) != is_second(code, operands, immediates + 1, 1, -1);
    if (!a_in_registers) product.a_by_columns = is_second(code, operands, transposed, 0, 1);
    product.b_by_rows = is_second(code, operands, transposed + !a_in_registers, 0, 1);
    modifiers.take_all();  // they match the form

    const auto registers_of = [&](const ptx::Operand& operand, std::size_t count, Type type) {
        std::vector<VReg> registers;
        for (const ptx::Operand& each : Operands(code.module.operands(operand.children))) {
            const Result result = code.result(each, type);
            if (!result.is_register || result.at != result.to) code.unsupported("registers of 32 bits are needed here");
            registers.push_back(result.at);
        }
        if (registers.size() != count) code.unsupported("the vector's length is not that of the instruction");
        return registers;
    };
    const std::vector<VReg> sums = registers_of(operands[0], product.registers(), Type::U32);
    std::vector<VReg> rows;
    if (a_in_registers) rows = registers_of(operands[1], 4, Type::U32);
    Micro micro = together(code, select_start_product());
    if (!a_in_registers) {
        micro.fields[1] = index(code.source(operands[1], Type::U64));
        micro.reads |= A;
    }
    micro.fields[2] = index(code.source(operands[2], Type::U64));
    micro.fields[3] = index(code.predicate(operands[adds]));
    micro.reads |= B | C;
    micro.fields[5] = product.bits();
    micro.list = code.list(sums, rows);
    code.emit(micro);
}

void wgmma_fence(Lowering& code, Modifiers& modifiers, Operands) {
    modifiers.take_all();
    code.emit(together(code, {fence_registers, {Op::WgmmaFence}}));
}

void wgmma_commit(Lowering& code, Modifiers& modifiers, Operands) {
    modifiers.take_all();
    code.emit(together(code, {commit_products, {Op::WgmmaCommit}}));
}

void wgmma_wait(Lowering& code, Modifiers& modifiers, Operands operands) {
    modifiers.take_all();
    if (operands[0].kind != ptx::Operand::Kind::Integer || operands[0].value > ~0u)
        code.refuse(FaultCode::WrongImmediate, "wgmma.wait_group needs a number of groups that is not negative");
    code.count_here();
    code.emit({await_products, {Op::WgmmaWait}}, 0, 0,
              {0, 0, 0, 0, waits_for(AgentSlot::Products), std::uint32_t(operands[0].value)});
}

void setmaxnreg(Lowering& code, Modifiers& modifiers, Operands operands) {
    constexpr std::uint64_t min = 24, max = 256, unit = 8;
    const bool is_more = modifiers.take(Modifier::Inc);
    modifiers.take_all();
    const std::uint64_t count = operands[0].value;
    if (operands[0].kind != ptx::Operand::Kind::Integer || count < min || count > max || count % unit)
        code.refuse(FaultCode::WrongImmediate,
                    fmt::format("setmaxnreg needs a multiple of {} from {} to {}", unit, min, max));
    code.count_here();
    if (!code.kernel.registers)
        code.emit({ignore_registers, {Op::SetRegisters}}, 0, 0, {});
    else
        code.emit({change_registers, {Op::SetRegisters}}, 0, 0,
                  {is_more, 0, 0, 0, waits_for(AgentSlot::Registers), std::uint32_t(count)});
}

constexpr RuleRow warpgroup_rows[] = {
    {"setmaxnreg", setmaxnreg},      {"wgmma", "mma_async", wgmma},           {"wgmma", "mma_async sp", not_run},
    {"wgmma", "fence", wgmma_fence}, {"wgmma", "commit_group", wgmma_commit}, {"wgmma", "wait_group", wgmma_wait},
};

}  // namespace

constinit const Family warpgroup_family{warpgroup_rows};

std::unordered_set<ptx::Name> registers_of_products(const ptx::Module& module, const ptx::Function& function) {
    std::unordered_set<ptx::Name> found;
    for (const ptx::Instruction& instruction : function.instructions) {
        if (instruction.opcode != ptx::Opcode::Wgmma) continue;
        for (const ptx::Operand& operand : module.operands(instruction.operands))
            if (operand.kind == ptx::Operand::Kind::Vector)
                for (const ptx::Operand& each : module.operands(operand.children))
                    if (each.kind == ptx::Operand::Kind::Symbol) found.insert(each.name);
    }
    return found;
}

void touch_products(Lowering& code, const Micro& op) {
    if (op.info.operation == Op::Wgmma) return;
    std::vector<VReg> touched;
    const auto note = [&](std::uint32_t value) {
        if (code.values[value].keeps_slot) touched.push_back(VReg(value));
    };
    for (unsigned i = 0; i < op.fields.size(); ++i)
        if ((op.reads | op.writes) >> i & 1) note(op.fields[i]);
    for (std::uint32_t i = 0; i < op.list.count; ++i) note(index(code.listed[op.list.first + i]));
    if (!touched.empty())
        code.put({.run = touch_registers, .list = code.list({}, touched), .info = {OwnOp::TouchRegisters}});
}

}  // namespace ikat::emulator
