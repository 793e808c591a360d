// SPDX-License-Identifier: Apache-2.0
// A product of quantised weights on tensor cores by a kernel of one's own: Y = X W', where W is in GGML's Q4_0 and X in
// f16. The weights stay in their blocks of 18 bytes until they are in registers. There their integers q - 8 become f16,
// which is exact, and operands of mma; the scale of a block is multiplied with the sum of its 32 products, in f32.
//
//     global memory        shared memory          registers
//     W, 128 rows  ──▶  144 bytes of each  ──▶  q - 8, 16 x 16  ┐
//     X, 64 tokens ──▶  64 elements of each ──▶  8 x 16         ┴▶ mma ──▶ sums of 32 ──▶ d * sum, added up
//
// A lane's operands are elements 2 q, 2 q + 1, 2 q + 8 and 2 q + 9 of 16, q = lane % 4, and a word of a block has
// weights that are neighbours. A sum does not ask for the order, so X is arranged for the weights: each 32 elements
// such that lane q finds elements 4 q ... 4 q + 3, and 16 further, where mma expects its own.
#include <ikat/ikat.hpp>

#include <ikat/async.hpp>
#include <ikat/mma.hpp>
#include <ikat/quantised.hpp>
#include <ikat/tile.hpp>

#include <cmath>
#include <cstdio>
#include <vector>

using namespace ikat;
using namespace ikat::stdlib;

using M = Mma<16, 8, 16, half, float>;                          // A: 16 weights of W's rows x 16 of k; B: 8 tokens
constexpr std::uint32_t tile_rows = 128, tokens = 64;           // of a block of four warps, each with 32 rows
constexpr std::uint32_t block = 18, of_slice = 144;             // bytes: of 32 weights, and of a row's 256
constexpr std::uint32_t threads = 128, pieces = of_slice / 16;  // pieces: an odd number, so rows are in other banks

/// The f16 of a block's head and words of its integers, in shared memory. `at` is a byte.
struct Weights {
    Indexable<std::uint32_t, Direction::ReadWrite> memory =
        Shared<std::uint32_t, 2 * tile_rows * of_slice / 4>().flat();

    u32 half_word(const u32& at) const { return cast<u32>(memory.as<std::uint16_t>()[at / 2]); }
    f32 scale(const u32& at) const { return cast<f32>(memory.as<half>()[at / 2]); }
    /// Eight integers of four bits; blocks begin at even bytes.
    u32 word(const u32& at) const { return half_word(at) | half_word(at + 2) << 16; }
};

/// Bytes 2 h and 2 h + 1 of a word, less 8, as f16: 0x6400 + q are the bits of 1024 + q.
f16x2 integers(const u32& word, int h) {
    return bit_cast<f16x2>(byte_permute(word, 0x64646464u, h == 0 ? 0x4140u : 0x4342u)) -
           pack<f16x2>(f32(1032), f32(1032));
}

