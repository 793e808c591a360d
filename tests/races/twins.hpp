// SPDX-License-Identifier: Apache-2.0
// Kernels with a race, each beside a twin without. Both are one text, in which <a|b> is a in the right kernel and b in
// the wrong one:
//
//     st.shared.u32 [%r4], %r1; <bar.sync 0;|> ld.shared.u32 %r9, [%r5];
#pragma once
#include "tests/unit/emulator/machine.hpp"
#include "tests/unit/emulator/twin.hpp"

namespace ikat::tests::races {

/// Registers before the body: %r1 the thread, %r2 its lane, %r3 its warp, %r4 the address of its word of `tile`, %r5
/// that of tile, 4096 bytes, %r6 that of the next thread's word, of the last one the first; %p1 is thread 0, %p2 lane
/// 0. `bar` and `empty` are barriers in shared memory for %r7 threads, all of the block; $wait name, parity; waits for
/// one. %d1 = p0 + 4 * thread, a buffer of 4096 bytes; %d2 = p0; %d3 = p1, 256 bytes that are 0; %r20 the block, %p10
/// that it is the first one; %d4 the word of p0 for each thread of all blocks.
struct Twins {
    const char* name;
    const char* body;
    std::uint32_t threads = 128;
    const char* says = "";  // in the message about the wrong one
    const char* also = "";  // what else may be found first, in some orders of the warps
    std::uint32_t blocks = 1;
    bool is_cluster = false;  // they are one
    bool everywhere = false;  // with the class `races`
};

/// With the class `races`: of blocks that start as they like, or of one cluster.
constexpr Twins between(const char* name, std::uint32_t blocks, std::uint32_t threads, const char* body,
                        const char* says = "", const char* also = "") {
    return {name, body, threads, says, also, blocks, false, true};
}
constexpr Twins in_cluster(const char* name, std::uint32_t blocks, std::uint32_t threads, const char* body,
                           const char* says = "", const char* also = "") {
    return {name, body, threads, says, also, blocks, true, true};
}

inline std::string module_of(std::string body, const std::string& arrays = "") {
    for (std::size_t at; (at = body.find("$wait ")) != body.npos;) {
        const std::size_t comma = body.find(',', at), end = body.find(';', at);
        const std::string barrier = body.substr(at + 6, comma - at - 6),
                          parity = body.substr(comma + 1, end - comma - 1);
        body.replace(at, end - at + 1,
                     "{ .reg .pred p; $again: mbarrier.try_wait.parity.shared::cta.b64 p, [" + barrier + "], " +
                         parity + "; @!p bra $again; }");
    }
    // Without barriers in shared memory, all threads may meet at barrier 0 alone, which the detector makes use of.
    const auto names = [&](const char* name) { return body.find(name) != body.npos; };
    const std::string barriers = !names("bar]") && !names("bar;") && !names("empty") ? "" : R"(
    @%p1 mbarrier.init.shared.b64 [bar], %r7; @%p1 mbarrier.init.shared.b64 [empty], %r7;
    @%p1 fence.mbarrier_init.release.cluster; bar.sync 15;)";
    return R"(.version 8.6
.target sm_90a
.address_size 64
)" + arrays +
           R"(.visible .entry k(.param .u64 p0, .param .u64 p1) {
    .reg .pred %p<16>; .reg .b16 %h<16>; .reg .b32 %r<64>; .reg .b64 %d<16>; .reg .b32 %f<64>;
    .shared .align 8 .b64 bar; .shared .align 8 .b64 empty; .shared .align 1024 .b8 tile[4096];
    mov.u32 %r1, %tid.x; and.b32 %r2, %r1, 31; shr.u32 %r3, %r1, 5; mov.u32 %r5, tile; shl.b32 %r4, %r1, 2;
    add.u32 %r4, %r4, %r5; mov.u32 %r7, %ntid.x; add.u32 %r6, %r1, 1; rem.u32 %r6, %r6, %r7; shl.b32 %r6, %r6, 2;
    add.u32 %r6, %r6, %r5; setp.eq.u32 %p1, %r1, 0; setp.eq.u32 %p2, %r2, 0;
    ld.param.u64 %d2, [p0]; mul.wide.u32 %d1, %r1, 4; add.u64 %d1, %d1, %d2; mov.u32 %r9, 0; ld.param.u64 %d3, [p1];
    mov.u32 %r20, %ctaid.x; setp.eq.u32 %p10, %r20, 0; mad.lo.u32 %r21, %r20, %r7, %r1; mad.wide.u32 %d4, %r21, 4, %d2;)" +
           barriers + "\n" + body + "\n$end: ret;\n}\n";
}

/// The checks are those of the language's kernels with these classes, without what is undefined.
inline void set_checks(Machine& machine, std::string_view classes) {
    emulator::CheckSets sets;
    emulator::apply(sets, classes, "");
    machine.options.checks = sets.strict;
    machine.options.checks.set(emulator::Check::Undefined, emulator::Action::Off);
}

/// Every wrong one is found, in every order of the warps, and no right one is accused. `arrays`: those of the module.
inline void check(const Twins& twins, const std::string& arrays = "") {
    INFO(twins.name);
    for (const bool is_right : {true, false}) {
        const std::string text = module_of(twin(twins.body, is_right), arrays);
        INFO(text);
        for (const std::uint32_t seed : {0u, 1u, 2u, 3u, 4u, 5u, 6u, 7u}) {
            INFO("schedule " << seed);
            Machine machine;
            machine.options.seed = seed;
            machine.options.step_budget = 1000000;
            machine.options.checks.set(twins.everywhere ? emulator::Check::Races : emulator::Check::SharedRaces,
                                       emulator::Action::Error);
            machine.options.checks.set(emulator::Check::Undefined, emulator::Action::Off);
            const auto x = machine.buffer("x", std::vector<std::uint32_t>(1024, 1));
            const auto flags = machine.buffer("flags", std::vector<std::uint32_t>(64));
            emulator::Launch launch{.grid = {twins.blocks, 1, 1}, .block = {twins.threads, 1, 1}};
            if (twins.is_cluster) launch.cluster = {twins.blocks, 1, 1};
            const std::string said = machine.failure(text, launch, x, flags);
            if (is_right) {
                CHECK(said == "no failure");
                continue;
            }
            INFO(said);
            CHECK(said != "no failure");
            if (std::string_view(twins.also).contains(machine.code)) continue;
            const bool is_exchange = std::string_view(twins.says).contains("but a shuffle");
            REQUIRE(machine.code == (is_exchange ? "shuffle-race" : twins.everywhere ? "race" : "shared-race"));
            REQUIRE_THAT(said, contains(twins.says));
        }
    }
}

}  // namespace ikat::tests::races
