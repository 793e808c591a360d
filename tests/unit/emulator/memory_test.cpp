// SPDX-License-Identifier: Apache-2.0
// Loads, stores and atomics in every space and width, and variables of module scope.
#include <algorithm>
#include <fstream>
#include <numeric>

#include "runtime/emulator/core/memory/memory.hpp"
#include "tests/message.hpp"
#include "tests/unit/emulator/evaluate.hpp"
#include "tests/unit/emulator/targets.hpp"

using namespace ikat;
using tests::contains;
using tests::kernel;
using tests::Machine;
using tests::message_of;

namespace {

/// Runs `body` with one block of 32 threads; p0 is `in`, p1 receives 32 words or double words.
template <class T>
std::vector<T> run(const std::string& body, const std::vector<std::uint8_t>& in, std::string_view scope = "",
                   std::uint32_t dynamic = 0) {
    Machine machine;
    const auto from = machine.buffer("in", in), to = machine.empty<T>("out", 32);
    machine.run(kernel(R"(
    mov.u32 %r63, %tid.x; ld.param.u64 %d1, [p0]; ld.param.u64 %d2, [p1];
    mad.wide.u32 %d2, %r63, )" +
                           std::to_string(sizeof(T)) + ", %d2;\n" + body + "\n    ret;",
                       scope),
                {.block = {32, 1, 1}, .dynamic_shared_bytes = dynamic}, from, to, 0ull, 32u);
    return machine.get<T>(to, 32);
}

std::vector<std::uint8_t> counting(std::size_t n) {
    std::vector<std::uint8_t> bytes(n);
    std::iota(bytes.begin(), bytes.end(), std::uint8_t(100));
    return bytes;
}

template <class T>
T at(const std::vector<std::uint8_t>& bytes, std::size_t offset) {
    T value;
    std::memcpy(&value, bytes.data() + offset, sizeof value);
    return value;
}

}  // namespace

TEST_CASE("loads of every width, contiguous, uniform, strided and backwards") {
    const auto in = counting(4096);
    struct Width {
        const char* type;
        unsigned bytes;
        bool is_signed;
    };
    for (const Width w : {Width{"u8", 1, false},
                          {"s8", 1, true},
                          {"u16", 2, false},
                          {"s16", 2, true},
                          {"u32", 4, false},
                          {"s32", 4, true},
                          {"b32", 4, false},
                          {"u64", 8, false},
                          {"s64", 8, true}})
        for (const auto& [stride, first] : std::vector<std::pair<int, unsigned>>{{1, 0}, {0, 3}, {3, 1}, {-1, 40}}) {
            const std::string text = "mov.u32 %r1, %tid.x; mov.u32 %r3, " + std::to_string(first) +
                                     "; mad.lo.s32 %r1, %r1, " + std::to_string(stride) +
                                     ", %r3; mad.wide.s32 %d3, %r1, " + std::to_string(w.bytes) + ", %d1; ld.global." +
                                     w.type + " %d4, [%d3]; st.global.b64 [%d2], %d4;";
            INFO(text);
            const auto result = run<std::uint64_t>(text, in);
            for (int i = 0; i < 32; ++i) {
                const std::size_t offset = std::size_t(int(first) + stride * i) * w.bytes;
                std::uint64_t expected = 0;
                std::memcpy(&expected, in.data() + offset, w.bytes);
                const unsigned shift = 64 - 8 * w.bytes;
                if (w.is_signed) expected = std::uint64_t(std::int64_t(expected << shift) >> shift);
                CHECK(result[std::size_t(i)] == expected);
            }
        }
}

