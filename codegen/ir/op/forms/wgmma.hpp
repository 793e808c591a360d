// SPDX-License-Identifier: Apache-2.0
// Products of matrices that the four warps of a warpgroup compute together, in flight until a wait (PTX ISA, wgmma):
// D = A * B + D. A is 64 x k, B is k x n; both lie in shared memory, where a descriptor says how, or A in registers.
//
//     wgmma.f32 m64n128k16.bf16.bf16.f32, %a, %b, %d0, …    64-bit descriptors; adds to D, which stays where it is
//     wgmma.f32 m64n128k16.bf16.bf16.f32.overwrite, %a, %b  D = A * B
//     wgmma.f32 m64n8k16.bf16.bf16.f32.pred.registers, %a0, %a1, %a2, %a3, %b, %p, %d0, …     adds if %p, else
//     overwrites
//
// Warp w holds rows 16 w to 16 w + 15, as it does in matrices.hpp, of D and of an A in registers.
#pragma once
#include "codegen/ir/op/forms/matrices.hpp"

namespace ikat::ir {

struct WgmmaForm {
    enum class Sum : std::uint8_t { Adds, Overwrites, ByPredicate };
    enum Flag : std::uint8_t {
        ARegisters = 1,
        TransposesA = 2,  // the rows of A, or the columns of B, are contiguous, else what both share, k
        TransposesB = 4,
        NegatesA = 8,
        NegatesB = 16,
        Saturates = 32,  // sums of integers are clamped, else they wrap
    };
    static constexpr std::string_view sum_names[] = {"", "overwrite", "pred"};
    static constexpr std::string_view flag_names[] = {"registers", "trans_a", "trans_b", "neg_a", "neg_b", "sat"};
    std::uint8_t columns = 0;  // n / 8
    MatrixElement a{}, b{}, sum{};
    Sum adds = Sum::Adds;
    std::uint8_t flags = 0;
    std::uint8_t unused[2] = {};

    constexpr bool has(Flag flag) const { return flags & flag; }
    constexpr std::uint32_t n() const { return 8u * columns; }
    /// 32 bytes of A's elements.
    constexpr std::uint32_t k() const { return 256 / matrix_bits(a); }
    constexpr std::uint32_t registers_of_sum() const { return n() * (sum == MatrixElement::F16 ? 32 : 64) / 128; }
    constexpr std::uint32_t operands_of_a() const { return has(ARegisters) ? 4 : 1; }
    /// Before those of D, if it has these.
    constexpr std::uint32_t factors() const { return operands_of_a() + 1 + (adds == Sum::ByPredicate); }
    constexpr Type register_of_a() const { return a == MatrixElement::TF32 ? Type::F32 : register_type(a); }

    static constexpr std::string_view noun = "matrix product";
    static std::string write(const WgmmaForm& form);  // "m64n128k16"
    static bool read(WgmmaForm& form, std::string_view word);
    template <class F = WgmmaForm>
    static constexpr auto fields() {
        return std::tuple{
            Spelled{&F::write, &F::read,
                    "a shape and the elements of A, B and D, such as m64n128k16.bf16.bf16.f32, whether it adds, "},
            Named{&F::a, matrix_element_names, ""},
            Named{&F::b, matrix_element_names, ""},
            Named{&F::sum, matrix_element_names, ""},
            Named{&F::adds, F::sum_names},
            Flags{&F::flags, F::flag_names, ", and {}"}};
    }
    constexpr bool exists() const;
    constexpr Type type(Type) const { return register_type(sum); }
    constexpr std::string_view problem(Op, Type) const { return ""; }
    /// What it adds to becomes its results.
    constexpr Shape shape(Shape row) const {
        const bool overwrites = adds == Sum::Overwrites;
        row.count = std::uint8_t(registers_of_sum());
        row.arguments = {exactly(has(ARegisters) ? register_of_a() : Type::U64), exactly(Type::U64), Slot::Pred,
                         Slot::T};
        row.counts = {std::uint8_t(operands_of_a()), 1, adds == Sum::ByPredicate,
                      overwrites ? std::uint8_t(0) : row.count};
        if (!overwrites) row.tie = {0, std::uint16_t(factors()), row.count};
        return row;
    }
    constexpr MemoryAccess access(const MemoryAccess& row) const { return row; }
    constexpr bool move(Slot, std::int32_t) { return false; }
    constexpr Conduct conduct(const Conduct& row) const { return row; }
};
inline constexpr std::uint32_t warpgroup = 128;  // threads

/// Whether PTX has the form of dense matrices.
constexpr bool WgmmaForm::exists() const {
    const WgmmaForm& form = *this;
    if (unused[0] || unused[1]) return false;
    using enum MatrixElement;
    using Form = WgmmaForm;
    const auto both = [&](MatrixElement one, MatrixElement other) {
        return (form.a == one || form.a == other) && (form.b == one || form.b == other);
    };
    if (form.columns < 1 || form.columns > 32 || form.adds > Form::Sum::ByPredicate || form.flags >> 6) return false;
    if (form.has(Form::ARegisters) && form.has(Form::TransposesA)) return false;
    const auto only = [&](int flags) { return (form.flags & ~(flags | Form::ARegisters)) == 0; };
    constexpr int signs = Form::NegatesA | Form::NegatesB, transposes = Form::TransposesA | Form::TransposesB;
    const bool to_f32 = form.sum == F32, to_half = to_f32 || form.sum == F16;
    if (both(F16, F16)) return to_half && only(signs | transposes);
    if (both(BF16, BF16)) return to_f32 && only(signs | transposes);
    if (both(TF32, TF32)) return to_f32 && only(signs);
    if (both(E4M3, E5M2)) return to_half && only(signs);
    const bool counts = form.sum == S32 && (form.columns <= 4 || form.columns % 2 == 0);
    if (both(S8, U8)) return counts && only(Form::Saturates);
    if (both(B1, B1)) return counts && only(0);
    return false;
}

/// 16-byte pieces of what the descriptor names, and how they are swizzled: within this many bytes, or 0.
constexpr Word matrix_descriptor(std::uint32_t swizzle, std::uint32_t leading_bytes, std::uint32_t stride_bytes) {
    const Word mode = swizzle == 128 ? 1 : swizzle == 64 ? 2 : swizzle == 32 ? 3 : 0;
    return Word{leading_bytes >> 4} << 16 | Word{stride_bytes >> 4} << 32 | mode << 62;
}

}  // namespace ikat::ir
