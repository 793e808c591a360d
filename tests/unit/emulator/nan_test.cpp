// SPDX-License-Identifier: Apache-2.0
// Where a NaN or an infinity is made of numbers (tools/nan), and where it is not.
#include <cmath>
#include <limits>

#include "tests/unit/emulator/machine.hpp"
#include "tests/unit/emulator/targets.hpp"
#include "tests/unit/emulator/tensor/warpgroup.hpp"

using ikat::emulator::Action;
using ikat::emulator::Check;

namespace ikat::tests::nans {

namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();

struct Outcome {
    std::string error;
    std::vector<std::string> warnings{};
    std::vector<std::uint32_t> y{};

    std::string all() const {
        std::string text = error == "no failure" ? "" : error;
        for (const std::string& each : warnings) text += each + "\n";
        return text;
    }
};

struct How {
    Action nan = Action::Warning;
    Action registers = Action::Off;
    std::uint32_t threads = 32, blocks = 1;
    bool is_target_90 = false;
};

/// Runs a body with %r1 the thread, %d1 the address of x and %d2 that of y, 64 words each; %d3 and %d4 are those of the
/// thread's words, %d5 that of 64 words that nothing has written.
Outcome run(const std::string& body, const std::vector<float>& x = std::vector<float>(64, 1), How how = {}) {
    Machine machine;
    machine.options.checks.set(Check::Nan, how.nan);
    machine.options.checks.set(Check::Registers, how.registers);
    const auto at_x = machine.buffer("x", x), at_y = machine.buffer("y", std::vector<std::uint32_t>(64)),
               fresh = machine.empty<std::uint32_t>("fresh", 64);
    std::string text = kernel(
        "ld.param.u64 %d1, [p0]; ld.param.u64 %d2, [p1]; ld.param.u64 %d5, [p2]; mov.u32 %r1, %tid.x;\n"
        "mul.wide.u32 %d6, %r1, 4; add.u64 %d3, %d1, %d6; add.u64 %d4, %d2, %d6;\n" +
        body + "\n$end: ret;");
    if (how.is_target_90) text.replace(text.find("sm_80"), 5, "sm_90");
    Outcome out{.error = machine.failure(text, {.grid = {how.blocks, 1, 1}, .block = {how.threads, 1, 1}}, at_x, at_y,
                                         fresh, 0u)};
    for (const Diagnostic& warning : machine.warnings) out.warnings.push_back(to_string(warning));
    out.y = machine.get<std::uint32_t>(at_y, 64);
    return out;
}

/// What is said about a body that says one thing.
std::string said(const std::string& body, const std::vector<float>& x = std::vector<float>(64, 1), How how = {}) {
    const Outcome out = run(body, x, how);
    INFO(body);
    CHECK(out.error == "no failure");
    CHECK(out.warnings.size() == 1);
    return out.all();
}

const std::string silent;

/// The same word in %r2, %r3 and %r4.
std::string words(const char* a, const char* b = "0", const char* c = "0") {
    return std::string("mov.b32 %r2, ") + a + "; mov.b32 %r3, " + b + "; mov.b32 %r4, " + c + ";\n";
}

constexpr const char *zero = "0f00000000", *one = "0f3F800000", *minus_one = "0fBF800000", *largest = "0f7F7FFFFF",
                     *inf = "0f7F800000", *nan = "0f7FFFFFFF", *thousand = "0f447A0000",
                     *hundred_thousand = "0f47C35000";

}  // namespace

