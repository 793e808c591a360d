// SPDX-License-Identifier: Apache-2.0
// Uninitialised memory: a finding where a value read from it is used, and none where it is only copied.
#include "tests/unit/emulator/evaluate.hpp"

using namespace ikat;
using tests::contains;
using tests::kernel;
using tests::Machine;

namespace {

/// Thread i has %r1 = i, %d1 = &x[i], %d2 = &y[i], %d3 = x, %d4 = y; x is written by the host, y is not.
std::string threads(const std::string& body, const std::string& scope = "") {
    return kernel(R"(    .shared .align 16 .b8 tile[512]; .local .align 16 .b8 own[32]; .reg .f32 %f<8>;
    mov.u32 %r1, %tid.x; ld.param.u64 %d3, [p0]; ld.param.u64 %d4, [p1];
    mad.wide.u32 %d1, %r1, 4, %d3; mad.wide.u32 %d2, %r1, 4, %d4;
    mov.u32 %r2, tile; mad.lo.u32 %r2, %r1, 4, %r2;
)" + body + "\n$end: ret;\n",
                  scope);
}

std::string finding(const std::string& body, std::uint32_t count = 32, bool registers = false) {
    Machine machine;
    machine.check_registers(registers);
    const auto x = machine.buffer("x", std::vector<std::uint32_t>(64, 3));
    const auto y = machine.empty<std::uint32_t>("y", 64);
    return machine.failure(threads(body), {.block = {count, 1, 1}}, x, y, x, 0u);
}

/// Loads of uninitialised memory of each kind into %r5.
const char* const unwritten_loads[] = {
    "ld.global.u32 %r5, [%d2];",  // lane by lane
    "ld.global.u32 %r5, [%d4];",  // one for all
    "mul.lo.u32 %r6, %r1, 7; and.b32 %r6, %r6, 63; mad.wide.u32 %d5, %r6, 4, %d4; ld.global.u32 %r5, [%d5];",
    "ld.shared.u32 %r5, [%r2];",
    "ld.shared.u32 %r5, [tile];",
    "cvt.u64.u32 %d5, %r2; cvta.shared.u64 %d5, %d5; ld.u32 %r5, [%d5];",
    "ld.local.u32 %r5, [own];",
    "ld.shared.v4.u32 {%r6, %r7, %r8, %r5}, [tile];",
    "setp.lt.u32 %p9, %r1, 20; mov.u32 %r5, 0; @%p9 ld.shared.u32 %r5, [%r2];",
    "st.shared.u32 [%r2], %r1; setp.eq.u32 %p9, %r1, 7; @%p9 ld.shared.u32 %r2, [tile+128]; mov.u32 %r5, %r2;",
};

}  // namespace

TEST_CASE("an undefined value is found where it is used, whichever memory it comes from") {
    for (const char* load : unwritten_loads) {
        INFO(load);
        const auto after = [&](const std::string& use) { return finding(load + std::string("\n") + use); };
        CHECK(after("st.global.u32 [%d1], %r5;") == "no failure");
        CHECK_THAT(after("add.u32 %r9, %r5, 1; mul.lo.u32 %r9, %r9, 2; st.global.u32 [%d1], %r9;"),
                   contains("an undefined value is stored to a buffer, by block") &&
                       contains("note: computed here: mul.lo.u32 %r9, %r9, 2;"));
        CHECK_THAT(after("mad.wide.u32 %d5, %r5, 4, %d3; ld.global.u32 %r9, [%d5];"),
                   contains("an address is undefined"));
        CHECK_THAT(after("setp.eq.u32 %p1, %r5, 0; @%p1 bra $end;"),
                   contains("a branch depends on an undefined value"));
        CHECK_THAT(after("setp.eq.u32 %p1, %r5, 0; @%p1 st.global.u32 [%d1], %r1;"),
                   contains("an instruction's guard is undefined"));
        CHECK_THAT(after("setp.eq.u32 %p1, %r5, 0; vote.sync.ballot.b32 %r9, %p1, -1;"),
                   contains("a warp-wide instruction is given an undefined value"));
        CHECK_THAT(after("red.global.add.u32 [%d1], %r5;"), contains("an atomic is given an undefined value"));
        for (const std::string move :
             {"shfl.sync.bfly.b32 %r9, %r5, 1, 31, -1;", "st.local.u32 [own+16], %r5; ld.local.u32 %r9, [own+16];",
              "add.u32 %r9, %r5, 1; st.local.u32 [own+16], %r9; ld.local.u32 %r9, [own+16];"}) {
            CHECK(after(move + "st.global.u32 [%d1], %r9;") == "no failure");
            CHECK_THAT(after(move + "xor.b32 %r9, %r9, 1; st.global.u32 [%d1], %r9;"),
                       contains("an undefined value is stored to a buffer"));
        }
        CHECK_THAT(
            after("neg.s32 %r9, %r5; shfl.sync.bfly.b32 %r9, %r9, 1, 31, -1; st.global.u32 [%d1], %r9;"),
            contains("an undefined value is stored to a buffer") && contains("computed here: neg.s32 %r9, %r5;"));
        CHECK(after("add.u32 %r9, %r5, 1; st.shared.u32 [tile+256], %r9;") == "no failure");
    }
}

