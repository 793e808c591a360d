// SPDX-License-Identifier: Apache-2.0
// Each launch in several orders; findings that are known; what has been checked.
#include <unistd.h>

#include <cstdio>
#include <fstream>

#include "runtime/emulator/core/checks/suppressions.hpp"
#include "tests/catch.hpp"
#include "tests/environment.hpp"
#include "tests/unit/runtime/cuda_fixture.hpp"
#include "tests/unit/runtime/emulator.hpp"

namespace ikat::tests {
namespace {

using namespace runtime;

/// Warp 0 sets a flag in global memory, warp 1 traps if it has not; all count up in `sum`, and print.
const char* const flags = R"(.version 7.0
.target sm_75
.address_size 64
.extern .func (.param .u64 at) malloc(.param .u64 bytes);
.visible .entry flags(.param .u64 flag, .param .u64 sum, .param .u32 traps, .param .u32 allocates)
{
    .reg .b32 %r<9>; .reg .b64 %d<9>; .reg .pred %p<9>;
    ld.param.u64 %d1, [flag]; ld.param.u64 %d2, [sum]; ld.param.u32 %r1, [traps]; ld.param.u32 %r2, [allocates];
    setp.eq.u32 %p5, %r2, 0; @%p5 bra $sum;
    { .param .u64 bytes; .param .u64 at; st.param.u64 [bytes], 8; call.uni (at), malloc, (bytes); }
$sum: red.global.add.u32 [%d2], 1; mov.u32 %r3, %tid.x; setp.ge.u32 %p1, %r3, 32; @%p1 bra $second;
    st.global.u32 [%d1], 1; ret;
$second: ld.global.u32 %r4, [%d1]; setp.eq.u32 %p2, %r4, 0; setp.ne.u32 %p3, %r1, 0; and.pred %p4, %p2, %p3;
    @%p4 trap; ret;
}
)";

struct Outcome {
    std::string said;
    std::uint32_t flag = 0, sum = 0;
    std::vector<emulator::Coverage> coverage;
    emulator::SharedSuppressions suppressed;
};

Outcome run(OpenOptions options, bool traps, bool allocates = false) {
    Outcome out;
    options.device = "emulator";
    options.threads = 1;
    options.coverage = &out.coverage;
    options.suppressed = &out.suppressed;
    const Device device = Device::open(options);
    const Module module = device.load(flags, "flags.ptx");
    Buffer<std::uint32_t> flag = device.upload(std::vector<std::uint32_t>{0}),
                          sum = device.upload(std::vector<std::uint32_t>{5});
    const Argument list[] = {{.type = ir::Type::U32, .part = flag.memory().whole()},
                             {.type = ir::Type::U32, .part = sum.memory().whole()},
                             {.type = ir::Type::U32, .bits = traps},
                             {.type = ir::Type::U32, .bits = allocates}};
    out.said = message_of([&] { device.launch(module, "flags", {{1}, {64}}, pack(list)); });
    out.flag = flag.download().front();
    out.sum = sum.download().front();
    return out;
}

}  // namespace

TEST_CASE("a launch in several orders: the first one's results stand, and a finding in any is one") {
    CHECK(run({.schedule = "0", .schedules = 1}, true).said == "");
    const Outcome found = run({.schedule = "0", .schedules = 8}, true);
    CHECK_THAT(found.said, contains("trap"));
    CHECK_THAT(found.said, contains("IKAT_SCHEDULE="));
    CHECK(!contains("IKAT_SCHEDULE=0 ").match(found.said));
    CHECK(found.flag == 1);
    CHECK(found.sum == 69);
    CHECK(found.coverage.empty());

    const Outcome clean = run({.schedule = "0", .check = "no-races", .schedules = 8}, false);
    CHECK(clean.said == "");
    CHECK(clean.sum == 69);
    REQUIRE(clean.coverage.size() == 1);
    CHECK(clean.coverage[0].entry == "flags");
    CHECK(clean.coverage[0].orders == 8);
    CHECK(clean.coverage[0].asked == 8);
    CHECK(clean.coverage[0].races.global == 0);
    CHECK(clean.coverage[0].heap_bytes == 0);
    const Environment several("IKAT_SCHEDULES", "3");
    CHECK(run({}, false).coverage.at(0).orders == 3);
    CHECK(run({.schedules = 1}, false).coverage.at(0).orders == 1);
    const Environment none("IKAT_SCHEDULES", "none");
    CHECK_THAT(message_of([] { run({}, false); }), contains("IKAT_SCHEDULES is 'none'"));
}