const auto product =
    kernel("quantised_product", params("w", "X", "Y", "rows", "slices"),
           [](In<std::uint8_t> w, In<half, 2> X, Out<float, 2> Y, u32 rows, u32 slices) {
               require_threads(threads);
               require_linear_blocks();
               const Weights blocks;
               SharedTile<half, 4, tokens, 64> x;
               const u32 down = (rows + (tile_rows - 1)) / tile_rows;
               const u32 first_row = block_id().x % down * tile_rows, first_token = block_id().x / down * tokens;
               const TileSource<decltype(x), threads, Along::Columns> from_x(X, first_token, {.bytes = 16});
               const RightOperand<M, decltype(x), Major::K> right(x, 0);
               const u32 q = lane_id() % 4, row = warp_id() * 32 + lane_id() / 4;  // and 8, 16 and 24 rows further
               WarpTiles<M, 32, tokens> sums(0.0f);

               // A slice of X is 64 elements, one of W 256: it is asked for with the first of four.
               const auto ask = [&](const auto& stage, const auto& slice) {
                   from_x.load(x[stage], slice);
                   if_(slice % 4 == 0, [&] {
                       const u32 of_w = slice / 4;
                       for (std::uint32_t k = 0; k < pieces; ++k) {
                           const u32 i = thread_id().x + k * threads, r = i / pieces, piece = i % pieces * 16;
                           const u32 from = (min(first_row + r, rows - 1) * slices + of_w) * of_slice + piece;
                           const u32 to = (of_w % 2 * tile_rows + r) * of_slice + piece;
                           copy_async_if<16>(of_w < slices, blocks.memory.as<std::uint8_t>()[to], w[from]);
                       }
                   });
               };
               u32 half_of_memory = 0;
               const auto work = [&](const auto& stage) {
                   for (std::uint32_t b = 0; b < 2; ++b) {  // blocks, each of two products of 16
                       const u32 at = (half_of_memory * tile_rows + row) * of_slice + (stage * 2 + b) * block;
                       M::A weights[2][2];  // 16 rows, and 16 further; the first half of the block, and the second
                       f32 scales[4];
                       for (std::uint32_t r = 0; r < 4; ++r) {
                           const u32 begin = at + r * 8 * of_slice, eight = blocks.word(begin + 2 + q * 4);
                           scales[r] = blocks.scale(begin);
                           for (int h = 0; h < 2; ++h) {
                               weights[r / 2][0][int(r % 2) + 2 * h] = integers(eight & 0x0f0f0f0fu, h);
                               weights[r / 2][1][int(r % 2) + 2 * h] = integers(eight >> 4 & 0x0f0f0f0fu, h);
                           }
                       }
                       for (std::uint32_t j = 0; j < tokens / 8; j += 2) {
                           M::B of_x[2][2];
                           for (std::uint32_t step = 0; step < 2; ++step)
                               right.fragments(x[stage], j / 2, b * 2 + step, of_x[step], 2);
                           for (std::uint32_t c = 0; c < 2; ++c)
                               for (std::uint32_t t = 0; t < 2; ++t) {
                                   M::C sum(0.0f);
                                   for (std::uint32_t step = 0; step < 2; ++step)
                                       sum = mma(weights[t][step], of_x[step][c], sum);
                                   for (int e = 0; e < 4; ++e)
                                       sums(t, j + c)[e] = fma(scales[t * 2 + e / 2], sum[e], sums(t, j + c)[e]);
                               }
                       }
                   }
                   if_(stage == 3u, [&] { half_of_memory = half_of_memory ^ 1; });
               };
               pipeline<4>(slices * 4, ask, work);

               for (std::uint32_t t = 0; t < 2; ++t)
                   for (std::uint32_t j = 0; j < tokens / 8; ++j)
                       for (int e = 0; e < M::C::elements; ++e) {
                           const u32 i = first_row + warp_id() * 32 + 16 * t + M::C::row(e);
                           const u32 token = first_token + 8 * j + M::C::column(e);
                           Y.store_if((i < rows) & (token < Y.extent(0)), token, i, sums(t, j)[e]);
                       }
           })
        .require(at_least<of_slice>("w", "rows", "slices"), aligned<16>("w"), aligned<16>("X"),
                 multiple_of<8>("X_extent1"), multiple_of<8>("X_pitch"))
        .launch_bounds(threads);

int main() try {
    const std::uint32_t rows = 200, columns = 512, count = 70;
    std::vector<float> numbers;
    for (std::uint32_t i = 0; i < rows * columns; ++i) numbers.push_back(std::sin(0.37f * float(i % 4099)));
    const std::vector<std::uint8_t> weights = stored::quantise(Quantised::Q4_0, numbers, columns);

    std::vector<half> activations, arranged(count * columns);
    for (std::uint32_t i = 0; i < count * columns; ++i) activations.emplace_back(std::cos(0.11f * float(i % 1013)));
    for (std::uint32_t i = 0; i < arranged.size(); ++i) {
        const std::uint32_t place = i % 32, q = place / 2 % 4;
        arranged[i] = activations[i - place + place / 16 * 16 + 4 * q + place / 8 % 2 * 2 + place % 2];
    }

    const auto device = Device::open();
    const auto w = device.upload(weights, "w");
    const auto X = device.upload(arranged, "X");
    auto Y = device.buffer<float>(count * rows, "Y"), decoded = device.buffer<float>(rows * columns, "decoded");
    const std::uint32_t blocks = ((rows - 1) / tile_rows + 1) * ((count - 1) / tokens + 1);
    device.launch(product, Grid{{blocks}, {threads}}, w, X.view(count, columns), Y.view(count, rows), rows,
                  columns / 256);

    dequantise(device, quantised_view(w, Quantised::Q4_0, {rows, columns}), decoded);
    const auto y = Y.download(), W = decoded.download();
    std::uint32_t wrong = 0;
    for (std::uint32_t token = 0; token < count; ++token)
        for (std::uint32_t i = 0; i < rows; ++i) {
            double sum = 0, magnitude = 0;
            for (std::uint32_t k = 0; k < columns; ++k) {
                const double term = double(W[i * columns + k]) * double(activations[token * columns + k]);
                sum += term, magnitude += std::abs(term);
            }
            // Products are exact, and so are integers times f16; sums of 16, of blocks and of the row are rounded.
            wrong += !(std::abs(y[token * rows + i] - sum) <= magnitude * (16 + 2 + columns / 32) * 0x1p-23);
        }
    std::printf("%u tokens x %u rows of Q4_0, %u wrong\n", count, rows, wrong);
    return wrong == 0 ? 0 : 1;
} catch (const Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
}
