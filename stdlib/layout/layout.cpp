// SPDX-License-Identifier: Apache-2.0
#include "stdlib/layout/layout.hpp"

#include <numbers>

#include "codegen/support/diagnostic.hpp"
#include "stdlib/families.hpp"
#include "stdlib/math/math.hpp"
#include "stdlib/size.hpp"
#include "stdlib/tile/vectors.hpp"

namespace ikat::stdlib {
namespace {

constexpr std::uint32_t threads = 256, tile = 32;
using F = Leaf<float>;

std::uint64_t tiles(std::uint64_t extent) { return (extent + tile - 1) / tile; }

/// Blocks are numbered over batch, tiles of rows, tiles of columns.
runtime::Grid transpose_grid(std::uint64_t batch, std::uint64_t rows, std::uint64_t columns) {
    return {.blocks = {std::uint32_t(batch * tiles(rows) * tiles(columns)), 1, 1}, .threads = {threads, 1, 1}};
}

runtime::Grid rope_grid(std::uint32_t tokens) { return {.blocks = {tokens, 1, 1}, .threads = {threads, 1, 1}}; }

runtime::Grid scatter_grid(std::uint32_t tokens) { return {.blocks = {tokens, 1, 1}, .threads = {threads, 1, 1}}; }

void check_rotary(std::uint32_t rotary, std::uint32_t head_dim) {
    if (rotary > head_dim)
        throw Error("rope: 'rotary' is larger than 'head_dim'", "rotate at most as many elements as a head has");
}

runtime::Grid rope_grid_of(Arguments a) {
    check_rotary(number(a, 5), number(a, 4));
    const std::uint32_t heads = u32_size("rope", "x", std::uint64_t(number(a, 2)) * number(a, 3));
    u32_size("rope", "x", std::uint64_t(heads) * number(a, 4));
    return rope_grid(number(a, 2));
}
runtime::Grid transpose_grid_of(Arguments a) {
    const std::uint32_t matrix = u32_size("transpose", "x", std::uint64_t(number(a, 3)) * number(a, 4));
    u32_size("transpose", "x", std::uint64_t(number(a, 2)) * matrix);
    return transpose_grid(number(a, 2), number(a, 3), number(a, 4));
}
runtime::Grid scatter_grid_of(Arguments a) {
    u32_size("kv_scatter", "cache", std::uint64_t(number(a, 5)) * number(a, 4));
    return scatter_grid(rows_of_matrix(a, 3, 4));
}

/// Turns pair number `pair` of the head that begins at element `first`.
template <class T>
void turn(Rope form, const InOut<T>& x, const auto& first, const auto& pair, const u32& rotary, const F& s,
          const F& c) {
    if (form == Rope::Interleaved) {
        const auto i = value(first / 2u + pair);
        const auto v = load_lanes<2>(x, i);
        store_lanes(x, i, Vec<float, 2>(value(v[0] * c - v[1] * s), value(v[0] * s + v[1] * c)));
    } else {
        const auto i = value(first + pair), j = value(i + rotary / 2u);
        const F a = value(cast<f32>(x[i])), b = value(cast<f32>(x[j]));
        x[i] = cast<T>(value(a * c - b * s));
        x[j] = cast<T>(value(a * s + b * c));
    }
}

/// Between -pi and pi, rounded to f32.
F reduced(const auto& angle) {
    constexpr double turn = 2 * std::numbers::pi;
    const auto turns = value(cast<f64>(cast<i32>(angle * (1 / turn), Rounding::Nearest)));
    return value(cast<f32>(fma(-turns, turn, angle)));
}

/// A block to a token: each thread finds the sine and cosine of a pair once, for all heads that it turns.
template <class T>
RopeKernel<T> make_rope(Rope form, const char* name) {
    return kernel(name, params("x", "positions", "tokens", "heads", "head_dim", "rotary", "base", "sign"),
                  [=](InOut<T> x, In<std::uint32_t> positions, u32 tokens, u32 heads, u32 head_dim, u32 rotary,
                      f32 base, f32 sign) {
                      require_linear_grid();
                      require_threads(threads);
                      const auto token = value(block_id().x);
                      const auto pairs = value(rotary / 2u), width = value(max(min(pairs, threads), 1u));
                      const auto group = value(thread_id().x / width), groups = value(threads / width);
                      return_if((token >= tokens) | (group >= groups));
                      const auto position = value(cast<f64>(positions[token]) * cast<f64>(sign));
                      const auto rate = value(-2 * log(cast<f64>(base)) / cast<f64>(rotary));
                      for (auto pair : range(thread_id().x % width, pairs, width)) {
                          const F angle = reduced(value(position * exp(rate * cast<f64>(pair))));
                          const F s = sin(angle), c = cos(angle);
                          for (auto head : range(group, heads, groups))
                              turn(form, x, value((token * heads + head) * head_dim), pair, rotary, s, c);
                      }
                  })
        .require(multiple_of<2>("head_dim"), multiple_of<2>("rotary"), aligned<16>("x"))
        .launch_bounds(threads);
}

}  // namespace

template <class T>
const TransposeKernel<T>& transpose_kernel() {
    static const auto made =
        kernel(
            name_of<T>("transpose", "transpose_f16", "transpose_bf16"), params("x", "y", "batch", "rows", "columns"),
            [](In<T> x, Out<T> y, u32 batch, u32 rows, u32 columns) {
                require_threads(threads);
                require_linear_grid();
                Shared<T, tile, tile + 1> s;  // a column of it is in 32 banks
                const auto across = value((columns + (tile - 1)) / tile), down = value((rows + (tile - 1)) / tile);
                const auto block = value(block_id().x);
                const auto c0 = value(block % across * tile), r0 = value(block / across % down * tile);
                const auto matrix = value(block / across / down);
                const auto first = value(matrix * (rows * columns));
                const auto lane = value(thread_id().x % tile), line = value(thread_id().x / tile);
                const auto inside = value(matrix < batch);
                for (std::uint32_t step = 0; step < tile; step += threads / tile) {
                    const auto r = value(r0 + line + step), c = value(c0 + lane);
                    s[line + step, lane] = x.load_if(inside & (r < rows) & (c < columns), first + r * columns + c, 0);
                }
                sync_block();
                for (std::uint32_t step = 0; step < tile; step += threads / tile) {
                    const auto c = value(c0 + line + step), r = value(r0 + lane);
                    y.store_if(inside & (r < rows) & (c < columns), first + c * rows + r, value(s[lane, line + step]));
                }
            })
            .launch_bounds(threads);
    return made;
}
template <class T>
const RopeKernel<T>& rope_kernel(Rope form) {
    static const RopeKernel<T> made[] = {
        make_rope<T>(Rope::Interleaved,
                     name_of<T>("rope_interleaved", "rope_interleaved_f16", "rope_interleaved_bf16")),
        make_rope<T>(Rope::Neox, name_of<T>("rope_neox", "rope_neox_f16", "rope_neox_bf16"))};
    return made[std::size_t(form)];
}
template <class T>
const ScatterKernel<T>& kv_scatter_kernel() {
    static const auto made =
        kernel(name_of<T>("kv_scatter", "kv_scatter_f16", "kv_scatter_bf16"),
               params("x", "slots", "cache", "tokens", "width", "cache_rows"),
               [](In<T> x, In<std::uint32_t> slots, Out<T> cache, u32 tokens, u32 width, u32 cache_rows) {
                   require_linear_grid();
                   const auto token = value(block_id().x);
                   return_if(token >= tokens);
                   const auto slot = value(slots[token]);
                   return_if(slot >= cache_rows);
                   for_each_in_row<T>(token, width, value(thread_id().x), value(block_dim().x),
                                      [&]<int N>(Width<N>, const auto& i, const auto& column) {
                                          const auto to = value(slot * (width / std::uint32_t(N)) + column);
                                          copy_lanes<N>(cache, to, x, i);
                                      });
               })
            .require(aligned<16>("x"), aligned<16>("cache"))
            .launch_bounds(1024);
    return made;
}

template <class T>
void transpose(const runtime::Queue& queue, const runtime::Buffer<T>& x, runtime::Buffer<T>& y, std::uint32_t batch,
               std::uint32_t rows, std::uint32_t columns) {
    const std::uint32_t matrix = u32_size("transpose", "x", std::uint64_t(rows) * columns);
    const std::uint32_t n = u32_size("transpose", "x", std::uint64_t(matrix) * batch);
    require_size("transpose", "x", x.size(), n);
    require_size("transpose", "y", y.size(), n);
    if (n != 0) queue.launch(transpose_kernel<T>(), transpose_grid(batch, rows, columns), x, y, batch, rows, columns);
}
template <class T>
void rope(const runtime::Queue& queue, Rope form, runtime::Buffer<T>& x,
          const runtime::Buffer<std::uint32_t>& positions, std::uint32_t heads, std::uint32_t head_dim,
          std::uint32_t rotary, float base, bool backward) {
    const std::uint32_t tokens = u32_size("rope", "positions", positions.size());
    check_rotary(rotary, head_dim);
    const std::uint32_t all = u32_size("rope", "x", std::uint64_t(tokens) * heads);
    require_size("rope", "x", x.size(), u32_size("rope", "x", std::uint64_t(all) * head_dim));
    if (all != 0 && rotary != 0)
        queue.launch(rope_kernel<T>(form), rope_grid(tokens), x, positions, tokens, heads, head_dim, rotary, base,
                     backward ? -1.0f : 1.0f);
}
template <class T>
void kv_scatter(const runtime::Queue& queue, const runtime::Buffer<T>& x, const runtime::Buffer<std::uint32_t>& slots,
                runtime::Buffer<T>& cache, std::uint32_t width) {
    const std::uint32_t tokens = u32_size("kv_scatter", "slots", slots.size());
    require_size("kv_scatter", "x", x.size(), u32_size("kv_scatter", "x", std::uint64_t(tokens) * width));
    u32_size("kv_scatter", "cache", cache.size());
    if (tokens == 0 || width == 0) return;
    queue.launch(kv_scatter_kernel<T>(), scatter_grid(tokens), x, slots, cache, tokens, width,
                 std::uint32_t(cache.size() / width));
}

#define IKAT_INSTANTIATE(T)                                                                                           \
    template const TransposeKernel<T>& transpose_kernel();                                                            \
    template const RopeKernel<T>& rope_kernel(Rope);                                                                  \
    template const ScatterKernel<T>& kv_scatter_kernel();                                                             \
    template void transpose(const runtime::Queue&, const runtime::Buffer<T>&, runtime::Buffer<T>&, std::uint32_t,     \
                            std::uint32_t, std::uint32_t);                                                            \
    template void rope(const runtime::Queue&, Rope, runtime::Buffer<T>&, const runtime::Buffer<std::uint32_t>&,       \
                       std::uint32_t, std::uint32_t, std::uint32_t, float, bool);                                     \
    template void kv_scatter(const runtime::Queue&, const runtime::Buffer<T>&, const runtime::Buffer<std::uint32_t>&, \
                             runtime::Buffer<T>&, std::uint32_t);
IKAT_INSTANTIATE(float)
IKAT_INSTANTIATE(half)
IKAT_INSTANTIATE(bfloat16)
#undef IKAT_INSTANTIATE

namespace {

constexpr std::string_view transpose_document =
    "y[b, column, row] = x[b, row, column] for `batch` matrices of rows x columns, row-major, one after the other, "
    "with\n"
    "fewer than 2^32 elements together. Any sizes. A block of 256 threads moves a tile of 32 x 32.";
constexpr std::string_view rope_document =
    "In place. x is tokens x heads x head_dim, with fewer than 2^32 elements; positions has one for each token. Pair "
    "i\n"
    "of the first `rotary` elements of each head is turned by sign * position * base^(-2 i / rotary); sign is 1, or "
    "-1\n"
    "for the backward pass. head_dim and rotary are even, rotary <= head_dim. The angle is within 2^-23 + 2^-47 "
    "position,\n"
    "sine and cosine within 1 ulp of its own. A block to a token.";
constexpr std::string_view scatter_document =
    "cache[slots[t]] = x[t], rows of `width` elements, for t < tokens. Slots from cache_rows on are passed over. x "
    "and\n"
    "cache begin at multiples of 16 bytes. One slot twice is a race.";

constexpr Entry entries[] = {
    IKAT_ENTRIES("transpose", "the transposes of matrices", transpose_document, transpose_kernel, (),
                 transpose_grid_of(a)),
    IKAT_ENTRIES("rope_interleaved", "rotary position embedding of neighbours", rope_document, rope_kernel,
                 (Rope::Interleaved), rope_grid_of(a)),
    IKAT_ENTRIES("rope_neox", "rotary position embedding of halves, as GPT-NeoX has it", rope_document, rope_kernel,
                 (Rope::Neox), rope_grid_of(a)),
    IKAT_ENTRIES("kv_scatter", "rows to given places of a cache", scatter_document, kv_scatter_kernel, (),
                 scatter_grid_of(a)),
};

}  // namespace

std::span<const Entry> layout_entries() { return entries; }

}  // namespace ikat::stdlib
