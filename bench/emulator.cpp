// SPDX-License-Identifier: Apache-2.0
// The emulator's speed in 1e9 lane instructions per second with all checks on: per kind of instruction on one host
// thread, and for a tiled GEMM on one and on two. Checks may be set as in `ikat run --check`.
//
//     build/release/bench/bench_emulator [filter] [checks]
#include <time.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <string>

#include "runtime/emulator/host/program.hpp"

using namespace ikat;

namespace {

struct Case {
    std::string name, scope, setup, body;  // the body runs in a loop
    unsigned threads = 1;
    double products = 0;  // multiply-accumulates by a warp in the body
    const char* target = "sm_80";
};

std::string repeat(unsigned count, auto&& text) {
    std::string all;
    for (unsigned i = 0; i < count; ++i) all += text(i);
    return all;
}

std::string number(unsigned n) { return std::to_string(n); }

/// Registers: %r1 thread, %r2 its byte offset in a row of words, %d1 the buffer, %d2 its word there; others begin as 0.
std::string program(const Case& c) {
    const std::string zeros = repeat(128, [](unsigned i) {
        return "    mov.u32 %r" + number(i) + ", 0; mov.f32 %f" + number(i) + ", 0f00000000;\n";
    });
    return ".version 8.0\n.target " + std::string(c.target) +
           "\n.address_size 64\n.visible .entry k(.param .u64 p, .param .u32 n)\n{\n" + c.scope +
           R"(
    .reg .pred %p<8>; .reg .b32 %r<128>; .reg .b64 %d<64>; .reg .f32 %f<128>;
)" + zeros +
           R"(
    ld.param.u64 %d1, [p]; ld.param.u32 %r90, [n]; mov.u32 %r91, 0; mov.u32 %r1, %tid.x; shl.b32 %r2, %r1, 2;
    mad.wide.u32 %d2, %r1, 4, %d1;
)" + c.setup +
           "loop:\n" + c.body + R"(
    add.u32 %r91, %r91, 1;
    setp.lt.u32 %p1, %r91, %r90;
    @%p1 bra loop;
    ret;
})";
}

/// 64 x 64 tile by 256 threads, 4 x 4 each: a warp reads two different addresses of a, and contiguous ones of b.
Case tiled_gemm() {
    Case c{"tiled GEMM, 4x4 per thread", "    .shared .align 16 .b8 a[4096]; .shared .align 16 .b8 b[4096];\n", "", ""};
    c.setup = R"(
    st.shared.u32 [%r2], %r1; mov.u32 %r3, b; add.u32 %r4, %r3, %r2; st.shared.u32 [%r4], %r1;
    st.shared.u32 [%r2+1024], %r1; st.shared.u32 [%r2+2048], %r1; st.shared.u32 [%r2+3072], %r1;
    st.shared.u32 [%r4+1024], %r1; st.shared.u32 [%r4+2048], %r1; st.shared.u32 [%r4+3072], %r1;
    and.b32 %r5, %r1, 15; shl.b32 %r5, %r5, 4; add.u32 %r5, %r5, %r3; shr.u32 %r6, %r1, 4; shl.b32 %r6, %r6, 4;
    bar.sync 0;
)" + repeat(16, [](unsigned i) { return "    mov.f32 %f" + number(32 + i) + ", 0f00000000;\n"; });
    c.body = repeat(16, [](unsigned k) {
        std::string text = "    ld.shared.v4.f32 {%f0, %f1, %f2, %f3}, [%r6+" + number(256 * k) + "];\n" +
                           "    ld.shared.v4.f32 {%f4, %f5, %f6, %f7}, [%r5+" + number(256 * k) + "];\n";
        return text + repeat(16, [](unsigned i) {
                   const std::string d = "%f" + number(32 + i);
                   return "    fma.rn.f32 " + d + ", %f" + number(i / 4) + ", %f" + number(4 + i % 4) + ", " + d +
                          ";\n";
               });
    });
    c.body += "    bar.sync 0;\n";
    return c;
}

/// Four steps of k in tiles of 64 x 64 and columns x 64 numbers of 16 bits, which two warpgroups share.
Case product_by_warpgroup(unsigned columns, const std::string& types, const std::string& end) {
    Case c{"wgmma.m64n" + number(columns) + types,
           "    .shared .align 1024 .b8 tile[40960];\n",
           "",
           "",
           1,
           4 * 16.0 * columns * 16,
           "sm_90a"};
    c.setup = "    mov.u64 %d10, 0x4000004000010000; shl.b32 %r3, %r1, 2; mov.u32 %r4, 0x3c003c00;\n" +
              repeat(40, [](unsigned i) { return "    st.shared.b32 [%r3+" + number(1024 * i) + "], %r4;\n"; }) +
              "    fence.proxy.async.shared::cta; bar.sync 0;\n" +
              repeat(columns / 2, [](unsigned i) { return "    mov.f32 %f" + number(i) + ", 0f00000000;\n"; }) +
              repeat(4, [](unsigned i) {
                  return "    add.u64 %d" + number(20 + i) + ", %d10, " + number(2 * i) + "; add.u64 %d" +
                         number(30 + i) + ", %d10, " + number(512 + 2 * i) + ";\n";
              });
    const std::string sums =
        "{" + repeat(columns / 2, [](unsigned i) { return (i ? ", %f" : "%f") + number(i); }) + "}";
    c.body = "    wgmma.fence.sync.aligned;\n" +
             repeat(4,
                    [&](unsigned i) {
                        return "    wgmma.mma_async.sync.aligned.m64n" + number(columns) + types + " " + sums + ", %d" +
                               number(20 + i) + ", %d" + number(30 + i) + ", 1" + end + ";\n";
                    }) +
             "    wgmma.commit_group.sync.aligned;\n    wgmma.wait_group.sync.aligned 0;\n";
    return c;
}

