// SPDX-License-Identifier: Apache-2.0
// Features of sm_90 and later: 128-bit atomics, float reductions, clusters of one block, policies. And system
// functions: malloc and free.
#include "tests/unit/emulator/evaluate.hpp"

using namespace ikat;
using tests::contains;
using tests::evaluate;
using tests::F;
using tests::kernel;
using tests::Machine;
using tests::Row;

namespace {

constexpr float not_a_number = std::numeric_limits<float>::quiet_NaN();

/// The result of redux in each of 32 lanes.
std::vector<float> reduced(const std::string& instruction, const std::vector<float>& values) {
    std::vector<Row> rows;
    for (const float value : values) rows.push_back({F(value), 0, 0});
    std::vector<float> out;
    for (const std::uint64_t bits : evaluate(instruction, rows))
        out.push_back(std::bit_cast<float>(std::uint32_t(bits)));
    return out;
}

std::vector<float> ramp() {
    std::vector<float> values;
    for (int i = 0; i < 32; ++i) values.push_back(float(i) - 20);
    return values;
}

}  // namespace

TEST_CASE("redux of f32") {
    std::vector<float> values = ramp();
    CHECK(reduced("redux.sync.min.f32 %r0, %r1, -1;", values) == std::vector<float>(32, -20));
    CHECK(reduced("redux.sync.max.f32 %r0, %r1, -1;", values) == std::vector<float>(32, 11));
    CHECK(reduced("redux.sync.max.abs.f32 %r0, %r1, -1;", values) == std::vector<float>(32, 20));
    CHECK(reduced("redux.sync.min.abs.f32 %r0, %r1, -1;", values) == std::vector<float>(32, 0));
    values[7] = not_a_number;
    CHECK(reduced("redux.sync.max.f32 %r0, %r1, -1;", values) == std::vector<float>(32, 11));
    const auto nan = reduced("redux.sync.max.NaN.f32 %r0, %r1, -1;", values);
    CHECK(std::bit_cast<std::uint32_t>(nan[0]) == 0x7fffffff);
    const auto all = reduced("redux.sync.min.f32 %r0, %r1, -1;", std::vector<float>(32, not_a_number));
    CHECK(std::bit_cast<std::uint32_t>(all[31]) == 0x7fffffff);
    Machine machine;
    CHECK_THAT(machine.failure(kernel("redux.sync.add.f32 %r1, %r2, -1; ret;"), {.block = {32, 1, 1}}, std::uint64_t{},
                               std::uint64_t{}, std::uint64_t{}, 0),
               contains("redux of .f32 needs .min or .max"));
}

TEST_CASE("conversions to and from bf16 by every rounding") {
    const auto converted = [](const std::string& convert, std::uint32_t value) {
        const std::string body = "{ .reg .b16 %x<3>; cvt.u16.u32 %x1, %r1; " + convert + " cvt.u32.u16 %r0, %x2; }";
        return std::uint32_t(evaluate(body, {{value, 0, 0}})[0]);
    };
    CHECK(converted("cvt.rm.bf16.f32 %x2, %r1;", 0x3f80ffff) == 0x3f80);
    CHECK(converted("cvt.rp.bf16.f32 %x2, %r1;", 0x3f80ffff) == 0x3f81);
    CHECK(converted("cvt.rm.bf16.f32 %x2, %r1;", 0xc020ffff) == 0xc021);
    CHECK(converted("cvt.rp.bf16.f32 %x2, %r1;", 0xc020ffff) == 0xc020);
    CHECK(converted("cvt.rp.bf16.f32 %x2, %r1;", 0x00010001) == 0x0002);
    CHECK(converted("cvt.rp.ftz.bf16.f32 %x2, %r1;", 0x00010001) == 0);
    const std::uint32_t half = 0x4020;  // 2.5
    CHECK(converted("cvt.rni.bf16.bf16 %x2, %x1;", half) == 0x4000);
    CHECK(converted("cvt.rmi.bf16.bf16 %x2, %x1;", half) == 0x4000);
    CHECK(converted("cvt.rpi.bf16.bf16 %x2, %x1;", half) == 0x4040);
    CHECK(converted("cvt.rzi.bf16.bf16 %x2, %x1;", half | 0x8000) == 0xc000);
    CHECK(converted("cvt.f16.bf16 %x2, %x1;", half) == 0x4100);
    CHECK(converted("cvt.bf16.f16 %x2, %x1;", 0x4100) == half);
    CHECK(converted("cvt.rmi.f16.f16 %x2, %x1;", 0xc100) == 0xc200);
    CHECK(converted("{ .reg .f64 %y; cvt.f64.bf16 %y, %x1; cvt.rn.bf16.f64 %x2, %y; }", half) == half);
}

