// SPDX-License-Identifier: Apache-2.0
// mma.sync: products of matrices by a warp. Which element of a matrix which register of which thread holds is told by
// tables that were not written for the emulator: the layouts of CuTe (NVIDIA/cutlass, include/cute/atom/
// mma_traits_sm70.hpp, _sm80.hpp, _sm89.hpp and _sm90.hpp), as pairs of extents and strides. Those of 4-bit elements,
// which it does not have, follow the formulas of the PTX ISA, "Matrix Fragments for mma.m8n8k32" and others.
#include <bit>
#include <cmath>
#include <random>

#include "codegen/ir/type.hpp"
#include "tests/unit/emulator/machine.hpp"
#include "tests/unit/emulator/targets.hpp"
#include "tests/unit/emulator/tensor/elements.hpp"

namespace ikat::tests::matrices {

namespace {

/// Thread and value to an element: its row + the rows * its column. Of b: column + the columns * row.
struct Map {
    Modes threads, values;
    int operator()(int thread, int value) const { return at(threads, thread) + at(values, value); }
};

const Map sm80_8x4{{{4, 8}, {8, 1}}, {{1, 0}}};
const Map sm80_8x8{{{4, 16}, {8, 1}}, {{2, 8}}};
const Map sm80_8x16{{{4, 32}, {8, 1}}, {{4, 8}}};
const Map sm80_16x8{{{4, 32}, {8, 1}}, {{2, 16}, {2, 8}}};
const Map tf32_a4{{{4, 16}, {8, 1}}, {{2, 8}}}, tf32_a8{{{4, 16}, {8, 1}}, {{2, 8}, {2, 64}}},
    tf32_b8{{{4, 8}, {8, 1}}, {{2, 32}}};
const Map half_a16{{{4, 32}, {8, 1}}, {{2, 16}, {2, 8}, {2, 128}}}, half_b16{{{4, 16}, {8, 1}}, {{2, 8}, {2, 64}}};
const Map byte_a16{{{4, 64}, {8, 1}}, {{4, 16}, {2, 8}}}, byte_a32{{{4, 64}, {8, 1}}, {{4, 16}, {2, 8}, {2, 256}}},
    byte_b32{{{4, 32}, {8, 1}}, {{4, 8}, {2, 128}}};
const Map bit_a256{{{4, 512}, {8, 1}}, {{32, 16}, {2, 8}, {2, 2048}}},
    bit_b256{{{4, 256}, {8, 1}}, {{32, 8}, {2, 1024}}}, bit_8x128{{{4, 256}, {8, 1}}, {{32, 8}}},
    bit_a128{{{4, 512}, {8, 1}}, {{32, 16}, {2, 8}}};
const Map double_a16{{{4, 16}, {8, 1}}, {{2, 8}, {4, 64}}}, double_b16{{{4, 8}, {8, 1}}, {{4, 32}}};
// col = (lane % 4) * 8 + (i & 7), and 32 more from the second half of i on; row = lane / 4, + 8 for every other 8
const Map nibble_8x32{{{4, 64}, {8, 1}}, {{8, 8}}}, nibble_a32{{{4, 128}, {8, 1}}, {{8, 16}, {2, 8}}},
    nibble_a64{{{4, 128}, {8, 1}}, {{8, 16}, {2, 8}, {2, 512}}}, nibble_b64{{{4, 64}, {8, 1}}, {{8, 8}, {2, 256}}};

struct Shape {
    int m, k;
    Map a, b, c;
};
const Shape m8n8k4{8, 4, sm80_8x4, sm80_8x4, sm80_8x8}, m8n8k16{8, 16, sm80_8x16, sm80_8x16, sm80_8x8},
    m8n8k32{8, 32, nibble_8x32, nibble_8x32, sm80_8x8}, m8n8k128{8, 128, bit_8x128, bit_8x128, sm80_8x8},
    m16n8k4{16, 4, tf32_a4, sm80_8x4, sm80_16x8}, m16n8k8_of_words{16, 8, tf32_a8, tf32_b8, sm80_16x8},
    m16n8k16_of_doubles{16, 16, double_a16, double_b16, sm80_16x8}, m16n8k8{16, 8, sm80_16x8, sm80_8x8, sm80_16x8},
    m16n8k16{16, 16, half_a16, half_b16, sm80_16x8}, m16n8k16_of_bytes{16, 16, byte_a16, sm80_8x16, sm80_16x8},
    m16n8k32{16, 32, byte_a32, byte_b32, sm80_16x8}, m16n8k32_of_nibbles{16, 32, nibble_a32, nibble_8x32, sm80_16x8},
    m16n8k64{16, 64, nibble_a64, nibble_b64, sm80_16x8}, m16n8k128{16, 128, bit_a128, bit_8x128, sm80_16x8},
    m16n8k256{16, 256, bit_a256, bit_b256, sm80_16x8};

/// The registers of 32 lanes: elements of `bits` each, packed from the lowest bits on.
struct Registers {
    int bits, count;                   // count: elements of a lane
    std::vector<std::uint64_t> cells;  // register by register

