// SPDX-License-Identifier: Apache-2.0
// gemm_tensor_core with A and B of f16 or bf16 and C of f32: within the bound of f32 sums, which a C of their own type
// is far beyond, and equal to this C before it is rounded.
#include <algorithm>
#include <cmath>
#include <cstdint>
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

struct ProductExtents {
    std::uint32_t m, n, k;
    std::uint32_t gap = 0;  // elements after each row
    std::uint32_t matrices = 1;
    std::uint32_t whole = 1;  // rows begin at multiples of that many elements
};

/// Matrices of positive numbers with many digits.
template <class T>
struct Waves {
    Waves(const Device& device, const ProductExtents& of, std::uint32_t rows, std::uint32_t columns, float phase)
        : matrices(of.matrices),
          rows(rows),
          columns(columns),
          pitch((columns + of.gap + of.whole - 1) / of.whole * of.whole),
          buffer(device.upload(fill(phase), "matrix")) {}

    std::uint32_t matrices, rows, columns, pitch;
    std::vector<T> elements{};
    runtime::Buffer<T> buffer;

    const std::vector<T>& fill(float phase) {
        for (std::uint32_t i = 0; i < matrices * rows * pitch; ++i)
            elements.push_back(T(1 + 0.5f * std::sin(phase + 0.7f * float(i))));
        return elements;
    }
    std::size_t at(std::uint32_t p, std::uint32_t i, std::uint32_t j) const {
        return (std::size_t(p) * rows + i) * pitch + j;
    }
    auto view() { return buffer.view(matrices, rows, columns).pitched(std::uint64_t(rows) * pitch, pitch); }
};

/// C = alpha A B, or, if something follows, relu(alpha A B + beta C + bias) + residual.
template <class T>
void check_to_f32(const Device& device, const ProductExtents& of, GemmOptions options, bool follows) {
    const auto [m, n, k, gap, matrices, whole] = of;
    INFO("m " << m << ", n " << n << ", k " << k << ", gap " << gap << ", matrices " << matrices << ", orders "
              << int(options.a) << int(options.b) << ", tile " << int(options.tile) << ", schedule "
              << int(options.schedule) << ", path " << int(options.path) << ", follows " << follows);
    const bool a_by_rows = options.a == Rows, b_by_rows = options.b == Rows;
    Waves<T> A(device, of, a_by_rows ? m : k, a_by_rows ? k : m, 0);
    Waves<T> B(device, of, b_by_rows ? k : n, b_by_rows ? n : k, 1);
    Waves<float> C(device, of, m, n, 2), residual(device, of, m, n, 3), bias(device, {1, n, k}, 1, n, 4);
    options.alpha = 0.75f;
    if (follows) {
        options.beta = -0.5f, options.activation = Activation::relu;
        options.bias = bias.buffer, options.residual = residual.view();
    }
    gemm_tensor_core(device, A.view(), B.view(), C.view(), options);

    const std::vector<float> got = C.buffer.download();
    std::vector<double> want(C.elements.begin(), C.elements.end()), bound(want.size());
    for (std::uint32_t p = 0; p < matrices; ++p)
        for (std::uint32_t i = 0; i < m; ++i)
            for (std::uint32_t j = 0; j < n; ++j) {
                double sum = 0;
                for (std::uint32_t l = 0; l < k; ++l)
                    sum += double(float(A.elements[a_by_rows ? A.at(p, i, l) : A.at(p, l, i)])) *
                           double(float(B.elements[b_by_rows ? B.at(p, l, j) : B.at(p, j, l)]));
                const std::size_t at = C.at(p, i, j);
                double all = double(options.alpha) * sum, size = all;
                if (follows) {
                    const double c = 0.5 * double(C.elements[at]), more = double(bias.elements[j]);
                    all = std::max(all - c + more, 0.0) + double(residual.elements[at]);
                    size += c + more + double(residual.elements[at]);
                }
                // Products are exact. Tensor cores cut off what an f32 has no bits for, once for each addition of k;
                // the factors, the parts of k and what follows are at most eight more operations.
                want[at] = all, bound[at] = (k + 8) * 0x1p-23 * size;
            }
    std::size_t wrong = 0;  // between rows, nothing is written
    for (std::size_t i = 0; i < got.size(); ++i) wrong += !(std::abs(double(got[i]) - want[i]) <= bound[i]);
    CHECK(wrong == 0);
    if (follows) return;

    Waves<T> rounded(device, of, m, n, 5);
    gemm_tensor_core(device, A.view(), B.view(), rounded.view(), options);
    const std::vector<T> of_type = rounded.buffer.download();
    std::size_t unlike = 0;
    for (std::uint32_t p = 0; p < matrices; ++p)
        for (std::uint32_t i = 0; i < m; ++i)
            for (std::uint32_t j = 0; j < n; ++j)
                unlike += float(of_type[C.at(p, i, j)]) != float(T(got[C.at(p, i, j)]));
    CHECK(unlike == 0);
}

