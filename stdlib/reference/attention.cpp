// SPDX-License-Identifier: Apache-2.0
#include "stdlib/reference/attention.hpp"

#include <algorithm>
#include <cmath>
#include <span>

namespace ikat::stdlib::reference {
namespace {

// What one rounding of a product, a sum or an exponent in f32 may cost, with room for a GPU's own order.
constexpr double f32_step = 0x1p-22;
// Of elements of 16 bits that are subnormal.
constexpr double subnormal = 0x1p-25;

Bounded rounded(const Bounded& x, double step) {
    return {x.value, x.error + step * (std::abs(x.value) + x.error) + subnormal};
}

/// A sum of products in f32, and of their magnitudes.
struct Dot {
    double sum = 0, size = 0;
    Dot(std::span<const double> x, std::span<const double> y) {
        for (std::size_t e = 0; e < x.size(); ++e) sum += x[e] * y[e], size += std::abs(x[e] * y[e]);
    }
};

/// The sum of terms in f32: of their errors, and of its own roundings.
class Sum {
public:
    void add(const Bounded& term, double factor = 1) {
        value_ += term.value * factor, error_ += term.error * std::abs(factor);
        size_ += (std::abs(term.value) + term.error) * std::abs(factor), ++count_;
    }
    Bounded get(double scale = 1) const {
        return {value_ * scale, (error_ + (2 * count_ + 16) * f32_step * size_) * scale};
    }

private:
    double value_ = 0, error_ = 0, size_ = 0, count_ = 0;
};

/// Of one query and key: P, and dS by the score after the cap and by the product.
class Element {
public:
    Element(const AttentionCase& of, std::uint32_t h, std::uint32_t i, std::uint32_t j) : of_(of) {
        const std::uint32_t d = of.head_dim, kv = h / (of.heads / of.kv_heads);
        const std::size_t query = std::size_t(h) * of.queries + i, key = std::size_t(kv) * of.keys + j;
        const auto row = [d](const std::vector<double>& x, std::size_t n) { return std::span(x).subspan(n * d, d); };
        const Dot product(row(of.Q, query), row(of.K, key));
        const Bounded score = score_of(product, h, i, j);
        if (score.value == -INFINITY) return;
        const double log_sum = of.log_sum[query];
        const double off = score.error + 4 * f32_step * (std::abs(score.value) + std::abs(log_sum));
        weight.value = std::exp(score.value - log_sum);
        weight.error = weight.value * (std::expm1(off) + 4 * f32_step) + 0x1p-126;
        const Dot of_v(row(of.dO, query), row(of.V, key)), of_o(row(of.dO, query), row(of.O, query));
        const Bounded change{of_v.sum - of_o.sum, (d + 4) * f32_step * (of_v.size + 2 * of_o.size)};
        of_score = times(times(weight, change), own_slope_);
        of_product = times(of_score, cap_slope_);
    }
    Bounded weight, of_score, of_product;

private:
    static Bounded times(const Bounded& a, const Bounded& b) {
        const double error = std::abs(a.value) * b.error + std::abs(b.value) * a.error + a.error * b.error;
        return {a.value * b.value, error + f32_step * (std::abs(a.value * b.value) + error)};
    }
    Bounded score_of(const Dot& product, std::uint32_t h, std::uint32_t i, std::uint32_t j) {
        Bounded score{product.sum * of_.scale, (of_.head_dim + 4) * f32_step * product.size * of_.scale};
        if (const double cap = of_.soft_cap; cap > 0 && std::isfinite(cap)) {
            const double tanh = std::tanh(score.value / cap);
            score.error += cap <= 64 ? 0x1p-21 * cap : 0x1p-19 * std::abs(cap * tanh);
            score.value = cap * tanh;
            cap_slope_ = {1 - tanh * tanh, 2 * score.error / cap + 4 * f32_step};
        }
        if (!of_.bias.empty()) {
            const double bias = of_.bias[(std::size_t(h) * of_.queries + i) * of_.keys + j];
            score.value += bias;
            if (std::isfinite(bias)) score.error += 4 * f32_step * (std::abs(score.value) + std::abs(bias));
        }
        if (!of_.scores) return score;
        const double own = of_.scores(score.value, h, i, j), slope = of_.slope(score.value, h, i, j);
        own_slope_ = {slope, score.error + 8 * f32_step * (1 + std::abs(slope))};
        return {own, score.error + 8 * f32_step * (std::abs(score.value) + std::abs(own))};
    }

