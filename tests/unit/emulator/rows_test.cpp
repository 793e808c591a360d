// SPDX-License-Identifier: Apache-2.0
// What handlers do for a whole warp at once: addresses in rows, and ops that follow each other.
#include <cmath>

#include "tests/unit/emulator/evaluate.hpp"
#include "tests/unit/emulator/targets.hpp"

using namespace ikat;
using tests::contains;
using tests::evaluate;
using tests::F;
using tests::kernel;
using tests::Machine;
using tests::Row;

namespace {

constexpr std::uint32_t tile_bytes = 4096;

/// The tile in shared memory is p0's bytes; %r3 is the lane's offset from p2, and %d3 its address in p0.
std::string with_tile(const std::string& body) {
    std::string text = R"(
    .shared .align 16 .b8 tile[4096];
    mov.u32 %r1, %tid.x; ld.param.u64 %d1, [p0]; ld.param.u64 %d2, [p1]; ld.param.u64 %d3, [p2];
    mad.wide.u32 %d4, %r1, 16, %d1; shl.b32 %r2, %r1, 4;
)";
    for (unsigned at = 0; at < tile_bytes; at += 512)
        text += "    ld.global.v4.b32 {%r4, %r5, %r6, %r7}, [%d4+" + std::to_string(at) + "]; st.shared.v4.b32 [%r2+" +
                std::to_string(at) + "], {%r4, %r5, %r6, %r7};\n";
    return kernel(text + R"(
    bar.sync 0;
    mad.wide.u32 %d5, %r1, 4, %d3; ld.global.u32 %r3, [%d5]; cvt.u64.u32 %d3, %r3; add.s64 %d3, %d3, %d1;
    mad.wide.u32 %d2, %r1, 16, %d2; mov.u32 %r4, 0; mov.u32 %r5, 0; mov.u32 %r6, 0; mov.u32 %r7, 0;
)" + body + "\n    ret;");
}

struct Half {
    unsigned first, step;  // in elements
};
std::vector<std::uint32_t> offsets(Half low, Half high, unsigned bytes) {
    std::vector<std::uint32_t> all;
    for (unsigned i = 0; i < 32; ++i) {
        const Half& half = i < 16 ? low : high;
        all.push_back((half.first + half.step * (i % 16)) * bytes);
    }
    return all;
}

const std::vector<std::pair<Half, Half>> patterns = {
    {{2, 1}, {18, 1}}, {{3, 1}, {3, 1}}, {{40, 1}, {7, 1}}, {{5, 0}, {5, 0}}, {{5, 0}, {9, 0}},
    {{5, 0}, {9, 1}},  {{5, 1}, {9, 0}}, {{1, 2}, {33, 2}}, {{4, 1}, {1, 2}}, {{5, 0}, {6, 3}},
};

}  // namespace

TEST_CASE("loads of two rows, of a single address, and near misses") {
    std::vector<std::uint8_t> tile(tile_bytes);
    for (unsigned i = 0; i < tile_bytes; ++i) tile[i] = std::uint8_t(i * 7 + i / 256);
    struct Form {
        const char *shared, *global;
        unsigned bytes;
    };
    const std::vector<Form> forms = {
        {"ld.shared.u8 %r4, [%r3+@];", "ld.global.u8 %r4, [%d3+@];", 1},
        {"ld.shared.u16 %r4, [%r3+@];", "ld.global.u16 %r4, [%d3+@];", 2},
        {"ld.shared.u32 %r3, [%r3+@]; mov.u32 %r4, %r3;", "ld.global.u32 %r4, [%d3+@];", 4},
        {"ld.shared.v2.u32 {%r3, %r4}, [%r3+@]; mov.u32 %r5, %r4; mov.u32 %r4, %r3;",
         "ld.global.u64 %d3, [%d3+@]; mov.b64 {%r4, %r5}, %d3;", 8},
        {"ld.shared.v4.u32 {%r4, %r5, %r3, %r7}, [%r3+@]; mov.u32 %r6, %r3;",
         "ld.global.v4.u32 {%r4, %r5, %r6, %r7}, [%d3+@];", 16}};
    for (const std::int64_t target : tests::targets()) {
        const tests::OnTarget chosen(target);
        for (const Form& form : forms)
            for (const auto& [low, high] : patterns)
                for (const unsigned odd : {0u, 7u, 16u, 30u})
                    for (const bool shared : {true, false})
                        for (const int shift : {0, 1}) {  // the offset makes up for a register that is not aligned
                            std::vector<std::uint32_t> at = offsets(low, high, form.bytes);
                            if (odd) at[odd] += form.bytes;  // one lane is out of the row
                            std::string text = shared ? form.shared : form.global;
                            text.replace(text.find('@'), 1, std::to_string(64 - shift));
                            std::vector<std::uint32_t> given = at;
                            for (std::uint32_t& each : given) each += std::uint32_t(shift);
                            Machine machine;
                            const auto from = machine.buffer("tile", tile), places = machine.buffer("places", given);
                            const auto to = machine.empty<std::uint8_t>("to", 512);
                            machine.run(with_tile(text + " st.global.v4.b32 [%d2], {%r4, %r5, %r6, %r7};"),
                                        {.block = {32, 1, 1}}, from, to, places, 0u);
                            std::vector<std::uint8_t> expected(512);
                            for (unsigned i = 0; i < 32; ++i)
                                std::memcpy(expected.data() + 16 * i, tile.data() + at[i] + 64, form.bytes);
                            INFO(text << " " << low.first << " " << low.step << " " << high.first << " " << high.step);
                            CHECK(machine.get<std::uint8_t>(to, 512) == expected);
                        }
    }
}

