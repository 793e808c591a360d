// SPDX-License-Identifier: Apache-2.0
// The launches of products of quantised weights with the same X, which is arranged, or quantised, once for all of them.
// Operands have been checked.
//
//     Products products("gemm_parts", queue, X, activations, workspace);
//     products.add({.weights = {{Wq, rows_of_wq}}, .Y = Q});
//     products.add({.weights = {{Wk, rows_of_wk}}, .Y = K});
//     products.run();
#pragma once
#include <optional>
#include <string_view>
#include <vector>

#include "stdlib/quantised/arranged_tokens.hpp"
#include "stdlib/quantised/call.hpp"
#include "stdlib/quantised/product.hpp"
#include "stdlib/quantised/results.hpp"

namespace ikat::stdlib {

/// Y = X W' and what an epilogue makes of it, or silu(X Wg') (X Wu') of two matrices.
struct OneProduct {
    struct Weights {
        TensorView W;
        ArrayRows rows;  // of W, in bytes
    };
    /// Two have one format, are multiplied on tensor cores, and are not divided into parts(), nor have they an
    /// epilogue.
    std::vector<Weights> weights;
    MutableTensorView Y;
    EpilogueCode epilogue{};
    std::vector<GivenArgument> arguments{};  // of the epilogue
};

class Products {
public:
    /// The queue and the view of X must outlive it.
    Products(std::string_view function, const Queue& queue, const TensorView& X, Activations activations,
             const WorkspaceSlice& workspace);
    /// The same for some of `all` tokens: X is of these, and kernels are chosen by the size of all, as bits depend on
    /// it.
    Products(std::string_view function, const Queue& queue, const TensorView& X, Activations activations,
             const WorkspaceSlice& workspace, std::uint64_t all);

    /// One more.
    void add(OneProduct product);
    /// The bytes of a workspace for all.
    std::uint64_t workspace() const;
    void run() const;

private:
    using Sums = runtime::BufferSlice<float>;
    using U64 = std::uint64_t;
    struct Tokens;
    struct Target;

    bool is_packed() const { return activations_ == Activations::q8_1; }
    U64 tokens() const { return X_.extents[0]; }
    U64 columns() const { return X_.extents[1]; }
    bool is_empty() const { return products_.empty() || tokens() == 0; }
    U64 arranged_at_once() const;
    std::uint32_t sums_of_groups() const;
    bool are_arranged() const;
    U64 bytes_of_tokens() const;
    U64 bytes_of_sums() const;

    // Of one of them.
    bool is_on_tensor_cores(const OneProduct& of) const;
    PartsOfColumns parts(const OneProduct& of) const;
    bool has_sums(const OneProduct& of) const;
    U64 sums_of(const OneProduct& of, U64 count) const;
    U64 at_once(const OneProduct& of) const;
    Target target(const OneProduct& of, const Tokens& tokens) const;
    void multiply(const OneProduct& of, Tokens tokens) const;
    void launch_tiles(const OneProduct& of, const Tokens& tokens) const;
    void launch_few(const OneProduct& of, const Tokens& tokens) const;
    void add_up(const OneProduct& of, const Tokens& tokens) const;

    std::string_view function_;
    const Queue& queue_;
    const Location where_;
    const TensorView& X_;
    U64 all_tokens_;
    Activations activations_;
    WorkspaceSlice workspace_;
    std::vector<OneProduct> products_{};
};

}  // namespace ikat::stdlib
