// SPDX-License-Identifier: Apache-2.0
// Changes of tensor maps by a kernel (PTX ISA, tensormap.replace and tensormap.cp_fenceproxy), the fences that they
// need before a bulk copy uses the map, and what is found about them.
#include <algorithm>

#include "runtime/emulator/agents/bulk/tensor_map.hpp"
#include "tests/unit/emulator/machine.hpp"

namespace ikat::tests::map_changes {

namespace {

using emulator::MapSwizzle;
using emulator::MapType;
using emulator::TensorMap;

/// A kernel of 64 threads with a copy of its parameter `map` in `mine`, in shared memory: %r1 the thread, %r3 the lane,
/// %p0 thread 0, %p1 warp 0, %d1 = p0 (for maps), %d2 = p1, %d4 the parameter; `tile` and a barrier `bar` for one
/// arrival.
std::string with_map(const std::string& body) {
    return R"(.version 8.6
.target sm_90a
.address_size 64
.const .align 64 .b8 fixed[128] = {1};
.visible .entry k(.param .align 64 .b8 map[128], .param .u64 p0, .param .u64 p1) {
    .reg .pred %p<8>; .reg .b32 %r<40>; .reg .b64 %d<40>;
    .shared .align 8 .b64 bar; .shared .align 128 .b8 tile[1024]; .shared .align 128 .b8 mine[256];
    mov.u32 %r1, %tid.x; and.b32 %r3, %r1, 31; setp.eq.u32 %p0, %r1, 0; setp.lt.u32 %p1, %r1, 32;
    ld.param.u64 %d1, [p0]; ld.param.u64 %d2, [p1]; mov.b64 %d4, map; cvta.param.u64 %d4, %d4;
    @%p0 mbarrier.init.shared.b64 [bar], 1; fence.mbarrier_init.release.cluster;
    mul.wide.u32 %d5, %r3, 4; add.u64 %d5, %d5, %d4; ld.u32 %r4, [%d5];
    shl.b32 %r5, %r3, 2; mov.u32 %r6, mine; add.u32 %r5, %r5, %r6; @%p1 st.shared.u32 [%r5], %r4; bar.sync 0;
)" + body + "\n$end: ret;\n}\n";
}
/// By thread 0.
std::string replace(const std::string& field, const std::string& value, const std::string& where = "mine",
                    const std::string& space = ".shared::cta") {
    const bool is_wide = field == "global_address" || field == "global_stride";
    return "@%p0 tensormap.replace.tile." + field + space + (is_wide ? ".b1024.b64 [" : ".b1024.b32 [") + where +
           "], " + value + ";\n";
}
const std::string met = "bar.sync 0;\n", other_warps_end = "@!%p1 bra $end;\n";
const std::string out =
    "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%d1], "
    "[mine], 128;\n";
const std::string acquire = "fence.proxy.tensormap::generic.acquire.gpu [%d1], 128;\n",
                  release = "fence.proxy.tensormap::generic.release.gpu;\n";
/// Thread 0 copies a box of 16 numbers from place %r20, and all copy it to p1.
const std::string load = R"(
    @%p0 mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 64; mov.u32 %r20, 4;
    @%p0 cp.async.bulk.tensor.1d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [tile], [%d1, {%r20}], [bar];
$wait: mbarrier.try_wait.parity.shared::cta.b64 %p2, [bar], 0; @!%p2 bra $wait;
    and.b32 %r7, %r1, 15; shl.b32 %r8, %r7, 2; mov.u32 %r9, tile; add.u32 %r8, %r8, %r9; ld.shared.u32 %r9, [%r8];
    mul.wide.u32 %d6, %r7, 4; add.u64 %d6, %d6, %d2; st.global.u32 [%d6], %r9;
)";

TensorMap row(std::uint64_t address) {
    return {.type = MapType::U32, .rank = 1, .address = address, .extents = {32}, .box = {16}, .element_strides = {1}};
}
std::vector<std::uint32_t> numbers(std::uint32_t first) {
    std::vector<std::uint32_t> all(64);
    for (std::uint32_t i = 0; i < 64; ++i) all[i] = first + i;
    return all;
}

