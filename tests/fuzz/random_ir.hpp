// SPDX-License-Identifier: Apache-2.0
// Random well-formed kernels with structured control flow, for properties that must hold for any IR: printed text
// parses back, a pass changes no result, two ways to run a kernel agree.
//
//     kernel @random(%in: in u32*, %out: inout u32*, %a: u32, %b: f32, …)
//
// Every pure op of the table at every type of its domain, constants at the edges of their types, if/else and loops of
// bounded trip count with values carried in block arguments, selects, loads and stores (vector and guarded, too), and
// on request every operation that other threads see or take part in. Each thread works in its own slice of %out:
// slice_bytes from %out + tid.x * slice_bytes. %in is only read. At the end a sample of all values is stored.
#pragma once
#include <functional>
#include <utility>
#include <vector>

#include "tests/fuzz/random_values.hpp"

namespace ikat::test {

struct RandomIrOptions {
    int statements = 60;    // approximately
    int depth = 3;          // of nested control flow
    bool modifiers = true;  // rounding, ftz, sat, approx on some instructions
    bool float64 = true, half = true;
    bool convergent = false;  // shuffles and votes of a full warp, outside divergent control flow
    /// With `convergent`: also votes and matches of the lanes on one path, exchanges through shared memory between
    /// barriers, atomics on the thread's own slice, and an early return of some threads. For two warps that run in any
    /// order.
    bool together = false;
    bool effects = false;  // everything else in the table, anywhere: atomics, fences, barriers, ordered accesses, …
    /// Instances of rule patterns among the pure operations (patterns.hpp).
    std::function<ir::Value(ir::Builder&, std::uint32_t, const std::function<ir::Value(ir::Type)>&,
                            const std::function<ir::Value(ir::Type)>&)>
        pattern{};
};

class RandomIr : public RandomValues {
public:
    static constexpr std::uint32_t samples = 32;  // of values, at the end
    static constexpr std::uint32_t slice_bytes = (slots + samples) * slot_bytes;
    static constexpr std::uint32_t in_bytes = slice_bytes;
    static constexpr std::uint32_t block_threads = 64;  // of a launch, for what threads do together

    RandomIr(std::uint32_t seed, RandomIrOptions options = {})
        : RandomValues(seed, allowed(options)), options_(options) {}

    ir::Function operator()() {
        signature();
        favourite_ = type_in(ir::AnyNum | ir::Packed);
        for (int i = 0; i < 4; ++i) palette_.push_back(computing_op());
        prologue();
        budget_ = options_.statements;
        while (budget_ > 0) {
            region(options_.depth);
            if (options_.together && divergent_ == 0 && one_in(4)) return_early();
        }
        epilogue();
        return std::move(fn_);
    }

private:
    static ir::TypeSet allowed(const RandomIrOptions& options) {
        ir::TypeSet out = ~ir::TypeSet{0};
        if (!options.float64) out &= ~ir::set(Type::F64);
        if (!options.half) out &= ~(ir::set(Type::F16, Type::BF16) | ir::Packed | ir::Float8 | ir::PackedFloat8);
        return out;
    }

