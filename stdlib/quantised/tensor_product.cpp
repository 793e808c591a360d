// SPDX-License-Identifier: Apache-2.0
#include "stdlib/quantised/tensor_product.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "dsl/kernel/kernel.hpp"
#include "dsl/threads/grids.hpp"
#include "stdlib/quantised/kernel_arrays.hpp"
#include "stdlib/spec/kernels.hpp"
#include "stdlib/tile/rows.hpp"
#include "stdlib/tile/schedule.hpp"

namespace ikat::stdlib {
namespace {

using blocks::F, blocks::U;
constexpr std::uint32_t threads = ArrangeKernel::threads;

/// The power of two that brings the largest number of a token to 2^14 ... 2^15, and its reciprocal.
struct Powers {
    F up, down;
};
Powers powers_for(const F& largest) {
    const U exponent = value(bit_cast<u32>(largest) >> 23);
    // 127 + 14 for it. Infinities and NaN are left as they are.
    const U chosen = value(select(exponent == 255u, 127u, min(max(268u - exponent, 1u), 253u)));
    return {value(bit_cast<f32>(chosen << 23)), value(bit_cast<f32>((254u - chosen) << 23))};
}

/// Stores the sum of a group of activations, number i of the token's is one of them, as two f16: those of such groups
/// begin at column `begin`, or 0.
void store_sum(const Out<half, 2>& sums, std::uint32_t of_slice, const U& token, const U& i, const F& sum,
               const std::optional<U>& begin) {
    const std::uint32_t group = 512 / of_slice;
    const U number = value(i % 256u / group);
    const U place = group == 32 ? number : U(value(number % 4u / 2u * 16u + number / 4u * 2u + number % 2u));
    const U in_order = value(i / 256u * of_slice + place), at = begin ? U(value(*begin + in_order)) : in_order;
    const F scaled = value(sum * ArrangeKernel::scale_of_sums);
    const auto first = value(cast<f16>(scaled));
    if_(i % group == 0u, [&] {
        sums[token, at] = first;
        sums[token, at + 8u] = cast<f16>(scaled - cast<f32>(first));
    });
}

template <class X>
KernelHandle arrange(const ArrangeKernel& is) {
    return kernel(is.name().c_str(),
                  params("x", "arranged", only_if(is.sums != 0, "sums"), "scales", "columns", "x_pitch"),
                  [is](In<X> x, Out<half, 2> arranged, Optional<Out<half, 2>> sums, Out<float> scales, u32 columns,
                       u32 x_pitch) {
                      require_linear_blocks();
                      require_threads(threads);
                      const U token = value(block_id().x), thread = value(thread_id().x);
                      const auto at = [&](const auto& i) {
                          return value(cast<f32>(x.load_if(i < columns, token * x_pitch + i, X(0.0f))));
                      };
                      f32 largest = 0;
                      for (auto i : range(thread, columns, threads)) largest = max(largest, abs(at(i)));
                      const Powers powers = powers_for(value(block_max(largest)));
                      scales.store_if(thread == 0u, token, powers.down);
                      launch_next();
                      for (auto begin : range(0u, arranged.extent(1), threads)) {  // whole slices: all threads have one
                          const U i = value(begin + thread);
                          const U place = value(i % 16u);
                          const U from = value(i - place + place / 2u % 4u * 4u + place / 8u + place % 2u * 2u);
                          const auto rounded = value(cast<f16>(at(from) * powers.up));
                          arranged[token, i] = rounded;
                          for (const std::uint32_t of_slice : {16u, 32u}) {
                              if ((is.sums & of_slice) == 0) continue;
                              f32 sum = cast<f32>(rounded);
                              for (std::uint32_t distance = 256 / of_slice; distance != 0; distance /= 2)
                                  sum += shuffle_xor(sum, int(distance));
                              std::optional<U> begin_of_sums;
                              if (is.sums > of_slice && of_slice == 32)
                                  begin_of_sums.emplace(value(arranged.extent(1) / 16u));
                              store_sum(*sums, of_slice, token, i, value(sum), begin_of_sums);
                          }
                      }
                  })
        .launch_bounds(threads)
        .handle();
}

}  // namespace

std::string TensorProductKernel::name() const {
    return fmt::format("{}_{}_{}_tokens_{}_tensor_core{}{}", is_gated ? "gate_up_swiglu" : "gemm",
                       runtime::find_info(format)->name, ir::info(y).name, tokens, is_streamed ? "_stream" : "",
                       suffix_of(epilogue));
}
KernelHandle TensorProductKernel::make() const {
    MoreParameters more;
    more.add<In<std::uint8_t>>("w");
    if (is_gated) more.add<In<std::uint8_t>>("up");
    more.add<In<half, 2>>("x");
    const bool has_sums = sums_of_slice(format) != 0;
    if (has_sums) more.add<In<half, 2>>("sums");
    more.add<In<float>>("scales");
    add_array<Out>(more, "y", y);
    if (is_streamed) more.add<Out<float>>("shares");
    add_numbers(more, {"rows", "units", is_streamed ? "streamed" : "slices_of_part", "y_pitch", "w_begin", "w_pitch",
                       "w_bytes"});
    if (is_gated) add_numbers(more, {"up_begin", "up_pitch", "up_bytes"});
    add_epilogue(more, epilogue);
    auto made = kernel(name().c_str(), params(more), [is = *this, has_sums](More rest) {
        grid_wait();  // for the kernel that has arranged the activations
        const auto w = rest.next<In<std::uint8_t>>(), up = is.is_gated ? rest.next<In<std::uint8_t>>() : w;
        const auto x = rest.next<In<half, 2>>(), sums = has_sums ? rest.next<In<half, 2>>() : x;
        const auto scales = rest.next<In<float>>();
        const StoreElement y = next_results(rest, is.y);
        std::optional<Out<float>> shares;
        if (is.is_streamed) shares.emplace(rest.next<Out<float>>());
        const auto rows = rest.next<u32>(), units = rest.next<u32>(), division = rest.next<u32>(),
                   y_pitch = rest.next<u32>();
        std::vector<TensorProductArguments::Weights> weights;
        weights.emplace_back(w, rest);
        if (is.is_gated) weights.emplace_back(up, rest);
        TensorProductArguments of{.weights = std::move(weights),
                                  .x = x,
                                  .sums = has_sums ? &sums : nullptr,
                                  .scales = scales,
                                  .rows = rows,
                                  .units = units,
                                  .division = division,
                                  .store = by_epilogue(is.epilogue, rest, rows,
                                                       [&](const Leaf<bool>& condition, const U& token, const U& row,
                                                           const F& sum) { y(condition, token, y_pitch, row, sum); }),
                                  .shares = shares ? &*shares : nullptr};
        record_tensor_product(is, of);
    });
    auto of_w = std::move(made).launch_bounds(threads(), tokens == 128 ? 1 : 2).require(aligned<16>("w"));
    return is_gated ? std::move(of_w).require(aligned<16>("up")).handle() : of_w.handle();
}
const KernelHandle& TensorProductKernel::handle() const { return Kernels<TensorProductKernel>::of(*this); }

std::string ArrangeKernel::name() const {
    return fmt::format("arrange_tokens_{}{}", ir::info(x).name, sums == 0 ? "" : fmt::format("_sums_{}", sums));
}
KernelHandle ArrangeKernel::make() const {
    switch (x) {
        case ir::Type::F16: return arrange<half>(*this);
        case ir::Type::BF16: return arrange<bfloat16>(*this);
        default: return arrange<float>(*this);
    }
}
const KernelHandle& ArrangeKernel::handle() const { return Kernels<ArrangeKernel>::of(*this); }

PartsOfColumns PartsOfColumns::of(std::uint64_t rows, std::uint64_t tokens, std::uint64_t columns) {
    const auto quotient = [](std::uint64_t a, std::uint64_t b) { return (a + b - 1) / b; };
    const std::uint64_t tiles = quotient(rows, TensorProductKernel::rows) * quotient(tokens, 64);
    const std::uint64_t slices = quotient(columns, 256);
    const std::uint64_t count =
        std::clamp<std::uint64_t>(256 / std::max<std::uint64_t>(tiles, 1), 1, std::max<std::uint64_t>(slices / 4, 1));
    const std::uint64_t of_part = std::max<std::uint64_t>(quotient(slices, count), 1);
    return {std::uint32_t(std::max<std::uint64_t>(quotient(slices, of_part), 1)), std::uint32_t(of_part)};
}

std::uint64_t AddPartsKernel::blocks_for(std::uint64_t tokens, std::uint64_t rows) {
    return (tokens * ((rows + 31) / 32) + 7) / 8;
}
std::string AddPartsKernel::name() const {
    return fmt::format("add_parts_{}{}", ir::info(y).name, suffix_of(epilogue));
}
KernelHandle AddPartsKernel::make() const {
    MoreParameters more;
    more.add<In<float>>("sums");
    add_array<Out>(more, "y", y);
    add_numbers(more, {"parts", "tokens", "rows", "y_pitch"});
    add_epilogue(more, epilogue);
    return kernel(name().c_str(), params(more),
                  [is = *this](More rest) {
                      require_linear_blocks();
                      require_linear_grid();
                      grid_wait();
                      const auto sums = rest.next<In<float>>();
                      const StoreElement y = next_results(rest, is.y);
                      const auto parts = rest.next<u32>(), tokens = rest.next<u32>(), rows = rest.next<u32>(),
                                 y_pitch = rest.next<u32>();
                      const StoreResult store =
                          by_epilogue(is.epilogue, rest, rows,
                                      [&](const Leaf<bool>& condition, const U& token, const U& row, const F& x) {
                                          y(condition, token, y_pitch, row, x);
                                      });
                      const U all = value(tokens * rows), of_token = value((rows + 31u) / 32u);
                      const U warp = value(block_id().x * (threads / 32) + warp_id());
                      for (auto group : range(warp, tokens * of_token, grid_dim().x * (threads / 32))) {
                          const U token = value(group / of_token), row = value(group % of_token * 32u + lane_id());
                          const auto is_there = value(row < rows);
                          const U i = value(token * rows + row);
                          f32 sum = sums.load_if(is_there, i, 0.0f);
                          for (auto part : range(1u, parts)) sum += sums.load_if(is_there, part * all + i, 0.0f);
                          store(is_there, token, row, value(sum));
                      }
                  })
        .launch_bounds(threads)
        .handle();
}
const KernelHandle& AddPartsKernel::handle() const { return Kernels<AddPartsKernel>::of(*this); }

StreamOfTiles StreamOfTiles::of(std::uint64_t tiles, std::uint64_t slices, std::uint64_t at_once) {
    StreamOfTiles out{.slices = slices, .workers = std::min(at_once, tiles * slices)};
    const std::uint64_t rest = tiles % at_once;
    out.streamed = rest == 0 ? 0 : std::min(tiles, at_once + rest);
    if (out.streamed * slices > ~std::uint32_t{0}) out.streamed = 0;  // they are counted in 32 bits
    return out;
}

std::uint64_t JoinSharesKernel::blocks_for(const StreamOfTiles& stream, std::uint32_t tile_tokens) {
    return (stream.streamed * tile_tokens * (TensorProductKernel::rows / 32) + 7) / 8;
}
std::string JoinSharesKernel::name() const {
    return fmt::format("join_shares_{}{}", ir::info(y).name, suffix_of(epilogue));
}
KernelHandle JoinSharesKernel::make() const {
    MoreParameters more;
    more.add<In<float>>("shares");
    add_array<Out>(more, "y", y);
    add_numbers(more, {"slices", "streamed", "workers", "tile_tokens", "tokens", "rows", "y_pitch"});
    add_epilogue(more, epilogue);
    return kernel(name().c_str(), params(more),
                  [is = *this](More rest) {
                      require_linear_blocks();
                      require_linear_grid();
                      grid_wait();
                      const auto sums = rest.next<In<float>>();
                      const StoreElement y = next_results(rest, is.y);
                      const auto slices = rest.next<u32>(), streamed = rest.next<u32>(), workers = rest.next<u32>(),
                                 tile_tokens = rest.next<u32>(), tokens = rest.next<u32>(), rows = rest.next<u32>(),
                                 y_pitch = rest.next<u32>();
                      const StoreResult store =
                          by_epilogue(is.epilogue, rest, rows,
                                      [&](const Leaf<bool>& condition, const U& token, const U& row, const F& x) {
                                          y(condition, token, y_pitch, row, x);
                                      });
                      constexpr std::uint32_t tile_rows = TensorProductKernel::rows;
                      const StreamK stream(streamed, slices, workers);
                      const U down = tiles_of(rows, tile_rows), of_tile = value(tile_tokens * (tile_rows / 32));
                      const U warp = value(block_id().x * (threads / 32) + warp_id());
                      for (auto group : range(warp, streamed * of_tile, grid_dim().x * (threads / 32))) {
                          const U tile = value(group / of_tile), first = value(group % of_tile * 32u);
                          const U at = value(first + lane_id());  // in the tile
                          const U token = value(tile / down * tile_tokens + first / tile_rows),
                                  row = value(tile % down * tile_rows + at % tile_rows);
                          const SharesOfTile shares = stream.shares_of(tile);
                          const auto is_there = value((shares.count > 1u) & (token < tokens) & (row < rows));
                          const auto share = [&](const Word& i) {
                              const U begin = value(shares.number(i) * tile_tokens * tile_rows);
                              return sums.load_if(is_there, begin + at, 0.0f);
                          };
                          f32 sum = share(0u);
                          for (auto i : range(1u, shares.count)) sum += share(value(i));
                          store(is_there, token, row, value(sum));
                      }
                  })
        .launch_bounds(threads)
        .handle();
}
const KernelHandle& JoinSharesKernel::handle() const { return Kernels<JoinSharesKernel>::of(*this); }

}  // namespace ikat::stdlib
