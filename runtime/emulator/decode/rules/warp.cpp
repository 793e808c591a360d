// SPDX-License-Identifier: Apache-2.0
// Warp-wide instructions.
#include <fmt/format.h>

#include <algorithm>

#include "runtime/emulator/decode/rules/rules.hpp"

namespace ikat::emulator {

namespace {

/// The member mask of this operand. Without .sync, in files for sm_6x and earlier, the members are the active lanes.
VReg members_of(Lowering& code, Modifiers& modifiers, Operands operands, std::size_t at) {
    if (modifiers.take(Modifier::Sync)) return code.source(operands[at], Type::U32);
    const VReg here = code.temporary(4);
    code.apply(select_active_mask(), here, {});
    return here;
}

/// The number of these sources among the kernel's shuffles; equal ones are shared.
std::uint32_t number_of_sources(Lowering& code, Shuffle mode, std::uint32_t b, std::uint32_t c) {
    ShuffleSources sources{};
    for (int lane = 0; lane < int(warp_size); ++lane) {
        const ShuffleSource from = shuffle_source(mode, lane, b, c);
        sources.lanes[lane] = std::uint32_t(from.lane);
        sources.in_range |= std::uint32_t(from.in_range) << lane;
    }
    std::vector<ShuffleSources>& all = code.kernel.shuffles;
    const auto found = std::ranges::find(all, sources);
    const auto at = std::uint32_t(found - all.begin());
    if (found == all.end()) all.push_back(sources);
    return at;
}

void shfl(Lowering& code, Modifiers& modifiers, Operands operands) {
    static constexpr std::pair<Modifier, Shuffle> modes[] = {{Modifier::Up, Shuffle::Up},
                                                             {Modifier::Down, Shuffle::Down},
                                                             {Modifier::Bfly, Shuffle::Butterfly},
                                                             {Modifier::Idx, Shuffle::Index}};
    const auto mode = modifiers.take_named(modes);
    if (!mode) code.unsupported("it does not say which lanes give their values");
    modifiers.take_type();
    const bool pair = operands[0].kind == ptx::Operand::Kind::Pair;
    const Operands targets = pair ? Operands(code.module.operands(operands[0].children)) : operands.one(0);
    const Result d = code.result(targets[0], Type::U32);
    const Result p = pair ? code.result(targets[1], Type::Pred) : Result{code.temporary(0), {}, Type::Pred, false};
    const VReg a = code.source(operands[1], Type::U32), b = code.source(operands[2], Type::U32),
               c = code.source(operands[3], Type::U32), members = members_of(code, modifiers, operands, 4);
    const auto literal = [&](VReg value) {
        const VRegInfo& info = code.values[index(value)];
        return info.kind == VRegInfo::Kind::Constant ? std::optional(std::uint32_t(info.bits)) : std::nullopt;
    };
    Micro shuffle = micro_of(select_shuffle(*mode));
    shuffle.fields = {index(d.at), index(a), index(b), index(c), index(members), index(p.at)};
    shuffle.writes = D | Y;
    shuffle.reads = A | B | C | X;
    shuffle.apart = true;
    Neighbours neighbours;
    if (literal(b) && literal(c) && literal(members) == all_lanes) {
        Micro& known = neighbours.before.emplace(micro_of(select_known_shuffle()));
        known.fields = {index(d.at), index(a), number_of_sources(code, *mode, *literal(b), *literal(c)), index(p.at)};
        known.writes = D | C;
        known.reads = A;
        known.counts = true;
    } else {
        code.count_here();
    }
    code.emit(shuffle, neighbours);
    code.finish(d);
}

void vote(Lowering& code, Modifiers& modifiers, Operands operands) {
    const Modifier mode = modifiers.take_any({Modifier::All, Modifier::Any, Modifier::Uni, Modifier::Ballot});
    const Type type = modifiers.take_type().value_or(Type::Pred);
    const Result d = code.result(operands[0], type);
    const VReg p = code.predicate(operands[1]), members = members_of(code, modifiers, operands, 2);
    code.count_here();
    const Vote kind = mode == Modifier::All   ? Vote::All
                      : mode == Modifier::Any ? Vote::Any
                      : mode == Modifier::Uni ? Vote::Uniform
                                              : Vote::Ballot;
    code.emit(select_vote(kind), D, A | X, {index(d.at), index(p), 0, 0, index(members)}).apart = true;
    code.finish(d);
}

void match_lanes(Lowering& code, Modifiers& modifiers, Operands operands) {
    modifiers.take(Modifier::Sync);
    const bool all = modifiers.take_any({Modifier::All, Modifier::Any}) == Modifier::All;
    const Type type = modifiers.take_type().value_or(Type::U32);
    const bool pair = operands[0].kind == ptx::Operand::Kind::Pair;
    const Operands targets = pair ? Operands(code.module.operands(operands[0].children)) : operands.one(0);
    const Result d = code.result(targets[0], Type::U32);
    const Result p = pair ? code.result(targets[1], Type::Pred) : Result{code.temporary(0), {}, Type::Pred, false};
    const VReg a = code.source(operands[1], type), members = code.source(operands[2], Type::U32);
    code.count_here();
    code.emit(select_match(all, slot_of(type)), all ? D | Y : D, A | X,
              {index(d.at), index(a), 0, 0, index(members), all ? index(p.at) : 0})
        .apart = true;
    code.finish(d);
}

void redux(Lowering& code, Modifiers& modifiers, Operands operands) {
    modifiers.take(Modifier::Sync);
    const Modifier name =
        modifiers.take_any({Modifier::Add, Modifier::Min, Modifier::Max, Modifier::And, Modifier::Or, Modifier::Xor});
    const Type type = modifiers.take_type().value_or(Type::Pred);
    if (type == Type::F32) code.unsupported("redux of .f32 needs .min or .max");
    if (type != Type::U32 && type != Type::I32) code.unsupported("redux of this type is not supported");
    const bool is_signed = type == Type::I32;
    const Reduction reduction = name == Modifier::Add   ? Reduction::Add
                                : name == Modifier::Min ? (is_signed ? Reduction::MinSigned : Reduction::Min)
                                : name == Modifier::Max ? (is_signed ? Reduction::MaxSigned : Reduction::Max)
                                : name == Modifier::And ? Reduction::And
                                : name == Modifier::Or  ? Reduction::Or
                                                        : Reduction::Xor;
    const Result d = code.result(operands[0], type);
    const VReg a = code.source(operands[1], type), members = code.source(operands[2], Type::U32);
    code.count_here();
    code.emit(select_reduction(reduction), D, A | X, {index(d.at), index(a), 0, 0, index(members)}).apart = true;
    code.finish(d);
}

/// redux.sync.max.abs.NaN.f32
void redux_floats(Lowering& code, Modifiers& modifiers, Operands operands) {
    modifiers.take(Modifier::Sync);
    const Modifier name = modifiers.take_any({Modifier::Min, Modifier::Max});
    modifiers.take(Modifier::F32);
    if (name == Modifier::Unknown) code.unsupported("redux of .f32 needs .min or .max");
    const bool magnitude = modifiers.take(Modifier::Abs), nan = modifiers.take(Modifier::NaN),
               is_min = name == Modifier::Min;
    const Result d = code.result(operands[0], Type::F32);
    VReg a = code.source(operands[1], Type::F32);
    const VReg members = code.source(operands[2], Type::U32);
    if (magnitude) {
        const VReg without_sign = code.temporary(4);
        code.apply(select_integer(Op::And, Type::U32), without_sign, {a, code.constant(0x7fffffff, 4)});
        a = without_sign;
    }
    const Reduction reduction = nan ? (is_min ? Reduction::MinFloatNan : Reduction::MaxFloatNan)
                                    : (is_min ? Reduction::MinFloat : Reduction::MaxFloat);
    code.count_here();
    code.emit(select_reduction(reduction), D, A | X, {index(d.at), index(a), 0, 0, index(members)}).apart = true;
    code.finish(d);
}

void elect(Lowering& code, Modifiers& modifiers, Operands operands) {
    modifiers.take(Modifier::Sync);
    const Operands targets = code.module.operands(operands[0].children);
    const Result d = code.result(targets[0], Type::U32), p = code.result(targets[1], Type::Pred);
    const VReg members = code.source(operands[1], Type::U32);
    code.count_here();
    code.emit(select_elect(), D | Y, X, {index(d.at), 0, 0, 0, index(members), index(p.at)}).apart = true;
}

void activemask(Lowering& code, Modifiers& modifiers, Operands operands) {
    modifiers.take_type();
    const Result d = code.result(operands[0], Type::U32);
    Behaviour behaviour = select_active_mask();
    behaviour.info.effects = Changes;  // it depends on how lanes were scheduled
    code.apply(behaviour, d.at, {});
    code.finish(d);
}

constexpr RuleRow warp_rows[] = {
    {"shfl", shfl},
    {"vote", vote},
    {"match", match_lanes},
    {"redux", redux},
    {"redux", "f32", redux_floats},
    {"elect", elect},
    {"activemask", activemask},
};

}  // namespace

constinit const Family warp_family{warp_rows};

}  // namespace ikat::emulator
