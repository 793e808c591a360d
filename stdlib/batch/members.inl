// SPDX-License-Identifier: Apache-2.0
// The members of CatalogueMembers, a function of the library each: made from the catalogue by
// `cmake --build --preset dev -t bless`, never edited by hand.

/// a step of Adam. gradient: any shape; parameter: any shape, changed in place; first: any shape, changed in place;
/// second: any shape, changed in place; step: counted from 1, which it is if it is not said; learning_rate: 1e-3 if it
/// is not said; beta1: 0.9 if it is not said; beta2: 0.999 if it is not said; epsilon: 1e-8 if it is not said;
/// weight_decay: 0 if it is not said, of adamw 0.01; scale: what gradients are multiplied by, 1 if it is not said. As
/// stdlib::adam(queue, gradient, parameter, first, second, step, options).
template <class T0, class T1, class T2, class T3>
auto adam(const T0& gradient, T1&& parameter, T2&& first, T3&& second, const Setting& step = {},
          const Setting& learning_rate = {}, const Setting& beta1 = {}, const Setting& beta2 = {},
          const Setting& epsilon = {}, const Setting& weight_decay = {}, const Setting& scale = {},
          const Where& where = Where::current()) const {
    return self().template make<>({"adam", where}, {self().operand(gradient, where),
                              self().operand(std::forward<T1>(parameter), where),
                              self().operand(std::forward<T2>(first), where),
                              self().operand(std::forward<T3>(second), where)}, {{"step", step},
                              {"learning_rate", learning_rate}, {"beta1", beta1}, {"beta2", beta2},
                              {"epsilon", epsilon}, {"weight_decay", weight_decay}, {"scale", scale}});
}

/// a step of AdamW. gradient: any shape; parameter: any shape, changed in place; first: any shape, changed in place;
/// second: any shape, changed in place; step: counted from 1, which it is if it is not said; learning_rate: 1e-3 if it
/// is not said; beta1: 0.9 if it is not said; beta2: 0.999 if it is not said; epsilon: 1e-8 if it is not said;
/// weight_decay: 0 if it is not said, of adamw 0.01; scale: what gradients are multiplied by, 1 if it is not said. As
/// stdlib::adamw(queue, gradient, parameter, first, second, step, options).
template <class T0, class T1, class T2, class T3>
auto adamw(const T0& gradient, T1&& parameter, T2&& first, T3&& second, const Setting& step = {},
           const Setting& learning_rate = {}, const Setting& beta1 = {}, const Setting& beta2 = {},
           const Setting& epsilon = {}, const Setting& weight_decay = {}, const Setting& scale = {},
           const Where& where = Where::current()) const {
    return self().template make<>({"adamw", where}, {self().operand(gradient, where),
                              self().operand(std::forward<T1>(parameter), where),
                              self().operand(std::forward<T2>(first), where),
                              self().operand(std::forward<T3>(second), where)}, {{"step", step},
                              {"learning_rate", learning_rate}, {"beta1", beta1}, {"beta2", beta2},
                              {"epsilon", epsilon}, {"weight_decay", weight_decay}, {"scale", scale}});
}

/// y = a + b. a: any shape; b: any shape; y: any shape, made. As stdlib::elementwise(queue, Binary::add, a, b, y).
template <class T0, class T1>
auto add(const T0& a, const T1& b, const Where& where = Where::current()) const {
    return self().template make<ArrayOf<ElementOf<T0>>>({"add", where}, {self().operand(a, where),
                              self().operand(b, where)}, {});
}

/// adds to the offset of a state of random numbers. state: words, changed in place; offsets: how many, 1 if it is not
/// set. As stdlib::advance_random(queue, state, offsets).
template <class T0>
auto advance_random(T0&& state, const Setting& offsets = {}, const Where& where = Where::current()) const {
    return self().template make<>({"advance_random", where}, {self().operand(std::forward<T0>(state), where)},
                              {{"offsets", offsets}});
}

/// the largest element and its index. x: any shape; value: a number, made; index: a number, made. As
/// stdlib::argmax(queue, x, value, index, workspace).
template <class T0>
auto argmax(const T0& x, const Where& where = Where::current()) const {
    return self().template make<NumberOf<float>, NumberOf<std::uint32_t>>({"argmax", where}, {self().operand(x, where)},
                              {});
}

/// x: ... x columns; bias: columns; y: ... x columns, made; activation: none, relu, gelu, gelu_tanh or silu; none if it
/// is not set. As stdlib::bias_activation(queue, activation, x, bias, y).
template <class T0, class T1>
auto bias_activation(const T0& x, const T1& bias, const Setting& activation = {},
                     const Where& where = Where::current()) const {
    return self().template make<ArrayOf<ElementOf<T0>>>({"bias_activation", where}, {self().operand(x, where),
                              self().operand(bias, where)}, {{"activation", activation}});
}

/// x: any shape; y: any shape, made. As stdlib::cast(queue, x, y).
template <class Y, class T0>
auto cast(const T0& x, const Where& where = Where::current()) const {
    return self().template make<ArrayOf<Y>>({"cast", where}, {self().operand(x, where)}, {});
}

/// y = low where x < low, high where x > high, else x. x: any shape; y: any shape, made; low: a number; high: a number.
/// As stdlib::elementwise(queue, Unary2::clip, x, y, low, high).
template <class T0>
auto clip(const T0& x, const Setting& low, const Setting& high, const Where& where = Where::current()) const {
    return self().template make<ArrayOf<ElementOf<T0>>>({"clip", where}, {self().operand(x, where)}, {{"low", low},
                              {"high", high}});
}

/// the sum of each column of a matrix, in f32. x: ... x columns; sums: columns, made. As stdlib::column_sums(queue, x,
/// sums, workspace).
template <class T0>
auto column_sums(const T0& x, const Where& where = Where::current()) const {
    return self().template make<ArrayOf<float>>({"column_sums", where}, {self().operand(x, where)}, {});
}

/// convolution of images with stride, padding, dilation and groups. x: batch x channels x height x width; w: filters x
/// depth x kernel_h x kernel_w; y: batch x filters x out_h x out_w, made; stride_h: 1 if it is not set; stride_w: 1 if
/// it is not set; pad_h: lines of zeros on each side; none if it is not set; pad_w: columns of zeros on each side; none
/// if it is not set; dilation_h: 1 if it is not set; dilation_w: 1 if it is not set; groups: of the channels; 1 if it
/// is not set. As stdlib::conv2d(queue, x, w, y, options).
template <class T0, class T1>
auto conv2d(const T0& x, const T1& w, const Setting& stride_h = {}, const Setting& stride_w = {},
            const Setting& pad_h = {}, const Setting& pad_w = {}, const Setting& dilation_h = {},
            const Setting& dilation_w = {}, const Setting& groups = {}, const Where& where = Where::current()) const {
    return self().template make<ArrayOf<ElementOf<T0>>>({"conv2d", where}, {self().operand(x, where),
                              self().operand(w, where)}, {{"stride_h", stride_h}, {"stride_w", stride_w},
                              {"pad_h", pad_h}, {"pad_w", pad_w}, {"dilation_h", dilation_h},
                              {"dilation_w", dilation_w}, {"groups", groups}});
}

/// loss = mean of log(sum of exp(x)) - x[target]. logits: rows x classes; targets: rows; loss: a number, made;
/// reduction: of the rows' losses: mean or sum; mean if it is not set; ignored: rows with this target do not count;
/// -100 if it is not set; smoothing: how much of the loss is that of a uniform target; 0 if it is not set; z_loss: what
/// the square of the logarithm of the sum is multiplied with; 0 if it is not set; shift: 1: the target of a row is that
/// of the next one; 0 if it is not set; scale: what the gradient is multiplied with; 1 if it is not set. As
/// stdlib::cross_entropy(queue, logits, targets, loss, options).
template <class T0, class T1>
auto cross_entropy(const T0& logits, const T1& targets, const Setting& reduction = {}, const Setting& ignored = {},
                   const Setting& smoothing = {}, const Setting& z_loss = {}, const Setting& shift = {},
                   const Setting& scale = {}, const Where& where = Where::current()) const {
    return self().template make<NumberOf<float>>({"cross_entropy", where}, {self().operand(logits, where),
                              self().operand(targets, where)}, {{"reduction", reduction}, {"ignored", ignored},
                              {"smoothing", smoothing}, {"z_loss", z_loss}, {"shift", shift}, {"scale", scale}});
}

/// y[h, t] = x[t, h]. x: [sequences x] tokens x heads x head_dim; y: [sequences x] heads x tokens x head_dim, made. As
/// stdlib::deinterleave_heads(queue, x, y).
template <class T0>
auto deinterleave_heads(const T0& x, const Where& where = Where::current()) const {
    return self().template make<ArrayOf<ElementOf<T0>>>({"deinterleave_heads", where}, {self().operand(x, where)}, {});
}

/// the f32 values of IQ4_NL weights. W: ... x columns; y: ... x columns, made. As stdlib::dequantise(queue, W, y).
template <class T0>
auto dequantise_iq4_nl(const T0& W, const Where& where = Where::current()) const {
    return self().template make<ArrayOf<float>>({"dequantise_iq4_nl", where}, {self().operand(W, where)}, {});
}

/// the f32 values of IQ4_XS weights. W: ... x columns; y: ... x columns, made. As stdlib::dequantise(queue, W, y).
template <class T0>
auto dequantise_iq4_xs(const T0& W, const Where& where = Where::current()) const {
    return self().template make<ArrayOf<float>>({"dequantise_iq4_xs", where}, {self().operand(W, where)}, {});
}

/// the f32 values of MXFP4 weights. W: ... x columns; y: ... x columns, made. As stdlib::dequantise(queue, W, y).
template <class T0>
auto dequantise_mxfp4(const T0& W, const Where& where = Where::current()) const {
    return self().template make<ArrayOf<float>>({"dequantise_mxfp4", where}, {self().operand(W, where)}, {});
}

/// the f32 values of Q2_K weights. W: ... x columns; y: ... x columns, made. As stdlib::dequantise(queue, W, y).
template <class T0>
auto dequantise_q2_k(const T0& W, const Where& where = Where::current()) const {
    return self().template make<ArrayOf<float>>({"dequantise_q2_k", where}, {self().operand(W, where)}, {});
}

/// the f32 values of Q3_K weights. W: ... x columns; y: ... x columns, made. As stdlib::dequantise(queue, W, y).
template <class T0>
auto dequantise_q3_k(const T0& W, const Where& where = Where::current()) const {
    return self().template make<ArrayOf<float>>({"dequantise_q3_k", where}, {self().operand(W, where)}, {});
}

/// the f32 values of Q4_0 weights. W: ... x columns; y: ... x columns, made. As stdlib::dequantise(queue, W, y).
template <class T0>
auto dequantise_q4_0(const T0& W, const Where& where = Where::current()) const {
    return self().template make<ArrayOf<float>>({"dequantise_q4_0", where}, {self().operand(W, where)}, {});
}

/// the f32 values of Q4_1 weights. W: ... x columns; y: ... x columns, made. As stdlib::dequantise(queue, W, y).
template <class T0>
auto dequantise_q4_1(const T0& W, const Where& where = Where::current()) const {
    return self().template make<ArrayOf<float>>({"dequantise_q4_1", where}, {self().operand(W, where)}, {});
}

