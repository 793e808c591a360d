// SPDX-License-Identifier: Apache-2.0
// Mnemonics: the lines of spellings.def with their keys filled in.
#include "codegen/nvptx/spelling/mnemonic.hpp"
#include "tests/catch.hpp"

namespace ikat::nvptx {
namespace {

using ir::Op, ir::Space, ir::Type;

std::string spelled(const ir::Instruction& inst, bool read = true) { return mnemonic(inst, read); }

TEST_CASE("keys of the op table") {
    CHECK(spelled({.op = Op::Add, .type = Type::U32}) == "add.u32");
    CHECK(spelled({.op = Op::Add, .type = Type::F32}) == "add.rn.f32");
    CHECK(spelled({.op = Op::Mul, .type = Type::I64}) == "mul.lo.s64");
    CHECK(spelled({.op = Op::Fma, .type = Type::F16, .fp = {.ftz = true, .sat = true}}) == "fma.rn.ftz.sat.f16");
    CHECK(spelled({.op = Op::Div, .type = Type::F32, .fp = {.approx = true}}) == "div.approx.f32");
    CHECK(spelled({.op = Op::Div, .type = Type::F32, .fp = {.rounding = Rounding::Up}}) == "div.rp.f32");
    CHECK(spelled({.op = Op::Ne, .type = Type::F64}) == "setp.neu.f64");
    CHECK(spelled({.op = Op::Ne, .type = Type::U64}) == "setp.ne.u64");
    CHECK(spelled({.op = Op::And, .type = Type::Pred}) == "and.pred");
    CHECK(spelled({.op = Op::Select, .type = Type::F16}) == "selp.b16");
}

TEST_CASE("conversions are rounded where they must be") {
    const auto convert = [](Type to, Type from, Rounding rounding = Rounding::Nearest) {
        return spelled({.op = Op::Convert, .type = to, .from = from, .fp = {.rounding = rounding}});
    };
    CHECK(convert(Type::F64, Type::F32) == "cvt.f64.f32");
    CHECK(convert(Type::F32, Type::F64, Rounding::Down) == "cvt.rm.f32.f64");
    CHECK(convert(Type::F16, Type::F16) == "cvt.f16.f16");
    CHECK(convert(Type::F64, Type::I32) == "cvt.rn.f64.s32");
    CHECK(convert(Type::I32, Type::F32, Rounding::Zero) == "cvt.rzi.s32.f32");
    CHECK(convert(Type::U64, Type::U32) == "cvt.u64.u32");
}

TEST_CASE("memory: order and scope, space, cache operator, vector") {
    ir::Instruction load{.op = Op::Load, .type = Type::F16, .memory = {.space = Space::Shared, .count = 4}};
    CHECK(spelled(load) == "ld.shared.v4.b16");
    load.memory = {.space = Space::Global, .count = 2, .cache = ir::CacheOperator::Nc};
    CHECK(spelled(load) == "ld.global.nc.v2.b16");
    load.memory = {.space = Space::Generic, .order = ir::Order::Acquire, .scope = ir::Scope::Sys};
    CHECK(spelled(load) == "ld.acquire.sys.b16");
}

TEST_CASE("an atomic whose result is unused is a reduction") {
    ir::Instruction atomic{.op = Op::AtomicAdd, .type = Type::F32, .memory = {.space = Space::Global}};
    CHECK(spelled(atomic) == "atom.global.add.f32");
    CHECK(spelled(atomic, false) == "red.global.add.f32");
    atomic.memory.order = ir::Order::AcquireRelease, atomic.memory.scope = ir::Scope::Gpu;
    CHECK(spelled(atomic, false) == "atom.acq_rel.gpu.global.add.f32");
    atomic.op = Op::AtomicExchange;
    CHECK(spelled(atomic, false) == "atom.acq_rel.gpu.global.exch.b32");
}

}  // namespace
}  // namespace ikat::nvptx