std::vector<Case> cases() {
    std::vector<Case> all;
    const std::string tile = "    .shared .align 16 .b8 s[32768];\n";
    all.push_back({"fma.f32, 8 chains", "", "", repeat(32, [](unsigned i) {
                       const std::string f = "%f" + number(i % 8);
                       return "    fma.rn.f32 " + f + ", %f10, %f11, " + f + ";\n";
                   })});
    all.push_back({"add.f32", "", "", repeat(32, [](unsigned i) {
                       return "    add.f32 %f" + number(i % 8) + ", %f10, %f" + number(i % 8) + ";\n";
                   })});
    all.push_back({"max.f32", "", "", repeat(32, [](unsigned i) {
                       return "    max.f32 %f" + number(i % 8) + ", %f10, %f" + number(i % 8) + ";\n";
                   })});
    all.push_back({"integers: add, shl, and, mad", "", "", repeat(8, [](unsigned i) {
                       const std::string n = number(10 + i);
                       return "    add.u32 %r" + n + ", %r1, %r2;\n    shl.b32 %r" + n + ", %r" + n +
                              ", 2;\n    and.b32 %r" + n + ", %r" + n + ", %r1;\n    mad.lo.u32 %r" + n + ", %r" + n +
                              ", %r2, %r1;\n";
                   })});
    all.push_back({"addresses: mul.wide, add.s64", "", "", repeat(16, [](unsigned i) {
                       const std::string d = "%d" + number(10 + i);
                       return "    mul.wide.s32 " + d + ", %r1, 4;\n    add.s64 " + d + ", " + d + ", %d1;\n";
                   })});
    all.push_back({"setp and selp", "", "", repeat(16, [](unsigned i) {
                       return "    setp.lt.s32 %p2, %r1, %r2;\n    selp.b32 %r" + number(10 + i) + ", %r1, %r2, %p2;\n";
                   })});
    all.push_back({"guarded add", "", "    setp.lt.u32 %p2, %r1, 16;\n",
                   repeat(16, [](unsigned i) { return "    @%p2 add.u32 %r" + number(10 + i) + ", %r1, %r2;\n"; })});
    const std::string fill =
        "    shl.b32 %r3, %r1, 4;\n" +
        repeat(
            8,
            [](unsigned i) { return "    st.shared.v4.u32 [%r3+" + number(4096 * i) + "], {%r1, %r1, %r1, %r1};\n"; }) +
        "    bar.sync 0;\n";
    const auto loads = [&](const char* name, const std::string& setup, const std::string& form, unsigned step) {
        all.push_back({name, tile, fill + setup, repeat(16, [&](unsigned i) {
                           std::string text = form;
                           text.replace(text.find('@'), 1, number(i * step));
                           return "    " + text + "\n";
                       })});
    };
    loads("ld.shared contiguous", "", "ld.shared.f32 %f1, [%r2+@];", 1024);
    loads("ld.shared uniform", "    mov.u32 %r3, 64;\n", "ld.shared.f32 %f1, [%r3+@];", 4);
    loads("ld.shared two rows", "    and.b32 %r3, %r2, 63;\n", "ld.shared.f32 %f1, [%r3+@];", 4);
    loads("ld.shared strided", "    mul.lo.u32 %r3, %r1, 68;\n", "ld.shared.f32 %f1, [%r3+@];", 4);
    loads("ld.shared.v4 contiguous", "    shl.b32 %r3, %r1, 4;\n", "ld.shared.v4.f32 {%f1,%f2,%f3,%f4}, [%r3+@];",
          1024);
    loads("ld.shared.v4 uniform", "    mov.u32 %r3, 64;\n", "ld.shared.v4.f32 {%f1,%f2,%f3,%f4}, [%r3+@];", 1024);
    loads("ld.shared, half the lanes", "    and.b32 %r4, %r1, 1; setp.eq.u32 %p2, %r4, 0;\n",
          "@%p2 ld.shared.f32 %f1, [%r2+@];", 0);
    all.back().body.clear();
    for (unsigned i = 0; i < 16; ++i)
        all.back().body += "    @%p2 ld.shared.f32 %f1, [%r2+" + number(1024 * i) + "];\n";
    loads("st.shared contiguous", "", "st.shared.f32 [%r2+@], %f1;", 1024);
    loads("st.shared strided", "    mul.lo.u32 %r3, %r1, 68;\n", "st.shared.f32 [%r3+@], %f1;", 4);
    loads("ld.global contiguous", "", "ld.global.f32 %f1, [%d2+@];", 1024);
    loads("ld.global strided", "    mad.wide.u32 %d2, %r1, 68, %d1;\n", "ld.global.f32 %f1, [%d2+@];", 4);
    loads("st.global contiguous", "", "st.global.f32 [%d2+@], %f1;", 1024);
    all.push_back({"shfl.sync.bfly", "", "", repeat(16, [](unsigned i) {
                       return "    shfl.sync.bfly.b32 %r" + number(10 + i) + ", %r1, 1, 31, -1;\n";
                   })});
    all.push_back({"divergent loop of 8", "", "    and.b32 %r3, %r1, 7;\n", R"(
    mov.u32 %r4, 0;
inner:
    add.u32 %r5, %r5, %r4; add.u32 %r4, %r4, 1; setp.le.u32 %p2, %r4, %r3; @%p2 bra inner;
)"});
    const auto product = [&](const std::string& form, unsigned a, unsigned b, const char* c, double count) {
        const auto list = [](const char* prefix, unsigned first, unsigned n) {
            std::string text = "{";
            for (unsigned i = 0; i < n; ++i) text += (i ? ", " : "") + (prefix + number(first + i));
            return text + "}";
        };
        const std::string body = repeat(16, [&](unsigned i) {
            const std::string sums = list(c, 4 * (i % 4), 4);
            return "    mma.sync.aligned." + form + " " + sums + ", " + list("%r", 40, a) + ", " + list("%r", 50, b) +
                   ", " + sums + ";\n";
        });
        all.push_back({"mma." + form, "", "", body, 1, 16 * count});
    };
    product("m16n8k16.row.col.f32.f16.f16.f32", 4, 2, "%f", 2048);
    product("m16n8k16.row.col.f32.bf16.bf16.f32", 4, 2, "%f", 2048);
    product("m16n8k8.row.col.f32.tf32.tf32.f32", 4, 2, "%f", 1024);
    product("m16n8k32.row.col.f32.e4m3.e4m3.f32", 4, 2, "%f", 4096);
    product("m16n8k32.row.col.s32.s8.s8.s32", 4, 2, "%r", 4096);
    for (const unsigned columns : {64u, 256u}) {
        all.push_back(product_by_warpgroup(columns, "k16.f32.bf16.bf16", ", 1, 1, 0, 0"));
        all.push_back(product_by_warpgroup(columns, "k16.f32.f16.f16", ", 1, 1, 0, 0"));
    }
    all.push_back(tiled_gemm());
    all.push_back(tiled_gemm());
    all.back().name += ", 2 threads";
    all.back().threads = 2;
    return all;
}

/// CPU time for one thread, so that a busy machine does not matter; wall time for several.
double seconds(unsigned threads) {
    timespec time{};
    clock_gettime(threads == 1 ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC, &time);
    return double(time.tv_sec) + 1e-9 * double(time.tv_nsec);
}

/// Runs for about half a second, three times; prints the best.
void measure(const Case& c, const emulator::Checks& checks) {
    emulator::Memory memory;
    const std::uint64_t buffer = memory.allocate(1 << 20, "buffer");
    memory.write(buffer, std::vector<std::byte>(1 << 20));
    emulator::Program kernel(ptx::parse(program(c), "bench.ptx"), memory);
    emulator::Options options;
    options.threads = c.threads;
    options.checks = checks;
    if (const auto reads = kernel.entry("k").unassigned_reads) std::printf("%u unassigned registers\n", reads);
    struct {
        std::uint64_t buffer;
        std::uint32_t n;
    } parameters{buffer, 100};
    const emulator::Launch launch{.entry = "k",
                                  .grid = {8, 1, 1},
                                  .block = {256, 1, 1},
                                  .parameters = std::as_bytes(std::span(&parameters, 1)).first(12)};
    double best = 0, ns = 0, products = 0;
    for (int round = 0; round < 4; ++round) {
        const double begin = seconds(c.threads);
        const emulator::Statistics statistics = kernel.run(launch, options);
        const double time = seconds(c.threads) - begin;
        if (round == 0) {
            parameters.n = unsigned(std::clamp(100 * 0.3 / time, 100.0, 1e7));
            continue;
        }
        best = std::max(best, double(statistics.lane_instructions) / time);
        ns = time / double(statistics.warp_instructions) * 1e9;
        products = std::max(products, c.products * 64 * parameters.n / time);  // by 64 warps
    }
    std::printf("%-40s %7.2f G lane instructions/s  %7.2f ns per warp instruction", c.name.c_str(), best / 1e9, ns);
    if (c.products > 0) std::printf("  %6.2f G multiply-accumulates/s", products / 1e9);
    std::printf("\n");
    std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
    std::printf("instruction set: %.*s\n", int(emulator::instruction_set().size()), emulator::instruction_set().data());
    emulator::CheckSets sets;
    if (argc > 2) emulator::apply(sets, argv[2], "");
    for (const Case& c : cases())
        if (argc < 2 || c.name.find(argv[1]) != c.name.npos) measure(c, sets.strict);
}
