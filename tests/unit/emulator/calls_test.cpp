// SPDX-License-Identifier: Apache-2.0
// Calls at run time: recursion, calls through registers, stack frames, alloca.
#include "tests/unit/emulator/evaluate.hpp"

using namespace ikat;
using tests::contains;
using tests::kernel;
using tests::Machine;

namespace {

const std::string store_r1 = R"(
    mov.u32 %r60, %tid.x; ld.param.u64 %d30, [p0]; mad.wide.u32 %d30, %r60, 4, %d30; st.global.u32 [%d30], %r1;
    ret;
)";

std::vector<std::uint32_t> called(const std::string& body, const std::string& functions, std::uint32_t threads = 32,
                                  std::uint32_t seed = 0) {
    Machine machine;
    machine.options.seed = seed;
    const auto out = machine.empty<std::uint32_t>("out", threads);
    machine.run(kernel(body + store_r1, functions), {.block = {threads, 1, 1}}, out, out, out, threads);
    return machine.get<std::uint32_t>(out, threads);
}

std::string called_wrongly(const std::string& body, const std::string& functions) {
    Machine machine;
    const auto out = machine.empty<std::uint32_t>("out", 32);
    return machine.failure(kernel(body + store_r1, functions), {.block = {32, 1, 1}}, out, out, out, 32u);
}

const std::string fibonacci = R"(
.func (.param .b32 result) fibonacci (.param .b32 n)
{
    .reg .b32 %r<8>; .reg .pred %p<3>; .reg .b64 %w<2>;
    ld.param.b32 %r1, [n];
    setp.lt.u32 %p1, %r1, 2; mov.u32 %r2, %r1; setp.eq.u32 %p2, %r1, 3; cvt.u64.u32 %w0, %r1; shl.b64 %w0, %w0, 40;
    @%p1 bra $leave;
    sub.u32 %r3, %r1, 1; sub.u32 %r4, %r1, 2;
    {
        .param .b32 a; .param .b32 b;
        st.param.b32 [a], %r3; call.uni (b), fibonacci, (a); ld.param.b32 %r5, [b];
    }
    {
        .param .b32 a; .param .b32 b;
        st.param.b32 [a], %r4; call.uni (b), fibonacci, (a); ld.param.b32 %r6, [b];
    }
    add.u32 %r2, %r5, %r6;
    // values that are live across the calls: a predicate and a 64-bit register
    @%p2 add.u32 %r2, %r2, 1000; shr.u64 %w0, %w0, 40; cvt.u32.u64 %r7, %w0; sub.u32 %r7, %r7, %r1; add.u32 %r2, %r2, %r7;
$leave:
    st.param.b32 [result], %r2;
    ret;
}
)";

std::uint32_t expected_fibonacci(std::uint32_t n) {
    return n < 2 ? n : expected_fibonacci(n - 1) + expected_fibonacci(n - 2) + (n == 3 ? 1000 : 0);
}

}  // namespace

TEST_CASE("a function may have aliases") {
    const std::string functions =
        ".visible .func (.param .b32 r) twice(.param .b32 n)\n"
        "{ .reg .b32 x; ld.param.b32 x, [n]; add.u32 x, x, x; st.param.b32 [r], x; ret; }\n"
        ".visible .func (.param .b32 r) doubled(.param .b32 n);\n.alias doubled, twice;\n";
    CHECK(called("{ .param .b32 a; .param .b32 r; mov.u32 %r1, %tid.x; st.param.b32 [a], %r1; call (r), doubled, (a);"
                 "ld.param.b32 %r1, [r]; }",
                 functions, 3) == std::vector<std::uint32_t>{0, 2, 4});
    CHECK(called("{ .param .b32 a; .param .b32 r; mov.u32 %r1, %tid.x; st.param.b32 [a], %r1; mov.u64 %d1, doubled;"
                 "proto: .callprototype (.param .b32 _) _ (.param .b32 _); call (r), %d1, (a), proto;"
                 "ld.param.b32 %r1, [r]; }",
                 functions, 3) == std::vector<std::uint32_t>{0, 2, 4});
}

TEST_CASE("a recursion whose depth differs from lane to lane") {
    const std::string body = R"(
    mov.u32 %r2, %tid.x; and.b32 %r2, %r2, 15; add.u32 %r5, %r2, 7;
    {
        .param .b32 a; .param .b32 b;
        st.param.b32 [a], %r2; call.uni (b), fibonacci, (a); ld.param.b32 %r1, [b];
    }
    sub.u32 %r5, %r5, %r2; sub.u32 %r5, %r5, 7; add.u32 %r1, %r1, %r5;
    shfl.sync.idx.b32 %r6, %r1, 0, 31, -1; add.u32 %r1, %r1, %r6;
)";
    for (const std::uint32_t seed : {0u, 1u, 2u}) {
        const auto result = called(body, fibonacci, 40, seed);
        for (std::uint32_t i = 0; i < 40; ++i) CHECK(result[i] == expected_fibonacci(i % 16));
    }
}

