// SPDX-License-Identifier: Apache-2.0
// Splits vectors of more elements than the target supports: 16 bytes of 8- or 16-bit elements become four words, 8
// bytes of 8-bit elements two.
//
//     %1 … %8 = load.f16.v8 [%p]      ==>  %a, %b, %c, %d = load.u32.v4 [%p]
//                                          %1, %2 = unpack.f16x2 %a   …
//     store.u8.v8 [%p], %1 … %8       ==>  %l = permute_bytes %1, %2;  %h = permute_bytes %3, %4
//                                          %a = permute_bytes %l, %h   …   store.u32.v2 [%p], %a, %b
//
// Needs: typed instructions, before they are made legal. Bytes are passed on in 32-bit registers, as legal.cpp wants
// them.
#include "codegen/ir/edit/rewriter.hpp"
#include "codegen/legalise/legalise.hpp"

namespace ikat::legalise {
namespace {

using ir::Inst, ir::Instruction, ir::Op, ir::Type, ir::Value;

class Vectors {
public:
    Vectors(ir::Function& fn, unsigned max_elements) : fn_(fn), walk_(fn), max_elements_(max_elements) {}

    bool run() {
        walk_.run([this](Inst inst) { rewrite(inst); });
        return walk_.changed();
    }

private:
    void rewrite(Inst inst) {
        const Instruction& it = fn_[inst];
        const bool is_long = it.memory.count > max_elements_ && bits(it.type) < 32;
        if (is_long && it.op == Op::Load) return load(inst);
        if (is_long && it.op == Op::Store) return store(inst);
        walk_.keep(inst);
    }

    void load(Inst inst) {
        const Instruction it = fn_[inst];
        const std::vector<Value> elements(fn_.results(inst).begin(), fn_.results(inst).end());
        const unsigned in_word = 4 / info(it.type).bytes, words = it.memory.count / in_word;
        std::vector<Value> operands{std::as_const(fn_).operands(inst)[0]};
        for (unsigned w = 0; it.tie.count && w < words; ++w)
            operands.push_back(joined(inst, it.tie.operand + w * in_word));
        Instruction wide = it;
        wide.type = Type::U32;
        wide.memory.count = std::uint8_t(words);
        wide.tie.count = it.tie.count ? std::uint16_t(words) : std::uint16_t(0);
        const Inst loaded = fn_.append(walk_.block(), wide, operands, std::vector(words, Type::U32));
        for (unsigned w = 0; w < words; ++w)
            take_apart(it, fn_.results(loaded)[w], std::span(elements).subspan(w * in_word, in_word));
    }

    void take_apart(const Instruction& load, Value word, std::span<const Value> elements) {
        if (bits(load.type) == 16) {
            const Instruction unpack{.op = Op::Unpack, .type = pair_of(load.type), .where = load.where};
            const Inst both = fn_.append(walk_.block(), unpack, {&word, 1}, std::array{load.type, load.type});
            for (unsigned i = 0; i < 2; ++i) walk_.replace(elements[i], fn_.results(both)[i]);
            return;
        }
        const Type type = load.type == Type::I8 ? Type::I32 : Type::U32;
        for (unsigned i = 0; i < 4; ++i) {
            const Value position = walk_.constant(Type::U32, 8 * i, load.where);
            const Value length = walk_.constant(Type::U32, 8, load.where);
            const Instruction extract{.op = Op::ExtractBits, .type = type, .where = load.where};
            walk_.replace(elements[i], walk_.make(extract, {word, position, length}, load.type));
        }
    }

    void store(Inst inst) {
        const Instruction it = fn_[inst];
        const unsigned in_word = 4 / info(it.type).bytes, words = it.memory.count / in_word;
        std::vector<Value> operands{std::as_const(fn_).operands(inst)[0]};
        for (unsigned w = 0; w < words; ++w) operands.push_back(joined(inst, 1 + w * in_word));
        Instruction& wide = walk_.edit(inst);
        wide.type = Type::U32;
        wide.memory.count = std::uint8_t(words);
        fn_.set_operands(inst, operands);
        walk_.keep(inst);
    }

    /// The word made of the operands from `first` on.
    Value joined(Inst inst, std::uint32_t first) {
        const Location where = fn_[inst].where;
        const auto operand = [&](std::uint32_t i) { return std::as_const(fn_).operands(inst)[first + i]; };
        if (bits(fn_[inst].type) == 16) {
            const Type pair = pair_of(fn_[inst].type);
            return walk_.make({.op = Op::Pack, .type = pair, .where = where}, {operand(0), operand(1)}, pair);
        }
        const Value low = permuted(byte(operand(0)), byte(operand(1)), 0x0040, where);
        const Value high = permuted(byte(operand(2)), byte(operand(3)), 0x0040, where);
        return permuted(low, high, 0x5410, where);
    }
    Value permuted(Value a, Value b, ir::Word selector, const Location& where) {
        const Value choice = walk_.constant(Type::U32, selector, where);
        return walk_.make({.op = Op::PermuteBytes, .type = Type::U32, .where = where}, {a, b, choice}, Type::U32);
    }
    /// Only the lowest byte of the result is used, so it need not be wrapped.
    Value byte(Value value) const {
        const Instruction* wrap = walk_.defined_by(value, Op::Convert);
        const bool from_word = wrap && contains(ir::ByteInt, wrap->type) && contains(ir::Word32, wrap->from);
        return from_word && !wrap->fp.sat ? walk_.operand(value, 0) : value;
    }
    static Type pair_of(Type type) { return type == Type::BF16 ? Type::BF16x2 : Type::F16x2; }

    ir::Function& fn_;
    ir::Rewriter walk_;
    unsigned max_elements_;  // elements that the target supports
};

}  // namespace

analysis::Changed split_vectors(ir::Function& fn, const Target& target) {
    return analysis::instructions_if(Vectors(fn, target.vector_elements).run());
}

}  // namespace ikat::legalise
