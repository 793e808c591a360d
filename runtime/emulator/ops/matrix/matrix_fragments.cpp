// SPDX-License-Identifier: Apache-2.0
// Products of the fragments of wmma, whose layout the ISA leaves open: part i of a lane's registers, counted from the
// lowest bits of the first register, is element 32 i + lane of the matrix, row after row (of b, column after column). A
// fragment with more parts than that holds the matrix more than once.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "codegen/ir/op/semantics.hpp"
#include "runtime/emulator/core/definedness.hpp"
#include "runtime/emulator/ops/matrix/matrix.hpp"

namespace ikat::emulator {

namespace {

using u32 = std::uint32_t;
using u64 = std::uint64_t;
using Element = MatrixProduct::Element;
using Sum = MatrixProduct::Sum;
namespace sem = ir::sem;

constexpr unsigned max_elements = 32 * 16;  // of a matrix

u32 word(const std::byte* frame, u32 offset, unsigned lane) {
    return reinterpret_cast<const u32*>(frame + offset)[lane];
}

double number_of(Element element, u32 bits) {
    switch (element) {
        case Element::F16: return double(float(half::from_bits(std::uint16_t(bits))));
        case Element::BF16: return double(std::bit_cast<float>(bits << 16));
        case Element::TF32: {
            const auto x = std::bit_cast<float>(bits);
            return x != x ? double(x) : double(std::bit_cast<float>(bits & 0xffffe000));
        }
        case Element::S8: return std::int8_t(bits);
        case Element::U8: return std::uint8_t(bits);
        case Element::S4: return std::int32_t(bits << 28) >> 28;
        default: return bits & 15;
    }
}

/// Where element i of a matrix is: in which of its registers, and from which bit on. Elements of less than 8 bits are
/// in words, adjacent ones.
struct ElementPlace {
    unsigned place, lane, bit;
};
ElementPlace place_of(unsigned bits, unsigned i) {
    const unsigned parts = bits == 64 ? 1 : 32 / bits, row = i / warp_size;
    if (bits < 8) return {row / parts, i / parts % warp_size, i % parts * bits};
    return {row / parts, i % warp_size, row % parts * bits};
}

/// A matrix of `count` elements in the registers from `first` on.
void gather(Element element, const ListedOperands& of, unsigned first, unsigned count, const std::byte* frame,
            double* to) {
    if (element == Element::F64) {
        std::memcpy(to, frame + of.offset(first), count * sizeof(double));
        return;
    }
    for (unsigned i = 0; i < count; ++i) {
        const auto [place, lane, bit] = place_of(element_bits(element), i);
        to[i] = number_of(element, word(frame, of.offset(first + place), lane) >> bit);
    }
}

u32 half_bits(double x) { return sem::convert<half>(x, Rounding::Nearest).bits; }

struct Matrices {
    double a[max_elements], b[max_elements], c[max_elements];
};

[[gnu::noinline]] void multiply_fragments(const MicroOp* op, Warp* w, std::byte* frame) {
    const FragmentProduct product = FragmentProduct::of(op->y);
    const auto [m, n, k] = product.shape();
    const ListedOperands of{w->lists + op->d};
    const unsigned a = product.registers_of(product.d), b = a + product.a_registers(), c = b + product.b_registers();
    if (product.a == Element::Bit) {
        u32 sums[64];
        for (u32 i = 0; i < 64; ++i) {
            u32 sum = 0;
            for (unsigned j = 0; j < 4; ++j) {  // a row of a, a column of b: four words
                const u32 x = word(frame, of.offset(a), i / 8 * 4 + j), y = word(frame, of.offset(b), i % 8 * 4 + j);
                sum += u32(std::popcount(product.is_and ? x & y : x ^ y));
            }
            sums[i] = sum + word(frame, of.offset(c + i / 32), i % 32);
        }
        for (unsigned r = 0; r < 2; ++r) std::memcpy(frame + of.offset(r), sums + 32 * r, 128);
        return;
    }
    Matrices matrices;
    gather(product.a, of, a, m * k, frame, matrices.a);
    gather(product.b, of, b, k * n, frame, matrices.b);
    for (unsigned i = 0; i < m * n; ++i) {
        double& sum = matrices.c[i];
        const unsigned lane = i % warp_size, part = i / warp_size;
        if (product.c == Sum::F64)
            sum = reinterpret_cast<const double*>(frame + of.offset(c + part))[lane];
        else if (product.c == Sum::F16)
            sum = double(
                float(half::from_bits(std::uint16_t(word(frame, of.offset(c + part / 2), lane) >> 16 * (part % 2)))));
        else if (product.c == Sum::F32)
            sum = double(std::bit_cast<float>(word(frame, of.offset(c + part), lane)));
        else
            sum = std::int32_t(word(frame, of.offset(c + part), lane));
    }
    for (unsigned i = 0; i < m; ++i)
        for (unsigned j = 0; j < n; ++j) {
            double& sum = matrices.c[n * i + j];
            for (unsigned l = 0; l < k; ++l) {
                const double x = matrices.a[k * i + l], y = matrices.b[k * j + l];
                sum = product.a == Element::F64 ? std::fma(x, y, sum) : sum + x * y;
            }
        }
    for (unsigned i = 0; i < m * n; ++i) {
        const double sum = matrices.c[i];
        const bool is_nan = sum != sum;
        const unsigned lane = i % warp_size, part = i / warp_size;
        if (product.d == Sum::F64) {
            reinterpret_cast<double*>(frame + of.offset(part))[lane] = is_nan ? sem::canonical_nan<double>() : sum;
            continue;
        }
        u32& cell = reinterpret_cast<u32*>(frame + of.offset(product.d == Sum::F16 ? part / 2 : part))[lane];
        if (product.d == Sum::F16)
            cell = part % 2 ? (cell & 0xffff) | half_bits(sum) << 16 : (cell & 0xffff0000) | half_bits(sum);
        else if (product.d == Sum::F32)
            cell = std::bit_cast<u32>(is_nan ? sem::canonical_nan<float>() : float(sum));
        else if (product.saturates)
            cell = u32(std::int32_t(std::clamp(sum, -0x1p31, 0x1p31 - 1)));
        else
            cell = u32(u64(std::int64_t(sum)));
    }
}

constexpr unsigned bits_of(Sum sum) { return sum == Sum::F64 ? 64 : sum == Sum::F16 ? 16 : 32; }

/// Whether an element of a matrix in the registers from `first` on is undefined.
bool is_undefined(const Warp* w, const ListedOperands& of, unsigned first, unsigned bits, unsigned i) {
    const auto [place, lane, bit] = place_of(bits, i);
    const u32* const masks = undefined_at(w, of.offset(first + place));
    u32 lanes = 0;
    for (unsigned byte = bit / 8; byte < (bit + bits + 7) / 8; ++byte) lanes |= masks[byte];
    return lanes >> lane & 1;
}

/// The rows of a, or the columns of b, of `length` elements each, in which one is undefined.
u32 undefined_lines(const Warp* w, const ListedOperands& of, unsigned first, unsigned bits, unsigned lines,
                    unsigned length) {
    u32 some = 0;
    for (unsigned i = 0; i < lines * length; ++i)
        if (is_undefined(w, of, first, bits, i)) some |= 1u << i / length;
    return some;
}

/// An element of d is undefined if one of its row of a, of its column of b, or its own of c is.
[[gnu::noinline]] void fragments_definedness(const MicroOp* op, Warp* w) {
    const FragmentProduct product = FragmentProduct::of(op->y);
    const auto [m, n, k] = product.shape();
    const ListedOperands of{w->lists + op->d};
    const unsigned results = product.registers_of(product.d), a = results, b = a + product.a_registers(),
                   c = b + product.b_registers();
    const u32 rows = undefined_lines(w, of, a, element_bits(product.a), m, k),
              columns = undefined_lines(w, of, b, element_bits(product.b), n, k);
    bool undefined[max_elements];  // before d, which may be c, changes
    for (unsigned i = 0; i < m * n; ++i)
        undefined[i] = (rows >> i / n & 1) || (columns >> i % n & 1) || is_undefined(w, of, c, bits_of(product.c), i);
    for (unsigned i = 0; i < results; ++i) std::fill_n(undefined_at(w, of.offset(i)), of.bytes(i), 0);
    const unsigned bits = bits_of(product.d);
    for (unsigned i = 0; i < m * n; ++i) {
        if (!undefined[i]) continue;
        const auto [place, lane, bit] = place_of(bits, i);
        u32* const masks = undefined_at(w, of.offset(place)) + bit / 8;
        for (unsigned byte = 0; byte < bits / 8; ++byte) masks[byte] |= 1u << lane;
    }
    for (unsigned i = 0; i < results; ++i) set_computed(w, of.offset(i), of.bytes(i), w->index_of(op));
}

template <bool Checked>
const MicroOp* fragment_product(const MicroOp* op, Warp* w, std::byte* frame, u32 mask) {
    if (!whole_warp(op, w, mask)) return nullptr;
    if constexpr (Checked) fragments_definedness(op, w);
    multiply_fragments(op, w, frame);
    IKAT_NEXT;
}

const MicroOp* meet_warp(const MicroOp* op, Warp* w, [[maybe_unused]] std::byte* frame, u32 mask) {
    if (!whole_warp(op, w, mask)) return nullptr;
    IKAT_NEXT;
}

}  // namespace

Behaviour select_fragment_product() {
    return {fragment_product<false>, {.operation = Op::Mma, .checked = fragment_product<true>}};
}
Behaviour select_meet_warp() { return {meet_warp, {OwnOp::MeetWarp}}; }

}  // namespace ikat::emulator
