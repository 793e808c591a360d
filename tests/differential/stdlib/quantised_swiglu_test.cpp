// SPDX-License-Identifier: Apache-2.0
// gate_up_swiglu() against the two products and fused_swiglu(), bit for bit, and against sums in double.
#include <cmath>
#include <limits>

#include "stdlib/elementwise/elementwise.hpp"
#include "stdlib/spec/functions.hpp"
#include "tests/catch.hpp"
#include "tests/device.hpp"
#include "tests/differential/stdlib/quantised_fused.hpp"
#include "tests/message.hpp"

namespace ikat::test {
namespace {

using stdlib::Activations, stdlib::gate_up_swiglu;

/// silu(gate) up by the library, in f32.
std::vector<float> wanted_swiglu(const runtime::Device& device, const std::vector<float>& gate,
                                 const std::vector<float>& up) {
    auto y = device.buffer<float>(gate.size(), "wanted");
    stdlib::elementwise(device, stdlib::Binary::fused_swiglu, device.upload(gate, "gate"), device.upload(up, "up"), y);
    return y.download();
}

/// A pair of matrices, which have other numbers.
struct Pair {
    ProductWeights gate, up;
    /// Rows of the gate begin at byte `first`, and have gaps.
    Pair(const runtime::Device& device, Quantised of_gate, Quantised of_up, std::uint64_t rows, std::uint64_t columns,
         std::uint32_t gap = 0, std::uint32_t first = 0, std::uint32_t first_of_up = 0, std::uint32_t gap_of_up = 0)
        : gate(device, of_gate, rows, columns, gap, first, 7),
          up(device, of_up, rows, columns, gap_of_up, first_of_up, 8) {}
    /// Of one format, with rows at multiples of 16 bytes.
    static Pair aligned(const runtime::Device& device, Quantised format, std::uint64_t rows, std::uint64_t columns,
                        std::uint32_t more) {
        const std::uint64_t blocks = columns / stdlib::weights_of(format);
        std::uint32_t gap = 0;
        while ((blocks + gap) * stdlib::bytes_of(format) % 16 != 0) ++gap;
        return Pair(device, format, format, rows, columns, gap + 16 * more, 16 * more, 32, gap);
    }
};

template <class X, class Y>
void check_swiglu(const runtime::Device& device, const Pair& weights, std::uint64_t tokens, Activations activations,
                  Place place) {
    INFO("formats " << int(weights.gate.format()) << " and " << int(weights.up.format()) << ", " << weights.gate.rows()
                    << " x " << weights.gate.columns() << ", " << tokens << " tokens, activations " << int(activations)
                    << ", place " << int(place));
    const Placed<X> x(device, place, {tokens, weights.gate.columns()}, 1);
    const Placed<Y> y(device, place, {tokens, weights.gate.rows()}, 2);
    gate_up_swiglu(device, weights.gate.view(), weights.up.view(), x, y, {.activations = activations});
    const std::vector<float> want = wanted_swiglu(device, product_of(device, weights.gate, x, activations),
                                                  product_of(device, weights.up, x, activations));
    CHECK(different_elements(y.exact(), want) == 0);
    CHECK(y.changed_gaps() == 0);
}

/// The bound of fused.hpp.
template <class X, class Y>
void check_bound(const runtime::Device& device, const Pair& weights, std::uint64_t tokens, Place place) {
    const std::uint64_t rows = weights.gate.rows(), columns = weights.gate.columns();
    INFO(rows << " x " << columns << ", " << tokens << " tokens, place " << int(place));
    const Placed<X> x(device, place, {tokens, columns}, 1);
    const Placed<Y> y(device, place, {tokens, rows}, 2);
    gate_up_swiglu(device, weights.gate.view(), weights.up.view(), x, y);
    CHECK(y.changed_gaps() == 0);
    const std::vector<float> of_x = x.elements(), got = y.elements();
    const double rounding = std::is_same_v<X, float> ? 0x1p-11 : 0;
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < got.size(); ++i) {
        const std::span<const float> token = std::span(of_x).subspan(i / rows * columns, columns);
        const BoundedSum g = bounded_sum(weights.gate, i % rows, token, tokens > 8, rounding),
                         u = bounded_sum(weights.up, i % rows, token, tokens > 8, rounding);
        const double gate = g.sum / (1 + std::exp(-g.sum)), want = gate * u.sum, b = u.bound, up = std::abs(u.sum) + b;
        const double bound = 1.1 * g.bound * up + std::abs(gate) * b + 0x1p-21 * (std::abs(gate) + 1.1 * g.bound) * up;
        const bool may_overflow = std::is_same_v<Y, half> && std::abs(want) + bound >= 65520;
        if (may_overflow && std::isinf(got[i])) continue;
        wrong += !(std::abs(got[i] - want) <=
                   bound + (std::abs(want) + bound) * rounding_of<Y> + double(std::numeric_limits<float>::min()));
    }
    CHECK(wrong == 0);
}

}  // namespace