TEST_CASE("arithmetic of f32 that makes a NaN or an infinity") {
    CHECK_THAT(said(words(zero, zero) + "div.rn.f32 %r5, %r2, %r3;"),
               contains("kernel.ptx:11:1: warning: 0 / 0 is NaN in f32, by block (0,0,0) thread (0,0,0)\n"
                        "    div.rn.f32 %r5, %r2, %r3;") &&
                   contains("hint: 0 / 0, and roots and logarithms of numbers below 0, are NaN"));
    CHECK_THAT(said(words(one, zero) + "div.rn.f32 %r5, %r2, %r3;"),
               contains("warning: 1 / 0 is inf in f32") && contains("hint: test for 0 before"));
    CHECK_THAT(said(words(minus_one, zero) + "div.approx.f32 %r5, %r2, %r3;"), contains("-1 / 0 is -inf in f32"));
    CHECK_THAT(said(words(largest, largest) + "mul.f32 %r5, %r2, %r3;"),
               contains("3.4028235e+38 * 3.4028235e+38 is inf in f32"));
    CHECK_THAT(said(words(largest, largest) + "add.f32 %r5, %r2, %r3;"),
               contains("3.4028235e+38 + 3.4028235e+38 is inf in f32"));
    CHECK_THAT(said(words(largest, "0fFF7FFFFF") + "sub.f32 %r5, %r2, %r3;"),
               contains("3.4028235e+38 - (-3.4028235e+38) is inf in f32"));
    CHECK_THAT(said(words(largest, thousand, minus_one) + "fma.rn.f32 %r5, %r2, %r3, %r4;"),
               contains("3.4028235e+38 * 1000 + (-1) is inf in f32"));
    CHECK_THAT(said(words(minus_one) + "sqrt.rn.f32 %r5, %r2;"), contains("sqrt(-1) is NaN in f32"));
    CHECK_THAT(said(words(zero) + "rsqrt.approx.f32 %r5, %r2;"), contains("1 / sqrt(0) is inf in f32"));
    CHECK_THAT(said(words(zero) + "rcp.approx.f32 %r5, %r2;"), contains("1 / 0 is inf in f32"));
    CHECK_THAT(said(words("0f80000000") + "rcp.rn.f32 %r5, %r2;"), contains("1 / -0 is -inf in f32"));
    CHECK_THAT(said(words(zero) + "lg2.approx.f32 %r5, %r2;"), contains("log2(0) is -inf in f32"));
    CHECK_THAT(said(words(minus_one) + "lg2.approx.f32 %r5, %r2;"), contains("log2(-1) is NaN in f32"));
    CHECK_THAT(said(words(thousand) + "ex2.approx.f32 %r5, %r2;"), contains("exp2(1000) is inf in f32"));
    // a subnormal divisor that is flushed
    CHECK_THAT(said(words("0f00000001") + "rcp.approx.ftz.f32 %r5, %r2;"), contains("1 / 1e-45 is inf in f32"));
    // halves of f32x2
    CHECK_THAT(said("mov.b64 %d7, 0x7f7fffff3f800000; add.rn.f32x2 %d8, %d7, %d7;"),
               contains("3.4028235e+38 + 3.4028235e+38 is inf in f32"));
}

TEST_CASE("arithmetic of f64 that makes a NaN or an infinity") {
    const std::string of = "mov.f64 %d7, 0d7FE0000000000000; mov.f64 %d8, 0d0000000000000000;\n";
    CHECK_THAT(said(of + "add.f64 %d9, %d7, %d7;"),
               contains("8.98846567431158e+307 + 8.98846567431158e+307 is inf in f64"));
    CHECK_THAT(said(of + "fma.rn.f64 %d9, %d7, %d7, %d8;"), contains("8.98846567431158e+307 + 0 is inf in f64"));
    CHECK_THAT(said(of + "div.rn.f64 %d9, %d8, %d8;"), contains("0 / 0 is NaN in f64"));
    CHECK_THAT(said(of + "rcp.rn.f64 %d9, %d8;"), contains("1 / 0 is inf in f64"));
    CHECK_THAT(said(of + "rcp.approx.ftz.f64 %d9, %d8;"), contains("rcp(0) is inf in f64"));
    CHECK_THAT(said(of + "neg.f64 %d9, %d7; sqrt.rn.f64 %d9, %d9;"), contains("sqrt(-8.98846567431158e+307) is NaN"));
    CHECK_THAT(said(of + "cvt.rn.f32.f64 %r5, %d7;"), contains("8.98846567431158e+307, converted to f32, is inf, by"));
    CHECK(run(of + "mul.f64 %d9, %d7, %d8; mov.f64 %d9, 0d7FF0000000000000; add.f64 %d9, %d9, %d7;").all() == silent);
}

