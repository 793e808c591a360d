// SPDX-License-Identifier: Apache-2.0
// Kernels that multiply, move and reduce, against plain loops in double: dot products and maxima, transposition, rotary
// embedding, caches, matrix times vector, convolution.
#include <bit>
#include <cmath>
#include <cstring>
#include <string>

#include "stdlib/conv/conv2d.hpp"
#include "stdlib/gemm/gemv.hpp"
#include "stdlib/layout/layout.hpp"
#include "stdlib/reduce/dot.hpp"
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

std::vector<float> magnitudes(std::vector<float> x) {
    for (float& v : x) v = std::abs(v);
    return x;
}

/// k rounded additions of products whose magnitudes sum to `scale`, and the rounding to T.
template <class T>
std::vector<double> bounds(const std::vector<double>& want, const std::vector<double>& scale, std::uint32_t k) {
    std::vector<double> out(want.size());
    for (std::size_t i = 0; i < want.size(); ++i)
        out[i] = (k + 1) * epsilon * scale[i] + test::rounding<T> * std::abs(want[i]) + test::tiny<T>;
    return out;
}

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
        const double terms = double(n) / 32 + 32;  // of one thread, and of the trees above
        const auto a = device.upload(x, "x"), b = device.upload(y, "y");
        CHECK(std::abs(stdlib::dot(device, a, b) - dot) <= terms * epsilon * scale);
        CHECK(std::abs(stdlib::norm2(device, a) - squares) <= terms * epsilon * squares);
        const auto count = std::uint32_t(n);
        Case()
            .in(x)
            .in(y)
            .template out<float>({dot}, {terms * epsilon * scale})
            .number(count)
            .run(device, test::name_of<T>("dot"));
        Case()
            .in(x)
            .template out<float>({squares}, {terms * epsilon * squares})
            .number(count)
            .run(device, test::name_of<T>("norm2"));
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

template <class T>
void check_transpose() {
    const runtime::Device device = test::open_device();
    const std::uint32_t shapes[][3] = {{1, 1, 1},   {0, 3, 4},   {2, 0, 5},   {1, 32, 32}, {1, 33, 31},
                                       {3, 64, 40}, {2, 1, 100}, {2, 100, 1}, {5, 7, 9}};
    for (const auto& [batch, rows, columns] : shapes) {
        INFO("batch, rows, columns = " << batch << ", " << rows << ", " << columns);
        const auto x = test::random_elements<T>(std::size_t(batch) * rows * columns, 4);
        std::vector<double> want(x.size());
        for (std::size_t b = 0; b < batch; ++b)
            for (std::size_t r = 0; r < rows; ++r)
                for (std::size_t c = 0; c < columns; ++c)
                    want[(b * columns + c) * rows + r] = float(x[(b * rows + r) * columns + c]);
        Case().in(x).template out<T>(want, {0}).number(batch).number(rows).number(columns).run(
            device, test::name_of<T>("transpose"));
    }
}

template <class T>
void check_rope(bool neox, float sign) {
    const runtime::Device device = test::open_device();
    struct Shape {
        std::uint32_t tokens, heads, head_dim, rotary;
    };
    const Shape shapes[] = {{0, 2, 8, 8},  {1, 1, 2, 2},     {3, 2, 8, 8}, {5, 3, 6, 6},   {4, 2, 64, 32},
                            {2, 1, 10, 4}, {7, 4, 128, 128}, {3, 2, 8, 0}, {40, 8, 80, 80}};
    for (const auto& [tokens, heads, head_dim, rotary] : shapes) {
        INFO("tokens, heads, head_dim, rotary = " << tokens << ", " << heads << ", " << head_dim << ", " << rotary);
        const auto x = test::random_elements<T>(std::size_t(tokens) * heads * head_dim, 5);
        std::vector<std::uint32_t> positions(tokens);
        const std::uint32_t far[] = {0, 1, 1'000'000, 131'071, 2000, 37, 999'983, ~0u};
        for (std::uint32_t t = 0; t < tokens; ++t) positions[t] = t < std::size(far) ? far[t] : t * 37 % 2000;
        const auto want = reference::rope(floats(x), positions, heads, head_dim, rotary, 10000, sign, neox);
        std::vector<double> bound(want.size());
        for (std::size_t i = 0; i < want.size(); ++i) {
            // Of |x| <= 1: what the contract says of the angle, twice, an ulp of sine and cosine, and three roundings.
            const double position = positions[i / (std::size_t(heads) * head_dim)];
            bound[i] = 2 * (position * 0x1p-47 + 2 * epsilon + epsilon) + 4 * epsilon +
                       test::rounding<T> * std::abs(want[i]) + test::tiny<T>;
            if (i % head_dim >= rotary) bound[i] = 0;
        }
        Case()
            .inout(x, want, bound)
            .in(positions)
            .number(tokens)
            .number(heads)
            .number(head_dim)
            .number(rotary)
            .number(10000.0f)
            .number(sign)
            .run(device, test::name_of<T>(neox ? "rope_neox" : "rope_interleaved"));
    }
}