TEST_CASE("gate_up_swiglu of all formats") {
    const runtime::Device device = open_device();
    const std::vector<Quantised> formats = quantised_formats();
    for (std::size_t i = 0; i < formats.size(); ++i) {
        const Quantised gate = formats[i], up = formats[(i + 4) % formats.size()];
        const std::uint64_t columns = std::max(columns_of(gate)[0], columns_of(up)[0]);
        for (const Activations activations : both) {
            check_swiglu<float, float>(device, Pair(device, gate, gate, 5, 1024 + columns), 2, activations, packed);
            check_swiglu<float, half>(device, Pair(device, gate, up, 4, 3 * columns, 1, 2, 4), 1, activations, odd);
            check_swiglu<half, float>(device, Pair(device, up, gate, 3, columns, 0, 0, 6), 8, activations, aligned);
        }
    }
}

TEST_CASE("gate_up_swiglu of all numbers of tokens and rows, types and places") {
    const runtime::Device device = open_device();
    for (const Activations activations : both) {
        const Pair weights(device, Quantised::Q4_K, Quantised::Q6_K, 5, 512, 1, 2);
        for (const std::uint32_t tokens : {1u, 2u, 3u, 7u, 8u, 9u, 17u})
            check_swiglu<float, float>(device, weights, tokens, activations, packed);
        for (const std::uint32_t rows : {1u, 3u, 4u, 5u, 8u, 9u})
            check_swiglu<float, float>(device, Pair(device, Quantised::Q8_0, Quantised::Q5_1, rows, 96), 3, activations,
                                       odd);
        for (const Place place : {packed, aligned, odd}) {
            check_swiglu<bfloat16, bfloat16>(device, weights, 2, activations, place);
            check_swiglu<half, half>(device, weights, 1, activations, place);
            check_swiglu<bfloat16, float>(device, weights, 1, activations, place);
        }
    }
}

TEST_CASE("gate_up_swiglu of many tokens and one format is one product") {
    const runtime::Device device = open_device(), races = open_device({.check = "races", .schedules = 2});
    for (const Activations activations : both) {
        for (const Quantised format : quantised_formats()) {
            const Extents columns = columns_of(format);
            check_swiglu<float, float>(device, Pair::aligned(device, format, 9, columns[2], 0), 9, activations, packed);
            check_swiglu<half, half>(device, Pair::aligned(device, format, 5, columns[1], 1), 17, activations, odd);
            check_swiglu<half, half>(device, Pair(device, format, format, 3, columns[0], 0, 0, 34), 9, activations,
                                     packed);
            check_swiglu<float, bfloat16>(device, Pair(device, format, format, 18, columns[2], 1, 2, 6, 3), 9,
                                          activations, odd);
        }
        for (const Quantised format : {Quantised::Q4_0, Quantised::Q6_K, Quantised::MXFP4}) {
            const std::uint64_t columns = columns_of(format)[1];
            for (const std::uint32_t rows : {1u, 15u, 16u, 17u, 63u, 65u})
                check_swiglu<bfloat16, float>(device, Pair::aligned(device, format, rows, columns, 0), 10, activations,
                                              packed);
            for (const std::uint32_t tokens : {31u, 33u, 65u})
                check_swiglu<float, bfloat16>(device, Pair::aligned(device, format, 7, columns, 1), tokens, activations,
                                              aligned);
        }
        check_swiglu<half, float>(races, Pair::aligned(races, Quantised::Q4_K, 17, 1280, 1), 10, activations, packed);
        check_swiglu<half, float>(races, Pair(races, Quantised::MXFP4, Quantised::MXFP4, 17, 320), 10, activations,
                                  packed);
    }
}

