// SPDX-License-Identifier: Apache-2.0
// Bulk copies of boxes of tensors (PTX ISA, cp.async.bulk.tensor in tile mode): their places in shared memory, element
// by element, and what is found about them.
#include <algorithm>
#include <bit>

#include "runtime/emulator/agents/bulk/tensor_map.hpp"
#include "tests/unit/emulator/machine.hpp"

namespace ikat::tests::tensor_copies {

namespace {

using emulator::MapSwizzle;
using emulator::MapType;
using emulator::TensorMap;
using Map = std::array<std::byte, emulator::tensor_map_bytes>;

constexpr std::uint32_t seeds[] = {0, 1, 2, 3, 4, 5};

/// A kernel whose parameters are a map, a buffer and coordinates in %r20 to %r24: `tile` of 16 KiB, a barrier `bar` for
/// one arrival, %p1 thread 0 of 128, %r1 the thread, %r2 tile, %r5 the block, %d1 the map, %d2 = y + 16384 * the block.
std::string with_map(const std::string& body, const std::string& attributes = "") {
    return ".version 8.6\n.target sm_90a\n.address_size 64\n"
           ".visible .entry k(.param .align 64 .b8 map[128], .param .u64 y, .param .u32 c0, .param .u32 c1, .param "
           ".u32 c2,"
           " .param .u32 c3, .param .u32 c4) " +
           attributes + R"({
    .reg .pred %p<8>; .reg .b16 %h<8>; .reg .b32 %r<40>; .reg .b64 %d<20>;
    .shared .align 8 .b64 bar; .shared .align 1024 .b8 tile[16384];
    mov.u32 %r1, %tid.x; mov.u32 %r2, tile; mov.u32 %r5, %ctaid.x; setp.eq.u32 %p1, %r1, 0;
    mov.b64 %d1, map; cvta.param.u64 %d1, %d1; ld.param.u64 %d2, [y]; mul.wide.u32 %d3, %r5, 16384; add.u64 %d2, %d2, %d3;
    ld.param.u32 %r20, [c0]; ld.param.u32 %r21, [c1]; ld.param.u32 %r22, [c2]; ld.param.u32 %r23, [c3];
    ld.param.u32 %r24, [c4];
    @%p1 mbarrier.init.shared.b64 [bar], 1; fence.mbarrier_init.release.cluster; bar.sync 0;
)" + body + "\n$end: ret;\n}\n";
}

const std::string coordinates[] = {
    "", "%r20", "%r20, %r21", "%r20, %r21, %r22", "%r20, %r21, %r22, %r23", "%r20, %r21, %r22, %r23, %r24"};
std::string of_rank(std::uint32_t rank) { return std::to_string(rank) + "d"; }
std::string load(std::uint32_t rank, std::uint32_t bytes) {
    return "@%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], " + std::to_string(bytes) + ";\n" +
           "@%p1 cp.async.bulk.tensor." + of_rank(rank) +
           ".shared::cluster.global.tile.mbarrier::complete_tx::bytes [tile], [%d1, {" + coordinates[rank] +
           "}], [bar];\n$wait: mbarrier.try_wait.parity.shared::cta.b64 %p2, [bar], 0; @!%p2 bra $wait;\n";
}
/// The whole tile to y, or the other way round.
std::string words(const std::string& move, std::uint32_t bytes) {
    return "mov.u32 %r6, %r1; setp.ge.u32 %p3, %r6, " + std::to_string(bytes / 4) +
           "; @%p3 bra $done; $words: mul.wide.u32 %d4, %r6, 4; add.u64 %d4, %d4, %d2; shl.b32 %r7, %r6, 2;"
           "add.u32 %r7, %r7, %r2; " +
           move + "; add.u32 %r6, %r6, 128; setp.lt.u32 %p3, %r6, " + std::to_string(bytes / 4) +
           "; @%p3 bra $words; $done:\n";
}
const std::string to_y = "ld.shared.u32 %r8, [%r7]; st.global.u32 [%d4], %r8",
                  from_y = "ld.global.u32 %r8, [%d4]; st.shared.u32 [%r7], %r8";