/// the f32 values of Q4_K weights. W: ... x columns; y: ... x columns, made. As stdlib::dequantise(queue, W, y).
template <class T0>
auto dequantise_q4_k(const T0& W, const Where& where = Where::current()) const {
    return self().template make<ArrayOf<float>>({"dequantise_q4_k", where}, {self().operand(W, where)}, {});
}

/// the f32 values of Q5_0 weights. W: ... x columns; y: ... x columns, made. As stdlib::dequantise(queue, W, y).
template <class T0>
auto dequantise_q5_0(const T0& W, const Where& where = Where::current()) const {
    return self().template make<ArrayOf<float>>({"dequantise_q5_0", where}, {self().operand(W, where)}, {});
}

/// the f32 values of Q5_1 weights. W: ... x columns; y: ... x columns, made. As stdlib::dequantise(queue, W, y).
template <class T0>
auto dequantise_q5_1(const T0& W, const Where& where = Where::current()) const {
    return self().template make<ArrayOf<float>>({"dequantise_q5_1", where}, {self().operand(W, where)}, {});
}

/// the f32 values of Q5_K weights. W: ... x columns; y: ... x columns, made. As stdlib::dequantise(queue, W, y).
template <class T0>
auto dequantise_q5_k(const T0& W, const Where& where = Where::current()) const {
    return self().template make<ArrayOf<float>>({"dequantise_q5_k", where}, {self().operand(W, where)}, {});
}

/// the f32 values of Q6_K weights. W: ... x columns; y: ... x columns, made. As stdlib::dequantise(queue, W, y).
template <class T0>
auto dequantise_q6_k(const T0& W, const Where& where = Where::current()) const {
    return self().template make<ArrayOf<float>>({"dequantise_q6_k", where}, {self().operand(W, where)}, {});
}

/// the f32 values of Q8_0 weights. W: ... x columns; y: ... x columns, made. As stdlib::dequantise(queue, W, y).
template <class T0>
auto dequantise_q8_0(const T0& W, const Where& where = Where::current()) const {
    return self().template make<ArrayOf<float>>({"dequantise_q8_0", where}, {self().operand(W, where)}, {});
}

/// the sum of x[i] y[i], in f32. x: any shape; y: any shape; total: a number, made. As stdlib::dot(queue, x, y, total,
/// workspace).
template <class T0, class T1>
auto dot(const T0& x, const T1& y, const Where& where = Where::current()) const {
    return self().template make<NumberOf<float>>({"dot", where}, {self().operand(x, where), self().operand(y, where)},
                              {});
}

/// zeros for elements by chance, the others divided by 1 - probability. x: any shape; y: any shape, made; probability:
/// of an element to become 0; 0.5 if it is not set; seed: of the random numbers, 0 if it is not set; offset: from which
/// on they are taken, in fours; 0 if it is not set. As stdlib::dropout(queue, x, y, options).
template <class T0>
auto dropout(const T0& x, const Setting& probability = {}, const Setting& seed = {}, const Setting& offset = {},
             const Where& where = Where::current()) const {
    return self().template make<ArrayOf<ElementOf<T0>>>({"dropout", where}, {self().operand(x, where)},
                              {{"probability", probability}, {"seed", seed}, {"offset", offset}});
}

/// the same, with the seed and an offset that are on the device. x: any shape; state: words; y: any shape, made;
/// probability: of an element to become 0; 0.5 if it is not set; offset: from which on they are taken, in fours; 0 if
/// it is not set. As stdlib::dropout(queue, x, y, {.random = {.state = state}}).
template <class T0, class T1>
auto dropout_state(const T0& x, const T1& state, const Setting& probability = {}, const Setting& offset = {},
                   const Where& where = Where::current()) const {
    return self().template make<ArrayOf<ElementOf<T0>>>({"dropout_state", where}, {self().operand(x, where),
                              self().operand(state, where)}, {{"probability", probability}, {"offset", offset}});
}

/// y = x where x > 0, else alpha (exp(x) - 1). x: any shape; y: any shape, made; alpha: a number. As
/// stdlib::elementwise(queue, Unary1::elu, x, y, alpha).
template <class T0>
auto elu(const T0& x, const Setting& alpha, const Where& where = Where::current()) const {
    return self().template make<ArrayOf<ElementOf<T0>>>({"elu", where}, {self().operand(x, where)}, {{"alpha", alpha}});
}

/// dx = dy where x > 0, else alpha exp(x) dy. dy: any shape; x: any shape; dx: any shape, made; alpha: a number. As
/// stdlib::elementwise(queue, Backward1::elu_backward, dy, x, dx, alpha).
template <class T0, class T1>
auto elu_backward(const T0& dy, const T1& x, const Setting& alpha, const Where& where = Where::current()) const {
    return self().template make<ArrayOf<ElementOf<T0>>>({"elu_backward", where}, {self().operand(dy, where),
                              self().operand(x, where)}, {{"alpha", alpha}});
}

/// dtable[ids[t]] = the sum of dy[t]. ids: tokens; dy: tokens x columns; dtable: rows x columns, changed in place;
/// accumulate: 1: the gradient is added to the array's, which is replaced if it is not set. As
/// stdlib::embedding_backward(queue, ids, dy, dtable, {.accumulate}).
template <class T0, class T1, class T2>
auto embedding_backward(const T0& ids, const T1& dy, T2&& dtable, const Setting& accumulate = {},
                        const Where& where = Where::current()) const {
    return self().template make<>({"embedding_backward", where}, {self().operand(ids, where), self().operand(dy, where),
                              self().operand(std::forward<T2>(dtable), where)}, {{"accumulate", accumulate}});
}

/// random numbers of the normal distribution. x: any shape, changed in place; mean: 0 if it is not set; deviation: 1 if
/// it is not set; seed: of the random numbers, 0 if it is not set; offset: from which on they are taken, in fours; 0 if
/// it is not set. As stdlib::fill_normal(queue, x, mean, deviation, random).
template <class T0>
auto fill_normal(T0&& x, const Setting& mean = {}, const Setting& deviation = {}, const Setting& seed = {},
                 const Setting& offset = {}, const Where& where = Where::current()) const {
    return self().template make<>({"fill_normal", where}, {self().operand(std::forward<T0>(x), where)}, {{"mean", mean},
                              {"deviation", deviation}, {"seed", seed}, {"offset", offset}});
}

/// random numbers between two. x: any shape, changed in place; low: 0 if it is not set; high: 1 if it is not set; seed:
/// of the random numbers, 0 if it is not set; offset: from which on they are taken, in fours; 0 if it is not set. As
/// stdlib::fill_uniform(queue, x, low, high, random).
template <class T0>
auto fill_uniform(T0&& x, const Setting& low = {}, const Setting& high = {}, const Setting& seed = {},
                  const Setting& offset = {}, const Where& where = Where::current()) const {
    return self().template make<>({"fill_uniform", where}, {self().operand(std::forward<T0>(x), where)}, {{"low", low},
                              {"high", high}, {"seed", seed}, {"offset", offset}});
}

/// loss = mean of log(sum of exp(x)) - x[target], dlogits = its gradient. logits: rows x classes; targets: rows; loss:
/// a number, made; dlogits: rows x classes, made; reduction: of the rows' losses: mean or sum; mean if it is not set;
/// ignored: rows with this target do not count; -100 if it is not set; smoothing: how much of the loss is that of a
/// uniform target; 0 if it is not set; z_loss: what the square of the logarithm of the sum is multiplied with; 0 if it
/// is not set; shift: 1: the target of a row is that of the next one; 0 if it is not set; scale: what the gradient is
/// multiplied with; 1 if it is not set. As stdlib::fused_cross_entropy(queue, logits, targets, loss, dlogits, options).
template <class T0, class T1>
auto fused_cross_entropy(const T0& logits, const T1& targets, const Setting& reduction = {},
                         const Setting& ignored = {}, const Setting& smoothing = {}, const Setting& z_loss = {},
                         const Setting& shift = {}, const Setting& scale = {},
                         const Where& where = Where::current()) const {
    return self().template make<NumberOf<float>, ArrayOf<ElementOf<T0>>>({"fused_cross_entropy", where},
                              {self().operand(logits, where), self().operand(targets, where)},
                              {{"reduction", reduction}, {"ignored", ignored}, {"smoothing", smoothing},
                              {"z_loss", z_loss}, {"shift", shift}, {"scale", scale}});
}

/// x: ... x columns; residual: ... x columns, changed in place; gamma: columns; y: ... x columns, made; epsilon: what
/// is added under the root, such as 1e-5. As stdlib::fused_residual_rmsnorm(queue, x, residual, gamma, y, epsilon).
template <class T0, class T1, class T2>
auto fused_residual_rmsnorm(const T0& x, T1&& residual, const T2& gamma, const Setting& epsilon,
                            const Where& where = Where::current()) const {
    return self().template make<ArrayOf<ElementOf<T0>>>({"fused_residual_rmsnorm", where}, {self().operand(x, where),
                              self().operand(std::forward<T1>(residual), where), self().operand(gamma, where)},
                              {{"epsilon", epsilon}});
}

/// y = silu(gate) up = gate / (1 + exp(-gate)) up. gate: any shape; up: any shape; y: any shape, made. As
/// stdlib::elementwise(queue, Binary::fused_swiglu, gate, up, y).
template <class T0, class T1>
auto fused_swiglu(const T0& gate, const T1& up, const Where& where = Where::current()) const {
    return self().template make<ArrayOf<ElementOf<T0>>>({"fused_swiglu", where}, {self().operand(gate, where),
                              self().operand(up, where)}, {});
}

/// copies given rows of a table. ids: tokens; table: table_rows x width; y: tokens x width, made. As
/// stdlib::gather_rows(queue, ids, table, y).
template <class T0, class T1>
auto gather_rows(const T0& ids, const T1& table, const Where& where = Where::current()) const {
    return self().template make<ArrayOf<ElementOf<T1>>>({"gather_rows", where}, {self().operand(ids, where),
                              self().operand(table, where)}, {});
}

/// y = x/2 (1 + erf(x / sqrt 2)). x: any shape; y: any shape, made. As stdlib::elementwise(queue, Unary::gelu, x, y).
template <class T0>
auto gelu(const T0& x, const Where& where = Where::current()) const {
    return self().template make<ArrayOf<ElementOf<T0>>>({"gelu", where}, {self().operand(x, where)}, {});
}

/// dx = dy (P(x) + x p(x)), the normal distribution and its density. dy: any shape; x: any shape; dx: any shape, made.
/// As stdlib::elementwise(queue, Backward::gelu_backward, dy, x, dx).
template <class T0, class T1>
auto gelu_backward(const T0& dy, const T1& x, const Where& where = Where::current()) const {
    return self().template make<ArrayOf<ElementOf<T0>>>({"gelu_backward", where}, {self().operand(dy, where),
                              self().operand(x, where)}, {});
}

/// y = x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))). x: any shape; y: any shape, made. As stdlib::elementwise(queue,
/// Unary::gelu_tanh, x, y).
template <class T0>
auto gelu_tanh(const T0& x, const Where& where = Where::current()) const {
    return self().template make<ArrayOf<ElementOf<T0>>>({"gelu_tanh", where}, {self().operand(x, where)}, {});
}

