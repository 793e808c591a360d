// SPDX-License-Identifier: Apache-2.0
// Instructions that few kernels have: searches and masks of bits, saturating products, cvt.pack, the video
// instructions, wide and vector accesses. Expected values are worked out by hand from the PTX ISA.
#include "tests/unit/emulator/evaluate.hpp"

using namespace ikat;
using tests::contains;
using tests::D;
using tests::evaluate;
using tests::F;
using tests::kernel;
using tests::Machine;
using tests::one;
using tests::Row;

namespace {

const float canonical_nan = std::bit_cast<float>(0x7fffffffu);

}  // namespace

TEST_CASE("fns finds the n-th set bit from a position") {
    const auto fns = [](std::uint32_t mask, std::uint32_t base, std::int32_t n) {
        return one("fns.b32 %r0, %r1, %r2, %r3;", mask, base, std::uint32_t(n));
    };
    CHECK(fns(0b10110100, 0, 1) == 2);
    CHECK(fns(0b10110100, 0, 2) == 4);
    CHECK(fns(0b10110100, 3, 1) == 4);
    CHECK(fns(0b10110100, 4, 1) == 4);
    CHECK(fns(0b10110100, 31, -1) == 7);
    CHECK(fns(0b10110100, 6, -2) == 4);
    CHECK(fns(0b10110100, 2, 0) == 2);
    CHECK(fns(0b10110100, 3, 0) == 0xffffffff);
    CHECK(fns(0b10110100, 0, 9) == 0xffffffff);
}

TEST_CASE("bmsk and szext, clamped and wrapped") {
    CHECK(one("bmsk.clamp.b32 %r0, %r1, %r2;", 4, 8) == 0xff0);
    CHECK(one("bmsk.clamp.b32 %r0, %r1, %r2;", 36, 8) == 0);
    CHECK(one("bmsk.clamp.b32 %r0, %r1, %r2;", 4, 40) == 0xfffffff0);
    CHECK(one("bmsk.wrap.b32 %r0, %r1, %r2;", 36, 8) == 0xff0);
    CHECK(one("bmsk.wrap.b32 %r0, %r1, %r2;", 4, 40) == 0xff0);
    CHECK(one("bmsk.wrap.b32 %r0, %r1, %r2;", 28, 8) == 0xf0000000);
    CHECK(one("bmsk.wrap.b32 %r0, %r1, %r2;", 28, 32) == 0);
    CHECK(one("szext.clamp.s32 %r0, %r1, %r2;", 0xabcd8, 4) == 0xfffffff8);
    CHECK(one("szext.clamp.u32 %r0, %r1, %r2;", 0xabcd8, 4) == 8);
    CHECK(one("szext.clamp.s32 %r0, %r1, %r2;", 0xabcd8, 32) == 0xabcd8);
    CHECK(one("szext.wrap.s32 %r0, %r1, %r2;", 0xabcd8, 36) == 0xfffffff8);
    CHECK(one("szext.wrap.u32 %r0, %r1, %r2;", 0xabcd8, 32) == 0);
}

TEST_CASE("lop3 with a predicate") {
    CHECK(one("lop3.or.b32 %r4|%p0, %r1, %r2, %r3, 0x80, %p2;", 1, 0, 1) == 0);
    CHECK(one("lop3.or.b32 %r4|%p0, %r1, %r2, %r3, 0x80, !%p2;", 1, 0, 1) == 1);
    CHECK(one("lop3.and.b32 %r4|%p0, %r1, %r2, %r3, 0x80, %p2;", 5, 4, 6) == 1);
    CHECK(one("lop3.or.b32 %r0|%p4, %r1, %r2, %r3, 0x80, %p2;", 5, 4, 6) == 4);
}

TEST_CASE("saturating products") {
    CHECK(one("mad.hi.sat.s32 %r0, %r1, %r2, %r3;", 0x7fffffff, 0x7fffffff, 0x7fffffff) == 0x7fffffff);
    CHECK(one("mad.hi.sat.s32 %r0, %r1, %r2, %r3;", 0x80000000, 0x7fffffff, 0x80000000) == 0x80000000);
    CHECK(one("mad.hi.sat.s32 %r0, %r1, %r2, %r3;", 0x10000, 0x10000, 5) == 6);
    CHECK(one("mad24.hi.sat.s32 %r0, %r1, %r2, %r3;", 0x7fffff, 0x7fffff, 0x7fffffff) == 0x7fffffff);
    CHECK(one("mad24.hi.sat.s32 %r0, %r1, %r2, %r3;", 0xff000100, 0x000200, 7) == 9);
}

