// SPDX-License-Identifier: Apache-2.0
#include "stdlib/attention/attention.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "stdlib/attention/attention_kernels.hpp"
#include "stdlib/attention/options_call.hpp"
#include "stdlib/attention/wgmma_kernels.hpp"
#include "stdlib/spec/kernel_arguments.hpp"

namespace ikat::stdlib {
namespace {

/// A call whose arguments fit each other.
class Attention : AttentionWithOptions {
public:
    Attention(const Queue& queue, const TensorView& Q, const TensorView& K, const TensorView& V,
              const MutableTensorView& O, const AttentionOptions& options)
        : AttentionWithOptions("flash_attention", queue, Q, K, V, O, options.log_sum, options) {
        take_pages(options.pages);
        check_types();
        check_sizes();
        take_own(options.scores, options.sees, {});
        take_sinks(options.sinks);
        check_memory(Role::Written);
        check_numbers();
        choose_path();
    }
    void run() const;

private:
    void choose_path();
    /// Why wgmma cannot do this; "" if it can.
    std::string problem_of_wgmma() const;
    std::uint64_t multiprocessors() const { return std::max(queue_.device().properties().multiprocessors, 1u); }
    AttentionKernel chosen() const;
    WgmmaAttentionKernel chosen_of_wgmma() const;
    void run_wgmma() const;

    /// Whether 128 queries leave enough registers for what else there is to do: a bias, or, of 128 elements, a cap.
    bool has_large_blocks() const {
        return AttentionTile::has_large(std::uint32_t(head_dim()), ir::bits(Q_.type), are_bytes()) && !options_.bias &&
               (head_dim() < 128 || !numbers_.has_cap);
    }
    /// Whether they leave work for all multiprocessors, and, of 128 elements, each has the memory for two.
    bool suit_large_blocks() const {
        const auto& device = queue_.device().properties();
        return queries_of_sequence() > 64 && blocks_of_queries(128) >= multiprocessors() &&
               (head_dim() < 128 || device.shared_bytes_optin >= 2 * AttentionTile::large_bytes);
    }
    /// Whether the kernel takes K and V as bytes.
    bool are_bytes() const { return pages_ || encoding_of(K_) != CacheEncoding::none; }

