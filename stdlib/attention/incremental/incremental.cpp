// SPDX-License-Identifier: Apache-2.0
#include "stdlib/attention/incremental/incremental.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <vector>

#include "stdlib/attention/call.hpp"
#include "stdlib/attention/incremental/kernels.hpp"
#include "stdlib/spec/kernel_arguments.hpp"

namespace ikat::stdlib {
namespace {

constexpr std::string_view incremental = "incremental_attention";

/// A call whose arguments fit each other.
class Incremental : AttentionCall {
public:
    Incremental(const Queue& queue, const TensorView& Q, const TensorView& K, const TensorView& V,
                const MutableTensorView& O, const IncrementalOptions& options)
        : AttentionCall(incremental, queue, Q, K, V, O, options.log_sum), options_(options) {
        take_pages(options.pages);
        check_types();
        check_sizes();
        take_own(options.scores, options.sees, sequences(), keys());
        take_sinks(options.sinks);
        check_memory();
        check_all_pitches();
        check_numbers(options.scale, options.soft_cap);
        numbers_ = score_numbers(options.scale, options.soft_cap, options.scores.has_value());
        choose();
    }
    void run() const;
    std::uint64_t workspace() const {
        return parts_ > 1 ? Workspace::rounded(sum_count() * 4) + Workspace::rounded(rows() * parts_ * 8) : 0;
    }

private:
    void check_types() const;
    void check_memory() const;
    void check_sizes() const;
    void check_all_pitches() const;
    /// Which kernel, and how many parts.
    void choose();
    void merge(const BufferSlice<float>& sums, const BufferSlice<float>& statistics) const;

    std::uint64_t group() const { return heads() / kv_heads(); }
    std::uint64_t rows() const { return sequences() * heads() * queries(); }
    std::uint64_t sum_count() const { return rows() * parts_ * head_dim(); }
    std::uint64_t blocks_of_part() const {
        return sequences() * kv_heads() * ((group() * queries() - 1) / kernel_.rows + 1);
    }
    DecodeTile tile() const { return decode_tile(std::uint32_t(head_dim() * ir::info(Q_.type).bytes)); }