/// Each of the extents in some of the ways, with both of what may follow, and with all orders in turn.
template <class T>
void check_ways(const Device& device, std::span<const ProductExtents> extents, std::span<const GemmOptions> ways) {
    for (std::size_t i = 0; i < extents.size(); ++i)
        for (std::size_t way = 0; way < ways.size(); ++way) {
            if (!tests::is_for_target(i, way % 3, 3)) continue;
            GemmOptions options = ways[way];
            options.a = MatrixOrder(i % 2), options.b = MatrixOrder((i + way) / 2 % 2);
            for (const bool follows : {false, true}) check_to_f32<T>(device, extents[i], options, follows);
        }
}

}  // namespace

TEMPLATE_TEST_CASE("tensor cores: C of f32 by mma.sync", "", half, bfloat16) {
    using enum GemmSchedule;
    const ProductExtents extents[] = {{1, 1, 1},         {64, 64, 64},        {63, 65, 130, 3}, {129, 132, 100, 4},
                                      {40, 72, 257, 15}, {72, 40, 640, 0, 3}, {136, 264, 72},   {9, 17, 0}};
    const GemmOptions ways[] = {
        {.tile = TileSize::small},
        {.tile = TileSize::medium},
        {.tile = TileSize::large},
        {.tile = TileSize::small, .schedule = persistent},
        {.tile = TileSize::small, .schedule = split_k, .parts = 3},
        {.tile = TileSize::small, .schedule = stream_k},
        {.tile = TileSize::medium, .schedule = stream_k},
    };
    check_ways<TestType>(test::open_device({.target = "sm_80", .threads = 3}), extents, ways);
}

TEMPLATE_TEST_CASE("tensor cores: C of f32 by wgmma", "", half, bfloat16) {
    // By boxes where rows of C are whole pieces of 16 bytes: the second one of f32 only, the third of neither.
    const ProductExtents extents[] = {{128, 128, 64, 0, 1, 8}, {130, 132, 137, 3, 1, 8}, {72, 255, 70, 0, 1, 8},
                                      {257, 520, 40, 0, 1, 8}, {200, 136, 200, 8, 1, 8}, {136, 128, 8, 8, 2, 8}};
    std::vector<GemmOptions> ways;
    for (const TileSize tile : {TileSize::medium, TileSize::large})
        for (const std::uint32_t parts : {1u, 2u}) ways.push_back({.tile = tile, .parts = parts});
    ways.push_back({.tile = TileSize::large, .schedule = GemmSchedule::persistent});
    ways.push_back({.schedule = GemmSchedule::ping_pong});
    for (GemmOptions& way : ways) way.path = GemmPath::wgmma;
    check_ways<TestType>(test::open_device({.target = "sm_90a", .threads = 3}), extents, ways);
}

TEST_CASE("tensor cores: C of f32 in every order of the warps, without a race") {
    using enum GemmSchedule;
    const Device device = test::open_device({.target = "sm_80", .threads = 1, .check = "races", .schedules = 4});
    for (const GemmSchedule schedule : {block_per_tile, persistent, split_k, stream_k})
        check_to_f32<half>(device, {65, 72, 136}, {.tile = TileSize::small, .schedule = schedule}, true);
    const Device hopper = test::open_device({.target = "sm_90a", .threads = 1, .check = "races", .schedules = 4});
    for (const bool follows : {false, true}) {
        for (const TileSize tile : {TileSize::medium, TileSize::large})
            check_to_f32<bfloat16>(hopper, {136, 264, 64}, {.path = GemmPath::wgmma, .tile = tile}, follows);
        check_to_f32<bfloat16>(hopper, {136, 264, 320}, {.schedule = ping_pong}, follows);
    }
}
