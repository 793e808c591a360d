// SPDX-License-Identifier: Apache-2.0
#include "stdlib/epilogue/epilogue.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "codegen/kernel/kernel_info.hpp"
#include "dsl/threads/control.hpp"
#include "dsl/threads/simt.hpp"
#include "dsl/threads/warp.hpp"
#include "stdlib/epilogue/bound_epilogue.hpp"
#include "stdlib/spec/given_parameters.hpp"

namespace ikat::stdlib {

using U32 = Leaf<std::uint32_t>;
using Axis = EpilogueIndex::Axis;

/// Elements of an array as the function has them, by their number in a group.
class BoundEpilogue::Registers {
public:
    GivenNumber at(ir::Type type, std::size_t number) const {
        if (type == ir::Type::I32) return {.i = value(i_[number])};
        return {.f = value(f_[number])};
    }
    void set(ir::Type type, std::size_t number, const auto& element) {
        if (type == ir::Type::I32)
            i_[number] = cast<i32>(element);
        else
            f_[number] = cast<f32>(element);
    }

private:
    Regs<f32, 8> f_;
    Regs<i32, 8> i_;
};

/// An array among the kernel's parameters, of any type.
class BoundEpilogue::Array {
public:
    virtual ~Array() = default;
    /// The element of the group's row.
    virtual GivenNumber of_row(const EpilogueGroup& at) const = 0;
    /// All `count` elements of a group, and then(e) after each; `one` of them, at a column of C, or, if it is not
    /// there, 0.
    using Then = std::function<void(std::size_t)>;
    virtual void load(const EpilogueGroup& at, std::size_t count, Registers& to, const Then& then) const = 0;
    virtual void load_one(const EpilogueGroup& at, std::size_t one, const U32& column, Registers& to) const = 0;
    virtual void load_one_if(const Leaf<bool>& is_there, const EpilogueGroup& at, std::size_t one, const U32& column,
                             Registers& to) const = 0;

    template <class T>
    class Of;
    static std::unique_ptr<Array> make(const EpilogueParameter& parameter, More& more);
};

template <class T>
class BoundEpilogue::Array::Of : public Array {
public:
    Of(const EpilogueParameter& parameter, More& more) : is_aligned_(parameter.is_aligned), read_(parameter.read) {
        if (parameter.is_by_place)
            matrices_.emplace(more.next<In<T, 3>>());
        else
            vector_.emplace(more.next<In<T>>());
    }
    GivenNumber of_row(const EpilogueGroup& at) const override {
        if (read_ == ir::Type::I32) return {.i = value(cast<i32>((*vector_)[at.row]))};
        return {.f = value(cast<f32>((*vector_)[at.row]))};
    }
    void load(const EpilogueGroup& at, std::size_t count, Registers& to, const Then& then) const override {
        constexpr int max_count = 16 / sizeof(T);
        if (is_aligned_ && max_count >= 8 && count >= 8)
            load_vectors<std::min(max_count, 8)>(at, count, to, then);
        else if (is_aligned_ && max_count >= 4 && count >= 4)
            load_vectors<std::min(max_count, 4)>(at, count, to, then);
        else
            for (std::size_t k = 0; k < count; ++k) {
                load_one(at, k, value(at.column + std::uint32_t(k)), to);
                then(k);
            }
    }
    void load_one(const EpilogueGroup& at, std::size_t one, const U32& column, Registers& to) const override {
        if (vector_)
            to.set(read_, one, (*vector_)[column]);
        else
            to.set(read_, one, (*matrices_)[at.matrix, at.row, column]);
    }
    void load_one_if(const Leaf<bool>& is_there, const EpilogueGroup& at, std::size_t one, const U32& column,
                     Registers& to) const override {
        if (vector_)
            to.set(read_, one, vector_->load_if(is_there, column, T{}));
        else
            to.set(read_, one, matrices_->load_if(is_there, at.matrix, at.row, column, T{}));
    }

private:
    template <int width>
    void load_vectors(const EpilogueGroup& at, std::size_t count, Registers& to, const Then& then) const {
        for (std::size_t k = 0; k < count; k += width) {
            const auto first = value((at.column + std::uint32_t(k)) / std::uint32_t(width));
            const auto put = [&](const auto& lanes) {
                for (std::size_t lane = 0; lane < std::size_t(width); ++lane) {
                    to.set(read_, k + lane, lanes.lane(lane));
                    then(k + lane);
                }
            };
            if (vector_)
                put(value(vector_->template vec<width>(first)));
            else
                put(value(matrices_->template vec<width>(at.matrix, at.row, first)));
        }
    }

