// SPDX-License-Identifier: Apache-2.0
// wgmma: products of matrices by four warps, against a plain loop. Where an element is, in registers and in shared
// memory, is told by layouts that were not written for the emulator: those of CuTe (NVIDIA/cutlass, include/cute/atom/
// mma_traits_sm90_gmma.hpp), the thread layouts and the canonical layouts of the descriptors, as pairs of extents and
// strides.
#include <random>
#include <tuple>

#include "tests/unit/emulator/targets.hpp"
#include "tests/unit/emulator/tensor/warpgroup.hpp"

using namespace ikat::tests::matrices;
using namespace ikat::tests::warpgroups;

namespace ikat::tests::warpgroup_products {

namespace {

constexpr int rows = 64, threads = 128;

/// Thread and value to row + 64 * column.
struct OfThreads {
    Modes threads, values;
    int operator()(int thread, int value) const { return at(threads, thread) + at(values, value); }
};
OfThreads sums_of(int n) { return {{{4, 128}, {8, 1}, {4, 16}}, {{2, 64}, {2, 8}, {n / 8, 512}}}; }
const OfThreads rows_of_words{{{4, 64}, {8, 1}, {4, 16}}, {{2, 8}, {2, 256}}},
    rows_of_halves{{{4, 128}, {8, 1}, {4, 16}}, {{2, 64}, {2, 8}, {2, 512}}},
    rows_of_bytes{{{4, 256}, {8, 1}, {4, 16}}, {{4, 64}, {2, 8}, {2, 1024}}},
    rows_of_bits{{{4, 2048}, {8, 1}, {4, 16}}, {{32, 64}, {2, 8}, {2, 8192}}};

/// How an operand is laid out. The offsets are chosen here, so that nothing overlaps.
struct Layout {
    int swizzle = 0;  // in bytes; 0: none
    bool is_transposed = false;
    bool is_wide = false;  // of two ways to choose the offsets, the other one
    int start = 0;         // the operand begins that many bytes into the rows of its pattern
};

struct Operand {
    Layout layout;
    int bits, lines, k;  // of an element; rows of a, or columns of b
    int leading = 0, stride = 0, bytes = 0;
    Modes of_line, of_k;  // in bits

