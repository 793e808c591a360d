// SPDX-License-Identifier: Apache-2.0
#include "bench/gpu/cases.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <vector>

#include "bench/gpu/data.hpp"
#include "stdlib/gemm/gemm.hpp"
#include "stdlib/gemm/gemv.hpp"
#include "stdlib/gemm/tensor_core.hpp"
#include "stdlib/layout/layout.hpp"
#include "stdlib/norm/norm.hpp"
#include "stdlib/reduction/reduction.hpp"
#include "stdlib/softmax/softmax.hpp"

namespace ikat::bench {

const std::string_view forms =
    R"(  gemm_tensor_core TYPE PATH ORDERS M N K [tile TILE] [schedule SCHEDULE] [raster RASTER] [parts PARTS]
                                            TYPE: f16 bf16 tf32 i8, or with C of f32 f16_f32 bf16_f32;
                                            PATH: chosen mma_sync wgmma; ORDERS: nn nt tn tt;
                                            TILE: small medium large; SCHEDULE: block_per_tile persistent split_k stream_k
                                            ping_pong; RASTER: grouped hilbert
  gemm M N K
  gemv TYPE ROWS COLUMNS                    TYPE: f32 f16 bf16
  quantised_gemv FORMAT X ROWS COLUMNS      FORMAT: q4_0 q4_k …; X: f32 q8_1
  quantised_gemm FORMAT ACTIVATIONS TOKENS ROWS COLUMNS
                                            ACTIVATIONS: exact q8_1
  gate_up_swiglu FORMAT ACTIVATIONS TOKENS ROWS COLUMNS
  qkv FORMAT ACTIVATIONS TOKENS ROWS KV_ROWS COLUMNS
  flash_attention TYPE PATH MASK HEAD_DIM SEQUENCES HEADS KV_HEADS QUERIES KEYS
                                            TYPE: f32 f16 bf16; MASK: full causal
  incremental_attention TYPE HEAD_DIM SEQUENCES HEADS KV_HEADS KEYS
  softmax TYPE ROWS COLUMNS, and log_softmax, rmsnorm, layernorm, transpose
  sum TYPE ELEMENTS
)";

namespace {

/// C = A B, of which samples are checked.
template <class T, class Sum>
struct Matrices {
    std::uint32_t m, n, k;
    bool a_by_columns, b_by_columns;
    Data<T> a, b;
    Buffer<Sum> c;

    Matrices(const Device& device, std::uint32_t rows, std::uint32_t columns, std::uint32_t depth, bool a_is, bool b_is)
        : m(rows),
          n(columns),
          k(depth),
          a_by_columns(a_is),
          b_by_columns(b_is),
          a(random<T>(device, std::uint64_t{m} * k, 1, "A")),
          b(random<T>(device, std::uint64_t{k} * n, 2, "B")),
          c(results<Sum>(device, std::uint64_t{m} * n, "C")) {}