// {1, 3} and {2, 2}, the lower lane last; one for both lanes.
TEST_CASE("comparisons of two lanes") {
    constexpr std::uint64_t a = 0x3c004200, b = 0x40004000, wide_a = 0x3f804040, wide_b = 0x40004000;
    CHECK(one("setp.lt.f16x2 %p0|%p4, %r1, %r2;", a, b) == 0);
    CHECK(one("setp.lt.f16x2 %p4|%p0, %r1, %r2;", a, b) == 1);
    CHECK(one("setp.gt.and.f16x2 %p0|%p4, %r1, %r2, %p3;", a, b, 1) == 1);
    CHECK(one("setp.gt.and.f16x2 %p0|%p4, %r1, %r2, %p3;", a, b, 0) == 0);
    CHECK(one("setp.gt.or.bf16x2 %p4|%p0, %r1, %r2, !%p3;", wide_a, wide_b, 1) == 0);
    CHECK(one("setp.nan.f16x2 %p4|%p0, %r1, %r2;", 0x7fff0000, 0) == 1);
    CHECK(one("setp.eq.ftz.f16x2 %p0|%p4, %r1, %r2;", 0x00000001, 0) == 1);
    CHECK(one("set.lt.f16x2.f16x2 %r0, %r1, %r2;", a, b) == 0x3c000000);
    CHECK(one("set.gt.bf16x2.bf16x2 %r0, %r1, %r2;", wide_a, wide_b) == 0x00003f80);
    CHECK(one("set.lt.u32.f16x2 %r0, %r1, %r2;", a, b) == 0xffff0000);
    CHECK(one("set.ge.s32.bf16x2 %r0, %r1, %r2;", wide_a, wide_b) == 0x0000ffff);
    CHECK(one("set.lt.xor.u32.f16x2 %r0, %r1, %r2, %p3;", a, b, 1) == 0x0000ffff);
    CHECK(one("set.lt.bf16.bf16 %h0, %h1, %h2;", 0x3f80, 0x4000) == 0x3f80);
    CHECK(one("set.lt.u32.bf16 %r0, %h1, %h2;", 0x3f80, 0x4000) == 0xffffffff);
}

// For bf16 only ex2 flushes: 2^-130 and a subnormal operand.
TEST_CASE("exponentials of bf16") {
    CHECK(one("ex2.approx.ftz.bf16 %h0, %h1;", 0x4040) == 0x4100);
    CHECK(one("ex2.approx.ftz.bf16 %h0, %h1;", 0xc302) == 0);
    CHECK(one("ex2.approx.ftz.bf16x2 %r0, %r1;", 0xbf800001) == 0x3f003f80);
    CHECK(one("tanh.approx.bf16 %h0, %h1;", 0x7f80) == 0x3f80);
    CHECK(one("ex2.approx.f16 %h0, %h1;", 0xcb80) == 0x0200);  // 2^-15 is subnormal and stays
}

TEST_CASE("min and max of magnitudes, of three, and above zero") {
    CHECK(one("min.xorsign.abs.f32 %r0, %r1, %r2;", F(-3), F(2)) == F(-2));
    CHECK(one("max.xorsign.abs.f32 %r0, %r1, %r2;", F(-3), F(-2)) == F(3));
    CHECK(one("max.xorsign.abs.f32 %r0, %r1, %r2;", F(-3), F(canonical_nan)) == F(-3));
    CHECK(one("max.NaN.xorsign.abs.f32 %r0, %r1, %r2;", F(-3), F(canonical_nan)) == F(canonical_nan));
    CHECK(one("min.xorsign.abs.f16 %h0, %h1, %h2;", 0xc200, 0x4000) == 0xc000);   // -3, 2: -2
    CHECK(one("max.xorsign.abs.bf16 %h0, %h1, %h2;", 0xc040, 0xc000) == 0x4040);  // -3, -2: 3
    CHECK(one("max.xorsign.abs.f16 %h0, %h1, %h2;", 0xc200, 0x7fff) == 0xc200);   // -3, NaN: -3
    CHECK(one("max.NaN.xorsign.abs.f16 %h0, %h1, %h2;", 0xc200, 0x7fff) == 0x7fff);
    CHECK(one("min.xorsign.abs.f16x2 %r0, %r1, %r2;", 0xc2004000, 0x4000c200) == 0xc000c000);
    CHECK(one("max.xorsign.abs.bf16x2 %r0, %r1, %r2;", 0xc0407fff, 0xc000c000) == 0x4040c000);
    CHECK(one("min.f32 %r0, %r1, %r2, %r3;", F(3), F(2), F(7)) == F(2));
    CHECK(one("max.NaN.f32 %r0, %r1, %r2, %r3;", F(3), F(canonical_nan), F(7)) == F(canonical_nan));
    CHECK(one("max.abs.f32 %r0, %r1, %r2, %r3;", F(3), F(-9), F(7)) == F(9));
    CHECK(one("min.relu.s32 %r0, %r1, %r2;", std::uint32_t(-3), 2) == 0);
    CHECK(one("max.relu.s32 %r0, %r1, %r2;", std::uint32_t(-3), 2) == 2);
}

