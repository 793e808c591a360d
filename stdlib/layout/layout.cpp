// SPDX-License-Identifier: Apache-2.0
#include "stdlib/layout/layout.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "codegen/support/diagnostic.hpp"
#include "stdlib/layout/cache_rows.hpp"
#include "stdlib/layout/rope_angles.hpp"
#include "stdlib/math/math.hpp"
#include "stdlib/spec/families.hpp"
#include "stdlib/spec/functions.hpp"
#include "stdlib/spec/view_call.hpp"
#include "stdlib/tile/row_places.hpp"
#include "stdlib/tile/vectors.hpp"

namespace ikat::stdlib {
namespace {

constexpr std::uint32_t threads = 256, tile = 32;
using F = Leaf<float>;

/// A block per token.
Grid tokens_grid(const Call& call) { return {{call[call.has("tokens") ? "tokens" : "rows"]}, {threads}}; }

/// Rotates pair `pair` of the head that begins at element `first`; if it is not aligned, by elements.
template <class T>
void turn(Rope form, const InOut<T>& x, const auto& first, const auto& pair, const u32& rotary, const F& s, const F& c,
          bool is_aligned) {
    if (form == Rope::Interleaved && is_aligned) {
        const auto i = value(first / 2u + pair);
        const auto v = load_lanes<2>(x, i);
        store_lanes(x, i, Vec<float, 2>(value(first_turned(v[0], v[1], s, c)), value(second_turned(v[0], v[1], s, c))));
    } else {
        const bool are_neighbours = form == Rope::Interleaved;
        const auto i = are_neighbours ? value(first + pair * 2u) : value(first + pair),
                   j = are_neighbours ? value(i + 1u) : value(i + rotary / 2u);
        const F a = value(cast<f32>(x[i])), b = value(cast<f32>(x[j]));
        x[i] = cast<T>(value(first_turned(a, b, s, c)));
        x[j] = cast<T>(value(second_turned(a, b, s, c)));
    }
}

/// The numbers of a launch.
struct RopeNumbers {
    const u32 &tokens, &heads, &rotary;
    const f32 &base, &sign;
};
/// A block per token: each thread computes the sine and cosine of a pair once, for all heads that it rotates.
/// `first_of(token, head)` is the first element of a head.
template <class T>
void rotate(Rope form, const InOut<T>& x, const In<std::uint32_t>& positions, const RopeNumbers& with, auto&& first_of,
            bool is_aligned) {
    require_linear_grid();
    require_threads(threads);
    const auto token = value(block_id().x);
    const auto pairs = value(with.rotary / 2u), width = value(max(min(pairs, threads), 1u));
    const auto group = value(thread_id().x / width), groups = value(threads / width);
    return_if((token >= with.tokens) | (group >= groups));
    const auto position = value(cast<f64>(positions[token]) * cast<f64>(with.sign));
    const auto rate = rope_rate(with.base, with.rotary);
    for (auto pair : range(thread_id().x % width, pairs, width)) {
        const F angle = rope_angle(position, rate, pair);
        const F s = sin(angle), c = cos(angle);
        for (auto head : range(group, with.heads, groups))
            turn(form, x, value(first_of(token, head)), pair, with.rotary, s, c, is_aligned);
    }
}

template <class T>
RopeKernel<T> make_rope(Rope form, const char* name) {
    return kernel(name, params("x", "positions", "tokens", "heads", "head_dim", "rotary", "base", "sign"),
                  [=](InOut<T> x, In<std::uint32_t> positions, u32 tokens, u32 heads, u32 head_dim, u32 rotary,
                      f32 base, f32 sign) {
                      const auto first = [&](const auto& token, const auto& head) {
                          return (token * heads + head) * head_dim;
                      };
                      rotate(form, x, positions, {tokens, heads, rotary, base, sign}, first, true);
                  })
        .require(multiple_of<2>("head_dim"), multiple_of<2>("rotary"), aligned<16>("x"))
        .require(at_least("x", "tokens", "heads", "head_dim"), at_least("positions", "tokens"))
        .launch_bounds(threads);
}
/// For heads and tokens at pitches.
template <class T>
auto make_pitched_rope(Rope form, bool is_aligned, const char* name) {
    return kernel(name,
                  params("x", "positions", "tokens", "heads", "head_dim", "rotary", "token_pitch", "head_pitch", "base",
                         "sign"),
                  [=](InOut<T> x, In<std::uint32_t> positions, u32 tokens, u32 heads, u32, u32 rotary, u32 token_pitch,
                      u32 head_pitch, f32 base, f32 sign) {
                      const auto first = [&](const auto& token, const auto& head) {
                          return token * token_pitch + head * head_pitch;
                      };
                      rotate(form, x, positions, {tokens, heads, rotary, base, sign}, first, is_aligned);
                  })
        .require(multiple_of<2>("head_dim"), multiple_of<2>("rotary"))
        .launch_bounds(threads);
}
template <class T>
const KernelHandle& pitched_rope(Rope form, bool is_aligned) {
    static const decltype(make_pitched_rope<T>(form, true, "")) made[] = {
        make_pitched_rope<T>(Rope::Interleaved, false, name_of<T>("rope_interleaved_pitched")),
        make_pitched_rope<T>(Rope::Interleaved, true, name_of<T>("rope_interleaved_pitched_aligned")),
        make_pitched_rope<T>(Rope::Neox, true, name_of<T>("rope_neox_pitched"))};
    return made[form == Rope::Neox ? 2 : is_aligned ? 1 : 0].handle();
}

// ---- transposition

/// Where the matrices of a launch are: of both, how far apart rows and planes are.
struct TransposePitches {
    Leaf<std::uint32_t> x_first, x_pitch, y_first, y_pitch;
};

/// `pitches_of(matrix)` are those of a matrix.
template <class T>
void transpose_tile(const In<T>& x, const Out<T>& y, const u32& batch, const u32& rows, const u32& columns,
                    auto&& pitches_of) {
    require_threads(threads);
    require_linear_grid();
    Shared<T, tile, tile + 1> s;  // the elements of a column are in 32 banks
    const auto across = value((columns + (tile - 1)) / tile), down = value((rows + (tile - 1)) / tile);
    const auto block = value(block_id().x);
    const auto c0 = value(block % across * tile), r0 = value(block / across % down * tile);
    const auto matrix = value(block / across / down);
    const TransposePitches of = pitches_of(matrix);
    const auto lane = value(thread_id().x % tile), line = value(thread_id().x / tile);
    const auto inside = value(matrix < batch);
    for (std::uint32_t step = 0; step < tile; step += threads / tile) {
        const auto r = value(r0 + line + step), c = value(c0 + lane);
        s[line + step, lane] = x.load_if(inside & (r < rows) & (c < columns), of.x_first + r * of.x_pitch + c, 0);
    }
    sync_block();
    for (std::uint32_t step = 0; step < tile; step += threads / tile) {
        const auto c = value(c0 + line + step), r = value(r0 + lane);
        y.store_if(inside & (r < rows) & (c < columns), of.y_first + c * of.y_pitch + r, value(s[lane, line + step]));
    }
}

template <class T>
const auto& transpose_pitched() {
    static const auto made =
        kernel(name_of<T>("transpose_pitched"),
               params("x", "y", "batch", "rows", "columns", "x_plane", "x_pitch", "y_plane", "y_pitch"),
               [](In<T> x, Out<T> y, u32 batch, u32 rows, u32 columns, u32 x_plane, u32 x_pitch, u32 y_plane,
                  u32 y_pitch) {
                   transpose_tile(x, y, batch, rows, columns, [&](const auto& matrix) {
                       return TransposePitches{value(matrix * x_plane), value(x_pitch), value(matrix * y_plane),
                                               value(y_pitch)};
                   });
               })
            .launch_bounds(threads);
    return made;
}

// ---- rows to a cache

template <class T>
void scatter_rows(const RowPlaces& places, const In<T>& x, const In<std::uint32_t>& slots, const Out<T>& cache,
                  const u32& cache_rows) {
    require_linear_grid();
    const auto token = value(block_id().x);
    return_if(token >= places.rows);
    const auto slot = value(slots[token]);
    return_if(slot >= cache_rows);
    for_each_in_row<T>(places, token, places.columns, value(thread_id().x), value(block_dim().x),
                       [&]<int N>(Width<N>, const auto& at, const auto& column) {
                           const auto first = places.starts<N>(slot, places.columns / std::uint32_t(N));
                           copy_lanes<N>(cache, value(first[RowPlaces::Y] + column), x, at[RowPlaces::X]);
                       });
}

}  // namespace

template <class T>
const TransposeKernel<T>& transpose_kernel() {
    static const auto made =
        kernel(name_of<T>("transpose"), params("x", "y", "batch", "rows", "columns"),
               [](In<T> x, Out<T> y, u32 batch, u32 rows, u32 columns) {
                   transpose_tile(x, y, batch, rows, columns, [&](const auto& matrix) {
                       const auto first = value(matrix * (rows * columns));
                       return TransposePitches{first, value(columns), first, value(rows)};
                   });
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
                   scatter_rows(RowPlaces(tokens, width), x, slots, cache, cache_rows);
               })
            .require(aligned<16>("x"), aligned<16>("cache"))
            .require(at_least("x", "tokens", "width"), at_least("slots", "tokens"))
            .require(at_least("cache", "cache_rows", "width"))
            .launch_bounds(1024);
    return made;
}

// ---- the functions

namespace {

/// The planes of an array of matrices, as single elements.
TensorView planes_of(TensorView view) {
    view.rank -= 1;
    view.extents[view.rank - 1] = 1;
    return view;
}

/// Rows of elements that follow each other: the first dimension, and all others as one.
TensorView rows_of(const Queue& queue, std::string_view name, const TensorView& view) {
    TensorView out = view;
    for (std::uint32_t d = view.rank; --d > 1;) {
        if (view.extents[d - 1] != 1 && view.strides[d - 1] != out.extents[d])
            throw Error(Diagnostic{.where = queue.where(),
                                   .message = fmt::format("kv_scatter: the elements of a row of '{}' have gaps", name),
                                   .hint = "all dimensions but the first are without gaps"});
        out.extents[d - 1] *= out.extents[d];
        out.strides[d - 1] = 1;
        out.rank = d;
    }
    return out;
}

}  // namespace

void transpose(const Queue& queue, const TensorView& x, const MutableTensorView& y) {
    const ViewCall call(queue, transpose_recipe, {x, y});
    const std::uint32_t rows = call.extent("rows"), columns = call.extent("columns");
    const TensorView x_planes = planes_of(x), y_planes = planes_of(y);
    const RowLayout planes({&x_planes, nullptr, &y_planes}, true);
    if (call.writes_nothing()) return;
    const Variant& variant = transpose_recipe.kernels[0];
    const auto pitch = [&](const TensorView& view) { return std::uint32_t(view.strides[view.rank - 2]); };
    const RowLayout::Dimension batch = planes.rows.empty() ? RowLayout::Dimension{1, {}} : planes.rows.back();
    const std::uint64_t launches = planes.number_of_rows() / batch.extent;
    const auto reach = [&](std::string_view name, const TensorView& view, std::size_t array) {
        call.check().reached(name, batch.extent * std::max<std::uint64_t>(batch.strides[array], 1) +
                                       view.extents[view.rank - 2] * view.strides[view.rank - 2]);
    };
    reach("x", x, 0);
    reach("y", y, 2);
    for (std::uint64_t launch = 0; launch < launches; ++launch) {
        std::uint64_t number = launch, x_first = 0, y_first = 0;
        for (std::size_t d = planes.rows.size(); d-- > 1;) {
            const RowLayout::Dimension& outer = planes.rows[d - 1];
            x_first += number % outer.extent * outer.strides[0];
            y_first += number % outer.extent * outer.strides[2];
            number /= outer.extent;
        }
        const TensorView arrays[] = {part_from(x, x_first), part_from(y, y_first)};
        run_kernel(call, variant, (is_packed(x) && is_packed(y) ? variant.instances : variant.pitched)[call.type()](),
                   arrays,
                   {{"batch", std::uint32_t(batch.extent)},
                    {"rows", rows},
                    {"columns", columns},
                    {"x_plane", std::uint32_t(batch.strides[0])},
                    {"x_pitch", pitch(x)},
                    {"y_plane", std::uint32_t(batch.strides[2])},
                    {"y_pitch", pitch(y)}});
    }
}

void rope(const Queue& queue, Rope form, const MutableTensorView& x, const TensorView& positions, std::uint32_t rotary,
          float base, bool backward) {
    const ViewCall call(queue, rope_recipe, {x, positions});
    call.check().enumerator("form", std::size_t(form), rope_recipe.variants().size());
    const std::uint32_t tokens = call.extent("tokens"), heads = call.extent("heads"),
                        head_dim = call.extent("head_dim");
    const std::uint64_t bytes = info(x.type).bytes;
    call.check().reached("x", x.part.bytes / bytes);
    const Variant& variant = rope_recipe.kernels[std::size_t(form)];
    const bool is_aligned = (x.strides[0] | x.strides[1] | x.part.address() / bytes) % 2 == 0;
    const KernelHandle& handle =
        is_packed(x)
            ? variant.instances[call.type()]()
            : with_type(call, [&]<class T>() -> const KernelHandle& { return pitched_rope<T>(form, is_aligned); });
    run_kernel(call, variant, handle,
               {{"tokens", tokens},
                {"heads", heads},
                {"head_dim", head_dim},
                {"rotary", rotary},
                {"token_pitch", std::uint32_t(x.strides[0])},
                {"head_pitch", std::uint32_t(x.strides[1])},
                {"base", base},
                {"sign", backward ? -1.0f : 1.0f}});
}

void kv_scatter(const Queue& queue, const TensorView& x, const TensorView& slots, const MutableTensorView& cache) {
    if (CacheKernel::encodes(cache)) return scatter_encoded(queue, x, slots, cache);
    const TensorView from_rows = rows_of(queue, "x", x), to_rows = rows_of(queue, "cache", cache);
    const ViewCall call(queue, kv_scatter_recipe, {from_rows, slots, to_rows});
    const std::uint32_t tokens = call.extent("tokens"), width = call.extent("width"), rows = call.extent("cache_rows");
    if (tokens == 0) return;
    const std::uint64_t x_pitch = from_rows.strides[0], pitch = to_rows.strides[0];
    call.check().reached("x", (tokens - 1) * x_pitch + width);
    call.check().reached("cache", (rows - 1) * pitch + width);
    const Variant& variant = kv_scatter_recipe.kernels[0];
    const bool has_gaps = !is_packed(x) || !is_packed(cache);
    run_kernel(
        call, variant, (has_gaps ? variant.pitched : variant.instances)[call.type()](),
        with_pitches({{"tokens", tokens}, {"width", width}, {"cache_rows", rows}, {"rows", tokens}, {"columns", width}},
                     width, {x_pitch, 0, pitch}, {&x, &cache}));
}

static void run_rope(const Queue& queue, std::span<const MutableTensorView> arrays, const FunctionSettings& settings) {
    constexpr std::string_view forms[] = {"interleaved", "neox"};
    rope(queue, Rope(settings.one_of("form", forms)), arrays[0], arrays[1],
         settings.count("rotary").value_or(std::uint32_t(arrays[0].extents[2])),
         settings.number("base").value_or(10000), settings.count("backward").value_or(0) != 0);
}

// ---- the recipes

IKAT_INSTANTIATE(transpose_kernel)
IKAT_INSTANTIATE(rope_kernel, Rope)
IKAT_INSTANTIATE(kv_scatter_kernel)

constexpr Recipe transpose_recipe{
    .call = "transpose(queue, x, y)",
    .kernels = {{.summary = "transposes matrices",
                 .instances = IKAT_FLOATS(transpose_kernel<T>()),
                 .grid =
                     [](const Call& call) {  // blocks are numbered over batch, tiles of rows, tiles of columns
                         const auto tiles = [&](const char* extent) {
                             return (std::uint64_t(call[extent]) + tile - 1) / tile;
                         };
                         return Grid{{std::uint32_t(call["batch"] * tiles("rows") * tiles("columns"))}, {threads}};
                     },
                 .pitched = IKAT_FLOATS(transpose_pitched<T>())}},
    .operands = {{"x", "... rows columns"}, {"y", "... columns rows", Access::Out}},
    .run = [](const Queue& queue, std::span<const MutableTensorView> arrays,
              const FunctionSettings&) { transpose(queue, arrays[0], arrays[1]); },
    .document =
        "y[b, column, row] = x[b, row, column] for `batch` matrices of rows x columns, row-major, one after\n"
        "the other, with fewer than 2^32 elements together. Any sizes. A block of 256 threads moves a tile of\n"
        "32 x 32.",
    .sizes = {{"x", "rows columns batch"}, {"y", "rows columns batch"}},
    .reference = reference::transpose,
    .traffic = "2 E s",
    .note = "of each of `batch` matrices, through shared memory"};
constexpr Recipe rope_recipe{
    .call = "rope(queue, form, x, positions, rotary, base, backward)",
    .kernels = {{"rotary position embedding of neighbouring elements", IKAT_FLOATS(rope_kernel<T>(Rope::Interleaved)),
                 tokens_grid},
                {"rotary position embedding of halves, as in GPT-NeoX", IKAT_FLOATS(rope_kernel<T>(Rope::Neox)),
                 tokens_grid}},
    .operands = {{"x", "tokens heads head_dim", Access::InOut}, {"positions", "tokens", Access::In, ir::Type::U32}},
    .settings = {{"form", "interleaved, neighbouring elements, or neox, halves; interleaved if it is not set"},
                 {"rotary", "how many elements of a head are turned; all of them if it is not set"},
                 {"base", "of the angles; 10000 if it is not set"},
                 {"backward", "1 for the backward pass"}},
    .run = run_rope,
    .document =
        "In place. x is tokens x heads x head_dim, with fewer than 2^32 elements; positions has one for each\n"
        "token. Pair i of the first `rotary` elements of each head is turned by sign * position * base^(-2 i\n"
        "/ rotary); sign is 1, or -1 for the backward pass. head_dim and rotary are even, rotary <= head_dim.\n"
        "The angle is within 2^-23 + 2^-47 position, sine and cosine within 1 ulp of its own. A block per\n"
        "token.",
    .sizes = {{"x", "tokens heads head_dim"}, {"positions", "tokens"}},
    .check =
        [](const Call& call) {
            if (call["rotary"] > call["head_dim"])
                call.fail("rope: 'rotary' is larger than 'head_dim'", "rotate at most as many elements as a head has");
        },
    .reference = reference::rope,
    .traffic = "2 E s",
    .note = "in place; of a part of the head; angles position · base^(-2i/rotary), within 2^-23 + 2^-47 position"};
constexpr Recipe kv_scatter_recipe{
    .call = "kv_scatter(queue, x, slots, cache)",
    .kernels = {{.summary = "copies rows to given rows of a cache",
                 .instances = IKAT_FLOATS(kv_scatter_kernel<T>()),
                 .grid = tokens_grid,
                 .pitched =
                     IKAT_PITCHED("kv_scatter", (scatter_rows<T>), 1024, 0, "x", "slots", "cache", "cache_rows")}},
    .operands = {{"x", "tokens width"},
                 {"slots", "tokens", Access::In, ir::Type::U32},
                 {"cache", "cache_rows width", Access::InOut}},
    .run = [](const Queue& queue, std::span<const MutableTensorView> arrays,
              const FunctionSettings&) { kv_scatter(queue, arrays[0], arrays[1], arrays[2]); },
    .document =
        "cache[slots[t]] = x[t], rows of `width` elements, for t < tokens. Tokens whose slot is not below\n"
        "cache_rows are skipped. x and cache begin at multiples of 16 bytes. Two tokens with the same slot\n"
        "are a race.",
    .sizes = {{"x", "tokens width"}, {"slots", "tokens"}, {"cache", "cache_rows width"}},
    .reference = reference::kv_scatter,
    .traffic = "2 E s",
    .note = "row t of x to row slots[t] of the cache"};

}  // namespace ikat::stdlib
