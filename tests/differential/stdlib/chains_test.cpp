// SPDX-License-Identifier: Apache-2.0
// Kernels that begin before the one in front of them has ended: chains of the language, over many launches, and those
// of the library, which give the same bits on a stream as one after the other.
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <ikat/compile.hpp>
#include <ikat/ikat.hpp>
#include <ikat/quantised.hpp>
#include <ikat/stdlib.hpp>
#include <ikat/work.hpp>

#include "tests/catch.hpp"
#include "tests/device.hpp"

namespace {

using namespace ikat;
using namespace ikat::stdlib;
using runtime::Device;
using tests::contains;

Device overlapping() { return test::open_device({.target = "sm_90a", .check = "strict,registers"}); }

template <class T = float>
std::vector<T> numbers(std::size_t count) {
    std::vector<T> out(count);
    for (std::size_t i = 0; i < count; ++i) out[i] = T((float(i * 37 % 61) - 30.0f) / 32);
    return out;
}

// ---- chains of the language

const auto advance = kernel("advance", params("x", "n"), [](InOut<std::uint32_t> x, u32 n) {
    grid_wait();  // x is read by the kernel before
    launch_next();
    for (auto i : grid_stride(n)) x[i] = x[i] * 1664525u + 1013904223u;
});
const auto collect = kernel("collect", params("x", "y", "n"), [](In<std::uint32_t> x, InOut<std::uint32_t> y, u32 n) {
    launch_next();
    u32 reverse = n - 1 - global_id().x;
    grid_wait();  // x and y are written by the kernels before
    for (auto i : grid_stride(n)) y[i] += x[reverse - (i - global_id().x)];
});

// ---- chains of the library

using Chain = std::function<void(const Queue&)>;

/// The kernels of a chain, and what they say of each other: "launches gemm_…_part, waits gemm_…_finish".
std::string said_by(const Device& device, const Chain& chain) {
    const Recorder recorder(device, Recorder::Runs::No);
    chain(recorder);
    std::string out;
    for (const node::Launch& launch : recorder.launches()) {
        const std::string ptx = compile(launch.kernel->ast(), {.target = "sm_90a"}).ptx;
        if (!out.empty()) out += ", ";
        if (ptx.find("griddepcontrol.wait") != ptx.npos) out += "waits ";
        if (ptx.find("griddepcontrol.launch_dependents") != ptx.npos) out += "launches ";
        out += launch.info()->name;
    }
    return out;
}

/// Runs it often on a stream, where its kernels overlap. The result is always that of one kernel after the other.
template <class T>
void check_chain(const Device& device, Buffer<T>& result, const Chain& chain) {
    chain(device);
    const std::vector<T> expected = device.download(result);
    const Stream stream = device.stream();
    for (int times = 0; times < 4; ++times) {
        Queue(stream).fill(result, T{});
        for (int again = 0; again < 3; ++again) chain(stream);
        stream.synchronize();
        CHECK(device.download(result) == expected);
    }
}

/// A product of 64 x 256 by k elements, with B by columns.
template <class T>
std::string check_product(std::uint32_t k, const GemmOptions& asked) {
    const Device device = overlapping();
    const std::uint32_t m = 64, n = 256;
    const auto A = device.upload(numbers<T>(m * k), "A"), B = device.upload(numbers<T>(n * k), "B");
    auto C = device.buffer<T>(m * n, "C");
    GemmOptions options = asked;
    options.b = MatrixOrder::Columns;
    const auto bytes = gemm_workspace(device, A.view(m, k), B.view(n, k), C.view(m, n), options);
    auto workspace = device.buffer<std::uint8_t>(bytes, "workspace");
    options.workspace = workspace;
    const Chain chain = [&](const Queue& queue) {
        gemm_tensor_core(queue, A.view(m, k), B.view(n, k), C.view(m, n), options);
    };
    check_chain(device, C, chain);
    return said_by(device, chain);
}

template <class F>
std::string check_reduction(F reduce) {
    const Device device = overlapping();
    const std::uint32_t n = 20000;
    const auto x = device.upload(numbers(n), "x");
    auto total = device.buffer<float>(1, "total");
    auto index = device.buffer<std::uint32_t>(1, "index");
    auto workspace = device.buffer<std::uint8_t>(reduction_workspace(n), "workspace");
    const Chain chain = [&](const Queue& queue) { reduce(queue, x, total, index, workspace); };
    check_chain(device, total, chain);
    return said_by(device, chain);
}

}  // namespace

