// SPDX-License-Identifier: Apache-2.0
// Each instruction family on cases computed by hand from the PTX ISA.
#include <limits>

#include "tests/unit/emulator/evaluate.hpp"

using ikat::tests::D;
using ikat::tests::evaluate;
using ikat::tests::F;
using ikat::tests::Row;

namespace {

constexpr float inf = std::numeric_limits<float>::infinity();
constexpr std::uint64_t nan32 = 0x7fffffff, nan64 = 0x7fffffffffffffff, any_nan = 0x7fc12345;
constexpr std::uint64_t most_negative = 0x80000000;
constexpr std::uint64_t m1 = 0xffffffff;  // -1 in 32 bits

struct Case {
    const char* code;
    std::vector<std::pair<Row, std::uint64_t>> rows;
};

/// Every case with all lanes on one warp, then with every other lane alone.
void check(const std::vector<Case>& cases) {
    for (const Case& c : cases) {
        std::vector<Row> rows;
        for (const auto& [row, expected] : c.rows) rows.push_back(row);
        while (rows.size() < 32) rows.push_back(rows[rows.size() - c.rows.size()]);
        for (const std::uint32_t lanes : {0xffffffffu, 0x55555555u, 0xaaaaaaaau}) {
            const auto results = evaluate(c.code, rows, lanes);
            for (std::size_t i = 0; i < rows.size(); ++i) {
                if (!(lanes >> i & 1)) continue;
                const auto& [row, expected] = c.rows[i % c.rows.size()];
                INFO(c.code << std::hex << "  a " << row[0] << " b " << row[1] << " c " << row[2]);
                CHECK(results[i] == expected);
            }
        }
    }
}

}  // namespace

TEST_CASE("integer arithmetic") {
    check({
        {"add.s32 %r0, %r1, %r2;", {{{m1, 1}, 0}, {{0x7fffffff, 1}, most_negative}, {{5, 7}, 12}}},
        {"add.sat.s32 %r0, %r1, %r2;",
         {{{0x7fffffff, 1}, 0x7fffffff}, {{most_negative, m1}, most_negative}, {{3, 4}, 7}}},
        {"sub.u32 %r0, %r1, %r2;", {{{0, 1}, m1}, {{9, 4}, 5}}},
        {"add.u64 %d0, %d1, %d2;", {{{m1, 1}, 0x100000000}, {{~0ull, 1}, 0}}},
        {"sub.s64 %d0, %d1, %d2;", {{{0, 1}, ~0ull}}},
        {"add.s16 %h0, %h1, %h2;", {{{0xffff, 1}, 0}, {{0x7fff, 1}, 0x8000}}},
        {"mul.lo.s32 %r0, %r1, %r2;", {{{0x10000, 0x10000}, 0}, {{m1, 5}, 0xfffffffb}}},
        {"mul.hi.u32 %r0, %r1, %r2;", {{{m1, m1}, 0xfffffffe}, {{0x10000, 0x10000}, 1}}},
        {"mul.hi.s32 %r0, %r1, %r2;", {{{m1, m1}, 0}, {{m1, 1}, m1}, {{most_negative, 2}, m1}}},
        {"mul.hi.u64 %d0, %d1, %d2;", {{{~0ull, ~0ull}, ~0ull - 1}, {{1ull << 63, 2}, 1}}},
        {"mul.hi.s64 %d0, %d1, %d2;", {{{~0ull, ~0ull}, 0}, {{1ull << 63, 2}, ~0ull}}},
        {"mul.hi.s16 %h0, %h1, %h2;", {{{0x8000, 2}, 0xffff}, {{0x4000, 4}, 1}}},
        {"mul.wide.u32 %d0, %r1, %r2;", {{{m1, m1}, 0xfffffffe00000001}}},
        {"mul.wide.s32 %d0, %r1, %r2;", {{{m1, 4}, ~0ull - 3}, {{most_negative, most_negative}, 1ull << 62}}},
        {"mul.wide.u16 %r0, %h1, %h2;", {{{0xffff, 0xffff}, 0xfffe0001}}},
        {"mul.wide.s16 %r0, %h1, %h2;", {{{0xffff, 3}, 0xfffffffd}}},
        {"mul.lo.u64 %d0, %d1, %d2;", {{{1ull << 33, 1ull << 31}, 0}, {{m1, m1}, 0xfffffffe00000001}}},
        {"mad.lo.s32 %r0, %r1, %r2, %r3;", {{{3, 4, 5}, 17}, {{m1, 2, 1}, m1}}},
        {"mad.hi.u32 %r0, %r1, %r2, %r3;", {{{0x10000, 0x10000, 7}, 8}}},
        {"mad.wide.s32 %d0, %r1, %r2, %d3;", {{{m1, 4, 100}, 96}}},
        {"mad.lo.u64 %d0, %d1, %d2, %d3;", {{{5, 6, 7}, 37}}},
        {"mul24.lo.s32 %r0, %r1, %r2;", {{{0xffffff, 2}, 0xfffffffe}, {{0x01000003, 5}, 15}}},
        {"mad24.lo.u32 %r0, %r1, %r2, %r3;", {{{0x01000003, 5, 1}, 16}}},
        {"sad.s32 %r0, %r1, %r2, %r3;", {{{m1, 2, 10}, 13}, {{2, m1, 10}, 13}}},
        {"sad.u32 %r0, %r1, %r2, %r3;", {{{2, 5, 10}, 13}}},
        {"neg.s32 %r0, %r1;", {{{1}, m1}, {{most_negative}, most_negative}}},
        {"abs.s32 %r0, %r1;", {{{m1}, 1}, {{most_negative}, most_negative}, {{7}, 7}}},
        {"neg.s64 %d0, %d1;", {{{1}, ~0ull}}},
        {"min.s32 %r0, %r1, %r2;", {{{m1, 1}, m1}, {{3, 2}, 2}}},
        {"min.u32 %r0, %r1, %r2;", {{{m1, 1}, 1}}},
        {"max.s64 %d0, %d1, %d2;", {{{~0ull, 1}, 1}}},
        {"max.u16 %h0, %h1, %h2;", {{{0xffff, 1}, 0xffff}}},
        {"max.s16 %h0, %h1, %h2;", {{{0xffff, 1}, 1}}},
        {"add.s32 %r0, %r1, -5;", {{{3}, 0xfffffffe}}},
    });
}

