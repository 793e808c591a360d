// SPDX-License-Identifier: Apache-2.0
// gemm_tensor_core in all types, orders and tiles, on shapes around the edges of tiles, with matrices that begin and go
// on anywhere. Elements are small integers, whose products and sums are exact: every element of C must be.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <span>
#include <vector>

#include "stdlib/gemm/tensor_core.hpp"
#include "tests/catch.hpp"
#include "tests/device.hpp"
#include "tests/targets.hpp"

namespace {

using namespace ikat;
using namespace ikat::stdlib;
using runtime::Device;
using enum MatrixOrder;

struct Shape {
    std::uint32_t m, n, k;
    std::uint32_t gap = 0;    // elements between rows
    std::uint32_t first = 0;  // element of the buffer at which the matrix begins
    std::uint32_t matrices = 1;
    std::uint32_t whole = 1;  // rows are multiples of that many elements
};

/// A matrix, or several, in a buffer.
template <class T>
struct Stored {
    Stored(const Device& device, const Shape& shape, std::uint32_t rows, std::uint32_t columns, auto&& value)
        : rows(rows),
          columns(columns),
          shape(shape),
          elements(shape.first + std::size_t(shape.matrices) * rows * pitch()),
          buffer(device.upload(fill(value), "matrix")) {}

    std::uint32_t rows, columns;
    Shape shape;
    std::vector<T> elements;
    runtime::Buffer<T> buffer;

