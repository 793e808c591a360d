// SPDX-License-Identifier: Apache-2.0
// Calls of attention_backward() on the problems of attention, against the formula in double, with a bound for each
// element that follows from the roundings. What is between rows is NaN.
#pragma once
#include <cmath>
#include <cstring>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "stdlib/attention_backward/attention_backward.hpp"
#include "stdlib/reference/attention.hpp"
#include "tests/differential/stdlib/attention_problem.hpp"

namespace ikat::tests::attention_backward {

using namespace stdlib;
using attention::Extra, attention::Rows, attention::Shape, attention::small;
using reference::Bounded;
using runtime::Device;

/// What a call makes.
template <class T>
struct Made {
    std::vector<T> dQ, dK, dV, dbias;
    bool operator==(const Made& other) const {
        const auto same = [](const std::vector<T>& x, const std::vector<T>& y) {
            return x.size() == y.size() && std::memcmp(x.data(), y.data(), x.size() * sizeof(T)) == 0;
        };
        return same(dQ, other.dQ) && same(dK, other.dK) && same(dV, other.dV) && same(dbias, other.dbias);
    }
};

template <class T>
struct Problem : attention::Problem<T> {
    using Base = attention::Problem<T>;
    using Base::bias, Base::d, Base::extra, Base::K, Base::O, Base::Q, Base::shape, Base::V;
    static constexpr double step = std::is_same_v<T, half> ? 0x1p-11 : 0x1p-8;

    Rows<T> dO;
    std::vector<float> log_sum;
    bool has_dbias;
    /// Functions of one's own, and the same on the host.
    std::function<void(const Device&, AttentionOptions&, AttentionGradients&)> give{};
    std::function<void(reference::AttentionCase&)> rules{};

    Problem(const Shape& shape, std::uint32_t d, const Extra& extra = {}, bool has_dbias = true)
        : Base(shape, d, extra),
          dO(shape, shape.heads, shape.queries, d, [](std::size_t i) { return small(5 * i + 9001); }),
          has_dbias(has_dbias && extra.bias_heads > 0) {
        for (std::uint32_t b = 0; b < shape.batch; ++b)
            for (std::uint32_t h = 0; h < shape.heads; ++h)
                for (std::uint32_t i = 0; i < shape.queries; ++i) {
                    const auto row = this->row(b, h, i);
                    for (std::uint32_t e = 0; e < d; ++e) O.stored[O.at(b, h, i, e)] = T(float(row[e].value));
                    log_sum.push_back(float(row[d].value));
                }
    }

    /// With rules: O and log_sum are theirs. Of one sequence.
    void take_rules(std::function<void(reference::AttentionCase&)> given) {
        rules = std::move(given);
        reference::AttentionCase of = of_sequence(0);
        reference::attention_forward(of);
        std::size_t n = 0;
        for (std::uint32_t h = 0; h < shape.heads; ++h)
            for (std::uint32_t i = 0; i < shape.queries; ++i)
                for (std::uint32_t e = 0; e < d; ++e) O.stored[O.at(0, h, i, e)] = T(float(of.O[n++]));
        for (std::size_t i = 0; i < log_sum.size(); ++i) log_sum[i] = float(of.log_sum[i]);
    }
    /// One sequence.
    reference::AttentionCase of_sequence(std::uint32_t b) const {
        reference::AttentionCase out{shape.queries, shape.keys, shape.heads, shape.kv_heads, d};
        const auto take = [&](const Rows<T>& from) {
            std::vector<double> all;
            for (std::uint32_t h = 0; h < from.heads; ++h)
                for (std::uint32_t i = 0; i < from.length; ++i)
                    for (std::uint32_t e = 0; e < d; ++e) all.push_back(from(b, h, i, e));
            return all;
        };
        out.Q = take(Q), out.K = take(K), out.V = take(V), out.O = take(O), out.dO = take(dO);
        const std::size_t of_one = std::size_t(shape.heads) * shape.queries;
        out.log_sum.assign(log_sum.begin() + std::ptrdiff_t(b * of_one),
                           log_sum.begin() + std::ptrdiff_t((b + 1) * of_one));
        if (extra.bias_heads)
            for (std::uint32_t h = 0; h < shape.heads; ++h)
                for (std::uint32_t i = 0; i < shape.queries; ++i)
                    for (std::uint32_t j = 0; j < shape.keys; ++j)
                        out.bias.push_back(bias(extra.bias_batch == 1 ? 0 : b, extra.bias_heads == 1 ? 0 : h, i, j));
        out.scale = this->scale(), out.soft_cap = double(extra.options.soft_cap), out.step = step;
        out.sees = [this](std::uint32_t, std::uint32_t i, std::uint32_t j) { return this->sees(i, j); };
        if (rules) rules(out);
        return out;
    }