TEST_CASE("division by zero gives all ones and the dividend; the lowest by -1 wraps") {
    check({
        {"div.s32 %r0, %r1, %r2;",
         {{{7, 2}, 3}, {{0xfffffff9, 2}, 0xfffffffd}, {{7, 0}, m1}, {{most_negative, m1}, most_negative}}},
        {"div.u32 %r0, %r1, %r2;", {{{m1, 2}, 0x7fffffff}, {{7, 0}, m1}}},
        {"rem.s32 %r0, %r1, %r2;", {{{0xfffffff9, 2}, m1}, {{7, 0}, 7}, {{most_negative, m1}, 0}}},
        {"rem.u64 %d0, %d1, %d2;", {{{17, 5}, 2}, {{17, 0}, 17}}},
        {"div.s64 %d0, %d1, %d2;", {{{1ull << 63, ~0ull}, 1ull << 63}, {{100, 7}, 14}, {{100, 0}, ~0ull}}},
        {"div.u16 %h0, %h1, %h2;", {{{100, 7}, 14}, {{100, 0}, 0xffff}}},
    });
}

TEST_CASE("bits") {
    check({
        {"and.b32 %r0, %r1, %r2;", {{{0xf0f0, 0xff00}, 0xf000}}},
        {"or.b64 %d0, %d1, %d2;", {{{1ull << 40, 1}, (1ull << 40) | 1}}},
        {"xor.b32 %r0, %r1, %r2;", {{{0xff, 0x0f}, 0xf0}}},
        {"not.b32 %r0, %r1;", {{{0}, m1}}},
        {"not.b16 %h0, %h1;", {{{0x00ff}, 0xff00}}},
        {"cnot.b32 %r0, %r1;", {{{0}, 1}, {{5}, 0}}},
        {"and.pred %p0, %p1, %p2;", {{{1, 1}, 1}, {{1, 0}, 0}}},
        {"or.pred %p0, %p1, %p2;", {{{1, 0}, 1}, {{0, 0}, 0}}},
        {"xor.pred %p0, %p1, %p2;", {{{1, 1}, 0}, {{0, 1}, 1}}},
        {"not.pred %p0, %p1;", {{{1}, 0}, {{0}, 1}}},
        {"shl.b32 %r0, %r1, %r2;", {{{1, 31}, most_negative}, {{1, 32}, 0}, {{1, m1}, 0}, {{3, 0}, 3}}},
        {"shr.u32 %r0, %r1, %r2;", {{{most_negative, 31}, 1}, {{m1, 32}, 0}}},
        {"shr.s32 %r0, %r1, %r2;", {{{most_negative, 31}, m1}, {{most_negative, 99}, m1}, {{0x7fffffff, 99}, 0}}},
        {"shl.b64 %d0, %d1, %r2;", {{{1, 63}, 1ull << 63}, {{1, 64}, 0}}},
        {"shr.s64 %d0, %d1, %r2;", {{{1ull << 63, 63}, ~0ull}, {{1ull << 63, 200}, ~0ull}}},
        {"shl.b16 %h0, %h1, %r2;", {{{1, 15}, 0x8000}, {{1, 16}, 0}}},
        {"shr.s16 %h0, %h1, %r2;", {{{0x8000, 15}, 0xffff}}},
        {"shf.l.wrap.b32 %r0, %r1, %r2, %r3;", {{{most_negative, 1, 1}, 3}, {{most_negative, 1, 33}, 3}}},
        {"shf.r.clamp.b32 %r0, %r1, %r2, %r3;", {{{2, 1, 1}, 0x80000001}, {{2, 1, 40}, 1}}},
        {"popc.b32 %r0, %r1;", {{{0xf0f0}, 8}}},
        {"popc.b64 %r0, %d1;", {{{~0ull}, 64}}},
        {"clz.b32 %r0, %r1;", {{{0}, 32}, {{1}, 31}}},
        {"clz.b64 %r0, %d1;", {{{1}, 63}, {{0}, 64}}},
        {"brev.b32 %r0, %r1;", {{{1}, most_negative}, {{0x0000000f}, 0xf0000000}}},
        {"brev.b64 %d0, %d1;", {{{1}, 1ull << 63}}},
        {"bfind.u32 %r0, %r1;", {{{0}, m1}, {{0x10}, 4}}},
        {"bfind.s32 %r0, %r1;", {{{m1}, m1}, {{0xfffffff0}, 3}, {{0x7fffffff}, 30}}},
        {"bfind.shiftamt.u32 %r0, %r1;", {{{0x10}, 27}, {{0}, m1}}},
        {"bfe.u32 %r0, %r1, %r2, %r3;",
         {{{0xabcd1234, 8, 8}, 0x12},
          {{m1, 28, 8}, 0xf},
          {{m1, 40, 8}, 0},
          {{m1, 3, 0}, 0},
          {{m1, 4, 32}, 0x0fffffff}}},
        {"bfe.s32 %r0, %r1, %r2, %r3;",
         {{{0x00008000, 8, 8}, 0xffffff80},
          {{most_negative, 28, 8}, 0xfffffff8},
          {{0x7fffffff, 28, 8}, 7},
          {{most_negative, 40, 8}, m1},
          {{most_negative, 4, 32}, 0xf8000000},
          {{0x70, 4, 4}, 7}}},
        {"bfe.u64 %d0, %d1, %r2, %r3;",
         {{{0xff00000000000000, 56, 8}, 0xff},
          {{1, 0, 0x80000000}, 1},  // as an H200 has them, unlike those of 32 bits
          {{1, 0x80000000, 1}, 0},
          {{1, 0x80000000, 5}, 0}}},
        {"bfi.b32 %r0, %r1, %r2, 8, 8;", {{{0xab, 0x11111111}, 0x1111ab11}}},
        {"bfi.b32 %r0, %r1, %r2, 28, 8;", {{{0xff, 0}, 0xf0000000}}},
        {"bfi.b32 %r0, %r1, %r2, 32, 8;", {{{0xff, 5}, 5}}},
        {"bmsk.clamp.b32 %r0, %r1, %r2;", {{{4, 8}, 0xff0}, {{40, 8}, 0}, {{4, 40}, 0xfffffff0}}},
        {"prmt.b32 %r0, %r1, %r2, %r3;",
         {{{0x33221100, 0x77665544, 0x7410}, 0x77441100}, {{0x80, 0x7f, 0xc8c8}, 0x00ff00ff}}},
        {"lop3.b32 %r0, %r1, %r2, %r3, 0x80;", {{{0xff, 0x0f, 0x33}, 0x03}}},
        {"lop3.b32 %r0, %r1, %r2, %r3, 0x96;", {{{0xff, 0x0f, 0x33}, 0xff ^ 0x0f ^ 0x33}}},
        {"lop3.b32 %r0, %r1, %r2, %r3, 0xca;", {{{0xf0, 0xaa, 0x55}, 0xa5}}},
        {"dp4a.u32.u32 %r0, %r1, %r2, %r3;", {{{0x01020304, 0x01010101, 5}, 15}, {{0xff000000, 0xff000000, 0}, 65025}}},
        {"dp4a.s32.u32 %r0, %r1, %r2, %r3;", {{{0xff000000, 0xff000000, 0}, 0xffffff01}}},
        {"dp4a.s32.s32 %r0, %r1, %r2, %r3;", {{{0xff000000, 0xff000000, 0}, 1}}},
    });
}

