// SPDX-License-Identifier: Apache-2.0
// Asynchronous copies (agents/async_copies.hpp).
#include "runtime/emulator/agents/async_copies.hpp"
#include "runtime/emulator/decode/rules/rules.hpp"

namespace ikat::emulator {

namespace {

/// cp.async.ca.shared.global [to], [from], bytes{, bytes that are read | predicate}{, policy}
void copy_async(Lowering& code, Modifiers& modifiers, Operands operands) {
    modifiers.take(Modifier::Async);
    const bool cached = !modifiers.has(Modifier::Cg), has_policy = modifiers.has(Modifier::L2CacheHint);
    modifiers.take(Modifier::Global);
    if (modifiers.take_any({Modifier::Shared, Modifier::SharedCta}) == Modifier::Unknown)
        code.unsupported("it copies to shared memory");
    modifiers.take_cache_hints();
    const AddressOperand to = code.address(operands[0], Space::Shared), from = code.address(operands[1], Space::Global);
    const std::uint64_t bytes = operands[2].kind == ptx::Operand::Kind::Integer ? operands[2].value : 0;
    if (bytes != 16 && (!cached || (bytes != 4 && bytes != 8)))
        code.unsupported("it copies 4, 8 or 16 bytes, past the first cache (.cg) 16");
    CopyForm form{.bytes = std::uint8_t(bytes), .is_wide = code.values[index(to.base)].slot == 8, .is_cached = cached};
    VReg limit{};
    if (operands.size() > 3u + has_policy) {
        const Binding* const binding =
            operands[3].kind == ptx::Operand::Kind::Symbol ? code.find(operands[3].name) : nullptr;
        const bool is_predicate = binding && binding->kind == Binding::Kind::Register && !binding->is_pair &&
                                  code.values[index(binding->value)].slot == 0;
        form.source = is_predicate ? CopyForm::Source::Ignored : CopyForm::Source::Bytes;
        limit = code.source(operands[3], is_predicate ? Type::Pred : Type::U32);
    }
    const bool has_limit = form.source != CopyForm::Source::Whole;
    code.tell_tools(from, {.bytes = std::uint32_t(bytes), .cached = cached, .is_limited = has_limit});
    const MicroInfo info{.operation = Op::CopyAsync, .effects = Changes, .use = DefinedUse::Address};
    code.emit({start_copies, info}, 0, std::uint8_t(A | B | (has_limit ? C : 0)),
              {form.bits(), index(to.base), index(from.base), has_limit ? index(limit) : 0, std::uint32_t(to.offset),
               std::uint32_t(from.offset)});
}

void commit_group(Lowering& code, Modifiers& modifiers, Operands) {
    modifiers.take(Modifier::Async);
    modifiers.take(Modifier::CommitGroup);
    code.emit({commit_copies, {Op::CopyCommit}}, 0, 0, {});
}

void wait_group(Lowering& code, Modifiers& modifiers, Operands operands) {
    modifiers.take(Modifier::Async);
    modifiers.take(Modifier::WaitGroup);
    if (operands[0].kind != ptx::Operand::Kind::Integer) code.unsupported("a number of groups is needed here");
    code.emit({await_copies, {Op::CopyWait}}, 0, 0,
              {0, 0, 0, 0, std::uint32_t(std::min<std::uint64_t>(operands[0].value, ~0u)), 0});
}

void wait_all(Lowering& code, Modifiers& modifiers, Operands) {
    modifiers.take(Modifier::Async);
    modifiers.take(Modifier::WaitAll);
    code.emit({await_copies, {Op::CopyWait}}, 0, 0, {0, 0, 0, 0, 0, 1});
}

constexpr RuleRow copies_rows[] = {
    {"cp", "ca", copy_async},
    {"cp", "commit_group", commit_group},
    {"cp", "wait_group", wait_group},
    {"cp", "wait_all", wait_all},
};

}  // namespace

constinit const Family copies_family{copies_rows};

}  // namespace ikat::emulator
