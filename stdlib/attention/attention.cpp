// SPDX-License-Identifier: Apache-2.0
#include "stdlib/attention/attention.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "codegen/pipeline/compile.hpp"
#include "stdlib/attention/attention_kernels.hpp"
#include "stdlib/attention/call.hpp"
#include "stdlib/attention/wgmma_kernels.hpp"
#include "stdlib/spec/kernel_arguments.hpp"

namespace ikat::stdlib {
namespace {

/// A call whose arguments fit each other.
class Attention : AttentionCall {
public:
    Attention(const Queue& queue, const TensorView& Q, const TensorView& K, const TensorView& V,
              const MutableTensorView& O, const AttentionOptions& options)
        : AttentionCall("flash_attention", queue, Q, K, V, O, options.log_sum), options_(options) {
        if (options.bias) bias_ = heads_of_rows("the bias", *options.bias);
        take_pages(options.pages);
        check_types();
        check_sizes();
        take_own(options.scores, options.sees, options.query_offsets ? sequences_by_offsets() : sequences(), keys());
        take_sinks(options.sinks);
        check_memory();
        check_numbers();
        numbers_ = score_numbers(options.scale, options.soft_cap, options.bias || options.scores);
        choose_path();
    }
    void run() const;

private:
    void check_types() const;
    void check_memory() const;
    void check_sizes() const;
    void check_numbers() const;
    void choose_path();
    /// Why wgmma cannot do this; "" if it can.
    std::string problem_of_wgmma() const;
    std::uint64_t multiprocessors() const { return std::max(queue_.device().properties().multiprocessors, 1u); }
    template <class Kernel>
    Kernel of_options() const;
    AttentionKernel chosen() const;
    WgmmaAttentionKernel chosen_of_wgmma() const;
    void run_wgmma() const;
    class Arguments;
    void add_scoring(Arguments& to) const;
    std::uint64_t blocks(std::uint32_t queries_of_block) const {
        if (options_.query_offsets) return heads() * (queries() / queries_of_block + sequences_by_offsets());
        return sequences() * heads() * ((queries() - 1) / queries_of_block + 1);
    }

    /// Whether 128 queries leave enough registers for what else there is to do: a bias, or, of 128 elements, a cap.
    bool has_large_blocks() const {
        return AttentionTile::has_large(std::uint32_t(head_dim()), ir::bits(Q_.type), are_bytes()) && !options_.bias &&
               (head_dim() < 128 || !numbers_.has_cap);
    }
    /// Whether they leave work for all multiprocessors, and, of 128 elements, each has the memory for two.
    bool suit_large_blocks() const {
        const auto& device = queue_.device().properties();
        return queries_of_sequence() > 64 && blocks(128) >= multiprocessors() &&
               (head_dim() < 128 || device.shared_bytes_optin >= 2 * AttentionTile::large_bytes);
    }
    /// Whether the kernel takes K and V as bytes.
    bool are_bytes() const { return pages_ || encoding_of(K_) != CacheEncoding::none; }

    std::uint64_t sequences_by_offsets() const { return options_.query_offsets->part.bytes / 4 - 1; }
    /// With offsets, on average.
    std::uint64_t queries_of_sequence() const {
        return options_.query_offsets ? queries() / std::max<std::uint64_t>(sequences_by_offsets(), 1) : queries();
    }