    Registers(int bits, int count)
        : bits(bits), count(count), cells(std::size_t(32 * ((count * bits + width() - 1) / width()))) {}
    int width() const { return bits == 64 ? 64 : 32; }
    int held() const { return width() / bits; }
    std::size_t number() const { return cells.size() / 32; }
    void set(int lane, int i, std::uint64_t value) {
        cells[std::size_t(i / held() * 32 + lane)] |= value << (i % held() * bits);
    }
    std::uint64_t get(int lane, int i) const {
        const std::uint64_t cell = cells[std::size_t(i / held() * 32 + lane)] >> (i % held() * bits);
        return bits == 64 ? cell : cell & ((std::uint64_t{1} << bits) - 1);
    }
};

std::string list(const char* prefix, std::size_t first, std::size_t count) {
    std::string text = "{";
    for (std::size_t i = 0; i < count; ++i) text += (i ? ", " : "") + (prefix + std::to_string(first + i));
    return text + "}";
}

/// Runs one instruction by a warp, on registers that it loads; returns d. `before` comes before it.
Registers run(Machine& machine, const std::string& instruction, const Registers& a, const Registers& b,
              const Registers& c, int d_bits, int d_count, const std::string& before = "",
              const std::string& after = "") {
    Registers d(d_bits, d_count);
    const bool wide = a.bits == 64;
    const std::string prefix = wide ? "%d" : "%r", type = wide ? "b64" : "b32", step = wide ? "256" : "128";
    std::vector<std::uint64_t> all = a.cells;
    all.insert(all.end(), b.cells.begin(), b.cells.end());
    all.insert(all.end(), c.cells.begin(), c.cells.end());
    std::string text =
        ".version 8.7\n.target sm_90\n.address_size 64\n.entry k(.param .u64 p0, .param .u64 p1) {\n"
        ".reg .pred %p<4>; .reg .b32 %r<64>; .reg .b64 %d<64>;\n"
        "mov.u32 %r60, %tid.x; ld.param.u64 %d60, [p0]; ld.param.u64 %d61, [p1];\n"
        "mad.wide.u32 %d60, %r60, " +
        std::string(wide ? "8" : "4") + ", %d60; mad.wide.u32 %d61, %r60, " + (wide ? "8" : "4") + ", %d61;\n";
    for (std::size_t i = 0; i < all.size() / 32; ++i)
        text += "ld.global." + type + " " + prefix + std::to_string(i) + ", [%d60+" + step + "*" + std::to_string(i) +
                "];\n";
    for (std::size_t at; (at = text.find(step + "*")) != text.npos;) {
        const std::size_t end = text.find(']', at), from = at + step.size() + 1;
        text.replace(at, end - at, std::to_string(std::stoi(step) * std::stoi(text.substr(from, end - from))));
    }
    const std::size_t na = a.number(), nb = b.number();
    text += before + instruction + " " + list(prefix.c_str(), 40, d.number()) + ", " + list(prefix.c_str(), 0, na) +
            ", " + list(prefix.c_str(), na, nb) + ", " + list(prefix.c_str(), na + nb, c.number()) + ";\n" + after;
    for (std::size_t i = 0; i < d.number(); ++i)
        text += "st.global." + type + " [%d61+" + std::to_string(unsigned(std::stoi(step)) * i) + "], " + prefix +
                std::to_string(40 + i) + ";\n";
    text += "ret;\n}\n";
    const auto stored = [&](const std::vector<std::uint64_t>& cells, std::string_view name) {
        return wide ? machine.buffer(name, cells)
                    : machine.buffer(name, std::vector<std::uint32_t>(cells.begin(), cells.end()));
    };
    const auto in = stored(all, "in"), out = stored(d.cells, "out");
    machine.run(text, {.block = {32, 1, 1}}, in, out);
    if (wide) {
        d.cells = machine.get<std::uint64_t>(out, d.cells.size());
    } else {
        const auto words = machine.get<std::uint32_t>(out, d.cells.size());
        d.cells.assign(words.begin(), words.end());
    }
    return d;
}

std::mt19937 numbers(17);

/// A product of random matrices, compared with a plain loop.
void check_product(const std::string& modifiers, const Shape& shape, const std::string& d_type,
                   const std::string& a_type, const std::string& b_type, const std::string& c_type,
                   const std::string& after = "") {
    INFO(modifiers << " " << d_type << " " << a_type << " " << b_type << " " << c_type);
    const auto [m, k, a_map, b_map, c_map] = shape;
    std::vector<double> left(std::size_t(m * k)), right(std::size_t(k * 8)), sums(std::size_t(m * 8));
    const auto fill = [&](std::vector<double>& matrix, const Map& map, const std::string& type) {
        Registers registers(bits_of(type), size_of(map.values));
        for (int lane = 0; lane < 32; ++lane)
            for (int i = 0; i < registers.count; ++i) {
                const auto [value, bits] = value_of(type, unsigned(numbers()));
                matrix[std::size_t(map(lane, i))] = value;
                registers.set(lane, i, bits);
            }
        return registers;
    };
    const Registers a = fill(left, a_map, a_type), b = fill(right, b_map, b_type), c = fill(sums, c_map, c_type);
    for (const std::int64_t target : targets()) {
        const OnTarget chosen(target);
        Machine machine;
        const Registers d =
            run(machine,
                "mma.sync.aligned." + modifiers + "." + d_type + "." + a_type + "." + b_type + "." + c_type + after, a,
                b, c, bits_of(d_type), size_of(c_map.values));
        bool all = true;
        for (int lane = 0; lane < 32; ++lane)
            for (int i = 0; i < d.count; ++i) {
                const int at = c_map(lane, i), row = at % m, column = at / m;
                double expected = sums[std::size_t(at)];
                for (int j = 0; j < k; ++j) {
                    const double x = left[std::size_t(row + m * j)], y = right[std::size_t(column + 8 * j)];
                    expected += after.starts_with(".xor") ? x != y : x * y;
                }
                all &= number_of(d_type, d.get(lane, i)) == expected;
            }
        CHECK(all);
    }
}

}  // namespace

TEST_CASE("products of floats by a warp") {
    for (const std::string sum : {"f16", "f32"}) {
        check_product("m16n8k8.row.col", m16n8k8, sum, "f16", "f16", sum);
        check_product("m16n8k16.row.col", m16n8k16, sum, "f16", "f16", sum);
        for (const std::string a : {"e4m3", "e5m2"})
            for (const std::string b : {"e4m3", "e5m2"}) {
                check_product("m16n8k16.row.col", m16n8k16_of_bytes, sum, a, b, sum);
                check_product("m16n8k32.row.col", m16n8k32, sum, a, b, sum);
            }
    }
    check_product("m16n8k8.row.col", m16n8k8, "f32", "bf16", "bf16", "f32");
    check_product("m16n8k16.row.col", m16n8k16, "f32", "bf16", "bf16", "f32");
    check_product("m16n8k4.row.col", m16n8k4, "f32", "tf32", "tf32", "f32");
    check_product("m16n8k8.row.col", m16n8k8_of_words, "f32", "tf32", "tf32", "f32");
    check_product("m8n8k4.row.col", m8n8k4, "f64", "f64", "f64", "f64");
    check_product("m16n8k4.row.col", m16n8k4, "f64", "f64", "f64", "f64");
    check_product("m16n8k8.row.col", m16n8k8_of_words, "f64", "f64", "f64", "f64");
    check_product("m16n8k16.row.col", m16n8k16_of_doubles, "f64", "f64", "f64", "f64");
}

TEST_CASE("products of integers and of bits by a warp") {
    for (const char* end : {"", ".satfinite"}) {
        const std::string layout = std::string("row.col") + end;
        for (const std::string a : {"s8", "u8"})
            for (const std::string b : {"s8", "u8"}) {
                check_product("m8n8k16." + layout, m8n8k16, "s32", a, b, "s32");
                check_product("m16n8k16." + layout, m16n8k16_of_bytes, "s32", a, b, "s32");
                check_product("m16n8k32." + layout, m16n8k32, "s32", a, b, "s32");
            }
        for (const std::string a : {"s4", "u4"})
            for (const std::string b : {"s4", "u4"}) {
                check_product("m8n8k32." + layout, m8n8k32, "s32", a, b, "s32");
                check_product("m16n8k32." + layout, m16n8k32_of_nibbles, "s32", a, b, "s32");
                check_product("m16n8k64." + layout, m16n8k64, "s32", a, b, "s32");
            }
    }
    for (const char* end : {".xor.popc", ".and.popc"}) {
        check_product("m8n8k128.row.col", m8n8k128, "s32", "b1", "b1", "s32", end);
        check_product("m16n8k128.row.col", m16n8k128, "s32", "b1", "b1", "s32", end);
        check_product("m16n8k256.row.col", m16n8k256, "s32", "b1", "b1", "s32", end);
    }
}

// Threads 0-3 and 16-19 make the first of the four products, and so on (SM70_QuadPair). A of "TN" is by rows, b by
// columns, and CuTe gives b as columns x rows, so its layout by columns is that of a by rows.
TEST_CASE("the four products of m8n8k4 in f16") {
    const Map by_rows{{{8, 1}}, {{4, 8}}}, by_columns{{{4, 8}, {2, 4}}, {{4, 1}}};
    const Map halves{{{8, 1}}, {{8, 8}}}, floats{{{2, 1}, {2, 16}, {2, 4}}, {{2, 8}, {2, 2}, {2, 32}}};
    const auto lane_of = [](int product, int thread) { return 4 * product + thread % 4 + 16 * (thread / 4); };
    struct Types {
        const char *d, *c;
    };
    for (const Types types : {Types{"f16", "f16"}, Types{"f32", "f32"}, Types{"f32", "f16"}})
        for (const bool a_rows : {true, false})
            for (const bool b_columns : {true, false}) {
                const Map &a_map = a_rows ? by_rows : by_columns, &b_map = b_columns ? by_rows : by_columns;
                const Map &c_map = *types.c == 'f' && types.c[1] == '1' ? halves : floats,
                          &d_map = types.d[1] == '1' ? halves : floats;
                double left[4][32], right[4][32], sums[4][64];
                Registers a(16, 4), b(16, 4), c(bits_of(types.c), 8);
                for (int product = 0; product < 4; ++product)
                    for (int thread = 0; thread < 8; ++thread) {
                        const auto fill = [&](Registers& registers, double* matrix, const Map& map, const char* type) {
                            for (int i = 0; i < registers.count; ++i) {
                                const auto [value, bits] = value_of(type, unsigned(numbers()));
                                matrix[map(thread, i)] = value;
                                registers.set(lane_of(product, thread), i, bits);
                            }
                        };
                        fill(a, left[product], a_map, "f16");
                        fill(b, right[product], b_map, "f16");
                        fill(c, sums[product], c_map, types.c);
                    }
                const std::string instruction = std::string("mma.sync.aligned.m8n8k4.") + (a_rows ? "row" : "col") +
                                                (b_columns ? ".col." : ".row.") + types.d + ".f16.f16." + types.c;
                INFO(instruction);
                Machine machine;
                const Registers d = run(machine, instruction, a, b, c, bits_of(types.d), 8);
                bool all = true;
                for (int product = 0; product < 4; ++product)
                    for (int thread = 0; thread < 8; ++thread)
                        for (int i = 0; i < 8; ++i) {
                            const int at = d_map(thread, i);
                            double expected = sums[product][at];
                            for (int k = 0; k < 4; ++k)
                                expected += left[product][at % 8 + 8 * k] * right[product][at / 8 + 8 * k];
                            all &= number_of(types.d, d.get(lane_of(product, thread), i)) == expected;
                        }
                CHECK(all);
            }
}

namespace {

/// The first element of d, of a product in which all elements of a are one value, and of b and c.
std::uint64_t uniform(const std::string& form, const std::string& type, int k, std::uint64_t a_bits,
                      std::uint64_t b_bits, const std::string& sum, std::uint64_t c_bits) {
    const int bits = bits_of(type);
    Registers a(bits, 16 * k / 32), b(bits, 8 * k / 32), c(bits_of(sum), 4);
    for (int lane = 0; lane < 32; ++lane) {
        for (int i = 0; i < a.count; ++i) a.set(lane, i, a_bits);
        for (int i = 0; i < b.count; ++i) b.set(lane, i, b_bits);
        for (int i = 0; i < 4; ++i) c.set(lane, i, c_bits);
    }
    std::uint64_t first = 0;
    for (const std::int64_t target : targets()) {
        const OnTarget chosen(target);
        Machine machine;
        const Registers d = run(machine, "mma.sync.aligned." + form, a, b, c, bits_of(sum), 4);
        for (int lane = 0; lane < 32; ++lane)
            for (int i = 0; i < 4; ++i) {
                if (lane == 0 && i == 0 && target == targets().front()) first = d.get(0, 0);
                CHECK(d.get(lane, i) == first);
            }
    }
    return first;
}

std::uint64_t F32(double x) { return std::bit_cast<std::uint32_t>(float(x)); }

}  // namespace

TEST_CASE("a sum of products is rounded once, and a NaN is canonical") {
    const std::string f32 = "m16n8k16.row.col.f32.f16.f16.f32", f16 = "m16n8k16.row.col.f16.f16.f16.f16";
    const auto H = [](double x) { return std::uint64_t(half(float(x)).bits); };
    // each product is half of what 1 would lose
    CHECK(uniform(f32, "f16", 16, H(0x1p-12), H(0x1p-13), "f32", F32(1)) == F32(1 + 0x1p-21));
    // below a tie by 2^-20, which an f32 has no digits for
    CHECK(uniform(f16, "f16", 16, H(0.25 + 0x1p-12), H(0.25 - 0x1p-12), "f16", H(2050)) == H(2050));
    CHECK(uniform(f16, "f16", 16, H(0.25), H(0.25), "f16", H(2050)) == H(2052));      // a tie
    CHECK(uniform(f16, "f16", 16, H(0x1p-2), H(0x1p-2), "f16", H(2048)) == H(2048));  // a tie
    CHECK(uniform(f16, "f16", 16, H(256), H(256), "f16", H(0)) == 0x7c00);            // 2^20
    const std::string bf16 = "m16n8k16.row.col.f32.bf16.bf16.f32";
    CHECK(uniform(bf16, "bf16", 16, 0x7f00, 0x7f00, "f32", F32(1)) == 0x7f800000);  // 2^254
    CHECK(uniform(bf16, "bf16", 16, 0x0080, 0x3e80, "f32", 0) == std::bit_cast<std::uint32_t>(0x1p-124f));
    constexpr std::uint64_t infinite = 0x7c00, nan = 0x7e01;
    CHECK(uniform(f32, "f16", 16, infinite, H(0), "f32", 0) == 0x7fffffff);
    CHECK(uniform(f32, "f16", 16, nan, H(1), "f32", 0) == 0x7fffffff);
    CHECK(uniform(f32, "f16", 16, H(1), H(1), "f32", 0xffc00001) == 0x7fffffff);
    CHECK(uniform(f16, "f16", 16, infinite, H(0), "f16", 0) == 0x7fff);
    CHECK(uniform(f32, "f16", 16, infinite, H(2), "f32", 0) == 0x7f800000);
    const std::string tf32 = "m16n8k8.row.col.f32.tf32.tf32.f32";
    CHECK(uniform(tf32, "tf32", 8, F32(1) + 0x1fff, F32(1), "f32", 0) == F32(8));
    CHECK(uniform(tf32, "tf32", 8, F32(1) + 0x2000, F32(1), "f32", 0) == F32(8 + 0x1p-7));
    CHECK(uniform(tf32, "tf32", 8, 0x7f800001, F32(1), "f32", 0) == 0x7fffffff);
    const std::string fp8 = "m16n8k32.row.col.f32.e4m3.e5m2.f32";
    CHECK(uniform(fp8, "e4m3", 32, 0x7e, 0x7b, "f32", 0) == F32(448. * 57344 * 32));
    CHECK(uniform(fp8, "e4m3", 32, 0x7f, 0x3c, "f32", 0) == 0x7fffffff);
    CHECK(uniform(fp8, "e4m3", 32, 0x38, 0x7c, "f32", 0) == 0x7f800000);
    CHECK(uniform(fp8, "e4m3", 32, 0x01, 0x01, "f32", 0) == F32(0x1p-9 * 0x1p-16 * 32));
    const std::string f64 = "m16n8k16.row.col.f64.f64.f64.f64";
    const auto D = [](double x) { return std::bit_cast<std::uint64_t>(x); };
    double sum = -0.375;
    for (int i = 0; i < 16; ++i) sum = std::fma(0.1, 0.3, sum);  // products and sums are fused
    CHECK(uniform(f64, "f64", 16, D(0.1), D(0.3), "f64", D(-0.375)) == D(sum));
    CHECK(uniform(f64, "f64", 16, D(INFINITY), D(0), "f64", D(1)) == 0x7fffffffffffffff);
}

TEST_CASE("integer sums wrap, or saturate once, at the end") {
    const auto sum = [](const std::string& end, std::uint64_t a, std::uint64_t b, std::int32_t c) {
        return std::int32_t(
            uniform("m16n8k32.row.col" + end + ".s32.s8.s8.s32", "s8", 32, a, b, "s32", std::uint32_t(c)));
    };
    CHECK(sum("", 127, 127, 0x7fffffff) == std::int32_t(0x7fffffffu + 32 * 127 * 127));
    CHECK(sum(".satfinite", 127, 127, 0x7fffffff) == 0x7fffffff);
    CHECK(sum("", 0x80, 127, std::int32_t(0x80000000)) == std::int32_t(0x80000000u - 32 * 128 * 127));
    CHECK(sum(".satfinite", 0x80, 127, std::int32_t(0x80000000)) == std::int32_t(0x80000000));
    CHECK(sum(".satfinite", 0x80, 0x80, -5) == 32 * 128 * 128 - 5);
}

namespace {

const std::string m16n8k8_in_registers =
    "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%r40, %r41, %r42, %r43}, {%r10, %r11}, {%r20}, {%r30, %r31, "
    "%r32, %r33};";

/// The failure of a product with d = a = b = c, after some instructions. %p1: lane 5, %p2: not lane 5.
std::string failure(const std::string& before, const std::string& after, std::uint32_t threads = 32,
                    const std::string& product = m16n8k8_in_registers) {
    Machine machine;
    machine.check_registers(true);
    const auto out = machine.buffer("out", std::vector<std::uint32_t>(64));
    const std::string said = machine.failure(
        kernel("mov.u32 %r1, %tid.x; setp.eq.u32 %p1, %r1, 5; setp.ne.u32 %p2, %r1, 5;\n"
               "shr.u32 %r2, %r1, 2; and.b32 %r3, %r1, 3; ld.param.u64 %d1, [p0]; mad.wide.u32 %d1, %r1, 4, %d1;\n"
               "mov.b32 %r10, 0; mov.b32 %r11, 0; mov.b32 %r20, 0; mov.b32 %r30, 0; mov.b32 %r31, 0; mov.b32 %r32, "
               "0; mov.b32 %r33, 0;\n" +
               before + product + "\n$after:\n" + after + " ret;"),
        {.block = {threads, 1, 1}}, out, std::uint64_t{}, std::uint64_t{}, 0);
    return machine.code + ": " + said;
}

/// The lanes in which a register of d is undefined if the source is in lane 5.
std::vector<int> undefined_lanes(const std::string& source, const std::string& result,
                                 const std::string& product = m16n8k8_in_registers) {
    std::vector<int> lanes;
    for (int lane = 0; lane < 32; ++lane)
        if (failure("@%p1 mov.b32 " + source + ", %r62;\n",
                    "setp.eq.u32 %p3, %r1, " + std::to_string(lane) + "; @%p3 st.global.u32 [%d1], " + result + ";", 32,
                    product)
                .starts_with("undefined-store: "))
            lanes.push_back(lane);
    return lanes;
}

}  // namespace

TEST_CASE("a product needs the whole warp") {
    CHECK(failure("", "") == ": no failure");
    CHECK_THAT(failure("@%p1 bra $after;\n", ""), contains("partial-warp: ") && contains("all its 32 threads"));
    CHECK_THAT(failure("@%p1 bra $after;\n", "bar.warp.sync -1;"),
               contains("divergent-warp: ") && contains("warp-wide instruction in divergent code"));
    CHECK_THAT(failure("@%p1 ret;\n", ""), contains("partial-warp: ") && contains("mma.sync.aligned.m16n8k8"));
    CHECK_THAT(failure("", "", 48), contains("partial-warp: "));
}

TEST_CASE("an undefined element of a makes its row undefined, one of b its column, one of c only itself") {
    CHECK(undefined_lanes("%r10", "%r40") == std::vector<int>{4, 5, 6, 7});  // row 1
    CHECK(undefined_lanes("%r10", "%r42").empty());                          // row 9
    CHECK(undefined_lanes("%r11", "%r43") == std::vector<int>{4, 5, 6, 7});
    CHECK(undefined_lanes("%r20", "%r41") == std::vector<int>{0, 4, 8, 12, 16, 20, 24, 28});  // column 1
    CHECK(undefined_lanes("%r20", "%r40").empty());                                           // even columns
    CHECK(undefined_lanes("%r31", "%r41") == std::vector<int>{5});
    CHECK(undefined_lanes("%r31", "%r40").empty());
}

// Lane 5 is thread 1 of the product of lanes 4 to 7 and 20 to 23.
TEST_CASE("an undefined element in m8n8k4 of f16") {
    const auto product = [](const std::string& layout) {
        return "mov.b32 %r21, 0; mma.sync.aligned.m8n8k4." + layout +
               ".f32.f16.f16.f32 {%r40, %r41, %r42, %r43, %r44, %r45, %r46, %r47}, {%r10, %r11}, {%r20, %r21}, {%r30, "
               "%r31, %r32, %r33, %r33, %r33, %r33, %r33};";
    };
    // A thread has elements of rows thread % 2 and thread % 2 + 2 (+ 4 if it is in lane 16 or above).
    const std::string lines = product("row.col"), across = product("col.row");
    CHECK(undefined_lanes("%r10", "%r40", lines) == std::vector<int>{5, 7});          // row 1
    CHECK(undefined_lanes("%r10", "%r42", lines).empty());                            // row 3
    CHECK(undefined_lanes("%r20", "%r41", lines) == std::vector<int>{4, 5, 20, 21});  // column 1
    CHECK(undefined_lanes("%r20", "%r40", lines).empty());
    CHECK(undefined_lanes("%r31", "%r41", lines) == std::vector<int>{5});
    CHECK(undefined_lanes("%r31", "%r40", lines).empty());
    CHECK(undefined_lanes("%r10", "%r40", across) == std::vector<int>{4, 5, 6, 7});    // rows 0 and 1
    CHECK(undefined_lanes("%r10", "%r42", across).empty());                            // rows 2 and 3
    CHECK(undefined_lanes("%r20", "%r40", across) == std::vector<int>{4, 5, 20, 21});  // columns 0 and 1
    CHECK(undefined_lanes("%r20", "%r44", across).empty());                            // column 4
    CHECK(undefined_lanes("%r11", "%r42", across) == std::vector<int>{4, 5, 6, 7});
    // Two halves of c: row 1, columns 2 and 3, which are not where an f32 would be.
    const std::string from_halves =
        "mov.b32 %r21, 0; mma.sync.aligned.m8n8k4.row.col.f32.f16.f16.f16 {%r40, %r41, %r42, %r43, %r44, %r45, %r46, "
        "%r47}, {%r10, %r11}, {%r20, %r21}, {%r30, %r31, %r32, %r33};";
    const std::string to_halves =
        "mov.b32 %r21, 0; mma.sync.aligned.m8n8k4.row.col.f16.f16.f16.f16 {%r40, %r41, %r42, %r43}, {%r10, %r11}, "
        "{%r20, %r21}, {%r30, %r31, %r32, %r33};";
    CHECK(undefined_lanes("%r31", "%r40", from_halves) == std::vector<int>{7});
    CHECK(undefined_lanes("%r31", "%r41", to_halves) == std::vector<int>{5});
    CHECK(undefined_lanes("%r10", "%r43", to_halves) == std::vector<int>{5});
}

}  // namespace ikat::tests::matrices
