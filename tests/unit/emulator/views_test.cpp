// SPDX-License-Identifier: Apache-2.0
// Accesses inside of a buffer but outside of what the launch was given of it (tools/views).
#include "runtime/emulator/core/tool.hpp"
#include "runtime/emulator/machine/block.hpp"
#include "tests/unit/emulator/machine.hpp"
#include "tests/unit/emulator/targets.hpp"

using ikat::emulator::Action;
using ikat::emulator::Check;
using ikat::emulator::LaunchView;

namespace ikat::tests::views {

namespace {

using Extents = std::vector<std::uint64_t>;

constexpr std::size_t elements = 64 * 256;

struct Outcome {
    std::string error;
    std::string code;
    std::vector<std::string> warnings{};
    std::vector<std::uint32_t> x{};

    std::string all() const {
        std::string text = error == "no failure" ? "" : error;
        for (const std::string& each : warnings) text += each + "\n";
        return text;
    }
};

struct Given {
    Extents extents, pitches{};
    std::uint64_t first = 0;  // element
    Extents halo{};
};

struct How {
    Action views = Action::Error;
    std::uint32_t threads = 32;
    bool is_target_90 = false;
};

/// Runs a body with %r1 the thread, %d1 the address of x, %d2 that of y, and %d3 that of x moved on by `at` elements of
/// 4 bytes and one for each thread. x has 64 rows of 256 elements, of which the launch is given `given`; y is whole.
Outcome run(const std::string& body, const std::vector<Given>& given, std::int64_t at = 0, How how = {}) {
    Machine machine;
    machine.options.checks.set(Check::Views, how.views);
    const auto x = machine.buffer("x", std::vector<std::uint32_t>(elements, 7)),
               y = machine.buffer("y", std::vector<std::uint32_t>(256));
    emulator::Launch launch{.block = {how.threads, 1, 1}};
    for (std::size_t i = 0; i < given.size(); ++i)
        launch.views.push_back({.argument = i ? "b" : "a",
                                .address = x + given[i].first * 4,
                                .element_bytes = 4,
                                .extents = given[i].extents,
                                .pitches = given[i].pitches,
                                .halo = given[i].halo});
    launch.views.push_back({.argument = "y", .address = y, .element_bytes = 4, .extents = {256}, .pitches = {}});
    std::string text = kernel(
        "ld.param.u64 %d1, [p0]; ld.param.u64 %d2, [p1]; ld.param.u64 %d3, [p2]; mov.u32 %r1, %tid.x;\n"
        "add.u64 %d3, %d3, %d1; mul.wide.u32 %d6, %r1, 4; add.u64 %d3, %d3, %d6;\n" +
        body + "\nret;");
    if (how.is_target_90) text.replace(text.find("sm_80"), 5, "sm_90");
    Outcome out{.error = machine.failure(text, launch, x, y, at * 4, 0u), .code = machine.code};
    for (const Diagnostic& warning : machine.warnings) out.warnings.push_back(to_string(warning));
    out.x = machine.get<std::uint32_t>(x, elements);
    return out;
}

std::string said(const std::string& body, const std::vector<Given>& given, std::int64_t at = 0, How how = {}) {
    return run(body, given, at, how).all();
}

const std::string load = "ld.global.u32 %r2, [%d3]; st.global.u32 [%d2], %r2;", store = "st.global.u32 [%d3], %r1;";
const std::string silent;
const Given view{.extents = {50, 200}, .pitches = {256}};

}  // namespace

TEST_CASE("a column beyond a view, a row beyond it, and what is before it") {
    CHECK(said(load, {view}, 168) == silent);
    const Outcome column = run(load, {view}, 7 * 256 + 171);
    CHECK_THAT(column.error,
               contains("global load of 4 bytes at column 200 of row 7 of argument 'a', a view of 50 x 200 "
                        "elements with a pitch of 256, by block (0,0,0) thread (29,0,0)"));
    CHECK_THAT(column.error, contains("this is inside of its buffer, at offset 7968 of buffer 'x' (65536 bytes)") &&
                                 contains("check the index against the extents of the view; a kernel that reads its "
                                          "neighbours on purpose says how far"));
    CHECK(column.code == "outside-view");
    CHECK(said(load, {view}, 49 * 256 + 168) == silent);
    CHECK_THAT(said(load, {view}, 50 * 256), contains("at column 0 of row 50 of argument 'a'"));
    CHECK_THAT(said(store, {view}, 49 * 256 + 169), contains("global store of 4 bytes at column 200 of row 49"));
    const Given later{.extents = {8, 100}, .pitches = {256}, .first = 256 + 10};
    CHECK(said(load, {later}, 256 + 10) == silent);
    CHECK_THAT(said(load, {later}, 256 + 8), contains("at 8 bytes before argument 'a'"));
    CHECK_THAT(said("add.u64 %d3, %d3, -4; " + load, {later}, 256 * 2 + 10), contains("column 255 of row 0"));
}

TEST_CASE("the address of a generic access, one with an offset, atomics") {
    CHECK_THAT(said("ld.u32 %r2, [%d3]; st.global.u32 [%d2], %r2;", {view}, 200), contains("column 200 of row 0"));
    CHECK_THAT(said("ld.global.u32 %r2, [%d3+800]; st.global.u32 [%d2], %r2;", {view}),
               contains("column 200 of row 0"));
    CHECK(said("ld.global.u32 %r2, [%d3+-128]; st.global.u32 [%d2], %r2;", {view}, 200) == silent);
    CHECK_THAT(said("atom.global.add.u32 %r2, [%d3], 1;", {view}, 201),
               contains("global atomic of 4 bytes at column 201"));
    CHECK_THAT(said("red.global.add.u32 [%d3], 1;", {view}, 202), contains("global atomic of 4 bytes at column 202"));
    CHECK(said(".shared .b32 s[64]; mov.u32 %r3, s; cvt.u64.u32 %d4, %r3; cvta.shared.u64 %d4, %d4; st.u32 [%d4], 1;"
               "ld.u32 %r2, [%d4];",
               {view}) == silent);
}

TEST_CASE("lanes that do not execute, and those of two rows") {
    CHECK(said("setp.lt.u32 %p1, %r1, 8; @%p1 " + load.substr(0, load.find(';') + 1), {view}, 192) == silent);
    CHECK_THAT(said("setp.le.u32 %p1, %r1, 8; @%p1 " + load.substr(0, load.find(';') + 1), {view}, 192),
               contains("column 200 of row 0") && contains("thread (8,0,0)"));
    const std::string rows = "shr.u32 %r3, %r1, 4; mul.wide.u32 %d4, %r3, 960; add.u64 %d3, %d3, %d4; " + load;
    CHECK(said(rows, {view}, 184) == silent);
    CHECK_THAT(said(rows, {view}, 186), contains("column 200 of row 0") && contains("thread (14,0,0)"));
    CHECK_THAT(said("mul.wide.u32 %d4, %r1, 1020; add.u64 %d3, %d3, %d4; " + load, {view}, 30 * 256),
               contains("column 0 of row 50") && contains("thread (20,0,0)"));
}

TEST_CASE("a vector may be read into the padding of its row, and not be written there") {
    const Given odd{.extents = {50, 198}, .pitches = {256}};
    const std::string one = "setp.ne.u32 %p1, %r1, 0; @%p1 bra $end; ";
    const std::string reads = one + "ld.global.v4.u32 {%r2, %r3, %r4, %r5}, [%d3]; $end: ",
                      writes = one + "st.global.v4.u32 [%d3], {%r1, %r1, %r1, %r1}; $end: ";
    for (const std::int64_t row : {0, 49}) {
        CHECK(said(reads, {odd}, row * 256 + 196) == silent);
        CHECK_THAT(said(reads, {odd}, row * 256 + 200), contains("global load of 16 bytes at column 200 of row"));
        CHECK(said(writes, {odd}, row * 256 + 192) == silent);
        CHECK_THAT(said(writes, {odd}, row * 256 + 196),
                   contains("global store of 16 bytes that reaches column 198 of row"));
    }
    // The second warp begins in the run that the first one has met.
    CHECK_THAT(said("mul.wide.u32 %d4, %r1, 12; add.u64 %d3, %d3, %d4; st.global.v4.u32 [%d3], {%r1, %r1, %r1, %r1};",
                    {{.extents = {50, 254}, .pitches = {256}}}, 0, {.threads = 64}),
               contains("that reaches column 254 of row 0") && contains("thread (63,0,0)"));
    // After a slice, and after rows without a gap, there is no padding; a row by itself may have some.
    CHECK_THAT(said(reads, {{.extents = {198}}}, 196),
               contains("that reaches element 198 of argument 'a', a slice of 198"));
    CHECK_THAT(said(reads, {{.extents = {3, 66}, .pitches = {66}}}, 196), contains("that reaches column 0 of row 3"));
    CHECK(said(reads, {{.extents = {1, 198}, .pitches = {200}}}, 196) == silent);
    CHECK_THAT(said(reads, {{.extents = {1, 198}, .pitches = {199}}}, 196), contains("that reaches column"));
    CHECK(said(reads, {{.extents = {3, 66}, .pitches = {67}}}, 64) == silent);  // over the padding, into the next row
}

TEST_CASE("slices, views of rank 3, and rows that follow each other") {
    const Given slice{.extents = {32}, .first = 64};
    CHECK(said(load, {slice}, 64) == silent);
    CHECK_THAT(said(load, {slice}, 65),
               contains("global load of 4 bytes at element 32 of argument 'a', a slice of 32 elements, by block"));
    CHECK_THAT(said(store, {slice}, 63), contains("at 4 bytes before argument 'a'"));
    CHECK_THAT(said(load, {{.extents = {0}, .first = 64}}, 64),
               contains("at element 0 of argument 'a', a slice of 0 elements"));
    const Given planes{.extents = {3, 4, 40}, .pitches = {1024, 64}};
    CHECK(said(load, {planes}, 2 * 1024 + 3 * 64 + 8) == silent);
    CHECK_THAT(
        said(load, {planes}, 2 * 1024 + 3 * 64 + 9),
        contains("at column 40 of row 3 of plane 2 of argument 'a', a view of 3 x 4 x 40 elements with a pitch of "
                 "1024 and 64"));
    CHECK_THAT(said(load, {planes}, 1024 + 4 * 64), contains("at column 0 of row 4 of plane 1"));
    CHECK_THAT(said(load, {planes}, 3 * 1024), contains("at column 0 of row 0 of plane 3"));
    const Given dense{.extents = {3, 4, 40}, .pitches = {256, 64}};
    CHECK(said(load, {dense}, 2 * 256 + 3 * 64 + 8) == silent);
    CHECK_THAT(said(load, {dense}, 256 + 2 * 64 + 9), contains("at column 40 of row 2 of plane 1"));
    CHECK_THAT(said(load, {dense}, 3 * 256), contains("at column 0 of row 0 of plane 3"));
    const Given rows{.extents = {16, 32}, .pitches = {32}, .first = 256};
    CHECK(said(load, {rows}, 256 + 15 * 32) == silent);
    CHECK_THAT(said(load, {rows}, 256 + 15 * 32 + 1), contains("at column 0 of row 16"));
}

TEST_CASE("two arguments of a buffer are not told apart") {
    const Given first{.extents = {32}}, second{.extents = {32}, .first = 32}, far{.extents = {32}, .first = 1000};
    CHECK(said(load, {first, second}, 16) == silent);
    const std::string across =
        "setp.ne.u32 %p1, %r1, 0; @%p1 bra $end; st.global.v4.u32 [%d3], {%r1, %r1, %r1, %r1}; $end: ";
    CHECK(said(across, {{.extents = {2}}, {.extents = {2}, .first = 2}}) == silent);
    CHECK_THAT(said(across, {{.extents = {2}}, {.extents = {2}, .first = 3}}),
               contains("that reaches element 2 of argument 'a'"));
    CHECK_THAT(said(load, {first, far}, 999), contains("at element 999 of argument 'a'"));
    CHECK_THAT(said(load, {first, far}, 1001), contains("at element 32 of argument 'b', a slice of 32 elements") &&
                                                   contains("and outside of all 2 arguments that are parts of it"));
}

TEST_CASE("a halo is read, and not written") {
    const Given inner{.extents = {8, 30}, .pitches = {256}, .first = 256 + 1, .halo = {1, 1}};
    for (const std::int64_t row : {0, 1, 8, 9}) {
        CHECK(said(load, {inner}, row * 256) == silent);
        CHECK_THAT(said(load, {inner}, row * 256 + 1), contains(row ? "at column 31 of row " + std::to_string(row - 1)
                                                                    : "at 900 bytes before argument 'a'"));
    }
    CHECK_THAT(said(load, {inner}, 10 * 256), contains("at column 255 of row 8"));
    CHECK_THAT(said(store, {inner}, 256), contains("global store of 4 bytes at 4 bytes before argument 'a'"));
    CHECK_THAT(said(store, {inner}, 256 + 1), contains("global store of 4 bytes at column 30 of row 0"));
    const Given slice{.extents = {28}, .first = 2, .halo = {2}};
    CHECK(said(load, {slice}) == silent);
    CHECK_THAT(said(load, {slice}, 1), contains("at element 30 of argument 'a'"));
    // Halos that are wider than the gaps, also of planes.
    CHECK(said(load, {{.extents = {4, 30}, .pitches = {32}, .first = 256, .halo = {0, 4}}}, 256 + 30) == silent);
    const Given planes{.extents = {3, 4, 32}, .pitches = {256, 64}, .first = 1024, .halo = {0, 1, 0}};
    CHECK(said(load, {planes}, 1024 + 2 * 256 + 4 * 64) == silent);
    CHECK_THAT(said(load, {planes}, 1024 + 2 * 256 + 5 * 64), contains("at column 0 of row 1 of plane 3"));
}

TEST_CASE("copies of a thread, and in bulk") {
    const std::string shared =
        ".shared .align 16 .b8 tile[1024]; mov.u32 %r3, tile; shl.b32 %r4, %r1, 4; "
        "add.u32 %r3, %r3, %r4; mul.wide.u32 %d4, %r1, 12; add.u64 %d3, %d3, %d4; ";
    const Given odd{.extents = {50, 198}, .pitches = {256}};
    const auto copy = [&](const std::string& more) {
        return shared + "cp.async.cg.shared.global [%r3], [%d3], 16" + more + "; cp.async.wait_all;";
    };
    CHECK(said(copy(""), {odd}, 196 - 31 * 4) == silent);
    CHECK_THAT(said(copy(""), {odd}, 200 - 31 * 4),
               contains("global load of 16 bytes at column 200 of row 0") && contains("thread (31,0,0)"));
    CHECK(said(copy(", 0"), {odd}, 200) == silent);
    CHECK_THAT(said(copy(", 4"), {odd}, 200), contains("global load of 4 bytes at column 200"));
    const auto bulk = [&](int bytes) {
        return ".shared .align 16 .b8 tile[1024]; .shared .align 8 .b64 bar; setp.ne.u32 %p1, %r1, 0; @%p1 bra $end;"
               "mbarrier.init.shared.b64 [bar], 1; fence.proxy.async;"
               "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [tile], [%d3], " +
               std::to_string(bytes) + ", [bar]; mbarrier.arrive.expect_tx.shared.b64 %d5, [bar], " +
               std::to_string(bytes) + "; $ask: mbarrier.test_wait.shared.b64 %p2, [bar], %d5; @!%p2 bra $ask; $end: ";
    };
    CHECK(said(bulk(800), {odd}, 256, {.is_target_90 = true}) == silent);
    CHECK_THAT(said(bulk(816), {odd}, 256, {.is_target_90 = true}),
               contains("global load of 816 bytes that reaches column 198 of row 1"));
    const std::string bulk_store =
        ".shared .align 16 .b8 tile[1024]; setp.ne.u32 %p1, %r1, 0; @%p1 bra $end; mov.u32 %r5, 0; $fill:"
        "mov.u32 %r3, tile; add.u32 %r3, %r3, %r5; st.shared.u32 [%r3], 1; add.u32 %r5, %r5, 4; setp.lt.u32 %p3, %r5, "
        "1024;"
        "@%p3 bra $fill; fence.proxy.async; cp.async.bulk.global.shared::cta.bulk_group [%d3], [tile], 800;"
        "cp.async.bulk.commit_group; cp.async.bulk.wait_group 0; $end: ";
    CHECK(said(bulk_store, {view}, 256, {.is_target_90 = true}) == silent);
    CHECK_THAT(said(bulk_store, {odd}, 256, {.is_target_90 = true}),
               contains("global store of 800 bytes that reaches column 198 of row 1"));
}

TEST_CASE("what is outside of its buffer is not the view's finding") {
    CHECK_THAT(said(load, {view}, elements), contains("right past the end of buffer 'x'"));
    CHECK_THAT(said("add.u64 %d3, %d3, 2; " + load, {view}, 220), contains("misaligned"));
    CHECK(said("st.global.u32 [%d2+64], %r1;", {view}) == silent);
}

TEST_CASE("after a warning the access takes place") {
    const Outcome out = run(store, {view}, 190, {.views = Action::Warning});
    CHECK(out.error == "no failure");
    REQUIRE(out.warnings.size() == 1);
    CHECK_THAT(out.warnings[0], contains("warning: global store of 4 bytes at column 200 of row 0"));
    CHECK(out.x[190 + 31] == 31);
    CHECK(said(store, {view}, 190, {.views = Action::Off}) == silent);
}

namespace {

/// Remembers how many ops the code has, and its own slot.
class Measure final : public emulator::Tool {
public:
    std::string_view name() const override { return "measure"; }
    std::unique_ptr<emulator::LaunchTool> of(emulator::LaunchState& launch, std::size_t slot) const override {
        ops = launch.kernel.code.size();
        tools = slot;
        return nullptr;
    }
    mutable std::size_t ops = 0, tools = 0;
};

}  // namespace

TEST_CASE("whole views cost nothing") {
    const auto measure = std::make_shared<Measure>();
    Machine machine;
    machine.options.tools.push_back(measure);
    const auto x = machine.buffer("x", std::vector<std::uint32_t>(1024, 7));
    const auto measured = [&](const Extents& extents, const Extents& pitches, bool is_off = false) {
        machine.options.checks.set(Check::Views, is_off ? Action::Off : Action::Error);
        emulator::Launch launch{.block = {32, 1, 1}};
        if (!extents.empty())
            launch.views.push_back(
                {.argument = "x", .address = x, .element_bytes = 4, .extents = extents, .pitches = pitches});
        machine.run(kernel("ld.param.u64 %d1, [p0]; ld.global.u32 %r1, [%d1]; st.global.u32 [%d1], %r1; ret;"), launch,
                    x, x, x, 0u);
        return std::pair(measure->ops, measure->tools);
    };
    const auto without = measured({}, {});
    CHECK(measured({1024}, {}) == without);
    CHECK(measured({32, 32}, {32}) == without);
    CHECK(measured({4, 8, 32}, {256, 32}) == without);
    CHECK(measured({1, 1024}, {5}) == without);
    for (const auto& [extents, pitches] :
         {std::pair<Extents, Extents>{{1023}, {}}, {{31, 32}, {32}}, {{32, 31}, {32}}}) {
        CHECK(measured(extents, pitches) == std::pair(without.first + 2, without.second + 1));
        CHECK(measured(extents, pitches, true) == without);
    }
}

}  // namespace ikat::tests::views
