// SPDX-License-Identifier: Apache-2.0
#include "tests/differential/stdlib/traffic_table.hpp"

namespace ikat::test {
namespace {

constexpr double rows = 32, columns = 1024, n = rows * columns;
const Given matrix = streamed(n), row = small(columns), per_row = small(rows), R = number(rows), C = number(columns),
            N = number(n), epsilon = number(1e-5);

std::vector<TrafficRow> make_rows() {
    return {
#define IKAT_UNARY(id, ...) {#id, {matrix, matrix, N}, "2 E s"},
#define IKAT_UNARY_1(id, ...) {#id, {matrix, matrix, number(0.5), N}, "2 E s"},
#define IKAT_UNARY_2(id, ...) {#id, {matrix, matrix, number(0.5), number(1), N}, "2 E s"},
#define IKAT_BINARY(id, ...) {#id, {matrix, matrix, matrix, N}, "3 E s"},
#include "stdlib/elementwise/elementwise.def"
        {"residual_add", {matrix, matrix, N}, "3 E s"},
        {"saxpy", {number(2), matrix, matrix, N}, "3 E s"},
        {"bias_activation_none", {matrix, row, matrix, R, C}, "2 E s"},
        {"bias_activation_relu", {matrix, row, matrix, R, C}, "2 E s"},
        {"bias_activation_gelu", {matrix, row, matrix, R, C}, "2 E s"},
        {"bias_activation_gelu_tanh", {matrix, row, matrix, R, C}, "2 E s"},
        {"bias_activation_silu", {matrix, row, matrix, R, C}, "2 E s"},

        {"sum_f32", {matrix, small(1), N}, "E s"},
        {"sum_f16", {matrix, small(1), N}, "E s"},
        {"sum_bf16", {matrix, small(1), N}, "E s"},
        {"max_f32", {matrix, small(1), N}, "E s"},
        {"max_f16", {matrix, small(1), N}, "E s"},
        {"max_bf16", {matrix, small(1), N}, "E s"},
        {"norm2", {matrix, small(1), N}, "E s"},
        {"dot", {matrix, matrix, small(1), N}, "2 E s"},
        {"argmax", {matrix, small(1), small(1), N}, "E s"},
        {"argmax_final", {matrix, matrix, small(1), small(1), N}, "8 s"},

        {"softmax_warp", {matrix, matrix, R, C}, "2 E s"},
        {"softmax_block", {matrix, matrix, R, C}, "2 E s"},
        {"softmax_online", {matrix, matrix, R, C}, "2 E s"},
        {"log_softmax", {matrix, matrix, R, C}, "2 E s"},
        {"layernorm", {matrix, row, row, matrix, R, C, epsilon}, "2 E s"},
        {"layernorm_plain", {matrix, matrix, R, C, epsilon}, "2 E s"},
        {"rmsnorm", {matrix, row, matrix, R, C, epsilon}, "2 E s"},
        {"rmsnorm_per_head", {matrix, row, matrix, R, C, epsilon}, "2 E s"},
        {"fused_residual_rmsnorm", {matrix, matrix, row, matrix, R, C, epsilon}, "4 E s"},

        {"copy_matrix", {matrix, R, C, C, matrix, R, C, C}, "2 E s"},
        {"transpose", {matrix, matrix, number(2), R, number(columns / 2)}, "2 E s"},
        {"cast_f16_f32", {matrix, matrix, N}, "6 s"},
        {"cast_f32_f16", {matrix, matrix, N}, "6 s"},
        {"cast_bf16_f32", {matrix, matrix, N}, "6 s"},
        {"cast_f32_bf16", {matrix, matrix, N}, "6 s"},
        {"rope_interleaved",
         {matrix, per_row, R, number(8), number(128), number(128), number(10000), number(1)},
         "2 E s"},
        {"rope_neox", {matrix, per_row, R, number(8), number(128), number(128), number(10000), number(1)}, "2 E s"},
        {"kv_scatter", {matrix, per_row, matrix, R, C, R}, "2 E s"},

        {"gemv_warp_reduce", {matrix, row, per_row, R, C}, "E s, s the weights"},
        {"gemv_coalesced", {matrix, per_row, row, R, C}, "E s, s the weights"},

#define IKAT_FORMAT(id, blocks, weights)                                    \
    {"dequantise_" id, {blocks, matrix, number(n / weights)}, "b s + 4 s"}, \
        {"gemv_" id, {blocks, row, per_row, R, C}, "b s"},                  \
        {"gemv_" id "_q8_1", {blocks, small(columns / 32 * 9), per_row, R, C}, "b s"},
        IKAT_FORMAT("q4_0", streamed(n / 32 * 18), 32) IKAT_FORMAT("q8_0", streamed(n / 32 * 34), 32)
            IKAT_FORMAT("q4_k", streamed(n / 256 * 144), 256) IKAT_FORMAT("q5_k", streamed(n / 256 * 176), 256)
                IKAT_FORMAT("q6_k", streamed(n / 256 * 210), 256)
#undef IKAT_FORMAT
                    {"quantise_q8_1", {matrix, streamed(n / 32 * 9), number(n / 32)}, "5.125 s"},
    };
}

std::vector<TrafficRow> make_multi_pass_rows() {
    constexpr double few = 2, long_row = 65536;
    const Given x = streamed(few * long_row), weights = small(long_row), rows = number(few), columns = number(long_row);
    return {
        {"softmax_warp", {x, x, rows, columns}, "2 E s", 2},
        {"softmax_block", {x, x, rows, columns}, "2 E s", 2},
        {"softmax_online", {x, x, rows, columns}, "2 E s", 1.5},
        {"log_softmax", {x, x, rows, columns}, "2 E s", 2},
        {"layernorm", {x, weights, weights, x, rows, columns, epsilon}, "2 E s", 2},
        {"layernorm_plain", {x, x, rows, columns, epsilon}, "2 E s", 2},
        {"rmsnorm", {x, weights, x, rows, columns, epsilon}, "2 E s", 1.5},
        {"rmsnorm_per_head", {x, weights, x, rows, columns, epsilon}, "2 E s", 1.5},
        {"fused_residual_rmsnorm", {x, x, weights, x, rows, columns, epsilon}, "4 E s", 1.5},
    };
}

std::vector<TrafficRow> make_uneven_rows() {
    constexpr double many = 64, length = 1001, head = 333;
    const Given x = streamed(many * length), weights = small(length), of_row = small(many), rows = number(many),
                columns = number(length), heads = streamed(many * head), of_head = small(head), C = number(head);
    return {
        {"bias_activation_relu", {x, weights, x, rows, columns}, "2 E s"},
        {"softmax_warp", {heads, heads, rows, C}, "2 E s"},
        {"softmax_block", {x, x, rows, columns}, "2 E s"},
        {"softmax_online", {x, x, rows, columns}, "2 E s"},
        {"log_softmax", {x, x, rows, columns}, "2 E s"},
        {"layernorm", {x, weights, weights, x, rows, columns, epsilon}, "2 E s"},
        {"layernorm_plain", {x, x, rows, columns, epsilon}, "2 E s"},
        {"rmsnorm", {x, weights, x, rows, columns, epsilon}, "2 E s"},
        {"rmsnorm_per_head", {heads, of_head, heads, rows, C, epsilon}, "2 E s"},
        {"fused_residual_rmsnorm", {x, x, weights, x, rows, columns, epsilon}, "4 E s"},
        {"copy_matrix", {x, rows, columns, columns, x, rows, columns, columns}, "2 E s"},
        {"kv_scatter", {x, of_row, x, rows, columns, rows}, "2 E s"},
        {"gemv_warp_reduce", {x, weights, of_row, rows, columns}, "E s, s the weights"},
    };
}

constexpr TrafficException exceptions[] = {
    {"conv2d",
     "each element of x is read for many of y: bound by arithmetic, and by what the second-level cache holds"},
    {"gemm_naive", "each element is read for many of C: bound by arithmetic, a check for better kernels"},
    {"gemm_tiled", "each element is read for many of C: bound by arithmetic"},
};

}  // namespace

std::span<const TrafficRow> traffic_rows() {
    static const std::vector<TrafficRow> made = make_rows();
    return made;
}
std::span<const TrafficRow> multi_pass_rows() {
    static const std::vector<TrafficRow> made = make_multi_pass_rows();
    return made;
}
std::span<const TrafficRow> uneven_rows() {
    static const std::vector<TrafficRow> made = make_uneven_rows();
    return made;
}
std::span<const TrafficException> traffic_exceptions() { return exceptions; }

}  // namespace ikat::test