/// dx = dy times the derivative of gelu_tanh. dy: any shape; x: any shape; dx: any shape, made. As
/// stdlib::elementwise(queue, Backward::gelu_tanh_backward, dy, x, dx).
template <class T0, class T1>
auto gelu_tanh_backward(const T0& dy, const T1& x, const Where& where = Where::current()) const {
    return self().template make<ArrayOf<ElementOf<T0>>>({"gelu_tanh_backward", where}, {self().operand(dy, where),
                              self().operand(x, where)}, {});
}

/// A: m x k; B: k x n; C: m x n, made. As stdlib::gemm(queue, A, B, C).
template <class T0, class T1>
auto gemm(const T0& A, const T1& B, const Where& where = Where::current()) const {
    return self().template make<ArrayOf<float>>({"gemm", where}, {self().operand(A, where), self().operand(B, where)},
                              {});
}

/// C = alpha A B + beta C. A: [planes x] m x k; B: [planes x] k x n; C: [planes x] m x n, made; alpha: a number, 1 if
/// it is not set; beta: a number, 0 if it is not set: then C is not read. As stdlib::gemm_f32(queue, A, B, C, {}).
template <class T0, class T1>
auto gemm_f32_nn(const T0& A, const T1& B, const Setting& alpha = {}, const Setting& beta = {},
                 const Where& where = Where::current()) const {
    return self().template make<ArrayOf<float>>({"gemm_f32_nn", where}, {self().operand(A, where),
                              self().operand(B, where)}, {{"alpha", alpha}, {"beta", beta}});
}

/// C = alpha A B + beta C. A: [planes x] m x k; B: [planes x] n x k; C: [planes x] m x n, made; alpha: a number, 1 if
/// it is not set; beta: a number, 0 if it is not set: then C is not read. As stdlib::gemm_f32(queue, A, B, C, {.b =
/// MatrixOrder::Columns}).
template <class T0, class T1>
auto gemm_f32_nt(const T0& A, const T1& B, const Setting& alpha = {}, const Setting& beta = {},
                 const Where& where = Where::current()) const {
    return self().template make<ArrayOf<float>>({"gemm_f32_nt", where}, {self().operand(A, where),
                              self().operand(B, where)}, {{"alpha", alpha}, {"beta", beta}});
}

/// C = alpha A B + beta C. A: [planes x] k x m; B: [planes x] k x n; C: [planes x] m x n, made; alpha: a number, 1 if
/// it is not set; beta: a number, 0 if it is not set: then C is not read. As stdlib::gemm_f32(queue, A, B, C, {.a =
/// MatrixOrder::Columns}).
template <class T0, class T1>
auto gemm_f32_tn(const T0& A, const T1& B, const Setting& alpha = {}, const Setting& beta = {},
                 const Where& where = Where::current()) const {
    return self().template make<ArrayOf<float>>({"gemm_f32_tn", where}, {self().operand(A, where),
                              self().operand(B, where)}, {{"alpha", alpha}, {"beta", beta}});
}

/// C = alpha A B + beta C. A: [planes x] k x m; B: [planes x] n x k; C: [planes x] m x n, made; alpha: a number, 1 if
/// it is not set; beta: a number, 0 if it is not set: then C is not read. As stdlib::gemm_f32(queue, A, B, C, {.a =
/// MatrixOrder::Columns, .b = MatrixOrder::Columns}).
template <class T0, class T1>
auto gemm_f32_tt(const T0& A, const T1& B, const Setting& alpha = {}, const Setting& beta = {},
                 const Where& where = Where::current()) const {
    return self().template make<ArrayOf<float>>({"gemm_f32_tt", where}, {self().operand(A, where),
                              self().operand(B, where)}, {{"alpha", alpha}, {"beta", beta}});
}

/// Y = X W', W of iq4_nl weights. W: rows x columns; X: tokens x columns; Y: tokens x rows, made; activations: exact,
/// or q8_1, rounded to 8 bits; exact if it is not set; schedule: of tiles of more than eight tokens: stream_k; chosen
/// if it is not set; multiprocessors: for how many stream_k divides tiles; those of the device if it is not set. As
/// stdlib::gemm(queue, W, X, Y).
template <class T0, class T1>
auto gemm_iq4_nl(const T0& W, const T1& X, const Setting& activations = {}, const Setting& schedule = {},
                 const Setting& multiprocessors = {}, const Where& where = Where::current()) const {
    return self().template make<ArrayOf<ElementOf<T1>>>({"gemm_iq4_nl", where}, {self().operand(W, where),
                              self().operand(X, where)}, {{"activations", activations}, {"schedule", schedule},
                              {"multiprocessors", multiprocessors}});
}

/// Y = X W', W of iq4_xs weights. W: rows x columns; X: tokens x columns; Y: tokens x rows, made; activations: exact,
/// or q8_1, rounded to 8 bits; exact if it is not set; schedule: of tiles of more than eight tokens: stream_k; chosen
/// if it is not set; multiprocessors: for how many stream_k divides tiles; those of the device if it is not set. As
/// stdlib::gemm(queue, W, X, Y).
template <class T0, class T1>
auto gemm_iq4_xs(const T0& W, const T1& X, const Setting& activations = {}, const Setting& schedule = {},
                 const Setting& multiprocessors = {}, const Where& where = Where::current()) const {
    return self().template make<ArrayOf<ElementOf<T1>>>({"gemm_iq4_xs", where}, {self().operand(W, where),
                              self().operand(X, where)}, {{"activations", activations}, {"schedule", schedule},
                              {"multiprocessors", multiprocessors}});
}

/// Y = X W', W of mxfp4 weights. W: rows x columns; X: tokens x columns; Y: tokens x rows, made; activations: exact, or
/// q8_1, rounded to 8 bits; exact if it is not set; schedule: of tiles of more than eight tokens: stream_k; chosen if
/// it is not set; multiprocessors: for how many stream_k divides tiles; those of the device if it is not set. As
/// stdlib::gemm(queue, W, X, Y).
template <class T0, class T1>
auto gemm_mxfp4(const T0& W, const T1& X, const Setting& activations = {}, const Setting& schedule = {},
                const Setting& multiprocessors = {}, const Where& where = Where::current()) const {
    return self().template make<ArrayOf<ElementOf<T1>>>({"gemm_mxfp4", where}, {self().operand(W, where),
                              self().operand(X, where)}, {{"activations", activations}, {"schedule", schedule},
                              {"multiprocessors", multiprocessors}});
}

/// Y = X W', W of q2_k weights. W: rows x columns; X: tokens x columns; Y: tokens x rows, made; activations: exact, or
/// q8_1, rounded to 8 bits; exact if it is not set; schedule: of tiles of more than eight tokens: stream_k; chosen if
/// it is not set; multiprocessors: for how many stream_k divides tiles; those of the device if it is not set. As
/// stdlib::gemm(queue, W, X, Y).
template <class T0, class T1>
auto gemm_q2_k(const T0& W, const T1& X, const Setting& activations = {}, const Setting& schedule = {},
               const Setting& multiprocessors = {}, const Where& where = Where::current()) const {
    return self().template make<ArrayOf<ElementOf<T1>>>({"gemm_q2_k", where}, {self().operand(W, where),
                              self().operand(X, where)}, {{"activations", activations}, {"schedule", schedule},
                              {"multiprocessors", multiprocessors}});
}

/// Y = X W', W of q3_k weights. W: rows x columns; X: tokens x columns; Y: tokens x rows, made; activations: exact, or
/// q8_1, rounded to 8 bits; exact if it is not set; schedule: of tiles of more than eight tokens: stream_k; chosen if
/// it is not set; multiprocessors: for how many stream_k divides tiles; those of the device if it is not set. As
/// stdlib::gemm(queue, W, X, Y).
template <class T0, class T1>
auto gemm_q3_k(const T0& W, const T1& X, const Setting& activations = {}, const Setting& schedule = {},
               const Setting& multiprocessors = {}, const Where& where = Where::current()) const {
    return self().template make<ArrayOf<ElementOf<T1>>>({"gemm_q3_k", where}, {self().operand(W, where),
                              self().operand(X, where)}, {{"activations", activations}, {"schedule", schedule},
                              {"multiprocessors", multiprocessors}});
}

/// Y = X W', W of q4_0 weights. W: rows x columns; X: tokens x columns; Y: tokens x rows, made; activations: exact, or
/// q8_1, rounded to 8 bits; exact if it is not set; schedule: of tiles of more than eight tokens: stream_k; chosen if
/// it is not set; multiprocessors: for how many stream_k divides tiles; those of the device if it is not set. As
/// stdlib::gemm(queue, W, X, Y).
template <class T0, class T1>
auto gemm_q4_0(const T0& W, const T1& X, const Setting& activations = {}, const Setting& schedule = {},
               const Setting& multiprocessors = {}, const Where& where = Where::current()) const {
    return self().template make<ArrayOf<ElementOf<T1>>>({"gemm_q4_0", where}, {self().operand(W, where),
                              self().operand(X, where)}, {{"activations", activations}, {"schedule", schedule},
                              {"multiprocessors", multiprocessors}});
}

/// Y = X W', W of q4_1 weights. W: rows x columns; X: tokens x columns; Y: tokens x rows, made; activations: exact, or
/// q8_1, rounded to 8 bits; exact if it is not set; schedule: of tiles of more than eight tokens: stream_k; chosen if
/// it is not set; multiprocessors: for how many stream_k divides tiles; those of the device if it is not set. As
/// stdlib::gemm(queue, W, X, Y).
template <class T0, class T1>
auto gemm_q4_1(const T0& W, const T1& X, const Setting& activations = {}, const Setting& schedule = {},
               const Setting& multiprocessors = {}, const Where& where = Where::current()) const {
    return self().template make<ArrayOf<ElementOf<T1>>>({"gemm_q4_1", where}, {self().operand(W, where),
                              self().operand(X, where)}, {{"activations", activations}, {"schedule", schedule},
                              {"multiprocessors", multiprocessors}});
}

/// Y = X W', W of q4_k weights. W: rows x columns; X: tokens x columns; Y: tokens x rows, made; activations: exact, or
/// q8_1, rounded to 8 bits; exact if it is not set; schedule: of tiles of more than eight tokens: stream_k; chosen if
/// it is not set; multiprocessors: for how many stream_k divides tiles; those of the device if it is not set. As
/// stdlib::gemm(queue, W, X, Y).
template <class T0, class T1>
auto gemm_q4_k(const T0& W, const T1& X, const Setting& activations = {}, const Setting& schedule = {},
               const Setting& multiprocessors = {}, const Where& where = Where::current()) const {
    return self().template make<ArrayOf<ElementOf<T1>>>({"gemm_q4_k", where}, {self().operand(W, where),
                              self().operand(X, where)}, {{"activations", activations}, {"schedule", schedule},
                              {"multiprocessors", multiprocessors}});
}

/// Y = X W', W of q5_0 weights. W: rows x columns; X: tokens x columns; Y: tokens x rows, made; activations: exact, or
/// q8_1, rounded to 8 bits; exact if it is not set; schedule: of tiles of more than eight tokens: stream_k; chosen if
/// it is not set; multiprocessors: for how many stream_k divides tiles; those of the device if it is not set. As
/// stdlib::gemm(queue, W, X, Y).
template <class T0, class T1>
auto gemm_q5_0(const T0& W, const T1& X, const Setting& activations = {}, const Setting& schedule = {},
               const Setting& multiprocessors = {}, const Where& where = Where::current()) const {
    return self().template make<ArrayOf<ElementOf<T1>>>({"gemm_q5_0", where}, {self().operand(W, where),
                              self().operand(X, where)}, {{"activations", activations}, {"schedule", schedule},
                              {"multiprocessors", multiprocessors}});
}

