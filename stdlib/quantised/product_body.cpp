// SPDX-License-Identifier: Apache-2.0
#include <bit>
#include <deque>
#include <optional>

#include "dsl/threads/grids.hpp"
#include "stdlib/quantised/product_kernels.hpp"

namespace ikat::stdlib {
namespace {

using blocks::F, blocks::U;
using Block = BlockGroup<WarpGroup::block>;
constexpr std::uint32_t piece = ProductKernel::piece, threads = WarpGroup::block;

using Memory = Indexable<std::uint32_t, Direction::ReadWrite>;
/// Shared memory: `count` times `words` words; count is at most 16.
template <std::uint32_t words>
Memory memory_of(std::uint32_t count) {
    std::optional<Memory> out;
    const auto declare = [&]<std::uint32_t n>(std::integral_constant<std::uint32_t, n>) {
        if (n == count) out.emplace(Shared<std::uint32_t, n * words>().flat());
    };
    [&]<std::uint32_t... n>(std::integer_sequence<std::uint32_t, n...>) {
        (declare(std::integral_constant<std::uint32_t, n + 1>{}), ...);
    }
    (std::make_integer_sequence<std::uint32_t, 16>{});
    return *out;
}

/// A piece of all tokens in shared memory. A unit is nine quads of 16 bytes, of which one is free; in Q8_1 nine words.
class TokenStage {
public:
    explicit TokenStage(const ProductKernel& is)
        : is_packed_(is.is_packed()),
          tokens_(is.tokens),
          memory_(is_packed_ ? memory_of<threads * 4>(loads()) : memory_of<threads * 4 / 8 * 9>(loads())) {}

    /// `count` units of each token, from unit number `first` on, a multiple of a piece.
    void load(const ProductArguments& from, const U& first, const U& count) {
        const U words = value(count * words_of_unit()), before = value(first / 4u * words_of_unit());
        words_.clear();
        for (std::uint32_t k = 0; k < loads(); ++k) {
            const auto [token, quad] = quad_of(k);
            const bool has_all = (k + 1) * threads <= tokens_ * quads_of_token();
            const U there = has_all ? words : U(value(select(token < tokens_, words, 0u)));
            words_.push_back(from.load(token, value(before + quad), value(max(there, quad * 4u) - quad * 4u)));
        }
    }
    void put() const {
        for (std::uint32_t k = 0; k < loads(); ++k) {
            const U at = place(k), to = is_packed_ ? at : U(value(at + at / 8u));
            LaneValues<std::uint32_t, LaneShape<4>> four;
            for (std::uint32_t e = 0; e < 4; ++e) four.set(e, words_[k][e].recorded());
            memory_.vec<4>(to) = four;
        }
    }

    /// Floats 4 k ... 4 k + 3 of a unit, and all words of one in Q8_1.
    std::array<U, 4> four(const U& unit, std::size_t token, std::size_t k) const {
        const auto words = value(memory_.vec<4>(unit * 9u + std::uint32_t(token * piece * 9 + k)));
        return {words.lane(0), words.lane(1), words.lane(2), words.lane(3)};
    }
    std::array<U, 9> block(const U& unit, std::size_t token) const {
        const U first = value(unit * 9u + std::uint32_t(token * piece * 9));
        return [&]<std::size_t... k>(std::index_sequence<k...>) {
            return std::array<U, 9>{U(value(memory_[first + std::uint32_t(k)]))...};
        }
        (std::make_index_sequence<9>{});
    }

private:
    std::uint32_t words_of_unit() const { return is_packed_ ? 9 : 32; }
    std::uint32_t quads_of_token() const { return piece * words_of_unit() / 4; }
    std::uint32_t loads() const { return (tokens_ * quads_of_token() + threads - 1) / threads; }
    /// Which one load number k of a thread is.
    struct Quad {
        U token, number;
    };
    Quad quad_of(std::uint32_t k) const {
        const std::uint32_t of_token = quads_of_token(), first = k * threads;
        if (of_token % threads == 0)  // the host knows the token
            return {value(u32(first / of_token)), value(Block::thread() + first % of_token)};
        return {value(place(k) / of_token), value(place(k) % of_token)};
    }
    static U place(std::uint32_t k) { return value(Block::thread() + k * threads); }