TEST_CASE("atomics of 128 bits") {
    // Each lane pushes its number onto a list whose head is a count and a lane, swapped together.
    const std::string push = kernel(R"(
    .reg .b128 %q<4>;
    ld.param.u64 %d1, [p0];
    ld.param.u64 %d2, [p1];
    mov.u32 %r1, %tid.x;
    cvt.u64.u32 %d3, %r1;
again:
    ld.relaxed.gpu.global.b128 %q0, [%d1];
    mov.b128 {%d4, %d5}, %q0;
    mad.wide.u32 %d6, %r1, 8, %d2;
    st.global.u64 [%d6], %d5;
    add.u64 %d7, %d4, 1;
    mov.b128 %q1, {%d7, %d3};
    atom.cas.b128 %q2, [%d1], %q0, %q1;
    mov.b128 {%d8, %d9}, %q2;
    setp.ne.u64 %p1, %d8, %d4;
    @%p1 bra again;
    ret;)");
    Machine machine;
    const auto head = machine.buffer("head", std::vector<std::uint64_t>{0, 99});
    const auto next = machine.empty<std::uint64_t>("next", 64);
    machine.run(push, {.block = {64, 1, 1}}, head, next, std::uint64_t{}, 0);
    const auto links = machine.get<std::uint64_t>(next, 64);
    auto [count, at] = [&] {
        const auto words = machine.get<std::uint64_t>(head, 2);
        return std::pair(words[0], words[1]);
    }();
    CHECK(count == 64);
    std::vector<bool> seen(64);
    for (; at != 99; at = links[at]) {
        REQUIRE(at < 64);
        REQUIRE_FALSE(seen[at]);
        seen[at] = true;
        --count;
    }
    CHECK(count == 0);

    const std::string exchange = kernel(R"(
    .reg .b128 %q<4>;
    .shared .align 16 .b64 cell[2];
    mov.b128 %q0, {1, 2};
    st.shared.b128 [cell], %q0;
    mov.b128 %q1, {3, 4};
    atom.shared.exch.b128 %q2, [cell], %q1;
    atom.shared.exch.b128 _, [cell], %q1;
    ld.shared.b128 %q3, [cell];
    ld.param.u64 %d1, [p0];
    st.global.b128 [%d1], %q2;
    st.global.b128 [%d1+16], %q3;
    ret;)");
    const auto out = machine.empty<std::uint64_t>("out", 4);
    machine.run(exchange, {}, out, std::uint64_t{}, std::uint64_t{}, 0);
    CHECK(machine.get<std::uint64_t>(out, 4) == std::vector<std::uint64_t>{1, 2, 3, 4});
    CHECK_THAT(machine.failure(kernel(".reg .b128 %q; ld.param.u64 %d1, [p0]; mov.b128 %q, {1, 2};"
                                      "atom.global.exch.b128 %q, [%d1+8], %q; ret;"),
                               {}, out, std::uint64_t{}, std::uint64_t{}, 0),
               contains("16 bytes"));
}

TEST_CASE("the barrier of a cluster of one block") {
    // Warps write, arrive, work for themselves, wait, and read what another warp wrote.
    const std::string text = kernel(R"(
    .shared .b32 cells[128];
    mov.u32 %r1, %tid.x;
    shl.b32 %r2, %r1, 2;
    mov.u32 %r3, cells;
    add.u32 %r3, %r3, %r2;
    st.shared.u32 [%r3], %r1;
    barrier.cluster.arrive.release.aligned;
    mul.lo.u32 %r4, %r1, 100;
    barrier.cluster.wait.acquire.aligned;
    xor.b32 %r5, %r2, 384;
    mov.u32 %r6, cells;
    add.u32 %r6, %r6, %r5;
    mapa.shared::cluster.u32 %r7, %r6, 0;
    ld.shared::cluster.u32 %r8, [%r7];
    getctarank.shared::cluster.u32 %r9, %r7;
    add.u32 %r8, %r8, %r4;
    add.u32 %r8, %r8, %r9;
    barrier.cluster.arrive;
    barrier.cluster.wait;
    ld.param.u64 %d1, [p0];
    mad.wide.u32 %d1, %r1, 4, %d1;
    st.global.u32 [%d1], %r8;
    ret;)");
    for (const std::uint64_t seed : {0, 1, 2, 3}) {
        Machine machine;
        machine.options.seed = seed;
        const auto out = machine.empty<std::uint32_t>("out", 128);
        machine.run(text, {.block = {128, 1, 1}}, out, std::uint64_t{}, std::uint64_t{}, 0);
        const auto result = machine.get<std::uint32_t>(out, 128);
        for (std::uint32_t i = 0; i < 128; ++i) CHECK(result[i] == (i ^ 96) + 100 * i);
    }
}

