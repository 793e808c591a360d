// SPDX-License-Identifier: Apache-2.0
// Row sums of epilogues, in every kernel of gemm_tensor_core(). Elements are small integers: sums are exact, unless a
// test says otherwise.
#include <ikat/ikat.hpp>

#include <bit>
#include <cmath>
#include <vector>

#include "stdlib/gemm/tensor_core.hpp"
#include "tests/catch.hpp"
#include "tests/device.hpp"
#include "tests/message.hpp"
#include "tests/targets.hpp"

namespace {

using namespace ikat;
using namespace ikat::stdlib;

template <class T>
std::vector<T> littles(std::size_t count, std::size_t first) {
    std::vector<T> out;
    for (std::size_t i = first; i < first + count; ++i) out.push_back(T(float(int(i * 7 + i / 11) % 5 - 2)));
    return out;
}

struct Extents {
    std::uint32_t m, n, k, matrices = 1, gap = 0;  // elements after the rows of C and of the sums
};

/// The elements of C, a float for each, and the sums of a call with given() for an epilogue of two row sums.
struct Results {
    std::vector<float> c, first, second;
};
template <class T>
using OwnResult = std::conditional_t<std::is_same_v<T, std::int8_t>, std::int32_t, T>;

template <class T, class C = OwnResult<T>>
Results run(const Device& device, const Extents& of, const GemmOptions& options, auto&& given) {
    const auto [m, n, k, matrices, gap] = of;
    const std::uint32_t pitch = n + gap, groups = std::uint32_t(row_sum_columns(n)), of_sums = groups + gap;
    const auto A = device.upload(littles<T>(std::size_t(matrices) * m * k, 0), "A");
    const auto B = device.upload(littles<T>(std::size_t(matrices) * k * n, 1), "B");
    auto to = device.upload(std::vector<C>(std::size_t(matrices) * m * pitch, C(3.0f)), "C");
    const std::vector<float> before(std::size_t(matrices) * m * of_sums, -7);
    auto first = device.upload(before, "first"), second = device.upload(before, "second");
    const auto view = [&](auto& sums) {
        return sums.view(matrices, m, groups).pitched(std::uint64_t(m) * of_sums, of_sums);
    };
    gemm_tensor_core(device, A.view(matrices, m, k), B.view(matrices, k, n),
                     to.view(matrices, m, n).pitched(std::uint64_t(m) * pitch, pitch),
                     given(row_sums(view(first)), row_sums(view(second))), options);
    Results out{.c = {}, .first = first.download(), .second = second.download()};
    for (const C x : to.download()) out.c.push_back(float(x));
    return out;
}

std::string text_of(const Extents& of, const GemmOptions& by) {
    return "m " + std::to_string(of.m) + ", n " + std::to_string(of.n) + ", k " + std::to_string(of.k) + ", matrices " +
           std::to_string(of.matrices) + ", gap " + std::to_string(of.gap) + ", schedule " +
           std::to_string(int(by.schedule)) + ", tile " + std::to_string(int(by.tile));
}

/// C = A B + beta C, the sums of its squares, and how many elements they are.
template <class T, class C = OwnResult<T>>
void check_squares(const Device& device, const Extents& of, const GemmOptions& options) {
    INFO(text_of(of, options));
    const Results got = run<T, C>(device, of, options, [](const RowSums& squares, const RowSums& counts) {
        return epilogue(
            "counted",
            [](auto sum, auto at, auto squares, auto counts) {
                squares[at.row] += sum * sum;
                counts[at.row] += 1;
                return sum;
            },
            squares, counts);
    });
    const auto [m, n, k, matrices, gap] = of;
    const std::uint32_t groups = std::uint32_t(row_sum_columns(n)), of_sums = groups + gap;
    std::size_t wrong = 0;
    for (std::uint32_t row = 0; row < matrices * m; ++row)
        for (std::uint32_t group = 0; group < of_sums; ++group) {
            float squares = group < groups ? 0 : -7, count = squares;
            for (std::uint32_t j = 32 * group; group < groups && j < std::min(32 * group + 32, n); ++j, ++count) {
                const float c = got.c[std::size_t(row) * (n + gap) + j];
                squares += c * c;
            }
            wrong += got.first[row * of_sums + group] != squares;
            wrong += got.second[row * of_sums + group] != count;
        }
    CHECK(wrong == 0);
}

const Extents extents[] = {{1, 1, 1},     {64, 64, 64},       {65, 63, 40},      {65, 72, 72, 2},
                           {130, 97, 48}, {33, 17, 24, 3, 5}, {3, 300, 8, 1, 1}, {9, 33, 0}};

}  // namespace

