// SPDX-License-Identifier: Apache-2.0
// The emulator's traffic counts for global memory, on kernels small enough to count by hand.
#include "runtime/emulator/tools/traffic/sector_cache.hpp"
#include "tests/unit/emulator/machine.hpp"

using namespace ikat;
using emulator::Traffic;
using tests::kernel;
using tests::Machine;

namespace {

/// Runs `body` over buffers x (p0) and y (p1) of 64 KiB; %r1 is the number of the thread, %d1 and %d2 are x and y.
/// Each memory of the process has addresses of its own.
emulator::LaunchTraffic without_addresses(emulator::LaunchTraffic traffic) {
    for (emulator::BufferTraffic& buffer : traffic.buffers) buffer.address = 0;
    return traffic;
}

emulator::LaunchTraffic traffic_of(const std::string& body, std::uint32_t threads = 32, std::uint32_t blocks = 1,
                                   unsigned host_threads = 1, const std::string& scope = "") {
    Machine machine;
    machine.options.threads = host_threads;
    emulator::LaunchTraffic out;
    machine.options.tools = {
        emulator::count_traffic([&](const emulator::LaunchTraffic& traffic) { out = without_addresses(traffic); })};
    const auto x = machine.buffer("x", std::vector<std::uint32_t>(1 << 14)),
               y = machine.buffer("y", std::vector<std::uint32_t>(1 << 14));
    machine.run(kernel(R"(
    mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x; mad.lo.u32 %r1, %r2, %r3, %r1;
    ld.param.u64 %d1, [p0]; ld.param.u64 %d2, [p1];
)" + body + "\n    ret;",
                       scope),
                {.grid = {blocks, 1, 1}, .block = {threads, 1, 1}}, x, y, 0ull, 0u);
    return out;
}

/// The traffic of the first buffer that was accessed.
Traffic read_by(const std::string& body) { return traffic_of(body).buffers.at(0).read; }
Traffic written_by(const std::string& body) { return traffic_of(body).buffers.at(0).written; }

/// %d3 = x + tid * bytes + first
std::string lanes(int bytes, int first = 0) {
    return "mul.lo.u32 %r4, %r1, " + std::to_string(bytes) + "; add.u32 %r4, %r4, " + std::to_string(first) +
           "; cvt.u64.u32 %d4, %r4; add.u64 %d3, %d1, %d4;\n";
}

}  // namespace

namespace Catch {
template <>
struct StringMaker<Traffic> {
    static std::string convert(const Traffic& t) {
        return "accesses " + std::to_string(t.accesses) + ", requested " + std::to_string(t.requested) + ", sectors " +
               std::to_string(t.sectors) + ", moved " + std::to_string(t.moved) + ", touched " +
               std::to_string(t.touched);
    }
};
}  // namespace Catch

TEST_CASE("contiguous accesses move what they request") {
    const Traffic words{.accesses = 1, .requested = 128, .sectors = 4, .moved = 128, .touched = 128};
    CHECK(read_by(lanes(4) + "ld.global.u32 %r5, [%d3];") == words);
    CHECK(read_by(lanes(4) + "ld.u32 %r5, [%d3];") == words);
    CHECK(read_by(lanes(4) + "ld.global.nc.f32 %r5, [%d3];") == words);
    CHECK(written_by(lanes(4) + "st.global.u32 [%d3], %r1;") == words);
    CHECK(read_by(lanes(1) + "ld.global.u8 %r5, [%d3+32];") == Traffic{1, 32, 1, 32, 32});
    CHECK(read_by(lanes(2) + "ld.global.u16 %h5, [%d3];") == Traffic{1, 64, 2, 64, 64});
    CHECK(words.efficiency() == 1);
    CHECK(Traffic{}.efficiency() == 1);
}

