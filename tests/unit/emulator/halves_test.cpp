// SPDX-License-Identifier: Apache-2.0
// f16, bf16 and their packed types, bit for bit: rounding, .ftz, .sat, .relu, NaNs. Then other packed types and mixed
// float types in one instruction. Expected values are worked out by hand from the PTX ISA.
#include "tests/unit/emulator/evaluate.hpp"

using namespace ikat;
using tests::evaluate;
using tests::F;
using tests::one;
using tests::Row;

namespace {

constexpr std::uint64_t nan16 = 0x7fff;  // canonical, in both types

/// Values of f16.
namespace h {
constexpr std::uint64_t zero = 0, tiny = 1, half = 0x3800, one = 0x3c00, next = 0x3c01, two = 0x4000, three = 0x4200,
                        four = 0x4400, eight = 0x4800, sixteen = 0x4c00, max = 0x7bff, infinity = 0x7c00,
                        minus = 0x8000;
}
/// Values of bf16.
namespace b {
constexpr std::uint64_t one = 0x3f80, next = 0x3f81, two = 0x4000, three = 0x4040, eight = 0x4100, minus = 0x8000;
}

constexpr std::uint64_t pair(std::uint64_t high, std::uint64_t low) { return high << 16 | low; }

}  // namespace

TEST_CASE("sums of f16 round to even and overflow to infinity") {
    CHECK(one("add.f16 %h0, %h1, %h2;", h::one, h::two) == h::three);
    CHECK(one("add.rn.f16 %h0, %h1, %h2;", h::max, h::eight) == h::max);
    CHECK(one("add.rn.f16 %h0, %h1, %h2;", h::max, h::sixteen) == h::infinity);
    CHECK(one("add.f16 %h0, %h1, %h2;", h::tiny, h::tiny) == 2);
    CHECK(one("add.ftz.f16 %h0, %h1, %h2;", h::tiny, h::tiny) == 0);
    CHECK(one("add.sat.f16 %h0, %h1, %h2;", h::one, h::two) == h::one);
    CHECK(one("add.sat.f16 %h0, %h1, %h2;", h::one, h::two | h::minus) == h::zero);
    CHECK(one("add.sat.f16 %h0, %h1, %h2;", 0x7e01, h::two) == h::zero);
    CHECK(one("add.f16 %h0, %h1, %h2;", 0xfe01, h::two) == nan16);
    CHECK(one("sub.f16 %h0, %h1, %h2;", h::infinity, h::infinity) == nan16);
    CHECK(one("sub.f16 %h0, %h1, %h2;", h::one, h::one) == h::zero);
    CHECK(one("sub.ftz.sat.f16 %h0, %h1, %h2;", h::four, h::three) == h::one);
    CHECK(one("add.f16x2 %r0, %r1, %r2;", pair(h::two, h::one), pair(h::two | h::minus, h::three)) ==
          pair(h::zero, h::four));
    CHECK(one("sub.sat.f16x2 %r0, %r1, %r2;", pair(h::two, h::one), pair(h::half, h::three)) == pair(h::one, h::zero));
}