TEST_CASE("cvt.pack") {
    CHECK(one("cvt.pack.sat.s16.s32 %r0, %r1, %r2;", 70000, std::uint32_t(-5)) == 0x7ffffffb);
    CHECK(one("cvt.pack.sat.u8.s32.b32 %r0, %r1, %r2, %r3;", 300, std::uint32_t(-5), 0x1234) == 0x1234ff00);
    CHECK(one("cvt.pack.sat.s4.s32.b32 %r0, %r1, %r2, %r3;", std::uint32_t(-9), 3, 0xabcdef) == 0xabcdef83);
}

TEST_CASE("reciprocals of f64 from upper word to upper word") {
    CHECK(one("rcp.approx.ftz.f64 %d0, %d1;", D(4)) == D(0.25));
    CHECK((one("rcp.approx.ftz.f64 %d0, %d1;", D(3)) & 0xffffffff) == 0);
    CHECK(one("rcp.approx.ftz.f64 %d0, %d1;", 1) == D(std::numeric_limits<double>::infinity()));
    CHECK(one("rcp.approx.ftz.f64 %d0, %d1;", D(-std::numeric_limits<double>::infinity())) == D(-0.0));
    CHECK(one("rsqrt.approx.ftz.f64 %d0, %d1;", D(16)) == D(0.25));
    CHECK(one("rsqrt.approx.ftz.f64 %d0, %d1;", D(-1)) == 0x7fffffffffffffff);
}

TEST_CASE("video instructions on a whole register or a part of it") {
    CHECK(one("vadd.s32.s32.s32 %r0, %r1, %r2;", 5, std::uint32_t(-9)) == std::uint32_t(-4));
    CHECK(one("vadd.s32.s32.s32.sat %r0, %r1, %r2;", 0x7fffffff, 9) == 0x7fffffff);
    CHECK(one("vadd.u32.u32.s32.sat %r0, %r1, %r2;", 3, std::uint32_t(-9)) == 0);
    CHECK(one("vadd.s32.s32.u32 %r0, %r1.b3, %r2.h0;", 0x80112233, 0xffff8000) == 0x7f80);
    CHECK(one("vadd.u32.u32.u32 %r0.h1, %r1, %r2, %r3;", 0x11111, 1, 0xabcd1234) == 0x11121234);
    CHECK(one("vadd.s32.s32.s32.sat %r0.b1, %r1, %r2, %r3;", 200, 1, 0xabcd1234) == 0xabcd7f34);
    CHECK(one("vsub.s32.s32.s32.add %r0, %r1, %r2, %r3;", 3, 9, 100) == 94);
    CHECK(one("vabsdiff.u32.u32.u32 %r0, %r1, %r2;", 3, 9) == 6);
    CHECK(one("vabsdiff.s32.s32.s32.max %r0, %r1, %r2, %r3;", std::uint32_t(-3), 9, 5) == 12);
    CHECK(one("vmin.s32.s32.s32.min %r0, %r1, %r2, %r3;", 3, 9, std::uint32_t(-1)) == 0xffffffff);
    CHECK(one("vmax.u32.u32.u32 %r0, %r1.b0, %r2.b1;", 0x105, 0x900) == 9);
    CHECK(one("vshl.u32.u32.u32.clamp %r0, %r1, %r2;", 3, 40) == 0);
    CHECK(one("vshl.u32.u32.u32.wrap %r0, %r1, %r2;", 3, 40) == 0x300);
    CHECK(one("vshl.u32.u32.u32.sat.clamp %r0, %r1, %r2;", 0xffffffff, 32) == 0xffffffff);
    CHECK(one("vshr.u32.u32.u32.clamp.add %r0, %r1, %r2, %r3;", 0x300, 4, 1) == 0x31);
    CHECK(one("vshr.s32.s32.u32.wrap %r0, %r1, %r2;", std::uint32_t(-64), 36) == std::uint32_t(-4));
    CHECK(one("vmad.s32.s32.s32 %r0, %r1, %r2, %r3;", std::uint32_t(-3), 9, 100) == 73);
    CHECK(one("vmad.s32.s32.s32 %r0, -%r1, %r2, %r3;", std::uint32_t(-3), 9, 100) == 127);
    CHECK(one("vmad.s32.s32.s32 %r0, %r1, %r2, -%r3;", 3, 9, 100) == std::uint32_t(-73));
    CHECK(one("vmad.s32.s32.s32.po %r0, %r1, %r2, %r3;", 3, 9, 100) == 128);
    CHECK(one("vmad.u32.u32.u32.sat.shr7 %r0, %r1, %r2, %r3;", 0xffffffff, 0xffffffff, 0xffffffff) == 0xffffffff);
    CHECK(one("vmad.s32.s32.s32.shr15 %r0, %r1.h0, %r2.h1, %r3;", 0x4000, 0x40000000, 0) == 0x2000);
    CHECK(one("vset.s32.s32.lt %r0, %r1, %r2;", std::uint32_t(-3), 2) == 1);
    CHECK(one("vset.u32.u32.lt %r0, %r1, %r2;", std::uint32_t(-3), 2) == 0);
    CHECK(one("vset.u32.u32.ge.add %r0, %r1, %r2, %r3;", 5, 5, 41) == 42);
}

