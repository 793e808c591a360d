// SPDX-License-Identifier: Apache-2.0
// Reductions along dimensions of a view.
//
//     stdlib::reduce(device, Reduction::sum, x.view(batch, rows, columns), y.view(batch, columns), {1});
//     stdlib::reduce(device, Reduction::variance, x.view(rows, columns), y, {-1}, {.unbiased = true});
//     stdlib::reduce(device, Reduction::argmax, x.view(rows, columns), indices, {1});
//
// x has one to five dimensions, with any strides, fewer than 2^32 elements and gaps. y has x's dimensions without those
// that are reduced, or all of them with one index in their place; where all are reduced, one element. x is read once.
// All is computed in f32 and rounded once; the order of the additions depends on the extents and strides alone, so the
// results are the same in every run, and no atomics are used.
#pragma once
#include <cstdint>
#include <initializer_list>
#include <vector>

#include "dsl/kernel/kernel.hpp"
#include "stdlib/spec/recipe.hpp"

namespace ikat::stdlib {

/// What is made of the elements. A NaN among them makes it NaN, but of `any` and `all`.
enum class Reduction : std::uint8_t {
    sum,       // 0 of no elements
    mean,      // NaN of no elements, as variance
    max,       // a NaN is the maximum, and the minimum; of no elements it is an Error, as of the next three
    min,       //
    variance,  // the mean of the squared differences from the mean; see ReductionOptions::unbiased
    norm2,     // the root of the sum of squares, in f32: infinite from 1.8e19 on; stdlib::norm2() has no root
    argmax,    // the index of the first maximum among the reduced elements, in the order of their dimensions; that of
    argmin,    // the first NaN, if there is one. y is of u32
    any,       // 1 where an element is not 0, else 0; x and y are of u8
    all        // 1 where no element is 0
};
inline constexpr std::size_t reduction_count = 10;
/// "sum", "argmax".
std::string_view name_of(Reduction what);

/// How a reduction along dimensions is made.
struct ReductionOptions {
    /// The variance is divided by the number of elements less 1, and so is NaN for one element, as PyTorch's is.
    bool unbiased = false;
    WorkspaceSlice workspace{};
};

/// Dimensions of a view, counted from 0, or from the last, -1.
class Axes {
public:
    Axes(int axis) : list_{axis} {}
    Axes(std::initializer_list<int> axes) : list_(axes) {}
    Axes(std::vector<int> axes) : list_(std::move(axes)) {}
    const std::vector<int>& list() const { return list_; }

private:
    std::vector<int> list_;
};

/// The bytes of workspace that reduce() needs: 0 but for long reductions with few results.
std::uint64_t reduce_workspace(Reduction what, const TensorView& x, const Axes& axes);
/// y = the reduction of x along the axes. x is f32, f16 or bf16, and y of the same type, but for argmax, argmin, any
/// and all. Throws Error for axes that x does not have, or has twice, for types and shapes that do not fit, for
/// reductions of no elements that have no value, and where y overlaps x.
void reduce(const Queue& queue, Reduction what, const TensorView& x, const MutableTensorView& y, const Axes& axes,
            const ReductionOptions& options = {});

}  // namespace ikat::stdlib
