// SPDX-License-Identifier: Apache-2.0
// Branches, calls, barriers and warp-wide instructions, and the table of what lowers each opcode that is run.
#include <fmt/format.h>

#include "runtime/emulator/decode/lowering.hpp"

namespace ikat::emulator {

void Lowering::bra(Form& form, Operands operands) {
    const bool uniform = form.take(".uni");
    const Symbol* const target = find(operands[0].name);
    if (!target || target->kind != Symbol::Kind::Label)
        unsupported(fmt::format("label '{}' is not in reach", module_.text(operands[0].name)));
    const std::uint32_t label = target->label;
    if (current_->guard == nvptx::no_name) return jump_to(label);
    nvptx::Operand guard{.kind = nvptx::Operand::Kind::Symbol};
    guard.name = current_->guard;
    branch_to(label, predicate(guard), current_->guard_negated, uniform);
}

void Lowering::brx(Form& form, Operands operands) {
    form.take(".idx");
    form.take(".uni");
    const Symbol* const table = find(operands[1].name);
    if (!table || table->kind != Symbol::Kind::Table) unsupported("its .branchtargets list is not in reach");
    const Operands targets = module_.operands(table->targets);
    const Value selector = source(operands[0], Type::U32);
    Micro& micro = emit(branch_table, 0, A, {0, index(selector)});
    micro.flow = Flow::Table;
    micro.counts = true;
    micro.label = std::uint32_t(table_labels.size());
    micro.targets = std::uint32_t(targets.size());
    for (const nvptx::Operand& target : targets) {
        const Symbol* const symbol = find(target.name);
        if (!symbol || symbol->kind != Symbol::Kind::Label) unsupported("a branch target is not in reach");
        table_labels.push_back(symbol->label);
    }
}

void Lowering::exit(Form&, Operands) {
    Micro& micro = emit(end_lanes, 0, 0, {});
    micro.flow = Flow::End;
    micro.counts = true;
}

void Lowering::ret(Form& form, Operands operands) {
    form.take(".uni");
    if (return_label_ == ~0u) return exit(form, operands);
    jump_to(return_label_);
}

void Lowering::trap(Form&, Operands) { emit(emulator::trap, 0, 0, {}); }

void Lowering::nanosleep(Form& form, Operands) {
    form.take_type();
    emit(give_way, 0, 0, {});
}

// ---- barriers

void Lowering::bar(Form& form, Operands operands) {
    if (form.take(".warp")) {
        form.take(".sync");
        count_here();
        emit(select_sync_warp(), 0, X, {0, 0, 0, 0, index(source(operands[0], Type::U32))});
        return;
    }
    if (form.take(".cluster")) return cluster_barrier(form);
    form.take(".cta");
    const bool stem_is_bar = current_->opcode == nvptx::Opcode::Bar;
    std::uint32_t bits = form.take(".aligned") || stem_is_bar ? BarrierAligned : 0;
    if (form.take(".arrive")) bits |= BarrierArrive;
    Result d;
    std::size_t at = 0;
    if (form.take(".red")) {
        bits |= BarrierReduce;
        bits |= form.take(".popc") ? BarrierPopc : form.take(".and") ? BarrierAnd : form.take(".or") ? BarrierOr : 0;
        const auto type = form.take_type();
        d = result(operands[at++], type.value_or(Type::U32));
    } else {
        form.take(".sync");
    }
    const Value id = source(operands[at++], Type::U32);
    const std::size_t left = operands.size() - at - (bits & BarrierReduce ? 1 : 0);
    Value threads = id, p = id;
    if (left == 1) {
        threads = source(operands[at++], Type::U32);
        bits |= BarrierCounted;
    }
    if (bits & BarrierReduce) p = predicate(operands[at]);
    count_here();
    std::uint8_t reads = A | B, writes = 0;
    if (bits & BarrierReduce) reads |= C, writes |= D;
    emit(barrier, writes, reads,
         {bits & BarrierReduce ? index(d.at) : 0, index(id), index(threads), bits & BarrierReduce ? index(p) : 0, bits})
        .apart = true;
    if (bits & BarrierReduce) finish(d);
}

// ---- warp-wide

/// The member mask at this place. Without .sync, as files for sm_6x and before have it, members are who is here.
Value Lowering::members_of(Form& form, Operands operands, std::size_t at) {
    if (form.take(".sync")) return source(operands[at], Type::U32);
    const Value here = temporary(4);
    apply(select_active_mask(), here, {});
    return here;
}

/// The sources of all lanes, and the lanes that are in range, as a list of the kernel's.
std::uint32_t Lowering::list_sources(Shuffle mode, std::uint32_t b, std::uint32_t c) {
    const auto at = std::uint32_t(kernel_.lists.size());
    std::uint32_t in_range = 0;
    for (int lane = 0; lane < int(warp_size); ++lane) {
        const ShuffleSource from = shuffle_source(mode, lane, b, c);
        kernel_.lists.push_back(std::uint32_t(from.lane));
        in_range |= std::uint32_t(from.in_range) << lane;
    }
    kernel_.lists.push_back(in_range);
    return at;
}

void Lowering::shfl(Form& form, Operands operands) {
    static const std::unordered_map<std::string_view, Shuffle> modes = {
        {".up", Shuffle::Up}, {".down", Shuffle::Down}, {".bfly", Shuffle::Butterfly}, {".idx", Shuffle::Index}};
    const auto mode = modes.find(form.take_any({".up", ".down", ".bfly", ".idx"}));
    if (mode == modes.end()) unsupported("it does not say which lanes give their values");
    form.take_type();
    const bool pair = operands[0].kind == nvptx::Operand::Kind::Pair;
    const Operands targets = pair ? Operands(module_.operands(operands[0].children)) : operands.one(0);
    const Result d = result(targets[0], Type::U32);
    const Result p = pair ? result(targets[1], Type::Pred) : Result{temporary(0), {}, Type::Pred, false};
    const Value a = source(operands[1], Type::U32), b = source(operands[2], Type::U32),
                c = source(operands[3], Type::U32), members = members_of(form, operands, 4);
    const auto literal = [&](Value value) {
        const ValueInfo& info = values[index(value)];
        return info.kind == ValueInfo::Kind::Constant ? std::optional(std::uint32_t(info.bits)) : std::nullopt;
    };
    if (literal(b) && literal(c) && literal(members) == all_lanes)
        emit(select_known_shuffle(), D | C, A,
             {index(d.at), index(a), list_sources(mode->second, *literal(b), *literal(c)), index(p.at)})
            .counts = true;
    else
        count_here();
    emit(select_shuffle(mode->second), D | Y, A | B | C | X,
         {index(d.at), index(a), index(b), index(c), index(members), index(p.at)})
        .apart = true;
    finish(d);
}

void Lowering::vote(Form& form, Operands operands) {
    const std::string_view mode = form.take_any({".all", ".any", ".uni", ".ballot"});
    const Type type = form.take_type().value_or(Type::Pred);
    const Result d = result(operands[0], type);
    const Value p = predicate(operands[1]), members = members_of(form, operands, 2);
    count_here();
    const Vote kind = mode == ".all"   ? Vote::All
                      : mode == ".any" ? Vote::Any
                      : mode == ".uni" ? Vote::Uniform
                                       : Vote::Ballot;
    emit(select_vote(kind), D, A | X, {index(d.at), index(p), 0, 0, index(members)}).apart = true;
    finish(d);
}

void Lowering::match(Form& form, Operands operands) {
    form.take(".sync");
    const bool all = form.take_any({".all", ".any"}) == ".all";
    const Type type = form.take_type().value_or(Type::U32);
    const bool pair = operands[0].kind == nvptx::Operand::Kind::Pair;
    const Operands targets = pair ? Operands(module_.operands(operands[0].children)) : operands.one(0);
    const Result d = result(targets[0], Type::U32);
    const Result p = pair ? result(targets[1], Type::Pred) : Result{temporary(0), {}, Type::Pred, false};
    const Value a = source(operands[1], type), members = source(operands[2], Type::U32);
    count_here();
    emit(select_match(all, slot_of(type)), all ? D | Y : D, A | X,
         {index(d.at), index(a), 0, 0, index(members), all ? index(p.at) : 0})
        .apart = true;
    finish(d);
}

void Lowering::redux(Form& form, Operands operands) {
    form.take(".sync");
    const std::string_view name = form.take_any({".add", ".min", ".max", ".and", ".or", ".xor"});
    const Type type = form.take_type().value_or(Type::Pred);
    if (type == Type::F32) return redux_floats(form, operands, name);
    if (type != Type::U32 && type != Type::I32) unsupported("redux on this type is not known");
    const bool is_signed = type == Type::I32;
    const Reduction reduction = name == ".add"   ? Reduction::Add
                                : name == ".min" ? (is_signed ? Reduction::MinSigned : Reduction::Min)
                                : name == ".max" ? (is_signed ? Reduction::MaxSigned : Reduction::Max)
                                : name == ".and" ? Reduction::And
                                : name == ".or"  ? Reduction::Or
                                                 : Reduction::Xor;
    const Result d = result(operands[0], type);
    const Value a = source(operands[1], type), members = source(operands[2], Type::U32);
    count_here();
    emit(select_reduction(reduction), D, A | X, {index(d.at), index(a), 0, 0, index(members)}).apart = true;
    finish(d);
}

/// redux.sync.max.abs.NaN.f32
void Lowering::redux_floats(Form& form, Operands operands, std::string_view name) {
    if (name != ".min" && name != ".max") unsupported("redux of .f32 is a .min or a .max");
    const bool magnitude = form.take(".abs"), nan = form.take(".NaN"), least = name == ".min";
    const Result d = result(operands[0], Type::F32);
    Value a = source(operands[1], Type::F32);
    const Value members = source(operands[2], Type::U32);
    if (magnitude) {
        const Value without_sign = temporary(4);
        apply(select_integer(Operation::And, Type::U32), without_sign, {a, constant(0x7fffffff, 4)});
        a = without_sign;
    }
    const Reduction reduction = nan ? (least ? Reduction::MinFloatNan : Reduction::MaxFloatNan)
                                    : (least ? Reduction::MinFloat : Reduction::MaxFloat);
    count_here();
    emit(select_reduction(reduction), D, A | X, {index(d.at), index(a), 0, 0, index(members)}).apart = true;
    finish(d);
}

void Lowering::elect(Form& form, Operands operands) {
    form.take(".sync");
    const Operands targets = module_.operands(operands[0].children);
    const Result d = result(targets[0], Type::U32), p = result(targets[1], Type::Pred);
    const Value members = source(operands[1], Type::U32);
    count_here();
    emit(select_elect(), D | Y, X, {index(d.at), 0, 0, 0, index(members), index(p.at)}).apart = true;
}

void Lowering::activemask(Form& form, Operands operands) {
    form.take_type();
    const Result d = result(operands[0], Type::U32);
    apply(select_active_mask(), d.at, {});
    finish(d);
}

Lowering::Rule Lowering::rule(nvptx::Opcode opcode) {
    using L = Lowering;
    using nvptx::Opcode;
    static constexpr std::pair<Opcode, Rule> rows[] = {
        {Opcode::Add, &L::add},
        {Opcode::Sub, &L::sub},
        {Opcode::Mul, &L::mul},
        {Opcode::Mad, &L::mad},
        {Opcode::Fma, &L::fma},
        {Opcode::Div, &L::simple<Operation::Div>},
        {Opcode::Rem, &L::simple<Operation::Rem>},
        {Opcode::Neg, &L::simple<Operation::Neg>},
        {Opcode::Abs, &L::simple<Operation::Abs>},
        {Opcode::Min, &L::min},
        {Opcode::Max, &L::max},
        {Opcode::Sad, &L::simple<Operation::Sad>},
        {Opcode::Sqrt, &L::simple<Operation::Sqrt>},
        {Opcode::Rsqrt, &L::simple<Operation::Rsqrt>},
        {Opcode::Rcp, &L::simple<Operation::Rcp>},
        {Opcode::Ex2, &L::simple<Operation::Exp2>},
        {Opcode::Lg2, &L::simple<Operation::Log2>},
        {Opcode::Sin, &L::simple<Operation::Sin>},
        {Opcode::Cos, &L::simple<Operation::Cos>},
        {Opcode::Tanh, &L::simple<Operation::Tanh>},
        {Opcode::Copysign, &L::simple<Operation::Copysign>},
        {Opcode::And, &L::logic_and},
        {Opcode::Or, &L::logic_or},
        {Opcode::Xor, &L::logic_xor},
        {Opcode::Not, &L::logic_not},
        {Opcode::Cnot, &L::cnot},
        {Opcode::Shl, &L::shift_left},
        {Opcode::Shr, &L::shift_right},
        {Opcode::Shf, &L::shift_pair},
        {Opcode::Popc, &L::simple<Operation::Popc>},
        {Opcode::Clz, &L::simple<Operation::Clz>},
        {Opcode::Brev, &L::simple<Operation::Brev>},
        {Opcode::Bfind, &L::bfind},
        {Opcode::Bfe, &L::bfe},
        {Opcode::Bfi, &L::bfi},
        {Opcode::Bmsk, &L::bmsk},
        {Opcode::Lop3, &L::lop3},
        {Opcode::Prmt, &L::prmt},
        {Opcode::Mul24, &L::mul24},
        {Opcode::Mad24, &L::mad24},
        {Opcode::Dp4a, &L::dp4a},
        {Opcode::Dp2a, &L::dp2a},
        {Opcode::Testp, &L::testp},
        {Opcode::Addc, &L::addc},
        {Opcode::Subc, &L::subc},
        {Opcode::Madc, &L::madc},
        {Opcode::Setp, &L::setp},
        {Opcode::Set, &L::set},
        {Opcode::Selp, &L::selp},
        {Opcode::Slct, &L::slct},
        {Opcode::Cvt, &L::cvt},
        {Opcode::Mov, &L::mov},
        {Opcode::Cvta, &L::cvta},
        {Opcode::Isspacep, &L::isspacep},
        {Opcode::Ld, &L::ld},
        {Opcode::Ldu, &L::ld},
        {Opcode::St, &L::st},
        {Opcode::Atom, &L::atom},
        {Opcode::Red, &L::red},
        {Opcode::Membar, &L::membar},
        {Opcode::Fence, &L::membar},
        {Opcode::Prefetch, &L::ignored},
        {Opcode::Prefetchu, &L::ignored},
        {Opcode::Fns, &L::fns},
        {Opcode::Szext, &L::szext},
        {Opcode::Vadd, &L::video},
        {Opcode::Vsub, &L::video},
        {Opcode::Vabsdiff, &L::video},
        {Opcode::Vmin, &L::video},
        {Opcode::Vmax, &L::video},
        {Opcode::Vshl, &L::video},
        {Opcode::Vshr, &L::video},
        {Opcode::Vmad, &L::video},
        {Opcode::Vset, &L::video},
        {Opcode::Vadd2, &L::video},
        {Opcode::Vsub2, &L::video},
        {Opcode::Vavrg2, &L::video},
        {Opcode::Vabsdiff2, &L::video},
        {Opcode::Vmin2, &L::video},
        {Opcode::Vmax2, &L::video},
        {Opcode::Vset2, &L::video},
        {Opcode::Vadd4, &L::video},
        {Opcode::Vsub4, &L::video},
        {Opcode::Vavrg4, &L::video},
        {Opcode::Vabsdiff4, &L::video},
        {Opcode::Vmin4, &L::video},
        {Opcode::Vmax4, &L::video},
        {Opcode::Vset4, &L::video},
        {Opcode::Discard, &L::ignored},
        {Opcode::Applypriority, &L::ignored},
        {Opcode::Griddepcontrol, &L::ignored},
        {Opcode::Createpolicy, &L::createpolicy},
        {Opcode::Istypep, &L::istypep},
        {Opcode::Mapa, &L::mapa},
        {Opcode::Getctarank, &L::getctarank},
        {Opcode::Brkpt, &L::ignored},
        {Opcode::Pmevent, &L::ignored},
        {Opcode::Bra, &L::bra},
        {Opcode::Brx, &L::brx},
        {Opcode::Ret, &L::ret},
        {Opcode::Exit, &L::exit},
        {Opcode::Trap, &L::trap},
        {Opcode::Nanosleep, &L::nanosleep},
        {Opcode::Call, &L::call},
        {Opcode::Alloca, &L::alloca_},
        {Opcode::Stacksave, &L::stacksave},
        {Opcode::Stackrestore, &L::stackrestore},
        {Opcode::Bar, &L::bar},
        {Opcode::Barrier, &L::bar},
        {Opcode::Shfl, &L::shfl},
        {Opcode::Vote, &L::vote},
        {Opcode::Match, &L::match},
        {Opcode::Redux, &L::redux},
        {Opcode::Elect, &L::elect},
        {Opcode::Activemask, &L::activemask},
    };
    static constexpr auto by_opcode = [] {
        std::array<Rule, nvptx::opcode_count> made{};
        for (const auto& [each, rule] : rows) made[std::size_t(each)] = rule;
        return made;
    }();
    return by_opcode[std::size_t(opcode)];
}

}  // namespace ikat::emulator