TEST_CASE("vectors of two and four, also partly sunk and on half a warp") {
    const auto in = counting(4096);
    for (const std::string pattern :
         {"mov.u32 %r1, %tid.x;", "mov.u32 %r1, 5;", "mov.u32 %r1, %tid.x; xor.b32 %r1, %r1, 7;"})
        for (const std::string guard : {"", "and.b32 %r9, %r63, 1; setp.eq.u32 %p1, %r9, 0; @%p1 "}) {
            const auto result =
                run<std::uint32_t>(pattern + "mov.u32 %r8, 0; mad.wide.u32 %d3, %r1, 16, %d1;" + guard +
                                       "ld.global.v4.u32 {%r5, _, %r7, %r8}, [%d3+16]; st.global.u32 [%d2], %r8;",
                                   in);
            for (std::size_t i = 0; i < 32; ++i) {
                const std::size_t index = pattern.find("5") != pattern.npos     ? 5
                                          : pattern.find("xor") != pattern.npos ? i ^ 7
                                                                                : i;
                CHECK(result[i] == (!guard.empty() && i % 2 ? 0 : at<std::uint32_t>(in, index * 16 + 16 + 12)));
            }
        }
    const auto halves = run<std::uint32_t>(
        "mad.wide.u32 %d3, %r63, 4, %d1; ld.global.v2.u16 {%h1, %h2}, [%d3]; "
        "mov.b32 %r1, {%h2, %h1}; st.global.u32 [%d2], %r1;",
        in);
    for (std::size_t i = 0; i < 32; ++i)
        CHECK(halves[i] == (at<std::uint16_t>(in, 4 * i + 2) | unsigned(at<std::uint16_t>(in, 4 * i)) << 16));
    const auto wide = run<std::uint64_t>(
        "mad.wide.u32 %d3, %r63, 16, %d1; ld.global.nc.v2.u64 {%d4, %d5}, [%d3]; "
        "add.u64 %d4, %d4, %d5; st.global.u64 [%d2], %d4;",
        in);
    for (std::size_t i = 0; i < 32; ++i)
        CHECK(wide[i] == at<std::uint64_t>(in, 16 * i) + at<std::uint64_t>(in, 16 * i + 8));
}

TEST_CASE("the address register may be a target of the load") {
    const auto in = counting(4096);
    const auto result = run<std::uint64_t>(
        "mad.wide.u32 %d3, %r63, 16, %d1; xor.b64 %d3, %d3, 16; ld.global.v2.u64 {%d3, %d4}, [%d3]; "
        "add.u64 %d4, %d4, %d3; st.global.u64 [%d2], %d4;",
        in);
    for (std::size_t i = 0; i < 32; ++i)
        CHECK(result[i] == at<std::uint64_t>(in, 16 * (i ^ 1)) + at<std::uint64_t>(in, 16 * (i ^ 1) + 8));
}

TEST_CASE("shared memory: static, dynamic after it, by 32-bit, 64-bit and generic addresses") {
    for (const std::string access : {"mad.lo.u32 %r2, %r63, 4, %r1; st.shared.u32 [%r2], %r63; bar.sync 0; xor.b32 "
                                     "%r2, %r2, 4; ld.shared.u32 %r3, [%r2];",
                                     "cvt.u64.u32 %d3, %r1; mad.wide.u32 %d3, %r63, 4, %d3; st.shared.u32 [%d3], %r63; "
                                     "bar.sync 0; xor.b64 %d3, %d3, 4; ld.shared.u32 %r3, [%d3];",
                                     "cvt.u64.u32 %d3, %r1; cvta.shared.u64 %d3, %d3; mad.wide.u32 %d3, %r63, 4, %d3; "
                                     "st.u32 [%d3], %r63; bar.sync 0; xor.b64 %d3, %d3, 4; ld.u32 %r3, [%d3];",
                                     "cvt.u64.u32 %d3, %r1; cvta.shared.u64 %d3, %d3; mad.wide.u32 %d3, %r63, 4, %d3; "
                                     "st.u32 [%d3], %r63; bar.sync 0; xor.b64 %d3, %d3, 4; "
                                     "cvta.to.shared.u64 %d3, %d3; cvt.u32.u64 %r2, %d3; ld.shared.u32 %r3, [%r2];"})
        for (const std::string name : {"fixed", "dynamic"}) {
            const auto result = run<std::uint32_t>(
                ".shared .align 8 .b8 first[24]; .shared .align 8 .b8 fixed[128]; mov.u32 %r1, " + name + ";" + access +
                    "mov.u32 %r4, first; add.u32 %r3, %r3, %r4; st.global.u32 [%d2], %r3;",
                {0}, ".extern .shared .align 16 .b8 dynamic[];", 128);
            for (std::uint32_t i = 0; i < 32; ++i) CHECK(result[i] == (i ^ 1));
        }
}