    bool is_by_wgmma_ = false;
};

std::string Attention::problem_of_wgmma() const {
    if (const std::string problem = problem_of_target(); !problem.empty()) return problem;
    if (Q_.type == ir::Type::F32) return "elements are f32";
    if (encoding_of(K_) != CacheEncoding::none) return fmt::format("K and V have elements of {}", K_.type_name());
    if (pages_) return "K and V are in pages";
    for (const TensorView* x : {&Q_, &K_, &V_, &O_})
        if (access_of(*x) != 16) return "rows of Q, K, V or O do not begin at multiples of 16 bytes";
    const std::uint32_t n = options_.queries_of_block;
    if (n % 64 != 0 || n / 64 > WgmmaAttentionTile::max_groups(head_dim()))
        return fmt::format("there are no blocks of {} queries", n);
    return {};
}

void Attention::choose_path() {
    is_by_wgmma_ = options_.path != AttentionPath::mma_sync && is_path_wgmma(problem_of_wgmma());
    const std::uint32_t n = options_.queries_of_block;
    if (!is_by_wgmma_ && n != 0 && n != 64 && (n != 128 || !has_large_blocks()))
        fail(fmt::format("{} queries of a block", n),
             "there are blocks of 64 and, without a bias, of 128: of rows of less than 128 elements, in f32 if K and V "
             "are neither in pages nor encoded, and of 128 elements of 16 bits, also without a soft cap, pages and "
             "encodings");
    constexpr std::string_view but = "; by wgmma, only those of log_sum and the bias";
    if (options_.log_sum) check_pitches("log_sum", *log_sum_, but);
    if (options_.bias) check_pitches("the bias", *bias_, but);
    if (is_by_wgmma_) return;
    if (pages_)
        for (const TensorView* x : {&K_, &V_})
            check_pitches(x == &K_ ? "the bytes of K" : "the bytes of V", as_bytes(*x));
    if (pages_) check_pitches("pages", *pages_);
    check_pitches("Q", Q_, but), check_pitches("K", K_, but), check_pitches("V", V_, but), check_pitches("O", O_, but);
}

AttentionKernel Attention::chosen() const {
    auto out = of_options<AttentionKernel>();
    out.has_sinks = options_.sinks.has_value(), out.has_log_sum = options_.log_sum.has_value();
    out.encoding = encoding_of(K_);
    out.has_pages = pages_.has_value();
    out.q_access = access_of(Q_), out.k_access = access_of(K_), out.v_access = access_of(V_);
    out.o_is_aligned = access_of(O_) == 16;
    out.queries = options_.queries_of_block;
    if (out.queries == 0) out.queries = has_large_blocks() && suit_large_blocks() ? 128 : 64;
    return out;
}

WgmmaAttentionKernel Attention::chosen_of_wgmma() const {
    auto out = of_options<WgmmaAttentionKernel>();
    out.has_sinks = options_.sinks.has_value(), out.has_log_sum = options_.log_sum.has_value();
    out.groups = options_.queries_of_block / 64;
    if (out.groups == 0) {
        out.groups = WgmmaAttentionTile::max_groups(head_dim());
        while (out.groups > 1 && (queries_of_sequence() <= 64 * (out.groups - 1) ||
                                  blocks_of_queries(64 * out.groups) < multiprocessors()))
            --out.groups;
    }
    // Larger tiles are worth it if few more keys are computed that are not there.
    const auto padded = [&](std::uint64_t tile) { return (keys() + tile - 1) / tile * tile; };
    out.has_many_keys = out.can_have_many_keys() && padded(WgmmaAttentionTile::many_keys) * 16 <= padded(128) * 17;
    return out;
}

void Attention::run() const {
    if (sequences() == 0 || heads() == 0 || queries() == 0) return;
    if (options_.query_offsets && sequences_by_offsets() == 0) return;
    if (is_by_wgmma_) return run_wgmma();
    const AttentionKernel is = chosen();
    const std::uint64_t count = blocks_of_queries(is.queries);
    if (count > 0x7fffffff) fail(fmt::format("{} blocks of queries", count), "a grid has at most 2147483647 blocks");
    KernelArguments arguments(is.handle(), where_);
    for (const TensorView& x : {Q_, bytes_if(are_bytes(), K_), bytes_if(are_bytes(), V_), O_}) arguments.add_view(x, 4);
    add_scoring(arguments);
    if (sinks_) arguments.add_array(*sinks_);
    if (options_.log_sum) arguments.add_view(*log_sum_, 3);
    if (pages_) arguments.add_view(*pages_, 2);
    add_own(arguments);
    arguments.launch(queue_, count, AttentionTile::threads);
}

void Attention::run_wgmma() const {
    const WgmmaAttentionKernel is = chosen_of_wgmma();
    const std::uint64_t count = blocks_of_queries(is.tile().queries());
    if (count > 0x7fffffff) fail(fmt::format("{} tiles of queries", count), "there are at most 2147483647");
    KernelArguments arguments(is.handle(), where_);
    // Of no keys there is no map. K and V are not read then, whatever the map.
    const std::uint32_t of_keys = is.tile().keys();
    add_map(arguments, Q_, 64), add_map(arguments, keys() > 0 ? K_ : Q_, of_keys);
    add_map(arguments, keys() > 0 ? V_ : Q_, of_keys), add_map(arguments, O_, 64);
    for (const std::uint64_t number : {queries(), keys(), heads(), count}) arguments.add_numbers(std::uint32_t(number));
    add_scoring(arguments);
    if (sinks_) arguments.add_array(*sinks_);
    if (options_.log_sum) arguments.add_view(*log_sum_, 3);
    if (pages_) arguments.add_view(*pages_, 2);
    add_own(arguments);
    arguments.launch(queue_, std::min(count, multiprocessors()), is.tile().threads());
}

}  // namespace

void flash_attention(const Queue& queue, const TensorView& Q, const TensorView& K, const TensorView& V,
                     const MutableTensorView& O, const AttentionOptions& options) {
    Attention(queue, Q, K, V, O, options).run();
}

}  // namespace ikat::stdlib
