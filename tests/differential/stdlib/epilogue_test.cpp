// SPDX-License-Identifier: Apache-2.0
// Epilogues of one's own, in every kernel of gemm_tensor_core(). Elements are small integers: all results are exact.
#include <ikat/ikat.hpp>

#include <cmath>
#include <type_traits>
#include <vector>

#include "stdlib/gemm/tensor_core.hpp"
#include "stdlib/gemm/tensor_kernels.hpp"
#include "stdlib/reference/reference.hpp"
#include "tests/catch.hpp"
#include "tests/device.hpp"
#include "tests/message.hpp"
#include "tests/targets.hpp"

namespace {

using namespace ikat;
using namespace ikat::stdlib;
using enum MatrixOrder;

int little(std::size_t i) { return int(i * 7 + i / 11) % 5 - 2; }

template <class T>
std::vector<T> littles(std::size_t count, std::size_t first) {
    std::vector<T> out;
    for (std::size_t i = 0; i < count; ++i) out.push_back(T(float(little(i + first))));
    return out;
}

struct Extents {
    std::uint32_t m, n, k, matrices = 1, gap = 0;  // elements after the rows of C and of what is read with it
};

template <class T>
using OwnResult = std::conditional_t<std::is_same_v<T, std::int8_t>, std::int32_t, T>;

/// C = (sum + bias[column]) * gate[at] + by * scale[row] with arrays of type X.
template <class T, class X, class C = OwnResult<T>>
void check_gated(const Device& device, const Extents& of, GemmOptions options, bool has_one_gate = false) {
    const auto [m, n, k, matrices, gap] = of;
    INFO("m " << m << ", n " << n << ", k " << k << ", matrices " << matrices << ", gap " << gap << ", schedule "
              << int(options.schedule) << ", tile " << int(options.tile) << ", path " << int(options.path));
    const std::uint32_t pitch = n + gap, gates = has_one_gate ? 1 : matrices;
    const auto a = littles<T>(std::size_t(matrices) * m * k, 0), b = littles<T>(std::size_t(matrices) * k * n, 1);
    const auto bias = littles<X>(n, 2), scale = littles<X>(m, 3), gate = littles<X>(std::size_t(gates) * m * pitch, 4);
    const auto before = littles<C>(std::size_t(matrices) * m * pitch, 5);
    auto A = device.upload(a, "A"), B = device.upload(b, "B");
    auto to = device.upload(before, "C");
    const auto biases = device.upload(bias, "bias"), scales = device.upload(scale, "scale");
    const auto all_gates = device.upload(gate, "gate");
    const auto gates_view = all_gates.view(gates, m, n).pitched(std::uint64_t(m) * pitch, pitch);
    gemm_tensor_core(device, A.view(matrices, m, k), B.view(matrices, k, n),
                     to.view(matrices, m, n).pitched(std::uint64_t(m) * pitch, pitch),
                     epilogue(
                         "gated",
                         [](auto sum, auto at, auto bias, auto gate, auto by, auto scale) {
                             return (sum + bias[at.column]) * gate[at] + by * scale[at.row];
                         },
                         biases, gates_view, 3.0f, scales),
                     options);
    const auto got = to.download();
    std::size_t wrong = 0;
    for (std::uint32_t p = 0; p < matrices; ++p)
        for (std::uint32_t i = 0; i < m; ++i)
            for (std::uint32_t j = 0; j < pitch; ++j) {
                const std::size_t at = (std::size_t(p) * m + i) * pitch + j;
                float want = float(before[at]);
                if (j < n) {
                    float sum = 0;
                    for (std::uint32_t l = 0; l < k; ++l)
                        sum += float(a[(std::size_t(p) * m + i) * k + l]) * float(b[(std::size_t(p) * k + l) * n + j]);
                    sum = options.alpha * sum + (options.beta == 0 ? 0 : options.beta * want);
                    const float of_gate = float(gate[has_one_gate ? std::size_t(i) * pitch + j : at]);
                    want = (sum + float(bias[j])) * of_gate + 3 * float(scale[i]);
                }
                wrong += float(got[at]) != float(C(want));
            }
    CHECK(wrong == 0);
}

const Extents extents[] = {{1, 1, 1},       {64, 64, 64},         {65, 63, 40},
                           {65, 72, 72, 2}, {130, 136, 48, 1, 8}, {33, 17, 24, 3, 5}};

}  // namespace

