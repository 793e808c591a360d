// SPDX-License-Identifier: Apache-2.0
// The arithmetic is that of quantise.cpp, operation for operation, so that the bytes are the same; that of Q8_0 is in
// made_block.hpp.
#include "stdlib/quantised/quantiser_kernels.hpp"

#include <fmt/format.h>

#include "dsl/kernel/kernel.hpp"
#include "stdlib/quantised/made_block.hpp"
#include "stdlib/quantised/quantised.hpp"
#include "stdlib/quantised/stored.hpp"
#include "stdlib/spec/kernels.hpp"
#include "stdlib/tile/rows.hpp"

namespace ikat::stdlib {
namespace {

using runtime::Quantised;
using U = Leaf<std::uint32_t>;
using F = Leaf<float>;
using blocks::FourNumbers, blocks::Made, blocks::infinity, blocks::inverse_of, blocks::largest_bits, blocks::scale_bits,
    blocks::word_of;

constexpr std::uint32_t blocks_of_warp = 8;

/// Towards 0; 0 where that is no integer of 32 bits.
auto whole(const F& x) { return value(cast<i32>(select(abs(x) < 0x1p31f, x, 0.0f))); }
/// Four bits of each byte of the lane, and of that four lanes further above them.
U with_upper_half(const U& four_bits) { return value(four_bits | shuffle_xor(four_bits, 4) << 4); }
Made made_q4_0(const FourNumbers& x, const U& lane) {
    const U largest = largest_bits(x);
    const auto is_finite = value(largest < infinity);
    // The first number that is as far from 0: its place, and its sign.
    U place = value(u32(~0u));
    for (std::uint32_t k = 4; k-- > 0;) {
        const U bits = value(bit_cast<u32>(x[k]));
        place = value(select((bits & 0x7fffffffu) == largest, (lane * 4u + k) * 2u + (bits >> 31), place));
    }
    place = value(warp_reduce<8>(place, minimum));
    const U sign = value(select(largest == 0u, 0u, place << 31));
    const F d = value(bit_cast<f32>(largest | sign) / -8.0f), inverse = inverse_of(d);
    const auto byte = [&](std::uint32_t k) {
        const F scaled = value(x[k] * inverse);
        const auto q = value(min(whole(value(scaled + 8.5f)), 15));
        return value(select(is_finite, cast<u32>(q), 0u));
    };
    return {scale_bits(d, is_finite), with_upper_half(word_of(byte))};
}

/// The exponent of the largest number, less 2. The host, as GGML, takes the logarithm in f32, which is rounded up to an
/// integer from so many steps of the mantissa below a power of two on: ln 2 times the power of two that the integer's
/// own neighbours are apart.
U exponent_mxfp4(const U& largest) {
    const auto exponent = value(cast<i32>(largest >> 23) - 127);
    const U far = value(cast<u32>(select(exponent < 0, -1 - exponent, exponent)));
    const U steps = value(select(far == 0u, 0u, (45426u << (31u - leading_zeros(max(far, 1u)))) >> 16));
    return value(max((largest + steps) >> 23, 2u) - 2u);
}

Made made_mxfp4(const FourNumbers& x, const U&) {
    const U largest = largest_bits(x);
    const auto is_finite = value(largest < infinity);
    const U e = exponent_mxfp4(largest);
    const F half_unit = value(bit_cast<f32>(select(e < 2u, 0x00200000u << e, (e - 1u) << 23)));  // 2^(e - 128)
    std::vector<F> numbers;
    for (std::size_t q = 1; q < 8; ++q) numbers.push_back(value(half_unit * float(stored::mxfp4_doubled[q])));
    const auto four_bits = [&](std::uint32_t k) {
        const F size = value(abs(x[k]));
        F nearest = size;  // to 0
        U out = value(u32(0u));
        for (std::uint32_t q = 1; q < 8; ++q) {
            const F distance = value(abs(numbers[q - 1] - size));
            const auto is_nearer = value(distance < nearest);
            out = value(select(is_nearer, q, out));
            nearest = value(select(is_nearer, distance, nearest));
        }
        const U with_sign = value(out | select((out != 0u) & (x[k] < 0.0f), 8u, 0u));
        return value(select(is_finite, with_sign, 7u));
    };
    return {value(select(is_finite, e, 255u)), with_upper_half(word_of(four_bits))};
}

Made made_block(Quantised format, const FourNumbers& x, const U& lane) {
    switch (format) {
        case Quantised::Q4_0: return made_q4_0(x, lane);
        case Quantised::MXFP4: return made_mxfp4(x, lane);
        default: return blocks::made_q8_0(x);
    }
}

/// Eight blocks of a warp in shared memory, in units of 2 bytes, or, of a format of 17 bytes, of 1. There they get the
/// order in which they are stored.
template <class Unit>
class MadeBlocks {
    static constexpr std::uint32_t unit = sizeof(Unit), of_word = 4 / unit, most = blocks_of_warp * 34 / unit;

public:
    explicit MadeBlocks(Quantised format)
        : of_block_(bytes_of(format) / unit), words_of_block_(format == Quantised::Q8_0 ? 8 : 4) {}

