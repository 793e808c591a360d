// SPDX-License-Identifier: Apache-2.0
#include "stdlib/quantised/product.hpp"

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
        check_product(call_, {"W", W}, {"X", X}, {"Y", Y});
        OneProduct product{.weights = {}, .Y = Y};
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
