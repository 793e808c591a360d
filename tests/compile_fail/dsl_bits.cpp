// SPDX-License-Identifier: Apache-2.0
// clang-format off
// Each function of bits says which types it is for.
// expect: popcount() is for i32, u32, i64 and u64, and gives a u32
// expect: bit_reverse() is for i32, u32, i64 and u64
// expect: bit_extract() is for i32, u32, i64 and u64
// expect: a bit's position, a length and an amount are u32: convert with cast<u32>()
// expect: bit_insert() is for i32, u32, i64 and u64
// expect: byte_permute() is for i32 and u32
// expect: the table of lop3<table>() has eight bits
// expect: lop3() is for i32 and u32
// expect: funnel_left() is for i32 and u32
// expect: dp4a() is for i32 and u32, each of four signed or unsigned bytes
// expect: dp2a_low() is for i32 and u32: two 16-bit numbers, and four bytes
// expect: sad() is for i32, u32, i64 and u64
// expect: add_sat() is for i32
// expect: mul24() is for i32 and u32
// expect: mul_wide() is for i32 and u32, and gives i64 or u64
// expect: mad_wide() is for i32 and u32, and gives i64 or u64
// expect: i32 and u32 do not mix: convert one with cast<i32>() or cast<u32>()
// errors: 17
#include <ikat/dsl.hpp>
using namespace ikat;

void misuse(f32 x, i32 i, u32 u, u64 l) {
    popcount(x);
    bit_reverse(x);
    bit_extract(x, 1, 2);
    bit_extract(u, i, 2);
    bit_insert(x, x, 1, 2);
    byte_permute(l, l, 1);
    lop3<256>(u, u, u);
    lop3<1>(l, l, l);
    funnel_left(l, l, 3);
    dp4a(x, i, 0);
    dp2a_low(l, l, 0);
    sad(x, x, x);
    add_sat(u, u);
    mul24(l, l);
    mul_wide(l, l);
    mad_wide(l, l, l);
    dp4a(u, u, i);
}