TEST_CASE("products and fused products of f16") {
    // (1 + 2^-10)^2 = 1 + 2^-9 + 2^-20: the last term is what fma keeps
    CHECK(one("mul.f16 %h0, %h1, %h2;", h::next, h::next) == 0x3c02);
    CHECK(one("fma.rn.f16 %h0, %h1, %h2, %h3;", h::next, h::next, 0x3c02 | h::minus) == 0x0010);
    CHECK(one("fma.rn.ftz.f16 %h0, %h1, %h2, %h3;", h::next, h::next, 0x3c02 | h::minus) == 0);
    CHECK(one("mul.ftz.f16 %h0, %h1, %h2;", h::tiny | h::minus, h::two) == h::minus);
    CHECK(one("mul.sat.f16 %h0, %h1, %h2;", h::three, h::two) == h::one);
    CHECK(one("mul.f16 %h0, %h1, %h2;", h::infinity, h::zero) == nan16);
    CHECK(one("fma.rn.relu.f16 %h0, %h1, %h2, %h3;", h::one, h::two | h::minus, h::one) == 0);
    CHECK(one("fma.rn.relu.f16 %h0, %h1, %h2, %h3;", h::one, h::two, h::one) == h::three);
    CHECK(one("fma.rn.relu.f16 %h0, %h1, %h2, %h3;", 0x7e00, h::two, h::one) == nan16);
    CHECK(one("fma.rn.sat.f16 %h0, %h1, %h2, %h3;", h::two, h::two, h::one) == h::one);
    CHECK(one("mul.f16x2 %r0, %r1, %r2;", pair(h::next, h::two), pair(h::next, h::half)) == pair(0x3c02, h::one));
    CHECK(one("fma.rn.f16x2 %r0, %r1, %r2, %r3;", pair(h::next, h::two), pair(h::next, h::two),
              pair(0x3c02 | h::minus, h::four)) == pair(0x0010, h::eight));
    CHECK(one("fma.rn.relu.f16x2 %r0, %r1, %r2, %r3;", pair(h::one, h::two), pair(h::two, h::two),
              pair(h::four | h::minus, h::four)) == pair(0, h::eight));
}

TEST_CASE("sums and products of bf16") {
    CHECK(one("add.bf16 %h0, %h1, %h2;", b::one, b::two) == b::three);
    CHECK(one("add.rn.bf16 %h0, %h1, %h2;", b::one, 0x3b80) == b::one);  // 1 + 2^-8: half way, to even
    CHECK(one("add.rn.bf16 %h0, %h1, %h2;", b::one, 0x3c40) == 0x3f82);  // 1 + 3 * 2^-8: the same, upwards
    CHECK(one("sub.bf16 %h0, %h1, %h2;", 0x7f80, 0x7f80) == nan16);
    CHECK(one("add.bf16 %h0, %h1, %h2;", 1, 1) == 2);
    CHECK(one("add.bf16 %h0, %h1, %h2;", 0x7f7f, 0x7f7f) == 0x7f80);
    CHECK(one("mul.bf16 %h0, %h1, %h2;", b::next, b::next) == 0x3f82);
    // (1 + 2^-7)^2 = 1 + 2^-6 + 2^-14
    CHECK(one("fma.rn.bf16 %h0, %h1, %h2, %h3;", b::next, b::next, 0x3f82 | b::minus) == 0x3880);
    CHECK(one("fma.rn.relu.bf16 %h0, %h1, %h2, %h3;", b::one, b::one, b::two | b::minus) == 0);
    CHECK(one("add.bf16x2 %r0, %r1, %r2;", pair(b::one, b::two), pair(b::two, b::two | b::minus)) == pair(b::three, 0));
    CHECK(one("mul.bf16x2 %r0, %r1, %r2;", pair(b::next, b::two), pair(b::next, b::one)) == pair(0x3f82, b::two));
    CHECK(one("fma.rn.relu.bf16x2 %r0, %r1, %r2, %r3;", pair(b::next, b::one), pair(b::next, b::one),
              pair(0x3f82 | b::minus, b::two | b::minus)) == pair(0x3880, 0));
}

