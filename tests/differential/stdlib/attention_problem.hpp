// SPDX-License-Identifier: Apache-2.0
// Calls of flash_attention(), and sums in double, with a bound for each element that follows from the roundings. What
// is between rows is NaN.
#pragma once
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "stdlib/attention/attention.hpp"
#include "tests/catch.hpp"
#include "tests/device.hpp"
#include "tests/targets.hpp"

namespace ikat::tests::attention {

using namespace stdlib;
using runtime::Device;

struct Shape {
    std::uint32_t queries, keys, heads = 1, kv_heads = 1, batch = 1;
    std::uint32_t gap = 0;       // elements between rows
    std::uint32_t first = 0;     // element of the buffer at which the first row begins
    bool heads_in_rows = false;  // a row has all heads
    std::uint32_t block = 0;     // queries of one, by mma.sync
};

/// A device for each order of threads, and the same of sm_90a.
struct Devices {
    std::vector<Device> any, hopper;
};

/// Sequences of heads of rows of numbers.
template <class T>
struct Rows {
    std::uint32_t batch, heads, length, elements;
    Shape shape;
    std::vector<T> stored;

    Rows(const Shape& shape, std::uint32_t heads, std::uint32_t length, std::uint32_t elements, auto&& number)
        : batch(shape.batch), heads(heads), length(length), elements(elements), shape(shape) {
        stored.assign(shape.first + std::size_t(batch) * heads * length * (elements + shape.gap), T(NAN));
        std::size_t n = 0;
        for (std::uint32_t b = 0; b < batch; ++b)
            for (std::uint32_t h = 0; h < heads; ++h)
                for (std::uint32_t i = 0; i < length; ++i)
                    for (std::uint32_t e = 0; e < elements; ++e) stored[at(b, h, i, e)] = T(float(number(n++)));
    }
    std::size_t at(std::uint32_t b, std::uint32_t h, std::uint32_t i, std::uint32_t e) const {
        const std::size_t row =
            shape.heads_in_rows ? (std::size_t(b) * length + i) * heads + h : (std::size_t(b) * heads + h) * length + i;
        return shape.first + row * (elements + shape.gap) + e;
    }
    double operator()(std::uint32_t b, std::uint32_t h, std::uint32_t i, std::uint32_t e) const {
        return double(float(stored[at(b, h, i, e)]));
    }
    template <class B>
    auto view(B& buffer) const {
        using View = std::conditional_t<std::is_const_v<B>, TensorView, MutableTensorView>;
        const auto part = buffer.slice(shape.first, buffer.size() - shape.first);
        const std::uint64_t row = elements + shape.gap;
        if (shape.heads_in_rows)
            return View(heads_in_rows(
                part.view(batch, length, heads, elements).pitched(length * heads * row, heads * row, row)));
        return View(part.view(batch, heads, length, elements).pitched(heads * length * row, length * row, row));
    }
};

/// Numbers between -1 and 1, many of them equal.
inline double small(std::size_t i) { return double((i * 2654435761u >> 7) % 129) / 64 - 1; }

struct Expected {
    double value, error;
};

struct Extra {
    AttentionOptions options{};
    double magnitude = 1;                          // of Q
    std::uint32_t bias_batch = 0, bias_heads = 0;  // 0: no bias
    bool hides = false;                            // some of the bias is -infinity
    bool log_sum = false;
    bool sinks = false;
};
/// One that counts little, as much as scores, none, and one that is nearly all.
inline float sink(std::uint32_t head) { return std::array{-3.0f, 0.75f, -INFINITY, 9.5f}[head % 4]; }

template <class T>
struct Problem {
    Shape shape;
    std::uint32_t d;
    Extra extra;
    Rows<T> Q, K, V, O, bias;

    Problem(const Shape& shape, std::uint32_t d, const Extra& extra = {})
        : shape(shape),
          d(d),
          extra(extra),
          Q(shape, shape.heads, shape.queries, d, [&](std::size_t i) { return small(i) * extra.magnitude; }),
          K(shape, shape.kv_heads, shape.keys, d, [](std::size_t i) { return small(i + 1000003); }),
          V(shape, shape.kv_heads, shape.keys, d, [](std::size_t i) { return small(3 * i + 77); }),
          O(shape, shape.heads, shape.queries, d, [](std::size_t) { return NAN; }),
          bias({.queries = 0, .keys = 0, .batch = extra.bias_batch, .gap = shape.gap}, extra.bias_heads, shape.queries,
               shape.keys, [&](std::size_t i) { return extra.hides && i % 7 < 3 ? -INFINITY : 2 * small(i + 5); }) {}