    const AttentionOptions& options_;
    std::optional<TensorView> bias_{};
    ScoreNumbers numbers_{};
    bool is_by_wgmma_ = false;
};

/// With maps of heads of rows.
class Attention::Arguments : public KernelArguments {
public:
    using KernelArguments::KernelArguments;
    /// As a map (sequences, heads, rows, elements). Where there is only one, the pitch to the next does not matter.
    void add_map(const TensorView& x) { KernelArguments::add_map(x, x.shape<4>(), pitches_of_map(x)); }
    /// Of sequences that follow each other, as a map (heads, rows, box, elements): for each row the `box` rows from
    /// there on, from `box` rows before the first one on. A copy ends with the last of those `box` rows, which can be
    /// the last of any sequence. What offsets give beyond the rows is out of bounds of the buffer, not of the map.
    void add_map_of_boxes(const TensorView& x, std::uint32_t box) {
        const std::array<std::uint64_t, 3> pitches = pitches_of_map(x), of_map{pitches[1], pitches[2], pitches[2]};
        const std::array<std::uint64_t, 4> extents{x.extents[1], 1u << 30, box, x.extents[3]};
        KernelArguments::add_map(x, extents, of_map, box * pitches[2]);
    }

private:
    static std::array<std::uint64_t, 3> pitches_of_map(const TensorView& x) {
        std::array<std::uint64_t, 3> pitches{x.strides[0], x.strides[1], x.strides[2]};
        for (std::size_t d = 3; d-- > 0;)
            if (x.extents[d] == 1) pitches[d] = d == 2 ? x.extents[3] : x.extents[d + 1] * pitches[d + 1];
        return pitches;
    }
};

void Attention::check_types() const {
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

void Attention::check_memory() const {
    std::vector<OperandRole> others;
    if (options_.bias) others.push_back({"bias", options_.bias->part});
    if (options_.pages) others.push_back({"pages", options_.pages->part});
    if (options_.query_offsets) others.push_back({"query_offsets", options_.query_offsets->part});
    if (options_.key_offsets) others.push_back({"key_offsets", options_.key_offsets->part});
    AttentionCall::check_memory(std::move(others));
}

void Attention::check_sizes() const {
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

void Attention::check_numbers() const {
    SizeCheck{"flash_attention", where_}.enumerator("path", std::size_t(options_.path), 3);
    AttentionCall::check_numbers(options_.scale, options_.soft_cap);
    if (options_.causal && options_.window_right && *options_.window_right > 0)
        fail(fmt::format("causal, and a window_right of {}", *options_.window_right), "causal is a window_right of 0");
}

std::string Attention::problem_of_wgmma() const {
    const std::string_view target = queue_.device().compile_options().target;
    if (target != "sm_90a") return fmt::format("the device is opened for {}, not sm_90a", target);
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
    using enum AttentionPath;
    if (options_.path != mma_sync) {
        const std::string problem = problem_of_wgmma();
        if (options_.path == wgmma && !problem.empty())
            fail("wgmma: " + problem, "AttentionPath::mma_sync takes any operands, on any device from sm_80 on");
        is_by_wgmma_ = problem.empty() && (options_.path == wgmma || queries_of_sequence() > 64);
    }
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

/// What the kernels of both paths have.
template <class Kernel>
Kernel Attention::of_options() const {
    Kernel out{.type = Q_.type, .head_dim = std::uint32_t(head_dim())};
    out.has_before = options_.window_left.has_value();
    out.has_after = options_.causal || options_.window_right;
    out.has_cap = numbers_.has_cap, out.has_wide_cap = numbers_.has_wide_cap;
    out.has_bias = options_.bias.has_value();
    out.has_offsets = options_.query_offsets.has_value();
    out.has_sinks = options_.sinks.has_value();
    out.has_log_sum = options_.log_sum.has_value();
    out.own = own_;
    return out;
}

AttentionKernel Attention::chosen() const {
    auto out = of_options<AttentionKernel>();
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
    out.groups = options_.queries_of_block / 64;
    if (out.groups == 0) {
        out.groups = WgmmaAttentionTile::max_groups(head_dim());
        while (out.groups > 1 &&
               (queries_of_sequence() <= 64 * (out.groups - 1) || blocks(64 * out.groups) < multiprocessors()))
            --out.groups;
    }
    // Larger tiles are worth it if few more keys are computed that are not there.
    const auto padded = [&](std::uint64_t tile) { return (keys() + tile - 1) / tile * tile; };
    out.has_many_keys = out.can_have_many_keys() && padded(WgmmaAttentionTile::many_keys) * 16 <= padded(128) * 17;
    return out;
}

/// What both kernels have: what scores are multiplied with, their cap, and which keys a query sees; and what kernels
/// may be made without.
void Attention::add_scoring(Arguments& to) const {
    const auto limit = [](std::int64_t n) { return std::int32_t(std::clamp<std::int64_t>(n, -(1 << 29), 1 << 29)); };
    const std::int64_t shift = options_.query_offsets ? 0 : std::int64_t(keys()) - std::int64_t(queries());
    to.add_numbers(std::uint32_t(heads() / kv_heads()), numbers_.factor, numbers_.cap,
                   limit(shift - (options_.window_left ? std::int64_t(*options_.window_left) : 1 << 30)),
                   limit(shift + (options_.causal ? 0 : std::int64_t(options_.window_right.value_or(0)))),
                   std::uint32_t(options_.query_offsets ? sequences_by_offsets() : 0));
    if (options_.bias) to.add_view(*bias_, 4);
    if (options_.query_offsets) to.add_array(*options_.query_offsets), to.add_array(*options_.key_offsets);
    if (sinks_) to.add_array(*sinks_);
    if (options_.log_sum) to.add_view(*log_sum_, 3);
    if (pages_) to.add_view(*pages_, 2);
    add_own(to);
}

void Attention::run() const {
    if (sequences() == 0 || heads() == 0 || queries() == 0) return;
    if (options_.query_offsets && sequences_by_offsets() == 0) return;
    if (is_by_wgmma_) return run_wgmma();
    const AttentionKernel is = chosen();
    const std::uint64_t count = blocks(is.queries);
    if (count > 0x7fffffff) fail(fmt::format("{} blocks of queries", count), "a grid has at most 2147483647 blocks");
    Arguments arguments(is.handle(), where_);
    for (const TensorView& x : {Q_, bytes_if(are_bytes(), K_), bytes_if(are_bytes(), V_), O_}) arguments.add_view(x, 4);
    add_scoring(arguments);
    arguments.launch(queue_, count, AttentionTile::threads);
}

void Attention::run_wgmma() const {
    const WgmmaAttentionKernel is = chosen_of_wgmma();
    const std::uint64_t count = blocks(is.tile().queries());
    if (count > 0x7fffffff) fail(fmt::format("{} tiles of queries", count), "there are at most 2147483647");
    Arguments arguments(is.handle(), where_);
    // Of no keys there is no map. K and V are not read then, whatever the map.
    const auto add_map = [&](const TensorView& x, std::uint32_t box) {
        if (is.has_offsets)
            arguments.add_map_of_boxes(x, box);
        else
            arguments.add_map(x);
    };
    const std::uint32_t of_keys = is.tile().keys();
    add_map(Q_, 64), add_map(keys() > 0 ? K_ : Q_, of_keys), add_map(keys() > 0 ? V_ : Q_, of_keys), add_map(O_, 64);
    for (const std::uint64_t number : {queries(), keys(), heads(), count}) arguments.add_numbers(std::uint32_t(number));
    add_scoring(arguments);
    arguments.launch(queue_, std::min(count, multiprocessors()), is.tile().threads());
}

}  // namespace

void flash_attention(const Queue& queue, const TensorView& Q, const TensorView& K, const TensorView& V,
                     const MutableTensorView& O, const AttentionOptions& options) {
    Attention(queue, Q, K, V, O, options).run();
}

}  // namespace ikat::stdlib