struct Outcome {
    std::string said, code;
    std::vector<std::byte> map;       // that is in p0 at the end
    std::vector<std::uint32_t> read;  // p1
    std::uint64_t x = 0;              // the address of x, of this run alone
};
/// The parameter is a map of x; p0 has room for two maps, and p2 is another buffer, whose address replaces %other.
Outcome outcome(std::string body, std::uint32_t seed = 0, bool zeros = false) {
    Machine machine;
    machine.options.seed = seed;
    machine.check_registers(seed % 2);
    const auto x = machine.buffer("x", numbers(100)), z = machine.buffer("z", numbers(500));
    const auto p0 = machine.buffer("maps", std::vector<std::uint64_t>(32)), p1 = machine.empty<std::uint32_t>("y", 16);
    for (std::size_t at; (at = body.find("$z")) != body.npos;) body.replace(at, 2, std::to_string(z));
    auto map = encode(row(x));
    if (zeros) map = {};
    Outcome out;
    out.said = machine.failure(with_map(body), {.block = {64, 1, 1}}, map, p0, p1);
    out.code = machine.code;
    out.map = machine.get<std::byte>(p0, 128);
    out.x = x;
    if (out.said == "no failure") out.said.clear();
    if (out.said.empty() && body.find("[%d6]") != body.npos) out.read = machine.get<std::uint32_t>(p1, 16);
    return out;
}
/// The map with these changes, with address 0 if it is still one of x.
TensorMap changed(const std::string& changes, bool zeros = false) {
    const Outcome result = outcome(changes + met + other_warps_end + out, 0, zeros);
    INFO(result.said);
    REQUIRE(result.said.empty());
    auto map = emulator::decode(std::span<const std::byte, 128>(result.map.data(), 128));
    REQUIRE(map);
    if (map->address == result.x) map->address = 0;
    return *map;
}

}  // namespace

TEST_CASE("each field of a tensor map is replaced") {
    const TensorMap before = changed("");
    const auto with = [&](auto change) {
        TensorMap map = before;
        change(map);
        return map;
    };
    CHECK(before == with([](TensorMap&) {}));
    CHECK(changed(replace("global_address", "%d2")).address != before.address);
    CHECK(changed(replace("global_address", "4096")) == with([](TensorMap& map) { map.address = 4096; }));
    // A value of 0 is rank 1.
    const std::string three = replace("rank", "2");
    CHECK(changed(replace("rank", "0")) == before);
    CHECK(changed(three).rank == 3);
    CHECK(changed(three + replace("box_dim", "0, 8") + replace("box_dim", "2, 256")).box ==
          std::array<std::uint32_t, 5>{8, 0, 256});
    CHECK(changed("mov.u32 %r7, 77;" + three + replace("global_dim", "1, %r7") + replace("global_dim", "2, -1"))
              .extents == std::array<std::uint64_t, 5>{32, 77, 0xffffffff});
    CHECK(changed(three + replace("global_stride", "0, 128") + replace("global_stride", "1, 549755813888")).strides ==
          std::array<std::uint64_t, 4>{128, 1ull << 39});
    CHECK(changed(three + replace("element_stride", "1, 8") + replace("element_stride", "2, 1")).element_strides ==
          std::array<std::uint32_t, 5>{1, 8, 1});
    CHECK(changed(replace("interleave_layout", "2")) == with([](TensorMap& map) { map.interleave = 2; }));
    for (const int mode : {0, 1, 2, 3})
        CHECK(changed(replace("swizzle_mode", std::to_string(mode))) ==
              with([&](TensorMap& map) { map.swizzle = MapSwizzle(mode); }));
    CHECK(changed(replace("fill_mode", "1")) == with([](TensorMap& map) { map.fills_with_nan = true; }));
    // The ISA's table of new values: .f32.ftz is before .f64 and .bf16.
    using enum MapType;
    constexpr MapType types[] = {U8, U16, U32, I32, U64, I64, F16, F32, F32Ftz, F64, Bf16, Tf32, Tf32Ftz};
    for (std::size_t i = 0; i < std::size(types); ++i)
        CHECK(changed(replace("elemtype", std::to_string(i))).type == types[i]);
}

