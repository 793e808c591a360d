// SPDX-License-Identifier: Apache-2.0
#include "stdlib/quantised/product.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "stdlib/epilogue/arguments.hpp"
#include "stdlib/quantised/product_call.hpp"
#include "stdlib/quantised/products.hpp"

namespace ikat::stdlib {
namespace {

/// A call: its checks, and its launches. The arguments must outlive it.
class ProductCall {
public:
    ProductCall(const Queue& queue, const TensorView& W, const TensorView& X, const MutableTensorView& Y,
                const QuantisedGemmOptions& options)
        : call_("gemm", queue), products_("gemm", queue, X, options.activations, options.workspace) {
        call_.check().enumerator("activations", std::size_t(options.activations), 2);
        check_schedule(options);
        check_product(call_, {"W", W}, {"X", X}, {"Y", Y});
        OneProduct product{.weights = {}, .Y = Y};
        if (options.schedule == GemmSchedule::stream_k) product.multiprocessors = multiprocessors(queue, W, Y, options);
        std::vector<OperandRole> roles{{"W", W.part, Role::Read},
                                       {"X", X.part, Role::Read},
                                       {"Y", Y.part, Role::Written},
                                       {"workspace", options.workspace.part(), Role::Written}};
        std::optional<EpilogueRoles> of_epilogue;
        if (options.epilogue) {
            product.epilogue = EpilogueCode(*options.epilogue);
            if (product.epilogue.sum() != ir::Type::F32)
                call_.fail("an epilogue of i32 sums", "sums of quantised weights are f32: epilogue(...) without <i32>");
            check_epilogue({call_.function(), queue.where()}, *options.epilogue, product.epilogue,
                           {1, Y.extents[0], Y.extents[1]});
            of_epilogue.emplace(*options.epilogue);
            roles.insert(roles.end(), of_epilogue->roles().begin(), of_epilogue->roles().end());
            product.arguments.assign(options.epilogue->arguments.begin(), options.epilogue->arguments.end());
        }
        call_.check_roles(roles);
        product.weights.push_back({W, call_.rows_of_weights(W)});
        products_.add(std::move(product));
    }

    std::uint64_t workspace() const { return products_.workspace(); }
    void run() const { products_.run(); }

private:
    void check_schedule(const QuantisedGemmOptions& options) const {
        using enum GemmSchedule;
        call_.check().enumerator("schedule", std::size_t(options.schedule), 6);
        if (options.schedule != chosen && options.schedule != stream_k)
            call_.fail("a schedule that products of quantised weights do not have",
                       "GemmSchedule::chosen divides columns into parts where there are few tiles; the other one is "
                       "stream_k");
        if (options.multiprocessors != 0 && options.schedule != stream_k)
            call_.fail(
                fmt::format("{} multiprocessors, and a schedule that does not depend on them", options.multiprocessors),
                "they are of GemmSchedule::stream_k");
        if (options.multiprocessors > max_multiprocessors)
            call_.fail(fmt::format("{} multiprocessors", options.multiprocessors),
                       fmt::format("tiles are divided for at most {}", max_multiprocessors));
    }
    /// For how many stream-k divides tiles; 0 if there are none.
    std::uint32_t multiprocessors(const Queue& queue, const TensorView& W, const TensorView& Y,
                                  const QuantisedGemmOptions& options) const {
        if (W.extents[0] == 0 || W.extents[1] == 0 || Y.extents[0] == 0) return 0;
        if (!is_on_tensor_cores(queue, W, Y.extents[0], options.activations))
            call_.fail(
                fmt::format("GemmSchedule::stream_k, and {} tokens are multiplied without tensor cores", Y.extents[0]),
                "it is of more than eight tokens, on a device from sm_80 on that has room for their tiles; "
                "GemmSchedule::chosen takes any");
        if (options.multiprocessors != 0) return options.multiprocessors;
        return std::clamp(queue.device().properties().multiprocessors, 1u, max_multiprocessors);
    }

    static constexpr std::uint32_t max_multiprocessors = 16384;  // 32 bits reach the sums of all blocks
    const QuantisedCall call_;
    Products products_;
};

}  // namespace

void quantised_gemm(const Queue& queue, const TensorView& W, const TensorView& X, const MutableTensorView& Y,
                    const QuantisedGemmOptions& options) {
    ProductCall(queue, W, X, Y, options).run();
}

std::uint64_t gemm_workspace(const Queue& queue, const TensorView& W, const TensorView& X, const MutableTensorView& Y,
                             const QuantisedGemmOptions& options) {
    return ProductCall(queue, W, X, Y, options).workspace();
}

}  // namespace ikat::stdlib