    bool is_packed_;
    std::uint32_t tokens_;
    Memory memory_;
    std::vector<std::array<U, 4>> words_{};
};

/// Adds up what the lanes have of each sum. The number of sums is a power of two, n, and a lane gets that of number
/// lane / (32 / n). The order of the additions is that of warp_sum().
F divided_sum(std::vector<F> sums) {
    for (std::uint32_t distance = 16; distance > 0; distance /= 2) {
        const std::size_t half = sums.size() / 2;
        if (half == 0) {
            sums[0] = value(sums[0] + shuffle_xor(sums[0], int(distance)));
            continue;
        }
        const auto is_upper = value((lane_id() & distance) != 0u);
        std::vector<F> kept;
        for (std::size_t i = 0; i < half; ++i) {
            const F &lower = sums[i], &upper = sums[i + half];
            kept.push_back(value(select(is_upper, upper, lower) +
                                 shuffle_xor(value(select(is_upper, lower, upper)), int(distance))));
        }
        sums = std::move(kept);
    }
    return sums[0];
}

template <class Format>
class Product {
    using Weights = BlockStage<Format, WarpGroup, piece / units_of<Format> * Format::bytes>;

public:
    Product(const ProductKernel& is, const ProductArguments& of)
        : is_(is), of_(of), rows_(is.rows_of_warp()), padded_(std::bit_ceil(is.tokens)), activations_(is) {
        for (std::uint32_t r = 0; r < rows_; ++r) weights_.emplace_back();
        for (std::uint32_t i = 0; i < rows_ * is.tokens; ++i) sums_.emplace_back(0.0f);
    }

    void run() {
        const U first_row = value(WarpGroup::row() * rows_), units = value(of_.columns / 32u), lane = value(lane_id());
        const auto active = value(first_row < of_.rows);
        for (auto first : range(0, units, piece)) {
            const U count = value(min(units - first, piece)), mine = value(select(active, count, 0u));
            for (std::uint32_t r = 0; r < rows_; ++r) load(weights_[r], row(first_row, r), value(first), mine);
            activations_.load(of_, value(first), count);
            sync_block();
            for (const Weights& weights : weights_) weights.put();
            activations_.put();
            sync_block();
            if_(lane < mine, [&] { add(lane); });
        }
        store(first_row, lane);
    }

private:
    /// Beyond the last row, the last one again.
    U row(const U& first, std::uint32_t r) const { return r == 0 ? first : U(value(min(first + r, of_.rows - 1u))); }
    void load(Weights& weights, const U& row, const U& first, const U& count) const {
        const U before = bytes_before<Format>(first), bytes = bytes_before<Format>(count);
        if (is_.w_is_aligned)
            weights.load(of_.w, value(row * of_.w_pitch + before), bytes, of_.w_bytes);
        else
            weights.load(of_.w, value(of_.w_begin + row * of_.w_pitch + before), bytes, of_.w_bytes, of_.w_begin);
    }
    blocks::Unit unit(const Weights& weights, const U& i) const {
        if (is_.w_is_aligned || Format::bytes % 4 != 0) return unit_of<Format>(weights, i);
        return unit_of<Format>(Unaligned<Weights>{weights}, i);
    }
    /// The products of the lane's units.
    void add(const U& lane) {
        std::vector<blocks::Unit> units;
        for (const Weights& weights : weights_) units.push_back(unit(weights, lane));
        const auto products = [&] {
            if (!is_.is_packed())
                return single_products(units, is_.tokens, [&](std::size_t token, std::size_t k) {
                    return activations_.four(lane, token, k);
                });
            if (is_.tokens > 1)
                for (blocks::Unit& each : units) each = each.with_signs();
            return packed_products(units, is_.tokens,
                                   [&](std::size_t token) { return activations_.block(lane, token); });
        }();
        for (std::size_t i = 0; i < sums_.size(); ++i) sums_[i] += products[i];
    }
    void store(const U& first_row, const U& lane) const {
        std::vector<F> all;
        for (std::uint32_t i = 0; i < rows_ * padded_; ++i)
            all.push_back(i % padded_ < is_.tokens ? F(value(sums_[i / padded_ * is_.tokens + i % padded_]))
                                                   : F(value(f32(0.0f))));
        const std::uint32_t lanes = 32 / std::uint32_t(all.size());
        const F sum = divided_sum(all);
        const U number = value(lane / lanes), token = value(number % padded_);
        const U row = value(first_row + number / padded_);
        of_.store(value((lane % lanes == 0u) & (token < is_.tokens) & (row < of_.rows)), token, row, sum);
    }

    const ProductKernel& is_;
    const ProductArguments& of_;
    std::uint32_t rows_, padded_;  // of a warp; tokens, with those that there are not
    TokenStage activations_;
    std::deque<Weights> weights_{};
    std::deque<f32> sums_{};  // token after token for each row
};

}  // namespace

void record_product(const ProductKernel& is, const ProductArguments& of) {
    require_linear_grid();
    require_threads(threads);
    if (is.is_packed()) grid_wait();  // for the kernel that has quantised the activations
    switch (is.format) {
#define IKAT_ROW(format, name, weights, bytes) \
    case runtime::Quantised::format: return Product<blocks::format>(is, of).run();
        IKAT_QUANTISED_FORMATS(IKAT_ROW)
#undef IKAT_ROW
    }
}

}  // namespace ikat::stdlib