    Made<T> run(const Device& device) const {
        const auto q = device.upload(Q.stored, "Q"), k = device.upload(K.stored, "K"), v = device.upload(V.stored, "V"),
                   o = device.upload(O.stored, "O"), gradient = device.upload(dO.stored, "dO"),
                   added = device.upload(bias.stored, "bias");
        const auto sums = device.upload(log_sum, "log_sum");
        const auto none = [](std::size_t size) { return std::vector<T>(size, T(NAN)); };
        auto dq = device.upload(none(Q.stored.size()), "dQ"), dk = device.upload(none(K.stored.size()), "dK"),
             dv = device.upload(none(V.stored.size()), "dV"), dbias = device.upload(none(bias.stored.size()), "dbias");
        AttentionOptions options = extra.options;
        AttentionGradients gradients;
        if (extra.bias_heads) options.bias = bias.view(added);
        if (has_dbias) gradients.dbias = bias.view(dbias);
        if (give) give(device, options, gradients);
        stdlib::attention_backward(device, Q.view(q), K.view(k), V.view(v), O.view(o),
                                   sums.view(shape.batch, shape.heads, shape.queries), dO.view(gradient), Q.view(dq),
                                   K.view(dk), V.view(dv), options, gradients);
        return {dq.download(), dk.download(), dv.download(), has_dbias ? dbias.download() : std::vector<T>{}};
    }