TEST_CASE("a finding names the place of use and of the load") {
    const std::string text = finding("ld.shared.u32 %r5, [%r2+8];\nadd.u32 %r5, %r5, 1;\nst.global.u32 [%d1], %r5;");
    CHECK_THAT(text, contains("kernel.ptx:12:"));
    CHECK_THAT(text, contains("st.global.u32 [%d1], %r5;"));
    CHECK_THAT(text,
               contains("the last undefined value was loaded at offset 132 of 'tile' in shared memory (512 bytes): "
                        "ld.shared.u32 %r5, [%r2+8];"));
    CHECK_THAT(text, contains("what is read must have been written before"));
    CHECK_THAT(finding("ld.global.u32 %r5, [%d4+12]; not.b32 %r5, %r5; st.global.u32 [%d1], %r5;"),
               contains("loaded at offset 12 of buffer 'y' (256 bytes)"));
}

TEST_CASE("written memory is defined") {
    for (const char* code : {
             "st.shared.u32 [%r2], %r1; ld.shared.u32 %r5, [%r2]; st.global.u32 [%d1], %r5;",
             "st.shared.u32 [%r2], %r1; bar.sync 0; ld.shared.u32 %r5, [tile]; st.global.u32 [%d1], %r5;",
             "st.global.u32 [%d2], %r1; ld.global.u32 %r5, [%d2]; st.global.u32 [%d1], %r5;",
             "mov.u32 %r6, tile; mad.lo.u32 %r6, %r1, 16, %r6; st.shared.v4.u32 [%r6], {%r1, %r1, %r1, %r1}; bar.sync "
             "0;"
             "xor.b32 %r6, %r6, 16; ld.shared.v4.u32 {%r5, %r6, %r7, %r8}, [%r6]; st.global.u32 [%d1], %r8;",
             "setp.lt.u32 %p1, %r1, 9; @%p1 st.shared.u32 [%r2], %r1; @%p1 ld.shared.u32 %r5, [%r2];"
             "@%p1 st.global.u32 [%d1], %r5;",
             "mul.lo.u32 %r6, %r1, 12; mov.u32 %r7, tile; add.u32 %r7, %r7, %r6; st.shared.u32 [%r7], %r1;"
             "ld.shared.u32 %r5, [%r7]; st.global.u32 [%d1], %r5;",
             "st.local.u8 [own], %r1; ld.local.u8 %r5, [own]; st.global.u32 [%d1], %r5;",
             "atom.shared.exch.b32 %r5, [%r2], 5; ld.shared.u32 %r5, [%r2]; st.global.u32 [%d1], %r5;",
         }) {
        INFO(code);
        CHECK(finding(code) == "no failure");
    }
    // in the checked code, too: the first load is undefined and never used
    const std::string nothing = "ld.shared.u32 %r30, [tile+508]; mov.u32 %r31, %r30;\n";
    CHECK(finding(nothing + "st.shared.u32 [%r2], %r1; ld.shared.u32 %r5, [%r2]; st.global.u32 [%d1], %r5;") ==
          "no failure");
    CHECK(finding(nothing + "st.shared.u32 [%r2], %r30; st.shared.u32 [%r2], %r1; ld.shared.u32 %r5, [%r2];"
                            "setp.lt.u32 %p1, %r5, 9; @%p1 st.global.u32 [%d1], %r5;") == "no failure");
    CHECK_THAT(finding("st.shared.u32 [%r2], %r1; ld.shared.u32 %r30, [tile+508]; st.shared.u32 [%r2], %r30;"
                       "ld.shared.u32 %r5, [%r2]; add.u32 %r5, %r5, 1; st.global.u32 [%d1], %r5;"),
               contains("an undefined value is stored to a buffer"));
}

