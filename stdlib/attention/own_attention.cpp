// SPDX-License-Identifier: Apache-2.0
#include "stdlib/attention/own_attention.hpp"

#include <fmt/format.h>

#include "codegen/kernel/kernel_info.hpp"
#include "stdlib/attention/bound_attention.hpp"
#include "stdlib/spec/given_parameters.hpp"

namespace ikat::stdlib {

using U32 = Leaf<std::uint32_t>;
using I32 = Leaf<std::int32_t>;
using Axis = ScoreIndex::Axis;
using Code = OwnAttention::Code;

// ---- in a kernel

namespace {

/// Arguments that have been read.
class Known : public ScoreSource {
public:
    explicit Known(const std::vector<GivenNumber>& all) : all_(all) {}
    GivenNumber number(std::size_t argument) const override { return all_[argument]; }
    GivenNumber element(std::size_t argument, Axis) const override { return all_[argument]; }

private:
    const std::vector<GivenNumber>& all_;
};

}  // namespace

HeadScores::HeadScores(const OwnAttention& own, const U32& sequence, const U32& head,
                       std::vector<GivenNumber> of_scores, std::vector<GivenNumber> of_sight)
    : own_(&own),
      sequence_(sequence, Axis::Sequence),
      head_(head, Axis::Head),
      of_scores_(std::move(of_scores)),
      of_sight_(std::move(of_sight)) {}

Leaf<float> HeadScores::score(const Leaf<float>& score, const I32& query, const I32& key) const {
    return own_->scores_function()(score, {sequence_, head_, query, key}, Known(of_scores_));
}
Leaf<bool> HeadScores::sees(const I32& query, const I32& key) const {
    return own_->sight_function()({sequence_, head_, query, key}, Known(of_sight_));
}
Truth HeadScores::sees(const Interval<std::int32_t>& query, const Interval<std::int32_t>& key) const {
    return own_->sight_of_tile()({sequence_, head_, query, key}, Known(of_sight_));
}

/// An array among the kernel's parameters, of any type.
class BoundAttention::Array {
public:
    virtual ~Array() = default;
    virtual GivenNumber element(const U32& index) const = 0;
    template <class T>
    class Of;
};
template <class T>
class BoundAttention::Array::Of : public Array {
public:
    Of(bool is_in_i32, More& more) : is_in_i32_(is_in_i32), elements_(more.next<In<T>>()) {}
    GivenNumber element(const U32& index) const override {
        // By way of variables: the functions may use elements in conditions, of which one is loaded in any case.
        if (is_in_i32_) {
            const i32 element = cast<i32>(elements_[index]);
            return {.i = value(element)};
        }
        const f32 element = cast<f32>(elements_[index]);
        return {.f = value(element)};
    }

private:
    bool is_in_i32_;
    In<T> elements_;
};

BoundAttention::Arguments BoundAttention::taken(const Code& code, More& more) {
    Arguments out{code};
    for (const ScoreParameter& parameter : code.parameters) {
        std::unique_ptr<Array> array;
        if (parameter.is_array)
            with_element(parameter.type,
                         [&]<class T> { array = std::make_unique<Array::Of<T>>(parameter.is_in_i32, more); });
        out.numbers.push_back(array ? GivenNumber{} : next_number(parameter.type, more));
        out.arrays.push_back(std::move(array));
    }
    return out;
}

std::vector<GivenNumber> BoundAttention::read(const Arguments& from, const U32& sequence, const U32& head) {
    std::vector<GivenNumber> out;
    for (std::size_t i = 0; i < from.numbers.size(); ++i)
        out.push_back(from.arrays[i] ? from.arrays[i]->element(from.code.parameters[i].is_by_head ? head : sequence)
                                     : from.numbers[i]);
    return out;
}

BoundAttention::BoundAttention(const OwnAttention& own, More& more)
    : own_(own), of_scores_(taken(own.scores(), more)), of_sight_(taken(own.sight(), more)) {}
BoundAttention::~BoundAttention() = default;

HeadScores BoundAttention::at(const U32& sequence, const U32& head) const {
    return {own_, sequence, head, read(of_scores_, sequence, head), read(of_sight_, sequence, head)};
}

// ---- the key

namespace {

/// Notes how a function reads its arrays, and reads nothing.
class Uses : public ScoreSource {
public:
    Uses(std::vector<ScoreParameter>& parameters, const std::vector<GivenNumber>& numbers)
        : parameters_(parameters), numbers_(numbers) {}
    GivenNumber number(std::size_t argument) const override { return numbers_[argument]; }
    GivenNumber element(std::size_t argument, Axis axis) const override {
        (axis == Axis::Head ? parameters_[argument].is_by_head : parameters_[argument].is_by_sequence) = true;
        return numbers_[argument];
    }

private:
    std::vector<ScoreParameter>& parameters_;
    const std::vector<GivenNumber>& numbers_;
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
        code.parameters.push_back({argument.type, argument.array.has_value(), argument.is_in_i32});
        if (argument.array && !with_element(argument.type, []<class T> {}))
            failed(i, fmt::format("has elements of {}", argument.array->type_name()), given_elements);
        add_number(type_of_number(code.parameters[i]), code.parameter(i), more);
    }
    const auto alone =
        kernel(code.kind, params("score", "sequence", "head", "query", "key", "results", more),
               [&](f32 score, u32 sequence, u32 head, i32 query, i32 key, Out<float> results, More rest) {
                   std::vector<GivenNumber> numbers;
                   for (const ScoreParameter& parameter : code.parameters)
                       numbers.push_back(next_number(type_of_number(parameter), rest));
                   f({{value(sequence), Axis::Sequence}, {value(head), Axis::Head}, value(query), value(key)}, score,
                     results, Uses(code.parameters, numbers));
               });
    code.digest = alone.handle().digest();
    for (std::size_t i = 0; i < code.parameters.size(); ++i) {
        const ScoreParameter& parameter = code.parameters[i];
        if (!parameter.is_array) continue;
        if (!parameter.is_by_head && !parameter.is_by_sequence)
            failed(i, "is an array that the function does not read",
                   "leave it out, or read it: x[at.head], x[at.sequence]");
        if (parameter.is_by_head && parameter.is_by_sequence)
            failed(i, "is read by head and by sequence", "these are arrays of different sizes");
    }
}

}  // namespace