TEST_CASE("video instructions on halves and bytes") {
    CHECK(one("vabsdiff4.u32.u32.u32 %r0, %r1, %r2, %r3;", 0x01ff0540, 0x03010340, 0) == 0x02fe0200);
    CHECK(one("vabsdiff4.u32.u32.u32.add %r0, %r1, %r2, %r3;", 0x01ff0540, 0x03010340, 1000) == 1000 + 2 + 254 + 2);
    CHECK(one("vadd4.u32.u32.u32.sat %r0, %r1, %r2, %r3;", 0x01ff0540, 0x03010340, 0) == 0x04ff0880);
    CHECK(one("vadd4.u32.u32.u32 %r0, %r1, %r2, %r3;", 0x01ff0540, 0x03010340, 0) == 0x04000880);
    CHECK(one("vadd4.s32.s32.s32.sat %r0.b20, %r1, %r2, %r3;", 0x7f7f7f7f, 0x01010101, 0xaabbccdd) == 0xaa7fcc7f);
    CHECK(one("vsub2.s32.s32.s32 %r0, %r1, %r2, %r3;", 0x00050001, 0x00020003, 0) == 0x0003fffe);
    CHECK(one("vadd2.s32.s32.s32 %r0, %r1.h01, %r2.h32, %r3;", 0x00050001, 0x00020003, 0) == 0x00030008);
    CHECK(one("vavrg2.s32.s32.s32 %r0, %r1, %r2, %r3;", 0x0005fffb, 0x0002fffe, 0) == 0x0004fffc);
    CHECK(one("vmax2.s32.s32.s32 %r0, %r1, %r2, %r3;", 0x80000001, 0x00020003, 0) == 0x00020003);
    CHECK(one("vmin4.u32.u32.u32 %r0, %r1, %r2, %r3;", 0x80000001, 0x01020003, 0) == 0x01000001);
    CHECK(one("vset4.u32.u32.gt %r0, %r1, %r2, %r3;", 0x80000001, 0x01020003, 0) == 0x01000000);
    CHECK(one("vset2.s32.s32.lt.add %r0, %r1, %r2, %r3;", 0x80000001, 0x01020003, 5) == 7);
}

TEST_CASE("moves between a register and its bytes") {
    const std::string bytes = ".reg .b8 %c<4>; ";
    CHECK(one(bytes + "mov.b32 {%c0, %c1, %c2, %c3}, %r1; mov.b32 %r0, {%c3, %c2, %c1, %c0};", 0x11223344) ==
          0x44332211);
    CHECK(one(bytes + "mov.b16 {%c0, %c1}, %h1; mov.b16 %h0, {%c1, %c0};", 0x1122) == 0x2211);
}