TEST_CASE("copying padding is no finding, and definedness is tracked by byte") {
    // the lowest byte of each word is written
    const std::string one_byte = "mov.b16 %h1, 7; st.shared.u8 [%r2], %h1; ld.shared.u32 %r5, [%r2];\n";
    for (const char* use :
         {"st.shared.u32 [%r2+128], %r5; ld.shared.u8 %r6, [%r2+128]; st.global.u32 [%d1], %r6;",
          "and.b32 %r6, %r5, 255; st.global.u32 [%d1], %r6;", "cvt.u32.u8 %r6, %r5; st.global.u32 [%d1], %r6;",
          "shl.b32 %r6, %r5, 24; st.global.u32 [%d1], %r6;", "bfe.u32 %r6, %r5, 2, 6; st.global.u32 [%d1], %r6;",
          "prmt.b32 %r6, %r5, 0, 0x4440; st.global.u32 [%d1], %r6;",
          "or.b32 %r6, %r5, 0xffffff00; setp.eq.u32 %p1, %r6, 3; @%p1 st.global.u32 [%d1], %r6;",
          "add.u32 %r6, %r5, 3; and.b32 %r6, %r6, 255; st.global.u32 [%d1], %r6;", "st.global.u8 [%d1], %r5;",
          "st.global.u32 [%d1], %r5;",  // a struct of a byte and padding
          "bfi.b32 %r6, %r5, 0, 8, 8; st.global.u32 [%d1], %r6;",
          // what is undefined is only moved
          "shr.u32 %r6, %r5, 8; st.global.u32 [%d1], %r6;", "bfe.u32 %r6, %r5, 8, 8; st.global.u32 [%d1], %r6;",
          "prmt.b32 %r6, %r5, 0, 0x1111; st.global.u32 [%d1], %r6;", "or.b32 %r6, %r5, 3; st.global.u32 [%d1], %r6;",
          "mov.b64 %d5, {%r1, %r5}; shr.u64 %d5, %d5, 40; st.global.u64 [%d3], %d5;",
          "selp.b32 %r6, %r5, %r1, 1; st.global.u32 [%d1], %r6;", "cvt.s64.s32 %d5, %r5; st.global.u64 [%d3], %d5;",
          "shr.u32 %r6, %r5, 8; shl.b32 %r6, %r6, 24; shr.u32 %r7, %r5, 0; and.b32 %r7, %r7, 15; st.global.u32 [%d1], "
          "%r7;",
          "cvt.u16.u32 %h2, %r5; mov.b32 %r6, {%h2, %h2}; and.b32 %r6, %r6, 0xff00ff; st.global.u32 [%d1], %r6;",
          "selp.b32 %r6, %r1, %r5, 1; setp.ne.u32 %p1, %r6, 3; @%p1 st.global.u32 [%d1], %r6;",
          "mov.b64 %d5, {%r1, %r5}; cvt.u32.u64 %r6, %d5; st.global.u32 [%d1], %r6;"}) {
        INFO(use);
        CHECK(finding(one_byte + use) == "no failure");
    }
    for (const char* use :
         {"shr.u32 %r6, %r5, 8; add.u32 %r6, %r6, 1; st.global.u32 [%d1], %r6;",
          "and.b32 %r6, %r5, 511;"
          "setp.eq.u32 %p1, %r6, 3; @%p1 bra $end;",
          "cvt.u32.u16 %r6, %r5; setp.eq.u32 %p1, %r6, 3; @%p1 bra $end;",
          "bfe.u32 %r6, %r5, 8, 8; popc.b32 %r6, %r6; st.global.u32 [%d1], %r6;",
          "cvt.rn.f32.u32 %f1, %r5; st.global.f32 [%d1], %f1;",
          // what is moved, or where to, is undefined
          "prmt.b32 %r6, %r1, 0, %r5; st.global.u32 [%d1], %r6;", "shl.b32 %r6, %r1, %r5; st.global.u32 [%d1], %r6;",
          "setp.eq.u32 %p1, %r5, 3; selp.b32 %r6, 1, 2, %p1; st.global.u32 [%d1], %r6;",
          "mov.b64 %d5, {%r1, %r5}; add.u64 %d5, %d5, 1; shr.u64 %d5, %d5, 40; st.global.u64 [%d3], %d5;"}) {
        INFO(use);
        CHECK_THAT(finding(one_byte + use), contains("undefined"));
    }
    // one element of a vector
    CHECK_THAT(finding("ld.shared.u32 %r5, [tile]; mov.b32 %f1, %r5; add.f32 %f1, %f1, 0f3F800000; mov.f32 %f2, %f1;"
                       "mov.f32 %f3, 0f00000000; st.global.v2.f32 [%d3], {%f3, %f2};"),
               contains("an undefined value is stored to a buffer") && contains("computed here: add"));
    CHECK(finding("ld.shared.u32 %r5, [tile]; st.global.v2.b32 [%d3], {%r1, %r5};") == "no failure");
}