TEST_CASE("chains: two kernels that wait for each other, over many launches") {
    const Device device = overlapping();
    const bool emulates = device.properties().kind == runtime::DeviceKind::Emulator;
    const std::uint32_t n = emulates ? 1024 : 1 << 14, rounds = emulates ? 10 : 1000;
    std::vector<std::uint32_t> x(n), y(n, 0);
    for (std::uint32_t i = 0; i < n; ++i) x[i] = i;
    auto on_device = device.upload(x, "x"), sums = device.upload(y, "y");
    const Stream stream = device.stream();
    for (std::uint32_t round = 0; round < rounds; ++round) {
        stream.launch(advance, grid(n / 2, 256), on_device, n);
        stream.launch(collect, grid(n, 128), on_device, sums, n);
    }
    stream.synchronize();
    for (std::uint32_t round = 0; round < rounds; ++round) {
        for (std::uint32_t& value : x) value = value * 1664525u + 1013904223u;
        for (std::uint32_t i = 0; i < n; ++i) y[i] += x[n - 1 - i];
    }
    CHECK(device.download(on_device) == x);
    CHECK(device.download(sums) == y);
}

TEST_CASE("chains: parts of a product, and their sum") {
    CHECK(check_product<float>(256, {.schedule = GemmSchedule::split_k, .parts = 3}) ==
          "launches gemm_tensor_core_tf32_nt_part, waits gemm_tensor_core_tf32_finish");
    CHECK(check_product<half>(512, {.path = GemmPath::mma_sync, .schedule = GemmSchedule::stream_k}) ==
          "launches gemm_tensor_core_f16_nt_stream, waits gemm_tensor_core_f16_join");
    CHECK(check_product<half>(512, {.path = GemmPath::wgmma, .schedule = GemmSchedule::split_k, .parts = 2}) ==
          "launches gemm_tensor_core_f16_nt_wgmma_part, waits gemm_tensor_core_f16_finish");
}

TEST_CASE("chains: parts of the keys, and what is made of them") {
    const Device device = overlapping();
    const std::uint32_t heads = 2, keys = 200, d = 64;
    const auto Q = device.upload(numbers<half>(heads * d), "Q"),
               K = device.upload(numbers<half>(heads * keys * d), "K"),
               V = device.upload(numbers<half>(heads * keys * d), "V");
    auto O = device.buffer<half>(heads * d, "O");
    const auto q = Q.view(1, heads, 1, d), k = K.view(1, heads, keys, d), v = V.view(1, heads, keys, d);
    const auto o = O.view(1, heads, 1, d);
    IncrementalOptions options{.parts = 3};
    const auto bytes = incremental_attention_workspace(device, q, k, v, o, options);
    auto workspace = device.buffer<std::uint8_t>(bytes, "workspace");
    options.workspace = workspace;
    const Chain chain = [&](const Queue& queue) { incremental_attention(queue, q, k, v, o, options); };
    check_chain(device, O, chain);
    CHECK(said_by(device, chain) ==
          "launches incremental_attention_f16_d64_part, waits incremental_attention_f16_d64_merge");
}

TEST_CASE("chains: shares of a reduction") {
    CHECK(check_reduction([](const Queue& queue, auto& x, auto& total, auto&, auto& workspace) {
              sum(queue, x, total, workspace);
          }) == "waits launches sum_f32, waits launches sum_f32");
    CHECK(check_reduction([](const Queue& queue, auto& x, auto& total, auto&, auto& workspace) {
              stdlib::max(queue, x, total, workspace);
          }) == "waits launches max_f32, waits launches max_f32");
    CHECK(check_reduction([](const Queue& queue, auto& x, auto& total, auto&, auto& workspace) {
              dot(queue, x, x, total, workspace);
          }) == "launches dot, waits launches sum_f32");
    CHECK(check_reduction([](const Queue& queue, auto& x, auto& total, auto& index, auto& workspace) {
              argmax(queue, x, total, index, workspace);
          }) == "launches argmax, waits argmax_final");
}

