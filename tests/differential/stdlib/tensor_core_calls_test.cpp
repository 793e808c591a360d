// SPDX-License-Identifier: Apache-2.0
// Calls of gemm_tensor_core: which kernels are chosen, and which calls do not fit together.
#include <optional>
#include <string>
#include <vector>

#include "runtime/facts/traffic.hpp"
#include "stdlib/gemm/tensor_core.hpp"
#include "tests/catch.hpp"
#include "tests/device.hpp"

namespace {

using namespace ikat;
using namespace ikat::stdlib;
using runtime::Device;
using enum MatrixOrder;

/// The kernels of a product with B by columns on a device of four multiprocessors, and the bytes of its workspace.
template <class T, class Sum>
std::string kernels_of(std::uint32_t m, std::uint32_t n, std::uint32_t k, const char* target,
                       const GemmOptions& options) {
    std::vector<emulator::LaunchTraffic> traffic;
    const Device device = Device::open({.device = "emulator", .target = target, .threads = 4, .traffic = &traffic});
    const auto A = device.upload(std::vector<T>(m * k), "A"), B = device.upload(std::vector<T>(n * k), "B");
    auto C = device.upload(std::vector<Sum>(m * n), "C");
    GemmOptions columns = options;
    columns.b = Columns;
    const auto bytes = gemm_workspace(device, A.view(m, k), B.view(n, k), C.view(m, n), columns);
    gemm_tensor_core(device, A.view(m, k), B.view(n, k), C.view(m, n), columns);
    std::string out;
    for (const emulator::LaunchTraffic& launch : traffic) {
        std::string_view name = launch.entry;
        for (const std::string_view prefix : {"gemm_tensor_core_s8", "gemm_tensor_core_f16", "_nt"})
            if (name.starts_with(prefix)) name.remove_prefix(prefix.size());
        out += std::string(name) + " ";
    }
    return out + std::to_string(bytes);
}

}  // namespace

TEST_CASE("tensor cores: which kernels are chosen") {
    const auto kernels = [](std::uint32_t m, std::uint32_t n, std::uint32_t k, const char* target,
                            const GemmOptions& options = {}) {
        return kernels_of<std::int8_t, std::int32_t>(m, n, k, target, options);
    };
    const std::string sums = std::to_string(2 * 12 * 64 * 64 * 4);  // of four multiprocessors, three blocks each
    CHECK(kernels(64, 64, 128, "sm_80") == " 0");
    CHECK(kernels(64, 64, 128 * 31, "sm_80") == " 0");
    CHECK(kernels(64, 64, 128 * 32, "sm_80") == "_part _finish " + std::to_string(2 * 64 * 64 * 4));
    CHECK(kernels(64, 64, 128, "sm_80", {.schedule = GemmSchedule::split_k}) == " 0");
    CHECK(kernels(64, 5 * 64, 128 * 84, "sm_90") == " 0");
    CHECK(kernels(64, 5 * 64, 128 * 85, "sm_90") == "_stream _join " + sums);
    CHECK(kernels(64, 5 * 64, 128 * 85, "sm_90", {.parts = 1}) == " 0");
    CHECK(kernels(64, 5 * 64, 128, "sm_90", {.schedule = GemmSchedule::stream_k}) ==
          "_stream _join " + std::to_string(2 * 5 * 64 * 64 * 4));
    CHECK(kernels(64, 12 * 64, 128, "sm_90", {.tile = TileSize::small, .schedule = GemmSchedule::stream_k}) ==
          "_persistent 0");
    CHECK(kernels(64, 5 * 64, 128, "sm_90", {.schedule = GemmSchedule::persistent}) == "_persistent 0");
    CHECK(kernels(128, 512, 128, "sm_90a") == " 0");
    CHECK(kernels(130, 128, 128 * 31, "sm_90a") == "_wgmma 0");
    CHECK(kernels(130, 128, 128 * 32, "sm_90a") == "_wgmma_part _finish " + std::to_string(2 * 130 * 128 * 4));
    CHECK(kernels(130, 128, 128 * 32, "sm_90a", {.schedule = GemmSchedule::persistent}) == "_wgmma 0");
    CHECK(kernels(130, 128, 128, "sm_90a", {.schedule = GemmSchedule::block_per_tile}) == " 0");
    // Large tiles of 16-bit elements also for one tile of rows.
    const auto of_halves = [](std::uint32_t m, std::uint32_t n) {
        return kernels_of<half, half>(m, n, 64, "sm_90a", {});
    };
    CHECK(of_halves(65, 256) == "_wgmma 0");
    CHECK(of_halves(64, 256) == " 0");
    CHECK(of_halves(65, 120) == " 0");
}