    void signature() {
        fn_.name = "random";
        fn_.parameters = {{.name = "in", .access = ir::Access::In, .element = Type::U32},
                          {.name = "out", .access = ir::Access::InOut, .element = Type::U32},
                          {.name = "a", .type = Type::U32},
                          {.name = "b", .type = Type::F32},
                          {.name = "c", .type = Type::I64}};
    }
    void prologue() {
        in_ = build_.leaf(Op::Param, Type::U64, 0);
        const Value out = build_.leaf(Op::Param, Type::U64, 1);
        thread_ = build_.leaf(Op::Special, Type::U32, Word(ir::SpecialRegister::TidX));
        Value number = thread_;
        if (options_.together) {
            members_ = build_.constant(Type::U32, 0xffffffff);
            const Value block = build_.leaf(Op::Special, Type::U32, Word(ir::SpecialRegister::CtaidX));
            number = build_.make(Op::Fma, Type::U32, {block, build_.constant(Type::U32, block_threads), thread_});
            fn_.symbols = {{.name = "exchange",
                            .space = ir::Space::Shared,
                            .element = Type::U32,
                            .count = block_threads,
                            .alignment = 4}};
        }
        slice_ = build_.make(Op::MadWide, Type::U32, {number, build_.constant(Type::U32, slice_bytes), out});
        add(thread_);
        for (std::uint32_t p = 2; p < fn_.parameters.size(); ++p)
            add(build_.leaf(Op::Param, fn_.parameters[p].type, p));
        for (int t = 1; t < ir::type_count; ++t)
            if (ir::contains(ir::Storable & allowed_, Type(t)))
                for (int n = 0; n < 2; ++n) {
                    ir::Instruction inst = access(Op::Load, Type(t));
                    inst.memory.offset = std::int32_t(slot_bytes * pick(slots));
                    add(build_.make(inst, std::array{in_}));
                }
    }
    void epilogue() {
        for (std::uint32_t slot = slots; slot < slots + samples; ++slot) {
            const Type type = type_in(ir::Storable);
            if (has(type)) store(type, some(type), slot * slot_bytes);
        }
        build_.terminate(ir::Terminator::Kind::Return);
    }

    // Statements.
    void region(int depth) {
        for (int n = 2 + int(pick(8)); n > 0 && budget_ > 0; --n) statement(depth);
    }
    void statement(int depth) {
        --budget_;
        if (options_.effects && one_in(6)) return effect();
        if (options_.together && one_in(8)) return one_in(2) ? exchange() : own_atomic();
        switch (pick(depth > 0 ? 14 : 11)) {
            case 0:
            case 1: return load();
            case 2:
            case 3: return store_somewhere();
            case 4: return meet_in_memory();
            case 11:
            case 12: return if_else(depth);
            case 13: return loop(depth);
            default: return pure();
        }
    }

    Op computing_op() {
        Op op{};
        do op = Op(pick(ir::op_count));
        while (!ir::effects(op).none() || ir::info(op).shape.arity() == 0 || op == Op::Peer);  // it needs a cluster
        return op;
    }
    Word mode(Op op) {
        Word mode = 0;
        do mode = pick(8);
        while (ir::mode_name(op, mode).empty());
        return mode;
    }
    void pure() {
        if (options_.convergent && one_in(8)) return convergent();
        if (options_.pattern && one_in(3)) return add(matched());
        const Op op = one_in(3) ? computing_op() : any_of(palette_);
        const ir::OpInfo& row = ir::info(op);
        ir::Instruction inst{.op = op, .type = type_in(row.domain)};
        if (row.from != 0 && !conversion(inst)) return;
        if (row.attribute == ir::Attribute::Table) inst.attribute = pick(256);
        if (row.attribute == ir::Attribute::Mode) inst.attribute = mode(op);
        if (row.attribute == ir::Attribute::Address)
            inst.attribute = ir::pack(ir::AddressForm{1u << pick(5), std::int32_t(pick(64)) - 32});
        if (options_.modifiers && one_in(6)) modify(inst);
        std::vector<Value> operands;
        for (std::uint32_t i = 0; i < row.shape.arity(); ++i)
            operands.push_back(operand(ir::at(row.shape.arguments[i], inst.type, inst.from)));
        if (operands.size() > 1 && fn_.type(operands[0]) == fn_.type(operands[1]) && one_in(8))
            operands[1] = operands[0];
        const ir::Inst made = fn_[build_.make(inst, operands)].instruction;
        for (Value result : std::as_const(fn_).results(made)) add(result);
    }
    Value matched() {
        return options_.pattern(
            build_, any_number(), [&](Type type) { return some(type); },
            [&](Type type) { return build_.constant(type, edge(type)); });
    }
    bool conversion(ir::Instruction& inst) {
        inst.from = type_in(ir::info(inst.op).from);
        if (inst.op == Op::Convert) {
            if (ir::is_float(inst.from) && !ir::is_float(inst.type)) inst.fp.rounding = Rounding::Zero;
            return ir::converts(inst.type, inst.from);
        }
        return inst.op != Op::Bitcast || ir::bits(inst.from) == ir::bits(inst.type);
    }
    void modify(ir::Instruction& inst) {
        const ir::Modifier allowed = ir::info(inst.op).modifiers;
        const bool narrow = inst.type == Type::F32;
        if (inst.op == Op::Convert || !(narrow || inst.type == Type::F64)) return;
        switch (pick(4)) {
            case 0:
                if (allowed & ir::Rounds) inst.fp.rounding = Rounding(pick(4));
                break;
            case 1: inst.fp.ftz = (allowed & ir::Ftz) && narrow; break;
            case 2: inst.fp.sat = (allowed & ir::Sat) && narrow; break;
            default: inst.fp.approx = (allowed & ir::Approx) && narrow;
        }
        if (inst.fp.approx) inst.fp.rounding = Rounding::Nearest;
    }