TEST_CASE("local memory belongs to its thread") {
    const auto result = run<std::uint32_t>(R"(
    .local .align 4 .b8 own[16]; mov.u64 %d3, own;
    st.local.u32 [own+4], %r63; add.u32 %r1, %r63, 10; st.local.u32 [%d3+8], %r1;
    cvta.local.u64 %d4, %d3; ld.u32 %r2, [%d4+4]; ld.local.u32 %r3, [own+8];
    mad.lo.u32 %r2, %r2, 100, %r3; st.global.u32 [%d2], %r2;)",
                                           {0});
    for (std::uint32_t i = 0; i < 32; ++i) CHECK(result[i] == 100 * i + i + 10);
}

TEST_CASE("variables of module scope have their initial values") {
    const std::string_view scope = R"(
.global .align 4 .u32 table[4] = {10, 20, 30};
.const .align 8 .f64 half_one = 0d3FE0000000000000;
.const .align 4 .f32 numbers[2] = {1.5, 0f40200000};
.global .u64 pointer = generic(table);
.global .u64 inside = table+8;
)";
    const auto result = run<std::uint64_t>(R"(
    ld.global.u32 %r1, [table+4]; ld.const.f64 %d3, [half_one]; ld.const.f32 %r2, [numbers+4];
    ld.global.u64 %d4, [pointer]; ld.u32 %r3, [%d4]; ld.global.u64 %d4, [inside]; ld.global.u32 %r4, [%d4];
    mov.u64 %d5, numbers; cvta.const.u64 %d5, %d5; ld.f32 %r5, [%d5];
    ld.global.u32 %r6, [table+12];
    add.u32 %r1, %r1, %r3; add.u32 %r1, %r1, %r4; add.u32 %r1, %r1, %r6;
    mov.u32 %r7, %tid.x; setp.eq.u32 %p1, %r7, 0; cvt.u64.u32 %d6, %r1; selp.b64 %d6, %d6, %d3, %p1;
    setp.eq.u32 %p1, %r7, 2; mov.b64 %d7, {%r2, %r5}; selp.b64 %d6, %d7, %d6, %p1;
    st.global.u64 [%d2], %d6;)",
                                           {0}, scope);
    CHECK(result[0] == 60);
    CHECK(result[1] == tests::D(0.5));
    CHECK(result[2] == (tests::F(2.5f) | tests::F(1.5f) << 32));
}

TEST_CASE("a global variable keeps its value from launch to launch") {
    Machine machine;
    emulator::Program program(
        ptx::parse(kernel("ld.global.u32 %r1, [count]; add.u32 %r1, %r1, 1; st.global.u32 [count], %r1; "
                          "ld.param.u64 %d1, [p0]; st.global.u32 [%d1], %r1; ret;",
                          ".global .u32 count;"),
                   "k.ptx"),
        machine.memory);
    const auto out = machine.empty<std::uint32_t>("out", 1);
    const std::uint64_t parameters[4] = {out, 0, 0, 0};
    for (std::uint32_t i = 1; i < 4; ++i) {
        program.run({.entry = "k", .parameters = std::as_bytes(std::span(parameters)).first(28)});
        CHECK(machine.get<std::uint32_t>(out, 1)[0] == i);
    }
}

TEST_CASE("parameters: arrays, at their natural alignment, and by address") {
    Machine machine;
    const auto out = machine.empty<std::uint32_t>("out", 1);
    struct {
        std::uint8_t small;
        std::uint64_t out;
        std::array<std::uint32_t, 3> array;
    } const parameters{7, out, {1, 2, 3}};
    emulator::Program program(ptx::parse(R"(.version 8.0
.target sm_80
.address_size 64
.entry k(.param .u8 small, .param .u64 out, .param .align 4 .b8 array[12]) {
    .reg .b32 %r<9>; .reg .b64 %d<9>;
    ld.param.u8 %r1, [small]; ld.param.u64 %d1, [out]; ld.param.u32 %r2, [array+8];
    mov.u64 %d2, array; ld.param.u32 %r3, [%d2+4]; cvta.param.u64 %d3, %d2; ld.u32 %r4, [%d3];
    mad.lo.u32 %r1, %r1, 1000, %r2; mad.lo.u32 %r1, %r3, 10, %r1; mad.lo.u32 %r1, %r4, 100, %r1;
    st.global.u32 [%d1], %r1;
})",
                                         "k.ptx"),
                              machine.memory);
    const auto list = program.parameters("k");
    REQUIRE(list.size() == 3);
    CHECK(list[1].offset == 8);
    CHECK(list[2].type == ".b8");
    CHECK(list[2].bytes == 12);
    program.run({.entry = "k", .parameters = std::as_bytes(std::span(&parameters, 1)).first(28)});
    CHECK(machine.get<std::uint32_t>(out, 1)[0] == 7123);
}

