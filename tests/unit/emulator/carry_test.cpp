// SPDX-License-Identifier: Apache-2.0
// Chains of add.cc, addc, sub.cc, subc, mad.cc, madc: the carry of each lane, from one instruction to the next.
#include "tests/catch.hpp"
#include "tests/unit/emulator/evaluate.hpp"

using ikat::tests::evaluate;
using ikat::tests::Row;

namespace {

const std::uint64_t ends[] = {0,         1,    2, 0x7fffffff, 0x80000000, 0xffffffff, 0x100000000, 0x123456789abcdef0,
                              ~0ull - 1, ~0ull};

std::vector<Row> rows() {
    std::vector<Row> out;
    for (std::uint64_t a : ends)
        for (std::uint64_t b : ends) out.push_back({a, b, a ^ b >> 7});
    return out;
}

void check(const std::string& code, auto&& expected) {
    const auto all = rows();
    for (std::uint32_t lanes : {~0u, 0x55555555u}) {
        const auto results = evaluate(code, all, lanes);
        for (std::size_t i = 0; i < all.size(); ++i) {
            if (!(lanes >> (i % 32) & 1)) continue;
            INFO(code << std::hex << "  a " << all[i][0] << " b " << all[i][1] << " c " << all[i][2]);
            CHECK(results[i] == expected(all[i][0], all[i][1], all[i][2]));
        }
    }
}

constexpr const char* halves = R"(
    cvt.u32.u64 %r1, %d1; shr.u64 %d4, %d1, 32; cvt.u32.u64 %r4, %d4;
    cvt.u32.u64 %r2, %d2; shr.u64 %d4, %d2, 32; cvt.u32.u64 %r5, %d4;
)";
constexpr const char* together = "\n    mov.b64 %d0, {%r6, %r7};\n";
std::string on_halves(const char* code) { return std::string(halves) + code + together; }

}  // namespace

TEST_CASE("sums and differences in two steps") {
    check(on_halves("add.cc.u32 %r6, %r1, %r2; addc.u32 %r7, %r4, %r5;"),
          [](std::uint64_t a, std::uint64_t b, std::uint64_t) { return a + b; });
    check(on_halves("sub.cc.u32 %r6, %r1, %r2; subc.u32 %r7, %r4, %r5;"),
          [](std::uint64_t a, std::uint64_t b, std::uint64_t) { return a - b; });
    // a destination that is also an operand
    check(on_halves("add.cc.s32 %r1, %r1, %r2; addc.s32 %r4, %r4, %r5; mov.u32 %r6, %r1; mov.u32 %r7, %r4;"),
          [](std::uint64_t a, std::uint64_t b, std::uint64_t) { return a + b; });
}

TEST_CASE("the carry of a chain's middle and end") {
    check("add.cc.u64 %d4, %d1, %d2; addc.cc.u64 %d4, %d1, %d3; addc.u64 %d0, 0, 0;",
          [](std::uint64_t a, std::uint64_t b, std::uint64_t c) {
              const auto first = static_cast<unsigned __int128>(a) + b;
              return std::uint64_t((static_cast<unsigned __int128>(a) + c + std::uint64_t(first >> 64)) >> 64);
          });
    check("sub.cc.u64 %d4, %d1, %d2; subc.cc.u64 %d4, %d1, %d3; subc.u64 %d0, 0, 0;",
          [](std::uint64_t a, std::uint64_t b, std::uint64_t c) {
              const auto rest = static_cast<unsigned __int128>(a) - c - (a < b ? 1 : 0);
              return rest >> 64 ? ~0ull : 0ull;
          });
    // other instructions leave the carry alone
    check("add.cc.u64 %d4, %d1, %d2; sub.u64 %d5, %d1, %d2; setp.lt.u64 %p5, %d1, %d2; addc.u64 %d0, 0, 0;",
          [](std::uint64_t a, std::uint64_t b, std::uint64_t) { return std::uint64_t(a + b < a); });
}

TEST_CASE("products that are added up") {
    check("mad.lo.cc.u64 %d4, %d1, %d2, %d3; madc.hi.u64 %d0, %d1, %d2, 0;",
          [](std::uint64_t a, std::uint64_t b, std::uint64_t c) {
              return std::uint64_t((static_cast<unsigned __int128>(a) * b + c) >> 64);
          });
    check("mad.hi.cc.u32 %r4, %r1, %r2, %r3; addc.u32 %r0, 0, 0;",
          [](std::uint64_t a, std::uint64_t b, std::uint64_t c) {
              const std::uint64_t product = (a & 0xffffffff) * (b & 0xffffffff) >> 32;
              return (product + (c & 0xffffffff)) >> 32;
          });
}

// When ptxas folds these, it gives the same: the flag is an adder's carry, a difference is a + ~b + 1.
TEST_CASE("sums and differences mixed") {
    const auto mixed = [](const std::string& code) { return std::uint32_t(ikat::tests::one(code + " %r0, 0, 0;", 0)); };
    CHECK(mixed("sub.cc.u32 %r4, 1, 2; addc.u32") == 0);
    CHECK(mixed("sub.cc.u32 %r4, 2, 1; addc.u32") == 1);
    CHECK(mixed("sub.cc.u32 %r4, 2, 2; addc.u32") == 1);
    CHECK(mixed("add.cc.u32 %r4, 1, 2; subc.u32") == ~0u);
    CHECK(mixed("add.cc.u32 %r4, -1, 2; subc.u32") == 0);
    CHECK(mixed("sub.cc.u32 %r4, 5, 5; subc.cc.u32 %r4, 0, 0; addc.u32") == 1);
    CHECK(mixed("add.cc.u32 %r4, 1, 1; subc.cc.u32 %r4, 0, 0; addc.u32") == 0);
    CHECK(ikat::tests::one("mad.lo.cc.u32 %r4, 2, 2, 2; subc.u32 %r0, 5, 1;", 0) == 3);
    check("sub.cc.u64 %d4, %d1, %d2; addc.u64 %d0, 0, 0;",
          [](std::uint64_t a, std::uint64_t b, std::uint64_t) { return std::uint64_t(a >= b); });
    check("add.cc.u64 %d4, %d1, %d2; subc.u64 %d0, %d3, 5;",
          [](std::uint64_t a, std::uint64_t b, std::uint64_t c) { return c - 5 - std::uint64_t(a + b >= a); });
    // a sum in a chain of differences: (a - b) carried into c + a, and that into 0 - 0
    check("sub.cc.u64 %d4, %d1, %d2; addc.cc.u64 %d4, %d3, %d1; subc.u64 %d0, 0, 0;",
          [](std::uint64_t a, std::uint64_t b, std::uint64_t c) {
              const auto sum = static_cast<unsigned __int128>(c) + a + (a >= b ? 1 : 0);
              return sum >> 64 ? 0ull : ~0ull;
          });
}