/// Y = X W', W of q5_1 weights. W: rows x columns; X: tokens x columns; Y: tokens x rows, made; activations: exact, or
/// q8_1, rounded to 8 bits; exact if it is not set; schedule: of tiles of more than eight tokens: stream_k; chosen if
/// it is not set; multiprocessors: for how many stream_k divides tiles; those of the device if it is not set. As
/// stdlib::gemm(queue, W, X, Y).
template <class T0, class T1>
auto gemm_q5_1(const T0& W, const T1& X, const Setting& activations = {}, const Setting& schedule = {},
               const Setting& multiprocessors = {}, const Where& where = Where::current()) const {
    return self().template make<ArrayOf<ElementOf<T1>>>({"gemm_q5_1", where}, {self().operand(W, where),
                              self().operand(X, where)}, {{"activations", activations}, {"schedule", schedule},
                              {"multiprocessors", multiprocessors}});
}

/// Y = X W', W of q5_k weights. W: rows x columns; X: tokens x columns; Y: tokens x rows, made; activations: exact, or
/// q8_1, rounded to 8 bits; exact if it is not set; schedule: of tiles of more than eight tokens: stream_k; chosen if
/// it is not set; multiprocessors: for how many stream_k divides tiles; those of the device if it is not set. As
/// stdlib::gemm(queue, W, X, Y).
template <class T0, class T1>
auto gemm_q5_k(const T0& W, const T1& X, const Setting& activations = {}, const Setting& schedule = {},
               const Setting& multiprocessors = {}, const Where& where = Where::current()) const {
    return self().template make<ArrayOf<ElementOf<T1>>>({"gemm_q5_k", where}, {self().operand(W, where),
                              self().operand(X, where)}, {{"activations", activations}, {"schedule", schedule},
                              {"multiprocessors", multiprocessors}});
}

/// Y = X W', W of q6_k weights. W: rows x columns; X: tokens x columns; Y: tokens x rows, made; activations: exact, or
/// q8_1, rounded to 8 bits; exact if it is not set; schedule: of tiles of more than eight tokens: stream_k; chosen if
/// it is not set; multiprocessors: for how many stream_k divides tiles; those of the device if it is not set. As
/// stdlib::gemm(queue, W, X, Y).
template <class T0, class T1>
auto gemm_q6_k(const T0& W, const T1& X, const Setting& activations = {}, const Setting& schedule = {},
               const Setting& multiprocessors = {}, const Where& where = Where::current()) const {
    return self().template make<ArrayOf<ElementOf<T1>>>({"gemm_q6_k", where}, {self().operand(W, where),
                              self().operand(X, where)}, {{"activations", activations}, {"schedule", schedule},
                              {"multiprocessors", multiprocessors}});
}

/// Y = X W', W of q8_0 weights. W: rows x columns; X: tokens x columns; Y: tokens x rows, made; activations: exact, or
/// q8_1, rounded to 8 bits; exact if it is not set; schedule: of tiles of more than eight tokens: stream_k; chosen if
/// it is not set; multiprocessors: for how many stream_k divides tiles; those of the device if it is not set. As
/// stdlib::gemm(queue, W, X, Y).
template <class T0, class T1>
auto gemm_q8_0(const T0& W, const T1& X, const Setting& activations = {}, const Setting& schedule = {},
               const Setting& multiprocessors = {}, const Where& where = Where::current()) const {
    return self().template make<ArrayOf<ElementOf<T1>>>({"gemm_q8_0", where}, {self().operand(W, where),
                              self().operand(X, where)}, {{"activations", activations}, {"schedule", schedule},
                              {"multiprocessors", multiprocessors}});
}

/// y = A x, a warp per row. A: rows x columns; x: columns; y: rows, made. As stdlib::gemv(queue, A, x, y).
template <class T0, class T1>
auto gemv(const T0& A, const T1& x, const Where& where = Where::current()) const {
    return self().template make<ArrayOf<ElementOf<T0>>>({"gemv", where}, {self().operand(A, where),
                              self().operand(x, where)}, {});
}

/// y = W x, W of IQ4_NL weights. W: ... x rows x columns; x: columns; y: ... x rows, made. As stdlib::gemv(queue, W, x,
/// y).
template <class T0, class T1>
auto gemv_iq4_nl(const T0& W, const T1& x, const Where& where = Where::current()) const {
    return self().template make<ArrayOf<float>>({"gemv_iq4_nl", where}, {self().operand(W, where),
                              self().operand(x, where)}, {});
}

/// y = W x, W of IQ4_NL weights, x of Q8_1 activations. W: ... x rows x columns; q: columns; y: ... x rows, made. As
/// stdlib::gemv(queue, W, q, y).
template <class T0, class T1>
auto gemv_iq4_nl_q8_1(const T0& W, const T1& q, const Where& where = Where::current()) const {
    return self().template make<ArrayOf<float>>({"gemv_iq4_nl_q8_1", where}, {self().operand(W, where),
                              self().operand(q, where)}, {});
}

/// y = W x, W of IQ4_XS weights. W: ... x rows x columns; x: columns; y: ... x rows, made. As stdlib::gemv(queue, W, x,
/// y).
template <class T0, class T1>
auto gemv_iq4_xs(const T0& W, const T1& x, const Where& where = Where::current()) const {
    return self().template make<ArrayOf<float>>({"gemv_iq4_xs", where}, {self().operand(W, where),
                              self().operand(x, where)}, {});
}

/// y = W x, W of IQ4_XS weights, x of Q8_1 activations. W: ... x rows x columns; q: columns; y: ... x rows, made. As
/// stdlib::gemv(queue, W, q, y).
template <class T0, class T1>
auto gemv_iq4_xs_q8_1(const T0& W, const T1& q, const Where& where = Where::current()) const {
    return self().template make<ArrayOf<float>>({"gemv_iq4_xs_q8_1", where}, {self().operand(W, where),
                              self().operand(q, where)}, {});
}

/// y = W x, W of MXFP4 weights. W: ... x rows x columns; x: columns; y: ... x rows, made. As stdlib::gemv(queue, W, x,
/// y).
template <class T0, class T1>
auto gemv_mxfp4(const T0& W, const T1& x, const Where& where = Where::current()) const {
    return self().template make<ArrayOf<float>>({"gemv_mxfp4", where}, {self().operand(W, where),
                              self().operand(x, where)}, {});
}

/// y = W x, W of MXFP4 weights, x of Q8_1 activations. W: ... x rows x columns; q: columns; y: ... x rows, made. As
/// stdlib::gemv(queue, W, q, y).
template <class T0, class T1>
auto gemv_mxfp4_q8_1(const T0& W, const T1& q, const Where& where = Where::current()) const {
    return self().template make<ArrayOf<float>>({"gemv_mxfp4_q8_1", where}, {self().operand(W, where),
                              self().operand(q, where)}, {});
}

/// y = W x, W of Q2_K weights. W: ... x rows x columns; x: columns; y: ... x rows, made. As stdlib::gemv(queue, W, x,
/// y).
template <class T0, class T1>
auto gemv_q2_k(const T0& W, const T1& x, const Where& where = Where::current()) const {
    return self().template make<ArrayOf<float>>({"gemv_q2_k", where}, {self().operand(W, where),
                              self().operand(x, where)}, {});
}

/// y = W x, W of Q2_K weights, x of Q8_1 activations. W: ... x rows x columns; q: columns; y: ... x rows, made. As
/// stdlib::gemv(queue, W, q, y).
template <class T0, class T1>
auto gemv_q2_k_q8_1(const T0& W, const T1& q, const Where& where = Where::current()) const {
    return self().template make<ArrayOf<float>>({"gemv_q2_k_q8_1", where}, {self().operand(W, where),
                              self().operand(q, where)}, {});
}

/// y = W x, W of Q3_K weights. W: ... x rows x columns; x: columns; y: ... x rows, made. As stdlib::gemv(queue, W, x,
/// y).
template <class T0, class T1>
auto gemv_q3_k(const T0& W, const T1& x, const Where& where = Where::current()) const {
    return self().template make<ArrayOf<float>>({"gemv_q3_k", where}, {self().operand(W, where),
                              self().operand(x, where)}, {});
}

/// y = W x, W of Q3_K weights, x of Q8_1 activations. W: ... x rows x columns; q: columns; y: ... x rows, made. As
/// stdlib::gemv(queue, W, q, y).
template <class T0, class T1>
auto gemv_q3_k_q8_1(const T0& W, const T1& q, const Where& where = Where::current()) const {
    return self().template make<ArrayOf<float>>({"gemv_q3_k_q8_1", where}, {self().operand(W, where),
                              self().operand(q, where)}, {});
}

/// y = W x, W of Q4_0 weights. W: ... x rows x columns; x: columns; y: ... x rows, made. As stdlib::gemv(queue, W, x,
/// y).
template <class T0, class T1>
auto gemv_q4_0(const T0& W, const T1& x, const Where& where = Where::current()) const {
    return self().template make<ArrayOf<float>>({"gemv_q4_0", where}, {self().operand(W, where),
                              self().operand(x, where)}, {});
}

/// y = W x, W of Q4_0 weights, x of Q8_1 activations. W: ... x rows x columns; q: columns; y: ... x rows, made. As
/// stdlib::gemv(queue, W, q, y).
template <class T0, class T1>
auto gemv_q4_0_q8_1(const T0& W, const T1& q, const Where& where = Where::current()) const {
    return self().template make<ArrayOf<float>>({"gemv_q4_0_q8_1", where}, {self().operand(W, where),
                              self().operand(q, where)}, {});
}

/// y = W x, W of Q4_1 weights. W: ... x rows x columns; x: columns; y: ... x rows, made. As stdlib::gemv(queue, W, x,
/// y).
template <class T0, class T1>
auto gemv_q4_1(const T0& W, const T1& x, const Where& where = Where::current()) const {
    return self().template make<ArrayOf<float>>({"gemv_q4_1", where}, {self().operand(W, where),
                              self().operand(x, where)}, {});
}

/// y = W x, W of Q4_1 weights, x of Q8_1 activations. W: ... x rows x columns; q: columns; y: ... x rows, made. As
/// stdlib::gemv(queue, W, q, y).
template <class T0, class T1>
auto gemv_q4_1_q8_1(const T0& W, const T1& q, const Where& where = Where::current()) const {
    return self().template make<ArrayOf<float>>({"gemv_q4_1_q8_1", where}, {self().operand(W, where),
                              self().operand(q, where)}, {});
}

/// y = W x, W of Q4_K weights. W: ... x rows x columns; x: columns; y: ... x rows, made. As stdlib::gemv(queue, W, x,
/// y).
template <class T0, class T1>
auto gemv_q4_k(const T0& W, const T1& x, const Where& where = Where::current()) const {
    return self().template make<ArrayOf<float>>({"gemv_q4_k", where}, {self().operand(W, where),
                              self().operand(x, where)}, {});
}

