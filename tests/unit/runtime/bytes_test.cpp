// SPDX-License-Identifier: Apache-2.0
// Parameters of raw bytes: what the kernel reads, what PTX has, what a launch passes.
#include <ikat/ikat.hpp>

#include <array>
#include <cstring>

#include "codegen/pipeline/compile.hpp"
#include "tests/catch.hpp"
#include "tests/message.hpp"
#include "tests/ptxas.hpp"
#include "tests/unit/runtime/emulator.hpp"

namespace ikat::tests {
namespace {

/// As large, and aligned as, a tensor map.
struct alignas(64) Map {
    std::uint8_t first[3];
    std::uint16_t narrow;
    float number;
    double wide;
    std::uint64_t words[12];
    std::uint8_t last;
};
static_assert(sizeof(Map) == 128);

const auto raw = kernel("raw", params("tag", "map", "n", "y", "z"),
                        [](u8 tag, Bytes<128, 64> map, u32 n, Out<float> y, Out<std::uint64_t> z) {
                            y[0] = map.read<f32>(offsetof(Map, number)) + cast<f32>(map.read<double>(16));
                            y[1] = cast<f32>(map.read<std::uint16_t>(4)) + cast<f32>(map.read<u8>(2));
                            y[2] = cast<f32>(n) + cast<f32>(tag);
                            z[0] = map.read<std::uint64_t>(offsetof(Map, words) + 8);
                            z[1] = cast<u64>(map.read<std::uint8_t>(offsetof(Map, last)));
                        });

TEST_CASE("raw bytes: in PTX they are one aligned array") {
    const std::string ptx = compile(raw.ast(), {}).ptx;
    CHECK_THAT(ptx, contains("(\n    .param .u8 tag,\n    .param .align 64 .b8 map[128],\n    .param .u32 n,"));
    CHECK_THAT(ptx, contains("ld.param.f32") && contains("[map+8]"));
    CHECK_THAT(ptx, contains("ld.param.u64") && contains("[map+32]"));
}

TEST_CASE("raw bytes: a launch passes an object unchanged, between the other arguments") {
    const Device device = emulator();
    Buffer<float> y = device.buffer<float>(3);
    Buffer<std::uint64_t> z = device.buffer<std::uint64_t>(2);
    Map map{.first = {1, 2, 3}, .narrow = 500, .number = 1.5f, .wide = 0.25, .words = {7, 1ull << 60}, .last = 255};
    device.launch(raw, grid(1, 1), 9, map, 1000u, y, z);
    CHECK(y.download() == std::vector<float>{1.75, 503, 1009});
    CHECK(z.download() == std::vector<std::uint64_t>{1ull << 60, 255});
    // Any object of that size will do, and a const one; a stream takes a copy.
    std::array<std::byte, 128> bytes{};
    std::memcpy(bytes.data(), &map, sizeof map);
    const Stream stream = device.stream();
    {
        const std::array<std::byte, 128> copy = bytes;
        stream.launch(raw, grid(1, 1), 10, copy, 2000u, y, z);
    }
    bytes.fill(std::byte{0});
    stream.synchronize();
    CHECK(y.download() == std::vector<float>{1.75, 503, 2010});
}

TEST_CASE("raw bytes: several, of odd sizes, with and without numbers after them") {
    const auto k =
        kernel("k", params("a", "b", "n", "y"), [](Bytes<3, 1> a, Bytes<12, 4> b, u64 n, Out<std::uint32_t> y) {
            y[0] = cast<u32>(a.read<u8>(2)) * 1000 + b.read<u32>(8) + cast<u32>(n);
        });
    const Device device = emulator();
    Buffer<std::uint32_t> y = device.buffer<std::uint32_t>(1);
    device.launch(k, grid(1, 1), std::array<char, 3>{1, 2, 3}, std::array<std::uint32_t, 3>{4, 5, 6}, 100, y);
    CHECK(y.download()[0] == 3106);
}

// The generic address: for texts that take it as an operand, such as copies with a tensor map.
const auto addressed =
    kernel("addressed", params("tag", "map", "y"), [](u8 tag, Bytes<128, 64> map, Out<std::uint64_t> y) {
        u64 first, word;
        inline_ptx("ld.u64 {0}, [{1}];", out(first), in(map.address()));
        inline_ptx("ld.b64 {0}, [{1}+32];", out(word), in(map.address()));
        y[0] = first + cast<u64>(tag);
        y[1] = word;
        y[2] = map.address() % 64;
    });

TEST_CASE("raw bytes: their address is generic") {
    Map map{.first = {1, 0, 0}, .narrow = 3, .number = 0, .wide = 0, .words = {5, 1ull << 60}, .last = 0};
    const Device device = emulator();
    Buffer<std::uint64_t> y = device.buffer<std::uint64_t>(3);
    device.launch(addressed, grid(1, 1), 9, map, y);
    CHECK(y.download() == std::vector<std::uint64_t>{10 + (3ull << 32), 1ull << 60, 0});
    for (const char* target : {"sm_75", "sm_90a"}) {
        const std::string ptx = compile(addressed.ast(), {.target = target}).ptx;
        INFO(ptx);
        CHECK(ptx.find("cvta.param.u64") == ptx.rfind("cvta.param.u64"));  // it is a value like any other
        CHECK_THAT(ptx, contains("cvta.param.u64 %d") && contains(", map;"));
        if (skip_without_ptxas()) continue;
        const PtxasReport report = assemble(ptx, target);
        INFO(report.log);
        CHECK(report.clean());
    }
    CHECK_THAT(compile(addressed.ast(), {.target = "sm_75"}).ptx, contains(".version 7.7"));
}

TEST_CASE("raw bytes: their address cannot be written through") {
    const auto writes =
        kernel("writes", params("map"), [](Bytes<16, 8> map) { inline_ptx("st.u32 [{0}], 1;", in(map.address())); });
    const Device device = emulator();
    const std::array<std::uint64_t, 2> map{};
    CHECK_THAT(message_of([&] { device.launch(writes, grid(1, 1), map); }), contains("which can only be read"));
}

TEST_CASE("raw bytes: misuse is an error") {
    const auto wrong = kernel("wrong", params("map", "y"), [](Bytes<16, 8> map, Out<float> y) {
        y[0] = map.read<f32>(16) + map.read<f32>(-4) + map.read<f32>(2);
    });
    const std::string messages = message_of([&] { wrong.check(); });
    CHECK_THAT(messages, contains("no f32 starts at byte 16 of `map`, which has 16"));
    CHECK_THAT(messages, contains("byte -4 of `map`"));
    CHECK_THAT(messages, contains("byte 2 of `map`"));
    CHECK_THAT(message_of([] {
                   kernel("promised", params("map"), [](Bytes<16, 8> map) { check(map.read<u32>(0) == 0, "zero"); })
                       .require(multiple_of<4>("map"))
                       .check();
               }),
               contains("multiple_of<> is for integers, and `map` is not one"));
    const Device device = emulator();
    Buffer<float> y = device.buffer<float>(3);
    Buffer<std::uint64_t> z = device.buffer<std::uint64_t>(2);
    const runtime::Argument untyped[] = {{.type = ir::Type::U8},
                                         {.type = ir::Type::U8},
                                         {.type = ir::Type::U32},
                                         {.type = ir::Type::F32, .part = y.memory().whole()},
                                         {.type = ir::Type::U64, .part = z.memory().whole()}};
    CHECK_THAT(message_of([&] { device.launch(raw.handle(), grid(1, 1), untyped); }),
               contains("parameter 'map' is 128 bytes at 64, the argument is u8"));
}

TEST_CASE("raw bytes: ptxas takes them") {
    if (skip_without_ptxas()) return;
    for (const char* target : {"sm_75", "sm_90a"}) {
        const PtxasReport report = assemble(compile(raw.ast(), {.target = target}).ptx, target);
        INFO(report.log);
        CHECK(report.clean());
    }
}

}  // namespace
}  // namespace ikat::tests