const std::string ready = "fence.proxy.async.shared::cta; bar.sync 0;\n";
std::string store(std::uint32_t rank, const std::string& reduce = "") {
    return "@%p1 cp." + std::string(reduce.empty() ? "" : "reduce.") + "async.bulk.tensor." + of_rank(rank) +
           ".global.shared::cta" + reduce + ".tile.bulk_group [%d1, {" + coordinates[rank] +
           "}], [tile];\ncp.async.bulk.commit_group; cp.async.bulk.wait_group 0;\n";
}

/// A tensor in a buffer of its own, whose bytes are numbered.
struct Tensor {
    TensorMap map;
    std::vector<std::uint8_t> bytes;
};
Tensor tensor(TensorMap map) {
    std::uint64_t stride = map.extents[0] * emulator::element_bytes(map.type);
    for (std::uint32_t i = 1; i < map.rank; ++i) {
        stride = (stride + 15) / 16 * 16 + 16 * i;
        map.strides[i - 1] = stride;
        stride *= map.extents[i];
        if (!map.element_strides[i]) map.element_strides[i] = 1;
    }
    Tensor tensor{map, std::vector<std::uint8_t>(stride)};
    std::uint32_t state = 1;
    for (auto& byte : tensor.bytes) byte = std::uint8_t((state = state * 1664525 + 1013904223) >> 24);
    return tensor;
}

/// What is in the box, by the definition: element by element, with the places of the swizzle by rows and parts of 16
/// bytes. Calls f(place in the tile, place in the tensor; -1: outside).
template <class F>
std::uint32_t each_element(const TensorMap& map, const std::array<int, 5>& at, F f) {
    const std::uint32_t bytes = emulator::element_bytes(map.type);
    std::array<std::uint32_t, 5> counts{1, 1, 1, 1, 1}, index{};
    for (std::uint32_t i = 0; i < map.rank; ++i) {
        const std::uint32_t stride = i ? map.element_strides[i] : 1;
        counts[i] = (map.box[i] + stride - 1) / stride;
    }
    std::uint32_t place = 0;
    for (index[4] = 0; index[4] < counts[4]; ++index[4])
        for (index[3] = 0; index[3] < counts[3]; ++index[3])
            for (index[2] = 0; index[2] < counts[2]; ++index[2])
                for (index[1] = 0; index[1] < counts[1]; ++index[1])
                    for (index[0] = 0; index[0] < counts[0]; ++index[0], place += bytes) {
                        std::int64_t from = 0;
                        for (std::uint32_t i = 0; i < map.rank; ++i) {
                            const std::int64_t x = at[i] + std::int64_t(index[i]) * (i ? map.element_strides[i] : 1);
                            const bool is_in = x >= 0 && x < std::int64_t(map.extents[i]);
                            from = is_in && from >= 0 ? from + x * std::int64_t(i ? map.strides[i - 1] : bytes) : -1;
                        }
                        const std::uint32_t width = 16u << int(map.swizzle), row = place / width;
                        std::uint32_t part = place % width / 16;
                        if (map.swizzle == MapSwizzle::B128) part ^= row & 7;
                        if (map.swizzle == MapSwizzle::B64) part ^= row >> 1 & 3;
                        if (map.swizzle == MapSwizzle::B32) part ^= row >> 2 & 1;
                        f(map.swizzle == MapSwizzle::None ? place : row * width + part * 16 + place % 16, from);
                    }
    return place;
}

Map encoded(Machine& machine, Tensor& of) {
    of.map.address = machine.buffer("x", of.bytes);
    REQUIRE(emulator::problem(of.map) == "");
    return emulator::encode(of.map);
}

/// The nearest place before it at which a box may begin: at 16 bytes of a row, and if it is stored, in the tensor.
std::array<int, 5> allowed(const TensorMap& map, std::array<int, 5> at, bool is_stored) {
    const int parts = 16 / int(emulator::element_bytes(map.type));
    at[0] = (at[0] + parts * 4096) / parts * parts - parts * 4096;
    for (int& each : at) each = is_stored ? std::max(each, 0) : each;
    return at;
}