TEST_CASE("min and max of small floats: NaNs and zeros") {
    CHECK(one("min.f16 %h0, %h1, %h2;", 0x7e01, h::one) == h::one);
    CHECK(one("min.NaN.f16 %h0, %h1, %h2;", 0x7e01, h::one) == nan16);
    CHECK(one("max.f16 %h0, %h1, %h2;", 0xfe01, 0x7e01) == nan16);
    CHECK(one("min.f16 %h0, %h1, %h2;", h::zero, h::minus) == h::minus);
    CHECK(one("max.f16 %h0, %h1, %h2;", h::minus, h::zero) == h::zero);
    CHECK(one("min.f16 %h0, %h1, %h2;", h::tiny, 2) == h::tiny);
    CHECK(one("min.ftz.f16 %h0, %h1, %h2;", h::tiny, 2) == h::zero);
    CHECK(one("max.f16x2 %r0, %r1, %r2;", pair(0x7e00, h::one), pair(h::two, h::three | h::minus)) ==
          pair(h::two, h::one));
    CHECK(one("max.NaN.f16x2 %r0, %r1, %r2;", pair(0x7e00, h::one), pair(h::two, h::three)) == pair(nan16, h::three));
    CHECK(one("min.bf16 %h0, %h1, %h2;", 0x7fc1, b::one) == b::one);
    CHECK(one("max.NaN.bf16 %h0, %h1, %h2;", b::one, 0xffc1) == nan16);
    CHECK(one("min.bf16x2 %r0, %r1, %r2;", pair(b::one, 0), pair(b::two, b::minus)) == pair(b::one, b::minus));
    CHECK(one("max.NaN.bf16x2 %r0, %r1, %r2;", pair(0x7fc0, b::one), pair(b::two, b::three)) == pair(nan16, b::three));
}

TEST_CASE("signs of small floats") {
    CHECK(one("neg.f16 %h0, %h1;", h::one) == (h::one | h::minus));
    CHECK(one("neg.f16 %h0, %h1;", h::tiny) == (h::tiny | h::minus));
    CHECK(one("neg.ftz.f16 %h0, %h1;", h::tiny) == h::minus);
    CHECK(one("neg.f16x2 %r0, %r1;", pair(h::minus, h::two)) == pair(0, h::two | h::minus));
    CHECK(one("neg.bf16 %h0, %h1;", b::three) == (b::three | b::minus));
    CHECK(one("neg.bf16x2 %r0, %r1;", pair(b::one | b::minus, b::two)) == pair(b::one, b::two | b::minus));
    CHECK(one("abs.f16 %h0, %h1;", h::three | h::minus) == h::three);
    CHECK(one("abs.ftz.f16 %h0, %h1;", h::tiny | h::minus) == 0);
    CHECK(one("abs.f16x2 %r0, %r1;", pair(h::one | h::minus, h::two)) == pair(h::one, h::two));
    CHECK(one("abs.bf16 %h0, %h1;", b::two | b::minus) == b::two);
    CHECK(one("abs.bf16x2 %r0, %r1;", pair(b::one | b::minus, b::minus)) == pair(b::one, 0));
}

TEST_CASE("comparisons of small floats") {
    CHECK(one("setp.lt.f16 %p0, %h1, %h2;", h::one, h::two) == 1);
    CHECK(one("setp.lt.f16 %p0, %h1, %h2;", 0x7e00, h::two) == 0);
    CHECK(one("setp.ltu.f16 %p0, %h1, %h2;", 0x7e00, h::two) == 1);
    CHECK(one("setp.eq.f16 %p0, %h1, %h2;", h::zero, h::minus) == 1);
    CHECK(one("setp.eq.f16 %p0, %h1, %h2;", h::zero, h::tiny) == 0);
    CHECK(one("setp.eq.ftz.f16 %p0, %h1, %h2;", h::zero, h::tiny) == 1);
    CHECK(one("setp.gt.and.f16 %p0, %h1, %h2, %p3;", h::two, h::one, 0) == 0);
    CHECK(one("setp.ge.bf16 %p0, %h1, %h2;", b::two, b::two) == 1);
    CHECK(one("setp.nan.bf16 %p0, %h1, %h2;", b::two, 0x7fc0) == 1);
    CHECK(one("set.eq.u32.f16 %r0, %h1, %h2;", h::one, h::one) == 0xffffffff);
    CHECK(one("set.lt.s32.f16 %r0, %h1, %h2;", h::two, h::one) == 0);
}