TEST_CASE("gate_up_swiglu of many tokens: its kernels") {
    const auto plan = runtime::Device::open({.device = "emulator", .is_plan = true});
    const auto kernels = [&](std::uint64_t rows, std::uint64_t columns, std::uint64_t tokens, Activations activations,
                             Quantised of_up = Quantised::Q4_K) {
        const auto w = plan.buffer<std::uint8_t>(rows * columns / 256 * 210, "w");
        const auto x = plan.buffer<half>(tokens * columns, "x");
        auto y = plan.buffer<float>(tokens * rows, "y");
        const TensorView Wg = stdlib::quantised_view(w, Quantised::Q4_K, {rows, columns}),
                         Wu = stdlib::quantised_view(w, of_up, {rows, columns});
        return launched(plan, [&](const stdlib::Queue& queue) {
            gate_up_swiglu(queue, Wg, Wu, x.view(tokens, columns), y.view(tokens, rows), {.activations = activations});
        });
    };
    using Names = std::vector<std::string>;
    // Twenty slices, and tiles enough for no parts; then parts, of two products.
    CHECK(kernels(64 * 129, 20 * 256, 20, Activations::exact) ==
          Names{"arrange_tokens_f16_sums_16", "gate_up_swiglu_q4_k_f32_tokens_32_tensor_core"});
    CHECK(kernels(64 * 129, 20 * 256, 20, Activations::q8_1) ==
          Names{"quantise_q8_1_pitched_f16", "gate_up_swiglu_q4_k_q8_1_f32_tokens_32_tensor_core"});
    CHECK(kernels(64, 20 * 256, 20, Activations::exact)[1] == "gemm_q4_k_f32_tokens_32_tensor_core");
    // Of the last group, with one token, the kernels are those of all.
    const std::string of_gate = "gemm_q4_k_f32_tokens_", of_up = "gemm_q6_k_f32_tokens_";
    CHECK(kernels(1 << 17, 256, 65, Activations::exact, Quantised::Q6_K) ==
          Names{"arrange_tokens_f16_sums_16", of_gate + "64_tensor_core", of_up + "64_tensor_core", "fused_swiglu",
                "arrange_tokens_f16_sums_16", of_gate + "16_tensor_core", of_up + "16_tensor_core", "fused_swiglu"});
}

TEST_CASE("gate_up_swiglu is within the bound") {
    const runtime::Device device = open_device();
    for (const Place place : {packed, odd})
        for (const std::uint32_t rows : {3u, 4u, 5u}) {
            const Pair weights(device, Quantised::Q4_K, Quantised::Q6_K, rows, 1280, 1, 2);
            for (const std::uint32_t tokens : {1u, 2u, 7u, 8u, 9u, 33u}) {
                check_bound<float, float>(device, weights, tokens, place);
                if (rows != 4) continue;
                check_bound<half, half>(device, weights, tokens, place);
                check_bound<bfloat16, bfloat16>(device, weights, tokens, place);
            }
        }
    const Pair weights(device, Quantised::Q4_0, Quantised::Q4_0, 129, 64);
    check_bound<float, half>(device, weights, 9, odd);
    check_bound<half, float>(device, weights, 3, odd);
}

TEST_CASE("gate_up_swiglu of special scales and activations") {
    const std::uint16_t special[] = {0x0000, 0x8000, 0x0001, 0x83ff, 0x7bff, 0x7c00, 0xfc00, 0x7e00};
    const runtime::Device device = open_device();
    for (const Quantised format : {Quantised::Q4_0, Quantised::Q4_K, Quantised::Q2_K, Quantised::MXFP4})
        for (const Activations activations : both)
            for (const bool is_gate : {true, false}) {
                Pair weights(device, format, format, std::size(special), columns_of(format)[1]);
                (is_gate ? weights.gate : weights.up).set_scales(special);
                check_swiglu<float, float>(device, weights, 2, activations, packed);
            }
    const Pair weights(device, Quantised::Q8_0, Quantised::Q8_0, 2, 64);
    Placed<float> x(device, packed, {4, 64}, 1);
    const Placed<float> y(device, packed, {4, 2}, 2);
    std::vector<float> numbers = x.elements();
    numbers[5] = std::numeric_limits<float>::quiet_NaN(), numbers[64 + 40] = std::numeric_limits<float>::infinity();
    numbers[128 + 3] = 3e38f;
    x.set(numbers);
    gate_up_swiglu(device, weights.gate.view(), weights.up.view(), x, y);
    const auto want = wanted_swiglu(device, product_of(device, weights.gate, x, Activations::exact),
                                    product_of(device, weights.up, x, Activations::exact));
    CHECK(different_elements(y.exact(), want) == 0);
    CHECK((std::isnan(want[0]) && std::isfinite(want[6])));
}