    void check(const Made<T>& made) const {
        INFO("queries " << shape.queries << ", keys " << shape.keys << ", heads " << shape.heads << "/"
                        << shape.kv_heads << ", batch " << shape.batch << ", gap " << shape.gap << ", first "
                        << shape.first << ", heads in rows " << shape.heads_in_rows << ", d " << d << ", causal "
                        << extra.options.causal);
        std::vector<std::vector<Bounded>> dbias(bias.stored.size());
        for (std::uint32_t b = 0; b < shape.batch; ++b) {
            const auto expected = reference::attention_backward(of_sequence(b));
            compare("dQ", made.dQ, Q, b, expected.dQ);
            compare("dK", made.dK, K, b, expected.dK);
            compare("dV", made.dV, V, b, expected.dV);
            if (!has_dbias) continue;
            std::size_t n = 0;
            for (std::uint32_t h = 0; h < shape.heads; ++h)
                for (std::uint32_t i = 0; i < shape.queries; ++i)
                    for (std::uint32_t j = 0; j < shape.keys; ++j)
                        dbias[bias.at(extra.bias_batch == 1 ? 0 : b, extra.bias_heads == 1 ? 0 : h, i, j)].push_back(
                            expected.dbias[n++]);
        }
        for (const auto& [is, of] : {std::pair(&made.dQ, &Q), {&made.dK, &K}, {&made.dV, &V}})
            CHECK(written(*is) == std::size_t(shape.batch) * of->heads * of->length * d);  // nothing between rows
        if (has_dbias) check_bias(made.dbias, dbias);
    }

private:
    static std::size_t written(const std::vector<T>& x) {
        return std::size_t(std::ranges::count_if(x, [](const T& v) { return !std::isnan(float(v)); }));
    }
    static bool is_right(const T& is, const Bounded& expected) {
        return std::abs(double(float(is)) - expected.value) <= expected.error;
    }
    static std::string text(const T& is, const Bounded& expected) {
        return std::to_string(float(is)) + ", not " + std::to_string(expected.value) + " within " +
               std::to_string(expected.error);
    }
    void compare(const char* what, const std::vector<T>& made, const Rows<T>& rows, std::uint32_t b,
                 const std::vector<Bounded>& expected) const {
        std::size_t n = 0, wrong = 0;
        std::string first;
        for (std::uint32_t h = 0; h < rows.heads; ++h)
            for (std::uint32_t i = 0; i < rows.length; ++i)
                for (std::uint32_t e = 0; e < d; ++e, ++n) {
                    const T& is = made[rows.at(b, h, i, e)];
                    if (is_right(is, expected[n]) || wrong++ != 0) continue;
                    first = std::to_string(h) + ", " + std::to_string(i) + ", " + std::to_string(e) + ": " +
                            text(is, expected[n]);
                }
        INFO(what << " of sequence " << b << ", the first: " << first);
        CHECK(wrong == 0);
    }
    void check_bias(const std::vector<T>& made, const std::vector<std::vector<Bounded>>& terms) const {
        std::size_t wrong = 0, all = 0;
        std::string first;
        for (std::size_t n = 0; n < made.size(); ++n) {
            if (terms[n].empty()) continue;
            const Bounded expected = reference::bounded_sum(terms[n], step);
            ++all;
            if (!is_right(made[n], expected) && wrong++ == 0)
                first = std::to_string(n) + ": " + text(made[n], expected);
        }
        INFO("dbias, the first: " << first);
        CHECK(wrong == 0);
        CHECK(written(made) == all);
    }
};

/// Sequences that follow each other.
struct Ragged {
    std::vector<std::uint32_t> queries, keys;  // where sequences begin and end
    std::uint32_t heads = 2, kv_heads = 1, d = 64;
    AttentionOptions options{};
    std::uint32_t bias_heads = 0;
};

/// All sequences at once give the bits of calls for each.
template <class T>
void check_ragged(const Device& device, const Ragged& is) {
    const auto made = [&](std::uint32_t heads, const std::vector<std::uint32_t>& of, std::size_t seed) {
        std::vector<T> out(std::size_t(of.back() + 1) * heads * is.d);
        for (std::size_t n = 0; n < out.size(); ++n) out[n] = T(float(attention::small(n + seed)));
        return out;
    };
    const auto q = device.upload(made(is.heads, is.queries, 0), "Q"),
               o = device.upload(made(is.heads, is.queries, 5), "O"),
               gradient = device.upload(made(is.heads, is.queries, 9), "dO"),
               k = device.upload(made(is.kv_heads, is.keys, 77), "K"),
               v = device.upload(made(is.kv_heads, is.keys, 6), "V");
    const std::uint32_t all = is.queries.back() + 1, all_keys = is.keys.back() + 1;
    std::uint32_t columns = 2;
    for (std::size_t s = 0; s + 1 < is.keys.size(); ++s) columns = std::max(columns, is.keys[s + 1] - is.keys[s] + 2);
    std::vector<float> of_queries(std::size_t(is.heads) * all);
    for (std::size_t n = 0; n < of_queries.size(); ++n) of_queries[n] = 4 + float(n % 7) / 4;
    const auto log_sum = device.upload(of_queries, "log_sum");
    const std::size_t of_bias = std::size_t(std::max(is.bias_heads, 1u)) * all * columns;
    std::vector<T> biases(of_bias);
    for (std::size_t n = 0; n < of_bias; ++n) biases[n] = T(float(attention::small(n + 3)));
    const auto bias = device.upload(biases, "bias");
    const auto run = [&](bool at_once) {
        auto dq = device.upload(std::vector<T>(q.size(), T(-7)), "dQ"),
             dk = device.upload(std::vector<T>(k.size(), T(-7)), "dK"),
             dv = device.upload(std::vector<T>(v.size(), T(-7)), "dV"),
             dbias = device.upload(std::vector<T>(of_bias, T(0)), "dbias");
        const auto part = [&](auto& x, std::uint32_t heads, std::uint32_t first, std::uint32_t last) {
            const std::size_t row = std::size_t(heads) * is.d;
            return heads_in_rows(x.slice(first * row, (last - first) * row).view(1, last - first, heads, is.d));
        };
        const auto part_of_bias = [&](auto& x, std::uint32_t first, std::uint32_t last, std::uint32_t keys) {
            return x.slice(std::uint64_t(first) * columns, x.size() - std::uint64_t(first) * columns)
                .view(1, is.bias_heads, last - first, keys)
                .pitched(x.size(), std::uint64_t(all) * columns, columns);
        };
        const auto call = [&](std::uint32_t first, std::uint32_t last, std::uint32_t key, std::uint32_t end,
                              AttentionOptions options, std::uint32_t keys) {
            AttentionGradients gradients;
            if (is.bias_heads) options.bias = part_of_bias(bias, first, last, keys);
            if (is.bias_heads) gradients.dbias = part_of_bias(dbias, first, last, keys);
            stdlib::attention_backward(device, part(q, is.heads, first, last), part(k, is.kv_heads, key, end),
                                       part(v, is.kv_heads, key, end), part(o, is.heads, first, last),
                                       log_sum.slice(first, log_sum.size() - first)
                                           .view(1, is.heads, last - first)
                                           .pitched(log_sum.size(), all),
                                       part(gradient, is.heads, first, last), part(dq, is.heads, first, last),
                                       part(dk, is.kv_heads, key, end), part(dv, is.kv_heads, key, end), options,
                                       gradients);
        };
        const auto query_offsets = device.upload(is.queries), key_offsets = device.upload(is.keys);
        AttentionOptions options = is.options;
        if (at_once) {
            options.query_offsets = query_offsets, options.key_offsets = key_offsets;
            call(0, all, 0, all_keys, options, columns);
        } else {
            for (std::size_t s = 0; s + 1 < is.queries.size(); ++s)
                call(is.queries[s], is.queries[s + 1], is.keys[s], is.keys[s + 1], options,
                     is.keys[s + 1] - is.keys[s]);
        }
        return Made<T>{dq.download(), dk.download(), dv.download(), dbias.download()};
    };
    CHECK(run(true) == run(false));
}

}  // namespace ikat::tests::attention_backward
