// SPDX-License-Identifier: Apache-2.0
// Calls of incremental_attention(), and sums in double, with a bound for each element that follows from the roundings.
// What no query sees, the rows of K and V after a sequence's length and before its window, is NaN, and so are pages
// that no sequence has.
#pragma once
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "stdlib/attention/incremental/incremental.hpp"
#include "tests/catch.hpp"
#include "tests/device.hpp"
#include "tests/targets.hpp"

namespace ikat::tests::incremental {

using namespace stdlib;
using runtime::Device;

struct Case {
    std::vector<std::uint32_t> lengths{40};  // of each sequence
    std::uint32_t heads = 1, kv_heads = 1, queries = 1;
    std::uint32_t d = 64;
    std::uint32_t parts = 1;
    std::uint32_t page_rows = 0;  // 0: no pages
    bool causal = false;
    std::optional<std::uint32_t> before{};
    float soft_cap = 0;
    std::optional<float> scale{};
    double magnitude = 1;       // of Q
    std::uint32_t gap = 0;      // elements between rows
    bool heads_in_rows = true;  // a row of K has all heads; the rows of pages, too
    std::uint32_t room = 0;     // for this many more keys than the longest sequence has
    // At which elements of their buffers Q, K, V and O begin.
    std::array<std::uint32_t, 4> first{};
    std::uint32_t query_gap = 0;  // elements between rows of Q and O
    bool sinks = false;

    std::uint32_t sequences() const { return std::uint32_t(lengths.size()); }
    std::uint32_t capacity() const { return *std::max_element(lengths.begin(), lengths.end()) + room; }
    std::uint32_t pages_of_sequence() const { return (capacity() + page_rows - 1) / page_rows; }
    /// One of them belongs to nobody.
    std::uint32_t pages() const { return sequences() * pages_of_sequence() + 1; }
    /// The page of a sequence's key: the last ones first.
    std::uint32_t page(std::uint32_t s, std::uint32_t key) const {
        return pages() - 1 - (s * pages_of_sequence() + key / page_rows);
    }
    bool sees(std::uint32_t s, std::uint32_t i, std::uint32_t key) const {
        const std::int64_t own = std::int64_t(i) + lengths[s] - queries;
        return key < lengths[s] && (!causal || key <= own) && (!before || key >= own - std::int64_t(*before));
    }
    bool is_seen(std::uint32_t s, std::uint32_t key) const {
        for (std::uint32_t i = 0; i < queries; ++i)
            if (sees(s, i, key)) return true;
        return false;
    }
};

/// Numbers between -1 and 1, many of them equal.
inline double small(std::size_t i) { return double((i * 2654435761u >> 7) % 129) / 64 - 1; }

/// One that counts little, as much as scores, none, and one that is nearly all.
inline float sink(std::uint32_t head) { return std::array{-3.0f, 0.75f, -INFINITY, 9.5f}[head % 4]; }

struct Expected {
    double value, error;
};

template <class T>
struct Output {
    std::vector<T> o;
    std::vector<float> log_sums;
    bool operator==(const Output&) const = default;
};

template <class T>
struct Problem {
    Case is;
    std::vector<T> q, k, v;  // rows of heads of sequences; k and v without pages

    explicit Problem(const Case& is) : is(is) {
        for (std::size_t n = 0; n < std::size_t(is.sequences()) * is.heads * is.queries * is.d; ++n)
            q.push_back(T(float(small(n) * is.magnitude)));
        for (std::uint32_t s = 0; s < is.sequences(); ++s)
            for (std::uint32_t h = 0; h < is.kv_heads; ++h)
                for (std::uint32_t j = 0; j < is.capacity(); ++j)
                    for (std::uint32_t e = 0; e < is.d; ++e) {
                        const bool seen = is.is_seen(s, j);
                        k.push_back(T(seen ? float(small(k.size() + 1000003)) : NAN));
                        v.push_back(T(seen ? float(small(3 * v.size() + 77)) : e % 2 ? NAN : INFINITY));
                    }
    }
    std::size_t key_at(std::uint32_t s, std::uint32_t h, std::uint32_t j) const {
        return ((std::size_t(s) * is.kv_heads + h) * is.capacity() + j) * is.d;
    }
    std::size_t row_at(std::uint32_t s, std::uint32_t h, std::uint32_t i) const {
        return (std::size_t(s) * is.heads + h) * is.queries + i;
    }