    void convergent() {
        if (options_.together && members_ != ir::no_value && (divergent_ > 0 || one_in(2))) return among_members();
        if (divergent_ > 0) return;
        const Value members = build_.constant(Type::U32, 0xffffffff);
        const Type type = type_in(ir::info(Op::Shuffle).domain);
        if (one_in(2))
            return add(build_.make({.op = Op::Ballot, .type = Type::U32}, std::array{some(Type::Pred), members}));
        const std::array operands{some(type), build_.constant(Type::U32, pick(32)), build_.constant(Type::U32, 31),
                                  members};
        add(build_.make({.op = Op::Shuffle, .type = type, .attribute = Word(ir::ShuffleMode::Xor)}, operands));
    }

    // Operations that other threads see or take part in: any such row of the table, or a load or store that is not
    // weak.
    void effect() {
        const auto op = Op(pick(ir::op_count));
        const ir::OpInfo& row = ir::info(op);
        const ir::Effects does = ir::effects(op);
        if (row.shape.variadic || does.none() || does.in_flight() || one_in(4)) return ordered_access();
        if (op == Op::Load || op == Op::Store) return ordered_access();
        ir::Instruction inst{.op = op, .type = type_in(row.domain)};
        if (row.domain == ir::set(Type::Void)) inst.type = Type::Void;
        switch (row.attribute) {
            case ir::Attribute::Special:
                inst.attribute = Word(ir::SpecialRegister::Clock);
                inst.type = Type::U32;
                break;
            case ir::Attribute::Barrier: {
                const ir::BarrierForm form{.kind = ir::BarrierForm::Kind(pick(std::size(ir::BarrierForm::names)))};
                inst.attribute = ir::pack(form);
                inst.type = form.type();
                break;
            }
            case ir::Attribute::Fence:
                inst.attribute = ir::pack(ir::FenceForm{ir::FenceOrder(pick(2)), ir::Scope(1 + pick(4))});
                break;
            case ir::Attribute::Mbarrier:
                do inst.attribute = pick(std::size(ir::MbarrierForm::names));
                while (!ir::unpack<ir::MbarrierForm>(inst.attribute).exists());
                inst.type = Type::U32;
                break;
            case ir::Attribute::Registers: inst.attribute = ir::pack(ir::RegistersForm{}); break;
            case ir::Attribute::Bulk:
                inst.attribute = *ir::attribute_named(op, "load.2d");
                inst.type = Type::Void;
                break;
            case ir::Attribute::Wgmma:
                inst.attribute = *ir::attribute_named(op, "m64n16k16.f16.f16.f32.overwrite");
                inst.type = Type::F32;
                break;
            case ir::Attribute::Matrix:
                inst.attribute = *ir::attribute_named(op, "m16n8k8.tf32.tf32.f32");
                inst.type = Type::F32;
                break;
            case ir::Attribute::Matrices: inst.attribute = ir::pack(ir::MatricesForm{.count = 2}); break;
            case ir::Attribute::Shuffle: inst.attribute = pick(4); break;
            case ir::Attribute::ClusterBarrier: inst.attribute = pick(3); break;
            case ir::Attribute::Mode: inst.attribute = mode(op); break;
            default: break;
        }
        if (ir::has_memory_info(op)) {
            constexpr ir::Order orders[] = {ir::Order::Relaxed, ir::Order::Acquire, ir::Order::Release,
                                            ir::Order::AcquireRelease};
            inst.memory = access(op, inst.type).memory;
            inst.memory.order = any_of(orders);
            inst.memory.scope = ir::Scope::Gpu;
            if (row.shape.vector) make_pair(inst);
        }
        std::vector<Value> operands;
        for (std::uint32_t i = 0; i < ir::operand_count(inst); ++i)
            operands.push_back(i == 0 && ir::has_memory_info(op) ? address(slice_) : some(ir::operand_type(inst, i)));
        const Value result = build_.make(inst, operands);
        if (result != ir::no_value && row.starts == ir::Work::None) add(result);  // nobody waits
    }
    void ordered_access() {
        const bool loads = one_in(2);
        ir::Instruction inst = access(loads ? Op::Load : Op::Store, type_in(ir::Num));
        inst.memory.is_volatile = one_in(2);
        if (!inst.memory.is_volatile) {
            inst.memory.order = one_in(2) ? ir::Order::Relaxed : loads ? ir::Order::Acquire : ir::Order::Release;
            inst.memory.scope = ir::Scope::Gpu;
        }
        const Value place = address(slice_);
        if (loads)
            add(build_.make(inst, std::array{place}));
        else
            build_.append(inst, std::array{place, some(inst.type)}, {});
    }

