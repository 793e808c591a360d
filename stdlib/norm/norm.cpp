// SPDX-License-Identifier: Apache-2.0
#include "stdlib/norm/norm.hpp"

#include <fmt/format.h>

#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "stdlib/norm/norm_rows.hpp"
#include "stdlib/spec/families.hpp"
#include "stdlib/spec/functions.hpp"
#include "stdlib/spec/view_call.hpp"

namespace ikat::stdlib {
namespace {

using namespace norm_rows;
using Block = BlockGroup<256>;
/// Of blocks, or clusters, that keep a row in shared memory.
constexpr SharedRows in_shared{.threads = 1024, .registers = 8192};
using OfBlock = SharedGroup<in_shared.threads, 1>;
using OfCluster = SharedGroup<in_shared.threads, SharedRows::cluster>;
/// For kernels with more to keep.
template <class Group>
constexpr std::uint32_t blocks_with_128_registers = Group::block > 512 ? 1 : 512 / Group::block;
/// What make(name) gives, once.
template <auto* make>
const auto& made_as(const char* name) {
    static const auto made = make(name);
    return made;
}

template <class T, class Group>
LayernormKernel<T> make_layernorm(const char* name) {
    return kernel(name_of<T>(name), params("x", "gamma", "beta", "y", "rows", "columns", "epsilon"),
                  [](In<T> x, In<T> gamma, In<T> beta, Out<T> y, u32 rows, u32 columns, f32 epsilon) {
                      layernorm_of<T, Group>(RowPlaces(rows, columns), x, gamma, beta, y, epsilon);
                  })
        .require(aligned<16>("x"), aligned<16>("gamma"), aligned<16>("beta"), aligned<16>("y"))
        .require(at_least("x", "rows", "columns"), at_least("y", "rows", "columns"))
        .require(at_least("gamma", "columns"), at_least("beta", "columns"))
        .launch_bounds(Group::block, blocks_with_128_registers<Group>);
}
template <class T, class Group>
PlainNormKernel<T> make_layernorm_plain(const char* name) {
    return kernel(name_of<T>(name), params("x", "y", "rows", "columns", "epsilon"),
                  [](In<T> x, Out<T> y, u32 rows, u32 columns, f32 epsilon) {
                      layernorm_plain_of<T, Group>(RowPlaces(rows, columns), x, y, epsilon);
                  })
        .require(aligned<16>("x"), aligned<16>("y"))
        .require(at_least("x", "rows", "columns"), at_least("y", "rows", "columns"))
        .launch_bounds(Group::block, blocks_with_64_registers<Group>);
}
template <class T, class Group>
RmsnormKernel<T> make_rmsnorm(const char* name) {
    return kernel(name_of<T>(name), params("x", "gamma", "y", "rows", "columns", "epsilon"),
                  [](In<T> x, In<T> gamma, Out<T> y, u32 rows, u32 columns, f32 epsilon) {
                      rmsnorm_of<T, Group>(RowPlaces(rows, columns), x, gamma, y, epsilon);
                  })
        .require(aligned<16>("x"), aligned<16>("gamma"), aligned<16>("y"))
        .require(at_least("x", "rows", "columns"), at_least("gamma", "columns"), at_least("y", "rows", "columns"))
        .launch_bounds(Group::block, blocks_with_64_registers<Group>);
}
template <class T, class Group>
ResidualRmsnormKernel<T> make_fused_residual_rmsnorm(const char* name) {
    return kernel(name_of<T>(name), params("x", "residual", "gamma", "y", "rows", "columns", "epsilon"),
                  [](In<T> x, InOut<T> residual, In<T> gamma, Out<T> y, u32 rows, u32 columns, f32 epsilon) {
                      fused_residual_rmsnorm_of<T, Group>(RowPlaces(rows, columns), x, residual, gamma, y, epsilon);
                  })
        .require(aligned<16>("x"), aligned<16>("residual"), aligned<16>("gamma"), aligned<16>("y"))
        .require(at_least("x", "rows", "columns"), at_least("residual", "rows", "columns"))
        .require(at_least("gamma", "columns"), at_least("y", "rows", "columns"))
        .launch_bounds(Group::block, blocks_with_64_registers<Group>);
}

template <class T, class Group>
SavingNormKernel<T> make_saving_norm(const char* name, bool centred) {
    return kernel(name_of<T>(name),
                  params("x", "gamma", only_if(centred, "beta"), "statistics", "y", "rows", "columns", "epsilon"),
                  [](In<T> x, In<T> gamma, Optional<In<T>> beta, Out<float> statistics, Out<T> y, u32 rows, u32 columns,
                     f32 epsilon) {
                      saving_norm_of<T, Group>(RowPlaces(rows, columns), x, gamma, beta, statistics, y, epsilon);
                  })
        .require(aligned<16>("x"), aligned<16>("gamma"), aligned<16>("beta"), aligned<16>("y"))
        .require(at_least("x", "rows", "columns"), at_least("y", "rows", "columns"), at_least<2>("statistics", "rows"))
        .require(at_least("gamma", "columns"), at_least("beta", "columns"))
        .launch_bounds(Group::block, blocks_with_128_registers<Group>);
}
template <class T, class Group>
auto make_pitched_saving_norm(const std::string& name, bool centred) {
    auto made =
        kernel(
            name_of<T>(name),
            params("x", "gamma", only_if(centred, "beta"), "statistics", "y", "epsilon", "rows", "columns", "pitches"),
            [](In<T> x, In<T> gamma, Optional<In<T>> beta, Out<float> statistics, Out<T> y, f32 epsilon, u32 rows,
               u32 columns, Struct<RowPitches> pitches) {
                saving_norm_of<T, Group>(RowPlaces(rows, columns, pitches), x, gamma, beta, statistics, y, epsilon);
            })
            .launch_bounds(Group::block, blocks_with_64_registers<Group>);
    if constexpr (std::is_same_v<Group, OfCluster>) return std::move(made).cluster(OfCluster::blocks);
    return made;
}
template <class T, bool centred, class Group>
const auto& pitched_saving_norm() {
    constexpr const char* end = std::is_same_v<Group, WarpGroup>   ? "_warp_pitched"
                                : std::is_same_v<Group, OfBlock>   ? "_shared_pitched"
                                : std::is_same_v<Group, OfCluster> ? "_cluster"
                                                                   : "_pitched";
    static const auto made =
        make_pitched_saving_norm<T, Group>(std::string(centred ? "layernorm" : "rmsnorm") + "_saving" + end, centred);
    return made;
}
template <class T, bool centred>
const auto& saving_norm_shared() {
    static const auto made =
        make_saving_norm<T, OfBlock>(centred ? "layernorm_saving_shared" : "rmsnorm_saving_shared", centred);
    return made;
}

void run_saving(const Queue& queue, const Recipe& recipe, std::vector<TensorView> views, float epsilon) {
    const ViewCall call(queue, recipe, std::move(views));
    if (call.extent("pair") != 2)
        call.fail(fmt::format("'statistics' has {} numbers for each row", call.extent("pair")),
                  "they are 2, the mean and 1 / sqrt(variance + epsilon)");
    const TensorView& statistics = call.views()[call.views().size() - 2];
    if (call.extent("columns") == 0 && statistics.part.bytes != 0)
        call.fail("rows without columns", "they have no mean to store");
    run_rows(call, {epsilon});
}

}  // namespace

template <class T>
const SavingNormKernel<T>& layernorm_saving() {
    static const auto made = make_saving_norm<T, Block>("layernorm_saving", true);
    return made;
}
template <class T>
const SavingNormKernel<T>& layernorm_saving_warp() {
    static const auto made = make_saving_norm<T, WarpGroup>("layernorm_saving_warp", true);
    return made;
}
template <class T>
const SavingNormKernel<T>& rmsnorm_saving() {
    static const auto made = make_saving_norm<T, Block>("rmsnorm_saving", false);
    return made;
}
template <class T>
const SavingNormKernel<T>& rmsnorm_saving_warp() {
    static const auto made = make_saving_norm<T, WarpGroup>("rmsnorm_saving_warp", false);
    return made;
}
template <class T>
const LayernormKernel<T>& layernorm() {
    static const auto made = make_layernorm<T, Block>("layernorm");
    return made;
}
template <class T>
const LayernormKernel<T>& layernorm_warp() {
    static const auto made = make_layernorm<T, WarpGroup>("layernorm_warp");
    return made;
}
template <class T>
const PlainNormKernel<T>& layernorm_plain() {
    static const auto made = make_layernorm_plain<T, Block>("layernorm_plain");
    return made;
}
template <class T>
const PlainNormKernel<T>& layernorm_plain_warp() {
    static const auto made = make_layernorm_plain<T, WarpGroup>("layernorm_plain_warp");
    return made;
}
template <class T>
const RmsnormKernel<T>& rmsnorm() {
    static const auto made = make_rmsnorm<T, Block>("rmsnorm");
    return made;
}
template <class T>
const RmsnormKernel<T>& rmsnorm_per_head() {
    static const auto made = make_rmsnorm<T, WarpGroup>("rmsnorm_per_head");
    return made;
}
template <class T>
const ResidualRmsnormKernel<T>& fused_residual_rmsnorm() {
    static const auto made = make_fused_residual_rmsnorm<T, Block>("fused_residual_rmsnorm");
    return made;
}
template <class T>
const ResidualRmsnormKernel<T>& fused_residual_rmsnorm_warp() {
    static const auto made = make_fused_residual_rmsnorm<T, WarpGroup>("fused_residual_rmsnorm_warp");
    return made;
}

void layernorm(const Queue& queue, const TensorView& x, const TensorView& gamma, const TensorView& beta,
               const MutableTensorView& y, float epsilon) {
    run_rows({queue, layernorm_recipe, {x, gamma, beta, y}}, {epsilon});
}
void layernorm(const Queue& queue, const TensorView& x, const MutableTensorView& y, float epsilon) {
    run_rows({queue, layernorm_plain_recipe, {x, y}}, {epsilon});
}
void rmsnorm(const Queue& queue, const TensorView& x, const TensorView& gamma, const MutableTensorView& y,
             float epsilon) {
    run_rows({queue, rmsnorm_recipe, {x, gamma, y}}, {epsilon});
}
void fused_residual_rmsnorm(const Queue& queue, const TensorView& x, const MutableTensorView& residual,
                            const TensorView& gamma, const MutableTensorView& y, float epsilon) {
    run_rows({queue, fused_residual_rmsnorm_recipe, {x, residual, gamma, y}}, {epsilon});
}

void layernorm(const Queue& queue, const TensorView& x, const TensorView& gamma, const TensorView& beta,
               const MutableTensorView& y, float epsilon, const MutableTensorView& statistics) {
    run_saving(queue, layernorm_saving_recipe, {x, gamma, beta, statistics, y}, epsilon);
}
void rmsnorm(const Queue& queue, const TensorView& x, const TensorView& gamma, const MutableTensorView& y,
             float epsilon, const MutableTensorView& statistics) {
    run_saving(queue, rmsnorm_saving_recipe, {x, gamma, statistics, y}, epsilon);
}

constexpr FunctionSetting epsilon_setting{"epsilon", "what is added under the root, such as 1e-5"};

// ---- the recipes

IKAT_INSTANTIATE(layernorm_saving)
IKAT_INSTANTIATE(layernorm_saving_warp)
IKAT_INSTANTIATE(rmsnorm_saving)
IKAT_INSTANTIATE(rmsnorm_saving_warp)
IKAT_INSTANTIATE(layernorm)
IKAT_INSTANTIATE(layernorm_warp)
IKAT_INSTANTIATE(layernorm_plain)
IKAT_INSTANTIATE(layernorm_plain_warp)
IKAT_INSTANTIATE(rmsnorm)
IKAT_INSTANTIATE(rmsnorm_per_head)
IKAT_INSTANTIATE(fused_residual_rmsnorm)
IKAT_INSTANTIATE(fused_residual_rmsnorm_warp)

constexpr Recipe layernorm_recipe{
    .call = "layernorm(queue, x, gamma, beta, y, epsilon)",
    .kernels = {{.summary = "layernorm, a warp per row",
                 .instances = IKAT_FLOATS(layernorm_warp<T>()),
                 .grid = rows_to<WarpGroup>,
                 .max_columns = 1024,
                 .passes = 1.5,
                 .pitched = IKAT_PITCHED("layernorm_warp", (layernorm_of<T, WarpGroup>), WarpGroup::block,
                                         blocks_with_64_registers<WarpGroup>, "x", "gamma", "beta", "y", "epsilon")},
                IKAT_SHARED_ROWS(in_shared, "layernorm, a block per row, which it keeps in shared memory", "layernorm",
                                 (made_as<make_layernorm<T, OfBlock>>("layernorm_shared")), layernorm_of, "x", "gamma",
                                 "beta", "y", "epsilon"),
                {.summary = "y = (x - mean) / sqrt(variance + epsilon) gamma + beta, row by row",
                 .instances = IKAT_FLOATS(layernorm<T>()),
                 .grid = rows_to<Block>,
                 .passes = 1.5,
                 .pitched = IKAT_PITCHED("layernorm", (layernorm_of<T, Block>), Block::block,
                                         blocks_with_64_registers<Block>, "x", "gamma", "beta", "y", "epsilon")}},
    .operands = {{"x", "... columns"}, {"gamma", "columns"}, {"beta", "columns"}, {"y", "... columns", Access::Out}},
    .settings = {epsilon_setting},
    .document =
        "x, y and residual are row-major, rows x columns, with fewer than 2^32 elements; gamma and beta have\n"
        "an element for each column. All begin at multiples of 16 bytes. Any sizes. Computed in f32 over each\n"
        "row and rounded once. A sum with residual is rounded first, and then normed.",
    .sizes = {{"x", "rows columns"},
              {"residual", "rows columns"},
              {"gamma", "columns"},
              {"beta", "columns"},
              {"y", "rows columns"}},
    .reference = reference::layernorm,
    .traffic = "2 E s"};
constexpr Recipe layernorm_plain_recipe{
    .call = "layernorm(queue, x, y, epsilon)",
    .kernels = {{.summary = "layernorm_plain, a warp per row",
                 .instances = IKAT_FLOATS(layernorm_plain_warp<T>()),
                 .grid = rows_to<WarpGroup>,
                 .max_columns = 1024,
                 .passes = 1.5,
                 .pitched = IKAT_PITCHED("layernorm_plain_warp", (layernorm_plain_of<T, WarpGroup>), WarpGroup::block,
                                         blocks_with_64_registers<WarpGroup>, "x", "y", "epsilon")},
                IKAT_SHARED_ROWS(in_shared, "layernorm_plain, a block per row, which it keeps in shared memory",
                                 "layernorm_plain",
                                 (made_as<make_layernorm_plain<T, OfBlock>>("layernorm_plain_shared")),
                                 layernorm_plain_of, "x", "y", "epsilon"),
                {.summary = "y = (x - mean) / sqrt(variance + epsilon), row by row",
                 .instances = IKAT_FLOATS(layernorm_plain<T>()),
                 .grid = rows_to<Block>,
                 .passes = 1.5,
                 .pitched = IKAT_PITCHED("layernorm_plain", (layernorm_plain_of<T, Block>), Block::block,
                                         blocks_with_64_registers<Block>, "x", "y", "epsilon")}},
    .operands = {{"x", "... columns"}, {"y", "... columns", Access::Out}},
    .settings = {epsilon_setting},
    .document = layernorm_recipe.document,
    .sizes = layernorm_recipe.sizes,
    .reference = reference::layernorm,
    .traffic = "2 E s"};
constexpr Recipe rmsnorm_recipe{
    .call = "rmsnorm(queue, x, gamma, y, epsilon)",
    .kernels = {{.summary = "rmsnorm, a warp per row: for heads of attention, and up to 1024 columns",
                 .instances = IKAT_FLOATS(rmsnorm_per_head<T>()),
                 .grid = rows_to<WarpGroup>,
                 .max_columns = 1024,
                 .passes = 1.5,
                 .pitched = IKAT_PITCHED("rmsnorm_per_head", (rmsnorm_of<T, WarpGroup>), WarpGroup::block,
                                         blocks_with_64_registers<WarpGroup>, "x", "gamma", "y", "epsilon")},
                IKAT_SHARED_ROWS(in_shared, "rmsnorm, a block per row, which it keeps in shared memory", "rmsnorm",
                                 (made_as<make_rmsnorm<T, OfBlock>>("rmsnorm_shared")), rmsnorm_of, "x", "gamma", "y",
                                 "epsilon"),
                {.summary = "y = x / sqrt(mean of x^2 + epsilon) gamma, row by row",
                 .instances = IKAT_FLOATS(rmsnorm<T>()),
                 .grid = rows_to<Block>,
                 .passes = 1.5,
                 .pitched = IKAT_PITCHED("rmsnorm", (rmsnorm_of<T, Block>), Block::block,
                                         blocks_with_64_registers<Block>, "x", "gamma", "y", "epsilon")}},
    .operands = {{"x", "... columns"}, {"gamma", "columns"}, {"y", "... columns", Access::Out}},
    .settings = {epsilon_setting},
    .document = layernorm_recipe.document,
    .sizes = layernorm_recipe.sizes,
    .reference = reference::rmsnorm,
    .traffic = "2 E s",
    .note = "by the number of columns"};
constexpr Recipe fused_residual_rmsnorm_recipe{
    .call = "fused_residual_rmsnorm(queue, x, residual, gamma, y, epsilon)",
    .kernels = {{.summary = "fused_residual_rmsnorm, a warp per row",
                 .instances = IKAT_FLOATS(fused_residual_rmsnorm_warp<T>()),
                 .grid = rows_to<WarpGroup>,
                 .max_columns = 1024,
                 .passes = 1.25,
                 .pitched = IKAT_PITCHED("fused_residual_rmsnorm_warp", (fused_residual_rmsnorm_of<T, WarpGroup>),
                                         WarpGroup::block, blocks_with_64_registers<WarpGroup>, "x", "residual",
                                         "gamma", "y", "epsilon")},
                IKAT_SHARED_ROWS(in_shared, "fused_residual_rmsnorm, a block per row, which it keeps in shared memory",
                                 "fused_residual_rmsnorm",
                                 (made_as<make_fused_residual_rmsnorm<T, OfBlock>>("fused_residual_rmsnorm_shared")),
                                 fused_residual_rmsnorm_of, "x", "residual", "gamma", "y", "epsilon"),
                {.summary = "residual += x, y = rmsnorm of that",
                 .instances = IKAT_FLOATS(fused_residual_rmsnorm<T>()),
                 .grid = rows_to<Block>,
                 .passes = 1.25,
                 .pitched = IKAT_PITCHED("fused_residual_rmsnorm", (fused_residual_rmsnorm_of<T, Block>), Block::block,
                                         blocks_with_64_registers<Block>, "x", "residual", "gamma", "y", "epsilon")}},
    .operands = {{"x", "... columns"},
                 {"residual", "... columns", Access::InOut},
                 {"gamma", "columns"},
                 {"y", "... columns", Access::Out}},
    .settings = {epsilon_setting},
    .document = layernorm_recipe.document,
    .sizes = layernorm_recipe.sizes,
    .reference = reference::fused_residual_rmsnorm,
    .traffic = "4 E s",
    .note = "residual += x, rounded; y is the norm of that"};

/// The same with the statistics of each row.
template <bool centred>
constexpr Recipe saving(const Recipe& of, std::string_view call, const Instances& warp, const Instances& block) {
    Recipe out = of;
    out.call = call;
    Variant &of_warp = out.kernels[0], &in_shared_memory = out.kernels[1], &of_block = out.kernels[2];
    of_warp.instances = warp, of_warp.pitched = IKAT_FLOATS(pitched_saving_norm<T, centred, WarpGroup>());
    in_shared_memory.instances = IKAT_FLOATS(saving_norm_shared<T, centred>());
    in_shared_memory.pitched = IKAT_FLOATS(pitched_saving_norm<T, centred, OfBlock>());
    in_shared_memory.clusters = IKAT_FLOATS(pitched_saving_norm<T, centred, OfCluster>());
    of_block.instances = block, of_block.pitched = IKAT_FLOATS(pitched_saving_norm<T, centred, Block>());
    out.operands = {{"x", "... columns"},
                    {"gamma", "columns"},
                    centred ? ArrayOperand{"beta", "columns"} : ArrayOperand{},
                    {"statistics", "... pair", Access::Out, ir::Type::F32, false, true},
                    {"y", "... columns", Access::Out}};
    out.extents = [](NamedExtents& extents, const FunctionSettings&) { extents["pair"] = 2; };
    out.run = [](const Queue& queue, std::span<const MutableTensorView> arrays, const FunctionSettings& settings) {
        run_saving(queue, centred ? layernorm_saving_recipe : rmsnorm_saving_recipe, {arrays.begin(), arrays.end()},
                   settings.required("epsilon"));
    };
    out.sizes = {{"x", "rows columns"},
                 {"gamma", "columns"},
                 {"beta", "columns"},
                 {"statistics", "rows 2"},
                 {"y", "rows columns"}};
    out.reference = centred ? reference::layernorm_saving : reference::rmsnorm_saving;
    out.note = "with the mean and 1 / sqrt(variance + epsilon) of each row, in f32, for the gradients";
    return out;
}
constexpr Recipe layernorm_saving_recipe =
    saving<true>(layernorm_recipe, "layernorm(queue, x, gamma, beta, y, epsilon, statistics)",
                 IKAT_FLOATS(layernorm_saving_warp<T>()), IKAT_FLOATS(layernorm_saving<T>()));
constexpr Recipe rmsnorm_saving_recipe =
    saving<false>(rmsnorm_recipe, "rmsnorm(queue, x, gamma, y, epsilon, statistics)",
                  IKAT_FLOATS(rmsnorm_saving_warp<T>()), IKAT_FLOATS(rmsnorm_saving<T>()));

}  // namespace ikat::stdlib
