// SPDX-License-Identifier: Apache-2.0
// Tools: what they are told, and the ops that they add.
#include <bit>
#include <map>

#include "runtime/emulator/core/tool.hpp"
#include "runtime/emulator/decode/lowering.hpp"
#include "runtime/emulator/machine/block.hpp"
#include "runtime/emulator/tools/traffic/traffic.hpp"
#include "tests/unit/emulator/machine.hpp"

using namespace ikat;
using emulator::Direction;
using emulator::Meeting;
using emulator::MicroOp;
using emulator::Warp;
using tests::Machine;

namespace {

/// How often each thing has been told, and how many lanes or bytes were concerned.
using Told = std::map<std::string, std::uint64_t>;

std::string name_of(const Meeting& at) {
    constexpr const char* names[] = {"barrier", "cluster", "mbarrier"};
    return names[int(at.kind)];
}

class ToyBlock final : public emulator::BlockTool {
public:
    explicit ToyBlock(Told& told) : told_(told) {}
    Told& told() { return told_; }

    void start() override { ++told_["blocks"]; }
    void finish() override { ++told_["ends"]; }
    void arrive(const Warp&, std::uint32_t lanes, const Meeting& at, bool waits) override {
        told_[name_of(at) + (waits ? " waits" : " arrives")] += unsigned(std::popcount(lanes));
        arrived_[name_of(at)] += unsigned(std::popcount(lanes));
    }
    void complete(const Meeting& at, bool) override { ++told_[name_of(at) + " over"]; }
    void leave(const Warp&, std::uint32_t lanes, const Meeting& at) override {
        told_[name_of(at) + " leaves"] += unsigned(std::popcount(lanes));
        if (arrived_[name_of(at)] < 64) ++told_["left before all had arrived"];
    }
    void begin(const Warp&, unsigned, const Meeting& at, const ptx::Instruction*) override {
        ++told_[name_of(at) + " made"];
    }
    bool access(const emulator::AgentAccess& access) override {
        std::uint64_t bytes = 0;
        for (const auto& range : access.ranges) bytes += range.bytes;
        told_[access.direction == emulator::Direction::Read ? "copies read" : "copies write"] += bytes;
        return true;
    }
    void await(const Warp&, std::uint32_t lanes, std::uint64_t, bool) override {
        told_["copies awaited"] += unsigned(std::popcount(lanes));
    }
    void end_warp(const Warp&) override { ++told_["warps end"]; }

private:
    Told& told_;
    Told arrived_;  // lanes
};

constexpr const char* counted[] = {"lanes meet", "lanes store", "lanes before a shuffle", "lanes after a shuffle"};

/// Counts the lanes that execute it: d is the tool's slot, x which count it is.
const MicroOp* count_lanes(const MicroOp* op, Warp* w, [[maybe_unused]] std::byte* frame, std::uint32_t mask) {
    static_cast<ToyBlock&>(*w->tools[op->d]).told()[counted[op->x]] += unsigned(std::popcount(mask));
    IKAT_NEXT;
}

class Toy final : public emulator::Tool {
public:
    explicit Toy(Told& told) : told_(told) {}
    std::string_view name() const override { return "toy"; }
    void before_op(emulator::Lowering& code, emulator::Micro& op) const override {
        ++told_["ops"];
        const auto& access = op.info.access;
        if (access.bytes && access.direction == emulator::Direction::Write && access.space == emulator::Space::Shared)
            code.put({.run = count_lanes, .fields = {code.asked, 0, 0, 0, 1}});
        if (op.info.synchronises.exchanges_in_warp) code.put({.run = count_lanes, .fields = {code.asked, 0, 0, 0, 2}});
    }
    void after_op(emulator::Lowering& code, const emulator::Micro& op) const override {
        if (op.info.synchronises.meets_warp) code.put({.run = count_lanes, .fields = {code.asked}});
        if (op.info.synchronises.exchanges_in_warp) code.put({.run = count_lanes, .fields = {code.asked, 0, 0, 0, 3}});
    }
    std::unique_ptr<emulator::LaunchTool> of(emulator::LaunchState&, std::size_t) const override {
        struct OfLaunch final : emulator::LaunchTool {
            explicit OfLaunch(Told& to) : told(to) {}
            std::unique_ptr<emulator::BlockTool> of(emulator::ThreadBlock&) override {
                return std::make_unique<ToyBlock>(told);
            }
            void end(emulator::Statistics& statistics) override { told["instructions"] = statistics.warp_instructions; }
            Told& told;
        };
        return std::make_unique<OfLaunch>(told_);
    }

private:
    Told& told_;
};

/// Adds an op that does nothing before and after each.
class Everywhere final : public emulator::Tool {
public:
    std::string_view name() const override { return "everywhere"; }
    void before_op(emulator::Lowering& code, emulator::Micro&) const override { code.put({.run = emulator::nothing}); }
    void after_op(emulator::Lowering& code, const emulator::Micro&) const override {
        code.put({.run = emulator::nothing});
    }
};

const std::string text = tests::kernel(R"(
    .shared .align 8 .b64 bar; .shared .align 16 .b8 tile[256];
    mov.u32 %r1, %tid.x; setp.eq.u32 %p1, %r1, 0; shl.b32 %r2, %r1, 2; mov.u32 %r3, tile; add.u32 %r2, %r2, %r3;
    ld.param.u64 %d1, [p0]; mul.wide.u32 %d2, %r1, 4; add.u64 %d1, %d1, %d2;
    @%p1 mbarrier.init.shared.b64 [bar], 64; bar.sync 0;
    cp.async.ca.shared.global [%r2], [%d1], 4; cp.async.wait_all; bar.warp.sync -1;
    ld.shared.u32 %r4, [%r2]; @%p1 st.shared.u32 [%r2], 7; mbarrier.arrive.shared.b64 %d3, [bar];
$ask: mbarrier.test_wait.shared.b64 %p2, [bar], %d3; @!%p2 bra $ask; st.global.u32 [%d1], %r4; ret;)");

}  // namespace

