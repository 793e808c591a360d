// SPDX-License-Identifier: Apache-2.0
// PTX text on the emulator: findings, the order of warps, uninitialised registers, mistakes found before anything runs,
// and memory traffic.
#include <algorithm>
#include <array>
#include <numeric>
#include <set>

#include "tests/catch.hpp"
#include "tests/unit/runtime/cuda_fixture.hpp"
#include "tests/unit/runtime/emulator.hpp"
#include "tests/unit/runtime/increment.hpp"

namespace ikat::tests {
namespace {

using namespace runtime;

TEST_CASE("PTX text runs on the emulator") {
    const Device device = emulator();
    const Module module = device.load(increment, "increment.ptx");
    const Buffer<std::uint32_t> in = device.upload(std::vector<std::uint32_t>{1, 2, 3}, "in");
    Buffer<std::uint32_t> out = device.buffer<std::uint32_t>(3, "out");
    device.launch(module, "increment", grid(3, 2), parameters(in, out, 3));
    CHECK(out.download() == std::vector<std::uint32_t>{2, 3, 4});
    device.launch(module, "increment", grid(0, 2), parameters(in, out, 3));
}

TEST_CASE("PTX text: an access out of bounds is a kernel error that names buffer and line") {
    const Device device = emulator();
    const Module module = device.load(increment, "increment.ptx");
    const Buffer<std::uint32_t> in = device.upload(std::vector<std::uint32_t>{1, 2, 3}, "in");
    Buffer<std::uint32_t> out = device.buffer<std::uint32_t>(2, "out");
    const auto run = [&] { device.launch(module, "increment", grid(3, 32), parameters(in, out, 3)); };
    CHECK_THROWS_AS(run(), KernelError);
    const std::string message = message_of(run);
    CHECK_THAT(message, contains("increment.ptx:23"));
    CHECK_THAT(message, contains("'out'"));
}

/// Each warp writes its number to the same word and, if `fails`, beyond the buffer's end.
std::string last_warp(bool fails = false) {
    return std::string(
               ".version 7.0\n.target sm_75\n.address_size 64\n.visible .entry last(.param .u64 out)\n{\n"
               ".reg .b32 %r<2>; .reg .b64 %d<2>; ld.param.u64 %d1, [out]; mov.u32 %r1, %tid.x;\n"
               "shr.u32 %r1, %r1, 5; st.global.u32 [%d1") +
           (fails ? "+4" : "") + "], %r1; ret;\n}\n";
}

/// The warp that wrote last in each of some launches.
std::vector<std::uint32_t> last_warps(std::string_view schedule, std::uint32_t warps, int launches) {
    const Device device = Device::open({.device = "emulator", .threads = 1, .schedule = schedule});
    const Module module = device.load(last_warp(), "last.ptx");
    Buffer<std::uint32_t> out = device.buffer<std::uint32_t>(1, "out");
    const Argument list[] = {{.type = ir::Type::U32, .part = out.memory().whole()}};
    std::vector<std::uint32_t> last;
    for (int i = 0; i < launches; ++i) {
        device.launch(module, "last", {{1}, {32 * warps}}, pack(list));
        last.push_back(out.download().front());
    }
    return last;
}

TEST_CASE("the order of warps: by the launch's number, or as set by options or the environment") {
    using Numbers = std::vector<std::uint32_t>;
    CHECK(last_warps("0", 8, 3) == Numbers{7, 7, 7});
    Numbers both = last_warps("", 2, 2);  // one of them ascending, one descending
    std::ranges::sort(both);
    CHECK(both == Numbers{0, 1});
    Numbers many = last_warps("", 8, 64);
    for (std::uint32_t warp = 0; warp < 8; ++warp) CHECK(std::ranges::count(many, warp) > 0);
    const Numbers fixed = last_warps("5", 8, 8);
    CHECK(std::ranges::count(fixed, fixed.front()) == 8);
    CHECK(last_warps("1", 2, 1) == Numbers{0});
    CHECK(last_warps("random", 8, 4).size() == 4);
    const Environment schedule("IKAT_SCHEDULE", "5");
    CHECK(last_warps("", 8, 8) == fixed);
    CHECK(last_warps("0", 8, 1) == Numbers{7});  // the program goes first
    for (const char* wrong : {"one", "-1", "1,", "7,lane", "7,lanes,", "7,,lanes", "4294967296", "0x1"}) {
        const Environment other("IKAT_SCHEDULE", wrong);
        CHECK_THAT(message_of([] { last_warps("", 2, 1); }),
                   contains("there is no schedule '" + std::string(wrong) + "' (from IKAT_SCHEDULE)"));
    }
}

TEST_CASE("a finding says how to repeat its order of warps") {
    const auto failure = [](std::string_view schedule) {
        return message_of([&] {
            const Device device = Device::open({.device = "emulator", .threads = 1, .schedule = schedule});
            const Module module = device.load(last_warp(true), "last.ptx");
            Buffer<std::uint32_t> out = device.buffer<std::uint32_t>(1, "out");
            const Argument list[] = {{.type = ir::Type::U32, .part = out.memory().whole()}};
            device.launch(module, "last", {{1}, {256}}, pack(list));
        });
    };
    CHECK_THAT(failure("0"), contains("; IKAT_SCHEDULE=0 repeats this order of warps"));
    CHECK_THAT(failure("0"), contains("thread (0,0,0)"));
    for (const std::string_view words : {"7", "7,lanes", "7,moved-shared", "7,lanes,moved-shared,any-leader"})
        CHECK_THAT(failure(words), contains("; IKAT_SCHEDULE=" + std::string(words) + " repeats this order of warps"));
    const std::string first = failure("");
    const auto at = first.find("IKAT_SCHEDULE=") + std::string_view("IKAT_SCHEDULE=").size();
    CHECK(failure(first.substr(at, first.find(' ', at) - at)) == first);
}

/// out[0] = an uninitialised register.
constexpr const char* unassigned = R"(.version 7.0
.target sm_75
.address_size 64
.visible .entry k(.param .u64 out)
{
    .reg .b32 %r1; .reg .b64 %d1;
    ld.param.u64 %d1, [out]; st.global.u32 [%d1], %r1; ret;
}
)";

TEST_CASE("uninitialised registers of foreign PTX are found if options or the environment ask for it") {
    const auto result = [](std::string_view check) {
        return message_of([&] {
            const Device device = Device::open({.device = "emulator", .check = check});
            const Module module = device.load(unassigned, "unassigned.ptx");
            Buffer<std::uint32_t> out = device.buffer<std::uint32_t>(1, "out");
            const Argument list[] = {{.type = ir::Type::U32, .part = out.memory().whole()}};
            device.launch(module, "k", {{1}, {1}}, pack(list));
        });
    };
    const Environment nothing("IKAT_CHECK", "");
    CHECK(result("") == "");
    CHECK_THAT(result("registers"), contains("note: a register that nothing has assigned"));
    for (const char* const several : {"registers,no-barrier-fences", "no-barrier-fences,registers"})
        CHECK_THAT(result(several), contains("note: a register that nothing has assigned"));
    CHECK(result("no-barrier-fences") == "");
    CHECK(result("registers,no-registers") == "");
    for (const char* const all : {"all", "all=error", "no-all,registers", "strict", "no-registers,strict"})
        CHECK_THAT(result(all), contains("note: a register that nothing has assigned"));
    for (const char* const none : {"registers,no-all", "registers=off", "registers=warning", "strict,no-registers"})
        CHECK(result(none) == "");
    for (const char* const wrong : {"register", "registers,,all", "no-no-all", "no-strict"})
        CHECK_THAT(result(wrong),
                   contains("error: there is no check '") && contains("hint: checks are all, strict, bounds,"));
    CHECK_THAT(result("bounds=fatal"), contains("error: there is no severity 'fatal'\n") &&
                                           contains("hint: severities are error, warning, note and off"));
    const Environment registers("IKAT_CHECK", "registers");
    CHECK_THAT(result(""), contains("note: a register that nothing has assigned"));
    const Environment wrong("IKAT_CHECK", "register");
    CHECK_THAT(result(""), contains("error: there is no check 'register' (from IKAT_CHECK)"));
}

TEST_CASE("foreign PTX is only warned of what hardware lets pass, and sees the orders that it shows") {
    constexpr const char* tail = R"(.version 8.0
.target sm_90
.address_size 64
.extern .shared .align 16 .b8 dynamic[];
.visible .entry k(.param .u64 out)
{
    .reg .pred %p<2>; .reg .b32 %r<8>; .reg .b64 %d<2>;
    ld.param.u64 %d1, [out]; ld.shared.u32 %r1, [dynamic+32]; elect.sync %r2|%p1, -1; mov.u32 %r3, dynamic;
    and.b32 %r3, %r3, 1023; st.global.v4.u32 [%d1], {%r1, %r2, %r3, %r3}; ret;
}
)";
    struct Outcome {
        std::string error;
        std::vector<Diagnostic> warnings;
        std::set<std::uint32_t> leaders, bases;
    };
    const auto run = [&](std::string_view check, std::string_view words) {
        const Environment nothing("IKAT_CHECK", "");
        Outcome out;
        for (std::uint32_t seed = 1; seed < 20; ++seed) {
            const std::string schedule = std::to_string(seed) + std::string(words);
            const Device device =
                Device::open({.device = "emulator", .schedule = schedule, .check = check, .warnings = &out.warnings});
            const Module module = device.load(tail, "tail.ptx");
            Buffer<std::uint32_t> y = device.buffer<std::uint32_t>(4, "y");
            const Argument list[] = {{.type = ir::Type::U32, .part = y.memory().whole()}};
            const Grid grid{.blocks = {1}, .threads = {32}, .dynamic_shared_bytes = 32};
            out.error = message_of([&] {
                for (int i = 0; i < 2; ++i) device.launch(module, "k", grid, pack(list));
            });
            if (!out.error.empty()) continue;
            const std::vector<std::uint32_t> found = y.download();
            out.leaders.insert(found[1]), out.bases.insert(found[2]);
        }
        return out;
    };
    const Outcome foreign = run("", "");
    CHECK(foreign.error.empty());
    CHECK(foreign.warnings.size() == 19);  // one for each device, though there are two launches
    CHECK(to_string(foreign.warnings.front()).find("warning: shared load of 4 bytes") != std::string::npos);
    CHECK(foreign.leaders == std::set<std::uint32_t>{0});
    CHECK(foreign.bases == std::set<std::uint32_t>{0});
    CHECK_THAT(run("strict", "").error, contains("error: shared load of 4 bytes"));
    const Outcome strict = run("strict,shared-tail=off", ""), asked = run("", ",moved-shared,any-leader");
    for (const Outcome& out : {strict, asked}) {
        CHECK(out.leaders.size() > 5);
        CHECK(out.bases.size() > 1);
    }
    CHECK(strict.warnings.empty());
}

