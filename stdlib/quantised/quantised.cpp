// SPDX-License-Identifier: Apache-2.0
#include "stdlib/quantised/quantised.hpp"

#include <fmt/format.h>

#include "dsl/threads/grids.hpp"
#include "stdlib/quantised/block_product.hpp"
#include "stdlib/quantised/grid.hpp"
#include "stdlib/quantised/units.hpp"
#include "stdlib/spec/families.hpp"

namespace ikat::stdlib {
namespace {

using DequantisePitchedKernel = Kernel<In<std::uint8_t>, Out<float>, u32, u32, u32, u32, u32, u32, u32>;
template <class X>
using GemvPitchedKernel = Kernel<In<std::uint8_t>, In<typename X::Element>, Out<float>, u32, u32, u32, u32, u32, u32>;

/// 32 units per warp, one per lane. The decoded weights go through shared memory, so that stores, too, are of whole
/// sectors.
template <class Format>
class Decoder {
    static constexpr std::uint32_t line = 9;  // the vectors of a unit, and one against bank conflicts

public:
    BlockStage<Format, WarpGroup, 32 / units_of<Format> * Format::bytes> weights;

    /// `count` units that were loaded. `with_unit(f)` calls f(unit number `lane` of them).
    void decode(const auto& count, const auto& lane, auto&& with_unit) const {
        weights.put();
        sync_warp();
        if_(lane < count, [&] {
            with_unit([&](const blocks::Unit& unit) {
                for (std::uint32_t k = 0; k < 8; ++k) store_lanes(decoded_, lane * line + k, unit.lanes(k));
            });
        });
        sync_warp();
    }
    /// Weights 4 i to 4 i + 3, and weight i.
    auto four(const auto& i) const { return decoded_.template vec<4>(value(i / 8u * line + i % 8u)); }
    auto one(const auto& i) const { return value(decoded_[i / 32u * (line * 4) + i % 32u]); }

private:
    Indexable<float, Direction::ReadWrite> decoded_ =
        Shared<float, WarpGroup::rows_of_block * 32 * line * 4>().flat().slice(WarpGroup::number() * (32 * line * 4));
};

template <class Format>
DequantiseKernel make_dequantise(const char* name) {
    return kernel(name, params("w", "y", "n"),
                  [](In<std::uint8_t> w, Out<float> y, u32 n) {
                      require_linear_grid();
                      require_threads(WarpGroup::block);
                      Decoder<Format> decoder;
                      const auto units = value(n * units_of<Format>), first = value(WarpGroup::row() * 32u);
                      const auto count = value(min(units - min(first, units), 32u)), lane = value(lane_id());
                      decoder.weights.load(w, bytes_before<Format>(first), bytes_before<Format>(count),
                                           n * Format::bytes);
                      decoder.decode(count, lane, [&](auto&& f) { f(unit_of<Format>(decoder.weights, lane)); });
                      for (std::uint32_t k = 0; k < 8; ++k) {
                          const auto i = value(lane + 32 * k);
                          const auto v = decoder.four(i);
                          y.store_if<4>(i < count * 8u, first * 8u + i, v);
                      }
                  })
        .require(aligned<16>("w"), aligned<16>("y"))
        .require(at_least<Format::bytes>("w", "n"), at_least<32 * units_of<Format>>("y", "n"))
        .launch_bounds(WarpGroup::block);
}
/// Rows of weights at a pitch, from byte w_begin on, to rows of y; a warp takes 32 units of one row.
template <class Format>
DequantisePitchedKernel make_dequantise_pitched(const char* name) {
    return kernel(
               name, params("w", "y", "rows", "columns", "w_begin", "w_pitch", "w_bytes", "y_pitch", "y_unit"),
               [](In<std::uint8_t> w, Out<float> y, u32 rows, u32 columns, u32 w_begin, u32 w_pitch, u32 w_bytes,
                  u32 y_pitch, u32 y_unit) {
                   require_linear_grid();
                   require_threads(WarpGroup::block);
                   Decoder<Format> decoder;
                   const auto units = value(columns / 32u), pieces = value((units + 31u) / 32u);
                   const auto row = value(WarpGroup::row() / pieces);
                   const auto first = value((WarpGroup::row() - row * pieces) * 32u);
                   const auto count = value(select(row < rows, min(units - first, 32u), 0u)), lane = value(lane_id());
                   decoder.weights.load(w, value(w_begin + row * w_pitch + bytes_before<Format>(first)),
                                        bytes_before<Format>(count), w_bytes, w_begin);
                   decoder.decode(count, lane, [&](auto&& f) { with_unit<Format>(decoder.weights, w_begin, lane, f); });
                   const auto to = value(row * y_pitch + first * 32u);
                   if_(y_unit % 4u == 0u, [&] {
                       for (std::uint32_t k = 0; k < 8; ++k) {
                           const auto i = value(lane + 32 * k);
                           y.store_if<4>(i < count * 8u, to / 4u + i, decoder.four(i));
                       }
                   }).else_([&] {
                       for (auto i : range(lane, count * 32u, 32u)) y[to + i] = decoder.one(i);
                   });
               })
        .require(multiple_of<32 * units_of<Format>>("columns"), aligned<16>("w"))
        .launch_bounds(WarpGroup::block);
}

/// The activations that a GEMV multiplies units of weights by. add() does so with a unit of each row that a warp has,
/// and reads x once for all of them: unit(r, body) calls body(unit of row r).
struct SingleActivations {
    using Element = float;
    static constexpr std::uint32_t bytes = 128, line = 128, max_rows = 1, min_blocks = 0;
    static void wait() {}
    static void add(std::span<f32> sums, const auto& stage, const auto& i, auto&& unit) {
        const auto at = stage.at(value(i * bytes));
        unit(0, [&](const blocks::Unit& of) {
            sums[0] += single_products({&of, 1}, 1, [&](std::size_t, std::size_t k) {
                return stage.template words<4, 16>(at, std::uint32_t(4 * k));
            })[0];
        });
    }
};
struct PackedActivations {
    using Element = std::uint32_t;
    static constexpr std::uint32_t bytes = 36, line = 0, max_rows = 4, min_blocks = 4;
    /// For the kernel that has made them.
    static void wait() { grid_wait(); }
    static void add(std::span<f32> sums, const auto& stage, const auto& i, auto&& unit) {
        const std::array<blocks::U, 9> block = stage.template words<9, 4>(stage.at(value(i * bytes)));
        for (std::size_t r = 0; r < sums.size(); ++r)
            unit(r, [&](const blocks::Unit& of) {
                sums[r] += packed_products({&of, 1}, 1, [&](std::size_t) { return block; })[0];
            });
    }
};

constexpr std::uint32_t piece = 64;  // of a row: that many units are multiplied at once
/// Rows of a warp: what it loads of all of them at once is in registers.
template <class Format, class X>
constexpr std::uint32_t rows_of_warp = std::min(X::max_rows,
                                                piece / units_of<Format> * Format::bytes <= 2000 ? 4u : 2u);
template <class Format, class X>
Grid gemv_grid(const Call& call) {
    constexpr std::uint32_t of_warp = rows_of_warp<Format, X>;
    return row_grid<WarpGroup>((call["rows"] + of_warp - 1) / of_warp);
}

/// Rows of weights that follow each other; x and y are without gaps.
template <class Format>
struct DenseRows {
    template <class X>
    using Activations = Stage<BlockGroup<WarpGroup::block>, piece * X::bytes, X::line>;
    const u32& rows;