OwnAttention::OwnAttention(const std::optional<OwnScores>& scores, const std::optional<OwnSight>& sight,
                           const Fail& fail) {
    if (scores) {
        scores_.name = scores->name;
        record(scores_, scores->arguments, fail,
               [&](const ScorePlace& at, const f32& score, const auto& results, const Uses& from) {
                   results[0] = scores->function(value(score), at, from);
               });
        scores_function_ = std::make_shared<const OwnScores::Function>(scores->function);
    }
    if (sight) {
        sight_.name = sight->name;
        record(sight_, sight->arguments, fail,
               [&](const ScorePlace& at, const f32&, const auto& results, const Uses& from) {
                   const ScoreTile tile{
                       at.sequence, at.head, {at.query, value(at.query + 1)}, {at.key, value(at.key + 1)}};
                   const Truth all = sight->of_tile(tile, from);
                   results[0] = select(sight->function(at, from), 1.0f, 0.0f);
                   results[1] = select(all.surely, 1.0f, 0.0f) + select(all.possibly, 1.0f, 0.0f);
               });
        sight_function_ = std::make_shared<const OwnSight::Function>(sight->function);
        sight_of_tile_ = std::make_shared<const OwnSight::OfTile>(sight->of_tile);
    }
}

std::string OwnAttention::suffix() const {
    std::string out;
    for (const Code* code : {&scores_, &sight_})
        if (!code->name.empty()) out += "_" + code->name;
    return out;
}

MoreParameters OwnAttention::more() const {
    MoreParameters out;
    for (const Code* code : {&scores_, &sight_})
        for (std::size_t i = 0; i < code->parameters.size(); ++i) {
            const ScoreParameter& parameter = code->parameters[i];
            if (parameter.is_array)
                with_element(parameter.type, [&]<class T> { out.add<In<T>>(code->parameter(i)); });
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
    return sight_ <=> other.sight_;
}

}  // namespace ikat::stdlib
