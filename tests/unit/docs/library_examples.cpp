// SPDX-License-Identifier: Apache-2.0
// The examples of docs/library.md about rows, attention and options, and those of options and types of other pages,
// compiled and run. pages_test.cpp compares the pages with this file.
#include <ikat/ikat.hpp>
#include <ikat/quantised.hpp>
#include <ikat/stdlib.hpp>

#include <cmath>
#include <vector>

#include "tests/catch.hpp"
#include "tests/message.hpp"

// clang-format off
namespace ikat::library_examples {
namespace {

using namespace ikat::stdlib;

const auto centred = kernel("centred", params("x", "gamma", "y", "rows", "columns"),
    [](In<float> x, In<float> gamma, Out<float> y, u32 rows, u32 columns) {
        with_row<WarpGroup, float, 8>(x, rows, columns, [&](const auto& row) {
            f32 sum = 0;
            row.each([&](const auto& v, const auto&) {                      // first pass: v holds f32 values of a vector
                for (const auto& element : v) sum += element;
            });
            const auto mean = value(row.group.sum(sum) / cast<f32>(columns));
            row.map(y, [&](const auto& element, const auto& weight) { return (element - mean) * weight; }, gamma);
        });
    }).require(aligned<16>("x"), aligned<16>("gamma"), aligned<16>("y"));

const auto sum_and_centre = kernel("sum_and_centre", params("x", "total", "y", "rows", "columns"),
    [](In<half> x, InOut<half> total, Out<half> y, u32 rows, u32 columns) {
        with_sum_of_rows<BlockGroup<128>, half, 4>(x, total, RowPlaces(rows, columns), [&](const auto& row) {
            f32 sum = 0;
            row.each([&](const auto& v, const auto&) {
                for (const auto& element : v) sum += element;
            });
            const auto mean = value(row.group.sum(sum) / cast<f32>(columns));
            row.map(y, [&](const auto& element) { return element - mean; });
        });
    });

TEST_CASE("docs/library.md: rows of a matrix") {
    const Device device = Device::open({.device = "emulator", .check = "strict,registers,races", .schedules = 2});
    for (const std::uint32_t columns : {1u, 100u, 101u, 1024u, 1500u}) {
        const std::uint32_t rows = 5;
        std::vector<float> host;
        for (std::uint32_t i = 0; i < rows * columns; ++i) host.push_back(float(i % columns == 0));
        const auto x = device.upload(host, "x"), gamma = device.upload(std::vector<float>(columns, 2), "gamma");
        auto y = device.buffer<float>(rows * columns, "y");
        device.launch(centred, row_grid<WarpGroup>(rows), x, gamma, y, rows, columns);
        const auto got = y.download();
        for (std::uint32_t i = 0; i < rows * columns; ++i)
            CHECK(std::abs(got[i] - 2 * (host[i] - 1 / float(columns))) < 1e-5f);
    }
    const std::uint32_t rows = 3, columns = 64;
    const auto x = device.upload(std::vector<half>(rows * columns, half(1.0f)));
    auto total = device.upload(std::vector<half>(rows * columns, half(2.0f))), y = device.buffer<half>(rows * columns);
    device.launch(sum_and_centre, row_grid<BlockGroup<128>>(rows), x, total, y, rows, columns);
    CHECK(float(total.download()[100]) == 3);
    CHECK(float(y.download()[100]) == 0);
}

// In place.
template <class F>
std::string refused(F&& f) {
    try {
        f();
    } catch (const Error& error) { return error.what(); }
    return "";
}

TEST_CASE("docs/library.md: what works in place") {
    const Device device = Device::open({.device = "emulator"});
    auto x = device.upload(std::vector<float>(256, 1));
    const auto gamma = device.upload(std::vector<float>(64, 1));
    const auto is_refused = [&](auto&& f) { return refused(f).contains("are the same memory"); };
    CHECK(is_refused([&] { elementwise(device, Unary::relu, x, x); }));
    CHECK(is_refused([&] { softmax(device, x.view(4, 64), x.view(4, 64)); }));
    CHECK(is_refused([&] { rmsnorm(device, x.view(4, 64), gamma, x.view(4, 64), 0.0f); }));
    CHECK(is_refused([&] { bias_activation(device, Activation::relu, x.view(4, 64), gamma, x.view(4, 64)); }));
    CHECK(is_refused([&] { transpose(device, x.view(16, 16), x.view(16, 16)); }));
    CHECK(is_refused([&] { copy_matrix(device, x.view(16, 16), x.view(16, 16)); }));
    CHECK(is_refused([&] { gemm(device, x.view(16, 16), gamma.view(16, 4), x.view(16, 4)); }));
    CHECK(is_refused([&] { residual_add(device, x, x); }));
    auto y = device.upload(std::vector<float>(256, 1));
    residual_add(device, x, y);
    saxpy(device, 2.0f, x, y);
    CHECK(y.download()[0] == 4);
}

TEST_CASE("docs/library.md: options in their order") {
const AttentionOptions for_flash_attention{
    .causal = false, .window_left = {}, .window_right = {}, .scale = {}, .soft_cap = 0, .bias = {}, .scores = {}, .sees = {}, .sinks = {}, .log_sum = {},
    .query_offsets = {}, .key_offsets = {}, .pages = {}, .path = AttentionPath::chosen, .queries_of_block = 0};
const IncrementalOptions for_incremental_attention{
    .lengths = {}, .pages = {}, .causal = false, .window_left = {}, .scale = {}, .soft_cap = 0, .scores = {}, .sees = {}, .sinks = {}, .log_sum = {},
    .parts = 0, .workspace = {}};
const GemmOptions for_gemm_tensor_core{
    .alpha = 1, .beta = 0, .a = MatrixOrder::Rows, .b = MatrixOrder::Rows, .activation = Activation::none, .bias = {}, .residual = {},
    .epilogue = {}, .path = GemmPath::chosen, .tile = TileSize::chosen, .schedule = GemmSchedule::chosen, .raster = Raster::grouped, .parts = 0, .workspace = {}};
    const AttentionOptions attention;
    CHECK(attention.causal == for_flash_attention.causal);
    CHECK(attention.path == for_flash_attention.path);
    CHECK(attention.soft_cap == for_flash_attention.soft_cap);
    CHECK(attention.queries_of_block == for_flash_attention.queries_of_block);
    const IncrementalOptions incremental;
    CHECK(incremental.causal == for_incremental_attention.causal);
    CHECK(incremental.soft_cap == for_incremental_attention.soft_cap);
    CHECK(incremental.parts == for_incremental_attention.parts);
    const GemmOptions gemm;
    CHECK(gemm.alpha == for_gemm_tensor_core.alpha);
    CHECK(gemm.beta == for_gemm_tensor_core.beta);
    CHECK(gemm.a == for_gemm_tensor_core.a);
    CHECK(gemm.tile == for_gemm_tensor_core.tile);
    CHECK(gemm.schedule == for_gemm_tensor_core.schedule);
}

TEST_CASE("docs/runtime.md: options in their order") {
const runtime::OpenOptions defaults{
    .device = "", .ordinal = 0, .target = "", .is_plan = false, .pool = "",
    .threads = 0, .step_budget = 0, .launch_budget = 0, .graph_rounds = 0, .schedule = "", .check = "",  // of the emulator
    .suppressions = "", .schedules = 0,
    .warnings = nullptr, .printed = nullptr, .traffic = nullptr, .coverage = nullptr, .suppressed = nullptr};
    const Device device = Device::open(defaults);
    const auto x = device.upload(std::vector<float>(2 * 3 * 4 * 8, 1));
    CHECK(x.view(2, 3, 2, 4).pitched(96, 32, 8).pitches() == std::array<std::uint64_t, 3>{96, 32, 8});
}

TEST_CASE("docs/library.md: blocks of quantised weights that the host fills") {
    const Device device = Device::open({.device = "emulator"});
    const std::uint32_t rows = 2, columns = 512;
    const auto x = device.upload(std::vector<float>(columns, 1));
    auto y = device.buffer<float>(rows, "y");
std::vector<stored::Q4_K> blocks(rows * columns / 256);
for (stored::Q4_K& block : blocks) {
    block.d = half(0.01f), block.dmin = half(0.5f);
    for (std::uint32_t part = 0; part < 8; ++part) block.scales.set(part, {.scale = 40, .minimum = 7});
    for (std::uint32_t i = 0; i < 256; ++i) block.set(i, int(i % 16));       // the weight is 0.01 x 40 q - 0.5 x 7
}
const auto w = device.upload(stored::bytes_of(blocks), "w");
gemv(device, quantised_view(w, Quantised::Q4_K, {rows, columns}), x, y);
    CHECK(std::abs(y.download()[1] - columns * (0.4f * 7.5f - 3.5f)) < 0.5f);
}

TEST_CASE("docs/library.md: quantised weights and several tokens") {
    const Device device = Device::open({.device = "emulator"});
    const std::uint32_t rows = 2, columns = 512, tokens = 3;
    const auto w = device.upload(stored::quantise(Quantised::Q4_K, std::vector<float>(rows * columns, 0.25f)));
    const auto X = device.upload(std::vector<half>(tokens * columns, half(2)));
    const auto bias = device.upload(std::vector<half>{half(0), half(64)}, "bias");
    auto Y = device.buffer<half>(tokens * rows, "Y");
const auto W = quantised_view(w, Quantised::Q4_K, {rows, columns});
gemm(device, W, X.view(tokens, columns), Y.view(tokens, rows));
gemm(device, W, X.view(tokens, columns), Y.view(tokens, rows), {.activations = Activations::q8_1});
gemm(device, W, X.view(tokens, columns), Y.view(tokens, rows),
     epilogue("biased", [](auto sum, auto at, auto bias) { return sum + bias[at.column]; }, bias));
    CHECK(std::abs(float(Y.download()[5]) - columns * 0.5f - 64) < 1);
}

TEST_CASE("docs/library.md: fused products of quantised weights") {
    const Device device = Device::open({.device = "emulator"});
    const std::uint32_t rows = 4, kv_rows = 2, hidden = 4, columns = 512, tokens = 3;
    const auto w = device.upload(stored::quantise(Quantised::Q4_K, std::vector<float>(rows * columns, 0.25f)));
    const auto W = quantised_view(w, Quantised::Q4_K, {rows, columns}), Wg = W, Wu = W, Wq = W;
    const auto Wk = quantised_view(w, Quantised::Q4_K, {kv_rows, columns}), Wv = Wk;
    const auto X = device.upload(std::vector<half>(tokens * columns, half(0.0625f))), gamma = device.upload(std::vector<half>(columns, half(2)));
    auto G = device.buffer<half>(tokens * hidden, "G"), Y = device.buffer<half>(tokens * rows, "Y"), Q = device.buffer<half>(tokens * rows, "Q");
    auto K = device.buffer<half>(tokens * kv_rows, "K"), V = device.buffer<half>(tokens * kv_rows, "V");
gate_up_swiglu(device, Wg, Wu, X.view(tokens, columns), G.view(tokens, hidden));              // G = silu(X Wg') (X Wu')
rmsnorm_gemv(device, W, X.view(tokens, columns), gamma, Y.view(tokens, rows), 1e-5f);         // Y = rmsnorm(X) W'
gemm_parts(device, X.view(tokens, columns), {{Wq, Q.view(tokens, rows)},                      // Q = X Wq', K = X Wk', V = X Wv'
                                             {Wk, K.view(tokens, kv_rows)},
                                             {Wv, V.view(tokens, kv_rows)}},
           {.activations = Activations::q8_1});
    CHECK(std::abs(float(G.download()[11]) - 64) < 1);
    CHECK(std::abs(float(Y.download()[11]) - 256) < 1);
    CHECK(std::abs(float(Q.download()[11]) - 8) < 0.1f);
    CHECK(std::abs(float(V.download()[5]) - 8) < 0.1f);
}

TEST_CASE("docs/library.md: floats that the device quantises") {
    const Device device = Device::open({.device = "emulator"});
    const std::uint32_t rows = 2, columns = 64;
    const auto cache = device.upload(std::vector<half>(rows * columns, half(2)));
    auto blocks = device.buffer<std::uint8_t>(rows * columns / 32 * 34, "blocks");
quantise(device, cache.view(rows, columns), MutableTensorView(quantised_view(blocks, Quantised::Q8_0, {rows, columns})));
    CHECK(blocks.download() == stored::quantise(Quantised::Q8_0, std::vector<float>(rows * columns, 2)));
}

TEST_CASE("docs/library.md: a quantised cache of keys and values") {
    const Device device = Device::open({.device = "emulator"});
    const std::uint32_t cache_rows = 16, heads = 2, dim = 64, tokens = 3;
    const auto k = device.upload(std::vector<half>(tokens * heads * dim, half(1))),
               v = device.upload(std::vector<half>(tokens * heads * dim, half(0.5f))),
               q = device.upload(std::vector<half>(heads * dim, half(1)));
    const auto positions = device.upload(std::vector<std::uint32_t>{0, 1, 2}), slots = device.upload(std::vector<std::uint32_t>{0, 1, 2});
    const auto length = device.upload(std::vector<std::uint32_t>{3});
    auto k_blocks = device.buffer<std::uint8_t>(cache_rows * heads * dim / 32 * 34), v_blocks = device.buffer<std::uint8_t>(cache_rows * heads * dim / 32 * 34);
    auto o = device.buffer<half>(heads * dim);
const auto K = quantised_view(k_blocks, Quantised::Q8_0, {cache_rows, heads, dim}), V = quantised_view(v_blocks, Quantised::Q8_0, {cache_rows, heads, dim});
rope_scatter(device, Rope::Neox, k.view(tokens, heads, dim), positions, slots, MutableTensorView(K), dim, 10000.0f);
kv_scatter(device, v.view(tokens, heads, dim), slots, MutableTensorView(V));
incremental_attention(device, q.view(heads, 1, dim), heads_in_rows(K), heads_in_rows(V), o.view(heads, 1, dim), {.lengths = length});
    CHECK(std::abs(float(o.download()[5]) - 0.5f) < 0.01f);
}

TEST_CASE("docs/library.md: a chunk of a prompt reads a quantised cache") {
    const Device device = Device::open({.device = "emulator"});
    const std::uint32_t heads = 2, dim = 64, max_pages = 3;
    const auto cache = device.upload(stored::quantise(Quantised::Q8_0, std::vector<float>(6 * 16 * heads * dim, 0.5f)));
    const auto K = quantised_view(cache, Quantised::Q8_0, {6, heads, 16, dim}), V = K;
    const auto table = device.upload(std::vector<std::uint32_t>{0, 2, 4, 1, 3, 5});
    const auto q = device.upload(std::vector<half>(5 * heads * dim, half(1)));
    auto o = device.buffer<half>(5 * heads * dim);
const auto starts = device.upload(std::vector<std::uint32_t>{0, 3, 5}), key_starts = device.upload(std::vector<std::uint32_t>{0, 40, 57});
flash_attention(device, heads_in_rows(q.view(1, 5, heads, dim)), K, V, heads_in_rows(o.view(1, 5, heads, dim)),
                {.causal = true, .query_offsets = starts, .key_offsets = key_starts, .pages = table.view(2, max_pages)});
    for (const half x : o.download()) CHECK(std::abs(float(x) - 0.5f) < 0.01f);
}

TEST_CASE("docs/library.md: floats that the host quantises") {
    const Device device = Device::open({.device = "emulator"});
    const std::uint32_t rows = 2, columns = 512;
    std::vector<float> weights(rows * columns);
    for (std::size_t i = 0; i < weights.size(); ++i) weights[i] = float(i % 16) * 0.25f - 1;
    const auto x = device.upload(std::vector<float>(columns, 1));
    auto y = device.buffer<float>(rows, "y");
const std::vector<std::uint8_t> bytes = stored::quantise(Quantised::Q4_K, weights, columns);
const auto W = device.upload(bytes, "W");
gemv(device, quantised_view(W, Quantised::Q4_K, {rows, columns}), x, y);
    CHECK(std::abs(y.download()[1] - columns * 0.875f) < 0.5f);
}

TEST_CASE("docs/library.md: attention to a cache") {
    const Device device = Device::open({.device = "emulator"});
    const std::uint32_t sequences = 2, heads = 4, kv_heads = 2, room = 48, dim = 64, max_pages = 3, n = sequences * kv_heads * room * dim;
    std::vector<half> host;
    for (std::uint32_t i = 0; i < n; ++i) host.emplace_back(std::sin(0.37f * float(i)));
    const auto q = device.upload(std::vector<half>(host.begin(), host.begin() + sequences * heads * dim)), k = device.upload(host), v = device.upload(host);
    auto o = device.buffer<half>(q.size()), o_by_pages = device.buffer<half>(q.size());
    auto sums = device.buffer<float>(sequences * heads);
    // Pages of 16 rows: those of sequence s are s, s + 2, s + 4.
    std::vector<half> by_pages(n);
    for (std::uint32_t s = 0; s < sequences; ++s)
        for (std::uint32_t h = 0; h < kv_heads; ++h)
            for (std::uint32_t j = 0; j < room; ++j)
                for (std::uint32_t e = 0; e < dim; ++e)
                    by_pages[(((s + j / 16 * 2) * kv_heads + h) * 16 + j % 16) * dim + e] = host[((s * kv_heads + h) * room + j) * dim + e];
    const auto pages = device.upload(by_pages);
    const std::uint32_t page_count = 6;
const auto lengths = device.upload(std::vector<std::uint32_t>{40, 17});        // keys that each sequence has, of room for 48
incremental_attention(device, q.view(sequences, heads, 1, dim), k.view(sequences, kv_heads, room, dim),
                      v.view(sequences, kv_heads, room, dim), o.view(sequences, heads, 1, dim),
                      {.lengths = lengths, .log_sum = sums.view(sequences, heads, 1)});

const auto table = device.upload(std::vector<std::uint32_t>{0, 2, 4, 1, 3, 5});  // the pages of sequence 0, then of sequence 1
incremental_attention(device, q.view(sequences, heads, 1, dim), pages.view(page_count, kv_heads, 16, dim),
                      pages.view(page_count, kv_heads, 16, dim), o_by_pages.view(sequences, heads, 1, dim),
                      {.lengths = lengths, .pages = table.view(sequences, max_pages)});
    const auto one = o.download(), other = o_by_pages.download();
    for (std::size_t i = 0; i < one.size(); ++i) CHECK(float(one[i]) == float(other[i]));
    CHECK(std::isfinite(sums.download()[3]));
}

TEST_CASE("docs/library.md: arrays by key and query") {
    const Device device = Device::open({.device = "emulator"});
    const std::uint32_t heads = 2, keys = 100, dim = 64;
    std::vector<half> host;
    for (std::uint32_t i = 0; i < heads * keys * dim; ++i) host.emplace_back(std::sin(0.37f * float(i)));
    const auto x = device.upload(host);
    const auto key_bias = device.upload(std::vector<float>(heads * keys, -1));
    std::vector<std::int32_t> ids(keys);
    for (std::uint32_t i = 0; i < keys; ++i) ids[i] = i / 40;
    const auto segments = device.upload(ids);
    auto O = device.buffer<half>(x.size());
    AttentionOptions options;
options.scores = scores("key_biased", [](auto score, auto at, auto bias) { return score + bias[at.head, at.key]; }, key_bias.view(heads, keys));
options.sees = sees("segments", [](auto at, auto of_query, auto of_key) { return (at.key <= at.query) & (of_key[at.key] == of_query[at.query]); },
                    segments, segments);
    flash_attention(device, x.view(heads, keys, dim), x.view(heads, keys, dim), x.view(heads, keys, dim), O.view(heads, keys, dim), options);
    CHECK(std::abs(float(O.download()[40 * dim + 5]) - float(host[40 * dim + 5])) < 0x1p-10f);  // it sees itself alone
}

TEST_CASE("docs/library.md: learned sinks") {
    const Device device = Device::open({.device = "emulator"});
    const std::uint32_t heads = 2, queries = 5, keys = 20, dim = 64;
    std::vector<half> host;
    for (std::uint32_t i = 0; i < heads * (keys + 1) * dim; ++i) host.emplace_back(std::sin(0.37f * float(i)));
    for (std::uint32_t h = 0; h < heads; ++h)
        for (std::uint32_t e = 0; e < dim; ++e) host[h * (keys + 1) * dim + e] = half(0.0f);  // key 0 is reserved
    const auto Q = device.upload(std::vector<half>(host.begin() + dim, host.begin() + dim + heads * queries * dim));
    const auto cache = device.upload(host);
    const auto with_first = cache.view(heads, keys + 1, dim);
    const auto K = cache.slice(dim, cache.size() - dim).view(heads, keys, dim).pitched((keys + 1) * dim, dim), V = K;
    auto O = device.buffer<half>(heads * queries * dim, "O"), other = device.buffer<half>(heads * queries * dim, "other");
    auto log_sum = device.buffer<float>(heads * queries, "log_sum");
    const auto sinks = device.upload(std::vector<float>{0.5f, -1.25f}, "sinks");
flash_attention(device, Q.view(heads, queries, dim), K, V, O.view(heads, queries, dim),
                {.causal = true, .sinks = sinks, .log_sum = log_sum.view(heads, queries)});
    flash_attention(device, Q.view(heads, queries, dim), with_first, with_first, other.view(heads, queries, dim),
                    {.causal = true, .scores = scores("sinks", [](auto score, auto at, auto sinks) { return select(at.key == 0, sinks[at.head], score); }, sinks)});
    const auto one = O.download(), two = other.download();
    for (std::size_t i = 0; i < one.size(); ++i) CHECK(std::abs(float(one[i]) - float(two[i])) < 0x1p-9f);
}

template <class T>
auto make_halved(const char* name) {
    return kernel(name, params("x", "y", "n"), [](In<T> x, Out<T> y, u32 n) {
        u32 i = global_id().x;
        if_(i < n, [&] { y[i] = cast<T>(cast<f32>(x[i]) / 2); });
    });
}
const auto halved_f32 = make_halved<float>("halved_f32");
const auto halved_f16 = make_halved<half>("halved_f16");

TEST_CASE("docs/language/values.md: host types in casts") {
    const Device device = Device::open({.device = "emulator"});
    const auto x = device.upload(std::vector<half>(100, half(3.0f)));
    auto y = device.buffer<half>(100);
    device.launch(halved_f16, grid(100, 64), x, y, 100);
    CHECK(float(y.download()[99]) == 1.5f);
    const auto a = device.upload(std::vector<float>(100, 3));
    auto b = device.buffer<float>(100);
    device.launch(halved_f32, grid(100, 64), a, b, 100);
    CHECK(b.download()[99] == 1.5f);
}

}  // namespace
TEST_CASE("docs/library.md: reductions along dimensions") {
    using stdlib::Reduction;
    const std::uint32_t batch = 2, rows = 3, columns = 8;
    const Device device = Device::open({.device = "emulator"});
    std::vector<float> host(batch * rows * columns);
    for (std::size_t i = 0; i < host.size(); ++i) host[i] = float(i % 8);
    const auto x = device.upload(host);
    auto y = device.buffer<float>(batch * columns), z = device.buffer<float>(batch);
    auto indices = device.buffer<std::uint32_t>(batch * rows);

    stdlib::reduce(device, Reduction::mean, x.view(batch, rows, columns), y.view(batch, columns), 1);
    stdlib::reduce(device, Reduction::variance, x.view(batch, rows, columns), z.view(batch, 1, 1), {1, -1}, {.unbiased = true});
    stdlib::reduce(device, Reduction::argmax, x.view(batch * rows, columns), indices, 1);
    CHECK(y.download()[5] == 5);
    CHECK(z.download()[0] == Approx(126.0 / 23));
    CHECK(indices.download() == std::vector<std::uint32_t>(batch * rows, 7));
}

}  // namespace ikat::library_examples
