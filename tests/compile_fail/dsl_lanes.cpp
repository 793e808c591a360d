// SPDX-License-Identifier: Apache-2.0
// clang-format off
// Expressions of several lanes: types do not mix, as for scalars, and shapes must agree.
// expect: these have different numbers of lanes: Vec<T, 4> goes with Vec<T, 4>, with Regs<T, 4>, and with one value for all lanes
// expect: the number of lanes differs from that of the left side: Vec<T, 4> goes into x.vec<4>(i), Vec<T, 4> and Regs<T, 4>
// expect: f16 and f32 do not mix: convert one with cast<f16>() or cast<f32>()
// expect: u32 and f32 do not mix: convert one with cast<u32>() or cast<f32>()
// expect: a floating-point number does not become a device integer
// expect: operator % is for integers
// expect: sqrt() is for f32 and f64
// expect: a shift amount is a u32: convert it with cast<u32>()
// errors: 15
#include <ikat/dsl.hpp>
using namespace ikat;

void misuse(In<float> x, InOut<float> y, In<half> h, In<std::uint32_t> u, InOut<std::uint32_t> w, u32 i) {
    Regs<f32, 4> r(0);
    Regs<f32, 3> three(0);
    Regs<Vec<float, 4>, 2> rows(0);
    r = x.vec<4>(i) + x.vec<2>(i);
    r = fma(r, three, 1.0f);
    r = r * rows;
    y.vec<4>(i) = x.vec<2>(i);
    r = three;
    rows = r;
    Vec<float, 4> v = three * 2;
    r = h.vec<4>(i) * x.vec<4>(i);
    r = i * r;
    r = u.vec<4>(i);
    w.vec<4>(i) = u.vec<4>(i) * 1.5;
    r = r % 2;
    w.vec<4>(i) = sqrt(u.vec<4>(i));
    w.vec<4>(i) = u.vec<4>(i) << r;
    (void)v;
}