/// y = W x, W of Q4_K weights, x of Q8_1 activations. W: ... x rows x columns; q: columns; y: ... x rows, made. As
/// stdlib::gemv(queue, W, q, y).
template <class T0, class T1>
auto gemv_q4_k_q8_1(const T0& W, const T1& q, const Where& where = Where::current()) const {
    return self().template make<ArrayOf<float>>({"gemv_q4_k_q8_1", where}, {self().operand(W, where),
                              self().operand(q, where)}, {});
}

/// y = W x, W of Q5_0 weights. W: ... x rows x columns; x: columns; y: ... x rows, made. As stdlib::gemv(queue, W, x,
/// y).
template <class T0, class T1>
auto gemv_q5_0(const T0& W, const T1& x, const Where& where = Where::current()) const {
    return self().template make<ArrayOf<float>>({"gemv_q5_0", where}, {self().operand(W, where),
                              self().operand(x, where)}, {});
}

/// y = W x, W of Q5_0 weights, x of Q8_1 activations. W: ... x rows x columns; q: columns; y: ... x rows, made. As
/// stdlib::gemv(queue, W, q, y).
template <class T0, class T1>
auto gemv_q5_0_q8_1(const T0& W, const T1& q, const Where& where = Where::current()) const {
    return self().template make<ArrayOf<float>>({"gemv_q5_0_q8_1", where}, {self().operand(W, where),
                              self().operand(q, where)}, {});
}

/// y = W x, W of Q5_1 weights. W: ... x rows x columns; x: columns; y: ... x rows, made. As stdlib::gemv(queue, W, x,
/// y).
template <class T0, class T1>
auto gemv_q5_1(const T0& W, const T1& x, const Where& where = Where::current()) const {
    return self().template make<ArrayOf<float>>({"gemv_q5_1", where}, {self().operand(W, where),
                              self().operand(x, where)}, {});
}

/// y = W x, W of Q5_1 weights, x of Q8_1 activations. W: ... x rows x columns; q: columns; y: ... x rows, made. As
/// stdlib::gemv(queue, W, q, y).
template <class T0, class T1>
auto gemv_q5_1_q8_1(const T0& W, const T1& q, const Where& where = Where::current()) const {
    return self().template make<ArrayOf<float>>({"gemv_q5_1_q8_1", where}, {self().operand(W, where),
                              self().operand(q, where)}, {});
}

/// y = W x, W of Q5_K weights. W: ... x rows x columns; x: columns; y: ... x rows, made. As stdlib::gemv(queue, W, x,
/// y).
template <class T0, class T1>
auto gemv_q5_k(const T0& W, const T1& x, const Where& where = Where::current()) const {
    return self().template make<ArrayOf<float>>({"gemv_q5_k", where}, {self().operand(W, where),
                              self().operand(x, where)}, {});
}

/// y = W x, W of Q5_K weights, x of Q8_1 activations. W: ... x rows x columns; q: columns; y: ... x rows, made. As
/// stdlib::gemv(queue, W, q, y).
template <class T0, class T1>
auto gemv_q5_k_q8_1(const T0& W, const T1& q, const Where& where = Where::current()) const {
    return self().template make<ArrayOf<float>>({"gemv_q5_k_q8_1", where}, {self().operand(W, where),
                              self().operand(q, where)}, {});
}

/// y = W x, W of Q6_K weights. W: ... x rows x columns; x: columns; y: ... x rows, made. As stdlib::gemv(queue, W, x,
/// y).
template <class T0, class T1>
auto gemv_q6_k(const T0& W, const T1& x, const Where& where = Where::current()) const {
    return self().template make<ArrayOf<float>>({"gemv_q6_k", where}, {self().operand(W, where),
                              self().operand(x, where)}, {});
}

/// y = W x, W of Q6_K weights, x of Q8_1 activations. W: ... x rows x columns; q: columns; y: ... x rows, made. As
/// stdlib::gemv(queue, W, q, y).
template <class T0, class T1>
auto gemv_q6_k_q8_1(const T0& W, const T1& q, const Where& where = Where::current()) const {
    return self().template make<ArrayOf<float>>({"gemv_q6_k_q8_1", where}, {self().operand(W, where),
                              self().operand(q, where)}, {});
}

/// y = W x, W of Q8_0 weights. W: ... x rows x columns; x: columns; y: ... x rows, made. As stdlib::gemv(queue, W, x,
/// y).
template <class T0, class T1>
auto gemv_q8_0(const T0& W, const T1& x, const Where& where = Where::current()) const {
    return self().template make<ArrayOf<float>>({"gemv_q8_0", where}, {self().operand(W, where),
                              self().operand(x, where)}, {});
}

/// y = W x, W of Q8_0 weights, x of Q8_1 activations. W: ... x rows x columns; q: columns; y: ... x rows, made. As
/// stdlib::gemv(queue, W, q, y).
template <class T0, class T1>
auto gemv_q8_0_q8_1(const T0& W, const T1& q, const Where& where = Where::current()) const {
    return self().template make<ArrayOf<float>>({"gemv_q8_0_q8_1", where}, {self().operand(W, where),
                              self().operand(q, where)}, {});
}

/// y = x A, neighbouring threads on neighbouring columns. A: rows x columns; x: rows; y: columns, made. As
/// stdlib::gemv_transposed(queue, A, x, y).
template <class T0, class T1>
auto gemv_transposed(const T0& A, const T1& x, const Where& where = Where::current()) const {
    return self().template make<ArrayOf<ElementOf<T0>>>({"gemv_transposed", where}, {self().operand(A, where),
                              self().operand(x, where)}, {});
}

/// y[t, h] = x[h, t]. x: [sequences x] heads x tokens x head_dim; y: [sequences x] tokens x heads x head_dim, made. As
/// stdlib::interleave_heads(queue, x, y).
template <class T0>
auto interleave_heads(const T0& x, const Where& where = Where::current()) const {
    return self().template make<ArrayOf<ElementOf<T0>>>({"interleave_heads", where}, {self().operand(x, where)}, {});
}

/// copies rows to given rows of a cache. x: tokens x width; slots: tokens; cache: cache_rows x width, changed in place.
/// As stdlib::kv_scatter(queue, x, slots, cache).
template <class T0, class T1, class T2>
auto kv_scatter(const T0& x, const T1& slots, T2&& cache, const Where& where = Where::current()) const {
    return self().template make<>({"kv_scatter", where}, {self().operand(x, where), self().operand(slots, where),
                              self().operand(std::forward<T2>(cache), where)}, {});
}

/// cache[slots[t]] = x[t], in e4m3. x: tokens x heads x head_dim; slots: tokens; cache: cache_rows x heads x head_dim,
/// changed in place. As stdlib::kv_scatter(queue, x, slots, cache).
template <class T0, class T1, class T2>
auto kv_scatter_e4m3(const T0& x, const T1& slots, T2&& cache, const Where& where = Where::current()) const {
    return self().template make<>({"kv_scatter_e4m3", where}, {self().operand(x, where), self().operand(slots, where),
                              self().operand(std::forward<T2>(cache), where)}, {});
}

/// cache[slots[t]] = x[t], in q8_0. x: tokens x heads x head_dim; slots: tokens; cache: cache_rows x heads x head_dim,
/// changed in place. As stdlib::kv_scatter(queue, x, slots, cache).
template <class T0, class T1, class T2>
auto kv_scatter_q8_0(const T0& x, const T1& slots, T2&& cache, const Where& where = Where::current()) const {
    return self().template make<>({"kv_scatter_q8_0", where}, {self().operand(x, where), self().operand(slots, where),
                              self().operand(std::forward<T2>(cache), where)}, {});
}

/// x: ... x columns; gamma: columns; beta: columns; y: ... x columns, made; epsilon: what is added under the root, such
/// as 1e-5. As stdlib::layernorm(queue, x, gamma, beta, y, epsilon).
template <class T0, class T1, class T2>
auto layernorm(const T0& x, const T1& gamma, const T2& beta, const Setting& epsilon,
               const Where& where = Where::current()) const {
    return self().template make<ArrayOf<ElementOf<T0>>>({"layernorm", where}, {self().operand(x, where),
                              self().operand(gamma, where), self().operand(beta, where)}, {{"epsilon", epsilon}});
}

/// x: ... x columns; dy: ... x columns; gamma: columns; dx: ... x columns, made; dgamma: columns, made; dbeta: columns,
/// made; epsilon: what was added under the root, such as 1e-5. As stdlib::layernorm_backward(queue, x, dy, gamma, dx,
/// dgamma, dbeta, epsilon, workspace).
template <class T0, class T1, class T2>
auto layernorm_backward(const T0& x, const T1& dy, const T2& gamma, const Setting& epsilon = {},
                        const Where& where = Where::current()) const {
    return self().template make<ArrayOf<ElementOf<T0>>, ArrayOf<float>, ArrayOf<float>>({"layernorm_backward", where},
                              {self().operand(x, where), self().operand(dy, where), self().operand(gamma, where)},
                              {{"epsilon", epsilon}});
}

/// x: ... x columns; dy: ... x columns; gamma: columns; residual: ... x columns; dx: ... x columns, made; dgamma:
/// columns, made; dbeta: columns, made; epsilon: what was added under the root, such as 1e-5. As
/// stdlib::layernorm_backward(queue, x, dy, gamma, dx, dgamma, dbeta, epsilon, {.residual = residual}).
template <class T0, class T1, class T2, class T3>
auto layernorm_backward_residual(const T0& x, const T1& dy, const T2& gamma, const T3& residual,
                              const Setting& epsilon = {}, const Where& where = Where::current()) const {
    return self().template make<ArrayOf<ElementOf<T0>>, ArrayOf<float>, ArrayOf<float>>(
                              {"layernorm_backward_residual", where}, {self().operand(x, where),
                              self().operand(dy, where), self().operand(gamma, where), self().operand(residual, where)},
                              {{"epsilon", epsilon}});
}

/// x: ... x columns; dy: ... x columns; gamma: columns; statistics: ... x pair; dx: ... x columns, made; dgamma:
/// columns, made; dbeta: columns, made. As stdlib::layernorm_backward(queue, x, dy, gamma, dx, dgamma, dbeta, 0,
/// {.statistics = statistics}).
template <class T0, class T1, class T2, class T3>
auto layernorm_backward_saved(const T0& x, const T1& dy, const T2& gamma, const T3& statistics,
                              const Where& where = Where::current()) const {
    return self().template make<ArrayOf<ElementOf<T0>>, ArrayOf<float>, ArrayOf<float>>(
                              {"layernorm_backward_saved", where}, {self().operand(x, where), self().operand(dy, where),
                              self().operand(gamma, where), self().operand(statistics, where)}, {});
}

/// x: ... x columns; dy: ... x columns; gamma: columns; statistics: ... x pair; residual: ... x columns; dx: ... x
/// columns, made; dgamma: columns, made; dbeta: columns, made. As stdlib::layernorm_backward(queue, x, dy, gamma, dx,
/// dgamma, dbeta, 0, {.residual = residual, .statistics = statistics}).
template <class T0, class T1, class T2, class T3, class T4>
auto layernorm_backward_saved_residual(const T0& x, const T1& dy, const T2& gamma, const T3& statistics,
                              const T4& residual, const Where& where = Where::current()) const {
    return self().template make<ArrayOf<ElementOf<T0>>, ArrayOf<float>, ArrayOf<float>>(
                              {"layernorm_backward_saved_residual", where}, {self().operand(x, where),
                              self().operand(dy, where), self().operand(gamma, where),
                              self().operand(statistics, where), self().operand(residual, where)}, {});
}

