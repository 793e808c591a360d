// SPDX-License-Identifier: Apache-2.0
// Attention with functions of one's own for scores and sight, against sums in double, with a bound for each element
// that follows from the roundings.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "stdlib/attention/incremental/incremental.hpp"
#include "tests/catch.hpp"
#include "tests/device.hpp"
#include "tests/targets.hpp"

namespace ikat::tests {

/// The same functions on the host. The score moves by no more than it is given moves.
struct HostRules {
    std::function<double(double score, std::uint32_t s, std::uint32_t h, std::int64_t query, std::int64_t key)> scores =
        [](double score, auto...) { return score; };
    std::function<bool(std::uint32_t s, std::uint32_t h, std::int64_t query, std::int64_t key)> sees = [](auto...) {
        return true;
    };
};

struct OwnShape {
    struct Sequence {
        std::uint32_t queries, keys;
    };
    std::vector<Sequence> sequences;
    std::uint32_t heads = 1, kv_heads = 1, d = 64;
    bool by_offsets = false;      // otherwise all have the same number of queries
    std::uint32_t more_room = 0;  // for keys, where the number of each sequence is a length
};

/// Functions of one's own, and the same on the host. give() makes them for a device, whose buffers live as long as what
/// it returns.
struct OwnRules {
    HostRules host;
    std::function<std::shared_ptr<void>(const runtime::Device&, std::optional<stdlib::OwnScores>&,
                                        std::optional<stdlib::OwnSight>&)>
        give;
};

/// Numbers between -1 and 1.
inline double own_number(std::size_t i) { return double((i * 2654435761u >> 7) % 129) / 64 - 1; }

/// Scores fall by a slope of the head for each key between; keys of the window and the first four are seen.
inline OwnRules alibi_and_window(std::int32_t window) {
    const std::vector<float> slopes{0.5f, 0.125f, 0.03125f, 0.0078125f};
    OwnRules out;
    out.host.scores = [=](double score, auto, auto h, auto query, auto key) {
        return score - double(slopes[h]) * double(std::abs(query - key));
    };
    out.host.sees = [=](auto, auto, auto query, auto key) { return key <= query && (key > query - window || key < 4); };
    out.give = [=](const runtime::Device& device, auto& scores, auto& sees) {
        const auto buffer = std::make_shared<runtime::Buffer<float>>(device.upload(slopes, "slopes"));
        scores = stdlib::scores(
            "alibi",
            [](auto score, auto at, auto slopes) {
                return score - slopes[at.head] * cast<f32>(abs(at.query - at.key));
            },
            *buffer);
        sees = stdlib::sees(
            "window_and_sinks",
            [](auto at, auto window) { return (at.key <= at.query) & ((at.key > at.query - window) | (at.key < 4)); },
            window);
        return buffer;
    };
    return out;
}

/// Keys of a prefix, of each sequence its own length, are seen by all queries.
inline OwnRules prefixes() {
    const std::vector<std::int64_t> lengths{100, 3, 64};
    OwnRules out;
    out.host.sees = [=](auto s, auto, auto query, auto key) { return key <= query || key < lengths[s]; };
    out.give = [=](const runtime::Device& device, auto&, auto& sees) {
        const std::vector<std::uint32_t> given(lengths.begin(), lengths.end());
        const auto buffer = std::make_shared<runtime::Buffer<std::uint32_t>>(device.upload(given, "prefixes"));
        sees = stdlib::sees(
            "prefix", [](auto at, auto prefixes) { return (at.key <= at.query) | (at.key < prefixes[at.sequence]); },
            *buffer);
        return buffer;
    };
    return out;
}

template <class T>
struct OwnProblem {
    OwnShape is;
    std::vector<std::uint32_t> query_begin{0}, key_begin{0};  // rows of each sequence
    std::uint32_t capacity = 0;                               // rows of K of each sequence, without offsets
    std::vector<T> q, k, v;

    explicit OwnProblem(const OwnShape& shape) : is(shape) {
        for (const auto& sequence : is.sequences) {
            query_begin.push_back(query_begin.back() + sequence.queries);
            key_begin.push_back(key_begin.back() + sequence.keys);
            capacity = std::max(capacity, sequence.keys + is.more_room);
        }
        const std::size_t q_count = std::size_t(query_begin.back()) * is.heads * is.d;
        const std::size_t k_count =
            std::size_t(is.by_offsets ? key_begin.back() : capacity * is.sequences.size()) * is.kv_heads * is.d;
        for (std::size_t i = 0; i < q_count; ++i) q.push_back(T(float(own_number(i))));
        for (std::size_t i = 0; i < k_count; ++i) k.push_back(T(float(own_number(i + 1000003))));
        for (std::size_t i = 0; i < k_count; ++i) v.push_back(T(float(own_number(3 * i + 77))));
    }
    std::uint32_t count() const { return std::uint32_t(is.sequences.size()); }
    std::size_t query_at(std::uint32_t s, std::uint32_t h, std::uint32_t i) const {
        return is.d * (is.by_offsets ? std::size_t(h) * query_begin.back() + query_begin[s] + i
                                     : (std::size_t(s) * is.heads + h) * is.sequences[0].queries + i);
    }
    std::size_t key_at(std::uint32_t s, std::uint32_t h, std::uint32_t j) const {
        const std::uint32_t kv = h / (is.heads / is.kv_heads);
        return is.d * (is.by_offsets ? std::size_t(kv) * key_begin.back() + key_begin[s] + j
                                     : (std::size_t(s) * is.kv_heads + kv) * capacity + j);
    }