TEST_CASE("f32 arithmetic: canonical NaN, signed zeros, no flush without .ftz") {
    const std::uint64_t subnormal = 0x00000001;
    check({
        {"add.f32 %r0, %r1, %r2;",
         {{{F(1), F(2)}, F(3)}, {{F(inf), F(-inf)}, nan32}, {{any_nan, F(1)}, nan32}, {{subnormal, 0}, subnormal}}},
        {"add.ftz.f32 %r0, %r1, %r2;",
         {{{subnormal, 0}, 0}, {{0x80000001, most_negative}, most_negative}, {{F(1), F(2)}, F(3)}}},
        {"sub.rn.f32 %r0, %r1, %r2;", {{{F(1), F(1)}, 0}, {{0, 0}, 0}, {{most_negative, 0}, most_negative}}},
        {"mul.f32 %r0, %r1, %r2;", {{{F(3), F(-2)}, F(-6)}, {{0, F(inf)}, nan32}, {{0x00800000, F(0.5f)}, 0x00400000}}},
        {"mul.ftz.f32 %r0, %r1, %r2;", {{{0x00800000, F(0.5f)}, 0}}},
        {"add.sat.f32 %r0, %r1, %r2;",
         {{{F(1), F(2)}, F(1)}, {{F(-1), F(0.5f)}, 0}, {{any_nan, 0}, 0}, {{F(0.25f), F(0.5f)}, F(0.75f)}}},
        {"fma.rn.f32 %r0, %r1, %r2, %r3;",
         {{{F(3), F(4), F(5)}, F(17)}, {{0, F(inf), F(1)}, nan32}, {{0x3f800003, 0x3f800003, F(-1)}, 0x35400002}}},
        {"mad.rn.f32 %r0, %r1, %r2, %r3;", {{{F(3), F(4), F(5)}, F(17)}}},
        {"add.rz.f32 %r0, %r1, %r2;",
         {{{F(1), 0x33800000}, F(1)}, {{F(1), 0x34000000}, 0x3f800001}, {{F(-1), 0xb3c00000}, F(-1)}}},
        {"add.rp.f32 %r0, %r1, %r2;", {{{F(1), 0x33800000}, 0x3f800001}, {{F(-1), 0xb3800000}, F(-1)}}},
        {"add.rm.f32 %r0, %r1, %r2;", {{{F(1), 0x33800000}, F(1)}, {{F(-1), 0xb3800000}, 0xbf800001}}},
        {"div.rn.f32 %r0, %r1, %r2;", {{{F(1), F(3)}, 0x3eaaaaab}, {{F(1), 0}, F(inf)}, {{0, 0}, nan32}}},
        {"div.rz.f32 %r0, %r1, %r2;", {{{F(1), F(3)}, 0x3eaaaaaa}}},
        {"div.approx.f32 %r0, %r1, %r2;", {{{F(6), F(3)}, F(2)}}},
        {"sqrt.rn.f32 %r0, %r1;", {{{F(9)}, F(3)}, {{F(-1)}, nan32}, {{most_negative}, most_negative}}},
        {"rcp.rn.f32 %r0, %r1;", {{{F(4)}, F(0.25f)}, {{most_negative}, F(-inf)}}},
        {"rsqrt.approx.f32 %r0, %r1;", {{{F(16)}, F(0.25f)}}},
        {"ex2.approx.f32 %r0, %r1;", {{{F(3)}, F(8)}, {{F(-inf)}, 0}}},
        {"lg2.approx.f32 %r0, %r1;", {{{F(8)}, F(3)}, {{0}, F(-inf)}, {{F(-1)}, nan32}}},
        {"sin.approx.f32 %r0, %r1;", {{{0}, 0}}},
        {"cos.approx.f32 %r0, %r1;", {{{0}, F(1)}}},
        {"tanh.approx.f32 %r0, %r1;", {{{0}, 0}, {{F(inf)}, F(1)}}},
        {"neg.f32 %r0, %r1;", {{{F(1)}, F(-1)}, {{0}, most_negative}}},
        {"abs.f32 %r0, %r1;", {{{F(-1)}, F(1)}, {{most_negative}, 0}}},
        {"copysign.f32 %r0, %r1, %r2;", {{{F(-1), F(2)}, F(-2)}, {{F(1), F(-2)}, F(2)}}},
    });
}

