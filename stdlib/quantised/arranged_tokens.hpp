// SPDX-License-Identifier: Apache-2.0
// Activations as kernels on tensor cores take them, in a workspace, see tensor_product.hpp: once for all products.
#pragma once
#include "stdlib/quantised/call.hpp"
#include "stdlib/quantised/tensor_product.hpp"
#include "stdlib/spec/kernel_arguments.hpp"
#include "stdlib/spec/workspace.hpp"

namespace ikat::stdlib {

class ArrangedTokens {
public:
    /// Of a workspace. `sums` are all that the formats need: their sums_of_slice(), by |.
    static std::uint64_t bytes(std::uint32_t sums, std::uint64_t tokens, std::uint64_t columns);
    /// As many tokens as numbers of 32 bits reach the elements of, also as f16 in slices, or as blocks of Q8_1.
    static std::uint64_t at_once(const TensorView& X, const TensorView& Y);

    ArrangedTokens(Workspace& workspace, std::uint32_t sums, std::uint64_t tokens, std::uint64_t columns);

    /// Launches the kernel that fills it: with `count` tokens from `first` on.
    void arrange(const Queue& queue, const TensorView& X, std::uint64_t first, std::uint64_t count) const;
    /// As parameters of a kernel for such weights: x, sums if there are any, scales.
    void add_to(KernelArguments& arguments, Quantised format, std::uint64_t tokens) const;

private:
    TensorView x(std::uint64_t tokens) const;
    TensorView sums(std::uint64_t tokens) const;
    TensorView scales(std::uint64_t tokens) const;

    std::uint32_t sums_of_slice_;
    std::uint64_t slices_;
    runtime::BufferSlice<half> x_, sums_;
    runtime::BufferSlice<float> scales_;
};

/// Tokens of a tile for that many.
constexpr std::uint32_t tokens_of_tile(std::uint64_t tokens) { return tokens <= 16 ? 16 : tokens <= 32 ? 32 : 64; }

}  // namespace ikat::stdlib