TEST_CASE("a download of what nothing has written is a note") {
    const auto downloads = [](std::string_view check, std::vector<Diagnostic>& warnings) {
        return message_of([&] {
            const Device device = Device::open({.device = "emulator", .check = check, .warnings = &warnings});
            Buffer<std::uint32_t> y = device.buffer<std::uint32_t>(600, "y");
            const std::vector<std::uint32_t> some(595);
            y.upload(some);
            for (int i = 0; i < 2; ++i) y.download();
            y.upload(std::vector<std::uint32_t>(600));
            y.download();
        });
    };
    std::vector<Diagnostic> warnings;
    CHECK(downloads("", warnings) == "");
    REQUIRE(warnings.size() == 1);
    CHECK_THAT(
        to_string(warnings[0]),
        contains("note: nothing has written 20 of the 2400 bytes of buffer 'y' that are copied to the host, from "
                 "offset 2380 on"));
    CHECK_THAT(downloads("undefined-downloads", warnings), contains("error: nothing has written 20 of the 2400 bytes"));
    warnings.clear();
    CHECK(downloads("no-undefined-downloads", warnings) == "");
    CHECK(warnings.empty());
}

TEST_CASE("PTX text: mistakes found before anything runs are errors, but not kernel errors") {
    const Device device = emulator();
    CHECK_THAT(message_of([&] { device.load("nonsense", "bad.ptx"); }), contains("bad.ptx:1"));
    const Module module = device.load(increment, "increment.ptx");
    const Buffer<std::uint32_t> in = device.upload(std::vector<std::uint32_t>{1});
    const std::vector<std::byte> right = parameters(in, in, 1);
    const auto refused = [&](std::string_view entry, const Grid& grid, std::span<const std::byte> parameters) {
        try {
            device.launch(module, entry, grid, parameters);
        } catch (const KernelError&) { return std::string("a kernel error"); } catch (const Error& error) {
            return std::string(error.what());
        }
        return std::string();
    };
    CHECK_THAT(refused("decrement", grid(1, 1), right), contains("increment.ptx has no entry 'decrement'"));
    CHECK_THAT(refused("increment", grid(1, 1), std::span(right).first(8)),
               contains("takes 20 bytes of parameters, not 8"));
    CHECK_THAT(refused("increment", grid(1, 2000), right), contains("a block of 2000 x 1 x 1 threads"));
    CHECK_THAT(refused("increment", {{1}, {1}, 300000}, right), contains("needs 300000 bytes of shared memory"));
    CHECK_THAT(refused("increment", {{1}, {1}, 200000}, right), contains("this device gives a block at most 166912"));
    const Module large = device.load(
        std::string(increment).insert(std::string_view(increment).find("\t.reg .pred"), "\t.shared .b8 tile[49153];\n"),
        "large.ptx");
    CHECK_THAT(message_of([&] { device.launch(large, "increment", grid(1, 1), right); }),
               contains("kernel 'increment' has 49153 bytes of static shared memory"));
    CHECK(refused("increment", grid(1, 1), right).empty());
}

