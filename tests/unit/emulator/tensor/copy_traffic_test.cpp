// SPDX-License-Identifier: Apache-2.0
// The traffic of asynchronous copies: of those of a warp what is read in fact, of those in bulk
// each of their bytes.
#include "runtime/emulator/agents/bulk/tensor_map.hpp"
#include "tests/unit/emulator/machine.hpp"

namespace ikat::tests::copy_traffic {

namespace {

using emulator::LaunchTraffic;
using emulator::Traffic;

/// Runs `body` with buffers x (%d1) and y (%d2) of 4 KiB, 1024 bytes of shared memory `tile`, a barrier `bar` for one
/// arrival, and a map (%d3) of x as 16 x 60 words, 64 apart; %r1 is the thread, %p1 thread 0 of 32.
LaunchTraffic traffic_of(const std::string& body) {
    Machine machine;
    LaunchTraffic out;
    machine.options.tools = {emulator::count_traffic([&](const LaunchTraffic& traffic) { out = traffic; })};
    const auto x = machine.buffer("x", std::vector<std::uint32_t>(1024)),
               y = machine.buffer("y", std::vector<std::uint32_t>(1024));
    const emulator::TensorMap map{.type = emulator::MapType::U32,
                                  .rank = 2,
                                  .address = x,
                                  .extents = {60, 16},
                                  .strides = {256},
                                  .box = {16, 8},
                                  .element_strides = {1, 1}};
    REQUIRE(emulator::problem(map) == "");
    machine.run(R"(.version 8.6
.target sm_90a
.address_size 64
.visible .entry k(.param .align 64 .b8 map[128], .param .u64 p0, .param .u64 p1) {
    .reg .pred %p<8>; .reg .b32 %r<20>; .reg .b64 %d<20>;
    .shared .align 8 .b64 bar; .shared .align 128 .b8 tile[1024];
    mov.u32 %r1, %tid.x; mov.u32 %r2, tile; setp.eq.u32 %p1, %r1, 0;
    ld.param.u64 %d1, [p0]; ld.param.u64 %d2, [p1]; mov.b64 %d3, map; cvta.param.u64 %d3, %d3;
    shl.b32 %r3, %r1, 2; add.u32 %r3, %r3, %r2; mul.wide.u32 %d4, %r1, 4; add.u64 %d4, %d4, %d1;
    st.shared.u32 [%r3], %r1; st.shared.u32 [%r3+128], %r1; st.shared.u32 [%r3+256], %r1; st.shared.u32 [%r3+384], %r1;
    @%p1 mbarrier.init.shared.b64 [bar], 1; fence.mbarrier_init.release.cluster; fence.proxy.async; bar.sync 0;
)" + body + "\n$end: ret;\n}\n",
                {.grid = {1, 1, 1}, .block = {32, 1, 1}}, emulator::encode(map), x, y);
    return out;
}

/// The traffic of the only buffer that was accessed.
const emulator::BufferTraffic& only(const LaunchTraffic& traffic, std::string_view name) {
    REQUIRE(traffic.buffers.size() == 1);
    CHECK(traffic.buffers[0].name == name);
    return traffic.buffers[0];
}

const std::string wait = "cp.async.wait_all;\n";
std::string await_bytes(const std::string& bytes) {
    return "@%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], " + bytes +
           ";\n$wait: mbarrier.try_wait.parity.shared::cta.b64 %p2, [bar], 0; @!%p2 bra $wait;\n";
}
const std::string done = "cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;\n";

}  // namespace

TEST_CASE("copies of a warp count what they read") {
    const auto read_by = [](const std::string& body) { return only(traffic_of(body + wait), "x").read; };
    CHECK(read_by("cp.async.ca.shared.global [%r3], [%d4], 4;\n") == Traffic{1, 128, 4, 128, 128});
    CHECK(read_by("cp.async.ca.shared.global [%r3], [%d4], 4, 4;\n") == Traffic{1, 128, 4, 128, 128});
    CHECK(read_by("cp.async.ca.shared.global [%r3], [%d4], 4, 2;\n") == Traffic{1, 64, 4, 128, 128});
    // By eight of the lanes.
    CHECK(read_by("setp.lt.u32 %p3, %r1, 8; selp.u32 %r4, 4, 0, %p3;\n"
                  "cp.async.ca.shared.global [%r3], [%d4], 4, %r4;\n") == Traffic{1, 32, 1, 32, 32});
    CHECK(read_by("setp.ge.u32 %p3, %r1, 8;\ncp.async.ca.shared.global [%r3], [%d4], 4, %p3;\n") ==
          Traffic{1, 32, 1, 32, 32});
    // By none: at an address that is nobody's.
    CHECK(traffic_of("mov.b64 %d4, 16;\ncp.async.ca.shared.global [%r3], [%d4], 4, 0;\n" + wait).buffers.empty());
    // The second time .ca finds it in the cache.
    const std::string ca = "cp.async.ca.shared.global [%r3], [%d4], 4, %r5;\n";
    CHECK(read_by("mov.u32 %r5, 4;\n" + ca + wait + ca) == Traffic{2, 256, 8, 128, 128});
    const std::string cg = "@%p1 cp.async.cg.shared.global [tile], [%d1], 16, %r5;\n";
    CHECK(read_by("mov.u32 %r5, 16;\n" + cg + wait + cg) == Traffic{2, 32, 2, 64, 32});
}

TEST_CASE("copies in bulk count each of their bytes") {
    const std::string load = "@%p1 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [tile], ";
    CHECK(only(traffic_of(load + "[%d1], 512, [bar];\n" + await_bytes("512")), "x").read ==
          Traffic{1, 512, 16, 512, 512});
    CHECK(only(traffic_of(load + "[%d1+16], 32, [bar];\n" + await_bytes("32")), "x").read == Traffic{1, 32, 2, 64, 64});
    CHECK(only(traffic_of("@%p1 cp.async.bulk.global.shared::cta.bulk_group [%d2], [tile], 256;\n" + done), "y")
              .written == Traffic{1, 256, 8, 256, 256});
    CHECK(
        only(traffic_of("@%p1 cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%d2], [tile], 64;\n" + done),
             "y")
            .atomic == Traffic{1, 64, 2, 64, 64});
}

TEST_CASE("boxes count the bytes that are inside of their tensor") {
    const auto load = [](const std::string& at) {
        const std::string tensor =
            "@%p1 cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::"
            "bytes [tile], [%d3, " +
            at + "], [bar];\n";
        return only(traffic_of(tensor + await_bytes("512")), "x").read;
    };
    CHECK(load("{0, 0}") == Traffic{1, 512, 16, 512, 512});
    CHECK(load("{4, 2}") == Traffic{1, 512, 24, 768, 768});      // rows of 64 bytes from byte 16 of a sector on
    CHECK(load("{52, -6}") == Traffic{1, 2 * 32, 4, 128, 128});  // two rows, of eight words
    CHECK(only(traffic_of("@%p1 cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%d3, {0, 12}], [tile];\n" +
                          done),
               "x")
              .written == Traffic{1, 4 * 64, 8, 256, 256});
}

}  // namespace ikat::tests::copy_traffic
