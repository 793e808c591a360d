// SPDX-License-Identifier: Apache-2.0
#include "stdlib/quantised/block_product.hpp"

#include <algorithm>
#include <bit>
#include <optional>

#include "stdlib/tile/rows.hpp"

namespace ikat::stdlib {
namespace {

using blocks::F, blocks::U;
using Block = BlockGroup<WarpGroup::block>;
constexpr std::uint32_t piece = BlockProduct::piece, threads = WarpGroup::block;

/// Shared memory: `count` times `words` words; count is at most 16.
template <std::uint32_t words>
SharedWords memory_of(std::uint32_t count) {
    std::optional<SharedWords> out;
    const auto declare = [&]<std::uint32_t n>(std::integral_constant<std::uint32_t, n>) {
        if (n == count) out.emplace(Shared<std::uint32_t, n * words>().flat());
    };
    [&]<std::uint32_t... n>(std::integer_sequence<std::uint32_t, n...>) {
        (declare(std::integral_constant<std::uint32_t, n + 1>{}), ...);
    }
    (std::make_integer_sequence<std::uint32_t, 16>{});
    return *out;
}

}  // namespace

/// A piece of all tokens in shared memory. A unit is nine quads of 16 bytes, of which one is free; in Q8_1 nine words.
class TokenStage {
public:
    TokenStage(const Tokens& x, const SharedWords& memory)
        : is_packed_(x.are_packed), tokens_(x.count), memory_(memory) {}
    static SharedWords memory_for(const Tokens& x) {
        const std::uint32_t loads = loads_of(x.are_packed, x.count);
        return x.are_packed ? memory_of<threads * 4>(loads) : memory_of<threads * 4 / 8 * 9>(loads);
    }

    /// `count` units of each token, from unit number `first` on, a multiple of a piece.
    void load(const Tokens& from, const U& first, const U& count) {
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
    static std::uint32_t loads_of(bool is_packed, std::uint32_t tokens) {
        return (tokens * (piece * (is_packed ? 9 : 32) / 4) + threads - 1) / threads;
    }
    std::uint32_t words_of_unit() const { return is_packed_ ? 9 : 32; }
    std::uint32_t quads_of_token() const { return piece * words_of_unit() / 4; }
    std::uint32_t loads() const { return loads_of(is_packed_, tokens_); }
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
    SharedWords memory_;
    std::vector<std::array<U, 4>> words_{};
};

/// A piece of a row of weights for each warp of a block.
class WeightStage {
public:
    virtual ~WeightStage() = default;
    /// `count` units of the row, from unit number `first` on.
    virtual void load(const U& row, const U& first, const U& count) = 0;
    virtual void put() const = 0;
    virtual blocks::Unit unit(const U& i) const = 0;
};

namespace {

template <class Format>
using StageOf = BlockStage<Format, WarpGroup, piece / units_of<Format> * Format::bytes>;

template <class Format>
class StageOfFormat : public WeightStage {
    using Weights = StageOf<Format>;

public:
    StageOfFormat(const WeightRows& of, const SharedWords& memory) : of_(of), weights_(memory) {}

    void load(const U& row, const U& first, const U& count) override {
        const U before = bytes_before<Format>(first), bytes = bytes_before<Format>(count);
        if (of_.is_aligned)
            weights_.load(of_.w, value(row * of_.pitch + before), bytes, of_.bytes);
        else
            weights_.load(of_.w, value(of_.begin + row * of_.pitch + before), bytes, of_.bytes, of_.begin);
    }
    void put() const override { weights_.put(); }
    blocks::Unit unit(const U& i) const override {
        if (of_.is_aligned || Format::bytes % 4 != 0) return unit_of<Format>(weights_, i);
        return unit_of<Format>(Unaligned<Weights>{weights_}, i);
    }

private:
    const WeightRows& of_;
    Weights weights_;
};

std::unique_ptr<WeightStage> stage_of(const WeightRows& of, const SharedWords& memory) {
    switch (of.format) {
#define IKAT_ROW(format, name, weights, bytes) \
    case runtime::Quantised::format: return std::make_unique<StageOfFormat<blocks::format>>(of, memory);
        IKAT_QUANTISED_FORMATS(IKAT_ROW)
#undef IKAT_ROW
    }
    return nullptr;
}

/// In 2 KiB, for all warps.
std::uint32_t size_of(runtime::Quantised format) {
    switch (format) {
#define IKAT_ROW(format, name, weights, bytes) \
    case runtime::Quantised::format: return StageOf<blocks::format>::words_of_block / 512;
        IKAT_QUANTISED_FORMATS(IKAT_ROW)
#undef IKAT_ROW
    }
    return 0;
}

}  // namespace

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

ProductMemory::ProductMemory(const Tokens& x, std::uint32_t rows, std::span<const runtime::Quantised> formats)
    : tokens_(TokenStage::memory_for(x)) {
    std::uint32_t size = 0;
    for (const runtime::Quantised format : formats) size = std::max(size, size_of(format));
    for (std::uint32_t r = 0; r < rows; ++r) rows_.push_back(memory_of<512>(size));
}

BlockProduct::BlockProduct(const Tokens& x, std::vector<const WeightRows*> weights, const ProductMemory& memory)
    : x_(x), weights_(std::move(weights)), activations_(std::make_unique<TokenStage>(x, memory.tokens())) {
    for (std::size_t i = 0; i < weights_.size(); ++i) stages_.push_back(stage_of(*weights_[i], memory.row(i)));
    for (std::size_t i = 0; i < weights_.size() * x.count; ++i) sums_.emplace_back(0.0f);
}
BlockProduct::~BlockProduct() = default;

std::uint32_t BlockProduct::padded_tokens() const { return std::bit_ceil(x_.count); }

void BlockProduct::run(const U& first_row, const std::function<U(std::uint32_t)>& row) {
    const U units = value(x_.columns / 32u), lane = value(lane_id());
    const auto active = value(first_row < weights_[0]->rows);
    for (auto first : range(0, units, piece)) {
        const U count = value(min(units - first, piece)), mine = value(select(active, count, 0u));
        for (std::uint32_t i = 0; i < stages_.size(); ++i) stages_[i]->load(row(i), value(first), mine);
        activations_->load(x_, value(first), count);
        sync_block();
        for (const auto& stage : stages_) stage->put();
        activations_->put();
        sync_block();
        if_(lane < mine, [&] { add(lane); });
    }
}

/// The products of the lane's units.
void BlockProduct::add(const U& lane) {
    std::vector<blocks::Unit> units;
    for (const auto& stage : stages_) units.push_back(stage->unit(lane));
    const auto products = [&] {
        if (!x_.are_packed)
            return single_products(
                units, x_.count, [&](std::size_t token, std::size_t k) { return activations_->four(lane, token, k); });
        if (x_.count > 1)
            for (blocks::Unit& each : units) each = each.with_signs();
        return packed_products(units, x_.count, [&](std::size_t token) { return activations_->block(lane, token); });
    }();
    for (std::size_t i = 0; i < sums_.size(); ++i) sums_[i] += products[i];
}

F BlockProduct::sum() const {
    const std::uint32_t padded = padded_tokens();
    std::vector<F> all;
    for (std::uint32_t i = 0; i < weights_.size() * padded; ++i)
        all.push_back(i % padded < x_.count ? F(value(sums_[i / padded * x_.count + i % padded]))
                                            : F(value(f32(0.0f))));
    return divided_sum(all);
}

}  // namespace ikat::stdlib