TEST_CASE("atomics and prints count as uses") {
    // of 128 bits, whose operands are a list
    const std::string wide = ".reg .b128 %q<3>; mov.b128 %q0, {%d3, %d4};\n";
    CHECK_THAT(finding(wide + "atom.global.exch.b128 %q2, [%d3], %q1;", 1, true),
               contains("an atomic is given an undefined value"));
    CHECK_THAT(finding(wide + "atom.global.cas.b128 %q2, [%d3], %q1, %q0;", 1, true),
               contains("an atomic is given an undefined value"));
    CHECK(finding(wide + "atom.global.cas.b128 %q2, [%d3], %q0, %q0; st.global.b128 [%d3+16], %q2;", 1, true) ==
          "no failure");
    CHECK_THAT(
        finding("red.global.add.u32 [%d2], 1;"),
        contains("an atomic of 4 bytes at offset 0 of buffer 'y' (256 bytes), which nothing has written, by block"));
    CHECK_THAT(finding("atom.shared.cas.b32 %r5, [%r2], 0, 1;"), contains("'tile' in shared memory (512 bytes), which "
                                                                          "nothing has written"));
    CHECK(finding("st.shared.u32 [%r2], 0; atom.shared.add.u32 %r5, [%r2], 1; st.global.u32 [%d1], %r5;") ==
          "no failure");
}

TEST_CASE("definedness persists from launch to launch") {
    Machine machine;
    const auto x = machine.buffer("x", std::vector<std::uint32_t>(64, 3));
    const auto y = machine.empty<std::uint32_t>("y", 64);
    machine.run(threads("st.global.u32 [%d2], %r1;"), {.block = {33, 1, 1}}, x, y, x, 0u);
    CHECK(machine.failure(threads("ld.global.u32 %r5, [%d2]; st.global.u32 [%d1], %r5;"), {.block = {33, 1, 1}}, x, y,
                          x, 0u) == "no failure");
    CHECK_THAT(machine.failure(threads("ld.global.u32 %r5, [%d2]; add.u32 %r5, %r5, 1; st.global.u32 [%d1], %r5;"),
                               {.block = {34, 1, 1}}, x, y, x, 0u),
               contains("by block (0,0,0) thread (33,0,0)"));
    const std::uint32_t five[] = {5};
    machine.memory.write(y + 33 * 4, std::as_bytes(std::span(five)));
    CHECK(machine.failure(threads("ld.global.u32 %r5, [%d2]; st.global.u32 [%d1], %r5;"), {.block = {34, 1, 1}}, x, y,
                          x, 0u) == "no failure");
}