    std::optional<In<T, 3>> matrices_{};
    std::optional<In<T>> vector_{};
    bool is_aligned_;
    ir::Type read_;
};

namespace {

/// Whether rows begin at multiples of 16 bytes.
bool rows_are_aligned(const runtime::TensorView& x) {
    std::uint64_t all = x.part.address();
    for (std::uint32_t d = 0; d + 1 < x.rank; ++d)
        if (x.extents[d] > 1) all |= x.strides[d] * ir::info(x.type).bytes;
    return all % 16 == 0;
}

}  // namespace

std::unique_ptr<BoundEpilogue::Array> BoundEpilogue::Array::make(const EpilogueParameter& parameter, More& more) {
    std::unique_ptr<Array> out;
    with_element(parameter.type, [&]<class T> { out = std::make_unique<Of<T>>(parameter, more); });
    return out;
}

/// What a step reads of a group: arrays by row are read at once, others by load().
class BoundEpilogue::Source {
public:
    class Element;
    Source(const BoundEpilogue& of, const EpilogueStep& step, const EpilogueGroup& at, const RowSumsOfGroup& rows)
        : of_(of), at_(at), rows_(rows), of_row_(of.arrays_.size()), loaded_(of.arrays_.size()) {
        for (std::size_t i = step.first; i < step.first + step.count; ++i) {
            if (!of.arrays_[i]) continue;
            if (parameter(i).is_by_row)
                of_row_[i] = of.arrays_[i]->of_row(at);
            else
                loaded_[i] = std::make_unique<Registers>();
            has_aligned_ |= loaded_[i] && parameter(i).is_aligned;
        }
    }
    /// Whether there are arrays whose elements are read together.
    bool has_aligned() const { return has_aligned_; }
    void load(std::size_t count, const Array::Then& then) const {
        each([&](const Array& array, Registers& to) { array.load(at_, count, to, then); });
    }
    void load_one(std::size_t one, const U32& column) const {
        each([&](const Array& array, Registers& to) { array.load_one(at_, one, column, to); });
    }
    void load_one_if(const Leaf<bool>& is_there, std::size_t one, const U32& column) const {
        each([&](const Array& array, Registers& to) { array.load_one_if(is_there, at_, one, column, to); });
    }

private:
    const EpilogueParameter& parameter(std::size_t argument) const { return of_.code_.parameters()[argument]; }
    void each(auto&& f) const {
        for (std::size_t i = 0; i < loaded_.size(); ++i)
            if (loaded_[i]) f(*of_.arrays_[i], *loaded_[i]);
    }

    const BoundEpilogue& of_;
    const EpilogueGroup& at_;
    const RowSumsOfGroup& rows_;
    bool has_aligned_ = false;
    std::vector<GivenNumber> of_row_;
    std::vector<std::unique_ptr<Registers>> loaded_;
};

/// One of the group's elements.
class BoundEpilogue::Source::Element : public EpilogueSource {
public:
    Element(const Source& of, std::size_t number) : of_(of), number_(number) {}