TEST_CASE("PTX text: the shared memory limit is that of its target if that is newer") {
    const Device device = emulator();
    Buffer<std::uint32_t> x = device.upload(std::vector<std::uint32_t>{1}, "x");
    const auto run = [&](std::string_view target, std::uint32_t shared) {
        std::string text = increment;
        text.replace(text.find("sm_"), text.find('\n', text.find("sm_")) - text.find("sm_"), target);
        text.replace(text.find("7.0"), 3, "7.8");  // which knows all of them
        const Module module = device.load(text, "other.ptx");
        return message_of([&] { device.launch(module, "increment", {{1}, {1}, shared}, parameters(x, x, 1)); });
    };
    CHECK(run("sm_90", 200000).empty());
    CHECK_THAT(run("sm_90", 232449), contains("a block of sm_90 has at most 232448"));
    CHECK_THAT(run("sm_86", 110000), contains("a block of sm_86 has at most 101376"));
    CHECK(run("sm_75", 110000).empty());  // an sm_80 runs it
}

TEST_CASE("PTX text: a block that .maxntid or .reqntid excludes is an error that names both, and nothing runs") {
    const Device device = emulator();
    Buffer<std::uint32_t> x = device.upload(std::vector<std::uint32_t>{1, 2, 3}, "x");
    const auto refused = [&](std::string_view directive, const Grid& grid) {
        std::string text = increment;
        text.insert(text.find("\n{"), directive);
        const Module module = device.load(text, "bounded.ptx");
        try {
            device.launch(module, "increment", grid, parameters(x, x, 3));
        } catch (const KernelError&) { return std::string("a kernel error"); } catch (const Error& error) {
            return std::string(error.what());
        }
        return std::string();
    };
    CHECK_THAT(refused(" .maxntid 32", grid(3, 33)), contains("a block of 33 threads where .maxntid allows 32"));
    CHECK_THAT(refused(" .maxntid 4, 4, 2", {{1}, {4, 4, 3}}),
               contains("a block of 48 threads where .maxntid allows 32"));
    CHECK_THAT(refused(" .reqntid 32", grid(3, 16)), contains("a block of (16,1,1) where .reqntid demands (32,1,1)"));
    CHECK(x.download() == std::vector<std::uint32_t>{1, 2, 3});
    CHECK(refused(" .maxntid 4, 4, 2", grid(3, 32)).empty());  // what counts is the product
    CHECK(refused(" .reqntid 32", grid(3, 32)).empty());
    CHECK(x.download() == std::vector<std::uint32_t>{3, 4, 5});
}

TEST_CASE("the emulator counts the traffic of each launch on request") {
    std::vector<emulator::LaunchTraffic> traffic;
    const Device device = Device::open({.device = "emulator", .traffic = &traffic});
    const Module module = device.load(increment, "increment.ptx");
    const Buffer<std::uint32_t> x = device.upload(std::vector<std::uint32_t>(96), "x");
    Buffer<std::uint32_t> y = device.buffer<std::uint32_t>(96, "y");
    device.launch(module, "increment", grid(96, 32), parameters(x, y, 96));
    device.launch(module, "increment", grid(8, 32), parameters(x, y, 5));
    REQUIRE(traffic.size() == 2);
    CHECK(traffic[0].entry == "increment");
    REQUIRE(traffic[0].buffers.size() == 2);
    CHECK(traffic[0].buffers[0].name == "x");
    CHECK(traffic[0].buffers[0].read.moved == 384);
    CHECK(traffic[0].buffers[1].written.efficiency() == 1);
    CHECK(traffic[1].buffers[0].read.requested == 20);
    CHECK(traffic[1].buffers[0].read.moved == 32);
}

}  // namespace
}  // namespace ikat::tests