TEST_CASE("a copy from buffer to buffer copies definedness") {
    Machine machine;
    const auto x = machine.buffer("x", std::vector<std::uint32_t>(64, 3));
    const auto y = machine.empty<std::uint32_t>("y", 64), z = machine.buffer("z", std::vector<std::uint32_t>(64, 4));
    const std::uint32_t nines[] = {9, 9, 9, 9, 9, 9, 9, 9, 9};
    machine.memory.write(y + 20, std::as_bytes(std::span(nines)));  // words 5 to 13
    machine.memory.copy(z + 4, y, 252);                             // are 6 to 14 of z
    const auto reads = [&](std::uint64_t buffer, int offset, std::uint32_t count, int bytes = 4) {
        const std::string text = "mad.wide.u32 %d5, %r1, " + std::to_string(bytes) + ", %d4; ld.global.u" +
                                 std::to_string(8 * bytes) + " %r5, [%d5+" + std::to_string(offset) +
                                 "]; add.u32 %r5, %r5, 1; st.global.u32 [%d1], %r5;";
        return machine.failure(threads(text), {.block = {count, 1, 1}}, x, buffer, x, 0u);
    };
    CHECK(reads(z, 24, 9) == "no failure");
    CHECK(reads(z, 0, 1) == "no failure");
    CHECK_THAT(reads(z, 24, 10), contains("thread (9,0,0)"));
    CHECK_THAT(reads(z, 20, 1), contains("offset 20 of buffer 'z'"));
    CHECK_THAT(reads(z, 252, 1), contains("offset 252 of buffer 'z'"));
    CHECK(machine.get<std::uint32_t>(z + 20, 10) == std::vector<std::uint32_t>{~0u, 9, 9, 9, 9, 9, 9, 9, 9, 9});
    // Within one buffer, by an odd number of bytes: 20 to 55 of y are written, then 33 to 68.
    machine.memory.copy(y + 13, y, 100);
    for (const int unwritten : {32, 69}) CHECK_THAT(reads(y, unwritten, 1, 1), contains("stored to a buffer"));
    CHECK(reads(y, 33, 32, 1) == "no failure");
    CHECK(reads(y, 65, 4, 1) == "no failure");
    machine.memory.copy(y, x, 256);
    machine.memory.copy(z, y, 256);
    CHECK(reads(z, 0, 32) == "no failure");
}