    /// Warp operations among the lanes that reach this point together.
    void among_members() {
        constexpr Op ops[] = {Op::VoteAny, Op::VoteAll, Op::Ballot, Op::WarpReduce, Op::WarpReduceBits, Op::MatchAny};
        ir::Instruction inst{.op = any_of(ops)};
        inst.type = type_in(ir::info(inst.op).domain);
        if (ir::info(inst.op).attribute == ir::Attribute::Mode) inst.attribute = pick(3);
        const Type type = ir::at(ir::info(inst.op).shape.arguments[0], inst.type);
        add(build_.make(inst, std::array{some(type), members_}));
    }
    /// An exchange through shared memory by all threads of the block: each writes its own word and reads another's.
    void exchange() {
        if (divergent_ > 0) return;
        const ir::Instruction barrier{.op = Op::Barrier, .type = Type::Void};
        const Value base = build_.leaf(Op::Symbol, Type::U32, 0), four = build_.constant(Type::U32, 4);
        const Value other =
            build_.make(Op::Xor, Type::U32, {thread_, build_.constant(Type::U32, 1 + pick(block_threads - 1))});
        const auto place = [&](Value thread) { return build_.make(Op::Fma, Type::U32, {thread, four, base}); };
        const ir::MemoryInfo shared{.space = ir::Space::Shared};
        const std::array stored{place(thread_), some(Type::U32)};
        build_.append({.op = Op::Store, .type = Type::U32, .memory = shared}, stored, {});
        if (one_in(2)) add(build_.make({.op = Op::Load, .type = Type::U32, .memory = shared}, std::array{stored[0]}));
        build_.append(barrier, {}, {});
        add(build_.make({.op = Op::Load, .type = Type::U32, .memory = shared}, std::array{place(other)}));
        build_.append(barrier, {}, {});
        if (one_in(2)) add(build_.make({.op = Op::Load, .type = Type::U32, .memory = shared}, std::array{stored[0]}));
    }
    /// An atomic in the thread's own slice, so that the order of threads does not matter; often on an element just
    /// accessed.
    void own_atomic() {
        constexpr Op ops[] = {Op::AtomicAdd, Op::AtomicMin, Op::AtomicMax,      Op::AtomicInc, Op::AtomicAnd,
                              Op::AtomicXor, Op::AtomicCas, Op::AtomicExchange, Op::AtomicDec, Op::AtomicOr};
        const Type types[] = {Type::U32, Type::I32, Type::U64};
        ir::Instruction inst = access(any_of(ops), any_of(types));
        if (!contains(ir::info(inst.op).domain, inst.type)) inst.type = Type::U32, inst.memory.offset &= ~7;
        inst.memory.order = ir::Order::Relaxed;
        inst.memory.scope = ir::Scope::Gpu;
        const Value place = address(slice_);
        std::vector<Value> operands{place, some(inst.type)};
        if (inst.op == Op::AtomicCas) operands.push_back(some(inst.type));
        ir::Instruction before = inst;
        before.op = Op::Load;
        before.memory.order = ir::Order::Weak, before.memory.scope = ir::Scope::None;
        if (one_in(2)) add(build_.make(before, std::array{place}));
        const Value old = build_.make(inst, operands);
        if (one_in(2)) add(old);
        if (one_in(2)) add(build_.make(before, std::array{place}));
    }
    /// Some threads return: from here on not all threads are active.
    void return_early() {
        const Block done = fn_.add_block(), rest = fn_.add_block();
        build_.branch(some(Type::Pred), done, rest);
        build_.set_block(done);
        const Type type = type_in(ir::Storable);
        if (has(type)) store(type, some(type), slots * slot_bytes);
        build_.terminate(ir::Terminator::Kind::Return);
        build_.set_block(rest);
        ++divergent_;
        members_ = ir::no_value;
    }

