// SPDX-License-Identifier: Apache-2.0
#include "stdlib/spec/expected.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "codegen/support/diagnostic.hpp"
#include "stdlib/conv/conv2d.hpp"
#include "stdlib/reference/bounds.hpp"
#include "stdlib/reference/quantised.hpp"
#include "stdlib/reference/reference.hpp"

namespace ikat::stdlib::reference {
namespace {

std::vector<float> magnitudes(std::vector<float> x) {
    for (float& v : x) v = std::abs(v);
    return x;
}

std::vector<double> times(double factor, std::vector<double> x) {
    for (double& v : x) v *= factor;
    return x;
}

/// For C = A B with sums of k terms: k rounded additions of products.
void expect_product(Example& e, std::string_view C, const std::vector<float>& A, const std::vector<float>& B,
                    std::uint32_t m, std::uint32_t n, std::uint32_t k) {
    e.expect(C, gemm(A, B, m, n, k), 0, times((k + 1) * epsilon, gemm(magnitudes(A), magnitudes(B), m, n, k)));
}

std::vector<double> doubles(const std::vector<float>& x) { return {x.begin(), x.end()}; }

/// A sum of products, by the threads of a block.
void expect_dot(Example& e, const std::vector<float>& x, const std::vector<float>& y) {
    double sum = 0, scale = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
        sum += double(x[i]) * double(y[i]);
        scale += std::abs(double(x[i]) * double(y[i]));
    }
    e.expect("partial", {sum}, 0, {(double(x.size()) / 32 + 32) * epsilon * scale});
}

/// For a sum of exp(x - m): the error of the difference is half an ulp, that of exp one ulp.
double of_exponentials(const Example& e) {
    double largest = 0;
    for (const float x : e["x"]) largest = std::max(largest, double(std::abs(x)));
    return of_sum(e.number("columns")) + (4 * largest + 4) * epsilon;
}

/// The format in a kernel's name: "gemv_q4_k", "gemv_q4_k_q8_1".
Quantised format_of(const Example& e) {
    const auto is_in_name = [&](const runtime::QuantisedInfo& format) {
        return e.name().find(fmt::format("_{}", format.name)) != std::string_view::npos;
    };
    return Quantised(std::ranges::find_if(runtime::quantised_formats, is_in_name) - runtime::quantised_formats);
}

/// For y = W x: products have magnitude |w| |x|, and there are `steps` roundings beside those of each lane's sum.
void expect_rows(Example& e, const std::vector<float>& w, const std::vector<float>& w_magnitudes,
                 const std::vector<float>& x, std::uint32_t steps) {
    const std::uint32_t rows = e.number("rows"), columns = e.number("columns");
    e.expect("y", gemm(w, x, rows, 1, columns), 0,
             times((columns / 32 + steps) * epsilon, gemm(w_magnitudes, magnitudes(x), rows, 1, columns)));
}

/// 1 / sqrt(variance + epsilon) is largest where few columns are almost equal; what it multiplies is below 4.
void expect_norm(Example& e, std::vector<double> wanted, double largest) {
    const double error = 4 * of_sum(e.number("columns"));
    e.expect("y", std::move(wanted), error, {error * largest});
}

struct Activation {
    std::string_view name;
    ElementFunction* function;
};
#define IKAT_UNARY(id, text, device, host) {#id, [](double x, double, double, double) { return double(host); }},
constexpr Activation activations[] = {
    {"none", [](double x, double, double, double) { return x; }},
#include "stdlib/elementwise/elementwise.def"
};

}  // namespace

void elementwise(Example& e, ElementFunction* f) {
    const std::vector<float> x = e.input(0), second = e.input(1);
    const double p = double(e.real(0)), q = double(e.real(1));
    std::vector<double> wanted(x.size());
    for (std::size_t i = 0; i < x.size(); ++i)
        wanted[i] = f(double(x[i]), second.empty() ? 0 : double(second[i]), p, q);
    e.expect("y", std::move(wanted), 8 * epsilon);
}

double silu_slope(double x) {
    if (std::isinf(x)) return x > 0;
    const double s = 1 / (1 + std::exp(-x));
    return s + x * s * (1 - s);
}

double gelu_slope(double x) {
    if (std::isinf(x)) return x > 0;
    return std::erfc(-x / std::numbers::sqrt2) / 2 +
           x * std::exp(-x * x / 2) * std::numbers::inv_sqrtpi / std::numbers::sqrt2;
}

double gelu_tanh_slope(double x) {
    if (std::isinf(x)) return x > 0;
    const double scale = 2 * std::numbers::sqrt2 * std::numbers::inv_sqrtpi;
    const double s = 1 / (1 + std::exp(-scale * (x + 0.044715 * x * x * x)));
    return s + x * s * (1 - s) * scale * (1 + 3 * 0.044715 * x * x);
}