    double scale() const { return double(extra.options.scale.value_or(float(1 / std::sqrt(double(d))))); }
    bool sees(std::uint32_t i, std::uint32_t j) const {
        const std::int64_t own = std::int64_t(i) + shape.keys - shape.queries, key = j;
        const AttentionOptions& options = extra.options;
        if ((options.causal && key > own) || (options.window_right && key > own + std::int64_t(*options.window_right)))
            return false;
        return !options.window_left || key >= own - std::int64_t(*options.window_left);
    }

    /// The row of O and, last, the logarithm of the sum of a query.
    std::vector<Expected> row(std::uint32_t b, std::uint32_t h, std::uint32_t i) const {
        const std::uint32_t kv = h / (shape.heads / shape.kv_heads);
        // What one rounding of a product, a sum or an exponent in f32 may cost, with room for a GPU's own order.
        constexpr double f32_step = 0x1p-22;
        constexpr double step = std::is_same_v<T, half> ? 0x1p-11 : std::is_same_v<T, bfloat16> ? 0x1p-8 : 0x1p-24;
        std::vector<double> scores(shape.keys, -INFINITY);
        double maximum = -INFINITY, off = 0;  // by how much a score may be off
        for (std::uint32_t j = 0; j < shape.keys; ++j) {
            if (!sees(i, j)) continue;
            double sum = 0, size = 0;
            for (std::uint32_t e = 0; e < d; ++e) {
                const double product = Q(b, h, i, e) * K(b, kv, j, e);
                sum += product, size += std::abs(product);
            }
            double score = sum * scale();
            double score_off = (d + 4) * f32_step * size * scale();
            if (const double cap = double(extra.options.soft_cap); cap > 0 && std::isfinite(cap)) {
                score = cap * std::tanh(score / cap);
                score_off += cap <= 64 ? 0x1p-21 * cap : 0x1p-19 * std::abs(score);
            }
            if (extra.bias_heads) {
                score += bias(extra.bias_batch == 1 ? 0 : b, extra.bias_heads == 1 ? 0 : h, i, j);
                score_off += 4 * f32_step;
            }
            scores[j] = score;
            if (score == -INFINITY) continue;
            maximum = std::max(maximum, score);
            off = std::max(off, score_off + 4 * f32_step * std::abs(score));
        }
        const double sink = extra.sinks ? double(attention::sink(h)) : -INFINITY;
        if (sink > -INFINITY) off = std::max(off, 4 * f32_step * std::abs(sink));
        maximum = std::max(maximum, sink);
        std::vector<Expected> out(d + 1, {0, 0});
        out[d] = {-INFINITY, 0};
        if (maximum == -INFINITY) return out;
        double total = std::exp(sink - maximum);
        std::vector<double> weights;
        for (const double score : scores) total += weights.emplace_back(std::exp(score - maximum));
        for (double& weight : weights) weight /= total;
        // Exponentials, their sum, sums of products with V in f32; the exponentials rounded once; those that are
        // subnormal.
        const double relative = 2 * std::expm1(2 * off) + (2 * shape.keys + 16) * f32_step + step;
        for (std::uint32_t e = 0; e < d; ++e) {
            double sum = 0, size = 0, all = 0;
            for (std::uint32_t j = 0; j < shape.keys; ++j) {
                const double weight = weights[j], v = V(b, kv, j, e);
                sum += weight * v, size += weight * std::abs(v);
                if (scores[j] > -INFINITY) all += std::abs(v);
            }
            const double error = relative * size + 0x1p-25 * all / total;
            out[e] = {sum, error + step * (std::abs(sum) + error) + 0x1p-25};
        }
        const double log_sum = maximum + std::log(total);
        out[d] = {log_sum, 2 * off + (2 * shape.keys + 16) * f32_step + 4 * f32_step * std::abs(log_sum)};
        return out;
    }

    std::vector<std::vector<Expected>> rows() const {
        std::vector<std::vector<Expected>> out;
        for (std::uint32_t b = 0; b < shape.batch; ++b)
            for (std::uint32_t h = 0; h < shape.heads; ++h)
                for (std::uint32_t i = 0; i < shape.queries; ++i) out.push_back(row(b, h, i));
        return out;
    }

    /// Whether wgmma can do it: elements of 16 bits, rows that begin at multiples of 16 bytes.
    bool has_maps() const { return sizeof(T) == 2 && (shape.first | shape.gap) * sizeof(T) % 16 == 0; }

