// SPDX-License-Identifier: Apache-2.0
// Matrix products on tensor cores: C = alpha A B + beta C, and what a layer does with it.
//
//     gemm_tensor_core(device, A.view(m, k), B.view(k, n), C.view(m, n));
//     gemm_tensor_core(device, A.view(m, k), B.view(n, k), C.view(m, n),
//                      {.b = MatrixOrder::Columns, .activation = Activation::gelu, .bias = bias});
//     gemm_tensor_core(device, A.view(m, k), B.view(k, n), C.view(m, n), epilogue("scaled", function, scales));
//
// Of half and bfloat16, C has the type of A and B, or is float; the sums are f32. float is multiplied as tf32: the low
// 13 bits of A and B are cut off. std::int8_t gives std::int32_t.
#pragma once
#include <optional>

#include "runtime/tensor_view.hpp"
#include "stdlib/epilogue/epilogue.hpp"
#include "stdlib/gemm/choices.hpp"
#include "stdlib/math/activation.hpp"
#include "stdlib/spec/recipe.hpp"
#include "stdlib/tile/gemm_schedule.hpp"
#include "stdlib/tile/matrix_order.hpp"
#include "stdlib/tile/raster.hpp"

namespace ikat::stdlib {

/// What is computed besides A B, and how: what is not said is chosen.
struct GemmOptions {
    float alpha = 1, beta = 0;  // integers, where the elements are
    MatrixOrder a = MatrixOrder::Rows, b = MatrixOrder::Rows;
    /// C = activation(alpha A B + beta C + bias) + residual. Of integers: none or relu.
    Activation activation = Activation::none;
    std::optional<TensorView> bias{};      // an element for each column of C, of its type
    std::optional<TensorView> residual{};  // of the type and shape of C, which it must not overlap
    /// C = epilogue(alpha A B + beta C), see epilogue.hpp: a function of your own in place of the three above.
    std::optional<Epilogue> epilogue{};
    GemmPath path = GemmPath::chosen;
    /// Large tiles are medium ones where the device has no room for them, or A or B is not accessed by 16 bytes.
    TileSize tile = TileSize::chosen;
    GemmSchedule schedule = GemmSchedule::chosen;
    Raster raster = Raster::grouped;  // the order of the tiles
    /// Into how many parts k is divided, whose sums are added by a second kernel, always in the same order. 0: as many
    /// as the device needs to be busy. More than 1 asks for GemmSchedule::split_k.
    std::uint32_t parts = 0;
    /// Where k is divided: gemm_workspace() bytes. Without it, the function allocates its own.
    WorkspaceSlice workspace{};
};

/// C = alpha A B + beta C for each of the matrices: A is m x k, B is k x n, C is m x n, any sizes, or 0; by columns, A
/// is stored as k x m, B as n x k. Views are (rows, columns), or (matrices, rows, columns); rows and matrices may be
/// any number of elements apart. Where beta is 0, C is not read. Throws Error for sizes and types that do not fit.
void gemm_tensor_core(const Queue& queue, const TensorView& A, const TensorView& B, const MutableTensorView& C,
                      const GemmOptions& options = {});

/// The same with an epilogue of your own.
inline void gemm_tensor_core(const Queue& queue, const TensorView& A, const TensorView& B, const MutableTensorView& C,
                             const Epilogue& epilogue, GemmOptions options = {}) {
    options.epilogue = epilogue;
    gemm_tensor_core(queue, A, B, C, options);
}

/// The bytes of workspace that the same call needs: 0, unless k is divided.
std::uint64_t gemm_workspace(const Queue& queue, const TensorView& A, const TensorView& B, const MutableTensorView& C,
                             const GemmOptions& options = {});

}  // namespace ikat::stdlib
