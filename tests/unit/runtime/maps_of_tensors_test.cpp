// SPDX-License-Identifier: Apache-2.0
// Views as arguments for parameters that are maps of tensors: the maps that launches make, and what they refuse.
#include <cstring>
#include <memory>

#include "runtime/emulator/agents/bulk/tensor_map.hpp"
#include "tests/catch.hpp"
#include "tests/message.hpp"

#include <ikat/async.hpp>
#include <ikat/ikat.hpp>

namespace ikat::tests {
namespace {

using runtime::Grid;

/// Its map's bytes, as the kernel sees them.
template <class T, class B, int swizzle>
const auto bytes_of = kernel("bytes_of", params("x", "y"), [](TensorMap<T, B, swizzle> x, Out<std::uint64_t> y) {
    u64 word;
    for (int i = 0; i < 16; ++i) {
        inline_ptx("ld.u64 {0}, [{1}];", out(word), in(x.address() + 8 * i));
        y[i] = word;
    }
});

template <class T, class B, int swizzle, class View>
emulator::TensorMap map_seen(runtime::Device& device, const View& view) {
    auto y = device.buffer<std::uint64_t>(16, "y");
    device.launch(bytes_of<T, B, swizzle>, Grid{{1}, {1}}, view, y);
    const auto words = y.download();
    std::array<std::byte, emulator::tensor_map_bytes> bytes;
    std::memcpy(bytes.data(), words.data(), sizeof bytes);
    return emulator::decode(bytes).value();
}

/// Copies a box from one tensor to another.
const auto copies = kernel("copies", params("a", "b", "y"),
                           [](TensorMap<float, Box<8, 8>> a, TensorMap<float, Box<8, 8>> b, InOut<float> y) {
                               Shared<float, 8, 8> s;
                               Shared<Barrier, 1> full;
                               full[0].init(1);
                               full[0].arrive_expect(a.bytes);
                               tma_load(s[0, 0], a[0, 0], full[0]);
                               full[0].wait(0);
                               tma_store(b[0, 0], s[0, 0]);
                               y[0] = s[0, 0];
                           });

}  // namespace

TEST_CASE("a launch makes the map that the kernel's type asks for") {
    runtime::Device device = runtime::Device::open({.device = "emulator", .target = "sm_90"});
    auto x = device.buffer<half>(6 * 40 * 64, "x");
    const auto two = map_seen<half, Box<16, 64>, 128>(device, x.view(30, 50).pitched(64));
    CHECK(two.type == emulator::MapType::F16);
    CHECK(two.rank == 2);
    CHECK(two.address == x.address());
    CHECK(two.extents[0] == 50);
    CHECK(two.extents[1] == 30);
    CHECK(two.strides[0] == 128);
    CHECK(two.box[0] == 64);
    CHECK(two.box[1] == 16);
    CHECK(two.element_strides[0] == 1);
    CHECK(two.swizzle == emulator::MapSwizzle::B128);
    CHECK_FALSE(two.fills_with_nan);
    const auto four = map_seen<half, Box<1, 2, 3, 8>, 0>(device, x.view(3, 4, 5, 8));
    CHECK(four.rank == 4);
    CHECK(four.extents[3] == 3);
    CHECK(four.strides[2] == 4 * 5 * 8 * 2);
    CHECK(four.box[1] == 3);
    const auto one = map_seen<half, Box<32>, 64>(device, x.slice(64, 100));
    CHECK(one.rank == 1);
    CHECK(one.address == x.address() + 128);
    CHECK(one.extents[0] == 100);
    CHECK(one.swizzle == emulator::MapSwizzle::B64);
    using Strided = Box<4, 15, 6, 8>::Every<8, 2, 1, 1>;
    CHECK(TensorMap<half, Strided>::bytes == 1 * 8 * 6 * 8 * 2);
    const auto strided = map_seen<half, Strided, 0>(device, x.view(3, 4, 5, 8));
    CHECK(strided.box == std::array<std::uint32_t, 5>{8, 6, 15, 4});
    CHECK(strided.element_strides == std::array<std::uint32_t, 5>{1, 1, 2, 8});
}

TEST_CASE("a box that goes beyond its array, from an index on that only the launch knows, is found when it is copied") {
    const auto loads = kernel("loads", params("a", "n"), [](TensorMap<float, Box<8, 8>> a, u32 n) {
        Shared<Barrier, 1> full;
        Shared<float, 2, 8, 8> s;
        full[0].init(1);
        fence_barrier_init();
        full[0].arrive_expect(a.bytes);
        tma_load(s[n, 4, 0], a[0, 0], full[0]);
        full[0].wait(0);
    });
    const auto stores = kernel("stores", params("a", "n"), [](TensorMap<float, Box<8, 8>> a, u32 n) {
        Shared<float, 2, 8, 8> s;
        for (auto i : range(128u)) s.flat()[i] = 0;
        fence_async_shared();
        tma_store(a[0, 0], s[n, 4, 0]);
        bulk_commit();
        bulk_wait<0>();
    });
    const auto says = [&](const auto& k, std::uint32_t n) {
        runtime::Device device = runtime::Device::open({.device = "emulator", .target = "sm_90"});
        auto a = device.buffer<float>(64, "a");
        a.fill(0);
        return message_of([&] { device.launch(k, Grid{{1}, {1}}, a.view(8, 8), n); });
    };
    CHECK(says(loads, 0) == "");
    CHECK(says(stores, 0) == "");
    CHECK_THAT(says(loads, 1), contains("128 bytes across the end of 'shared1' in shared memory (512 bytes)"));
    CHECK_THAT(says(stores, 1), contains("128 bytes across the end of 'shared0' in shared memory (512 bytes)"));
}

TEST_CASE("what a map cannot be of is refused") {
    runtime::Device device = runtime::Device::open({.device = "emulator", .target = "sm_90"});
    auto a = device.buffer<float>(64 * 64, "a"), b = device.buffer<float>(64 * 64, "b");
    auto y = device.buffer<float>(64, "y");
    const Grid grid{{1}, {1}};
    const auto says = [&](auto&& launch, std::string_view text) {
        CHECK_THAT(message_of(launch), contains(std::string(text)));
    };
    says([&] { device.launch(copies, grid, a.view(8, 10).pitched(10), b.view(8, 8), y); },
         "launch of 'copies': 'a': the tensor has no map: stride 1 is 40 bytes: it is a multiple of 16 below 2^40");
    says([&] { device.launch(copies, grid, a.slice(1, 512).view(8, 8), b.view(8, 8), y); }, "it is a multiple of 16");
    says([&] { device.launch(copies, grid, a.view(0, 8), b.view(8, 8), y); }, "extent 1 is 0");
    says([&] { device.launch(copies, grid, a.view(8, 8), a.slice(32, 512).view(8, 8), y); },
         "'a' (map of f32[]) and 'b' (map of f32[]) are the same memory");
    says([&] { device.launch(copies, grid, y.view(8, 8), b.view(8, 8), y); },
         "'a' (map of f32[]) and 'y' (inout f32[]) are the same memory");
    runtime::Device other = runtime::Device::open({.device = "emulator", .target = "sm_90"});
    auto c = other.buffer<float>(64, "c");
    says([&] { device.launch(copies, grid, c.view(8, 8), b.view(8, 8), y); }, "the buffer of 'a' is on another device");
    auto gone = std::make_unique<runtime::Buffer<float>>(device.buffer<float>(64, "gone"));
    const auto view = gone->view(8, 8);
    gone.reset();
    says([&] { device.launch(copies, grid, view, b.view(8, 8), y); }, "the buffer of 'a' has been freed");
    runtime::Device old = runtime::Device::open({.device = "emulator", .target = "sm_80"});
    auto d = old.buffer<float>(64, "d"), e = old.buffer<float>(64, "e"), f = old.buffer<float>(64, "f");
    says([&] { old.launch(copies, grid, d.view(8, 8), e.view(8, 8), f); }, "sm_90");
}

}  // namespace ikat::tests
