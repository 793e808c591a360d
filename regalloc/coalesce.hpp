// SPDX-License-Identifier: Apache-2.0
// Chooses the free register for a value so that moves on edges vanish. See coalesce.cpp.
#pragma once
#include <algorithm>
#include <bit>
#include <cstdint>
#include <span>
#include <vector>

#include "regalloc/stages.hpp"

namespace ikat::regalloc {

/// An argument and its parameter that could share a register, under the names of their tied leaders.
struct Pair {
    LiveRange argument, parameter;
    std::uint32_t weight;  // how often the saved move would be executed
};
std::vector<Pair> pairs_of(const Problem& problem, const Flow& flow, const Liveness& liveness,
                           const std::vector<LiveRange>& leaders);

/// The registers of one class while colouring: taken now, and wanted later by a value that has no register yet.
class RegisterPool {
public:
    explicit RegisterPool(std::uint32_t size) : size_(size), taken_(size / 64 + 1), reserved_(size / 64 + 1) {}

    std::uint32_t size() const { return size_; }
    bool is_free(Register r) const { return !(taken_[r / 64] >> (r % 64) & 1); }
    void take(Register r) { taken_[r / 64] |= std::uint64_t{1} << (r % 64); }
    void release(Register r) { taken_[r / 64] &= ~(std::uint64_t{1} << (r % 64)); }
    void release_all() { std::ranges::fill(taken_, 0); }
    void reserve(Register r, bool on) {
        const std::uint64_t bit = std::uint64_t{1} << (r % 64);
        reserved_[r / 64] = on ? reserved_[r / 64] | bit : reserved_[r / 64] & ~bit;
    }

    /// The lowest register that is free and not reserved; no_register if there is none.
    Register lowest_unreserved() const {
        return lowest([&](std::size_t w) { return ~(taken_[w] | reserved_[w]); }, [](Register) { return true; });
    }
    /// The lowest register that is free and reserved, and for which accept(r) is true.
    Register lowest_reserved(auto&& accept) const {
        return lowest([&](std::size_t w) { return ~taken_[w] & reserved_[w]; }, accept);
    }

private:
    Register lowest(auto&& candidates, auto&& accept) const {
        for (std::size_t w = 0; w < taken_.size(); ++w)
            for (std::uint64_t word = candidates(w); word != 0; word &= word - 1)
                if (const auto r = Register(w * 64 + std::size_t(std::countr_zero(word))); r < size_ && accept(r))
                    return r;
        return no_register;
    }

    std::uint32_t size_;
    std::vector<std::uint64_t> taken_, reserved_;
};

/// Records the chosen registers and chooses the next.
class Preferences {
public:
    Preferences(const Problem& problem, const Liveness& liveness, const std::vector<Pair>& pairs,
                std::vector<RegisterPool>& pools);

    /// A free register of v's pool; v is the leader of its tied values. `preferred` is taken if it is free and no other
    /// saves a move.
    Register choose(LiveRange v, Register preferred = no_register);

private:
    struct Affinity {
        LiveRange other;
        std::uint32_t weight;
    };

    std::span<const Affinity> affinities(LiveRange v) const {
        const std::uint32_t first = first_[index(v)];
        return std::span(affinities_).subspan(first, first_[index(v) + 1] - first);
    }
    void index_pairs(const std::vector<Pair>& pairs);
    Register most_wanted(LiveRange v);
    Register out_of_the_way(LiveRange v) const;
    void vote(Register r, std::uint32_t weight);
    void remember(LiveRange v, Register chosen);

    const Problem& problem_;
    const Liveness& liveness_;
    std::vector<RegisterPool>& pools_;
    std::vector<std::uint32_t> first_;  // by LiveRange, into affinities_
    std::vector<Affinity> affinities_;
    std::vector<Register> chosen_, hints_;  // by LiveRange
    std::vector<std::vector<std::vector<LiveRange>>>
        waiting_;                       // by class and register: the values that prefer it later
    std::vector<std::uint32_t> votes_;  // by register; zero between elections
    std::vector<Register> candidates_;
};

}  // namespace ikat::regalloc
