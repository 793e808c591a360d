// SPDX-License-Identifier: Apache-2.0
// Less common declarations and environment: registers of several elements, module variables declared inside a function,
// reserved shared memory, the workspace of a cooperative launch.
#include "tests/unit/emulator/evaluate.hpp"

using namespace ikat;
using tests::contains;
using tests::kernel;
using tests::Machine;

namespace {

/// Sixteen words, from 1 on, after a kernel of one thread; %d1 holds their address.
std::vector<std::uint32_t> declared(const std::string& body, std::string_view module_scope = "") {
    Machine machine;
    std::vector<std::uint32_t> values(16);
    for (std::uint32_t i = 0; i < 16; ++i) values[i] = i + 1;
    const auto x = machine.buffer("x", values);
    machine.run(kernel("ld.param.u64 %d1, [p0];\n" + body + " ret;", module_scope), {}, x, 0ull, 0ull, 0u);
    return machine.get<std::uint32_t>(x, 16);
}

}  // namespace

TEST_CASE("registers of several elements: each by name, and all together") {
    const auto first = [](const std::string& body, std::size_t count, std::string_view module_scope = "") {
        auto all = declared(body, module_scope);
        all.resize(count);
        return all;
    };
    using Words = std::vector<std::uint32_t>;
    CHECK(first(R"(.reg .v4 .b32 v; ld.global.v4.b32 v, [%d1]; add.u32 v.y, v.x, v.w; mov.u32 v.b, 9;
                   st.global.v4.b32 [%d1], v;)",
                4) == Words{1, 5, 9, 4});
    CHECK(first(R"(.reg .v2 .b32 v<3>; ld.global.v2.b32 v1, [%d1+8]; mov.v2.b32 v2, v1; mov.u32 v2.x, v1.g;
                   st.global.v2.b32 [%d1], v2;)",
                2) == Words{4, 4});
    CHECK(first(R"(.reg .v2 .b32 v; ld.global.v2.b32 v, [%d1]; mov.b64 %d2, v; st.global.b64 [%d1+8], %d2;
                   mov.b64 v, %d2; mov.v2.b32 v, {v.y, v.x}; st.global.v2.b32 [%d1], {v.x, v.y};)",
                4) == Words{2, 1, 1, 2});
    CHECK(first(R"(.reg .v2 .u64 v; ld.global.v2.u64 v, [%d1]; st.global.u64 [%d1], v.y;)", 3) == Words{3, 4, 3});
    CHECK(first(R"(.reg .v4 .b16 v; ld.global.v4.b16 v, [%d1]; mov.b64 %d2, v; st.global.b64 [%d1+8], %d2;)", 4) ==
          Words{1, 2, 1, 2});
    // Guarded, in an inner scope whose register hides it, passed to a function and back.
    CHECK(first(R"(.reg .v2 .b32 v; ld.global.v2.b32 v, [%d1]; setp.eq.u32 %p1, v.x, 2; @%p1 mov.u32 v.y, 7;
                   { .reg .b32 v; mov.u32 v, 8; st.global.b32 [%d1+8], v; } st.global.v2.b32 [%d1], v;)",
                3) == Words{1, 2, 8});
    CHECK(first(R"(.reg .v2 .b32 v; ld.global.v2.b32 v, [%d1+8]; call (v), swap, (v); st.global.v2.b32 [%d1], v;)", 2,
                ".func (.reg .v2 .b32 o) swap (.reg .v2 .b32 i) { mov.u32 o.x, i.y; mov.u32 o.y, i.x; ret; }") ==
          Words{4, 3});
    CHECK(first(R"(.reg .v4 .u32 v; mov.v4.u32 v, %ntid; st.global.v4.u32 [%d1], v;)", 4) == Words{1, 1, 1, 0});
    // Sums of a register and a constant, of the register's width.
    CHECK(first(R"(mov.u32 %r1, 7; add.u32 %r2, %r1+3, 1; st.global.u32 [%d1], %r2+2; mov.u32 %r1, -1;
                   mad.lo.u32 %r3, %r1+3, %r2+1, %r1+1; st.global.u32 [%d1+4], %r3;)",
                2) == Words{13, 24});
    Machine machine;
    CHECK_THAT(machine.failure(kernel(".reg .v2 .b32 v; add.u32 %r1, v.z, 1; ret;"), {}, 0ull, 0ull, 0ull, 0u),
               contains("cannot run this instruction"));
    CHECK_THAT(machine.failure(kernel(".reg .v2 .b32 v; mov.v4.u32 v, v; ret;"), {}, 0ull, 0ull, 0ull, 0u),
               contains("lengths are not that of the move"));
}

TEST_CASE("a .global or .const variable inside a function is one for all launches, calls and blocks") {
    const std::string count = R"(.func (.reg .b32 o) count () {
        .global .u32 n = 5; .const .u32 step[2] = {1, 10}; .reg .b32 %s;
        ld.const.u32 %s, [step+4]; atom.global.add.u32 o, [n], %s; ret; })";
    // The kernel's n is a different variable, in each of its scopes.
    const auto all = declared(R"(.global .u32 n = 70; { .global .u32 n = 80; ld.global.u32 %r1, [n]; }
        ld.global.u32 %r2, [n]; call (%r3), count, (); call (%r4), count, ();
        st.global.v4.u32 [%d1], {%r1, %r2, %r3, %r4};)",
                              count);
    CHECK(std::vector(all.begin(), all.begin() + 4) == std::vector<std::uint32_t>{80, 70, 5, 15});
    Machine machine;
    CHECK_THAT(
        machine.failure(kernel(".global .u32 few[2]; ld.global.u32 %r1, [few+8]; ret;"), {}, 0ull, 0ull, 0ull, 0u),
        contains("right past the end of buffer 'few'"));
}

