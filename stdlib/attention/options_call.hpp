// SPDX-License-Identifier: Apache-2.0
// What the calls have that take AttentionOptions: their checks, and what their kernels are made by and launched with.
#pragma once
#include <algorithm>
#include <optional>
#include <vector>

#include "stdlib/attention/call.hpp"

namespace ikat::stdlib {

class AttentionWithOptions : protected AttentionCall {
protected:
    AttentionWithOptions(std::string_view function, const Queue& queue, const TensorView& Q, const TensorView& K,
                         const TensorView& V, const TensorView& O, const std::optional<TensorView>& log_sum,
                         const AttentionOptions& options);

    void take_own(const std::optional<OwnScores>& scores, const std::optional<OwnSight>& sight,
                  const std::optional<OwnScores>& slope);
    void check_types() const;
    void check_memory(Role of_results, std::vector<OperandRole> others = {}) const;
    void check_sizes() const;
    void check_numbers();
    /// By options.path, where there is no problem with wgmma. An error if it is asked for and there is one.
    bool is_path_wgmma(const std::string& problem) const;
    /// Why it cannot be, whatever the operands; "" if it can.
    std::string problem_of_target() const;

    /// What kernels have by the options, but for sinks and log_sum.
    template <class Kernel>
    Kernel of_options() const {
        Kernel out{.type = Q_.type, .head_dim = std::uint32_t(head_dim())};
        out.has_before = options_.window_left.has_value();
        out.has_after = options_.causal || options_.window_right;
        out.has_cap = numbers_.has_cap, out.has_wide_cap = numbers_.has_wide_cap;
        out.has_bias = options_.bias.has_value();
        out.has_offsets = options_.query_offsets.has_value();
        out.own = own_;
        return out;
    }
    /// The numbers of a launch, the bias and the offsets.
    void add_scoring(KernelArguments& to, bool with_bias = true) const;
    /// Rows of heads as a map whose boxes have `box` rows: (sequences, heads, rows, elements) or, by offsets, (heads,
    /// rows, box, elements), which is, for each row, the `box` rows from there on, from `box` rows before the first one
    /// on. A copy ends with the last of those `box` rows, which can be the last of any sequence. What offsets give
    /// beyond the rows is out of bounds of the buffer, not of the map.
    void add_map(KernelArguments& to, const TensorView& x, std::uint32_t box) const;

    /// How many blocks of `each` rows there are for heads of queries, or of keys.
    std::uint64_t blocks_of(std::uint64_t of_heads, std::uint64_t rows, std::uint32_t each) const {
        if (options_.query_offsets) return of_heads * (rows / each + sequences_by_offsets());
        return sequences() * of_heads * ((rows + each - 1) / each);
    }
    std::uint64_t blocks_of_queries(std::uint32_t each) const { return blocks_of(heads(), queries(), each); }

    std::uint64_t sequences_by_offsets() const { return options_.query_offsets->part.bytes / 4 - 1; }
    /// With offsets, on average.
    std::uint64_t queries_of_sequence() const {
        return options_.query_offsets ? queries() / std::max<std::uint64_t>(sequences_by_offsets(), 1) : queries();
    }

    const AttentionOptions& options_;
    std::optional<TensorView> bias_{};
    ScoreNumbers numbers_{};
};

}  // namespace ikat::stdlib