/// x: ... x columns; y: ... x columns, made; epsilon: what is added under the root, such as 1e-5. As
/// stdlib::layernorm(queue, x, y, epsilon).
template <class T0>
auto layernorm_plain(const T0& x, const Setting& epsilon, const Where& where = Where::current()) const {
    return self().template make<ArrayOf<ElementOf<T0>>>({"layernorm_plain", where}, {self().operand(x, where)},
                              {{"epsilon", epsilon}});
}

/// x: ... x columns; gamma: columns; beta: columns; statistics: ... x pair, made; y: ... x columns, made; epsilon: what
/// is added under the root, such as 1e-5. As stdlib::layernorm(queue, x, gamma, beta, y, epsilon, statistics).
template <class T0, class T1, class T2>
auto layernorm_saving(const T0& x, const T1& gamma, const T2& beta, const Setting& epsilon = {},
                      const Where& where = Where::current()) const {
    return self().template make<ArrayOf<float>, ArrayOf<ElementOf<T0>>>({"layernorm_saving", where},
                              {self().operand(x, where), self().operand(gamma, where), self().operand(beta, where)},
                              {{"epsilon", epsilon}});
}

/// y = x where x > 0, else slope x. x: any shape; y: any shape, made; slope: a number. As stdlib::elementwise(queue,
/// Unary1::leaky_relu, x, y, slope).
template <class T0>
auto leaky_relu(const T0& x, const Setting& slope, const Where& where = Where::current()) const {
    return self().template make<ArrayOf<ElementOf<T0>>>({"leaky_relu", where}, {self().operand(x, where)},
                              {{"slope", slope}});
}

/// dx = dy where x > 0, else slope dy. dy: any shape; x: any shape; dx: any shape, made; slope: a number. As
/// stdlib::elementwise(queue, Backward1::leaky_relu_backward, dy, x, dx, slope).
template <class T0, class T1>
auto leaky_relu_backward(const T0& dy, const T1& x, const Setting& slope, const Where& where = Where::current()) const {
    return self().template make<ArrayOf<ElementOf<T0>>>({"leaky_relu_backward", where}, {self().operand(dy, where),
                              self().operand(x, where)}, {{"slope", slope}});
}

/// the same of the logits X W', and dX, dW. X: rows x k; W: classes x k; targets: rows; loss: a number, made; dX: rows
/// x k, made; dW: classes x k, made; reduction: of the rows' losses: mean or sum; mean if it is not set; ignored: rows
/// with this target do not count; -100 if it is not set; smoothing: how much of the loss is that of a uniform target; 0
/// if it is not set; z_loss: what the square of the logarithm of the sum is multiplied with; 0 if it is not set; shift:
/// 1: the target of a row is that of the next one; 0 if it is not set; scale: what the gradient is multiplied with; 1
/// if it is not set. As stdlib::linear_cross_entropy(queue, X, W, targets, loss, dX, dW, options).
template <class T0, class T1, class T2>
auto linear_cross_entropy(const T0& X, const T1& W, const T2& targets, const Setting& reduction = {},
                          const Setting& ignored = {}, const Setting& smoothing = {}, const Setting& z_loss = {},
                          const Setting& shift = {}, const Setting& scale = {},
                          const Where& where = Where::current()) const {
    return self().template make<NumberOf<float>, ArrayOf<ElementOf<T0>>, ArrayOf<float>>(
                              {"linear_cross_entropy", where}, {self().operand(X, where), self().operand(W, where),
                              self().operand(targets, where)}, {{"reduction", reduction}, {"ignored", ignored},
                              {"smoothing", smoothing}, {"z_loss", z_loss}, {"shift", shift}, {"scale", scale}});
}

/// a step of Lion: p = decay p - rate sign(...). gradient: any shape; parameter: any shape, changed in place; momentum:
/// any shape, changed in place; learning_rate: 1e-4 if it is not said; beta1: 0.9 if it is not said; beta2: 0.99 if it
/// is not said; weight_decay: 0 if it is not said; scale: what gradients are multiplied by, 1 if it is not said. As
/// stdlib::lion(queue, gradient, parameter, momentum, options).
template <class T0, class T1, class T2>
auto lion(const T0& gradient, T1&& parameter, T2&& momentum, const Setting& learning_rate = {},
          const Setting& beta1 = {}, const Setting& beta2 = {}, const Setting& weight_decay = {},
          const Setting& scale = {}, const Where& where = Where::current()) const {
    return self().template make<>({"lion", where}, {self().operand(gradient, where),
                              self().operand(std::forward<T1>(parameter), where),
                              self().operand(std::forward<T2>(momentum), where)}, {{"learning_rate", learning_rate},
                              {"beta1", beta1}, {"beta2", beta2}, {"weight_decay", weight_decay}, {"scale", scale}});
}

/// x: ... x columns; y: ... x columns, made. As stdlib::log_softmax(queue, x, y).
template <class T0>
auto log_softmax(const T0& x, const Where& where = Where::current()) const {
    return self().template make<ArrayOf<ElementOf<T0>>>({"log_softmax", where}, {self().operand(x, where)}, {});
}

/// y: ... x columns; dy: ... x columns; dx: ... x columns, made. As stdlib::log_softmax_backward(queue, y, dy, dx).
template <class T0, class T1>
auto log_softmax_backward(const T0& y, const T1& dy, const Where& where = Where::current()) const {
    return self().template make<ArrayOf<ElementOf<T0>>>({"log_softmax_backward", where}, {self().operand(y, where),
                              self().operand(dy, where)}, {});
}

/// the maximum of an array. x: any shape; total: a number, made. As stdlib::max(queue, x, total, workspace).
template <class T0>
auto max(const T0& x, const Where& where = Where::current()) const {
    return self().template make<NumberOf<float>>({"max", where}, {self().operand(x, where)}, {});
}

/// y = a b. a: any shape; b: any shape; y: any shape, made. As stdlib::elementwise(queue, Binary::mul, a, b, y).
template <class T0, class T1>
auto mul(const T0& a, const T1& b, const Where& where = Where::current()) const {
    return self().template make<ArrayOf<ElementOf<T0>>>({"mul", where}, {self().operand(a, where),
                              self().operand(b, where)}, {});
}

/// the sum of squares, in f32. x: any shape; total: a number, made. As stdlib::norm2(queue, x, total, workspace).
template <class T0>
auto norm2(const T0& x, const Where& where = Where::current()) const {
    return self().template make<NumberOf<float>>({"norm2", where}, {self().operand(x, where)}, {});
}

/// W = mxfp4 weights of the numbers x. x: rows x columns; W: rows x columns, made. As stdlib::quantise(queue, x, W).
template <class T0>
auto quantise_mxfp4(const T0& x, const Where& where = Where::current()) const {
    return self().template make<ArrayOf<std::uint8_t>>({"quantise_mxfp4", where}, {self().operand(x, where)}, {});
}

/// W = q4_0 weights of the numbers x. x: rows x columns; W: rows x columns, made. As stdlib::quantise(queue, x, W).
template <class T0>
auto quantise_q4_0(const T0& x, const Where& where = Where::current()) const {
    return self().template make<ArrayOf<std::uint8_t>>({"quantise_q4_0", where}, {self().operand(x, where)}, {});
}

/// W = q8_0 weights of the numbers x. x: rows x columns; W: rows x columns, made. As stdlib::quantise(queue, x, W).
template <class T0>
auto quantise_q8_0(const T0& x, const Where& where = Where::current()) const {
    return self().template make<ArrayOf<std::uint8_t>>({"quantise_q8_0", where}, {self().operand(x, where)}, {});
}

/// activations to blocks of 8-bit integers. x: ... x columns; q: ... x columns, made. As stdlib::quantise_q8_1(queue,
/// x, q).
template <class T0>
auto quantise_q8_1(const T0& x, const Where& where = Where::current()) const {
    return self().template make<ArrayOf<std::uint32_t>>({"quantise_q8_1", where}, {self().operand(x, where)}, {});
}

/// y[i, j] = the all of x[i, 0 ..., j]. x: outer x axis x inner; y: outer x inner, made; unbiased: 1: a variance is
/// divided by the number of elements less 1; 0 if it is not set. As stdlib::reduce(queue, Reduction::all, x, y, axes,
/// options).
template <class T0>
auto reduce_all(const T0& x, const Setting& unbiased = {}, const Where& where = Where::current()) const {
    return self().template make<ArrayOf<std::uint8_t>>({"reduce_all", where}, {self().operand(x, where)},
                              {{"unbiased", unbiased}});
}

/// y[i, j] = the any of x[i, 0 ..., j]. x: outer x axis x inner; y: outer x inner, made; unbiased: 1: a variance is
/// divided by the number of elements less 1; 0 if it is not set. As stdlib::reduce(queue, Reduction::any, x, y, axes,
/// options).
template <class T0>
auto reduce_any(const T0& x, const Setting& unbiased = {}, const Where& where = Where::current()) const {
    return self().template make<ArrayOf<std::uint8_t>>({"reduce_any", where}, {self().operand(x, where)},
                              {{"unbiased", unbiased}});
}

/// y[i, j] = the argmax of x[i, 0 ..., j]. x: outer x axis x inner; y: outer x inner, made; unbiased: 1: a variance is
/// divided by the number of elements less 1; 0 if it is not set. As stdlib::reduce(queue, Reduction::argmax, x, y,
/// axes, options).
template <class T0>
auto reduce_argmax(const T0& x, const Setting& unbiased = {}, const Where& where = Where::current()) const {
    return self().template make<ArrayOf<std::uint32_t>>({"reduce_argmax", where}, {self().operand(x, where)},
                              {{"unbiased", unbiased}});
}

/// y[i, j] = the argmin of x[i, 0 ..., j]. x: outer x axis x inner; y: outer x inner, made; unbiased: 1: a variance is
/// divided by the number of elements less 1; 0 if it is not set. As stdlib::reduce(queue, Reduction::argmin, x, y,
/// axes, options).
template <class T0>
auto reduce_argmin(const T0& x, const Setting& unbiased = {}, const Where& where = Where::current()) const {
    return self().template make<ArrayOf<std::uint32_t>>({"reduce_argmin", where}, {self().operand(x, where)},
                              {{"unbiased", unbiased}});
}

/// y[i, j] = the max of x[i, 0 ..., j]. x: outer x axis x inner; y: outer x inner, made; unbiased: 1: a variance is
/// divided by the number of elements less 1; 0 if it is not set. As stdlib::reduce(queue, Reduction::max, x, y, axes,
/// options).
template <class T0>
auto reduce_max(const T0& x, const Setting& unbiased = {}, const Where& where = Where::current()) const {
    return self().template make<ArrayOf<ElementOf<T0>>>({"reduce_max", where}, {self().operand(x, where)},
                              {{"unbiased", unbiased}});
}