    void load() {
        const Type type = type_in(ir::Storable);
        const bool from_in = one_in(3);
        ir::Instruction inst = access(Op::Load, type);
        std::vector<Value> operands{address(from_in ? in_ : slice_)};
        if (one_in(4)) make_pair(inst);
        if (one_in(4)) {
            inst.guard = some(Type::Pred);
            inst.guard_negated = one_in(2);
            inst.tie = {0, 1, inst.memory.count};
            for (int i = 0; i < inst.memory.count; ++i) operands.push_back(some(type));
        }
        const std::vector<Type> types(inst.memory.count, type);
        const ir::Inst made = build_.append(inst, operands, types);
        for (std::uint32_t i = 0; i < types.size(); ++i) add(std::as_const(fn_).results(made)[i]);
    }
    void store_somewhere() {
        const Type type = type_in(ir::Storable);
        ir::Instruction inst = access(Op::Store, type);
        std::vector<Value> operands{address(slice_), some(type)};
        if (one_in(4) && make_pair(inst)) operands.push_back(some(type));
        if (one_in(4)) {
            inst.guard = some(Type::Pred);
            inst.guard_negated = one_in(2);
        }
        build_.append(inst, operands, {});
    }
    /// A few loads and stores, mostly of one type, at two addresses that may be equal.
    void meet_in_memory() {
        const Type type = type_in(ir::Num);
        const Value places[] = {address(slice_), address(slice_)};
        for (int n = 3 + int(pick(5)); n > 0; --n) {
            const ir::Instruction inst = access(one_in(2) ? Op::Load : Op::Store, one_in(4) ? type_in(ir::Num) : type);
            const Value place = any_of(places);
            if (options_.effects && one_in(4)) effect();
            if (inst.op == Op::Load)
                add(build_.make(inst, std::array{place}));
            else
                build_.append(inst, std::array{place, some(inst.type)}, {});
        }
    }
    void store(Type type, Value value, std::uint32_t offset) {
        ir::Instruction inst{.op = Op::Store, .type = type, .memory = {.space = ir::Space::Global}};
        inst.memory.offset = std::int32_t(offset);
        build_.append(inst, std::array{slice_, value}, {});
    }

