// SPDX-License-Identifier: Apache-2.0
#include "codegen/ir/text/print.hpp"

#include "codegen/ir/builder.hpp"
#include "codegen/ir/text/literal.hpp"
#include "codegen/ir/verify.hpp"
#include "tests/catch.hpp"

using namespace ikat;
using namespace ikat::ir;

namespace {

/// if (tid.x < n) y[tid.x] = x[tid.x] * a
Function scale() {
    Function fn;
    fn.name = "scale";
    fn.parameters = {{.name = "a", .type = Type::F32},
                     {.name = "x", .access = Access::In, .element = Type::F32, .alignment = 4},
                     {.name = "y", .access = Access::InOut, .element = Type::F32},
                     {.name = "n", .type = Type::U32, .multiple = 4}};
    const Block entry = fn.add_block(), body = fn.add_block(), exit = fn.add_block();
    Builder b(fn, entry);
    const Value i = b.leaf(Op::Special, Type::U32, Word(SpecialRegister::TidX));
    b.branch(b.make(Op::Lt, Type::U32, {i, b.leaf(Op::Param, Type::U32, 3)}), body, exit);
    b.set_block(body);
    const Value four = b.constant(Type::U32, 4);
    const Value from = b.make(Op::MadWide, Type::U32, {i, four, b.leaf(Op::Param, Type::U64, 1)});
    const Value to = b.make(Op::MadWide, Type::U32, {i, four, b.leaf(Op::Param, Type::U64, 2)});
    const Value x =
        b.make({.op = Op::Load, .type = Type::F32, .memory = {.space = Space::Global, .offset = 16}}, {&from, 1});
    const Value stored[] = {to, b.make(Op::Mul, Type::F32, {x, b.leaf(Op::Param, Type::F32, 0)})};
    b.make({.op = Op::Store, .type = Type::F32, .memory = {.space = Space::Global}}, stored);
    b.jump(exit);
    b.set_block(exit);
    b.terminate(Terminator::Kind::Return);
    return fn;
}

}  // namespace

TEST_CASE("a function prints one line per instruction, values in the order of the text") {
    const Function fn = scale();
    CHECK(print(fn) ==
          "kernel @scale(%a: f32, %x: in f32* align 4, %y: inout f32*, %n: u32 multiple 4) {\n"
          "^0:\n"
          "  %0 = special.u32 tid.x\n"
          "  %1 = param.u32 %n\n"
          "  %2 = lt.u32 %0, %1\n"
          "  branch %2, ^1, ^2\n"
          "^1:\n"
          "  %3 = const.u32 4\n"
          "  %4 = param.u64 %x\n"
          "  %5 = mad_wide.u32 %0, %3, %4\n"
          "  %6 = param.u64 %y\n"
          "  %7 = mad_wide.u32 %0, %3, %6\n"
          "  %8 = load.f32 global [%5+16]\n"
          "  %9 = param.f32 %a\n"
          "  %10 = mul.f32 %8, %9\n"
          "  store.f32 global [%7], %10\n"
          "  jump ^2\n"
          "^2:\n"
          "  return\n"
          "}\n");
    CHECK(complaint(fn) == "");
}

TEST_CASE("notes and remarks are comments at the end of their lines") {
    const Function fn = scale();
    const std::string text = print(fn, {.note = [&](Inst inst) { return fn[inst].op == Op::Load ? "slow" : ""; },
                                        .remark = [](Block block) { return block == Block(1) ? "body" : ""; }});
    CHECK_THAT(text, tests::contains("%8 = load.f32 global [%5+16]  // slow\n"));
    CHECK_THAT(text, tests::contains("^1:  // body\n"));
}

TEST_CASE("constants print exactly and read back to the same bits") {
    const auto same = [](Type type, Word bits, std::string_view text) {
        CHECK(literal_text(type, bits) == text);
        CHECK(literal_bits(type, text) == bits);
    };
    same(Type::F32, to_word(1.5f), "1.5");
    same(Type::F32, to_word(1.0f), "1.0");
    same(Type::F32, to_word(-0.0f), "-0.0");
    same(Type::F32, to_word(0.1f), "0.1");
    same(Type::F32, to_word(1e30f), "1e+30");
    same(Type::F32, 1, "1e-45");
    same(Type::F32, 0x7fffffff, "nan");
    same(Type::F32, 0x7fc00001, "0x7fc00001");
    same(Type::F32, 0xff800000, "-inf");
    same(Type::F64, to_word(0.1), "0.1");
    same(Type::F64, to_word(double(0.1f)), "0.10000000149011612");
    same(Type::F16, 0x3c00, "1.0");
    same(Type::F16, 0x7fff, "nan");
    same(Type::F16, 0x0001, "5.9604645e-08");
    same(Type::I32, 0xffffffff, "-1");
    same(Type::U32, 0xffffffff, "0xffffffff");
    same(Type::U32, 0x7fffffff, "2147483647");
    same(Type::I8, 0x80, "-128");
    same(Type::I64, ~Word{0}, "-1");
    same(Type::U64, ~Word{0}, "0xffffffffffffffff");
    same(Type::Pred, 1, "true");
}

TEST_CASE("every small float reads back from its text") {
    for (const Type type : {Type::F16, Type::BF16, Type::E4M3, Type::E5M2})
        for (Word value = 0; value < Word{1} << ir::bits(type); ++value) {
            const std::string text = literal_text(type, value);
            if (literal_bits(type, text) != value) FAIL(info(type).name << " " << text << " of the bits " << value);
        }
}

TEST_CASE("a literal out of its type's range is rejected") {
    CHECK_FALSE(literal_bits(Type::U8, "256"));
    CHECK_FALSE(literal_bits(Type::U32, "-1"));
    CHECK_FALSE(literal_bits(Type::I32, "0x100000000"));
    CHECK_FALSE(literal_bits(Type::F32, "1.5x"));
    CHECK_FALSE(literal_bits(Type::Pred, "1"));
    CHECK_FALSE(literal_bits(Type::F16, "65536.0"));
    CHECK(literal_bits(Type::F16, "65519.996") == 0x7bff);
    CHECK_FALSE(literal_bits(Type::F16, "65520.0"));
    CHECK(literal_bits(Type::E4M3, "463.0") == 0x7e);
    CHECK_FALSE(literal_bits(Type::E4M3, "464.0"));
    CHECK_FALSE(literal_bits(Type::E4M3, "inf"));
    CHECK(literal_bits(Type::E5M2, "-57344.0") == 0xfb);
    CHECK(literal_bits(Type::E5M2, "-inf") == 0xfc);
    CHECK_FALSE(literal_bits(Type::E5M2, "-61440.0"));
}

TEST_CASE("texts are quoted so that they fit on a line") {
    CHECK(quoted("a\"b\\\n\t\x01") == "\"a\\\"b\\\\\\n\\t\\x01\"");
}

TEST_CASE("a broken function still prints, and the verifier shows the line") {
    Function fn = scale();
    fn.operands(Inst(2))[0] = Value(99);
    CHECK_THAT(complaint(fn), tests::contains("@scale, ^0, instruction 2: %?99 is used, but no block defines it\n"
                                              "    %2 = lt.u32 %?99, %1\n"));
}
