// SPDX-License-Identifier: Apache-2.0
// The functions of scores() and sees() in a kernel that is being captured.
#pragma once
#include <memory>
#include <vector>

#include "dsl/kernel/more.hpp"
#include "stdlib/attention/own_attention.hpp"

namespace ikat::stdlib {

/// The functions with the arguments of a head of a sequence, which are read once.
class HeadScores {
public:
    HeadScores(const OwnAttention& own, const Leaf<std::uint32_t>& sequence, const Leaf<std::uint32_t>& head,
               std::vector<GivenNumber> of_scores, std::vector<GivenNumber> of_sight);

    bool has_scores() const { return own_->has_scores(); }
    bool has_sight() const { return own_->has_sight(); }
    Leaf<float> score(const Leaf<float>& score, const Leaf<std::int32_t>& query, const Leaf<std::int32_t>& key) const;
    Leaf<bool> sees(const Leaf<std::int32_t>& query, const Leaf<std::int32_t>& key) const;
    Truth sees(const Interval<std::int32_t>& query, const Interval<std::int32_t>& key) const;

private:
    const OwnAttention* own_;
    ScoreIndex sequence_, head_;
    std::vector<GivenNumber> of_scores_, of_sight_;
};

class BoundAttention {
public:
    /// Takes the parameters of own.more().
    BoundAttention(const OwnAttention& own, More& more);
    ~BoundAttention();
    BoundAttention(const BoundAttention&) = delete;

    HeadScores at(const Leaf<std::uint32_t>& sequence, const Leaf<std::uint32_t>& head) const;

private:
    class Array;
    /// The arguments of one of the functions.
    struct Arguments {
        const OwnAttention::Code& code;
        std::vector<std::unique_ptr<Array>> arrays{};  // by argument; null for numbers
        std::vector<GivenNumber> numbers{};            // in the place of an array, none
    };
    static Arguments taken(const OwnAttention::Code& code, More& more);
    static std::vector<GivenNumber> read(const Arguments& from, const Leaf<std::uint32_t>& sequence,
                                         const Leaf<std::uint32_t>& head);

    const OwnAttention& own_;
    Arguments of_scores_, of_sight_;
};

}  // namespace ikat::stdlib