TEST_CASE("vectors are one access each") {
    const Traffic vectors{.accesses = 1, .requested = 512, .sectors = 16, .moved = 512, .touched = 512};
    CHECK(read_by(lanes(16) + "ld.global.v4.u32 {%r5, %r6, %r7, %r8}, [%d3];") == vectors);
    CHECK(written_by(lanes(16) + "st.global.v2.b64 [%d3], {%d1, %d2};") == vectors);
    // Wider than a single move.
    CHECK(read_by(lanes(16) + "ld.global.v8.b16 {%h1, %h2, %h3, %h4, %h5, %h6, %h7, %h8}, [%d3];") == vectors);
    CHECK(read_by(lanes(32) + "ld.global.v4.b64 {%d5, %d6, %d7, %d8}, [%d3];") ==
          Traffic{.accesses = 1, .requested = 1024, .sectors = 32, .moved = 1024, .touched = 1024});
}

TEST_CASE("strided accesses move whole sectors") {
    const Traffic half = read_by(lanes(8) + "ld.global.u32 %r5, [%d3];");
    CHECK(half == Traffic{.accesses = 1, .requested = 128, .sectors = 8, .moved = 256, .touched = 256});
    CHECK(half.efficiency() == 0.5);
    const Traffic column = written_by(lanes(512) + "st.global.u32 [%d3], %r1;");
    CHECK(column == Traffic{.accesses = 1, .requested = 128, .sectors = 32, .moved = 1024, .touched = 1024});
    CHECK(column.efficiency() == 0.125);
}

TEST_CASE("one element off the sector is one sector more") {
    CHECK(read_by(lanes(4, 4) + "ld.global.u32 %r5, [%d3];") == Traffic{1, 128, 5, 160, 160});
}

TEST_CASE("lanes that read the same bytes request them once") {
    CHECK(read_by("ld.global.u32 %r5, [%d1];") == Traffic{1, 4, 1, 32, 32});
    CHECK(read_by(lanes(0) + "ld.global.v4.u32 {%r5, %r6, %r7, %r8}, [%d3+16];") == Traffic{1, 16, 1, 32, 32});
}

TEST_CASE("a wmma fragment that holds elements more than once requests them once") {
    const std::string end = ".sync.aligned.row.m8n32k16.global.f16 {%r10, %r11, %r12, %r13, %r14, %r15, %r16, %r17}, ";
    CHECK(read_by("wmma.load.a" + end + "[%d1];") == Traffic{4, 256, 8, 256, 256});
    CHECK(read_by("wmma.load.b" + end + "[%d1];") == Traffic{16, 1024, 256, 1024, 1024});
}

TEST_CASE("inactive lanes request nothing") {
    const std::string some = lanes(4) + "setp.lt.u32 %p1, %r1, 9;\n";
    CHECK(read_by(some + "@%p1 ld.global.u32 %r5, [%d3];") == Traffic{1, 36, 2, 64, 64});
    CHECK(read_by(some + "@!%p1 bra OFF; ld.global.u32 %r5, [%d3]; OFF:") == Traffic{1, 36, 2, 64, 64});
    CHECK(traffic_of(some + "setp.lt.u32 %p1, %r1, 0; @%p1 ld.global.u32 %r5, [%d3];").buffers.empty());
}

TEST_CASE("recently used sectors do not move again") {
    const std::string load = "ld.global.u32 %r5, [%d3];";
    CHECK(read_by(lanes(4) + load + load) == Traffic{2, 256, 8, 128, 128});
    // The second 128 bytes, misaligned: four of its five sectors are cached.
    CHECK(read_by(lanes(4) + load + "ld.global.u32 %r5, [%d3+4];") == Traffic{2, 256, 9, 160, 160});
    // 4 KiB stay, a sector more does not.
    const auto again = [&](int sectors) {
        return read_by(lanes(0) + "mov.u32 %r9, 0; LOOP: ld.global.u32 %r5, [%d3]; add.u64 %d3, %d3, 32;" +
                       "add.u32 %r9, %r9, 1; setp.lt.u32 %p1, %r9, " + std::to_string(sectors) + "; @%p1 bra LOOP;" +
                       "ld.global.u32 %r5, [%d1];");
    };
    CHECK(again(128).moved == 128 * 32);
    CHECK(again(129).moved == 130 * 32);
    CHECK(again(129).touched == 129 * 32);
    // Another warp has its own share.
    CHECK(traffic_of("ld.global.u32 %r5, [%d1];", 64).buffers.at(0).read == Traffic{2, 8, 2, 64, 32});
    CHECK(traffic_of("ld.global.u32 %r5, [%d1];", 32, 3).buffers.at(0).read == Traffic{3, 12, 3, 96, 32});
}

