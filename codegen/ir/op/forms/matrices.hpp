// SPDX-License-Identifier: Apache-2.0
// Products of small matrices that a warp computes together: D = A * B + C, of the shapes and types that PTX has (PTX
// ISA, mma). Each thread holds a few elements of each matrix, its fragment, in registers.
//
//     mma.f32 m16n8k16.bf16.bf16.f32, …     A: 16 x 16, B: 16 x 8 of bf16; C and D: 16 x 8 of f32
//
// Where the elements lie: lane 4g + t holds rows g and g + 8 of A, C and D, and column g of B. In the other direction
// a register of A and B holds e elements, from t * e on, and the next register those 4 * e further; C and D have
// columns 2t and 2t + 1.
//
// m8n8k4 of f16 is four products at once, each by a quad pair: lanes 4q to 4q + 3, which are its threads 0 to 3, and 16
// lanes further on threads 4 to 7. Thread j holds row j of A and column j of B. If A is transposed, it holds four
// elements of column j % 4, the first or, from thread 4 on, the last; so of row j % 4 of B. Of C and D of f16 it holds
// row j, of f32 two pairs of columns of two rows each (PTX ISA, "Matrix fragments for mma.m8n8k4 with .f16 ...").
#pragma once
#include <iterator>

#include "codegen/ir/op/forms/family.hpp"

namespace ikat::ir {

enum class MatrixElement : std::uint8_t { F16, BF16, TF32, F64, S8, U8, S4, U4, B1, E4M3, E5M2, F32, S32 };
inline constexpr std::string_view matrix_element_names[] = {"f16", "bf16", "tf32", "f64",  "s8",  "u8", "s4",
                                                            "u4",  "b1",   "e4m3", "e5m2", "f32", "s32"};

/// A is m x k, B is k x n, C and D are m x n.
struct MatrixShape {
    std::string_view name;
    std::uint16_t m, n, k;
};
inline constexpr MatrixShape matrix_shapes[] = {
    {"m8n8k4", 8, 8, 4},     {"m8n8k16", 8, 8, 16},     {"m8n8k32", 8, 8, 32},     {"m8n8k128", 8, 8, 128},
    {"m16n8k4", 16, 8, 4},   {"m16n8k8", 16, 8, 8},     {"m16n8k16", 16, 8, 16},   {"m16n8k32", 16, 8, 32},
    {"m16n8k64", 16, 8, 64}, {"m16n8k128", 16, 8, 128}, {"m16n8k256", 16, 8, 256},
};

/// The names of the shapes.
inline constexpr auto matrix_shape_names = [] {
    std::array<std::string_view, std::size(matrix_shapes)> out;
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = matrix_shapes[i].name;
    return out;
}();

/// Bits that an element takes in a register.
constexpr std::uint32_t matrix_bits(MatrixElement element) {
    switch (element) {
        case MatrixElement::F64: return 64;
        case MatrixElement::F16:
        case MatrixElement::BF16: return 16;
        case MatrixElement::S4:
        case MatrixElement::U4: return 4;
        case MatrixElement::B1: return 1;
        case MatrixElement::TF32:
        case MatrixElement::F32:
        case MatrixElement::S32: return 32;
        default: return 8;
    }
}

/// The type of the registers that hold elements, those of fewer than 32 bits packed, the first one lowest.
constexpr Type register_type(MatrixElement element) {
    switch (element) {
        case MatrixElement::F16: return Type::F16x2;
        case MatrixElement::BF16: return Type::BF16x2;
        case MatrixElement::F64: return Type::F64;
        case MatrixElement::F32: return Type::F32;
        case MatrixElement::S32: return Type::I32;
        default: return Type::U32;
    }
}

/// The registers of each lane for `count` elements of a matrix.
constexpr std::uint32_t matrix_registers(std::uint32_t count, MatrixElement element) {
    const std::uint32_t width = matrix_bits(element);
    return count / 32 * width / (width == 64 ? 64 : 32);
}

/// "m16n8k16.bf16.bf16.f32", "m16n8k32.s8.u8.s32.sat", "m8n8k4.f16.f16.f32.trans_a"
struct MatrixForm {
    enum class Variant : std::uint8_t {
        Plain,
        Saturates,  // sums of integers are clamped, else they wrap
        Xor,        // of bits: how many differ,
        And,        // or how many are set in both
    };
    enum Flag : std::uint8_t { TransposesA = 1, TransposesB = 2 };  // of quad pairs
    static constexpr std::string_view variant_names[] = {"", "sat", "xor", "and"};
    static constexpr std::string_view flag_names[] = {"trans_a", "trans_b"};
    std::uint8_t extent = 0;        // in matrix_shapes
    MatrixElement a{}, b{}, sum{};  // sum: of C and D
    Variant variant = Variant::Plain;
    std::uint8_t flags = 0;
    std::uint8_t unused[2] = {};