template <class T>
void check_scatter() {
    const runtime::Device device = test::open_device();
    const std::uint32_t shapes[][3] = {{0, 4, 3},   {1, 1, 1},     {3, 0, 4}, {2, 5, 7},
                                       {5, 128, 9}, {9, 1030, 20}, {1, 3, 1}, {4, 64, 4}};
    for (const auto& [tokens, width, cache_rows] : shapes) {
        INFO("tokens, width, cache_rows = " << tokens << ", " << width << ", " << cache_rows);
        const auto x = test::random_elements<T>(std::size_t(tokens) * width, 6),
                   cache = test::random_elements<T>(std::size_t(cache_rows) * width, 7);
        std::vector<std::uint32_t> slots(tokens);
        for (std::uint32_t t = 0; t < tokens; ++t) slots[t] = t % 4 == 3 ? ~0u : (t * 2 + 1) % cache_rows;
        const auto all = floats(cache);
        std::vector<double> want(all.begin(), all.end());
        for (std::size_t t = 0; t < tokens; ++t)
            for (std::size_t c = 0; c < width && slots[t] < cache_rows; ++c)
                want[slots[t] * std::size_t(width) + c] = float(x[t * width + c]);
        Case()
            .in(x)
            .in(slots)
            .inout(cache, want, {0})
            .number(tokens)
            .number(width)
            .number(cache_rows)
            .run(device, test::name_of<T>("kv_scatter"));
    }
}

template <class T>
void check_products() {
    const runtime::Device device = test::open_device();
    const std::uint32_t shapes[][2] = {{0, 4},   {4, 0},   {1, 1},    {1, 1000}, {33, 65},
                                       {70, 64}, {257, 2}, {5, 1028}, {3, 31},   {100, 100}};
    for (const auto& [rows, columns] : shapes) {
        INFO("rows, columns = " << rows << ", " << columns);
        const auto A = test::random_elements<T>(std::size_t(rows) * columns, 8),
                   x = test::random_elements<T>(columns, 9), z = test::random_elements<T>(rows, 10);
        const auto fA = floats(A), fx = floats(x), fz = floats(z);
        const auto y = reference::gemm(fA, fx, rows, 1, columns), yt = reference::gemm(fz, fA, 1, columns, rows);
        const auto scale = reference::gemm(magnitudes(fA), magnitudes(fx), rows, 1, columns),
                   scale_t = reference::gemm(magnitudes(fz), magnitudes(fA), 1, columns, rows);
        Case()
            .in(A)
            .in(x)
            .template out<T>(y, bounds<T>(y, scale, columns))
            .number(rows)
            .number(columns)
            .run(device, test::name_of<T>("gemv_warp_reduce"));
        Case()
            .in(A)
            .in(z)
            .template out<T>(yt, bounds<T>(yt, scale_t, rows))
            .number(rows)
            .number(columns)
            .run(device, test::name_of<T>("gemv_coalesced"));
        // C = A B with B a matrix of three columns.
        const auto B = test::random_elements<T>(std::size_t(columns) * 3, 11);
        const auto C = reference::gemm(fA, floats(B), rows, 3, columns),
                   C_scale = reference::gemm(magnitudes(fA), magnitudes(floats(B)), rows, 3, columns);
        Case()
            .in(A)
            .in(B)
            .template out<T>(C, bounds<T>(C, C_scale, columns))
            .number(rows)
            .number(3u)
            .number(columns)
            .run(device, test::name_of<T>("gemm_naive"));
    }
}

const stdlib::Convolution convolutions[] = {
    {},
    {.batch = 2, .channels = 3, .height = 7, .width = 9, .filters = 4, .kernel_h = 3, .kernel_w = 3},
    {.batch = 1,
     .channels = 2,
     .height = 8,
     .width = 8,
     .filters = 5,
     .kernel_h = 3,
     .kernel_w = 3,
     .pad_h = 1,
     .pad_w = 1},
    {.channels = 4,
     .height = 11,
     .width = 10,
     .filters = 6,
     .kernel_h = 3,
     .kernel_w = 2,
     .stride_h = 2,
     .stride_w = 3,
     .pad_h = 1,
     .pad_w = 0,
     .groups = 2},
    {.channels = 6,
     .height = 9,
     .width = 9,
     .filters = 6,
     .kernel_h = 3,
     .kernel_w = 3,
     .pad_h = 2,
     .pad_w = 2,
     .dilation_h = 2,
     .dilation_w = 2,
     .groups = 6},
    {.batch = 3, .channels = 1, .height = 1, .width = 30, .filters = 2, .kernel_h = 1, .kernel_w = 5, .pad_w = 2},
    {.channels = 2, .height = 4, .width = 4, .filters = 3, .kernel_h = 1, .kernel_w = 1, .pad_h = 2, .pad_w = 1},
    {.batch = 0, .channels = 2, .height = 4, .width = 4, .filters = 3},
    {.channels = 1, .height = 2, .width = 2, .filters = 1, .kernel_h = 3, .kernel_w = 3},
    {.batch = 1,
     .channels = 3,
     .height = 16,
     .width = 20,
     .filters = 8,
     .kernel_h = 5,
     .kernel_w = 5,
     .stride_h = 4,
     .stride_w = 4,
     .pad_h = 2,
     .pad_w = 2},
};