    /// The row of O and, last, the logarithm of the sum of a query.
    std::vector<Expected> row(std::uint32_t s, std::uint32_t h, std::uint32_t i) const {
        const std::uint32_t kv = h / (is.heads / is.kv_heads), length = is.lengths[s];
        // What one rounding of a product, a sum or an exponent in f32 may cost, with room for a GPU's own order; and of
        // an element.
        constexpr double f32_step = 0x1p-22;
        constexpr double step = std::is_same_v<T, half> ? 0x1p-11 : std::is_same_v<T, bfloat16> ? 0x1p-8 : 0x1p-24;
        const double scale = is.scale ? double(*is.scale) : 1 / std::sqrt(double(is.d));
        const auto number = [](const T& x) { return double(float(x)); };
        std::vector<double> scores(length, -INFINITY);
        double maximum = -INFINITY, off = 0;  // by how much a score may be off
        for (std::uint32_t j = 0; j < length; ++j) {
            if (!is.sees(s, i, j)) continue;
            double sum = 0, size = 0;
            for (std::uint32_t e = 0; e < is.d; ++e) {
                const double product = number(q[row_at(s, h, i) * is.d + e]) * number(k[key_at(s, kv, j) + e]);
                sum += product, size += std::abs(product);
            }
            double score_off = (is.d + 4) * f32_step * size * scale;
            scores[j] = sum * scale;
            if (const double cap = double(is.soft_cap); cap > 0) {
                scores[j] = cap * std::tanh(scores[j] / cap);
                score_off += cap <= 64 ? 0x1p-21 * cap : 0x1p-19 * std::abs(scores[j]);
            }
            maximum = std::max(maximum, scores[j]);
            off = std::max(off, score_off + 4 * f32_step * std::abs(scores[j]));
        }
        const double sink = is.sinks ? double(incremental::sink(h)) : -INFINITY;
        if (sink > -INFINITY) off = std::max(off, 4 * f32_step * std::abs(sink));
        maximum = std::max(maximum, sink);
        std::vector<Expected> out(is.d + 1, {0, 0});
        out[is.d] = {-INFINITY, 0};
        if (maximum == -INFINITY) return out;
        double total = std::exp(sink - maximum);
        std::vector<double> weights;
        for (const double score : scores) total += weights.emplace_back(std::exp(score - maximum));
        for (double& weight : weights) weight /= total;
        // Exponentials, their sum, sums of products with V in f32, what warps and parts have put together; the
        // exponentials rounded once; those that are subnormal.
        const double relative = 2 * std::expm1(2 * off) + (2 * length + 8 * is.parts + 48) * f32_step + step;
        for (std::uint32_t e = 0; e < is.d; ++e) {
            double sum = 0, size = 0, all = 0;
            for (std::uint32_t j = 0; j < length; ++j) {
                if (scores[j] == -INFINITY) continue;
                const double weight = weights[j], x = number(v[key_at(s, kv, j) + e]);
                sum += weight * x, size += weight * std::abs(x), all += std::abs(x);
            }
            const double error = relative * size + 0x1p-25 * all / total;
            out[e] = {sum, error + step * (std::abs(sum) + error) + 0x1p-25};
        }
        const double log_sum = maximum + std::log(total);
        out[is.d] = {log_sum, 2 * off + (2 * length + 8 * is.parts + 48) * f32_step + 4 * f32_step * std::abs(log_sum)};
        return out;
    }

    /// Rows of Q or O that begin at element `first`, with gaps; NaN around them.
    std::vector<T> spread(const std::vector<T>& from, std::uint32_t first) const {
        const std::size_t pitch = is.d + is.query_gap;
        std::vector<T> out(first + from.size() / is.d * pitch, T(NAN));
        for (std::size_t i = 0; i < from.size(); ++i) out[first + i / is.d * pitch + i % is.d] = from[i];
        return out;
    }
    /// The other way round. Nothing has been written around them.
    std::vector<T> gathered(const std::vector<T>& from, std::uint32_t first) const {
        std::vector<T> out;
        std::size_t written = 0;
        for (std::size_t i = 0; i < from.size(); ++i)
            if (i >= first && (i - first) % (is.d + is.query_gap) < is.d)
                out.push_back(from[i]);
            else
                written += !std::isnan(float(from[i]));
        CHECK(written == 0);
        return out;
    }
    /// K or V, where the kernel finds them: rows `gap` apart, NaN between them; in pages, if there are any.
    std::vector<T> stored(const std::vector<T>& from, std::uint32_t first) const {
        return stored(from, first, is.d, is.gap, T(NAN));
    }
    /// Of any rows of so many elements, with `between` between them.
    template <class U>
    std::vector<U> stored(const std::vector<U>& from, std::uint32_t first, std::uint32_t of_row, std::uint32_t gap,
                          U between) const {
        const std::uint32_t rows = is.page_rows ? is.page_rows : is.capacity();
        const std::uint32_t planes = is.page_rows ? is.pages() : is.sequences();
        const std::size_t pitch = of_row + gap;
        std::vector<U> out(first + std::size_t(planes) * is.kv_heads * rows * pitch, between);
        for (std::uint32_t s = 0; s < is.sequences(); ++s)
            for (std::uint32_t h = 0; h < is.kv_heads; ++h)
                for (std::uint32_t j = 0; j < is.capacity(); ++j) {
                    const std::size_t plane = is.page_rows ? is.page(s, j) : s, row = j % rows;
                    const std::size_t at = is.heads_in_rows ? (plane * rows + row) * is.kv_heads + h
                                                            : (plane * is.kv_heads + h) * rows + row;
                    std::copy_n(from.begin() + std::ptrdiff_t(key_at(s, h, j) / is.d * of_row), of_row,
                                out.begin() + std::ptrdiff_t(first + at * pitch));
                }
        return out;
    }
    TensorView view(const auto& all, std::uint32_t first) const {
        const auto buffer = all.slice(first, all.size() - first);
        const std::uint64_t rows = is.page_rows ? is.page_rows : is.capacity(), pitch = is.d + is.gap;
        const std::uint64_t planes = is.page_rows ? is.pages() : is.sequences(), heads = is.kv_heads;
        if (is.heads_in_rows)
            return heads_in_rows(
                buffer.view(planes, rows, heads, is.d).pitched(rows * heads * pitch, heads * pitch, pitch));
        return buffer.view(planes, heads, rows, is.d).pitched(heads * rows * pitch, rows * pitch, pitch);
    }

