// SPDX-License-Identifier: Apache-2.0
// What is found about products by a warpgroup: where they need a fence, a wait, all four warps, and right descriptors
// (PTX ISA, "Asynchronous Warpgroup Level Matrix Instructions").
#include <algorithm>

#include "tests/unit/emulator/tensor/warpgroup.hpp"

using namespace ikat::tests::warpgroups;

namespace ikat::tests::warpgroup_faults {

namespace {

constexpr std::uint32_t seeds[] = {0, 1, 2, 3, 4, 5, 6, 7};

/// The findings with all seeds: the code of each, and the first message.
struct Findings {
    std::string message;
    std::vector<std::string> codes;
};
Findings findings(const std::string& body, std::uint32_t threads, const std::string& scope) {
    Findings found;
    for (const std::uint32_t seed : seeds) {
        Machine machine;
        machine.options.seed = seed;
        const auto x = machine.buffer("x", std::vector<float>(4096, 1.0f)), y = machine.empty<float>("y", 4096),
                   tile = machine.buffer("tile", std::vector<std::uint32_t>(16384 / 4, 0x3c003c00));
        const std::string said = machine.failure(group_kernel(16384, body, scope),
                                                 {.block = {threads, 1, 1}, .dynamic_shared_bytes = 16384}, x, y, tile);
        found.codes.push_back(said == "no failure" ? said : machine.code);
        if (seed == 0) found.message = said;
    }
    return found;
}
/// The finding with each seed, which has the same code.
std::string finding(const std::string& body, std::uint32_t threads = 128, const std::string& scope = "") {
    const Findings found = findings(body, threads, scope);
    for (const std::string& code : found.codes) CHECK(code == found.codes[0]);
    return found.codes[0] + ": " + found.message;
}
/// Whether it is found in some order of the warps.
bool is_found(const std::string& code, const std::string& body) {
    const Findings found = findings(body, 128, "");
    return std::ranges::find(found.codes, code) != found.codes.end();
}
const std::string fine = "no failure: no failure";

/// a, 64 x 16 of f16, at the beginning of the tile, b, 16 x 8, at byte 8192: all of it ones.
constexpr std::uint64_t fields = 1ull << 62 | 64ull << 32 | 1ull << 16;
const std::string begin = make_descriptor(10, fields, 0) + make_descriptor(11, fields, 8192) +
                          "mov.f32 %f0, 0f00000000; mov.f32 %f1, %f0; mov.f32 %f2, %f0; mov.f32 %f3, %f0;\n"
                          "shr.u32 %r10, %r1, 5; setp.eq.u32 %p2, %r10, 0; setp.eq.u32 %p3, %r1, 0;\n";
const std::string product =
    "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f0, %f1, %f2, %f3}, %d10, %d11, 1, 1, 1, 0, 0;\n";
const std::string of_registers =
                      "mov.b32 %r20, 0x3c003c00; mov.b32 %r21, %r20; mov.b32 %r22, %r20; mov.b32 %r23, %r20;\n",
                  product_of_registers =
                      "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f0, %f1, %f2, %f3}, "
                      "{%r20, %r21, %r22, %r23}, %d11, 1, 1, 1, 0;\n";
const std::string store = "st.global.f32 [%d2], %f0;\n";
const std::string whole = fence + product + commit + wait;

}  // namespace

TEST_CASE("products in groups") {
    CHECK(finding(begin + whole + store) == fine);
    CHECK(finding(begin + fence + product + product + commit + product + commit + wait + store) == fine);
    CHECK(finding(begin + of_registers + fence + product_of_registers + product_of_registers + commit + wait + store) ==
          fine);
    CHECK(finding(begin + whole + "add.f32 %f0, %f0, %f1;\n" + whole + store) == fine);
    // the registers of a wait are ready, whatever else is in flight
    const std::string other =
        "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f4, %f5, %f6, %f7}, %d10, %d11, 0, "
        "1, 1, 0, 0;\n";
    CHECK(finding(begin + fence + product + commit + other + commit + "wgmma.wait_group.sync.aligned 1;\n" + store +
                  wait + "st.global.f32 [%d2], %f4;") == fine);
    CHECK_THAT(
        finding(begin + fence + product + commit + other + commit + "wgmma.wait_group.sync.aligned 2;\n" + store),
        contains("product-not-awaited: "));
    CHECK_THAT(finding(begin + fence + product + commit + other + commit + "wgmma.wait_group.sync.aligned 1;\n" +
                       "st.global.f32 [%d2], %f4;"),
               contains("product-not-awaited: "));
    // an empty group is one
    CHECK(finding(begin + fence + product + commit + commit + "wgmma.wait_group.sync.aligned 1;\n" + store) == fine);
    // two warpgroups, and one that does nothing
    CHECK(finding(begin + whole + store, 256) == fine);
    CHECK(finding(begin + "setp.ge.u32 %p4, %r1, 128; @%p4 bra $end;\n" + whole + store, 192) == fine);
}

TEST_CASE("a product needs a fence") {
    CHECK_THAT(finding(begin + product + commit + wait),
               contains("product-not-fenced: ") && contains("the first product of a warp"));
    CHECK_THAT(finding(fence + begin + product + commit + wait), contains("product-not-fenced: ") &&
                                                                     contains("has used since the last wgmma.fence") &&
                                                                     contains("that instruction: mov.f32 %f3, %f0"));
    CHECK_THAT(finding(begin + whole + store + product + commit + wait), contains("product-not-fenced: "));
    CHECK_THAT(finding(begin + fence + of_registers + product_of_registers + commit + wait),
               contains("product-not-fenced: ") && contains("mov.b32 %r23, %r20"));
    CHECK_THAT(
        finding(begin + whole +
                "wgmma.mma_async.sync.aligned.m64n8k8.f32.tf32.tf32 {%f0, %f1, %f2, %f3}, %d10, %d11, 1, 1, 1;\n" +
                commit + wait),
        contains("product-not-fenced: ") && contains("another shape"));
    CHECK(finding(begin + whole + product + commit + wait + store) == fine);
}

TEST_CASE("registers of a product in flight") {
    const std::string started = begin + of_registers + fence + product_of_registers + commit;
    CHECK(finding(started + wait + store) == fine);
    CHECK_THAT(finding(started + store + wait),
               contains("product-not-awaited: kernel.ptx:") && contains("st.global.f32 [%d2], %f0;") &&
                   contains("a product that writes it is in flight") && contains("the product: wgmma.mma_async") &&
                   contains("thread (0,0,0)"));
    for (const std::string use :
         {"mov.f32 %f2, 0f00000000;", "ld.global.f32 %f3, [%d1];", "ld.global.v2.f32 {%f8, %f1}, [%d3];",
          "@%p3 add.f32 %f9, %f0, %f0;", "mov.b32 %r30, %f1;", "setp.eq.f32 %p5, %f2, %f2;",
          "shfl.sync.bfly.b32 %r30, %f0, 1, 31, -1;", "selp.f32 %f3, %f9, %f9, %p3;"})
        CHECK_THAT(
            finding(started + "mov.u64 %d3, %d2; and.b64 %d3, %d3, -16; mov.f32 %f9, 0f00000000;\n" + use + wait),
            contains("product-not-awaited: ") && contains("writes it"));
    for (const std::string use : {"mov.b32 %r20, 0;", "add.u32 %r30, %r21, 1;", "@%p3 mov.b32 %r22, 1;"})
        CHECK_THAT(finding(started + use + wait),
                   contains("product-not-awaited: ") && contains("reads it as a part of a"));
    // without a commit there is nothing to wait for
    CHECK_THAT(finding(begin + fence + product + wait + store), contains("product-not-awaited: "));
    // a warp waits for itself: neither another's wait nor meeting it afterwards is enough
    for (const std::string waits : {"lt", "eq", "gt", "ne"})
        for (const std::string then : {"", "bar.sync 0;\n"})
            CHECK_THAT(finding(started + "setp." + waits + ".u32 %p6, %r10, 2;\n@!%p6 bra $read;\n" + wait +
                               "$read:\n" + then + store),
                       contains("product-not-awaited: ") && contains("writes it"));
    CHECK(finding(started + "@!%p2 bra $others;\n" + wait + "$others: bar.sync 0;\n@%p2 bra $read;\n" + wait +
                  "$read:\n" + store) == fine);
    // another product
    for (const std::string other :
         {"m64n8k16.f32.f16.f16 {%f1, %f0, %f2, %f3}, %d10, %d11, 1, 1, 1, 0, 0;",
          "m64n16k16.f32.f16.f16 {%f0, %f1, %f2, %f3, %f4, %f5, %f6, %f7}, %d10, %d11, 1, 1, 1, 0, 0;",
          "m64n8k16.f32.f16.f16 {%f4, %f5, %f6, %f7}, {%r20, %r21, %r22, %f0}, %d11, 1, 1, 1, 0;",
          "m64n8k16.f16.f16.f16 {%r20, %r24}, %d10, %d11, 1, 1, 1, 0, 0;"})
        CHECK_THAT(finding(started + fence + "wgmma.mma_async.sync.aligned." + other + commit + wait),
                   contains("product-not-awaited: ") && contains("in another way"));
}

TEST_CASE("registers keep their values while others come and go") {
    // d is not used any more, and its product is still in flight where %f20 to %f23 get their values
    const std::string late = "mov.f32 %f20, 0f3f800000; mov.f32 %f21, 0f3f800000; mov.f32 %f22, 0f3f800000;\n";
    Machine machine;
    const auto x = machine.buffer("x", std::vector<float>(4096, 1.0f)), y = machine.empty<float>("y", 4096),
               tile = machine.buffer("tile", std::vector<std::uint32_t>(16384 / 4, 0x3c003c00));
    machine.run(
        group_kernel(16384, begin + fence + product + commit + late + wait +
                                "add.f32 %f20, %f20, %f21; add.f32 %f20, %f20, %f22; st.global.f32 [%d2], %f20;"),
        {.block = {128, 1, 1}, .dynamic_shared_bytes = 16384}, x, y, tile);
    CHECK(machine.get<float>(y, 128) == std::vector<float>(128, 3));
}

TEST_CASE("other kernels of a module are what they would be alone") {
    const std::string other =
        ".visible .entry other(.param .u64 p0) {\n.reg .f32 %f<9>; .reg .b64 %d<2>;\n"
        "ld.param.u64 %d1, [p0];\n"
        "ld.global.f32 %f0, [%d1]; st.global.f32 [%d1+16], %f0;\n"
        "ld.global.f32 %f1, [%d1]; st.global.f32 [%d1+20], %f1;\n"
        "ld.global.f32 %f2, [%d1]; st.global.f32 [%d1+24], %f2; ret;\n}\n";
    const std::string with = group_kernel(16384, begin + whole + store) + other;
    const auto registers_of = [](const std::string& text) {
        emulator::Memory memory;
        return emulator::Program(ptx::parse(text, "k.ptx"), memory).entry("other").registers;
    };
    CHECK(registers_of(with) == registers_of(".version 8.4\n.target sm_90a\n.address_size 64\n" + other));
}

TEST_CASE("shared memory that a product in flight reads") {
    const std::string change = "@%p3 st.shared.b32 [%r2+16], %r1;\n";
    CHECK(finding(begin + whole + change + store) == fine);
    CHECK_THAT(finding(begin + fence + product + commit + change + wait),
               contains("product-source-changed: ") && contains("at offset 16 of 'tile' in shared memory") &&
                   contains("the product: wgmma.mma_async"));
    CHECK_THAT(finding(begin + fence + product + commit + "@%p3 st.shared.b32 [%r2+8192], %r1;\n" + wait),
               contains("product-source-changed: ") && contains("offset 8192"));
    // by a warp that has not come to the product yet
    CHECK_THAT(finding(begin + fence + "@%p2 bra $a; bar.sync 1, 128;\n$a:" + product + commit + "@!%p2 bra $b;\n" +
                       change + "bar.sync 1, 128;\n$b:" + wait),
               contains("product-source-changed: "));
    // found only where the wait of another warp does not come before the change
    CHECK(is_found("product-source-changed", begin + fence + product + commit + product + commit +
                                                 "wgmma.wait_group.sync.aligned 1;\n" + change + wait));
    // where nothing is read
    CHECK(finding(begin + fence + product + commit + "@%p3 st.shared.b32 [%r2+9300], %r1;\n" + wait) == fine);
    // a wait of one warp is enough
    CHECK(finding(begin + fence + product + commit + wait + "@!%p2 bra $b;\n" + change + "$b: bar.sync 0;" + store) ==
          fine);
    // a copy to it, which has not arrived; and one that has not when the product starts
    const std::string copy = "cp.async.ca.shared.global [%r2+16], [%d1], 4; cp.async.commit_group;\n",
                      awaited = "cp.async.wait_group 0;\n";
    CHECK_THAT(finding(begin + fence + product + commit + "@%p3 " + copy + wait + awaited),
               contains("product-source-changed: "));
    CHECK_THAT(finding(begin + "@%p3 " + copy + "bar.sync 0;" + fence + product + commit + wait + awaited),
               contains("copy-not-awaited: "));
}

TEST_CASE("the four warps of a warpgroup") {
    CHECK_THAT(finding(begin + whole, 96),
               contains("partial-warpgroup: ") && contains("warps 0 to 3, of which warp 3 does not have 32 threads"));
    CHECK_THAT(finding(begin + whole, 160), contains("partial-warpgroup: ") && contains("warps 4 to 7"));
    CHECK_THAT(finding(begin + "@%p2 bra $end;\n" + whole), contains("partial-warpgroup: "));
    CHECK_THAT(finding(begin + "@!%p2 bra $end;\n" + whole), contains("partial-warpgroup: "));
    CHECK_THAT(finding(begin + "@%p3 bra $end;\n" + whole), contains("partial-warp: "));
    CHECK_THAT(finding(begin + "@%p2 bra $a;\n" + whole + "$a: bar.sync 0;"),
               contains("divergent-warpgroup: ") && contains("wait for the other warps of the warpgroup"));
    CHECK_THAT(finding(begin + "@%p3 bra $a;\n" + whole + "$a: bar.sync 0;"), contains("divergent-barrier: "));
    CHECK_THAT(finding(begin + fence + "@%p2 bra $a;\n" + product + "bra $b;\n$a: " + product + "$b: " + commit + wait),
               contains("divergent-warpgroup: ") && contains("comes to another product") && contains("theirs: wgmma"));
    CHECK_THAT(finding(begin + fence + product + commit + "@%p3 bra $end;\n" + wait), contains("partial-warp: "));
    CHECK_THAT(finding(begin + fence + product + commit + "@%p3 bra $a;\n" + wait + "$a: bar.warp.sync -1;\n" + wait),
               contains("divergent-barrier: "));
    CHECK_THAT(
        finding(begin + "@%p3 add.u64 %d11, %d11, 2;\n" + whole),
        contains("warpgroup-disagrees: ") && contains("the descriptor of b differs between the threads of a warp"));
    CHECK_THAT(finding(begin + "@%p2 add.u64 %d10, %d10, 2;\n" + whole),
               contains("warpgroup-disagrees: ") && contains("the descriptor of a differs between the warps"));
    std::string scaled = product;
    scaled.replace(scaled.find("%d11, 1"), 7, "%d11, %p3");
    CHECK_THAT(finding(begin + fence + scaled + commit + wait),
               contains("warpgroup-disagrees: ") && contains("scale-d"));
    scaled.replace(scaled.find("%p3"), 3, "%p2");
    CHECK_THAT(finding(begin + fence + scaled + commit + wait),
               contains("warpgroup-disagrees: ") && contains("scale-d differs between the warps"));
    CHECK_THAT(finding(begin + fence + product + commit), contains("product-at-exit: ") &&
                                                              contains("wgmma.mma_async") &&
                                                              contains("a warp ends while its product is in flight"));
}

TEST_CASE("descriptors") {
    const auto with = [](std::uint64_t more, int start_of_a = 0, int start_of_b = 8192) {
        return finding(begin + make_descriptor(10, fields | more, start_of_a) +
                       make_descriptor(11, fields, start_of_b) + whole);
    };
    CHECK(with(0) == fine);
    CHECK(with(0, 96) == fine);
    CHECK(with(0, 8192, 0) == fine);
    CHECK_THAT(with(0, 9216), contains("descriptor-bounds: ") && contains("the descriptor of a, 0x") &&
                                  contains("at 0x4400 of shared memory"));
    CHECK_THAT(with(0, 0, 16384), contains("descriptor-bounds: ") && contains("the descriptor of b"));
    CHECK_THAT(with(1024ull << 32), contains("descriptor-bounds: "));
    CHECK(with(0, 128) == fine);
    CHECK(with(0, 0, 8192 + 128) == fine);
    CHECK_THAT(with(0, 112), contains("descriptor-alignment: ") && contains("starts 112 bytes into its rows of 128"));
    const std::uint64_t of_64 = (fields & ~(3ull << 62)) | 2ull << 62;
    CHECK_THAT(finding(begin + make_descriptor(10, of_64, 64) + make_descriptor(11, fields, 8192) + whole),
               contains("descriptor-alignment: ") && contains("in rows that do not begin at a multiple of 128"));
    CHECK_THAT(with(2ull << 49), contains("descriptor-base-offset: ") && contains("has base offset 2"));
    for (const int bit : {14, 15, 30, 31, 46, 48, 52, 61})
        CHECK_THAT(with(1ull << bit), contains("descriptor-reserved: "));
    // what is not in one variable, next to `tile`
    CHECK_THAT(finding(begin + make_descriptor(11, fields, 16384) + whole + "mov.u32 %r30, next;", 128,
                       ".shared .align 1024 .b8 next[512];"),
               contains("descriptor-bounds: ") && contains("are not in one variable"));
}

TEST_CASE("immediates of products") {
    const auto with = [](const std::string& immediates) {
        return finding(begin + fence +
                       "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f0, %f1, %f2, %f3}, %d10, %d11, " +
                       immediates + ";\n" + commit + wait);
    };
    CHECK(with("1, -1, -1, 0, 0") == fine);
    for (const char* wrong : {"1, 0, 1, 0, 0", "0, 1, 2, 0, 0", "1, 1, 1, 2, 0", "1, 1, 1, 0, -1", "2, 1, 1, 0, 0"})
        CHECK_THAT(with(wrong), contains("wrong-immediate: kernel.ptx:") && contains("must be "));
    CHECK_THAT(finding(begin + fence + product + commit + "wgmma.wait_group.sync.aligned -1;"),
               contains("wrong-immediate: "));
}

TEST_CASE("what ordinary instructions have written needs a fence before a product reads it") {
    const std::string meet = "bar.sync 0;\n", visible = "fence.proxy.async.shared::cta;\n";
    for (const std::string& write :
         {std::string("@%p3 st.shared.b32 [%r2+16], %r1;\n"),
          std::string("@%p3 st.shared.v4.b32 [%r2+8192], {%r1, %r1, %r1, %r1};\n"),
          std::string("@%p3 st.shared.u8 [%r2+1023], 1;\n"), std::string("@%p3 red.shared.add.u32 [%r2], 1;\n"),
          std::string("cvt.u64.u32 %d20, %r2; cvta.shared.u64 %d20, %d20; @%p3 st.b64 [%d20+8], %d20;\n"),
          std::string("@%p3 cp.async.ca.shared.global [%r2+16], [%d1], 4; cp.async.wait_all;\n"),
          std::string("and.b32 %r30, %r1, 7; shl.b32 %r30, %r30, 4; add.u32 %r30, %r30, %r2; @!%p2 bra $w;\n"
                      "stmatrix.sync.aligned.m8n8.x1.shared.b16 [%r30], {%r1};\n$w:\n")}) {
        const std::string code = write.find("cp.async") == write.npos ? "product-not-visible" : "copy-not-visible";
        CHECK_THAT(finding(begin + write + meet + whole),
                   contains(code + ": ") && contains("a product reads 4 bytes at offset ") &&
                       contains("which thread (") && contains("has written without fence.proxy.async") &&
                       contains("note: the write, by block (0,0,0) "));
        CHECK(finding(begin + write + visible + meet + whole) == fine);
        if (!write.starts_with("and"))  // by the thread that has written
            CHECK(finding(begin + write + "@%p3 fence.proxy.async;\n" + meet + whole) == fine);
        CHECK(finding(begin + write + meet + visible + whole) == fine);  // by the warps that read
        // a fence of the warp that reads, before the write, but later in some orders of the warps
        CHECK(is_found(code, begin + visible + write + meet + whole));
        CHECK_THAT(finding(begin + write + "fence.proxy.async.global; fence.acq_rel.cta;\n" + meet + whole),
                   contains(code + ": "));
    }
    // of another thread, which has met the one that has written, before it meets those that read; or has not
    const std::string fifth = "setp.ge.u32 %p5, %r1, 128; @%p5 " + visible, rest = "@%p5 bra $end;\n" + whole,
                      write = "@%p3 st.shared.b32 [%r2+16], %r1;\n";
    CHECK(finding(begin + write + meet + fifth + meet + rest, 160) == fine);
    CHECK_THAT(finding(begin + write + fifth + meet + rest, 160), contains("product-not-visible: "));
    CHECK_THAT(finding(begin + write + meet + fifth + "bar.warp.sync -1;" + rest, 160),
               contains("product-not-visible: "));
    // what is not read does not matter
    CHECK(finding(begin + "@%p3 st.shared.b32 [%r2+12000], %r1;\n" + meet + whole) == fine);
    CHECK_THAT(finding(begin + whole + "@%p3 st.shared.b32 [%r2+16], %r1;\n" + meet + whole),
               contains("product-not-visible: "));
    // a copy in bulk is no ordinary write
    CHECK(
        finding(begin +
                    "@%p3 st.shared.b32 [%r2+16], %r1; bar.sync 0; mov.u32 %r30, ready; @!%p3 bra $w;\n"
                    "mbarrier.init.shared.b64 [%r30], 1; fence.proxy.async;\n"
                    "mbarrier.arrive.expect_tx.shared.b64 _, [%r30], 16;\n"
                    "ld.param.u64 %d20, [p0];\n"
                    "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r2+16], [%d20], 16, [%r30];\n"
                    "$w: bar.sync 0;\n$l: mbarrier.test_wait.parity.shared.b64 %p5, [%r30], 0; @!%p5 bra $l;\n" +
                    whole,
                128, ".shared .align 8 .b64 ready;") == fine);
}

TEST_CASE("what nothing has written, in a product") {
    const std::string scope = ".shared .align 1024 .b8 hole[16384];\n", in_hole = "mov.u32 %r2, hole;\n";
    const auto hole = [&](int i, int start) {
        return "mov.u32 %r9, %r2; mov.u32 %r2, hole;\n" + make_descriptor(i, fields, start) + "mov.u32 %r2, %r9;\n";
    };
    CHECK(finding(begin + hole(10, 0) + whole, 128, scope) == fine);
    CHECK_THAT(finding(begin + hole(10, 0) + whole + store, 128, scope),
               contains("undefined-store: ") && contains("st.global.f32 [%d2], %f0;"));
    CHECK_THAT(finding(begin + hole(11, 0) + whole + store, 128, scope), contains("undefined-store: "));
    // the rows of two warps: 8 rows are 1024 bytes
    const std::string half =
        "mov.u32 %r9, hole; shl.b32 %r11, %r1, 5; add.u32 %r9, %r9, %r11;\n"
        "st.shared.v4.b32 [%r9], {%r1, %r1, %r1, %r1}; st.shared.v4.b32 [%r9+16], {%r1, %r1, %r1, "
        "%r1};\n fence.proxy.async; bar.sync 0; setp.lt.u32 %p4, %r1, 64; setp.lt.u32 %p5, %r1, 32;\n";
    CHECK(finding(begin + half + hole(10, 0) + whole + "@%p5 " + store, 128, scope) == fine);
    CHECK_THAT(finding(begin + half + hole(10, 0) + whole + "@!%p4 " + store, 128, scope),
               contains("undefined-store: "));
    // of b, with columns of 128 bytes: the first 4 of 8, so of a thread's quad the first half
    const std::string columns =
        "setp.lt.u32 %p4, %r1, 32; mov.u32 %r9, hole; shl.b32 %r11, %r1, 4;\n"
        "add.u32 %r9, %r9, %r11; @%p4 st.shared.v4.b32 [%r9], {%r1, %r1, %r1, %r1};\n"
        "fence.proxy.async; bar.sync 0; and.b32 %r11, %r1, 3; setp.lt.u32 %p5, %r11, 2;\n";
    CHECK(finding(begin + columns + hole(11, 0) + whole + "@%p5 " + store, 128, scope) == fine);
    CHECK_THAT(finding(begin + columns + hole(11, 0) + whole + "@!%p5 " + store, 128, scope),
               contains("undefined-store: "));
    // registers
    CHECK_THAT(
        finding(begin + "ld.global.f32 %f1, [%d2];\n" + whole + "add.f32 %f1, %f1, %f1; st.global.f32 [%d2], %f1;"),
        contains("undefined-store: "));
    CHECK(finding(begin + "ld.global.f32 %f1, [%d2];\n" + whole + store) == fine);
    const std::string unadded =
        "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f0, %f1, %f2, %f3}, %d10, %d11, 0, 1, 1, 0, 0;\n";
    CHECK(finding(begin + "ld.global.f32 %f0, [%d2];\n" + fence + unadded + commit + wait + store) == fine);
    const std::string rows = begin + of_registers + "ld.global.b32 %r23, [%d2];\n" + fence + product_of_registers +
                             commit + wait;  // the rows from 8 on
    CHECK(finding(rows + store) == fine);
    CHECK_THAT(finding(rows + "st.global.f32 [%d2], %f2;"), contains("undefined-store: "));
    CHECK_THAT(finding(begin + "ld.global.b64 %d10, [%d2];\n" + whole),
               contains("undefined-address: ") || contains("misaligned"));
    CHECK_THAT(finding(begin + "cvt.u64.u32 %d20, %r4; add.u64 %d20, %d20, %d2; ld.global.b64 %d10, [%d20];\n" + whole),
               contains("undefined-address: "));
}

}  // namespace ikat::tests::warpgroup_faults