template <class T>
void check_convolution() {
    const runtime::Device device = test::open_device();
    for (const stdlib::Convolution& c : convolutions) {
        INFO("convolution " << &c - convolutions);
        const auto x = test::random_elements<T>(std::size_t(c.batch) * c.channels * c.height * c.width, 12);
        const std::uint32_t depth = c.channels / c.groups * c.kernel_h * c.kernel_w;
        const auto w = test::random_elements<T>(std::size_t(c.filters) * depth, 13);
        const auto want = reference::conv2d(floats(x), floats(w), c),
                   scale = reference::conv2d(magnitudes(floats(x)), magnitudes(floats(w)), c);
        Case all;
        all.in(x).in(w).template out<T>(want, bounds<T>(want, scale, depth));
        for (const std::uint32_t n :
             {c.batch, c.channels, c.height, c.width, c.filters, c.kernel_h, c.kernel_w, c.stride_h, c.stride_w,
              c.pad_h, c.pad_w, c.dilation_h, c.dilation_w, c.groups, c.out_h(), c.out_w()})
            all.number(n);
        all.run(device, test::name_of<T>("conv2d"));
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
TEST_CASE("transposes of any shape") { IKAT_EACH_TYPE(check_transpose); }
TEST_CASE("rotary embedding, both forms, forward and backward") {
    for (const bool neox : {false, true})
        for (const float sign : {1.0f, -1.0f}) { IKAT_EACH_TYPE(check_rope, neox, sign); }
}
TEST_CASE("kv_scatter writes the rows of its slots and no others") { IKAT_EACH_TYPE(check_scatter); }
TEST_CASE("kv_scatter keeps the bits of NaNs") {
    const runtime::Device device = test::open_device();
    const std::vector<std::uint16_t> bits{0x7c01, 0x7fff, 0xfe00, 0xffff, 0x7e12, 0xfc05, 0x8000, 0x0001, 0x7d00};
    for (const std::size_t width : {9u, 8u, 2u}) {  // elements, whole vectors, vectors of 4 bytes
        std::vector<half> x;
        for (std::size_t i = 0; i < width; ++i) x.push_back(std::bit_cast<half>(bits[i]));
        const auto from = device.upload(x);
        const auto slots = device.upload(std::vector<std::uint32_t>{1});
        auto cache = device.upload(std::vector<half>(2 * width));
        stdlib::kv_scatter(device, from, slots, cache, std::uint32_t(width));
        const auto got = cache.download();
        CHECK(std::memcmp(got.data() + width, bits.data(), width * 2) == 0);
    }
}
TEST_CASE("matrix times vector and the naive product of any shape") { IKAT_EACH_TYPE(check_products); }
TEST_CASE("convolution with stride, padding, dilation and groups") { IKAT_EACH_TYPE(check_convolution); }

TEST_CASE("moving and multiplying on buffers") {
    const runtime::Device device = test::open_device();
    const auto A = device.upload(std::vector<float>{1, 2, 3, 4, 5, 6}, "A"),
               x = device.upload(std::vector<float>{1, 1, 1}, "x");
    auto y = device.buffer<float>(6, "y"), z = device.buffer<float>(2, "z");
    stdlib::transpose(device, A, y, 1, 2, 3);
    CHECK(y.download() == std::vector<float>{1, 4, 2, 5, 3, 6});
    stdlib::gemv(device, A, x, z, 2, 3);
    CHECK(z.download() == std::vector<float>{6, 15});
    stdlib::gemv_transposed(device, A, z, y, 2, 3);
    CHECK(y.download()[0] == 66);
    const auto positions = device.upload(std::vector<std::uint32_t>{0, 0}, "positions");
    stdlib::rope(device, stdlib::Rope::Neox, y, positions, 1, 2, 2, 10000.0f);
    CHECK(y.download()[0] == 66);
    const auto slots = device.upload(std::vector<std::uint32_t>{1}, "slots");
    stdlib::kv_scatter(device, A, slots, y, 3);
    CHECK(y.download()[3] == 1);
    stdlib::conv2d(device, A, x, y, {.height = 2, .width = 3, .kernel_w = 3});
    CHECK(y.download()[1] == 15);
    CHECK_THROWS_WITH(stdlib::gemv(device, A, x, z, 3, 3), Catch::Contains("'A' has 6 elements, 9 are needed"));
    CHECK_THROWS_WITH(stdlib::rope(device, stdlib::Rope::Neox, y, positions, 1, 2, 4, 1.0f),
                      Catch::Contains("'rotary' is larger than 'head_dim'"));
    CHECK_THROWS_WITH(stdlib::conv2d(device, A, x, y, {.groups = 2}), Catch::Contains("'groups' does not divide"));
    CHECK_THROWS_WITH(stdlib::dot(device, A, x), Catch::Contains("'x' has 6 elements and 'y' has 3"));
}
