// SPDX-License-Identifier: Apache-2.0
// The functions of scores() and sees() in a kernel that is being captured.
#pragma once
#include <memory>
#include <optional>
#include <vector>

#include "dsl/kernel/more.hpp"
#include "stdlib/attention/own_attention.hpp"

namespace ikat::stdlib {

class BoundAttention;

/// The queries and keys of a sequence, and where they begin among the rows of Q and K, if that is not the first row.
struct ScoreRows {
    Leaf<std::uint32_t> queries, keys;
    std::optional<Leaf<std::uint32_t>> first_query{}, first_key{};
};

/// The functions with the arguments of a head of a sequence, which are read once; elements by query or key are read for
/// each score.
class HeadScores {
    using U32 = Leaf<std::uint32_t>;
    using I32 = Leaf<std::int32_t>;

public:
    HeadScores(const BoundAttention& bound, const U32& sequence, const U32& head, const ScoreRows& rows);

    bool has_scores() const;
    bool has_sight() const;
    Leaf<float> score(const Leaf<float>& score, const I32& query, const I32& key) const;
    /// The derivative of score() by the score.
    Leaf<float> slope(const Leaf<float>& score, const I32& query, const I32& key) const;
    Leaf<bool> sees(const I32& query, const I32& key) const;
    Truth sees(const Interval<std::int32_t>& query, const Interval<std::int32_t>& key) const;

private:
    struct Row;
    class Source;
    Row row(ScoreAxis axis, const I32& query, const I32& key) const;
    Leaf<float> call(const OwnScores::Function& f, const Source& arguments, const Leaf<float>& score, const I32& query,
                     const I32& key) const;

    const BoundAttention* bound_;
    ScoreIndex sequence_, head_;
    ScoreRows rows_;
    std::vector<GivenNumber> of_scores_, of_sight_, of_slope_;  // none for elements that are read later
};

class BoundAttention {
public:
    /// Takes the parameters of own.more().
    BoundAttention(const OwnAttention& own, More& more);
    ~BoundAttention();
    BoundAttention(const BoundAttention&) = delete;

    HeadScores at(const Leaf<std::uint32_t>& sequence, const Leaf<std::uint32_t>& head, const ScoreRows& rows) const {
        return {*this, sequence, head, rows};
    }

private:
    friend class HeadScores;
    class Array;
    /// The arguments of one of the functions.
    struct Arguments {
        const OwnAttention::Code& code;
        std::vector<std::unique_ptr<Array>> arrays{};  // by argument; null for numbers
        std::vector<GivenNumber> numbers{};            // in the place of an array, none
    };
    static Arguments taken(const OwnAttention::Code& code, More& more);

    const OwnAttention& own_;
    Arguments of_scores_, of_sight_, of_slope_;
};

}  // namespace ikat::stdlib