void check_load(const TensorMap& description, const std::array<int, 5>& wanted) {
    const std::array<int, 5> at = allowed(description, wanted, false);
    for (const std::uint32_t seed : seeds) {
        Machine machine;
        machine.options.seed = seed;
        Tensor x = tensor(description);
        const Map map = encoded(machine, x);
        std::vector<std::uint8_t> expected(16384);
        const std::uint32_t size = emulator::element_bytes(x.map.type);
        const std::uint32_t bytes = each_element(x.map, at, [&](std::uint32_t to, std::int64_t from) {
            for (std::uint32_t k = 0; k < size; ++k)
                expected[to + k] = from >= 0               ? x.bytes[std::size_t(from) + k]
                                   : !x.map.fills_with_nan ? 0
                                   : k + 1 == size         ? 0x7f
                                                           : 0xff;
        });
        expected.resize(bytes);
        const auto y = machine.empty<std::uint8_t>("y", bytes);
        machine.run(with_map(load(x.map.rank, bytes) + words(to_y, bytes)), {.block = {128, 1, 1}}, map, y, at[0],
                    at[1], at[2], at[3], at[4]);
        CHECK(machine.get<std::uint8_t>(y, bytes) == expected);
    }
}

/// Rows are stored to the end of 16 bytes, also where they end before.
void check_store(const TensorMap& description, const std::array<int, 5>& wanted) {
    const std::array<int, 5> at = allowed(description, wanted, true);
    for (const std::uint32_t seed : seeds) {
        Machine machine;
        machine.options.seed = seed;
        machine.options.checks.set(emulator::Check::BoxTails, emulator::Action::Off);
        Tensor x = tensor(description);
        const Map map = encoded(machine, x);
        std::vector<std::uint8_t> tile(16384), expected = x.bytes;
        for (std::size_t i = 0; i < tile.size(); ++i) tile[i] = std::uint8_t(i * 7 + i / 256);
        const std::uint32_t size = emulator::element_bytes(x.map.type);
        TensorMap stored = x.map;
        stored.extents[0] = (stored.extents[0] * size + 15) / 16 * 16 / size;
        const std::uint32_t bytes = each_element(stored, at, [&](std::uint32_t place, std::int64_t to) {
            for (std::uint32_t k = 0; to >= 0 && std::size_t(to) < expected.size() && k < size; ++k)
                expected[std::size_t(to) + k] = tile[place + k];
        });
        const auto y = machine.buffer("y", tile);
        machine.run(with_map(words(from_y, bytes) + ready + store(x.map.rank)), {.block = {128, 1, 1}}, map, y, at[0],
                    at[1], at[2], at[3], at[4]);
        CHECK(machine.get<std::uint8_t>(x.map.address, expected.size()) == expected);
    }
}

/// A matrix of 40 rows of 100 numbers, of which boxes have 8 rows of 32.
TensorMap matrix() { return {.type = MapType::U32, .rank = 2, .extents = {100, 40}, .box = {32, 8}}; }

/// The finding with each seed, which begins the same.
std::string finding(const TensorMap& description, const std::string& body, int c0 = 0, int c1 = 0,
                    const std::string& attributes = "", std::uint32_t blocks = 1,
                    const std::function<void(Machine&, Map&, Tensor&)>& change = {}) {
    std::string first, code;
    for (const std::uint32_t seed : seeds) {
        Machine machine;
        machine.options.seed = seed;
        Tensor x = tensor(description);
        Map map = encoded(machine, x);
        if (change) change(machine, map, x);
        const auto y = machine.buffer("y", std::vector<std::uint8_t>(16384 * blocks));
        const std::string said = machine.failure(
            with_map(body, attributes), {.grid = {blocks, 1, 1}, .block = {128, 1, 1}}, map, y, c0, c1, 0, 0, 0);
        if (seed == 0) first = said, code = machine.code;
        INFO("seed " << seed << ": " << said);
        CHECK(machine.code == code);
    }
    return code + ": " + first;
}

}  // namespace

TEST_CASE("boxes of tensors of one to five dimensions, inside and across the edges") {
    const std::array<TensorMap, 5> maps = {{
        {.type = MapType::U8, .rank = 1, .extents = {300}, .box = {256}},
        matrix(),
        {.type = MapType::U16, .rank = 3, .extents = {40, 9, 7}, .box = {16, 4, 3}},
        {.type = MapType::I64, .rank = 4, .extents = {10, 5, 6, 4}, .box = {4, 3, 2, 2}},
        {.type = MapType::U32, .rank = 5, .extents = {12, 5, 4, 3, 3}, .box = {8, 2, 3, 2, 2}},
    }};
    for (const TensorMap& map : maps) {
        INFO("rank " << map.rank);
        for (const std::array<int, 5>& at : {std::array{0, 0, 0, 0, 0},
                                             {3, 2, 1, 1, 1},
                                             {-5, -1, -1, -1, -1},
                                             {7, 38, 6, 3, 2},
                                             {-1000, 0, 0, 0, 0},
                                             {0, 1000, 0, 0, 0}}) {
            check_load(map, at);
            check_store(map, at);
        }
    }
}

