// SPDX-License-Identifier: Apache-2.0
#include "stdlib/registry.hpp"

#include <algorithm>
#include <vector>

#include "stdlib/elementwise/saxpy.hpp"
#include "stdlib/families.hpp"
#include "stdlib/gemm/gemm.hpp"

namespace ikat::stdlib {
namespace {

runtime::Grid gemm_grid(Arguments arguments) {
    const std::uint32_t m = number(arguments, 3), n = number(arguments, 4);
    for (const auto& [rows, columns] : {std::pair(3, 4), std::pair(3, 5), std::pair(5, 4)})
        rows_of_matrix(arguments, std::size_t(rows), std::size_t(columns));
    return m && n ? gemm_tiled_grid(m, n) : runtime::Grid{{0}, {gemm_tiled_grid(1, 1).threads}};
}

constexpr Entry entries[] = {
    IKAT_ENTRY(
        "gemm_tiled", "C = A B, f32, tiled through shared memory and registers",
        "A is m x k, B is k x n, C is m x n, row-major, with fewer than 2^32 elements each. Any sizes; k = 0 gives\n"
        "zeros. Blocks of 256 threads cover tiles of C, 64 x 64 each: the grid is n / 64 by m / 64, rounded up; beyond "
        "65535 in y it goes on in z.",
        gemm_tiled(), gemm_grid(a)),
    IKAT_ENTRY("saxpy", "y = a x + y",
               "x and y have at least n elements. Each element is one fused multiply-add. One thread per element.",
               saxpy(), saxpy_grid(number(a, 3), block ? block : 256)),
};

/// All families, by name.
std::vector<Entry> collect() {
    std::vector<Entry> out;
    for (const std::span<const Entry> family :
         {std::span<const Entry>(entries), conv2d_entries(), copy_entries(), dot_entries(), elementwise_entries(),
          gemv_entries(), layout_entries(), norm_entries(), quantised_entries(), reduction_entries(),
          softmax_entries()})
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
