// SPDX-License-Identifier: Apache-2.0
// The references of recipes: what a kernel's outputs must be for the arguments of one launch, by the plain loops of
// reference.hpp, and how large their errors may be. The bounds are for elements between -1 and 1.
#pragma once
#include "stdlib/spec/example.hpp"

namespace ikat::stdlib::reference {

void saxpy(Example& e);
void bias_activation(Example& e);
void residual_add(Example& e);
void cast(Example& e);
void sum(Example& e);
void max(Example& e);
void dot(Example& e);
void norm2(Example& e);
void argmax(Example& e);
void argmax_final(Example& e);
void softmax(Example& e);
void log_softmax(Example& e);
void layernorm(Example& e);
void rmsnorm(Example& e);
void layernorm_saving(Example& e);
void rmsnorm_saving(Example& e);
void fused_residual_rmsnorm(Example& e);
void softmax_backward(Example& e);
void log_softmax_backward(Example& e);
void softmax_causal_backward(Example& e);
void rmsnorm_backward(Example& e);
void layernorm_backward(Example& e);
void column_sums(Example& e);
void swiglu_backward(Example& e);
void gemm(Example& e);
void gemv(Example& e);
void gemv_transposed(Example& e);
void conv2d(Example& e);
void copy_matrix(Example& e);
void transpose(Example& e);
void rope(Example& e);
void kv_scatter(Example& e);
void gather_rows(Example& e);
void dequantise(Example& e);
void quantised_gemv(Example& e);
void packed_gemv(Example& e);
void quantise_q8_1(Example& e);
void dropout(Example& e);
void fill_uniform(Example& e);
void fill_normal(Example& e);
void advance_random(Example& e);
void optimiser(Example& e);
void clip_by_norm(Example& e);
void loss_scale_update(Example& e);

/// y = f(x, b, p, q) for each element, where b is a second array and p and q are numbers, if there are any.
using ElementFunction = double(double x, double b, double p, double q);
void elementwise(Example& e, ElementFunction* f);
/// dx = f(dy, x, p, q) in the same way, which is linear in dy.
void gradient(Example& e, ElementFunction* f);
/// The derivatives of activations.
double silu_slope(double x);
double gelu_slope(double x);
double gelu_tanh_slope(double x);

}  // namespace ikat::stdlib::reference
