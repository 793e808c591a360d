// SPDX-License-Identifier: Apache-2.0
// mma.sp: products with a sparse a. The elements that a thread holds are those of the formulas of the PTX ISA, "Matrix
// Fragments for sparse mma.m16n8k16 with .f16 and .bf16 types" and so on; its figures of the metadata are told here as
// lists of who holds what, one for each shape; that of the smaller shapes of 8-bit and 4-bit integers is what an H200
// does. (tests/foreign/cutlass_sparse.cu has the larger shapes by CUTLASS.)
#include <algorithm>
#include <functional>
#include <random>

#include "tests/unit/emulator/machine.hpp"
#include "tests/unit/emulator/tensor/elements.hpp"

namespace ikat::tests::sparse {

namespace {

/// A chunk of a row of a, in the metadata: the thread of the quad, and the lowest of its 4 bits.
struct Place {
    int thread, bit;
};
struct Form {
    std::string shape, a, b, sum;  // "m16n8k16", "f16" ...
    int k, selectors;
    /// Of the chunks of row 0 and row 8 of a quad's rows; s is the selector.
    std::function<Place(bool is_lower, int chunk, int s)> place;
};

Place by_one(bool is_lower, int chunk, int s) { return {s, (is_lower ? 16 : 0) + 4 * chunk}; }
Place by_two(bool is_lower, int chunk, int s) {
    if (chunk < 4) return {2 * s, (is_lower ? 16 : 0) + 4 * chunk};
    return {2 * s + 1, (is_lower ? 16 : 0) + 4 * (chunk - 4)};
}
Place by_pair(bool is_lower, int chunk, int s) { return {(s == 1 ? 2 : 0) + (is_lower ? 1 : 0), 4 * chunk}; }
Place by_all(bool is_lower, int chunk, int) {
    if (chunk < 8) return {is_lower ? 1 : 0, 4 * chunk};
    return {is_lower ? 3 : 2, 4 * (chunk - 8)};
}

std::vector<Form> forms() {
    std::vector<Form> all;
    for (const std::string sum : {"f32", "f16"}) {
        all.push_back({"m16n8k16", "f16", "f16", sum, 16, 4, by_one});
        all.push_back({"m16n8k32", "f16", "f16", sum, 32, 2, by_two});
    }
    all.push_back({"m16n8k16", "bf16", "bf16", "f32", 16, 4, by_one});
    all.push_back({"m16n8k32", "bf16", "bf16", "f32", 32, 2, by_two});
    all.push_back({"m16n8k8", "tf32", "tf32", "f32", 8, 4, by_one});
    all.push_back({"m16n8k16", "tf32", "tf32", "f32", 16, 2, by_two});
    for (const std::string a : {"s8", "u8"})
        for (const std::string b : {"s8", "u8"}) {
            all.push_back({"m16n8k32", a, b, "s32", 32, 2, by_pair});
            all.push_back({"m16n8k64", a, b, "s32", 64, 1, by_all});
        }
    for (const std::string a : {"e4m3", "e5m2"})
        for (const std::string b : {"e4m3", "e5m2"}) all.push_back({"m16n8k64", a, b, "f32", 64, 1, by_all});
    for (const std::string a : {"s4", "u4"})
        for (const std::string b : {"s4", "u4"}) {
            all.push_back({"m16n8k64", a, b, "s32", 64, 2, by_pair});
            all.push_back({"m16n8k128", a, b, "s32", 128, 1, by_all});
        }
    return all;
}

/// The registers of a warp: cells[32 * register + lane].
struct Cells {
    std::vector<std::uint32_t> cells;
    explicit Cells(int registers) : cells(std::size_t(32 * registers)) {}
    void put(int lane, int element, int bits, std::uint64_t value) {
        const int per = 32 / bits;
        cells[std::size_t(element / per * 32 + lane)] |= std::uint32_t(value) << element % per * bits;
    }
};

std::string list(const char* prefix, int first, int count) {
    std::string text = "{";
    for (int i = 0; i < count; ++i) text += (i ? ", " : "") + (prefix + std::to_string(first + i));
    return text + "}";
}

/// A kernel that loads registers of b32 from p0, multiplies, and stores those of d to p1.
std::string kernel_of(const Form& form, const std::string& kind, int selector, int a, int b, int c) {
    std::string body =
        "ld.param.u64 %d1, [p0]; ld.param.u64 %d2, [p1]; mov.u32 %r0, %tid.x; mul.wide.u32 %d3, %r0, 4;\n"
        "add.u64 %d1, %d1, %d3; add.u64 %d2, %d2, %d3;\n";
    const bool is_single = form.sum == "f32";
    const int all = a + b + c + 1;
    for (int i = 0; i < all; ++i)
        body += "ld.global.b32 %r" + std::to_string(10 + i) + ", [%d1+" + std::to_string(128 * i) + "];\n";
    if (is_single)
        for (int i = 0; i < c; ++i)
            body += "mov.b32 %f" + std::to_string(i) + ", %r" + std::to_string(10 + a + b + i) + ";\n";
    body += "mma." + kind + ".sync.aligned." + form.shape + ".row.col." + form.sum + "." + form.a + "." + form.b + "." +
            form.sum + " " + (is_single ? list("%f", 10, c) : list("%r", 50, c)) + ", " + list("%r", 10, a) + ", " +
            list("%r", 10 + a, b) + ", " + (is_single ? list("%f", 0, c) : list("%r", 10 + a + b, c)) + ", %r" +
            std::to_string(9 + all) + ", " + std::to_string(selector) + ";\n";
    for (int i = 0; i < c; ++i)
        body += "st.global.b32 [%d2+" + std::to_string(128 * i) + "], " +
                (is_single ? "%f" + std::to_string(10 + i) : "%r" + std::to_string(50 + i)) + ";\n";
    return ".version 8.7\n.target sm_120\n.address_size 64\n.visible .entry k(.param .u64 p0, .param .u64 p1) {\n"
           ".reg .b32 %r<80>; .reg .b64 %d<9>; .reg .f32 %f<20>;\n" +
           body + "ret;\n}\n";
}

constexpr unsigned ascending[] = {0b0100, 0b1000, 0b1001, 0b1100, 0b1101, 0b1110};
constexpr unsigned descending[] = {0b0001, 0b0010, 0b0110, 0b0011, 0b0111, 0b1011};

struct Setup {
    const Form& form;
    int selector;
    bool ordered = true;
    bool zero_elsewhere = false;  // metadata of threads that hold none
};

/// "" if the product is right.
std::string product(const Setup& setup, std::uint32_t spoilt = 0, int spoilt_lane = -1) {
    using matrices::value_of;
    const Form& form = setup.form;
    const bool is_tf32 = form.a == "tf32", is_nibble = form.a.ends_with("4") && form.a.size() == 2;
    const int bits = matrices::bits_of(form.a), kept = is_tf32 ? 1 : is_nibble ? 4 : 2, wide = is_tf32 ? 2 : 2 * kept;
    const int chunks = form.k / wide, in_register = 32 / bits, k = form.k;
    const int a_registers = 16 * k / 2 * bits / 1024, b_registers = 8 * k * bits / 1024,
              c_registers = form.sum == "f16" ? 2 : 4;
    std::mt19937 random(std::uint32_t(k) * 31 + std::uint32_t(setup.selector));
    Cells a(a_registers), b(b_registers), c(c_registers), metadata(1);
    std::vector<double> left(std::size_t(16 * k)), right(std::size_t(8 * k)), sums(16 * 8);
    if (!setup.zero_elsewhere)
        for (auto& each : metadata.cells) each = 0xffffffff;  // of those that are not selected
    std::vector<unsigned> places(std::size_t(16 * chunks));
    for (int row = 0; row < 16; ++row)
        for (int chunk = 0; chunk < chunks; ++chunk) {
            const bool turns = !setup.ordered && random() % 2;
            const unsigned nibble =
                is_tf32 ? (random() % 2 ? 0b1110u : 0b0100u) : (turns ? descending : ascending)[random() % 6];
            places[std::size_t(row * chunks + chunk)] = nibble;
            const auto [thread, bit] = form.place(row >= 8, chunk, std::min(setup.selector, form.selectors - 1));
            std::uint32_t& cell = metadata.cells[std::size_t(row % 8 * 4 + thread)];
            cell = (cell & ~(15u << bit)) | nibble << bit;
        }
    if (spoilt_lane >= 0) metadata.cells[std::size_t(spoilt_lane)] = spoilt;
    for (int lane = 0; lane < 32; ++lane) {
        const int group = lane / 4, thread = lane % 4;
        // a: registers of rows g and g + 8, of in_register held elements from the thread's on; then those further right
        for (int i = 0; i < a_registers * in_register; ++i) {
            const int reg = i / in_register, row = group + 8 * (reg % 2);
            const int held = reg / 2 * 4 * in_register + thread * in_register + i % in_register;
            const unsigned nibble = places[std::size_t(row * chunks + held / kept)];
            const int j = held % kept;
            const int column = is_tf32     ? 2 * held + (nibble == 0b1110)
                               : is_nibble ? 8 * (held / 4) + 2 * int(nibble >> 2 * (j / 2) & 3) + j % 2
                                           : 4 * (held / 2) + int(nibble >> 2 * j & 3);
            const auto [value, cell] = value_of(form.a, unsigned(random()));
            a.put(lane, i, bits, cell);
            left[std::size_t(row * k + column)] = value;
        }
        // b: as that of a dense product
        for (int i = 0; i < b_registers * in_register; ++i) {
            const int row = i / in_register * 4 * in_register + thread * in_register + i % in_register;
            const auto [value, cell] = value_of(form.b, unsigned(random()));
            b.put(lane, i, bits, cell);
            right[std::size_t(group * k + row)] = value;
        }
        for (int i = 0; i < 4; ++i) {
            const auto [value, cell] = value_of(form.sum, unsigned(random()));
            c.put(lane, i, form.sum == "f16" ? 16 : 32, cell);
            sums[std::size_t((group + 8 * (i / 2)) * 8 + 2 * thread + i % 2)] = value;
        }
    }
    for (int i = 0; i < 128; ++i)
        for (int j = 0; j < k; ++j)
            sums[std::size_t(i)] += left[std::size_t(i / 8 * k + j)] * right[std::size_t(i % 8 * k + j)];
    std::vector<std::uint32_t> input;
    for (const Cells* const each : {&a, &b, &c, &metadata})
        input.insert(input.end(), each->cells.begin(), each->cells.end());
    Machine machine;
    const auto to = machine.empty<std::uint32_t>("d", std::size_t(32 * c_registers));
    const std::string text = kernel_of(form, setup.ordered ? "sp::ordered_metadata" : "sp", setup.selector, a_registers,
                                       b_registers, c_registers);
    const std::string said = machine.failure(text, {.block = {32, 1, 1}}, machine.buffer("x", input), to);
    if (said != "no failure") return machine.code + ": " + said;
    const auto found = machine.get<std::uint32_t>(to, std::size_t(32 * c_registers));
    for (int lane = 0; lane < 32; ++lane)
        for (int i = 0; i < 4; ++i) {
            const bool is_half = form.sum == "f16";
            const std::uint32_t cell = found[std::size_t((is_half ? i / 2 : i) * 32 + lane)];
            const double is = matrices::number_of(form.sum, is_half ? cell >> 16 * (i % 2) & 0xffff : cell),
                         wanted = sums[std::size_t((lane / 4 + 8 * (i / 2)) * 8 + 2 * (lane % 4) + i % 2)];
            if (is != wanted)
                return "lane " + std::to_string(lane) + ": " + std::to_string(is) + ", not " + std::to_string(wanted);
        }
    return "";
}

}  // namespace

TEST_CASE("products with a sparse matrix by a warp") {
    for (const Form& form : forms())
        for (int selector = 0; selector < form.selectors; ++selector)
            for (const bool ordered : {true, false}) {
                INFO(form.shape << " " << form.a << " " << form.b << " " << form.sum << ", selector " << selector
                                << (ordered ? ", ordered" : ""));
                CHECK(product({form, selector, ordered}) == "");
            }
}

TEST_CASE("metadata of sparse matrices without a meaning") {
    const Form halves{"m16n8k32", "f16", "f16", "f32", 32, 2, by_two},
        words{"m16n8k8", "tf32", "tf32", "f32", 8, 4, by_one}, bytes{"m16n8k64", "s8", "s8", "s32", 64, 1, by_all},
        fewer_bytes{"m16n8k32", "s8", "s8", "s32", 32, 2, by_pair};
    for (const std::uint32_t twice : {0x44404444u, 0x44445444u, 0xa4444444u, 0x444444f4u})
        for (const bool ordered : {true, false})
            CHECK_THAT(product({halves, 1, ordered}, twice, 7),
                       contains("sparse-metadata: ") && contains("thread (7,0,0)") && contains("mma.sp"));
    CHECK_THAT(product({halves, 0, true}, 0x44444441, 5), contains("sparse-metadata: "));
    CHECK_THAT(product({bytes, 0}, 0x14444444, 31), contains("sparse-metadata: ") && contains("thread (31,0,0)"));
    CHECK_THAT(product({words, 3}, 0x4444444c, 3), contains("sparse-metadata: "));
    CHECK_THAT(product({fewer_bytes, 1}, 0xf4444444, 26), contains("sparse-metadata: ") && contains("thread (26,0,0)"));
    // of a thread that is not selected
    CHECK(product({halves, 1}, 0, 5) == "");
    CHECK(product({words, 3}, 0, 2) == "");
    CHECK(product({fewer_bytes, 1}, 0, 25) == "");
    // selectors
    CHECK_THAT(product({halves, 2}), contains("wrong-immediate: ") && contains("from 0 to 1"));
    CHECK_THAT(product({words, 4}), contains("from 0 to 3"));
    CHECK_THAT(product({bytes, 1}), contains("from 0 to 0"));
    CHECK_THAT(product({fewer_bytes, 2}), contains("from 0 to 1"));
}

}  // namespace ikat::tests::sparse
