// SPDX-License-Identifier: Apache-2.0
// Functions that multiply, move and reduce, on buffers; values that are special to a kernel.
#include <bit>
#include <cmath>
#include <cstring>
#include <string>

#include "stdlib/conv/conv2d.hpp"
#include "stdlib/gemm/gemv.hpp"
#include "stdlib/layout/layout.hpp"
#include "stdlib/reduction/dot.hpp"
#include "stdlib/reference/reference.hpp"
#include "tests/catch.hpp"
#include "tests/device.hpp"
#include "tests/differential/stdlib/case.hpp"

namespace {

using namespace ikat;
using test::Case;
namespace reference = stdlib::reference;

using test::epsilon, test::floats;
const std::size_t lengths[] = {0, 1, 3, 31, 32, 33, 1000, 2049, 10007, 100003};

template <class T>
void check_dot() {
    const runtime::Device device = test::open_device();
    for (const std::size_t n : lengths) {
        INFO("n = " << n);
        const auto x = test::random_elements<T>(n, 1), y = test::random_elements<T>(n, 2);
        double dot = 0, scale = 0, squares = 0;
        for (std::size_t i = 0; i < n; ++i) {
            dot += double(float(x[i])) * float(y[i]);
            scale += std::abs(double(float(x[i])) * float(y[i]));
            squares += double(float(x[i])) * float(x[i]);
        }
        const double terms = double(n) / 32 + 32;  // of one thread, and of the reduction trees
        const auto a = device.upload(x, "x"), b = device.upload(y, "y");
        CHECK(std::abs(stdlib::dot(device, a, b) - dot) <= terms * epsilon * scale);
        CHECK(std::abs(stdlib::norm2(device, a) - squares) <= terms * epsilon * squares);
    }
}

template <class T>
void check_argmax() {
    const runtime::Device device = test::open_device();
    for (const std::size_t n : lengths) {
        INFO("n = " << n);
        auto x = test::random_elements<T>(n, 3);
        for (T& v : x) v = T(std::round(float(v) * 16));  // with many equal ones
        if (n > 5) x[2] = T(NAN);
        std::uint32_t want = ~0u;
        for (std::uint32_t i = 0; i < n; ++i)
            if (!std::isnan(float(x[i])) && (want == ~0u || float(x[i]) > float(x[want]))) want = i;
        CHECK(stdlib::argmax(device, device.upload(x, "x")) == want);
        const double value = want == ~0u ? -HUGE_VAL : double(float(x[want]));
        Case()
            .in(x)
            .template out<float>({value}, {0})
            .template out<std::uint32_t>({double(want)}, {0})
            .number(std::uint32_t(n))
            .run(device, test::name_of<T>("argmax"));
    }
}

}  // namespace

TEST_CASE("dot products and sums of squares of any length") { IKAT_EACH_TYPE(check_dot); }
TEST_CASE("argmax gives the first of the largest") { IKAT_EACH_TYPE(check_argmax); }
TEST_CASE("argmax of results") {
    Case()
        .in(std::vector<float>{1, 5, 5, -3})
        .in(std::vector<std::uint32_t>{7, 30, 20, 0})
        .out<float>({5}, {0})
        .out<std::uint32_t>({20}, {0})
        .number(4u)
        .run(test::open_device(), "argmax_final");
}
TEST_CASE("kv_scatter keeps the bits of NaNs") {
    const runtime::Device device = test::open_device();
    const std::vector<std::uint16_t> bits{0x7c01, 0x7fff, 0xfe00, 0xffff, 0x7e12, 0xfc05, 0x8000, 0x0001, 0x7d00};
    for (const std::size_t width : {9u, 8u, 2u}) {  // elements, whole vectors, vectors of 4 bytes
        std::vector<half> x;
        for (std::size_t i = 0; i < width; ++i) x.push_back(std::bit_cast<half>(bits[i]));
        const auto from = device.upload(x);
        const auto slots = device.upload(std::vector<std::uint32_t>{1});
        auto cache = device.upload(std::vector<half>(2 * width));
        stdlib::kv_scatter(device, from.view(1, width), slots, cache.view(2, width));
        const auto got = cache.download();
        CHECK(std::memcmp(got.data() + width, bits.data(), width * 2) == 0);
    }
}

TEST_CASE("moving and multiplying on buffers") {
    const runtime::Device device = test::open_device();
    const auto A = device.upload(std::vector<float>{1, 2, 3, 4, 5, 6}, "A"),
               x = device.upload(std::vector<float>{1, 1, 1}, "x");
    auto y = device.buffer<float>(9, "y"), z = device.buffer<float>(2, "z");
    stdlib::transpose(device, A.view(2, 3), y.slice(0, 6).view(3, 2));
    CHECK(y.slice(0, 6).download() == std::vector<float>{1, 4, 2, 5, 3, 6});
    stdlib::gemv(device, A.view(2, 3), x, z);
    CHECK(z.download() == std::vector<float>{6, 15});
    stdlib::gemv_transposed(device, A.view(2, 3), z, y.slice(0, 3));
    CHECK(y.download()[0] == 66);
    const auto positions = device.upload(std::vector<std::uint32_t>{0, 0}, "positions");
    stdlib::rope(device, stdlib::Rope::Neox, y.slice(0, 4).view(2, 1, 2), positions, 2, 10000.0f);
    CHECK(y.download()[0] == 66);
    const auto slots = device.upload(std::vector<std::uint32_t>{1}, "slots");
    stdlib::kv_scatter(device, A.slice(0, 3).view(1, 3), slots, y.slice(0, 6).view(2, 3));
    CHECK(y.download()[3] == 1);
    stdlib::conv2d(device, A.view(1, 1, 2, 3), x.view(1, 1, 1, 3), y.slice(0, 2).view(1, 1, 2, 1));
    CHECK(y.download()[1] == 15);
    CHECK_THROWS_WITH(stdlib::gemv(device, A.view(3, 2), x, z),
                      Catch::Contains("gemv: 'x' is 3: its columns is 3, and that of 'A' is 2"));
    CHECK_THROWS_WITH(stdlib::rope(device, stdlib::Rope::Neox, y.slice(0, 4).view(2, 1, 2), positions, 4, 1.0f),
                      Catch::Contains("'rotary' is larger than 'head_dim'"));
    CHECK_THROWS_WITH(
        stdlib::conv2d(device, A.view(1, 2, 1, 3), x.view(3, 1, 1, 1), y.slice(0, 9).view(1, 3, 1, 3), {.groups = 2}),
        Catch::Contains("'groups' does not divide"));
    CHECK_THROWS_WITH(stdlib::conv2d(device, A.view(1, 2, 1, 3), x.view(3, 1, 1, 1), y.slice(0, 9).view(1, 3, 1, 3)),
                      Catch::Contains("'groups' is 1, and 'w' is for 1 channels of the 2 of 'x'"));
    CHECK_THROWS_WITH(stdlib::dot(device, A, x), Catch::Contains("dot: 'x' is 6, and 'y' is 3"));
}
