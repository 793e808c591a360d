// SPDX-License-Identifier: Apache-2.0
// Selects handlers by operation, with what they do. Each family's file is compiled once per instruction set (through
// Highway's foreach_target); the functions here choose the version for this machine when a kernel is decoded. All
// return nullptr for a combination that PTX does not have, which the decoder reports with the line.
#pragma once
#include "runtime/emulator/core/micro_info.hpp"
#include "runtime/emulator/core/warp.hpp"

namespace ikat::emulator {

/// d = operation of a, b and c, lane by lane; in one of its modes, if the operation has some, but Dp2a, whose form, as
/// Dp4a's, is in op.x (DotSignedA …). Shl, Shr and FunnelShift take their amount, b or c, as 32 bits. Logic3 takes its
/// table from op.x. MulWide and MadWide give the type of twice the bits.
Behaviour select_integer(Operation operation, Type type, std::uint64_t mode = 0);
inline constexpr std::uint32_t DotSignedA = 1, DotSignedB = 2, DotHigh = 4;
/// testp in a mode of Op::TestFloat: predicate d = test of a.
Behaviour select_test(Type type, std::uint32_t mode);

/// Rounding other than to nearest: for + - * / fma sqrt and rcp of f32 and f64. Packed types: both lanes of a register.
Behaviour select_float(Operation operation, Type type, bool ftz, Rounding rounding);

/// A handler for a sequence of y ops with this handler, none of which writes the a of a later one; nullptr if there is
/// none. If lanes are missing it executes only its own op.
Handler select_run(Handler of);
/// One that does the work of a wide product of 32 bits and of the 64-bit sum after it, if that adds the product to
/// something else; or nullptr. If lanes are missing it does the product alone.
Handler select_product_and_sum(const MicroOp& product, const MicroOp& sum);

enum class Comparison : std::uint8_t { Eq, Ne, Lt, Le, Gt, Ge, Equ, Neu, Ltu, Leu, Gtu, Geu, Num, Nan };
/// Predicate d = a ? b.
Behaviour select_compare(Comparison comparison, Type type, bool ftz);
/// d = c ? a : b, c a predicate, for registers of 4 or 8 bytes.
Behaviour select_choose(unsigned bytes);

/// d = a converted. `special`: op.x has the details (see below); else like the plain PTX instruction with that
/// rounding.
Behaviour select_convert(Type to, Type from, Rounding rounding, bool special);
/// The bits of op.x of a conversion above its rounding.
inline constexpr std::uint32_t RoundToIntegral = 4, SaturateResult = 8, FlushSubnormals = 16, ReluResult = 32,
                               FiniteResult = 64;
/// d = a: the bits of a register of 4 or 8 bytes; the low bits of a wider one, or zero-extended from a narrower one.
Behaviour select_move(unsigned to_bytes, unsigned from_bytes);
/// d of 4 or 8 bytes = a in its low half, b in its high half.
Behaviour select_pack(unsigned bytes);
/// d = literal x (and y above it, for 8 bytes).
Behaviour select_literal(unsigned bytes);

/// Access vectors of `count` elements (1, 2 or 4) of `bytes` each, at address a (a register of 4 or 8 bytes) + x.
/// Elements are d, b, c, y. Loads zero the bits above an element of less than 4 bytes.
Behaviour select_load(Space space, unsigned address_bytes, unsigned bytes, unsigned count);
Behaviour select_store(Space space, unsigned address_bytes, unsigned bytes, unsigned count);
/// d = the parameter at byte x, the same for all lanes.
Behaviour select_load_parameter(unsigned bytes);

enum class Atomic : std::uint8_t { Add, Min, Max, Inc, Dec, And, Or, Xor, Exchange, CompareSwap };
/// d = old value at address a + x; then operands b and c (the new value of CompareSwap). op.y is the Space.
Behaviour select_atomic(Atomic atomic, Type type, Space space);
/// Elements in memory: at = at op value, count times. Other host threads may do the same if it is parallel.
using Reducer = void (*)(std::byte* at, const std::byte* value, std::size_t count, bool parallel);
/// nullptr for a combination that PTX does not have. Sums of f32 flush subnormals.
Reducer select_reducer(Atomic atomic, Type type);

/// A 128-bit atomic at address a + x, op.y is the Space. The list d: two words for the old value, two for the new one,
/// and, if `compares`, two for the expected old value.
Behaviour select_wide_atomic(bool compares, Space space);

/// "AVX3", "AVX2", ...
std::string_view target_name();

}  // namespace ikat::emulator