TEST_CASE("atomics in shared and global memory") {
    const auto atom = [](const std::string& space, const std::string& form, std::uint32_t start) {
        const std::string where = space == "shared" ? "[cell]" : "[%d1]";
        const std::string type = "b32";
        const auto result =
            run<std::uint32_t>(".shared .u32 cell; mov.u32 %r1, " + std::to_string(start) + "; st." + space + ".u32 " +
                                   where + ", %r1; add.u32 %r2, %r63, 1; bar.sync 0; atom." + space + "." + form +
                                   " ; bar.sync 0; ld." + space + ".u32 %r4, " + where + "; st.global.u32 [%d2], %r4;",
                               std::vector<std::uint8_t>(4));
        return result[31];
    };
    for (const std::string space : {"shared", "global"}) {
        const std::string at = space == "shared" ? "[cell]" : "[%d1]";
        CHECK(atom(space, "add.u32 %r3, " + at + ", %r2", 100) == 628);
        CHECK(atom(space, "add.s32 %r3, " + at + ", -1", 100) == 68);
        CHECK(atom(space, "min.u32 %r3, " + at + ", %r2", 100) == 1);
        CHECK(atom(space, "max.s32 %r3, " + at + ", %r2", 0xffffffff) == 32);
        CHECK(atom(space, "and.b32 %r3, " + at + ", %r2", 0xffffffff) == 0);
        CHECK(atom(space, "or.b32 %r3, " + at + ", %r2", 0) == 63);
        CHECK(atom(space, "xor.b32 %r3, " + at + ", %r2", 0) == 32);
        CHECK(atom(space, "exch.b32 %r3, " + at + ", %r2", 0) == 32);
        CHECK(atom(space, "inc.u32 %r3, " + at + ", 9", 0) == 2);
        CHECK(atom(space, "dec.u32 %r3, " + at + ", 9", 1) == 9);
        CHECK(atom(space, "cas.b32 %r3, " + at + ", 3, 4", 3) == 4);
        CHECK(atom(space, "add.f32 %r3, " + at + ", 0f3F800000", 0) == tests::F(32));
    }
    const auto old = run<std::uint32_t>(
        "mov.u32 %r1, 0; st.global.u32 [%d1], %r1; bar.sync 0; atom.global.add.u32 %r3, [%d1], 2; st.global.u32 [%d2], "
        "%r3;",
        std::vector<std::uint8_t>(4));
    for (std::uint32_t i = 0; i < 32; ++i) CHECK(old[i] == 2 * i);  // lanes in order
    const auto wide = run<std::uint64_t>(
        "mov.f64 %d3, 0d0000000000000000; st.global.f64 [%d1], %d3; bar.sync 0; red.global.add.f64 [%d1], "
        "0d3FE0000000000000; ld.global.u64 %d3, [%d1]; st.global.u64 [%d2], %d3;",
        std::vector<std::uint8_t>(8));
    CHECK(wide[31] == tests::D(16));
}