TEST_CASE("min and max: a number beats a NaN, -0 is below +0; .NaN gives the NaN") {
    check({
        {"min.f32 %r0, %r1, %r2;",
         {{{F(1), F(2)}, F(1)},
          {{any_nan, F(2)}, F(2)},
          {{F(2), any_nan}, F(2)},
          {{any_nan, any_nan}, nan32},
          {{0, most_negative}, most_negative},
          {{most_negative, 0}, most_negative}}},
        {"max.f32 %r0, %r1, %r2;",
         {{{F(1), F(2)}, F(2)}, {{any_nan, F(2)}, F(2)}, {{0, most_negative}, 0}, {{most_negative, 0}, 0}}},
        {"min.NaN.f32 %r0, %r1, %r2;", {{{any_nan, F(2)}, nan32}, {{F(3), F(2)}, F(2)}}},
        {"max.NaN.f32 %r0, %r1, %r2;", {{{F(2), any_nan}, nan32}}},
        {"max.f64 %d0, %d1, %d2;", {{{D(1), D(-2)}, D(1)}, {{nan64, D(-2)}, D(-2)}}},
        {"min.f16 %h0, %h1, %h2;", {{{0x3c00, 0x4000}, 0x3c00}, {{0x7e00, 0x4000}, 0x4000}, {{0x8000, 0}, 0x8000}}},
    });
}

