// SPDX-License-Identifier: Apache-2.0
#include "stdlib/quantised/quantised.hpp"

#include <fmt/format.h>

#include "codegen/support/diagnostic.hpp"
#include "stdlib/quantised/blocks.hpp"
#include "stdlib/spec/families.hpp"
#include "stdlib/spec/view_call.hpp"
#include "stdlib/tile/stage.hpp"

namespace ikat::stdlib {
namespace {

/// Blocks are decoded in units of 32 weights.
template <class Format>
constexpr std::uint32_t units_of = Format::weights / 32;
/// The bytes before unit i, which begins a block.
template <class Format>
auto bytes_before(const auto& i) {
    return value(i / units_of<Format> * Format::bytes);
}
/// Unit i of a stage, which begins with a block.
template <class Format>
blocks::Unit unit_of(const auto& stage, const auto& i) {
    return Format::unit(stage, stage.at(bytes_before<Format>(i)), value(i % units_of<Format>));
}

/// 32 units per warp, one per lane. The decoded weights go through shared memory, so that stores, too, are of whole
/// sectors.
template <class Format>
DequantiseKernel make_dequantise(const char* name) {
    return kernel(name, params("w", "y", "n"),
                  [](In<std::uint8_t> w, Out<float> y, u32 n) {
                      require_linear_grid();
                      require_threads(WarpGroup::block);
                      constexpr std::uint32_t line = 9;  // the vectors of a unit, and one against bank conflicts
                      Stage<WarpGroup, 32 / units_of<Format> * Format::bytes> weights;
                      const auto decoded = Shared<float, WarpGroup::rows_of_block * 32 * line * 4>().flat().slice(
                          WarpGroup::number() * (32 * line * 4));
                      const auto units = value(n * units_of<Format>), first = value(WarpGroup::row() * 32u);
                      const auto count = value(min(units - min(first, units), 32u)), lane = value(lane_id());
                      weights.load(w, bytes_before<Format>(first), bytes_before<Format>(count), n * Format::bytes);
                      weights.put();
                      sync_warp();
                      if_(lane < count, [&] {
                          const blocks::Unit unit = unit_of<Format>(weights, lane);
                          for (std::uint32_t k = 0; k < 8; ++k) store_lanes(decoded, lane * line + k, unit.lanes(k));
                      });
                      sync_warp();
                      for (std::uint32_t k = 0; k < 8; ++k) {
                          const auto i = value(lane + 32 * k);
                          const auto v = decoded.template vec<4>(value(i / 8u * line + i % 8u));
                          y.store_if<4>(i < count * 8u, first * 8u + i, v);
                      }
                  })
        .require(aligned<16>("w"), aligned<16>("y"))
        .require(at_least<Format::bytes>("w", "n"), at_least<32 * units_of<Format>>("y", "n"))
        .launch_bounds(WarpGroup::block);
}

/// The activations that a GEMV multiplies a unit of weights by.
struct SingleActivations {
    using Element = float;
    static constexpr std::uint32_t bytes = 128, line = 128;
    /// Eight sums of four, in pairs.
    static blocks::F product(const blocks::Unit& unit, const auto& stage, const auto& i) {
        const auto at = stage.at(value(i * bytes));
        auto sums = blocks::eight<blocks::F>([&](std::size_t k) {
            const auto w = unit.lanes(k);
            const auto x = stage.template words<4, 16>(at, std::uint32_t(4 * k));
            f32 sum = w[0] * bit_cast<f32>(x[0]);
            for (std::size_t lane = 1; lane < 4; ++lane) sum = fma(w[lane], bit_cast<f32>(x[lane]), sum);
            return sum;
        });
        return value(((sums[0] + sums[1]) + (sums[2] + sums[3])) + ((sums[4] + sums[5]) + (sums[6] + sums[7])));
    }
};
struct PackedActivations {
    using Element = std::uint32_t;
    static constexpr std::uint32_t bytes = 36, line = 0;
    static blocks::F product(const blocks::Unit& unit, const auto& stage, const auto& i) {
        const auto words = stage.template words<9, 4>(stage.at(value(i * bytes)));
        const auto u = blocks::eight<Leaf<std::int32_t>>([&](std::size_t k) { return cast<i32>(words[k + 1]); });
        return value(unit.product(u) * blocks::lower_half(words[0]));
    }
};

/// A warp per row. It reads its row piece by piece; all warps of a block share the same piece of x.
template <class Format, class X>
auto make_gemv(const char* name) {
    return kernel(name, params("w", "x", "y", "rows", "columns"),
                  [](In<std::uint8_t> w, In<typename X::Element> x, Out<float> y, u32 rows, u32 columns) {
                      require_linear_grid();
                      require_threads(WarpGroup::block);
                      constexpr std::uint32_t piece = 64;  // units
                      Stage<WarpGroup, piece / units_of<Format> * Format::bytes> weights;
                      Stage<BlockGroup<WarpGroup::block>, piece * X::bytes, X::line> activations;
                      const auto row = WarpGroup::row(), units = value(columns / 32u);
                      const auto active = value(row < rows);
                      f32 sum = 0;
                      for (auto first : range(0, units, piece)) {
                          const auto count = value(min(units - first, piece));
                          const auto mine = value(select(active, count, 0u));
                          weights.load(w, bytes_before<Format>(value(row * units + first)), bytes_before<Format>(mine),
                                       bytes_before<Format>(value(rows * units)));
                          activations.load(x, value(first * X::bytes), value(count * X::bytes),
                                           value(units * X::bytes));
                          sync_block();
                          weights.put();
                          activations.put();
                          sync_block();
                          for (auto i : range(value(lane_id()), mine, 32))
                              sum += X::product(unit_of<Format>(weights, i), activations, i);
                      }
                      sum = warp_sum(sum);
                      y.store_if(active & (lane_id() == 0), row, sum);
                  })
        .require(multiple_of<32 * units_of<Format>>("columns"), aligned<16>("w"), aligned<16>("x"))
        .require(at_least<Format::bytes, 32 * units_of<Format>>("w", "rows", "columns"))
        .require(at_least<X::bytes / sizeof(typename X::Element), 32>("x", "columns"), at_least("y", "rows"))
        .launch_bounds(WarpGroup::block);
}

/// x to the nearest integer, halves away from zero.
auto rounded(const auto& x) {
    const auto whole = value(cast<i32>(x));
    const auto rest = value(x - cast<f32>(whole));  // exact
    return value(whole + select(rest >= 0.5f, 1, select(rest <= -0.5f, -1, 0)));
}

/// Activations 4 i to 4 i + 3 of a block of 32; each of eight lanes has four. Gives their word, and d and s.
struct Quantised8 {
    Leaf<std::uint32_t> word, head;
};
Quantised8 quantised_q8_1(const Lanes<4>& v) {
    const auto most = value(warp_reduce<8>(max(max(abs(v[0]), abs(v[1])), max(abs(v[2]), abs(v[3]))), maximum));
    const auto sum = value(warp_reduce<8>((v[0] + v[1]) + (v[2] + v[3]), plus));
    const auto d = value(most / 127.0f);
    u32 word = 0;
    for (std::uint32_t k = 0; k < 4; ++k) {
        const auto scaled = value(select(most == 0.0f, 0.0f, v[k] / d));
        word |= (cast<u32>(rounded(scaled)) & 255u) << (8 * k);
    }
    return {value(word), value(bit_cast<u32>(pack<f16x2>(d, sum)))};
}

}  // namespace

const DequantiseKernel& dequantise_kernel(Quantised format) {
    static const DequantiseKernel made[] = {
        make_dequantise<blocks::Q4_0>("dequantise_q4_0"), make_dequantise<blocks::Q8_0>("dequantise_q8_0"),
        make_dequantise<blocks::Q4_K>("dequantise_q4_k"), make_dequantise<blocks::Q5_K>("dequantise_q5_k"),
        make_dequantise<blocks::Q6_K>("dequantise_q6_k")};
    return made[number_of(format)];
}
const QuantisedGemvKernel& gemv_kernel(Quantised format) {
    static const QuantisedGemvKernel made[] = {make_gemv<blocks::Q4_0, SingleActivations>("gemv_q4_0"),
                                               make_gemv<blocks::Q8_0, SingleActivations>("gemv_q8_0"),
                                               make_gemv<blocks::Q4_K, SingleActivations>("gemv_q4_k"),
                                               make_gemv<blocks::Q5_K, SingleActivations>("gemv_q5_k"),
                                               make_gemv<blocks::Q6_K, SingleActivations>("gemv_q6_k")};
    return made[number_of(format)];
}

/// Eight blocks per warp: it reads 64 vectors and writes 72 words, both contiguous.
const QuantiseKernel& quantise_q8_1_kernel() {
    static const auto made =
        kernel("quantise_q8_1", params("x", "q", "n"),
               [](In<float> x, Out<std::uint32_t> q, u32 n) {
                   require_linear_grid();
                   require_threads(WarpGroup::block);
                   const auto words =
                       Shared<std::uint32_t, WarpGroup::rows_of_block * 72>().flat().slice(WarpGroup::number() * 72u);
                   const auto first = value(WarpGroup::row() * 8u), lane = value(lane_id());
                   const auto count = value(min(n - min(first, n), 8u));
                   for (std::uint32_t k = 0; k < 2; ++k) {
                       const auto i = value(lane + 32 * k), block = value(i / 8u);
                       const auto four =
                           quantised_q8_1(load_lanes_if<4>(block < count, x, value(first * 8u + i), 0.0f));
                       words[block * 9u + 1u + i % 8u] = four.word;
                       words.store_if(i % 8u == 0, block * 9u, four.head);
                   }
                   sync_warp();
                   for (std::uint32_t k = 0; k < 3; ++k) {
                       const auto i = value(lane + 32 * k);
                       q.store_if(i < count * 9u, first * 9u + i, value(words.load_if(i < 72u, i, 0)));
                   }
               })
            .require(aligned<16>("x"), at_least<32>("x", "n"), at_least<9>("q", "n"))
            .launch_bounds(WarpGroup::block);
    return made;
}
const PackedGemvKernel& gemv_q8_1_kernel(Quantised format) {
    static const PackedGemvKernel made[] = {make_gemv<blocks::Q4_0, PackedActivations>("gemv_q4_0_q8_1"),
                                            make_gemv<blocks::Q8_0, PackedActivations>("gemv_q8_0_q8_1"),
                                            make_gemv<blocks::Q4_K, PackedActivations>("gemv_q4_k_q8_1"),
                                            make_gemv<blocks::Q5_K, PackedActivations>("gemv_q5_k_q8_1"),
                                            make_gemv<blocks::Q6_K, PackedActivations>("gemv_q6_k_q8_1")};
    return made[number_of(format)];
}

// ---- the functions

namespace {

/// Quantised weights as the kernels take them.
struct Weights {
    TensorView bytes;
    Quantised format;
    std::uint32_t rows, columns;
};
Weights weights_in(std::string_view function, const Queue& queue, const TensorView& W) {
    if (!W.format)
        throw Error(
            Diagnostic{.where = queue.where(),
                       .message = fmt::format("{}: W has elements of {}", function, W.type_name()),
                       .hint = "it has quantised weights: quantised_view(buffer, Quantised::Q4_K, {rows, columns})"});
    std::uint64_t rows = 1;
    for (std::size_t d = 0; d + 1 < W.rank; ++d) rows *= W.extents[d];
    const SizeCheck check{function, queue.where()};
    const std::uint64_t columns = W.extents[W.rank - 1], bytes = W.part.bytes;
    return {TensorView(ir::Type::U8, W.part, {&bytes, 1}), *W.format, check.reached("rows of W", rows),
            check.reached("columns of W", columns)};
}

std::uint64_t elements_of(const TensorView& view) {
    std::uint64_t out = 1;
    for (std::size_t d = 0; d < view.rank; ++d) out *= view.extents[d];
    return out;
}

/// An array whose elements follow each other.
void check_array(const Queue& queue, std::string_view function, std::string_view name, const TensorView& view,
                 ir::Type type) {
    const auto fail = [&](std::string message, std::string hint) {
        throw Error(Diagnostic{.where = queue.where(),
                               .message = fmt::format("{}: '{}' {}", function, name, message),
                               .hint = std::move(hint)});
    };
    if (view.format || view.type != type)
        fail(fmt::format("has elements of {}", view.type_name()), fmt::format("they are {}", info(type).name));
    if (view.part.bytes && !is_packed(view))
        fail("has gaps between its rows, or begins at no multiple of 16 bytes", "give an array without gaps");
}

}  // namespace

void dequantise(const Queue& queue, const TensorView& W, const MutableTensorView& y) {
    const Weights w = weights_in("dequantise", queue, W);
    check_array(queue, "dequantise", "y", y, ir::Type::F32);
    const std::uint32_t bytes = SizeCheck{"dequantise", queue.where()}.reached("W", w.bytes.part.bytes);
    run(queue, dequantise_recipe, std::size_t(w.format), {w.bytes, y, bytes / bytes_of(w.format)});
}

void quantised_gemv(const Queue& queue, const TensorView& W, const TensorView& x, const MutableTensorView& y) {
    const Weights w = weights_in("gemv", queue, W);
    const bool is_packed = x.type == ir::Type::U32;
    check_array(queue, "gemv", "x", x, is_packed ? ir::Type::U32 : ir::Type::F32);
    check_array(queue, "gemv", "y", y, ir::Type::F32);
    const Recipe& recipe = is_packed ? packed_gemv_recipe : quantised_gemv_recipe;
    run(queue, recipe, std::size_t(w.format), {w.bytes, x, y, w.rows, w.columns});
}

void quantise_q8_1(const Queue& queue, const TensorView& x, const MutableTensorView& q) {
    check_array(queue, "quantise_q8_1", "x", x, ir::Type::F32);
    check_array(queue, "quantise_q8_1", "q", q, ir::Type::U32);
    const std::uint32_t n = SizeCheck{"quantise_q8_1", queue.where()}.reached("x", elements_of(x));
    if (n % 32 != 0)
        throw Error(
            Diagnostic{.where = queue.where(),
                       .message = fmt::format("quantise_q8_1: 'x' has {} elements, which is no multiple of 32", n),
                       .hint = "pad it with zeros"});
    run(queue, quantise_q8_1_recipe, 0, {x, q, n / 32});
}

// ---- the recipes

/// Rows must be whole blocks.
static void check_blocks(const Call& call) {
    const std::uint64_t columns = call["columns"], weights = call.multiple("columns");
    if (columns % weights != 0)
        call.fail(fmt::format("gemv: 'columns' is {}, but rows are blocks of {} weights", columns, weights),
                  "pad the rows with zeros to whole blocks");
}
static void check_bytes(const Call& call) {
    check_blocks(call);
    if (call["columns"] >= 1u << 30)
        call.fail(fmt::format("gemv: 'columns' is {}, but x has fewer than 2^32 bytes", call["columns"]),
                  "multiply parts of the rows, and add what they give");
}

#define IKAT_FORMATS(row) \
    row(Q4_0, 32, 18), row(Q8_0, 32, 34), row(Q4_K, 256, 144), row(Q5_K, 256, 176), row(Q6_K, 256, 210)

#define IKAT_ROW(format, weights, bytes)                                                                               \
    {                                                                                                                  \
        .summary = "the f32 values of " #format " weights",                                                            \
        .instances = IKAT_KERNEL(dequantise_kernel(Quantised::format)),                                                \
        .grid = [](const Call& a) { return row_grid<WarpGroup>((std::uint64_t(a["n"]) * (weights / 32) + 31) / 32); }, \
        .sizes = {                                                                                                     \
            {"w", "n " #bytes},                                                                                        \
            {"y", "n " #weights}                                                                                       \
        }                                                                                                              \
    }
constexpr Recipe dequantise_recipe{.call = "dequantise(queue, W, y)",
                                   .kernels = {IKAT_FORMATS(IKAT_ROW)},
                                   .document =
                                       "w is n blocks of the format, y has as many f32 as they hold weights: the\n"
                                       "same bits as GGML's own decoder gives. Both have fewer than 2^32\n"
                                       "elements and begin at multiples of 16 bytes.\n"
                                       "stdlib/quantised/quantised.hpp has the formats.",
                                   .reference = reference::dequantise,
                                   .traffic = "b s + 4 s",
                                   .note = "y in f32, bit-identical to GGML's decoder"};
#undef IKAT_ROW
#define IKAT_ROW(format, weights, bytes)                                                                          \
    {                                                                                                             \
        .summary = "y = W x, W of " #format " weights", .instances = IKAT_KERNEL(gemv_kernel(Quantised::format)), \
        .grid = rows_to<WarpGroup>, .sizes = {                                                                    \
            {"w", "rows columns /" #weights " " #bytes},                                                          \
            {"x", "columns"},                                                                                     \
            {"y", "rows"}                                                                                         \
        }                                                                                                         \
    }
constexpr Recipe quantised_gemv_recipe{
    .call = "gemv(queue, W, x, y)",
    .kernels = {IKAT_FORMATS(IKAT_ROW)},
    .document =
        "w is rows x columns weights, row after row of whole blocks; x has `columns` elements, y has `rows`.\n"
        "columns is a multiple of a block's weights: 32 for q4_0 and q8_0, 256 for the others. w has fewer\n"
        "than 2^32 weights and bytes; w and x begin at multiples of 16 bytes, columns < 2^30. A warp per row,\n"
        "sums in f32. stdlib/quantised/quantised.hpp has the formats.",
    .check = check_bytes,
    .reference = reference::quantised_gemv,
    .traffic = "b s",
    .note = "y = W x, x and sums in f32, a warp per row"};
#undef IKAT_ROW
#define IKAT_ROW(format, weights, bytes)                                                                      \
    {                                                                                                         \
        .summary = "y = W x, W of " #format " weights, x of Q8_1 activations",                                \
        .instances = IKAT_KERNEL(gemv_q8_1_kernel(Quantised::format)), .grid = rows_to<WarpGroup>, .sizes = { \
            {"w", "rows columns /" #weights " " #bytes},                                                      \
            {"x", "columns /32 9"},                                                                           \
            {"y", "rows"}                                                                                     \
        }                                                                                                     \
    }
constexpr Recipe packed_gemv_recipe{.call = "gemv(queue, W, q, y)",
                                    .kernels = {IKAT_FORMATS(IKAT_ROW)},
                                    .document =
                                        "Like gemv_* of that format, but x is columns / 32 blocks of q8_1, 9\n"
                                        "words each, made by quantise_q8_1. Four weights are multiplied at once,\n"
                                        "exactly; the sums over blocks are in f32. w and x begin at multiples of\n"
                                        "16 bytes.",
                                    .check = check_blocks,
                                    .reference = reference::packed_gemv,
                                    .traffic = "b s",
                                    .note = "y = W x, x in Q8_1: four products per dp4a"};
#undef IKAT_ROW
constexpr Recipe quantise_q8_1_recipe{
    .call = "quantise_q8_1(queue, x, q)",
    .kernels = {{"activations to blocks of 8-bit integers", IKAT_KERNEL(quantise_q8_1_kernel()),
                 [](const Call& a) { return row_grid<WarpGroup>((std::uint64_t(a["n"]) + 7) / 8); }}},
    .document =
        "x has 32 n elements; q gets n blocks of 9 words: f16 max |x| / 127, f16 sum of x, and 32 signed\n"
        "bytes x / d, rounded to nearest and half away from zero: GGML's block_q8_1. n < 2^27; x begins at a\n"
        "multiple of 16 bytes. A warp to eight blocks.",
    .sizes = {{"x", "n 32"}, {"q", "n 9"}},
    .reference = reference::quantise_q8_1,
    .traffic = "5.125 s",
    .note = "activations to Q8_1: 9 words per 32 values"};

}  // namespace ikat::stdlib