    const AttentionCase& of_;
    Bounded cap_slope_{1, 0}, own_slope_{1, 0};
};

/// What the forward pass makes of a query and a key; -infinity if it does not see it.
double exact_score(const AttentionCase& of, std::uint32_t h, std::uint32_t i, std::uint32_t j) {
    if (of.sees && !of.sees(h, i, j)) return -INFINITY;
    const std::uint32_t d = of.head_dim, kv = h / (of.heads / of.kv_heads);
    const Dot product(std::span(of.Q).subspan((std::size_t(h) * of.queries + i) * d, d),
                      std::span(of.K).subspan((std::size_t(kv) * of.keys + j) * d, d));
    double score = product.sum * of.scale;
    if (of.soft_cap > 0 && std::isfinite(of.soft_cap)) score = of.soft_cap * std::tanh(score / of.soft_cap);
    if (!of.bias.empty()) score += of.bias[(std::size_t(h) * of.queries + i) * of.keys + j];
    return of.scores ? of.scores(score, h, i, j) : score;
}

}  // namespace

void attention_forward(AttentionCase& of) {
    const std::uint32_t d = of.head_dim;
    of.O.assign(of.Q.size(), 0), of.log_sum.assign(std::size_t(of.heads) * of.queries, -INFINITY);
    for (std::uint32_t h = 0; h < of.heads; ++h)
        for (std::uint32_t i = 0; i < of.queries; ++i) {
            const std::size_t query = std::size_t(h) * of.queries + i;
            std::vector<double> scores;
            double largest = -INFINITY, total = 0;
            for (std::uint32_t j = 0; j < of.keys; ++j)
                largest = std::max(largest, scores.emplace_back(exact_score(of, h, i, j)));
            if (largest == -INFINITY) continue;
            for (const double score : scores) total += std::exp(score - largest);
            of.log_sum[query] = largest + std::log(total);
            for (std::uint32_t j = 0; j < of.keys; ++j)
                for (std::uint32_t e = 0; e < d; ++e)
                    of.O[query * d + e] += std::exp(scores[j] - largest) / total *
                                           of.V[(std::size_t(h / (of.heads / of.kv_heads)) * of.keys + j) * d + e];
        }
}

Bounded bounded_sum(const std::vector<Bounded>& terms, double step) {
    Sum sum;
    for (const Bounded& term : terms) sum.add(term);
    return rounded(sum.get(), step);
}

AttentionGradientsExpected attention_backward(const AttentionCase& of) {
    const std::uint32_t d = of.head_dim;
    std::vector<Sum> dQ(of.Q.size()), dK(of.K.size()), dV(of.V.size());
    AttentionGradientsExpected out;
    out.dbias.resize(std::size_t(of.heads) * of.queries * of.keys);
    for (std::uint32_t h = 0; h < of.heads; ++h)
        for (std::uint32_t i = 0; i < of.queries; ++i)
            for (std::uint32_t j = 0; j < of.keys; ++j) {
                const std::size_t query = std::size_t(h) * of.queries + i,
                                  key = std::size_t(h / (of.heads / of.kv_heads)) * of.keys + j;
                if (of.log_sum[query] == -INFINITY || (of.sees && !of.sees(h, i, j))) continue;
                const Element element(of, h, i, j);
                const Bounded weight = rounded(element.weight, of.step), slope = rounded(element.of_product, of.step);
                for (std::uint32_t e = 0; e < d; ++e) {
                    dQ[query * d + e].add(slope, of.K[key * d + e]);
                    dK[key * d + e].add(slope, of.Q[query * d + e]);
                    dV[key * d + e].add(weight, of.dO[query * d + e]);
                }
                out.dbias[query * of.keys + j] = element.of_score;
            }
    const auto results = [&](const std::vector<Sum>& sums, double scale, std::vector<Bounded>& to) {
        for (const Sum& sum : sums) to.push_back(rounded(sum.get(scale), of.step));
    };
    results(dQ, of.scale, out.dQ), results(dK, of.scale, out.dK), results(dV, 1, out.dV);
    return out;
}

}  // namespace ikat::stdlib::reference