    /// Of block number `block` of the warp, by lane number `lane` of eight.
    void put(const U& block, const U& lane, const Made& made) const {
        const U first = value(block * of_block_);
        units_.store_if(lane == 0u, first, cast<Var<Unit>>(made.head));
        for (std::uint32_t k = 0; k < of_word; ++k)
            units_.store_if(lane < words_of_block_, first + lane * of_word + (k + 1),
                            cast<Var<Unit>>(made.word >> (8 * unit * k)));
    }
    /// To unit `first` of w on, `count` blocks.
    void store(const Out<std::uint8_t>& w, const U& first, const U& count) const {
        const auto to = w.template as<Unit>();
        for (std::uint32_t k = 0; k < (blocks_of_warp * of_block_ + 31) / 32; ++k) {
            const U i = value(lane_id() + 32 * k), all = value(count * of_block_);
            to.store_if(i < all, first + i, units_.load_if(i < all, i, Unit(0)));
        }
    }
    U units(const U& bytes) const { return value(bytes / unit); }
    U of_blocks(const U& blocks) const { return value(blocks * of_block_); }

private:
    std::uint32_t of_block_, words_of_block_;
    Indexable<Unit, Direction::ReadWrite> units_ =
        Shared<Unit, WarpGroup::rows_of_block * most>().flat().slice(WarpGroup::number() * most);
};

template <class Unit, class X>
void record_quantiser(const QuantiserKernel& is, const In<X>& x, const Out<std::uint8_t>& w, const u32& rows,
                      const u32& columns, const u32& x_pitch, const u32& w_pitch) {
    require_linear_grid();
    require_threads(WarpGroup::block);
    const MadeBlocks<Unit> blocks(is.format);
    const auto all = value(columns / 32u), pieces = value((all + 7u) / 8u), lane = value(lane_id());
    const auto row = value(WarpGroup::row() / pieces);
    const auto first = value((WarpGroup::row() - row * pieces) * blocks_of_warp);
    const auto count = value(select(row < rows, min(all - first, blocks_of_warp), 0u));
    for (std::uint32_t k = 0; k < blocks_of_warp / 4; ++k) {
        const auto i = value(lane + 32 * k), block = value(i / 8u);  // which four of the warp
        const auto is_there = value(block < count);
        const auto number = [&](std::uint32_t e) -> F {
            return value(cast<f32>(x.load_if(is_there, row * x_pitch + first * 32u + i * 4u + e, X(0.0f))));
        };
        const FourNumbers four = [&]() -> FourNumbers {
            if (!is.x_is_aligned) return {number(0), number(1), number(2), number(3)};
            const auto lanes =
                value(cast<f32>(x.template load_if<4>(is_there, row * x_pitch + first * 8u + i, X(0.0f))));
            return {lanes[0], lanes[1], lanes[2], lanes[3]};
        }();
        blocks.put(block, value(lane % 8u), made_block(is.format, four, value(lane % 8u)));
    }
    sync_warp();
    blocks.store(w, value(blocks.units(value(row * w_pitch)) + blocks.of_blocks(first)), count);
}

template <class X>
KernelHandle made_of(const QuantiserKernel& is) {
    return kernel(is.name().c_str(), params("x", "w", "rows", "columns", "x_pitch", "w_pitch"),
                  [is](In<X> x, Out<std::uint8_t> w, u32 rows, u32 columns, u32 x_pitch, u32 w_pitch) {
                      if (bytes_of(is.format) % 2 == 0)
                          record_quantiser<std::uint16_t>(is, x, w, rows, columns, x_pitch, w_pitch);
                      else
                          record_quantiser<std::uint8_t>(is, x, w, rows, columns, x_pitch, w_pitch);
                  })
        .require(multiple_of<32>("columns"))
        .launch_bounds(WarpGroup::block)
        .handle();
}

}  // namespace

bool QuantiserKernel::takes(Quantised format) {
    return format == Quantised::Q8_0 || format == Quantised::Q4_0 || format == Quantised::MXFP4;
}

std::string QuantiserKernel::name() const {
    return fmt::format("quantise_{}_{}", runtime::find_info(format)->name, ir::info(x).name);
}

KernelHandle QuantiserKernel::make() const {
    switch (x) {
        case ir::Type::F16: return made_of<half>(*this);
        case ir::Type::BF16: return made_of<bfloat16>(*this);
        default: return made_of<float>(*this);
    }
}

const KernelHandle& QuantiserKernel::handle() const { return Kernels<QuantiserKernel>::of(*this); }

}  // namespace ikat::stdlib
