// SPDX-License-Identifier: Apache-2.0
#include "stdlib/attention/own_attention.hpp"

#include <fmt/format.h>

#include <map>

#include "codegen/kernel/kernel_info.hpp"
#include "stdlib/attention/bound_attention.hpp"
#include "stdlib/spec/given_parameters.hpp"

namespace ikat::stdlib {

using U32 = Leaf<std::uint32_t>;
using I32 = Leaf<std::int32_t>;
using Code = OwnAttention::Code;

// ---- in a kernel

/// An array among the kernel's parameters, of any type.
class BoundAttention::Array {
public:
    virtual ~Array() = default;
    /// 0 unless it `is_there`.
    virtual GivenNumber element(const std::vector<U32>& at, const std::optional<Leaf<bool>>& is_there) const = 0;
    template <class T, int rank>
    class Of;
};
template <class T, int rank>
class BoundAttention::Array::Of : public Array {
public:
    Of(bool is_in_i32, More& more) : is_in_i32_(is_in_i32), elements_(more.next<In<T, rank>>()) {}
    GivenNumber element(const std::vector<U32>& at, const std::optional<Leaf<bool>>& is_there) const override {
        const auto read = [&] {
            if constexpr (rank == 1)
                return is_there ? value(elements_.load_if(*is_there, at[0], T{})) : value(elements_[at[0]]);
            else
                return is_there ? value(elements_.load_if(*is_there, at[0], at[1], T{}))
                                : value(elements_[at[0], at[1]]);
        };
        // By way of variables: the functions may use elements in conditions, of which one is loaded in any case.
        if (is_in_i32_) {
            const i32 element = cast<i32>(read());
            return {.i = value(element)};
        }
        const f32 element = cast<f32>(read());
        return {.f = value(element)};
    }

private:
    bool is_in_i32_;
    In<T, rank> elements_;
};

BoundAttention::Arguments BoundAttention::taken(const Code& code, More& more) {
    Arguments out{code};
    for (const ScoreParameter& parameter : code.parameters) {
        std::unique_ptr<Array> array;
        if (parameter.is_array)
            with_element(parameter.type, [&]<class T> {
                if (parameter.by.size() == 2)
                    array = std::make_unique<Array::Of<T, 2>>(parameter.is_in_i32, more);
                else
                    array = std::make_unique<Array::Of<T, 1>>(parameter.is_in_i32, more);
            });
        out.numbers.push_back(array ? GivenNumber{} : next_number(parameter.type, more));
        out.arrays.push_back(std::move(array));
    }
    return out;
}

BoundAttention::BoundAttention(const OwnAttention& own, More& more)
    : own_(own),
      of_scores_(taken(own.scores(), more)),
      of_sight_(taken(own.sight(), more)),
      of_slope_(taken(own.slope(), more)) {}
BoundAttention::~BoundAttention() = default;

/// An index, and whether there is an element, where that is not sure.
struct HeadScores::Row {
    U32 index;
    std::optional<Leaf<bool>> is_there{};
};

/// The arguments of a function, of one score.
class HeadScores::Source : public ScoreSource {
public:
    using Rows = std::function<Row(ScoreAxis)>;
    Source(const BoundAttention::Arguments& from, const std::vector<GivenNumber>& read, Rows row)
        : from_(from), read_(read), row_(std::move(row)) {}
    GivenNumber number(std::size_t argument) const override { return read_[argument]; }
    GivenNumber element(std::size_t argument, const std::vector<ScoreAxis>& by) const override {
        return from_.code.parameters[argument].is_of_head() ? read_[argument] : load(argument, by);
    }
    GivenNumber load(std::size_t argument, const std::vector<ScoreAxis>& by) const {
        std::vector<U32> at;
        std::optional<Leaf<bool>> is_there;
        for (const ScoreAxis axis : by) {
            const Row row = row_(axis);
            at.push_back(row.index);
            if (row.is_there) is_there.emplace(is_there ? value(*is_there & *row.is_there) : *row.is_there);
        }
        return from_.arrays[argument]->element(at, is_there);
    }

