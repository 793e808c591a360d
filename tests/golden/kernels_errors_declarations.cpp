// SPDX-License-Identifier: Apache-2.0
// Kernels with one mistake each, and some that look wrong but are not, for tests/golden/dsl_errors:
// names, contracts, texts and launch bounds.
#include "tests/golden/kernels.hpp"

namespace ikat::tests {
namespace {

// Locations are shown as lines, so each mistake has its own line.
// clang-format off

const auto name_of_cuda = device_fn("vprintf", params("$n"), [](u32 n) { return n + 1; });
const auto bad_names = kernel("bad names", params("x", "x", "3", "_"), [](InOut<float> x, u32 a, u32 b, u32 c) {
    x[a] = 0;
    x[b] = 1;
    x[name_of_cuda(c)] = 2;
});
const auto bad_contracts = kernel("bad_contracts", params("x", "n"), [](InOut<float> x, u32 n) {
                               x[n] = 0;
                           }).require(multiple_of<8>("x"), aligned<16>("n"), aligned<16>("z"), multiple_of<4>(2))
                             .require(at_least("n", "n"), at_least("x", "x"), at_least("x", "n", "z"), at_least(0, 1));
const auto bad_halos = kernel("bad_halos", params("x", "v", "y", "n"),
                              [](In<float> x, In<float, 2> v, Out<float> y, u32 n) { y[n] = x[n] + v[n][n]; })
                           .require(halo<1>("n"), halo<1>("y"), halo<1, 1>("x"), halo<1, 1, 1>("v"), halo<1>("z"));

const auto bad_texts = kernel("bad_texts", params("n"), [](u32 n) {
    print("{} {}\n", n);
    print("{\n");
    print("{{}}\n");
    check(n > 0, "n is {}");
    print("{:5.2f} {:x}\n", n, cast<f32>(n));
    print("{:#x} {:<8.3f} {:+}\n", n, cast<f32>(n), cast<i32>(n));
    check(n > 0, "n is {}, not {}", n);
});

const auto bad_bounds = kernel("bad_bounds", params("y"), [](Out<float> y) { y[0] = 1; }).launch_bounds(1025);
const auto no_bounds = kernel("no_bounds", params("y"), [](Out<float> y) { y[0] = 1; }).launch_bounds(0, 2);

#define ENTRY(kernel) {#kernel, kernel}
const KernelRegistration errors_in_declarations[] = {
    ENTRY(bad_names), ENTRY(bad_contracts), ENTRY(bad_halos), ENTRY(bad_texts), ENTRY(bad_bounds), ENTRY(no_bounds),
};
#undef ENTRY

// clang-format on

}  // namespace
}  // namespace ikat::tests
