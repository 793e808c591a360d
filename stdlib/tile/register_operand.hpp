// SPDX-License-Identifier: Apache-2.0
// A warp's rows of A in registers, for products by tiles in shared memory: read once and used many times, or made of
// the accumulators of another product.
//
//     RegisterOperand<M, 32, 64> rows(left, a[stage]);       32 x 64 of A, from where `left` says
//     scores.accumulate(rows, right, b[stage]);
//     RegisterOperand<M, 32, 64> operand(scores);            scores, rounded, as A of the next product
//
// Two fragments of accumulators, side by side, are a fragment of A, lane by lane:
//
//     accumulators of 16 x 8:  c0 c1 in row g, c2 c3 in row g + 8, columns 2q and 2q + 1     lane 4 g + q
//     A of 16 x 16:            a0 in row g, a1 in row g + 8, columns 2q and 2q + 1; a2 and a3 eight columns further
#pragma once
#include "stdlib/tile/warp_tiles.hpp"

namespace ikat::stdlib {

template <class M, std::uint32_t m_, std::uint32_t k_>
class RegisterOperand {
    static_assert(m_ % 16 == 0 && k_ % M::k == 0, "RegisterOperand: 16 rows and a step of k, or multiples");

public:
    static constexpr std::uint32_t m = m_, k = k_, rows = m / 16, steps = k / M::k;

    /// Declared, not assigned.
    RegisterOperand() = default;
    /// The rows that `left` begins with.
    template <class Tile, Major major>
    RegisterOperand(const LeftOperand<M, Tile, major>& left, const TileStage<Tile>& stage) {
        static_assert(LeftOperand<M, Tile, major>::k == k, "RegisterOperand: of all of a tile's k");
        for (std::uint32_t i = 0; i < rows; ++i)
            for (std::uint32_t step = 0; step < steps; ++step)
                fragments_[i * steps + step] = left.fragment(stage, i, step);
    }
    /// The accumulators of a product, each rounded to 16 bits.
    template <class Accumulators>
    requires requires(const Accumulators& accumulators) { accumulators(0u, 0u); }
    explicit RegisterOperand(const Accumulators& accumulators) {
        static_assert(M::k == 16, "RegisterOperand: accumulators become elements of 16 bits");
        static_assert(Accumulators::m == m && Accumulators::n == k,
                      "RegisterOperand: there is an accumulator for each element of A");
        using Pair = typename M::A::element_type;
        for (std::uint32_t i = 0; i < rows; ++i)
            for (std::uint32_t step = 0; step < steps; ++step)
                for (int r = 0; r < 4; ++r) {
                    const auto& from = accumulators(i, 2 * step + std::uint32_t(r) / 2);
                    fragments_[i * steps + step][r] = pack<Pair>(from[r % 2 * 2], from[r % 2 * 2 + 1]);
                }
    }

    /// The fragment `tile` * 16 rows further, `step` steps along k.
    const typename M::A& fragment(std::uint32_t tile, std::uint32_t step) const {
        return fragments_[tile * steps + step];
    }

private:
    typename M::A fragments_[rows * steps];
};

}  // namespace ikat::stdlib
