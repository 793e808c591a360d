// SPDX-License-Identifier: Apache-2.0
// The examples of docs/training.md, backward of rows and of attention. pages_test.cpp compares the page with this file.
#include <ikat/ikat.hpp>
#include <ikat/stdlib.hpp>

#include <vector>

#include "tests/catch.hpp"

// clang-format off
namespace ikat {

TEST_CASE("docs/training.md: backward of rows") {
    const std::uint32_t rows = 100, columns = 64;
    const Device device = Device::open({.device = "emulator"});
    const auto x = device.upload(std::vector<half>(rows * columns, half(2.0f)));
    const auto gradient = device.upload(std::vector<half>(rows * columns, half(1.0f)));
    const auto gamma = device.upload(std::vector<half>(columns, half(1.0f)));
    auto y = device.buffer<half>(rows * columns), dx = device.buffer<half>(rows * columns);
    auto dgamma = device.buffer<float>(columns), db = device.buffer<float>(columns);
    const auto dy = gradient.view(rows, columns);

    stdlib::softmax(device, x.view(rows, columns), y.view(rows, columns));
    stdlib::softmax_backward(device, y.view(rows, columns), dy, dx.view(rows, columns));        // from the result y
    stdlib::rmsnorm_backward(device, x.view(rows, columns), dy, gamma, dx.view(rows, columns), dgamma, 1e-6f);  // from x
    stdlib::column_sums(device, dy, db);                                                        // of a bias
    CHECK(db.download() == std::vector<float>(columns, rows));
    CHECK(dgamma.download()[0] == Approx(rows));

    auto statistics = device.buffer<float>(rows * 2);
    stdlib::rmsnorm(device, x.view(rows, columns), gamma, y.view(rows, columns), 1e-6f, statistics.view(rows, 2));
    stdlib::rmsnorm_backward(device, x.view(rows, columns), dy, gamma, dx.view(rows, columns), dgamma, 1e-6f,
                             {.residual = y.view(rows, columns), .statistics = statistics.view(rows, 2)});
    CHECK(statistics.download()[1] == Approx(0.5));
    CHECK(float(dx.download()[0]) == 1);
}

TEST_CASE("docs/training.md: gradients of products") {
    const std::uint32_t m = 20, n = 24, k = 40;
    const Device device = Device::open({.device = "emulator"});
    const auto X = device.upload(std::vector<half>(m * k, half(1.0f))), W = device.upload(std::vector<half>(k * n, half(2.0f)));
    const auto dC = device.upload(std::vector<half>(m * n, half(0.5f)));
    auto dX = device.buffer<half>(m * k);
    auto dW = device.upload(std::vector<float>(k * n, 100));

    stdlib::gemm_backward_a(device, dC.view(m, n), W.view(k, n), dX.view(m, k));
    stdlib::gemm_backward_b(device, X.view(m, k), dC.view(m, n), dW.view(k, n), {.accumulate = true});  // f32, of f16 factors
    CHECK(float(dX.download()[0]) == n);
    CHECK(dW.download()[0] == 100 + m / 2);
}

TEST_CASE("docs/training.md: embeddings") {
    const std::uint32_t rows = 10, columns = 24, tokens = 3;
    const Device device = Device::open({.device = "emulator"});
    const auto ids = device.upload(std::vector<std::uint32_t>{7, 2, 7});
    const auto table = device.upload(std::vector<half>(rows * columns, half(2.0f)));
    const auto dy = device.upload(std::vector<half>(tokens * columns, half(0.5f)));
    auto y = device.buffer<half>(tokens * columns);
    auto dtable = device.upload(std::vector<float>(rows * columns, 100));

    stdlib::embedding(device, ids, table.view(rows, columns), y.view(tokens, columns));
    stdlib::embedding_backward(device, ids, dy.view(tokens, columns), dtable.view(rows, columns), {.accumulate = true});
    CHECK(float(y.download()[0]) == 2);
    CHECK(dtable.download()[7 * columns] == 101);
}

TEST_CASE("docs/training.md: dropout") {
    const std::uint32_t n = 1000;
    const Device device = Device::open({.device = "emulator"});
    auto x = device.buffer<half>(n), y = device.buffer<half>(n), dx = device.buffer<half>(n);
    const auto dy = device.upload(std::vector<half>(n, half(1.0f)));

    stdlib::fill_normal(device, x, 0, 0.02f, {.seed = 1});
    stdlib::dropout(device, x, y, {.probability = 0.1f, .random = {.seed = 42}});
    stdlib::dropout_backward(device, dy, dx, {.probability = 0.1f, .random = {.seed = 42}});  // of the same elements
    const std::vector<half> of_y = y.download(), of_dx = dx.download();
    for (std::uint32_t i = 0; i < n; ++i)
        if (float(of_dx[i]) == 0) CHECK(float(of_y[i]) == 0);
}

TEST_CASE("docs/training.md: backward of attention") {
    using namespace stdlib;
    const std::uint32_t heads = 2, kv_heads = 1, queries = 4, keys = 4;
    const Device device = Device::open({.device = "emulator"});
    const auto x = device.upload(std::vector<half>(heads * queries * 64, half(1.0f)));
    auto o = device.buffer<half>(x.size()), dq = device.buffer<half>(x.size()), dk = device.buffer<half>(keys * 64), dv = device.buffer<half>(keys * 64);
    auto log_sum = device.buffer<float>(heads * queries);
    const auto Q = x.view(heads, queries, 64), dO = Q, K = x.view(kv_heads, keys, 64), V = K;

    flash_attention(device, Q, K, V, o.view(heads, queries, 64), {.causal = true, .log_sum = log_sum.view(heads, queries)});
    attention_backward(device, Q, K, V, o.view(heads, queries, 64), log_sum.view(heads, queries), dO, dq.view(heads, queries, 64),
                       dk.view(kv_heads, keys, 64), dv.view(kv_heads, keys, 64), {.causal = true});
    // The last key has a quarter of the last query of each head, and all values are 1.
    CHECK(float(dv.download()[3 * 64]) == 0.5f);
    CHECK(float(dq.download()[0]) == 0);
}

}  // namespace ikat
