// SPDX-License-Identifier: Apache-2.0
// What attention does with scores, and which keys a query sees: expressions of your own, which are part of the kernel.
//
//     flash_attention(device, Q..., K..., V..., O...,
//                     {.scores = scores("alibi",
//                                       [](auto score, auto at, auto slopes) {
//                                           return score - slopes[at.head] * cast<f32>(abs(at.query - at.key));
//                                       },
//                                       slopes),
//                      .sees = sees("window_and_sinks",
//                                   [](auto at, auto window) {
//                                       return (at.key <= at.query) & ((at.key > at.query - window) | (at.key < 4));
//                                   },
//                                   128)});
//
// Both functions are called while the kernel is captured. `at` says which score it is: at.query and at.key, i32, count
// the keys of the sequence, and the last query is at the last key: query i is at i + keys - queries. at.head is a head
// of Q. After these come the arguments that follow the function: numbers, which are the kernel's parameters, and
// arrays, whose elements are read in f32 if they are floats, integers in i32:
//
//     x[at.head], x[at.sequence]    a Buffer or a slice of one, with an element for each head or sequence
//     x[at.key], x[at.query]        with an element for each row of K or Q: of all sequences where these are by
//                                   offsets, else of one. Rows of a cache by pages are those that a sequence may have
//     x[at.head, at.key]            a view with such extents, of any two of these
//
// The function of scores() is given the score, an f32: the scaled product, its cap and the bias. It gives another f32.
//
// The function of sees() gives a pred. It is also called with intervals of queries and keys (dsl/values/interval.hpp),
// so that tiles of which no query sees a key are not read, and others are masked only where they have to be. So its
// variables are `auto`, and it consists of what intervals have: + - * / % >> (the last three by numbers), abs(), min(),
// max(), select(), cast<i32>(), cast<f32>(), comparisons, & | ^ and !. Of elements by key or query nothing is known for
// a tile: what depends on them is masked one score at a time.
//
// A host number that a function captures is a constant of the kernel: each value makes a kernel of its own.
#pragma once
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "dsl/values/interval.hpp"
#include "stdlib/spec/given.hpp"