TEST_CASE("swizzles exchange parts of 16 bytes") {
    for (const MapSwizzle swizzle : {MapSwizzle::None, MapSwizzle::B32, MapSwizzle::B64, MapSwizzle::B128}) {
        const std::uint32_t width = swizzle == MapSwizzle::None ? 64 : 16u << int(swizzle);
        for (const MapType type : {MapType::F16, MapType::U8, MapType::F64}) {
            TensorMap map{.type = type, .rank = 3, .extents = {90, 30, 4}, .swizzle = swizzle};
            map.box = {width / emulator::element_bytes(type), 20, 2};
            INFO("swizzle " << int(swizzle) << " type " << int(type));
            check_load(map, {2, 3, 1});
            check_load(map, {-3, 20, 3});
            check_store(map, {2, 3, 1});
            check_store(map, {-3, 20, 3});
        }
    }
}

TEST_CASE("a swizzle follows the address in shared memory, which is a multiple of 128") {
    for (const MapSwizzle swizzle : {MapSwizzle::B32, MapSwizzle::B64, MapSwizzle::B128})
        for (const std::uint32_t begin : {0u, 128u, 384u, 896u, 1024u}) {
            const std::uint32_t width = 16u << int(swizzle), rows = 32, bytes = rows * width;
            const Tensor x = tensor({.type = MapType::U32,
                                     .rank = 2,
                                     .extents = {width / 4, rows},
                                     .box = {width / 4, rows},
                                     .swizzle = swizzle});
            Machine machine;
            Tensor copied = x;
            const Map map = encoded(machine, copied);
            const auto y = machine.buffer("y", std::vector<std::uint8_t>(16384));
            std::string load_of = load(2, bytes);
            load_of.replace(load_of.find("[tile]"), 6, "[tile+" + std::to_string(begin) + "]");
            machine.run(with_map(load_of + "add.u32 %r2, %r2, " + std::to_string(begin) + ";\n" + words(to_y, bytes)),
                        {.block = {128, 1, 1}}, map, y, 0, 0, 0, 0, 0);
            // Where the guide has it: the bits of the 16 bytes are combined with those of the 128-byte line.
            const auto found = machine.get<std::uint8_t>(y, bytes);
            std::vector<std::uint8_t> expected(bytes);
            const std::uint64_t stride = copied.map.strides[0];
            for (std::uint32_t at = 0; at < bytes; ++at) {
                const std::uint32_t address = begin + at, line = address / 128,
                                    to = (address ^ (line % (width / 16)) * 16) - begin;
                expected[to] = copied.bytes[at / width * stride + at % width];
            }
            INFO("swizzle " << int(swizzle) << " at " << begin);
            CHECK(found == expected);
        }
}

TEST_CASE("elements are taken at a stride, and what is outside is zero or a NaN") {
    TensorMap map{
        .type = MapType::F32, .rank = 3, .extents = {40, 30, 20}, .box = {16, 12, 7}, .element_strides = {1, 3, 2}};
    check_load(map, {4, 5, 6});
    check_load(map, {-2, 25, -3});
    check_store(map, {4, 5, 6});
    check_store(map, {30, -4, 17});
    map.fills_with_nan = true;
    check_load(map, {-2, 25, -3});
    check_load({.type = MapType::Bf16, .rank = 1, .extents = {100}, .box = {64}, .fills_with_nan = true}, {70});
    check_load({.type = MapType::F64, .rank = 2, .extents = {10, 10}, .box = {4, 4}, .fills_with_nan = true}, {8, 8});
}

