// SPDX-License-Identifier: Apache-2.0
// Kernels with one mistake each, and some that look wrong but are not, for tests/golden/dsl_errors:
// views, structs, constant and shared memory.
#include <optional>
#include <vector>

#include "tests/golden/kernels.hpp"

namespace ikat::tests {
namespace {

// Locations are shown as lines, so each mistake has its own line.
// clang-format off

const auto view_dimension = kernel("view_dimension", params("A", "y"), [](In<float, 2> A, Out<std::uint32_t> y) {
    y[0] = A.extent(2);
    y[1] = A.extent(-1);
    y[2] = A.pitch(1);
});

const auto view_names = kernel("view_names", params("A", "A_pitch"), [](InOut<float, 2> A, u32 n) { A[n, n] = 1; });

const auto view_directions = kernel("view_directions", params("i", "A", "n", "T"), [](u32 i, Out<float, 2> A, u32 n, InOut<float, 3> T) {
    A[i, n] = 1;
    T[i, n, i] = 1;
}).require(multiple_of<4>("A_pitch"), aligned<16>("A_pitch"), multiple_of<2>(3), aligned<16>(3));

const auto constant_counts = kernel("constant_counts", params("y"), [](Out<float> y) {
    Constant<float, 4> few{1, 2};
    Constant<float, 2> many(std::vector<float>{1, 2, 3});
    y[0] = few[0] + many[0];
});

const auto constant_bytes = kernel("constant_bytes", params("y"), [](Out<float> y) {
    Constant<float, 10000> first(std::vector<float>(10000, 1.0f));
    Constant<float, 6384> second(std::vector<float>(6384, 2.0f));
    Constant<std::uint8_t, 1> third{1};
    y[0] = first[0] + second[0];
});

const auto shared_bytes = kernel("shared_bytes", params("y"), [](Out<float> y) {
    Shared<float, 58000> first;
    Shared<float, 113> second;
    first[0] = 1;
    second[0] = 2;
    y[0] = first[0] + second[0];
});

struct Params {
    BOOST_HANA_DEFINE_STRUCT(Params, (float, scale));
    float other = 0;
};
const auto no_field = kernel("no_field", params("p", "y"), [](Struct<Params> p, Out<float> y) {
    y[0] = p[&Params::scale];
    y[1] = p[&Params::other];
});

struct Point {
    BOOST_HANA_DEFINE_STRUCT(Point, (float, x), (float, y));
    float hidden = 0;
};
const auto no_field_of_variable = kernel("no_field_of_variable", params("p", "y"), [](In<Point> p, Out<float> y) {
    Var<Point> mine = p[0];
    y[0] = mine[&Point::hidden];
});

const auto unassigned_struct = kernel("unassigned_struct", params("p", "n"), [](InOut<Point> p, u32 n) {
    Var<Point> mine;
    mine[&Point::x] = 1;
    if_(n > 3, [&] { mine[&Point::y] = 1; });
    p[0] = mine;
});

const auto kept_slice = kernel("kept_slice", params("x", "y", "n"), [](In<float, 2> x, InOut<float> y, u32 n) {
    std::optional<In<float>> row;
    if_(n > 1, [&] {
        row.emplace(x[n]);
        y[0] = (*row)[1];
    });
    y[1] = (*row)[2];
});

#define ENTRY(kernel) {#kernel, kernel}
const KernelRegistration errors_in_memory[] = {
    ENTRY(view_dimension), ENTRY(view_names), ENTRY(view_directions), ENTRY(constant_counts), ENTRY(constant_bytes),
    ENTRY(shared_bytes), ENTRY(no_field), ENTRY(no_field_of_variable), ENTRY(unassigned_struct), ENTRY(kept_slice),
};
#undef ENTRY

// clang-format on

}  // namespace
}  // namespace ikat::tests