/// y[i, j] = the mean of x[i, 0 ..., j]. x: outer x axis x inner; y: outer x inner, made; unbiased: 1: a variance is
/// divided by the number of elements less 1; 0 if it is not set. As stdlib::reduce(queue, Reduction::mean, x, y, axes,
/// options).
template <class T0>
auto reduce_mean(const T0& x, const Setting& unbiased = {}, const Where& where = Where::current()) const {
    return self().template make<ArrayOf<ElementOf<T0>>>({"reduce_mean", where}, {self().operand(x, where)},
                              {{"unbiased", unbiased}});
}

/// y[i, j] = the min of x[i, 0 ..., j]. x: outer x axis x inner; y: outer x inner, made; unbiased: 1: a variance is
/// divided by the number of elements less 1; 0 if it is not set. As stdlib::reduce(queue, Reduction::min, x, y, axes,
/// options).
template <class T0>
auto reduce_min(const T0& x, const Setting& unbiased = {}, const Where& where = Where::current()) const {
    return self().template make<ArrayOf<ElementOf<T0>>>({"reduce_min", where}, {self().operand(x, where)},
                              {{"unbiased", unbiased}});
}

/// y[i, j] = the norm2 of x[i, 0 ..., j]. x: outer x axis x inner; y: outer x inner, made; unbiased: 1: a variance is
/// divided by the number of elements less 1; 0 if it is not set. As stdlib::reduce(queue, Reduction::norm2, x, y, axes,
/// options).
template <class T0>
auto reduce_norm2(const T0& x, const Setting& unbiased = {}, const Where& where = Where::current()) const {
    return self().template make<ArrayOf<ElementOf<T0>>>({"reduce_norm2", where}, {self().operand(x, where)},
                              {{"unbiased", unbiased}});
}

/// y[i, j] = the sum of x[i, 0 ..., j]. x: outer x axis x inner; y: outer x inner, made; unbiased: 1: a variance is
/// divided by the number of elements less 1; 0 if it is not set. As stdlib::reduce(queue, Reduction::sum, x, y, axes,
/// options).
template <class T0>
auto reduce_sum(const T0& x, const Setting& unbiased = {}, const Where& where = Where::current()) const {
    return self().template make<ArrayOf<ElementOf<T0>>>({"reduce_sum", where}, {self().operand(x, where)},
                              {{"unbiased", unbiased}});
}

/// y[i, j] = the variance of x[i, 0 ..., j]. x: outer x axis x inner; y: outer x inner, made; unbiased: 1: a variance
/// is divided by the number of elements less 1; 0 if it is not set. As stdlib::reduce(queue, Reduction::variance, x, y,
/// axes, options).
template <class T0>
auto reduce_variance(const T0& x, const Setting& unbiased = {}, const Where& where = Where::current()) const {
    return self().template make<ArrayOf<ElementOf<T0>>>({"reduce_variance", where}, {self().operand(x, where)},
                              {{"unbiased", unbiased}});
}

/// y = x where x > 0, else 0. x: any shape; y: any shape, made. As stdlib::elementwise(queue, Unary::relu, x, y).
template <class T0>
auto relu(const T0& x, const Where& where = Where::current()) const {
    return self().template make<ArrayOf<ElementOf<T0>>>({"relu", where}, {self().operand(x, where)}, {});
}

/// dx = 0 where x <= 0, else dy. dy: any shape; x: any shape; dx: any shape, made. As stdlib::elementwise(queue,
/// Backward::relu_backward, dy, x, dx).
template <class T0, class T1>
auto relu_backward(const T0& dy, const T1& x, const Where& where = Where::current()) const {
    return self().template make<ArrayOf<ElementOf<T0>>>({"relu_backward", where}, {self().operand(dy, where),
                              self().operand(x, where)}, {});
}

/// y += x. x: any shape; y: any shape, changed in place. As stdlib::residual_add(queue, x, y).
template <class T0, class T1>
auto residual_add(const T0& x, T1&& y, const Where& where = Where::current()) const {
    return self().template make<>({"residual_add", where}, {self().operand(x, where),
                              self().operand(std::forward<T1>(y), where)}, {});
}

/// x: ... x columns; gamma: columns; y: ... x columns, made; epsilon: what is added under the root, such as 1e-5. As
/// stdlib::rmsnorm(queue, x, gamma, y, epsilon).
template <class T0, class T1>
auto rmsnorm(const T0& x, const T1& gamma, const Setting& epsilon, const Where& where = Where::current()) const {
    return self().template make<ArrayOf<ElementOf<T0>>>({"rmsnorm", where}, {self().operand(x, where),
                              self().operand(gamma, where)}, {{"epsilon", epsilon}});
}

/// x: ... x columns; dy: ... x columns; gamma: columns; dx: ... x columns, made; dgamma: columns, made; epsilon: what
/// was added under the root, such as 1e-5. As stdlib::rmsnorm_backward(queue, x, dy, gamma, dx, dgamma, epsilon,
/// workspace).
template <class T0, class T1, class T2>
auto rmsnorm_backward(const T0& x, const T1& dy, const T2& gamma, const Setting& epsilon = {},
                      const Where& where = Where::current()) const {
    return self().template make<ArrayOf<ElementOf<T0>>, ArrayOf<float>>({"rmsnorm_backward", where},
                              {self().operand(x, where), self().operand(dy, where), self().operand(gamma, where)},
                              {{"epsilon", epsilon}});
}

/// x: ... x columns; dy: ... x columns; gamma: columns; residual: ... x columns; dx: ... x columns, made; dgamma:
/// columns, made; epsilon: what was added under the root, such as 1e-5. As stdlib::rmsnorm_backward(queue, x, dy,
/// gamma, dx, dgamma, epsilon, {.residual = residual}).
template <class T0, class T1, class T2, class T3>
auto rmsnorm_backward_residual(const T0& x, const T1& dy, const T2& gamma, const T3& residual,
                              const Setting& epsilon = {}, const Where& where = Where::current()) const {
    return self().template make<ArrayOf<ElementOf<T0>>, ArrayOf<float>>({"rmsnorm_backward_residual", where},
                              {self().operand(x, where), self().operand(dy, where), self().operand(gamma, where),
                              self().operand(residual, where)}, {{"epsilon", epsilon}});
}

/// x: ... x columns; dy: ... x columns; gamma: columns; statistics: ... x pair; dx: ... x columns, made; dgamma:
/// columns, made. As stdlib::rmsnorm_backward(queue, x, dy, gamma, dx, dgamma, 0, {.statistics = statistics}).
template <class T0, class T1, class T2, class T3>
auto rmsnorm_backward_saved(const T0& x, const T1& dy, const T2& gamma, const T3& statistics,
                            const Where& where = Where::current()) const {
    return self().template make<ArrayOf<ElementOf<T0>>, ArrayOf<float>>({"rmsnorm_backward_saved", where},
                              {self().operand(x, where), self().operand(dy, where), self().operand(gamma, where),
                              self().operand(statistics, where)}, {});
}

/// x: ... x columns; dy: ... x columns; gamma: columns; statistics: ... x pair; residual: ... x columns; dx: ... x
/// columns, made; dgamma: columns, made. As stdlib::rmsnorm_backward(queue, x, dy, gamma, dx, dgamma, 0, {.residual =
/// residual, .statistics = statistics}).
template <class T0, class T1, class T2, class T3, class T4>
auto rmsnorm_backward_saved_residual(const T0& x, const T1& dy, const T2& gamma, const T3& statistics,
                              const T4& residual, const Where& where = Where::current()) const {
    return self().template make<ArrayOf<ElementOf<T0>>, ArrayOf<float>>({"rmsnorm_backward_saved_residual", where},
                              {self().operand(x, where), self().operand(dy, where), self().operand(gamma, where),
                              self().operand(statistics, where), self().operand(residual, where)}, {});
}

/// x: ... x columns; gamma: columns; statistics: ... x pair, made; y: ... x columns, made; epsilon: what is added under
/// the root, such as 1e-5. As stdlib::rmsnorm(queue, x, gamma, y, epsilon, statistics).
template <class T0, class T1>
auto rmsnorm_saving(const T0& x, const T1& gamma, const Setting& epsilon = {},
                    const Where& where = Where::current()) const {
    return self().template make<ArrayOf<float>, ArrayOf<ElementOf<T0>>>({"rmsnorm_saving", where},
                              {self().operand(x, where), self().operand(gamma, where)}, {{"epsilon", epsilon}});
}

/// x: tokens x heads x head_dim, changed in place; positions: tokens; form: interleaved, neighbouring elements, or
/// neox, halves; interleaved if it is not set; rotary: how many elements of a head are turned; all of them if it is not
/// set; base: of the angles; 10000 if it is not set; backward: 1 for the backward pass. As stdlib::rope(queue, form, x,
/// positions, rotary, base, backward).
template <class T0, class T1>
auto rope(T0&& x, const T1& positions, const Setting& form = {}, const Setting& rotary = {}, const Setting& base = {},
          const Setting& backward = {}, const Where& where = Where::current()) const {
    return self().template make<>({"rope", where}, {self().operand(std::forward<T0>(x), where),
                              self().operand(positions, where)}, {{"form", form}, {"rotary", rotary}, {"base", base},
                              {"backward", backward}});
}

/// cache[slots[t]] = x[t], turned, in bf16. x: tokens x heads x head_dim; positions: tokens; slots: tokens; cache:
/// cache_rows x heads x head_dim, changed in place; form: interleaved, neighbouring elements, or neox, halves;
/// interleaved if it is not set; rotary: how many elements of a head are turned; all of them if it is not set; base: of
/// the angles; 10000 if it is not set. As stdlib::rope_scatter(queue, form, x, positions, slots, cache, rotary, base).
template <class T0, class T1, class T2, class T3>
auto rope_scatter_bf16(const T0& x, const T1& positions, const T2& slots, T3&& cache, const Setting& form = {},
                       const Setting& rotary = {}, const Setting& base = {},
                       const Where& where = Where::current()) const {
    return self().template make<>({"rope_scatter_bf16", where}, {self().operand(x, where),
                              self().operand(positions, where), self().operand(slots, where),
                              self().operand(std::forward<T3>(cache), where)}, {{"form", form}, {"rotary", rotary},
                              {"base", base}});
}

/// cache[slots[t]] = x[t], turned, in e4m3. x: tokens x heads x head_dim; positions: tokens; slots: tokens; cache:
/// cache_rows x heads x head_dim, changed in place; form: interleaved, neighbouring elements, or neox, halves;
/// interleaved if it is not set; rotary: how many elements of a head are turned; all of them if it is not set; base: of
/// the angles; 10000 if it is not set. As stdlib::rope_scatter(queue, form, x, positions, slots, cache, rotary, base).
template <class T0, class T1, class T2, class T3>
auto rope_scatter_e4m3(const T0& x, const T1& positions, const T2& slots, T3&& cache, const Setting& form = {},
                       const Setting& rotary = {}, const Setting& base = {},
                       const Where& where = Where::current()) const {
    return self().template make<>({"rope_scatter_e4m3", where}, {self().operand(x, where),
                              self().operand(positions, where), self().operand(slots, where),
                              self().operand(std::forward<T3>(cache), where)}, {{"form", form}, {"rotary", rotary},
                              {"base", base}});
}