TEST_CASE("reductions of tensors") {
    const auto reduced = [](MapType type, const std::string& operation, std::uint32_t mine, std::uint32_t there) {
        Machine machine;
        std::uint32_t result = 0;
        for (const std::uint32_t seed : seeds) {
            Machine each;
            each.options.seed = seed;
            each.options.threads = 1 + seed % 2;
            const std::uint32_t width = 128 / emulator::element_bytes(type);
            TensorMap map{.type = type,
                          .rank = 2,
                          .extents = {width, 10},
                          .strides = {128},
                          .box = {width, 4},
                          .element_strides = {1, 1},
                          .swizzle = MapSwizzle::B128};
            map.address = each.buffer("x", std::vector<std::uint32_t>(32 * 10, there));
            const auto y = each.buffer("y", std::vector<std::uint32_t>(3 * 4096, mine));
            // each block adds rows 8 and 9, the rest of the box is outside
            each.run(with_map(words(from_y, 512) + ready + store(2, operation)),
                     {.grid = {3, 1, 1}, .block = {128, 1, 1}}, emulator::encode(map), y, 0, 8, 0, 0, 0);
            const auto all = each.get<std::uint32_t>(map.address, 320);
            CHECK(all == [&] {
                std::vector<std::uint32_t> expected(256, there);
                expected.resize(320, all[300]);
                return expected;
            }());
            result = all[300];
        }
        return result;
    };
    const auto f = [](float value) { return std::bit_cast<std::uint32_t>(value); };
    CHECK(reduced(MapType::U32, ".add", 7, 1) == 22);
    CHECK(reduced(MapType::F32, ".add", f(1.5f), f(1)) == f(5.5f));
    CHECK(reduced(MapType::F16, ".add", 0x3c003c00, 0x3c003c00) == 0x44004400);
    CHECK(reduced(MapType::Bf16, ".max", 0x3f803f80, 0x3f004000) == 0x3f804000);
    CHECK(reduced(MapType::I32, ".min", 0xffffffff, 3) == 0xffffffff);
    CHECK(reduced(MapType::U32, ".min", 0xffffffff, 3) == 3);
    CHECK(reduced(MapType::U64, ".xor", 12, 10) == 6);
    CHECK(reduced(MapType::U32, ".and", 12, 10) == 8);
    CHECK(reduced(MapType::U32, ".inc", 3, 2) == 1);
    CHECK_THAT(finding({.type = MapType::U8, .rank = 1, .extents = {512}, .box = {128}},
                       words(from_y, 512) + ready + store(1, ".add")),
               contains("bulk-map: ") && contains("this reduction has no elements of its type"));
}

TEST_CASE("a multicast of a box reaches all blocks that the mask names") {
    const std::string meet = "barrier.cluster.arrive.release; barrier.cluster.wait.acquire;\n";
    // each block loads a quarter of the rows, for all
    const std::string cast =
        "mov.b16 %h1, 15; shl.b32 %r21, %r5, 1; shl.b32 %r9, %r5, 8; add.u32 %r9, %r9, %r2;" + meet +
        "@%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 1024;\n"
        "@%p1 cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster"
        ".L2::cache_hint [%r9], [%d1, {%r20, %r21}], [bar], %h1, %d1;\n"
        "$wait: mbarrier.try_wait.parity.shared::cta.b64 %p2, [bar], 0; @!%p2 bra $wait;\n";
    for (const std::uint32_t seed : seeds) {
        Machine machine;
        machine.options.seed = seed;
        TensorMap description = matrix();
        description.box = {32, 2};
        Tensor x = tensor(description);
        const Map map = encoded(machine, x);
        const auto y = machine.buffer("y", std::vector<std::uint8_t>(4 * 16384));
        machine.run(with_map(cast + words(to_y, 1024) + meet, ".reqnctapercluster 4, 1, 1"),
                    {.grid = {4, 1, 1}, .block = {128, 1, 1}}, map, y, 8, 0, 0, 0, 0);
        const auto got = machine.get<std::uint8_t>(y, 4 * 16384);
        bool all = true;
        for (std::size_t i = 0; i < 4 * 1024; ++i) {
            const std::size_t row = i % 1024 / 128, from = row * x.map.strides[0] + 32 + i % 128;
            all &= got[i / 1024 * 16384 + i % 1024] == x.bytes[from];
        }
        CHECK(all);
    }
}