TEST_CASE("arithmetic of f16 and bf16 that makes an infinity, in either half of a pair") {
    CHECK_THAT(said("mov.b16 %h1, 0x7bff; add.f16 %h2, %h1, %h1;"), contains("65504 + 65504 is inf in f16"));
    CHECK_THAT(said("mov.b16 %h1, 0x7c00; mov.b16 %h2, 0x3c00; mov.b32 %r2, {%h1, %h2}; mov.b32 %r3, 0x7bff7bff;\n"
                    "mov.b32 %r4, 0x7bff3c00; add.f16x2 %r5, %r4, %r3;"),
               contains("65504 + 65504 is inf in f16"));
    const std::string pairs = words("0x3c007bff", "0x3c003c01");
    CHECK_THAT(said(pairs + "mul.f16x2 %r5, %r2, %r3;"), contains("65504 * 1.0009766 is inf in f16"));
    // in the one half an infinity is passed on, in the other one is made
    CHECK_THAT(said(words("0x7bff7c00", "0x7bff7bff") + "add.f16x2 %r5, %r2, %r3;"),
               contains("65504 + 65504 is inf in f16"));
    CHECK(run(words("0x3c007c00", "0x3c007bff") + "add.f16x2 %r5, %r2, %r3;").all() == silent);
    CHECK_THAT(said(words("0x7bff3c00", "0x3c003c00", "0xfbff3c00") + "fma.rn.f16x2 %r5, %r2, %r2, %r4;"),
               contains("65504 * 65504 + (-65504) is inf in f16"));
    CHECK_THAT(said(words("0x7f7f3f80") + "fma.rn.bf16x2 %r5, %r2, %r2, %r2;"),
               contains("3.3895314e+38 * 3.3895314e+38 + 3.3895314e+38 is inf in bf16"));
    CHECK_THAT(said("mov.b16 %h1, 0x5000; ex2.approx.f16 %h2, %h1;"), contains("exp2(32) is inf in f16"));
    // the upper half of a register that holds one number counts for nothing
    CHECK(run(words("0x7c003c00") + "cvt.u16.u32 %h1, %r2; add.f16 %h2, %h1, %h1;").all() == silent);
}

TEST_CASE("conversions beyond the numbers of a type") {
    CHECK_THAT(said(words(hundred_thousand) + "cvt.rn.f16.f32 %h1, %r2;"),
               contains("warning: 100000, converted to f16, is inf, by block (0,0,0) thread (0,0,0)"));
    CHECK_THAT(said(words(largest) + "cvt.rn.bf16.f32 %h1, %r2;"),
               contains("3.4028235e+38, converted to bf16, is inf"));
    CHECK_THAT(said(words(one, hundred_thousand) + "cvt.rn.f16x2.f32 %r5, %r2, %r3;"),
               contains("100000, converted to f16, is inf"));
    CHECK_THAT(said(words("70000") + "cvt.rn.f16.s32 %h1, %r2;"), contains("70000, converted to f16, is inf"));
    CHECK_THAT(said(words(largest) + "cvt.rna.tf32.f32 %r5, %r2;"), contains("cvt(3.4028235e+38) is inf in f32"));
    // what saturates, what becomes 0, and what cannot be beyond
    for (const char* fine :
         {"cvt.rn.sat.f16.f32 %h1, %r2;", "cvt.rn.satfinite.e4m3x2.f32 %h1, %r2, %r3;", "cvt.rzi.s32.f32 %r5, %r2;",
          "cvt.rz.f16.f32 %h1, %r2;", "cvt.rn.satfinite.tf32.f32 %r5, 0f7F7FFFFF;", "cvt.f64.f32 %d7, %r2;",
          "cvt.rni.f32.f32 %r5, %r2;", "neg.f32 %r6, %r2; cvt.rn.relu.f16.f32 %h1, %r6;"})
        CHECK(run(words(hundred_thousand, one) + fine, std::vector<float>(64, 1), {.is_target_90 = true}).all() ==
              silent);
}

TEST_CASE("saturating arithmetic makes none") {
    CHECK(run(words(zero, zero) + "div.rn.f32 %r6, %r2, 0f40000000; add.sat.f32 %r5, %r2, %r3;").all() == silent);
    CHECK(run(words(largest, largest) + "mul.sat.f32 %r5, %r2, %r3; fma.rn.sat.f32 %r5, %r2, %r3, %r2;").all() ==
          silent);
    // .relu makes 0 of -inf, and keeps inf
    const std::string pairs = words("0xfbff3c00", "0x7bff3c00", "0x3c003c00");
    CHECK(run(pairs + "fma.rn.relu.f16x2 %r5, %r2, %r3, %r4;").all() == silent);
    CHECK_THAT(said(pairs + "fma.rn.relu.f16x2 %r5, %r3, %r3, %r4;"), contains("65504 * 65504 + 1 is inf in f16"));
}