TEST_CASE("comparisons of two small floats at once") {
    // p is of the lower half, q of the upper: 1 where it holds
    const auto both = [](const std::string& compare, std::uint64_t a, std::uint64_t b) {
        return one("setp." + compare +
                       " %p4|%p5, %r1, %r2; selp.u32 %r4, 1, 0, %p4; selp.u32 %r5, 2, 0, %p5;"
                       "or.b32 %r0, %r4, %r5;",
                   a, b);
    };
    CHECK(both("lt.f16x2", pair(h::one, h::two), pair(h::two, h::one)) == 2);
    CHECK(both("le.f16x2", pair(h::one, h::two), pair(0x7e00, h::two)) == 1);
    CHECK(both("leu.f16x2", pair(h::one, h::three), pair(0x7e00, h::two)) == 2);
    CHECK(both("eq.ftz.f16x2", pair(h::tiny, h::tiny), pair(h::zero, h::one)) == 2);
    CHECK(both("gt.bf16x2", pair(b::two, b::two), pair(b::one, b::three)) == 2);
    CHECK(both("nan.bf16x2", pair(b::two, 0x7fc0), pair(b::one, b::three)) == 1);
    CHECK(one("set.lt.f16.f16 %h0, %h1, %h2;", h::one, h::two) == h::one);
    CHECK(one("set.lt.u16.f16 %h0, %h1, %h2;", h::one, h::two) == 0xffff);
    CHECK(one("set.ge.bf16.bf16 %h0, %h1, %h2;", b::one, b::two) == 0);
    CHECK(one("set.lt.f16x2.f16x2 %r0, %r1, %r2;", pair(h::one, h::three), pair(h::two, h::two)) == pair(h::one, 0));
    CHECK(one("set.ne.u32.f16x2 %r0, %r1, %r2;", pair(h::one, h::three), pair(h::two, h::three)) == pair(0xffff, 0));
    CHECK(one("set.eq.bf16x2.bf16x2 %r0, %r1, %r2;", pair(b::one, b::three), pair(b::one, b::two)) == pair(b::one, 0));
}

TEST_CASE("the larger magnitude, with the sign of both") {
    CHECK(one("max.xorsign.abs.f16 %h0, %h1, %h2;", h::one | h::minus, h::two) == (h::two | h::minus));
    CHECK(one("min.xorsign.abs.bf16 %h0, %h1, %h2;", b::three | b::minus, b::two | b::minus) == b::two);
    CHECK(one("max.xorsign.abs.f16x2 %r0, %r1, %r2;", pair(h::one, h::two | h::minus), pair(h::three | h::minus, 0)) ==
          pair(h::three | h::minus, h::two | h::minus));
    CHECK(one("min.NaN.xorsign.abs.bf16x2 %r0, %r1, %r2;", pair(0x7fc0, b::three), pair(b::one, b::two)) ==
          pair(nan16, b::two));
}

TEST_CASE("conversions that pack, round, clamp") {
    CHECK(one("cvt.rn.f16x2.f32 %r0, %r1, %r2;", F(1.5f), F(-2)) == pair(0x3e00, 0xc000));
    CHECK(one("cvt.rn.bf16x2.f32 %r0, %r1, %r2;", 0x3f80ffff, 0x3f818000) == pair(0x3f81, 0x3f82));
    CHECK(one("cvt.rz.bf16x2.f32 %r0, %r1, %r2;", 0x3f80ffff, 0xbf80ffff) == pair(0x3f80, 0xbf80));
    CHECK(one("cvt.rz.f16x2.f32 %r0, %r1, %r2;", F(1e6f), F(-1e6f)) == pair(h::max, h::max | h::minus));
    CHECK(one("cvt.rn.f16x2.f32 %r0, %r1, %r2;", F(1e6f), F(65519)) == pair(h::infinity, h::max));
    CHECK(one("cvt.rn.relu.f16x2.f32 %r0, %r1, %r2;", F(-1), 0x7fc00001) == pair(0, nan16));
    CHECK(one("cvt.rn.relu.bf16x2.f32 %r0, %r1, %r2;", F(3), F(-3)) == pair(b::three, 0));
    CHECK(one("cvt.rn.satfinite.f16x2.f32 %r0, %r1, %r2;", F(1e6f), 0xff800000) == pair(h::max, h::max | h::minus));
    CHECK(one("cvt.rn.satfinite.bf16x2.f32 %r0, %r1, %r2;", 0x7f800000, F(1)) == pair(0x7f7f, b::one));
    CHECK(one("cvt.rn.bf16.f32 %h0, %r1;", 0x3f808000) == 0x3f80);
    CHECK(one("cvt.rn.relu.bf16.f32 %h0, %r1;", F(-2)) == 0);
    CHECK(one("cvt.f32.bf16 %r0, %h1;", b::three) == F(3));
    CHECK(one("cvt.rn.bf16.f16 %h0, %h1;", h::three) == b::three);
    CHECK(one("cvt.rn.f16.s32 %h0, %r1;", std::uint32_t(-3)) == (h::three | h::minus));
    CHECK(one("cvt.rzi.s32.bf16 %r0, %h1;", b::three | b::minus) == std::uint32_t(-3));
}

