// SPDX-License-Identifier: Apache-2.0
// Findings that are warned of, or passed over: what a launch continues with.
#include "tests/unit/emulator/machine.hpp"

using namespace ikat;
using emulator::Action;
using emulator::Check;
using tests::contains;
using tests::kernel;
using tests::Machine;

namespace {

struct Outcome {
    std::string error;
    std::vector<std::uint32_t> y{};
    std::vector<std::string> warnings{};
};

/// Runs a body with %d1 = x, 64 numbered words, %d2 = y, 64 words 7, %r1 the thread, %d3 and %d4 the addresses of its
/// words. The class has the severity; all checks are those of our own kernels otherwise.
Outcome run(const std::string& body, Check check, Action action, emulator::Launch launch = {.block = {32, 1, 1}},
            std::string_view scope = "", unsigned threads = 1) {
    Machine machine;
    machine.options.checks.set(check, action);
    machine.options.threads = threads;
    std::vector<std::uint32_t> numbered(64);
    for (std::uint32_t i = 0; i < 64; ++i) numbered[i] = i;
    const auto x = machine.buffer("x", numbered), y = machine.buffer("y", std::vector<std::uint32_t>(64, 7)),
               fresh = machine.empty<std::uint32_t>("fresh", 64);
    const std::string text = kernel(
        "ld.param.u64 %d1, [p0]; ld.param.u64 %d2, [p1]; ld.param.u64 %d5, [p2]; mov.u32 %r1, %tid.x;\n"
        "mul.wide.u32 %d6, %r1, 4; add.u64 %d3, %d1, %d6; add.u64 %d4, %d2, %d6; add.u64 %d7, %d5, %d6;\n" +
            body + "\n$end: ret;",
        scope);
    Outcome out{.error = machine.failure(text, launch, x, y, fresh, 0u)};
    out.y = machine.get<std::uint32_t>(y, 64);
    for (const Diagnostic& warning : machine.warnings) out.warnings.push_back(to_string(warning));
    return out;
}

const std::string fine = "no failure";

}  // namespace

TEST_CASE("after a warning, what is outside of memory reads as zero, and stores there are dropped") {
    const std::string body =
        "ld.global.u32 %r2, [%d3+192]; st.global.u32 [%d4], %r2;\nst.global.u32 [%d4+192], 9;\n"
        "atom.global.add.u32 %r3, [%d4+200], 1; st.global.u32 [%d4+64], %r3;\n";
    const Outcome as_error = run(body, Check::Bounds, Action::Error);
    CHECK_THAT(as_error.error, contains("error: global load of 4 bytes, right past the end of buffer 'x'"));
    CHECK(as_error.warnings.empty());

    const Outcome warned = run(body, Check::Bounds, Action::Warning);
    CHECK(warned.error == fine);
    REQUIRE(warned.warnings.size() == 3);  // one for each line, though 16 lanes and more are outside
    CHECK_THAT(warned.warnings[0], contains("warning: global load of 4 bytes, right past the end of buffer 'x'") &&
                                       contains("thread (16,0,0)"));
    CHECK_THAT(warned.warnings[1], contains("warning: global store of 4 bytes"));
    CHECK_THAT(warned.warnings[2], contains("atom.global.add.u32"));
    for (std::uint32_t lane = 0; lane < 16; ++lane) CHECK(warned.y[lane] == 48 + lane);
    for (std::uint32_t lane = 14; lane < 32; ++lane) CHECK(warned.y[16 + lane] == (lane >= 14 ? 0 : 9));
    for (std::uint32_t i = 48; i < 50; ++i) CHECK(warned.y[i] == 9);

    const Outcome noted = run(body, Check::Bounds, Action::Note);
    REQUIRE(noted.warnings.size() == 3);
    CHECK_THAT(noted.warnings[0], contains(": note: global load"));
    const Outcome silent = run(body, Check::Bounds, Action::Off);
    CHECK(silent.error == fine);
    CHECK(silent.warnings.empty());
    CHECK(silent.y == warned.y);
}

TEST_CASE("of several blocks, the lowest warns, for any number of host threads") {
    const std::string body =
        "mov.u32 %r4, %ctaid.x; setp.lt.u32 %p1, %r4, 5; @%p1 bra $end; ld.global.u32 %r2, [%d1+256];";
    for (const unsigned threads : {1u, 2u, 4u})
        for (int i = 0; i < 20; ++i) {
            const Outcome out =
                run(body, Check::Bounds, Action::Warning, {.grid = {64, 1, 1}, .block = {32, 1, 1}}, "", threads);
            REQUIRE(out.warnings.size() == 1);
            CHECK_THAT(out.warnings[0], contains("by block (5,0,0) thread (0,0,0)"));
        }
}

