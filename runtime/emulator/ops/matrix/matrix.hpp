// SPDX-License-Identifier: Apache-2.0
// Matrices that are distributed over the threads of a warp: their products (mma), and how they get there (ldmatrix).
//
// The rows of a and the columns of b belong to the quads of a warp: lane l holds row l / 4 of a (in a second register
// row l / 4 + 8), column l / 4 of b, and of each the elements that fill 32 bits (an f64: 64), from l % 4 times as many
// on. So the 32 lanes of a register are a block of 8 rows of a, 8 columns of b, one after the other. In c and d a lane
// holds two adjacent elements of a row: elements 2 l and 2 l + 1 of a block of 8 x 8.
// m8n8k4 of f16 is different: it is four products, each of eight threads (matrix.cpp).
//
// Of a sparse a, half of the elements are held, as a dense matrix of half as many columns: two of each chunk of four,
// two pairs of eight if they have 4 bits, one of two if they are tf32. 4 bits of metadata for each chunk say which.
#pragma once
#include <bit>
#include <optional>
#include <string_view>

#include "runtime/emulator/ops/handlers.hpp"

namespace ikat::emulator {

/// What is multiplied, and in how many blocks. The list d of the op has the registers of d, a, b and c; y is bits(), x
/// a register with all lanes as its members.
struct MatrixProduct {
    enum class Element : std::uint8_t { F16, BF16, TF32, F64, E4M3, E5M2, S8, U8, S4, U4, Bit };
    enum class Sum : std::uint8_t { F16, F32, F64, S32 };
    Element a = Element::F16, b = Element::F16;
    Sum c = Sum::F32, d = Sum::F32;
    std::uint8_t row_blocks = 1;  // of 8 rows
    std::uint8_t k_blocks = 1;    // of as many columns as the registers of a quad hold
    bool saturates = false;
    bool is_and = false;        // of bits: and, not xor
    bool of_quads = false;      // m8n8k4 of f16 ...
    bool a_columns = false;     // ... with columns of a in a thread
    bool b_rows = false;        // ... with rows of b
    bool is_sparse = false;     // a; then the list also has the metadata, at its end
    bool is_ordered = false;    // ... whose places are in ascending order
    std::uint8_t selector = 0;  // ... which threads of a quad hold it

    constexpr std::uint32_t bits() const {
        const bool flags[] = {saturates, is_and, of_quads, a_columns, b_rows};
        std::uint32_t all = 0;
        for (unsigned i = 0; i < 5; ++i) all |= std::uint32_t(flags[i]) << i;
        return all | std::uint32_t(a) << 5 | std::uint32_t(b) << 9 | std::uint32_t(c) << 13 | std::uint32_t(d) << 15 |
               std::uint32_t(row_blocks) << 17 | std::uint32_t(k_blocks) << 20 | std::uint32_t(is_sparse) << 23 |
               std::uint32_t(is_ordered) << 24 | std::uint32_t(selector) << 25;
    }
    static constexpr MatrixProduct of(std::uint32_t bits) {
        const auto flag = [&](int i) { return (bits >> i & 1) != 0; };
        return {.a = Element(bits >> 5 & 15),
                .b = Element(bits >> 9 & 15),
                .c = Sum(bits >> 13 & 3),
                .d = Sum(bits >> 15 & 3),
                .row_blocks = std::uint8_t(bits >> 17 & 7),
                .k_blocks = std::uint8_t(bits >> 20 & 7),
                .saturates = flag(0),
                .is_and = flag(1),
                .of_quads = flag(2),
                .a_columns = flag(3),
                .b_rows = flag(4),
                .is_sparse = flag(23),
                .is_ordered = flag(24),
                .selector = std::uint8_t(bits >> 25 & 3)};
    }

    // Registers of a thread.
    unsigned a_registers() const {
        return of_quads ? 2 : is_sparse ? row_blocks * k_blocks / 2 : row_blocks * k_blocks;
    }
    unsigned b_registers() const { return of_quads ? 2 : k_blocks; }
    unsigned registers_of(Sum sum) const { return (sum == Sum::F16 ? 1u : 2u) * (of_quads ? 4u : row_blocks); }
};
/// By the names of types in PTX.
std::optional<MatrixProduct::Element> element_named(std::string_view name);
std::optional<MatrixProduct::Sum> sum_named(std::string_view name);
constexpr unsigned element_bits(MatrixProduct::Element element) {
    using enum MatrixProduct::Element;
    switch (element) {
        case F64: return 64;
        case TF32: return 32;
        case F16:
        case BF16: return 16;
        case S4:
        case U4: return 4;
        case Bit: return 1;
        default: return 8;
    }
}

/// The metadata of a sparse a, by what each row has: chunks, of which this many elements are kept.
struct SparseRows {
    unsigned kept, chunks;
    bool is_narrow;  // elements of 8 or 4 bits