/// cache[slots[t]] = x[t], turned, in f16. x: tokens x heads x head_dim; positions: tokens; slots: tokens; cache:
/// cache_rows x heads x head_dim, changed in place; form: interleaved, neighbouring elements, or neox, halves;
/// interleaved if it is not set; rotary: how many elements of a head are turned; all of them if it is not set; base: of
/// the angles; 10000 if it is not set. As stdlib::rope_scatter(queue, form, x, positions, slots, cache, rotary, base).
template <class T0, class T1, class T2, class T3>
auto rope_scatter_f16(const T0& x, const T1& positions, const T2& slots, T3&& cache, const Setting& form = {},
                      const Setting& rotary = {}, const Setting& base = {},
                      const Where& where = Where::current()) const {
    return self().template make<>({"rope_scatter_f16", where}, {self().operand(x, where),
                              self().operand(positions, where), self().operand(slots, where),
                              self().operand(std::forward<T3>(cache), where)}, {{"form", form}, {"rotary", rotary},
                              {"base", base}});
}

/// cache[slots[t]] = x[t], turned, in f32. x: tokens x heads x head_dim; positions: tokens; slots: tokens; cache:
/// cache_rows x heads x head_dim, changed in place; form: interleaved, neighbouring elements, or neox, halves;
/// interleaved if it is not set; rotary: how many elements of a head are turned; all of them if it is not set; base: of
/// the angles; 10000 if it is not set. As stdlib::rope_scatter(queue, form, x, positions, slots, cache, rotary, base).
template <class T0, class T1, class T2, class T3>
auto rope_scatter_f32(const T0& x, const T1& positions, const T2& slots, T3&& cache, const Setting& form = {},
                      const Setting& rotary = {}, const Setting& base = {},
                      const Where& where = Where::current()) const {
    return self().template make<>({"rope_scatter_f32", where}, {self().operand(x, where),
                              self().operand(positions, where), self().operand(slots, where),
                              self().operand(std::forward<T3>(cache), where)}, {{"form", form}, {"rotary", rotary},
                              {"base", base}});
}

/// cache[slots[t]] = x[t], turned, in q8_0. x: tokens x heads x head_dim; positions: tokens; slots: tokens; cache:
/// cache_rows x heads x head_dim, changed in place; form: interleaved, neighbouring elements, or neox, halves;
/// interleaved if it is not set; rotary: how many elements of a head are turned; all of them if it is not set; base: of
/// the angles; 10000 if it is not set. As stdlib::rope_scatter(queue, form, x, positions, slots, cache, rotary, base).
template <class T0, class T1, class T2, class T3>
auto rope_scatter_q8_0(const T0& x, const T1& positions, const T2& slots, T3&& cache, const Setting& form = {},
                       const Setting& rotary = {}, const Setting& base = {},
                       const Where& where = Where::current()) const {
    return self().template make<>({"rope_scatter_q8_0", where}, {self().operand(x, where),
                              self().operand(positions, where), self().operand(slots, where),
                              self().operand(std::forward<T3>(cache), where)}, {{"form", form}, {"rotary", rotary},
                              {"base", base}});
}

/// y = a x + y. x: any shape; y: any shape, changed in place; a: a number, by which x is multiplied. As
/// stdlib::saxpy(queue, a, x, y).
template <class T0, class T1>
auto saxpy(const T0& x, T1&& y, const Setting& a, const Where& where = Where::current()) const {
    return self().template make<>({"saxpy", where}, {self().operand(x, where),
                              self().operand(std::forward<T1>(y), where)}, {{"a", a}});
}

/// y = factor x. x: any shape; y: any shape, made; factor: a number. As stdlib::elementwise(queue, Unary1::scale, x, y,
/// factor).
template <class T0>
auto scale(const T0& x, const Setting& factor, const Where& where = Where::current()) const {
    return self().template make<ArrayOf<ElementOf<T0>>>({"scale", where}, {self().operand(x, where)},
                              {{"factor", factor}});
}

/// y[ids[t]] += x[t]. ids: tokens; x: tokens x columns; y: rows x columns, changed in place. As
/// stdlib::scatter_add_rows(queue, ids, x, y, workspace).
template <class T0, class T1, class T2>
auto scatter_add_rows(const T0& ids, const T1& x, T2&& y, const Where& where = Where::current()) const {
    return self().template make<>({"scatter_add_rows", where}, {self().operand(ids, where), self().operand(x, where),
                              self().operand(std::forward<T2>(y), where)}, {});
}

/// gradient: any shape; parameter: any shape, changed in place; velocity: any shape, changed in place; learning_rate:
/// 1e-3 if it is not said; momentum: the momentum's factor, 0.9 if it is not said; weight_decay: 0 if it is not said;
/// nesterov: 1: with Nesterov's momentum; scale: what gradients are multiplied by, 1 if it is not said. As
/// stdlib::sgd_momentum(queue, gradient, parameter, velocity, options).
template <class T0, class T1, class T2>
auto sgd_momentum(const T0& gradient, T1&& parameter, T2&& velocity, const Setting& learning_rate = {},
                  const Setting& momentum = {}, const Setting& weight_decay = {}, const Setting& nesterov = {},
                  const Setting& scale = {}, const Where& where = Where::current()) const {
    return self().template make<>({"sgd_momentum", where}, {self().operand(gradient, where),
                              self().operand(std::forward<T1>(parameter), where),
                              self().operand(std::forward<T2>(velocity), where)}, {{"learning_rate", learning_rate},
                              {"momentum", momentum}, {"weight_decay", weight_decay}, {"nesterov", nesterov},
                              {"scale", scale}});
}

/// y = 1 / (1 + exp(-x)). x: any shape; y: any shape, made. As stdlib::elementwise(queue, Unary::sigmoid, x, y).
template <class T0>
auto sigmoid(const T0& x, const Where& where = Where::current()) const {
    return self().template make<ArrayOf<ElementOf<T0>>>({"sigmoid", where}, {self().operand(x, where)}, {});
}

/// dx = dy y (1 - y), where y = sigmoid(x). dy: any shape; y: any shape; dx: any shape, made. As
/// stdlib::elementwise(queue, Backward::sigmoid_backward, dy, y, dx).
template <class T0, class T1>
auto sigmoid_backward(const T0& dy, const T1& y, const Where& where = Where::current()) const {
    return self().template make<ArrayOf<ElementOf<T0>>>({"sigmoid_backward", where}, {self().operand(dy, where),
                              self().operand(y, where)}, {});
}

/// y = x / (1 + exp(-x)), which is also called swish. x: any shape; y: any shape, made. As stdlib::elementwise(queue,
/// Unary::silu, x, y).
template <class T0>
auto silu(const T0& x, const Where& where = Where::current()) const {
    return self().template make<ArrayOf<ElementOf<T0>>>({"silu", where}, {self().operand(x, where)}, {});
}

/// dx = dy (s + x s (1 - s)), where s = sigmoid(x). dy: any shape; x: any shape; dx: any shape, made. As
/// stdlib::elementwise(queue, Backward::silu_backward, dy, x, dx).
template <class T0, class T1>
auto silu_backward(const T0& dy, const T1& x, const Where& where = Where::current()) const {
    return self().template make<ArrayOf<ElementOf<T0>>>({"silu_backward", where}, {self().operand(dy, where),
                              self().operand(x, where)}, {});
}

/// x: ... x columns; y: ... x columns, made. As stdlib::softmax(queue, x, y).
template <class T0>
auto softmax(const T0& x, const Where& where = Where::current()) const {
    return self().template make<ArrayOf<ElementOf<T0>>>({"softmax", where}, {self().operand(x, where)}, {});
}

/// y: ... x columns; dy: ... x columns; dx: ... x columns, made. As stdlib::softmax_backward(queue, y, dy, dx).
template <class T0, class T1>
auto softmax_backward(const T0& y, const T1& dy, const Where& where = Where::current()) const {
    return self().template make<ArrayOf<ElementOf<T0>>>({"softmax_backward", where}, {self().operand(y, where),
                              self().operand(dy, where)}, {});
}

/// y: ... x rows x columns; dy: ... x rows x columns; dx: ... x rows x columns, made. As
/// stdlib::softmax_causal_backward(queue, y, dy, dx).
template <class T0, class T1>
auto softmax_causal_backward(const T0& y, const T1& dy, const Where& where = Where::current()) const {
    return self().template make<ArrayOf<ElementOf<T0>>>({"softmax_causal_backward", where}, {self().operand(y, where),
                              self().operand(dy, where)}, {});
}

/// the sum of an array, in f32. x: any shape; total: a number, made. As stdlib::sum(queue, x, total, workspace).
template <class T0>
auto sum(const T0& x, const Where& where = Where::current()) const {
    return self().template make<NumberOf<float>>({"sum", where}, {self().operand(x, where)}, {});
}

/// dgate = dy up silu'(gate), dup = dy silu(gate). dy: any shape; gate: any shape; up: any shape; dgate: any shape,
/// made; dup: any shape, made. As stdlib::swiglu_backward(queue, dy, gate, up, dgate, dup).
template <class T0, class T1, class T2>
auto swiglu_backward(const T0& dy, const T1& gate, const T2& up, const Where& where = Where::current()) const {
    return self().template make<ArrayOf<ElementOf<T0>>, ArrayOf<ElementOf<T0>>>({"swiglu_backward", where},
                              {self().operand(dy, where), self().operand(gate, where), self().operand(up, where)}, {});
}

/// up = dy silu(gate), gate = dy up silu'(gate). dy: any shape; gate: any shape, changed in place; up: any shape,
/// changed in place. As stdlib::swiglu_backward_in_place(queue, dy, gate, up).
template <class T0, class T1, class T2>
auto swiglu_backward_in_place(const T0& dy, T1&& gate, T2&& up, const Where& where = Where::current()) const {
    return self().template make<>({"swiglu_backward_in_place", where}, {self().operand(dy, where),
                              self().operand(std::forward<T1>(gate), where),
                              self().operand(std::forward<T2>(up), where)}, {});
}

/// y = tanh x. x: any shape; y: any shape, made. As stdlib::elementwise(queue, Unary::tanh, x, y).
template <class T0>
auto tanh(const T0& x, const Where& where = Where::current()) const {
    return self().template make<ArrayOf<ElementOf<T0>>>({"tanh", where}, {self().operand(x, where)}, {});
}

/// dx = dy (1 - y^2), where y = tanh x. dy: any shape; y: any shape; dx: any shape, made. As stdlib::elementwise(queue,
/// Backward::tanh_backward, dy, y, dx).
template <class T0, class T1>
auto tanh_backward(const T0& dy, const T1& y, const Where& where = Where::current()) const {
    return self().template make<ArrayOf<ElementOf<T0>>>({"tanh_backward", where}, {self().operand(dy, where),
                              self().operand(y, where)}, {});
}

/// transposes matrices. x: ... x rows x columns; y: ... x columns x rows, made. As stdlib::transpose(queue, x, y).
template <class T0>
auto transpose(const T0& x, const Where& where = Where::current()) const {
    return self().template make<ArrayOf<ElementOf<T0>>>({"transpose", where}, {self().operand(x, where)}, {});
}

/// y = a + b, by the name that other libraries have for it. a: any shape; b: any shape; y: any shape, made. As
/// stdlib::elementwise(queue, Binary::vec_add, a, b, y).
template <class T0, class T1>
auto vec_add(const T0& a, const T1& b, const Where& where = Where::current()) const {
    return self().template make<ArrayOf<ElementOf<T0>>>({"vec_add", where}, {self().operand(a, where),
                              self().operand(b, where)}, {});
}
