// SPDX-License-Identifier: Apache-2.0
// Activations as kernels on tensor cores take them, in a workspace, see tensor_product.hpp.
#pragma once
#include "stdlib/quantised/call.hpp"
#include "stdlib/quantised/tensor_product.hpp"
#include "stdlib/spec/kernel_arguments.hpp"
#include "stdlib/spec/workspace.hpp"

namespace ikat::stdlib {

class ArrangedTokens {
public:
    /// Of a workspace.
    static std::uint64_t bytes(Quantised format, std::uint64_t tokens, std::uint64_t columns);
    /// As many tokens as numbers of 32 bits reach the elements of, also as f16 in slices, or as blocks of Q8_1.
    static std::uint64_t at_once(const TensorView& X, const TensorView& Y);

    ArrangedTokens(Workspace& workspace, Quantised format, std::uint64_t tokens, std::uint64_t columns);

    /// Launches the kernel that fills it: with `count` tokens from `first` on.
    void arrange(const Queue& queue, const TensorView& X, std::uint64_t first, std::uint64_t count) const;
    /// As parameters of a kernel: x, sums if there are any, scales.
    void add_to(KernelArguments& arguments, std::uint64_t tokens) const;

private:
    std::uint64_t columns_, columns_of_sums_;
    runtime::BufferSlice<half> x_, sums_;
    runtime::BufferSlice<float> scales_;
};

/// Tokens of a tile for that many.
constexpr std::uint32_t tokens_of_tile(std::uint64_t tokens) { return tokens <= 16 ? 16 : tokens <= 32 ? 32 : 64; }

}  // namespace ikat::stdlib