    static constexpr SparseRows of(const MatrixProduct& product) {
        const unsigned bits = element_bits(product.a), kept = bits == 32 ? 1 : bits == 4 ? 4 : 2;
        return {kept, product.k_blocks * (128 / bits) / (2 * kept), bits < 16};
    }
    /// The lane and the lowest bit of the 4 bits of a chunk. A register has 8 chunks of one row if elements are narrow
    /// (of rows of 8 chunks this was seen on an H200), otherwise 4 of each of two rows, 8 rows apart.
    struct Place {
        unsigned lane, bit;
    };
    constexpr Place place(unsigned row, unsigned chunk, unsigned selector) const {
        const unsigned quad = row % 8 * 4, lower = row / 8;
        if (is_narrow) return {quad + 2 * (selector + chunk / 8) + lower, chunk % 8 * 4};
        const unsigned thread = chunks == 4 ? selector : 2 * selector + chunk / 4;
        return {quad + thread, 16 * lower + chunk % 4 * 4};
    }
    /// Selectors that there are.
    constexpr unsigned selectors() const { return 16 / chunks; }
    /// The column of an element, of which the 4 bits of its chunk are given.
    constexpr unsigned column(unsigned held, unsigned bits) const {
        const unsigned chunk = held / kept, i = held % kept;
        if (kept == 1) return 2 * chunk + (bits >> 3);
        const unsigned together = kept / 2;  // elements that are kept together
        return 2 * kept * chunk + (bits >> i / together * 2 & 3) * together + i % together;
    }
    /// Whether the 4 bits mean something.
    constexpr bool has_meaning(unsigned bits, bool is_ordered) const {
        const unsigned first = bits & 3, second = bits >> 2;
        if (kept == 1) return bits == 0b1110 || bits == 0b0100;
        return is_ordered ? first < second : first != second;
    }
};

/// m8n8k4 of f16: the place, 8 * row + column, of element i of c or d that one of a product's eight threads holds.
constexpr unsigned place_in_quads(MatrixProduct::Sum sum, unsigned thread, unsigned i) {
    if (sum == MatrixProduct::Sum::F16) return 8 * thread + i;
    return 8 * ((thread & 1) + (i & 2) + (thread & 4)) + (i & 4) + (thread & 2) + (i & 1);
}

/// The operands of an op with a list.
struct ListedOperands {
    const std::uint32_t* list;
    std::uint32_t offset(unsigned i) const { return list[1 + 2 * i]; }
    std::uint32_t bytes(unsigned i) const { return list[2 + 2 * i]; }
};

/// The handlers of the products: by kind, because of how they are computed.
enum class ProductKind : std::uint8_t { Floats, Doubles, Integers, Bits, Quads };
constexpr ProductKind kind_of(const MatrixProduct& product) {
    using enum MatrixProduct::Element;
    if (product.of_quads) return ProductKind::Quads;
    if (product.a == F64) return ProductKind::Doubles;
    if (product.a == Bit) return ProductKind::Bits;
    return product.d == MatrixProduct::Sum::S32 ? ProductKind::Integers : ProductKind::Floats;
}
Behaviour select_matrix_product(ProductKind kind);
/// The first lane whose metadata for a sparse a is undefined, in checked code, or has no meaning; none if all is well.
std::optional<unsigned> wrong_metadata(const MicroOp* op, const Warp* w, const std::byte* frame);
/// An element of d is undefined if one of its row of a, of its column of b, or its own of c is. To be called before d
/// is written.
void matrix_definedness(const MicroOp* op, Warp* w);

/// wmma: the products that it has.
struct FragmentShape {
    std::uint8_t m, n, k;
};
inline constexpr FragmentShape fragment_shapes[] = {{16, 16, 16}, {8, 32, 16}, {32, 8, 16}, {16, 16, 8},
                                                    {8, 8, 4},    {8, 8, 32},  {8, 8, 128}};
/// d = a * b + c of fragments (matrix_fragments.cpp). The list d of the op has their registers, d first; y is bits(), x
/// the members.
struct FragmentProduct {
    MatrixProduct::Element a = MatrixProduct::Element::F16, b = MatrixProduct::Element::F16;
    MatrixProduct::Sum c = MatrixProduct::Sum::F32, d = MatrixProduct::Sum::F32;
    std::uint8_t shape_number = 0;
    bool saturates = false, is_and = false;

