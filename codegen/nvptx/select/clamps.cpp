// SPDX-License-Identifier: Apache-2.0
// Clamps that propagate NaN are one instruction from sm_80 on.
//
//     %2 = select %c, %x, (%x < %c)   ==>   max.NaN.f32 %2, %x, %c
//     %3 = select %d, %2, (%2 > %d)   ==>   min.NaN.f32 %3, %2, %d
//
// The instruction gives the canonical NaN where the select gives x itself. So it is used only if no use can tell NaNs
// apart: all uses are sums, products, comparisons, or another such clamp.
#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "codegen/nvptx/select/steps.hpp"

namespace ikat::nvptx {
namespace {

using ir::Inst, ir::Op, ir::Type, ir::Value, ir::Word;

constexpr std::uint32_t first_target = 80;

class Clamps {
public:
    explicit Clamps(ir::Function& fn) : fn_(fn) {}

    bool run() {
        std::vector<Inst> found;
        for (ir::Block block : fn_.blocks())
            for (Inst inst : fn_[block].instructions)
                if (is_clamp(inst)) found.push_back(inst);
        if (found.empty()) return false;
        find_users();
        std::erase_if(found, [&](Inst inst) { return !hides_nan(fn_.result(inst)); });
        for (Inst inst : found) become(inst);
        return !found.empty();
    }

private:
    void find_users() {
        users_.resize(fn_.value_count());
        leaves_.resize(fn_.value_count());
        for (ir::Block block : fn_.blocks()) {
            for (Inst inst : fn_[block].instructions)
                std::as_const(fn_).each_use(inst, [&](Value value) { users_[index(value)].push_back(inst); });
            ir::Function::each_use(std::as_const(fn_[block].terminator),
                                   [&](Value value) { leaves_[index(value)] = true; });
        }
    }

    /// The comparison that decides it: of the clamped value with the bound.
    Inst comparison(Inst inst) const { return fn_[std::as_const(fn_).operands(inst)[2]].instruction; }

    bool is_clamp(Inst inst) const {
        if (fn_[inst].op != Op::Select || fn_[inst].type != Type::F32 || fn_[inst].guard != ir::no_value) return false;
        const Inst test = comparison(inst);
        if (test == ir::no_inst || fn_[test].type != Type::F32 || fn_[test].guard != ir::no_value) return false;
        if ((fn_[test].op != Op::Lt && fn_[test].op != Op::Gt) || fn_[test].fp.ftz) return false;
        const auto choice = std::as_const(fn_).operands(inst), compared = std::as_const(fn_).operands(test);
        const auto bound = ir::constant(fn_, choice[0]), limit = ir::constant(fn_, compared[1]);
        constexpr Word magnitude = 0x7fffffff, infinity = 0x7f800000;
        // Select and min may give different zeros.
        return choice[1] == compared[0] && bound && bound == limit && (*bound & magnitude) != 0 &&
               (*bound & magnitude) <= infinity;
    }

    bool hides_nan(Value value) const {
        return !leaves_[index(value)] && std::ranges::all_of(users_[index(value)], [&](Inst user) {
            switch (fn_[user].op) {
                case Op::Add:
                case Op::Sub:
                case Op::Mul:
                case Op::Fma:
                case Op::Lt:
                case Op::Le:
                case Op::Gt:
                case Op::Ge: return true;
                default:
                    return is_clamp(user) && std::as_const(fn_).operands(user)[1] == value &&
                           hides_nan(fn_.result(user));
            }
        });
    }

    void become(Inst inst) {
        const Value x = std::as_const(fn_).operands(inst)[1];
        const Word bound = *ir::constant(fn_, std::as_const(fn_).operands(inst)[0]);
        const bool is_lower = fn_[comparison(inst)].op == Op::Lt;
        fn_[inst].op = Op::OpaqueValue;
        fn_[inst].type = Type::Void;
        fn_[inst].attribute =
            fn_.add_text(fmt::format("{}.NaN.f32 {{0}}, {{1}}, 0f{:08X};", is_lower ? "max" : "min", bound));
        fn_.set_operands(inst, {&x, 1});
    }

    ir::Function& fn_;
    std::vector<std::vector<Inst>> users_;  // by value
    std::vector<bool> leaves_;              // by value: whether it is an argument of a jump
};

}  // namespace

Changed fuse_clamps(ir::Function& fn, const ptx::Target& target) {
    return analysis::instructions_if(target.number >= first_target && Clamps(fn).run());
}

}  // namespace ikat::nvptx
