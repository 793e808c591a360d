// SPDX-License-Identifier: Apache-2.0
// A product of matrices on tensor cores with an epilogue of one's own. The weights are 8-bit numbers as bfloat16, with
// a scale for each column; the activation is the square of relu, which the library's gemm_tensor_core() does not have:
//
//     C[i, j] = relu(scale[j] * (A B)[i, j] + bias[j])^2
#include <ikat/ikat.hpp>

#include <ikat/tile.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <vector>

using namespace ikat;
using namespace ikat::stdlib;

// A block makes 128 x 64 elements of C, each of its four warps 64 x 32. Three slices of k are in shared memory.
constexpr TensorTile tile{.m = 128, .n = 64, .warp_m = 64, .warp_n = 32, .stages = 3};
using Product = BlockProduct<bfloat16, tile, MatrixOrder::Rows, MatrixOrder::Columns>;  // B is stored as n x k

const auto scaled_product =
    kernel("scaled_product", params("A", "B", "scale", "bias", "C"),
           [](In<bfloat16, 2> A, In<bfloat16, 2> B, In<float> scale, In<float> bias, Out<float, 2> C) {
               const u32 m = C.extent(0), n = C.extent(1);
               const auto down = tiles_of(m, tile.m), across = tiles_of(n, tile.n);
               const auto at = grouped_raster(block_id().x, down, across);
               const Product product(A, B, at.row * tile.m, at.column * tile.n, {16, 16});
               // Sums come in fours, neighbours in a row; some are beyond the edges.
               product.each<4>([&](const auto& i, const auto& j, const auto& sums) {
                   if_((i < m) & (j < n), [&] {
                       const auto x = max(fma(scale.vec<4>(j / 4), sums, bias.vec<4>(j / 4)), 0.0f);
                       C.vec<4>(i, j / 4) = x * x;
                   });
               });
           })
        .require(aligned<16>("A"), multiple_of<8>("A_extent1"), multiple_of<8>("A_pitch"))
        .require(aligned<16>("B"), multiple_of<8>("B_extent1"), multiple_of<8>("B_pitch"))
        .require(aligned<16>("C"), multiple_of<4>("C_extent1"), multiple_of<4>("C_pitch"))
        .require(aligned<16>("scale"), aligned<16>("bias"))
        .launch_bounds(tile.threads());

int main() try {
    const std::uint32_t m = 150, n = 136, k = 200;
    std::vector<bfloat16> a, b;
    for (std::uint32_t i = 0; i < m * k; ++i) a.emplace_back(std::sin(0.1 * i));
    for (std::uint32_t i = 0; i < n * k; ++i) b.emplace_back(int(i * 37 % 255) - 127);
    std::vector<float> scale, bias;
    for (std::uint32_t j = 0; j < n; ++j)
        scale.push_back(0.001f * float(j % 7 + 1)), bias.push_back(0.1f * float(j % 5));

    const auto device = Device::open();
    const auto A = device.upload(a, "A"), B = device.upload(b, "B");
    auto C = device.buffer<float>(m * n, "C");
    const std::uint32_t blocks = ((m - 1) / tile.m + 1) * ((n - 1) / tile.n + 1);
    device.launch(scaled_product, Grid{{blocks}, {tile.threads()}}, A.view(m, k), B.view(n, k), device.upload(scale),
                  device.upload(bias), C.view(m, n));

    const auto c = C.download();
    std::uint32_t wrong = 0, positive = 0;
    for (std::uint32_t i = 0; i < m; ++i)
        for (std::uint32_t j = 0; j < n; ++j) {
            double sum = 0, magnitude = 0;  // of exact products, which the device adds in another order
            for (std::uint32_t e = 0; e < k; ++e) {
                const double product = double(a[i * k + e]) * double(b[j * k + e]);
                sum += product, magnitude += std::abs(product);
            }
            const double x = std::max(scale[j] * sum + bias[j], 0.0);
            const double error = scale[j] * magnitude * k * 0x1p-23 + std::abs(x) * 0x1p-22;
            wrong += std::abs(double(c[i * n + j]) - x * x) > (2 * x + error) * error + x * x * 0x1p-24;
            positive += x > 0;
        }
    std::printf("%u x %u elements, %u of them not 0, %u wrong\n", m, n, positive, wrong);
    return wrong == 0 ? 0 : 1;
} catch (const Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
}