TEST_CASE("what is no number makes others without a finding") {
    CHECK(run(words(inf, inf) + "sub.f32 %r5, %r2, %r3; mul.f32 %r5, %r5, %r5; add.f32 %r5, %r5, %r2;").all() ==
          silent);
    CHECK(run(words(nan, one) + "add.f32 %r5, %r2, %r3; sqrt.rn.f32 %r5, %r5;").all() == silent);
    const std::vector<float> infinities(64, infinity);
    CHECK(run("ld.global.f32 %r2, [%d3]; add.f32 %r5, %r2, %r2; mul.f32 %r5, %r5, 0f00000000;", infinities).all() ==
          silent);
    CHECK(run(words(inf, one) + "min.f32 %r5, %r2, %r3; max.f32 %r5, %r2, %r3; neg.f32 %r5, %r2; abs.f32 %r5, %r5;\n"
                                "copysign.f32 %r5, %r3, %r2;")
              .all() == silent);
    CHECK(run(words("0x7f800000", "0xff800000") + "xor.b32 %r5, %r2, %r3; or.b32 %r5, %r2, %r5;").all() == silent);
    // the first that is made is found, and nothing of what follows
    CHECK_THAT(said(words(largest, thousand) + "mul.f32 %r5, %r2, %r3;\nadd.f32 %r6, %r5, %r2; sub.f32 %r6, %r6, %r5;\n"
                                               "sqrt.rn.f32 %r6, %r6;"),
               contains("3.4028235e+38 * 1000 is inf"));
}

TEST_CASE("an online softmax that begins with -inf makes none") {
    const std::string row =
        words("0fFF800000", zero) +  // the maximum, the sum
        "ld.global.f32 %r5, [%d3]; max.f32 %r6, %r2, %r5; sub.f32 %r7, %r2, %r6; ex2.approx.f32 %r7, %r7;\n"
        "sub.f32 %r8, %r5, %r6; ex2.approx.f32 %r8, %r8; fma.rn.f32 %r3, %r3, %r7, %r8; mov.b32 %r2, %r6;\n"
        "ld.global.f32 %r5, [%d3+128]; max.f32 %r6, %r2, %r5; sub.f32 %r7, %r2, %r6; ex2.approx.f32 %r7, %r7;\n"
        "sub.f32 %r8, %r5, %r6; ex2.approx.f32 %r8, %r8; fma.rn.f32 %r3, %r3, %r7, %r8;\n"
        "div.rn.f32 %r9, %r8, %r3; st.global.f32 [%d4], %r9;";
    std::vector<float> x(64);
    for (std::size_t i = 0; i < 64; ++i) x[i] = i > 32 && i % 5 == 0 ? -infinity : float(i) / 8;  // some are masked
    const Outcome out = run(row, x);
    CHECK(out.all() == silent);
    for (std::size_t i = 0; i < 32; ++i) CHECK(std::isfinite(std::bit_cast<float>(out.y[i])));
}

TEST_CASE("a source that its own result overwrites is remembered") {
    CHECK_THAT(said(words(zero) + "div.rn.f32 %r2, %r2, %r2;"), contains("0 / 0 is NaN in f32"));
    CHECK_THAT(said(words(largest, thousand, one) + "fma.rn.f32 %r4, %r2, %r3, %r4;"),
               contains("3.4028235e+38 * 1000 + 1 is inf in f32"));
    CHECK(run(words(inf, thousand, one) + "mul.f32 %r2, %r2, %r3; add.f32 %r2, %r2, %r4;").all() == silent);
    CHECK_THAT(said("mov.f64 %d7, 0d7FE0000000000000; add.f64 %d7, %d7, %d7;"), contains("+307 is inf in f64"));
    // in a loop, in the round in which it happens
    CHECK_THAT(said(words(hundred_thousand, one) + "mov.u32 %r6, 0;\n"
                                                   "$loop: mul.f32 %r2, %r2, %r2; add.u32 %r6, %r6, 1;\n"
                                                   "setp.lt.u32 %p1, %r6, 8; @%p1 bra $loop;"),
               contains("1e+20 * 1e+20 is inf in f32"));
}