TEST_CASE("a tool is told of meetings, copies and ends, and adds its ops") {
    for (const std::uint32_t seed : {0u, 1u, 2u}) {
        Machine machine;
        machine.options.seed = seed;
        Told told;
        machine.options.tools = {std::make_shared<Toy>(told)};
        const auto x = machine.buffer("x", std::vector<std::uint32_t>(64, 3));
        for (int launch = 1; launch <= 2; ++launch) {
            told.clear();
            machine.run(text, {.block = {64, 1, 1}}, x, x, x, 0u);
            CHECK(told["blocks"] == 1);
            CHECK(told["ends"] == 1);
            CHECK(told["warps end"] == 2);
            CHECK(told["barrier waits"] == 64);
            CHECK(told["barrier arrives"] == 0);
            CHECK(told["barrier over"] == 1);
            CHECK(told["barrier leaves"] == 64);
            CHECK(told["mbarrier made"] == 1);
            CHECK(told["mbarrier arrives"] == 64);
            CHECK(told["mbarrier over"] == 1);
            CHECK(told["mbarrier leaves"] >= 64);
            CHECK(told["copies write"] == 256);
            CHECK(told["copies read"] == 256);
            CHECK(told["copies awaited"] == 64);
            CHECK(told["lanes store"] == 1);
            CHECK(told["lanes meet"] == 64);
            CHECK(told["left before all had arrived"] == 0);
            CHECK(told["instructions"] == machine.statistics.warp_instructions);
        }
    }
}