TEST_CASE("vote and shfl without .sync: members are the active lanes") {
    Machine machine;
    const auto out = machine.empty<std::uint32_t>("out", 32);
    machine.run(kernel(R"(
    mov.u32 %r1, %tid.x; and.b32 %r2, %r1, 1; setp.eq.u32 %p1, %r2, 0; setp.lt.u32 %p2, %r1, 8;
    ld.param.u64 %d1, [p0]; mad.wide.u32 %d1, %r1, 4, %d1;
    @%p1 bra $even;
    vote.ballot.b32 %r3, %p2; bra $end;
$even:
    vote.all.pred %p3, %p1; selp.b32 %r4, 1, 0, %p3; shfl.idx.b32 %r3, %r1, 6, 31; mad.lo.u32 %r3, %r4, 100, %r3;
$end:
    st.global.u32 [%d1], %r3; ret;)"),
                {.block = {32, 1, 1}}, out, 0ull, 0ull, 0u);
    const auto result = machine.get<std::uint32_t>(out, 32);
    for (std::uint32_t i = 0; i < 32; ++i) CHECK(result[i] == (i % 2 ? 0xaau : 106u));
}

TEST_CASE("the reserved part of shared memory is zero, separate from the kernel's own, and bounded") {
    const std::string addresses = R"(.shared .u32 own[4]; mov.u32 %r1, %reserved_smem_offset_1;
        mov.u32 %r2, %reserved_smem_offset_begin; mov.u32 %r3, %reserved_smem_offset_end; cvt.u64.u32 %d2, %r1;
        cvta.shared.u64 %d2, %d2; mov.u32 %r4, 7;)";
    const auto all = declared(addresses + R"(
        ld.shared.u32 %r5, [%r1]; st.shared.u32 [%r1], %r4; ld.u32 %r6, [%d2]; atom.add.u32 %r7, [%d2], 1;
        ld.shared.u32 %r8, [%r1]; ld.shared.u32 %r9, [%r2]; sub.u32 %r10, %r3, %r2;
        st.global.v4.u32 [%d1], {%r5, %r6, %r7, %r8}; st.global.v2.u32 [%d1+16], {%r9, %r10};)");
    CHECK(std::vector(all.begin(), all.begin() + 6) == std::vector<std::uint32_t>{0, 7, 7, 8, 0, 2048});
    Machine machine;
    const auto finding = [&](const std::string& body) {
        return machine.failure(kernel(addresses + body + "ret;"), {.block = {32, 1, 1}}, 0ull, 0ull, 0ull, 0u);
    };
    CHECK_THAT(finding("st.shared.u32 [%r3], %r4;"), contains("shared store of 4 bytes"));
    CHECK_THAT(finding("st.u32 [%d2+1024], %r4;"), contains("generic store of 4 bytes"));
    CHECK_THAT(finding("st.shared.u32 [own+16], %r4;"), contains("right past the end of"));
}

TEST_CASE("the blocks of a cooperative launch meet in its workspace", "[long]") {
    // As in CUDA's cooperative groups: the first block adds a value that flips the highest bit when all have arrived.
    const std::string text = kernel(R"(
    .reg .b64 %ws; mov.u32 %r1, %envreg1; mov.u32 %r2, %envreg2; mov.b64 %ws, {%r2, %r1};
    ld.global.u32 %r10, [%ws];
    mov.u32 %r3, %ctaid.x; mov.u32 %r4, %nctaid.x; mov.u32 %r9, %tid.x;
    ld.param.u64 %d1, [p0]; mad.wide.u32 %d2, %r3, 4, %d1; st.global.u32 [%d2], %r3;
    bar.sync 0;
    setp.ne.u32 %p1, %r9, 0; @%p1 bra $met;
    sub.u32 %r5, 0x80000001, %r4; setp.eq.u32 %p2, %r3, 0; selp.b32 %r5, %r5, 1, %p2;
    atom.add.release.gpu.u32 %r6, [%ws+4], %r5;
$wait:
    ld.acquire.gpu.u32 %r7, [%ws+4]; xor.b32 %r7, %r7, %r6; setp.ge.s32 %p3, %r7, 0; @%p3 bra $wait;
$met:
    bar.sync 0;
    add.u32 %r8, %r3, 1; rem.u32 %r8, %r8, %r4; mad.wide.u32 %d3, %r8, 4, %d1; ld.global.u32 %r8, [%d3];
    ld.param.u64 %d4, [p1]; mad.wide.u32 %d4, %r3, 4, %d4; st.global.u32 [%d4], %r8;
    ret;)");
    for (const unsigned threads : {1u, 3u}) {
        Machine machine;
        machine.options.threads = threads;
        const auto a = machine.empty<std::uint32_t>("a", 40), b = machine.empty<std::uint32_t>("b", 40);
        for (int launch = 0; launch < 2; ++launch) {
            machine.run(text, {.grid = {40, 1, 1}, .block = {64, 1, 1}}, a, b, 0ull, 0u);
            const auto result = machine.get<std::uint32_t>(b, 40);
            for (std::uint32_t i = 0; i < 40; ++i) CHECK(result[i] == (i + 1) % 40);
        }
    }
    Machine machine;
    const auto a = machine.empty<std::uint32_t>("a", 3000);
    CHECK_THAT(machine.failure(text, {.grid = {3000, 1, 1}, .block = {32, 1, 1}}, a, a, 0ull, 0u),
               contains("waits for memory to change, and no thread is left that could change it"));
}
