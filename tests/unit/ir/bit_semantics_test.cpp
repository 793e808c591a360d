// SPDX-License-Identifier: Apache-2.0
// The bit operations of semantics.hpp, compared with values worked out by hand from the PTX manual: folder and emulator
// both call them, so the differential tests cannot find mistakes in them.
#include "codegen/ir/op/semantics.hpp"

#include "codegen/ir/op/op.hpp"
#include "tests/catch.hpp"

using namespace ikat;
using namespace ikat::ir;

namespace {

using u32 = std::uint32_t;
using s32 = std::int32_t;
using u64 = std::uint64_t;
using s64 = std::int64_t;

template <const auto& Line, class T>
auto at(auto... operands) {
    return Line.template operator()<T>(operands...);
}
u32 permute(u32 c, std::string_view mode) {
    return at<sem::PermuteBytes, u32>(u32(0x33221100), u32(0x77665544), c, u32(*mode_named(Op::PermuteBytes, mode)));
}
u32 funnel(u32 n, std::string_view mode) {
    return at<sem::FunnelShift, u32>(u32(0x89abcdef), u32(0x01234567), n, u32(*mode_named(Op::FunnelShift, mode)));
}

}  // namespace

TEST_CASE("counting bits") {
    CHECK(at<sem::PopCount, u32>(u32(0xf0f0000f)) == 12);
    CHECK(at<sem::PopCount, s64>(s64(-1)) == 64);
    CHECK(at<sem::LeadingZeros, u32>(u32(0)) == 32);
    CHECK(at<sem::LeadingZeros, s64>(s64(1)) == 63);
    CHECK(at<sem::HighestBit, u32>(u32(0x00010000)) == 16);
    CHECK(at<sem::HighestBit, u32>(u32(0)) == ~0u);
    CHECK(at<sem::HighestBit, s32>(s32(-1)) == ~0u);
    CHECK(at<sem::HighestBit, s32>(s32(-5)) == 2);  // ...11111011: bit 2 differs from the sign
    CHECK(at<sem::HighestBit, s64>(std::numeric_limits<s64>::min()) == 62);
    CHECK(at<sem::HighestBitShift, u32>(u32(0x00010000)) == 15);
    CHECK(at<sem::HighestBitShift, u64>(u64(0)) == ~0u);
    CHECK(at<sem::ReverseBits, u32>(u32(0x00000013)) == 0xc8000000);
    CHECK(at<sem::ReverseBits, u64>(u64(1)) == u64(1) << 63);
}

TEST_CASE("fields of bits") {
    const auto unsigned_field = [](u32 a, u32 p, u32 n) { return at<sem::ExtractBits, u32>(a, p, n); };
    const auto signed_field = [](s32 a, u32 p, u32 n) { return at<sem::ExtractBits, s32>(a, p, n); };
    CHECK(unsigned_field(0x12345678, 8, 12) == 0x456);
    CHECK(unsigned_field(0x12345678, 28, 12) == 0x1);
    CHECK(unsigned_field(0xffffffff, 32, 4) == 0);
    CHECK(unsigned_field(0x12345678, 8, 0) == 0);
    CHECK(unsigned_field(0x12345678, 0, 32) == 0x12345678);
    CHECK(unsigned_field(0x12345678, 256 + 4, 256 + 4) == 0x7);  // eight bits of each count
    CHECK(signed_field(0x00000f00, 8, 4) == -1);
    CHECK(signed_field(0x00000700, 8, 4) == 7);
    CHECK(signed_field(s32(0x80000000), 31, 8) == -1);   // bits above the top are the sign
    CHECK(signed_field(s32(0x80000000), 200, 8) == -1);  // ... even if there are no others
    CHECK(signed_field(0x7fffffff, 200, 8) == 0);
    CHECK(at<sem::ExtractBits, s64>(s64(0x00f0000000000000), 52u, 4u) == -1);
    CHECK(at<sem::InsertBits, u32>(u32(0xabcd), u32(0x11111111), 8u, 8u) == 0x1111cd11);
    CHECK(at<sem::InsertBits, u32>(u32(0xabcd), u32(0x11111111), 28u, 8u) == 0xd1111111);
    CHECK(at<sem::InsertBits, u32>(u32(0xabcd), u32(0x11111111), 32u, 8u) == 0x11111111);
    CHECK(at<sem::InsertBits, u32>(u32(0xabcd), u32(0x11111111), 4u, 0u) == 0x11111111);
    CHECK(at<sem::InsertBits, u64>(u64(0xff), u64(0), 60u, 64u) == u64(0xf) << 60);
}

TEST_CASE("bytes are permuted by nibbles and by the special modes") {
    CHECK(permute(0x3210, "plain") == 0x33221100);
    CHECK(permute(0x5410, "plain") == 0x55441100);
    CHECK(permute(0x0007, "plain") == 0x00000077);
    CHECK(at<sem::PermuteBytes, u32>(u32(0x00008000), u32(0), u32(0x1989), u32(0)) ==
          0x80ff00ff);  // 9 is the sign of byte 1
    CHECK(permute(1, "f4e") == 0x44332211);
    CHECK(permute(3, "f4e") == 0x66554433);
    CHECK(permute(0, "b4e") == 0x55667700);
    CHECK(permute(2, "b4e") == 0x77001122);
    CHECK(permute(2, "rc8") == 0x22222222);
    CHECK(permute(0, "ecl") == 0x33221100);
    CHECK(permute(3, "ecl") == 0x33333333);
    CHECK(permute(0, "ecr") == 0x00000000);
    CHECK(permute(3, "ecr") == 0x33221100);
    CHECK(permute(0, "rc16") == 0x11001100);
    CHECK(permute(3, "rc16") == 0x33223322);
}

