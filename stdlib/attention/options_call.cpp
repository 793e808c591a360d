// SPDX-License-Identifier: Apache-2.0
#include "stdlib/attention/options_call.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "codegen/pipeline/compile.hpp"

namespace ikat::stdlib {

AttentionWithOptions::AttentionWithOptions(std::string_view function, const Queue& queue, const TensorView& Q,
                                           const TensorView& K, const TensorView& V, const TensorView& O,
                                           const std::optional<TensorView>& log_sum, const AttentionOptions& options)
    : AttentionCall(function, queue, Q, K, V, O, log_sum), options_(options) {
    if (options.bias) bias_ = heads_of_rows("the bias", *options.bias);
}

void AttentionWithOptions::take_own(const std::optional<OwnScores>& scores, const std::optional<OwnSight>& sight,
                                    const std::optional<OwnScores>& slope) {
    AttentionCall::take_own(scores, sight, options_.query_offsets ? sequences_by_offsets() : sequences(), keys(),
                            slope);
}

void AttentionWithOptions::check_types() const {
    AttentionCall::check_types();
    if (bias_) check_life(bias_->part), check_same_type("the bias", *bias_);
    check_page_types();
    for (const auto& [what, offsets] :
         {std::pair("query_offsets", &options_.query_offsets), std::pair("key_offsets", &options_.key_offsets)}) {
        if (!*offsets) continue;
        if ((*offsets)->rank != 1)
            fail(fmt::format("{} has {} dimensions", what, (*offsets)->rank), "it is a Buffer, or a slice of one");
        check_life((*offsets)->part);
        check_type(what, (*offsets)->type, ir::Type::U32);
    }
}

void AttentionWithOptions::check_memory(Role of_results, std::vector<OperandRole> others) const {
    if (options_.bias) others.push_back({"bias", options_.bias->part});
    if (options_.pages) others.push_back({"pages", options_.pages->part});
    if (options_.query_offsets) others.push_back({"query_offsets", options_.query_offsets->part});
    if (options_.key_offsets) others.push_back({"key_offsets", options_.key_offsets->part});
    AttentionCall::check_memory(of_results, std::move(others));
}

void AttentionWithOptions::check_sizes() const {
    AttentionCall::check_sizes(pages_ ? K_.extents[0] : sequences());
    if (queries() >> 29 || keys() >> 29)
        fail(fmt::format("{} queries and {} keys", queries(), keys()), "there are fewer than 2^29 of each");
    if (options_.query_offsets.has_value() != options_.key_offsets.has_value())
        fail(options_.query_offsets ? "query_offsets without key_offsets" : "key_offsets without query_offsets",
             "give both, or neither");
    if (options_.query_offsets) {
        const std::uint64_t of_queries = options_.query_offsets->part.bytes / 4,
                            of_keys = options_.key_offsets->part.bytes / 4;
        if (of_queries == 0 || of_queries != of_keys)
            fail(fmt::format("query_offsets has {} elements, key_offsets {}", of_queries, of_keys),
                 "both have one more than there are sequences");
        if (sequences() != 1)
            fail(fmt::format("Q is {}, with offsets", extents_text(Q_.shape<4>())),
                 "it is (heads, rows, elements) of all sequences");
    }
    check_pages(options_.query_offsets ? sequences_by_offsets() : sequences());
    if (options_.bias) {
        const auto& extents = bias_->extents;
        const auto one_or = [](std::uint64_t given, std::uint64_t all) { return given == 1 ? given : all; };
        // With offsets it has as many columns as a sequence has keys at most, which only the device knows.
        const std::uint64_t columns = options_.query_offsets ? extents[3] : keys();
        check_shape("the bias", *bias_,
                    {one_or(extents[0], sequences()), one_or(extents[1], heads()), queries(), columns},
                    "it has an element for each query and key; one head, or sequence, is for all");
    }
}

void AttentionWithOptions::check_numbers() {
    SizeCheck{function_, where_}.enumerator("path", std::size_t(options_.path), 3);
    AttentionCall::check_numbers(options_.scale, options_.soft_cap);
    if (options_.causal && options_.window_right && *options_.window_right > 0)
        fail(fmt::format("causal, and a window_right of {}", *options_.window_right), "causal is a window_right of 0");
    numbers_ = score_numbers(options_.scale, options_.soft_cap, options_.bias || options_.scores);
}

bool AttentionWithOptions::is_path_wgmma(const std::string& problem) const {
    if (options_.path == AttentionPath::wgmma && !problem.empty())
        fail("wgmma: " + problem, "AttentionPath::mma_sync takes any operands, on any device from sm_80 on");
    return problem.empty() && (options_.path == AttentionPath::wgmma || queries_of_sequence() > 64);
}

std::string AttentionWithOptions::problem_of_target() const {
    const std::string_view target = queue_.device().compile_options().target;
    return target == "sm_90a" ? "" : fmt::format("the device is opened for {}, not sm_90a", target);
}

/// What scores are multiplied with, their cap, and which keys a query sees; and what kernels may be made without.
void AttentionWithOptions::add_scoring(KernelArguments& to, bool with_bias) const {
    const auto limit = [](std::int64_t n) { return std::int32_t(std::clamp<std::int64_t>(n, -(1 << 29), 1 << 29)); };
    const std::int64_t shift = options_.query_offsets ? 0 : std::int64_t(keys()) - std::int64_t(queries());
    to.add_numbers(std::uint32_t(heads() / kv_heads()), numbers_.factor, numbers_.cap,
                   limit(shift - (options_.window_left ? std::int64_t(*options_.window_left) : 1 << 30)),
                   limit(shift + (options_.causal ? 0 : std::int64_t(options_.window_right.value_or(0)))),
                   std::uint32_t(options_.query_offsets ? sequences_by_offsets() : 0));
    if (options_.bias && with_bias) to.add_view(*bias_, 4);
    if (options_.query_offsets) to.add_array(*options_.query_offsets), to.add_array(*options_.key_offsets);
}

void AttentionWithOptions::add_map(KernelArguments& to, const TensorView& x, std::uint32_t box) const {
    std::array<std::uint64_t, 3> pitches{x.strides[0], x.strides[1], x.strides[2]};
    // Where there is only one, the pitch to the next does not matter.
    for (std::size_t d = 3; d-- > 0;)
        if (x.extents[d] == 1) pitches[d] = d == 2 ? x.extents[3] : x.extents[d + 1] * pitches[d + 1];
    if (!options_.query_offsets) return to.add_map(x, x.shape<4>(), pitches);
    const std::array<std::uint64_t, 4> extents{x.extents[1], 1u << 30, box, x.extents[3]};
    to.add_map(x, extents, std::array{pitches[1], pitches[2], pitches[2]}, box * pitches[2]);
}

}  // namespace ikat::stdlib