TEST_CASE("gate_up_swiglu of nothing") {
    const runtime::Device device = open_device();
    const Pair weights(device, Quantised::Q4_0, Quantised::Q4_0, 3, 64);
    const auto x = device.upload(std::vector<float>(128, 1), "x");
    auto y = device.upload(std::vector<float>(6, -1), "y");
    const auto view = [&](std::uint64_t rows, std::uint64_t columns) {
        return stdlib::quantised_view(weights.gate.buffer(), Quantised::Q4_0, {rows, columns});
    };
    for (const Activations activations : both) {
        const stdlib::FusedProductOptions options{.activations = activations};
        gate_up_swiglu(device, view(3, 64), view(3, 64), x.view(0, 64), y.view(0, 3), options);
        gate_up_swiglu(device, view(0, 64), view(0, 64), x.view(2, 64), y.view(2, 0), options);
        CHECK(y.download() == std::vector<float>(6, -1));
        gate_up_swiglu(device, view(3, 0), view(3, 0), x.view(2, 0), y.view(2, 3), options);
        CHECK(y.download() == std::vector<float>(6, 0));
        y.upload(std::vector<float>(6, -1));
    }
}

TEST_CASE("gate_up_swiglu in all orders of warps") {
    const runtime::Device device = open_device({.threads = 1, .check = "races", .schedules = 4});
    for (const Activations activations : both) {
        check_swiglu<float, float>(device, Pair(device, Quantised::Q4_K, Quantised::Q5_0, 5, 1280, 0, 2), 3,
                                   activations, odd);
        check_swiglu<half, half>(device, Pair(device, Quantised::MXFP4, Quantised::Q6_K, 5, 1280), 1, activations,
                                 packed);
    }
}

TEST_CASE("gate_up_swiglu is one launch for a few tokens and needs the workspace that it says") {
    const runtime::Device device = open_device();
    const Pair weights(device, Quantised::Q4_0, Quantised::Q5_0, 5, 96);
    const auto check = [&]<class Y>(std::uint64_t tokens, Activations activations, std::uint64_t bytes,
                                    const std::vector<std::string>& kernels, const Y&) {
        INFO(tokens << " tokens, activations " << int(activations));
        const Placed<float> x(device, odd, {tokens, 96}, 1);
        Placed<Y> y(device, odd, {tokens, 5}, 2);
        stdlib::FusedProductOptions options{.activations = activations};
        const auto call = [&](const stdlib::Queue& queue) {
            gate_up_swiglu(queue, weights.gate.view(), weights.up.view(), x, y, options);
        };
        CHECK(stdlib::gate_up_swiglu_workspace(device, weights.gate.view(), weights.up.view(), x, y, options) == bytes);
        call(device);
        const auto want = y.elements();
        auto workspace = device.buffer<std::uint8_t>(std::max<std::uint64_t>(bytes, 16), "workspace");
        if (bytes != 0) options.workspace = workspace.slice(0, bytes);
        y.set(std::vector<float>(want.size(), -1));
        const runtime::Stream stream = device.stream();
        call(stream);
        stream.synchronize();
        CHECK(y.elements() == want);
        CHECK(launched(device, call) == kernels);
        if (bytes == 0) return;
        options.workspace = workspace.slice(0, bytes - 1);
        CHECK(tests::message_of([&] { call(device); }).contains("gate_up_swiglu: 'workspace' has "));
    };
    check(8, Activations::exact, 0, {"gate_up_swiglu_q4_0_q5_0_f32_f32_tokens_8"}, 0.0f);
    check(17, Activations::q8_1, 2 * 352 + 17 * 28 * 4,
          {"quantise_q8_1_pitched", "gemm_q4_0_q8_1_f32_tokens_32_tensor_core",
           "gemm_q5_0_q8_1_f32_tokens_32_tensor_core", "fused_swiglu_pitched"},
          0.0f);
    const std::uint64_t of_gemm = 17 * 256 * 2 + 80;
    const std::vector<std::string> products{"arrange_tokens_f32", "gemm_q4_0_f32_tokens_32_tensor_core",
                                            "gemm_q5_0_f32_tokens_32_tensor_core"};
    auto with = [&](std::initializer_list<std::string> more) {
        std::vector<std::string> out = products;
        out.insert(out.end(), more);
        return out;
    };
    check(17, Activations::exact, 2 * 352 + of_gemm, with({"fused_swiglu_pitched"}), 0.0f);
    check(17, Activations::exact, 3 * 352 + of_gemm, with({"fused_swiglu", "cast_f32_f16_pitched"}), half());
}

