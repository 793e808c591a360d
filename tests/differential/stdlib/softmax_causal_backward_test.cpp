// SPDX-License-Identifier: Apache-2.0
// The gradient of causal softmax: dx is 0 beyond the diagonals, whatever is there in y and dy, of which nothing is
// read.
#include <bit>
#include <cmath>
#include <limits>

#include "stdlib/backward/softmax_backward.hpp"
#include "tests/catch.hpp"
#include "tests/device.hpp"
#include "tests/differential/stdlib/placed.hpp"
#include "tests/message.hpp"

namespace ikat::test {
namespace {
namespace causal_backward {

constexpr float nan = std::numeric_limits<float>::quiet_NaN();

/// How many columns row i of a matrix has.
std::size_t end_of(const Extents& extents, std::size_t row) {
    const std::size_t rows = extents[extents.size() - 2], columns = extents.back(), i = row % rows;
    return i + 1 + columns > rows ? i + 1 + columns - rows : 0;
}
std::size_t number_of_rows(const Extents& extents) {
    std::size_t out = 1;
    for (std::size_t d = 0; d + 1 < extents.size(); ++d) out *= extents[d];
    return out;
}

template <class T>
std::vector<float> elements_of(const Extents& extents, std::uint32_t seed, float beyond) {
    std::vector<float> out = random_elements<float>(number_of_rows(extents) * extents.back(), seed);
    for (std::size_t i = 0; i < out.size(); ++i)
        out[i] = i % extents.back() < end_of(extents, i / extents.back()) ? float(T(out[i])) : beyond;
    return out;
}

/// The arrays of a call in some place, which have NaNs beyond the diagonals.
template <class T>
struct CausalArrays {
    std::vector<float> host_y, host_dy;
    Placed<T> y, dy, dx;

