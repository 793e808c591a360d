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

/// The same on activations of 8 bits: (scale sum of q u - minimum sum of u) d, over each four weights.
template <class Format>
PackedGemvKernel make_packed_gemv(const char* name) {
    return kernel(name, params("w", "x", "y", "rows", "columns"),
                  [](In<std::uint8_t> w, In<std::uint32_t> x, Out<float> y, u32 rows, u32 columns) {
                      require_linear_blocks();
                      require_threads(WarpGroup::block);
                      const auto row = WarpGroup::row();
                      const auto active = value(row < rows);
                      const auto blocks = value(columns / Format::weights);
                      f32 sum = 0;
                      const auto end = value(select(active, blocks * Format::packed_pieces, 0u));
                      for (auto i : range(WarpGroup::thread(), end, 32)) {
                          const auto block = value(i / Format::packed_pieces);
                          Format::each_packed(
                              w, value(row * blocks + block), value(i % Format::packed_pieces),
                              [&](const auto& offset, const auto& q, const auto& scale, const auto& minimum) {
                                  const auto first = value((block * (Format::weights / 32) + offset / 32u) * 9u);
                                  const auto head = value(x[first]);
                                  const auto d = blocks::half_of(value(head & 255u), value(head >> 8 & 255u));
                                  const auto u = value(cast<i32>(x[first + 1u + offset % 32u / 4u]));
                                  const auto dot = value(scale * cast<f32>(dp4a(q, u, 0)));
                                  if constexpr (HostNumber<decltype(minimum)>)
                                      sum = fma(dot, d, sum);
                                  else
                                      sum = fma(dot - minimum * cast<f32>(dp4a(value(u32(0x01010101u)), u, 0)), d, sum);
                              });
                      }
                      sum = warp_sum(sum);
                      y.store_if(active & (lane_id() == 0), row, sum);
                  })
        .require(aligned<16>("w"))
        .launch_bounds(WarpGroup::block);
}

/// The bits of x as an f16. The factor moves the exponent's bias, also of subnormal numbers.
auto half_bits(const auto& x) {
    const auto rounded = value(cast<f32>(cast<f16>(x)));
    const auto magnitude = value(abs(rounded));
    const auto finite = value(bit_cast<u32>(magnitude * 0x1p-112f) >> 13);
    const auto bits = value(select(magnitude < std::numeric_limits<float>::infinity(), finite, 0x7c00u));
    return value(bits | (bit_cast<u32>(rounded) >> 16 & 0x8000u));
}

