// SPDX-License-Identifier: Apache-2.0
// Findings of the emulator at run time, and their messages.
#include "tests/unit/emulator/evaluate.hpp"

using namespace ikat;
using tests::contains;
using tests::kernel;
using tests::Machine;

namespace {

/// One access at the address of p0 + 4 * stride * (thread of the grid) in %d1.
std::string accessing(const std::string& instruction, int stride) {
    return kernel(
        "    mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x;\n"
        "    mad.lo.u32 %r4, %r2, %r3, %r1; mul.lo.s32 %r4, %r4, " +
        std::to_string(4 * stride) +
        ";\n"
        "    ld.param.u64 %d1, [p0]; cvt.s64.s32 %d2, %r4; add.s64 %d1, %d1, %d2;\n"
        "    " +
        instruction + "\n    ret;\n");
}

std::string finding(const std::string& text, std::uint32_t threads = 32, std::uint32_t blocks = 1) {
    Machine machine;
    const auto x = machine.buffer("x", std::vector<std::uint32_t>(64));
    return machine.failure(text, {.grid = {blocks, 1, 1}, .block = {threads, 1, 1}}, x, x, x, 0u);
}

}  // namespace

TEST_CASE("a load past the end names buffer, distance, block, thread, line and source") {
    Machine machine;
    const auto x = machine.empty<std::uint32_t>("x", 64);
    const std::string message = machine.failure(accessing("ld.global.u32 %r5, [%d1+12];", 1),
                                                {.grid = {3, 1, 1}, .block = {32, 1, 1}}, x, x, x, 0u);
    CHECK_THAT(message, contains("kernel.ptx:11:"));
    CHECK_THAT(message,
               contains("global load of 4 bytes, right past the end of buffer 'x' (256 bytes), by block (1,0,0) "
                        "thread (29,0,0)"));
    CHECK_THAT(message, contains("ld.global.u32 %r5, [%d1+12];"));
    CHECK_THAT(message, contains("check the index against the number of elements"));
}

TEST_CASE("an index below 0 that was taken for an unsigned number is named") {
    const auto at = [](std::uint32_t index, std::uint32_t element) {
        const std::string address = "mov.u32 %r6, " + std::to_string(index) + "; mul.wide.u32 %d6, %r6, " +
                                    std::to_string(element) + "; add.u64 %d6, %d6, %d1; ";
        return finding(accessing(address + "ld.global.u32 %r5, [%d6];", 0));
    };
    CHECK_THAT(at(0xffffffff, 4), contains("note: an index has wrapped mod 2^32: it is -1, of elements of 4 bytes in "
                                           "buffer 'x'"));
    CHECK_THAT(at(0xffffff00, 16), contains("it is -256, of elements of 16 bytes in buffer 'x'"));
    CHECK_THAT(at(0x7fffffff, 4), !contains("wrapped"));
    CHECK_THAT(at(64, 4), !contains("wrapped"));
}

TEST_CASE("findings carry the line of the kernel's source") {
    Machine machine;
    const auto x = machine.empty<std::uint32_t>("x", 4);
    machine.source_lines.resize(20);
    machine.source_lines[11] = {"saxpy.cpp", 12, 5};
    const std::string message =
        machine.failure(accessing("ld.global.u32 %r5, [%d1+12];", 1), {.block = {32, 1, 1}}, x, x, x, 0u);
    CHECK(message.starts_with("saxpy.cpp:12:5: error: global load of 4 bytes"));
    CHECK_THAT(message, contains("\nkernel.ptx:11:5: note: this instruction of the PTX\n"));
}

