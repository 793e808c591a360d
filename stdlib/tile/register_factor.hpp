// SPDX-License-Identifier: Apache-2.0
// A warp's rows of A in registers, for products by tiles in shared memory: read once and used many times, or made of
// the sums of another product.
//
//     RegisterFactor<M, 32, 64> rows(left, a[stage]);       32 x 64 of A, from where `left` says
//     scores.accumulate(rows, right, b[stage]);
//     RegisterFactor<M, 32, 64> factor(scores);             scores, rounded, as A of the next product
//
// Two fragments of sums, side by side, are a fragment of A, lane by lane:
//
//     sums of 16 x 8:  c0 c1 in row g, c2 c3 in row g + 8, columns 2q and 2q + 1     lane 4 g + q
//     A of 16 x 16:    a0 in row g, a1 in row g + 8, columns 2q and 2q + 1; a2 and a3 eight columns further
#pragma once
#include "stdlib/tile/warp_tiles.hpp"

namespace ikat::stdlib {

template <class M, std::uint32_t m_, std::uint32_t k_>
class RegisterFactor {
    static_assert(m_ % 16 == 0 && k_ % M::k == 0, "RegisterFactor: 16 rows and a step of k, or multiples");

public:
    static constexpr std::uint32_t m = m_, k = k_, rows = m / 16, steps = k / M::k;

    /// Declared, not assigned.
    RegisterFactor() = default;
    /// The rows that `left` begins with.
    template <class Tile, Major major>
    RegisterFactor(const LeftFactor<M, Tile, major>& left, const TileStage<Tile>& stage) {
        static_assert(LeftFactor<M, Tile, major>::k == k, "RegisterFactor: of all of a tile's k");
        for (std::uint32_t i = 0; i < rows; ++i)
            for (std::uint32_t step = 0; step < steps; ++step)
                fragments_[i * steps + step] = left.fragment(stage, i, step);
    }
    /// The sums of a product, each rounded to 16 bits.
    template <class Sums>
    requires requires(const Sums& sums) { sums(0u, 0u); }
    explicit RegisterFactor(const Sums& sums) {
        static_assert(M::k == 16, "RegisterFactor: sums become elements of 16 bits");
        static_assert(Sums::m == m && Sums::n == k, "RegisterFactor: there is a sum for each element of A");
        using Pair = typename M::A::element_type;
        for (std::uint32_t i = 0; i < rows; ++i)
            for (std::uint32_t step = 0; step < steps; ++step)
                for (int r = 0; r < 4; ++r) {
                    const auto& from = sums(i, 2 * step + std::uint32_t(r) / 2);
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
