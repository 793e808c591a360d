// SPDX-License-Identifier: Apache-2.0
// Products by their names compute what the names say, against plain loops.
#include <algorithm>
#include <cmath>

#include "tests/differential/stdlib/named_call.hpp"

namespace ikat::tests {
namespace {

double activated(const std::string& name, double x) {
    if (name.contains("_relu")) return std::max(x, 0.0);
    if (name.contains("_gelu_tanh")) return x / 2 * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
    if (name.contains("_gelu")) return x / 2 * (1 + std::erf(x / std::sqrt(2.0)));
    return name.contains("_silu") ? x / (1 + std::exp(-x)) : x;
}

/// Whole numbers, so that only activations round.
void check_product(const std::string& name, const stdlib::FunctionSettings& settings = {}) {
    INFO(name);
    const std::uint64_t planes = 2, m = 19, n = 24, k = 40;
    const double whole[] = {-1, 0, 1, 2};
    const Called made(name, {{"planes", planes}, {"m", m}, {"n", n}, {"k", k}}, whole, settings);
    const bool a_by_columns = name.contains("_tn") || name.contains("_tt");
    const bool b_by_columns = name.contains("_nt") || name.contains("_tt");
    const std::vector<double>&A = made["A"], &B = made["B"], &C = made["C"];
    double worst = 0;
    for (std::uint64_t p = 0; p < planes; ++p)
        for (std::uint64_t i = 0; i < m; ++i)
            for (std::uint64_t j = 0; j < n; ++j) {
                double sum = 0;
                for (std::uint64_t e = 0; e < k; ++e)
                    sum += A[p * m * k + (a_by_columns ? e * m + i : i * k + e)] *
                           B[p * k * n + (b_by_columns ? j * k + e : e * n + j)];
                if (made.has("bias")) sum += made["bias"][j];
                sum = activated(name, sum);
                const std::uint64_t at = (p * m + i) * n + j;
                if (made.has("residual")) sum += made["residual"][at];
                worst = std::max(worst, std::abs(C[at] - sum) / std::max(std::abs(sum), 1.0));
            }
    const bool is_exact = !name.contains("_gelu") && !name.contains("_silu");
    CHECK(worst <= (is_exact ? 0 : 0x1p-20));
}

TEST_CASE("functions: products of all types and orders") {
    for (const char* type : {"f16", "f16_f32", "bf16", "bf16_f32", "tf32", "s8"})
        for (const char* orders : {"", "_nt", "_tn", "_tt"})
            check_product(std::string("gemm_tensor_core_") + type + orders);
}

TEST_CASE("functions: what is done with a product") {
    for (const char* name : {"f16_bias", "bf16_nt_relu", "s8_bias_relu", "f16_nt_residual", "bf16_bias_relu_residual",
                             "tf32_gelu", "tf32_nt_gelu_tanh", "tf32_bias_silu_residual", "s8_nt_bias_residual",
                             "f16_f32_nt_bias_relu_residual", "bf16_f32_bias_gelu"})
        check_product(std::string("gemm_tensor_core_") + name);
}

TEST_CASE("functions: products of matrices with pitches") {
    stdlib::FunctionSettings settings;
    for (const auto& [name, pitch] : {std::pair("A_pitch", "43"), {"B_pitch", "48"}, {"C_pitch", "25"}})
        settings.set(name, pitch);
    check_product("gemm_tensor_core_f16_nt", settings);
    settings.set("residual_pitch", "27");
    check_product("gemm_tensor_core_tf32_bias_residual", settings);
}

}  // namespace
}  // namespace ikat::tests