TEST_CASE("definedness is separate for each block's shared memory and for each call") {
    Machine machine;
    const auto x = machine.buffer("x", std::vector<std::uint32_t>(64, 3));
    const auto y = machine.empty<std::uint32_t>("y", 64);
    const std::string first_only = threads(
        "mov.u32 %r6, %ctaid.x; setp.ne.u32 %p1, %r6, 0; @!%p1 st.shared.u32 [%r2], %r1; bar.sync 0;"
        "ld.shared.u32 %r5, [%r2]; add.u32 %r5, %r5, 1; st.global.u32 [%d1], %r5;");
    CHECK_THAT(machine.failure(first_only, {.grid = {2, 1, 1}, .block = {32, 1, 1}}, x, y, x, 0u),
               contains("by block (1,0,0)"));
    CHECK(machine.failure(first_only, {.grid = {1, 1, 1}, .block = {32, 1, 1}}, x, y, x, 0u) == "no failure");
    // a recursion with an undefined argument
    const std::string calls = R"(
.func (.param .b32 result) down (.param .b32 n)
{
    .reg .b32 %r<8>; .reg .pred %p<2>;
    ld.param.u32 %r1, [n]; mov.u32 %r2, 0; setp.eq.u32 %p1, %r1, 0; @%p1 bra $out;
    sub.u32 %r3, %r1, 1;
    { .param .b32 a; .param .b32 r; st.param.b32 [a], %r3; call (r), down, (a); ld.param.b32 %r4, [r]; }
    add.u32 %r2, %r4, %r1;
$out: st.param.b32 [result], %r2; ret;
}
)";
    for (const char* before : {"", "ld.shared.u32 %r30, [tile+508];"})
        CHECK(machine.failure(threads(std::string(before) +
                                          "{ .param .b32 a; .param .b32 r; and.b32 %r6, %r1, 3; st.param.b32 [a], %r6;"
                                          "call (r), down, (a); ld.param.b32 %r5, [r]; } st.global.u32 [%d1], %r5;",
                                      calls),
                              {.block = {32, 1, 1}}, x, y, x, 0u) == "no failure");
    CHECK(machine.get<std::uint32_t>(x, 4) == std::vector<std::uint32_t>{0, 1, 3, 6});
    // ... which is still undefined after the call
    const std::string call =
        "{ .param .b32 a; .param .b32 r; and.b32 %r6, %r1, 3; st.param.b32 [a], %r6; call (r), down, (a);"
        "ld.param.b32 %r5, [r]; } add.u32 %r5, %r5, %r30; st.global.u32 [%d1], %r5;";
    const auto after_call = [&](const std::string& before) {
        return machine.failure(threads(before + call, calls), {.block = {32, 1, 1}}, x, y, x, 0u);
    };
    CHECK(after_call("st.shared.u32 [%r2], 7; ld.shared.u32 %r30, [%r2];") == "no failure");
    CHECK(machine.get<std::uint32_t>(x, 4) == std::vector<std::uint32_t>{7, 8, 10, 13});
    CHECK_THAT(after_call("mov.u32 %r30, 1; setp.eq.u32 %p9, %r1, 2; @%p9 ld.shared.u32 %r30, [tile+508];"),
               contains("an undefined value is stored to a buffer, by block (0,0,0) thread (2,0,0)"));
}

TEST_CASE("values left on the stack by an earlier call are undefined") {
    const std::string function = R"(
.func (.param .b32 result) f(.param .b32 n)
{
    .reg .b32 %r<8>; .reg .pred %p<4>; .reg .b64 %d<4>; .local .u32 v;
    ld.param.u32 %r1, [n]; setp.ge.u32 %p1, %r1, 2; @%p1 bra $allocated; setp.eq.u32 %p2, %r1, 0; @%p2 bra $read;
    st.local.u32 [v], %r1;
$read: ld.local.u32 %r2, [v]; bra $out;
$allocated: alloca.u64 %d1, 16; setp.eq.u32 %p2, %r1, 2; @%p2 bra $read_it;
    st.local.u32 [%d1], %r1;
$read_it: ld.local.u32 %r2, [%d1];
$out: st.param.b32 [result], %r2; ret;
}
)";
    const auto calls = [&](const std::vector<std::string>& arguments) {
        std::string body = "mov.u64 %d6, f;";
        for (const std::string& argument : arguments)
            body += "{ .param .b32 a; .param .b32 r; st.param.b32 [a], " + argument +
                    "; proto: .callprototype (.param .b32 _) _ (.param .b32 _); call (r), %d6, (a), proto;"
                    "ld.param.b32 %r5, [r]; } add.u32 %r5, %r5, 1; st.global.u32 [%d1], %r5;";
        Machine machine;
        const auto x = machine.buffer("x", std::vector<std::uint32_t>(64, 3));
        return machine.failure(threads(body, function), {.block = {32, 1, 1}}, x, x, x, 0u);
    };
    CHECK(calls({"1", "1", "3", "3", "1"}) == "no failure");
    for (const char* argument : {"0", "2"}) {  // which read uninitialised variables
        const std::string other = argument[0] == '0' ? "1" : "3";
        CHECK_THAT(calls({argument}), contains("an undefined value is stored to a buffer"));
        CHECK_THAT(calls({other, argument}), contains("an undefined value is stored to a buffer"));
    }
}

