// SPDX-License-Identifier: Apache-2.0
#include "stdlib/quantised/units.hpp"

namespace ikat::stdlib {
namespace {

using blocks::F;

/// Adds numbers in pairs, and these sums in pairs, each as soon as both are there: few are kept.
class PairSum {
public:
    void add(F x) {
        while (!levels_.empty() && levels_.back().level == level_) {
            x = value(levels_.back().sum + x);
            levels_.pop_back();
            ++level_;
        }
        levels_.push_back({x, level_});
        level_ = 0;
    }
    /// After a power of two of numbers.
    const F& total() const { return levels_.front().sum; }

private:
    struct Level {
        F sum;
        std::size_t level;
    };
    std::vector<Level> levels_{};
    std::size_t level_ = 0;
};

}  // namespace

std::vector<F> single_products(std::span<const blocks::Unit> units, std::size_t tokens, const FourActivations& four) {
    std::vector<PairSum> sums(units.size() * tokens);
    for (std::size_t k = 0; k < 8; ++k) {
        std::vector<Lanes<4>> weights;
        for (const blocks::Unit& unit : units) weights.push_back(unit.lanes(k));
        for (std::size_t token = 0; token < tokens; ++token) {
            const auto x = four(token, k);
            for (std::size_t u = 0; u < units.size(); ++u) {
                const Lanes<4>& w = weights[u];
                f32 sum = w[0] * bit_cast<f32>(x[0]);
                for (std::size_t lane = 1; lane < 4; ++lane) sum = fma(w[lane], bit_cast<f32>(x[lane]), sum);
                sums[u * tokens + token].add(value(sum));
            }
        }
    }
    std::vector<F> out;
    for (const PairSum& sum : sums) out.push_back(sum.total());
    return out;
}

std::vector<F> packed_products(std::span<const blocks::Unit> units, std::size_t tokens, const PackedBlock& block) {
    std::vector<std::optional<F>> sums(units.size() * tokens);
    for (std::size_t token = 0; token < tokens; ++token) {
        const auto words = block(token);
        const auto u = blocks::eight<Leaf<std::int32_t>>([&](std::size_t k) { return cast<i32>(words[k + 1]); });
        for (std::size_t n = 0; n < units.size(); ++n)
            sums[n * tokens + token] = F(value(units[n].product(u) * blocks::lower_half(words[0])));
    }
    std::vector<F> out;
    for (const std::optional<F>& sum : sums) out.push_back(*sum);
    return out;
}

}  // namespace ikat::stdlib