TEST_CASE("out of bounds in every pattern: contiguous, uniform, strided, half a warp, vectors, stores") {
    CHECK_THAT(finding(accessing("ld.global.u32 %r5, [%d1-4];", 1)),
               contains("4 bytes before the start of buffer 'x'"));
    CHECK_THAT(finding(accessing("ld.global.u32 %r5, [%d1+1024];", 0)),
               contains("768 bytes past the end of buffer 'x'"));
    CHECK_THAT(finding(accessing("ld.global.u32 %r5, [%d1];", 3)), contains("thread (22,0,0)"));
    CHECK_THAT(finding(accessing("ld.global.u32 %r5, [%d1];", -1)),
               contains("4 bytes before the start of buffer 'x' (256 bytes), by block (0,0,0) thread (1,0,0)"));
    CHECK_THAT(finding(accessing("setp.gt.u32 %p1, %r1, 20; @%p1 ld.global.u32 %r5, [%d1+160];", 1)),
               contains("thread (24,0,0)"));
    CHECK_THAT(finding(accessing("ld.global.v4.u32 {%r5, %r6, %r7, %r8}, [%d1];", 4)),
               contains("global load of 16 bytes, right past"));
    CHECK_THAT(
        finding(accessing("st.global.u32 [%d1], %r1;", 1), 96),
        contains(
            "global store of 4 bytes, right past the end of buffer 'x' (256 bytes), by block (0,0,0) thread (64,0,0)"));
    CHECK_THAT(finding(accessing("st.global.u32 [%d1+256], %r1;", 0)), contains("global store of 4 bytes, right past"));
    CHECK_THAT(finding(accessing("atom.global.add.u32 %r5, [%d1], 1;", 9)), contains("thread (8,0,0)"));
    CHECK_THAT(finding(accessing("ld.global.u64 %d5, [%d1+252];", 0)),
               contains("4 bytes across the end of buffer 'x'"));
    CHECK_THAT(finding(accessing("ld.u32 %r5, [%d1+256];", 0)),
               contains("generic load of 4 bytes, right past the end of buffer 'x'"));
    // The last word itself is in bounds.
    CHECK(finding(accessing("ld.global.u32 %r5, [%d1+252];", 0)) == "no failure");
    CHECK(finding(accessing("ld.global.u32 %r5, [%d1+128];", 1)) == "no failure");
}

TEST_CASE("misaligned accesses") {
    CHECK_THAT(finding(accessing("ld.global.u32 %r5, [%d1+2];", 1)),
               contains("at offset 2 of buffer 'x': misaligned, 4 bytes are needed, by block (0,0,0) thread (0,0,0)"));
    CHECK_THAT(finding(accessing("ld.global.v2.u32 {%r5, %r6}, [%d1];", 1)),
               contains("at offset 4 of buffer 'x': misaligned, 8 bytes are needed"));
    CHECK_THAT(finding(accessing(".shared .b8 s[256]; ld.shared.u32 %r5, [s+1];", 1)),
               contains("at 0x1 of shared memory: misaligned"));
}