TEST_CASE("f64 and f16 arithmetic") {
    check({
        {"add.f64 %d0, %d1, %d2;", {{{D(0.1), D(0.2)}, D(0.1 + 0.2)}, {{D(1e308), D(1e308)}, 0x7ff0000000000000}}},
        {"mul.rn.f64 %d0, %d1, %d2;", {{{D(3), D(-0.5)}, D(-1.5)}, {{0, 0x7ff0000000000000}, nan64}}},
        {"fma.rn.f64 %d0, %d1, %d2, %d3;", {{{D(2), D(3), D(1)}, D(7)}}},
        {"fma.rz.f64 %d0, %d1, %d2, %d3;", {{{D(1), D(1), D(0x1p-53)}, D(1)}}},
        {"fma.rp.f64 %d0, %d1, %d2, %d3;", {{{D(1), D(1), D(0x1p-60)}, D(1) + 1}}},
        {"div.rn.f64 %d0, %d1, %d2;", {{{D(1), D(3)}, D(1.0 / 3)}}},
        {"sqrt.rn.f64 %d0, %d1;", {{{D(2)}, 0x3ff6a09e667f3bcd}}},
        {"add.f16 %h0, %h1, %h2;",
         {{{0x3c00, 0x4000}, 0x4200}, {{0x7bff, 0x7bff}, 0x7c00}, {{0x7c00, 0xfc00}, 0x7fff}}},
        {"mul.f16 %h0, %h1, %h2;", {{{0x4000, 0x4200}, 0x4600}, {{0x0001, 0x3800}, 0}}},
        {"fma.rn.f16 %h0, %h1, %h2, %h3;", {{{0x4000, 0x4200, 0x3c00}, 0x4700}}},
        {"neg.f16 %h0, %h1;", {{{0x3c00}, 0xbc00}}},
        {"add.f16x2 %r0, %r1, %r2;", {{{0x3c004000, 0x3c003c00}, 0x40004200}}},
        {"fma.rn.f16x2 %r0, %r1, %r2, %r3;", {{{0x3c004000, 0x40004200, 0x3c003c00}, 0x42004700}}},
    });
}

