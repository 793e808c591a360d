// SPDX-License-Identifier: Apache-2.0
// An instruction with an effect is kept, whether or not its result is used: every such row of the table, at every type
// and in every mode, through each pass, through the pipeline and into the PTX.
#include "codegen/ir/builder.hpp"
#include "codegen/ir/op/accesses.hpp"
#include "codegen/ir/op/forms/all.hpp"
#include "codegen/ir/text/print.hpp"
#include "codegen/ir/verify.hpp"
#include "codegen/nvptx/spelling/mnemonic.hpp"
#include "codegen/nvptx/spelling/suffix.hpp"
#include "codegen/pipeline/compile.hpp"
#include "codegen/pipeline/stages.hpp"
#include "tests/catch.hpp"

namespace {

using namespace ikat;
using namespace ikat::ir;

std::vector<Form> fences() {
    std::vector<Form> out;
    for (const FenceOrder order : {FenceOrder::AcquireRelease, FenceOrder::SequentiallyConsistent})
        for (const Scope scope : {Scope::Cta, Scope::Cluster, Scope::Gpu, Scope::Sys})
            out.push_back(pack(FenceForm{order, scope}));
    for (const FenceOrder order : {FenceOrder::Async, FenceOrder::AsyncShared, FenceOrder::BarrierInit})
        out.push_back(pack(FenceForm{order, Scope::None}));
    return out;
}
std::vector<Form> barriers() {
    std::vector<Form> out{pack(BarrierForm{.id = 7})};
    for (std::size_t kind = 0; kind < std::size(BarrierForm::names); ++kind)
        out.push_back(pack(BarrierForm{.kind = BarrierForm::Kind(kind)}));
    return out;
}
std::vector<Form> copies() {
    std::vector<Form> out;
    for (const std::uint8_t bytes : {4, 8, 16}) out.push_back(pack(CopyForm{.bytes = bytes}));
    for (std::size_t prefetch = 0; prefetch < std::size(CopyForm::prefetch_names); ++prefetch)
        out.push_back(pack(CopyForm{
            .bytes = 16, .cache = CopyForm::Cache::Cg, .prefetch = CopyForm::Prefetch(prefetch), .from_offset = 16}));
    return out;
}
/// Of this type.
std::vector<Form> bulk_copies(Type type) {
    std::vector<Form> out;
    for (const char* form : {"load", "load.2d", "load.5d.multicast", "store", "store.3d", "store.1d.add", "prefetch",
                             "prefetch.4d", "send"})
        if (type == Type::Void) out.push_back(*attribute_named(Op::BulkCopy, form));
    if (type != Type::Void) out.push_back(*attribute_named(Op::BulkCopy, "store.add"));
    return out;
}
std::vector<Form> uses_of_barriers() {
    std::vector<Form> out;
    for (std::size_t kind = 0; kind < std::size(MbarrierForm::names); ++kind)
        for (std::size_t reach = 0; reach < std::size(MbarrierForm::reach_names); ++reach)
            if (const MbarrierForm form{MbarrierForm::Kind(kind), MbarrierForm::Reach(reach)}; form.exists())
                out.push_back(pack(form));
    return out;
}
/// Of this type.
std::vector<Form> products(Type type) {
    std::vector<Form> out;
    for (const char* form : {"m8n8k4.f64.f64.f64", "m8n8k4.f16.f16.f32.trans_b", "m16n8k8.f16.f16.f16",
                             "m16n8k16.bf16.bf16.f32", "m16n8k32.s8.u8.s32.sat", "m16n8k256.b1.b1.s32.and"})
        if (const Form word = *attribute_named(Op::Mma, form); register_type(unpack<MatrixForm>(word).sum) == type)
            out.push_back(word);
    return out;
}
/// Of this type.
std::vector<Form> warpgroup_products(Type type) {
    std::vector<Form> out;
    for (const char* form : {"m64n8k16.f16.f16.f16", "m64n16k8.tf32.tf32.f32.overwrite",
                             "m64n8k16.bf16.bf16.f32.pred.registers", "m64n48k32.s8.u8.s32.sat"})
        if (const Form word = *attribute_named(Op::Wgmma, form); register_type(unpack<WgmmaForm>(word).sum) == type)
            out.push_back(word);
    return out;
}
std::vector<Form> attributes(const OpInfo& row, Op op, Type type) {
    if (row.attribute == Attribute::Special) return {Word(SpecialRegister::Clock)};
    if (row.attribute == Attribute::Shuffle) return {0, 1, 2, 3};
    if (row.attribute == Attribute::ClusterBarrier) return {0, 1, 2};
    if (row.attribute == Attribute::Fence) return fences();
    if (row.attribute == Attribute::Barrier) return barriers();
    if (row.attribute == Attribute::Copy) return copies();
    if (row.attribute == Attribute::Matrix) return products(type);
    if (row.attribute == Attribute::Wgmma) return warpgroup_products(type);
    if (row.attribute == Attribute::Matrices)
        return {pack(MatricesForm{}), pack(MatricesForm{.count = 4, .transposed = true})};
    if (row.attribute == Attribute::Registers)
        return {pack(RegistersForm{}), pack(RegistersForm{RegistersForm::Kind::Shrink})};
    if (row.attribute == Attribute::Mbarrier) return uses_of_barriers();
    if (row.attribute == Attribute::Bulk) return bulk_copies(type);
    if (op != Op::CopyWait && row.attribute == Attribute::Groups) return {0, 3};
    if (row.attribute == Attribute::Groups) return {0, 3, all_copies};
    std::vector<Form> out{0};
    while (!mode_name(op, out.size()).empty()) out.push_back(out.size());
    return out;
}

/// A kernel with that one instruction on loaded values, whose result is not used.
Function unused(Instruction inst) {
    Function fn;
    fn.name = "unused";
    fn.parameters = {{.name = "x", .access = Access::InOut, .element = Type::U32}};
    fn.symbols = {{.name = "s", .count = 16, .alignment = 16}};
    Builder build(fn, fn.add_block());
    const Value buffer = build.leaf(Op::Param, Type::U64, 0), shared = build.leaf(Op::Symbol, Type::U32, 0);
    const auto operand = [&](Type type) {
        const bool is_pred = type == Type::Pred;
        const Value loaded = build.make(
            {.op = Op::Load, .type = is_pred ? Type::U32 : type, .memory = {.space = Space::Global}}, {&buffer, 1});
        return is_pred ? build.make(Op::Ne, Type::U32, {loaded, build.constant(Type::U32, 0)}) : loaded;
    };
    if (has_memory_info(inst.op)) {
        inst.memory.space = Space::Global;
        if (info(inst.op).shape.vector && info(inst.op).traits & Reads) inst.memory.count = 2;
    }
    if (info(inst.op).shape.variadic) {
        fn.texts = {"fence.sc.gpu;"};
        const Value condition = operand(Type::Pred);
        build.append(inst, std::span(&condition, inst.op == Op::Check ? 1 : 0), {});
    } else {
        const bool is_peer = has_form(inst.op) && is_address(inst.op, 0) && accesses(inst)[0].space == Space::Peer;
        const Value place = !is_peer ? shared : build.make(Op::Peer, Type::U32, {shared, build.constant(Type::U32, 0)});
        std::vector<Value> operands;
        inst.tie = shape_of(inst).tie;
        for (std::uint32_t i = 0; i < operand_count(inst); ++i)
            operands.push_back(!is_address(inst.op, i)              ? operand(operand_type(inst, i))
                               : operand_type(inst, i) == Type::U32 ? place
                                                                    : buffer);
        build.make(inst, operands);
    }
    build.terminate(Terminator::Kind::Return);
    return fn;
}

/// All forms of the rows with effects: volatile and ordered loads among them.
std::vector<Instruction> lasting() {
    std::vector<Instruction> out;
    const MemoryInfo relaxed{.order = Order::Relaxed, .scope = Scope::Gpu};
    for (int number = 0; number < op_count; ++number) {
        const Op op = Op(number);
        const OpInfo& row = info(op);
        if (op == Op::Load) {
            out.push_back({.op = op, .type = Type::U32, .memory = {.is_volatile = true}});
            out.push_back({.op = op, .type = Type::U32, .memory = {.cache = CacheOperator::Cv}});
            out.push_back({.op = op, .type = Type::F32, .memory = relaxed});
        }
        if (effects(op).removable()) continue;  // a weak load, too
        for (int t = 0; t < type_count; ++t) {
            const Type type = row.shape.variadic ? Type::Void : Type(t);
            if (row.shape.variadic ? t != 0 : !contains(row.domain, type)) continue;
            if (op == Op::Sample && type != Type::U32) continue;  // clock is one
            for (const Form attribute : attributes(row, op, type)) {
                if (op == Op::Barrier && type != unpack<BarrierForm>(attribute).type()) continue;
                out.push_back({.op = op, .type = type, .attribute = attribute});
                if (has_memory_info(op) && has(op, Reads)) out.back().memory = relaxed;
            }
        }
    }
    return out;
}

int how_many(const Function& fn, Op op) {
    int count = 0;
    for (Block block : fn.blocks())
        for (Inst inst : fn[block].instructions)
            count += fn[inst].op == op && (op != Op::Load || fn[inst].memory.order != Order::Weak ||
                                           fn[inst].memory.is_volatile || fn[inst].memory.cache == CacheOperator::Cv);
    return count;
}

}  // namespace