    Output<T> run(const Device& device, bool gives_lengths = true) const {
        const auto keys = device.upload(stored(k, is.first[1]), "K"),
                   values = device.upload(stored(v, is.first[2]), "V");
        return run(device, view(keys, is.first[1]), view(values, is.first[2]), gives_lengths);
    }
    /// With these K and V.
    Output<T> run(const Device& device, const TensorView& K, const TensorView& V, bool gives_lengths = true) const {
        const auto queries = device.upload(spread(q, is.first[0]), "Q");
        const auto lengths = device.upload(is.lengths, "lengths");
        std::vector<std::uint32_t> numbers(1);
        if (is.page_rows) {
            numbers.assign(std::size_t(is.sequences()) * is.pages_of_sequence(), 0xfffffff0);  // after its length
            for (std::uint32_t s = 0; s < is.sequences(); ++s)
                for (std::uint32_t j = 0; j < is.lengths[s]; ++j)
                    numbers[s * is.pages_of_sequence() + j / is.page_rows] = is.page(s, j);
        }
        const auto table = device.upload(numbers, "pages");
        std::vector<float> of_heads;
        for (std::uint32_t h = 0; h < is.heads; ++h) of_heads.push_back(sink(h));
        const auto sinks = device.upload(of_heads, "sinks");
        auto o = device.upload(spread(std::vector<T>(q.size(), T(NAN)), is.first[3]), "O");
        auto log_sum = device.upload(std::vector<float>(q.size() / is.d, NAN), "log_sum");
        const auto rows = [&](auto& buffer, std::uint32_t first) {
            const std::uint64_t pitch = is.d + is.query_gap, of_head = is.queries * pitch;
            return buffer.slice(first, buffer.size() - first)
                .view(is.sequences(), is.heads, is.queries, is.d)
                .pitched(is.heads * of_head, of_head, pitch);
        };
        IncrementalOptions options{.causal = is.causal, .window_left = is.before, .scale = is.scale};
        options.soft_cap = is.soft_cap;
        options.parts = is.parts;
        options.log_sum = log_sum.view(is.sequences(), is.heads, is.queries);
        if (is.sinks) options.sinks = sinks;
        if (gives_lengths) options.lengths = lengths;
        if (is.page_rows) options.pages = table.view(is.sequences(), is.pages_of_sequence());
        incremental_attention(device, rows(queries, is.first[0]), K, V, rows(o, is.first[3]), options);
        return {gathered(o.download(), is.first[3]), log_sum.download()};
    }

    void check(const std::vector<Device>& devices) const {
        INFO("first length " << is.lengths[0] << ", sequences " << is.sequences() << ", heads " << is.heads << "/"
                             << is.kv_heads << ", queries " << is.queries << ", d " << is.d << ", parts " << is.parts
                             << ", page " << is.page_rows << ", gaps " << is.gap << " and " << is.query_gap
                             << ", causal " << is.causal << ", cap " << is.soft_cap);
        static std::size_t number = 0;
        for (std::size_t seed = 0; seed < devices.size(); ++seed)
            if (tests::is_for_seed(number, seed, devices.size())) compare(run(devices[seed]));
        ++number;
    }
    void compare(const Output<T>& got) const {
        std::size_t wrong = 0;
        std::string first;
        for (std::uint32_t s = 0; s < is.sequences(); ++s)
            for (std::uint32_t h = 0; h < is.heads; ++h)
                for (std::uint32_t i = 0; i < is.queries; ++i) {
                    const auto expected = row(s, h, i);
                    for (std::uint32_t e = 0; e <= is.d; ++e) {
                        const std::size_t at = row_at(s, h, i);
                        const double x = e < is.d ? double(float(got.o[at * is.d + e])) : double(got.log_sums[at]);
                        const auto [right, error] = expected[e];
                        if (x == right || std::abs(x - right) <= error || wrong++ > 0) continue;
                        first = std::to_string(s) + ", " + std::to_string(h) + ", " + std::to_string(i) + ", " +
                                std::to_string(e) + ": " + std::to_string(x) + ", not " + std::to_string(right) +
                                " within " + std::to_string(error);
                    }
                }
        INFO("the first: " << first);
        CHECK(wrong == 0);
    }
};

inline std::vector<Device> devices_of_seeds(int count = 4) {
    std::vector<Device> out;
    for (int seed = 0; seed < count; ++seed) out.push_back(test::open_device({.schedule = std::to_string(seed)}));
    return out;
}

}  // namespace ikat::tests::incremental
