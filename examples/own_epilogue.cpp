// SPDX-License-Identifier: Apache-2.0
// An epilogue of one's own in the library's product: a gated layer, C = silu(X W + bias) * gate, of which only C is
// written to memory.
#include <ikat/ikat.hpp>
#include <ikat/stdlib.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <vector>

using namespace ikat;
using namespace ikat::stdlib;

int main() try {
    const std::uint32_t m = 200, n = 136, k = 96;
    const auto numbers = [](std::uint32_t count, float by) {
        std::vector<bfloat16> out;
        for (std::uint32_t i = 0; i < count; ++i) out.emplace_back(std::sin(by * float(i)));
        return out;
    };
    const auto x = numbers(m * k, 0.1f), w = numbers(k * n, 0.7f), bias = numbers(n, 0.3f), gate = numbers(m * n, 0.2f);

    const auto device = Device::open();
    const auto X = device.upload(x, "X"), W = device.upload(w, "W"), Bias = device.upload(bias, "bias"),
               Gate = device.upload(gate, "gate");
    auto C = device.buffer<bfloat16>(m * n, "C");
    gemm_tensor_core(device, X.view(m, k), W.view(k, n), C.view(m, n),
                     epilogue(
                         "silu_gated",
                         [](auto sum, auto at, auto bias, auto gate) { return silu(sum + bias[at.column]) * gate[at]; },
                         Bias, Gate.view(m, n)));

    const auto c = C.download();
    std::uint32_t wrong = 0;
    for (std::uint32_t i = 0; i < m; ++i)
        for (std::uint32_t j = 0; j < n; ++j) {
            double sum = double(bias[j]);
            for (std::uint32_t e = 0; e < k; ++e) sum += double(x[i * k + e]) * double(w[e * n + j]);
            const double want = sum / (1 + std::exp(-sum)) * double(gate[i * n + j]);
            wrong += std::abs(double(c[i * n + j]) - want) > std::abs(want) * 0x1p-8 + 1e-5;
        }
    std::printf("C = silu(X W + bias) * gate: %u x %u elements, %u wrong\n", m, n, wrong);
    return wrong != 0;
} catch (const Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
}