    const std::vector<T>& fill(auto&& value) {
        for (std::size_t i = 0; i < elements.size(); ++i) elements[i] = T(float(value(i)));
        return elements;
    }
    std::uint32_t pitch() const { return (columns + shape.gap + shape.whole - 1) / shape.whole * shape.whole; }
    std::size_t at(std::uint32_t p, std::uint32_t i, std::uint32_t j) const {
        return shape.first + (std::size_t(p) * rows + i) * pitch() + j;
    }
    auto view() {
        return buffer.slice(shape.first, buffer.size() - shape.first)
            .view(shape.matrices, rows, columns)
            .pitched(std::uint64_t(rows) * pitch(), pitch());
    }
};
template <class T>
using Result = std::conditional_t<std::is_same_v<T, std::int8_t>, std::int32_t, T>;

struct Factors {
    int alpha = 1, beta = 0;
    bool bias = false, residual = false;
};

template <class T>
void check_product(const Device& device, const Shape& shape, GemmOptions options, const Factors& factors = {}) {
    using Out = Result<T>;
    const auto [m, n, k] = std::array{shape.m, shape.n, shape.k};
    INFO("m " << m << ", n " << n << ", k " << k << ", gap " << shape.gap << ", first " << shape.first << ", matrices "
              << shape.matrices << ", orders " << int(options.a) << int(options.b) << ", tile " << int(options.tile)
              << ", parts " << options.parts << ", schedule " << int(options.schedule) << ", path "
              << int(options.path));
    const bool a_by_rows = options.a == Rows, b_by_rows = options.b == Rows;
    const auto small = [](std::size_t i) { return int(i * 7 + i / 11) % 5 - 2; };
    Stored<T> A(device, shape, a_by_rows ? m : k, a_by_rows ? k : m, small);
    Stored<T> B(device, shape, b_by_rows ? k : n, b_by_rows ? n : k, [&](auto i) { return small(3 * i + 1); });
    const auto before = [&](std::size_t i) { return factors.beta == 0 ? NAN : float(small(i + 2)); };
    Stored<Out> C(device, shape, m, n,
                  [&](auto i) { return std::is_integral_v<Out> && factors.beta == 0 ? 99.0f : before(i); });
    Stored<Out> residual(device, shape, m, n, [&](auto i) { return small(5 * i); });
    std::vector<Out> bias(n);
    for (std::uint32_t j = 0; j < n; ++j) bias[j] = Out(float(small(j + 4)));
    const auto bias_buffer = device.upload(bias, "bias");
    options.alpha = float(factors.alpha), options.beta = float(factors.beta);
    if (factors.bias) options.bias = bias_buffer;
    if (factors.residual) options.residual = residual.view();
    gemm_tensor_core(device, A.view(), B.view(), C.view(), options);

    const std::vector<Out> got = C.buffer.download();
    std::size_t wrong = 0, first = 0;
    const auto expect = [&](std::size_t i, float want) {
        const bool same = float(got[i]) == float(Out(want)) || (std::isnan(want) && std::isnan(float(got[i])));
        if (!same && wrong++ == 0) first = i;
    };
    const auto integers = [](const auto& matrix) {
        std::vector<int> out;
        for (const T& element : matrix.elements) out.push_back(int(float(element)));
        return out;
    };
    const std::vector<int> a = integers(A), b = integers(B);
    std::vector<char> is_element(got.size());
    for (std::uint32_t p = 0; p < shape.matrices; ++p)
        for (std::uint32_t i = 0; i < m; ++i)
            for (std::uint32_t j = 0; j < n; ++j) {
                int sum = 0;
                const std::size_t step_a = a_by_rows ? 1 : A.pitch(), step_b = b_by_rows ? B.pitch() : 1;
                std::size_t at_a = a_by_rows ? A.at(p, i, 0) : A.at(p, 0, i);
                std::size_t at_b = b_by_rows ? B.at(p, 0, j) : B.at(p, j, 0);
                for (std::uint32_t l = 0; l < k; ++l, at_a += step_a, at_b += step_b) sum += a[at_a] * b[at_b];
                float want = float(factors.alpha * sum);
                const std::size_t at = C.at(p, i, j);
                if (factors.beta != 0) want += float(factors.beta) * float(C.elements[at]);
                if (factors.bias) want += float(bias[j]);
                if (options.activation == Activation::relu) want = std::max(want, 0.0f);
                if (factors.residual) want += float(residual.elements[at]);
                is_element[at] = true;
                expect(at, want);
            }
    for (std::size_t i = 0; i < got.size(); ++i)  // nothing else is written
        if (!is_element[i]) expect(i, float(C.elements[i]));
    INFO("the first at " << first << ": " << float(got.empty() ? Out{} : got[first]));
    CHECK(wrong == 0);
}

const Shape shapes[] = {{1, 1, 1},
                        {1, 1, 8},
                        {64, 64, 64},
                        {63, 65, 33},
                        {65, 63, 72, 8},
                        {129, 130, 100, 3},
                        {127, 257, 136, 16, 8},
                        {1, 300, 40, 0, 4},
                        {300, 1, 48, 15},
                        {40, 72, 257, 15, 1},
                        {72, 40, 64, 0, 0, 3},
                        {33, 17, 24, 5, 2, 2}};

/// Calls check(device, shape) for a sample of the shapes, with devices of four seeds in turn.
void each_shape(std::span<const Shape> all, runtime::OpenOptions options, auto&& check) {
    static std::size_t number = 0;  // of the case
    static tests::Sample sample(5);
    std::vector<Shape> of;
    std::ranges::copy_if(all, std::back_inserter(of), [&](const Shape&) { return sample.next(); });
    for (int seed = 0; seed < 4; ++seed) {
        const std::string schedule = std::to_string(seed);
        options.schedule = schedule;
        const Device device = test::open_device(options);
        for (std::size_t i = 0; i < of.size(); ++i)
            if (tests::is_for_seed(number + i, std::size_t(seed), 4)) check(device, of[i]);
    }
    number += of.size();
}

template <class T>
void check_shapes(TileSize tile) {
    for (const MatrixOrder a : {Rows, Columns})
        for (const MatrixOrder b : {Rows, Columns})
            each_shape(shapes, {}, [&](const Device& device, const Shape& shape) {
                check_product<T>(device, shape, {.a = a, .b = b, .tile = tile});
            });
}

const Shape aligned_shapes[] = {
    {1, 1, 1, 0, 0, 1, 16},       {128, 128, 64, 0, 0, 1, 16},  {127, 129, 63, 0, 16, 1, 16},
    {129, 127, 65, 30, 0, 1, 16}, {257, 256, 128, 0, 0, 1, 16}, {300, 520, 264, 0, 0, 1, 16},
    {700, 40, 17, 0, 0, 1, 16},   {40, 700, 200, 0, 0, 1, 16},  {130, 30, 300, 0, 0, 3, 16},
    {2, 200, 72, 0, 0, 1, 16},    {256, 128, 8, 16, 0, 1, 16},  {129, 260, 520, 0, 0, 2, 16}};

template <class T>
void check_wgmma(TileSize tile, const Factors& factors = {}, std::uint32_t parts = 0,
                 GemmSchedule schedule = GemmSchedule::chosen, unsigned multiprocessors = 0) {
    for (const MatrixOrder a : {Rows, Columns})
        for (const MatrixOrder b : {Rows, Columns}) {
            if (sizeof(T) != 2 && (a == Columns || b == Rows)) continue;
            const runtime::OpenOptions of{.target = "sm_90a", .threads = multiprocessors};
            each_shape(aligned_shapes, of, [&](const Device& device, const Shape& shape) {
                const GemmOptions options{
                    .a = a, .b = b, .path = GemmPath::wgmma, .tile = tile, .schedule = schedule, .parts = parts};
                check_product<T>(device, shape, options, factors);
            });
        }
}

/// Of few and of many tiles for the blocks that the device runs at once.
template <class T>
void check_schedule(GemmSchedule schedule, const Factors& factors = {}) {
    const Shape of[] = {{127, 257, 136, 16, 8},
                        {129, 130, 100, 3},
                        {40, 72, 257, 15, 1},
                        {72, 40, 64, 0, 0, 3},
                        {65, 63, 777, 8},
                        {200, 100, 1},
                        {1, 1, 1},
                        {140, 140, 400, 0, 0, 2, 16}};
    for (const unsigned multiprocessors : {1u, 3u})
        for (const TileSize tile : {TileSize::small, TileSize::medium}) {
            static bool is_by_columns = false;
            is_by_columns = !is_by_columns;
            each_shape(of, {.threads = multiprocessors}, [&](const Device& device, const Shape& shape) {
                check_product<T>(device, shape,
                                 {.b = is_by_columns ? Columns : Rows,
                                  .path = GemmPath::mma_sync,
                                  .tile = tile,
                                  .schedule = schedule},
                                 factors);
            });
        }
}

}  // namespace

