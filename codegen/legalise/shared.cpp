// SPDX-License-Identifier: Apache-2.0
// Shared arrays that together exceed what a block has without asking become parts of dynamic shared memory, which a
// launch asks for: those with the largest alignment first, and after them what the launch gives to the kernel. Each
// keeps its name, so that the emulator can tell an access beyond one from an access to the next.
//
//     shared $a: f32[16384] align 16           ==>  dynamic shared $a: f32[16384] align 16 at 1024
//     shared $b: f16[512] align 1024                dynamic shared $b: f16[512] align 1024
//     dynamic shared $more: f32[] align 16          dynamic shared $more: f32[] align 16 at 66560
//
// Needs: typed instructions. Keeps: blocks and edges.
#include <algorithm>
#include <numeric>

#include "codegen/ir/edit/rewriter.hpp"
#include "codegen/legalise/legalise.hpp"
#include "codegen/support/diagnostic.hpp"

namespace ikat::legalise {
namespace {

using ir::Inst, ir::Op, ir::Symbol, ir::Type, ir::Value, ir::Word;

constexpr std::uint32_t up(std::uint64_t bytes, std::uint64_t alignment) {
    return std::uint32_t((bytes + alignment - 1) / alignment * alignment);
}
std::uint32_t alignment_of(const Symbol& symbol) {
    return std::max<std::uint32_t>(symbol.alignment, ir::info(symbol.element).bytes);
}

/// Gives each array its place. The kernel's own bytes, after which those of the launch begin.
std::uint32_t lay_out(std::vector<Symbol>& symbols) {
    std::vector<Symbol*> own;
    std::uint32_t unit = 16;  // all arrays without a size begin at one place
    for (Symbol& symbol : symbols) {
        if (symbol.dynamic) unit = std::max(unit, alignment_of(symbol));
        if (symbol.space == ir::Space::Shared && !symbol.dynamic) own.push_back(&symbol);
    }
    std::ranges::sort(own, [](const Symbol* a, const Symbol* b) {
        if (alignment_of(*a) != alignment_of(*b)) return alignment_of(*a) > alignment_of(*b);
        return a < b;  // in the order of their declarations
    });
    std::uint64_t end = 0;
    for (Symbol* const symbol : own) {
        symbol->offset = up(end, alignment_of(*symbol));
        end = symbol->offset + symbol->count * ir::info(symbol->element).bytes;
    }
    const std::uint32_t bytes = up(end, unit);
    for (Symbol& symbol : symbols)
        if (symbol.dynamic) symbol.offset = bytes;
    for (Symbol* const symbol : own) symbol->dynamic = true;
    return bytes;
}

/// How much the launch has given to the kernel is what remains after its own bytes.
void subtract_own(ir::Function& fn, std::uint32_t own) {
    ir::Rewriter walk(fn);
    walk.run([&](Inst inst) {
        walk.keep(inst);
        if (fn[inst].op != Op::Special || fn[inst].attribute != Word(ir::SpecialRegister::DynamicSmemSize)) return;
        const Location where = fn[inst].where;
        const Value all = fn.result(inst);
        walk.replace(all, walk.make({.op = Op::Sub, .type = Type::U32, .where = where},
                                    {all, walk.constant(Type::U32, own, where)}, Type::U32));
    });
}

}  // namespace

analysis::Changed merge_shared(ir::Function& fn, const Target& target) {
    const std::uint64_t bytes = ir::symbol_bytes(fn.symbols, ir::Space::Shared);
    if (bytes > target.shared_opt_in)
        throw Error("the Shared arrays of '" + fn.name + "' take up " + std::to_string(bytes) + " bytes, and " +
                        std::string(target.name) + " gives a block at most " + std::to_string(target.shared_opt_in),
                    "make them smaller, or compile for a target that has more");
    if (!fn.is_entry || bytes <= target.shared_static) return analysis::Changed::Nothing;
    subtract_own(fn, lay_out(fn.symbols));
    return analysis::Changed::Instructions;
}

}  // namespace ikat::legalise
