// SPDX-License-Identifier: Apache-2.0
// A norm between two products that costs no pass over memory: H = X W + R, Y = rmsnorm(H) V. The first product's
// epilogue also makes sums of the squares of H, and the second one multiplies its rows by what follows from them.
// Weights of the norm itself would be part of V.
#include <ikat/ikat.hpp>
#include <ikat/stdlib.hpp>

#include <cmath>
#include <cstdio>
#include <vector>

using namespace ikat;
using namespace ikat::stdlib;

const auto rms_scale = kernel("rms_scale", params("squares", "scale", "columns", "epsilon"),
                              [](In<float, 2> squares, Out<float> scale, u32 columns, f32 epsilon) {
                                  for (auto row : grid_stride(squares.extent(0))) {
                                      f32 sum = 0;
                                      for (auto group : range(squares.extent(1))) sum += squares[row, group];
                                      scale[row] = 1 / sqrt(sum / cast<f32>(columns) + epsilon);
                                  }
                              });

int main() try {
    const std::uint32_t m = 100, k = 96, h = 200, n = 72, groups = row_sum_columns(h);
    const auto numbers = [](std::uint32_t count, float by) {
        std::vector<half> out;
        for (std::uint32_t i = 0; i < count; ++i) out.emplace_back(std::sin(by * float(i)));
        return out;
    };
    const auto x = numbers(m * k, 0.1f), w = numbers(k * h, 0.7f), r = numbers(m * h, 0.3f), v = numbers(h * n, 0.2f);

    const auto device = Device::open();
    const auto X = device.upload(x, "X"), W = device.upload(w, "W"), R = device.upload(r, "R"),
               V = device.upload(v, "V");
    auto H = device.buffer<half>(m * h, "H"), Y = device.buffer<half>(m * n, "Y");
    auto squares = device.buffer<float>(m * groups, "squares"), scale = device.buffer<float>(m, "scale");
    gemm_tensor_core(device, X.view(m, k), W.view(k, h), H.view(m, h),
                     epilogue(
                         "residual_squares",
                         [](auto sum, auto at, auto r, auto squares) {
                             const auto y = value(sum + r[at]);
                             squares[at.row] += y * y;
                             return y;
                         },
                         R.view(m, h), row_sums(squares.view(m, groups))));
    device.launch(rms_scale, runtime::grid(m, 128), squares.view(m, groups), scale, h, 1e-5f);
    gemm_tensor_core(device, H.view(m, h), V.view(h, n), Y.view(m, n),
                     epilogue(
                         "scaled", [](auto sum, auto at, auto scale) { return sum * scale[at.row]; }, scale));

    const auto y = Y.download(), rounded = H.download();
    std::uint32_t wrong = 0;
    for (std::uint32_t i = 0; i < m; ++i) {
        std::vector<double> row(h);
        double sum = 0;
        for (std::uint32_t j = 0; j < h; ++j) {
            row[j] = double(r[i * h + j]);
            for (std::uint32_t e = 0; e < k; ++e) row[j] += double(x[i * k + e]) * double(w[e * h + j]);
            wrong += std::abs(double(rounded[i * h + j]) - row[j]) > std::abs(row[j]) * 0x1p-10 + 1e-4;
            sum += row[j] * row[j] / h;
        }
        for (std::uint32_t j = 0; j < n; ++j) {
            double want = 0, magnitude = 0;  // H is rounded to half
            for (std::uint32_t e = 0; e < h; ++e) {
                const double term = row[e] * double(v[e * n + j]) / std::sqrt(sum + 1e-5);
                want += term, magnitude += std::abs(term);
            }
            wrong += std::abs(double(y[i * n + j]) - want) > magnitude * 0x1p-10 + 1e-4;
        }
    }
    std::printf("Y = rmsnorm(X W + R) V: %u x %u elements, %u wrong\n", m, n, wrong);
    return wrong != 0;
} catch (const Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
}