TEST_CASE("an effect with an unused result survives the passes") {
    int tried = 0;
    for (const Instruction& inst : lasting()) {
        const Function before = unused(inst);
        INFO(print(before));
        REQUIRE(complaint(before) == "");
        std::vector<std::string> passes{""};
        for (const pipeline::Stage* pass : pipeline::all_passes()) passes.emplace_back(pass->name);
        for (const std::string& pass : passes) {
            Function fn = before;
            pipeline::run_passes(fn, {.passes = pass});
            INFO("after " << (pass.empty() ? "the pipeline" : pass));
            CHECK(how_many(fn, inst.op) == 1);
        }
        ++tried;
    }
    CHECK(tried > 100);
}

/// The first word of the row's PTX: "atom", "bar".
TEST_CASE("an effect with an unused result is in the PTX") {
    for (const Instruction& inst : lasting()) {
        if (inst.op == Op::Call) continue;  // of a module's functions
        const std::string ptx = compile(unused(inst), {.target = "sm_90a"}).ptx;
        INFO(ptx);
        const std::string_view pattern = nvptx::spelling(inst.op),
                               word = pattern.substr(0, pattern.find_first_of("{ "));
        const auto has = [&](std::string_view text) { return ptx.find("    " + std::string(text)) != ptx.npos; };
        const bool there = inst.op == Op::Opaque      ? has("fence.sc.gpu")
                           : has_memory_info(inst.op) ? has("atom.") || has("red.") || has(word)
                                                      : has(word);
        CHECK(there);
        if (inst.op == Op::Sample) CHECK(ptx.find("%clock") != ptx.npos);
        if (inst.op == Op::AtomicExchange) CHECK(!has("red."));
    }
}