TEST_CASE("registers of 128 bits, accesses of 16 and 32 bytes") {
    Machine machine;
    const std::string text = kernel(R"(
    .reg .b128 %q<3>;
    mov.u32 %r1, %tid.x; ld.param.u64 %d1, [p0]; mad.wide.u32 %d1, %r1, 64, %d1;
    ld.global.b128 %q0, [%d1]; mov.b128 {%d2, %d3}, %q0; mov.b128 %q1, {%d3, %d2}; mov.b128 %q2, %q1;
    st.global.b128 [%d1], %q2;
    ld.global.v4.b64 {%d1, %d4, %d5, %d6}, [%d1+32];
    ld.param.u64 %d2, [p0]; mad.wide.u32 %d2, %r1, 64, %d2;
    st.global.v4.b64 [%d2+32], {%d6, %d5, %d4, %d1};
    ld.global.v8.b32 {%r1, %r2, %r3, %r4, %r5, %r6, %r7, %r8}, [%d2];
    st.global.v8.b32 [%d2], {%r3, %r4, %r1, %r2, %r8, %r7, %r6, %r5};
    ret;
)");
    std::vector<std::uint32_t> cells(16 * 5), expected(16 * 5);
    for (std::uint32_t i = 0; i < cells.size(); ++i) cells[i] = 1000 + i;
    for (std::uint32_t i = 0; i < 5; ++i) {
        static constexpr int from[] = {0, 1, 2, 3, 7, 6, 5, 4, 14, 15, 12, 13, 10, 11, 8, 9};
        for (std::uint32_t k = 0; k < 16; ++k) expected[16 * i + k] = 1000 + 16 * i + std::uint32_t(from[k]);
    }
    const auto x = machine.memory.allocate(cells.size() * 4, "x");
    machine.memory.write(x, std::as_bytes(std::span(cells)));
    machine.run(text, {.block = {5, 1, 1}}, x, x, x, 0u);
    CHECK(machine.get<std::uint32_t>(x, cells.size()) == expected);
    const std::string shifted = kernel("ld.param.u64 %d1, [p0]; ld.global.v4.b64 {%d2, %d3, %d4, %d5}, [%d1+16]; ret;");
    CHECK_THAT(machine.failure(shifted, {}, x, x, x, 0u), contains("misaligned, 32 bytes are needed"));
    const std::string beyond = kernel("ld.param.u64 %d1, [p0]; ld.global.v4.b64 {%d2, %d3, %d4, %d5}, [%d1+320]; ret;");
    CHECK_THAT(machine.failure(beyond, {}, x, x, x, 0u), contains("past the end of buffer 'x'"));
}

TEST_CASE("atomics of vectors") {
    Machine machine;
    const auto x = machine.buffer("x", std::vector<float>{1, 2, 3, 4, 0, 0, 0, 0});
    const std::string text = kernel(R"(
    ld.param.u64 %d1, [p0]; mov.f32 %r1, 0f3F800000; mov.f32 %r2, 0f40000000;
    red.global.add.v2.f32 [%d1], {%r1, %r2};
    atom.global.add.v4.f32 {%r3, %r4, %r5, %r6}, [%d1+16], {%r1, %r1, %r2, %r2};
    ret;
)");
    machine.run(text, {.block = {3, 1, 1}}, x, x, x, 0u);
    CHECK(machine.get<float>(x, 8) == std::vector<float>{4, 8, 3, 4, 3, 3, 6, 6});
    const std::string shifted =
        kernel("ld.param.u64 %d1, [p0]; red.global.add.v4.f32 [%d1+8], {%r1, %r1, %r2, %r2}; ret;");
    CHECK_THAT(machine.failure(shifted, {}, x, x, x, 0u), contains("misaligned, 16 bytes are needed"));
}

TEST_CASE("set into every type") {
    CHECK(one("set.lt.u32.s32 %r0, %r1, %r2;", 1, 2) == 0xffffffff);
    CHECK(one("set.lt.f32.s32 %r0, %r1, %r2;", 1, 2) == F(1));
    CHECK(one("set.lt.and.s32.f32 %r0, %r1, %r2, %p3;", F(1), F(2), 0) == 0);
    CHECK(one("set.gtu.u32.f64 %r0, %d1, %d2;", D(std::numeric_limits<double>::quiet_NaN()), D(2)) == 0xffffffff);
    CHECK(one("set.eq.f16.u16 %h0, %h1, %h2;", 7, 7) == 0x3c00);
    CHECK(one("set.eq.u16.u16 %h0, %h1, %h2;", 7, 7) == 0xffff);
}
