// SPDX-License-Identifier: Apache-2.0
#include "stdlib/backward/norm_backward.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "stdlib/backward/norm_gradient.hpp"
#include "stdlib/backward/row_variant.hpp"
#include "stdlib/spec/families.hpp"
#include "stdlib/spec/functions.hpp"
#include "stdlib/spec/view_call.hpp"

namespace ikat::stdlib {
namespace {

using namespace norm_gradient;

/// "rmsnorm_backward_saved_residual_warp_pitched"
template <class Group>
std::string name_of_gradient(const NormGradient& of, std::string_view end = "") {
    constexpr std::string_view of_group = std::is_same_v<Group, WarpGroup>   ? "_warp"
                                          : std::is_same_v<Group, Block>     ? "_block"
                                          : std::is_same_v<Group, OfBlock>   ? "_shared"
                                          : std::is_same_v<Group, OfCluster> ? "_cluster"
                                                                             : "";
    return fmt::format("{}_backward{}{}{}{}", of.centred ? "layernorm" : "rmsnorm", of.saved ? "_saved" : "",
                       of.residual ? "_residual" : "", of_group, end);
}

template <class T, class Group>
NormBackwardKernel<T> make_kernel(const NormGradient& of) {
    return kernel(
               name_of<T>(name_of_gradient<Group>(of)),
               params("x", "dy", "gamma", only_if(of.saved, "statistics"), only_if(of.residual, "residual"), "dx",
                      "dgamma", only_if(of.centred, "dbeta"), "rows", "columns", only_if(!of.saved, "epsilon")),
               [](In<T> x, In<T> dy, In<T> gamma, Optional<In<float>> statistics, Optional<In<T>> residual, Out<T> dx,
                  InOut<float> dgamma, Optional<InOut<float>> dbeta, u32 rows, u32 columns, Optional<f32> epsilon) {
                   const RowPlaces places(rows, columns);
                   gradient_of<T, Group>({x, dy, gamma, statistics, residual, dx, dgamma, dbeta, epsilon, places},
                                         places);
               })
        .require(aligned<16>("x"), aligned<16>("dy"), aligned<16>("gamma"), aligned<16>("residual"), aligned<16>("dx"))
        .require(at_least("x", "rows", "columns"), at_least("dy", "rows", "columns"), at_least("dx", "rows", "columns"))
        .require(at_least("residual", "rows", "columns"), at_least<2>("statistics", "rows"))
        .require(at_least("gamma", "columns"), at_least("dgamma", "columns"), at_least("dbeta", "columns"))
        .launch_bounds(Group::block, blocks_of<Group>);
}
/// For rows at pitches.
template <class T, class Group>
auto make_pitched(const NormGradient& of) {
    constexpr bool is_of_cluster = std::is_same_v<Group, OfCluster>;
    auto made = kernel(name_of<T>(name_of_gradient<Group>(of, is_of_cluster ? "" : "_pitched")),
                       params("x", "dy", "gamma", only_if(of.saved, "statistics"), only_if(of.residual, "residual"),
                              "dx", "dgamma", only_if(of.centred, "dbeta"), only_if(!of.saved, "epsilon"), "rows",
                              "columns", "pitches", only_if(of.saved || of.residual, "more")),
                       [](In<T> x, In<T> dy, In<T> gamma, Optional<In<float>> statistics, Optional<In<T>> residual,
                          Out<T> dx, InOut<float> dgamma, Optional<InOut<float>> dbeta, Optional<f32> epsilon, u32 rows,
                          u32 columns, Struct<RowPitches> pitches, Optional<Struct<RowPitches>> more) {
                           const RowPlaces places(rows, columns, pitches);
                           gradient_of<T, Group>({x, dy, gamma, statistics, residual, dx, dgamma, dbeta, epsilon,
                                                  more ? RowPlaces(rows, columns, *more) : places},
                                                 places);
                       })
                    .launch_bounds(Group::block, blocks_of<Group>);
    if constexpr (is_of_cluster) return std::move(made).cluster(Group::blocks);
    return made;
}

constexpr std::size_t gradients = 8;
constexpr NormGradient gradient_number(std::size_t i) { return {i / 4 != 0, i / 2 % 2 != 0, i % 2 != 0}; }
constexpr std::size_t number_of(const NormGradient& of) {
    return std::size_t{of.centred} * 4 + std::size_t{of.saved} * 2 + std::size_t{of.residual};
}
/// make(a gradient) for each of them.
auto for_all_gradients(auto&& make) {
    std::vector<decltype(make(NormGradient()))> out;
    for (std::size_t i = 0; i < gradients; ++i) out.push_back(make(gradient_number(i)));
    return out;
}
template <class T, class Group>
const NormBackwardKernel<T>& kernel_of(const NormGradient& of) {
    static const auto all = for_all_gradients([](const NormGradient& each) { return make_kernel<T, Group>(each); });
    return all[number_of(of)];
}
template <class T, class Group>
const auto& pitched_kernel_of(const NormGradient& of) {
    static const auto all = for_all_gradients([](const NormGradient& each) { return make_pitched<T, Group>(each); });
    return all[number_of(of)];
}

/// A block has 32 rows for each sum, so that what is stored in between is little, but where there are few rows.
std::uint32_t blocks_for(std::uint32_t rows, std::uint32_t sums) {
    const std::uint32_t few = std::min(64u, rows / 8);
    return std::clamp(rows / (32 * sums), std::max(few, 1u), 1024u);
}
template <std::uint32_t sums>
std::uint32_t shares_of(const Call& call) {
    return blocks_for(call["rows"], sums);
}

/// A block, or a cluster, for each share of the rows.
Grid grid_of(const Call& call, std::uint32_t shares) {
    const KernelInfo& kernel = call.kernel();
    const std::uint32_t blocks = kernel.bounds.cluster_blocks();
    Grid out{{shares * blocks}, {kernel.bounds.max_threads}};
    if (kernel.takes_dynamic_shared)
        out.dynamic_shared_bytes =
            dynamic_bytes(in_shared(call.has("dbeta")), call["columns"], info(call.arguments()[0].type).bytes, blocks);
    return out;
}
Grid one_share(const Call& call) { return grid_of(call, 1); }

std::uint64_t bytes_for(std::uint32_t rows, std::uint64_t columns, std::uint32_t sums) {
    return sums * Workspace::rounded(blocks_for(rows, sums) * columns * sizeof(float));
}
template <std::uint32_t sums>
std::uint64_t workspace_of_call(const Call& call) {
    return bytes_for(call["rows"], call["columns"], sums);
}

void launch_rmsnorm(Steps& steps) { launch_column_shares<1>(steps, {"dgamma"}, shares_of<1>, grid_of); }
void launch_layernorm(Steps& steps) { launch_column_shares<2>(steps, {"dgamma", "dbeta"}, shares_of<2>, grid_of); }

}  // namespace

template <class T>
const NormBackwardKernel<T>& norm_backward_kernel(const NormGradient& of, RowThreads threads) {
    SizeCheck{"norm_backward_kernel"}.enumerator("threads", std::size_t(threads), 3);
    if (threads == RowThreads::warp) return kernel_of<T, WarpGroup>(of);
    return threads == RowThreads::block ? kernel_of<T, Block>(of) : kernel_of<T, Wide>(of);
}
template const NormBackwardKernel<float>& norm_backward_kernel(const NormGradient&, RowThreads);
template const NormBackwardKernel<half>& norm_backward_kernel(const NormGradient&, RowThreads);
template const NormBackwardKernel<bfloat16>& norm_backward_kernel(const NormGradient&, RowThreads);

std::uint64_t norm_backward_workspace(const TensorView& x, const TensorView& dy, const TensorView& dx,
                                      const NormBackwardOptions& options) {
    const auto view = [](const std::optional<TensorView>& of) { return of ? &*of : nullptr; };
    const RowLayout layout({&x, &dy, &dx, view(options.statistics), view(options.residual)}, true);
    return workspace_of_parts(layout, [](std::uint32_t rows, std::uint32_t columns) {
        return std::max(bytes_for(rows, columns, 1), bytes_for(rows, columns, 2));
    });
}

namespace {

void run_gradient(const Queue& queue, const NormGradient& of, std::vector<TensorView> views, float epsilon,
                  const WorkspaceSlice& workspace) {
    const ViewCall call(queue, norm_backward_recipes()[number_of(of)], std::move(views), workspace);
    if (of.saved && call.extent("pair") != 2)
        call.fail(fmt::format("'statistics' has {} numbers for each row", call.extent("pair")),
                  "they are 2, the mean and 1 / sqrt(variance + epsilon), as the forward function stores them");
    run_rows(call, of.saved ? std::vector<FunctionOperand>{} : std::vector<FunctionOperand>{epsilon});
}
void run_gradient(const Queue& queue, bool centred, std::vector<TensorView> views, std::vector<TensorView> outputs,
                  float epsilon, const NormBackwardOptions& options) {
    if (options.statistics) views.push_back(*options.statistics);
    if (options.residual) views.push_back(*options.residual);
    views.insert(views.end(), outputs.begin(), outputs.end());
    run_gradient(queue, {centred, options.statistics.has_value(), options.residual.has_value()}, std::move(views),
                 epsilon, options.workspace);
}

}  // namespace

void rmsnorm_backward(const Queue& queue, const TensorView& x, const TensorView& dy, const TensorView& gamma,
                      const MutableTensorView& dx, const MutableTensorView& dgamma, float epsilon,
                      const NormBackwardOptions& options) {
    run_gradient(queue, false, {x, dy, gamma}, {dx, dgamma}, epsilon, options);
}
void layernorm_backward(const Queue& queue, const TensorView& x, const TensorView& dy, const TensorView& gamma,
                        const MutableTensorView& dx, const MutableTensorView& dgamma, const MutableTensorView& dbeta,
                        float epsilon, const NormBackwardOptions& options) {
    run_gradient(queue, true, {x, dy, gamma}, {dx, dgamma, dbeta}, epsilon, options);
}
void rmsnorm_backward(const Queue& queue, const TensorView& x, const TensorView& dy, const TensorView& gamma,
                      const MutableTensorView& dx, const MutableTensorView& dgamma, float epsilon,
                      const WorkspaceSlice& workspace) {
    rmsnorm_backward(queue, x, dy, gamma, dx, dgamma, epsilon, {.workspace = workspace});
}
void layernorm_backward(const Queue& queue, const TensorView& x, const TensorView& dy, const TensorView& gamma,
                        const MutableTensorView& dx, const MutableTensorView& dgamma, const MutableTensorView& dbeta,
                        float epsilon, const WorkspaceSlice& workspace) {
    layernorm_backward(queue, x, dy, gamma, dx, dgamma, dbeta, epsilon, {.workspace = workspace});
}

// ---- the recipes

namespace {

constexpr std::string_view calls[gradients] = {
    "rmsnorm_backward(queue, x, dy, gamma, dx, dgamma, epsilon, workspace)",
    "rmsnorm_backward(queue, x, dy, gamma, dx, dgamma, epsilon, {.residual = residual})",
    "rmsnorm_backward(queue, x, dy, gamma, dx, dgamma, 0, {.statistics = statistics})",
    "rmsnorm_backward(queue, x, dy, gamma, dx, dgamma, 0, {.residual = residual, .statistics = statistics})",
    "layernorm_backward(queue, x, dy, gamma, dx, dgamma, dbeta, epsilon, workspace)",
    "layernorm_backward(queue, x, dy, gamma, dx, dgamma, dbeta, epsilon, {.residual = residual})",
    "layernorm_backward(queue, x, dy, gamma, dx, dgamma, dbeta, 0, {.statistics = statistics})",
    "layernorm_backward(queue, x, dy, gamma, dx, dgamma, dbeta, 0, {.residual = residual, .statistics = statistics})"};

/// The kernel of a gradient for rows of up to so many columns. Longer rows of x and of dy are read twice.
template <std::size_t number, class Group>
constexpr Variant variant_of(std::string_view summary, std::uint32_t max_columns) {
    constexpr NormGradient of = gradient_number(number);
    return row_variant(summary, IKAT_FLOATS(kernel_of<T, Group>(gradient_number(number))),
                       IKAT_FLOATS(pitched_kernel_of<T, Group>(gradient_number(number))), one_share,
                       double(5 + of.residual) / (3 + of.residual), max_columns);
}
/// ... and for rows in shared memory.
template <std::size_t number>
constexpr Variant shared_variant_of(std::string_view summary) {
    Variant out = variant_of<number, OfBlock>(summary, ~0u);
    out.passes = 1;
    out.shared = in_shared(gradient_number(number).centred);
    out.clusters = IKAT_FLOATS(pitched_kernel_of<T, OfCluster>(gradient_number(number)));
    return out;
}

template <std::size_t number>
constexpr Recipe recipe_of() {
    constexpr NormGradient of = gradient_number(number);
    return {
        .call = calls[number],
        .kernels = {variant_of<number, WarpGroup>(
                        of.centred ? "the gradients of layernorm, a warp per row of up to 512 columns"
                                   : "the gradients of rmsnorm, a warp per row of up to 512 columns",
                        512),
                    variant_of<number, Block>(of.centred
                                                  ? "the gradients of layernorm, a block per row of up to 2048 columns"
                                                  : "the gradients of rmsnorm, a block per row of up to 2048 columns",
                                              2048),
                    shared_variant_of<number>(
                        of.centred ? "the gradients of layernorm, a block per row, which it keeps in shared memory"
                                   : "the gradients of rmsnorm, a block per row, which it keeps in shared memory"),
                    variant_of<number, Wide>(of.centred ? "the gradients of layernorm, a block of 512 threads per row"
                                                        : "the gradients of rmsnorm, a block of 512 threads per row",
                                             ~0u)},
        .operands = {{"x", "... columns"},
                     {"dy", "... columns"},
                     {"gamma", "columns"},
                     of.saved ? ArrayOperand{"statistics", "... pair", Access::In, ir::Type::F32} : ArrayOperand{},
                     of.residual ? ArrayOperand{"residual", "... columns"} : ArrayOperand{},
                     {"dx", "... columns", Access::Out},
                     {"dgamma", "columns", Access::Out, ir::Type::F32},
                     of.centred ? ArrayOperand{"dbeta", "columns", Access::Out, ir::Type::F32} : ArrayOperand{}},
        .settings = {of.saved ? FunctionSetting{}
                              : FunctionSetting{"epsilon", "what was added under the root, such as 1e-5"}},
        .run =
            [](const Queue& queue, std::span<const MutableTensorView> arrays, const FunctionSettings& settings) {
                run_gradient(queue, gradient_number(number), {arrays.begin(), arrays.end()},
                             gradient_number(number).saved ? 0 : settings.required("epsilon"), {});
            },
        .document =
            "x, dy, residual and dx are row-major, rows x columns, with fewer than 2^32 elements; gamma, dgamma and\n"
            "dbeta have an element for each column, statistics two for each row. All begin at multiples of 16 bytes.\n"
            "Any sizes. dx is computed in f32 over each row and rounded once; dgamma and dbeta are sums over all\n"
            "rows, in f32.",
        .sizes = {{"x", "rows columns"},
                  {"dy", "rows columns"},
                  {"gamma", "columns"},
                  {"statistics", "rows 2"},
                  {"residual", "rows columns"},
                  {"dx", "rows columns"},
                  {"dgamma", "columns"},
                  {"dbeta", "columns"}},
        .steps = of.centred ? launch_layernorm : launch_rmsnorm,
        .workspace = of.centred ? workspace_of_call<2> : workspace_of_call<1>,
        .reference = of.centred ? reference::layernorm_backward : reference::rmsnorm_backward,
        .traffic = of.residual ? "4 E s" : "3 E s",
        .note = of.centred ? "dx, and dgamma and dbeta in f32; two launches, no atomics, the same result in every run"
                           : "dx, and dgamma in f32; two launches, no atomics, the same result in every run"};
}
constexpr Recipe all_recipes[] = {recipe_of<0>(), recipe_of<1>(), recipe_of<2>(), recipe_of<3>(),
                                  recipe_of<4>(), recipe_of<5>(), recipe_of<6>(), recipe_of<7>()};

}  // namespace

std::span<const Recipe> norm_backward_recipes() { return all_recipes; }

}  // namespace ikat::stdlib