TEST_CASE("warnings come before the error that ends the launch") {
    const Outcome out = run("ld.global.u32 %r2, [%d1+256];\ntrap;", Check::Bounds, Action::Warning);
    CHECK_THAT(out.error, contains("error: the kernel trapped"));
    CHECK(out.warnings.size() == 1);
}

TEST_CASE("reads of a few bytes after a block's shared memory") {
    const auto reading = [](int offset, Action action) {
        return run("mov.u32 %r5, tail; st.shared.u32 [%r5+28], 3;\nld.shared.v4.u32 {%r6, %r7, %r8, %r9}, [%r5+" +
                       std::to_string(offset) + "];\nst.global.u32 [%d2], %r9;",
                   Check::SharedTail, action, {.block = {32, 1, 1}, .dynamic_shared_bytes = 32},
                   ".extern .shared .align 16 .b8 tail[];");
    };
    CHECK_THAT(reading(32, Action::Error).error, contains("shared load of 16 bytes, right past the end of 'tail'"));
    const Outcome warned = reading(32, Action::Warning);
    CHECK(warned.error == fine);
    REQUIRE(warned.warnings.size() == 1);
    CHECK_THAT(warned.warnings[0], contains("warning: shared load of 16 bytes, right past the end of 'tail'"));
    CHECK(warned.y[0] == 0);
    CHECK_THAT(reading(48, Action::Warning).error, contains("error: shared load of 16 bytes, 16 bytes past the end"));
    CHECK(reading(16, Action::Error).error.find("past the end") == std::string::npos);
    // a store never, nor a read after an array of the kernel's
    CHECK_THAT(run("ld.shared.u32 %r5, [tile+64];", Check::SharedTail, Action::Warning, {.block = {32, 1, 1}},
                   ".shared .align 16 .b8 tile[64];")
                   .error,
               contains("error: shared load of 4 bytes, right past the end of 'tile'"));
    CHECK_THAT(run("mov.u32 %r5, tail; st.shared.u32 [%r5+32], 3;", Check::SharedTail, Action::Warning,
                   {.block = {32, 1, 1}, .dynamic_shared_bytes = 32}, ".extern .shared .align 16 .b8 tail[];")
                   .error,
               contains("error: shared store of 4 bytes"));
}

TEST_CASE("undefined values are used as they are") {
    const std::string body =
        "ld.global.u32 %r2, [%d7]; setp.eq.u32 %p1, %r2, 0x12345; @%p1 bra $end;\nst.global.u32 [%d4], 3;\n"
        "add.u32 %r2, %r2, 1; st.global.u32 [%d4+128], %r2;";
    CHECK_THAT(run(body, Check::Undefined, Action::Error).error, contains("a branch depends on an undefined value"));
    const Outcome warned = run(body, Check::Undefined, Action::Warning);
    CHECK(warned.error == fine);
    REQUIRE(warned.warnings.size() == 2);
    CHECK_THAT(warned.warnings[0], contains("warning: a branch depends on an undefined value") &&
                                       contains("note: the last undefined value was loaded at offset ") &&
                                       contains(" of buffer 'fresh' (256 bytes): ld.global.u32 %r2, [%d7];"));
    CHECK_THAT(warned.warnings[1], contains("warning: an undefined value is stored to a buffer"));
    CHECK(warned.y[31] == 3);
    // a register that nothing has assigned is of another class
    const Outcome unassigned = run("st.global.u32 [%d4], %r20;", Check::Registers, Action::Warning);
    CHECK(unassigned.error == fine);
    REQUIRE(unassigned.warnings.size() == 1);
    CHECK_THAT(unassigned.warnings[0], contains("a register that nothing has assigned"));
}

