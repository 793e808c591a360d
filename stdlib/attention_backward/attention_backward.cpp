// SPDX-License-Identifier: Apache-2.0
#include "stdlib/attention_backward/attention_backward.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "stdlib/attention/options_call.hpp"
#include "stdlib/attention_backward/kernels.hpp"
#include "stdlib/spec/kernel_arguments.hpp"

namespace ikat::stdlib {
namespace {

/// The tiles of queries whose sums there is room for.
std::uint64_t tiles_of_sums(const std::array<std::uint64_t, 4>& of_q, std::uint64_t sequences) {
    constexpr std::uint64_t rows = GradientKernel::rows;
    const std::uint64_t tiles = sequences ? of_q[2] / rows + sequences : (of_q[2] + rows - 1) / rows;
    return of_q[0] * of_q[1] * tiles;
}
std::uint64_t bytes_of_sums(const std::array<std::uint64_t, 4>& of_q, std::uint64_t sequences) {
    return Workspace::rounded(tiles_of_sums(of_q, sequences) * GradientKernel::rows * GradientKernel::numbers_of_two /
                              2 * sizeof(float));
}

/// A call whose arguments fit each other.
class AttentionBackward : AttentionWithOptions {
public:
    AttentionBackward(const Queue& queue, const TensorView& Q, const TensorView& K, const TensorView& V,
                      const TensorView& O, const TensorView& log_sum, const TensorView& dO,
                      const std::array<TensorView, 3>& made, const AttentionOptions& options,
                      const AttentionGradients& gradients)
        : AttentionWithOptions("attention_backward", queue, Q, K, V, O, log_sum, options),
          gradients_(gradients),
          dO_(heads_of_rows("dO", dO)),
          dQ_(heads_of_rows("dQ", made[0])),
          dK_(heads_of_rows("dK", made[1])),
          dV_(heads_of_rows("dV", made[2])) {
        if (gradients.dbias) dbias_ = heads_of_rows("dbias", *gradients.dbias);
        refuse();
        check_types();
        check_sizes();
        take_own(options.scores, options.sees, gradients.slope);
        take_sinks(options.sinks);
        check_memory();
        check_numbers();
        is_by_wgmma_ = options.path != AttentionPath::mma_sync && is_path_wgmma(problem_of_wgmma());
        check_all_pitches();
    }
    void run() const;

private:
    void refuse() const;
    void check_types() const;
    void check_sizes() const;
    void check_memory() const;
    /// Why wgmma cannot do this; "" if it can.
    std::string problem_of_wgmma() const;
    void check_all_pitches() const;
    GradientKernel of(Gradient gradient, std::initializer_list<const TensorView*> made) const;
    void launch(Gradient gradient, std::initializer_list<const TensorView*> made, std::uint64_t blocks,
                const TensorView& sums) const;
    void launch_rows(const TensorView& sums) const;
    void launch_bias(const TensorView& sums) const;
    void launch_keys(const TensorView& sums) const;
    std::uint64_t by_offsets() const { return options_.query_offsets ? sequences_by_offsets() : 0; }