/// x to the nearest integer, halves away from zero.
auto rounded(const auto& x) {
    const auto whole = value(cast<i32>(x));
    const auto rest = value(x - cast<f32>(whole));  // exact
    return value(whole + select(rest >= 0.5f, 1, select(rest <= -0.5f, -1, 0)));
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

const QuantiseKernel& quantise_q8_1_kernel() {
    static const auto made =
        kernel("quantise_q8_1", params("x", "q", "n"), [](In<float> x, Out<std::uint32_t> q, u32 n) {
            require_linear_blocks();
            require_threads(WarpGroup::block);
            const auto block = WarpGroup::row(), lane = value(lane_id());
            const auto active = value(block < n);
            const auto v = value(x.load_if(active, block * 32u + lane, 0.0f));
            const auto most = WarpGroup::max(value(abs(v))), sum = WarpGroup::sum(v);
            const auto d = value(most / 127.0f);
            const auto scaled = value(select(most == 0.0f, 0.0f, v / d));
            u32 word = (cast<u32>(rounded(scaled)) & 255u) << (lane % 4u * 8u);
            word |= shuffle_xor(word, 1);
            word |= shuffle_xor(word, 2);
            q.store_if(active & (lane % 4u == 0), block * 9u + 1u + lane / 4u, word);
            q.store_if(active & (lane == 0), block * 9u, half_bits(d) | half_bits(sum) << 16);
        }).launch_bounds(WarpGroup::block);
    return made;
}
const PackedGemvKernel& gemv_q8_1_kernel(Quantised format) {
    static const PackedGemvKernel made[] = {
        make_packed_gemv<blocks::Q4_0>("gemv_q4_0_q8_1"), make_packed_gemv<blocks::Q8_0>("gemv_q8_0_q8_1"),
        make_packed_gemv<blocks::Q4_K>("gemv_q4_k_q8_1"), make_packed_gemv<blocks::Q5_K>("gemv_q5_k_q8_1"),
        make_packed_gemv<blocks::Q6_K>("gemv_q6_k_q8_1")};
    return made[std::uint32_t(format)];
}

void dequantise(const runtime::Device& device, Quantised format, const runtime::Buffer<std::uint8_t>& w,
                runtime::Buffer<float>& y) {
    const std::uint32_t n = u32_size("dequantise", "w", w.size()) / bytes_of(format);
    require_size("dequantise", "y", y.size(), u32_size("dequantise", "y", std::uint64_t(n) * weights_of(format)));
    if (n != 0) device.launch(dequantise_kernel(format), dequantise_grid(format, n), w, y, n);
}

namespace {

/// Throws Error unless the dimensions of W fit its format and its buffer.
void check_weights(Quantised format, const runtime::Buffer<std::uint8_t>& w, std::uint32_t rows,
                   std::uint32_t columns) {
    const std::uint32_t weights = weights_of(format);
    if (columns % weights != 0)
        throw Error(fmt::format("gemv: 'columns' is {}, but rows are blocks of {} weights", columns, weights),
                    "pad the rows with zeros to whole blocks");
    const std::uint64_t blocks = std::uint64_t(rows) * (columns / weights);
    u32_size("gemv", "w", blocks * weights);
    require_size("gemv", "w", w.size(), u32_size("gemv", "w", blocks * bytes_of(format)));
}

}  // namespace

void gemv(const runtime::Device& device, Quantised format, const runtime::Buffer<std::uint8_t>& w,
          const runtime::Buffer<float>& x, runtime::Buffer<float>& y, std::uint32_t rows, std::uint32_t columns) {
    check_weights(format, w, rows, columns);
    require_size("gemv", "x", x.size(), columns);
    require_size("gemv", "y", y.size(), rows);
    if (rows != 0) device.launch(gemv_kernel(format), row_grid<WarpGroup>(rows), w, x, y, rows, columns);
}
void quantise_q8_1(const runtime::Device& device, const runtime::Buffer<float>& x, runtime::Buffer<std::uint32_t>& q) {
    if (x.size() % 32 != 0)
        throw Error(fmt::format("quantise_q8_1: 'x' has {} elements, which is no multiple of 32", x.size()),
                    "pad it with zeros");
    const std::uint32_t n = u32_size("quantise_q8_1", "x", x.size()) / 32;
    require_size("quantise_q8_1", "q", q.size(), std::uint64_t(n) * 9);
    if (n != 0) device.launch(quantise_q8_1_kernel(), row_grid<WarpGroup>(n), x, q, n);
}
void gemv(const runtime::Device& device, Quantised format, const runtime::Buffer<std::uint8_t>& w,
          const runtime::Buffer<std::uint32_t>& x, runtime::Buffer<float>& y, std::uint32_t rows,
          std::uint32_t columns) {
    check_weights(format, w, rows, columns);
    require_size("gemv", "x", x.size(), std::uint64_t(columns) / 32 * 9);
    require_size("gemv", "y", y.size(), rows);
    if (rows != 0) device.launch(gemv_q8_1_kernel(format), row_grid<WarpGroup>(rows), w, x, y, rows, columns);
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

constexpr std::string_view packed_document =
    "As gemv_* of that format, but x is columns / 32 blocks of q8_1, 9 words each, as quantise_q8_1 makes them. Four\n"
    "weights are multiplied at once, exactly; the sums over blocks are in f32. w begins at a multiple of 16 bytes.";
constexpr std::string_view quantise_document =
    "x has 32 n elements; q gets n blocks of 9 words: f16 max |x| / 127, f16 sum of x, and 32 signed bytes x / d, "
    "rounded\n"
    "to nearest and half away from zero: GGML's block_q8_1. n < 2^27. A warp to a block.";

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
              .grid = [](Arguments a) -> runtime::Grid { return row_grid<WarpGroup>(number(a, 3)); }},            \
        Entry{.name = "gemv_" id "_q8_1",                                                                         \
              .summary = "y = W x, W of " #Format " weights, x of Q8_1 activations",                              \
              .document = packed_document,                                                                        \
              .kernel = []() -> const ast::Kernel& { return gemv_q8_1_kernel(Quantised::Format).ast(); },         \
              .grid = [](Arguments a) -> runtime::Grid { return row_grid<WarpGroup>(number(a, 3)); }},
constexpr Entry entries[] = {
    IKAT_ENTRIES(Q4_0, "q4_0") IKAT_ENTRIES(Q8_0, "q8_0") IKAT_ENTRIES(Q4_K, "q4_k") IKAT_ENTRIES(Q5_K, "q5_k")
        IKAT_ENTRIES(Q6_K, "q6_k")
            Entry{.name = "quantise_q8_1",
                  .summary = "activations to blocks of 8-bit integers",
                  .document = quantise_document,
                  .kernel = []() -> const ast::Kernel& { return quantise_q8_1_kernel().ast(); },
                  .grid = [](Arguments a) -> runtime::Grid { return row_grid<WarpGroup>(number(a, 2)); }},
};

}  // namespace

std::span<const Entry> quantised_entries() { return entries; }

}  // namespace ikat::stdlib