TEMPLATE_TEST_CASE("tensor cores: products by wgmma in medium tiles", "", half, bfloat16, float, std::int8_t) {
    check_wgmma<TestType>(TileSize::medium);
}
TEMPLATE_TEST_CASE("tensor cores: products by wgmma in large tiles", "", half, bfloat16) {
    check_wgmma<TestType>(TileSize::large, {}, 0, GemmSchedule::persistent, 4);
}
TEMPLATE_TEST_CASE("tensor cores: products by warpgroups that take turns", "", half, bfloat16) {
    check_wgmma<TestType>(TileSize::chosen, {}, 0, GemmSchedule::ping_pong, 4);
    if constexpr (std::is_same_v<TestType, half>)
        check_wgmma<half>(TileSize::large, {2, 3, true, true}, 0, GemmSchedule::ping_pong, 3);
}
TEMPLATE_TEST_CASE("tensor cores: what follows a product by wgmma", "", half, bfloat16, float, std::int8_t) {
    check_wgmma<TestType>(TileSize::medium, {2, 3, true, true});
    check_wgmma<TestType>(TileSize::medium, {-1, 0, true});
}

TEMPLATE_TEST_CASE("tensor cores: parts of k by wgmma", "", half, bfloat16, float, std::int8_t) {
    check_wgmma<TestType>(TileSize::medium, {2, 3, true, true}, 2);
    check_wgmma<TestType>(TileSize::medium, {}, 3);
    if constexpr (sizeof(TestType) == 2) check_wgmma<TestType>(TileSize::large, {}, 100);
}