    /// All that is the same for the scores of a head.
    static std::vector<GivenNumber> read(const BoundAttention::Arguments& from, const Rows& row) {
        const Source source(from, from.numbers, row);
        std::vector<GivenNumber> out = from.numbers;
        for (std::size_t i = 0; i < out.size(); ++i)
            if (const ScoreParameter& is = from.code.parameters[i]; from.arrays[i] && is.is_of_head())
                out[i] = source.load(i, is.by);
        return out;
    }

private:
    const BoundAttention::Arguments& from_;
    const std::vector<GivenNumber>& read_;
    Rows row_;
};

HeadScores::HeadScores(const BoundAttention& bound, const U32& sequence, const U32& head, const ScoreRows& rows)
    : bound_(&bound), sequence_(sequence, ScoreAxis::Sequence), head_(head, ScoreAxis::Head), rows_(rows) {
    const auto of_head = [&](ScoreAxis axis) { return Row{axis == ScoreAxis::Head ? head_ : sequence_}; };
    of_scores_ = Source::read(bound.of_scores_, of_head), of_sight_ = Source::read(bound.of_sight_, of_head);
    of_slope_ = Source::read(bound.of_slope_, of_head);
}

bool HeadScores::has_scores() const { return bound_->own_.has_scores(); }
bool HeadScores::has_sight() const { return bound_->own_.has_sight(); }

/// Scores are computed for more queries and keys than there are.
HeadScores::Row HeadScores::row(ScoreAxis axis, const I32& query, const I32& key) const {
    const auto from = [](const std::optional<U32>& first, const U32& row, const U32& all) {
        return Row{first ? value(*first + row) : row, value(row < all)};
    };
    switch (axis) {
        case ScoreAxis::Sequence: return {sequence_};
        case ScoreAxis::Head: return {head_};
        case ScoreAxis::Query:
            return from(rows_.first_query, value(bit_cast<u32>(query) + rows_.queries - rows_.keys), rows_.queries);
        case ScoreAxis::Key: return from(rows_.first_key, value(bit_cast<u32>(key)), rows_.keys);
    }
    return {sequence_};
}

Leaf<float> HeadScores::score(const Leaf<float>& score, const I32& query, const I32& key) const {
    const Source source(bound_->of_scores_, of_scores_, [&](ScoreAxis axis) { return row(axis, query, key); });
    return call(bound_->own_.scores_function(), source, score, query, key);
}
Leaf<float> HeadScores::slope(const Leaf<float>& score, const I32& query, const I32& key) const {
    const Source source(bound_->of_slope_, of_slope_, [&](ScoreAxis axis) { return row(axis, query, key); });
    return call(bound_->own_.slope_function(), source, score, query, key);
}
Leaf<float> HeadScores::call(const OwnScores::Function& f, const Source& arguments, const Leaf<float>& score,
                             const I32& query, const I32& key) const {
    return f(score, {sequence_, head_, {query, ScoreAxis::Query}, {key, ScoreAxis::Key}}, arguments);
}
Leaf<bool> HeadScores::sees(const I32& query, const I32& key) const {
    const Source source(bound_->of_sight_, of_sight_, [&](ScoreAxis axis) { return row(axis, query, key); });
    return bound_->own_.sight_function()({sequence_, head_, {query, ScoreAxis::Query}, {key, ScoreAxis::Key}}, source);
}
Truth HeadScores::sees(const Interval<std::int32_t>& query, const Interval<std::int32_t>& key) const {
    const Source source(bound_->of_sight_, of_sight_, {});
    return bound_->own_.sight_of_tile()({sequence_, head_, {query, ScoreAxis::Query}, {key, ScoreAxis::Key}}, source);
}

// ---- the key

namespace {

/// Notes how a function reads its arrays, and reads nothing.
class Uses : public ScoreSource {
public:
    Uses(std::vector<ScoreParameter>& parameters, const std::vector<GivenNumber>& numbers)
        : parameters_(parameters), numbers_(numbers) {}
    GivenNumber number(std::size_t argument) const override { return numbers_[argument]; }
    GivenNumber element(std::size_t argument, const std::vector<ScoreAxis>& by) const override {
        std::vector<ScoreAxis>& before = parameters_[argument].by;
        if (before.empty()) before = by;
        if (before != by) others_[argument] = by;
        return numbers_[argument];
    }
    /// The arguments that are read in two ways, and the second.
    const std::map<std::size_t, std::vector<ScoreAxis>>& others() const { return others_; }

private:
    std::vector<ScoreParameter>& parameters_;
    const std::vector<GivenNumber>& numbers_;
    mutable std::map<std::size_t, std::vector<ScoreAxis>> others_{};
};

/// In the place of an array's element, a number.
ir::Type type_of_number(const ScoreParameter& is) {
    return !is.is_array ? is.type : is.is_in_i32 ? ir::Type::I32 : ir::Type::F32;
}

/// A function by itself: what is wrong in it is told, and its text is what tells it from others.
void record(
    Code& code, const std::vector<ScoreArgument>& arguments, const OwnAttention::Fail& fail,
    const std::function<void(const ScorePlace& at, const f32& score, const Out<float>& results, const Uses&)>& f) {
    const auto failed = [&](std::size_t number, std::string_view what, std::string_view hint) {
        fail(fmt::format("argument {} of {} '{}' {}", number + 1, code.kind, code.name, what), hint);
    };
    MoreParameters more;
    for (std::size_t i = 0; i < arguments.size(); ++i) {
        const ScoreArgument& argument = arguments[i];
        code.parameters.push_back({argument.type, argument.array.has_value(), argument.is_in_i32, {}});
        if (argument.array && !with_element(argument.type, []<class T> {}))
            failed(i, fmt::format("has elements of {}", argument.array->type_name()), given_elements);
        add_number(type_of_number(code.parameters[i]), code.parameter(i), more);
    }
    std::map<std::size_t, std::vector<ScoreAxis>> others;
    const auto alone =
        kernel(code.kind, params("score", "sequence", "head", "query", "key", "results", more),
               [&](f32 score, u32 sequence, u32 head, i32 query, i32 key, Out<float> results, More rest) {
                   std::vector<GivenNumber> numbers;
                   for (const ScoreParameter& parameter : code.parameters)
                       numbers.push_back(next_number(type_of_number(parameter), rest));
                   const Uses uses(code.parameters, numbers);
                   f({{value(sequence), ScoreAxis::Sequence},
                      {value(head), ScoreAxis::Head},
                      {value(query), ScoreAxis::Query},
                      {value(key), ScoreAxis::Key}},
                     score, results, uses);
                   others = uses.others();
               });
    code.digest = alone.handle().digest();
    for (std::size_t i = 0; i < code.parameters.size(); ++i) {
        const ScoreParameter& parameter = code.parameters[i];
        if (!parameter.is_array) continue;
        if (parameter.by.empty())
            failed(i, "is an array that the function does not read",
                   "leave it out, or read it: x[at.head], x[at.sequence], x[at.key], x[at.query]");
        if (const auto found = others.find(i); found != others.end()) {
            // In an order that does not depend on which the compiler evaluates first.
            const std::string one = text_of(parameter.by), other = text_of(found->second);
            failed(i, fmt::format("is read by {} and by {}", std::min(one, other), std::max(one, other)),
                   "these are arrays of different sizes: give the function one for each");
        }
    }
}

}  // namespace

OwnAttention::OwnAttention(const std::optional<OwnScores>& scores, const std::optional<OwnSight>& sight,
                           const Fail& fail, const std::optional<OwnScores>& slope) {
    const auto take = [&](const std::optional<OwnScores>& given, Code& code, auto& function) {
        if (!given) return;
        code.name = given->name;
        record(code, given->arguments, fail,
               [&](const ScorePlace& at, const f32& score, const auto& results, const Uses& from) {
                   results[0] = given->function(value(score), at, from);
               });
        function = std::make_shared<const OwnScores::Function>(given->function);
    };
    take(scores, scores_, scores_function_);
    take(slope, slope_, slope_function_);
    if (sight) {
        sight_.name = sight->name;
        record(sight_, sight->arguments, fail,
               [&](const ScorePlace& at, const f32&, const auto& results, const Uses& from) {
                   const ScoreTile tile{at.sequence,
                                        at.head,
                                        {{at.query, value(at.query + 1)}, ScoreAxis::Query},
                                        {{at.key, value(at.key + 1)}, ScoreAxis::Key}};
                   const Truth all = sight->of_tile(tile, from);
                   results[0] = select(sight->function(at, from), 1.0f, 0.0f);
                   results[1] = select(all.surely, 1.0f, 0.0f) + select(all.possibly, 1.0f, 0.0f);
               });
        sight_function_ = std::make_shared<const OwnSight::Function>(sight->function);
        sight_of_tile_ = std::make_shared<const OwnSight::OfTile>(sight->of_tile);
    }
}

std::string text_of(const std::vector<ScoreAxis>& by) {
    constexpr std::string_view names[] = {"sequence", "head", "query", "key"};
    std::string out;
    for (const ScoreAxis axis : by) (out += out.empty() ? "" : " x ") += names[std::size_t(axis)];
    return out;
}

std::string OwnAttention::suffix() const {
    std::string out;
    for (const Code* code : {&scores_, &sight_})
        if (!code->name.empty()) out += "_" + code->name;
    return out;
}

MoreParameters OwnAttention::more() const {
    MoreParameters out;
    for (const Code* code : {&scores_, &sight_, &slope_})
        for (std::size_t i = 0; i < code->parameters.size(); ++i) {
            const ScoreParameter& parameter = code->parameters[i];
            if (parameter.is_array)
                with_element(parameter.type, [&]<class T> {
                    if (parameter.by.size() == 2)
                        out.add<In<T, 2>>(code->parameter(i));
                    else
                        out.add<In<T>>(code->parameter(i));
                });
            else
                add_number(parameter.type, code->parameter(i), out);
        }
    return out;
}

std::strong_ordering Code::operator<=>(const Code& other) const {
    if (const auto by_name = name <=> other.name; by_name != 0) return by_name;
    if (const auto by_digest = digest <=> other.digest; by_digest != 0) return by_digest;
    return parameters <=> other.parameters;
}
std::strong_ordering OwnAttention::operator<=>(const OwnAttention& other) const {
    const auto what = [](const OwnAttention& of) { return int(of.has_scores()) + 2 * int(of.has_sight()); };
    if (const auto by_kind = what(*this) <=> what(other); by_kind != 0) return by_kind;
    if (const auto by_scores = scores_ <=> other.scores_; by_scores != 0) return by_scores;
    if (const auto by_slope = slope_ <=> other.slope_; by_slope != 0) return by_slope;
    return sight_ <=> other.sight_;
}

}  // namespace ikat::stdlib
