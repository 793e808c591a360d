// SPDX-License-Identifier: Apache-2.0
// Functions by their names compute what the names say: products and attention against plain loops.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <random>

#include "stdlib/gemm/tensor_kernels.hpp"
#include "stdlib/spec/functions.hpp"
#include "tests/catch.hpp"
#include "tests/device.hpp"
#include "tests/message.hpp"

namespace ikat::tests {
namespace {

using stdlib::NamedFunction;
using Shape = std::vector<std::uint64_t>;

/// Numbers as an array of the function holds them, and as doubles.
struct Numbers {
    std::vector<std::uint8_t> bytes;
    std::vector<double> values;
};

template <class T>
void append(Numbers& to, double value) {
    const T element = T(float(value));
    const auto* first = reinterpret_cast<const std::uint8_t*>(&element);
    to.bytes.insert(to.bytes.end(), first, first + sizeof(T));
    to.values.push_back(value);
}
void append(Numbers& to, ir::Type type, double value) {
    if (type == ir::Type::F16) return append<half>(to, value);
    if (type == ir::Type::BF16) return append<bfloat16>(to, value);
    if (type == ir::Type::I8) return append<std::int8_t>(to, value);
    if (type == ir::Type::I32) return append<std::int32_t>(to, value);
    if (type == ir::Type::U32) return append<std::uint32_t>(to, value);
    append<float>(to, value);
}

template <class T>
std::vector<double> read(const std::vector<std::uint8_t>& bytes) {
    std::vector<T> elements(bytes.size() / sizeof(T));
    std::memcpy(elements.data(), bytes.data(), bytes.size());
    return {elements.begin(), elements.end()};
}
/// The bytes of an array whose rows follow each other, with pitches; 0xff between rows: NaN.
std::vector<std::uint8_t> spread(const std::vector<std::uint8_t>& bytes, const Shape& shape, const Shape& pitches,
                                 std::size_t element, bool is_back = false) {
    const std::size_t row = shape.back() * element;
    std::vector<std::uint8_t> out(is_back ? bytes.size() : runtime::view_size(shape, pitches) * element, 0xff);
    std::size_t rows = 1;
    for (std::size_t d = 0; d + 1 < shape.size(); ++d) rows *= shape[d];
    for (std::size_t i = 0; i < rows; ++i) {
        std::size_t at = 0, rest = i;
        for (std::size_t d = shape.size() - 1; d-- > 0; rest /= shape[d]) at += rest % shape[d] * pitches[d] * element;
        std::memcpy(&out[is_back ? i * row : at], &bytes[is_back ? at : i * row], row);
    }
    if (is_back) out.resize(rows * row);
    return out;
}

std::vector<double> read(const std::vector<std::uint8_t>& bytes, ir::Type type) {
    if (type == ir::Type::F16) return read<half>(bytes);
    if (type == ir::Type::BF16) return read<bfloat16>(bytes);
    return type == ir::Type::I32 ? read<std::int32_t>(bytes) : read<float>(bytes);
}

/// What the function makes of inputs by their names, for these extents.
class Called {
public:
    Called(const std::string& name, const stdlib::NamedExtents& extents, std::span<const double> choices,
           const stdlib::FunctionSettings& settings = {}, const std::map<std::string, std::vector<double>>& words = {})
        : function(stdlib::find_function(name)) {
        REQUIRE(function);
        const runtime::Device device = test::open_device();
        std::vector<runtime::Buffer<std::uint8_t>> buffers;
        buffers.reserve(function->arrays.size());
        std::vector<runtime::MutableTensorView> given;
        std::mt19937 random(7);
        for (const NamedFunction::Array& array : function->arrays) {
            const Shape shape = function->shape(array, extents);
            std::size_t count = 1;
            for (const std::uint64_t extent : shape) count *= extent;
            Numbers& numbers = arrays[std::string(array.name)];
            const auto said = words.find(std::string(array.name));
            for (std::size_t i = 0; i < count; ++i)
                append(numbers, array.type,
                       said != words.end()  ? said->second.at(i)
                       : array.is_written() ? -77
                                            : choices[random() % choices.size()]);
            const Shape pitches = function->pitches(array, shape, settings);
            if (!pitches.empty()) numbers.bytes = spread(numbers.bytes, shape, pitches, ir::info(array.type).bytes);
            buffers.push_back(device.upload(numbers.bytes, array.name));
            given.emplace_back(runtime::TensorView(array.type, buffers.back().memory().whole(), shape, pitches));
        }
        function->run(device, given, settings);
        for (std::size_t i = 0; i < buffers.size(); ++i) {
            const NamedFunction::Array& array = function->arrays[i];
            if (!array.is_written()) continue;
            std::vector<std::uint8_t> bytes = buffers[i].download();
            const runtime::MutableTensorView& view = given[i];
            if (const std::size_t rank = view.rank; rank > 1)
                bytes =
                    spread(bytes, {view.extents.begin(), view.extents.begin() + rank},
                           {view.strides.begin(), view.strides.begin() + rank - 1}, ir::info(array.type).bytes, true);
            arrays[std::string(array.name)].values = read(bytes, array.type);
        }
    }
    const std::vector<double>& operator[](const std::string& array) const { return arrays.at(array).values; }
    bool has(const std::string& array) const { return arrays.contains(array); }