TEMPLATE_TEST_CASE("tensor cores: persistent blocks", "", half, bfloat16, float, std::int8_t) {
    check_schedule<TestType>(GemmSchedule::persistent, {2, 3, true, true});
}
TEMPLATE_TEST_CASE("tensor cores: blocks with equally many slices of k", "", half, bfloat16, float, std::int8_t) {
    check_schedule<TestType>(GemmSchedule::stream_k);
    check_schedule<TestType>(GemmSchedule::stream_k, {2, 3, true, true});
}

/// On a GPU, the other shapes have at most one tile for each block.
TEST_CASE("tensor cores: several tiles for each block that the device runs at once") {
    const Device device = test::open_device({.target = "sm_90a", .threads = 2, .schedule = "1"});
    const std::uint32_t at_once = device.properties().multiprocessors;
    const auto check = [&](std::uint32_t tiles, std::uint32_t m, std::uint32_t n, const GemmOptions& options,
                           const Factors& factors = {}) {
        const auto down = std::uint32_t(std::sqrt(tiles)), across = (tiles + down - 1) / down;
        check_product<bfloat16>(device, {.m = down * m - 5, .n = across * n - 3, .k = 200, .whole = 16}, options,
                                factors);
    };
    constexpr GemmPath wgmma = GemmPath::wgmma, mma_sync = GemmPath::mma_sync;
    using enum GemmSchedule;
    const std::uint32_t of_clusters = at_once * 5 / 4 + 1;  // each makes two tiles, one below the other
    check(of_clusters, 256, 128, {.b = Columns, .path = wgmma, .tile = TileSize::medium, .schedule = persistent});
    check(of_clusters, 256, 128, {.path = wgmma, .tile = TileSize::medium, .schedule = persistent}, {2, 3, true});
    check(of_clusters, 256, 256, {.b = Columns, .path = wgmma, .tile = TileSize::large, .schedule = persistent});
    check(2 * of_clusters, 128, 256, {.b = Columns, .schedule = ping_pong, .raster = Raster::hilbert});
    const std::uint32_t of_blocks = at_once * 15 / 2;  // at most three on a multiprocessor
    for (const GemmSchedule schedule : {persistent, stream_k})
        check(of_blocks, 64, 64, {.path = mma_sync, .tile = TileSize::small, .schedule = schedule});
}

TEST_CASE("tensor cores: every run of a schedule gives the same bits") {
    const std::uint32_t m = 140, n = 132, k = 520;
    std::vector<bfloat16> a(m * k), b(k * n);
    for (std::size_t i = 0; i < a.size(); ++i) a[i] = bfloat16(std::sin(float(i)));
    for (std::size_t i = 0; i < b.size(); ++i) b[i] = bfloat16(std::cos(float(i)));
    for (const GemmSchedule schedule : {GemmSchedule::persistent, GemmSchedule::split_k, GemmSchedule::stream_k}) {
        std::vector<bfloat16> first;
        for (int seed = 0; seed < 6; ++seed) {
            INFO("schedule " << int(schedule) << ", seed " << seed);
            const std::string order = std::to_string(seed);
            const Device device = test::open_device({.threads = 2, .schedule = order});
            const auto A = device.upload(a, "A"), B = device.upload(b, "B");
            auto C = device.upload(std::vector<bfloat16>(m * n, bfloat16(NAN)), "C");
            gemm_tensor_core(device, A.view(m, k), B.view(k, n), C.view(m, n),
                             {.path = GemmPath::mma_sync,
                              .tile = TileSize::small,
                              .schedule = schedule,
                              .parts = schedule == GemmSchedule::split_k ? 3u : 0u});
            std::vector<bfloat16> got = C.download();
            const auto bits = [](const bfloat16& x) { return std::bit_cast<std::uint16_t>(x); };
            if (seed == 0) first = got;
            CHECK(std::ranges::equal(got, first, {}, bits, bits));
        }
    }
}

