// SPDX-License-Identifier: Apache-2.0
// compiles: code that looks like misuse but is not.
#include <ikat/dsl.hpp>
using namespace ikat;

template <Value<f32> V>
auto doubled(V&& v) {
    return v * 2;
}
f32 plus_one(const f32& v) { return v + 1; }
static_assert(Value<f32> && Value<Leaf<float>, float> && !Value<u32, f32> && !Value<float>);

const auto many = kernel("many", params("x", "y", "n"), [](In<float> x, InOut<float> y, u32 n) {
    Var t = x[0] * 2, u = t;
    y[0] = plus_one(x[n]) + doubled(t);
    y[n] = y[n + 1];
    y[n] = 1;
    y[n] = half(1.5);
    const auto& [tx, ty, tz] = thread_id();
    t = u;
    if_(!(tx < n) ^ (ty == tz), [&] { y[0] = -t; });
    constexpr bool wanted = true;
    if (wanted) y[1] = 2;
    if_(true & (n > 3), [&] { y[2] = 1.0; });
    u64 wide = cast<u64>(1u) + cast<u64>(n);
    y[n] = cast<f32>(3) + cast<f32>(cast<i32>(2.5f)) + cast<f32>(wide) + select(x[0] > 1, t, 0);
});
const auto none = kernel("none", [] { sync_block(); });
const auto does_not_throw = kernel("does_not_throw", [](InOut<float> x, const u32& n) noexcept { x[n] = 0; });
void function(InOut<float> x, u32 n) { x[n] = 0; }
const auto from_function = kernel("from_function", params("x", "n"), function);
using types = decltype(many)::parameters;
static_assert(decltype(many)::arity == 3);
