// SPDX-License-Identifier: Apache-2.0
#include "stdlib/gemm/epilogue.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>

#include "codegen/kernel/kernel_info.hpp"
#include "stdlib/gemm/bound_epilogue.hpp"
#include "stdlib/spec/given_parameters.hpp"

namespace ikat::stdlib {

using U32 = Leaf<std::uint32_t>;
using Axis = EpilogueIndex::Axis;

/// An array among the kernel's parameters, of any type: its elements in f32.
class BoundEpilogue::Array {
public:
    virtual ~Array() = default;
    virtual Leaf<float> element(const U32& matrix, const U32& row, const U32& column) const = 0;
    virtual Leaf<float> along(const U32& index) const = 0;
    /// `count` elements from `column` on, a multiple of their number.
    virtual std::vector<Leaf<float>> elements(const U32& matrix, const U32& row, const U32& column,
                                              std::size_t count) const = 0;
    virtual std::vector<Leaf<float>> along(const U32& index, std::size_t count) const = 0;

    template <class T>
    class Of;
    static std::unique_ptr<Array> make(const EpilogueParameter& parameter, More& more);
};

template <class T>
class BoundEpilogue::Array::Of : public Array {
public:
    Of(const EpilogueParameter& parameter, More& more) : is_aligned_(parameter.is_aligned) {
        if (parameter.is_by_place)
            matrices_.emplace(more.next<In<T, 3>>());
        else
            vector_.emplace(more.next<In<T>>());
    }
    Leaf<float> element(const U32& matrix, const U32& row, const U32& column) const override {
        return value(cast<f32>((*matrices_)[matrix, row, column]));
    }
    Leaf<float> along(const U32& index) const override { return value(cast<f32>((*vector_)[index])); }
    std::vector<Leaf<float>> elements(const U32& matrix, const U32& row, const U32& column,
                                      std::size_t count) const override {
        return group((*matrices_)[matrix, row], column, count);
    }
    std::vector<Leaf<float>> along(const U32& index, std::size_t count) const override {
        return group(*vector_, index, count);
    }

private:
    template <int width>
    static void append(std::vector<Leaf<float>>& out, const auto& row, const U32& first, std::size_t count) {
        for (std::size_t k = 0; k < count; k += width) {
            const auto lanes =
                value(cast<f32>(row.template vec<width>((first + std::uint32_t(k)) / std::uint32_t(width))));
            for (std::size_t lane = 0; lane < std::size_t(width); ++lane) out.push_back(lanes.lane(lane));
        }
    }
    std::vector<Leaf<float>> group(const auto& row, const U32& first, std::size_t count) const {
        std::vector<Leaf<float>> out;
        constexpr int most = 16 / sizeof(T);
        if (is_aligned_ && most >= 8 && count >= 8)
            append<std::min(most, 8)>(out, row, first, count);
        else if (is_aligned_ && most >= 4 && count >= 4)
            append<std::min(most, 4)>(out, row, first, count);
        else
            for (std::size_t k = 0; k < count; ++k) out.push_back(value(cast<f32>(row[first + std::uint32_t(k)])));
        return out;
    }

    std::optional<In<T, 3>> matrices_{};
    std::optional<In<T>> vector_{};
    bool is_aligned_;
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

/// What the function reads, of one element or of one of a group.
class BoundEpilogue::Source : public EpilogueSource {
public:
    Source(const BoundEpilogue& of, const U32& matrix, const U32& row, const U32& column, std::size_t count)
        : of_(of), matrix_(matrix), row_(row), column_(column), count_(count) {}

    EpiloguePlace place() const {
        const U32 column = number_ == 0 ? column_ : value(column_ + std::uint32_t(number_));
        return {matrix_, {row_, Axis::Row}, {column, Axis::Column}};
    }
    void go_to(std::size_t number) { number_ = number; }

    GivenNumber number(std::size_t argument) const override { return of_.numbers_[argument]; }
    Leaf<float> along(std::size_t argument, Axis axis) const override {
        const Array& array = *of_.arrays_[argument];
        if (axis == Axis::Row) return once(argument, [&] { return std::vector{array.along(row_)}; })[0];
        if (count_ == 1) return array.along(column_);
        return once(argument, [&] { return array.along(column_, count_); })[number_];
    }
    Leaf<float> at_place(std::size_t argument) const override {
        const Array& array = *of_.arrays_[argument];
        if (count_ == 1) return array.element(matrix_, row_, column_);
        return once(argument, [&] { return array.elements(matrix_, row_, column_, count_); })[number_];
    }

private:
    /// A group's elements are loaded together, where the first of them is read.
    const std::vector<Leaf<float>>& once(std::size_t argument, auto&& load) const {
        const auto found = loaded_.find(argument);
        return found != loaded_.end() ? found->second : loaded_.emplace(argument, load()).first->second;
    }