    struct Expected {
        double value, error;
    };
    /// The row of O of a query; empty of none: 0.
    std::vector<Expected> row(const HostRules& rules, std::uint32_t s, std::uint32_t h, std::uint32_t i) const {
        constexpr double f32_step = 0x1p-22;
        constexpr double step = std::is_same_v<T, half> ? 0x1p-11 : std::is_same_v<T, bfloat16> ? 0x1p-8 : 0x1p-24;
        const std::uint32_t keys = is.sequences[s].keys, d = is.d;
        const std::int64_t p = std::int64_t(i) + keys - is.sequences[s].queries;
        std::vector<double> scores(keys, -INFINITY);
        double maximum = -INFINITY, off = 0, total = 0;
        for (std::uint32_t j = 0; j < keys; ++j) {
            if (!rules.sees(s, h, p, j)) continue;
            double sum = 0, size = 0;
            for (std::uint32_t e = 0; e < d; ++e) {
                const double product = double(float(q[query_at(s, h, i) + e])) * double(float(k[key_at(s, h, j) + e]));
                sum += product, size += std::abs(product);
            }
            const double before = sum / std::sqrt(double(d)), score = rules.scores(before, s, h, p, j);
            scores[j] = score, maximum = std::max(maximum, score);
            // A few operations on numbers that are no larger than what is before and what comes of it.
            off = std::max(off, (d + 4) * f32_step * size / std::sqrt(double(d)) +
                                    8 * f32_step * (std::abs(before) + std::abs(score)));
        }
        std::vector<Expected> out(d, {0, 0});
        if (maximum == -INFINITY) return out;
        for (double& score : scores) total += score = std::exp(score - maximum);
        const double relative = 2 * std::expm1(2 * off) + (2 * keys + 16) * f32_step + step;
        for (std::uint32_t e = 0; e < d; ++e) {
            double sum = 0, size = 0, all = 0;
            for (std::uint32_t j = 0; j < keys; ++j) {
                if (!rules.sees(s, h, p, j)) continue;
                const double x = double(float(v[key_at(s, h, j) + e]));
                sum += scores[j] / total * x, size += scores[j] / total * std::abs(x), all += std::abs(x);
            }
            const double error = relative * size + 0x1p-25 * all / total;
            out[e] = {sum, error + step * (std::abs(sum) + error) + 0x1p-25};
        }
        return out;
    }
    std::vector<Expected> rows(const HostRules& rules) const {
        std::vector<Expected> out(q.size());
        for (std::uint32_t s = 0; s < count(); ++s)
            for (std::uint32_t h = 0; h < is.heads; ++h)
                for (std::uint32_t i = 0; i < is.sequences[s].queries; ++i) {
                    const auto of_query = row(rules, s, h, i);
                    std::copy(of_query.begin(), of_query.end(), out.begin() + std::ptrdiff_t(query_at(s, h, i)));
                }
        return out;
    }

    std::vector<T> flash(const runtime::Device& device, stdlib::AttentionOptions options) const {
        const auto Q = device.upload(q, "Q"), K = device.upload(k, "K"), V = device.upload(v, "V");
        auto O = device.upload(std::vector<T>(q.size(), T(NAN)), "O");
        if (!is.by_offsets) {
            const std::uint32_t queries = is.sequences[0].queries;
            stdlib::flash_attention(
                device, Q.view(count(), is.heads, queries, is.d), K.view(count(), is.kv_heads, capacity, is.d),
                V.view(count(), is.kv_heads, capacity, is.d), O.view(count(), is.heads, queries, is.d), options);
            return O.download();
        }
        const auto query_offsets = device.upload(query_begin), key_offsets = device.upload(key_begin);
        options.query_offsets = query_offsets, options.key_offsets = key_offsets;
        stdlib::flash_attention(
            device, Q.view(is.heads, query_begin.back(), is.d), K.view(is.kv_heads, key_begin.back(), is.d),
            V.view(is.kv_heads, key_begin.back(), is.d), O.view(is.heads, query_begin.back(), is.d), options);
        return O.download();
    }
    std::vector<T> incremental(const runtime::Device& device, stdlib::IncrementalOptions options) const {
        const auto Q = device.upload(q, "Q"), K = device.upload(k, "K"), V = device.upload(v, "V");
        auto O = device.upload(std::vector<T>(q.size(), T(NAN)), "O");
        std::vector<std::uint32_t> all;
        for (const auto& sequence : is.sequences) all.push_back(sequence.keys);
        const auto lengths = device.upload(all, "lengths");
        options.lengths = lengths;
        const std::uint32_t queries = is.sequences[0].queries;
        stdlib::incremental_attention(
            device, Q.view(count(), is.heads, queries, is.d), K.view(count(), is.kv_heads, capacity, is.d),
            V.view(count(), is.kv_heads, capacity, is.d), O.view(count(), is.heads, queries, is.d), options);
        return O.download();
    }

    void compare(const std::vector<T>& got, const std::vector<Expected>& expected) const {
        INFO("sequences " << count() << ", the first with " << is.sequences[0].queries << " queries and "
                          << is.sequences[0].keys << " keys, heads " << is.heads << "/" << is.kv_heads << ", d " << is.d
                          << ", offsets " << is.by_offsets);
        std::size_t wrong = 0;
        std::string first;
        for (std::size_t i = 0; i < got.size(); ++i) {
            if (std::abs(double(float(got[i])) - expected[i].value) <= expected[i].error) continue;
            if (wrong++ == 0)
                first = std::to_string(i) + ": " + std::to_string(float(got[i])) + ", not " +
                        std::to_string(expected[i].value) + " within " + std::to_string(expected[i].error);
        }
        INFO("the first: " << first);
        CHECK(wrong == 0);
    }
};

}  // namespace ikat::tests
