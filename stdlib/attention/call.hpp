// SPDX-License-Identifier: Apache-2.0
// What the calls of all functions of attention have: Q, K, V, O, log_sum, and their checks.
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/launch/roles.hpp"
#include "stdlib/attention/attention.hpp"
#include "stdlib/attention/encoding.hpp"
#include "stdlib/attention/own_attention.hpp"
#include "stdlib/spec/kernel_arguments.hpp"

namespace ikat::stdlib {

/// What makes scores of products, see AttentionKernel.
struct ScoreNumbers {
    bool has_cap = false, has_wide_cap = false;
    float factor = 1, cap = 0;
};

/// The arguments must outlive it. Each check throws Error, which names the function and has the location of its call.
class AttentionCall {
protected:
    AttentionCall(std::string_view function, const Queue& queue, const TensorView& Q, const TensorView& K,
                  const TensorView& V, const TensorView& O, const std::optional<TensorView>& log_sum);

    /// As (sequences, heads, rows, elements), of which the first may be left out, down to `min_rank` dimensions.
    TensorView heads_of_rows(std::string_view what, const TensorView& given, std::uint32_t min_rank = 2) const;

    [[noreturn]] void fail(std::string_view message, std::string_view hint) const;
    void check_life(const runtime::BufferPart& part) const;
    void check_type(std::string_view what, ir::Type type, ir::Type right) const;
    void check_same_type(std::string_view what, const TensorView& x) const;  // as Q
    void check_shape(std::string_view what, const TensorView& x, const std::array<std::uint64_t, 4>& right,
                     std::string_view hint) const;

    /// The functions, if there are any, of that many sequences, and keys in an array's rows; before check_memory().
    void take_own(const std::optional<OwnScores>& scores, const std::optional<OwnSight>& sight, std::uint64_t sequences,
                  std::uint64_t keys, const std::optional<OwnScores>& slope = {});
    /// ... their arguments.
    void add_own(KernelArguments& to) const;

    /// A sink for each head, if there are any; before check_memory().
    void take_sinks(const std::optional<TensorView>& sinks);

    /// Of all five: that they are there, of types that fit.
    void check_types() const;
    /// That what is written, O and log_sum if they are, or `others`, is no other operand's memory.
    void check_memory(Role of_results, std::vector<OperandRole> others) const;
    /// The pages of sequences, if there are any; their type; and, with this many sequences, their shapes.
    void take_pages(const std::optional<TensorView>& pages);
    void check_page_types() const;
    void check_pages(std::uint64_t sequences) const;
    /// The most that a sequence may have.
    std::uint64_t keys() const { return K_.extents[2] * (pages_ ? pages_->extents[3] : 1); }

    /// ... their shapes; K has this many planes of heads.
    void check_sizes(std::uint64_t planes) const;
    /// That they fit the kernels' 32 bits; `but` continues the hint.
    void check_pitches(std::string_view what, const TensorView& x, std::string_view but = "") const;
    void check_numbers(const std::optional<float>& scale, float soft_cap) const;
    ScoreNumbers score_numbers(const std::optional<float>& scale, float soft_cap, bool has_bias) const;

    std::uint64_t sequences() const { return Q_.extents[0]; }
    std::uint64_t heads() const { return Q_.extents[1]; }
    std::uint64_t queries() const { return Q_.extents[2]; }
    std::uint64_t head_dim() const { return Q_.extents[3]; }
    std::uint64_t kv_heads() const { return K_.extents[1]; }

    const Queue& queue_;
    Location where_;
    std::string_view function_;
    const TensorView Q_, K_, V_, O_;
    std::optional<TensorView> log_sum_{}, sinks_{}, pages_{};
    OwnAttention own_{};

private:
    void check_encoded() const;
    struct OwnArgument {
        std::string what;
        ScoreArgument argument;
        std::uint32_t rank;  // of an array
    };
    /// By the numbers of ScoreAxis: how many there are.
    using AxisCounts = std::array<std::uint64_t, 4>;
    void take_own(const OwnAttention::Code& code, const std::vector<ScoreArgument>& arguments,
                  const AxisCounts& counts);
    void check_own(const std::string& what, const ScoreParameter& is, const TensorView& array,
                   const AxisCounts& counts) const;
    std::vector<OwnArgument> own_arguments_{};
};

/// Extents in messages.
std::string extents_text(const std::array<std::uint64_t, 4>& extents);
/// By how many bytes rows of this can be accessed: 16, 8, 4, or 0.
std::uint32_t access_of(const TensorView& x);

}  // namespace ikat::stdlib