TEST_CASE("chains: activations are quantised, and multiplied") {
    const Device device = overlapping();
    const std::uint32_t rows = 20, columns = 512;
    const auto x = device.upload(numbers(columns), "x");
    const auto weights = device.upload(stored::quantise(Quantised::Q4_0, numbers(rows * columns), columns), "W");
    auto q = device.buffer<std::uint32_t>(columns / 32 * 9, "q");
    auto y = device.buffer<float>(rows, "y");
    const auto W = quantised_view(weights, Quantised::Q4_0, {rows, columns});
    const Chain chain = [&](const Queue& queue) {
        quantise_q8_1(queue, x, q);
        quantised_gemv(queue, W, q, y);
    };
    check_chain(device, y, chain);
    CHECK(said_by(device, chain) == "launches quantise_q8_1, waits gemv_q4_0_q8_1");
}

TEST_CASE("chains: activations of several tokens are quantised, and multiplied") {
    const Device device = overlapping();
    const std::uint32_t tokens = 3, rows = 20, columns = 512;
    const auto x = device.upload(numbers(tokens * columns), "x");
    const auto weights = device.upload(stored::quantise(Quantised::Q4_0, numbers(rows * columns), columns), "W");
    auto y = device.buffer<float>(tokens * rows, "y");
    const auto W = quantised_view(weights, Quantised::Q4_0, {rows, columns});
    const auto X = x.view(tokens, columns);
    const auto Y = y.view(tokens, rows);
    QuantisedGemmOptions options{.activations = Activations::q8_1};
    auto space = device.buffer<std::uint8_t>(gemm_workspace(device, W, X, Y, options), "workspace");
    options.workspace = space;
    const Chain chain = [&](const Queue& queue) { gemm(queue, W, X, Y, options); };
    check_chain(device, y, chain);
    CHECK(said_by(device, chain) == "launches quantise_q8_1, waits gemm_q4_0_q8_1_f32_tokens_3");
}

TEST_CASE("chains: activations are quantised for fused products") {
    const Device device = overlapping();
    const std::uint32_t tokens = 3, rows = 20, columns = 512;
    const auto x = device.upload(numbers(tokens * columns), "x");
    const auto weights = device.upload(stored::quantise(Quantised::Q4_0, numbers(2 * rows * columns), columns), "W");
    auto y = device.buffer<float>(tokens * rows, "y"), z = device.buffer<float>(tokens * rows, "z");
    const auto Wg = quantised_view(weights, Quantised::Q4_0, {rows, columns});
    const auto Wu = quantised_view(weights.slice(rows * columns / 32 * 18, rows * columns / 32 * 18), Quantised::Q4_0,
                                   {rows, columns});
    const auto X = x.view(tokens, columns);
    const auto Y = y.view(tokens, rows), Z = z.view(tokens, rows);
    FusedProductOptions options{.activations = Activations::q8_1};
    auto space =
        device.buffer<std::uint8_t>(gemm_workspace(device, Wg, X, Y, {.activations = Activations::q8_1}), "workspace");
    options.workspace = space;
    const Chain gated = [&](const Queue& queue) { gate_up_swiglu(queue, Wg, Wu, X, Y, options); };
    check_chain(device, y, gated);
    CHECK(said_by(device, gated) == "launches quantise_q8_1, waits gate_up_swiglu_q4_0_q8_1_f32_tokens_3");
    const Chain parts = [&](const Queue& queue) { gemm_parts(queue, X, {{Wg, Z}, {Wu, Y}}, options); };
    check_chain(device, y, parts);
    CHECK(said_by(device, parts) == "launches quantise_q8_1, waits gemm_parts_q8_1_tokens_3_q4_0_f32_q4_0_f32");
}