    const BoundEpilogue& of_;
    const U32 &matrix_, &row_, &column_;
    std::size_t count_, number_ = 0;
    mutable std::map<std::size_t, std::vector<Leaf<float>>> loaded_;
};

BoundEpilogue::BoundEpilogue(const EpilogueCode& code, More& more) : code_(code) {
    for (const EpilogueParameter& parameter : code.parameters()) {
        arrays_.push_back(parameter.is_array ? Array::make(parameter, more) : nullptr);
        numbers_.push_back(parameter.is_array ? GivenNumber{} : next_number(parameter.type, more));
    }
}
BoundEpilogue::~BoundEpilogue() = default;

Leaf<float> BoundEpilogue::element(const U32& matrix, const U32& row, const U32& column, const Leaf<float>& sum) const {
    return elements(matrix, row, column, {&sum, 1})[0];
}

std::vector<Leaf<float>> BoundEpilogue::elements(const U32& matrix, const U32& row, const U32& column,
                                                 std::span<const Leaf<float>> sums) const {
    Source source(*this, matrix, row, column, sums.size());
    std::vector<Leaf<float>> out;
    for (std::size_t k = 0; k < sums.size(); ++k) {
        source.go_to(k);
        out.push_back(code_.function()(sums[k], source.place(), source));
    }
    return out;
}

// ---- the key

namespace {

/// Notes how the function reads its arrays, and reads nothing.
class Uses : public EpilogueSource {
public:
    explicit Uses(std::vector<EpilogueParameter>& parameters, const std::vector<GivenNumber>& numbers)
        : parameters_(parameters), numbers_(numbers) {}
    GivenNumber number(std::size_t argument) const override { return numbers_[argument]; }
    Leaf<float> along(std::size_t argument, Axis axis) const override {
        (axis == Axis::Row ? parameters_[argument].is_by_row : parameters_[argument].is_by_column) = true;
        return numbers_[argument].as<float>();
    }
    Leaf<float> at_place(std::size_t argument) const override {
        parameters_[argument].is_by_place = true;
        return numbers_[argument].as<float>();
    }

private:
    std::vector<EpilogueParameter>& parameters_;
    const std::vector<GivenNumber>& numbers_;
};

}  // namespace

EpilogueCode::EpilogueCode(const Epilogue& given)
    : name_(given.name), function_(std::make_shared<const EpilogueFunction>(given.function)) {
    const auto fail = [&](std::size_t number, std::string_view what, std::string hint) {
        throw Error(fmt::format("epilogue '{}': argument {} {}", name_, number + 1, what), std::move(hint));
    };
    MoreParameters more;
    for (std::size_t i = 0; i < given.arguments.size(); ++i) {
        const GivenArgument& argument = given.arguments[i];
        parameters_.push_back({.type = argument.type, .is_array = argument.array.has_value()});
        if (argument.array && !with_element(argument.type, []<class T> {}))
            fail(i, fmt::format("has elements of {}", argument.array->type_name()), given_elements);
        if (argument.array) parameters_[i].is_aligned = rows_are_aligned(*argument.array);
        // In the place of an array's element, a number.
        add_number(argument.array ? ir::Type::F32 : argument.type, parameters_[i].name(i), more);
    }
    // The function by itself: what is wrong in it is told, and its text is what tells it from others.
    const auto alone =
        kernel("epilogue", params("sum", "matrix", "row", "column", "result", more),
               [&](f32 sum, u32 matrix, u32 row, u32 column, Out<float> result, More rest) {
                   std::vector<GivenNumber> numbers;
                   for (const EpilogueParameter& parameter : parameters_)
                       numbers.push_back(next_number(parameter.is_array ? ir::Type::F32 : parameter.type, rest));
                   const EpiloguePlace at{value(matrix), {value(row), Axis::Row}, {value(column), Axis::Column}};
                   result[0] = (*function_)(value(sum), at, Uses(parameters_, numbers));
               });
    digest_ = alone.handle().digest();
    for (std::size_t i = 0; i < parameters_.size(); ++i) {
        const EpilogueParameter& parameter = parameters_[i];
        if (!parameter.is_array) continue;
        if (!parameter.is_by_place && !parameter.is_by_row && !parameter.is_by_column)
            fail(i, "is an array that the function does not read", "leave it out, or read it: x[at], x[at.column]");
        if (parameter.is_by_place + parameter.is_by_row + parameter.is_by_column > 1)
            fail(i, "is read in two ways", "x[at], x[at.row] and x[at.column] are arrays of different shapes");
    }
}

MoreParameters EpilogueCode::more() const {
    MoreParameters out;
    for (std::size_t i = 0; i < parameters_.size(); ++i) {
        const EpilogueParameter& parameter = parameters_[i];
        const std::string name = parameter.name(i);
        if (parameter.is_array)
            with_element(parameter.type, [&]<class T> {
                if (parameter.is_by_place)
                    out.add<In<T, 3>>(name);
                else
                    out.add<In<T>>(name);
            });
        else
            add_number(parameter.type, name, out);
    }
    return out;
}

std::strong_ordering EpilogueCode::operator<=>(const EpilogueCode& other) const {
    if (const auto by_name = name_ <=> other.name_; by_name != 0) return by_name;
    if (const auto by_digest = digest_ <=> other.digest_; by_digest != 0) return by_digest;
    return parameters_ <=> other.parameters_;
}

}  // namespace ikat::stdlib