    double error() const {
        const std::vector<Sum> host = c.download();
        Difference out;
        for (std::uint64_t sample = 0; sample < samples; ++sample) {
            const std::uint64_t row = mixed(sample) % m, column = mixed(sample + samples) % n;
            double sum = 0;
            for (std::uint64_t i = 0; i < k; ++i)
                sum += double(a.host[a_by_columns ? i * m + row : row * k + i]) *
                       double(b.host[b_by_columns ? column * k + i : i * n + column]);
            out.add(double(host[row * n + column]), sum);
        }
        return out.value();
    }
    Product product(ir::Type type, bool tf32) const {
        return {.type = type,
                .c_is_f32 = sizeof(T) == 2 && sizeof(Sum) == 4,
                .tf32 = tf32,
                .a_by_columns = a_by_columns,
                .b_by_columns = b_by_columns,
                .m = m,
                .n = n,
                .k = k,
                .a = a.buffer.address(),
                .b = b.buffer.address(),
                .c = c.address()};
    }
    Case as_case(const Device& device, std::shared_ptr<Matrices> self, bool tf32) const {
        Case out;
        out.error = [self] { return self->error(); };
        out.allowed = tf32 ? 2e-3 : allowed_of<Sum>();
        out.operations = 2.0 * m * n * k;
        out.bytes = double(sizeof(T)) * (double(m) * k + double(k) * n) + double(sizeof(Sum)) * m * n;
        constexpr std::uint64_t bytes = std::uint64_t{64} << 20;
        out.product = [self, device, tf32, space = std::shared_ptr<Buffer<std::uint8_t>>()]() mutable {
            if (!space) space = std::make_shared<Buffer<std::uint8_t>>(device.buffer<std::uint8_t>(bytes, "workspace"));
            Product product = self->product(ir::type_of<T>, tf32);
            product.workspace = space->address();
            product.workspace_bytes = bytes;
            return product;
        };
        return out;
    }
};

/// What a line says of the tiles after the sizes, if it does.
void read_tiles(Words& words, stdlib::GemmOptions& options) {
    while (words.has_more()) switch (words.one_of("what follows the sizes", {"tile", "schedule", "raster", "parts"})) {
            case 0: options.tile = stdlib::TileSize(1 + words.one_of("the tile", {"small", "medium", "large"})); break;
            case 1:
                options.schedule =
                    stdlib::GemmSchedule(1 + words.one_of("the schedule", {"block_per_tile", "persistent", "split_k",
                                                                           "stream_k", "ping_pong"}));
                break;
            case 2: options.raster = stdlib::Raster(words.one_of("the raster", {"grouped", "hilbert"})); break;
            default: options.parts = words.number("parts");
        }
}

template <class T, class Sum>
Case tensor_case(const Device& device, Words& words, bool tf32) {
    using stdlib::GemmPath, stdlib::MatrixOrder;
    const std::size_t path = words.one_of("the path", {"chosen", "mma_sync", "wgmma"});
    const std::size_t orders = words.one_of("the orders", {"nn", "nt", "tn", "tt"});
    const std::uint32_t m = words.number("m"), n = words.number("n"), k = words.number("k");
    const bool a_is = orders >= 2, b_is = orders % 2 == 1;
    stdlib::GemmOptions options{.a = a_is ? MatrixOrder::Columns : MatrixOrder::Rows,
                                .b = b_is ? MatrixOrder::Columns : MatrixOrder::Rows,
                                .path = GemmPath(path)};
    read_tiles(words, options);
    auto data = std::make_shared<Matrices<T, Sum>>(device, m, n, k, a_is, b_is);
    const auto a = a_is ? data->a.buffer.view(k, m) : data->a.buffer.view(m, k);
    const auto b = b_is ? data->b.buffer.view(n, k) : data->b.buffer.view(k, n);
    const auto c = data->c.view(m, n);
    auto space = std::make_shared<Buffer<std::uint8_t>>(
        device.buffer<std::uint8_t>(stdlib::gemm_workspace(device, a, b, c, options), "workspace"));
    options.workspace = *space;
    Case out = data->as_case(device, data, tf32);
    out.launch = [=](const Queue& queue) { stdlib::gemm_tensor_core(queue, a, b, c, options), void(space); };
    return out;
}

Case gemm_tensor_core(const Device& device, Words& words) {
    switch (words.one_of("the type", {"f16", "bf16", "tf32", "f16_f32", "bf16_f32", "i8"})) {
        case 0: return tensor_case<half, half>(device, words, false);
        case 1: return tensor_case<bfloat16, bfloat16>(device, words, false);
        case 2: return tensor_case<float, float>(device, words, true);
        case 3: return tensor_case<half, float>(device, words, false);
        case 4: return tensor_case<bfloat16, float>(device, words, false);
        default: return tensor_case<std::int8_t, std::int32_t>(device, words, false);
    }
}

Case gemm(const Device& device, Words& words) {
    const std::uint32_t m = words.number("m"), n = words.number("n"), k = words.number("k");
    words.end();
    auto data = std::make_shared<Matrices<float, float>>(device, m, n, k, false, false);
    Case out = data->as_case(device, data, false);
    out.launch = [=](const Queue& queue) {
        stdlib::gemm(queue, data->a.buffer.view(m, k), data->b.buffer.view(k, n), data->c.view(m, n));
    };
    return out;
}

template <class T>
Case gemv(const Device& device, Words& words) {
    const std::uint32_t rows = words.number("rows"), columns = words.number("columns");
    words.end();
    struct Arrays {
        Data<T> a, x;
        Buffer<T> y;
    };
    auto data = std::make_shared<Arrays>(Arrays{random<T>(device, std::uint64_t{rows} * columns, 1, "A"),
                                                random<T>(device, columns, 2, "x"), results<T>(device, rows, "y")});
    Case out;
    out.launch = [=](const Queue& queue) {
        stdlib::gemv(queue, data->a.buffer.view(rows, columns), data->x.buffer, data->y);
    };
    out.error = [=] {
        const std::vector<T> host = data->y.download();
        Difference difference;
        for (std::uint64_t sample = 0; sample < samples; ++sample) {
            const std::uint64_t row = mixed(sample) % rows;
            double sum = 0;
            for (std::uint64_t i = 0; i < columns; ++i)
                sum += double(data->a.host[row * columns + i]) * double(data->x.host[i]);
            difference.add(double(host[row]), sum);
        }
        return difference.value();
    };
    out.allowed = allowed_of<T>();
    out.operations = 2.0 * rows * columns;
    out.bytes = double(sizeof(T)) * (double(rows) * columns + columns + rows);
    return out;
}

enum class Rows { softmax, log_softmax, rmsnorm, layernorm, transpose };

/// What the function makes of a row of x, where all weights are 1 and all shifts 0.
void expected_row(Rows what, std::vector<double>& row) {
    double maximum = -INFINITY, sum = 0, squares = 0, exponentials = 0;
    for (const double v : row) maximum = std::max(maximum, v), sum += v;
    const double mean = what == Rows::layernorm ? sum / double(row.size()) : 0;
    for (const double v : row) exponentials += std::exp(v - maximum), squares += (v - mean) * (v - mean);
    const double factor = 1 / std::sqrt(squares / double(row.size()) + 1e-5);
    for (double& v : row) {
        if (what == Rows::softmax) v = std::exp(v - maximum) / exponentials;
        if (what == Rows::log_softmax) v = v - maximum - std::log(exponentials);
        if (what == Rows::rmsnorm || what == Rows::layernorm) v = (v - mean) * factor;
    }
}

template <class T>
Case rows_case(const Device& device, Words& words, Rows what) {
    const std::uint32_t rows = words.number("rows"), columns = words.number("columns");
    words.end();
    const std::uint64_t size = std::uint64_t{rows} * columns;
    struct Arrays {
        Data<T> x;
        Buffer<T> y, ones, zeros;
    };
    auto data = std::make_shared<Arrays>(Arrays{random<T>(device, size, 1, "x"), results<T>(device, size, "y"),
                                                device.buffer<T>(columns, "gamma"), device.buffer<T>(columns, "beta")});
    data->ones.fill(T(1.0f)), data->zeros.fill(T(0.0f));
    Case out;
    out.launch = [=](const Queue& queue) {
        const Buffer<T>& of_x = data->x.buffer;
        const auto x = of_x.view(rows, columns);
        const auto y = data->y.view(rows, columns);
        switch (what) {
            case Rows::softmax: return stdlib::softmax(queue, x, y);
            case Rows::log_softmax: return stdlib::log_softmax(queue, x, y);
            case Rows::rmsnorm: return stdlib::rmsnorm(queue, x, data->ones, y, 1e-5f);
            case Rows::layernorm: return stdlib::layernorm(queue, x, data->ones, data->zeros, y, 1e-5f);
            case Rows::transpose: return stdlib::transpose(queue, x, data->y.view(columns, rows));
        }
    };
    out.error = [=] {
        const std::vector<T> host = data->y.download();
        Difference difference;
        for (std::uint64_t sample = 0; sample < samples; ++sample) {
            const std::uint64_t row = mixed(sample) % rows;
            std::vector<double> expected(columns);
            for (std::uint64_t i = 0; i < columns; ++i) expected[i] = double(data->x.host[row * columns + i]);
            if (what != Rows::transpose) expected_row(what, expected);
            for (std::uint64_t i = 0; i < columns; ++i)
                difference.add(double(host[what == Rows::transpose ? i * rows + row : row * columns + i]), expected[i]);
        }
        return difference.value();
    };
    out.allowed = allowed_of<T>();
    out.bytes = 2.0 * double(sizeof(T)) * double(size);
    return out;
}

template <class T>
Case sum(const Device& device, Words& words) {
    const std::uint32_t size = words.number("elements");
    words.end();
    struct Arrays {
        Data<T> x;
        Buffer<float> total;
        Buffer<std::uint8_t> space;
    };
    auto data = std::make_shared<Arrays>(Arrays{random<T>(device, size, 1, "x"), results<float>(device, 1, "total"),
                                                device.buffer<std::uint8_t>(std::size_t{1} << 20, "workspace")});
    Case out;
    out.launch = [=](const Queue& queue) { stdlib::sum(queue, data->x.buffer, data->total, data->space); };
    out.error = [=] {
        double expected = 0, magnitude = 0;
        for (const T v : data->x.host) expected += double(v), magnitude += std::abs(double(v));
        return std::abs(double(data->total.download()[0]) - expected) / magnitude;
    };
    out.allowed = 1e-6;
    out.bytes = double(sizeof(T)) * size;
    return out;
}

}  // namespace