TEST_CASE("stores of two rows, the later lane last where they overlap") {
    for (const std::int64_t target : tests::targets()) {
        const tests::OnTarget chosen(target);
        for (const auto& [low, high] : patterns)
            for (const bool shared : {true, false}) {
                const std::vector<std::uint32_t> at = offsets(low, high, 4);
                Machine machine;
                const auto from = machine.buffer("tile", std::vector<std::uint8_t>(tile_bytes)),
                           places = machine.buffer("places", at);
                const auto to = machine.empty<std::uint32_t>("to", 128);
                machine.run(with_tile(std::string(shared ? "add.u32 %r4, %r1, 1; st.shared.u32 [%r3], %r4; bar.sync 0;"
                                                           " ld.shared.v4.u32 {%r4, %r5, %r6, %r7}, [%r2];"
                                                         : "add.u32 %r4, %r1, 1; st.global.u32 [%d3], %r4; bar.sync 0;"
                                                           " ld.global.v4.u32 {%r4, %r5, %r6, %r7}, [%d4];") +
                                      " st.global.v4.b32 [%d2], {%r4, %r5, %r6, %r7};"),
                            {.block = {32, 1, 1}}, from, to, places, 0u);
                std::vector<std::uint32_t> expected(128);
                for (unsigned i = 0; i < 32; ++i) expected[at[i] / 4] = i + 1;
                INFO(low.first << " " << low.step << " " << high.first << " " << high.step);
                CHECK(machine.get<std::uint32_t>(to, 128) == expected);
            }
    }
}

TEST_CASE("a row beyond its variable is a finding of the first lane out of bounds") {
    for (const std::int64_t target : tests::targets()) {
        const tests::OnTarget chosen(target);
        for (const auto& [high, lane] : std::vector<std::pair<Half, unsigned>>{{{1010, 1}, 30}, {{1024, 0}, 16}})
            for (const char* access : {"ld.shared.u32 %r4, [%r3];", "st.shared.u32 [%r3], %r1;"}) {
                Machine machine;
                const auto from = machine.buffer("tile", std::vector<std::uint8_t>(tile_bytes)),
                           places = machine.buffer("places", offsets({0, 1}, high, 4)),
                           to = machine.empty<std::uint32_t>("to", 128);
                const std::string text =
                    machine.failure(with_tile(access), {.block = {32, 1, 1}}, from, to, places, 0u);
                INFO(text);
                CHECK_THAT(text, contains("thread (" + std::to_string(lane) + ",0,0)"));
                CHECK_THAT(text, contains("tile"));
            }
    }
}