/// Slopes have an absolute error, by which dy is multiplied.
void gradient(Example& e, ElementFunction* f) {
    const std::vector<float> dy = e.input(0), x = e.input(1);
    std::vector<double> wanted(x.size()), absolute(x.size());
    for (std::size_t i = 0; i < x.size(); ++i) {
        wanted[i] = f(double(dy[i]), double(x[i]), double(e.real(0)), 0);
        absolute[i] = 16 * epsilon * std::abs(double(dy[i]));
    }
    e.expect("dx", std::move(wanted), 8 * epsilon, std::move(absolute));
}

void bias_activation(Example& e) {
    const auto is_this = [&](const Activation& each) {
        const std::string name = "bias_activation_" + std::string(each.name);
        return e.name() == name || e.name() == name + "_f16" || e.name() == name + "_bf16";
    };
    ElementFunction* const f = std::ranges::find_if(activations, is_this)->function;
    const std::vector<float> x = e["x"], bias = e["bias"];
    std::vector<double> wanted(x.size());
    for (std::size_t i = 0; i < x.size(); ++i) wanted[i] = f(double(x[i] + bias[i % bias.size()]), 0, 0, 0);
    e.expect("y", std::move(wanted), 8 * epsilon);
}

void saxpy(Example& e) {
    const std::vector<float> x = e["x"], y = e["y"];
    std::vector<double> wanted(x.size());
    for (std::size_t i = 0; i < x.size(); ++i) wanted[i] = double(std::fma(e.real("a"), x[i], y[i]));
    e.expect("y", std::move(wanted));
}

void residual_add(Example& e) {
    const std::vector<float> x = e["x"], y = e["y"];
    std::vector<double> wanted(x.size());
    for (std::size_t i = 0; i < x.size(); ++i) wanted[i] = double(x[i] + y[i]);
    e.expect_rounded("y", std::move(wanted));
}

void cast(Example& e) { e.expect_rounded("y", doubles(e["x"])); }

void sum(Example& e) {
    const std::vector<float> x = e["x"];
    double scale = 0;
    for (const float v : x) scale += std::abs(double(v));
    e.expect("partial", {sum(std::span(x))}, 0, {double(x.size()) * epsilon * scale});
}
void max(Example& e) { e.expect("partial", {max(std::span<const float>(e["x"]))}); }
void dot(Example& e) { expect_dot(e, e["x"], e["y"]); }
void norm2(Example& e) { expect_dot(e, e["x"], e["x"]); }

void argmax(Example& e) {
    const std::vector<float> x = e["x"];
    const double largest = max(std::span(x));
    const auto found = std::ranges::find(x, largest);
    e.expect("value", {largest});
    e.expect("index", {found == x.end() ? double(~0u) : double(found - x.begin())});
}
void argmax_final(Example& e) {
    const std::vector<float> values = e["values"];
    const std::vector<std::uint32_t> indices = e.words("indices");
    const double largest = max(std::span(values));
    std::uint32_t first = ~0u;
    for (std::size_t i = 0; i < values.size(); ++i)
        if (double(values[i]) == largest) first = std::min(first, indices[i]);
    e.expect("value", {largest});
    e.expect("index", {double(first)});
}

void softmax(Example& e) { e.expect("y", softmax(e["x"], e.number("rows"), e.number("columns")), of_exponentials(e)); }
void log_softmax(Example& e) {
    const double error = of_exponentials(e);
    e.expect("y", log_softmax(e["x"], e.number("rows"), e.number("columns")), error, {error});
}

void layernorm(Example& e) {
    const std::uint32_t columns = e.number("columns");
    expect_norm(e, layernorm(e["x"], e["gamma"], e["beta"], e.number("rows"), columns, double(e.real("epsilon"))),
                columns > 4 ? 16 : 200);
}
void rmsnorm(Example& e) {
    expect_norm(e, rmsnorm(e["x"], e["gamma"], e.number("rows"), e.number("columns"), double(e.real("epsilon"))), 0);
}
void fused_residual_rmsnorm(Example& e) {
    std::vector<float> sum = e["x"];
    const std::vector<float> residual = e["residual"];
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += residual[i];
    const std::vector<double> rounded = e.expect_rounded("residual", doubles(sum));
    sum.assign(rounded.begin(), rounded.end());
    expect_norm(e, rmsnorm(sum, e["gamma"], e.number("rows"), e.number("columns"), double(e.real("epsilon"))), 0);
}