    EpiloguePlace place() const {
        const EpilogueGroup& at = of_.at_;
        U32 column = number_ == 0 ? at.column : value(at.column + std::uint32_t(number_));
        if (number_ > 0 && !of_.of_.code_.is_total()) column = value(min(column, at.columns - 1u));
        return {at.matrix, {at.row, Axis::Row}, {column, Axis::Column}};
    }
    GivenNumber number(std::size_t argument) const override { return of_.of_.numbers_[argument]; }
    GivenNumber along(std::size_t argument, Axis axis) const override {
        return axis == Axis::Row ? of_.of_row_[argument] : at_place(argument);
    }
    GivenNumber at_place(std::size_t argument) const override {
        return of_.loaded_[argument]->at(of_.parameter(argument).read, number_);
    }
    void add(std::size_t argument, const Leaf<float>& x) const override {
        f32& sum = *of_.rows_[argument];
        if (number_ == 0)  // a group begins in C
            sum += x;
        else
            sum += select(of_.at_.column + std::uint32_t(number_) < of_.at_.columns, x, 0.0f);
    }

private:
    const Source& of_;
    std::size_t number_;
};

BoundEpilogue::BoundEpilogue(const EpilogueCode& code, More& more) : code_(code) {
    for (const EpilogueParameter& parameter : code.parameters()) {
        const bool is_read = parameter.is_array && !parameter.is_row_sums;
        arrays_.push_back(is_read ? Array::make(parameter, more) : nullptr);
        row_sums_.push_back(parameter.is_row_sums ? std::optional(more.next<Out<float, 3>>()) : std::nullopt);
        numbers_.push_back(parameter.is_array ? GivenNumber{} : next_number(parameter.type, more));
    }
}
BoundEpilogue::~BoundEpilogue() = default;

template <class Sum, class Result>
void BoundEpilogue::apply(const EpilogueStep& step, const EpilogueGroup& at, std::span<Var<Sum>> sums,
                          std::span<Var<Result>> results, const RowSumsOfGroup& rows) const {
    const Source source(*this, step, at, rows);
    const std::size_t count = sums.size();
    const Array::Then call = [&](std::size_t e) {
        const Source::Element element(source, e);
        const auto sum = value(sums[e]);
        const GivenNumber given = code_.sum() == ir::Type::F32 ? GivenNumber{.f = value(cast<f32>(sum))}
                                                               : GivenNumber{.i = value(cast<i32>(sum))};
        results[e] = step.function(given, element.place(), element).template as<Result>();
    };
    const auto all_at_once = [&] {
        source.load(
            count, step.is_short ? call : [](std::size_t) {});
    };
    const auto one_by_one = [&] {
        for (std::size_t e = 0; e < count; ++e) {
            const auto column = value(at.column + std::uint32_t(e));
            const auto is_there = value(column < at.columns);
            if (code_.is_total()) {
                source.load_one_if(is_there, e, column);
            } else {
                source.load_one(e, value(min(column, at.columns - 1u)));
                if (e > 0) sums[e] = select(is_there, sums[e], sums[e - 1]);
            }
            if (step.is_short) call(e);
        }
    };
    if (source.has_aligned())
        if_(at.column + std::uint32_t(count - 1) < at.columns, all_at_once).else_(one_by_one);
    else
        one_by_one();
    for (std::size_t e = 0; !step.is_short && e < count; ++e) call(e);
}

template <class Sum, class Result>
void BoundEpilogue::apply(const EpilogueGroup& at, std::span<Var<Sum>> sums, std::span<Var<Result>> results,
                          const RowSumsOfGroup& rows) const {
    const std::span<const EpilogueStep> steps = code_.steps();
    for (const EpilogueStep& step : steps.first(steps.size() - 1)) apply(step, at, sums, sums, rows);
    apply(steps.back(), at, sums, results, rows);
}
#define IKAT_INSTANTIATE_APPLY(Sum, Result)                                                                            \
    template void BoundEpilogue::apply(const EpilogueGroup&, std::span<Sum>, std::span<Result>, const RowSumsOfGroup&) \
        const;
IKAT_INSTANTIATE_APPLY(f32, f32)
IKAT_INSTANTIATE_APPLY(i32, f32)
IKAT_INSTANTIATE_APPLY(i32, i32)
#undef IKAT_INSTANTIATE_APPLY

RowSumsOfGroup BoundEpilogue::row_sums() const {
    RowSumsOfGroup out(row_sums_.size());
    for (std::size_t i = 0; i < out.size(); ++i)
        if (row_sums_[i]) out[i] = std::make_unique<f32>(0.0f);
    return out;
}

void BoundEpilogue::store(const RowSumsOfGroup& rows, const EpilogueGroup& at, std::uint32_t count,
                          const Leaf<bool>& is_there) const {
    const std::uint32_t lanes = columns_of_row_sum / count;
    for (std::size_t i = 0; i < rows.size(); ++i) {
        if (!rows[i]) continue;
        f32& sum = *rows[i];
        for (std::uint32_t distance = 1; distance < lanes; distance *= 2) sum += shuffle_xor(sum, distance);
        row_sums_[i]->store_if(is_there & (at.column < at.columns) & (lane_id() % lanes == 0u), at.matrix, at.row,
                               at.column / columns_of_row_sum, sum);
    }
}

template <class Sum>
Leaf<Sum> BoundEpilogue::of(const Leaf<Sum>& sum) const {
    const auto zero = value(0u);
    const EpilogueGroup nowhere{zero, zero, zero, zero};
    Leaf<Sum> out = sum;
    for (const EpilogueStep& step : code_.steps()) {
        const Source source(*this, step, nowhere, {});
        const Source::Element element(source, 0);
        out = step.function(GivenNumber::of(out), element.place(), element).template as<Sum>();
    }
    return out;
}
template Leaf<float> BoundEpilogue::of(const Leaf<float>&) const;
template Leaf<std::int32_t> BoundEpilogue::of(const Leaf<std::int32_t>&) const;

// ---- the key

namespace {

/// Notes how the function reads its arrays, and reads nothing.
class Uses : public EpilogueSource {
public:
    Uses(std::vector<EpilogueParameter>& parameters, const std::vector<GivenNumber>& numbers,
         const std::optional<Out<float>>& row_sums)
        : parameters_(parameters), numbers_(numbers), row_sums_(row_sums) {}
    GivenNumber number(std::size_t argument) const override { return numbers_[argument]; }
    GivenNumber along(std::size_t argument, Axis axis) const override {
        (axis == Axis::Row ? parameters_[argument].is_by_row : parameters_[argument].is_by_column) = true;
        return numbers_[argument];
    }
    GivenNumber at_place(std::size_t argument) const override {
        parameters_[argument].is_by_place = true;
        return numbers_[argument];
    }
    void add(std::size_t argument, const Leaf<float>& x) const override {
        parameters_[argument].is_by_row = true;
        (*row_sums_)[std::uint32_t(argument)] = x;
    }

private:
    std::vector<EpilogueParameter>& parameters_;
    const std::vector<GivenNumber>& numbers_;
    const std::optional<Out<float>>& row_sums_;
};

}  // namespace

void EpilogueRowSums::check(Axis axis) {
    if (axis == Axis::Column)
        throw Error("row_sums of an epilogue, by a column", "they are added to by the row: sums[at.row] += x");
}

EpilogueCode::EpilogueCode(ir::Type sum, std::vector<EpilogueParameter> parameters, std::vector<EpilogueStep> steps)
    : parameters_(std::move(parameters)), steps_(std::move(steps)), sum_(sum), result_(sum), is_total_(true) {}

EpilogueCode::EpilogueCode(const Epilogue& given)
    : name_(given.name),
      steps_{{.function = given.function, .count = given.arguments.size()}},
      sum_(given.sum),
      result_(given.result) {
    const auto fail = [&](std::size_t number, std::string_view what, std::string hint) {
        throw Error(fmt::format("epilogue '{}': argument {} {}", name_, number + 1, what), std::move(hint));
    };
    for (std::size_t i = 0; i < given.arguments.size(); ++i) {
        const EpilogueArgument& argument = given.arguments[i];
        const bool is_array = argument.array.has_value();
        if (argument.is_row_sums && argument.type != ir::Type::F32)
            fail(i, fmt::format("is row_sums of {}", argument.array->type_name()), "they are f32");
        if (is_array && !with_element(argument.type, []<class T> {}))
            fail(i, fmt::format("has elements of {}", argument.array->type_name()), given_elements);
        parameters_.push_back({.name = "epilogue" + std::to_string(i), .type = argument.type, .is_array = is_array});
        if (!is_array) continue;
        parameters_[i].read = argument.read;
        parameters_[i].is_row_sums = argument.is_row_sums;
        parameters_[i].is_aligned = !argument.is_row_sums && rows_are_aligned(*argument.array);
    }
    capture();
    for (std::size_t i = 0; i < parameters_.size(); ++i) {
        const EpilogueParameter& parameter = parameters_[i];
        if (!parameter.is_array) continue;
        if (parameter.is_row_sums && !parameter.is_by_row)
            fail(i, "is row_sums to which the function adds nothing", "leave it out, or add to it: sums[at.row] += x");
        if (!parameter.is_by_place && !parameter.is_by_row && !parameter.is_by_column)
            fail(i, "is an array that the function does not read", "leave it out, or read it: x[at], x[at.column]");
        if (parameter.is_by_place + parameter.is_by_row + parameter.is_by_column > 1)
            fail(i, "is read in two ways", "x[at], x[at.row] and x[at.column] are arrays of different shapes");
    }
}

/// The function by itself: what is wrong in it is told, and its text is what tells it from others.
void EpilogueCode::capture() {
    const auto type_of = [](const EpilogueParameter& is) { return is.is_array ? is.read : is.type; };
    MoreParameters more;
    add_number(sum_, "sum", more);
    for (const EpilogueParameter& parameter : parameters_) add_number(type_of(parameter), parameter.name, more);
    if (result_ == ir::Type::I32)
        more.add<Out<std::int32_t>>("result");
    else
        more.add<Out<float>>("result");
    if (has_row_sums()) more.add<Out<float>>("row_sums");  // an element for each argument
    const auto alone =
        kernel("epilogue", params("matrix", "row", "column", more), [&](u32 matrix, u32 row, u32 column, More rest) {
            const GivenNumber sum = next_number(sum_, rest);
            std::vector<GivenNumber> numbers;  // in the place of an array's element, a number
            for (const EpilogueParameter& parameter : parameters_)
                numbers.push_back(next_number(type_of(parameter), rest));
            const EpiloguePlace at{value(matrix), {value(row), Axis::Row}, {value(column), Axis::Column}};
            std::optional<Out<std::int32_t>> integer;
            std::optional<Out<float>> real, row_sums;
            if (result_ == ir::Type::I32)
                integer.emplace(rest.next<Out<std::int32_t>>());
            else
                real.emplace(rest.next<Out<float>>());
            if (has_row_sums()) row_sums.emplace(rest.next<Out<float>>());
            const GivenNumber result = steps_[0].function(sum, at, Uses(parameters_, numbers, row_sums));
            if (integer)
                (*integer)[0] = *result.i;
            else
                (*real)[0] = *result.f;
        });
    digest_ = alone.handle().digest();
}

bool EpilogueCode::has_row_sums() const { return std::ranges::any_of(parameters_, &EpilogueParameter::is_row_sums); }

MoreParameters EpilogueCode::more() const {
    MoreParameters out;
    for (const EpilogueParameter& parameter : parameters_)
        if (parameter.is_row_sums)
            out.add<Out<float, 3>>(parameter.name);
        else if (parameter.is_array)
            with_element(parameter.type, [&]<class T> {
                if (parameter.is_by_place)
                    out.add<In<T, 3>>(parameter.name);
                else
                    out.add<In<T>>(parameter.name);
            });
        else
            add_number(parameter.type, parameter.name, out);
    return out;
}

std::strong_ordering EpilogueCode::operator<=>(const EpilogueCode& other) const {
    if (const auto by_name = name_ <=> other.name_; by_name != 0) return by_name;
    if (const auto by_digest = digest_ <=> other.digest_; by_digest != 0) return by_digest;
    if (const auto by_sum = sum_ <=> other.sum_; by_sum != 0) return by_sum;
    return parameters_ <=> other.parameters_;
}

}  // namespace ikat::stdlib
