// SPDX-License-Identifier: Apache-2.0
#include "stdlib/softmax/softmax.hpp"

#include "stdlib/families.hpp"
#include "stdlib/math/math.hpp"
#include "stdlib/size.hpp"
#include "stdlib/tile/rows.hpp"

namespace ikat::stdlib {
namespace {

using Block = BlockGroup<256>;
template <class T>
constexpr int vectors_per_thread = 32 / lanes_of<T>;  // of a row that is kept
/// Leaves each thread 64 registers: left alone, ptxas would rather spill than have a block less on a multiprocessor.
template <class Group>
constexpr std::uint32_t min_blocks = 1024 / Group::block;

/// The largest element of a row and the sum of exp(x - largest), in a pass for each.
auto sum_of_exponentials(const auto& row) {
    f32 most = lowest<float>();
    row.each([&](const auto& v, const auto&) {
        for (const auto& x : v) most = max(most, x);
    });
    most = row.group.max(most);
    f32 sum = 0;
    row.each([&](const auto& v, const auto&) {
        for (const auto& x : v) sum += exp(value(x - most));
    });
    return std::pair{value(most), row.group.sum(sum)};
}

/// The same in one pass: where a larger element comes, the sum so far is scaled down.
auto sum_of_exponentials_online(const auto& row) {
    f32 most = -std::numeric_limits<float>::max(), sum = 0;
    row.each([&](const auto& v, const auto&) {
        f32 larger = most;
        for (const auto& x : v) larger = max(larger, x);
        sum = sum * exp(value(most - larger));
        for (const auto& x : v) sum += exp(value(x - larger));
        most = larger;
    });
    const auto of_all = row.group.max(most);
    return std::pair{of_all, row.group.sum(value(sum * exp(value(most - of_all))))};
}

template <class T, class Group>
RowKernel<T> make_softmax(const char* name) {
    return kernel(name, params("x", "y", "rows", "columns"),
                  [](In<T> x, Out<T> y, u32 rows, u32 columns) {
                      with_row<Group, T, vectors_per_thread<T>>(x, rows, columns, [&](const auto& row) {
                          const auto [most, sum] = sum_of_exponentials(row);
                          const auto factor = value(1.0f / sum);
                          row.map(y, [&](const auto& x) { return exp(value(x - most)) * factor; });
                      });
                  })
        .require(aligned<16>("x"), aligned<16>("y"))
        .launch_bounds(Group::block, min_blocks<Group>);
}

template <class T>
void check_sizes(const char* name, const runtime::Buffer<T>& x, const runtime::Buffer<T>& y, std::uint32_t rows,
                 std::uint32_t columns) {
    const std::uint32_t n = u32_size(name, "y", std::uint64_t(rows) * columns);
    require_size(name, "x", x.size(), n);
    require_size(name, "y", y.size(), n);
}

}  // namespace

template <class T>
const RowKernel<T>& softmax_warp() {
    static const auto made =
        make_softmax<T, WarpGroup>(name_of<T>("softmax_warp", "softmax_warp_f16", "softmax_warp_bf16"));
    return made;
}
template <class T>
const RowKernel<T>& softmax_block() {
    static const auto made =
        make_softmax<T, Block>(name_of<T>("softmax_block", "softmax_block_f16", "softmax_block_bf16"));
    return made;
}
template <class T>
const RowKernel<T>& softmax_online() {
    static const auto made = kernel(name_of<T>("softmax_online", "softmax_online_f16", "softmax_online_bf16"),
                                    params("x", "y", "rows", "columns"),
                                    [](In<T> x, Out<T> y, u32 rows, u32 columns) {
                                        require_linear_grid();
                                        require_threads(Block::block);
                                        const auto active = value(Block::row() < rows);
                                        const StreamedRow<Block, T> row(x, Block::row(), active, columns);
                                        const auto [most, sum] = sum_of_exponentials_online(row);
                                        const auto factor = value(1.0f / sum);
                                        row.map(y, [&](const auto& x) { return exp(value(x - most)) * factor; });
                                    })
                                 .require(aligned<16>("x"), aligned<16>("y"))
                                 .launch_bounds(Block::block);
    return made;
}
template <class T>
const RowKernel<T>& log_softmax() {
    static const auto made =
        kernel(name_of<T>("log_softmax", "log_softmax_f16", "log_softmax_bf16"), params("x", "y", "rows", "columns"),
               [](In<T> x, Out<T> y, u32 rows, u32 columns) {
                   with_row<Block, T, vectors_per_thread<T>>(x, rows, columns, [&](const auto& row) {
                       const auto [most, sum] = sum_of_exponentials(row);
                       const auto log_of_sum = log(sum);
                       row.map(y, [&](const auto& x) { return (x - most) - log_of_sum; });
                   });
               })
            .require(aligned<16>("x"), aligned<16>("y"))
            .launch_bounds(Block::block, min_blocks<Block>);
    return made;
}

template <class T>
void softmax(const runtime::Queue& queue, const runtime::Buffer<T>& x, runtime::Buffer<T>& y, std::uint32_t rows,
             std::uint32_t columns) {
    check_sizes("softmax", x, y, rows, columns);
    if (rows == 0 || columns == 0) return;
    if (columns <= 1024)
        queue.launch(softmax_warp<T>(), row_grid<WarpGroup>(rows), x, y, rows, columns);
    else if (columns <= 8192)
        queue.launch(softmax_block<T>(), row_grid<Block>(rows), x, y, rows, columns);
    else
        queue.launch(softmax_online<T>(), row_grid<Block>(rows), x, y, rows, columns);
}
template <class T>
void log_softmax(const runtime::Queue& queue, const runtime::Buffer<T>& x, runtime::Buffer<T>& y, std::uint32_t rows,
                 std::uint32_t columns) {
    check_sizes("log_softmax", x, y, rows, columns);
    if (rows != 0 && columns != 0) queue.launch(log_softmax<T>(), row_grid<Block>(rows), x, y, rows, columns);
}

#define IKAT_INSTANTIATE(T)                                                                                         \
    template const RowKernel<T>& softmax_warp();                                                                    \
    template const RowKernel<T>& softmax_block();                                                                   \
    template const RowKernel<T>& softmax_online();                                                                  \
    template const RowKernel<T>& log_softmax();                                                                     \
    template void softmax(const runtime::Queue&, const runtime::Buffer<T>&, runtime::Buffer<T>&, std::uint32_t,     \
                          std::uint32_t);                                                                           \
    template void log_softmax(const runtime::Queue&, const runtime::Buffer<T>&, runtime::Buffer<T>&, std::uint32_t, \
                              std::uint32_t);
IKAT_INSTANTIATE(float)
IKAT_INSTANTIATE(half)
IKAT_INSTANTIATE(bfloat16)
#undef IKAT_INSTANTIATE

namespace {

constexpr std::string_view softmax_document =
    "x and y are row-major, rows x columns, with fewer than 2^32 elements, and begin at multiples of 16 bytes. Any\n"
    "sizes. Each row by itself, computed in f32 from x minus the row's maximum and rounded once.";

#define IKAT_ROW(id, Group, text) \
    IKAT_ENTRIES(#id, text, softmax_document, id, (), row_grid<Group>(rows_of_matrix(a, 2, 3)))
constexpr Entry entries[] = {
    IKAT_ROW(softmax_warp, WarpGroup, "softmax of each row, a warp to a row: for up to 1024 columns"),
    IKAT_ROW(softmax_block, Block, "softmax of each row, a block to a row: for up to 8192 columns"),
    IKAT_ROW(softmax_online, Block, "softmax of each row, a block to a row in two passes: for long rows"),
    IKAT_ROW(log_softmax, Block, "the logarithm of softmax of each row, a block to a row"),
};

}  // namespace

std::span<const Entry> softmax_entries() { return entries; }

}  // namespace ikat::stdlib