    CausalArrays(const runtime::Device& device, Place place, const Extents& extents)
        : host_y(elements_of<T>(extents, 1, nan)),
          host_dy(elements_of<T>(extents, 2, nan)),
          y(device, place, extents, 1),
          dy(device, place, extents, 2),
          dx(device, place, extents, 3) {
        y.set(host_y), dy.set(host_dy);
    }
    std::vector<float> run(const runtime::Device& device) const {
        stdlib::softmax_causal_backward(device, y, dy, dx);
        return dx.elements();
    }
};

template <class T>
void check(const runtime::Device& device, Place place, const Extents& extents) {
    const CausalArrays<T> arrays(device, place, extents);
    const std::vector<float> got = arrays.run(device);
    CHECK(arrays.dx.changed_gaps() == 0);
    const std::size_t columns = extents.back();
    const double unit = sizeof(T) == 4 ? 0 : std::is_same_v<T, half> ? 0x1p-11 : 0x1p-8;
    for (std::size_t row = 0; row < number_of_rows(extents); ++row) {
        double sum = 0, magnitudes = 0;
        const std::size_t first = row * columns, end = first + end_of(extents, row);
        for (std::size_t i = first; i < end; ++i) {
            const double term = double(arrays.host_y[i]) * double(arrays.host_dy[i]);
            sum += term, magnitudes += std::abs(term);
        }
        // A sum in f32 of so many terms, a difference and a product.
        const double of_sum = (double(columns) / 32 + 17) * 0x1p-24 * magnitudes;
        for (std::size_t i = first; i < first + columns; ++i) {
            const double y = i < end ? double(arrays.host_y[i]) : 0, g = i < end ? double(arrays.host_dy[i]) : 0;
            const double wanted = i < end ? y * (g - sum) : 0;
            const double bound = i < end ? std::abs(y) * of_sum + (0x1p-22 + unit) * (std::abs(wanted) + 0x1p-13) : 0;
            if (!(std::abs(double(got[i]) - wanted) <= bound))
                FAIL_CHECK("row " << row << ", column " << i - first << ": " << got[i] << ", not " << wanted);
        }
    }
}

}  // namespace causal_backward
}  // namespace

TEMPLATE_TEST_CASE("backward of causal softmax: views of any rank and pitches", "", float, half, bfloat16) {
    const runtime::Device device = open_device();
    // As many rows as columns, fewer and more; rows of a warp, of a block and of more; launches of parts.
    for (const Extents& extents : {Extents{5, 5}, Extents{1, 1}, Extents{3, 61}, Extents{2, 17, 8},
                                   Extents{2, 3, 2, 61}, Extents{2, 2, 3, 2, 16}, Extents{5, 1, 700}, Extents{2, 4160},
                                   Extents{700, 16}, Extents{0, 5}, Extents{5, 0}})
        for (const Place place : {Place::packed, Place::aligned, Place::odd, Place::permuted}) {
            INFO(extents.size() << " dimensions, " << extents.back() << " columns, place " << int(place));
            causal_backward::check<TestType>(device, place, extents);
        }
}

TEST_CASE("backward of causal softmax: the gradient of softmax where the last row is") {
    const runtime::Device device = open_device();
    const auto y = device.upload(random_elements<float>(600, 1)), dy = device.upload(random_elements<float>(600, 2));
    auto dx = device.buffer<float>(600), wanted = device.buffer<float>(600);
    stdlib::softmax_backward(device, y.view(1, 600), dy.view(1, 600), wanted.view(1, 600));
    stdlib::softmax_causal_backward(device, y.view(1, 600), dy.view(1, 600), dx.view(1, 600));
    CHECK(dx.download() == wanted.download());
}

TEST_CASE("backward of causal softmax: an infinity or a NaN stays in its row") {
    const runtime::Device device = open_device();
    const Extents extents{20, 20};
    for (const float special : {nan, std::numeric_limits<float>::infinity()}) {
        causal_backward::CausalArrays<float> arrays(device, Place::packed, extents);
        const auto before = arrays.run(device);
        arrays.host_dy[9 * 20 + 4] = special;
        arrays.dy.set(arrays.host_dy);
        const auto after = arrays.run(device);
        for (std::size_t i = 0; i < after.size(); ++i) {
            const bool is_of_row = i / 20 == 9 && i % 20 <= 9;
            CHECK((is_of_row ? !std::isfinite(after[i]) : after[i] == before[i]));
        }
    }
}

TEST_CASE("backward of causal softmax: the same bits in every order, without a race") {
    using namespace causal_backward;
    for (const Extents& extents : {Extents{40, 40}, Extents{3, 1000}, Extents{2, 3, 4101}}) {
        std::vector<float> first;
        for (const char* seed : {"0", "1", "2", "3"}) {
            const auto device = open_device({.threads = 2, .schedule = seed, .check = "strict,registers,races"});
            const auto got = CausalArrays<float>(device, Place::packed, extents).run(device);
            if (first.empty()) first = got;
            CHECK(got == first);
        }
    }
}

TEST_CASE("backward of causal softmax: nothing is read beyond the diagonals") {
    std::vector<emulator::LaunchTraffic> traffic;
    const auto device = runtime::Device::open({.device = "emulator", .threads = 2, .traffic = &traffic});
    const Extents extents{256, 256};
    const causal_backward::CausalArrays<float> arrays(device, Place::packed, extents);
    traffic.clear();
    arrays.run(device);
    std::uint64_t read = 0, written = 0;
    for (const emulator::BufferTraffic& buffer : traffic.at(0).buffers)
        read += buffer.read.moved, written += buffer.written.moved;
    CHECK(written == 256 * 256 * sizeof(float));
    std::uint64_t sectors = 0;
    for (std::size_t row = 0; row < 256; ++row) sectors += row / 8 + 1;
    CHECK(read == 2 * 32 * sectors);
}

TEST_CASE("backward of causal softmax: mistakes") {
    const runtime::Device device = open_device();
    const auto x = device.upload(std::vector<float>(48), "x");
    auto dx = device.buffer<float>(48, "dx");
    using Catch::Contains;
    CHECK_THAT(tests::message_of([&] { stdlib::softmax_causal_backward(device, x, x, dx); }),
               Contains("softmax_causal_backward: 'y' is 48"));
    CHECK_THAT(
        tests::message_of([&] { stdlib::softmax_causal_backward(device, x.view(6, 8), x.view(8, 6), dx.view(6, 8)); }),
        Contains("'dy' is 8 x 6"));
    CHECK_THAT(
        tests::message_of([&] { stdlib::softmax_causal_backward(device, dx.view(6, 8), x.view(6, 8), dx.view(6, 8)); }),
        Contains("'y' (read) and 'dx' (written)"));
}

}  // namespace ikat::test