TEST_CASE("switching to the checked code in loops and branches keeps values right") {
    Machine machine;
    const auto x = machine.buffer("x", std::vector<std::uint32_t>(64, 3));
    const auto y = machine.empty<std::uint32_t>("y", 64);
    for (const std::uint32_t seed : {0u, 1u, 2u}) {
        machine.options.seed = seed;
        machine.run(threads(R"(
    mov.u32 %r5, 0; mov.u32 %r6, 0;
$loop:
    setp.eq.u32 %p2, %r6, 5; setp.gt.u32 %p3, %r1, 12; and.pred %p2, %p2, %p3;
    @%p2 ld.shared.u32 %r30, [%r2];
    @!%p2 add.u32 %r5, %r5, %r6;
    and.b32 %r7, %r1, 1; setp.eq.u32 %p4, %r7, 0; @%p4 bra $even;
    add.u32 %r5, %r5, 100;
$even:
    add.u32 %r6, %r6, 1; setp.lt.u32 %p1, %r6, %r1; @%p1 bra $loop;
    shfl.sync.idx.b32 %r8, %r5, 31, 31, -1;
    add.u32 %r5, %r5, %r8; st.global.u32 [%d1], %r5;)"),
                    {.block = {32, 1, 1}}, x, y, x, 0u);
        const auto got = machine.get<std::uint32_t>(x, 32);
        const auto expected = [](std::uint32_t i) {
            std::uint32_t sum = 0;
            for (std::uint32_t n = 0; n == 0 || n < i; ++n) sum += (n == 5 && i > 12 ? 0 : n) + (i % 2 ? 100 : 0);
            return sum;
        };
        for (std::uint32_t i = 0; i < 32; ++i) CHECK(got[i] == expected(i) + expected(31));
    }
}

TEST_CASE("a shuffle from a missing lane gives an undefined value") {
    const std::string sum = "shfl.sync.bfly.b32 %r5, %r1, 16, 31, -1;\n";
    CHECK(finding(sum + "add.u32 %r6, %r5, 1;", 20) == "no failure");
    const std::string text = finding(sum + "st.global.u32 [%d1], %r5;", 20);
    CHECK_THAT(text, contains("an undefined value is stored to a buffer, by block (0,0,0) thread (4,0,0)"));
    CHECK_THAT(text, contains("came from lane 31, which is not there or not in the mask: shfl.sync.bfly.b32"));
    CHECK_THAT(finding("setp.lt.u32 %p1, %r1, 16; @!%p1 bra $end; shfl.sync.down.b32 %r5, %r1, 2, 31, 0xffff;"
                       "st.global.u32 [%d1], %r5;"),
               contains("came from lane 17, which is not there or not in the mask"));
    CHECK(finding("shfl.sync.down.b32 %r5|%p1, %r1, 2, 0x1f, -1; st.global.u32 [%d1], %r5;") == "no failure");
}

TEST_CASE("uninitialised registers are found on request") {
    CHECK(finding("st.global.u32 [%d1], %r40;") == "no failure");
    const std::string text = finding("st.global.u32 [%d1], %r40;", 32, true);
    CHECK_THAT(text, contains("an undefined value is stored to a buffer"));
    CHECK_THAT(text, contains("a register that nothing has assigned"));
    CHECK_THAT(finding("@%p7 bra $end;", 32, true), contains("a branch depends on an undefined value"));
    CHECK_THAT(finding("setp.lt.u32 %p1, %r1, 9; @%p1 mov.u32 %r40, 5; st.global.u32 [%d1], %r40;", 32, true),
               contains("thread (9,0,0)"));
    CHECK(finding("setp.lt.u32 %p1, %r1, 9; @%p1 mov.u32 %r40, 5; @%p1 st.global.u32 [%d1], %r40;", 32, true) ==
          "no failure");
    CHECK(finding("mov.u32 %r5, 0; add.cc.u32 %r5, %r5, 1; addc.u32 %r5, %r5, 0; st.global.u32 [%d1], %r5;", 32,
                  true) == "no failure");
}
