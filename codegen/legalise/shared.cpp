// SPDX-License-Identifier: Apache-2.0
// Shared arrays that together exceed what a block has without asking become parts of one dynamic array, which a launch
// asks for: those with the largest alignment first, and behind them what the launch gives to the kernel.
//
//     shared $a: f32[16384] align 16           ==>  dynamic shared $shared: u8[66560] align 1024
//     shared $b: f16[512] align 1024
//     %0 = symbol.u32 $a                       ==>  %1 = symbol.u32 $shared
//                                                   %0 = at.u32.u32 1+1024, %1, 0
//
// Needs: typed instructions. Keeps: blocks and edges.
#include <algorithm>
#include <numeric>

#include "codegen/ir/edit/rewriter.hpp"
#include "codegen/ir/op/families.hpp"
#include "codegen/legalise/legalise.hpp"

namespace ikat::legalise {
namespace {

using ir::Inst, ir::Op, ir::Symbol, ir::Type, ir::Value, ir::Word;

constexpr std::uint64_t up(std::uint64_t bytes, std::uint64_t alignment) {
    return (bytes + alignment - 1) / alignment * alignment;
}
std::uint32_t alignment_of(const Symbol& symbol) {
    return std::max<std::uint32_t>(symbol.alignment, ir::info(symbol.element).bytes);
}

class SharedArrays {
public:
    explicit SharedArrays(ir::Function& fn) : fn_(fn), walk_(fn), places_(fn.symbols.size()) {}

    void run() {
        lay_out();
        walk_.run([this](Inst inst) {
            switch (fn_[inst].op) {
                case Op::Symbol: return symbol(inst);
                case Op::Special: return special(inst);
                default: return walk_.keep(inst);
            }
        });
    }

private:
    void lay_out() {
        std::vector<std::uint32_t> order(fn_.symbols.size());
        std::iota(order.begin(), order.end(), 0u);
        std::ranges::sort(order, [&](std::uint32_t a, std::uint32_t b) {
            const Symbol &one = fn_.symbols[a], &other = fn_.symbols[b];
            if (one.dynamic != other.dynamic) return other.dynamic;
            if (alignment_of(one) != alignment_of(other)) return alignment_of(one) > alignment_of(other);
            return a < b;
        });
        Symbol all{.name = "shared", .dynamic = true};
        std::vector<Symbol> others;
        std::uint64_t end = 0;
        for (const std::uint32_t i : order) {
            const Symbol& symbol = fn_.symbols[i];
            if (symbol.space != ir::Space::Shared) continue;
            end = up(end, alignment_of(symbol));
            places_[i].offset = std::uint32_t(end);
            all.alignment = std::max(all.alignment, alignment_of(symbol));
            if (symbol.dynamic) continue;
            end += symbol.count * ir::info(symbol.element).bytes;
            all.count = up(end, 16);
        }
        // All dynamic arrays begin at one place.
        std::uint32_t dynamic_alignment = 16;
        for (const Symbol& symbol : fn_.symbols)
            if (symbol.dynamic) dynamic_alignment = std::max(dynamic_alignment, alignment_of(symbol));
        all.count = up(all.count, dynamic_alignment);
        for (std::uint32_t i = 0; i < fn_.symbols.size(); ++i) {
            const Symbol& symbol = fn_.symbols[i];
            if (symbol.dynamic) places_[i].offset = std::uint32_t(all.count);
            places_[i].is_shared = symbol.space == ir::Space::Shared;
            if (places_[i].is_shared) continue;
            places_[i].number = std::uint32_t(others.size());
            others.push_back(symbol);
        }
        while (std::ranges::find(others, all.name, &Symbol::name) != others.end()) all.name += '_';
        own_ = std::uint32_t(all.count);
        all_ = std::uint32_t(others.size());
        others.push_back(std::move(all));
        fn_.symbols = std::move(others);
    }

    void symbol(Inst inst) {
        const Place& place = places_[fn_[inst].attribute];
        if (!place.is_shared) {
            walk_.edit(inst).attribute = place.number;
            return walk_.keep(inst);
        }
        const Location where = fn_[inst].where;
        const Value base =
            walk_.make({.op = Op::Symbol, .type = Type::U32, .attribute = all_, .where = where}, {}, Type::U32);
        const Word distance = ir::pack(ir::AddressForm{.scale = 1, .constant = std::int32_t(place.offset)});
        walk_.replace(
            fn_.result(inst),
            walk_.make({.op = Op::At, .type = Type::U32, .from = Type::U32, .attribute = distance, .where = where},
                       {base, walk_.constant(Type::U32, 0, where)}, Type::U32));
    }

    /// How much the launch has given to the kernel is what remains.
    void special(Inst inst) {
        walk_.keep(inst);
        if (fn_[inst].attribute != Word(ir::SpecialRegister::DynamicSmemSize)) return;
        const Location where = fn_[inst].where;
        const Value all = fn_.result(inst);
        walk_.replace(all, walk_.make({.op = Op::Sub, .type = Type::U32, .where = where},
                                      {all, walk_.constant(Type::U32, own_, where)}, Type::U32));
    }

    struct Place {
        bool is_shared = false;
        std::uint32_t offset = 0;  // of a shared array
        std::uint32_t number = 0;  // of another symbol, now
    };
    ir::Function& fn_;
    ir::Rewriter walk_;
    std::vector<Place> places_;  // by symbol, as they were
    std::uint32_t own_ = 0, all_ = 0;
};

}  // namespace

analysis::Changed merge_shared(ir::Function& fn, std::uint64_t most) {
    if (!fn.is_entry || ir::symbol_bytes(fn.symbols, ir::Space::Shared) <= most) return analysis::Changed::Nothing;
    SharedArrays(fn).run();
    return analysis::Changed::Instructions;
}

}  // namespace ikat::legalise
