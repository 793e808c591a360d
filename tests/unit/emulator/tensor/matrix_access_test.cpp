// SPDX-License-Identifier: Apache-2.0
// ldmatrix, stmatrix, movmatrix. Where elements go follows the PTX ISA ("Warp-level matrix load instruction"): thread l
// holds elements 2 (l % 4) and 2 (l % 4) + 1 of row l / 4 of each matrix; thread 8 i + r gives the address of row r of
// matrix i.
#include "tests/unit/emulator/machine.hpp"

namespace ikat::tests::matrix_access {

namespace {

/// A kernel with a tile of 64 rows of 16 bytes, which are those of p0: %r1 the lane, %r2 its byte offset in a row of
/// words, %r3 the address of row (5 * lane) % 64, %d1 = &p0[lane], %d2 = &p1[lane] (words).
std::string on_tile(const std::string& body) {
    std::string text = R"(
    .shared .align 16 .b8 tile[1024]; .shared .align 16 .b8 fresh[512];
    mov.u32 %r1, %tid.x; shl.b32 %r2, %r1, 2; ld.param.u64 %d1, [p0]; ld.param.u64 %d2, [p1];
    mad.wide.u32 %d1, %r1, 4, %d1; mad.wide.u32 %d2, %r1, 4, %d2;
    mul.lo.u32 %r3, %r1, 5; and.b32 %r3, %r3, 63; shl.b32 %r3, %r3, 4; mov.u32 %r4, tile; add.u32 %r3, %r3, %r4; add.u32 %r5, %r4, %r2;
)";
    for (int i = 0; i < 8; ++i)
        text += "    ld.global.b32 %r6, [%d1+" + std::to_string(128 * i) + "]; st.shared.b32 [%r5+" +
                std::to_string(128 * i) + "], %r6;\n";
    std::string whole = kernel(text + "    bar.warp.sync -1;\n" + body + "\n$end: ret;");
    whole.replace(whole.find("sm_80"), 5, "sm_90");
    return whole;
}

std::vector<std::uint16_t> numbered(std::size_t count) {
    std::vector<std::uint16_t> values(count);
    for (std::size_t i = 0; i < count; ++i) values[i] = std::uint16_t(100 * (i / 8) + i % 8);  // 100 * row + column
    return values;
}

/// The first `count` halves that the body has stored at %d2.
std::vector<std::uint16_t> result_of(const std::string& body, std::size_t count = 256) {
    Machine machine;
    const auto x = machine.buffer("x", numbered(512)), y = machine.buffer("y", std::vector<std::uint16_t>(1024));
    machine.run(on_tile(body), {.block = {32, 1, 1}}, x, y, std::uint64_t{}, 0);
    return machine.get<std::uint16_t>(y, count);
}

std::string failure(const std::string& body) {
    Machine machine;
    const auto x = machine.buffer("x", numbered(512)), y = machine.buffer("y", std::vector<std::uint16_t>(1024));
    const std::string said = machine.failure(on_tile(body), {.block = {32, 1, 1}}, x, y, std::uint64_t{}, 0);
    return machine.code + ": " + said;
}

const char* const store_four =
    "st.global.b32 [%d2], %r10; st.global.b32 [%d2+128], %r11; st.global.b32 [%d2+256], %r12; "
    "st.global.b32 [%d2+384], %r13;";

/// What register i of ldmatrix has to hold, with the rows at %r3.
std::vector<std::uint16_t> expected(int matrices, bool transposed) {
    std::vector<std::uint16_t> values;
    for (int i = 0; i < matrices; ++i)
        for (int lane = 0; lane < 32; ++lane)
            for (int j = 0; j < 2; ++j) {
                const int row = transposed ? lane % 4 * 2 + j : lane / 4,
                          column = transposed ? lane / 4 : lane % 4 * 2 + j;
                values.push_back(std::uint16_t(100 * (5 * (8 * i + row) % 64) + column));
            }
    return values;
}

}  // namespace