TEST_CASE("copies in flight are read and overwritten") {
    const std::string scope = ".shared .align 16 .b8 tile[512];";
    const std::string copy =
        "mov.u32 %r5, tile; shl.b32 %r6, %r1, 2; add.u32 %r5, %r5, %r6; st.shared.u32 [%r5], 5;\n"
        "cp.async.ca.shared.global [%r5], [%d3], 4;\n";
    const std::string early = copy +
                              "ld.shared.u32 %r7, [%r5]; st.global.u32 [%d4], %r7;\ncp.async.wait_all;\n"
                              "ld.shared.u32 %r7, [%r5]; st.global.u32 [%d4+128], %r7;";
    CHECK_THAT(run(early, Check::Copies, Action::Error, {.block = {32, 1, 1}}, scope).error,
               contains("to which a copy is in flight"));
    const std::string overwritten = copy +
                                    "st.shared.u32 [%r5], 6;\ncp.async.wait_all;\nld.shared.u32 %r7, [%r5]; "
                                    "st.global.u32 [%d4], %r7;";
    CHECK_THAT(run(overwritten, Check::Copies, Action::Error, {.block = {32, 1, 1}}, scope).error,
               contains("have been written while a copy to them was in flight"));
    const Outcome warned = run(overwritten, Check::Copies, Action::Warning, {.block = {32, 1, 1}}, scope);
    CHECK(warned.error == fine);
    CHECK(warned.warnings.size() == 1);
    CHECK(warned.y[9] == 9);  // as late as it may
}

TEST_CASE("cp.async in flight at the end of its thread is a note") {
    const std::string scope = ".shared .align 16 .b8 tile[512];";
    const std::string body =
        "mov.u32 %r5, tile; shl.b32 %r6, %r1, 2; add.u32 %r5, %r5, %r6;\n"
        "cp.async.ca.shared.global [%r5], [%d3], 4;";
    const Outcome noted = run(body, Check::Heap, Action::Error, {.grid = {3, 1, 1}, .block = {32, 1, 1}}, scope);
    CHECK(noted.error == fine);
    REQUIRE(noted.warnings.size() == 1);
    CHECK_THAT(noted.warnings[0], contains(": note: block (0,0,0) ends while 4 bytes at offset 0 of 'tile'"));
}

TEST_CASE("threads that have exited in the mask of a shuffle") {
    const std::string body =
        "setp.ge.u32 %p1, %r1, 16; @%p1 bra $end;\nshfl.sync.bfly.b32 %r2|%p2, %r1, 1, 31, -1;\n"
        "st.global.u32 [%d4], %r2;";
    CHECK_THAT(run(body, Check::ExitedMembers, Action::Error).error,
               contains("a shuffle names threads that have exited"));
    const Outcome warned = run(body, Check::ExitedMembers, Action::Warning);
    CHECK(warned.error == fine);
    CHECK(warned.warnings.size() == 1);
    CHECK(warned.y[4] == 5);
    CHECK(warned.y[16] == 7);
}

TEST_CASE("branches marked uniform that are not, a wrong free, and prints without arguments") {
    const Outcome parted = run("setp.lt.u32 %p1, %r1, 3; @%p1 bra.uni $end;\nst.global.u32 [%d4], 1;",
                               Check::UniformBranches, Action::Warning);
    CHECK(parted.error == fine);
    CHECK(parted.warnings.size() == 1);
    CHECK((parted.y[2] == 7 && parted.y[3] == 1));

    const std::string printf =
        ".extern .func (.param .b32 r) vprintf(.param .b64 a, .param .b64 b);\n"
        ".global .align 1 .b8 text[4] = {37, 100, 10, 0};";
    const std::string print =
        "setp.ne.u32 %p1, %r1, 0; @%p1 bra $end;\nmov.u64 %d8, text; cvta.global.u64 %d8, %d8;\n"
        "{ .param .b64 a; .param .b64 b; .param .b32 r; st.param.b64 [a], %d8; st.param.b64 [b], 0;\n"
        "call.uni (r), vprintf, (a, b); }";
    CHECK_THAT(run(print, Check::Print, Action::Error, {.block = {32, 1, 1}}, printf).error,
               contains("vprintf asks for argument 1 (%d) and is given none"));
    const Outcome printed = run(print, Check::Print, Action::Warning, {.block = {32, 1, 1}}, printf);
    CHECK(printed.error == fine);
    CHECK(printed.warnings.size() == 1);
}

TEST_CASE("deadlocks and traps are of no class") {
    Machine machine;
    machine.options.checks.set_all(Action::Off);
    CHECK_THAT(machine.failure(kernel("trap;"), {.block = {32, 1, 1}}, 0ul, 0ul, 0ul, 0u), contains("trapped"));
    CHECK_THAT(
        machine.failure(kernel("mov.u32 %r1, %tid.x; setp.lt.u32 %p1, %r1, 32; @%p1 bra $l; bar.sync 0, 96; $l: ret;"),
                        {.block = {64, 1, 1}}, 0ul, 0ul, 0ul, 0u),
        contains("error: "));
}
