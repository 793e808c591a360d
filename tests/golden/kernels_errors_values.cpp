// SPDX-License-Identifier: Apache-2.0
// Kernels with one mistake each, and some that look wrong but are not, for tests/golden/dsl_errors:
// values and expressions.
#include <optional>
#include <utility>

#include "tests/golden/kernels.hpp"

namespace ikat::tests {
namespace {

// Locations are shown as lines, so each mistake has its own line.
// clang-format off

const auto unassigned = kernel("unassigned", params("y", "n"), [](Out<float> y, u32 n) {
    f32 s;
    if_(n > 3, [&] { s = 1; });
    y[0] = s;
    y[1] = s;
});

const auto unassigned_in_loop = kernel("unassigned_in_loop", params("y", "n"), [](Out<float> y, u32 n) {
    f32 s;
    for (auto i : range(n)) s = cast<f32>(i);
    y[0] = s;
});

const auto unassigned_on_one_way = kernel("unassigned_on_one_way", params("y", "n"), [](Out<float> y, u32 n) {
    f32 s, t;
    if_(n > 3, [&] { y[0] = 1; }).else_([&] { s = 1; });
    y[1] = s;
    while_([&] { return n > 0; }, [&] { t = 1; n -= 1; });
    y[2] = t;
});

const auto assigned_on_all_ways = kernel("assigned_on_all_ways", params("y", "n"), [](Out<float> y, u32 n) {
    f32 s, t;
    if_(n > 3, [&] { s = 1; }).else_([&] { s = 2; });
    y[0] = s;
    while_(
        [&] {
            t = 1;
            return n > 0;
        },
        [&] { n -= 1; });
    y[1] = t;
    if_(n > 4, [&] { return_(); }).else_([&] { t = 2; });
});

const auto numbers =
    kernel("numbers", params("i", "u", "f"), [](Out<std::int32_t> i, Out<std::uint32_t> u, Out<float> f) {
        i[0] = 3000000000;
        u[0] = -1;
        f[0] = 16777217;
        f[1] = 1e300;
        u[1] = 1u << 31;
    });

std::optional<f32> kept;
const auto keeps = kernel("keeps", params("x"), [](InOut<float> x) {
    kept.emplace(x[0]);
    x[1] = *kept;
});
const auto kept_value = kernel("kept_value", params("y"), [](Out<float> y) {
    keeps.ast();
    y[0] = *kept + 1;
});

const auto moved_from = kernel("moved_from", params("y"), [](Out<float> y) {
    f32 a = 1;
    f32 b = std::move(a);
    y[0] = b;
    y[1] = a;
    f32 c = 2;
    std::swap(b, c);
});

const auto leaves_region = kernel("leaves_region", params("x", "y"), [](In<float> x, Out<float> y) {
    std::optional<Leaf<float>> inner;
    if_(x[0] > 0, [&] { inner.emplace(value(x[1] * 2)); });
    y[0] = *inner;
});

const auto register_index = kernel("register_index", params("y"), [](Out<float> y) {
    Regs<f32, 4> r(0);
    y[0] = r[4];
    y[1] = r[-1];
});

const auto two_effects = kernel("two_effects", params("c", "y"), [](InOut<std::uint32_t> c, Out<std::uint32_t> y) {
    y[0] = atomic_add(c[0], 1) - atomic_add(c[1], 1);
    y[1] = shuffle_xor(c[2], 1) + ballot(c[3] > 0);
    y[2] = 2 * atomic_add(c[0], 1) + shuffle_xor(c[2], 1) * 3;
    auto named = atomic_add(c[0], 1);
    y[3] = named + atomic_add(c[0], 1);
    y[4] = shuffle_xor(atomic_add(c[0], 1), 1);
});

const auto atomic_and_load =
    kernel("atomic_and_load", params("c", "y"), [](InOut<std::uint32_t> c, Out<std::uint32_t> y) {
        y[0] = c[0] + atomic_add(c[0], 1);
        y[1] = (atomic_add(c[0], c[1]) ^ 1) - c[2] * 2;
        y[2] = atomic_add(c[0], c[1]);
        auto before = c[0];
        y[3] = before + atomic_add(c[0], 1);
    });

const auto select_load = kernel("select_load", params("x", "y", "n"), [](In<float> x, Out<float> y, u32 n) {
    y[0] = select(n < 4, x[n] * 2, 0);
    if_((n < 4) & (x[n] > 0), [&] { y[1] = 1; });
    if_((n >= 4) | (x[n + 1] > 0), [&] { y[1] = 1; });
    auto named = x[0];
    y[2] = select(n < 4, named, 0);
    y[3] = select(n < 4, x.load_if(n < 4, n, 0), 1);
});

const auto shared_select_load = kernel("shared_select_load", params("y", "n"), [](Out<float> y, u32 n) {
    Shared<float, 8> s;
    y[0] = select(n < 8, s[n], 0);
});

#define ENTRY(kernel) {#kernel, kernel}
const KernelRegistration errors_in_values[] = {
    ENTRY(unassigned), ENTRY(unassigned_in_loop), ENTRY(unassigned_on_one_way), ENTRY(assigned_on_all_ways),
    ENTRY(numbers), ENTRY(kept_value), ENTRY(moved_from), ENTRY(leaves_region), ENTRY(register_index),
    ENTRY(two_effects), ENTRY(atomic_and_load), ENTRY(select_load), ENTRY(shared_select_load),
};
#undef ENTRY

// clang-format on

}  // namespace
}  // namespace ikat::tests
