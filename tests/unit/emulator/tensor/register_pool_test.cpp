// SPDX-License-Identifier: Apache-2.0
// Small instructions of sm_90: setmaxnreg, elect.sync, griddepcontrol; and where dynamic shared memory begins.
#include <set>

#include "tests/unit/emulator/machine.hpp"

namespace ikat::tests::register_pools {

namespace {

constexpr std::uint32_t seeds[] = {0, 1, 2, 3, 4, 5, 6, 7};

/// The finding, which is the same with each seed, in a kernel with these directives. %r1 is the thread, %r2 the warp.
std::string finding(const std::string& directives, const std::string& body, std::uint32_t threads = 384) {
    const std::string text =
        ".version 8.0\n.target sm_90a\n.address_size 64\n.visible .entry k(.param .u32 n) " + directives +
        "\n{\n.reg .pred %p<4>; .reg .b32 %r<8>;\nmov.u32 %r1, %tid.x; shr.u32 %r2, %r1, 5;\n" +
        "setp.lt.u32 %p1, %r1, 128; setp.eq.u32 %p2, %r2, 0; setp.eq.u32 %p3, %r1, 0;\n" + body + "\n$end: ret;\n}\n";
    std::string first, code;
    for (const std::uint32_t seed : seeds) {
        Machine machine;
        machine.options.seed = seed;
        const std::string said = machine.failure(text, {.block = {threads, 1, 1}}, 0u);
        if (said == "no failure") machine.code = "none";
        if (seed == 0) first = said, code = machine.code;
        CHECK(machine.code == code);
    }
    return code + ": " + first;
}
const std::string fine = "none: no failure";

const std::string known = ".maxntid 384 .minnctapersm 1";  // 168 registers
std::string specialised(int producer, int consumers, const std::string& after = "") {
    return "@!%p1 bra $a;\nsetmaxnreg.dec.sync.aligned.u32 " + std::to_string(producer) + ";\n" + after +
           "bra $end;\n$a: setmaxnreg.inc.sync.aligned.u32 " + std::to_string(consumers) + ";\n" + after;
}

}  // namespace

TEST_CASE("registers that a warpgroup gives back, and others take") {
    CHECK(finding(known, specialised(40, 232)) == fine);
    CHECK(finding(known, specialised(24, 240)) == fine);
    CHECK(finding(".reqntid 384 .minnctapersm 1", specialised(40, 232)) == fine);
    CHECK(finding(".maxnreg 168", specialised(40, 232)) == fine);
    CHECK(finding(".maxntid 512 .minnctapersm 1", specialised(32, 160), 512) == fine);
    CHECK(finding(known, "setmaxnreg.dec.sync.aligned.u32 168; bar.sync 0; setmaxnreg.inc.sync.aligned.u32 168;",
                  128) == fine);
    CHECK(finding(known, "setmaxnreg.dec.sync.aligned.u32 40; bar.sync 0; setmaxnreg.inc.sync.aligned.u32 168;") ==
          fine);
    // those of a block of fewer threads are fewer
    CHECK(finding(known, specialised(40, 232), 256) == fine);
    CHECK_THAT(finding(known, specialised(120, 232), 256), contains("register-pool: "));
}

TEST_CASE("registers that are not there") {
    CHECK_THAT(finding(known, specialised(80, 224)),
               contains("register-pool: ") && contains("wait for 56 more registers, of which"));
    CHECK_THAT(finding(known, "setmaxnreg.inc.sync.aligned.u32 240;"), contains("register-pool: "));
    CHECK_THAT(finding(known, "setmaxnreg.dec.sync.aligned.u32 176;"),
               contains("register-count: ") && contains("setmaxnreg.dec to 176 registers of a thread that has 168"));
    CHECK_THAT(finding(known, "setmaxnreg.inc.sync.aligned.u32 160;"),
               contains("register-count: ") && contains("setmaxnreg.inc to 160 registers of a thread that has 168"));
    // One block is assumed, as ptxas does.
    for (const char* directives : {".maxntid 384", ".reqntid 384"}) {
        CHECK(finding(directives, specialised(40, 232)) == fine);
        CHECK_THAT(finding(directives, specialised(80, 224)), contains("register-pool: "));
    }
    for (const char* count : {"16", "264", "44", "-8"})
        CHECK_THAT(finding(known, std::string("setmaxnreg.dec.sync.aligned.u32 ") + count + ";"),
                   contains("wrong-immediate: ") && contains("a multiple of 8 from 24 to 256"));
}

TEST_CASE("setmaxnreg has no effect, and a note says so, where nothing says how many registers there are") {
    const std::string text =
        ".version 8.0\n.target sm_90a\n.address_size 64\n.visible .entry k(.param .u32 n)\n{\n"
        "setmaxnreg.dec.sync.aligned.u32 40;\nsetmaxnreg.inc.sync.aligned.u32 232;\nret;\n}\n";
    Machine machine;
    CHECK(machine.failure(text, {.grid = {2, 1, 1}, .block = {384, 1, 1}}, 0u) == "no failure");
    REQUIRE(machine.warnings.size() == 2);
    CHECK_THAT(to_string(machine.warnings[0]),
               contains("kernel.ptx:6:1: note: setmaxnreg has no effect: the kernel says neither") &&
                   contains("hint: give the entry .maxntid"));
    CHECK(machine.warnings[1].where.line == 7);
    machine.options.checks.set(emulator::Check::UnknownRegisters, emulator::Action::Error);
    CHECK_THAT(machine.failure(text, {.block = {384, 1, 1}}, 0u), contains("error: setmaxnreg has no effect"));
}

TEST_CASE("setmaxnreg by the four warps of a warpgroup") {
    const std::string dec = "setmaxnreg.dec.sync.aligned.u32 ";
    CHECK_THAT(finding(known, dec + "40;", 96), contains("partial-warpgroup: ") && contains("a warpgroup of 3 warps"));
    CHECK_THAT(finding(known, "@%p2 bra $end;" + dec + "40;"), contains("partial-warpgroup: "));
    CHECK_THAT(finding(known, "@%p2 bra $a;" + dec + "40; bra $end; $a: " + dec + "40;"),
               contains("divergent-warpgroup: ") && contains("comes to another setmaxnreg"));
    CHECK_THAT(finding(known, "@%p3 bra $end;" + dec + "40;"), contains("partial-warp: "));
    CHECK_THAT(finding(known, dec + "40;" + dec + "32;"),
               contains("registers-not-met: ") && contains("a second setmaxnreg"));
    CHECK(finding(known, dec + "40; bar.sync 0;" + dec + "32;") == fine);
}

TEST_CASE("the elected lane is the same each time, and another one with another seed") {
    std::set<std::uint32_t> of_all, of_some;
    for (std::uint32_t seed = 0; seed < 40; ++seed) {
        Machine machine;
        machine.options.seed = seed;
        const auto y = machine.empty<std::uint32_t>("y", 5 * 64);
        std::string text = kernel(R"(
    mov.u32 %r1, %tid.x; ld.param.u64 %d1, [p0]; mad.wide.u32 %d1, %r1, 4, %d1; and.b32 %r2, %r1, 31;
    setp.lt.u32 %p1, %r2, 12; setp.ge.u32 %p2, %r2, 8; and.pred %p3, %p1, %p2;
    elect.sync %r3|%p4, -1; st.global.b32 [%d1], %r3; selp.b32 %r4, 1, 0, %p4; st.global.b32 [%d1+256], %r4;
    elect.sync %r3|%p4, -1; st.global.b32 [%d1+512], %r3;
    @!%p3 bra $end;
    elect.sync %r3|%p4, 0xf00; st.global.b32 [%d1+768], %r3;
$end: ret;)");
        text.replace(text.find("sm_80"), 5, "sm_90");
        machine.run(text, {.block = {64, 1, 1}}, y, 0ull, 0ull, 0u);
        const auto leader = machine.get<std::uint32_t>(y, 64);
        CHECK(leader == std::vector<std::uint32_t>(64, leader[0]));
        CHECK(machine.get<std::uint32_t>(y + 512, 64) == leader);
        const auto is = machine.get<std::uint32_t>(y + 256, 64);
        for (unsigned i = 0; i < 64; ++i) CHECK(is[i] == (i % 32 == leader[0]));
        const auto some = machine.get<std::uint32_t>(y + 768 + 32, 1)[0];
        CHECK((some >= 8 && some < 12));
        of_all.insert(leader[0]), of_some.insert(some);
        if (seed == 0) CHECK((leader[0] == 0 && some == 8));
    }
    CHECK(of_all.size() > 15);
    CHECK(of_some.size() == 4);
}

TEST_CASE("grids do not overlap") {
    CHECK(finding("", "griddepcontrol.launch_dependents; griddepcontrol.wait;") == fine);
}

TEST_CASE("dynamic shared memory begins at what its declaration asks for") {
    const auto residues = [](const std::string& alignment, std::uint32_t dividend, std::uint32_t fixed) {
        std::set<std::uint32_t> found;
        for (std::uint32_t seed = 0; seed < 16; ++seed) {
            Machine machine;
            machine.options.seed = seed;
            const auto y = machine.empty<std::uint32_t>("y", 1);
            machine.run(
                kernel(".shared .align 4 .b8 fixed[" + std::to_string(fixed) +
                           "]; st.shared.b8 [fixed], 1; mov.u32 %r1, dynamic; st.shared.b32 [dynamic+124], %r1;\n"
                           "ld.shared.b32 %r1, [dynamic+124]; ld.param.u64 %d1, [p0]; st.global.b32 [%d1], %r1; ret;",
                       ".extern .shared .align " + alignment + " .b8 dynamic[];"),
                {.block = {1, 1, 1}, .dynamic_shared_bytes = 128}, y, 0ull, 0ull, 0u);
            found.insert(machine.get<std::uint32_t>(y, 1)[0] % dividend);
        }
        return found;
    };
    using Set = std::set<std::uint32_t>;
    CHECK(residues("16", 32, 4) == Set{16});
    CHECK(residues("16", 32, 20) == Set{0, 16});
    CHECK(residues("128", 256, 200) == Set{0, 128});
    CHECK(residues("1", 32, 20) == Set{0, 16});
}

TEST_CASE("static shared memory is at most 48 KiB, with dynamic shared memory it is more") {
    Machine machine;
    const auto text = [](int bytes) {
        return kernel(".shared .align 16 .b8 fixed[" + std::to_string(bytes) + "]; mov.u32 %r1, fixed; ret;",
                      ".extern .shared .align 16 .b8 dynamic[];");
    };
    const auto run = [&](int bytes, std::uint32_t dynamic) {
        return machine.failure(text(bytes), {.block = {1, 1, 1}, .dynamic_shared_bytes = dynamic}, 0ull, 0ull, 0ull,
                               0u);
    };
    CHECK(run(48 * 1024, 0) == "no failure");
    CHECK_THAT(run(48 * 1024 + 16, 0), contains("49168 bytes of static shared memory") && contains(".extern .shared"));
    CHECK(machine.code == "launch-refused");
    CHECK(run(48 * 1024, 179 * 1024) == "no failure");
    CHECK_THAT(run(48 * 1024, 179 * 1024 + 16), contains("a block has at most 232448 bytes"));
}

}  // namespace ikat::tests::register_pools
