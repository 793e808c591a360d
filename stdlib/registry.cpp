// SPDX-License-Identifier: Apache-2.0
#include "stdlib/registry.hpp"

#include <algorithm>
#include <vector>

#include "stdlib/families.hpp"
#include "stdlib/gemm.hpp"
#include "stdlib/reduction.hpp"
#include "stdlib/saxpy.hpp"

namespace ikat::stdlib {
namespace {

runtime::Grid gemm_grid(Arguments arguments) {
    const auto m = std::uint32_t(arguments[3].bits), n = std::uint32_t(arguments[4].bits);
    return m && n ? gemm_tiled_grid(m, n) : runtime::Grid{{0}, {gemm_tiled_grid(1, 1).threads}};
}

/// A run is one launch: one block of it gives the whole result, in partial[0].
runtime::Grid reduction_of_one_block(Arguments) { return {{1}, {256}}; }

constexpr std::string_view reduction_document =
    "partial[b] is the result over the elements that block b visits, in f32; with one block, which is the default,\n"
    "partial[0] is the result over x[n]. The same in every run. Blocks have one dimension, a multiple of 32.";

constexpr Entry entries[] = {
    {.name = "gemm_tiled",
     .summary = "C = A B, f32, tiled through shared memory and registers",
     .document =
         "A is m x k, B is k x n, C is m x n, row-major, with fewer than 2^32 elements each. Any sizes; k = 0 gives\n"
         "zeros. Blocks of 256 threads cover tiles of C, 64 x 64 each: the grid is n / 64 by m / 64, rounded up.",
     .kernel = []() -> const ast::Kernel& { return gemm_tiled().ast(); },
     .grid = gemm_grid},
    {.name = "max_f16",
     .summary = "the maximum of an array of f16",
     .document = reduction_document,
     .kernel = []() -> const ast::Kernel& { return max_f16().ast(); },
     .grid = reduction_of_one_block},
    {.name = "max_f32",
     .summary = "the maximum of an array of f32",
     .document = reduction_document,
     .kernel = []() -> const ast::Kernel& { return max_f32().ast(); },
     .grid = reduction_of_one_block},
    {.name = "saxpy",
     .summary = "y = a x + y",
     .document = "x and y have at least n elements. Each element is one fused multiply-add. One thread per element.",
     .kernel = []() -> const ast::Kernel& { return saxpy().ast(); },
     .grid = [](Arguments arguments) { return saxpy_grid(arguments[3].bits); }},
    {.name = "sum_f16",
     .summary = "the sum of an array of f16, in f32",
     .document = reduction_document,
     .kernel = []() -> const ast::Kernel& { return sum_f16().ast(); },
     .grid = reduction_of_one_block},
    {.name = "sum_f32",
     .summary = "the sum of an array of f32",
     .document = reduction_document,
     .kernel = []() -> const ast::Kernel& { return sum_f32().ast(); },
     .grid = reduction_of_one_block},
};

/// All families, by name.
std::vector<Entry> collect() {
    std::vector<Entry> out;
    for (const std::span<const Entry> family :
         {std::span<const Entry>(entries), conv2d_entries(), copy_entries(), dot_entries(), elementwise_entries(),
          gemv_entries(), layout_entries(), norm_entries(), quantised_entries(), softmax_entries()})
        out.insert(out.end(), family.begin(), family.end());
    std::ranges::sort(out, {}, &Entry::name);
    return out;
}

}  // namespace

std::span<const Entry> registry() {
    static const std::vector<Entry> all = collect();
    return all;
}

const Entry* find(std::string_view name) {
    const std::span<const Entry> all = registry();
    const auto found = std::ranges::lower_bound(all, name, {}, &Entry::name);
    return found == all.end() || found->name != name ? nullptr : &*found;
}

}  // namespace ikat::stdlib