TEST_CASE("funnel shifts wrap or clamp their amount") {
    CHECK(funnel(8, "l.wrap") == 0x23456789);
    CHECK(funnel(8, "r.wrap") == 0x6789abcd);
    CHECK(funnel(40, "l.wrap") == 0x23456789);
    CHECK(funnel(0, "l.clamp") == 0x01234567);
    CHECK(funnel(40, "l.clamp") == 0x89abcdef);
    CHECK(funnel(32, "r.clamp") == 0x01234567);
    CHECK(funnel(33, "r.wrap") == 0xc4d5e6f7);
}

TEST_CASE("a table is any function of three bits") {
    const u32 a = 0x0f0f1234, b = 0x3355abcd, c = 0x5a5affff;
    const auto of = [&](u32 table) { return at<sem::Logic3, u32>(a, b, c, table); };
    CHECK(of((0xf0 & 0xcc) | 0xaa) == ((a & b) | c));
    CHECK(of(0xf0 ^ 0xcc ^ 0xaa) == (a ^ b ^ c));
    CHECK(of((0xf0 & 0xcc) | (~0xf0 & 0xaa & 0xff)) == ((a & b) | (~a & c)));
    CHECK(of(0xf0 & ~0xcc) == (a & ~b));
}

TEST_CASE("dot products of bytes, with and without signs") {
    const u32 a = 0x80ff0102, b = 0x01020304;
    CHECK((sem::Dp4a.operator()<u32, u32>(a, b, u32(1))) == 0x80 + 0xff * 2 + 3 + 8 + 1);
    CHECK((sem::Dp4a.operator()<s32, u32>(s32(a), b, s32(1))) == -128 - 2 + 3 + 8 + 1);
    CHECK((sem::Dp4a.operator()<u32, s32>(b, s32(a), s32(0))) == -128 - 2 + 3 + 8);
    CHECK((sem::Dp4a.operator()<s32, s32>(s32(0x80808080), s32(0x80808080), s32(-1))) == 4 * 128 * 128 - 1);
    const u32 halves = 0x80000003;  // -32768 or 32768, and 3
    CHECK((sem::Dp2a.operator()<u32, u32>(halves, b, u32(0), 0u)) == 32768 * 3 + 3 * 4);
    CHECK((sem::Dp2a.operator()<s32, u32>(s32(halves), b, s32(0), 1u)) == -32768 * 1 + 3 * 2);
    CHECK((sem::Dp2a.operator()<u32, s32>(halves, s32(0xfe010000), s32(5), 1u)) == -2 * 32768 + 3 + 5);
}

TEST_CASE("saturating sums, differences and short products") {
    constexpr s32 low = std::numeric_limits<s32>::min(), high = std::numeric_limits<s32>::max();
    CHECK(at<sem::AddSat, s32>(high, s32(1)) == high);
    CHECK(at<sem::AddSat, s32>(low, s32(-1)) == low);
    CHECK(at<sem::AddSat, s32>(s32(-3), s32(1)) == -2);
    CHECK(at<sem::SubSat, s32>(s32(0), low) == high);
    CHECK(at<sem::SubSat, s32>(low, s32(1)) == low);
    CHECK(at<sem::Sad, u32>(u32(3), u32(10), u32(100)) == 107);
    CHECK(at<sem::Sad, s32>(low, high, s32(0)) == -1);
    CHECK(at<sem::Mul24, u32>(u32(0xff800000), u32(2), 0u) == 0x01000000);
    CHECK(at<sem::Mul24, s32>(s32(0x00800000), s32(2), 0u) == -0x01000000);
    CHECK(at<sem::Mul24, u32>(u32(0x00ffffff), u32(0x00ffffff), 1u) == 0xfffffe00);
    CHECK(at<sem::Mul24, s32>(s32(0x00800000), s32(0x007fffff), 1u) == s32(0xc0000080));
}

TEST_CASE("floats by their bits") {
    CHECK(at<sem::CopySign, float>(-0.0f, 3.0f) == -3.0f);
    CHECK(at<sem::CopySign, double>(1.0, -3.0) == 3.0);
    const float values[] = {
        1.0f, 0.0f, 1e-40f, std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN(), -1e-40f};
    const std::string_view expected[] = {"finite number normal ", "finite number normal ", "finite number subnormal ",
                                         "infinite number ",      "notanumber ",           "finite number subnormal "};
    for (std::size_t i = 0; i < std::size(values); ++i) {
        std::string holds;
        for (u32 mode = 0; mode < 6; ++mode)
            if (at<sem::TestFloat, float>(values[i], mode)) holds += std::string(mode_name(Op::TestFloat, mode)) + ' ';
        CHECK(holds == expected[i]);
    }
}