TEMPLATE_TEST_CASE("epilogues: in each way of dividing a product", "", half, bfloat16, float, std::int8_t) {
    const Device device = test::open_device({.target = "sm_80"});
    const GemmOptions ways[] = {{.tile = TileSize::small},
                                {.alpha = 2, .beta = 3, .tile = TileSize::small, .schedule = GemmSchedule::persistent},
                                {.alpha = -1, .tile = TileSize::small, .schedule = GemmSchedule::split_k, .parts = 2},
                                {.beta = 1, .tile = TileSize::small, .schedule = GemmSchedule::stream_k}};
    for (std::size_t i = 0; i < std::size(extents); ++i)
        for (std::size_t way = 0; way < std::size(ways); ++way)
            if (tests::is_for_target(i, way, std::size(ways)) || i == 2) {
                check_gated<TestType, float>(device, extents[i], ways[way]);
                check_gated<TestType, half>(device, extents[i], ways[way], true);
            }
    // Where k is 0 there is nothing but what follows.
    check_gated<TestType, bfloat16>(device, {9, 17, 0}, {});
}

TEMPLATE_TEST_CASE("epilogues: by wgmma", "", half, bfloat16) {
    const Device device = test::open_device({.target = "sm_90a"});
    const GemmOptions by{.path = GemmPath::wgmma, .tile = TileSize::medium};
    check_gated<TestType, TestType>(device, {130, 136, 64}, by);
    check_gated<TestType, float>(device, {65, 72, 72, 2}, by, true);
    GemmOptions parts = by;
    parts.schedule = GemmSchedule::split_k, parts.parts = 2, parts.beta = 2;
    check_gated<TestType, TestType>(device, {130, 136, 128}, parts);
}

TEMPLATE_TEST_CASE("epilogues: of f32 for C, in each way of dividing a product", "", half, bfloat16) {
    const auto check = [](const char* target, const Extents& of, const GemmOptions& by) {
        check_gated<TestType, TestType, float>(test::open_device({.target = target}), of, by);
    };
    check("sm_80", {65, 72, 72, 2}, {.beta = 3, .tile = TileSize::small});
    check("sm_80", {65, 63, 40}, {.alpha = 2, .tile = TileSize::small, .schedule = GemmSchedule::persistent});
    check("sm_80", {33, 17, 136, 3, 5}, {.beta = 1, .tile = TileSize::small, .parts = 2});
    check("sm_80", {65, 63, 136}, {.beta = 1, .tile = TileSize::small, .schedule = GemmSchedule::stream_k});
    check("sm_80", {9, 17, 0}, {.beta = 2});
    check("sm_90a", {130, 136, 64}, {.beta = 2, .path = GemmPath::wgmma, .tile = TileSize::medium});
    check("sm_90a", {130, 264, 64, 2, 8}, {.path = GemmPath::wgmma, .tile = TileSize::large});
    check("sm_90a", {130, 264, 136, 2, 8}, {.beta = 2, .schedule = GemmSchedule::ping_pong});
}

TEST_CASE("epilogues: arrays of any type, also where rows begin anywhere") {
    const Device device = test::open_device({.target = "sm_80"});
    const GemmOptions small{.tile = TileSize::small};
    check_gated<half, std::int8_t>(device, {65, 72, 40}, small);
    check_gated<half, std::int32_t>(device, {65, 72, 40, 1, 3}, small);
    check_gated<float, bfloat16>(device, {65, 72, 40, 1, 1}, small);
    check_gated<bfloat16, std::int8_t>(device, {17, 24, 8, 2, 4}, small);
}

TEST_CASE("epilogues: elementary functions, in every order of the warps, without a race") {
    const Device device = test::open_device({.target = "sm_80", .threads = 1, .check = "races", .schedules = 4});
    const std::uint32_t m = 65, n = 72, k = 40;
    std::vector<float> a, b, bias, gate;
    for (std::size_t i = 0; i < m * k; ++i) a.push_back(float(little(i)) / 8);
    for (std::size_t i = 0; i < k * n; ++i) b.push_back(float(little(i + 1)) / 8);
    for (std::size_t i = 0; i < n; ++i) bias.push_back(float(little(i + 2)));
    for (std::size_t i = 0; i < m * n; ++i) gate.push_back(float(little(i + 3)) / 4);
    auto A = device.upload(a), B = device.upload(b), biases = device.upload(bias), gates = device.upload(gate);
    auto C = device.buffer<float>(m * n);
    gemm_tensor_core(
        device, A.view(m, k), B.view(k, n), C.view(m, n),
        epilogue(
            "silu_gated",
            [](auto sum, auto at, auto bias, auto gate) { return stdlib::silu(sum + bias[at.column]) * gate[at]; },
            biases, gates.view(m, n)),
        {.tile = TileSize::small});
    const auto got = C.download();
    double worst = 0;
    for (std::uint32_t i = 0; i < m; ++i)
        for (std::uint32_t j = 0; j < n; ++j) {
            double sum = bias[j];
            for (std::uint32_t l = 0; l < k; ++l) sum += double(a[i * k + l]) * double(b[l * n + j]);
            const double want = sum / (1 + std::exp(-sum)) * double(gate[i * n + j]);
            worst = std::max(worst, std::abs(want - double(got[i * n + j])));
        }
    CHECK(worst < 1e-6);
}