namespace ikat::stdlib {

/// What an array has an element for each of.
enum class ScoreAxis : std::uint8_t { Sequence, Head, Query, Key };

/// A sequence or a head of Q, a u32; the place of a query or key among the keys, an i32; those of a tile.
template <class Base>
class ScoreIndexOf : public Base {
public:
    ScoreIndexOf(const Base& index, ScoreAxis axis) : Base(index), axis_(axis) {}
    ScoreAxis axis() const { return axis_; }

private:
    ScoreAxis axis_;
};
using ScoreIndex = ScoreIndexOf<Leaf<std::uint32_t>>;
using ScorePosition = ScoreIndexOf<Leaf<std::int32_t>>;
using ScoreInterval = ScoreIndexOf<Interval<std::int32_t>>;

/// Which score.
struct ScorePlace {
    ScoreIndex sequence, head;
    ScorePosition query, key;
};
/// Those of a tile.
struct ScoreTile {
    ScoreIndex sequence, head;
    ScoreInterval query, key;
};

/// What arguments are read from while the kernel is captured: by their numbers, in order.
class ScoreSource {
public:
    virtual ~ScoreSource() = default;
    /// A number; the element of an array for the score, by one of its axes or by two.
    virtual GivenNumber number(std::size_t argument) const = 0;
    virtual GivenNumber element(std::size_t argument, const std::vector<ScoreAxis>& by) const = 0;
};

namespace detail {

template <class I>
inline constexpr bool is_score_index =
    std::is_same_v<I, ScoreIndex> || std::is_same_v<I, ScorePosition> || std::is_same_v<I, ScoreInterval>;

}  // namespace detail

/// An array as the functions see it, whose elements are read in E.
template <class E>
class ScoreArray {
public:
    ScoreArray(const ScoreSource& source, std::size_t number) : source_(&source), number_(number) {}
    /// An element, or, in a tile, what is known of some.
    template <class... I>
    auto operator[](const I&... by) const {
        constexpr bool are_axes = (detail::is_score_index<I> && ...) && (sizeof...(I) == 1 || sizeof...(I) == 2);
        static_assert(are_axes,
                      "an array of scores() or sees() is read by at.sequence, at.head, at.query or at.key, or by two "
                      "of these: x[at.head, at.key]");
        if constexpr (!are_axes)
            return source_->element(number_, {}).template as<E>();
        else if constexpr ((std::is_same_v<I, ScoreInterval> || ...))
            return Unknown{};
        else
            return source_->element(number_, {by.axis()...}).template as<E>();
    }

private:
    const ScoreSource* source_;
    std::size_t number_;
};

/// A number or an array that is given with a function.
struct ScoreArgument : GivenArgument {
    bool is_in_i32 = false;  // an array's elements, else in f32
};

/// What scores() makes. It refers to the buffers of its arrays.
struct OwnScores {
    using Function = std::function<Leaf<float>(const Leaf<float>&, const ScorePlace&, const ScoreSource&)>;
    std::string name;
    std::vector<ScoreArgument> arguments;
    Function function;
};
/// What sees() makes: one function, of one score and of a tile.
struct OwnSight {
    using Function = std::function<Leaf<bool>(const ScorePlace&, const ScoreSource&)>;
    using OfTile = std::function<Truth(const ScoreTile&, const ScoreSource&)>;
    std::string name;
    std::vector<ScoreArgument> arguments;
    Function function;
    OfTile of_tile;
};

namespace detail {

/// What an argument is in a function: a number of its own type, or an array whose elements are read in this.
template <class A>
constexpr auto score_type() {
    if constexpr (std::is_arithmetic_v<A>)
        return std::type_identity<A>{};
    else if constexpr (requires { requires std::is_integral_v<typename A::value_type>; })
        return std::type_identity<std::int32_t>{};
    else
        return std::type_identity<float>{};
}
template <class A>
using ScoreType = typename decltype(score_type<A>())::type;

template <class A>
ScoreArgument score_argument(const A& given) {
    return {given_argument(given), std::is_same_v<ScoreType<A>, std::int32_t>};
}
template <class A>
auto score_operand(const ScoreSource& source, std::size_t number) {
    if constexpr (std::is_arithmetic_v<A>)
        return source.number(number).template as<A>();
    else
        return ScoreArray<ScoreType<A>>(source, number);
}

template <class F, class... A, std::size_t... number>
OwnScores::Function scores_function(const F& f, std::index_sequence<number...>) {
    return [f](const Leaf<float>& score, const ScorePlace& at, const ScoreSource& source) {
        using R = decltype(f(score, at, score_operand<A>(source, number)...));
        constexpr bool is_right = std::is_same_v<DeviceTypeOf<R>, float>;
        static_assert(is_right, "scores: the function gives an f32: cast<f32>(...)");
        if constexpr (is_right)
            return Leaf<float>(value(f(score, at, score_operand<A>(source, number)...)));
        else
            return (void)f, score;
    };
}
template <class F, class... A, std::size_t... number>
OwnSight::Function sight_function(const F& f, std::index_sequence<number...>) {
    return [f](const ScorePlace& at, const ScoreSource& source) {
        using R = decltype(f(at, score_operand<A>(source, number)...));
        constexpr bool is_right = std::is_same_v<DeviceTypeOf<R>, bool>;
        static_assert(is_right, "sees: the function gives a pred: comparisons, joined by & and |");
        if constexpr (is_right)
            return Leaf<bool>(value(f(at, score_operand<A>(source, number)...)));
        else
            return (void)f, Leaf<bool>(value(at.key < 0));
    };
}
template <class F, class... A, std::size_t... number>
OwnSight::OfTile sight_of_tile(const F& f, std::index_sequence<number...>) {
    return [f](const ScoreTile& at, const ScoreSource& source) {
        using R = decltype(f(at, score_operand<A>(source, number)...));
        if constexpr (ikat::detail::ATruth<R> || std::is_same_v<DeviceTypeOf<R>, bool>)
            return ikat::detail::truth_of(f(at, score_operand<A>(source, number)...));
        else  // what is wrong, sight_function() has said
            return (void)f, ikat::detail::truth_of(true);
    };
}

}  // namespace detail

/// What scores become: a name, which becomes part of the kernel's, a function, and its arguments.
template <class F, class... A>
OwnScores scores(std::string name, const F& f, const A&... arguments) {
    return {std::move(name),
            {detail::score_argument(arguments)...},
            detail::scores_function<F, A...>(f, std::index_sequence_for<A...>{})};
}
/// Which keys a query sees.
template <class F, class... A>
OwnSight sees(std::string name, const F& f, const A&... arguments) {
    constexpr std::index_sequence_for<A...> numbers;
    return {std::move(name),
            {detail::score_argument(arguments)...},
            detail::sight_function<F, A...>(f, numbers),
            detail::sight_of_tile<F, A...>(f, numbers)};
}

}  // namespace ikat::stdlib