TEST_CASE("volatile and ordered accesses and those with cache operators move each time") {
    for (const char* load : {"ld.volatile.global.u32", "ld.relaxed.gpu.global.u32", "ld.acquire.gpu.global.u32",
                             "ld.global.cg.u32", "ld.global.cv.u32", "ld.global.L1::no_allocate.u32"}) {
        INFO(load);
        const std::string twice = std::string(load) + " %r5, [%d3];" + load + " %r5, [%d3];";
        CHECK(read_by(lanes(4) + twice) == Traffic{2, 256, 8, 256, 128});
    }
    CHECK(written_by(lanes(4) + "st.release.gpu.global.u32 [%d3], %r1; st.volatile.global.u32 [%d3], %r1;") ==
          Traffic{2, 256, 8, 256, 128});
}

TEST_CASE("stores to one sector are combined") {
    CHECK(written_by(lanes(8) + "st.global.u32 [%d3], %r1; st.global.u32 [%d3+4], %r1;") ==
          Traffic{2, 256, 16, 256, 256});
    // A sector that was read does not absorb a store; one that was stored can be read.
    const auto both = traffic_of(lanes(4) + "ld.global.u32 %r5, [%d3]; st.global.u32 [%d3], %r5;").buffers.at(0);
    CHECK(both.read == Traffic{1, 128, 4, 128, 128});
    CHECK(both.written == Traffic{1, 128, 4, 128, 128});
    CHECK(read_by(lanes(4) + "st.global.u32 [%d3], %r1; ld.global.u32 %r5, [%d3];").moved == 0);
}

TEST_CASE("atomics are counted separately and move each time") {
    const auto atomic = [](const std::string& body) {
        const auto buffers = traffic_of(lanes(4) + body).buffers;
        CHECK(buffers.at(0).read == Traffic{});
        CHECK(buffers.at(0).written == Traffic{});
        return buffers.at(0).atomic;
    };
    CHECK(atomic("atom.global.add.u32 %r5, [%d3], 1; red.global.add.u32 [%d3], 1;") == Traffic{2, 256, 8, 256, 128});
    CHECK(atomic("mov.u32 %r5, 0; red.global.add.noftz.f16x2 [%d3], %r5;") == Traffic{1, 128, 4, 128, 128});
    CHECK(atomic("red.global.add.u32 [%d1], 1;") == Traffic{1, 4, 1, 32, 32});
    CHECK(atomic(lanes(16) + "mov.u32 %r5, 0; red.global.add.v4.f32 [%d3], {%r5, %r5, %r5, %r5};") ==
          Traffic{1, 512, 16, 512, 512});
}

TEST_CASE("other spaces are not counted") {
    CHECK(traffic_of(".shared .b32 s[32]; .local .b32 l; mul.lo.u32 %r4, %r1, 4; mov.u32 %r5, s; add.u32 %r5, %r5, %r4;"
                     "st.shared.u32 [%r5], %r1; st.local.u32 [l], %r1; mov.u64 %d3, l; cvta.local.u64 %d3, %d3;"
                     "ld.u32 %r6, [%d3];")
              .buffers.empty());
}