TEST_CASE("comparisons: unordered ones hold for a NaN") {
    check({
        {"setp.lt.s32 %p0, %r1, %r2;", {{{m1, 0}, 1}, {{0, m1}, 0}, {{2, 2}, 0}}},
        {"setp.lt.u32 %p0, %r1, %r2;", {{{m1, 0}, 0}, {{0, m1}, 1}}},
        {"setp.le.s32 %p0, %r1, %r2;", {{{2, 2}, 1}, {{3, 2}, 0}}},
        {"setp.gt.s64 %p0, %d1, %d2;", {{{0, ~0ull}, 1}, {{~0ull, 0}, 0}}},
        {"setp.ge.u64 %p0, %d1, %d2;", {{{~0ull, 0}, 1}, {{5, 5}, 1}, {{4, 5}, 0}}},
        {"setp.hi.u32 %p0, %r1, %r2;", {{{m1, 0}, 1}}},
        {"setp.eq.b16 %p0, %h1, %h2;", {{{0x10005, 5}, 1}}},
        {"setp.ne.s16 %p0, %h1, %h2;", {{{5, 6}, 1}}},
        {"setp.lt.f32 %p0, %r1, %r2;", {{{F(1), F(2)}, 1}, {{any_nan, F(2)}, 0}}},
        {"setp.eq.f32 %p0, %r1, %r2;", {{{0, most_negative}, 1}, {{any_nan, any_nan}, 0}}},
        {"setp.ne.f32 %p0, %r1, %r2;", {{{F(1), F(2)}, 1}, {{any_nan, F(2)}, 0}, {{F(1), F(1)}, 0}}},
        {"setp.neu.f32 %p0, %r1, %r2;", {{{F(1), F(1)}, 0}, {{any_nan, F(2)}, 1}}},
        {"setp.equ.f32 %p0, %r1, %r2;", {{{F(1), F(1)}, 1}, {{any_nan, F(2)}, 1}, {{F(1), F(2)}, 0}}},
        {"setp.ltu.f32 %p0, %r1, %r2;", {{{F(2), F(1)}, 0}, {{F(1), any_nan}, 1}, {{F(1), F(2)}, 1}}},
        {"setp.leu.f32 %p0, %r1, %r2;", {{{F(1), F(1)}, 1}, {{F(1), any_nan}, 1}, {{F(2), F(1)}, 0}}},
        {"setp.gtu.f32 %p0, %r1, %r2;", {{{F(2), F(1)}, 1}, {{F(1), any_nan}, 1}, {{F(1), F(1)}, 0}}},
        {"setp.geu.f32 %p0, %r1, %r2;", {{{F(1), F(1)}, 1}, {{F(1), any_nan}, 1}, {{F(1), F(2)}, 0}}},
        {"setp.num.f32 %p0, %r1, %r2;", {{{F(1), F(1)}, 1}, {{F(1), any_nan}, 0}}},
        {"setp.nan.f32 %p0, %r1, %r2;", {{{F(1), F(1)}, 0}, {{any_nan, F(1)}, 1}}},
        {"setp.gt.ftz.f32 %p0, %r1, %r2;", {{{1, 0}, 0}, {{F(1), 0}, 1}}},
        {"setp.gt.f64 %p0, %d1, %d2;", {{{D(2), D(1)}, 1}, {{nan64, D(1)}, 0}}},
        {"setp.lt.f16 %p0, %h1, %h2;", {{{0x3c00, 0x4000}, 1}}},
        {"setp.lt.and.s32 %p0, %r1, %r2, %p3;", {{{1, 2, 1}, 1}, {{1, 2, 0}, 0}}},
        {"setp.lt.or.s32 %p0, %r1, %r2, !%p3;", {{{2, 1, 1}, 0}, {{2, 1, 0}, 1}}},
        {"setp.lt.xor.s32 %p0, %r1, %r2, %p3;", {{{1, 2, 1}, 0}, {{1, 2, 0}, 1}}},
        {"setp.lt.s32 %p4|%p0, %r1, %r2;", {{{1, 2}, 0}, {{2, 1}, 1}}},
        {"setp.lt.and.s32 %p4|%p0, %r1, %r2, %p3;", {{{2, 1, 1}, 1}, {{2, 1, 0}, 0}, {{1, 2, 1}, 0}}},
        {"set.lt.u32.s32 %r0, %r1, %r2;", {{{m1, 2}, m1}, {{3, 2}, 0}}},
        {"set.lt.f32.f32 %r0, %r1, %r2;", {{{F(1), F(2)}, F(1)}, {{F(2), F(1)}, 0}}},
        {"selp.b32 %r0, %r1, %r2, %p3;", {{{5, 6, 1}, 5}, {{5, 6, 0}, 6}}},
        {"selp.f64 %d0, %d1, %d2, %p3;", {{{D(5), D(6), 1}, D(5)}}},
        {"selp.b32 %r0, %r1, %r2, !%p3;", {{{5, 6, 1}, 6}}},
        {"slct.b32.s32 %r0, %r1, %r2, %r3;", {{{5, 6, 0}, 5}, {{5, 6, m1}, 6}}},
    });
}