    /// Loads `count` units of a row, from unit number `first` on.
    void load(auto& stage, const In<std::uint8_t>& w, const auto& row, const auto& units, const auto& first,
              const auto& count) const {
        stage.load(w, bytes_before<Format>(value(row * units + first)), bytes_before<Format>(count),
                   bytes_before<Format>(value(rows * units)));
    }
    void with(const auto& stage, const auto& i, auto&& body) const { body(unit_of<Format>(stage, i)); }
    auto output(const auto& row) const { return row; }
};
/// Rows at a pitch, from byte `begin` on; x begins anywhere, elements of y are at a pitch.
template <class Format>
struct PitchedRows {
    template <class X>
    using Activations = WordStage<BlockGroup<WarpGroup::block>, piece * X::bytes, X::line>;
    const u32 &begin, &pitch, &bytes, &y_pitch;

    void load(auto& stage, const In<std::uint8_t>& w, const auto& row, const auto&, const auto& first,
              const auto& count) const {
        stage.load(w, value(begin + row * pitch + bytes_before<Format>(first)), bytes_before<Format>(count), bytes,
                   begin);
    }
    void with(const auto& stage, const auto& i, auto&& body) const { with_unit<Format>(stage, begin, i, body); }
    auto output(const auto& row) const { return value(row * y_pitch); }
};

/// A warp has rows_of_warp rows. It reads them piece by piece; all warps of a block share the same piece of x.
template <class Format, class X, class Places>
void multiply(const In<std::uint8_t>& w, const In<typename X::Element>& x, const Out<float>& y, const u32& rows,
              const u32& columns, const Places& places) {
    X::wait();
    require_linear_grid();
    require_threads(WarpGroup::block);
    constexpr std::uint32_t of_warp = rows_of_warp<Format, X>;
    std::array<BlockStage<Format, WarpGroup, piece / units_of<Format> * Format::bytes>, of_warp> weights;
    typename Places::template Activations<X> activations;
    const auto row = value(WarpGroup::row() * of_warp), units = value(columns / 32u);
    const auto active = value(row < rows);
    const auto row_of = [&](std::uint32_t r) {  // beyond the last row, the last one again
        return r == 0 ? blocks::U(row) : blocks::U(value(min(row + r, rows - 1u)));
    };
    std::array<f32, of_warp> sums;
    for (f32& sum : sums) sum = 0.0f;
    for (auto first : range(0, units, piece)) {
        const auto count = value(min(units - first, piece));
        const auto mine = value(select(active, count, 0u));
        for (std::uint32_t r = 0; r < of_warp; ++r) places.load(weights[r], w, row_of(r), units, first, mine);
        activations.load(x, value(first * X::bytes), value(count * X::bytes), value(units * X::bytes));
        sync_block();
        for (const auto& each : weights) each.put();
        activations.put();
        sync_block();
        for (auto i : range(value(lane_id()), mine, 32))
            X::add(sums, activations, i, [&](std::size_t r, auto&& body) { places.with(weights[r], i, body); });
    }
    std::vector<blocks::F> of_lanes;
    for (const f32& sum : sums) of_lanes.emplace_back(value(sum));
    const auto sum = divided_sum(of_lanes);
    const auto lane = value(lane_id()), mine = value(row + lane / (32 / of_warp));
    y.store_if((lane % (32 / of_warp) == 0u) & (mine < rows), places.output(mine), sum);
}

template <class Format, class X>
auto make_gemv(const char* name) {
    return kernel(name, params("w", "x", "y", "rows", "columns"),
                  [](In<std::uint8_t> w, In<typename X::Element> x, Out<float> y, u32 rows, u32 columns) {
                      multiply<Format, X>(w, x, y, rows, columns, DenseRows<Format>{rows});
                  })
        .require(multiple_of<32 * units_of<Format>>("columns"), aligned<16>("w"), aligned<16>("x"))
        .require(at_least<Format::bytes, 32 * units_of<Format>>("w", "rows", "columns"))
        .require(at_least<X::bytes / sizeof(typename X::Element), 32>("x", "columns"), at_least("y", "rows"))
        .launch_bounds(WarpGroup::block, X::min_blocks);
}
template <class Format, class X>
auto make_gemv_pitched(const char* name) {
    return kernel(
               name, params("w", "x", "y", "rows", "columns", "w_begin", "w_pitch", "w_bytes", "y_pitch"),
               [](In<std::uint8_t> w, In<typename X::Element> x, Out<float> y, u32 rows, u32 columns, u32 w_begin,
                  u32 w_pitch, u32 w_bytes, u32 y_pitch) {
                   multiply<Format, X>(w, x, y, rows, columns, PitchedRows<Format>{w_begin, w_pitch, w_bytes, y_pitch});
               })
        .require(multiple_of<32 * units_of<Format>>("columns"), aligned<16>("w"))
        .require(at_least<X::bytes / sizeof(typename X::Element), 32>("x", "columns"))
        .launch_bounds(WarpGroup::block, X::min_blocks);
}

#define IKAT_ROW(format, name, of_weights, of_bytes) \
    static_assert(blocks::format::weights == (of_weights) && blocks::format::bytes == (of_bytes));
IKAT_QUANTISED_FORMATS(IKAT_ROW)
#undef IKAT_ROW

// For rows at pitches.
const DequantisePitchedKernel& dequantise_pitched(Quantised format) {
    static const DequantisePitchedKernel made[] = {
#define IKAT_ROW(format, name, weights, bytes) make_dequantise_pitched<blocks::format>("dequantise_" #name "_pitched"),
        IKAT_QUANTISED_FORMATS(IKAT_ROW)
#undef IKAT_ROW
    };
    return made[number_of(format)];
}
template <class X>
const GemvPitchedKernel<X>& gemv_pitched(Quantised format) {
    const auto name = [](const char* of) {
        return std::is_same_v<X, PackedActivations> ? std::string(of) + "_q8_1_pitched" : std::string(of) + "_pitched";
    };
    static const GemvPitchedKernel<X> made[] = {
#define IKAT_ROW(format, name_, weights, bytes) make_gemv_pitched<blocks::format, X>(name("gemv_" #name_).c_str()),
        IKAT_QUANTISED_FORMATS(IKAT_ROW)
#undef IKAT_ROW
    };
    return made[number_of(format)];
}

}  // namespace

const DequantiseKernel& dequantise_kernel(Quantised format) {
    static const DequantiseKernel made[] = {
#define IKAT_ROW(format, name, weights, bytes) make_dequantise<blocks::format>("dequantise_" #name),
        IKAT_QUANTISED_FORMATS(IKAT_ROW)
#undef IKAT_ROW
    };
    return made[number_of(format)];
}
const QuantisedGemvKernel& gemv_kernel(Quantised format) {
    static const QuantisedGemvKernel made[] = {
#define IKAT_ROW(format, name, weights, bytes) make_gemv<blocks::format, SingleActivations>("gemv_" #name),
        IKAT_QUANTISED_FORMATS(IKAT_ROW)
#undef IKAT_ROW
    };
    return made[number_of(format)];
}

const PackedGemvKernel& gemv_q8_1_kernel(Quantised format) {
    static const PackedGemvKernel made[] = {
#define IKAT_ROW(format, name, weights, bytes) make_gemv<blocks::format, PackedActivations>("gemv_" #name "_q8_1"),
        IKAT_QUANTISED_FORMATS(IKAT_ROW)
#undef IKAT_ROW
    };
    return made[number_of(format)];
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

static void multiply_arrays(const Queue& queue, std::span<const MutableTensorView> arrays, const FunctionSettings&) {
    quantised_gemv(queue, arrays[0], arrays[1], arrays[2]);
}

#define IKAT_ROW(format, name, weights, bytes)                                             \
    {                                                                                      \
        .summary = "the f32 values of " #format " weights",                                \
        .instances = IKAT_KERNEL(dequantise_kernel(Quantised::format)),                    \
        .grid = [](const Call& a) { return warps_grid(a, std::uint64_t(weights), 1024); }, \
        .sizes = {{"w", "n " #bytes}, {"y", "n " #weights}},                               \
        .pitched = IKAT_KERNEL(dequantise_pitched(Quantised::format)),                     \
    },
constexpr Recipe dequantise_recipe{.call = "dequantise(queue, W, y)",
                                   .kernels = {IKAT_QUANTISED_FORMATS(IKAT_ROW)},
                                   .operands = {{.name = "W", .shape = "... columns", .blocks = Blocks::Weights},
                                                {"y", "... columns", Access::Out, ir::Type::F32}},
                                   .run = [](const Queue& queue, std::span<const MutableTensorView> arrays,
                                             const FunctionSettings&) { dequantise(queue, arrays[0], arrays[1]); },
                                   .document =
                                       "w is n blocks of the format, y has as many f32 as they hold weights: the\n"
                                       "same bits as GGML's own decoder gives. Both have fewer than 2^32\n"
                                       "elements and begin at multiples of 16 bytes.\n"
                                       "stdlib/quantised/quantised.hpp has the formats.",
                                   .reference = reference::dequantise,
                                   .traffic = "b s + 4 s",
                                   .note = "y in f32, bit-identical to GGML's decoder"};
#undef IKAT_ROW
#define IKAT_ROW(format, name, weights, bytes)                                                   \
    {                                                                                            \
        .summary = "y = W x, W of " #format " weights",                                          \
        .instances = IKAT_KERNEL(gemv_kernel(Quantised::format)),                                \
        .grid = gemv_grid<blocks::format, SingleActivations>,                                    \
        .sizes = {{"w", "rows columns /" #weights " " #bytes}, {"x", "columns"}, {"y", "rows"}}, \
        .pitched = IKAT_KERNEL(gemv_pitched<SingleActivations>(Quantised::format)),              \
    },
constexpr Recipe quantised_gemv_recipe{
    .call = "gemv(queue, W, x, y)",
    .kernels = {IKAT_QUANTISED_FORMATS(IKAT_ROW)},
    .operands = {{.name = "W", .shape = "... rows columns", .blocks = Blocks::Weights},
                 {"x", "columns", Access::In, ir::Type::F32},
                 {"y", "... rows", Access::Out, ir::Type::F32}},
    .run = multiply_arrays,
    .document =
        "w is rows x columns weights, row after row of whole blocks; x has `columns` elements, y has `rows`.\n"
        "columns is a multiple of a block's weights: 256 for *_k and iq4_xs, 32 for the others. w has fewer\n"
        "than 2^32 weights and bytes; w and x begin at multiples of 16 bytes, columns < 2^30. A warp per row,\n"
        "sums in f32. stdlib/quantised/quantised.hpp has the formats.",
    .check = check_bytes,
    .reference = reference::quantised_gemv,
    .traffic = "b s",
    .note = "y = W x, x and sums in f32, a warp per row"};
#undef IKAT_ROW
#define IKAT_ROW(format, name, weights, bytes)                                                         \
    {                                                                                                  \
        .summary = "y = W x, W of " #format " weights, x of Q8_1 activations",                         \
        .instances = IKAT_KERNEL(gemv_q8_1_kernel(Quantised::format)),                                 \
        .grid = gemv_grid<blocks::format, PackedActivations>,                                          \
        .sizes = {{"w", "rows columns /" #weights " " #bytes}, {"x", "columns /32 9"}, {"y", "rows"}}, \
        .pitched = IKAT_KERNEL(gemv_pitched<PackedActivations>(Quantised::format)),                    \
    },
constexpr Recipe packed_gemv_recipe{.call = "gemv(queue, W, q, y)",
                                    .kernels = {IKAT_QUANTISED_FORMATS(IKAT_ROW)},
                                    .operands = {{.name = "W", .shape = "... rows columns", .blocks = Blocks::Weights},
                                                 {.name = "q", .shape = "columns", .blocks = Blocks::Q8_1},
                                                 {"y", "... rows", Access::Out, ir::Type::F32}},
                                    .run = multiply_arrays,
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

}  // namespace ikat::stdlib
