// SPDX-License-Identifier: Apache-2.0
// Matrix products on tensor cores: C = alpha A B + beta C, and what a layer does with it.
//
//     gemm_tensor_core(device, A.view(m, k), B.view(k, n), C.view(m, n));
//     gemm_tensor_core(device, A.view(m, k), B.view(n, k), C.view(m, n),
//                      {.b = MatrixOrder::Columns, .activation = Activation::gelu, .bias = bias});
//
// Of half and bfloat16, C has the type of A and B, and the sums are f32. float is multiplied as tf32: the low 13 bits
// of A and B are cut off. std::int8_t gives std::int32_t.
#pragma once
#include <array>
#include <optional>

#include "runtime/view.hpp"
#include "stdlib/gemm/tensor_kernels.hpp"
#include "stdlib/recipe.hpp"

namespace ikat::stdlib {

/// A matrix, or several, of any element type: a view of rank 2 or 3 of a buffer, in which rows follow each other.
struct MatrixOperand {
    ir::Type type = ir::Type::Void;
    bool is_const = true;
    runtime::BufferPart part{};
    std::array<std::uint64_t, 3> extents{};
    std::array<std::uint64_t, 2> pitches{};  // in elements: from matrix to matrix, and from row to row

    template <class T>
    MatrixOperand(const runtime::BufferView<T, 3>& view)
        : type(ir::type_of<std::remove_const_t<T>>),
          is_const(std::is_const_v<T>),
          part(view.part()),
          extents(view.extents()),
          pitches(view.pitches()) {}
    template <class T>
    MatrixOperand(const runtime::BufferView<T, 2>& view)
        : type(ir::type_of<std::remove_const_t<T>>),
          is_const(std::is_const_v<T>),
          part(view.part()),
          extents{1, view.extents()[0], view.extents()[1]},
          pitches{0, view.pitches()[0]} {}
};

/// Which blocks make which tiles of C.
enum class GemmSchedule : std::uint8_t {
    chosen,
    block_per_tile,  // by mma.sync
    persistent,      // as many blocks as the device runs at once take tile after tile
    split,           // k is divided into parts, whose sums are added by a second kernel
    stream_k,  // by mma.sync: as many blocks as the device runs at once have equally many slices of k of the tiles
               // that do not fill it; the sums of a tile are added by a second kernel, in the order of k
};

struct GemmOptions {
    float alpha = 1, beta = 0;  // integers, where the elements are
    MatrixOrder a = MatrixOrder::Rows, b = MatrixOrder::Rows;
    /// C = activation(alpha A B + beta C + bias) + residual. Of integers: none or relu.
    Activation activation = Activation::none;
    std::optional<FunctionOperand> bias{};    // an element for each column of C, of its type
    std::optional<MatrixOperand> residual{};  // of the type and shape of C, which it must not overlap
    GemmPath path = GemmPath::chosen;
    /// Large tiles are medium ones where the device has no room for them, or A or B is not accessed by 16 bytes.
    TileSize tile = TileSize::chosen;
    GemmSchedule schedule = GemmSchedule::chosen;
    /// Into how many parts k is divided, whose sums are added by a second kernel, always in the same order. 0: as many
    /// as the device needs to be busy. More than 1 asks for GemmSchedule::split.
    std::uint32_t parts = 0;
    /// Where k is divided: gemm_workspace() bytes. Without it, a function called with a device allocates its own.
    WorkspaceSlice workspace{};
};

/// C = alpha A B + beta C for each of the matrices: A is m x k, B is k x n, C is m x n, any sizes, or 0; by columns, A
/// is stored as k x m, B as n x k. Where beta is 0, C is not read. Throws Error for sizes and types that do not fit.
void gemm_tensor_core(const Queue& queue, const MatrixOperand& A, const MatrixOperand& B, const MatrixOperand& C,
                      const GemmOptions& options = {});

/// The bytes of workspace that the same call needs: 0, unless k is divided.
std::uint64_t gemm_workspace(const Queue& queue, const MatrixOperand& A, const MatrixOperand& B, const MatrixOperand& C,
                             const GemmOptions& options = {});

}  // namespace ikat::stdlib