TEST_CASE("the order that a finding names repeats it") {
    for (const char* const first : {"0", "5", "2,priorities,early,any-leader"}) {
        INFO(first);
        const Outcome found = run({.schedule = first, .schedules = 8}, true);
        INFO(found.said);
        const std::size_t at = found.said.find("IKAT_SCHEDULE=");
        REQUIRE(at != std::string::npos);
        const std::string text = found.said.substr(at + 14, found.said.find(' ', at) - at - 14);
        CHECK(run({.schedule = text, .schedules = 1}, true).said == found.said);
        const Environment by("IKAT_SCHEDULE", text.c_str());
        CHECK(run({.schedules = 1}, true).said == found.said);
    }
}

TEST_CASE("a schedule that is none is an error that lists the words") {
    const std::string said = message_of([] { run({.schedule = "7,erly"}, false); });
    CHECK_THAT(said, contains("there is no schedule '7,erly'"));
    for (const char* const word :
         {"lanes: ", "moved-shared: ", "any-leader: ", "ascending: ", "descending: ", "priorities: ", "early: ",
          "late: ", "missed-waits: ", "starved-block: ", "any-blocks: "})
        CHECK_THAT(said, contains(word));
    const Environment none("IKAT_SCHEDULE", "0,early,late");
    CHECK_THAT(message_of([] { run({}, false); }),
               contains("there is no schedule '0,early,late' (from IKAT_SCHEDULE)"));
}

TEST_CASE("a launch that changes which buffers there are runs in one order") {
    const Outcome out = run({.schedules = 8}, false, true);
    CHECK(out.said == "");
    CHECK(out.sum == 69);
    REQUIRE(out.coverage.size() == 1);
    CHECK(out.coverage[0].heap_bytes == 64 * 8);
    CHECK(out.coverage[0].orders == 1);
    CHECK(out.coverage[0].asked == 8);
}

TEST_CASE("known findings do not end a launch, and say whether they were used") {
    CHECK_THAT(run({.schedule = "0", .check = "races", .schedules = 1}, false).said, contains("a race"));
    const std::string file = "known_" + std::to_string(getpid()) + ".txt";
    std::ofstream(file) << "# known\n\nraces  flags.ptx:13 warp 1 looks too early\nraces flags.ptx:13 the same\n"
                           "races lags.ptx:13 of no file\nregisters flags.ptx:13 of another class\n";
    const OpenOptions once{.schedule = "0", .check = "races", .suppressions = file, .schedules = 1};
    const Outcome out = run(once, false);
    CHECK(out.said == "");
    REQUIRE(out.suppressed.file);
    const std::vector<Diagnostic> unused = out.suppressed.file->unused();
    REQUIRE(unused.size() == 2);
    CHECK_THAT(to_string(unused[0]),
               contains(file + ":5:1: warning: nothing was found that this suppresses: races lags.ptx:13"));
    CHECK(unused[1].where.line == 6);
    CHECK(out.coverage.at(0).races.global == 128);
    {
        const Environment by("IKAT_SUPPRESS", file.c_str());
        CHECK(run({.schedule = "0", .check = "races", .schedules = 1}, false).said == "");
    }
    OpenOptions several = once;  // in some orders the other access comes last, whose line is then that of the race
    several.schedules = 8;
    CHECK_THAT(run(several, false).said, contains("flags.ptx:12:5: error: a race"));
    std::ofstream(file, std::ios::app) << "races flags.ptx:12 warp 0 comes last\n";
    CHECK(run(several, false).said == "");
    for (const auto& [text, says] : {std::pair("race a.ptx:1 x", "there is no class 'race'"),
                                     {"races a.ptx", "'a.ptx' is not FILE:LINE"},
                                     {"races a.ptx:0 x", "'a.ptx:0' is not FILE:LINE"},
                                     {"races :3 x", "':3' is not FILE:LINE"},
                                     {"races a.ptx:3", "there is no reason"}}) {
        std::ofstream(file) << "\n" << text;
        CHECK_THAT(message_of([&] { run({.suppressions = file}, false); }), contains(file + ":2:1: error: " + says));
    }
    std::remove(file.c_str());
    CHECK_THAT(message_of([&] { run({.suppressions = file}, false); }), contains("cannot read the suppressions"));
}

}  // namespace ikat::tests
