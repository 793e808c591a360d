// SPDX-License-Identifier: Apache-2.0
#include "stdlib/layout/layout.hpp"

#include <numbers>

#include "codegen/support/diagnostic.hpp"
#include "stdlib/math/math.hpp"
#include "stdlib/spec/families.hpp"
#include "stdlib/tile/vectors.hpp"

namespace ikat::stdlib {
namespace {

constexpr std::uint32_t threads = 256, tile = 32;
using F = Leaf<float>;

/// A block per token.
Grid tokens_grid(const Call& call) { return {{call["tokens"]}, {threads}}; }

/// Rotates pair `pair` of the head that begins at element `first`.
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

/// The angle between -pi and pi, rounded to f32.
F reduced(const auto& angle) {
    constexpr double turn = 2 * std::numbers::pi;
    const auto turns = value(cast<f64>(cast<i32>(angle * (1 / turn), Rounding::Nearest)));
    return value(cast<f32>(fma(-turns, turn, angle)));
}

/// A block per token: each thread computes the sine and cosine of a pair once, for all heads that it rotates.
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
        .require(at_least("x", "tokens", "heads", "head_dim"), at_least("positions", "tokens"))
        .launch_bounds(threads);
}

}  // namespace

template <class T>
const TransposeKernel<T>& transpose_kernel() {
    static const auto made =
        kernel(
            name_of<T>("transpose"), params("x", "y", "batch", "rows", "columns"),
            [](In<T> x, Out<T> y, u32 batch, u32 rows, u32 columns) {
                require_threads(threads);
                require_linear_grid();
                Shared<T, tile, tile + 1> s;  // the elements of a column are in 32 banks
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
            .require(at_least("x", "batch", "rows", "columns"), at_least("y", "batch", "rows", "columns"))
            .launch_bounds(threads);
    return made;
}
template <class T>
const RopeKernel<T>& rope_kernel(Rope form) {
    static const RopeKernel<T> made[] = {make_rope<T>(Rope::Interleaved, name_of<T>("rope_interleaved")),
                                         make_rope<T>(Rope::Neox, name_of<T>("rope_neox"))};
    SizeCheck{"rope_kernel"}.enumerator("form", std::size_t(form), std::size(made));
    return made[std::size_t(form)];
}
template <class T>
const ScatterKernel<T>& kv_scatter_kernel() {
    static const auto made =
        kernel(name_of<T>("kv_scatter"), params("x", "slots", "cache", "tokens", "width", "cache_rows"),
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
            .require(at_least("x", "tokens", "width"), at_least("slots", "tokens"))
            .require(at_least("cache", "cache_rows", "width"))
            .launch_bounds(1024);
    return made;
}

// ---- the recipes

IKAT_INSTANTIATE(transpose_kernel)
IKAT_INSTANTIATE(rope_kernel, Rope)
IKAT_INSTANTIATE(kv_scatter_kernel)

constexpr Recipe transpose_recipe{
    .call = "transpose(queue, x, y, batch, rows, columns)",
    .kernels = {{"transposes matrices", IKAT_FLOATS(transpose_kernel<T>()),
                 [](const Call& call) {  // blocks are numbered over batch, tiles of rows, tiles of columns
                     const auto tiles = [&](const char* extent) {
                         return (std::uint64_t(call[extent]) + tile - 1) / tile;
                     };
                     return Grid{{std::uint32_t(call["batch"] * tiles("rows") * tiles("columns"))}, {threads}};
                 }}},
    .document =
        "y[b, column, row] = x[b, row, column] for `batch` matrices of rows x columns, row-major, one after\n"
        "the other, with fewer than 2^32 elements together. Any sizes. A block of 256 threads moves a tile of\n"
        "32 x 32.",
    .shapes = "x: rows columns batch, y: rows columns batch",
    .reference = reference::transpose,
    .traffic = "2 E s",
    .note = "of each of `batch` matrices, through shared memory"};
constexpr Recipe rope_recipe{
    .call = "rope(queue, form, x, positions, heads, head_dim, rotary, base, backward)",
    .kernels = {{"rotary position embedding of neighbouring elements", IKAT_FLOATS(rope_kernel<T>(Rope::Interleaved)),
                 tokens_grid},
                {"rotary position embedding of halves, as in GPT-NeoX", IKAT_FLOATS(rope_kernel<T>(Rope::Neox)),
                 tokens_grid}},
    .document =
        "In place. x is tokens x heads x head_dim, with fewer than 2^32 elements; positions has one for each\n"
        "token. Pair i of the first `rotary` elements of each head is turned by sign * position * base^(-2 i\n"
        "/ rotary); sign is 1, or -1 for the backward pass. head_dim and rotary are even, rotary <= head_dim.\n"
        "The angle is within 2^-23 + 2^-47 position, sine and cosine within 1 ulp of its own. A block per\n"
        "token.",
    .shapes = "x: tokens heads head_dim, positions: tokens",
    .check =
        [](const Call& call) {
            if (call["rotary"] > call["head_dim"])
                call.fail("rope: 'rotary' is larger than 'head_dim'", "rotate at most as many elements as a head has");
        },
    .reference = reference::rope,
    .traffic = "2 E s",
    .note = "in place; of a part of the head; angles position · base^(-2i/rotary), within 2^-23 + 2^-47 position"};
constexpr Recipe kv_scatter_recipe{
    .call = "kv_scatter(queue, x, slots, cache, width)",
    .kernels = {{"copies rows to given rows of a cache", IKAT_FLOATS(kv_scatter_kernel<T>()), tokens_grid}},
    .document =
        "cache[slots[t]] = x[t], rows of `width` elements, for t < tokens. Tokens whose slot is not below\n"
        "cache_rows are skipped. x and cache begin at multiples of 16 bytes. Two tokens with the same slot\n"
        "are a race.",
    .shapes = "x: tokens width, slots: tokens, cache: cache_rows width",
    .reference = reference::kv_scatter,
    .traffic = "2 E s",
    .note = "row t of x to row slots[t] of the cache"};

}  // namespace ikat::stdlib
