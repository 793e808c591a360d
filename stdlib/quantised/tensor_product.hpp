// SPDX-License-Identifier: Apache-2.0
// The kernels of quantised_gemm() on tensor cores, for more than eight tokens. Weights are operands of mma as integers
// in f16, which is exact, and scales are applied to sums of products in f32. Where each group of 16 or 32 has a small
// integer as its scale, the operands are the integers times that, exact too, and only the scale of the block of 256 is
// applied to a sum. Minima are one more product, of the integers that they are with the sums of each group of X:
//
//     arrange     X ──▶ f16, times a power of two for each token     ┐
//                   └─▶ sums of groups, as two f16                   ├▶ product ──▶ Y
//     blocks of W ──▶ shared memory ──▶ integers in registers ──────┘
//
// A lane's operands of a row are elements 2 q, 2 q + 1, 2 q + 8 and 2 q + 9 of 16, q = lane % 4. In a word of a block
// are neighbours. So each 16 elements of X are stored such that mma expects there what lane q has: 4 q and 4 q + 2, and
// then 4 q + 1 and 4 q + 3. A sum does not ask for the order.
#pragma once
#include <compare>
#include <cstdint>
#include <string>
#include <vector>

#include "dsl/kernel/more.hpp"
#include "dsl/record/capture.hpp"
#include "stdlib/quantised/results.hpp"
#include "stdlib/quantised/units.hpp"

namespace ikat::stdlib {

/// 256 weights of a row: in shared memory as a row of pieces of 16 bytes, an odd number, so that neighbouring rows are
/// in other banks.
struct SliceShape {
    std::uint32_t bytes;
    bool rows_are_aligned;      // they begin at multiples of 16 bytes
    bool pitch_is_even = true;  // that of rows, in bytes, which are whole blocks

    /// Where each slice then begins at such a multiple.
    constexpr bool is_aligned() const { return rows_are_aligned && bytes % 16 == 0; }
    constexpr std::uint32_t pieces() const { return (bytes + (is_aligned() ? 0 : 30)) / 16; }
    constexpr std::uint32_t row_bytes() const { return (pieces() | 1) * 16; }
    /// Of such rows, and a word after the last that may be read.
    constexpr std::uint32_t shared_bytes(std::uint32_t rows) const { return rows * row_bytes() + 16; }
};

/// How many f16 are the sums of activations that 256 weights with minima need: two for each group of 16 or 32; else 0.
std::uint32_t sums_of_slice(runtime::Quantised format);
/// Tokens of the largest tile of stream-k by mma.sync. Of some formats with minima the loop of 64 tokens has no
/// register left for another loop around it.
std::uint32_t max_tokens_of_stream(runtime::Quantised format);

/// Which of the kernels. Its parameters:
///
///     w                  bytes, from a multiple of 16 on
///     up                 the same, if it is_gated
///     x                  of ArrangeKernel: tokens x padded_columns
///     sums               the same, if the format has minima: tokens x padded_columns / 256 * sums_of_slice()
///     scales             of the tokens, by which results are multiplied
///     y                  f32, f16, bf16
///     shares             sums of tiles that are not whole, f32, if it is_streamed, see StreamOfTiles
///     rows, units        of the weights
///     slices_of_part     of 256 columns; or, if it is_streamed, `streamed`: how many tiles are divided
///     y_pitch            from a token to the next, in elements
///     w_begin            the byte of w where the first row begins, below 16
///     w_pitch, w_bytes   from a row to the next; of all
///     up_...             the same three, if it is_gated
///     ...                of the epilogue, see add_epilogue()
///
/// Where the slices are divided into parts, y has the tokens of the first part, of the second one, ...
struct TensorProductKernel {
    runtime::Quantised format = runtime::Quantised::Q4_0;
    std::uint32_t tokens = 64;  // of a block: 16, 32 or 64; or 128, for sm_90a and not if it is_gated
    ir::Type y = ir::Type::F32;
    bool w_is_aligned = true;  // all rows begin at multiples of 16 bytes
    bool is_gated = false;     // silu(product) times the product with `up`; not in parts
    EpilogueCode epilogue{};   // without row sums; not in parts, nor gated
    bool is_streamed = false;  // stream-k: any number of blocks; not gated

    static constexpr std::uint32_t rows = 128, stages = 4;  // of a block
    /// 128 multiply by mma.sync, two for a multiprocessor; 256 by wgmma.
    std::uint32_t threads() const { return tokens == 128 ? 256 : 128; }
    /// Of y, of a block.
    std::uint32_t rows_of_y() const { return is_gated ? rows / 2 : rows; }
    SliceShape slice() const {
        const auto* info = runtime::find_info(format);
        return {info->bytes * 256 / info->weights, w_is_aligned};
    }
    std::uint32_t shared_bytes() const {
        return 2 * slice().shared_bytes(rows) + stages * tokens * 128 + 2 * tokens * sums_of_slice(format) * 2 +
               (is_streamed ? 24 : 0);
    }

