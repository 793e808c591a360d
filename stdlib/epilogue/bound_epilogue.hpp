// SPDX-License-Identifier: Apache-2.0
// An epilogue as part of a kernel: its code, by which kernels are told apart, and its function with the kernel's
// parameters for its arguments.
#pragma once
#include <compare>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "codegen/support/digest.hpp"
#include "dsl/kernel/more.hpp"
#include "stdlib/epilogue/epilogue.hpp"

namespace ikat::stdlib {

/// Of each argument, what a kernel is made by.
struct EpilogueParameter {
    std::string name;
    ir::Type type = ir::Type::Void;
    bool is_array = false;
    ir::Type read = ir::Type::Void;  // of an array's elements, as the function has them: F32 or I32
    bool is_by_place = false, is_by_row = false, is_by_column = false;  // how the function reads it
    bool is_aligned = false;                                            // rows begin at multiples of 16 bytes
    bool is_row_sums = false;                                           // or this alone

    auto operator<=>(const EpilogueParameter&) const = default;
};

/// A function of the sum, or of what the step before gave, and of some of the arguments. All elements of a group go
/// through a step before the next one: so arrays that only the last one reads need no registers before.
struct EpilogueStep {
    EpilogueFunction function;
    std::size_t first = 0, count = 0;  // which arguments
    /// It reads one array, and is recorded where that is read: for whole groups, and once more for those at the edge.
    bool is_short = false;
};

/// The key of an epilogue. Equal functions with parameters of the same kinds are the same epilogue.
class EpilogueCode {
public:
    EpilogueCode() = default;
    /// Calls the function once, as in a kernel. Throws Error with the mistakes in it, and for arrays that the function
    /// does not read, or in two ways that need different shapes.
    explicit EpilogueCode(const Epilogue& epilogue);
    /// One of the library's, of sums and with results of a type, which other members of a kernel's key tell from
    /// others. Its steps have a value for any arguments.
    EpilogueCode(ir::Type sum, std::vector<EpilogueParameter> parameters, std::vector<EpilogueStep> steps);

    explicit operator bool() const { return !steps_.empty(); }
    const std::string& name() const { return name_; }
    std::span<const EpilogueParameter> parameters() const { return parameters_; }
    std::span<const EpilogueStep> steps() const { return steps_; }
    /// F32 or I32: of the sums, and of what the last step gives; the others give sums.
    ir::Type sum() const { return sum_; }
    ir::Type result() const { return result_; }
    /// Whether the functions may be called with what is not an element of C.
    bool is_total() const { return is_total_; }
    bool has_row_sums() const;
    /// The parameters of the kernel.
    MoreParameters more() const;

    std::strong_ordering operator<=>(const EpilogueCode& other) const;
    bool operator==(const EpilogueCode& other) const { return *this <=> other == 0; }

private:
    void capture();

    std::string name_;
    Digest digest_{};
    std::vector<EpilogueParameter> parameters_;
    std::vector<EpilogueStep> steps_;
    ir::Type sum_ = ir::Type::F32, result_ = ir::Type::F32;
    bool is_total_ = false;
};

/// Neighbours in a row of C: as many as there are sums, from a column on that is a multiple of their number.
struct EpilogueGroup {
    Leaf<std::uint32_t> matrix, row, column;
    Leaf<std::uint32_t> columns;  // of C
};

/// What the function has added for a group, by argument; null for those that are not row_sums().
using RowSumsOfGroup = std::vector<std::unique_ptr<f32>>;

/// An epilogue in a kernel that is being captured.
class BoundEpilogue {
public:
    /// Takes the parameters of code.more(). The code must outlive it.
    BoundEpilogue(const EpilogueCode& code, More& more);
    ~BoundEpilogue();
    BoundEpilogue(const BoundEpilogue&) = delete;

    const EpilogueCode& code() const { return code_; }
    /// What the steps make of each of up to eight sums, of float or std::int32_t, to results of the type that it has,
    /// which may be the same variables. Arrays are read before, several elements at once where they are aligned and the
    /// whole group is in C. Sums beyond C give results that mean nothing; if the function is not total, the group
    /// begins in C, and they become copies of the last that is in C. What the function adds for elements of C is added
    /// to `rows`, those of row_sums().
    template <class Sum, class Result>
    void apply(const EpilogueGroup& at, std::span<Var<Sum>> sums, std::span<Var<Result>> results,
               const RowSumsOfGroup& rows) const;
    /// Zeros for a group.
    RowSumsOfGroup row_sums() const;
    /// Of groups of `count` elements each, 1, 4 or 8, by all lanes of a warp at once: lanes l to l + 32 / count - 1,
    /// where l is a multiple of their number, have neighbours in a row. Nothing is written where the row or the group
    /// is not there.
    void store(const RowSumsOfGroup& rows, const EpilogueGroup& at, std::uint32_t count,
               const Leaf<bool>& is_there) const;
    /// The same of one sum, by steps that read neither arrays nor where it is.
    template <class Sum>
    Leaf<Sum> of(const Leaf<Sum>& sum) const;

private:
    class Array;
    class Registers;
    class Source;
    template <class Sum, class Result>
    void apply(const EpilogueStep& step, const EpilogueGroup& at, std::span<Var<Sum>> sums,
               std::span<Var<Result>> results, const RowSumsOfGroup& rows) const;

    const EpilogueCode& code_;
    // By argument: null for others; a number that is not used in the place of others.
    std::vector<std::unique_ptr<Array>> arrays_;
    std::vector<std::optional<Out<float, 3>>> row_sums_;
    std::vector<GivenNumber> numbers_;
};

}  // namespace ikat::stdlib
