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
    /// By stream-k, of one matrix on tensor cores: among the blocks of so many multiprocessors. 0: not so.
    std::uint32_t multiprocessors = 0;
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
    /// And what is chosen for it by the size of all tokens.
    struct Planned : OneProduct {
        bool is_on_tensor_cores;
        PartsOfColumns parts;

        bool is_streamed() const { return multiprocessors != 0; }
        /// Whether kernels give sums, of which another one makes Y.
        bool has_sums() const { return parts.count > 1 || epilogue.has_row_sums(); }
        /// Of `count` tokens.
        U64 sums(U64 count) const { return has_sums() ? parts.count * count * Y.extents[1] : 0; }
    };

    bool is_packed() const { return activations_ == Activations::q8_1; }
    U64 tokens() const { return X_.extents[0]; }
    U64 columns() const { return X_.extents[1]; }
    bool is_empty() const { return products_.empty() || tokens() == 0; }
    U64 arranged_at_once() const;
    std::uint32_t sums_of_groups() const;
    bool are_arranged() const;
    U64 bytes_of_tokens() const;
    U64 bytes_of_sums() const;
    U64 bytes_of_shares() const;

    // Of one of them.
    U64 at_once(const Planned& of) const;
    Target target(const Planned& of, const Tokens& tokens) const;
    std::uint32_t tokens_of_tile(const Planned& of, U64 count) const;
    StreamOfTiles stream(const Planned& of, U64 rows, U64 count) const;
    void multiply(const Planned& of, Tokens tokens) const;
    void launch_tiles(const Planned& of, const Tokens& tokens) const;
    void join(const Planned& of, const Tokens& tokens, const StreamOfTiles& stream, U64 first, U64 count) const;
    void launch_few(const Planned& of, const Tokens& tokens) const;
    void add_up(const Planned& of, const Tokens& tokens) const;

    std::string_view function_;
    const Queue& queue_;
    const Location where_;
    const TensorView& X_;
    U64 all_tokens_;
    Activations activations_;
    WorkspaceSlice workspace_;
    std::vector<Planned> products_{};
};

}  // namespace ikat::stdlib