    /// "gemm_q4_k_f16_tokens_64_tensor_core", "gate_up_swiglu_q4_k_f16_tokens_64_tensor_core", with "_stream" if it
    /// is_streamed; and the epilogue's name.
    std::string name() const;
    /// A new one, not yet captured.
    KernelHandle make() const;
    /// The same object for the same kernel; thread-safe.
    const KernelHandle& handle() const;
    auto operator<=>(const TensorProductKernel&) const = default;
};

/// Columns up to a whole slice.
constexpr std::uint64_t padded_columns(std::uint64_t columns) { return (columns + 255) / 256 * 256; }

/// A kernel for the activations: parameters x, arranged, sums if there are any, scales, columns, x_pitch. A block for
/// each token. A slice's sums, times 2^-5, are the nearest f16, and then those of what is left; of 32 each group in
/// order, of 16 groups 4 q and 4 q + 1 of q = 0, 1, 2, 3, and then 4 q + 2 and 4 q + 3 likewise.
struct ArrangeKernel {
    ir::Type x = ir::Type::F32;
    std::uint32_t sums = 0;  // of a slice, see sums_of_slice(); 16 + 32: a token has those of 16, then those of 32
    static constexpr std::uint32_t threads = 256;
    static constexpr float scale_of_sums = 0x1p-5f;
    /// "arrange_tokens_f32", "arrange_tokens_f32_sums_16".
    std::string name() const;
    /// A new one, not yet captured.
    KernelHandle make() const;
    /// The same object for the same kernel; thread-safe.
    const KernelHandle& handle() const;
    auto operator<=>(const ArrangeKernel&) const = default;
};

/// How the columns of W are divided where there are too few tiles: into parts whose sums are added up in order. It
/// depends on sizes only, so bits are the same on every device.
struct PartsOfColumns {
    std::uint32_t count = 1, slices = 0;  // parts, and the slices of each

    /// As many as make 256 tiles, with at least four slices each.
    static PartsOfColumns of(std::uint64_t rows, std::uint64_t tokens, std::uint64_t columns);
};

/// A kernel that adds up parts: parameters sums, f32, parts x tokens x rows; y, parts, tokens, rows, y_pitch, and those
/// of the epilogue, see add_epilogue(). A warp has 32 neighbours of a token at a time, with any grid.
struct AddPartsKernel {
    ir::Type y = ir::Type::F32;
    EpilogueCode epilogue{};
    static constexpr std::uint32_t threads = 256;
    /// How many blocks have a warp for each 32 neighbours.
    static std::uint64_t blocks_for(std::uint64_t tokens, std::uint64_t rows);
    /// "add_parts_f16", and the epilogue's name.
    std::string name() const;
    /// A new one, not yet captured.
    KernelHandle make() const;
    /// The same object for the same kernel; thread-safe.
    const KernelHandle& handle() const;
    auto operator<=>(const AddPartsKernel&) const = default;
};

/// Stream-k: which tiles blocks divide among each other. Each has equally many slices of the first `streamed` tiles,
/// wherever tiles end, and then takes others that are whole, see StreamK. Those of the first whose slices several
/// blocks have are added up in the order of slices.
struct StreamOfTiles {
    std::uint64_t slices = 0, workers = 1, streamed = 0;  // slices of each tile; workers are blocks

    /// For a device that runs `at_once` blocks at once: of the tiles, those that would not keep all of them busy, and
    /// before them as many as there are blocks, so that each has slices enough.
    static StreamOfTiles of(std::uint64_t tiles, std::uint64_t slices, std::uint64_t at_once);
    /// How many sums there are in f32: of two tiles of so many tokens for each worker.
    std::uint64_t sums(std::uint32_t tokens) const { return 2 * workers * tokens * TensorProductKernel::rows; }
};

/// A kernel that adds them up: parameters shares, f32; y; slices, streamed, workers; tile_tokens, which is how many
/// tokens a tile has; tokens, rows, y_pitch, and those of the epilogue, see add_epilogue(). A warp has 32 neighbours of
/// a token at a time, with any grid.
struct JoinSharesKernel {
    ir::Type y = ir::Type::F32;
    EpilogueCode epilogue{};  // without row sums
    static constexpr std::uint32_t threads = 256;
    /// How many blocks have a warp for each 32 neighbours.
    static std::uint64_t blocks_for(const StreamOfTiles& stream, std::uint32_t tile_tokens);
    /// "join_shares_f16", and the epilogue's name.
    std::string name() const;
    /// A new one, not yet captured.
    KernelHandle make() const;
    /// The same object for the same kernel; thread-safe.
    const KernelHandle& handle() const;
    auto operator<=>(const JoinSharesKernel&) const = default;
};

/// What the body of a kernel has, whatever the type of y is.
struct TensorProductArguments {
    using U = blocks::U;

    struct Weights {
        const In<std::uint8_t>& w;
        u32 begin, pitch, bytes;

        /// Of an array; the numbers are the next parameters.
        Weights(const In<std::uint8_t>& w, More& rest)
            : w(w), begin(rest.next<u32>()), pitch(rest.next<u32>()), bytes(rest.next<u32>()) {}
    };
    std::vector<Weights> weights;  // one, or two if it is_gated
    const In<half, 2>& x;
    const In<half, 2>* sums;  // null if there are none
    const In<float>& scales;
    const u32 &rows, &units, &division;  // slices_of_part, or streamed
    StoreResult store;
    const Out<float>* shares = nullptr;  // if it is_streamed
};

/// Records the body of a kernel; the other one if it has 128 tokens.
void record_tensor_product(const TensorProductKernel& is, const TensorProductArguments& of);
void record_warpgroup_product(const TensorProductKernel& is, const TensorProductArguments& of);

}  // namespace ikat::stdlib
