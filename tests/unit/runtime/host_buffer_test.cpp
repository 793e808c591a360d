// SPDX-License-Identifier: Apache-2.0
// Page-locked memory of the host, and copies that go on beside the program.
#include "runtime/host_buffer.hpp"

#include <algorithm>
#include <numeric>
#include <optional>
#include <vector>

#include "ikat/ikat.hpp"
#include "tests/catch.hpp"
#include "tests/message.hpp"
#include "tests/unit/runtime/emulator.hpp"

namespace ikat::tests {
namespace {

using namespace runtime;
using Numbers = std::vector<std::uint32_t>;

Numbers counted(std::size_t n) {
    Numbers out(n);
    std::iota(out.begin(), out.end(), 0u);
    return out;
}

TEST_CASE("host buffer: memory that begins as zeros, is moved, and has parts") {
    const Device device = emulator();
    auto host = device.host_buffer<std::uint32_t>(10);
    CHECK(host.size() == 10);
    CHECK(std::ranges::count(host, 0u) == 10);
    host[3] = 7;
    const auto part = host.slice(2, 4);
    CHECK(part.size() == 4);
    CHECK(part[1] == 7);
    part[0] = 5;
    HostBuffer<std::uint32_t> moved = std::move(host);
    CHECK(host.size() == 0);  // NOLINT: what is left
    CHECK(host.begin() == host.end());
    CHECK(HostSlice<std::uint32_t>(host).begin() == nullptr);
    CHECK(moved[2] == 5);
    CHECK_THAT(
        message_of([&] { moved.slice(8, 3); }),
        contains("host_buffer_test.cpp") && contains("a slice of 3 elements from 8 on of a host buffer that has 10"));
    CHECK(device.host_buffer<float>(0).size() == 0);
    CHECK_THROWS_AS(device.host_buffer<double>(~std::size_t{0}), Error);
}

TEST_CASE("host buffer: copies of streams, which are done later") {
    const Device device = emulator();
    auto in = device.host_buffer<std::uint32_t>(100), out = device.host_buffer<std::uint32_t>(100);
    std::ranges::copy(counted(100), in.begin());
    auto x = device.buffer<std::uint32_t>(100, "x");
    const Stream stream = device.stream();
    stream.upload_async(x, in);
    stream.download_async(out, x);
    CHECK(std::ranges::count(out, 0u) == 100);
    CHECK_FALSE(stream.query());
    stream.synchronize();
    CHECK(stream.query());
    CHECK(std::ranges::equal(out, counted(100)));
    stream.download_async(out.slice(90, 5), x.slice(0, 5));
    stream.synchronize();
    CHECK(out[94] == 4);
    CHECK(out[95] == 95);
    // On a device they are done at once.
    std::ranges::fill(out, 0u);
    device.download_async(out, x);
    CHECK(std::ranges::equal(out, counted(100)));
}

TEST_CASE("host buffer: rows and planes of a view, which the host has one after the other") {
    const Device device = emulator();
    auto x = device.upload(Numbers(240), "x");
    auto host = device.host_buffer<std::uint32_t>(24);
    std::ranges::copy(counted(24), host.begin());
    const auto part = x.view(4, 6, 10).columns(3, 2);  // 4 x 6 x 2 of them; three planes of four rows below
    const auto rows = BufferView<std::uint32_t, 3>(part.part(), {3, 4, 2}, {60, 10});
    const Stream stream = device.stream();
    stream.upload_async(rows, host);
    const Numbers all = x.download();
    for (std::uint32_t i = 0; i < 24; ++i) CHECK(all[3 + i / 8 * 60 + i / 2 % 4 * 10 + i % 2] == i);
    CHECK(std::ranges::count(all, 0u) == 240 - 23);
    auto back = device.host_buffer<std::uint32_t>(24);
    stream.download_async(back, rows);
    stream.synchronize();
    CHECK(std::ranges::equal(back, counted(24)));
}

TEST_CASE("host buffer: a copy says where types or numbers differ") {
    const Device device = emulator();
    auto x = device.buffer<std::uint32_t>(100, "x");
    auto host = device.host_buffer<std::uint32_t>(99);
    auto floats = device.host_buffer<float>(100);
    const Stream stream = device.stream();
    CHECK_THAT(message_of([&] { stream.upload_async(x, host); }),
               contains("host_buffer_test.cpp") &&
                   contains("a copy between an array of 400 bytes of u32 and 396 bytes of u32 of the host"));
    CHECK_THAT(message_of([&] { stream.download_async(floats, x); }), contains("and 400 bytes of f32 of the host"));
    CHECK_THAT(message_of([&] { Queue(stream).upload_async(x, host.slice(0, 0)); }), contains("and 0 bytes"));
    const std::vector<std::uint8_t> bytes(144 * 4, 1);
    auto weights = device.buffer<std::uint8_t>(144 * 4, "weights");
    auto encoded = device.host_buffer<std::uint8_t>(144 * 2);
    std::ranges::fill(encoded, std::uint8_t{1});
    stream.fill(weights, 0);
    stream.upload_async(MutableTensorView(quantised_view(weights, Quantised::Q4_K, {2, 256})), encoded);
    stream.synchronize();
    CHECK(std::ranges::count(weights.download(), 1) == 288);
}

TEST_CASE("host buffer: one that ends waits for the copies of it, and outlives its device's handle") {
    std::optional<Device> device = emulator();
    auto x = device->upload(Numbers(100), "x");
    const Stream stream = device->stream();
    {
        auto host = device->host_buffer<std::uint32_t>(100);
        std::ranges::copy(counted(100), host.begin());
        stream.upload_async(x, host);
    }
    CHECK(x.download() == counted(100));
    auto host = device->host_buffer<std::uint32_t>(100);
    device.reset();
    host[99] = 1;
    CHECK(host[99] == 1);
}

TEST_CASE("host buffer: memory that a function of the stream writes is copied as it is then") {
    const Device device = emulator();
    auto host = device.host_buffer<std::uint32_t>(4);
    auto x = device.buffer<std::uint32_t>(4, "x");
    const Stream stream = device.stream();
    stream.call([&] { std::ranges::fill(host, 9u); });
    stream.upload_async(x, host);
    stream.synchronize();
    CHECK(x.download() == Numbers(4, 9));
}

TEST_CASE("streams: priorities are those of the device") {
    const Device device = emulator();
    CHECK(device.properties().greatest_priority == -5);
    for (const int priority : {-100, -5, -1, 0, 3}) {
        const Stream stream = device.stream(priority);
        CHECK(stream.query());
    }
}

}  // namespace
}  // namespace ikat::tests