    // Control flow. Values defined inside are out of scope after it, except block arguments.
    void if_else(int depth) {
        const Block then = fn_.add_block(), otherwise = fn_.add_block(), join = fn_.add_block();
        Value condition = some(Type::Pred);
        if (one_in(3)) condition = build_.make(Op::Lt, Type::U32, {thread_, build_.constant(Type::U32, pick(8))});
        Value taken_by = ir::no_value;  // the members that go to `then`
        if (members_ != ir::no_value)
            taken_by = build_.make({.op = Op::Ballot, .type = Type::U32}, std::array{condition, members_});
        build_.branch(condition, then, otherwise);
        std::vector<Type> types;
        for (std::uint32_t n = pick(4); n > 0; --n) types.push_back(type_in(ir::Any));
        const auto scope = values_;
        const auto known = addresses_;
        const Value members = members_;
        const Value taken = members != ir::no_value ? taken_by : ir::no_value;
        ++divergent_;
        for (Block side : {then, otherwise}) {
            build_.set_block(side);
            if (taken != ir::no_value) {
                members_ = taken;
                if (side == otherwise) members_ = build_.make(Op::Xor, Type::U32, {taken, members});
            }
            if (!one_in(3)) region(depth - 1);
            members_ = members;
            std::vector<Value> arguments;
            for (Type type : types) arguments.push_back(some(type));
            build_.jump(join, arguments);
            values_ = scope;
            addresses_ = known;
        }
        --divergent_;
        for (Type type : types) add(fn_.add_parameter(join, type));
        build_.set_block(join);
    }

    /// do { … } while (++i < trips), with a few loop-carried values; sometimes guarded by a test before the loop.
    void loop(int depth) {
        const Block body = fn_.add_block(), exit = fn_.add_block();
        std::vector<Value> carried{build_.constant(Type::U32, 0)};
        for (std::uint32_t n = pick(4); n > 0; --n) carried.push_back(some(type_in(ir::Any)));
        build_.jump(body, carried);
        const auto scope = values_;
        const auto known = addresses_;
        std::vector<Value> parameters;
        for (Value value : carried) parameters.push_back(fn_.add_parameter(body, fn_.type(value)));
        for (Value value : parameters) add(value);
        build_.set_block(body);
        ++divergent_;
        const Value members = std::exchange(members_, ir::no_value);
        region(depth - 1);
        members_ = members;
        --divergent_;
        const Value next = build_.make(Op::Add, Type::U32, {parameters[0], build_.constant(Type::U32, 1)});
        Value trips = build_.constant(Type::U32, 1 + pick(3));
        if (one_in(4)) trips = build_.make(Op::And, Type::U32, {thread_, trips});
        std::vector<Value> again{next}, left;
        for (std::size_t i = 1; i < carried.size(); ++i) again.push_back(some(fn_.type(carried[i])));
        for (std::size_t i = 1; i < carried.size(); ++i) left.push_back(some(fn_.type(carried[i])));
        const Value more = build_.make(Op::Lt, Type::U32, {next, trips});
        build_.branch(more, body, exit);
        auto& targets = fn_[build_.block()].terminator.targets;
        targets[0].arguments = again;
        targets[1].arguments = left;
        values_ = scope;
        addresses_ = known;
        for (Value value : left) add(fn_.add_parameter(exit, fn_.type(value)));
        build_.set_block(exit);
    }

    RandomIrOptions options_;
    Value in_ = ir::no_value, slice_ = ir::no_value, thread_ = ir::no_value;
    Value members_ = ir::no_value;  // the lanes at this point, if known
    std::vector<Op> palette_;       // the operations that this kernel mostly uses
    int budget_ = 0, divergent_ = 0;
};

}  // namespace ikat::test