namespace {

/// Sums of i8 that no f32 has: C = sum + bias[column] + residual[at] in i32, and, of another function,
/// sum * scale[column] in f32, toward zero.
void check_integers(const Device& device, const Extents& of, GemmOptions options) {
    const auto [m, n, k, matrices, gap] = of;
    INFO("m " << m << ", n " << n << ", k " << k << ", gap " << gap << ", schedule " << int(options.schedule)
              << ", path " << int(options.path));
    options.b = Columns;
    std::vector<std::int8_t> a, b;
    std::vector<std::int32_t> bias, residual;
    std::vector<float> scale;
    for (std::uint32_t i = 0; i < m * k; ++i) a.push_back(std::int8_t(127 - i % 3));
    for (std::uint32_t i = 0; i < n * k; ++i) b.push_back(std::int8_t(127 - i % 5));
    for (std::uint32_t j = 0; j < n; ++j) bias.push_back(0x1000001 + int(j)), scale.push_back(-0.5f - float(j % 3));
    const std::uint32_t pitch = n + gap;
    for (std::uint32_t i = 0; i < m * pitch; ++i) residual.push_back(int(i * 0x10003));
    const auto A = device.upload(a, "A"), B = device.upload(b, "B");
    const auto biases = device.upload(bias), residuals = device.upload(residual);
    const auto scales = device.upload(scale);
    auto sums = device.buffer<std::int32_t>(m * pitch, "sums"), scaled = device.buffer<std::int32_t>(m * n, "scaled");
    gemm_tensor_core(
        device, A.view(m, k), B.view(n, k), sums.view(m, n).pitched(pitch),
        epilogue<i32>(
            "exact", [](auto sum, auto at, auto bias, auto residual) { return sum + bias[at.column] + residual[at]; },
            biases, residuals.view(m, n).pitched(pitch)),
        options);
    gemm_tensor_core(
        device, A.view(m, k), B.view(n, k), scaled.view(m, n),
        epilogue<i32>(
            "scaled", [](auto sum, auto at, auto scale) { return cast<f32>(sum) * scale[at.column]; }, scales),
        options);
    const auto got = sums.download(), of_scales = scaled.download();
    std::size_t wrong = 0, wrong_scaled = 0;
    for (std::uint32_t i = 0; i < m; ++i)
        for (std::uint32_t j = 0; j < n; ++j) {
            std::int32_t sum = 0;
            for (std::uint32_t l = 0; l < k; ++l) sum += int(a[i * k + l]) * int(b[j * k + l]);
            const std::uint32_t all =
                std::uint32_t(sum) + std::uint32_t(bias[j]) + std::uint32_t(residual[i * pitch + j]);
            wrong += got[i * pitch + j] != std::int32_t(all);
            wrong_scaled += of_scales[i * n + j] != std::int32_t(float(sum) * scale[j]);
        }
    CHECK(wrong == 0);
    CHECK(wrong_scaled == 0);
}

}  // namespace

TEST_CASE("epilogues: sums of integers are exact") {
    const Device device = test::open_device({.target = "sm_80"});
    const GemmOptions ways[] = {{.tile = TileSize::small},
                                {.tile = TileSize::small, .schedule = GemmSchedule::persistent},
                                {.tile = TileSize::small, .schedule = GemmSchedule::split_k, .parts = 2},
                                {.tile = TileSize::small, .schedule = GemmSchedule::stream_k}};
    for (std::size_t way = 0; way < std::size(ways); ++way) {
        check_integers(device, {65, 72, 1120}, ways[way]);
        check_integers(device, {9, 13, 1099, 1, 2}, ways[way]);
    }
    check_integers(test::open_device({.target = "sm_90a"}), {130, 136, 1120}, {.path = GemmPath::wgmma});
}