    const IncrementalOptions& options_;
    ScoreNumbers numbers_{};
    DecodeKernel kernel_{};
    std::uint32_t parts_ = 1;
    bool o_is_aligned_ = true;
};

void Incremental::check_types() const {
    AttentionCall::check_types();
    check_page_types();
    if (!options_.lengths) return;
    if (options_.lengths->rank != 1)
        fail(fmt::format("the lengths have {} dimensions", options_.lengths->rank),
             "they are a Buffer, or a slice of one, with a number for each sequence");
    check_life(options_.lengths->part);
    check_type("lengths", options_.lengths->type, ir::Type::U32);
}

void Incremental::check_memory() const {
    std::vector<OperandRole> others;
    if (options_.lengths) others.push_back({"lengths", options_.lengths->part});
    if (options_.pages) others.push_back({"pages", options_.pages->part});
    others.push_back({"workspace", options_.workspace.part(), Role::Written});
    AttentionCall::check_memory(Role::Written, std::move(others));
}

void Incremental::check_sizes() const {
    AttentionCall::check_sizes(options_.pages ? K_.extents[0] : sequences());
    check_pages(sequences());
    if (options_.lengths && options_.lengths->part.bytes / 4 < sequences())
        fail(fmt::format("'lengths' has {} elements for {} sequences", options_.lengths->part.bytes / 4, sequences()),
             "each sequence needs one");
    if (keys() >> 29 || queries() * std::max<std::uint64_t>(heads(), 1) >> 29)
        fail(fmt::format("{} queries of {} heads, and {} keys", queries(), heads(), keys()),
             "there are fewer than 2^29 of each");
}

void Incremental::check_all_pitches() const {
    check_pitches("Q", Q_), check_pitches("K", K_), check_pitches("V", V_), check_pitches("O", O_);
    if (options_.log_sum) check_pitches("log_sum", *log_sum_);
    if (options_.pages) check_pitches("pages", *pages_);
}

void Incremental::choose() {
    kernel_ = {.type = Q_.type, .head_dim = std::uint32_t(head_dim())};
    kernel_.has_lengths = options_.lengths.has_value();
    kernel_.has_pages = options_.pages.has_value();
    kernel_.is_causal = options_.causal && queries() > 1;
    kernel_.has_before = options_.window_left.has_value();
    kernel_.has_cap = numbers_.has_cap, kernel_.has_wide_cap = numbers_.has_wide_cap;
    kernel_.encoding = encoding_of(K_);
    kernel_.q_access = access_of(Q_), kernel_.k_access = access_of(K_), kernel_.v_access = access_of(V_);
    kernel_.has_sinks = options_.sinks.has_value();
    kernel_.own = own_;
    if (rows() == 0) return;
    if (Q_.type == ir::Type::F32)
        kernel_.rows = std::bit_ceil(std::uint32_t(std::min<std::uint64_t>(group() * queries(), kernel_.rows)));
    // A part that has no chunk for each of the warps is not worth its block.
    const std::uint64_t max_parts = std::max<std::uint64_t>(keys() / (tile().warps * DecodeTile::keys), 1);
    parts_ = std::uint32_t(std::min<std::uint64_t>(options_.parts, max_parts));
    if (parts_ == 0) {
        // The fewest that keep multiprocessors, each with two blocks, about as busy as any number does.
        const double slots = 2.0 * std::max(queue_.device().properties().multiprocessors, 1u);
        const auto busy = [&](std::uint64_t parts) {
            const double waves = double(blocks_of_part() * parts) / slots;
            return waves / std::ceil(waves);
        };
        constexpr std::uint64_t min_chunks = 4;  // chunks of a warp: fewer are not worth a second kernel
        const std::uint64_t last = std::clamp<std::uint64_t>(max_parts / min_chunks, 1, 128);
        double best = 0;
        for (std::uint64_t parts = 1; parts <= last; ++parts) best = std::max(best, busy(parts));
        parts_ = 1;
        while (busy(parts_) < 0.9 * best) ++parts_;
    }
    kernel_.step = parts_ > 1 ? DecodeKernel::Step::Part : DecodeKernel::Step::Whole;
    kernel_.has_log_sum = options_.log_sum.has_value() && parts_ == 1;
    o_is_aligned_ = access_of(O_) >= 4 * ir::info(O_.type).bytes;
    kernel_.o_is_aligned = parts_ > 1 || o_is_aligned_;
    if (blocks_of_part() * parts_ > 0x7fffffff || rows() * head_dim() / 4 > 0xffffffff)
        fail(fmt::format("{} blocks of {} rows of O", blocks_of_part() * parts_, rows()),
             "a grid has at most 2147483647 blocks");
}

void Incremental::run() const {
    if (rows() == 0) return;
    std::optional<Workspace> memory;
    std::optional<BufferSlice<float>> sums, statistics;
    if (parts_ > 1) {
        memory.emplace(queue_, incremental, options_.workspace, workspace());
        sums = memory->take<float>(sum_count());
        statistics = memory->take<float>(rows() * parts_ * 2);
    }
    KernelArguments first(kernel_.handle(), where_);
    const bool are_bytes = kernel_.encoding != CacheEncoding::none;
    for (const TensorView& x : {Q_, bytes_if(are_bytes, K_), bytes_if(are_bytes, V_)}) first.add_view(x, 4);
    if (sums)
        first.add_array(*sums), first.add_array(*statistics);
    else
        first.add_view(O_, 4);
    first.add_numbers(std::uint32_t(keys()), std::uint32_t(group()), parts_,
                      std::uint32_t(options_.pages ? std::countr_zero(K_.extents[2]) : 0), numbers_.factor,
                      numbers_.cap, std::min(options_.window_left.value_or(0), 1u << 29));
    if (options_.lengths) first.add_array(*options_.lengths);
    if (options_.pages) first.add_view(*pages_, 2);
    if (sinks_) first.add_array(*sinks_);
    if (kernel_.has_log_sum) first.add_view(*log_sum_, 3);
    add_own(first);
    first.launch(queue_, blocks_of_part() * parts_, tile().threads());
    if (parts_ > 1) merge(*sums, *statistics);
}

void Incremental::merge(const BufferSlice<float>& sums, const BufferSlice<float>& statistics) const {
    const DecodeKernel merging{.step = DecodeKernel::Step::Merge,
                               .type = Q_.type,
                               .head_dim = kernel_.head_dim,
                               .has_log_sum = options_.log_sum.has_value(),
                               .o_is_aligned = o_is_aligned_};
    KernelArguments arguments(merging.handle(), where_);
    arguments.add_array(sums), arguments.add_array(statistics);
    arguments.add_view(O_, 4);
    arguments.add_numbers(parts_);
    if (options_.log_sum) arguments.add_view(*log_sum_, 3);
    constexpr std::uint32_t threads = 128;
    arguments.launch(queue_, (rows() * head_dim() / 4 - 1) / threads + 1, threads);
}

}  // namespace

void incremental_attention(const Queue& queue, const TensorView& Q, const TensorView& K, const TensorView& V,
                           const MutableTensorView& O, const IncrementalOptions& options) {
    Incremental(queue, Q, K, V, O, options).run();
}

std::uint64_t incremental_attention_workspace(const Queue& queue, const TensorView& Q, const TensorView& K,
                                              const TensorView& V, const MutableTensorView& O,
                                              const IncrementalOptions& options) {
    return Incremental(queue, Q, K, V, O, options).workspace();
}

}  // namespace ikat::stdlib