Case make_case(const Device& device, std::string_view line) {
    Words words(line);
    static constexpr std::array row_names{"softmax", "log_softmax", "rmsnorm", "layernorm", "transpose"};
    const std::string name = words.word("the function's name");
    if (name == "gemm_tensor_core") return gemm_tensor_core(device, words);
    if (name == "gemm") return gemm(device, words);
    if (name == "gemv")
        return of_type<float, half, bfloat16>(words, [&](auto t) { return gemv<decltype(t)>(device, words); });
    if (name == "quantised_gemv") return quantised_gemv_case(device, words);
    if (name == "quantised_gemm") return quantised_gemm_case(device, words);
    if (name == "gate_up_swiglu") return gate_up_swiglu_case(device, words);
    if (name == "qkv") return qkv_case(device, words);
    if (name == "flash_attention") return flash_attention_case(device, words);
    if (name == "incremental_attention") return incremental_attention_case(device, words);
    if (name == "sum")
        return of_type<float, half, bfloat16>(words, [&](auto t) { return sum<decltype(t)>(device, words); });
    const auto found = std::ranges::find(row_names, name);
    if (found == row_names.end()) words.fail("there is no such function here");
    const auto what = Rows(found - row_names.begin());
    return of_type<float, half, bfloat16>(words, [&](auto t) { return rows_case<decltype(t)>(device, words, what); });
}

}  // namespace ikat::bench