TEST_CASE("epilogues: the function is called for elements of C only") {
    // What is beyond C could be anything: here the inverse of 0, and rows of a table that are not there.
    const Device device = test::open_device({.target = "sm_80", .threads = 1, .check = "nan"});
    for (const std::uint32_t n : {61u, 64u, 68u}) {
        const std::uint32_t m = 63, k = 40;
        const auto ones = [&](std::uint32_t count) { return device.upload(std::vector<float>(count, 1)); };
        const auto A = ones(m * k), B = ones(k * n), divisor = ones(m * n), of_column = ones(n);
        auto C = device.buffer<float>(m * n, "C");
        gemm_tensor_core(device, A.view(m, k), B.view(k, n), C.view(m, n),
                         epilogue(
                             "divided",
                             [n](auto sum, auto at, auto divisor, auto of_column) {
                                 check(at.column < n, "a column of C");
                                 return 1 / sum / divisor[at] / of_column[at.column];
                             },
                             divisor.view(m, n), of_column),
                         {.tile = TileSize::small});
        CHECK(C.download() == std::vector<float>(m * n, 1.0f / 40));
    }
}

TEST_CASE("epilogues: what a kernel is made by") {
    const auto code = [](const Epilogue& e) { return EpilogueCode(e); };
    const auto by = [](float factor) { return epilogue("by", [factor](auto sum, auto) { return sum * factor; }); };
    const auto with = [](float factor) {
        return epilogue(
            "by", [](auto sum, auto, auto factor) { return sum * factor; }, factor);
    };
    CHECK(code(by(2)) == code(by(2)));
    CHECK(code(by(2)) != code(by(3)));      // a constant
    CHECK(code(with(2)) == code(with(3)));  // a parameter
    CHECK(code(with(2)) != code(by(2)));
    TensorKernel one, other;
    one.epilogue = code(with(2)), other.epilogue = code(with(5));
    CHECK(&one.handle() == &other.handle());
    CHECK(one.name() == "gemm_tensor_core_tf32_by");
    other.epilogue = code(by(5));
    CHECK(&one.handle() != &other.handle());
}

TEST_CASE("epilogues: mistakes") {
    const Device device = test::open_device({.target = "sm_80"});
    auto A = device.buffer<float>(64 * 32), B = device.buffer<float>(32 * 64), C = device.buffer<float>(64 * 64);
    auto few = device.buffer<float>(63);
    auto wide = device.buffer<double>(64);
    const auto said = [&](const Epilogue& e, const GemmOptions& options = {}) {
        return tests::message_of(
            [&] { gemm_tensor_core(device, A.view(64, 32), B.view(32, 64), C.view(64, 64), e, options); });
    };
    const auto biased = [](const auto& x) {
        return epilogue(
            "biased", [](auto sum, auto at, auto x) { return sum + x[at.column]; }, x);
    };
    CHECK_THAT(said(biased(few)), Catch::Contains("epilogue_test.cpp:") &&
                                      Catch::Contains("argument 1 of the epilogue has 1 dimension and 63 elements, and "
                                                      "C has 64 columns"));
    CHECK_THAT(said(epilogue(
                   "at", [](auto sum, auto at, auto x) { return sum + x[at]; }, A.view(64, 32))),
               Catch::Contains("argument 1 of the epilogue is 1 x 64 x 32, and C is 1 x 64 x 64"));
    CHECK_THAT(said(biased(wide)), Catch::Contains("argument 1 has elements of f64"));
    CHECK_THAT(said(epilogue(
                   "unread", [](auto sum, auto, auto) { return sum * 2; }, A)),
               Catch::Contains("argument 1 is an array that the function does not read"));
    CHECK_THAT(said(epilogue(
                   "twice", [](auto sum, auto at, auto x) { return sum + x[at.row] + x[at.column]; }, A)),
               Catch::Contains("argument 1 is read in two ways"));
    CHECK_THAT(said(biased(A), {.activation = Activation::relu}),
               Catch::Contains("an epilogue, and an activation, a bias or a residual"));
    auto halves = device.buffer<half>(64 * 64), to_halves = device.buffer<half>(64 * 64);
    CHECK_THAT(tests::message_of([&] {
                   gemm_tensor_core(device, halves.view(64, 64), halves.view(64, 64), to_halves.view(64, 64),
                                    epilogue<i32>("twice", [](auto sum, auto) { return sum * 2; }));
               }),
               Catch::Contains("an epilogue of i32 sums, and A has elements of f16"));
    CHECK_THAT(said(biased(C)), Catch::Contains("C") && Catch::Contains("argument 1 of the epilogue"));
    CHECK_THAT(said(epilogue("unassigned",
                             [](auto sum, auto) {
                                 f32 never;
                                 return sum + never;
                             })),
               Catch::Contains("epilogue_test.cpp:") && Catch::Contains("may be unassigned"));
}