TEST_CASE("every thread waits exactly once at a cluster barrier for each arrival") {
    const auto failure = [](const std::string& body, unsigned threads = 64) {
        Machine machine;
        return machine.failure(kernel(body + "\n    ret;"), {.block = {threads, 1, 1}}, std::uint64_t{},
                               std::uint64_t{}, std::uint64_t{}, 0);
    };
    CHECK_THAT(failure("barrier.cluster.wait;"), contains("without having arrived"));
    CHECK_THAT(failure("barrier.cluster.arrive; barrier.cluster.arrive;"), contains("again without having waited"));
    // a warp that arrives and waits elsewhere does not hold up the others
    CHECK(failure("mov.u32 %r1, %tid.x; setp.lt.u32 %p1, %r1, 32; barrier.cluster.arrive; @%p1 bar.sync 1, 64;"
                  "barrier.cluster.wait; @!%p1 bar.sync 1, 64;") == "no failure");
    CHECK_THAT(failure("mov.u32 %r1, %tid.x; setp.lt.u32 %p1, %r1, 32; @%p1 bar.sync 1, 64;"
                       "barrier.cluster.arrive; barrier.cluster.wait; @!%p1 bar.sync 1, 64;"),
               contains("wait at the cluster's barrier"));
    // exited warps are no longer waited for
    CHECK(failure("mov.u32 %r1, %tid.x; setp.lt.u32 %p1, %r1, 32; @%p1 exit; barrier.cluster.arrive;"
                  "barrier.cluster.wait;") == "no failure");
    CHECK_THAT(failure("mov.u32 %r2, 0; mapa.shared::cluster.u32 %r1, %r2, 1;"),
               contains("a block that the cluster does not have"));
}

TEST_CASE("cache policies are accepted and ignored") {
    Machine machine;
    const auto out = machine.buffer("out", std::vector<std::uint32_t>{5});
    machine.run(kernel("ld.param.u64 %d1, [p0]; createpolicy.fractional.L2::evict_last.b64 %d2, 0f3F800000;"
                       "ld.global.L2::cache_hint.u32 %r1, [%d1], %d2; add.u32 %r1, %r1, 1;"
                       "createpolicy.range.global.L2::evict_last.L2::evict_first.b64 %d3, [%d1], 4, 4;"
                       "st.global.L2::cache_hint.u32 [%d1], %r1, %d3; ret;"),
                {}, out, std::uint64_t{}, std::uint64_t{}, 0);
    CHECK(machine.get<std::uint32_t>(out, 1) == std::vector<std::uint32_t>{6});
}

TEST_CASE("istypep recognises the module's references") {
    Machine machine;
    const auto out = machine.empty<std::uint32_t>("out", 3);
    machine.run(
        kernel("mov.u64 %d1, image; istypep.texref %p1, %d1; istypep.surfref %p2, %d1; ld.param.u64 %d2, [p0];"
               "istypep.texref %p3, %d2; selp.u32 %r1, 1, 0, %p1; selp.u32 %r2, 1, 0, %p2; selp.u32 %r3, 1, 0, %p3;"
               "st.global.u32 [%d2], %r1; st.global.u32 [%d2+4], %r2; st.global.u32 [%d2+8], %r3; ret;",
               ".global .texref image;\n.global .surfref target;\n"),
        {}, out, std::uint64_t{}, std::uint64_t{}, 0);
    CHECK(machine.get<std::uint32_t>(out, 3) == std::vector<std::uint32_t>{1, 0, 0});
}

TEST_CASE("ld.mmio and st.mmio") {
    Machine machine;
    const auto out = machine.buffer("out", std::vector<std::uint32_t>{5});
    machine.run(kernel("ld.param.u64 %d1, [p0]; ld.mmio.relaxed.sys.global.u32 %r1, [%d1]; add.u32 %r1, %r1, 2;"
                       "st.mmio.relaxed.sys.global.u32 [%d1], %r1; ret;"),
                {}, out, std::uint64_t{}, std::uint64_t{}, 0);
    CHECK(machine.get<std::uint32_t>(out, 1) == std::vector<std::uint32_t>{7});
}

namespace {

constexpr const char* heap = R"(
.extern .func (.param .b64 result) malloc (.param .b64 bytes);
.extern .func free (.param .b64 address);
)";

std::string allocate(const std::string& bytes, const std::string& to) {
    return "{ .param .b64 a; .param .b64 r; st.param.b64 [a], " + bytes + "; call.uni (r), malloc, (a); ld.param.b64 " +
           to + ", [r]; }\n";
}
std::string release(const std::string& address) {
    return "{ .param .b64 a; st.param.b64 [a], " + address + "; call.uni free, (a); }\n";
}

}  // namespace

