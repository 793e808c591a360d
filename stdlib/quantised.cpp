// SPDX-License-Identifier: Apache-2.0
#include "stdlib/quantised.hpp"

#include <fmt/format.h>

#include "codegen/support/diagnostic.hpp"
#include "stdlib/blocks.hpp"
#include "stdlib/families.hpp"
#include "stdlib/rows.hpp"
#include "stdlib/size.hpp"

namespace ikat::stdlib {
namespace {

constexpr std::uint32_t threads = 256;

/// A thread to a piece of a block.
template <class Format>
DequantiseKernel make_dequantise(const char* name) {
    return kernel(name, params("w", "y", "n"),
                  [](In<std::uint8_t> w, Out<float> y, u32 n) {
                      for (auto i : grid_stride(n * Format::pieces)) {
                          const auto block = value(i / Format::pieces);
                          Format::each(w, block, value(i % Format::pieces), [&](const auto& offset, const auto& lanes) {
                              const std::uint32_t run = std::uint32_t(lanes.size());
                              store_lanes(y, value((block * Format::weights + offset) / run), lanes);
                          });
                      }
                  })
        .require(aligned<16>("w"), aligned<16>("y"))
        .launch_bounds(threads);
}

/// A warp to a row; its lanes take pieces side by side.
template <class Format>
QuantisedGemvKernel make_gemv(const char* name) {
    return kernel(name, params("w", "x", "y", "rows", "columns"),
                  [](In<std::uint8_t> w, In<float> x, Out<float> y, u32 rows, u32 columns) {
                      require_linear_blocks();
                      require_threads(WarpGroup::block);
                      const auto row = WarpGroup::row();
                      const auto active = value(row < rows);
                      const auto blocks = value(columns / Format::weights);
                      f32 sum = 0;
                      for (auto i : range(WarpGroup::thread(), select(active, blocks * Format::pieces, 0u), 32)) {
                          const auto block = value(i / Format::pieces);
                          Format::each(w, value(row * blocks + block), value(i % Format::pieces),
                                       [&](const auto& offset, const auto& lanes) {
                                           constexpr int run = std::tuple_size_v<std::remove_cvref_t<decltype(lanes)>>;
                                           const auto at =
                                               value((block * Format::weights + offset) / std::uint32_t(run));
                                           const auto v = load_lanes<run>(x, at);
                                           for (std::size_t k = 0; k < run; ++k) sum = fma(lanes[k], v[k], sum);
                                       });
                      }
                      sum = warp_sum(sum);
                      y.store_if(active & (lane_id() == 0), row, sum);
                  })
        .require(aligned<16>("w"), aligned<16>("x"))
        .launch_bounds(WarpGroup::block);
}

constexpr std::uint32_t pieces_of(Quantised format) {
    constexpr std::uint32_t pieces[] = {blocks::Q4_0::pieces, blocks::Q8_0::pieces, blocks::Q4_K::pieces,
                                        blocks::Q5_K::pieces, blocks::Q6_K::pieces};
    return pieces[std::uint32_t(format)];
}

runtime::Grid dequantise_grid(Quantised format, std::uint64_t blocks) {
    return runtime::grid(std::max<std::uint64_t>(blocks * pieces_of(format), 1), threads);
}

}  // namespace

const DequantiseKernel& dequantise_kernel(Quantised format) {
    static const DequantiseKernel made[] = {
        make_dequantise<blocks::Q4_0>("dequantise_q4_0"), make_dequantise<blocks::Q8_0>("dequantise_q8_0"),
        make_dequantise<blocks::Q4_K>("dequantise_q4_k"), make_dequantise<blocks::Q5_K>("dequantise_q5_k"),
        make_dequantise<blocks::Q6_K>("dequantise_q6_k")};
    return made[std::uint32_t(format)];
}
const QuantisedGemvKernel& gemv_kernel(Quantised format) {
    static const QuantisedGemvKernel made[] = {
        make_gemv<blocks::Q4_0>("gemv_q4_0"), make_gemv<blocks::Q8_0>("gemv_q8_0"),
        make_gemv<blocks::Q4_K>("gemv_q4_k"), make_gemv<blocks::Q5_K>("gemv_q5_k"),
        make_gemv<blocks::Q6_K>("gemv_q6_k")};
    return made[std::uint32_t(format)];
}

void dequantise(const runtime::Device& device, Quantised format, const runtime::Buffer<std::uint8_t>& w,
                runtime::Buffer<float>& y) {
    const std::uint32_t n = u32_size("dequantise", "w", w.size()) / bytes_of(format);
    require_size("dequantise", "y", y.size(), u32_size("dequantise", "y", std::uint64_t(n) * weights_of(format)));
    if (n != 0) device.launch(dequantise_kernel(format), dequantise_grid(format, n), w, y, n);
}

void gemv(const runtime::Device& device, Quantised format, const runtime::Buffer<std::uint8_t>& w,
          const runtime::Buffer<float>& x, runtime::Buffer<float>& y, std::uint32_t rows, std::uint32_t columns) {
    const std::uint32_t weights = weights_of(format);
    if (columns % weights != 0)
        throw Error(fmt::format("gemv: 'columns' is {}, but rows are blocks of {} weights", columns, weights),
                    "pad the rows with zeros to whole blocks");
    const std::uint64_t blocks = std::uint64_t(rows) * (columns / weights);
    u32_size("gemv", "w", blocks * weights);
    require_size("gemv", "w", w.size(), u32_size("gemv", "w", blocks * bytes_of(format)));
    require_size("gemv", "x", x.size(), columns);
    require_size("gemv", "y", y.size(), rows);
    if (rows != 0) device.launch(gemv_kernel(format), row_grid<WarpGroup>(rows), w, x, y, rows, columns);
}

namespace {

constexpr std::string_view dequantise_document =
    "w is n blocks of the format, y has as many f32 as they hold weights: the same bits as GGML's own decoder gives. "
    "Both\n"
    "have fewer than 2^32 elements and begin at multiples of 16 bytes. stdlib/quantised.hpp has the formats.";
constexpr std::string_view gemv_document =
    "w is rows x columns weights, a row of whole blocks after the other; x has `columns` elements, y has `rows`. "
    "columns\n"
    "is a multiple of a block's weights: 32 for q4_0 and q8_0, 256 for the others. w has fewer than 2^32 weights and\n"
    "bytes; w and x begin at multiples of 16 bytes. A warp to a row, sums in f32. stdlib/quantised.hpp has the "
    "formats.";

#define IKAT_ENTRIES(Format, id)                                                                                  \
    Entry{.name = "dequantise_" id,                                                                               \
          .summary = "the f32 values of " #Format " weights",                                                     \
          .document = dequantise_document,                                                                        \
          .kernel = []() -> const ast::Kernel& { return dequantise_kernel(Quantised::Format).ast(); },            \
          .grid = [](Arguments a) -> runtime::Grid { return dequantise_grid(Quantised::Format, number(a, 2)); }}, \
        Entry{.name = "gemv_" id,                                                                                 \
              .summary = "y = W x, W of " #Format " weights",                                                     \
              .document = gemv_document,                                                                          \
              .kernel = []() -> const ast::Kernel& { return gemv_kernel(Quantised::Format).ast(); },              \
              .grid = [](Arguments a) -> runtime::Grid { return row_grid<WarpGroup>(number(a, 3)); }},
constexpr Entry entries[] = {IKAT_ENTRIES(Q4_0, "q4_0") IKAT_ENTRIES(Q8_0, "q8_0") IKAT_ENTRIES(Q4_K, "q4_k")
                                 IKAT_ENTRIES(Q5_K, "q5_k") IKAT_ENTRIES(Q6_K, "q6_k")};

}  // namespace

std::span<const Entry> quantised_entries() { return entries; }

}  // namespace ikat::stdlib
