// SPDX-License-Identifier: Apache-2.0
// Kernels that reduce the rows of a matrix, or an array.
#include <limits>

#include "bench/code_quality/samples.hpp"
#include "stdlib/math/math.hpp"

#include <ikat/dsl.hpp>

namespace ikat::bench {
namespace {

/// A reduction over all threads of a block of 256.
auto of_block(const auto& own, auto&& combine) {
    require_linear_blocks();
    Shared<float, 8> parts;
    f32 v = own;
    for (int distance = 16; distance > 0; distance /= 2) v = combine(v, shuffle_xor(v, distance));
    if_(lane_id() == 0, [&] { parts[warp_id()] = v; });
    sync_block();
    f32 all = parts[0];
    for (int k = 1; k < 8; ++k) all = combine(all, parts[k]);
    sync_block();
    return value(all);
}

const auto added = [](const auto& a, const auto& b) { return a + b; };
const auto larger = [](const auto& a, const auto& b) { return max(a, b); };

const auto sum = kernel("sum", params("x", "y", "n"), [](In<float> x, InOut<float> y, u32 n) {
                     f32 v = 0;
                     for (auto i : grid_stride(n)) v += x[i];
                     auto all = of_block(v, added);
                     if_(thread_id().x == 0, [&] { y[block_id().x] = all; });
                 }).launch_bounds(256);

const auto softmax = kernel("softmax", params("x", "y", "columns"), [](In<float> x, Out<float> y, u32 columns) {
                         auto row = x.slice(cast<u64>(block_id().x) * cast<u64>(columns));
                         auto out = y.slice(cast<u64>(block_id().x) * cast<u64>(columns));
                         f32 maximum = -std::numeric_limits<float>::max();
                         for (auto i : range(thread_id().x, columns, 256u)) maximum = max(maximum, row[i]);
                         auto highest = of_block(maximum, larger);
                         f32 total = 0;
                         for (auto i : range(thread_id().x, columns, 256u))
                             total += stdlib::exp(value(row[i] - highest));
                         auto factor = value(rcp(of_block(total, added)));
                         for (auto i : range(thread_id().x, columns, 256u))
                             out[i] = stdlib::exp(value(row[i] - highest)) * factor;
                     }).launch_bounds(256);

const auto masked_softmax = kernel("masked_softmax", params("x", "mask", "y", "columns"),
                                   [](In<bfloat16> x, In<std::uint8_t> mask, Out<float> y, u32 columns) {
                                       auto row = x.slice(cast<u64>(block_id().x) * cast<u64>(columns));
                                       auto out = y.slice(cast<u64>(block_id().x) * cast<u64>(columns));
                                       const auto masked = [&](const auto& i) {
                                           auto bits = value(cast<f32>(row[i]));
                                           return value(select((cast<u32>(mask[i]) & 1) != 0, bits, f32(-1e30f)));
                                       };
                                       f32 maximum = -1e30f;
                                       for (auto i : range(thread_id().x, columns, 256u))
                                           maximum = max(maximum, masked(i));
                                       auto highest = of_block(maximum, larger);
                                       f32 total = 0;
                                       for (auto i : range(thread_id().x, columns, 256u))
                                           total += stdlib::exp(value(masked(i) - highest));
                                       auto factor = value(rcp(of_block(total, added)));
                                       for (auto i : range(thread_id().x, columns, 256u))
                                           out[i] = stdlib::exp(value(masked(i) - highest)) * factor;
                                   })
                                .launch_bounds(256);

const auto layernorm =
    kernel("layernorm", params("x", "y", "columns", "scale"), [](In<float> x, Out<float> y, u32 columns, f32 scale) {
        auto row = x.slice(cast<u64>(block_id().x) * cast<u64>(columns));
        auto out = y.slice(cast<u64>(block_id().x) * cast<u64>(columns));
        f32 total = 0;
        for (auto i : range(thread_id().x, columns, 256u)) total += row[i];
        auto mean = value(of_block(total, added) * scale);
        f32 squares = 0;
        for (auto i : range(thread_id().x, columns, 256u)) {
            auto from_mean = value(row[i] - mean);
            squares = fma(from_mean, from_mean, squares);
        }
        auto factor = value(approx::rsqrt(fma(of_block(squares, added), scale, 1e-5f)));
        for (auto i : range(thread_id().x, columns, 256u)) out[i] = (row[i] - mean) * factor;
    }).launch_bounds(256);

const auto layernorm_backward =
    kernel("layernorm_backward", params("x", "dy", "gamma", "dx", "columns", "scale", "mean", "factor"),
           [](In<float> x, In<float> dy, In<float> gamma, Out<float> dx, u32 columns, f32 scale, f32 mean, f32 factor) {
               auto first = value(cast<u64>(block_id().x) * cast<u64>(columns));
               auto row = x.slice(first), above = dy.slice(first);
               auto out = dx.slice(first);
               f32 sum = 0, product = 0;
               for (auto i : range(thread_id().x, columns, 256u)) {
                   auto g = value(above[i] * gamma[i]);
                   sum += g;
                   product = fma(g, (row[i] - mean) * factor, product);
               }
               auto mean_sum = value(of_block(sum, added) * scale);
               auto mean_product = value(of_block(product, added) * scale);
               for (auto i : range(thread_id().x, columns, 256u)) {
                   auto g = value(above[i] * gamma[i]);
                   out[i] = (g - fma((row[i] - mean) * factor, mean_product, mean_sum)) * factor;
               }
           })
        .launch_bounds(256);

const auto top4 =
    kernel("top4", params("x", "y", "columns", "rows"), [](In<float> x, Out<float> y, u32 columns, u32 rows) {
        u32 row = global_id().x;
        return_if(row >= rows);
        f32 a = -1e30f, b = -1e30f, c = -1e30f, d = -1e30f;
        for (auto i : range(columns)) {
            f32 v = x[i * rows + row];
            const auto keep = [&](f32& of) {
                auto less = value(min(of, v));
                of = max(of, v);
                v = less;
            };
            keep(a), keep(b), keep(c);
            d = max(d, v);
        }
        y.vec<4>(row) = {a, b, c, d};
    }).require(aligned<16>("y"));

}  // namespace

std::vector<Row> rows_of_matrices() {
    constexpr std::uint32_t n = 3000;
    const std::vector<nvdisasm::Loop> softmax_loops{
        {"LDG", 1, "FMNMX", {"FFMA"}}, {"LDG", 1, "FFMA", {"STG"}}, {"STG", 1, "FFMA"}};
    const std::vector<nvdisasm::Loop> masked_loops{
        {"LDG", 2, "FMNMX", {"FFMA"}}, {"LDG", 2, "FFMA", {"STG"}}, {"STG", 1, "FFMA"}};
    const std::vector<nvdisasm::Loop> layernorm_loops{
        {"LDG", 1, "FADD", {"FFMA", "STG"}}, {"LDG", 1, "FFMA", {"STG"}}, {"STG"}};
    return {
        {"sum", "sum", sum, {4, 1}, {256, 1}, {floats(n), zeros(4), n}, {{"LDG"}}},
        {"softmax", "softmax row", softmax, {2, 1}, {256, 1}, {floats(2 * n), zeros(2 * n), n}, softmax_loops, 1e-5},
        {"masked_softmax",
         "masked softmax",
         masked_softmax,
         {2, 1},
         {256, 1},
         {brain_floats(2 * n), words(n / 4), zeros(2 * n), n},
         masked_loops,
         1e-5},
        {"layernorm",
         "layernorm row",
         layernorm,
         {2, 1},
         {256, 1},
         {floats(2 * n), zeros(2 * n), n, 1.0f / float(n)},
         layernorm_loops,
         1e-5},
        {"layernorm_backward",
         "layernorm backward",
         layernorm_backward,
         {2, 1},
         {256, 1},
         {floats(2 * n), floats(2 * n), floats(n), zeros(2 * n), n, 1.0f / float(n), 0.25f, 1.5f},
         {{"LDG", 3, "", {"STG"}}, {"STG"}},
         1e-5},
        {"top4", "top 4", top4, {2, 1}, {128, 1}, {floats(200 * 50), zeros(800), 50u, 200u}, {{"LDG"}}},
    };
}

}  // namespace ikat::bench