    const NamedFunction* function;
    std::map<std::string, Numbers> arrays{};
};

double activated(const std::string& name, double x) {
    if (name.contains("_relu")) return std::max(x, 0.0);
    if (name.contains("_gelu_tanh")) return x / 2 * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
    if (name.contains("_gelu")) return x / 2 * (1 + std::erf(x / std::sqrt(2.0)));
    return name.contains("_silu") ? x / (1 + std::exp(-x)) : x;
}

/// Whole numbers, so that only activations round.
void check_product(const std::string& name, const stdlib::FunctionSettings& settings = {}) {
    INFO(name);
    const std::uint64_t planes = 2, m = 19, n = 24, k = 40;
    const double whole[] = {-1, 0, 1, 2};
    const Called made(name, {{"planes", planes}, {"m", m}, {"n", n}, {"k", k}}, whole, settings);
    const bool a_by_columns = name.contains("_tn") || name.contains("_tt");
    const bool b_by_columns = name.contains("_nt") || name.contains("_tt");
    const std::vector<double>&A = made["A"], &B = made["B"], &C = made["C"];
    double worst = 0;
    for (std::uint64_t p = 0; p < planes; ++p)
        for (std::uint64_t i = 0; i < m; ++i)
            for (std::uint64_t j = 0; j < n; ++j) {
                double sum = 0;
                for (std::uint64_t e = 0; e < k; ++e)
                    sum += A[p * m * k + (a_by_columns ? e * m + i : i * k + e)] *
                           B[p * k * n + (b_by_columns ? j * k + e : e * n + j)];
                if (made.has("bias")) sum += made["bias"][j];
                sum = activated(name, sum);
                const std::uint64_t at = (p * m + i) * n + j;
                if (made.has("residual")) sum += made["residual"][at];
                worst = std::max(worst, std::abs(C[at] - sum) / std::max(std::abs(sum), 1.0));
            }
    const bool is_exact = !name.contains("_gelu") && !name.contains("_silu");
    CHECK(worst <= (is_exact ? 0 : 0x1p-20));
}

TEST_CASE("functions: products of all types and orders") {
    for (const char* type : {"f16", "f16_f32", "bf16", "bf16_f32", "tf32", "s8"})
        for (const char* orders : {"", "_nt", "_tn", "_tt"})
            check_product(std::string("gemm_tensor_core_") + type + orders);
}

TEST_CASE("functions: what is done with a product") {
    for (const char* name : {"f16_bias", "bf16_nt_relu", "s8_bias_relu", "f16_nt_residual", "bf16_bias_relu_residual",
                             "tf32_gelu", "tf32_nt_gelu_tanh", "tf32_bias_silu_residual", "s8_nt_bias_residual",
                             "f16_f32_nt_bias_relu_residual", "bf16_f32_bias_gelu"})
        check_product(std::string("gemm_tensor_core_") + name);
}

TEST_CASE("functions: products of matrices with pitches") {
    stdlib::FunctionSettings settings;
    for (const auto& [name, pitch] : {std::pair("A_pitch", "43"), {"B_pitch", "48"}, {"C_pitch", "25"}})
        settings.set(name, pitch);
    check_product("gemm_tensor_core_f16_nt", settings);
    settings.set("residual_pitch", "27");
    check_product("gemm_tensor_core_tf32_bias_residual", settings);
}

void check_attention(const std::string& name, const stdlib::FunctionSettings& settings = {}) {
    INFO(name);
    const std::uint64_t sequences = 2, heads = 4, kv_heads = 2, queries = 5, keys = 70, dim = 64;
    const double choices[] = {-1, -0.5, 0, 0.25, 1};
    const Called made(name,
                      {{"sequences", sequences},
                       {"heads", heads},
                       {"kv_heads", kv_heads},
                       {"queries", queries},
                       {"keys", keys},
                       {"head_dim", dim},
                       {"bias_heads", heads}},
                      choices, settings);
    // Where row `row` of a head of `heads` begins, of `rows`.
    const auto at = [&](std::uint64_t sequence, std::uint64_t head, std::uint64_t heads, std::uint64_t row,
                        std::uint64_t rows) {
        const bool is_in_rows = name.contains("_heads_in_rows");
        return (is_in_rows ? (sequence * rows + row) * heads + head : (sequence * heads + head) * rows + row) * dim;
    };
    const bool is_causal = name.contains("_causal");
    double worst = 0, worst_log = 0;
    for (std::uint64_t head = 0; head < sequences * heads; ++head)
        for (std::uint64_t i = 0; i < queries; ++i) {
            const std::uint64_t sequence = head / heads, of_sequence = head % heads, query = head * queries + i;
            const std::uint64_t q = at(sequence, of_sequence, heads, i, queries);
            std::vector<double> wanted(dim);
            double total = made.has("sinks") ? std::exp(made["sinks"][of_sequence]) : 0;
            for (std::uint64_t j = 0; j < (is_causal ? i + keys - queries + 1 : keys); ++j) {
                const std::uint64_t k = at(sequence, of_sequence / 2, kv_heads, j, keys);
                double score = 0;
                for (std::uint64_t e = 0; e < dim; ++e) score += made["Q"][q + e] * made["K"][k + e];
                score /= 8;
                if (made.has("bias")) score += made["bias"][(head % heads * queries + i) * keys + j];
                total += std::exp(score);
                for (std::uint64_t e = 0; e < dim; ++e) wanted[e] += std::exp(score) * made["V"][k + e];
            }
            for (std::uint64_t e = 0; e < dim; ++e)
                worst = std::max(worst, std::abs(made["O"][q + e] - wanted[e] / total));
            if (made.has("log_sum"))
                worst_log = std::max(worst_log, std::abs(made["log_sum"][query] - std::log(total)));
        }
    // Weights are rounded, and O, whose elements are at most 1.
    CHECK(worst <= (name.ends_with("_bf16") ? 0x1p-7 : name.ends_with("_f16") ? 0x1p-10 : 0x1p-18));
    CHECK(worst_log <= 0x1p-15);
}

TEST_CASE("functions: attention") {
    for (const char* name :
         {"f16", "causal_f16", "bias_f16", "causal_log_sum_f16", "causal_bias_log_sum_f16", "bf16", "causal_bf16",
          "log_sum_bf16", "causal_bias_f32", "sinks_f16", "causal_bias_sinks_log_sum_f32"})
        check_attention(std::string("flash_attention_") + name);
}

TEST_CASE("functions: attention of heads in rows") {
    for (const char* name : {"f16", "causal_bias_log_sum_bf16"})
        check_attention(std::string("flash_attention_heads_in_rows_") + name);
    stdlib::FunctionSettings settings;
    for (const auto& [name, pitch] :
         {std::pair("Q_pitch", "264"), {"K_pitch", "129"}, {"V_pitch", "130"}, {"O_pitch", "257"}})
        settings.set(name, pitch);
    check_attention("flash_attention_heads_in_rows_causal_log_sum_f16", settings);
}

TEST_CASE("functions: attention with pitches") {
    stdlib::FunctionSettings settings;
    for (const char* name : {"Q_pitch", "K_pitch", "O_pitch"}) settings.set(name, "72");
    settings.set("bias_pitch", "71"), settings.set("log_sum_pitch", "6");
    check_attention("flash_attention_causal_bias_log_sum_bf16", settings);
}

/// A sequence of two queries and keys, and one of a query and four keys, all the same: each sees as many as there are.
TEST_CASE("functions: attention of sequences of different lengths") {
    for (const char* type : {"f16", "bf16", "f32"}) {
        const Called made(
            std::string("flash_attention_causal_offsets_log_sum_") + type,
            {{"heads", 1}, {"kv_heads", 1}, {"queries", 3}, {"keys", 6}, {"head_dim", 64}, {"offsets", 3}},
            std::array{0.0}, {}, {{"query_offsets", {0, 2, 3}}, {"key_offsets", {0, 2, 6}}});
        for (std::size_t i = 0; i < 3; ++i)
            CHECK(std::abs(made["log_sum"][i] - std::log(std::array{1.0, 2.0, 4.0}[i])) < 0x1p-15);
        CHECK(made["O"] == std::vector<double>(3 * 64, 0.0));
    }
}

/// The keys of two sequences, which have 37 and 9 of them, in pages of 16.
void check_incremental(const std::string& name) {
    INFO(name);
    const bool has_pages = name.contains("_pages"), has_lengths = name.contains("_lengths");
    const std::uint64_t queries = 2, heads = 2, room = 48, dim = 64, lengths[] = {37, 9}, pages[] = {4, 1, 0, 5, 2, 3};
    const double choices[] = {-1, -0.5, 0, 0.25, 1};
    const bool is_in_rows = name.contains("_heads_in_rows");
    const Called made(name,
                      {{"sequences", 2},
                       {"heads", heads},
                       {"kv_heads", 1},
                       {"queries", queries},
                       {"keys", room},
                       {"head_dim", dim},
                       {"pages", 6},
                       {"page_rows", 16},
                       {"max_pages", 3}},
                      choices, {}, {{"lengths", {37, 9}}, {"pages", {4, 1, 0, 5, 2, 3}}});
    double worst = 0;
    for (std::uint64_t query = 0; query < 2 * heads * queries; ++query) {
        const std::uint64_t sequence = query / (heads * queries), length = has_lengths ? lengths[sequence] : room;
        const std::uint64_t head = query / queries % heads, i = query % queries;
        const std::uint64_t q = is_in_rows ? ((sequence * queries + i) * heads + head) * dim : query * dim;
        const std::uint64_t seen = name.contains("_causal") ? length - queries + i + 1 : length;
        std::vector<double> wanted(dim);
        double total = made.has("sinks") ? std::exp(made["sinks"][head]) : 0;
        for (std::uint64_t j = 0; j < seen; ++j) {
            const std::uint64_t key = has_pages ? pages[sequence * 3 + j / 16] * 16 + j % 16 : sequence * room + j;
            double score = 0;
            for (std::uint64_t e = 0; e < dim; ++e) score += made["Q"][q + e] * made["K"][key * dim + e];
            total += std::exp(score / 8);
            for (std::uint64_t e = 0; e < dim; ++e) wanted[e] += std::exp(score / 8) * made["V"][key * dim + e];
        }
        for (std::uint64_t e = 0; e < dim; ++e) worst = std::max(worst, std::abs(made["O"][q + e] - wanted[e] / total));
        if (made.has("log_sum")) CHECK(std::abs(made["log_sum"][query] - std::log(total)) < 0x1p-15);
    }
    CHECK(worst <= (name.ends_with("_bf16") ? 0x1p-7 : name.ends_with("_f16") ? 0x1p-10 : 0x1p-18));
}

TEST_CASE("functions: attention to a cache") {
    for (const char* name :
         {"f16", "lengths_bf16", "causal_lengths_f32", "causal_pages_log_sum_f16", "lengths_pages_bf16",
          "causal_lengths_pages_log_sum_f32", "heads_in_rows_causal_lengths_f16", "heads_in_rows_lengths_pages_bf16",
          "sinks_f16", "causal_lengths_pages_sinks_log_sum_f32"})
        check_incremental(std::string("incremental_attention_") + name);
}

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