TEST_CASE("tensor cores: warpgroups take turns where k is short for what is stored") {
    // Four multiprocessors are two clusters: four tiles of 128 x 256 are one for each warpgroup.
    const auto turns = [](std::uint32_t slices, bool to_f32, const GemmOptions& options, std::uint32_t n = 512) {
        const std::string found = to_f32 ? kernels_of<half, float>(256, n, 64 * slices, "sm_90a", options)
                                         : kernels_of<half, half>(256, n, 64 * slices, "sm_90a", options);
        return found.contains("_ping_pong ");
    };
    const auto most = [&](std::uint32_t slices, bool to_f32, const GemmOptions& options = {}) {
        return turns(slices, to_f32, options) && !turns(slices + 1, to_f32, options);
    };
    CHECK(most(2, false));
    CHECK(most(7, true));
    CHECK(most(5, false, {.beta = 1}));
    CHECK(most(6, false, {.beta = 1, .activation = Activation::relu}));
    CHECK(most(33, false, {.beta = 1, .activation = Activation::silu}));
    CHECK(most(7, true, {.activation = Activation::gelu}));  // alone, by boxes
    CHECK(!turns(1, false, {}, 256));
    CHECK(!turns(1, false, {.tile = TileSize::medium}));
    CHECK(!turns(1, false, {.schedule = GemmSchedule::persistent}));
    CHECK(!turns(1, false, {.schedule = GemmSchedule::split_k}));
    CHECK(turns(49, false, {.schedule = GemmSchedule::ping_pong}, 256));
}