TEST_CASE("buffers are counted separately, by name and in order") {
    const auto traffic = traffic_of(lanes(4) +
                                    "ld.global.u32 %r5, [%d3]; cvt.u64.u32 %d4, %r4; add.u64 %d3, %d2, %d4;"
                                    "st.global.u32 [%d3], %r5;");
    CHECK(traffic.entry == "k");
    REQUIRE(traffic.buffers.size() == 2);
    CHECK(traffic.buffers[0].name == "x");
    CHECK(traffic.buffers[0].bytes == 65536);
    CHECK(traffic.buffers[0].written == Traffic{});
    CHECK(traffic.buffers[1].name == "y");
    CHECK(traffic.buffers[1].written == Traffic{1, 128, 4, 128, 128});
    // Lanes of one instruction in both.
    const auto halves = traffic_of(
        "setp.lt.u32 %p1, %r1, 16; selp.b64 %d3, %d1, %d2, %p1; mul.wide.u32 %d4, %r1, 4;"
        "add.u64 %d3, %d3, %d4; ld.u32 %r5, [%d3];");
    REQUIRE(halves.buffers.size() == 2);
    CHECK(halves.buffers[0].read == Traffic{1, 64, 2, 64, 64});
    CHECK(halves.buffers[1].read == Traffic{1, 64, 2, 64, 64});
}

TEST_CASE("memory from malloc counts as one buffer") {
    const std::string malloc =
        "{ .param .b64 a; .param .b64 r; st.param.b64 [a], 100; call.uni (r), malloc, (a);"
        "ld.param.b64 %d3, [r]; }";
    const auto run = [&](unsigned host_threads) {
        return traffic_of(lanes(4) + "ld.global.u32 %r5, [%d3];" + malloc + "st.global.u32 [%d3+64], %r5;", 32, 20,
                          host_threads, ".extern .func (.param .b64 result) malloc (.param .b64 bytes);\n");
    };
    const auto traffic = run(1);
    REQUIRE(traffic.buffers.size() == 2);
    const emulator::BufferTraffic& heap = traffic.buffers[1];
    CHECK(heap.name == "malloc");
    CHECK(heap.bytes == 32 * 20 * 100);
    CHECK(heap.written.requested == 32 * 20 * 4);
    CHECK(heap.written.moved == 32 * 20 * 32);
    CHECK(heap.written.touched == 32 * 20 * 32);
    CHECK(run(2) == traffic);
}

TEST_CASE("traffic is the same on any number of host threads") {
    const std::string body = lanes(8) + "ld.global.u32 %r5, [%d3]; ld.global.u32 %r6, [%d1]; bar.sync 0;" +
                             "ld.global.u32 %r5, [%d3+4]; red.global.add.u32 [%d2], 1; st.global.u32 [%d3], %r5;";
    const auto one = traffic_of(body, 96, 40);
    CHECK(one.buffers.at(0).read.accesses == 3 * 3 * 40);
    CHECK(one.buffers.at(0).read.touched == 96 * 40 * 8);
    CHECK(one == traffic_of(body, 96, 40, 2));
    CHECK(one == traffic_of(body, 96, 40, 7));
}

TEST_CASE("counting changes no result, no statistics and no finding") {
    const std::string text = kernel(
        "mov.u32 %r1, %tid.x; ld.param.u64 %d1, [p0]; mad.wide.u32 %d1, %r1, 4, %d1;"
        "ld.global.u32 %r2, [%d1]; add.u32 %r2, %r2, %r1; st.global.u32 [%d1], %r2; ret;");
    Machine plain, counting;
    bool told = false;
    counting.options.tools = {emulator::count_traffic([&](const emulator::LaunchTraffic&) { told = true; })};
    for (Machine* machine : {&plain, &counting})
        machine->run(text, {.block = {64, 1, 1}}, machine->buffer("x", std::vector<std::uint32_t>(64, 7)), 0ull, 0ull,
                     0u);
    CHECK(told);
    CHECK(plain.statistics.warp_instructions == counting.statistics.warp_instructions);
    CHECK(plain.statistics.lane_instructions == counting.statistics.lane_instructions);
    CHECK(plain.statistics.global_bytes_read == counting.statistics.global_bytes_read);
    told = false;
    const auto failure = [&](Machine& machine) {
        return machine.failure(text, {.block = {64, 1, 1}}, machine.buffer("x", std::vector<std::uint32_t>(40)), 0ull,
                               0ull, 0u);
    };
    const std::string finding = failure(plain);
    CHECK(finding.find("'x'") != std::string::npos);
    CHECK(failure(counting) == finding);
    CHECK(!told);
}