TEMPLATE_TEST_CASE("row sums: in each way of dividing a product", "", half, bfloat16, float, std::int8_t) {
    const GemmOptions ways[] = {{.tile = TileSize::small},
                                {.beta = 1, .tile = TileSize::small, .schedule = GemmSchedule::persistent},
                                {.tile = TileSize::small, .schedule = GemmSchedule::split_k, .parts = 2},
                                {.beta = 1, .tile = TileSize::small, .schedule = GemmSchedule::stream_k}};
    const Device device = test::open_device({.target = "sm_80"});
    for (std::size_t i = 0; i < std::size(extents); ++i)
        for (std::size_t way = 0; way < std::size(ways); ++way)
            if (tests::is_for_target(i, way, std::size(ways)) || i == 3)
                check_squares<TestType>(device, extents[i], ways[way]);
    check_squares<TestType>(device, {130, 136, 16}, {.tile = TileSize::medium});
    const Device hopper = test::open_device({.target = "sm_90a"});
    if (sizeof(TestType) != 2) return;
    check_squares<TestType>(hopper, {130, 136, 64}, {.path = GemmPath::wgmma, .tile = TileSize::medium});
    check_squares<TestType>(
        hopper, {130, 136, 128},
        {.path = GemmPath::wgmma, .tile = TileSize::medium, .schedule = GemmSchedule::split_k, .parts = 2});
}

TEMPLATE_TEST_CASE("row sums: of C of f32", "", half, bfloat16) {
    const Device device = test::open_device({.target = "sm_80"});
    using enum GemmSchedule;
    check_squares<TestType, float>(device, {65, 72, 72, 2}, {.beta = 1, .tile = TileSize::small});
    check_squares<TestType, float>(device, {33, 17, 136, 3, 5}, {.tile = TileSize::small, .parts = 2});
    check_squares<TestType, float>(device, {130, 97, 136}, {.tile = TileSize::small, .schedule = stream_k});
    check_squares<TestType, float>(test::open_device({.target = "sm_90a"}), {130, 136, 64},
                                   {.beta = 1, .path = GemmPath::wgmma, .tile = TileSize::medium});
}

TEST_CASE("row sums: in every order of the warps, without a race") {
    const Device device = test::open_device({.target = "sm_80", .threads = 1, .check = "races", .schedules = 4});
    for (const GemmSchedule schedule :
         {GemmSchedule::block_per_tile, GemmSchedule::stream_k, GemmSchedule::split_k, GemmSchedule::persistent})
        check_squares<half>(device, {65, 97, 72}, {.tile = TileSize::small, .schedule = schedule});
    check_squares<half>(test::open_device({.target = "sm_90a", .threads = 1, .check = "races", .schedules = 4}),
                        {130, 136, 64}, {.path = GemmPath::wgmma, .tile = TileSize::medium});
}

TEST_CASE("row sums: in one order, whatever the way to the product") {
    // Sums of products are exact, and what is added is not.
    const Extents of{130, 200, 72};
    const auto given = [](const RowSums& sums, const RowSums& roots) {
        return epilogue(
            "inexact",
            [](auto sum, auto at, auto sums, auto roots) {
                sums[at.row] += sum * 0.1f;
                roots[at.row] += sqrt(abs(sum) + cast<f32>(at.column));
                return sum;
            },
            sums, roots);
    };
    const Results want = run<half>(test::open_device({.target = "sm_80"}), of, {.tile = TileSize::small}, given);
    // Eight neighbours first, and then these four.
    for (std::uint32_t i : {0u, 64u, 129u})
        for (std::uint32_t group : {0u, 3u, 6u}) {
            float of_lane[4]{};
            for (std::uint32_t j = 32 * group; j < std::min(32 * group + 32, of.n); ++j)
                of_lane[j % 32 / 8] = std::fma(want.c[i * of.n + j], 0.1f, of_lane[j % 32 / 8]);
            CHECK(want.first[i * 7 + group] ==
                  Approx((of_lane[0] + of_lane[1]) + (of_lane[2] + of_lane[3])).epsilon(1e-6));
        }
    const std::pair<const char*, GemmOptions> ways[] = {
        {"sm_80", {.tile = TileSize::medium}},
        {"sm_80", {.tile = TileSize::large}},
        {"sm_80", {.tile = TileSize::small, .schedule = GemmSchedule::stream_k}},
        {"sm_80", {.tile = TileSize::small, .schedule = GemmSchedule::split_k, .parts = 2}},
        {"sm_90a", {.path = GemmPath::wgmma, .tile = TileSize::medium}},
        {"sm_90a", {.path = GemmPath::wgmma, .tile = TileSize::large}},
        {"sm_90a", {.schedule = GemmSchedule::ping_pong}},
        {"sm_90a", {.path = GemmPath::wgmma, .tile = TileSize::large, .raster = Raster::hilbert}},
    };
    for (const auto& [target, options] : ways) {
        INFO(target << ", " << text_of(of, options));
        const Results got = run<half>(test::open_device({.target = target}), of, options, given);
        CHECK(got.c == want.c);
        CHECK(got.first == want.first);
        CHECK(got.second == want.second);
    }
}