TEST_CASE("approximations that have an exact value") {
    CHECK(one("ex2.approx.f16 %h0, %h1;", h::one) == h::two);
    CHECK(one("ex2.approx.f16x2 %r0, %r1;", pair(h::three, h::zero)) == pair(h::eight, h::one));
    CHECK(one("ex2.approx.ftz.bf16 %h0, %h1;", b::three) == b::eight);
    CHECK(one("ex2.approx.ftz.bf16x2 %r0, %r1;", pair(b::one, 0)) == pair(b::two, b::one));
    CHECK(one("tanh.approx.f16 %h0, %h1;", h::infinity) == h::one);
    CHECK(one("tanh.approx.bf16x2 %r0, %r1;", pair(0, 0xff80)) == pair(0, b::one | b::minus));
}

TEST_CASE("two integers in a register") {
    CHECK(one("add.u16x2 %r0, %r1, %r2;", 0xffff0001, 0x00020003) == 0x00010004);
    CHECK(one("add.s16x2 %r0, %r1, %r2;", 0x7fffffff, 0x00010001) == 0x80000000);
    CHECK(one("min.u16x2 %r0, %r1, %r2;", 0xffff0001, 0x00020003) == 0x00020001);
    CHECK(one("min.s16x2 %r0, %r1, %r2;", 0xffff0001, 0x00020003) == 0xffff0001);
    CHECK(one("max.s16x2 %r0, %r1, %r2;", 0xffff0001, 0x0002fffd) == 0x00020001);
    CHECK(one("max.u16x2 %r0, %r1, %r2;", 0xffff0001, 0x0002fffd) == 0xfffffffd);
    CHECK(one("min.relu.s16x2 %r0, %r1, %r2;", 0xffff0001, 0x00020003) == 0x00000001);
    CHECK(one("max.relu.s16x2 %r0, %r1, %r2;", 0xffffffff, 0xfffe0003) == 0x00000003);
}

TEST_CASE("two f32 in a register") {
    const auto both = [](float high, float low) { return F(high) << 32 | F(low); };
    CHECK(one("add.rn.f32x2 %d0, %d1, %d2;", both(1, 2), both(3, -2)) == both(4, 0));
    CHECK(one("sub.f32x2 %d0, %d1, %d2;", both(1, 2), both(3, -2)) == both(-2, 4));
    CHECK(one("mul.f32x2 %d0, %d1, %d2;", both(1.5f, 2), both(3, -2)) == both(4.5f, -4));
    CHECK(one("fma.rn.f32x2 %d0, %d1, %d2, %d3;", both(1.5f, 2), both(2, 3), both(1, -7)) == both(4, -1));
    CHECK(one("add.ftz.f32x2 %d0, %d1, %d2;", 0x0000000100000001, both(0, 1)) == both(0, 1));
    CHECK(one("add.rz.f32x2 %d0, %d1, %d2;", both(1, 1), both(0x1p-25f, -0x1p-26f)) == both(1, 0x1.fffffep-1f));
}

