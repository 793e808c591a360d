// SPDX-License-Identifier: Apache-2.0
#include "stdlib/catalogue/registry.hpp"

#include <algorithm>
#include <vector>

#include "dsl/record/capture.hpp"
#include "stdlib/backward/activations.hpp"
#include "stdlib/backward/column_sums.hpp"
#include "stdlib/backward/norm_backward.hpp"
#include "stdlib/backward/softmax_backward.hpp"
#include "stdlib/backward/swiglu_backward.hpp"
#include "stdlib/conv/conv2d.hpp"
#include "stdlib/elementwise/elementwise.hpp"
#include "stdlib/elementwise/saxpy.hpp"
#include "stdlib/embedding/embedding.hpp"
#include "stdlib/gemm/gemm.hpp"
#include "stdlib/gemm/gemv.hpp"
#include "stdlib/layout/copy.hpp"
#include "stdlib/layout/layout.hpp"
#include "stdlib/norm/norm.hpp"
#include "stdlib/optimise/optimise.hpp"
#include "stdlib/quantised/quantised.hpp"
#include "stdlib/random/random.hpp"
#include "stdlib/reduction/dot.hpp"
#include "stdlib/reduction/reduction.hpp"
#include "stdlib/softmax/softmax.hpp"

namespace ikat::stdlib {
namespace {

std::vector<const Recipe*> all_recipes() {
    std::vector<const Recipe*> out;
    for (const std::span<const Recipe> table :
         {recipes(Unary{}), recipes(Unary1{}), recipes(Unary2{}), recipes(Binary{}), recipes(Backward{}),
          recipes(Backward1{}), norm_backward_recipes()})
        for (const Recipe& recipe : table) out.push_back(&recipe);
    out.insert(out.end(), {&saxpy_recipe, &residual_add_recipe, &cast_recipe, &bias_activation_recipe});
    out.insert(out.end(), {&softmax_recipe, &log_softmax_recipe});
    out.insert(out.end(), {&layernorm_recipe, &layernorm_plain_recipe, &rmsnorm_recipe, &fused_residual_rmsnorm_recipe,
                           &layernorm_saving_recipe, &rmsnorm_saving_recipe});
    out.insert(out.end(), {&softmax_backward_recipe, &log_softmax_backward_recipe, &column_sums_recipe,
                           &softmax_causal_backward_recipe, &swiglu_backward_recipe, &swiglu_backward_in_place_recipe});
    out.insert(out.end(), {&sum_recipe, &max_recipe, &dot_recipe, &norm2_recipe, &argmax_recipe, &argmax_final_recipe});
    out.insert(out.end(), {&gemm_recipe, &gemm_naive_recipe, &gemv_recipe, &gemv_transposed_recipe, &conv2d_recipe});
    out.insert(out.end(),
               {&copy_matrix_recipe, &transpose_recipe, &rope_recipe, &kv_scatter_recipe, &gather_rows_recipe});
    out.insert(out.end(), {&dequantise_recipe, &quantised_gemv_recipe, &quantise_q8_1_recipe, &packed_gemv_recipe});
    out.insert(out.end(), {&dropout_recipe, &dropout_state_recipe, &fill_uniform_recipe, &fill_normal_recipe,
                           &advance_random_recipe});
    out.insert(out.end(), {&sgd_momentum_recipe, &adam_recipe, &adamw_recipe, &lion_recipe, &clip_by_norm_recipe,
                           &loss_scale_update_recipe});
    return out;
}

/// An entry for each kernel and each of its types.
std::vector<Entry> all_entries() {
    std::vector<Entry> out;
    for (const Recipe* recipe : recipes())
        for (const Variant& variant : recipe->variants())
            for (const auto handle : variant.instances)
                if (handle)
                    out.push_back({handle().name(), variant.summary, recipe->document, recipe, &variant, handle});
    std::ranges::sort(out, {}, &Entry::name);
    return out;
}

}  // namespace

const KernelInfo& Entry::info() const { return handle().info(); }

Grid Entry::grid(std::span<const runtime::Argument> arguments, std::uint32_t threads) const {
    const Call call(info(), arguments, threads, {.function = name});
    check(*recipe, *variant, call);
    return variant->grid(call);
}

std::span<const Recipe* const> recipes() {
    static const std::vector<const Recipe*> all = all_recipes();
    return all;
}

std::span<const Entry> registry() {
    static const std::vector<Entry> all = all_entries();
    return all;
}

const Entry* find(std::string_view name) {
    const std::span<const Entry> all = registry();
    const auto found = std::ranges::lower_bound(all, name, {}, &Entry::name);
    return found == all.end() || found->name != name ? nullptr : &*found;
}

}  // namespace ikat::stdlib