TEST_CASE("two functions that call each other, with parameters in registers") {
    const std::string functions = R"(
.func (.reg .b32 out) odd (.reg .b32 n);
.func (.reg .b32 out) even (.reg .b32 n)
{
    .reg .pred p; .reg .b32 m;
    mov.u32 out, 1; setp.eq.u32 p, n, 0; @p ret;
    sub.u32 m, n, 1; call (out), odd, (m);
    ret;
}
.func (.reg .b32 out) odd (.reg .b32 n)
{
    .reg .pred p; .reg .b32 m;
    mov.u32 out, 0; setp.eq.u32 p, n, 0; @p ret;
    sub.u32 m, n, 1; call (out), even, (m);
    ret;
}
)";
    const auto result = called("mov.u32 %r2, %tid.x; call (%r1), even, (%r2); mad.lo.u32 %r1, %r2, 2, %r1;", functions);
    for (std::uint32_t i = 0; i < 32; ++i) CHECK(result[i] == 2 * i + (i % 2 == 0));
}

TEST_CASE("each level of a recursion has its own variables, whose addresses may be passed") {
    // Each level appends its own depth to a list through pointers to the frames before it.
    const std::string functions = R"(
.func (.param .b32 total) walk (.param .b64 previous, .param .b32 depth)
{
    .reg .b32 %r<8>; .reg .b64 %d<8>; .reg .pred %p<3>;
    .local .align 8 .b8 node[16];
    ld.param.b64 %d1, [previous]; ld.param.b32 %r1, [depth];
    mov.u64 %d2, node; st.local.u64 [%d2], %d1; st.local.u32 [node+8], %r1;
    setp.eq.u32 %p1, %r1, 0; @%p1 bra $sum;
    cvta.local.u64 %d3, %d2; sub.u32 %r2, %r1, 1;
    {
        .param .b64 a; .param .b32 b; .param .b32 c;
        st.param.b64 [a], %d3; st.param.b32 [b], %r2;
        call (c), walk, (a, b);
        ld.param.b32 %r3, [c];
    }
    ld.local.u32 %r4, [node+8]; setp.ne.u32 %p2, %r4, %r1; @%p2 trap;
    st.param.b32 [total], %r3;
    ret;
$sum:
    mov.u32 %r3, 0;
$next:
    setp.eq.u64 %p2, %d1, 0; @%p2 bra $done;
    ld.u32 %r4, [%d1+8]; add.u32 %r3, %r3, %r4; ld.u64 %d1, [%d1]; bra $next;
$done:
    st.param.b32 [total], %r3;
    ret;
}
)";
    const auto result = called("mov.u32 %r2, %tid.x; mov.u64 %d1, 0; call (%r1), walk, (%d1, %r2);", functions);
    for (std::uint32_t i = 0; i < 32; ++i) CHECK(result[i] == i * (i + 1) / 2);
}

namespace {

const std::string table = R"(
.visible .func (.param .b32 r) plus_ten (.param .b32 x)
{ .reg .b32 %r<3>; ld.param.b32 %r1, [x]; add.u32 %r2, %r1, 10; st.param.b32 [r], %r2; ret; }
.visible .func (.param .b32 r) times_three (.param .b32 x)
{ .reg .b32 %r<3>; ld.param.b32 %r1, [x]; mul.lo.u32 %r2, %r1, 3; st.param.b32 [r], %r2; ret; }
.func (.param .b32 r) other (.param .b32 x, .param .b32 y)
{ .reg .b32 %r<3>; ld.param.b32 %r1, [x]; st.param.b32 [r], %r1; ret; }
.global .align 8 .u64 functions[4] = {plus_ten, times_three, other, 0};
)";

std::string through_table(const std::string& index) {
    return "mov.u32 %r2, %tid.x; " + index + R"(
    mov.u64 %d1, functions; mad.wide.u32 %d1, %r3, 8, %d1; ld.global.u64 %d2, [%d1];
    {
        .param .b32 a; .param .b32 b;
        st.param.b32 [a], %r2;
        prototype : .callprototype (.param .b32 _) _ (.param .b32 _);
        call (b), %d2, (a), prototype;
        ld.param.b32 %r1, [b];
    }
)";
}

}  // namespace

