// SPDX-License-Identifier: Apache-2.0
// A call of a function of the library with views of arrays: what is checked of them before a kernel is chosen, and
// the launches for views of any shape.
//
//     void softmax(const Queue& queue, const TensorView& x, const MutableTensorView& y) {
//         run_rows({queue, softmax_recipe, {x, y}}, {});
//     }
#pragma once
#include <array>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "stdlib/spec/recipe.hpp"
#include "stdlib/spec/row_layout.hpp"

namespace ikat::stdlib {

class ViewCall {
public:
    /// The views are those of the recipe's operands, in their order. Throws Error for elements, ranks and extents that
    /// do not fit, for elements of a row that do not follow each other, and where what is written overlaps another
    /// operand or the workspace.
    ViewCall(const Queue& queue, const Recipe& recipe, std::vector<TensorView> views,
             const WorkspaceSlice& workspace = {});

    const Queue& queue() const { return queue_; }
    const Recipe& recipe() const { return recipe_; }
    const WorkspaceSlice& workspace() const { return workspace_; }
    std::span<const TensorView> views() const { return views_; }
    SizeCheck check() const { return {recipe_.function(), queue_.where()}; }

    /// Of the operands without a type of their own, see type_number.
    std::size_t type() const { return type_; }
    /// ... and the bytes of one.
    std::uint64_t type_bytes() const { return type_ == type_number<float> ? 4 : 2; }
    /// By its name in the operands' shapes, as a number of 32 bits. Throws Error for a larger one.
    std::uint32_t extent(std::string_view name) const;
    /// Whether no array that is written has elements.
    bool writes_nothing() const;
    /// Throws Error.
    [[noreturn]] void fail(std::string_view message, std::string_view hint) const;

private:
    void check_types();
    void check_shapes() const;
    void check_memory() const;

    const Queue& queue_;
    const Recipe& recipe_;
    WorkspaceSlice workspace_;
    std::vector<TensorView> views_;
    std::size_t type_ = 0;
};

/// Whether the elements follow each other, from a multiple of this many bytes on.
bool is_packed(const TensorView& view, std::uint64_t alignment = 16);

/// Numbers by the names of the kernel's parameters.
using NamedNumbers = std::vector<std::pair<std::string_view, FunctionOperand>>;
/// Adds those of RowPitches, for rows of `columns` elements that are in one dimension, so far apart in each array.
/// Vectors are made of what `arrays` have at such places.
NamedNumbers with_pitches(NamedNumbers numbers, std::uint64_t columns, const std::array<std::uint64_t, 3>& pitches,
                          std::initializer_list<const TensorView*> arrays);
/// Runs a kernel of the recipe whose parameters are arrays in the operands' order, the call's or parts of them, and
/// these numbers; nothing if the call writes nothing.
void run_kernel(const ViewCall& call, const Variant& variant, const KernelHandle& handle, const NamedNumbers& numbers);
void run_kernel(const ViewCall& call, const Variant& variant, const KernelHandle& handle,
                std::span<const TensorView> arrays, const NamedNumbers& numbers);
/// The array from an element on.
TensorView part_from(const TensorView& view, std::uint64_t element);
/// f.operator()<T>() for the element type of a call.
template <class F>
decltype(auto) with_type(const ViewCall& call, F&& f) {
    if (call.type() == type_number<half>) return f.template operator()<half>();
    if (call.type() == type_number<bfloat16>) return f.template operator()<bfloat16>();
    return f.template operator()<float>();
}

/// Runs a function that treats the rows, or the elements, of its arrays by themselves: of the operands with "..." in
/// their shapes there are at most six. The last is the one that is written, if one is; others are the same for all
/// rows. Rows are the last dimension if the shapes have a name for it.
///
/// The kernels' parameters are the arrays in the operands' order, numbers of the names rows, columns and n, those of
/// RowPitches for a variant's `pitched` kernels, as `pitches` for the first two arrays and the last and as `more` for
/// the third and those after it, and others, which are the given numbers in their order. `kernel` is
/// the kernel's number; without one, it follows from the columns. Where one launch does not reach all rows there are
/// several, which a recipe with steps gets together, as its parts. Throws Error for rows at pitches, if there is no
/// such kernel.
void run_rows(const ViewCall& call, const std::vector<FunctionOperand>& numbers,
              std::optional<std::size_t> kernel = {});

}  // namespace ikat::stdlib
