// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "stdlib/gemm/gemm.hpp"
#include "stdlib/quantised/product.hpp"
#include "stdlib/spec/families.hpp"
#include "stdlib/spec/functions.hpp"
#include "stdlib/spec/view_call.hpp"

namespace ikat::stdlib {

void gemm(const Queue& queue, const TensorView& A, const TensorView& B, const MutableTensorView& C, GemmBlock block) {
    if (A.format && block == GemmBlock::chosen) return quantised_gemm(queue, A, B, C);
    const ViewCall call(queue, gemm_recipe, {A, B, C});
    call.check().enumerator("block", std::size_t(block), 3);
    const std::uint32_t m = call.extent("m"), n = call.extent("n"), k = call.extent("k");
    const auto pitch = [&](std::string_view name, const TensorView& view) {
        call.check().reached(name, view.extents[0] * std::max(view.extents[1], view.strides[0]));
        return std::uint32_t(view.strides[0]);
    };
    const std::uint32_t a_pitch = pitch("A", A), b_pitch = pitch("B", B), c_pitch = pitch("C", C);
    const bool has_many =
        m > 64 && n > 64 && gemm_tiled_large_grid(m, n).blocks.x >= queue.device().properties().multiprocessors;
    const bool is_large = block == GemmBlock::large || (block == GemmBlock::chosen && has_many);
    const bool has_gaps = !is_packed(A) || !is_packed(B) || !is_packed(C);
    const Variant& variant = gemm_recipe.kernels[is_large && !has_gaps];
    run_kernel(call, variant, has_gaps ? gemm_tiled_pitched().handle() : variant.instances[0](),
               {{"m", m}, {"n", n}, {"k", k}, {"a_pitch", a_pitch}, {"b_pitch", b_pitch}, {"c_pitch", c_pitch}});
}

// ---- the recipe

static Grid grid_of(const Call& call, Grid (*of)(std::uint32_t m, std::uint32_t n)) {
    const std::uint32_t m = call["m"], n = call["n"];
    return m && n ? of(m, n) : Grid{{0}, {of(1, 1).threads}};
}

constexpr Recipe gemm_recipe{
    .call = "gemm(queue, A, B, C)",
    .kernels = {{"C = A B, f32, tiled through shared memory and registers", IKAT_KERNEL(gemm_tiled()),
                 [](const Call& call) { return grid_of(call, gemm_tiled_grid); }},
                {"C = A B, f32, for large matrices", IKAT_KERNEL(gemm_tiled_large()),
                 [](const Call& call) { return grid_of(call, gemm_tiled_large_grid); }}},
    .operands = {{"A", "m k", Access::In, ir::Type::F32},
                 {"B", "k n", Access::In, ir::Type::F32},
                 {"C", "m n", Access::Out, ir::Type::F32}},
    .run = [](const Queue& queue, std::span<const MutableTensorView> arrays,
              const FunctionSettings&) { gemm(queue, arrays[0], arrays[1], arrays[2]); },
    .document =
        "A is m x k, B is k x n, C is m x n, row-major, with fewer than 2^32 elements each. Any sizes; k = 0\n"
        "gives zeros. Blocks of 256 threads cover tiles of C: of gemm_tiled 64 x 64 each, and the grid is\n"
        "n / 64 by m / 64, rounded up, beyond 65535 in y it continues in z; of gemm_tiled_large 128 x 128,\n"
        "and the grid is their number. Both give the same bits.",
    .sizes = {{"A", "m k"}, {"B", "k n"}, {"C", "m n"}},
    .reference = reference::gemm,
    .bound_by = "bound by arithmetic: each element is used for many of C",
    .note = "f32: C = A B"};

}  // namespace ikat::stdlib
