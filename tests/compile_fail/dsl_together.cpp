// SPDX-License-Identifier: Apache-2.0
// clang-format off
// Threads together, accesses with an order, PTX as text: each says what it is for.
// expect: match_any() is for integers: compare floats by their bits, bit_cast<u32>()
// expect: match_all() is for integers: compare floats by their bits, bit_cast<u32>()
// expect: all_match() is for integers: compare floats by their bits, bit_cast<u32>()
// expect: reduce_add() is for integers of 8, 16 and 32 bits
// expect: reduce_xor() is for integers of 8, 16 and 32 bits
// expect: reduce_add() of a vector is for elements of type float, half, bfloat16 and pairs of these
// expect: shuffles exchange numbers: ballot() gives a pred of all lanes
// expect: this atomic is not for elements of this type
// expect: an operand of inline_ptx() is a value that fits a register: for 8-bit floats pass the bits, bit_cast<u8>()
// expect: memory that other threads change is read and written: declare the parameter as InOut<T>
// expect: operands of inline_ptx() say what the text does with them: in(value), out(variable), inout(variable)
// expect: out() takes a device variable: f32, u32, i32 ...
// expect: add_carry() is for i32, u32, i64 and u64
// expect: sub_borrow() is for i32, u32, i64 and u64
// errors: 14
#include <ikat/dsl.hpp>
using namespace ikat;

void misuse(f32 x, u32 u, u64 l, pred p, In<float> in_only, InOut<std::uint32_t> words, InOut<std::uint8_t> bytes, In<e4m3> small) {
    match_any(x);
    match_all(x);
    all_match(x);
    shuffle_xor(p, 1);
    atomic_add(bytes[u], 1);
    inline_ptx("mov.u32 {0}, {1};", out(u), in(small[u]));
    reduce_add(l);
    reduce_xor(x);
    reduce_add(words.vec<2>(u), {1, 2});
    atomic_load(in_only[u]);
    inline_ptx("mov.u32 {0}, {1};", out(u), u);
    out(x + 1);
    add_carry(x, x);
    sub_borrow(x, x, true);
}
