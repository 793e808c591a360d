// SPDX-License-Identifier: Apache-2.0
// A set of small integers whose size is known at run time: liveness sets, visited blocks, taken registers.
#pragma once
#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace ikat {

class Bitset {
public:
    Bitset() = default;
    explicit Bitset(std::size_t size) : size_(size), words_((size + 63) / 64) {}

    std::size_t size() const { return size_; }
    bool test(std::size_t i) const { return words_[i / 64] >> (i % 64) & 1; }
    void set(std::size_t i) { words_[i / 64] |= bit(i); }
    void reset(std::size_t i) { words_[i / 64] &= ~bit(i); }
    void clear() { std::ranges::fill(words_, 0); }

    /// Adds i; true if it is new.
    bool insert(std::size_t i) {
        const bool added = !test(i);
        set(i);
        return added;
    }

    /// Adds the elements of other (of equal size); true if any was new.
    bool merge(const Bitset& other) {
        bool changed = false;
        for (std::size_t w = 0; w < words_.size(); ++w) {
            const std::uint64_t merged = words_[w] | other.words_[w];
            changed |= merged != words_[w];
            words_[w] = merged;
        }
        return changed;
    }

    /// Removes what other (of equal size) does not have; true if that was anything.
    bool keep(const Bitset& other) {
        bool changed = false;
        for (std::size_t w = 0; w < words_.size(); ++w) {
            const std::uint64_t kept = words_[w] & other.words_[w];
            changed |= kept != words_[w];
            words_[w] = kept;
        }
        return changed;
    }

    std::size_t count() const {
        std::size_t total = 0;
        for (std::uint64_t word : words_) total += std::size_t(std::popcount(word));
        return total;
    }

    /// Calls f(i) for each element in ascending order.
    void each(auto&& f) const {
        for (std::size_t w = 0; w < words_.size(); ++w)
            for (std::uint64_t word = words_[w]; word != 0; word &= word - 1)
                f(w * 64 + std::size_t(std::countr_zero(word)));
    }

    bool operator==(const Bitset&) const = default;

private:
    static constexpr std::uint64_t bit(std::size_t i) { return std::uint64_t{1} << (i % 64); }

    std::size_t size_ = 0;
    std::vector<std::uint64_t> words_;
};

}  // namespace ikat