TEST_CASE("maps that are none, or do not fit") {
    const std::string copy = load(2, 1024);
    CHECK(finding(matrix(), copy) == ": no failure");
    CHECK_THAT(finding(matrix(), copy, 0, 0, "", 1, [](Machine&, Map& map, Tensor&) { map[20] ^= std::byte{1}; }),
               contains("bulk-map: kernel.ptx:") && contains("a tensor map at 0x") && contains("these bytes are none"));
    CHECK_THAT(finding(matrix(), load(3, 1024)),
               contains("bulk-map: ") && contains("a copy in 3 dimensions, of rank 2"));
    CHECK_THAT(finding(matrix(), "add.u64 %d1, %d1, 32;" + copy), contains("out-of-bounds: "));
    CHECK_THAT(finding(matrix(), "mov.u64 %d1, %d2; add.u64 %d1, %d1, 8;" + copy),
               contains("misaligned: ") && contains("64 bytes are needed"));
    CHECK_THAT(finding(matrix(), "mov.u64 %d1, %d2;" + copy), contains("bulk-map: "));
    CHECK_THAT(finding(matrix(), "ld.shared.u64 %d1, [tile];" + copy), contains("undefined-address: "));
    CHECK_THAT(finding(matrix(), "ld.shared.u32 %r21, [tile];" + copy), contains("undefined-address: "));
    // the bytes of a parameter without a window
    CHECK(finding(matrix(), "mov.b64 %d1, map;" + copy) == ": no failure");
    CHECK_THAT(finding(matrix(), copy, 0, 0, "", 1,
                       [](Machine& machine, Map&, Tensor& x) { machine.memory.release(x.map.address); }),
               contains("released-buffer: ") && contains("'x'"));
    const auto longer = [](Machine&, Map& map, Tensor& x) {
        x.map.extents[1] = 50;
        map = emulator::encode(x.map);
    };
    CHECK_THAT(finding(matrix(), copy, 0, 36, "", 1, longer),
               contains("out-of-bounds: ") && contains("global load of 128 bytes"));
    CHECK(finding(matrix(), copy, 0, 32, "", 1, longer) == ": no failure");
    // a released buffer is one even where the box is outside of the tensor
    CHECK_THAT(finding(matrix(), copy, 500, 0, "", 1,
                       [](Machine& machine, Map&, Tensor& x) { machine.memory.release(x.map.address); }),
               contains("released-buffer: "));
    TensorMap narrow = matrix();
    narrow.box = {16, 8};
    narrow.swizzle = MapSwizzle::B128;
    CHECK_THAT(finding(narrow, load(2, 512)), contains("bulk-map: ") && contains("rows of 64 bytes, swizzled by 128"));
    CHECK(finding(matrix(), "@%p1 cp.async.bulk.prefetch.tensor.2d.L2.global.tile [%d1, {%r20, %r21}];") ==
          ": no failure");
    CHECK_THAT(finding(matrix(), "@%p1 cp.async.bulk.prefetch.tensor.1d.L2.global.tile [%d1, {%r20}];"),
               contains("bulk-map: "));
    CHECK_THAT(
        finding(matrix(),
                "@%p1 cp.async.bulk.tensor.3d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes [tile], "
                "[%d1, {%r20, %r21, %r22}], [bar], {%h1};"),
        contains("not-emulated: "));
}

TEST_CASE("a map is fetched") {
    const auto changed = [](Machine&, Map& map, Tensor&) { map[20] ^= std::byte{1}; };
    CHECK(finding(matrix(), "@%p1 prefetch.tensormap [%d1];") == ": no failure");
    CHECK_THAT(finding(matrix(), "@%p1 prefetch.tensormap [%d1];", 0, 0, "", 1, changed),
               contains("bulk-map: ") && contains("a tensor map at 0x") && contains("these bytes are none"));
    CHECK(finding(matrix(), "@%p1 prefetch.param.tensormap [map];") == ": no failure");
    CHECK_THAT(finding(matrix(), "@%p1 prefetch.param.tensormap [map];", 0, 0, "", 1, changed), contains("bulk-map: "));
    CHECK_THAT(finding(matrix(), "@%p1 prefetch.param.tensormap [map+64];"), contains("out-of-bounds: "));
    CHECK_THAT(finding(matrix(), "@%p1 prefetch.tensormap [%d2];"), contains("bulk-map: "));
    CHECK_THAT(finding(matrix(), "@%p1 prefetch.tensormap [%d2+8];"), contains("misaligned: "));
    CHECK_THAT(finding(matrix(), "mov.u64 %d1, 0; @%p1 prefetch.const.tensormap [%d1];"),
               contains("no-buffer: ") && contains("of const memory"));
    CHECK_THAT(finding(matrix(), "ld.shared.u64 %d1, [tile]; @%p1 prefetch.tensormap [%d1];"),
               contains("undefined-address: "));
}

