// SPDX-License-Identifier: Apache-2.0
// gemm_parts() against the separate products, bit for bit, and against sums in double.
#include <cmath>
#include <deque>
#include <limits>

#include "stdlib/spec/functions.hpp"
#include "tests/catch.hpp"
#include "tests/device.hpp"
#include "tests/differential/stdlib/quantised_fused.hpp"
#include "tests/message.hpp"

namespace ikat::test {
namespace {

using stdlib::Activations, stdlib::gemm_parts, stdlib::ProductPart;

/// Several matrices with the same number of columns, each of other numbers.
struct Matrices {
    struct Shape {
        Quantised format;
        std::uint64_t rows;
    };
    std::deque<ProductWeights> all{};
    Matrices(const runtime::Device& device, const std::vector<Shape>& shapes, std::uint64_t columns,
             std::uint32_t gap = 0, std::uint32_t first = 0) {
        for (const auto& [format, rows] : shapes)
            all.emplace_back(device, format, rows, columns, gap, std::uint32_t(first * all.size()),
                             std::uint32_t(7 + all.size()));
    }
    std::uint64_t columns() const { return all[0].columns(); }
};

/// The parts are of Y, but for the last, which is of Z.
template <class X, class Y, class Z = Y>
void check_parts(const runtime::Device& device, const Matrices& weights, std::uint64_t tokens, Activations activations,
                 Place place) {
    INFO(weights.all.size() << " parts of " << weights.columns() << " columns, " << tokens << " tokens, activations "
                            << int(activations) << ", place " << int(place));
    const Placed<X> x(device, place, {tokens, weights.columns()}, 1);
    std::deque<Placed<Y>> results;
    std::vector<ProductPart> parts;
    for (std::size_t i = 0; i + 1 < weights.all.size(); ++i)
        parts.push_back(
            {weights.all[i].view(), results.emplace_back(device, place, Extents{tokens, weights.all[i].rows()}, 2)});
    const Placed<Z> last(device, place, {tokens, weights.all.back().rows()}, 2);
    parts.push_back({weights.all.back().view(), last});
    gemm_parts(device, x, parts, {.activations = activations});
    const auto check = [&](const auto& y, const ProductWeights& of) {
        CHECK(different_elements(y.exact(), product_of(device, of, x, activations)) == 0);
        CHECK(y.changed_gaps() == 0);
    };
    for (std::size_t i = 0; i < results.size(); ++i) check(results[i], weights.all[i]);
    check(last, weights.all.back());
}

}  // namespace

TEST_CASE("products of parts of all formats") {
    const runtime::Device device = open_device();
    const std::vector<Quantised> formats = quantised_formats();
    for (std::size_t i = 0; i < formats.size(); ++i) {
        const Quantised a = formats[i], b = formats[(i + 5) % formats.size()];
        for (const Activations activations : both) {
            check_parts<float, float>(device, Matrices(device, {{a, 9}, {a, 4}, {b, 5}}, 1280), 2, activations, packed);
            check_parts<float, half, float>(device, Matrices(device, {{b, 3}, {a, 8}}, 768, 1, 2), 1, activations, odd);
            check_parts<half, float>(device, Matrices(device, {{a, 8}, {b, 1}, {b, 7}}, 256), 8, activations, aligned);
        }
    }
}

TEST_CASE("products of all numbers of parts, tokens and rows, types and places") {
    const runtime::Device device = open_device();
    using enum Quantised;
    const std::vector<Matrices::Shape> shapes = {{Q4_K, 9}, {Q4_K, 1}, {Q6_K, 5}, {Q8_0, 16}, {Q5_1, 3}, {Q4_0, 17}};
    for (const Activations activations : both) {
        for (std::size_t count = 1; count <= shapes.size(); ++count)
            check_parts<float, float>(
                device, Matrices(device, {shapes.begin(), shapes.begin() + std::ptrdiff_t(count)}, 256, 1, 2), 2,
                activations, packed);
        const Matrices three(device, {{Q4_K, 9}, {Q4_K, 4}, {Q6_K, 5}}, 512);
        for (const std::uint32_t tokens : {1u, 2u, 3u, 7u, 8u, 9u, 17u})
            check_parts<float, float>(device, three, tokens, activations, packed);
        for (const std::uint32_t rows : {1u, 3u, 4u, 5u, 7u, 8u, 9u})
            for (const std::uint32_t tokens : {1u, 2u})
                check_parts<float, float>(device,
                                          Matrices(device, {{Q8_0, rows}, {Q5_1, rows + 1}, {Q4_0, 9 - rows}}, 96),
                                          tokens, activations, odd);
        for (const Place place : {packed, aligned, odd}) {
            check_parts<bfloat16, bfloat16>(device, three, 2, activations, place);
            check_parts<half, half, bfloat16>(device, three, 1, activations, place);
            check_parts<bfloat16, float, half>(device, three, 1, activations, place);
        }
    }
}

TEST_CASE("products of parts are within the bound") {
    const runtime::Device device = open_device();
    for (const std::uint32_t tokens : {2u, 33u}) {
        const Matrices weights(device, {{Quantised::Q4_K, 5}, {Quantised::Q6_K, 3}}, 768);
        const Placed<float> x(device, odd, {tokens, 768}, 1), a(device, odd, {tokens, 5}, 2),
            b(device, odd, {tokens, 3}, 3);
        gemm_parts(device, x, {{weights.all[0].view(), a}, {weights.all[1].view(), b}});
        const std::vector<float> of_x = x.elements();
        for (std::size_t part = 0; part < 2; ++part) {
            const std::vector<float> got = (part == 0 ? a : b).elements();
            const std::size_t rows = weights.all[part].rows();
            for (std::size_t i = 0; i < got.size(); ++i) {
                const auto token = std::span<const float>(of_x).subspan(i / rows * 768, 768);
                const BoundedSum want = bounded_sum(weights.all[part], i % rows, token, tokens > 8, 0x1p-11);
                CHECK(std::abs(got[i] - want.sum) <= want.bound + std::abs(want.sum) * 0x1p-24);
            }
        }
    }
}

TEST_CASE("products of parts with special scales") {
    const std::uint16_t special[] = {0x0000, 0x8000, 0x0001, 0x83ff, 0x7bff, 0x7c00, 0xfc00, 0x7e00};
    const runtime::Device device = open_device();
    for (const Activations activations : both) {
        Matrices weights(device, {{Quantised::Q4_K, 8}, {Quantised::Q5_0, 8}, {Quantised::MXFP4, 8}}, 768);
        for (ProductWeights& each : weights.all) each.set_scales(special);
        check_parts<float, float>(device, weights, 2, activations, packed);
    }
}

TEST_CASE("products of parts in all orders of warps") {
    const runtime::Device device = open_device({.threads = 1, .check = "races", .schedules = 4});
    for (const Activations activations : both) {
        const Matrices weights(device, {{Quantised::Q4_K, 9}, {Quantised::Q5_0, 4}, {Quantised::Q6_K, 3}}, 1280, 0, 2);
        check_parts<float, float>(device, weights, 3, activations, odd);
        check_parts<half, half>(device, weights, 1, activations, packed);
    }
}

TEST_CASE("products of parts are columns of one matrix") {
    const runtime::Device device = open_device();
    const Matrices weights(device, {{Quantised::Q4_K, 6}, {Quantised::Q6_K, 3}}, 512);
    for (const std::uint64_t tokens : {2u, 9u}) {
        const Placed<float> x(device, packed, {tokens, 512}, 1), q(device, packed, {tokens, 6}, 2),
            k(device, packed, {tokens, 3}, 3);
        gemm_parts(device, x, {{weights.all[0].view(), q}, {weights.all[1].view(), k}});
        const auto matrix = device.upload(std::vector<float>(tokens * 9, -1), "QK");
        const auto columns = [&](std::uint64_t first, std::uint64_t count) {
            const std::array<std::uint64_t, 2> extents{tokens, count};
            const std::uint64_t pitch = 9;
            const auto part = matrix.memory().whole().from(first * sizeof(float));
            return runtime::MutableTensorView(TensorView(ir::Type::F32, part, extents, {&pitch, 1}));
        };
        gemm_parts(device, x, {{weights.all[0].view(), columns(0, 6)}, {weights.all[1].view(), columns(6, 3)}});
        std::vector<float> want;
        for (std::uint64_t token = 0; token < tokens; ++token) {
            for (std::uint64_t i = 0; i < 6; ++i) want.push_back(q.elements()[token * 6 + i]);
            for (std::uint64_t i = 0; i < 3; ++i) want.push_back(k.elements()[token * 3 + i]);
        }
        CHECK(matrix.download() == want);
        CHECK(
            tests::message_of([&] {
                gemm_parts(device, x, {{weights.all[0].view(), columns(0, 6)}, {weights.all[1].view(), columns(5, 3)}});
            }).contains("'parts[0].Y' (written) and 'parts[1].Y' (written) are the same memory"));
    }
}

TEST_CASE("products of no parts and of nothing") {
    const runtime::Device device = open_device();
    const Matrices weights(device, {{Quantised::Q4_0, 3}, {Quantised::Q4_0, 2}}, 64);
    const auto x = device.upload(std::vector<float>(128, 1), "x");
    auto y = device.upload(std::vector<float>(6, -1), "y"), z = device.upload(std::vector<float>(4, -1), "z");
    const auto view = [&](std::size_t part, std::uint64_t rows, std::uint64_t columns) {
        return stdlib::quantised_view(weights.all[part].buffer(), Quantised::Q4_0, {rows, columns});
    };
    for (const Activations activations : both) {
        const stdlib::FusedProductOptions options{.activations = activations};
        gemm_parts(device, x.view(2, 64), {}, options);
        gemm_parts(device, x.view(0, 64), {{view(0, 3, 64), y.view(0, 3)}, {view(1, 2, 64), z.view(0, 2)}}, options);
        gemm_parts(device, x.view(2, 64), {{view(0, 0, 64), y.view(2, 0)}, {view(1, 0, 64), z.view(2, 0)}}, options);
        CHECK(y.download() == std::vector<float>(6, -1));
        gemm_parts(device, x.view(2, 0), {{view(0, 3, 0), y.view(2, 3)}, {view(1, 0, 0), z.view(2, 0)}}, options);
        CHECK(y.download() == std::vector<float>(6, 0));
        CHECK(z.download() == std::vector<float>(4, -1));
        y.upload(std::vector<float>(6, -1));
    }
}

TEST_CASE("products of parts: launches and workspace") {
    const runtime::Device device = open_device();
    using enum Quantised;
    const Matrices weights(device, {{Q4_0, 3}, {Q4_0, 5}, {Q5_0, 2}, {Q8_0, 9}, {Q8_0, 4}}, 96);
    const auto check = [&](std::uint64_t tokens, std::size_t count, Activations activations, std::uint64_t bytes,
                           const std::vector<std::string>& kernels) {
        INFO(tokens << " tokens, " << count << " parts, activations " << int(activations));
        const Placed<float> x(device, odd, {tokens, 96}, 1);
        std::deque<Placed<float>> results;
        std::vector<ProductPart> parts;
        for (std::size_t i = 0; i < count; ++i)
            parts.push_back({weights.all[i].view(),
                             results.emplace_back(device, packed, Extents{tokens, weights.all[i].rows()}, 2)});
        stdlib::FusedProductOptions options{.activations = activations};
        const auto call = [&](const stdlib::Queue& queue) { gemm_parts(queue, x, parts, options); };
        CHECK(stdlib::gemm_parts_workspace(device, x, parts, options) == bytes);
        auto workspace = device.buffer<std::uint8_t>(std::max<std::uint64_t>(bytes, 16), "workspace");
        if (bytes != 0) options.workspace = workspace.slice(0, bytes);
        const runtime::Stream stream = device.stream();
        call(stream);
        stream.synchronize();
        for (std::size_t i = 0; i < count; ++i)
            CHECK(different_elements(results[i].exact(), product_of(device, weights.all[i], x, activations)) == 0);
        CHECK(launched(device, call) == kernels);
        if (bytes == 0) return;
        options.workspace = workspace.slice(0, bytes - 1);
        CHECK(tests::message_of([&] { call(device); }).contains("gemm_parts: 'workspace' has "));
    };
    check(1, 3, Activations::exact, 0, {"gemm_parts_f32_tokens_1_q4_0_f32_q4_0_f32_q5_0_f32"});
    check(2, 5, Activations::exact, 0,
          {"gemm_parts_f32_tokens_2_q4_0_f32_q4_0_f32_q5_0_f32_q8_0_f32", "gemm_parts_f32_tokens_2_q8_0_f32"});
    check(10, 2, Activations::q8_1, 10 * 28 * 4,
          {"quantise_q8_1_pitched", "gemm_q4_0_q8_1_f32_tokens_16_tensor_core",
           "gemm_q4_0_q8_1_f32_tokens_16_tensor_core"});
    check(17, 2, Activations::exact, 17 * 256 * 2 + 80,
          {"arrange_tokens_f32", "gemm_q4_0_f32_tokens_32_tensor_core", "gemm_q4_0_f32_tokens_32_tensor_core"});
}

TEST_CASE("many tokens of products of parts are arranged once") {
    const runtime::Device device = open_device(), races = open_device({.check = "races", .schedules = 2});
    using enum Quantised;
    // Formats with sums of groups of 16, of 32, and without; columns in several parts.
    for (const Activations activations : both) {
        check_parts<float, float>(device, Matrices(device, {{Q2_K, 9}, {Q4_K, 4}, {Q6_K, 5}}, 2304, 1, 2), 9,
                                  activations, odd);
        check_parts<half, bfloat16>(device, Matrices(device, {{Q6_K, 3}, {Q5_1, 130}, {Q2_K, 17}}, 512), 33,
                                    activations, packed);
    }
    check_parts<half, half>(races, Matrices(races, {{Q5_K, 3}, {Q2_K, 5}, {Q4_1, 2}}, 768), 10, Activations::exact,
                            aligned);
    const Matrices weights(device, {{Q2_K, 3}, {Q4_K, 5}, {Q6_K, 2}, {Q5_1, 2}}, 512);
    const auto kernels = [&](std::initializer_list<std::size_t> which, Activations activations) {
        const Placed<half> x(device, packed, {20, 512}, 1);
        std::deque<Placed<float>> results;
        std::vector<ProductPart> parts;
        for (const std::size_t i : which)
            parts.push_back(
                {weights.all[i].view(), results.emplace_back(device, packed, Extents{20, weights.all[i].rows()}, 2)});
        std::vector<std::string> out = launched(
            device, [&](const stdlib::Queue& queue) { gemm_parts(queue, x, parts, {.activations = activations}); });
        std::erase_if(out, [](const std::string& name) { return name.starts_with("gemm_"); });
        return out;
    };
    using Names = std::vector<std::string>;
    CHECK(kernels({0, 1, 2, 3}, Activations::exact) == Names{"arrange_tokens_f16_sums_48"});
    CHECK(kernels({2, 3, 1}, Activations::exact) == Names{"arrange_tokens_f16_sums_16"});
    CHECK(kernels({2, 0}, Activations::exact) == Names{"arrange_tokens_f16_sums_32"});
    CHECK(kernels({2, 2}, Activations::exact) == Names{"arrange_tokens_f16"});
    CHECK(kernels({0, 1, 2, 3}, Activations::q8_1) == Names{"quantise_q8_1_pitched_f16"});
}

TEST_CASE("rows of parts that one launch does not reach") {
    const runtime::Device device = runtime::Device::open({.device = "emulator", .is_plan = true});
    const std::uint64_t rows = 100000, columns = 65536;
    const auto w = device.buffer<std::uint8_t>(rows * columns / 256 * 210, "w");
    const auto x = device.buffer<float>(columns, "x");
    auto y = device.buffer<float>(rows, "y"), z = device.buffer<float>(4, "z"), g = device.buffer<float>(rows, "g");
    const TensorView W = stdlib::quantised_view(w, Quantised::Q6_K, {rows, columns}),
                     V = stdlib::quantised_view(w, Quantised::Q4_0, {4, columns}),
                     U = stdlib::quantised_view(w, Quantised::Q4_0, {rows, columns});
    const runtime::Recorder recorder(device, runtime::Recorder::Runs::No);
    gemm_parts(recorder, x.view(1, columns), {{W, y.view(1, rows)}, {V, z.view(1, 4)}});
    stdlib::gate_up_swiglu(recorder, W, U, x.view(1, columns), g.view(1, rows));
    stdlib::rmsnorm_gemv(recorder, W, x, x, y, 1e-5f);
    std::uint64_t of_parts = 0, of_gates = 0, of_norms = 0;
    for (const auto& launch : recorder.launches()) {
        const auto& a = launch.arguments;
        const std::string_view name = launch.kernel->name();
        for (const auto& each : a) CHECK(each.part.bytes < std::uint64_t{1} << 32);
        if (name == "gemm_parts_f32_tokens_1_q6_k_f32_q6_k_f32_q4_0_f32") {
            for (const std::size_t first : {3u, 10u}) {  // the arguments of both pieces of W
                CHECK(a[first].part.offset / 16 == of_parts * columns / 256 * 210 / 16);
                CHECK(a[first + 1].part.offset == of_parts * 4);
                of_parts += a[first + 2].bits;
            }
        } else if (name.starts_with("gate")) {
            CHECK(a[1].part.offset / 16 == of_gates * columns / 32 * 18 / 16);
            CHECK(a[3].part.offset == of_gates * 4);
            of_gates += a[4].bits;
        } else {
            CHECK(a[3].part.offset == of_norms * 4);
            of_norms += a[4].bits;
        }
    }
    CHECK(of_parts == rows);
    CHECK(of_gates == rows);
    CHECK(of_norms == rows);
}

TEST_CASE("products of parts that do not fit") {
    const runtime::Device device = open_device();
    const Matrices weights(device, {{Quantised::Q4_0, 4}, {Quantised::Q4_0, 4}}, 64);
    const TensorView W = weights.all[0].view();
    auto x = device.buffer<float>(128, "x"), y = device.buffer<float>(64, "y"), z = device.buffer<float>(64, "z");
    const auto says = [&](const std::vector<ProductPart>& parts, const char* text,
                          Activations activations = Activations::exact) {
        INFO(text);
        CHECK(tests::message_of([&] {
                  gemm_parts(device, x.view(2, 64), parts, {.activations = activations});
              }).contains(text));
    };
    says({{W, y.view(2, 4)}, {x.view(2, 64), z.view(2, 2)}},
         "gemm_parts: parts[1].W has elements of f32\n  hint: it has quantised weights");
    says({{W, y.view(2, 4)}, {W, z.view(4, 2)}},
         "gemm_parts: 'parts[1].W' is 4 x 64, and 'parts[1].Y' is 4 x 2: the rows differ\n"
         "  hint: parts[1].W is rows x columns, X is tokens x columns, and parts[1].Y is tokens x rows");
    says({{W, y.view(2, 4)}, {W, y.view(2, 4)}},
         "gemm_parts: 'parts[0].Y' (written) and 'parts[1].Y' (written) are the same memory");
    says({{W, x.view(2, 4)}}, "gemm_parts: 'X' (read) and 'parts[0].Y' (written) are the same memory");
    says({{W, y.view(2, 4)}}, "gemm_parts: 'activations' is 7, which is not an enumerator", Activations(7));
}

TEST_CASE("products of parts by name") {
    const runtime::Device device = open_device();
    const stdlib::NamedFunction* const function = stdlib::find_function("qkv_q4_k_q6_k");
    REQUIRE(function);
    REQUIRE(stdlib::find_function("qkv_q4_k"));
    const Matrices weights(device, {{Quantised::Q4_K, 8}, {Quantised::Q4_K, 4}, {Quantised::Q6_K, 3}}, 512);
    const Placed<half> x(device, packed, {2, 512}, 1), q(device, packed, {2, 8}, 2), k(device, packed, {2, 4}, 3),
        v(device, packed, {2, 3}, 4);
    for (const Activations activations : both) {
        stdlib::FunctionSettings settings;
        settings.set("activations", activations == Activations::exact ? "exact" : "q8_1");
        std::vector<MutableTensorView> arrays;
        for (const ProductWeights& each : weights.all) arrays.emplace_back(each.view());
        for (const Placed<half>* each : {&x, &q, &k, &v}) arrays.push_back(*each);
        function->run(device, arrays, settings);
        CHECK(different_elements(q.exact(), product_of(device, weights.all[0], x, activations)) == 0);
        CHECK(different_elements(k.exact(), product_of(device, weights.all[1], x, activations)) == 0);
        CHECK(different_elements(v.exact(), product_of(device, weights.all[2], x, activations)) == 0);
    }
}

}  // namespace ikat::test
