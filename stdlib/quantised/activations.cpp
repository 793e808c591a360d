// SPDX-License-Identifier: Apache-2.0
#include "dsl/threads/grids.hpp"
#include "stdlib/quantised/grid.hpp"
#include "stdlib/quantised/quantised.hpp"
#include "stdlib/spec/families.hpp"
#include "stdlib/tile/rows.hpp"

namespace ikat::stdlib {
namespace {

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
    const auto largest = value(warp_reduce<8>(max(max(abs(v[0]), abs(v[1])), max(abs(v[2]), abs(v[3]))), maximum));
    const auto sum = value(warp_reduce<8>((v[0] + v[1]) + (v[2] + v[3]), plus));
    const auto d = value(largest / 127.0f);
    u32 word = 0;
    for (std::uint32_t k = 0; k < 4; ++k) {
        const auto scaled = value(select(largest == 0.0f, 0.0f, v[k] / d));
        word |= (cast<u32>(rounded(scaled)) & 255u) << (8 * k);
    }
    return {value(word), value(bit_cast<u32>(pack<f16x2>(d, sum)))};
}

/// Eight blocks per warp: it reads 64 vectors and writes 72 words, both contiguous.
class Quantiser {
public:
    /// `load(condition, i)` gives activations 4 i to 4 i + 3 of the warp, where the condition is true.
    void quantise(const auto& count, const auto& lane, auto&& load) const {
        for (std::uint32_t k = 0; k < 2; ++k) {
            const auto i = value(lane + 32 * k), block = value(i / 8u);
            const auto four = quantised_q8_1(load(block < count, i));
            words_[block * 9u + 1u + i % 8u] = four.word;
            words_.store_if(i % 8u == 0, block * 9u, four.head);
        }
        sync_warp();
    }
    /// The words of the blocks, from that word of q on.
    void store(const Out<std::uint32_t>& q, const auto& first, const auto& count, const auto& lane) const {
        for (std::uint32_t k = 0; k < 3; ++k) {
            const auto i = value(lane + 32 * k);
            q.store_if(i < count * 9u, first + i, value(words_.load_if(i < 72u, i, 0)));
        }
    }

private:
    Indexable<std::uint32_t, Direction::ReadWrite> words_ =
        Shared<std::uint32_t, WarpGroup::rows_of_block * 72>().flat().slice(WarpGroup::number() * 72u);
};

/// Four numbers one by one.
template <class E>
Lanes<4> four_of(const In<E>& x, const auto& condition, const auto& first) {
    Lanes<4> out;
    for (std::uint32_t k = 0; k < 4; ++k)
        out.set(k, value(cast<f32>(x.load_if(condition, first + k, E(0.0f)))).recorded());
    return out;
}

/// Rows of whole blocks at pitches; a warp takes eight blocks of one row.
template <class E>
const auto& quantise_q8_1_pitched() {
    static const auto made =
        kernel(name_of<E>("quantise_q8_1_pitched"), params("x", "q", "rows", "columns", "x_pitch", "x_unit", "q_pitch"),
               [](In<E> x, Out<std::uint32_t> q, u32 rows, u32 columns, u32 x_pitch, u32 x_unit, u32 q_pitch) {
                   require_linear_grid();
                   require_threads(WarpGroup::block);
                   const Quantiser quantiser;
                   const auto all = value(columns / 32u), pieces = value((all + 7u) / 8u);
                   const auto row = value(WarpGroup::row() / pieces), lane = value(lane_id());
                   const auto first = value((WarpGroup::row() - row * pieces) * 8u);
                   const auto count = value(select(row < rows, min(all - first, 8u), 0u));
                   const auto from = value(row * x_pitch + first * 32u);
                   if_(x_unit % 4u == 0u, [&] {
                       quantiser.quantise(count, lane, [&](const auto& condition, const auto& i) {
                           return load_lanes_if<4>(condition, x, value(from / 4u + i), 0.0f);
                       });
                   }).else_([&] {
                       quantiser.quantise(count, lane, [&](const auto& condition, const auto& i) {
                           return four_of(x, value(condition), value(from + i * 4u));
                       });
                   });
                   launch_next();
                   quantiser.store(q, value(row * q_pitch + first * 9u), count, lane);
               })
            .require(multiple_of<32>("columns"))
            .launch_bounds(WarpGroup::block);
    return made;
}

}  // namespace

const QuantiseKernel& quantise_q8_1_kernel() {
    static const auto made = kernel("quantise_q8_1", params("x", "q", "n"),
                                    [](In<float> x, Out<std::uint32_t> q, u32 n) {
                                        require_linear_grid();
                                        require_threads(WarpGroup::block);
                                        const Quantiser quantiser;
                                        const auto first = value(WarpGroup::row() * 8u), lane = value(lane_id());
                                        const auto count = value(min(n - min(first, n), 8u));
                                        quantiser.quantise(count, lane, [&](const auto& condition, const auto& i) {
                                            return load_lanes_if<4>(condition, x, value(first * 8u + i), 0.0f);
                                        });
                                        launch_next();
                                        quantiser.store(q, first * 9u, count, lane);
                                    })
                                 .require(aligned<16>("x"), at_least<32>("x", "n"), at_least<9>("q", "n"))
                                 .launch_bounds(WarpGroup::block);
    return made;
}

// ---- the recipe

constexpr Recipe quantise_q8_1_recipe{
    .call = "quantise_q8_1(queue, x, q)",
    .kernels = {{.summary = "activations to blocks of 8-bit integers",
                 .instances = IKAT_KERNEL(quantise_q8_1_kernel()),
                 .grid = [](const Call& a) { return warps_grid(a, 32, 256); },
                 .pitched = IKAT_FLOATS(quantise_q8_1_pitched<T>())}},
    .operands = {{"x", "... columns", Access::In, ir::Type::F32},
                 {.name = "q", .shape = "... columns", .access = Access::Out, .blocks = Blocks::Q8_1}},
    .run = [](const Queue& queue, std::span<const MutableTensorView> arrays,
              const FunctionSettings&) { quantise_q8_1(queue, arrays[0], arrays[1]); },
    .document =
        "x has 32 n elements; q gets n blocks of 9 words: f16 max |x| / 127, f16 sum of x, and 32 signed\n"
        "bytes x / d, rounded to nearest and half away from zero: GGML's block_q8_1. n < 2^27; x begins at a\n"
        "multiple of 16 bytes. A warp to eight blocks.",
    .sizes = {{"x", "n 32"}, {"q", "n 9"}},
    .reference = reference::quantise_q8_1,
    .traffic = "5.125 s",
    .note = "activations to Q8_1: 9 words per 32 values"};

}  // namespace ikat::stdlib