TEST_CASE("alignment, bounds and counted bytes of boxes") {
    TensorMap swizzled = matrix();
    swizzled.swizzle = MapSwizzle::B128;
    const auto at = [&](const TensorMap& map, const std::string& place) {
        std::string body = load(2, 1024);
        body.replace(body.find("[tile]"), 6, "[tile+" + place + "]");
        return finding(map, body);
    };
    CHECK(at(matrix(), "128") == ": no failure");
    CHECK_THAT(at(matrix(), "64"), contains("misaligned: ") && contains("128 bytes are needed"));
    CHECK(at(swizzled, "2048") == ": no failure");
    CHECK(at(swizzled, "512") == ": no failure");
    CHECK_THAT(at(swizzled, "64"), contains("misaligned: ") && contains("128 bytes are needed"));
    CHECK_THAT(at(matrix(), "16256"), contains("out-of-bounds: ") && contains("'tile'"));
    // the whole box is counted, also what is outside
    CHECK(finding(matrix(), load(2, 1024), 88, 39) == ": no failure");
    CHECK_THAT(finding(matrix(), load(2, 1000), 88, 39),
               contains("deadlock: ") && contains("24 bytes more than are expected"));
    CHECK_THAT(finding(matrix(), load(2, 1040)), contains("deadlock: ") && contains("lacks 16 bytes"));
    // of what is stored, all words must have been written
    CHECK_THAT(finding(matrix(), store(2)), contains("bulk-unwritten: "));
    const std::string four = "@%p1 st.shared.v4.u32 [tile], {%r1, %r1, %r1, %r1};" + ready + store(2);
    CHECK(finding(matrix(), four, 96, 39) == ": no failure");
    CHECK_THAT(finding(matrix(), four, 92, 39), contains("bulk-unwritten: "));
}

TEST_CASE("boxes that a device does not copy, or copies with more than is in the tensor") {
    const std::string stored = words(from_y, 1024) + ready + store(2),
                      added = words(from_y, 1024) + ready + store(2, ".add");
    CHECK_THAT(finding(matrix(), load(2, 1024), 3, 0),
               contains("bulk-place: ") && contains("a box begins at byte 12 of the rows of its tensor") &&
                   contains("CUDA_ERROR_ILLEGAL_INSTRUCTION"));
    for (const std::string& body : {stored, added}) {
        CHECK_THAT(finding(matrix(), body, 3, 0), contains("bulk-place: "));
        CHECK_THAT(
            finding(matrix(), body, 0, -1),
            contains("bulk-place: ") && contains("a box that is stored begins at -1 of dimension 1 of its tensor"));
        CHECK(finding(matrix(), body, 96, 39) == ": no failure");
    }
    CHECK(finding(matrix(), load(2, 1024), -4, -1) == ": no failure");
    TensorMap narrow = matrix();
    narrow.extents[0] = 98;
    CHECK(finding(narrow, load(2, 1024), 96, 0) == ": no failure");
    CHECK(finding(narrow, stored, 0, 0) == ": no failure");  // the box ends before the row
    for (const std::string& body : {stored, added})
        CHECK_THAT(finding(narrow, body, 96, 0),
                   contains("bulk-tail: ") &&
                       contains("a store of a box also changes 8 bytes at offset 392 of buffer 'x'") &&
                       contains("after a row of the tensor") && contains("box-tails=off"));
}

TEST_CASE("a box in flight is left alone") {
    std::string early = load(2, 1024);
    early.resize(early.find("$wait"));
    CHECK_THAT(finding(matrix(), early + "bar.sync 0; ld.shared.u32 %r8, [tile+1020];"),
               contains("copy-not-awaited: ") && contains("cp.async.bulk.tensor.2d"));
    CHECK_THAT(finding(matrix(), early + "@%p1 st.shared.u32 [tile+4], 1;" + load(2, 1024).substr(early.size())),
               contains("copy-overwritten: "));
    CHECK_THAT(finding(matrix(), early), contains("bulk-at-exit: "));
    std::string changed = words(from_y, 1024) + ready + store(2);
    changed.insert(changed.find("cp.async.bulk.wait_group"), "@%p1 st.shared.u32 [tile+4], 1;");
    CHECK_THAT(finding(matrix(), changed), contains("copy-source-changed: ") && contains("'tile'"));
}

}  // namespace ikat::tests::tensor_copies