TEST_CASE("sequences of products in which one writes a factor of another") {
    const std::string code =
        "fma.rn.f32 %r4, %r1, %r2, %r3; fma.rn.f32 %r5, %r1, %r3, %r4; fma.rn.f32 %r1, %r1, %r2, %r5;"
        " fma.rn.f32 %r6, %r1, %r4, %r5; fma.rn.f32 %r7, %r1, %r6, %r2; fma.rn.f32 %r0, %r6, %r7, %r4;";
    std::vector<Row> rows;
    for (unsigned i = 0; i < 32; ++i)
        rows.push_back({F(0.25f * float(i) - 3), F(1.5f - 0.125f * float(i)), F(float(i % 5) - 2)});
    rows[3][0] = 0x7f800001;  // NaNs with payloads
    rows[9][2] = 0xffc12345;
    rows[20] = {F(INFINITY), F(0), F(1)};
    const auto fma = [](float a, float b, float c) {
        const float x = std::fma(a, b, c);
        return x != x ? std::bit_cast<float>(0x7fffffffu) : x;
    };
    for (const std::int64_t target : tests::targets()) {
        const tests::OnTarget chosen(target);
        for (const std::uint32_t lanes : {~0u, 0x0f0ff00fu}) {
            const auto results = evaluate(code, rows, lanes);
            for (unsigned i = 0; i < 32; ++i) {
                const auto in = [&](unsigned k) { return std::bit_cast<float>(std::uint32_t(rows[i][k])); };
                const float r4 = fma(in(0), in(1), in(2)), r5 = fma(in(0), in(2), r4), r1 = fma(in(0), in(1), r5);
                const float r6 = fma(r1, r4, r5), r7 = fma(r1, r6, in(1));
                INFO(i);
                CHECK(results[i] == (lanes >> i & 1 ? F(fma(r6, r7, r4)) : 0x5555));
            }
        }
    }
}

TEST_CASE("a wide product and the sum after it, whatever else wants the product") {
    struct Form {
        const char* code;
        std::uint64_t (*meaning)(std::uint32_t a, std::uint32_t b, std::uint64_t c);
    };
    using U64 = std::uint64_t;
    const std::vector<Form> forms = {
        {"mul.wide.u32 %d4, %r1, %r2; add.s64 %d0, %d4, %d3;", [](auto a, auto b, U64 c) { return U64{a} * b + c; }},
        {"mul.wide.u32 %d0, %r1, %r2; add.u64 %d0, %d3, %d0;", [](auto a, auto b, U64 c) { return U64{a} * b + c; }},
        {"mul.wide.u32 %d4, %r1, 12; add.s64 %d5, %d4, %d3; xor.b64 %d0, %d5, %d4;",
         [](auto a, auto, U64 c) { return (U64{a} * 12 + c) ^ U64 { a } * 12; }},
        {"mul.wide.u32 %d4, %r1, %r1; add.s64 %d0, %d4, %d4;", [](auto a, auto, U64) { return U64{a} * a * 2; }},
        {"mul.wide.u32 %d4, %r1, %r2; add.s64 %d0, %d3, %d3;", [](auto, auto, U64 c) { return 2 * c; }},
        {"mul.wide.s32 %d4, %r1, -8; add.s64 %d3, %d3, %d4; mov.b64 %d0, %d3;",
         [](auto a, auto, U64 c) { return U64(std::int64_t(std::int32_t(a)) * -8) + c; }},
        {"setp.lt.u32 %p1, %r1, 1000; mov.b64 %d4, 5; @%p1 bra $sum; mul.wide.u32 %d4, %r1, %r2;\n$sum:\n"
         " add.s64 %d0, %d4, %d3;",
         [](auto a, auto b, U64 c) { return (a < 1000 ? 5 : U64{a} * b) + c; }},
        {"setp.lt.u32 %p1, %r1, 1000; mov.b64 %d4, 5; @%p1 mul.wide.u32 %d4, %r1, %r2; add.s64 %d0, %d4, %d3;",
         [](auto a, auto b, U64 c) { return (a < 1000 ? U64{a} * b : 5) + c; }},
    };
    std::vector<Row> rows;
    for (std::uint64_t i = 0; i < 32; ++i) rows.push_back({i % 3 * 0x77777777 + i, i * 0x08421085, i << 60 | (i * i)});
    for (const std::int64_t target : tests::targets()) {
        const tests::OnTarget chosen(target);
        for (const auto& [code, meaning] : forms)
            for (const std::uint32_t lanes : {~0u, 0x0f0ff00fu}) {
                const auto results = evaluate(code, rows, lanes);
                for (unsigned i = 0; i < 32; ++i) {
                    const std::uint64_t expected =
                        meaning(std::uint32_t(rows[i][0]), std::uint32_t(rows[i][1]), rows[i][2]);
                    INFO(code << ", lane " << i);
                    CHECK(results[i] == (lanes >> i & 1 ? expected : 0x5555));
                }
            }
    }
}
