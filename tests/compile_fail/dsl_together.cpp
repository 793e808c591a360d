// SPDX-License-Identifier: Apache-2.0
// clang-format off
// Threads together, accesses with an order, PTX as text: each says what it is for.
// expect: match_any() is for i32, u32, i64 and u64: compare floats by their bits, bit_cast<u32>()
// expect: match_all() is for i32, u32, i64 and u64: compare floats by their bits, bit_cast<u32>()
// expect: reduce_add() is for i32 and u32
// expect: reduce_xor() is for i32 and u32
// expect: reduce_add() of a vector is for elements of type float
// expect: what other threads change meanwhile is read and written: declare the parameter as InOut<T>
// expect: an access with an order is for elements of the device's own types, no 8- or 16-bit integers
// expect: operands of ptx() say what the text does with them: in(value), out(variable), inout(variable)
// expect: out() takes a device variable: f32, u32, i32 ...
// expect: add_carry() is for i32, u32, i64 and u64
// expect: sub_borrow() is for i32, u32, i64 and u64
// errors: 11
#include <ikat/dsl.hpp>
using namespace ikat;

void misuse(f32 x, u32 u, u64 l, In<float> in_only, InOut<std::uint32_t> words, InOut<std::uint8_t> bytes) {
    match_any(x);
    match_all(x);
    reduce_add(l);
    reduce_xor(x);
    reduce_add(words.vec<2>(u), {1, 2});
    atomic_load(in_only[u]);
    volatile_load(bytes[u]);
    ptx("mov.u32 {0}, {1};", out(u), u);
    out(x + 1);
    add_carry(x, x);
    sub_borrow(x, x, 1);
}