TEST_CASE("gate_up_swiglu takes many tokens in groups of whole tiles") {
    const runtime::Device device = runtime::Device::open({.device = "emulator", .is_plan = true});
    const std::uint64_t rows = 100000, columns = 64, tokens = 150;
    const auto w = device.buffer<std::uint8_t>(rows * columns / 32 * 22, "w");
    const auto x = device.buffer<half>(tokens * columns, "x");
    auto y = device.buffer<half>(tokens * rows, "y");
    const TensorView W = stdlib::quantised_view(w, Quantised::Q4_0, {rows, columns}),
                     Wu = stdlib::quantised_view(w, Quantised::Q5_0, {rows, columns});
    const auto X = x.view(tokens, columns);
    const auto Y = y.view(tokens, rows);
    // Three buffers of 64 tokens, and what gemm() needs for these.
    CHECK(stdlib::gate_up_swiglu_workspace(device, W, Wu, X, Y) == 3 * 64 * rows * 4 + 64 * 256 * 2 + 64 * 4);
    const runtime::Recorder recorder(device, runtime::Recorder::Runs::No);
    gate_up_swiglu(recorder, W, Wu, X, Y);
    std::vector<std::uint64_t> of_x, of_y;
    for (const auto& launch : recorder.launches()) {
        const std::string_view name = launch.kernel->name();
        if (name.starts_with("arrange")) of_x.push_back(launch.arguments[0].part.offset);
        if (name.starts_with("cast")) of_y.push_back(launch.arguments[1].part.offset);
    }
    const std::uint64_t of_group = 64 * columns * 2, of_result = 64 * rows * 2;
    CHECK(of_x == std::vector<std::uint64_t>{0, of_group, 2 * of_group});
    CHECK(of_y == std::vector<std::uint64_t>{0, of_result, 2 * of_result});
}

TEST_CASE("gate_up_swiglu of operands that do not fit") {
    const runtime::Device device = open_device();
    const Pair weights(device, Quantised::Q4_0, Quantised::Q4_0, 4, 64);
    const TensorView W = weights.gate.view();
    auto x = device.buffer<float>(256, "x"), y = device.buffer<float>(64, "y");
    const auto says = [&](const TensorView& Wg, const TensorView& Wu, const MutableTensorView& Y, const char* text,
                          Activations activations = Activations::exact) {
        INFO(text);
        CHECK(tests::message_of([&] {
                  gate_up_swiglu(device, Wg, Wu, x.view(2, 64), Y, {.activations = activations});
              }).contains(text));
    };
    says(W, x.view(4, 64), y.view(2, 4), "gate_up_swiglu: Wu has elements of f32\n  hint: it has quantised weights");
    says(W, stdlib::quantised_view(weights.up.buffer(), Quantised::Q4_0, {3, 64}), y.view(2, 4),
         "gate_up_swiglu: 'Wu' is 3 x 64, and 'Y' is 2 x 4: the rows differ\n"
         "  hint: Wu is rows x columns, X is tokens x columns, and Y is tokens x rows");
    says(W, W, y.view(4, 2), "gate_up_swiglu: 'Wg' is 4 x 64, and 'Y' is 4 x 2: the rows differ");
    says(W, W, x.view(2, 4), "gate_up_swiglu: 'X' (read) and 'Y' (written) are the same memory");
    says(W, W, y.view(2, 4), "gate_up_swiglu: 'activations' is 7, which is not an enumerator", Activations(7));
}

TEST_CASE("gate_up_swiglu by name") {
    const runtime::Device device = open_device();
    const stdlib::NamedFunction* const function = stdlib::find_function("gate_up_swiglu_q4_k_q6_k");
    REQUIRE(function);
    CHECK(stdlib::find_function("q4k_ffn_swiglu") == stdlib::find_function("gate_up_swiglu_q4_k"));
    const Pair weights(device, Quantised::Q4_K, Quantised::Q6_K, 4, 512);
    const Placed<half> x(device, packed, {2, 512}, 1), y(device, packed, {2, 4}, 2), want(device, packed, {2, 4}, 3);
    for (const char* const activations : {"exact", "q8_1"}) {
        stdlib::FunctionSettings settings;
        settings.set("activations", activations);
        const std::vector<MutableTensorView> arrays{MutableTensorView(weights.gate.view()),
                                                    MutableTensorView(weights.up.view()), x, y};
        function->run(device, arrays, settings);
        gate_up_swiglu(device, weights.gate.view(), weights.up.view(), x, want,
                       {.activations = Activations(*activations == 'q')});
        CHECK(y.elements() == want.elements());
    }
}

}  // namespace ikat::test
