// SPDX-License-Identifier: Apache-2.0
// Kernels with one mistake each, and some that look wrong but are not, for tests/golden/dsl_errors:
// functions that kernels call, and return_value().
#include <algorithm>

#include "tests/golden/kernels.hpp"

namespace ikat::tests {
namespace {

// Locations are shown as lines, so each mistake has its own line.
// clang-format off

f32 unassigned_in_helper(const f32& a) {
    f32 s;
    return s + a;
}
void stores_too_much(Out<float> y, const u32& n) {
    y[n] = 1e300;
}
const auto mistakes_in_helpers = kernel("mistakes_in_helpers", params("y"), [](Out<float> y) {
    f32 v = 1;
    y[0] = unassigned_in_helper(v);
    y[1] = unassigned_in_helper(v + 1);
});
const auto numbers_in_helpers = kernel("numbers_in_helpers", params("y", "n"), [](Out<float> y, u32 n) {
    u32 k = n + 1;
    stores_too_much(y, k);
    y[1] = 2;
    stores_too_much(y, k + 1);
});
const auto in_the_library = kernel("in_the_library", params("y"), [](Out<float> y) {
    Regs<i8, 4> r;
    std::fill(r.begin(), r.end(), 300);
    y[0] = cast<f32>(r[0]);
});

const auto no_function = kernel("no_function", params("y", "n"), [](Out<float> y, u32 n) {
    if_(n > 3, [&] { return_value(1); });
    y[0] = 1;
});

const auto other_results = kernel("other_results", params("y", "n"), [](Out<float> y, u32 n) {
    y[0] = inline_fn([&] {
        if_(n > 3, [&] { return_value(n); });
        if_(n > 2, [&] { return_value(); });
        if_(n > 1, [&] { return_value(true); });
        if_(n > 0, [&] { return_value(1e300); });
        return 1.0f;
    })();
    inline_fn([&] {
        if_(n > 3, [&] { return_value(2); });
        y[1] = 1;
    })();
});

const auto after_return_value = kernel("after_return_value", params("y", "n"), [](Out<float> y, u32 n) {
    y[0] = inline_fn([&] {
        if_(n > 3, [&] { return_value(1); y[1] = 2; });
        return cast<f32>(n);
    })();
    y[1] = inline_fn([&] {
        if_(n > 3, [&] { return_value(1); }).else_([&] { return_value(2); });
        return cast<f32>(n * 2);  // C++ requires it
    })();
    y[2] = inline_fn([&] {
        if_(n > 3, [&] { return_value(1); }).else_([&] { return_value(2); });
        y[3] = 2;
        return cast<f32>(n * 2);
    })();
});

const auto unassigned_after_function = kernel("unassigned_after_function", params("y", "n"), [](Out<float> y, u32 n) {
    f32 s, t;
    inline_fn([&] {
        if_(n > 3, [&] { t = 1; return_value(); });
        s = t = 1;
    })();
    y[0] = t;
    y[1] = s;
});

const auto loop_around_function = kernel("loop_around_function", params("y", "n"), [](Out<float> y, u32 n) {
    for (auto i : range(n)) {
        inline_fn([&] {
            if_(n > i, [&] { break_(); });
            y[i] = 1;
        })();
    }
});

#define ENTRY(kernel) {#kernel, kernel}
const KernelRegistration errors_in_functions[] = {
    ENTRY(mistakes_in_helpers), ENTRY(numbers_in_helpers), ENTRY(in_the_library), ENTRY(no_function),
    ENTRY(other_results), ENTRY(after_return_value), ENTRY(unassigned_after_function), ENTRY(loop_around_function),
};
#undef ENTRY

// clang-format on

}  // namespace
}  // namespace ikat::tests