TEST_CASE("only lanes that execute are looked at") {
    // lane 7 alone divides by 0: it is the one that is named
    CHECK_THAT(said(words(one, one) + "setp.eq.u32 %p1, %r1, 7; @%p1 mov.b32 %r3, 0;\ndiv.rn.f32 %r5, %r2, %r3;"),
               contains("1 / 0 is inf in f32, by block (0,0,0) thread (7,0,0)"));
    for (const std::string guard : {"@!%p1 ", ""}) {
        const std::string branch = guard.empty() ? "@%p1 bra $end;\n" : "";
        CHECK(run(words(one, one) + "setp.eq.u32 %p1, %r1, 7; @%p1 mov.b32 %r3, 0;\n" + branch + guard +
                  "div.rn.f32 %r5, %r2, %r3; " + guard + "st.global.f32 [%d4], %r5;")
                  .all() == silent);
    }
    // what lanes that are off have from before is no result
    CHECK(run(words(one, zero) + "mov.b32 %r5, 0f7F800000; setp.eq.u32 %p1, %r1, 7; @%p1 bra $rest; bra $end;\n"
                                 "$rest: add.f32 %r5, %r2, %r3;")
              .all() == silent);
    CHECK(
        run(words(one, zero) + "mov.b32 %r5, 0f7F800000; setp.eq.u32 %p1, %r1, 7; @%p1 add.f32 %r5, %r2, %r3;").all() ==
        silent);
    // nor are threads that do not exist
    CHECK_THAT(said(words(one, one) + "setp.eq.u32 %p1, %r1, 2; @%p1 mov.b32 %r3, 0;\ndiv.rn.f32 %r5, %r2, %r3;",
                    std::vector<float>(64, 1), {.threads = 3}),
               contains("thread (2,0,0)"));
}

TEST_CASE("a NaN and an infinity of one instruction are two findings") {
    const Outcome out =
        run(words(one, one) +
            "setp.lt.u32 %p1, %r1, 9; @%p1 mov.b32 %r3, 0; setp.lt.u32 %p1, %r1, 4; @%p1 mov.b32 %r2, 0;\n"
            "div.rn.f32 %r5, %r2, %r3;");
    REQUIRE(out.warnings.size() == 2);
    CHECK_THAT(out.all(), contains("0 / 0 is NaN in f32, by block (0,0,0) thread (0,0,0)") &&
                              contains("1 / 0 is inf in f32, by block (0,0,0) thread (4,0,0)"));
}

TEST_CASE("what is done about a NaN is what its class says") {
    const std::string body = words(one, zero) +
                             "mov.u32 %r6, 0;\n$loop: div.rn.f32 %r5, %r2, %r3;\nadd.u32 %r6, %r6, 1; setp.lt.u32 %p1, "
                             "%r6, 5; @%p1 bra $loop;\n"
                             "rcp.rn.f32 %r7, %r3;\nst.global.f32 [%d4], %r5;";
    const Outcome error = run(body, std::vector<float>(64, 1), {.nan = Action::Error});
    CHECK_THAT(error.error, contains("error: 1 / 0 is inf in f32"));
    CHECK(error.y[0] == 0);
    const Outcome warned = run(body, std::vector<float>(64, 1), {.threads = 64, .blocks = 3});
    CHECK(warned.error == "no failure");
    CHECK(warned.warnings.size() == 2);  // once for each line, in the loop too
    CHECK(warned.y[63] == 0x7f800000);
    const Outcome noted = run(body, std::vector<float>(64, 1), {.nan = Action::Note});
    REQUIRE(noted.warnings.size() == 2);
    CHECK_THAT(noted.warnings[0], contains("note: 1 / 0 is inf"));
    CHECK(run(body, std::vector<float>(64, 1), {.nan = Action::Off}).all() == silent);

    // as text: by its name, and with all others
    const auto set = [](const char* text) {
        emulator::CheckSets sets;
        apply(sets, text, "");
        return sets;
    };
    CHECK(set("").strict.of(Check::Nan) == Action::Off);
    CHECK(set("strict").foreign.of(Check::Nan) == Action::Off);
    CHECK(set("nan").foreign.of(Check::Nan) == Action::Error);
    CHECK(set("all=warning").strict.of(Check::Nan) == Action::Warning);
    CHECK(set("all,no-nan").strict.of(Check::Nan) == Action::Off);

    Machine machine;
    machine.options.checks.set(Check::Nan, Action::Error);
    machine.failure(kernel(words(one, zero) + "div.rn.f32 %r5, %r2, %r3;"), {}, 0ull, 0ull, 0ull, 0u);
    CHECK(machine.code == "made-infinity");
    machine.failure(kernel(words(zero, zero) + "div.rn.f32 %r5, %r2, %r3;"), {}, 0ull, 0ull, 0ull, 0u);
    CHECK(machine.code == "made-nan");
}

