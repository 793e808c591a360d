// SPDX-License-Identifier: Apache-2.0
// Moves between registers, also of parts and of vectors, and between address spaces.
#include "runtime/emulator/decode/rules/rules.hpp"

namespace ikat::emulator {

namespace {

/// mov.b64 d, {a, b} and others: the first element is the lowest.
void pack(Lowering& code, Type type, const ptx::Operand& to, const ptx::Operand& from) {
    const Operands parts = code.module.operands(from.children);
    const unsigned bytes = ir::info(type).bytes;
    const Result d = code.result(to, type);
    const auto part = [&](unsigned i, Type of) { return code.source(parts[i], of); };
    if (parts.size() == 2 && bytes >= 4) {
        const Type of = bytes == 8 ? Type::U32 : Type::U16;
        code.apply(select_pack(bytes), d.at, {part(0, of), part(1, of)});
    } else if (parts.size() == 4 && bytes == 8) {
        const VReg low = code.temporary(4), high = code.temporary(4);
        code.apply(select_pack(4), low, {part(0, Type::U16), part(1, Type::U16)});
        code.apply(select_pack(4), high, {part(2, Type::U16), part(3, Type::U16)});
        code.apply(select_pack(8), d.at, {low, high});
    } else if (bytes <= 4 && parts.size() == bytes) {
        VReg whole = code.constant(0, 4);
        for (unsigned i = 0; i < bytes; ++i) {
            const VReg byte = code.temporary(4), shifted = code.temporary(4), sum = code.temporary(4);
            code.apply(select_convert(Type::U32, Type::U8, {}, false), byte, {part(i, Type::U8)});
            code.apply(select_integer(Op::Shl, Type::U32), shifted, {byte, code.constant(8 * i, 4)});
            code.apply(select_integer(Op::Or, Type::U32), sum, {whole, shifted});
            whole = sum;
        }
        code.apply(select_move(4, 4), d.at, {whole});
    } else {
        code.unsupported("this number of parts is not supported here");
    }
    code.finish(d);
}

void unpack(Lowering& code, Type type, const ptx::Operand& to, const ptx::Operand& from) {
    const Operands parts = code.module.operands(to.children);
    const unsigned bytes = ir::info(type).bytes;
    const bool into_bytes = bytes <= 4 && parts.size() == bytes;
    if (!into_bytes && (bytes < 4 || (parts.size() != 2 && !(parts.size() == 4 && bytes == 8))))
        code.unsupported("this number of parts is not supported here");
    // The source may be one of the parts.
    const std::uint8_t slot = slot_of(type);
    const VReg whole = code.temporary(slot);
    code.apply(select_move(slot, slot), whole, {code.source(from, type)});
    const auto each = unsigned(bytes / parts.size());
    for (unsigned i = 0; i < parts.size(); ++i) {
        const Type of = each == 4 ? Type::U32 : each == 2 ? Type::U16 : Type::U8;
        const Result d = code.result(parts[i], of);
        const VReg shifted = code.temporary(slot);
        code.apply(select_integer(Op::Shr, type), shifted, {whole, code.constant(i * each * 8, 4)});
        VReg low = code.resized(shifted, 4);
        if (each < 4) {
            const VReg field = code.temporary(4);
            code.apply(select_convert(Type::U32, of, {}, false), field, {low});
            low = field;
        }
        code.apply(select_move(4, 4), d.at, {low});
        code.finish(d);
    }
}

/// mov.b128 between registers, or between one and its halves.
void mov128(Lowering& code, const ptx::Operand& to, const ptx::Operand& from) {
    const auto halves = [&](const ptx::Operand& operand) {
        return operand.kind == ptx::Operand::Kind::Vector ? Operands(code.module.operands(operand.children))
                                                          : Operands();
    };
    std::vector<VReg> words;
    if (const Operands parts = halves(from); !parts.empty())
        words = {code.source(parts[0], Type::U64), code.source(parts[1], Type::U64)};
    else
        words = double_words(code, from);
    const VReg low = code.temporary(8), high = code.temporary(8);
    code.apply(select_move(8, 8), low, {words[0]});
    code.apply(select_move(8, 8), high, {words[1]});
    if (const Operands parts = halves(to); !parts.empty()) {
        for (std::size_t i = 0; i < 2; ++i) {
            const Result d = code.result(parts[i], Type::U64);
            code.apply(select_move(8, 8), d.at, {i ? high : low});
            code.finish(d);
        }
        return;
    }
    const std::vector<VReg> target = double_words(code, to);
    code.apply(select_move(8, 8), target[0], {low});
    code.apply(select_move(8, 8), target[1], {high});
}

/// mov.v2 and mov.v4: everything is read before anything is written.
void mov_vector(Lowering& code, Modifiers& modifiers, Type type, const ptx::Operand& to, const ptx::Operand& from) {
    const Operands targets = code.module.operands(to.children);
    const unsigned count = modifiers.take_vector();
    std::vector<VReg> sources;
    if (const auto special = special_vector(code.module, from))
        for (const Special& each : *special) sources.push_back(code.resized(code.special(each), slot_of(type)));
    else
        for (const ptx::Operand& each : code.module.operands(from.children)) sources.push_back(code.source(each, type));
    if (count == 1 || targets.size() != count || sources.size() != targets.size())
        code.unsupported("the vectors' lengths are not that of the move");
    const std::uint8_t slot = slot_of(type);
    std::vector<VReg> old;
    for (const VReg source : sources) {
        old.push_back(code.temporary(slot));
        code.apply(select_move(slot, slot), old.back(), {source});
    }
    for (std::size_t i = 0; i < targets.size(); ++i) {
        const Result d = code.result(targets[i], type);
        code.apply(select_move(slot, slot), d.at, {old[i]});
        code.finish(d);
    }
}

void mov(Lowering& code, Modifiers& modifiers, Operands operands) {
    if (modifiers.take(Modifier::B128)) return mov128(code, operands[0], operands[1]);
    const auto type = modifiers.take_type();
    if (!type) code.unsupported("its type is not supported");
    if (operands[1].kind == ptx::Operand::Kind::Vector) {
        if (operands[0].kind == ptx::Operand::Kind::Vector)
            return mov_vector(code, modifiers, *type, operands[0], operands[1]);
        return pack(code, *type, operands[0], operands[1]);
    }
    if (operands[0].kind == ptx::Operand::Kind::Vector) {
        if (special_vector(code.module, operands[1]))
            return mov_vector(code, modifiers, *type, operands[0], operands[1]);
        return unpack(code, *type, operands[0], operands[1]);
    }
    const Result d = code.result(operands[0], *type);
    const VReg from = code.source(operands[1], *type);
    const VRegInfo& info = code.values[index(from)];
    const std::uint8_t slot = slot_of(*type);
    if (slot == 0) {
        if (info.kind == VRegInfo::Kind::Constant)
            code.emit(select_predicate(Op::Const), D, 0, {index(d.at), 0, 0, 0, info.bits ? 1u : 0u});
        else
            code.apply(select_predicate(Op::Bitcast), d.at, {from});
    } else if (info.kind == VRegInfo::Kind::Constant) {
        code.emit(select_literal(slot), D, 0,
                  {index(d.at), 0, 0, 0, std::uint32_t(info.bits), std::uint32_t(info.bits >> 32)});
    } else {
        code.apply(select_move(slot, slot), d.at, {from});
    }
    code.finish(d);
}

/// Global addresses are already generic; those of the windows are at a fixed offset.
void cvta(Lowering& code, Modifiers& modifiers, Operands operands) {
    const bool to = modifiers.take(Modifier::To);
    const Space space = modifiers.take_space();
    modifiers.take_type();
    const Result d = code.result(operands[0], Type::U64);
    const VReg a = code.source(operands[1], Type::U64);
    const std::uint64_t window = space == Space::Global    ? 0
                                 : space == Space::Cluster ? window_address(Space::Shared)
                                                           : window_address(space);
    code.apply(select_integer(Op::Add, Type::U64), d.at, {a, code.constant(to ? 0 - window : window, 8)});
    code.finish(d);
}

void isspacep(Lowering& code, Modifiers& modifiers, Operands operands) {
    const Space space = modifiers.take_space();
    const Result p = code.result(operands[0], Type::Pred);
    const VReg address = code.source(operands[1], Type::U64);
    if (space == Space::Shared) return code.apply({is_own_shared, {OwnOp::IsOwnShared}}, p.at, {address});
    const VReg id = code.temporary(8);
    code.apply(select_integer(Op::Shr, Type::U64), id, {address, code.constant(window_bits, 4)});
    const bool global = space == Space::Global;
    const auto window = std::uint64_t(space == Space::Cluster ? Space::Shared : space);
    code.apply(select_compare(global ? Comparison::Gt : Comparison::Eq, Type::U64, false), p.at,
               {id, code.constant(global ? std::uint64_t(Space::Const) : window, 8)});
}

constexpr RuleRow move_rows[] = {
    {"mov", mov},
    {"cvta", cvta},
    {"isspacep", isspacep},
};

}  // namespace

constinit const Family move_family{move_rows};

}  // namespace ikat::emulator