    void check(const Devices& devices) const {
        INFO("queries " << shape.queries << ", keys " << shape.keys << ", heads " << shape.heads << "/"
                        << shape.kv_heads << ", batch " << shape.batch << ", gap " << shape.gap << ", first "
                        << shape.first << ", heads in rows " << shape.heads_in_rows << ", block " << shape.block
                        << ", d " << d << ", causal " << extra.options.causal);
        const auto rows = this->rows();
        static std::size_t number = 0;  // of the case
        for (std::size_t seed = 0; seed < devices.any.size(); ++seed) {
            if (!tests::is_for_seed(number, seed, devices.any.size())) continue;
            compare(devices.any[seed], rows, {.path = AttentionPath::mma_sync, .queries_of_block = shape.block});
            if (has_maps()) compare(devices.hopper[seed], rows, {.path = AttentionPath::wgmma});
        }
        ++number;
    }

    /// What the device makes: O and the logarithms. `how`: the path, and the queries of a block.
    std::pair<std::vector<T>, std::vector<float>> run(const Device& device, const AttentionOptions& how = {}) const {
        const auto k = device.upload(K.stored, "K"), v = device.upload(V.stored, "V");
        return run(device, K.view(k), V.view(v), how);
    }
    /// With these K and V.
    std::pair<std::vector<T>, std::vector<float>> run(const Device& device, const TensorView& of_k,
                                                      const TensorView& of_v, const AttentionOptions& how) const {
        const auto q = device.upload(Q.stored, "Q");
        const auto added = device.upload(bias.stored, "bias");
        std::vector<float> of_heads;
        for (std::uint32_t h = 0; h < shape.heads; ++h) of_heads.push_back(sink(h));
        const auto sinks = device.upload(of_heads, "sinks");
        auto o = device.upload(O.stored, "O");
        auto log_sum = device.buffer<float>(std::size_t(shape.batch) * shape.heads * shape.queries, "log_sum");
        AttentionOptions options = extra.options;
        options.path = how.path, options.queries_of_block = how.queries_of_block;
        if (extra.bias_heads) options.bias = bias.view(added);
        if (extra.sinks) options.sinks = sinks;
        if (extra.log_sum) options.log_sum = log_sum.view(shape.batch, shape.heads, shape.queries);
        flash_attention(device, Q.view(q), of_k, of_v, O.view(o), options);
        return {o.download(), extra.log_sum ? log_sum.download() : std::vector<float>{}};
    }

    void compare(const Device& device, const std::vector<std::vector<Expected>>& rows,
                 const AttentionOptions& how) const {
        INFO("path " << int(how.path) << ", blocks of " << how.queries_of_block << " queries");
        compare(run(device, how), rows);
    }
    void compare(const std::pair<std::vector<T>, std::vector<float>>& all,
                 const std::vector<std::vector<Expected>>& rows) const {
        const auto& [got, log_sums] = all;
        std::size_t wrong = 0, row = 0, written = 0;
        std::string first;
        const auto expect = [&](double is, const Expected& expected, const std::string& what) {
            const bool right = is == expected.value || std::abs(is - expected.value) <= expected.error;
            if (!right && wrong++ == 0)
                first = what + ": " + std::to_string(is) + ", not " + std::to_string(expected.value) + " within " +
                        std::to_string(expected.error);
        };
        for (std::uint32_t b = 0; b < shape.batch; ++b)
            for (std::uint32_t h = 0; h < shape.heads; ++h)
                for (std::uint32_t i = 0; i < shape.queries; ++i, ++row) {
                    const std::string place = std::to_string(b) + ", " + std::to_string(h) + ", " + std::to_string(i);
                    for (std::uint32_t e = 0; e < d; ++e)
                        expect(double(float(got[O.at(b, h, i, e)])), rows[row][e], place + ", " + std::to_string(e));
                    if (extra.log_sum) expect(double(log_sums[row]), rows[row][d], "log_sum of " + place);
                }
        for (const T& element : got) written += !std::isnan(float(element));
        INFO("the first: " << first);
        CHECK(wrong == 0);
        CHECK(written == row * d);  // nothing between rows
    }
};

/// `threads` of the host: the emulator has as many multiprocessors; 0: as usual.
inline Devices devices_of_seeds(int count = 4, std::uint32_t threads = 0) {
    Devices out;
    for (int seed = 0; seed < count; ++seed) {
        const std::string schedule = std::to_string(seed);
        out.any.push_back(test::open_device({.threads = threads, .schedule = schedule}));
        out.hopper.push_back(test::open_device({.target = "sm_90a", .threads = threads, .schedule = schedule}));
    }
    return out;
}

}  // namespace ikat::tests::attention