TEST_CASE("released buffers, null pointers, addresses of nothing") {
    Machine machine;
    const auto x = machine.empty<std::uint32_t>("x", 64);
    machine.memory.release(x);
    const std::string released =
        machine.failure(accessing("ld.global.u32 %r5, [%d1+8];", 1), {.block = {32, 1, 1}}, x, x, x, 0u);
    CHECK_THAT(released, contains("at offset 8 of buffer 'x' (256 bytes), which has been released"));
    CHECK_THAT(machine.failure(accessing("ld.global.u32 %r5, [%d1];", 1), {.block = {32, 1, 1}}, 0ull, x, x, 0u),
               contains("at 0x0: a null pointer"));
    CHECK_THAT(machine.failure(accessing("st.global.u32 [%d1], %r4;", 1), {.block = {32, 1, 1}},
                               0xffff'0000'0000'0000ull, x, x, 0u),
               contains("where no buffer is"));
    CHECK_THAT(
        machine.failure(accessing("st.global.u32 [%d1], %r4;", 1), {.block = {32, 1, 1}}, 0xfff'ffff'f000ull, x, x, 0u),
        contains("where no buffer is"));
    CHECK_THAT(machine.failure(accessing("ld.global.u32 %r5, [%d1];", 0), {.block = {32, 1, 1}}, std::uint64_t{1} << 36,
                               x, x, 0u),
               contains("an address of shared memory"));
}

TEST_CASE("shared, local, parameter and constant memory have bounds") {
    const std::string shared = finding(accessing(
        ".shared .align 4 .b8 tile[100]; mov.u32 %r6, tile; add.u32 %r6, %r6, %r4; ld.shared.u32 %r5, [%r6];", 1));
    CHECK_THAT(shared, contains("shared load of 4 bytes, right past the end of 'tile' in shared memory (100 bytes), by "
                                "block (0,0,0) thread (25,0,0)"));
    CHECK_THAT(finding(accessing(".shared .b8 tile[100]; mov.u32 %r6, tile; ld.shared.u32 %r5, [%r6-4];", 1)),
               contains("4 bytes before the start of 'tile' in shared memory"));
    CHECK_THAT(finding(accessing("mov.u32 %r6, 0; st.shared.u32 [%r6], %r1;", 1)),
               contains("at 0x0 of shared memory, of which the kernel has none"));
    CHECK_THAT(finding(accessing(".local .align 4 .b8 own[8]; mov.u64 %d4, own; ld.local.u32 %r5, [%d4+8];", 1)),
               contains("past the end of 'own' in local memory (8 bytes)"));
    CHECK_THAT(finding(accessing("mov.u64 %d4, n; cvta.param.u64 %d4, %d4; st.u32 [%d4], %r1;", 1)),
               contains("which can only be read"));
    CHECK_THAT(finding(accessing("ld.param.u32 %r5, [n+4];", 1)), contains("outside of the kernel's parameters"));
}

TEST_CASE("an index beyond one array does not land in the next") {
    struct Memory {
        std::string declarations, scope, space, store;
    };
    const Memory memories[] = {
        {".shared .align 4 .b8 first[128]; .shared .align 4 .b8 second[128];", "", "shared", "st.shared.u32"},
        {"", ".shared .align 4 .b8 first[128];\n.shared .align 4 .b8 second[128];", "shared", "st.shared.u32"},
        {".local .align 4 .b8 first[128]; .local .align 4 .b8 second[128];", "", "local", "st.local.u32"},
        {"", ".const .align 4 .b8 first[128];\n.const .align 4 .b8 second[128];", "const", ""}};
    const auto lanes = [](const std::string& index) { return "mov.u32 %r1, %tid.x; " + index; };
    for (const Memory& memory : memories)
        for (const std::string& index :
             {lanes("mov.u32 %r2, 32;"), lanes("add.u32 %r2, %r1, 1;"), lanes("mul.lo.u32 %r2, %r1, 3;"),
              lanes("add.u32 %r2, %r1, 4000;"), lanes("setp.lt.u32 %p1, %r1, 5; @%p1 ret; add.u32 %r2, %r1, 32;")}) {
            const std::string base = index + memory.declarations +
                                     "mov.u64 %d5, first; mov.u64 %d6, second; mad.wide.u32 %d5, %r2, 4, %d5;\n";
            std::string access = "ld." + memory.space + ".u32 %r5, [%d5];";
            for (int store = 0; store < (memory.store.empty() ? 1 : 2); ++store) {
                INFO(base << access);
                CHECK_THAT(finding(kernel(base + access + " ret;", memory.scope)),
                           contains("past the end of 'first' in " + memory.space + " memory (128 bytes)"));
                access = memory.store + " [%d5], %r2;";
            }
        }
    CHECK_THAT(finding(kernel(".shared .b32 first[4]; .shared .b32 second[4]; mov.u32 %r1, first; mov.u32 %r2, second;"
                              "ld.shared.u32 %r3, [second-4]; ret;")),
               contains("4 bytes before the start of 'second' in shared memory"));
    // gaps do not count as shared memory, and no variable has an alignment that it would not have on a device
    CHECK(finding(kernel(".shared .b32 first[4]; .shared .b32 second[5]; mov.u32 %r1, first; mov.u32 %r2, second;"
                         "mov.u32 %r3, %total_smem_size; setp.ne.u32 %p1, %r3, 36; @%p1 trap; ret;")) == "no failure");
    CHECK_THAT(finding(kernel(".shared .b32 first; .shared .b32 second[4]; st.shared.u32 [first], 0;"
                              "st.shared.v2.u32 [second], {%r1, %r2}; ret;")),
               contains("misaligned, 8 bytes are needed"));
}

TEST_CASE("an index beyond one buffer by a multiple of its size does not land in another") {
    for (const std::size_t words : {64u, 8192u, 100'000u, 1'048'576u}) {
        Machine machine;
        const auto x = machine.empty<std::uint32_t>("x", words), y = machine.empty<std::uint32_t>("y", words);
        for (const std::uint64_t buffer : {x, y})
            for (int times = -12; times <= 12; ++times) {
                if (times == 0) continue;
                INFO(words << " " << times);
                const auto address = buffer + std::uint64_t(times * std::int64_t(4 * words));
                CHECK(machine.failure(accessing("st.global.u32 [%d1], %r1;", 1), {.block = {32, 1, 1}}, address, x, x,
                                      0u) != "no failure");
            }
    }
}

TEST_CASE("a barrier in divergent code, and a counted one that exited threads never reach") {
    const std::string divergent = finding(kernel(R"(
    mov.u32 %r1, %tid.x; setp.lt.u32 %p1, %r1, 16; @%p1 bra $a;
    bar.sync 0;
    bra $end;
$a:
    add.u32 %r1, %r1, 1;
    bar.sync 0;
$end: ret;)"));
    CHECK_THAT(
        divergent,
        contains("barrier in divergent code: lanes 16-31 of warp 0 in block (0,0,0) wait at a barrier for lanes 0-15"));
    CHECK_THAT(divergent, contains("lanes 0-15 wait at a barrier for lanes 16-31"));
    CHECK_THAT(divergent, contains("move the barrier out of the branch"));
    const std::string early =
        kernel("    mov.u32 %r1, %tid.x; setp.ge.u32 %p1, %r1, 40; @%p1 ret;\n    bar.sync 0; ret;");
    CHECK(finding(early, 64) == "no failure");  // from sm_70 on, exited threads are not waited for
    CHECK(finding(early, 128) == "no failure");
    const std::string gone =
        kernel("    mov.u32 %r1, %tid.x; setp.ge.u32 %p1, %r1, 32; @%p1 ret;\n    bar.sync 0, 64; ret;");
    CHECK_THAT(finding(gone, 96), contains("deadlock in block (0,0,0): no warp can continue; 64 threads have exited"));
    CHECK_THAT(finding(gone, 96), contains("warp 0 lanes 0-31 wait at barrier 0, which 32 of 64 threads have reached"));
    // a count equal to the block size is also counted
    CHECK_THAT(finding(gone, 64), contains("deadlock in block (0,0,0): no warp can continue; 32 threads have exited"));
}

TEST_CASE("deadlock: every warp's place and what it waits for") {
    const std::string text = finding(kernel(R"(
    mov.u32 %r1, %tid.x; setp.lt.u32 %p1, %r1, 32; @%p1 bra $a;
    bar.sync 1, 64;
    bra $end;
$a:
    bar.sync 2, 64;
$end: ret;)"),
                                     64);
    CHECK_THAT(text, contains("deadlock in block (0,0,0): no warp can continue"));
    CHECK_THAT(text, contains("warp 0 lanes 0-31 wait at barrier 2, which 32 of 64 threads have reached"));
    CHECK_THAT(text, contains("warp 1 lanes 0-31 wait at barrier 1, which 32 of 64 threads have reached"));
    CHECK_THAT(text, contains("bar.sync 2, 64;"));
}

TEST_CASE("barriers used wrongly") {
    CHECK_THAT(finding(kernel("bar.sync 16; ret;")), contains("barrier 16 does not exist"));
    CHECK_THAT(finding(kernel("bar.sync 0, 48; ret;"), 64), contains("barrier 0 is given 48 threads in a block of 64"));
    CHECK_THAT(finding(kernel("mov.u32 %r1, %tid.x; shr.u32 %r1, %r1, 5; add.u32 %r1, %r1, 2; mul.lo.u32 %r1, %r1, 32; "
                              "bar.sync 0, %r1; ret;"),
                       96),
               contains("barrier 0 expects 96 threads here, but a waiting warp gave 64"));
    CHECK_THAT(finding(kernel("mov.u32 %r1, %laneid; and.b32 %r1, %r1, 1; bar.sync %r1; ret;")),
               contains("threads of one warp wait at different barriers"));
}

TEST_CASE("warp-wide instructions that members never reach, or that a non-member executes") {
    const std::string missing = finding(kernel(R"(
    mov.u32 %r1, %laneid; setp.lt.u32 %p1, %r1, 8; @%p1 bra $a;
    shfl.sync.bfly.b32 %r2, %r1, 1, 31, -1; bra $end;
$a: shfl.sync.bfly.b32 %r2, %r1, 2, 31, -1;
$end: ret;)"));
    CHECK_THAT(missing, contains("warp-wide instruction in divergent code"));
    CHECK_THAT(missing, contains("lanes 8-31 wait for lanes 0-7"));
    CHECK_THAT(finding(kernel("mov.pred %p2, 1; vote.sync.any.pred %p1, %p2, 0xff; ret;")),
               contains("is not in its own member mask (mask 0x000000ff), by block (0,0,0) thread (8,0,0)"));
}

TEST_CASE("a shuffle that names threads that have exited") {
    const std::string text = kernel(R"(
    mov.u32 %r1, %laneid; setp.ge.u32 %p1, %r1, 20; @%p1 ret;
    shfl.sync.bfly.b32 %r2, %r1, 1, 31, -1; ret;)");
    CHECK_THAT(finding(text), contains("a shuffle names threads that have exited (mask 0xffffffff: lanes 20-31), by "
                                       "block (0,0,0) thread (0,0,0)"));
    CHECK_THAT(finding(text), contains("shfl.sync.bfly.b32 %r2, %r1, 1, 31, -1;"));
    CHECK(finding(text, 20) == "no failure");  // these have never been there
    CHECK(finding(kernel("mov.u32 %r1, %laneid; setp.ge.u32 %p1, %r1, 20; @%p1 ret;\n"
                         "shfl.sync.bfly.b32 %r2, %r1, 1, 31, 0xfffff; ret;")) == "no failure");
    // a vote includes only threads that have not exited
    CHECK(finding(kernel("mov.u32 %r1, %laneid; setp.ge.u32 %p1, %r1, 20; @%p1 ret;\n"
                         "vote.sync.ballot.b32 %r2, %p1, -1; ret;")) == "no failure");
}

TEST_CASE("member masks that differ between the threads they name") {
    const std::string text = finding(kernel(R"(
    mov.u32 %r1, %laneid; setp.lt.u32 %p1, %r1, 16; selp.b32 %r3, -1, 0xffff0000, %p1;
    shfl.sync.bfly.b32 %r2, %r1, 1, 31, %r3; ret;)"));
    CHECK_THAT(text, contains("threads that name each other give different member masks (mask 0xffffffff, and "
                              "0xffff0000 in lanes 16-31), by block (0,0,0) thread (0,0,0)"));
    CHECK_THAT(finding(kernel("mov.u32 %r1, %laneid; mov.u32 %r3, 1; shl.b32 %r3, %r3, %r1; setp.eq.u32 %p1, %r1, 3;\n"
                              "selp.b32 %r3, 12, %r3, %p1; vote.sync.any.pred %p2, %p1, %r3; ret;")),
               contains("different member masks (mask 0x0000000c, and 0x00000004 in lane 2)"));
}

TEST_CASE("an offset where no operand can have one") {
    for (const char* code : {"add.u32 %r1+1, %r2, %r3;", "bra $end+4;", "add.f32 %r1, %r2+1, %r3;",
                             "setp.ne.u32 %p1, %r2, %r3; mov.pred %p2, %p1+1;",
                             "mov.b64 %d1, {%r1, %r2}; "
                             "mov.b64 {%r1, %r2+3}, %d1;"}) {
        INFO(code);
        CHECK_THAT(finding(kernel(std::string(code) + "\n$end: ret;")), contains("the emulator cannot run this"));
    }
}

TEST_CASE("vprintf whose arguments end before its format does") {
    const auto printed = [](const std::string& arguments) {
        return finding(kernel(R"(
    .local .align 8 .b8 buffer[8]; .local .align 8 .b8 other[8]; .reg .b64 %b<4>;
    mov.u64 %b1, buffer; st.local.u64 [%b1], 5; mov.u64 %b3, other; st.local.u64 [%b3], 6;
    mov.u64 %d4, format; cvta.global.u64 %d4, %d4; )" +
                                  arguments + R"(
    {
        .param .b64 p; .param .b64 q; .param .b32 r;
        st.param.b64 [p], %d4; st.param.b64 [q], %b2;
        call.uni (r), vprintf, (p, q);
    }
    ret;)",
                              ".extern .func (.param .b32 r) vprintf (.param .b64 a, .param .b64 b);\n"
                              ".global .align 1 .b8 format[16] = {37, 100, 32, 37, 100, 32, 37, 100, 0};\n"));
    };
    CHECK_THAT(printed("cvta.local.u64 %b2, %b1;"),
               contains("vprintf asks for argument 3 (%d), which is beyond its arguments"));
    CHECK_THAT(printed("mov.u64 %b2, 0;"), contains("vprintf asks for argument 1 (%d) and is given none"));
}

TEST_CASE("trap, and the lines of instructions that cannot run") {
    CHECK_THAT(finding(kernel("mov.u32 %r1, %tid.x; setp.eq.u32 %p1, %r1, 5; @%p1 trap; ret;")),
               contains("the kernel trapped, in block (0,0,0) thread (5,0,0)"));
    CHECK_THAT(finding(kernel("tex.2d.v4.f32.f32 {%r1,%r2,%r3,%r4}, [p0, {%r1, %r2}]; ret;")),
               contains("the emulator cannot run this instruction: opcode 'tex'"));
    for (const std::string bare :
         {"add.u32 %r1, %r2;", "add.f32 %r1, %r2;", "fma.rn.f16x2 %r1, %r2, %r3;", "and.pred %p1, %p2;", "not.b32 %r1;",
          "ld.global.u32 %r1;", "st.global.u32 [%d1];", "bar.sync;", "mov.u32 %r1;", "shfl.sync.idx.b32 %r1, %r2;",
          "call (%r1);", "bra;", "setp.lt.u32 %p1;", "elect.sync %r1, -1;", "bfi.b32 %r1, %r1, %r1;",
          "atom.global.add.u32 %r1, [%d1];", "bar.red.popc.u32 %r1, 0;"})
        CHECK_THAT(finding(kernel(bare + " ret;")), contains("it has too few operands"));
    for (const std::string full : {"neg.s32 %r1, %r2, %r3;", "max.s32 %r1, %r2, %r3, %r4;"})
        CHECK_THAT(finding(kernel(full + " ret;")), contains("this number of operands is not supported here"));
    CHECK_THAT(finding(kernel("add.wide.u32 %r1, %r2, %r3; ret;")), contains("modifier '.wide'"));
    CHECK_THAT(finding(kernel("add.u32 %r1, %r2, %q; ret;")), contains("'%q' is not declared"));
    CHECK_THAT(finding(kernel("bra nowhere; ret;")), contains("label 'nowhere' is not visible here"));
    CHECK_THAT(
        finding(kernel("call (%r1), f, (%r1); ret;", ".func (.reg .b32 o) f (.reg .b32 i) { call (o), f, (i); ret; }")),
        contains("the stack of a thread is full"));
}

TEST_CASE("arrays that are parts of dynamic shared memory have bounds") {
    const std::string parts =
        ".extern .shared .align 16 .b8 first[];  // 128 bytes at 0\n"
        ".extern .shared .align 16 .b8 second[];  // 64 bytes at 128\n"
        ".extern .shared .align 16 .b8 more[];  // the rest, at 192\n";
    // Each of them is used, so that all are laid out.
    const std::string bases =
        "mov.u32 %r6, first; mov.u32 %r7, second+128; mov.u32 %r8, more+192; mov.u32 %r1, %tid.x;\n";
    const auto run = [&](const std::string& body, const std::string& scope, std::uint32_t bytes = 256) {
        Machine machine;
        const auto x = machine.empty<std::uint32_t>("x", 32);
        return machine.failure(kernel(bases + body + " ret;", scope),
                               {.block = {32, 1, 1}, .dynamic_shared_bytes = bytes}, x, x, x, 0u);
    };
    const auto finding = [&](const std::string& body, std::uint32_t bytes = 256) { return run(body, parts, bytes); };

    CHECK_THAT(finding("mul.lo.u32 %r2, %r1, 8; add.u32 %r2, %r2, %r6; st.shared.u32 [%r2], 0;"),
               contains("shared store of 4 bytes, right past the end of 'first' in shared memory (128 bytes), by block "
                        "(0,0,0) thread (16,0,0)"));
    CHECK_THAT(finding("st.shared.u32 [%r7-4], 0;"), contains("4 bytes before the start of 'second' in shared memory"));
    CHECK_THAT(finding("st.shared.u32 [second+192], 0;"), contains("right past the end of 'second'"));
    CHECK_THAT(finding("cvta.shared.u64 %d1, second+128; st.u32 [%d1+64], 0;"),
               contains("right past the end of 'second'"));
    CHECK_THAT(finding("st.shared.u32 [%r8+64], 0;"),
               contains("right past the end of 'more' in shared memory (64 bytes)"));
    CHECK(finding("st.shared.u32 [%r6+124], 0; st.shared.u32 [second+188], 0; st.shared.u32 [%r8+60], 0;"
                  "mov.u32 %r3, %dynamic_smem_size; setp.ne.u32 %p1, %r3, 256; @%p1 trap;") == "no failure");
    CHECK_THAT(finding("", 188),
               contains("kernel 'k' cannot be launched: 188 bytes of dynamic shared memory where its own "
                        "arrays take up 192"));
    // Without the comments, all begin at one place and end where the launch says.
    CHECK(run("st.shared.u32 [%r6+252], 0; st.shared.u32 [first+128], 0;",
              ".extern .shared .align 16 .b8 first[];\n.extern .shared .align 16 .b8 second[];\n"
              ".extern .shared .align 16 .b8 more[];  // of something else\n") == "no failure");
}

TEST_CASE("launches that do not fit") {
    Machine machine;
    const std::string text = kernel("ret;");
    const auto launch = [&](emulator::Launch l) { return machine.failure(text, l, 0ull, 0ull, 0ull, 0u); };
    CHECK_THAT(launch({.block = {1025, 1, 1}}),
               contains("kernel 'k' cannot be launched: a block of (1025,1,1) threads"));
    CHECK_THAT(launch({.block = {1, 1, 65}}), contains("a block of (1,1,65) threads"));
    CHECK_THAT(launch({.block = {0, 1, 1}}), contains("a block of (0,1,1) threads"));
    CHECK_THAT(launch({.grid = {0, 1, 1}}), contains("a grid of (0,1,1) blocks"));
    CHECK_THAT(launch({.grid = {1, 65536, 1}}), contains("a grid of (1,65536,1) blocks"));
    CHECK_THAT(launch({.dynamic_shared_bytes = 300000}),
               contains("300000 bytes of shared memory (300000 of them dynamic)"));
    CHECK_THAT(launch({.entry = "other"}), contains("the module has no kernel 'other'"));
    CHECK_THAT(machine.failure(text, {}, 0ull), contains("8 bytes of parameters where the kernel has 28"));
    std::string bounded = text;
    bounded.replace(bounded.find("n)\n") + 2, 0, " .maxntid 64, 1, 1");
    CHECK_THAT(machine.failure(bounded, {.block = {65, 1, 1}}, 0ull, 0ull, 0ull, 0u),
               contains("a block of 65 threads where .maxntid allows 64"));
    bounded.replace(bounded.find("64, 1, 1"), 8, "65536, 65536, 1");
    CHECK(machine.failure(bounded, {}, 0ull, 0ull, 0ull, 0u) == "no failure");
    std::string required = text;
    required.replace(required.find("n)\n") + 2, 0, " .reqntid 64, 1, 1");
    CHECK_THAT(machine.failure(required, {.block = {32, 1, 1}}, 0ull, 0ull, 0ull, 0u),
               contains("a block of (32,1,1) where .reqntid demands (64,1,1)"));
}

TEST_CASE("of several failing blocks the first is reported, with any number of host threads") {
    for (const unsigned threads : {1u, 2u, 4u}) {
        Machine machine;
        machine.options.threads = threads;
        const auto x = machine.empty<std::uint32_t>("x", 640);
        CHECK_THAT(machine.failure(accessing("st.global.u32 [%d1], %r1;", 1),
                                   {.grid = {100, 1, 1}, .block = {32, 1, 1}}, x, x, x, 0u),
                   contains("by block (20,0,0) thread (0,0,0)"));
    }
}

TEST_CASE("an instruction of more than 160 characters is cut") {
    const auto excerpt = [](std::size_t length) {
        const std::string name = "%" + std::string(length, 'r');
        const std::string said =
            finding(accessing(".reg .b32 " + name + "; ld.global.u32 " + name + ", [%d1+1024];", 1));
        const std::size_t begin = said.find("    ld.global.u32") + 4;
        return said.substr(begin, said.find('\n', begin) - begin);
    };
    CHECK(excerpt(100).ends_with("r, [%d1+1024];"));
    CHECK(excerpt(200).size() == 160);
    CHECK(excerpt(200).ends_with("rrr ..."));
}