TEST_CASE("ldmatrix: one, two and four matrices, by rows and by columns, at shared and generic addresses") {
    for (const bool transposed : {false, true}) {
        const std::string trans = transposed ? ".trans" : "";
        for (const std::string address : {"shared", "shared::cta", ""}) {
            const std::string space = address.empty() ? "" : "." + address;
            const std::string at = address.empty() ? "[%d5]" : "[%r3]";
            const auto load = [&](const std::string& count, const std::string& registers) {
                return "cvta.shared.u64 %d5, 0; cvt.u64.u32 %d6, %r3; add.u64 %d5, %d5, %d6;\n"
                       "ldmatrix.sync.aligned.m8n8." +
                       count + trans + space + ".b16 " + registers + ", " + at + ";\n";
            };
            INFO(load("x1", ""));
            CHECK(result_of(load("x1", "{%r10}") + "st.global.b32 [%d2], %r10;", 64) == expected(1, transposed));
            CHECK(result_of(load("x2", "{%r10, %r11}") + "st.global.b32 [%d2], %r10; st.global.b32 [%d2+128], %r11;",
                            128) == expected(2, transposed));
            CHECK(result_of(load("x4", "{%r10, %r11, %r12, %r13}") + store_four) == expected(4, transposed));
        }
    }
    // the order of modifiers is free, and the offset is that of all rows: 48 rows further
    const auto further =
        result_of("ldmatrix.sync.aligned.x1.m8n8.shared.b16 {%r10}, [tile+768];\nst.global.b32 [%d2], %r10;", 2);
    CHECK(further == std::vector<std::uint16_t>{4800, 4801});
}

TEST_CASE("stmatrix is ldmatrix the other way round, and movmatrix exchanges rows and columns") {
    for (const std::string trans : {"", ".trans"}) {
        const std::string both =
            "ldmatrix.sync.aligned.m8n8.x4" + trans +
            ".shared.b16 {%r10, %r11, %r12, %r13}, [%r3];\n"
            "mov.u32 %r20, fresh; shl.b32 %r21, %r1, 4; add.u32 %r20, %r20, %r21;\n"
            "stmatrix.sync.aligned.m8n8.x4" +
            trans +
            ".shared.b16 [%r20], {%r10, %r11, %r12, %r13};\n"
            "bar.warp.sync -1; mov.u32 %r22, fresh; add.u32 %r22, %r22, %r2;\n"
            "ld.shared.b32 %r10, [%r22]; ld.shared.b32 %r11, [%r22+128]; ld.shared.b32 %r12, [%r22+256]; "
            "ld.shared.b32 %r13, [%r22+384];\n";
        CHECK(result_of(both + store_four) == expected(4, false));
    }
    CHECK(result_of("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r10}, [%r3];\n"
                    "movmatrix.sync.aligned.m8n8.trans.b16 %r10, %r10; st.global.b32 [%d2], %r10;",
                    64) == expected(1, true));
    const std::string generic =
        "mov.u32 %r20, fresh; shl.b32 %r21, %r1, 4; add.u32 %r20, %r20, %r21;\n"
        "cvta.shared.u64 %d5, 0; cvt.u64.u32 %d6, %r20; add.u64 %d5, %d5, %d6;\n"
        "stmatrix.sync.aligned.m8n8.x1.b16 [%d5], {%r1}; ld.shared.b32 %r10, [fresh+124];\n"
        "st.global.b32 [%d2], %r10;";
    CHECK(result_of(generic, 2) == std::vector<std::uint16_t>{31, 0});
}