TEST_CASE("malloc gives each thread separate memory, which persists across launches") {
    const std::string make =
        kernel("mov.u32 %r1, %tid.x; ld.param.u64 %d1, [p0]; mad.wide.u32 %d1, %r1, 8, %d1;" + allocate("16", "%d2") +
                   "cvt.u64.u32 %d3, %r1; st.u64 [%d2+8], %d3; st.global.u64 [%d1], %d2; ret;",
               heap);
    const std::string use = kernel(
        "mov.u32 %r1, %tid.x; ld.param.u64 %d1, [p0]; mad.wide.u32 %d1, %r1, 8, %d1;"
        "ld.global.u64 %d2, [%d1]; ld.u64 %d3, [%d2+8];" +
            release("%d2") + "st.global.u64 [%d1], %d3; ret;",
        heap);
    Machine machine;
    const auto at = machine.empty<std::uint64_t>("at", 64);
    machine.run(make, {.block = {64, 1, 1}}, at, std::uint64_t{}, std::uint64_t{}, 0);
    machine.run(use, {.block = {64, 1, 1}}, at, std::uint64_t{}, std::uint64_t{}, 0);
    const auto values = machine.get<std::uint64_t>(at, 64);
    for (std::uint64_t i = 0; i < 64; ++i) CHECK(values[i] == i);
}

TEST_CASE("the heap is bounded, and its misuse is found") {
    const auto failure = [](const std::string& body) {
        Machine machine;
        return machine.failure(kernel(body + "ret;", heap), {}, std::uint64_t{}, std::uint64_t{}, std::uint64_t{}, 0);
    };
    CHECK(failure(allocate("8388608", "%d1") + "setp.eq.u64 %p1, %d1, 0; @%p1 trap;" + allocate("1", "%d2") +
                  "setp.ne.u64 %p1, %d2, 0; @%p1 trap;" + release("%d1") + allocate("1", "%d2") +
                  "setp.eq.u64 %p1, %d2, 0; @%p1 trap;" + release("0")) == "no failure");
    CHECK_THAT(failure(allocate("16", "%d1") + "ld.u64 %d2, [%d1+16];"), contains("16 bytes") && contains("malloc"));
    CHECK_THAT(failure(allocate("16", "%d1") + release("%d1") + "ld.u64 %d2, [%d1];"), contains("malloc"));
    CHECK_THAT(failure(allocate("16", "%d1") + release("%d1") + release("%d1")),
               contains("that has already been freed"));
    CHECK_THAT(failure(allocate("16", "%d1") + "add.u64 %d1, %d1, 8;" + release("%d1")),
               contains("an address that malloc did not return"));
}

TEST_CASE("the condition of a graph is set as a word is stored") {
    const auto set = [](const std::string& handle, const std::string& value) {
        return kernel(
            "mov.u32 %r1, %tid.x; ld.param.u64 %d1, [p0];\n{ .param .b64 h; .param .b32 v; st.param.b64 [h], " +
                handle + "; st.param.b32 [v], " + value + "; call.uni cudaGraphSetConditional, (h, v); }\nret;",
            ".extern .func cudaGraphSetConditional(.param .b64 h, .param .b32 v);\n");
    };
    Machine machine;
    const auto at = machine.buffer<std::uint32_t>("condition", {1, 2});
    machine.run(set("%d1", "7"), {}, at, std::uint64_t{}, std::uint64_t{}, 0);
    CHECK(machine.get<std::uint32_t>(at, 2) == std::vector<std::uint32_t>{7, 2});
    CHECK_THAT(machine.failure(set("16", "1"), {}, at, std::uint64_t{}, std::uint64_t{}, 0), contains("null"));
}

TEST_CASE("asynchronous instructions are rejected by name") {
    const auto refusal = [](const std::string& instruction) {
        Machine machine;
        return machine.failure(kernel(instruction + " ret;"), {}, std::uint64_t{}, std::uint64_t{}, std::uint64_t{}, 0);
    };
    for (const std::string instruction :
         {"cp.async.bulk.global.shared::cta.bulk_group.cp_mask [%d1], [%r1], 16, %h1;",
          "wgmma.mma_async.sp.sync.aligned.m64n8k16.f32.tf32.tf32 {%f1, %f2, %f3, %f4}, %d1, %d2, %r1, 0, %p1, 1, 1;",
          "ldmatrix.sync.aligned.m16n16.x1.trans.shared.b8 {%r1, %r2}, [%r2];", "tcgen05.wait::ld.sync.aligned;",
          "st.async.release.gpu.global.u32 [%d1], %r2;", "st.bulk [%d1], 64, 0;",
          "suld.b.1d.b32.trap %r1, [%d1, {%r2}];", "multimem.red.global.add.u32 [%d1], %r1;"}) {
        INFO(instruction);
        CHECK_THAT(refusal(instruction), contains("the emulator cannot run this instruction"));
    }
}
