// SPDX-License-Identifier: Apache-2.0
#include "runtime/emulator/decode/decode.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "codegen/ptx/text/words.hpp"
#include "runtime/emulator/decode/lowering.hpp"
#include "runtime/emulator/machine/messages.hpp"

namespace ikat::emulator {

namespace {

/// Reserves space for calls and alloca after the kernel's own local variables.
void prepare_stack(const ptx::Module& module, const Lowering& lowering, DecodedKernel& kernel) {
    constexpr std::uint32_t stack_bytes = 16 * 1024;
    const auto is_alloca = [](const Micro& micro) { return micro.info.operation == OwnOp::Alloca; };
    if (lowering.roots.empty() && std::ranges::none_of(lowering.micros, is_alloca)) return;
    const NamedRange& stack = kernel.local.add("the stack", stack_bytes, 256);
    kernel.stack_base = stack.address;
    kernel.stack_end = stack.address + stack.bytes;
    kernel.functions.resize(module.functions.size());
    for (const Lowering::Root& root : lowering.roots)
        kernel.functions[root.function].parameter_bytes = signature_of(module, module.functions[root.function]).bytes;
}

/// Rejects .reqnctapercluster with more blocks than any device supports in a cluster.
[[noreturn]] void refuse_cluster(const ptx::Module& module, const ptx::Directive& directive) {
    Diagnostic diagnostic = diagnostic_of(FaultCode::NotRun);
    diagnostic.where = location(module, directive.where);
    diagnostic.message = fmt::format("a cluster has 1 to {} blocks", max_blocks_in_cluster);
    diagnostic.hint = "use smaller clusters";
    throw Error(std::move(diagnostic));
}

/// The registers of a thread that setmaxnreg starts from; 0 if they are not known, and it has no effect. As ptxas, from
/// .maxnreg, or from the threads of a block and how many of them a multiprocessor is to run, one if nothing says it.
std::uint32_t registers_of(const ptx::Module& module, const ptx::Function& entry) {
    constexpr std::uint64_t of_multiprocessor = 65536, max_registers = 256, unit = 8;
    std::uint64_t threads = 0, blocks = 1;
    for (const ptx::Directive& directive : entry.directives) {
        const auto operands = module.operands(directive.operands);
        const ptx::DirectiveKind kind = kind_of(module, directive);
        if (kind == ptx::DirectiveKind::MaxRegisters) return std::uint32_t(operands[0].value);
        if (kind == ptx::DirectiveKind::MinBlocks) blocks = std::max<std::uint64_t>(operands[0].value, 1);
        if (kind != ptx::DirectiveKind::MaxThreads && kind != ptx::DirectiveKind::RequiredThreads) continue;
        threads = 1;
        for (const ptx::Operand& operand : operands) threads *= operand.value;
    }
    if (!threads) return 0;
    return std::uint32_t(std::min(max_registers, of_multiprocessor / (threads * blocks) / unit * unit));
}

/// Dynamic shared memory begins after the static variables. The arrays whose part of it is known are variables, too.
DynamicPlaces place_dynamic(const Lowering& lowering, DecodedKernel& kernel, bool moves) {
    Variables& shared = kernel.shared;
    const std::uint64_t alignment = lowering.dynamic_alignment ? lowering.dynamic_alignment : 1;
    shared.packed = rounded_up(shared.packed, alignment);
    kernel.shared_bytes = std::uint32_t(shared.packed);
    if (moves && shared.packed % (2 * alignment) == 0) shared.packed += alignment;
    const std::uint64_t begin = shared.packed;
    DynamicPlaces places;
    for (const auto& [offset, array] : lowering.dynamic_arrays) {
        shared.packed = begin + offset;
        NamedRange& range = shared.add(array.name, array.bytes, 1);
        range.line = array.line;
        places.arrays[offset] = range.address;
    }
    shared.packed = begin + kernel.own_dynamic_bytes;
    places.rest = shared.next_address();
    return places;
}

}  // namespace

DecodedKernel decode(const ptx::Module& module, const ptx::Function& entry, const ModuleMemory& variables,
                     const DecodeOptions& options) {
    DynamicPlaces dynamic;
    for (;;) {
        DecodedKernel kernel;
        kernel.name = module.text(entry.name);
        kernel.checks = options.checks;
        kernel.where = entry.where;
        for (const ptx::Directive& directive : entry.directives) {
            const auto operands = module.operands(directive.operands);
            std::array<std::uint32_t, 3> sizes{1, 1, 1};
            for (std::size_t i = 0; i < operands.size() && i < 3; ++i) sizes[i] = std::uint32_t(operands[i].value);
            const ptx::DirectiveKind kind = kind_of(module, directive);
            if (kind == ptx::DirectiveKind::MaxThreads)
                kernel.max_threads = std::uint64_t(sizes[0]) * sizes[1] * sizes[2];
            if (kind == ptx::DirectiveKind::ExplicitCluster) kernel.needs_cluster = true;
            if (kind == ptx::DirectiveKind::RequiredThreads) kernel.required_block = sizes;
            if (kind == ptx::DirectiveKind::RequiredCluster) {
                if (!is_cluster(sizes)) refuse_cluster(module, directive);
                kernel.cluster = sizes;
                kernel.names_cluster = true;
            }
        }
        kernel.registers = registers_of(module, entry);
        if (options.cluster[0] && !kernel.names_cluster) {
            kernel.cluster = options.cluster;
            kernel.names_cluster = true;
        }
        Lowering lowering(module, variables, kernel, dynamic, options.tools);
        lowering.run(entry);
        DynamicPlaces found = place_dynamic(lowering, kernel, options.moves_dynamic);
        if (lowering.dynamic_alignment && found != dynamic) {
            dynamic = std::move(found);
            continue;
        }
        prepare_stack(module, lowering, kernel);
        lay_out(lowering, kernel);
        return kernel;
    }
}

}  // namespace ikat::emulator
