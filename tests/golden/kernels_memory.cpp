// SPDX-License-Identifier: Apache-2.0
// Kernels for tests/golden/ast: subscripts and when they load, vectors, masked access, arrays.
#include "tests/golden/kernels.hpp"

namespace ikat::tests {
namespace {

const auto swap_elements = kernel("swap_elements", params("s", "i", "j"), [](InOut<float> s, u32 i, u32 j) {
    auto t = s[i];
    s[i] = s[j];
    s[j] = t;
});

const auto moments = kernel("moments", params("y"), [](InOut<float> y) {
    Shared<float, 32> s;
    auto early = y[0];  // before the store
    y[0] = 1;
    auto late = y[0];  // after it
    sync_block();
    s[thread_id().x] = early + late;
    auto unused = y[7];  // nothing reads it: no load
    (void)unused;
    y[1] += 2;
    y[2] = y[3];
});

const auto vectors = kernel("vectors", params("x", "y", "h", "i"), [](In<float> x, InOut<float> y, In<half> h, u32 i) {
                         auto v = x.vec<4>(i);
                         y.vec<4>(i) = {v[3], v[2], v[1] + v[0], 0.5f};
                         y.vec<2>(i) = x.vec<2>(i + 1);
                         y[i] = cast<f32>(h.vec<4>(i)[1]);
                     }).require(aligned<16>("x"), aligned<16>("y"), aligned<8>(2));

const auto masked = kernel("masked", params("x", "y", "i", "n"), [](In<float> x, InOut<float> y, u32 i, u32 n) {
    auto v = x.load_if(i < n, i, -1);
    auto w = x.load_if<4>(i + 3 < n, i, 0.0f);
    y.store_if(i < n, i, v * 2);
    y.store_if<4>(i + 3 < n, i, {w[0], w[1], w[2], v});
});

const auto narrow = kernel("narrow", params("a", "b", "c", "d"),
                           [](In<std::uint8_t> a, InOut<std::int8_t> b, InOut<std::uint16_t> c, In<std::int16_t> d) {
                               c[0] = cast<u16>(a[0]) * 257 + c[1];
                               b[0] = cast<i8>(d[0]) - b[1];
                               auto bytes = a.vec<4>(1);
                               c.vec<2>(1) = {cast<u16>(bytes[0]), cast<u16>(bytes[3])};
                           });

const auto arrays = kernel("arrays", params("y", "n"), [](Out<float> y, u32 n) {
    Shared<float, 16, 17> tile;
    Shared<half, 8> halves;
    Local<std::uint32_t, 4> counts;
    const auto t = thread_id();
    tile[t.y, t.x] = cast<f32>(n);
    halves[t.x] = 1;
    counts[n % 4] = n;
    sync_block();
    y[n] = tile[t.x, t.y] + cast<f32>(halves[0]) + cast<f32>(counts[0]);
    y[0] = tile.flat().vec<2>(n)[1];
});

const auto dynamic_arrays = kernel("dynamic_arrays", params("y", "n"), [](Out<float> y, u32 n) {
    auto a = dynamic_shared<float>(n);
    auto b = dynamic_shared<half>(n);
    auto i = thread_id().x;
    a[i] = 1;
    b[i] = 2;
    sync_block();
    y[i] = a[n - 1 - i] + cast<f32>(b[n - 1 - i]);
});

const auto constants = kernel("constants", params("y", "n"), [](Out<float> y, u32 n) {
    Constant<float, 2, 2> table{1, -0.5f, 1e30f, 0};
    Constant<std::uint8_t, 3> bytes{1, 2, 255};
    Constant<float, 2, 2> again{1, -0.5f, 1e30f, 0};  // the same array
    y[n] = table[n, 1] * cast<f32>(bytes[n]);
    y.vec<2>(n) = again.flat().vec<2>(n);
});

const auto registers = kernel("registers", params("x", "y"), [](In<float> x, Out<float> y) {
    Regs<f32, 3> sums(0);
    for (std::uint32_t k = 0; k < 3; ++k) sums[k] += x[k];
    Regs<f32, 2> fresh;
    for (f32& r : fresh) r = sums[0];
    y[0] = sums[2] + fresh[1];
});

const auto wide_indices = kernel("wide_indices", params("x", "y", "i"), [](In<float> x, Out<float> y, u64 i) {
    Shared<float, 4, 4> tile;
    y[i * 3] = x[5000000000];
    tile[thread_id().x, i] = x[i];
});

const KernelRegistration memory_kernels[] = {
    {"swap_elements", swap_elements},
    {"moments", moments},
    {"vectors", vectors},
    {"masked", masked},
    {"narrow", narrow},
    {"arrays", arrays},
    {"dynamic_arrays", dynamic_arrays},
    {"constants", constants},
    {"registers", registers},
    {"wide_indices", wide_indices},
};

}  // namespace
}  // namespace ikat::tests