    constexpr MatrixShape extents() const {
        return extent < std::size(matrix_shapes) ? matrix_shapes[extent] : MatrixShape{"", 0, 0, 0};
    }
    constexpr bool has(Flag flag) const { return flags & flag; }
    /// Whether it is four products, each by eight lanes.
    constexpr bool of_quad_pairs() const { return a == MatrixElement::F16 && extents().m == 8; }
    constexpr std::uint32_t products() const { return of_quad_pairs() ? 4 : 1; }
    constexpr std::uint32_t registers_of_a() const {
        return matrix_registers(products() * extents().m * extents().k, a);
    }
    constexpr std::uint32_t registers_of_b() const {
        return matrix_registers(products() * extents().k * extents().n, b);
    }
    constexpr std::uint32_t registers_of_sum() const {
        return matrix_registers(products() * extents().m * extents().n, sum);
    }

    static constexpr std::string_view noun = "matrix product";
    template <class F = MatrixForm>
    static constexpr auto fields() {
        return std::tuple{
            Named{&F::extent, matrix_shape_names,
                  "a shape and the elements of A, B and C, such as m16n8k16.bf16.bf16.f32; of "
                  "integers .sat may follow, of bits .xor or .and does, of m8n8k4.f16 .trans_a and .trans_b may"},
            Named{&F::a, matrix_element_names, ""},
            Named{&F::b, matrix_element_names, ""},
            Named{&F::sum, matrix_element_names, ""},
            Named{&F::variant, F::variant_names, ""},
            Flags{&F::flags, F::flag_names, ""}};
    }
    constexpr bool exists() const;
    constexpr Type type(Type) const { return register_type(sum); }
    constexpr std::string_view problem(Op, Type) const { return ""; }
    constexpr Shape shape(Shape row) const {
        row.arguments = {exactly(register_type(a)), exactly(register_type(b)), Slot::T};
        row.count = std::uint8_t(registers_of_sum());
        row.counts = {std::uint8_t(registers_of_a()), std::uint8_t(registers_of_b()), row.count};
        return row;
    }
    constexpr MemoryAccess access(const MemoryAccess& row) const { return row; }
    constexpr bool move(Slot, std::int32_t) { return false; }
    constexpr Conduct conduct(const Conduct& row) const { return row; }
};

/// Whether PTX has the form of dense matrices, on one target or another.
constexpr bool MatrixForm::exists() const {
    const MatrixForm& form = *this;
    if (unused[0] || unused[1]) return false;
    using enum MatrixElement;
    const int m = form.extents().m, k = form.extents().k;
    const auto both = [&](MatrixElement one, MatrixElement other) {
        return (form.a == one || form.a == other) && (form.b == one || form.b == other);
    };
    const auto is_k = [&](auto... some) { return ((k == some) || ...); };
    const bool plain = form.variant == Variant::Plain, large = m == 16;
    if (form.flags > (form.of_quad_pairs() ? 3 : 0)) return false;
    if (both(F16, F16)) return plain && (large ? is_k(8, 16) : is_k(4)) && (form.sum == F16 || form.sum == F32);
    if (both(BF16, BF16)) return plain && large && is_k(8, 16) && form.sum == F32;
    if (both(TF32, TF32)) return plain && large && is_k(4, 8) && form.sum == F32;
    if (both(F64, F64)) return plain && (large ? is_k(4, 8, 16) : is_k(4)) && form.sum == F64;
    if (both(E4M3, E5M2)) return plain && large && is_k(16, 32) && (form.sum == F16 || form.sum == F32);
    const bool counts = form.sum == S32 && (plain || form.variant == Variant::Saturates);
    if (both(S8, U8)) return counts && (large ? is_k(16, 32) : is_k(16));
    if (both(S4, U4)) return counts && (large ? is_k(32, 64) : is_k(32));
    if (both(B1, B1))
        return form.sum == S32 && (form.variant == Variant::Xor || form.variant == Variant::And) &&
               (large ? is_k(128, 256) : is_k(128));
    return false;
}
inline constexpr std::uint32_t matrix_row_bytes = 16;

/// How many matrices of 8 x 8 elements of 16 bits are loaded or stored together, and whether as their transposes: "x4",
/// "x4.trans".
struct MatricesForm {
    std::uint8_t count = 1;  // 1, 2 or 4
    bool transposed = false;

    static constexpr std::string_view noun = "number of matrices";
    template <class F = MatricesForm>
    static constexpr auto fields() {
        return std::tuple{Number{&F::count, "x1, x2 or x4, ", Word{4}, "x"},
                          Flag{&F::transposed, "trans", "and .trans for transposes"}};
    }
    constexpr bool exists() const { return count == 1 || count == 2 || count == 4; }
    constexpr Type type(Type row) const { return row; }
    constexpr std::string_view problem(Op, Type) const { return ""; }
    /// One register for each matrix: a result, or an operand after the address.
    constexpr Shape shape(Shape row) const {
        if (row.result != Slot::None)
            row.count = count;
        else
            row.counts[1] = count;
        return row;
    }
    constexpr MemoryAccess access(MemoryAccess row) const {
        row.bytes = matrix_row_bytes;  // of the rows, the one whose address this lane has
        return row;
    }
    constexpr bool move(Slot, std::int32_t) { return false; }
    constexpr Conduct conduct(const Conduct& row) const { return row; }
};

}  // namespace ikat::ir
