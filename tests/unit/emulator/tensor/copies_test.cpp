// SPDX-License-Identifier: Apache-2.0
// cp.async: asynchronous copies to shared memory (PTX ISA, "Non-bulk copy"), and what is found
// about them.
#include "tests/unit/emulator/machine.hpp"

namespace ikat::tests::copies {

namespace {

/// A kernel with `tile` of 1024 bytes: %r1 the thread, %r2 16 times it, %r3 tile + %r2, %d1 = p0 + %r2, %d2 = p1 + %r2.
std::string with_tile(const std::string& body) {
    return kernel(R"(
    .shared .align 16 .b8 tile[1024];
    mov.u32 %r1, %tid.x; shl.b32 %r2, %r1, 4; mov.u32 %r3, tile; add.u32 %r3, %r3, %r2;
    ld.param.u64 %d1, [p0]; ld.param.u64 %d2, [p1]; cvt.u64.u32 %d3, %r2; add.u64 %d1, %d1, %d3; add.u64 %d2, %d2, %d3;
)" + body + "\n$end: ret;");
}

std::vector<std::uint32_t> numbered(std::size_t count) {
    std::vector<std::uint32_t> values(count);
    for (std::size_t i = 0; i < count; ++i) values[i] = std::uint32_t(1000 + i);
    return values;
}

constexpr std::uint32_t seeds[] = {0, 1, 2, 3, 4, 5};

/// What the threads have stored at %d2, with each seed the same.
std::vector<std::uint32_t> result_of(const std::string& body, std::uint32_t threads = 32) {
    std::vector<std::uint32_t> first;
    for (const std::uint32_t seed : seeds) {
        Machine machine;
        machine.options.seed = seed;
        machine.options.checks.set(emulator::Check::CopiesAtExit, emulator::Action::Error);
        const auto x = machine.buffer("x", numbered(4 * threads)), y = machine.buffer("y", numbered(4 * threads));
        machine.run(with_tile(body), {.block = {threads, 1, 1}}, x, y, std::uint64_t{}, 0);
        const auto result = machine.get<std::uint32_t>(y, 4 * threads);
        if (seed == 0) first = result;
        CHECK(result == first);
    }
    return first;
}

/// The finding with each seed, which begins the same.
std::string finding(const std::string& body, std::uint32_t threads = 32) {
    std::string first, code;
    for (const std::uint32_t seed : seeds) {
        Machine machine;
        machine.options.seed = seed;
        machine.options.checks.set(emulator::Check::CopiesAtExit, emulator::Action::Error);
        const auto x = machine.buffer("x", numbered(4 * threads)), y = machine.empty<std::uint32_t>("y", 4 * threads);
        const std::string said = machine.failure(with_tile(body), {.block = {threads, 1, 1}}, x, y, std::uint64_t{}, 0);
        if (seed == 0) first = said, code = machine.code;
        CHECK(machine.code == code);
    }
    return code + ": " + first;
}

const std::string store =
    "ld.shared.v4.b32 {%r10, %r11, %r12, %r13}, [%r3]; st.global.v4.b32 [%d2], {%r10, %r11, %r12, %r13};\n";
const std::string wait = "cp.async.wait_all;\n";
const std::string copy = "cp.async.cg.shared.global [%r3], [%d1], 16;\n";

}  // namespace

TEST_CASE("copies of 4, 8 and 16 bytes") {
    CHECK(result_of(copy + wait + store) == numbered(128));
    CHECK(result_of("cp.async.ca.shared::cta.global.L2::128B [%r3], [%d1], 16; cp.async.commit_group;\n"
                    "cp.async.wait_group 0;\n" +
                    store) == numbered(128));
    CHECK(result_of("cp.async.ca.shared.global [%r3], [%d1], 8; cp.async.ca.shared.global [%r3+8], [%d1+8], 4;\n"
                    "cp.async.ca.shared.global [%r3+12], [%d1+12], 4;\n" +
                    wait + store) == numbered(128));
    CHECK(result_of("cvt.u64.u32 %d4, %r3; createpolicy.fractional.L2::evict_first.b64 %d5, 1.0;\n"
                    "cp.async.cg.shared.global.L2::cache_hint [%d4], [%d1], 16, %d5;\n" +
                    wait + store) == numbered(128));
    // under a guard, and with lanes that have gone another way
    auto half = numbered(128);
    for (unsigned i = 64; i < 128; ++i) half[i] = 7;
    CHECK(result_of(
              "mov.b32 %r20, 7; st.shared.v4.b32 [%r3], {%r20, %r20, %r20, %r20}; setp.lt.u32 %p1, %r1, 16;\n@%p1 " +
              copy + wait + store) == half);
    CHECK(result_of("mov.b32 %r20, 7; st.shared.v4.b32 [%r3], {%r20, %r20, %r20, %r20}; setp.ge.u32 %p1, %r1, "
                    "16;\n@%p1 bra $a;" +
                    copy + "cp.async.commit_group; cp.async.wait_group 0; $a:" + store) == half);
}

TEST_CASE("the bytes that are not read are zeros") {
    auto partly = numbered(128);
    for (unsigned i = 0; i < 128; ++i)  // thread t reads min(t, 16) bytes
        for (unsigned byte = 0; byte < 4; ++byte)
            if (i % 4 * 4 + byte >= i / 4) partly[i] &= ~(255u << 8 * byte);
    CHECK(result_of("min.u32 %r20, %r1, 16; cp.async.cg.shared.global [%r3], [%d1], 16, %r20;\n" + wait + store) ==
          partly);
    CHECK(result_of("cp.async.cg.shared.global [%r3], [%d1], 16, 0;\n" + wait + store) ==
          std::vector<std::uint32_t>(128));
    auto odd = numbered(128);
    for (unsigned i = 0; i < 128; ++i)
        if (i / 4 % 2 == 0) odd[i] = 0;
    const std::string even = "and.b32 %r20, %r1, 1; setp.eq.u32 %p1, %r20, 0;\n";
    CHECK(result_of(even + "cp.async.ca.shared.global [%r3], [%d1], 16, %p1;\n" + wait + store) == odd);
    // where nothing is read, the address does not matter
    CHECK(result_of(even + "@%p1 mov.u64 %d1, 0; cp.async.ca.shared.global [%r3], [%d1], 16, %p1;\n" + wait + store) ==
          odd);
}

TEST_CASE("a wait covers all groups but the last ones") {
    const std::string groups =
        copy + "cp.async.commit_group;\n" + "cp.async.cg.shared.global [%r3+512], [%d1], 16; cp.async.commit_group;\n";
    CHECK(result_of(groups + "cp.async.wait_group 1;\n" + store + "cp.async.wait_group 0;\n") == numbered(128));
    CHECK_THAT(finding(groups + "cp.async.wait_group 1;\nadd.u32 %r3, %r3, 512;\n" + store),
               contains("copy-not-awaited: "));
    CHECK_THAT(finding(groups + "cp.async.wait_group 2;\n" + store), contains("copy-not-awaited: "));
    // of a group that is not complete yet, only wait_all knows
    CHECK_THAT(finding("cp.async.commit_group;" + copy + "cp.async.wait_group 0;\n" + store),
               contains("copy-not-awaited: "));
    CHECK(result_of("cp.async.commit_group;" + copy + wait + store) == numbered(128));
    // empty groups count
    CHECK(result_of(copy + "cp.async.commit_group; cp.async.commit_group; cp.async.wait_group 1;\n" + store) ==
          numbered(128));
}

TEST_CASE("reading what is being copied is a finding with both lines") {
    const std::string said = finding(copy + store);
    CHECK_THAT(said, contains("copy-not-awaited: kernel.ptx:") && contains("ld.shared.v4.b32") &&
                         contains("a load of 16 bytes at offset 0 of 'tile' in shared memory") &&
                         contains("cp.async.cg.shared.global [%r3], [%d1], 16;") && contains("thread (0,0,0)"));
    // each thread waits for its own copies only: what others copy is there after a barrier
    const std::string neighbour = "xor.b32 %r20, %r2, 512; mov.u32 %r21, tile; add.u32 %r3, %r21, %r20;\n";
    CHECK_THAT(
        finding(copy + wait + neighbour + "ld.shared.b32 %r10, [%r3]; not.b32 %r10, %r10; st.global.b32 [%d2], %r10;",
                64),
        contains("copy-not-awaited: ") || contains("undefined-store: "));
    CHECK(result_of(copy + wait + "bar.sync 0;\n" + neighbour + store, 64)[0] == 1128);
    CHECK_THAT(finding(copy + "ld.shared.u16 %h1, [%r3+14];"), contains("2 bytes at offset 14 of 'tile'"));
    CHECK_THAT(finding(copy + "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r10}, [%r3];"),
               contains("copy-not-awaited: "));
    CHECK_THAT(finding(copy + "atom.shared.add.u32 %r10, [%r3], 1;"), contains("copy-not-awaited: "));
    CHECK_THAT(finding("st.shared.b32 [%r3], %r1; bar.sync 0;\n" + copy + "ld.shared.b32 %r10, [%r3];"),
               contains("copy-not-awaited: "));
    // by a thread that has ended
    CHECK_THAT(finding("setp.lt.u32 %p1, %r1, 32; @!%p1 bra $b;\n" + copy +
                           "ret;\n$b: bar.sync 0; ld.shared.b32 %r10, [tile];",
                       64),
               contains("copy-not-awaited: ") && contains("the copy, by block (0,0,0) thread (0,0,0)"));
}

TEST_CASE("writing what is being copied, or where it is copied to") {
    CHECK_THAT(finding(copy + "st.shared.b32 [%r3+4], %r1;\n" + wait),
               contains("copy-overwritten: ") && contains("at offset 0 of 'tile'") && contains("cp.async.cg"));
    CHECK_THAT(finding(copy + copy), contains("copy-overwritten: "));
    // where it stays unwritten
    CHECK_THAT(finding("ld.shared.b32 %r10, [tile+1020];\n" + copy + "st.shared.b32 [%r3+4], %r10;\n" + wait),
               contains("copy-overwritten: ") && contains("cp.async.cg"));
    CHECK(finding(copy + wait + copy + wait) == ": no failure");
    CHECK_THAT(finding(copy + "st.global.b32 [%d1+4], %r1;\n" + wait),
               contains("copy-source-changed: ") && contains("at offset 0 of buffer 'x'"));
}

TEST_CASE("bounds and alignment are found where a copy starts") {
    const auto at = [](const std::string& to, const std::string& from, const std::string& form = "ca",
                       const std::string& rest = "16") {
        return finding("cp.async." + form + ".shared.global [" + to + "], [" + from + "], " + rest + ";\n" + wait);
    };
    CHECK_THAT(at("%r3+1024", "%d1"), contains("out-of-bounds: ") && contains("shared store of 16 bytes") &&
                                          contains("right past the end of 'tile'") && contains("thread (0,0,0)"));
    CHECK_THAT(at("%r3+4", "%d1"), contains("misaligned: ") && contains("16 bytes are needed"));
    CHECK_THAT(at("%r3", "%d1+16"),
               contains("out-of-bounds: ") && contains("global load of 16 bytes") && contains("thread (31,0,0)"));
    CHECK_THAT(at("%r3", "%d1+4", "ca", "8"), contains("misaligned: ") && contains("8 bytes are needed"));
    CHECK(at("%r3", "%d1+4", "ca", "4, 0") == ": no failure");
    CHECK_THAT(at("%r3", "%d1", "ca", "8, %r2"), contains("copy-size: ") && contains("thread (1,0,0)"));
    CHECK_THAT(at("%r3", "%d1", "cg", "8"), contains("not-emulated: "));
    CHECK_THAT(finding("ld.global.u64 %d4, [%d2]; cp.async.cg.shared.global [%r3], [%d4], 16;"),
               contains("undefined-address: "));
}

TEST_CASE("what nothing has written is copied as such") {
    const std::string unwritten = "cp.async.cg.shared.global [%r3], [%d2], 16;\n" + wait;
    CHECK(finding(unwritten) == ": no failure");
    CHECK(finding(unwritten + store) == ": no failure");
    CHECK_THAT(finding(unwritten + "ld.shared.b32 %r10, [%r3+8]; not.b32 %r10, %r10; st.global.b32 [%d2], %r10;"),
               contains("undefined-store: "));
    const std::string half = "st.global.v2.b32 [%d2], {%r1, %r1};\n" + unwritten;
    CHECK(finding(half + "ld.shared.v2.b32 {%r10, %r11}, [%r3]; st.global.v2.b32 [%d2], {%r10, %r11};") ==
          ": no failure");
    CHECK_THAT(finding(half + "ld.shared.b32 %r10, [%r3+8]; not.b32 %r10, %r10; st.global.b32 [%d2], %r10;"),
               contains("undefined-store: "));
}

TEST_CASE("no copies of threads are in flight when their block ends") {
    CHECK_THAT(finding(copy), contains("copy-at-exit: kernel.ptx:") &&
                                  contains("block (0,0,0) ends while 16 bytes at offset 0 of 'tile'") &&
                                  contains("are in flight, by block (0,0,0) thread (0,0,0)"));
    CHECK_THAT(finding(copy + "cp.async.commit_group;"), contains("copy-at-exit: "));
    CHECK_THAT(finding("cp.async.commit_group;" + copy + "cp.async.wait_group 0;"), contains("copy-at-exit: "));
    CHECK_THAT(finding(copy + "cp.async.commit_group;\n" + "cp.async.cg.shared.global [%r3+512], [%d1], 16;" +
                       "cp.async.commit_group; cp.async.wait_group 1;"),
               contains("copy-at-exit: ") && contains("at offset 512 of 'tile'"));
    // some threads end without having waited
    CHECK_THAT(finding(copy + "setp.eq.u32 %p1, %r1, 5; @%p1 bra $end;\n" + wait),
               contains("copy-at-exit: ") && contains("thread (5,0,0)"));
    CHECK_THAT(finding("setp.lt.u32 %p1, %r1, 32; @!%p1 bra $end;\n" + copy, 64), contains("copy-at-exit: "));
    // nothing is read
    CHECK_THAT(finding("cp.async.ca.shared.global [%r3], [%d1], 4, 0;"), contains("copy-at-exit: "));
    const std::string arrive =
        ".shared .align 8 .b64 bar; @%p1 mbarrier.init.shared.b64 [bar], 32; bar.warp.sync -1;\n" + copy +
        "cp.async.mbarrier.arrive.noinc.shared.b64 [bar];\n";
    CHECK_THAT(finding("setp.eq.u32 %p1, %r1, 0; " + arrive), contains("copy-at-exit: "));
    CHECK(finding("setp.eq.u32 %p1, %r1, 0; " + arrive +
                  "$l: mbarrier.test_wait.parity.shared.b64 %p2, [bar], 0; @!%p2 bra $l;") == ": no failure");
}

}  // namespace ikat::tests::copies