TEST_CASE("the address of each row is checked, and the thread that gave it named") {
    const auto load = [](const std::string& before, const std::string& count = "x1", const std::string& to = "{%r10}") {
        return failure(before + "ldmatrix.sync.aligned.m8n8." + count + ".shared.b16 " + to + ", [%r3];");
    };
    const std::string at_lane = "setp.eq.u32 %p1, %r1, ";
    CHECK(load("") == ": no failure");
    CHECK_THAT(load(at_lane + "6; @%p1 add.u32 %r3, %r4, 1004;"),
               contains("misaligned: ") && contains("16 bytes are needed") && contains("thread (6,0,0)"));
    CHECK_THAT(load(at_lane + "7; @%p1 add.u32 %r3, %r4, 1024;"),
               contains("out-of-bounds: ") && contains("right past the end of 'tile'") && contains("thread (7,0,0)"));
    CHECK(load(at_lane + "8; @%p1 mov.u32 %r3, 1;") == ": no failure");  // not an address of a row
    CHECK_THAT(load(at_lane + "8; @%p1 mov.u32 %r3, 1;", "x2", "{%r10, %r11}"), contains("thread (8,0,0)"));
    CHECK_THAT(failure("ldmatrix.sync.aligned.m8n8.x1.b16 {%r10}, [%d1];"),
               contains("not-shared: ") && contains("thread (0,0,0)"));
    CHECK_THAT(
        failure(at_lane + "3; @%p1 add.u32 %r3, %r4, 1024; stmatrix.sync.aligned.m8n8.x1.shared.b16 [%r3], {%r1};"),
        contains("out-of-bounds: ") && contains("shared store of 16 bytes") && contains("thread (3,0,0)"));
    CHECK_THAT(failure(at_lane + "3; @%p1 ret; ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r10}, [%r3];"),
               contains("partial-warp: ") && contains("without lane 3"));
    CHECK_THAT(
        failure(at_lane + "3; @%p1 bra $end; movmatrix.sync.aligned.m8n8.trans.b16 %r10, %r1; bar.warp.sync -1;"),
        contains("partial-warp: "));
}

TEST_CASE("matrices of uninitialised elements") {
    // rows 0 and 2 to 7 of fresh are written: row 1 is that of lanes 4 to 7
    const std::string fill =
        "mov.u32 %r20, fresh; add.u32 %r21, %r20, %r2; shr.u32 %r22, %r1, 2; setp.ne.u32 %p1, %r22, 1;\n"
        "@%p1 st.shared.b32 [%r21], %r1; shl.b32 %r23, %r1, 4; add.u32 %r23, %r20, %r23; bar.warp.sync -1;\n";
    const auto uses = [&](const std::string& trans, int lane, const std::string& before_use = "") {
        return failure(fill + "ldmatrix.sync.aligned.m8n8.x1" + trans + ".shared.b16 {%r10}, [%r23];\n" + before_use +
                       "setp.eq.u32 %p2, %r1, " + std::to_string(lane) +
                       "; xor.b32 %r10, %r10, 1; @%p2 st.global.b32 [%d2], %r10;");
    };
    for (const int lane : {0, 3, 8, 31}) CHECK(uses("", lane) == ": no failure");
    CHECK_THAT(uses("", 5), contains("undefined-store: ") && contains("loaded at offset 16 of 'fresh'"));
    // by columns, row 1 is the upper half of every fourth lane
    CHECK(uses(".trans", 1, "shr.u32 %r10, %r10, 16;") == ": no failure");
    CHECK(uses(".trans", 4, "and.b32 %r10, %r10, 0xffff;") == ": no failure");
    CHECK_THAT(uses(".trans", 4, "shr.u32 %r10, %r10, 16;"), contains("undefined-store: "));
    // through movmatrix and stmatrix, and back
    const std::string turn = "movmatrix.sync.aligned.m8n8.trans.b16 %r10, %r10;\n";
    CHECK_THAT(uses("", 4, turn + "shr.u32 %r10, %r10, 16;"), contains("undefined-store: "));
    CHECK(uses("", 5, turn + "shr.u32 %r10, %r10, 16;") == ": no failure");
    const std::string through =
        "stmatrix.sync.aligned.m8n8.x1.shared.b16 [%r3], {%r10}; bar.warp.sync -1;\n"
        "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r10}, [%r3];\n";
    CHECK(uses("", 0, through) == ": no failure");
    CHECK_THAT(uses("", 6, through), contains("undefined-store: "));
    CHECK_THAT(failure("ld.shared.b32 %r30, [fresh+256]; setp.eq.u32 %p1, %r1, 2; @%p1 mov.u32 %r3, %r30;\n"
                       "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r10}, [%r3];"),
               contains("undefined-address: ") && contains("thread (2,0,0)"));
}

}  // namespace ikat::tests::matrix_access