void gemm(Example& e) { expect_product(e, "C", e["A"], e["B"], e.number("m"), e.number("n"), e.number("k")); }
void gemv(Example& e) { expect_product(e, "y", e["A"], e["x"], e.number("rows"), 1, e.number("columns")); }
void gemv_transposed(Example& e) { expect_product(e, "y", e["x"], e["A"], 1, e.number("columns"), e.number("rows")); }

void conv2d(Example& e) {
    const Convolution c = convolution_of([&](const char* name) { return e.number(name); });
    const std::uint32_t terms = c.channels / c.groups * c.kernel_h * c.kernel_w;
    e.expect("y", conv2d(e["x"], e["w"], c), 0,
             times((terms + 1) * epsilon, conv2d(magnitudes(e["x"]), magnitudes(e["w"]), c)));
}

void copy_matrix(Example& e) {
    const std::vector<float> from = e["from"];
    std::vector<double> to = doubles(e["to"]);  // the gaps between its rows stay
    for (std::size_t i = 0; i < e.number("from_extent0"); ++i)
        for (std::size_t j = 0; j < e.number("from_extent1"); ++j)
            to[i * e.number("to_pitch") + j] = double(from[i * e.number("from_pitch") + j]);
    e.expect("to", std::move(to));
}

void transpose(Example& e) {
    const std::vector<float> x = e["x"];
    const std::size_t rows = e.number("rows"), columns = e.number("columns");
    std::vector<double> wanted(x.size());
    for (std::size_t i = 0; i < x.size(); ++i) {
        const std::size_t matrix = i / (rows * columns), row = i / columns % rows, column = i % columns;
        wanted[(matrix * columns + column) * rows + row] = double(x[i]);
    }
    e.expect("y", std::move(wanted));
}

void rope(Example& e) {
    const std::vector<std::uint32_t> positions = e.words("positions");
    const std::uint32_t heads = e.number("heads"), head_dim = e.number("head_dim"), rotary = e.number("rotary");
    std::vector<double> wanted = rope(e["x"], positions, heads, head_dim, rotary, double(e.real("base")),
                                      double(e.real("sign")), e.name().starts_with("rope_neox"));
    // Twice the error of the angle that the contract states, an ulp each of sine and cosine, and three roundings, for
    // |x| <= 1. What is not rotated stays exactly as it is.
    std::vector<double> error(wanted.size());
    for (std::size_t i = 0; i < error.size(); ++i)
        if (i % head_dim < rotary)
            error[i] = 2 * (positions[i / (std::size_t(heads) * head_dim)] * 0x1p-47 + 3 * epsilon) + 4 * epsilon;
    e.expect("x", std::move(wanted), 0, std::move(error));
}

void kv_scatter(Example& e) {
    const std::vector<float> x = e["x"];
    const std::vector<std::uint32_t> slots = e.words("slots");
    const std::size_t width = e.number("width");
    std::vector<double> cache = doubles(e["cache"]);
    for (std::size_t t = 0; t < slots.size(); ++t)
        for (std::size_t c = 0; c < width && slots[t] < e.number("cache_rows"); ++c)
            cache[slots[t] * width + c] = double(x[t * width + c]);
    e.expect("cache", std::move(cache));
}

void gather_rows(Example& e) {
    const std::vector<float> table = e["table"];
    const std::size_t width = e.number("width");
    std::vector<double> y;
    for (const std::uint32_t id : e.words("ids"))
        for (std::size_t c = 0; c < width; ++c)
            y.push_back(id < e.number("table_rows") ? double(table[id * width + c]) : 0);
    e.expect("y", std::move(y));
}

void dequantise(Example& e) {
    const std::vector<float> weights = dequantise(format_of(e), e.bytes("w"));
    e.expect("y", doubles(weights));
}

void quantised_gemv(Example& e) {
    const std::vector<float> w = dequantise(format_of(e), e.bytes("w"));
    expect_rows(e, w, magnitudes(w), e["x"], 8);
}

void packed_gemv(Example& e) {
    std::vector<float> w, w_magnitudes;  // product and minimum are multiplied separately, and may cancel
    for (const QuantisedWeight& each : quantised_weights(format_of(e), e.bytes("w"))) {
        w.push_back(each.product - each.minimum);
        w_magnitudes.push_back(std::abs(each.product) + std::abs(each.minimum));
    }
    expect_rows(e, w, w_magnitudes, dequantise_q8_1(e.words("x")), 16);
}

void quantise_q8_1(Example& e) {
    const std::vector<std::uint32_t> words = quantise_q8_1(e["x"]);
    e.expect("q", {words.begin(), words.end()});
}

}  // namespace ikat::stdlib::reference