TEST_CASE("an undefined result is none, and other checks continue") {
    // the warp runs the checked code, and a sum of what nothing has written is no number
    const std::string fresh = "ld.global.f32 %r5, [%d5]; mov.b32 %r6, 0; xor.b32 %r5, %r5, %r5; rcp.rn.f32 %r7, %r5;\n";
    CHECK(run(fresh).all() == silent);
    CHECK_THAT(said(fresh + "rcp.rn.f32 %r8, %r6;"), contains("1 / 0 is inf"));
    CHECK_THAT(said(fresh + "rcp.rn.f32 %r6, %r6;"), contains("1 / 0 is inf"));
    CHECK_THAT(run(fresh + "st.global.f32 [%d4], %r7;").error, contains("an undefined value is stored"));
    // registers that nothing has assigned
    const How both{.registers = Action::Error};
    CHECK_THAT(run("setp.eq.u32 %p1, %r1, 0; @%p1 mov.b32 %r2, 0; rcp.rn.f32 %r2, %r2; st.global.f32 [%d4], %r2;",
                   std::vector<float>(64, 1), both)
                   .error,
               contains("an undefined value is stored"));
    CHECK_THAT(said(words(one, zero) + "setp.eq.u32 %p1, %r1, 0; @%p1 mov.b32 %r9, 0f3F800000;\n"
                                       "@%p1 rcp.rn.f32 %r9, %r3; div.rn.f32 %r2, %r2, %r3;",
                    std::vector<float>(64, 1), both),
               contains("is inf in f32"));
    CHECK(run("setp.eq.u32 %p1, %r1, 0; @%p1 mov.b32 %r9, 0f3F800000; @%p1 add.f32 %r9, %r9, %r9;",
              std::vector<float>(64, 1), both)
              .all() == silent);
}

namespace {

/// mma.m16n8k16: all factors are these words, all sums, which the product replaces, that one. Lane 9 has another a.
std::string mma(const std::string& sum, const std::string& factor, const char* a, const char* b, const char* c,
                const char* in_lane_9 = nullptr) {
    const std::string sums = sum == "f16" ? "{%r12, %r13}" : "{%r12, %r13, %r14, %r15}";
    std::string text =
        words(a, b) + "setp.eq.u32 %p1, %r1, 9; @%p1 mov.b32 %r2, " + (in_lane_9 ? in_lane_9 : a) + ";\n";
    for (const char* each : {"12", "13", "14", "15"}) text += std::string("mov.b32 %r") + each + ", " + c + "; ";
    return text + "\nmma.sync.aligned.m16n8k16.row.col." + sum + "." + factor + "." + factor + "." + sum + " " + sums +
           ", {%r2, %r2, %r2, %r2}, {%r3, %r3}, " + sums + ";";
}

}  // namespace

TEST_CASE("products of matrices are looked at as a whole") {
    CHECK_THAT(said(mma("f16", "f16", "0x5c005c00", "0x5c005c00", "0x3c003c00")),
               contains("a product of matrices is inf in f16, by block (0,0,0) thread (0,0,0): the numbers of a are up "
                        "to 256, of b 256, of c 1"));
    // 4096 times the largest bf16, in the row of lane 9
    CHECK_THAT(said(mma("f32", "bf16", "0x3f803f80", "0x45804580", "0f40000000", "0x7f7f7f7f")),
               contains("a product of matrices is inf in f32, by block (0,0,0) thread (8,0,0): the numbers of a are up "
                        "to 3.3895313892515355e+38, of b 4096, of c 2"));
    for (const char* d : {"f16", "f32"})
        CHECK(run(mma(d, "f16", "0x3c003c00", "0x3c003c00", "0x3c003c00")).all() == silent);
    // an infinity that goes in, in either half, is passed on
    CHECK(run(mma("f16", "f16", "0x3c003c00", "0x3c003c00", "0x7c003c00")).all() == silent);
    CHECK(run(mma("f32", "f16", "0x3c003c00", "0x3c003c00", "0fFF800000")).all() == silent);
    CHECK(run(mma("f32", "f16", "0x3c003c00", "0x3c003c00", "0f3F800000", "0x7c003c00")).all() == silent);
    CHECK(run(mma("f32", "f16", "0x3c003c00", "0x3c007c00", "0f3F800000")).all() == silent);
    // f64, and integers, whose words may be anything
    CHECK_THAT(said("mov.f64 %d7, 0d7FE0000000000000; mov.f64 %d9, 0d0000000000000000;\n"
                    "mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%d11, %d12}, {%d7}, {%d7}, {%d9, %d9};"),
               contains("a product of matrices is inf in f64"));
    CHECK(run(words("-1", "-1", "0x7f800000") +
              "mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32 {%r5, %r6}, {%r2}, {%r3}, {%r4, %r4};")
              .all() == silent);
}

