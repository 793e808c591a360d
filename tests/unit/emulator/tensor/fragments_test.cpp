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

/// A product d = a * b + c, of matrices without gaps: a, c and d by rows, b by columns.
struct Form {
    std::string shape, type, sum;
    int m, n, k;
    int bits, sum_bits;                         // of an element
    int a_registers, b_registers, c_registers;  // of a thread
    std::string types;                          // of wmma.mma
};

/// Bits of a matrix.
struct Unwritten {
    int first = 0, count = 0;
};

/// Whether an element of d is undefined.
bool is_undefined(const Form& form, Unwritten a, Unwritten b, Unwritten c, int element) {
    Machine machine;
    const auto buffer = [&](const char* name, int bits, Unwritten unwritten) {
        const auto size = std::size_t(bits / 8), first = std::size_t(unwritten.first / 8),
                   end = first + std::size_t(unwritten.count / 8);
        const std::vector<std::byte> zeros(size);
        const auto address = machine.empty<std::byte>(name, size);
        machine.memory.write(address, std::span(zeros).first(first));
        machine.memory.write(address + end, std::span(zeros).first(size - end));
        return address;
    };
    const auto registers = [](const std::string& type, int first, int count) {
        std::string list;
        for (int i = first; i < first + count; ++i)
            list += (list.empty() ? "{" : ", ") + std::string(type == "f64" ? "%d" : "%r") + std::to_string(i);
        return list + "}";
    };
    const std::string in_a = registers(form.type, 10, form.a_registers),
                      in_b = registers(form.type, 18, form.b_registers),
                      in_c = registers(form.sum, 26, form.c_registers);
    const auto load = [&](const std::string& matrix, const std::string& type, const std::string& to) {
        return "wmma.load." + matrix + ".sync.aligned." + (matrix == "b" ? "col." : "row.") + form.shape + ".global." +
               type + " " + to;
    };
    const std::string type = ".b" + std::to_string(form.sum_bits);
    const std::string in_d = form.sum_bits == 16 ? "%h1" : form.sum_bits == 32 ? "%r40" : "%d4";
    std::string body =
        "ld.param.u64 %d1, [p0]; ld.param.u64 %d2, [p1]; ld.param.u64 %d3, [p2]; ld.param.u32 %r2, [n];\n";
    body += load("a", form.type, in_a) + ", [%d1];\n";
    body += load("b", form.type, in_b) + ", [%d2];\n";
    body += load("c", form.sum, in_c) + ", [%d3];\n";
    body += "wmma.mma" + form.types + " " + in_c + ", " + in_a + ", " + in_b + ", " + in_c + ";\n";
    body += "wmma.store.d.sync.aligned.row." + form.shape + ".shared." + form.sum + " [tile], " + in_c + ";\n";
    body += "bar.sync 0; mov.u32 %r1, tile; add.u32 %r1, %r1, %r2;\n";
    const std::string use = "xor" + type + " " + in_d + ", " + in_d + ", " + in_d + ";";
    body += "ld.shared" + type + " " + in_d + ", [%r1]; " + use + " st.global" + type + " [%d3], " + in_d + "; ret;";
    const std::string text = kernel(body, ".shared .align 32 .b8 tile[1024];");
    const std::string said =
        machine.failure(text, {.block = {32, 1, 1}}, buffer("a", form.m * form.k * form.bits, a),
                        buffer("b", form.n * form.k * form.bits, b), buffer("c", form.m * form.n * form.sum_bits, c),
                        std::uint32_t(element * form.sum_bits / 8));
    if (said != "no failure" && machine.code != "undefined-store") FAIL(said);
    return said != "no failure";
}

/// The elements of row 2 and of column 5 of d that are undefined, as 100 row + column.
std::vector<int> undefined_elements(const Form& form, Unwritten a, Unwritten b, Unwritten c) {
    std::vector<int> all;
    for (int i = 0; i < form.m; ++i)
        for (int j = 0; j < form.n; ++j)
            if ((i == 2 || j == 5) && is_undefined(form, a, b, c, form.n * i + j)) all.push_back(100 * i + j);
    return all;
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
    const auto max = std::vector<std::int32_t>(64, 0x7fffffff);
    const std::vector<std::uint32_t> ones(32, 0x11111111);
    CHECK(product_of("m8n8k32", "u4", "u4", form + "u4.u4.s32.satfinite", ones, ones, max) == max);
    CHECK(product_of("m8n8k32", "u4", "u4", form + "u4.u4.s32", ones, ones, max)[0] == std::int32_t(0x7fffffffu + 32));
    const std::string bits = ".popc.sync.aligned.row.col.m8n8k128.s32.b1.b1.s32";
    CHECK(product_of("m8n8k128", "b1", "b1", "wmma.mma.xor" + bits, a, b, c) ==
          expected(a, b, c, [](std::uint32_t x, std::uint32_t y) { return std::popcount(x ^ y); }));
    CHECK(product_of("m8n8k128", "b1", "b1", "wmma.mma.and" + bits, a, b, c) ==
          expected(a, b, c, [](std::uint32_t x, std::uint32_t y) { return std::popcount(x & y); }));
}

TEST_CASE("unwritten elements of a make their rows undefined, those of b their columns, those of c only themselves") {
    const std::string by = ".sync.aligned.row.col.";
    const Form forms[] = {
        {"m16n16k16", "f16", "f32", 16, 16, 16, 16, 32, 8, 8, 8, by + "m16n16k16.f32.f32"},
        {"m8n32k16", "f16", "f16", 8, 32, 16, 16, 16, 8, 8, 4, by + "m8n32k16.f16.f16"},
        {"m16n16k8", "tf32", "f32", 16, 16, 8, 32, 32, 4, 4, 8, by + "m16n16k8.f32.tf32.tf32.f32"},
        {"m8n8k4", "f64", "f64", 8, 8, 4, 64, 64, 1, 1, 2, by + "m8n8k4.f64.f64.f64.f64"},
        {"m32n8k16", "s8", "s32", 32, 8, 16, 8, 32, 4, 1, 8, by + "m32n8k16.s32.s8.s8.s32"},
        {"m8n8k32", "u4", "s32", 8, 8, 32, 4, 32, 1, 1, 2, by + "m8n8k32.s32.u4.u4.s32"},
        {"m8n8k128", "b1", "s32", 8, 8, 128, 1, 32, 1, 1, 2, ".xor.popc" + by + "m8n8k128.s32.b1.b1.s32"},
    };
    for (const Form& form : forms) {
        INFO(form.types);
        CHECK(undefined_elements(form, {}, {}, {}).empty());
        const int line = form.k * form.bits, bits = std::max(form.bits, 8);
        std::vector<int> row, column;
        for (int j = 0; j < form.n; ++j) row.push_back(200 + j);
        for (int i = 0; i < form.m; ++i) column.push_back(100 * i + 5);
        CHECK(undefined_elements(form, {2 * line, line}, {}, {}) == row);
        CHECK(undefined_elements(form, {3 * line - bits, bits}, {}, {}) == row);  // the row's last
        CHECK(undefined_elements(form, {}, {5 * line, line}, {}) == column);
        CHECK(undefined_elements(form, {}, {5 * line, bits}, {}) == column);
        CHECK(undefined_elements(form, {}, {}, {(2 * form.n + 5) * form.sum_bits, form.sum_bits}) ==
              std::vector<int>{205});
    }
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