TEST_CASE("several tools watch a launch, each as if it were alone, and none of them changes it") {
    const auto run = [](const std::vector<std::shared_ptr<const emulator::Tool>>& tools) {
        Machine machine;
        machine.options.tools = tools;
        const auto x = machine.buffer("x", std::vector<std::uint32_t>(64, 3));
        machine.run(text, {.block = {64, 1, 1}}, x, x, x, 0u);
        CHECK(machine.get<std::uint32_t>(x, 64) == std::vector<std::uint32_t>(64, 3));
        return machine.statistics.warp_instructions;
    };
    Told first, second;
    emulator::LaunchTraffic alone, beside;
    const auto plain = run({});
    CHECK(run({std::make_shared<Toy>(first)}) == plain);
    CHECK(run({emulator::count_traffic([&](const emulator::LaunchTraffic& traffic) { alone = traffic; })}) == plain);
    CHECK(run({emulator::count_traffic([&](const emulator::LaunchTraffic& traffic) { beside = traffic; }),
               std::make_shared<Toy>(second)}) == plain);
    CHECK(first == second);
    for (emulator::LaunchTraffic* const each : {&alone, &beside})
        for (auto& buffer : each->buffers) buffer.address = 0;
    CHECK(alone == beside);
}

TEST_CASE("a tool's ops are not skipped, wherever it has them, and change nothing") {
    const std::string functions = R"(.func (.reg .u32 r) factorial(.reg .u32 n) { .reg .u32 %m; .reg .pred %p;
    setp.lt.u32 %p, n, 2; mov.u32 r, 1; @%p ret; sub.u32 %m, n, 1; call (r), factorial, (%m); mul.lo.u32 r, r, n; ret; }
)";
    const std::string begin = R"(mov.u32 %r1, %tid.x; and.b32 %r2, %r1, 1; setp.eq.u32 %p1, %r2, 1;
    ld.param.u64 %d1, [p0]; mul.wide.u32 %d2, %r1, 4; add.u64 %d1, %d1, %d2; ld.param.u64 %d3, [p1];
)";
    const std::string shuffles = "shfl.sync.down.b32 %r1, %r1, 1, 0x101f, -1; shfl.sync.bfly.b32 %r1, %r1, 2, 31, -1;",
                      calls = "and.b32 %r3, %r1, 7; call (%r1), factorial, (%r3);",
                      branches = "@%p1 add.u32 %r1, %r1, 5; @%p1 bra $on; neg.s32 %r1, %r1; $on:",
                      table = "$to: .branchtargets $a, $b; brx.idx %r2, $to; $a: add.u32 %r1, %r1, 5; $b:";
    // makes the warp continue in the checked code
    const std::string unwritten = "ld.global.u32 %r9, [%d3]; setp.eq.u32 %p2, %r9, 0;\n",
                      end = "selp.u32 %r9, 1, 2, %p2; st.global.u32 [%d1], %r1; ret;";
    for (const std::string& body : {shuffles, calls, branches, table})
        for (const std::string& load : {std::string("setp.eq.u32 %p2, %r1, 0;\n"), unwritten})
            for (const unsigned threads : {32u, 48u, 64u}) {
                INFO(load << body << threads);
                const std::string all = tests::kernel(begin + load + body + end, functions);
                const auto run = [&](const std::vector<std::shared_ptr<const emulator::Tool>>& tools) {
                    Machine machine;
                    machine.options.tools = tools;
                    const auto x = machine.buffer("x", std::vector<std::uint32_t>(64, 3));
                    const auto y = machine.empty<std::uint32_t>("y", 1);
                    machine.run(all, {.block = {threads, 1, 1}}, x, y, y, 0u);
                    return std::pair(machine.get<std::uint32_t>(x, 64), machine.statistics.warp_instructions);
                };
                const auto plain = run({});
                CHECK(run({std::make_shared<Everywhere>()}) == plain);
                Told told;
                CHECK(run({std::make_shared<Toy>(told)}) == plain);
                CHECK(told["lanes before a shuffle"] == (body == shuffles ? 2 * threads : 0));
                CHECK(told["lanes after a shuffle"] == told["lanes before a shuffle"]);
            }
}