TEST_CASE("floats of two types in one instruction") {
    CHECK(one("add.f32.f16 %r0, %h1, %r2;", h::one, F(2)) == F(3));
    CHECK(one("sub.rn.f32.bf16 %r0, %h1, %r2;", b::one, F(3)) == F(-2));
    CHECK(one("add.sat.f32.bf16 %r0, %h1, %r2;", b::one, F(2)) == F(1));
    CHECK(one("add.rp.f32.f16 %r0, %h1, %r2;", h::one, F(0x1p-30f)) == F(0x1.000002p0f));
    CHECK(one("fma.rn.f32.f16 %r0, %h1, %h2, %r3;", h::next, h::next, F(-1 - 0x1p-9f)) == F(0x1p-20f));
    CHECK(one("fma.rz.sat.f32.bf16 %r0, %h1, %h2, %r3;", b::two, b::three, F(1)) == F(1));
}

TEST_CASE("tf32 keeps ten bits of the mantissa") {
    CHECK(one("cvt.rna.tf32.f32 %r0, %r1;", 0x3f801000) == 0x3f802000);  // half way: away from zero
    CHECK(one("cvt.rna.tf32.f32 %r0, %r1;", 0xbf801000) == 0xbf802000);
    CHECK(one("cvt.rna.tf32.f32 %r0, %r1;", 0x3f800fff) == 0x3f800000);
    CHECK(one("cvt.rn.tf32.f32 %r0, %r1;", 0x3f801000) == 0x3f800000);
    CHECK(one("cvt.rn.tf32.f32 %r0, %r1;", 0x3f803000) == 0x3f804000);
    CHECK(one("cvt.rz.tf32.f32 %r0, %r1;", 0xbf803fff) == 0xbf802000);
    CHECK(one("cvt.rn.relu.tf32.f32 %r0, %r1;", F(-1)) == 0);
    CHECK(one("cvt.rna.tf32.f32 %r0, %r1;", 0x7f7fffff) == 0x7f800000);
    CHECK(one("cvt.rna.satfinite.tf32.f32 %r0, %r1;", 0xff7fffff) == 0xff7fe000);
    CHECK(one("cvt.rna.tf32.f32 %r0, %r1;", 0xffc12345) == 0x7fffffff);
}

TEST_CASE("floats of 4 and 6 bits") {
    // e2m1: 0 0.5 1 1.5 2 3 4 6
    const auto e2m1 = [](float a, float b) {
        return one("{ .reg .b8 %b0; cvt.rn.satfinite.e2m1x2.f32 %b0, %r1, %r2; cvt.u32.u8 %r0, %b0; }", F(a), F(b));
    };
    CHECK(e2m1(6, -0.5f) == 0x79);
    CHECK(e2m1(0.25f, 0.75f) == 0x02);  // half way, to even: 0 and 1
    CHECK(e2m1(2.5f, 3.5f) == 0x46);    // 2 and 4
    CHECK(e2m1(5, 100) == 0x67);
    CHECK(e2m1(-0.1f, -1e30f) == 0x8f);
    CHECK(e2m1(std::bit_cast<float>(0xffc00000u), 1.5f) == 0x73);
    CHECK(one("{ .reg .b8 %b0; cvt.rn.satfinite.relu.e2m1x2.f32 %b0, %r1, %r2; cvt.u32.u8 %r0, %b0; }", F(-3), F(3)) ==
          0x05);
    CHECK(one("{ .reg .b8 %b0; cvt.u8.u32 %b0, %r1; cvt.rn.f16x2.e2m1x2 %r0, %b0; }", 0x91) ==
          pair(h::half | h::minus, h::half));
    CHECK(one("{ .reg .b8 %b0; cvt.u8.u32 %b0, %r1; cvt.rn.relu.f16x2.e2m1x2 %r0, %b0; }", 0xf7) == pair(0, 0x4600));
    // e2m3: steps of 1/8 up to 2, largest 7.5; e3m2: smallest 1/16, largest 28
    CHECK(one("cvt.rn.satfinite.e2m3x2.f32 %h0, %r1, %r2;", F(1.125f), F(-7.5f)) == 0x093f);
    CHECK(one("cvt.rn.satfinite.e2m3x2.f32 %h0, %r1, %r2;", F(9), F(0.125f)) == 0x1f01);
    CHECK(one("cvt.rn.satfinite.e3m2x2.f32 %h0, %r1, %r2;", F(28), F(0.0625f)) == 0x1f01);
    CHECK(one("cvt.rn.satfinite.e3m2x2.f32 %h0, %r1, %r2;", F(0.03125f), F(-30)) == 0x003f);
    CHECK(one("cvt.rn.f16x2.e2m3x2 %r0, %h1;", 0x093f) == pair(0x3c80, 0x4780 | h::minus));
    CHECK(one("cvt.rn.f16x2.e3m2x2 %r0, %h1;", 0x1f01) == pair(0x4f00, 0x2c00));
}