TEST_CASE("each form keeps its spelling, however many there are in one kernel") {
    Function fn;
    fn.name = "forms";
    Builder build(fn, fn.add_block());
    std::vector<std::string> expected;
    const auto make = [&](const Instruction& inst) {
        std::vector<Value> operands;
        for (std::uint32_t i = 0; i < operand_count(inst); ++i)
            operands.push_back(build.constant(operand_type(inst, i), operand_type(inst, i) == Type::Pred ? 1 : 32));
        build.make(inst, operands);
    };
    for (const Form form : fences()) {
        make({.op = Op::Fence, .attribute = form});
        expected.push_back("fence" + nvptx::suffix(Op::Fence, form) + ";");
    }
    for (const Form form : barriers())
        make({.op = Op::Barrier, .type = unpack<BarrierForm>(form).type(), .attribute = form});
    for (const char* text : {"bar.sync 7;", "bar.sync 0;", "bar.sync 32, 32;", "bar.arrive 32, 32;",
                             "bar.red.and.pred %p", "bar.red.or.pred %p", "bar.red.popc.u32 %r"})
        expected.emplace_back(text);
    build.terminate(Terminator::Kind::Return);
    const std::string ptx = compile(fn, {.target = "sm_90"}).ptx;
    INFO(ptx);
    for (const std::string& text : expected) CHECK(ptx.find("    " + text) != ptx.npos);
    CHECK(expected.size() == 18);
}