TEST_CASE("conversions round and clamp as PTX says") {
    check({
        {"cvt.u8.u32 %r0, %r1;", {{{0x1ff}, 0xff}}},
        {"cvt.s8.s32 %r0, %r1;", {{{0x1ff}, m1}, {{0x7f}, 0x7f}}},
        {"cvt.s32.s8 %r0, %r1;", {{{0x80}, 0xffffff80}}},
        {"cvt.u32.u16 %r0, %h1;", {{{0x18000}, 0x8000}}},
        {"cvt.s32.s16 %r0, %h1;", {{{0x8000}, 0xffff8000}}},
        {"cvt.s64.s32 %d0, %r1;", {{{m1}, ~0ull}}},
        {"cvt.u64.u32 %d0, %r1;", {{{m1}, m1}}},
        {"cvt.sat.u8.s32 %r0, %r1;", {{{m1}, 0}, {{300}, 255}, {{7}, 7}}},
        {"cvt.sat.s8.s32 %r0, %r1;", {{{0xffffff00}, 0xffffff80}, {{300}, 127}}},
        {"cvt.rn.f32.s32 %r0, %r1;", {{{m1}, F(-1)}, {{16777217}, F(16777216)}}},
        {"cvt.rz.f32.s32 %r0, %r1;", {{{16777219}, F(16777218)}}},
        {"cvt.rp.f32.u32 %r0, %r1;", {{{16777217}, F(16777218)}}},
        {"cvt.rn.f32.u32 %r0, %r1;", {{{m1}, F(4294967296.f)}}},
        {"cvt.rn.f32.u64 %r0, %d1;", {{{~0ull}, F(18446744073709551616.f)}}},
        {"cvt.rn.f64.s32 %d0, %r1;", {{{m1}, D(-1)}}},
        {"cvt.rzi.s32.f32 %r0, %r1;",
         {{{F(-1.9f)}, m1},
          {{F(3e9f)}, 0x7fffffff},
          {{F(-3e9f)}, most_negative},
          {{any_nan}, 0},
          {{F(1.9999999f)}, 1}}},
        {"cvt.rzi.u32.f32 %r0, %r1;",
         {{{F(-1.9f)}, 0},
          {{F(3e9f)}, 3000000000u},
          {{F(5e9f)}, m1},
          {{any_nan}, 0},
          {{F(2147483648.f)}, most_negative},
          {{F(0.99999994f)}, 0}}},
        {"cvt.rni.s32.f32 %r0, %r1;", {{{F(2.5f)}, 2}, {{F(3.5f)}, 4}, {{F(-2.5f)}, 0xfffffffe}}},
        {"cvt.rmi.s32.f32 %r0, %r1;", {{{F(-2.5f)}, 0xfffffffd}}},
        {"cvt.rpi.s32.f32 %r0, %r1;", {{{F(2.1f)}, 3}}},
        {"cvt.rzi.s64.f32 %d0, %r1;", {{{F(1e19f)}, 0x7fffffffffffffff}, {{any_nan}, 1ull << 63}}},
        {"cvt.rzi.s32.f64 %r0, %d1;", {{{D(-7.9)}, 0xfffffff9}, {{nan64}, most_negative}}},
        {"cvt.rzi.u8.f32 %r0, %r1;", {{{F(300)}, 255}, {{F(-3)}, 0}}},
        {"cvt.rni.f32.f32 %r0, %r1;", {{{F(2.5f)}, F(2)}, {{F(-0.25f)}, most_negative}}},
        {"cvt.rmi.f32.f32 %r0, %r1;", {{{F(-2.5f)}, F(-3)}}},
        {"cvt.rpi.f64.f64 %d0, %d1;", {{{D(2.25)}, D(3)}}},
        {"cvt.f64.f32 %d0, %r1;", {{{F(1.5f)}, D(1.5)}, {{any_nan}, nan64}}},
        {"cvt.rn.f32.f64 %r0, %d1;", {{{D(0.1)}, F(0.1f)}, {{D(1e300)}, F(inf)}}},
        {"cvt.rz.f32.f64 %r0, %d1;", {{{D(0.1)}, F(0.1f) - 1}, {{D(1e300)}, 0x7f7fffff}}},
        {"cvt.rn.f16.f32 %h0, %r1;",
         {{{F(1)}, 0x3c00},
          {{F(65520)}, 0x7c00},
          {{F(65519)}, 0x7bff},
          {{any_nan}, 0x7fff},
          {{F(0x1p-25f)}, 0},
          {{F(0x1.8p-25f)}, 1}}},
        {"cvt.f32.f16 %r0, %h1;", {{{0x3c00}, F(1)}, {{0x0001}, F(0x1p-24f)}, {{0x7e01}, nan32}, {{0xfc00}, F(-inf)}}},
        {"cvt.sat.f32.f32 %r0, %r1;", {{{F(2)}, F(1)}, {{F(-2)}, 0}, {{any_nan}, 0}}},
        {"cvt.ftz.f32.f32 %r0, %r1;", {{{1}, 0}, {{0x80000001}, most_negative}}},
        {"cvt.rn.f16x2.f32 %r0, %r1, %r2;", {{{F(1), F(2)}, 0x3c004000}}},
    });
}

TEST_CASE("moves pack, unpack and read special registers") {
    check({
        {"mov.b64 %d0, {%r1, %r2};", {{{1, 2}, 0x200000001}}},
        {"mov.b64 {%r5, %r0}, %d1;", {{{0x200000001}, 2}}},
        {"mov.b64 {%r0, %r5}, %d1;", {{{0x200000001}, 1}}},
        {"mov.b64 {%r1, %r0}, %d1;", {{{0x200000001}, 2}}},
        {"mov.b32 %r0, {%h1, %h2};", {{{0x11111, 0x22222}, 0x22221111}}},
        {"mov.b32 {%h5, %h0}, %r1;", {{{0x22221111}, 0x2222}}},
        {"mov.b64 %d0, {%h1, %h2, %h3, %h1};", {{{1, 2, 3}, 0x0001000300020001}}},
        {"mov.b64 {%h4, %h5, %h0, %h6}, %d1;", {{{0x0004000300020001}, 3}}},
        {"mov.u32 %r0, WARP_SZ;", {{{0}, 32}}},
        {"mov.u32 %r0, %ntid.x;", {{{0}, 32}}},
        {"mov.u32 %r0, %nctaid.y;", {{{0}, 1}}},
        {"mov.u32 %r0, %envreg31;", {{{0}, 0}}},
        {"mov.u64 %d0, %pm7_64;", {{{0}, 0}}},
        {".reg .b32 %pmask; mov.u32 %pmask, %r1; mov.u32 %r0, %pmask;", {{{5}, 5}}},
        {"mov.u32 %r5, %aggr_smem_size; mov.u32 %r6, %total_smem_size; sub.u32 %r0, %r5, %r6;", {{{0}, 2048}}},
        {"mov.u32 %r0, %reserved_smem_offset_cap;", {{{0}, 2048}}},
        {"mov.u64 %d0, %current_graph_exec;", {{{0}, 0}}},
        {"mov.pred %p0, %is_explicit_cluster;", {{{0}, 0}}},
        {"mov.f32 %r0, 0f3F800000;", {{{0}, F(1)}}},
        {"mov.f64 %d0, 1.5;", {{{0}, D(1.5)}}},
        {"mov.f32 %r0, 1.5;", {{{0}, F(1.5f)}}},
        {"mov.u32 %r5, %laneid; mov.u32 %r6, %tid.x; sub.u32 %r0, %r5, %r6;", {{{0}, 0}}},
        {"mov.u32 %r5, %lanemask_lt; popc.b32 %r5, %r5; mov.u32 %r6, %laneid; sub.u32 %r0, %r5, %r6;", {{{0}, 0}}},
        {"mov.u32 %r5, %lanemask_ge; mov.u32 %r6, %lanemask_lt; xor.b32 %r0, %r5, %r6;", {{{0}, m1}}},
        {"mov.u32 %r5, %lanemask_le; mov.u32 %r6, %lanemask_gt; xor.b32 %r0, %r5, %r6;", {{{0}, m1}}},
        {"mov.u64 %d5, %clock64; add.u32 %r5, %r1, 1; mov.u64 %d0, 7;", {{{0}, 7}}},
    });
}

