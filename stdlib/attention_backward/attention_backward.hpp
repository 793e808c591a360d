// SPDX-License-Identifier: Apache-2.0
// The gradients of attention, of which neither the weights nor their gradients are ever in memory.
//
//     flash_attention(device, Q, K, V, O, {.causal = true, .log_sum = log_sum});
//     attention_backward(device, Q, K, V, O, log_sum, dO, dQ, dK, dV, {.causal = true});
//
// With P = exp(score - log_sum), the weights, which are computed again, dP = dO V^T and D = the sum of dO * O of a
// query:
//
//     dV = P^T dO     dS = P * (dP - D)     dQ = scale * dS K     dK = scale * dS^T Q     dbias = dS
//
// Products are on tensor cores, of any device from sm_80 on, and sums f32; P and dS are rounded to the elements' type
// before they are multiplied, as are the results. There are no atomics: results have the same bits in every run.
#pragma once
#include <optional>

#include "stdlib/attention/attention.hpp"
#include "stdlib/spec/workspace.hpp"

namespace ikat::stdlib {

/// What else there is to be made, or is needed for it.
struct AttentionGradients {
    /// Where the gradient of options.bias goes, of the same shape: where one sequence or head of it is for all, the sum
    /// of theirs. By offsets, 0 for columns after the keys of a sequence.
    std::optional<MutableTensorView> dbias{};
    /// The derivative of options.scores by the score: a function that takes what that one takes, see own_scores.hpp.
    ///
    ///     .scores = scores("softer", [](auto score, auto at) { return 5.0f * tanh(score / 5.0f); })
    ///     .slope = scores("slope", [](auto score, auto at) { auto t = tanh(score / 5.0f); return 1.0f - t * t; })
    std::optional<OwnScores> slope{};
    /// attention_backward_workspace() bytes, at least; allocated from the queue if there is none.
    WorkspaceSlice workspace{};
};

/// dQ, dK and dV, the gradients of what flash_attention() was given, from dO, that of O, and O and log_sum, which it
/// made with the same `options`. dO and dQ have the shape of Q, dK and dV that of K; all have the type of Q, f16 or
/// bf16. Several heads of Q that share one of K and V: dK and dV are the sums over these. Gradients are 0 of queries
/// that see no keys, and of keys that no query sees.
///
/// Of the options, log_sum and queries_of_block are not looked at; pages are errors. Sinks count in log_sum; their own
/// gradient is not made. Products are by wgmma, on sm_90a, where there are more than 64 queries, by offsets on average,
/// or options.path says so: of heads of 64 and 128 elements, without a soft cap, a bias and functions, where rows of
/// all but O begin at multiples of 16 bytes. So a path that the forward pass can take may be an error here.
///
/// Keep all operands finite, also where they are padding: 0 times an infinity is NaN, which reaches all that a block
/// makes, see flash_attention().
/// Throws Error for sizes and types that do not fit, f32 among them, for encoded K and V, and for a path that cannot do
/// it.
void attention_backward(const Queue& queue, const TensorView& Q, const TensorView& K, const TensorView& V,
                        const TensorView& O, const TensorView& log_sum, const TensorView& dO,
                        const MutableTensorView& dQ, const MutableTensorView& dK, const MutableTensorView& dV,
                        const AttentionOptions& options = {}, const AttentionGradients& gradients = {});

/// The bytes of workspace, for a Q like this one: 16 for each query of each head, of a multiple of 64 queries. By
/// offsets, `sequences` is how many sequences there are.
std::uint64_t attention_backward_workspace(const TensorView& Q, std::uint64_t sequences = 0);

}  // namespace ikat::stdlib
