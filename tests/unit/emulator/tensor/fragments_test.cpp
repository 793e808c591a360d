// SPDX-License-Identifier: Apache-2.0
// wmma in the forms that CUDA's headers do not make: 4-bit integers, bits, saturation, and what is found about it.
// (What they make is compiled and run in tests/foreign.)
#include <bit>

#include "tests/unit/emulator/machine.hpp"

namespace ikat::tests::fragments {

namespace {

std::string with_product(const std::string& before, const std::string& product) {
    return kernel("ld.param.u64 %d1, [p0]; ld.param.u64 %d2, [p1]; ld.param.u64 %d3, [p2]; mov.u32 %r40, %tid.x;\n" +
                  before + product + " {%r10, %r11}, {%r1}, {%r2}, {%r3, %r4};\n");
}

/// d of a product of one register each, which are loaded from a, b (by columns), and c; d replaces c.
std::vector<std::int32_t> product_of(const std::string& shape, const std::string& a_type, const std::string& b_type,
                                     const std::string& mma, const std::vector<std::uint32_t>& a,
                                     const std::vector<std::uint32_t>& b, const std::vector<std::int32_t>& c) {
    Machine machine;
    const auto at_a = machine.buffer("a", a), at_b = machine.buffer("b", b), at_c = machine.buffer("c", c);
    const std::string form = ".sync.aligned.";
    std::string text =
        with_product("wmma.load.a" + form + "row." + shape + ".global." + a_type + " {%r1}, [%d1];\n" + "wmma.load.b" +
                         form + "col." + shape + ".global." + b_type + " {%r2}, [%d2];\n" + "wmma.load.c" + form +
                         "col." + shape + ".s32 {%r3, %r4}, [%d3], 8;\n",
                     mma);
    text.insert(text.rfind('}'), "wmma.store.d" + form + "col." + shape + ".global.s32 [%d3], {%r10, %r11}, 8; ret;\n");
    machine.run(text, {.block = {32, 1, 1}}, at_a, at_b, at_c, 0);
    return machine.get<std::int32_t>(at_c, 64);
}

std::vector<std::uint32_t> words(std::uint32_t seed) {
    std::vector<std::uint32_t> values(32);
    for (std::uint32_t& value : values) value = seed = seed * 1664525 + 1013904223;
    return values;
}

/// a[8][k] by rows, b by columns, d by columns, of `per` elements in a word.
template <class F>
std::vector<std::int32_t> expected(const std::vector<std::uint32_t>& a, const std::vector<std::uint32_t>& b,
                                   const std::vector<std::int32_t>& c, F of_words) {
    std::vector<std::int32_t> d(64);
    for (std::size_t i = 0; i < 8; ++i)
        for (std::size_t j = 0; j < 8; ++j) {
            std::int64_t sum = c[8 * j + i];
            for (std::size_t word = 0; word < 4; ++word) sum += of_words(a[4 * i + word], b[4 * j + word]);
            d[8 * j + i] = std::int32_t(sum);
        }
    return d;
}

std::string failure(const std::string& before) {
    Machine machine;
    const auto a = machine.buffer("a", words(1)), b = machine.empty<std::uint32_t>("b", 32);
    const auto c = machine.buffer("c", std::vector<std::int32_t>(64));
    std::string text = with_product(before, "wmma.mma.sync.aligned.row.col.m8n8k32.s32.s4.s4.s32");
    text.insert(text.rfind('}'), "st.global.b32 [%d3], %r10; ret;\n");
    const std::string said = machine.failure(text, {.block = {32, 1, 1}}, a, b, c, 0);
    return machine.code + ": " + said;
}

}  // namespace

TEST_CASE("wmma of 4-bit integers and of bits") {
    const auto a = words(1), b = words(2);
    std::vector<std::int32_t> c(64);
    for (int i = 0; i < 64; ++i) c[std::size_t(i)] = 1000 * i - 30000;
    const auto nibbles = [](bool a_signed, bool b_signed) {
        return [=](std::uint32_t x, std::uint32_t y) {
            int sum = 0;
            for (int i = 0; i < 8; ++i) {
                int u = int(x >> 4 * i & 15), v = int(y >> 4 * i & 15);
                if (a_signed && u > 7) u -= 16;
                if (b_signed && v > 7) v -= 16;
                sum += u * v;
            }
            return sum;
        };
    };
    const std::string form = "wmma.mma.sync.aligned.row.col.m8n8k32.s32.";
    CHECK(product_of("m8n8k32", "s4", "s4", form + "s4.s4.s32", a, b, c) == expected(a, b, c, nibbles(true, true)));
    CHECK(product_of("m8n8k32", "u4", "s4", form + "u4.s4.s32", a, b, c) == expected(a, b, c, nibbles(false, true)));
    const auto most = std::vector<std::int32_t>(64, 0x7fffffff);
    const std::vector<std::uint32_t> ones(32, 0x11111111);
    CHECK(product_of("m8n8k32", "u4", "u4", form + "u4.u4.s32.satfinite", ones, ones, most) == most);
    CHECK(product_of("m8n8k32", "u4", "u4", form + "u4.u4.s32", ones, ones, most)[0] == std::int32_t(0x7fffffffu + 32));
    const std::string bits = ".popc.sync.aligned.row.col.m8n8k128.s32.b1.b1.s32";
    CHECK(product_of("m8n8k128", "b1", "b1", "wmma.mma.xor" + bits, a, b, c) ==
          expected(a, b, c, [](std::uint32_t x, std::uint32_t y) { return std::popcount(x ^ y); }));
    CHECK(product_of("m8n8k128", "b1", "b1", "wmma.mma.and" + bits, a, b, c) ==
          expected(a, b, c, [](std::uint32_t x, std::uint32_t y) { return std::popcount(x & y); }));
}

TEST_CASE("what is found about wmma") {
    const std::string sums = "mov.b32 %r3, 0; mov.b32 %r4, 0; mov.b32 %r2, 0;\n";
    const std::string load = "wmma.load.a.sync.aligned.row.m8n8k32.global.s4 {%r1}, ";
    CHECK(failure(sums + load + "[%d1];\n") == ": no failure");
    CHECK_THAT(failure(sums + load + "[%d1+16];\n"),
               contains("out-of-bounds: ") && contains("wmma.load.a.sync") && contains("buffer 'a'"));
    CHECK_THAT(failure(sums + load + "[%d2];\n"), contains("undefined-store: ") && contains("buffer 'b'"));
    CHECK_THAT(failure(sums + "setp.eq.u32 %p1, %r40, 9; @%p1 ret;\n" + load + "[%d1];\n"), contains("partial-warp: "));
    CHECK_THAT(failure(sums + "wmma.load.a.sync.aligned.row.m8n8k32.global.s4 {%r1, %r2}, [%d1];\n"),
               contains("not-emulated: ") && contains("the vector's length"));
    CHECK_THAT(failure(sums + "wmma.load.a.sync.aligned.col.m8n8k32.global.s4 {%r1}, [%d1];\n"),
               contains("not-emulated: "));
    CHECK_THAT(failure(sums + "wmma.load.a.sync.aligned.row.m8n8k32.global.f16 {%r1}, [%d1];\n"),
               contains("not-emulated: "));
}

}  // namespace ikat::tests::fragments