TEST_CASE("a register plus a constant is a source like any other") {
    check({
        {"add.u32 %r0, %r1+3, 1;", {{{5}, 9}, {{0xfffffffe}, 2}}},
        {"add.u32 %r0, 1, %r1+-3;", {{{5}, 3}, {{0}, 0xfffffffe}}},
        {"mov.u32 %r0, %r1+7;", {{{5}, 12}}},
        {"mov.u64 %d0, %d1+5000000000;", {{{5}, 5000000005}}},
        {"add.u16 %h0, %h1+3, 1;", {{{0xfffe}, 2}}},
        {"cvt.u64.u16 %d0, %h1+3;", {{{0xfffe}, 1}}},
        {"cvt.u64.u32 %d0, %r1+3;", {{{0xfffffffe}, 1}}},
        {"cvt.u32.u8 %r0, %r1+3;", {{{0xfe}, 1}}},
        {"setp.lt.u32 %p0, %r1+2, %r2;", {{{5, 8}, 1}, {{5, 7}, 0}}},
        {"shl.b32 %r0, %r1+1, %r2+2;", {{{1, 3}, 64}}},
        {"mad.wide.u32 %d0, %r1+1, %r2+2, %d3+5;", {{{2, 3, 0x100000000}, 0x100000014}}},
        {"selp.u32 %r0, %r1+1, %r2+2, %p3;", {{{5, 8, 1}, 6}, {{5, 8, 0}, 10}}},
        {"st.global.u32 [%d31], %r1+2; ld.global.u32 %r0, [%d31];", {{{5}, 7}}},
        {"st.global.u64 [%d31], %d1; atom.global.add.u64 %d5, [%d31], %d2+2; ld.global.u64 %d0, [%d31];",
         {{{5, 3}, 10}}},
        {"mov.u32 %r5, %laneid; mov.u32 %r6, %laneid+3; sub.u32 %r0, %r6, %r5;", {{{0}, 3}}},
        {"mov.b64 {%r5, %r0}, %d1+4;", {{{0x1ffffffff}, 2}}},
        {"@%p1 add.u32 %r0, %r1, %r1+1;", {{{5}, 11}}},
    });
}

TEST_CASE("guards: the lanes that are off keep their register") {
    check({
        {"mov.u32 %r0, 7; @%p3 add.u32 %r0, %r1, %r2;", {{{1, 2, 1}, 3}, {{1, 2, 0}, 7}}},
        {"mov.u32 %r0, 7; @!%p3 add.u32 %r0, %r1, %r2;", {{{1, 2, 1}, 7}, {{1, 2, 0}, 3}}},
        {"mov.u64 %d0, 7; @%p3 mul.wide.u32 %d0, %r1, %r2;", {{{5, 5, 1}, 25}, {{5, 5, 0}, 7}}},
        {"setp.eq.u32 %p0, 0, 0; @%p3 setp.lt.u32 %p0, %r1, %r2;", {{{2, 1, 1}, 0}, {{2, 1, 0}, 1}}},
        {"mov.u32 %r0, 1; @%p3 bra $a; mov.u32 %r0, 2; $a: add.u32 %r0, %r0, 10;", {{{0, 0, 1}, 11}, {{0, 0, 0}, 12}}},
    });
}