TEST_CASE("products of wmma") {
    const auto product = [](const char* a) {
        std::string text = words(a) + "mov.b32 %r3, 0x3c003c00;\n";
        const std::string factor = "{%r2, %r2, %r2, %r2, %r2, %r2, %r2, %r2}";
        return text + "wmma.mma.sync.aligned.row.col.m16n16k16.f16.f16 {%r10, %r11, %r12, %r13}, " + factor + ", " +
               factor + ", {%r3, %r3, %r3, %r3};";
    };
    CHECK_THAT(said(product("0x5c005c00")),
               contains("a product of matrices is inf in f16") && contains("of a are up to 256, of b 256, of c 1"));
    CHECK(run(product("0x3c003c00")).all() == silent);
    CHECK(run(product("0x7c003c00")).all() == silent);
}

TEST_CASE("products of a warpgroup") {
    using namespace warpgroups;
    /// a, 64 x 16 of f16, at the beginning of the tile, b, 16 x 8, at byte 8192: all of it this word; sums of this one.
    const auto product = [](std::uint32_t word, const char* sum, bool adds, const char* of = "f16") {
        Machine machine;
        machine.options.checks.set(Check::Nan, Action::Warning);
        constexpr std::uint64_t fields = 1ull << 62 | 64ull << 32 | 1ull << 16;
        const auto x = machine.buffer("x", std::vector<float>(4096, 1)), y = machine.empty<float>("y", 4096),
                   tile = machine.buffer("tile", std::vector<std::uint32_t>(16384 / 4, word));
        const bool is_half = std::string_view(of) == "f16";
        const std::string sums = is_half ? "{%r100, %r101}" : "{%r100, %r101, %r102, %r103}";
        std::string body = make_descriptor(10, fields, 0) + make_descriptor(11, fields, 8192);
        for (const char* each : {"100", "101", "102", "103"})
            body += std::string("mov.b32 %r") + each + ", " + sum + "; ";
        body += fence + "wgmma.mma_async.sync.aligned.m64n8k16." + of + ".f16.f16 " + sums + ", %d10, %d11, " +
                (adds ? "1" : "0") + ", 1, 1, 0, 0;\n" + commit + wait;
        std::string text = machine.failure(group_kernel(16384, body),
                                           {.block = {128, 1, 1}, .dynamic_shared_bytes = 16384}, x, y, tile);
        if (text == "no failure") text.clear();
        for (const Diagnostic& warning : machine.warnings) text += to_string(warning);
        return text;
    };
    CHECK_THAT(product(0x5c005c00, "0x3c003c00", true),
               contains("warning: a product of matrices is inf in f16, by block (0,0,0) thread (") &&
                   contains("the numbers of a are up to 256, of b 256, of c 1") &&
                   contains("wgmma.mma_async.sync.aligned.m64n8k16.f16.f16.f16"));
    CHECK_THAT(product(0x5c005c00, "0x7c003c00", false), contains("of c 0"));
    CHECK(product(0x3c003c00, "0x3c003c00", true) == silent);
    CHECK(product(0x5c007c00, "0x3c003c00", true) == silent);
    CHECK(product(0x5c005c00, "0x3c007c00", true) == silent);
    CHECK(product(0x3c003c00, "0f7F800000", true, "f32") == silent);
}

}  // namespace ikat::tests::nans