TEST_CASE("every float of 4 and 6 bits comes back from f16") {
    for (const std::string name : {"e2m1", "e2m3", "e3m2"}) {
        const bool nibbles = name == "e2m1";
        const std::string narrow = nibbles ? "u8" : "u16";
        const std::string code =
            "{ .reg .b" + narrow.substr(1) + " %n<2>; cvt." + narrow + ".u32 %n0, %r1; cvt.rn.f16x2." + name +
            "x2 %r4, %n0; mov.b32 {%h4, %h5}, %r4; cvt.f32.f16 %r5, %h4;" + "cvt.f32.f16 %r6, %h5; cvt.rn.satfinite." +
            name + "x2.f32 %n1, %r6, %r5; cvt.u32." + narrow + " %r0, %n1; }";
        std::vector<Row> rows;
        for (std::uint64_t i = 0, count = nibbles ? 16 : 64; i < count; ++i)
            rows.push_back({i << (nibbles ? 4 : 8) | (count - 1 - i), 0, 0});
        const std::vector<std::uint64_t> back = evaluate(code, rows);
        for (std::size_t i = 0; i < rows.size(); ++i) {
            INFO(name << " " << rows[i][0]);
            CHECK(back[i] == rows[i][0]);
        }
    }
}

TEST_CASE("scales are powers of two") {
    const auto down = [](std::uint64_t a, std::uint64_t b) { return one("cvt.rz.ue8m0x2.f32 %h0, %r1, %r2;", a, b); };
    const auto up = [](std::uint64_t a, std::uint64_t b) { return one("cvt.rp.ue8m0x2.f32 %h0, %r1, %r2;", a, b); };
    CHECK(down(F(1), F(1.5f)) == 0x7f7f);
    CHECK(up(F(1), F(1.5f)) == 0x7f80);
    CHECK(down(F(-2), F(0)) == 0x8000);
    CHECK(up(0x00400000, 0x00400001) == 0x0001);
    CHECK(up(0x7f7fffff, 0x7fc00000) == 0xffff);
    CHECK(one("cvt.rp.satfinite.ue8m0x2.f32 %h0, %r1, %r2;", 0x7f7fffff, 0x7f800000) == 0xfefe);
    CHECK(one("cvt.rz.satfinite.ue8m0x2.f32 %h0, %r1, %r2;", 0x7fc00000, F(4)) == 0xff81);
    CHECK(one("cvt.rp.ue8m0x2.bf16x2 %h0, %r1;", pair(b::three, b::two)) == 0x8180);
    CHECK(one("cvt.rn.bf16x2.ue8m0x2 %r0, %h1;", 0x807f) == pair(b::two, b::one));
    CHECK(one("cvt.rn.bf16x2.ue8m0x2 %r0, %h1;", 0xff00) == pair(nan16, 0x40));
}