TEST_CASE("tensor cores: calls that do not fit together") {
    const Device device = test::open_device({.target = "sm_90a"});
    const auto message = [&](auto&& call) {
        try {
            call();
        } catch (const Error& error) { return std::string(error.what()); }
        return std::string("no error");
    };
    auto a = device.buffer<half>(200, "a"), b = device.buffer<half>(200, "b"), c = device.buffer<half>(200, "c");
    auto other = device.buffer<bfloat16>(200, "other");
    auto sums = device.buffer<std::int32_t>(200, "sums");
    using Catch::Matchers::Contains;
    const auto run = [&](const auto& A, const auto& B, const auto& C, const GemmOptions& options = {}) {
        return message([&] { gemm_tensor_core(device, A, B, C, options); });
    };
    CHECK_THAT(run(a.view(4, 8), other.view(8, 5), c.view(4, 5)),
               Contains("gemm_tensor_core: A has elements of f16, B of bf16"));
    CHECK_THAT(run(a.view(4, 8), b.view(8, 5), other.view(4, 5)), Contains("C has elements of bf16"));
    auto wide = device.buffer<float>(200, "wide");
    CHECK_THAT(run(a.view(4, 8), b.view(8, 5), sums.view(4, 5)),
               Contains("C has elements of i32") && Contains("of A and B in f16 it has f16 or f32"));
    CHECK_THAT(run(wide.view(4, 8), wide.view(8, 5), c.view(4, 5)),
               Contains("C has elements of f16") && Catch::EndsWith("of A and B in f32 it has f32"));
    CHECK_THAT(run(a.view(4, 8), b.view(8, 5), wide.view(4, 5), {.bias = c}),
               Contains("the bias has elements of f16, C of f32") && Contains("they have the same type"));
    CHECK_THAT(run(a.view(4, 8), b.view(8, 5), c.view(4, 5), {.residual = wide.view(4, 5)}),
               Contains("the residual has elements of f32, C of f16"));
    CHECK_THAT(run(a.view(4, 8), b.view(7, 5), c.view(4, 5)), Contains("B is 7 x 5, not 8 x 5"));
    CHECK_THAT(run(a.view(4, 8), b.view(8, 5), c.view(4, 5), {.b = Columns}), Contains("B is 8 x 5, not 5 x 8"));
    CHECK_THAT(run(a.view(2, 4, 8), b.view(8, 5), c.view(2, 4, 5)), Contains("B is 8 x 5, not 2 times 8 x 5"));
    CHECK_THAT(run(a.view(4, 8), b.view(8, 5), c.view(4, 5), {.bias = c.slice(100, 4)}),
               Contains("the bias has 4 elements, C has 5 columns"));
    CHECK_THAT(run(a.view(4, 8), b.view(8, 5), c.view(4, 5), {.residual = c.view(4, 4)}),
               Contains("the residual is 4 x 4, not 4 x 5"));
    CHECK_THAT(run(a.view(4, 8), b.view(8, 5), c.view(4, 5), {.residual = c.view(4, 5)}),
               Contains("'C' (written) and 'residual' (read) are the same memory"));
    CHECK_THAT(run(a, b.view(8, 5), c.view(4, 5)), Contains("A has 1 dimension") && Contains("a view (rows, columns)"));
    CHECK_THAT(run(a.view(1, 1, 4, 8), b.view(8, 5), c.view(4, 5)), Contains("A has 4 dimensions"));
    CHECK_THAT(run(TensorView(a.view(8, 4)).permuted({1, 0}), b.view(8, 5), c.view(4, 5)),
               Contains("the elements of a row of A are 4 apart") && Contains("MatrixOrder::Columns"));
    CHECK_THAT(run(a.view(4, 8), b.view(8, 5), c.view(4, 5), {.bias = a.view(1, 5)}),
               Contains("the bias has 2 dimensions"));
    auto bytes = device.buffer<std::int8_t>(200, "bytes");
    CHECK_THAT(run(bytes.view(4, 8), bytes.view(8, 5), sums.view(4, 5), {.alpha = 0.5f}),
               Contains("a factor of 0.5 for integers"));
    CHECK_THAT(run(bytes.view(4, 8), bytes.view(8, 5), sums.view(4, 5), {.activation = Activation::gelu}),
               Contains("an activation of integers"));
    CHECK_THAT(run(a.slice(1, 32).view(4, 8), b.view(8, 8), c.view(4, 8), {.path = GemmPath::wgmma}),
               Contains("wgmma: rows of A or B are not aligned to 16 bytes"));
    CHECK_THAT(
        run(a.view(4, 8), b.view(8, 8), c.view(4, 8), {.path = GemmPath::wgmma, .schedule = GemmSchedule::stream_k}),
        Contains("wgmma: clusters of blocks take tile after tile"));
    constexpr GemmSchedule ping_pong = GemmSchedule::ping_pong;
    CHECK_THAT(run(a.view(4, 8), b.view(8, 8), c.view(4, 8), {.path = GemmPath::mma_sync, .schedule = ping_pong}),
               Contains("mma_sync: there are no warpgroups that take turns") &&
                   Contains("GemmSchedule::ping_pong is of GemmPath::wgmma"));
    CHECK_THAT(run(a.view(4, 8), b.view(8, 8), c.view(4, 8), {.tile = TileSize::medium, .schedule = ping_pong}),
               Contains("wgmma: warpgroups take turns at large tiles, of 16-bit elements"));
    CHECK_THAT(run(a.view(4, 8), b.view(8, 8), c.view(4, 8), {.schedule = ping_pong, .parts = 2}),
               Contains("2 parts, and a schedule that does not divide k into parts"));
    CHECK_THAT(run(a.view(4, 8), b.view(8, 8), c.view(4, 8), {.schedule = GemmSchedule::stream_k, .parts = 2}),
               Contains("2 parts, and a schedule that does not divide k into parts"));
    const auto on_sm_80 = message([&] {
        const Device other = test::open_device({.target = "sm_80"});
        gemm_tensor_core(other, a.view(4, 8), b.view(8, 8), c.view(4, 8), {.path = GemmPath::wgmma});
    });
    CHECK_THAT(on_sm_80, Contains("wgmma: the device is opened for sm_80, not sm_90a"));
    auto freed = std::optional(device.buffer<half>(200, "freed"));
    const auto view = freed->view(4, 8);
    freed.reset();
    CHECK_THAT(run(view, b.view(8, 5), c.view(4, 5)), Contains("has been freed"));
}