TEST_CASE("a call through a register, each lane to its own function") {
    for (const std::uint32_t seed : {0u, 1u}) {
        const auto result = called(through_table("and.b32 %r3, %r2, 1;"), table, 64, seed);
        for (std::uint32_t i = 0; i < 64; ++i) CHECK(result[i] == (i % 2 ? 3 * i : i + 10));
    }
    CHECK_THAT(called_wrongly(through_table("mov.u32 %r3, 3;"), table), contains("holds no function's address"));
    CHECK_THAT(called_wrongly(through_table("mov.u32 %r3, 2;"), table), contains("a function with other parameters"));
}

TEST_CASE("a call through a register with its targets listed") {
    const auto result = called(R"(
    mov.u32 %r2, %tid.x; mov.u64 %d2, times_three;
    targets : .calltargets plus_ten, times_three;
    call (%r1), %d2, (%r2), targets;
)",
                               table);
    for (std::uint32_t i = 0; i < 32; ++i) CHECK(result[i] == 3 * i);
}

TEST_CASE("a recursion without end is a finding") {
    const std::string endless = R"(
.func (.param .b32 r) endless (.param .b32 n)
{
    .reg .b32 %r<3>;
    ld.param.b32 %r1, [n]; add.u32 %r1, %r1, 1;
    { .param .b32 a; .param .b32 b; st.param.b32 [a], %r1; call (b), endless, (a); ld.param.b32 %r2, [b]; }
    st.param.b32 [r], %r2; ret;
}
)";
    CHECK_THAT(called_wrongly("call (%r1), endless, (5);", endless), contains("the stack of a thread is full"));
}

TEST_CASE("alloca gives memory of the stack, and stackrestore takes it back") {
    const auto result = called(R"(
    mov.u32 %r2, %tid.x; add.u32 %r3, %r2, 1; cvt.u64.u32 %d1, %r3; shl.b64 %d1, %d1, 2;
    mov.u32 %r7, 0;
$again:
    stacksave.u64 %d5;
    alloca.u64 %d2, %d1, 16; alloca.u64 %d3, 4;
    st.local.u32 [%d3], %r2; st.local.u32 [%d2], %r3; cvta.local.u64 %d4, %d3;
    ld.u32 %r4, [%d4]; ld.local.u32 %r5, [%d2]; mad.lo.u32 %r1, %r4, 1000, %r5;
    stackrestore.u64 %d5;
    add.u32 %r7, %r7, 1; setp.lt.u32 %p1, %r7, 5000; @%p1 bra $again;
    and.b64 %d2, %d2, 15; cvt.u32.u64 %r6, %d2; add.u32 %r1, %r1, %r6;
)",
                               "");
    for (std::uint32_t i = 0; i < 32; ++i) CHECK(result[i] == 1000 * i + i + 1);
    CHECK_THAT(called_wrongly("mov.u64 %d1, 1000000; alloca.u64 %d2, %d1;", ""),
               contains("the stack of a thread is full"));
}

TEST_CASE("a shared variable of a function is one, however often the function is inlined") {
    const std::string functions = R"(
.func (.param .b32 r) keep (.param .b32 n)
{
    .reg .b32 %r<3>; .shared .u32 kept;
    ld.param.b32 %r2, [n]; atom.shared.exch.b32 %r1, [kept], %r2; st.param.b32 [r], %r1; ret;
}
)";
    const auto result = called(R"(
    { .param .b32 a; call (a), keep, (7); ld.param.b32 %r2, [a]; }
    { .param .b32 a; call (a), keep, (9); ld.param.b32 %r1, [a]; }
)",
                               functions, 1);
    CHECK(result[0] == 7);
}

TEST_CASE("a failed assertion says so and stops the launch") {
    Machine machine;
    const std::string text = kernel(
        R"(
    mov.u64 %d1, words; cvta.global.u64 %d1, %d1; add.u64 %d2, %d1, 2; add.u64 %d3, %d1, 4;
    {
        .param .b64 a; .param .b64 b; .param .b32 c; .param .b64 d; .param .b64 e;
        st.param.b64 [a], %d1; st.param.b64 [b], %d2; mov.u32 %r1, 12; st.param.b32 [c], %r1; st.param.b64 [d], %d3;
        mov.u64 %d4, 1; st.param.b64 [e], %d4;
        call.uni __assertfail, (a, b, c, d, e);
    }
    ret;
)",
        R"(.extern .func __assertfail (.param .b64 a, .param .b64 b, .param .b32 c, .param .b64 d, .param .b64 e);
.global .align 1 .b8 words[6] = {120, 0, 102, 0, 103, 0};
)");
    CHECK_THAT(machine.failure(text, {.block = {1, 1, 1}}, 0ull, 0ull, 0ull, 0u), contains("an assertion failed"));
    CHECK(machine.printed == "f:12: g: block: [0,0,0], thread: [0,0,0] Assertion `x` failed.\n");
}