    constexpr std::uint32_t bits() const {
        return std::uint32_t(a) | std::uint32_t(b) << 4 | std::uint32_t(c) << 8 | std::uint32_t(d) << 10 |
               std::uint32_t(shape_number) << 12 | std::uint32_t(saturates) << 16 | std::uint32_t(is_and) << 17;
    }
    static constexpr FragmentProduct of(std::uint32_t bits) {
        return {.a = MatrixProduct::Element(bits & 15),
                .b = MatrixProduct::Element(bits >> 4 & 15),
                .c = MatrixProduct::Sum(bits >> 8 & 3),
                .d = MatrixProduct::Sum(bits >> 10 & 3),
                .shape_number = std::uint8_t(bits >> 12 & 15),
                .saturates = (bits >> 16 & 1) != 0,
                .is_and = (bits >> 17 & 1) != 0};
    }
    FragmentShape shape() const { return fragment_shapes[shape_number]; }
    unsigned a_registers() const { return registers_for(a, shape().m * shape().k); }
    unsigned b_registers() const { return registers_for(b, shape().n * shape().k); }
    unsigned registers_of(MatrixProduct::Sum sum) const {
        return shape().m * shape().n / (sum == MatrixProduct::Sum::F16 ? 64u : 32u);
    }

private:
    static unsigned registers_for(MatrixProduct::Element element, unsigned count) {
        if (element == MatrixProduct::Element::F16) return 8;  // some hold an element more than once
        return count * element_bits(element) / (element == MatrixProduct::Element::F64 ? 2048 : 1024);
    }
};
Behaviour select_fragment_product();
/// Waits for the whole warp.
Behaviour select_meet_warp();

/// Void for integers.
constexpr Type type_of(MatrixProduct::Element element) {
    using enum MatrixProduct::Element;
    switch (element) {
        case F16: return Type::F16;
        case BF16: return Type::BF16;
        case TF32: return Type::F32;
        case F64: return Type::F64;
        case E4M3: return Type::E4M3;
        case E5M2: return Type::E5M2;
        default: return Type::Void;
    }
}
constexpr Type type_of(MatrixProduct::Sum sum) {
    using enum MatrixProduct::Sum;
    return sum == F16 ? Type::F16 : sum == F32 ? Type::F32 : sum == F64 ? Type::F64 : Type::Void;
}
template <class Product>
Arithmetic arithmetic_of(const Product& product) {
    return {.to = type_of(product.d),
            .from = {type_of(product.a), type_of(product.b), type_of(product.c)},
            .registers = {std::uint8_t(product.a_registers()), std::uint8_t(product.b_registers()),
                          std::uint8_t(product.registers_of(product.c))}};
}

/// ldmatrix and stmatrix: the registers are the list d; rows are at the addresses a + b, in shared memory; y is bits(),
/// x the members.
struct MatrixAccess {
    std::uint8_t matrices = 1;
    bool transposes = false;
    bool is_wide = false;     // addresses have 8 bytes
    bool is_generic = false;  // and are generic

    constexpr std::uint32_t bits() const {
        return matrices | std::uint32_t(transposes) << 4 | std::uint32_t(is_wide) << 5 | std::uint32_t(is_generic) << 6;
    }
    static constexpr MatrixAccess of(std::uint32_t bits) {
        return {std::uint8_t(bits & 15), (bits >> 4 & 1) != 0, (bits >> 5 & 1) != 0, (bits >> 6 & 1) != 0};
    }
};
Behaviour select_load_matrices();
Behaviour select_store_matrices();
/// movmatrix: d = a, its rows as columns; x the members.
Behaviour select_transpose_matrix();

/// Whether all 32 lanes execute the op. If not, the warp leaves: to wait for the others, or with a finding if there are
/// none to wait for.
inline bool whole_warp(const MicroOp* op, Warp* w, std::uint32_t mask) {
    if (mask == all_lanes) [[likely]]
        return true;
    if (!(w->live & ~mask)) {
        fail(w, op, {.code = FaultCode::PartialWarp, .lane = unsigned(std::countr_zero(mask)), .lanes = ~w->live});
        return false;
    }
    w->leave = Leave::Rendezvous;
    w->pc = w->index_of(op);
    w->mask = mask;
    return false;
}

}  // namespace ikat::emulator