TEST_CASE("row sums: elements that are not of C add nothing") {
    // For those beyond the edge the function may be called with what gives NaN.
    const Device device = test::open_device({.target = "sm_80"});
    const std::uint32_t m = 5, n = 37, k = 8;
    const auto A = device.upload(std::vector<float>(m * k, 1)), B = device.upload(std::vector<float>(k * n, 1));
    auto C = device.buffer<float>(m * n, "C"), sums = device.buffer<float>(m * 2, "sums");
    gemm_tensor_core(device, A.view(m, k), B.view(k, n), C.view(m, n),
                     epilogue(
                         "roots",
                         [n](auto sum, auto at, auto sums) {
                             sums[at.row] += sqrt(cast<f32>(cast<i32>(std::int32_t(n) - 1 - cast<i32>(at.column))));
                             return sum;
                         },
                         row_sums(sums.view(m, 2))));
    const auto got = sums.download();
    for (std::uint32_t i = 0; i < m; ++i) {
        double first = 0, second = 0;
        for (std::uint32_t j = 0; j < n; ++j) (j < 32 ? first : second) += std::sqrt(double(n - 1 - j));
        CHECK(got[2 * i] == Approx(first).epsilon(1e-6));
        CHECK(got[2 * i + 1] == Approx(second).epsilon(1e-6));
    }
}

TEST_CASE("row sums: mistakes") {
    const Device device = test::open_device({.target = "sm_80"});
    auto A = device.buffer<float>(64 * 32), B = device.buffer<float>(32 * 64), C = device.buffer<float>(64 * 64);
    auto sums = device.buffer<float>(64 * 3, "sums");
    auto halves = device.buffer<half>(64 * 2);
    const auto said = [&](const Epilogue& e) {
        return tests::message_of([&] { gemm_tensor_core(device, A.view(64, 32), B.view(32, 64), C.view(64, 64), e); });
    };
    const auto squares = [](const auto& view) {
        return epilogue(
            "squares", [](auto sum, auto at, auto sums) { return sums[at.row] += sum * sum, sum; }, row_sums(view));
    };
    CHECK_THAT(said(squares(sums.view(64, 3))),
               Catch::Contains("row_sums_test.cpp:") &&
                   Catch::Contains("argument 1 of the epilogue is 1 x 64 x 3 row sums, not 1 x 64 x 2") &&
                   Catch::Contains("C is 1 x 64 x 64: a sum for each row and 32 columns, row_sum_columns(64)"));
    CHECK_THAT(said(squares(halves.view(64, 2))),
               Catch::Contains("argument 1 is row_sums of f16") && Catch::Contains("they are f32"));
    CHECK_THAT(said(squares(C.view(64, 2))), Catch::Contains("C") && Catch::Contains("argument 1 of the epilogue"));
    CHECK_THAT(said(epilogue(
                   "none", [](auto sum, auto, auto) { return sum; }, row_sums(sums.view(64, 2)))),
               Catch::Contains("argument 1 is row_sums to which the function adds nothing"));
    CHECK_THAT(said(epilogue(
                   "by_column", [](auto sum, auto at, auto sums) { return sums[at.column] += sum, sum; },
                   row_sums(sums.view(64, 2)))),
               Catch::Contains("row_sums of an epilogue, by a column") && Catch::Contains("sums[at.row] += x"));
}