TEST_CASE("a tensor map is made from zeros") {
    const TensorMap map =
        changed(replace("global_address", "256") + replace("rank", "1") + replace("box_dim", "0, 16") +
                    replace("box_dim", "1, 8") + replace("global_dim", "0, 100") + replace("global_dim", "1, 50") +
                    replace("global_stride", "0, 400") + replace("element_stride", "0, 1") +
                    replace("element_stride", "1, 1") + replace("elemtype", "7") + replace("interleave_layout", "0") +
                    replace("swizzle_mode", "2") + replace("fill_mode", "0"),
                true);
    CHECK(map == TensorMap{.type = MapType::F32,
                           .rank = 2,
                           .address = 256,
                           .extents = {100, 50},
                           .strides = {400},
                           .box = {16, 8},
                           .element_strides = {1, 1},
                           .swizzle = MapSwizzle::B64});
    CHECK(problem(map) == "");
    // and from none, but not by a copy that knows too little of it
    CHECK_THAT(outcome(replace("rank", "0") + met + other_warps_end + out + acquire + load, 0, true).said,
               contains("error: a tensor map at 0x") && contains("address 0x0"));
}

TEST_CASE("bulk copies by maps that a kernel has changed") {
    const std::vector<std::uint32_t> of_z = [] {
        std::vector<std::uint32_t> all = numbers(500);
        return std::vector<std::uint32_t>(all.begin() + 4, all.begin() + 20);
    }();
    std::vector<std::uint32_t> fewer = of_z;
    std::fill(fewer.begin() + 6, fewer.end(), 0);
    for (std::uint32_t seed = 0; seed < 6; ++seed) {
        const auto read = [&](const std::string& body) {
            const Outcome result = outcome(body, seed);
            CHECK(result.said == "");
            return result.read;
        };
        const std::string moved = replace("global_address", "$z") + met;
        CHECK(read(moved + "@!%p1 bra $a;\n" + out + "$a:" + acquire + load) == of_z);
        CHECK(read(replace("global_dim", "0, 10") + moved + "@!%p1 bra $a;\n" + out + "$a:" + acquire + load) == fewer);
        // in global memory, where it is another thread that acquires it
        const std::string there =
            "@%p1 add.u64 %d5, %d1, %d5; @%p1 sub.u64 %d5, %d5, %d4; @%p1 st.global.u32 [%d5], %r4;\n";
        for (const std::string space : {".global", ""})
            CHECK(read(there + met + replace("global_address", "$z", "%d1", space) + release + met + acquire + load) ==
                  of_z);
        CHECK(read(there + met + replace("global_address", "$z", "%d1", ".global") + met + "@!%p1 " + release + met +
                   acquire + load) == of_z);
        // by a generic address of shared memory
        CHECK(read("mov.u64 %d7, mine; cvta.shared.u64 %d7, %d7;" + replace("global_address", "$z", "%d7", "") + met +
                   "@!%p1 bra $a;\n" + out + "$a:" + acquire + load) == of_z);
    }
}

TEST_CASE("fences between a change of a tensor map and its use") {
    const std::string copied = replace("global_address", "$z") + met + "@!%p1 bra $a;\n" + out + "$a: " + met;
    const std::string changed =
        "@%p1 add.u64 %d5, %d1, %d5; @%p1 sub.u64 %d5, %d5, %d4;\n@%p1 st.global.u32 [%d5], %r4;\n" + met +
        replace("global_address", "$z", "%d1", ".global");
    for (std::uint32_t seed = 0; seed < 6; ++seed) {
        const auto found = [&](const std::string& body) {
            const Outcome result = outcome(body + load, seed);
            return result.code + ": " + result.said;
        };
        CHECK(found(copied + acquire) == ": ");
        CHECK_THAT(found(copied),
                   contains("bulk-not-visible: ") &&
                       contains("a bulk copy uses a tensor map with 4 bytes at offset 0 of buffer 'maps'") &&
                       contains("without fence.proxy.tensormap::generic.acquire before it") &&
                       contains("the write, by block (0,0,0) thread (31,0,0): tensormap.cp_fenceproxy"));
        CHECK_THAT(found(acquire + met + copied), contains("generic.acquire before it"));
        // of another map
        CHECK_THAT(found(copied + "fence.proxy.tensormap::generic.acquire.gpu [%d1+128], 128;\n"),
                   contains("generic.acquire before it"));
        CHECK(found(changed + release + met + acquire) == ": ");
        CHECK_THAT(found(changed + met + acquire),
                   contains("bulk-not-visible: ") && contains("fence.proxy.tensormap::generic.release before it") &&
                       contains("tensormap.replace.tile.global_address.global.b1024.b64"));
        CHECK_THAT(found(changed + "fence.proxy.async; fence.acq_rel.gpu;\n" + met + acquire),
                   contains("generic.release before it"));
        CHECK_THAT(found(changed + release + met), contains("generic.acquire before it"));
        CHECK_THAT(found(release + met + changed + met + acquire), contains("generic.release before it"));
    }
}

