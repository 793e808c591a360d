// SPDX-License-Identifier: Apache-2.0
// interleave_heads() and deinterleave_heads(): every element's bits where they belong, whatever the pitches, and back.
#include "stdlib/layout/layout.hpp"
#include "tests/catch.hpp"
#include "tests/device.hpp"
#include "tests/differential/stdlib/placed.hpp"
#include "tests/message.hpp"

namespace ikat::test {
namespace {
namespace heads {

using runtime::Device;

template <class T>
void check_heads(const Device& device, Place place, std::size_t sequences, std::size_t n, std::size_t m,
                 std::size_t width) {
    INFO("place " << int(place) << ", " << sequences << " x " << n << " x " << m << " x " << width << ", bytes "
                  << sizeof(T));
    Extents of_x{n, m, width}, of_y{m, n, width};
    if (sequences != 1) of_x.insert(of_x.begin(), sequences), of_y.insert(of_y.begin(), sequences);
    const Placed<T> x(device, place, of_x, 1), y(device, place, of_y, 2), back(device, Place::odd, of_x, 3);
    stdlib::interleave_heads(device, x, y);
    stdlib::deinterleave_heads(device, y, back);
    const std::vector<float> from = x.elements(), got = y.elements();
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < got.size(); ++i) {
        const std::size_t column = i % width, head = i / width % n, token = i / width / n % m, s = i / width / n / m;
        wrong += got[i] != from[((s * n + head) * m + token) * width + column];
    }
    CHECK(wrong == 0);
    CHECK(back.elements() == from);
    CHECK(y.changed_gaps() + back.changed_gaps() == 0);
}

TEST_CASE("heads: interleaved and back") {
    const Device device = open_device({.threads = 1, .check = "strict,races", .schedules = 2});
    for (const Place place : {Place::packed, Place::aligned, Place::odd}) {
        check_heads<float>(device, place, 1, 3, 5, 8);
        check_heads<half>(device, place, 2, 4, 7, 16);
        check_heads<bfloat16>(device, place, 3, 2, 3, 5);
        check_heads<half>(device, place, 1, 1, 1, 1);
    }
    check_heads<float>(device, Place::packed, 1, 300, 1, 3);
}

TEST_CASE("heads: nothing, and bits of NaNs") {
    const Device device = open_device();
    auto none = device.buffer<half>(0, "none"), more = device.buffer<half>(0, "more");
    CHECK_NOTHROW(stdlib::interleave_heads(device, none.view(3, 0, 4), more.view(0, 3, 4)));
    std::vector<half> bits(4);
    for (std::size_t i = 0; i < 4; ++i) bits[i].bits = std::uint16_t(0x7c01 + i);  // signalling NaNs
    auto x = device.upload(bits, "x"), y = device.buffer<half>(4, "y");
    stdlib::interleave_heads(device, x.view(2, 2, 1), y.view(2, 2, 1));
    const std::vector<half> got = y.download();
    CHECK((got[0].bits == 0x7c01 && got[1].bits == 0x7c03 && got[2].bits == 0x7c02 && got[3].bits == 0x7c04));
}

TEST_CASE("heads: mistakes") {
    const Device device = open_device();
    auto x = device.upload(std::vector<float>(24, 1), "x"), y = device.buffer<float>(24, "y");
    const auto message = [&](auto&& from, auto&& to) {
        return tests::message_of([&] { stdlib::interleave_heads(device, from, to); });
    };
    CHECK(message(x.view(2, 3, 4), y.view(3, 2, 4)).empty());
    CHECK(message(x.view(2, 3, 4), y.view(2, 3, 4)).contains("'x' is 2 x 3 x 4, and 'y' is 2 x 3 x 4"));
    CHECK(message(x.view(2, 3, 4), y.view(2, 3, 4)).contains("y is 3 x 2 x 4"));
    CHECK(message(x.view(6, 4), y.view(6, 4)).contains("'x' has 2 dimensions"));
    CHECK(message(x.view(2, 3, 4), x.view(3, 2, 4)).contains("overlap"));
}

}  // namespace heads
}  // namespace
}  // namespace ikat::test
