// SPDX-License-Identifier: Apache-2.0
// What a function writes is no other operand's memory, whatever kernels it chooses.
#include "runtime/launch/roles.hpp"
#include "stdlib/attention/attention.hpp"
#include "stdlib/attention/incremental/incremental.hpp"
#include "stdlib/gemm/tensor_core.hpp"
#include "stdlib/norm/norm.hpp"
#include "tests/catch.hpp"
#include "tests/device.hpp"
#include "tests/message.hpp"

using namespace ikat;
using Catch::Contains;
using tests::message_of;

TEST_CASE("the result of a product is no other operand's memory") {
    const runtime::Device device = test::open_device();
    const std::uint32_t n = 64;
    auto x = device.upload(std::vector<float>(4 * n * n), "x");
    const auto A = x.slice(0, n * n).view(n, n), B = x.slice(n * n, n * n).view(n, n);
    const auto C = x.slice(2 * n * n, n * n).view(n, n);
    CHECK(message_of([&] { stdlib::gemm_tensor_core(device, A, B, C); }) == "");
    CHECK(message_of([&] { stdlib::gemm_tensor_core(device, A, A, C); }) == "");
    for (const std::uint32_t parts : {1u, 2u})
        for (const float beta : {0.0f, 1.0f}) {
            const auto run = [&](const auto& A, const auto& B, const auto& C, stdlib::GemmOptions options = {}) {
                options.beta = beta, options.parts = parts;
                return message_of([&] { stdlib::gemm_tensor_core(device, A, B, C, options); });
            };
            CHECK_THAT(run(A, B, A), Contains("gemm_tensor_core: 'A' (read) and 'C' (written) are the same memory"));
            CHECK_THAT(run(A, B, B), Contains("'B' (read) and 'C' (written)"));
            CHECK_THAT(run(A, B, x.slice(n * n - 1, n * n).view(n, n)), Contains("'A' (read) and 'C' (written)"));
            CHECK_THAT(run(A, B, C, {.bias = x.slice(2 * n * n, n)}), Contains("'C' (written) and 'bias' (read)"));
            CHECK_THAT(run(A, B, C, {.residual = C}), Contains("'C' (written) and 'residual' (read)"));
        }
    const auto none = x.slice(0, 0);
    CHECK_THAT(message_of([&] { stdlib::gemm_tensor_core(device, none.view(n, 0), none.view(0, n), C, {.bias = x}); }),
               Contains("'C' (written) and 'bias' (read)"));
    auto bytes = device.buffer<std::uint8_t>(1 << 16, "bytes");
    const auto sums = stdlib::BufferSlice<std::int8_t>(bytes.slice(0, bytes.size()).part());
    auto integers = device.buffer<std::int32_t>(n * n, "integers");
    CHECK_THAT(message_of([&] {
                   stdlib::gemm_tensor_core(device, sums.view(n, n), sums.view(n, n), integers.view(n, n),
                                            {.parts = 2, .workspace = bytes.slice(0, bytes.size())});
               }),
               Contains("'A' (read) and 'workspace' (written)"));
}

TEST_CASE("the results of attention are no other operand's memory, nor each other's") {
    const runtime::Device device = test::open_device({.target = "sm_90a"});
    auto x = device.upload(std::vector<float>(1 << 16), "x");
    const auto rows = [&](std::uint64_t first, std::uint64_t count) {
        return x.slice(first * 64, count * 64).view(1, count, 64);
    };
    const auto Q = rows(0, 4), K = rows(4, 40), O = rows(44, 4);
    const auto check = [&](const std::string& wanted, auto&& Q, auto&& K, auto&& O, auto&& log_sum) {
        const auto flash = message_of([&] { stdlib::flash_attention(device, Q, K, K, O, {.log_sum = log_sum}); });
        for (const std::uint32_t parts : {1u, 2u}) {
            stdlib::IncrementalOptions options{};
            options.log_sum = log_sum, options.parts = parts;
            const auto found = message_of([&] { stdlib::incremental_attention(device, Q, K, K, O, options); });
            if (wanted.empty())
                CHECK(found + flash == "");
            else
                CHECK_THAT(found, Contains("incremental_attention: " + wanted + " are the same memory"));
        }
        if (!wanted.empty()) CHECK_THAT(flash, Contains("flash_attention: " + wanted + " are the same memory"));
    };
    const auto log_sum = x.slice(48 * 64, 4).view(1, 4);
    check("", Q, K, O, log_sum);
    check("'Q' (read) and 'O' (written)", Q, K, Q, log_sum);
    check("'K' (read) and 'O' (written)", Q, rows(60, 40), rows(99, 4), log_sum);
    check("'O' (written) and 'log_sum' (written)", Q, K, O, x.slice(48 * 64 - 2, 4).view(1, 4));
    check("'Q' (read) and 'log_sum' (written)", Q, K, O, x.slice(0, 4).view(1, 4));
}

TEST_CASE("the results of other functions are no other operand's memory") {
    const runtime::Device device = test::open_device();
    auto x = device.buffer<float>(1024, "x"), y = device.buffer<float>(1024, "y");
    CHECK_THAT(message_of([&] { stdlib::fused_residual_rmsnorm(device, x, y, x, y, 1.0f); }),
               Contains("fused_residual_rmsnorm: 'residual' (written) and 'y' (written) are the same memory"));
    CHECK_THAT(message_of([&] { stdlib::layernorm(device, x, y, y, x, 1.0f); }),
               Contains("layernorm: 'x' (read) and 'y' (written) are the same memory"));
}

TEST_CASE("rows that lie in each other's gaps are not the same memory") {
    const runtime::Device device = test::open_device();
    const auto x = device.buffer<std::uint8_t>(1000, "x");
    struct Rows {
        std::uint64_t first, bytes, pitch;
    };
    const auto overlap = [&](const Rows& a, const Rows& b) {
        const runtime::BufferPart of_a = x.memory().whole().from(a.first), of_b = x.memory().whole().from(b.first);
        const runtime::OperandRole operands[] = {{"a", of_a, runtime::Role::Written, a.bytes, a.pitch},
                                                 {"b", of_b, runtime::Role::Written, b.bytes, b.pitch}};
        return !runtime::forbidden_overlaps(operands, runtime::Overlaps::OfAFunction).empty();
    };
    CHECK(!overlap({0, 6, 10}, {6, 4, 10}));
    CHECK(!overlap({6, 4, 10}, {0, 6, 10}));
    CHECK(!overlap({8, 4, 10}, {2, 6, 10}));   // around the end of a row
    CHECK(!overlap({0, 6, 10}, {36, 4, 10}));  // rows further
    CHECK(overlap({0, 6, 10}, {5, 4, 10}));
    CHECK(overlap({6, 4, 10}, {0, 7, 10}));
    CHECK(overlap({8, 5, 10}, {2, 6, 10}));
    CHECK(overlap({0, 11, 10}, {0, 0, 10}));
    CHECK(overlap({0, 6, 10}, {6, 4, 12}));
    CHECK(overlap({0, 6, 10}, {6, 4, 0}));
    CHECK(overlap({0, 0, 0}, {6, 4, 0}));
}