    const AttentionGradients& gradients_;
    const TensorView dO_, dQ_, dK_, dV_;
    std::optional<TensorView> dbias_{};
    bool is_by_wgmma_ = false;
};

/// What flash_attention() can do.
void AttentionBackward::refuse() const {
    if (Q_.type == ir::Type::F32) fail("elements are f32", "there are kernels for f16 and bf16, on tensor cores");
    for (const auto& [what, x] : {std::pair("K", &K_), std::pair("V", &V_)})
        if (encoding_of(*x) != CacheEncoding::none)
            fail(fmt::format("{} has elements of {}", what, x->type_name()),
                 "K and V are not encoded, but of the type of Q");
    if (options_.pages) fail("K and V in pages", "gradients are of K and V that are not in pages");
    if (options_.scores && !gradients_.slope)
        fail(fmt::format("scores '{}' without a slope", options_.scores->name),
             "give its derivative by the score: AttentionGradients::slope");
    if (gradients_.slope && !options_.scores) fail("a slope without scores", "it is the derivative of options.scores");
    if (gradients_.dbias && !options_.bias) fail("dbias without a bias", "it is the gradient of options.bias");
}

void AttentionBackward::check_types() const {
    AttentionWithOptions::check_types();
    for (const auto& [what, x] :
         {std::pair("dO", &dO_), std::pair("dQ", &dQ_), std::pair("dK", &dK_), std::pair("dV", &dV_)})
        check_life(x->part), check_type(what, x->type, Q_.type);
    if (dbias_) check_life(dbias_->part), check_type("dbias", dbias_->type, Q_.type);
}

void AttentionBackward::check_sizes() const {
    AttentionWithOptions::check_sizes();
    check_shape("dO", dO_, Q_.shape<4>(), "dO has the shape of O");
    check_shape("dQ", dQ_, Q_.shape<4>(), "dQ has the shape of Q");
    check_shape("dK", dK_, K_.shape<4>(), "dK has the shape of K");
    check_shape("dV", dV_, V_.shape<4>(), "dV has the shape of V");
    if (heads() == 0 && kv_heads() > 0 && sequences() > 0)
        fail(fmt::format("Q has no heads, K has {}", kv_heads()), "Q has as many heads as K, or a multiple of these");
    if (dbias_) check_shape("dbias", *dbias_, bias_->shape<4>(), "dbias has the shape of the bias");
    if (const std::uint64_t given = gradients_.workspace.size(), needed = bytes_of_sums(Q_.shape<4>(), by_offsets());
        given != 0 && given < needed)
        fail(fmt::format("a workspace of {} bytes", given), fmt::format("it has {}, or none is given", needed));
}

/// An output whose rows may lie beside those of others, as dQ, dK and dV of a product of all three do.
static OperandRole written_rows(std::string_view name, const TensorView& x) {
    const std::uint64_t bytes = ir::info(x.type).bytes;
    std::vector<std::pair<std::uint64_t, std::uint64_t>> dimensions;  // strides and extents
    for (std::size_t d = 0; d < x.rank; ++d)
        if (x.extents[d] > 1) dimensions.emplace_back(x.strides[d], x.extents[d]);
    std::ranges::sort(dimensions);
    std::uint64_t row = 1, pitch = 0;
    for (const auto& [stride, extent] : dimensions) {
        if (pitch == 0 && stride == row)
            row *= extent;
        else if (pitch == 0)
            pitch = stride;
        else if (stride % pitch != 0)
            return {name, x.part, Role::Written};
    }
    return {name, x.part, Role::Written, row * bytes, pitch * bytes};
}

void AttentionBackward::check_memory() const {
    std::vector<OperandRole> others{
        {"dO", dO_.part}, written_rows("dQ", dQ_), written_rows("dK", dK_), written_rows("dV", dV_)};
    if (dbias_) others.push_back({"dbias", dbias_->part, Role::Written});
    if (gradients_.workspace.size()) others.push_back({"workspace", gradients_.workspace.part(), Role::Written});
    AttentionWithOptions::check_memory(Role::Read, std::move(others));
}

void AttentionBackward::check_all_pitches() const {
    for (const auto& [what, x] :
         {std::pair("Q", &Q_), std::pair("K", &K_), std::pair("V", &V_), std::pair("O", &O_), std::pair("dO", &dO_),
          std::pair("dQ", &dQ_), std::pair("dK", &dK_), std::pair("dV", &dV_), std::pair("log_sum", &*log_sum_)})
        check_pitches(what, *x);
    if (bias_) check_pitches("the bias", *bias_);
    if (dbias_) check_pitches("dbias", *dbias_);
}

std::string AttentionBackward::problem_of_wgmma() const {
    if (const std::string problem = problem_of_target(); !problem.empty()) return problem;
    if (!of_options<GradientKernel>().can_be_by_wgmma())
        return "there are kernels of heads of 64 and 128 elements, without a soft cap, a bias and functions";
    for (const TensorView* x : {&Q_, &K_, &V_, &dO_, &dQ_, &dK_, &dV_})
        if (access_of(*x) != 16) return "rows of Q, K, V, dO, dQ, dK or dV do not begin at multiples of 16 bytes";
    return {};
}

GradientKernel AttentionBackward::of(Gradient gradient, std::initializer_list<const TensorView*> made) const {
    auto out = of_options<GradientKernel>();
    out.of = gradient;
    out.by_wgmma = is_by_wgmma_;
    if (is_by_wgmma_) return out;
    for (const TensorView* x : {&Q_, &K_, &V_, &dO_}) out.access = std::min(out.access, access_of(*x));
    for (const TensorView* x : made) out.is_aligned = out.is_aligned && access_of(*x) == 16;
    return out;
}

void AttentionBackward::launch(Gradient gradient, std::initializer_list<const TensorView*> made, std::uint64_t blocks,
                               const TensorView& sums) const {
    if (blocks == 0) return;
    if (blocks > 0x7fffffff) fail(fmt::format("{} blocks", blocks), "a grid has at most 2147483647 blocks");
    const GradientKernel is = of(gradient, made);
    KernelArguments arguments(is.handle(), where_);
    const auto each = [&](auto&& add) {
        for (const TensorView* x : {&Q_, &K_, &V_, &dO_}) add(*x);
        for (const TensorView* x : made) add(*x);
    };
    // Of no rows there is no map. What is read has none then, whatever the map.
    const TensorView& rows = queries() > 0 ? Q_ : K_;
    if (is.by_wgmma)
        each([&](const TensorView& x) { add_map(arguments, x.extents[2] > 0 ? x : rows, WgmmaGradientTile::rows); });
    else
        each([&](const TensorView& x) { arguments.add_view(x, 4); });
    arguments.add_array(sums);
    arguments.add_numbers(options_.scale.value_or(float(1 / std::sqrt(double(head_dim())))));
    if (is.by_wgmma) arguments.add_numbers(std::uint32_t(queries()), std::uint32_t(keys()), std::uint32_t(heads()));
    add_scoring(arguments);
    add_own(arguments);
    arguments.launch(queue_, blocks, is.threads());
}

void AttentionBackward::launch_rows(const TensorView& sums) const {
    const std::uint64_t blocks = blocks_of_queries(GradientKernel::rows);
    if (blocks == 0) return;
    if (blocks > 0x7fffffff) fail(fmt::format("{} blocks", blocks), "a grid has at most 2147483647 blocks");
    GradientKernel is{.of = Gradient::Rows, .type = Q_.type, .head_dim = std::uint32_t(head_dim())};
    is.has_offsets = options_.query_offsets.has_value();
    is.access = std::min(access_of(O_), access_of(dO_));
    is.access = is.access < 4 ? 0 : 4;
    KernelArguments arguments(is.handle(), where_);
    arguments.add_view(O_, 4), arguments.add_view(dO_, 4), arguments.add_view(*log_sum_, 3);
    arguments.add_array(sums);
    add_scoring(arguments, false);
    arguments.launch(queue_, blocks, GradientTile::threads);
}

void AttentionBackward::launch_bias(const TensorView& sums) const {
    const GradientTile tile = of(Gradient::Bias, {}).tile();
    const auto of_bias = bias_->shape<4>();
    const std::uint64_t of_keys = (of_bias[3] + tile.walked - 1) / tile.walked;
    const std::uint64_t of_queries = options_.query_offsets ? queries() / tile.owned() + sequences_by_offsets()
                                                            : (queries() + tile.owned() - 1) / tile.owned();
    launch(Gradient::Bias, {&*dbias_}, of_bias[0] * of_bias[1] * of_queries * of_keys, sums);
}

void AttentionBackward::run() const {
    if (sequences() == 0 || heads() == 0) return;
    if (options_.query_offsets && sequences_by_offsets() == 0) return;
    const std::uint64_t bytes = bytes_of_sums(Q_.shape<4>(), by_offsets());
    Workspace workspace(queue_, "attention_backward", gradients_.workspace, bytes);
    const auto of_queries = workspace.take<float>(bytes / sizeof(float));
    const TensorView sums(of_queries);
    launch_rows(sums);
    if (dbias_) launch_bias(sums);
    if (keys() > 0) launch_keys(sums);
    if (queries() > 0) launch(Gradient::Queries, {&dQ_}, blocks_of_queries(of(Gradient::Queries, {}).owned()), sums);
}

void AttentionBackward::launch_keys(const TensorView& sums) const {
    const auto of_keys = [&](Gradient gradient, std::initializer_list<const TensorView*> made) {
        launch(gradient, made, blocks_of(kv_heads(), keys(), of(gradient, made).owned()), sums);
    };
    if (makes_both(std::uint32_t(head_dim()))) {
        of_keys(Gradient::KeysAndValues, {&dK_, &dV_});
    } else {
        of_keys(Gradient::Keys, {&dK_}), of_keys(Gradient::Values, {&dV_});
    }
}

}  // namespace

void attention_backward(const Queue& queue, const TensorView& Q, const TensorView& K, const TensorView& V,
                        const TensorView& O, const TensorView& log_sum, const TensorView& dO,
                        const MutableTensorView& dQ, const MutableTensorView& dK, const MutableTensorView& dV,
                        const AttentionOptions& options, const AttentionGradients& gradients) {
    AttentionBackward(queue, Q, K, V, O, log_sum, dO, {dQ, dK, dV}, options, gradients).run();
}

std::uint64_t attention_backward_workspace(const TensorView& Q, std::uint64_t sequences) {
    return bytes_of_sums(Q.of_rank(4).shape<4>(), sequences);
}

}  // namespace ikat::stdlib
