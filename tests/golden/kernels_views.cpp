// SPDX-License-Identifier: Apache-2.0
// Kernels for tests/golden/ast: views of rank 2 and 3, their rows, planes and windows, and slices.
#include "tests/golden/kernels.hpp"

namespace ikat::tests {
namespace {

// The row's index comes before the column's, whichever the compiler evaluates first.
const auto view_elements = kernel("view_elements", params("A", "B", "i", "j"),
                                  [](In<float, 2> A, InOut<float, 2> B, u32 i, u32 j) { B[i, j] = A[j, i] + B[1, j]; });

const auto view_rows = kernel("view_rows", params("A", "y"), [](In<half, 2> A, Out<float> y) {
    u32 i = block_id().x;
    auto row = A[i];  // its start is computed here
    f32 sum = 0;
    for (auto j : range(A.extent(1))) sum += cast<f32>(row[j]);
    y[i] = sum;
});

const auto view_masked = kernel("view_masked", params("A", "B"), [](In<float, 2> A, Out<float, 2> B) {
                             u32 i = block_id().x, j = thread_id().x;
                             auto inside = (i < A.extent(0)) & (j < A.extent(1));
                             B.store_if(inside, i, j, A.load_if(inside, i, j, 0));
                             B.vec<2>(i, j) = A.load_if<2>(inside, i, j, 1);
                             B.store_if<2>(inside, i, j, A.vec<2>(i, j));
                         }).require(multiple_of<2>("A_pitch"), aligned<8>(0), aligned<8>(1));

const auto view_planes = kernel("view_planes", params("T", "n"), [](InOut<std::int32_t, 3> T, u64 n) {
    T[0, n, 1] = T[1, 2, n];
    auto plane = T[n];
    plane[1, 2] += cast<i32>(plane.extent(0) + T.extent(0) + T.pitch(0) + plane.pitch());
    T[2, 3][4] = T.row(5, 6)[7];
});

const auto view_windows = kernel("view_windows", params("A", "i"), [](InOut<float, 2> A, u32 i) {
    auto tile = A.window(i, 8, 4, i + 1);
    tile[1, 2] = cast<f32>(tile.extent(1));
});

const auto retyped = kernel("retyped", params("x", "y", "i"), [](In<std::uint8_t> x, Out<float> y, u32 i) {
                         Shared<std::uint32_t, 32> s;
                         auto words = x.as<std::uint32_t>();
                         s.flat().vec<2>(i) = {words.vec<4>(i)[3], words[i]};
                         y[i] = x.slice(i * 8).as<float>()[1] + s.flat().slice(2).as<float>()[i];
                     }).require(aligned<16>("x"));

const auto slices = kernel("slices", params("x", "y", "r"), [](In<float> x, InOut<float> y, u32 r) {
    auto row = x.slice(r * 10).slice(3);
    r = 0;
    y.slice(r)[r] = row[r] + row.load_if(r < 3, r, 0);
    Shared<float, 4, 8> tile;
    auto part = tile.flat().slice(cast<u64>(r));
    part[1] = row.vec<2>(4)[1];
    atomic_add(y.slice(5)[6], part[7]);
});

const KernelRegistration views_kernels[] = {
    {"view_elements", view_elements},
    {"view_rows", view_rows},
    {"view_masked", view_masked},
    {"view_planes", view_planes},
    {"view_windows", view_windows},
    {"slices", slices},
    {"retyped", retyped},
};

}  // namespace
}  // namespace ikat::tests