TEST_CASE("the halves of a warp read separate rows of shared memory, on every instruction set") {
    // The offset of each lane comes from p0; what it loads goes to 16 bytes of p1.
    std::string fill = ".shared .align 16 .b8 s[4096]; mov.u32 %r1, %laneid; shl.b32 %r2, %r1, 2;\n";
    for (int i = 0; i < 32; ++i)
        fill += "add.u32 %r3, %r2, " + std::to_string(128 * i) + "; st.shared.u32 [%r2+" + std::to_string(128 * i) +
                "], %r3;\n";
    fill +=
        "ld.param.u64 %d1, [p0]; mad.wide.u32 %d1, %r1, 4, %d1; ld.global.u32 %r4, [%d1];\n"
        "ld.param.u64 %d2, [p1]; mad.wide.u32 %d2, %r1, 16, %d2; bar.sync 0;\n";
    const auto loaded = [&](std::uint32_t bytes) {
        if (bytes == 4) return "ld.shared.u32 %r5, [%r4]; st.global.u32 [%d2], %r5; ret;";
        if (bytes == 8) return "ld.shared.u64 %d5, [%r4]; st.global.u64 [%d2], %d5; ret;";
        return "ld.shared.v4.u32 {%r5,%r6,%r7,%r8}, [%r4]; st.global.v4.u32 [%d2], {%r5,%r6,%r7,%r8}; ret;";
    };
    for (const std::int64_t target : tests::targets()) {
        const tests::OnTarget chosen(target);
        for (const std::uint32_t bytes : {4u, 8u, 16u})
            for (const std::uint32_t first : {0u, bytes})  // the steps of the halves
                for (const std::uint32_t second : {0u, bytes})
                    for (const bool stray : {false, true}) {
                        CAPTURE(hwy::TargetName(target), bytes, first, second, stray);
                        std::vector<std::uint32_t> offsets(32);
                        for (std::uint32_t i = 0; i < 32; ++i)
                            offsets[i] = i < 16 ? 2048 + i * first : 512 + (i - 16) * second;
                        if (stray) offsets[21] = 3200;
                        Machine machine;
                        const auto x = machine.buffer("x", offsets);
                        const auto y = machine.buffer("y", std::vector<std::uint32_t>(128));
                        machine.run(kernel(fill + loaded(bytes)), {.block = {32, 1, 1}}, x, y, 0ull, 0u);
                        const auto result = machine.get<std::uint32_t>(y, 128);
                        for (std::uint32_t i = 0; i < 32; ++i)
                            for (std::uint32_t k = 0; k < bytes / 4; ++k)
                                CHECK(result[4 * i + k] == offsets[i] + 4 * k);
                    }
    }
}

TEST_CASE("partial accesses touch only their own bytes at either end of a buffer, on every instruction set") {
    // Buffers of 20 and 40 bytes: a load or store of a whole vector would reach past the end, or begin before it.
    for (const std::int64_t target : tests::targets()) {
        const tests::OnTarget chosen(target);
        for (const bool last : {false, true}) {
            CAPTURE(hwy::TargetName(target), last);
            const std::string on = last ? "setp.ge.u32 %p1, %r1, 27; add.u32 %r2, %r1, -27;"
                                        : "setp.lt.u32 %p1, %r1, 5; mov.u32 %r2, %r1;";
            Machine machine;
            const auto x = machine.buffer("x", std::vector<std::uint32_t>{10, 11, 12, 13, 14});
            const auto y = machine.buffer("y", std::vector<std::uint64_t>{20, 21, 22, 23, 24});
            machine.run(kernel("mov.u32 %r1, %tid.x; " + on + R"(
    ld.param.u64 %d1, [p0]; ld.param.u64 %d2, [p1]; mad.wide.s32 %d1, %r2, 4, %d1; mad.wide.s32 %d2, %r2, 8, %d2;
    @%p1 ld.global.u32 %r3, [%d1]; @%p1 ld.global.u64 %d3, [%d2]; add.u32 %r3, %r3, 1; add.u64 %d3, %d3, 1;
    @%p1 st.global.u32 [%d1], %r3; @%p1 st.global.u64 [%d2], %d3; ret;)"),
                        {.block = {32, 1, 1}}, x, y, 0ull, 0u);
            CHECK(machine.get<std::uint32_t>(x, 5) == std::vector<std::uint32_t>{11, 12, 13, 14, 15});
            CHECK(machine.get<std::uint64_t>(y, 5) == std::vector<std::uint64_t>{21, 22, 23, 24, 25});
        }
    }
}

TEST_CASE("atomics from blocks on several host threads lose nothing") {
    Machine machine;
    machine.options.threads = 4;
    const auto cell = machine.buffer("cell", std::vector<std::uint32_t>{0, 0});
    machine.run(
        kernel("ld.param.u64 %d1, [p0]; red.global.add.u32 [%d1], 1; atom.add.f32 %r1, [%d1+4], 0f3F800000; ret;"),
        {.grid = {100, 1, 1}, .block = {96, 1, 1}}, cell, 0ull, 0ull, 0u);
    CHECK(machine.get<std::uint32_t>(cell, 1)[0] == 9600);
    CHECK(machine.get<float>(cell + 4, 1)[0] == 9600.0f);
}

TEST_CASE("an initial value of a type that has none is an error") {
    tests::Machine machine;
    for (const char* variable : {".global .b116 x[2] = {1, 2};", ".global .texref x = {1};", ".const .b128 x = 1;"})
        CHECK_THAT(machine.failure(tests::kernel("ret;", variable), {}, 0ull, 0ull, 0ull, 0u),
                   tests::contains("cannot have an initial value"));
}