TEST_CASE("changes of tensor maps that are none") {
    const auto found = [](const std::string& body) {
        const Outcome result = outcome(body);
        return result.code + ": " + result.said;
    };
    CHECK_THAT(found("@%p0 st.shared.u32 [mine+8], 7;\n" + replace("rank", "1")),
               contains("map-change: ") && contains("a change of the tensor map at offset 0 of 'mine'") &&
                   contains("these bytes are none") && contains("tensormap.replace.tile.rank.shared::cta"));
    CHECK_THAT(found(replace("rank", "1", "mine+128")),
               contains("map-change: ") && contains("at offset 128 of 'mine'") && contains("has written some of"));
    CHECK_THAT(found(replace("rank", "1", "mine+32")), contains("misaligned: "));
    CHECK_THAT(found(replace("rank", "1", "mine+192")), contains("out-of-bounds: "));
    CHECK_THAT(found(replace("rank", "1", "%d4", "")), contains("read-only: "));
    CHECK_THAT(found("mov.u64 %d7, fixed; cvta.const.u64 %d7, %d7;" + replace("rank", "1", "%d7", "")),
               contains("read-only: "));
    CHECK_THAT(found(replace("rank", "5")),
               contains("map-change: ") && contains("a rank of 5, less one: it is 0 to 4"));
    CHECK_THAT(found(replace("box_dim", "1, 0")), contains("box 1 is 0: it is 1 to 256"));
    CHECK_THAT(found(replace("box_dim", "0, 257")), contains("box 0 is 257"));
    CHECK_THAT(found(replace("global_dim", "3, 0")), contains("extent 3 is 0: it is 1 to 2^32"));
    CHECK_THAT(found(replace("element_stride", "4, 9")), contains("element stride 4 is 9: it is 1 to 8"));
    // what can be told only when it is used
    const std::string use = met + "@!%p1 bra $a;\n" + out + "$a: " + met + acquire + load;
    CHECK_THAT(found(replace("global_address", "8") + use), contains("bulk-map: ") && contains("address 0x8"));
    CHECK_THAT(found(replace("rank", "1") + use), contains("a copy in 1 dimensions, of rank 2"));
    // immediates
    CHECK_THAT(found(replace("swizzle_mode", "4")), contains("wrong-immediate: ") && contains("from 0 to 3"));
    CHECK_THAT(found(replace("elemtype", "13")), contains("from 0 to 12"));
    CHECK_THAT(found(replace("interleave_layout", "3")), contains("from 0 to 2"));
    CHECK_THAT(found(replace("fill_mode", "2")), contains("from 0 to 1"));
    CHECK_THAT(found(replace("box_dim", "5, 1")), contains("from 0 to 4"));
    CHECK_THAT(found(replace("global_stride", "4, 16")), contains("from 0 to 3"));
    std::string wide = out;
    wide.replace(wide.find("128"), 3, "64");
    CHECK_THAT(found(wide), contains("a tensor map has 128 bytes"));
    // copies of maps
    CHECK_THAT(found("@%p0 " + out + met), contains("divergent-barrier: ") && contains("lane 0 wait for lanes 1-31"));
    CHECK(found("@%p0 bra $end;\n@!%p1 bra $end;\n" + out) == ": ");
    CHECK_THAT(found("@%p0 tensormap.replace.tile.swizzle_atomicity.shared::cta.b1024.b32 [mine], 1;\n"),
               contains("not-emulated: ") && contains("swizzle_atomicity"));
    std::string other = out;
    other.replace(other.find("mine"), 4, "tile");
    CHECK_THAT(found(other), contains("map-change: ") && contains("at offset 0 of 'tile'"));
    CHECK_THAT(found("add.u64 %d1, %d1, 192;\n" + out), contains("out-of-bounds: ") && contains("'maps'"));
    CHECK_THAT(found(".reg .b64 %e; " + replace("global_address", "%e") + met + out + acquire + load),
               contains("bulk-map: ") || contains("undefined"));
}

}  // namespace ikat::tests::map_changes
