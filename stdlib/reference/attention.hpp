// SPDX-License-Identifier: Apache-2.0
// The gradients of attention by their formula, in double, and how far off a kernel may be that computes in f32 and
// multiplies elements of 16 bits.
#pragma once
#include <cstdint>
#include <functional>
#include <vector>

#include "stdlib/reference/bounds.hpp"

namespace ikat::stdlib::reference {

/// One sequence. Arrays are heads of rows, one after the other, and hold what the kernel is given: O and log_sum, too.
struct AttentionCase {
    std::uint32_t queries = 0, keys = 0, heads = 1, kv_heads = 1, head_dim = 64;
    std::vector<double> Q{}, K{}, V{}, O{}, dO{}, log_sum{};
    std::vector<double> bias{};  // heads, queries, keys; empty: none
    double scale = 1, soft_cap = 0;
    /// Of the elements' type: half of its distance from 1 to the next number.
    double step = 0x1p-11;
    /// Whether query i of head h sees key j; what its score becomes, and the derivative of that, which both move by no
    /// more than the score that they are given. Empty: all are seen; nothing.
    std::function<bool(std::uint32_t h, std::uint32_t i, std::uint32_t j)> sees{};
    std::function<double(double score, std::uint32_t h, std::uint32_t i, std::uint32_t j)> scores{}, slope{};
};

/// O and log_sum of the rest, exactly; without a rounding, and without sinks.
void attention_forward(AttentionCase& of);

/// Of the shapes of Q, K and V; dbias of (heads, queries, keys), not yet rounded to the elements' type, so that it can
/// be added up, by bounded_sum().
struct AttentionGradientsExpected {
    std::vector<Bounded> dQ{}, dK{}, dV{}, dbias{};
};
AttentionGradientsExpected attention_backward(const AttentionCase& of);

/// Terms that are added up in f32, in any order, and rounded to the elements' type.
Bounded bounded_sum(const std::vector<Bounded>& terms, double step);

}  // namespace ikat::stdlib::reference