    Operand(const Layout& layout, int bits, int lines, int k) : layout(layout), bits(bits), lines(lines), k(k) {
        const int t = 128 / bits, width = layout.swizzle ? layout.swizzle / 16 : 1, pattern = 128 * width;
        const int groups = (lines + 8 * width - 1) / (8 * width);  // of a transposed operand
        if (!layout.is_transposed) {
            stride = layout.is_wide && !layout.swizzle ? 2 * pattern : pattern;
            leading = layout.swizzle ? 16 : layout.is_wide ? pattern : lines / 8 * pattern;
            if (layout.is_wide && layout.swizzle) stride = 2 * pattern;
            of_line = {{8, width * t}, {lines / 8, stride * 8 / bits}};
            of_k = {{t, 1}, {2, layout.swizzle ? t : leading * 8 / bits}};
        } else {
            const int along = layout.swizzle ? groups : lines / 8;  // patterns
            const int inner = layout.is_wide ? 2 * pattern : pattern,
                      outer = layout.is_wide ? pattern : along * pattern;
            const int of_lines = inner, of_rows = outer;
            leading = layout.swizzle ? of_lines : of_rows;
            stride = layout.swizzle ? of_rows : of_lines;
            of_line = {{t, 1}, {width, t}, {along, of_lines * 8 / bits}};
            of_k = {{8, width * t}, {2, of_rows * 8 / bits}};
        }
        for (int line = 0; line < lines; ++line)
            for (int i = 0; i < k; ++i) bytes = std::max(bytes, linear(line, i) / 8 + 1);
        bytes = (bytes + layout.start + 2047) / 1024 * 1024;
    }
    int linear(int line, int i) const { return (at(of_line, line) + at(of_k, i)) * bits; }
    /// The bit, for an operand that begins `begin` bytes into `tile`, itself at a multiple of 1024: Swizzle<B, 4, 3>.
    int place(int begin, int line, int i) const {
        const int byte = begin + layout.start + linear(line, i) / 8, b = std::bit_width(unsigned(layout.swizzle)) - 5;
        const int mask = layout.swizzle ? (1 << b) - 1 : 0;
        return (byte ^ (byte >> 3 & mask << 4)) * 8 + linear(line, i) % 8;
    }
};

struct Product {
    int n = 8, k = 16;
    std::string d = "f32", a = "f16", b = "f16", end = "";
    Layout of_a{}, of_b{};
    bool a_in_registers = false;
    int scale_a = 1, scale_b = 1;
    bool adds = true;
    std::string scale_d = "1";
};

std::mt19937 numbers(23);

void set_bits(std::vector<std::uint32_t>& words, std::size_t bit, int bits, std::uint64_t value) {
    const std::uint32_t mask = bits == 32 ? ~0u : (1u << bits) - 1;
    std::uint32_t& word = words[bit / 32];
    word = (word & ~(mask << bit % 32)) | (std::uint32_t(value) & mask) << bit % 32;
}
std::uint64_t get_bits(const std::vector<std::uint32_t>& words, std::size_t bit, int bits) {
    return words[bit / 32] >> bit % 32 & (bits == 32 ? ~0u : (1u << bits) - 1);
}

/// Runs the instruction on random matrices. `targets`: for every instruction set of the emulator.
void check(const Product& product, bool on_all_targets = false, std::uint32_t seed = 0) {
    const auto& [n, k, d, a, b, end, layout_a, layout_b, a_in_registers, scale_a, scale_b, adds, scale_d] = product;
    const int a_bits = bits_of(a), b_bits = bits_of(b), d_bits = bits_of(d);
    const Operand left(layout_a, a_bits, rows, k), right(layout_b, b_bits, n, k);
    const int begin_of_b = a_in_registers ? 0 : left.bytes, bytes = begin_of_b + right.bytes;
    std::vector<double> x(std::size_t(rows * k)), y(std::size_t(n * k)), sums(std::size_t(rows * n));
    std::vector<std::uint32_t> tile(std::size_t(bytes / 4), 0x5a5a5a5a), in_a(4 * threads),
        in_d(std::size_t(rows * n * d_bits / 32));
    for (int row = 0; row < rows; ++row)
        for (int i = 0; i < k; ++i) {
            const auto [value, bits] = value_of(a, unsigned(numbers()));
            x[std::size_t(row + rows * i)] = value;
            if (!a_in_registers) set_bits(tile, std::size_t(left.place(0, row, i)), a_bits, bits);
        }
    const OfThreads& of_a = a_bits == 32   ? rows_of_words
                            : a_bits == 16 ? rows_of_halves
                            : a_bits == 8  ? rows_of_bytes
                                           : rows_of_bits;
    for (int thread = 0; a_in_registers && thread < threads; ++thread)
        for (int i = 0; i < size_of(of_a.values); ++i) {
            const auto [value, bits] = value_of(a, unsigned(numbers()));
            x[std::size_t(of_a(thread, i))] = value;
            set_bits(in_a, std::size_t(32 * (thread + threads * (i * a_bits / 32)) + i * a_bits % 32), a_bits, bits);
        }
    for (int column = 0; column < n; ++column)
        for (int i = 0; i < k; ++i) {
            const auto [value, bits] = value_of(b, unsigned(numbers()));
            y[std::size_t(column + n * i)] = value;
            set_bits(tile, std::size_t(right.place(begin_of_b, column, i)), b_bits, bits);
        }
    const OfThreads of_d = sums_of(n);
    const auto place_of_sum = [&](int thread, int i) {
        return std::size_t(32 * (thread + threads * (i * d_bits / 32)) + i * d_bits % 32);
    };
    for (int thread = 0; thread < threads; ++thread)
        for (int i = 0; i < n / 2; ++i) {
            auto [value, bits] = value_of(d, unsigned(numbers()));
            if (end == ".satfinite") {  // near the least and the largest number
                const std::int32_t near = i % 2 ? 0x7ffffff0 : -0x7ffffff0;
                value = near, bits = std::uint32_t(near);
            }
            sums[std::size_t(of_d(thread, i))] = value;
            set_bits(in_d, place_of_sum(thread, i), d_bits, bits);
        }

    const int count = n / (d_bits == 16 ? 4 : 2);
    const bool is_float = d == "f32";
    const std::string of_sums = registers(is_float ? "%f" : "%r", is_float ? 0 : 100, count);
    const auto each_register = [&](auto text) {
        std::string all;
        for (int i = 0; i < count; ++i)
            all += text((is_float ? "%f" : "%r") + std::to_string((is_float ? 0 : 100) + i), 512 * i);
        return all;
    };
    std::string body = each_register([](const std::string& name, int offset) {
        return "    ld.global.b32 " + name + ", [%d2+" + std::to_string(offset) + "];\n";
    });
    if (a_in_registers)
        for (int i = 0; i < 4; ++i)
            body += "    ld.global.b32 %r" + std::to_string(10 + i) + ", [%d1+" + std::to_string(512 * i) + "];\n";
    body += make_descriptor(10, descriptor(layout_a.swizzle, left.leading, left.stride), layout_a.start) +
            make_descriptor(11, descriptor(layout_b.swizzle, right.leading, right.stride), begin_of_b + layout_b.start);
    body += "    setp.eq.u32 %p2, %r1, %r1; setp.ne.u32 %p3, %r1, %r1;\n    " + fence +
            "    wgmma.mma_async.sync.aligned.m64n" + std::to_string(n) + "k" + std::to_string(k) + "." + d + "." + a +
            "." + b + end + " " + of_sums + ", " + (a_in_registers ? registers("%r", 10, 4) : "%d10") + ", %d11, " +
            scale_d;
    if (a_bits >= 8 && d != "s32") body += ", " + std::to_string(scale_a) + ", " + std::to_string(scale_b);
    if (a_bits == 16 && !a_in_registers) body += layout_a.is_transposed ? ", 1" : ", 0";
    if (a_bits == 16) body += layout_b.is_transposed ? ", 1" : ", 0";
    body += ";\n    " + commit + "    " + wait + each_register([](const std::string& name, int offset) {
                return "    st.global.b32 [%d2+" + std::to_string(offset) + "], " + name + ";\n";
            });
    INFO(body);
    for (const std::int64_t target : tests::targets()) {
        const tests::OnTarget chosen(on_all_targets ? target : tests::targets().front());
        Machine machine;
        machine.options.seed = seed;
        const auto at_a = machine.buffer("a", in_a), at_d = machine.buffer("d", in_d),
                   at = machine.buffer("tile", tile);
        machine.run(group_kernel(bytes, body), {.block = {threads, 1, 1}, .dynamic_shared_bytes = std::uint32_t(bytes)},
                    at_a, at_d, at);
        const auto out = machine.get<std::uint32_t>(at_d, in_d.size());
        int wrong = 0;
        for (int thread = 0; thread < threads; ++thread)
            for (int i = 0; i < n / 2; ++i) {
                const int place = of_d(thread, i), row = place % rows, column = place / rows;
                double expected = 0;
                for (int j = 0; j < k; ++j) expected += x[std::size_t(row + rows * j)] * y[std::size_t(column + n * j)];
                expected = expected * scale_a * scale_b + (adds ? sums[std::size_t(place)] : 0);
                if (end == ".satfinite") expected = std::clamp(expected, -0x1p31, 0x1p31 - 1);
                wrong += number_of(d, get_bits(out, place_of_sum(thread, i), d_bits)) != expected;
            }
        CHECK(wrong == 0);
        if (!on_all_targets) break;
    }
}

/// All ways to lay an operand out whose rows have 32 bytes of k.
std::vector<Layout> layouts(bool transposes) {
    std::vector<Layout> all;
    for (const int swizzle : {0, 32, 64, 128})
        for (const bool is_wide : {false, true}) {
            for (int start = 0; start < std::max(swizzle, 32); start += 32)
                all.push_back({swizzle, false, is_wide, start});
            if (transposes) all.push_back({swizzle, true, is_wide, 0});
        }
    return all;
}

}  // namespace

TEST_CASE("each layout of an operand of 16 bits in shared memory") {
    for (const Layout& layout : layouts(true)) {
        check({.n = 48, .of_a = layout});
        check({.n = 136, .of_b = layout});
        check({.n = 256, .a = "bf16", .b = "bf16", .of_a = layout, .of_b = layout});
        check({.n = 64, .of_b = layout, .a_in_registers = true});
    }
}

TEST_CASE("each layout of operands of other types in shared memory") {
    for (const Layout& layout : layouts(false)) {
        check({.n = 24, .k = 8, .a = "tf32", .b = "tf32", .of_a = layout, .of_b = layout});
        check({.n = 96, .k = 32, .a = "e4m3", .b = "e5m2", .of_a = layout, .of_b = layout});
        check({.n = 80, .k = 32, .d = "s32", .a = "u8", .b = "s8", .of_a = layout, .of_b = layout});
        check(
            {.n = 16, .k = 256, .d = "s32", .a = "b1", .b = "b1", .end = ".and.popc", .of_a = layout, .of_b = layout});
    }
}

TEST_CASE("each type of a product by a warpgroup, on each instruction set") {
    const Layout wide{128}, narrow{32};
    for (const bool a_in_registers : {false, true}) {
        const auto of = [&](int n, int k, const std::string& d, const std::string& a, const std::string& b,
                            const std::string& end = "") {
            check({.n = n,
                   .k = k,
                   .d = d,
                   .a = a,
                   .b = b,
                   .end = end,
                   .of_a = wide,
                   .of_b = narrow,
                   .a_in_registers = a_in_registers},
                  true);
        };
        for (const std::string d : {"f16", "f32"}) {
            of(40, 16, d, "f16", "f16");
            for (const std::string a : {"e4m3", "e5m2"})
                for (const std::string b : {"e4m3", "e5m2"}) of(72, 32, d, a, b);
        }
        of(24, 16, "f32", "bf16", "bf16");
        of(8, 8, "f32", "tf32", "tf32");
        for (const std::string a : {"s8", "u8"})
            for (const std::string b : {"s8", "u8"}) {
                of(32, 32, "s32", a, b);
                of(48, 32, "s32", a, b, ".satfinite");
            }
        of(112, 256, "s32", "b1", "b1", ".and.popc");
    }
}

TEST_CASE("each number of columns") {
    for (int n = 8; n <= 256; n += 8) {
        check({.n = n, .of_a = {128}, .of_b = {128}});
        check({.n = n, .d = "f16", .of_a = {64}, .of_b = {64, true}});
        if (n <= 24 || n % 16 == 0)
            check({.n = n, .k = 32, .d = "s32", .a = "s8", .b = "s8", .of_a = {128}, .of_b = {128}});
    }
}

TEST_CASE("products that are negative, and that are not added") {
    for (const int a : {1, -1})
        for (const int b : {1, -1}) {
            check({.n = 16, .of_a = {128}, .of_b = {128}, .scale_a = a, .scale_b = b});
            check({.n = 16, .of_b = {128}, .a_in_registers = true, .scale_a = a, .scale_b = b});
            check(
                {.n = 16, .k = 8, .a = "tf32", .b = "tf32", .of_a = {128}, .of_b = {128}, .scale_a = a, .scale_b = b});
        }
    for (const std::string d : {"f16", "f32"}) {
        check({.n = 32, .d = d, .of_a = {128}, .of_b = {128}, .adds = false, .scale_d = "0"});
        check({.n = 32, .d = d, .of_a = {128}, .of_b = {128}, .adds = false, .scale_d = "%p3"});
        check({.n = 32, .d = d, .of_a = {128}, .of_b = {128}, .scale_d = "%p2"});
    }
    check({.n = 32,
           .k = 32,
           .d = "s32",
           .a = "s8",
           .b = "s8",
           .of_a = {128},
           .of_b = {128},
           .adds = false,
           .scale_d = "%p3"});
    check({.n = 32,
           .k = 256,
           .d = "s32",
           .a = "b1",
           .b = "b1",
           .end = ".and.popc",
           .of_a = {128},
           .of_b = {128},
           .adds = false,
           .scale_d = "0"});
}

TEST_CASE("products by a warpgroup have the bits of those by its warps") {
    std::vector<std::uint32_t> a(4 * threads), tile(256 / 4), sums(4 * threads);
    for (auto* const words : {&a, &tile, &sums})
        for (std::uint32_t& word : *words) word = std::uint32_t(numbers());  // infinities and NaNs among them
    for (const auto& [types, k, count] :
         {std::tuple("f32.f16.f16", 16, 4), std::tuple("f16.f16.f16", 16, 2), std::tuple("f32.bf16.bf16", 16, 4),
          std::tuple("f32.tf32.tf32", 8, 4), std::tuple("f32.e4m3.e5m2", 32, 4), std::tuple("s32.u8.s8", 32, 4)}) {
        const std::string type = types, sum = type.substr(0, 3), shape = "k" + std::to_string(k) + ".",
                          rest = sum == "s32" ? ", 1"
                                 : k == 16    ? ", 1, 1, 1, 0"
                                              : ", 1, 1, 1";
        const std::string d = registers("%r", 100, count), e = registers("%r", 110, count);
        std::string body = make_descriptor(11, descriptor(0, 128, 128), 0);
        for (int i = 0; i < 4; ++i) {
            const std::string at = std::to_string(512 * i);
            body += "ld.global.b32 %r" + std::to_string(10 + i) + ", [%d1+" + at + "];\n";
            if (i < count)
                body += "ld.global.b32 %r" + std::to_string(100 + i) + ", [%d2+" + at + "]; mov.b32 %r" +
                        std::to_string(110 + i) + ", %r" + std::to_string(100 + i) + ";\n";
        }
        body +=
            "and.b32 %r20, %r1, 31; shl.b32 %r20, %r20, 2; add.u32 %r20, %r20, %r2; ld.shared.b32 %r21, [%r20]; "
            "ld.shared.b32 %r22, [%r20+128];\n" +
            fence + "wgmma.mma_async.sync.aligned.m64n8" + shape + type + " " + d + ", {%r10, %r11, %r12, %r13}, %d11" +
            rest + ";\n" + commit + wait + "mma.sync.aligned.m16n8" + shape + "row.col." + type + "." + sum + " " + e +
            ", {%r10, %r11, %r12, %r13}, {%r21, %r22}, " + e + ";\n";
        for (int i = 0; i < count; ++i)
            body += "xor.b32 %r30, %r" + std::to_string(100 + i) + ", %r" + std::to_string(110 + i) +
                    "; st.global.b32 [%d2+" + std::to_string(512 * i) + "], %r30;\n";
        INFO(body);
        Machine machine;
        const auto at_a = machine.buffer("a", a), at_d = machine.buffer("d", sums), at = machine.buffer("tile", tile);
        machine.run(group_kernel(256, body), {.block = {threads, 1, 1}, .dynamic_shared_bytes = 256}, at_a, at_d, at);
        CHECK(machine.get<std::uint32_t>(at_d, std::size_t(count * threads)) ==
              std::vector<std::uint32_t>(std::size_t(count * threads)));
    }
}

}  // namespace ikat::tests::warpgroup_products