TEMPLATE_TEST_CASE("tensor cores: products in small tiles", "", half, bfloat16, float, std::int8_t) {
    check_shapes<TestType>(TileSize::small);
}
TEMPLATE_TEST_CASE("tensor cores: products in medium tiles", "", half, bfloat16, float, std::int8_t) {
    check_shapes<TestType>(TileSize::medium);
}
TEMPLATE_TEST_CASE("tensor cores: products in large tiles", "", half, bfloat16, float, std::int8_t) {
    check_shapes<TestType>(TileSize::large);
}

TEMPLATE_TEST_CASE("tensor cores: parts of k are added in their order", "", half, bfloat16, float, std::int8_t) {
    const Device device = test::open_device();
    for (const std::uint32_t parts : {2u, 3u, 7u, 100u})
        for (const Shape& shape : {Shape{65, 63, 777, 8}, Shape{30, 20, 500, 0, 0, 3}, Shape{1, 1, 1}})
            check_product<TestType>(device, shape, {.tile = TileSize::small, .parts = parts},
                                    {.alpha = 2, .bias = true});
}

TEMPLATE_TEST_CASE("tensor cores: what follows a product", "", half, bfloat16, float, std::int8_t) {
    const Device device = test::open_device();
    for (const Shape& shape : {Shape{65, 72, 40}, Shape{65, 71, 40, 1}, Shape{20, 30, 0}})
        for (const std::uint32_t parts : {1u, 2u})
            for (const Factors& factors : {Factors{3, 0}, Factors{0, 1}, Factors{2, -3, true},
                                           Factors{1, 0, false, true}, Factors{-1, 2, true, true}})
                for (const Activation activation : {Activation::none, Activation::relu})
                    check_product<TestType>(
                        device, shape, {.activation = activation, .tile = TileSize::small, .parts = parts}, factors);
}

TEST_CASE("tensor cores: the other activations") {
    const Device device = test::open_device();
    constexpr std::uint32_t n = 21;
    std::vector<float> a(n), b{1};
    for (std::uint32_t i = 0; i < n; ++i) a[i] = float(int(i) - 10) / 4;  // exact as tf32
    const auto A = device.upload(a, "A"), B = device.upload(b, "B");
    auto C = device.buffer<float>(n, "C");
    const auto check = [&](Activation activation, auto&& f) {
        gemm_tensor_core(device, A.view(n, 1), B.view(1, 1), C.view(n, 1), {.activation = activation});
        const auto got = C.download();
        for (std::uint32_t i = 0; i < n; ++i) CHECK(std::abs(got[i] - f(double(a[i]))) <= 2e-6);
    };
    check(Activation::gelu, [](double x) { return x / 2 * std::erfc(-x / std::sqrt(2)); });
    check(Activation::gelu_tanh, [](double x) {
        return x / 2 * (1 + std::tanh(std::sqrt(2 / 3.14159265358979323846) * (x + 0.044715 * x * x * x)));
    });
    check(Activation::silu, [](double x) { return x / (1 + std::exp(-x)); });
}

TEST_CASE("tensor cores: tf32 cuts the low bits of f32 off, and infinities and NaNs go through") {
    const Device device = test::open_device();
    const std::vector<float> a{1 + 0x1p-10f + 0x1p-11f + 0x1p-23f, INFINITY, NAN, 1}, b{1};
    const auto A = device.upload(a, "A"), B = device.upload(b, "B");
    auto C = device.buffer<float>(4, "C");
    gemm_tensor_core(device, A.view(4, 1), B.view(1, 1), C.view(4, 1));
    const auto got = C.download();
    CHECK(got[0] == 1 + 0x1p-10f);
    CHECK(got[1] == INFINITY);
    CHECK(std::isnan(got[2]));
    CHECK(got[3] == 1);
}

TEST_CASE("tensor cores: no elements, no launch") {
    const Device device = test::open_device();
    check_product<half>(device, {0, 5, 8}, {});
    check_product<half>(device, {5, 0, 8}, {});
    check_product<half>(device, {5, 8, 8, 0, 0, 0}, {});
}