TEST_CASE("the cache evicts the least recently used sector") {
    emulator::SectorCache cache;
    for (std::uint64_t sector = 0; sector < 128; ++sector) CHECK(!cache.read(sector * 128));
    CHECK(cache.read(0));  // now the one used last
    CHECK(!cache.read(1));
    CHECK(cache.read(0));
    CHECK(!cache.read(128));  // was the oldest
    CHECK(cache.read(3 * 128));
    cache.clear();
    CHECK(!cache.read(0));
    CHECK(!cache.write(0));
    CHECK(cache.write(0));
    CHECK(cache.read(0));
}

TEST_CASE("other observers change no count and no finding") {
    struct Watched {
        emulator::LaunchTraffic traffic;
        emulator::Statistics statistics;
        std::string finding;
    };
    const auto run = [](const std::string& body, bool traffic, bool registers) {
        Machine machine;
        Watched out;
        machine.check_registers(registers);
        if (traffic)
            machine.options.tools = {emulator::count_traffic(
                [&](const emulator::LaunchTraffic& counts) { out.traffic = without_addresses(counts); })};
        const auto x = machine.buffer("x", std::vector<std::uint32_t>(1 << 12)),
                   y = machine.empty<std::uint32_t>("y", 1 << 12);
        out.finding = machine.failure(
            kernel("    .shared .align 16 .b8 tile[512]; mov.u32 %r1, %tid.x;\n"
                   "    ld.param.u64 %d1, [p0]; ld.param.u64 %d2, [p1]; mad.wide.u32 %d3, %r1, 4, %d1;\n" +
                   body + "\n    ret;"),
            {.grid = {3, 1, 1}, .block = {48, 1, 1}}, x, y, 0ull, 0u);
        out.statistics = machine.statistics;
        return out;
    };
    for (const char* body : {
             "ld.global.u32 %r5, [%d3]; st.global.u32 [%d3+256], %r5;",
             "ld.global.v4.u32 {%r5, %r6, %r7, %r8}, [%d1]; st.v2.u32 [%d1+64], {%r5, %r8};",
             "ld.global.v4.b64 {%d5, %d6, %d7, %d8}, [%d1+32]; st.global.u64 [%d1], %d8;",
             "setp.lt.u32 %p1, %r1, 9; @%p1 ld.global.u32 %r5, [%d3]; @%p1 atom.global.add.u32 %r6, [%d3], %r5;",
             "mov.b64 %d6, 1; red.global.add.v2.f32 [%d1], {%r1, %r1}; ld.u8 %r5, [%d3+3]; st.global.u8 [%d3], %r5;",
             // the checked code takes over at a load, of y or of shared memory, and nothing undefined is used
             "ld.global.u32 %r5, [%d2]; ld.global.u32 %r6, [%d3]; st.global.u32 [%d3], %r6;",
             "ld.shared.u32 %r5, [tile]; ld.global.u32 %r6, [%d3]; st.global.u32 [%d3], %r6;",
             "st.global.u32 [%d2], %r1; ld.global.v2.u32 {%r5, %r6}, [%d2]; st.global.u32 [%d3], %r5;",
             // findings
             "ld.global.u32 %r5, [%d2]; st.global.u32 [%d3], %r5;",
             "ld.global.u32 %r5, [%d3+16384]; st.global.u32 [%d3], %r5;",
             "ld.global.u32 %r5, [%d2+8]; cvt.u64.u32 %d4, %r5; ld.global.u32 %r6, [%d4];",
         }) {
        INFO(body);
        const Watched plain = run(body, false, false);
        for (const bool traffic : {false, true})
            for (const bool registers : {false, true}) {
                const Watched both = run(body, traffic, registers);
                CHECK(both.finding == plain.finding);
                CHECK(both.traffic == run(body, traffic, false).traffic);
                CHECK(both.statistics.warp_instructions == plain.statistics.warp_instructions);
                CHECK(both.statistics.lane_instructions == plain.statistics.lane_instructions);
                CHECK(both.statistics.global_bytes_read == plain.statistics.global_bytes_read);
                CHECK(both.statistics.global_bytes_written == plain.statistics.global_bytes_written);
            }
    }
}
