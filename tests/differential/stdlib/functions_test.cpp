// SPDX-License-Identifier: Apache-2.0
// Functions by their names: settings, names, extents, pitches.
#include <algorithm>
#include <cmath>

#include "stdlib/gemm/tensor_kernels.hpp"
#include "tests/differential/stdlib/named_call.hpp"
#include "tests/message.hpp"

namespace ikat::tests {
namespace {

TEST_CASE("functions: settings") {
    stdlib::FunctionSettings settings;
    settings.set("alpha", "-2"), settings.set("beta", "3"), settings.set("parts", "2"), settings.set("tile", "medium");
    const double ones[] = {1};
    const Called product("gemm_tensor_core_f16", {{"m", 3}, {"n", 8}, {"k", 130}}, ones, settings);
    CHECK(product["C"] == std::vector<double>(24, -2 * 130 + 3 * -77));

    stdlib::FunctionSettings window;
    window.set("window_left", "3"), window.set("window_right", "1");
    const Called attention("flash_attention_log_sum_f16", {{"queries", 1}, {"keys", 9}, {"head_dim", 64}},
                           std::array{0.0}, window);
    CHECK(std::abs(attention["log_sum"][0] - std::log(4)) < 0x1p-15);
    stdlib::FunctionSettings scaled;
    scaled.set("scale", "0.5"), scaled.set("soft_cap", "4"), scaled.set("queries_of_block", "64");
    scaled.set("path", "mma_sync");
    const Called capped("flash_attention_log_sum_f16", {{"queries", 1}, {"keys", 1}, {"head_dim", 64}}, std::array{1.0},
                        scaled);
    CHECK(std::abs(capped["log_sum"][0] - 4 * std::tanh(32.0 / 4)) < 0x1p-15);
}

TEST_CASE("functions: kernels are of the target that a device is opened for") {
    const runtime::Device device = test::open_device({.target = "sm_80"});
    auto x = device.upload(std::vector<half>(64 * 64, half(1.0f)), "x");
    auto y = device.buffer<half>(256 * 256, "y");
    const std::vector<runtime::MutableTensorView> arrays{x.view(256, 16), x.view(16, 256), y.view(256, 256)};
    const NamedFunction& product = *stdlib::find_function("gemm_tensor_core_f16");
    product.run(device, arrays, {});  // by mma.sync, whatever the device is
    CHECK(y.download()[65535] == half(16.0f));
    stdlib::FunctionSettings settings;
    settings.set("path", "wgmma");
    CHECK(message_of([&] { product.run(device, arrays, settings); }).contains("opened for sm_80, not sm_90a"));
}

TEST_CASE("functions: names are those of kernels") {
    using stdlib::MatrixOrder, stdlib::find_function;
    for (const bool has_bias : {false, true})
        for (const bool has_residual : {false, true})
            for (const auto activation : {stdlib::Activation::none, stdlib::Activation::relu}) {
                stdlib::TensorKernel is{.type = ir::Type::I8, .b = MatrixOrder::Columns, .activation = activation};
                is.has_bias = has_bias, is.has_residual = has_residual;
                const auto* function = find_function(is.name());
                REQUIRE(function);
                CHECK(function->name == is.name());
                CHECK(function->arrays.size() == 3u + has_bias + has_residual);
            }
    CHECK(find_function("gemm_tensor_core_i8_nt") == find_function("gemm_tensor_core_s8_nt"));
    CHECK(find_function("gemm_tensor_core_f32_nn_bias") == find_function("gemm_tensor_core_tf32_bias"));
    CHECK(find_function("gemm_tensor_core_bf16_f32_nn_bias")->name == "gemm_tensor_core_bf16_f32_bias");
    CHECK(find_function("gemm_tensor_core_bf16_f32")->arrays.back().type == ir::Type::F32);
    CHECK(find_function("gemm_tensor_core_s8_f32") == nullptr);
    CHECK(find_function("gemm_tensor_core_s8_gelu") == nullptr);
    CHECK(find_function("gemm_tensor_core_bf16_gelu_bias") == nullptr);
}

TEST_CASE("functions: those of recipes have names of kernels and of other systems, too") {
    using stdlib::find_function;
    const auto name = [](const char* asked, std::optional<std::size_t> arrays = {}) {
        const NamedFunction* const function = find_function(asked, arrays);
        return function ? function->name : "";
    };
    CHECK(name("relu") == "relu");
    CHECK(name("relu_bf16") == "relu");
    CHECK(name("swish") == "silu");
    CHECK(name("layer_norm", 4) == "layernorm");
    CHECK(name("layer_norm", 2) == "layernorm_plain");
    CHECK(name("layer_norm", 7) == "layernorm");  // the first, whose error says what it takes
    CHECK(name("sgemm") == "gemm");
    CHECK(name("softmax_warp") == "");  // chooses no kernel
    CHECK(name("argmax_final") == "");  // takes numbers
    CHECK(std::ranges::is_sorted(stdlib::functions(), {}, &NamedFunction::name));
}

TEST_CASE("functions: extents of sizes") {
    const NamedFunction& softmax = *stdlib::find_function("softmax");
    const auto both = softmax.extents_of_sizes({{"rows", 4}, {"columns", 6}});
    CHECK(softmax.shape(softmax.arrays[1], both) == Shape{4, 6});
    CHECK(softmax.shape(softmax.arrays[1], softmax.extents_of_sizes({{"columns", 6}})) == Shape{6});
    CHECK(message_of([&] { softmax.extents_of_sizes({{"rows", 4}}); }).contains("'softmax' needs the size 'columns'"));
    CHECK(message_of([&] { softmax.extents_of_sizes({{"n", 4}}); }).contains("'softmax' has no size 'n'"));
    const NamedFunction& product = *stdlib::find_function("gemm_tensor_core_f16");
    CHECK(product.shape(product.arrays[2], product.extents_of_sizes({{"n", 5}})) == Shape{4096, 5});
    const NamedFunction& convolution = *stdlib::find_function("conv2d");
    stdlib::NamedExtents of_images;
    for (const char* size : {"batch", "channels", "height", "width", "filters", "depth"}) of_images[size] = 5;
    of_images["kernel_h"] = of_images["kernel_w"] = 3;
    stdlib::FunctionSettings settings;
    settings.set("stride_w", "2");
    const auto computed = convolution.extents_of_sizes(of_images, settings);
    CHECK(convolution.shape(convolution.arrays[2], computed) == Shape{5, 5, 3, 2});
}

TEST_CASE("functions: the nearest name") {
    const auto nearest = [](const char* name) { return stdlib::nearest_name(name); };
    CHECK(nearest("gemm_tensor_core_bf16_nt_gelu_bias") == "gemm_tensor_core_bf16_nt_bias_gelu");
    CHECK(nearest("gemm_tensor_core_fp16_nt") == "gemm_tensor_core_f16_nt");
    CHECK(nearest("gemm_tensor_core_f32_nn_bais") == "gemm_tensor_core_tf32_bias");
    CHECK(nearest("gemm_tensor_core_bf16_f32_nt_gelu_bias") == "gemm_tensor_core_bf16_f32_nt_bias_gelu");
    CHECK(nearest("gemm_tensor_core_bf16_residual_bias_relu") == "gemm_tensor_core_bf16_bias_relu_residual");
    CHECK(nearest("flash_attention_bf16_causal") == "flash_attention_causal_bf16");
    CHECK(nearest("sofmax") == "softmax");
    CHECK(nearest("gemm_tensorcore_f16") == "gemm_tensor_core_f16");
    CHECK(nearest("nothing_like_this").empty());
}

TEST_CASE("functions: extents") {
    const NamedFunction& function = *stdlib::find_function("gemm_tensor_core_f16_nt");
    using Given = std::optional<Shape>;
    const auto extents = [&](std::vector<Given> given) { return function.extents(given); };
    const auto found = extents({Shape{7, 3, 5}, Shape{7, 4, 5}, {}});
    CHECK(found == stdlib::NamedExtents{{"planes", 7}, {"m", 3}, {"n", 4}, {"k", 5}});
    CHECK(function.shape(function.arrays[2], found) == Shape{7, 3, 4});
    CHECK(function.shape(function.arrays[2], extents({Shape{3, 5}, Shape{4, 5}, {}})) == Shape{3, 4});
    CHECK(message_of([&] {
              extents({Shape{3, 5}, Shape{4, 6}, {}});
          }).contains("'B' is 4 x 6: its k is 6, and that of 'A' is 5"));
    CHECK(message_of([&] { extents({Shape{3}, Shape{4, 6}, {}}); }).contains("a shape of rank 1"));
    CHECK(message_of([&] { extents({Shape{1, 1, 3, 4}, Shape{4, 6}, {}}); }).contains("a shape of rank 4"));
    CHECK(stdlib::OperandShape("[planes] m k").text() == "[planes x] m x k");
}

TEST_CASE("functions: pitches") {
    const NamedFunction& product = *stdlib::find_function("gemm_tensor_core_f16_bias");
    stdlib::FunctionSettings settings;
    settings.set("A_pitch", "8");
    const auto pitches = [&](const NamedFunction& function, std::size_t array, const Shape& shape) {
        return function.pitches(function.arrays[array], shape, settings);
    };
    CHECK(pitches(product, 0, {3, 5}) == Shape{8});
    CHECK(pitches(product, 0, {2, 3, 5}) == Shape{24, 8});
    CHECK(pitches(product, 0, {3, 8}).empty());
    CHECK(pitches(product, 1, {3, 5}).empty());
    CHECK(message_of([&] { pitches(product, 0, {3, 9}); }).contains("'A_pitch' is 8, and a row of 'A' has 9 elements"));
    CHECK(message_of([&] { pitches(product, 0, {1u << 31, 1u << 31, 1}); }).contains("larger than any memory"));
    CHECK(product.arrays[2].pitch_setting().empty());  // a vector

    const NamedFunction& attention = *stdlib::find_function("flash_attention_heads_in_rows_f16");
    settings.set("Q_pitch", "300");
    CHECK(pitches(attention, 0, {7, 4, 64}) == Shape{300, 64});
    CHECK(pitches(attention, 0, {2, 7, 4, 64}) == Shape{2100, 300, 64});
    CHECK(message_of([&] { pitches(attention, 0, {7, 5, 64}); }).contains("a row of 'Q' has 320 elements"));
    CHECK(message_of([&] { attention.check(settings); }).contains("has no setting 'A_pitch'"));
}

}  // namespace
}  // namespace ikat::tests
