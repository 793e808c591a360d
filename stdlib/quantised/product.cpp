// SPDX-License-Identifier: Apache-2.0
#include "stdlib/quantised/product.hpp"

#include <algorithm>
#include <string_view>

#include "stdlib/quantised/arranged_tokens.hpp"
#include "stdlib/quantised/packed_tensor_product.hpp"
#include "stdlib/quantised/product_call.hpp"
#include "stdlib/quantised/product_kernels.hpp"
#include "stdlib/quantised/tensor_product.hpp"
#include "stdlib/spec/kernel_arguments.hpp"

namespace ikat::stdlib {
namespace {

/// A call: its checks, and its launches. The arguments must outlive it.
class ProductCall {
public:
    ProductCall(const Queue& queue, const TensorView& W, const TensorView& X, const MutableTensorView& Y,
                const QuantisedGemmOptions& options)
        : queue_(queue), where_(queue.where()), W_(W), X_(X), Y_(Y), options_(options), call_("gemm", queue) {
        call_.check().enumerator("activations", std::size_t(options.activations), 2);
        check_product(call_, {"W", W}, {"X", X}, {"Y", Y});
        call_.check_roles({{"W", W.part, Role::Read},
                           {"X", X.part, Role::Read},
                           {"Y", Y.part, Role::Written},
                           {"workspace", options.workspace.part(), Role::Written}});
    }

    std::uint64_t workspace() const {
        if (is_empty()) return 0;
        if (!is_on_tensor_cores()) return is_packed() ? quantised_bytes(X_) : 0;
        const std::uint64_t most = tokens_at_once_on_tensor_cores();
        return bytes_of_sums(most) + (is_packed() ? Workspace::rounded(quantised_bytes(X_))
                                                  : ArrangedTokens::bytes(*W_.format, most, columns()));
    }

    void run() const {
        if (is_empty()) return;
        if (is_on_tensor_cores()) return run_on_tensor_cores();
        if (!is_packed() || columns() == 0) return run_of(X_);
        Workspace workspace(queue_, "gemm", options_.workspace, this->workspace());
        run_of(quantised_tokens(queue_, workspace, X_));
    }

private:
    std::uint64_t tokens() const { return Y_.extents[0]; }
    std::uint64_t rows() const { return Y_.extents[1]; }
    std::uint64_t columns() const { return X_.extents[1]; }
    bool is_empty() const { return tokens() == 0 || rows() == 0; }
    bool is_packed() const { return options_.activations == Activations::q8_1; }
    /// The choice by size.
    bool is_on_tensor_cores() const { return stdlib::is_on_tensor_cores(queue_, W_, tokens(), options_.activations); }
    /// For rows that may begin anywhere.
    TensorProductKernel kernel_of(std::uint64_t count) const {
        return {.format = *W_.format, .tokens = tokens_of_tile(count), .y = Y_.type, .w_is_aligned = false};
    }
    PackedTensorKernel packed_kernel_of(std::uint64_t count) const {
        return {.format = *W_.format, .tokens = tokens_of_tile(count), .y = Y_.type, .w_is_aligned = false};
    }
    PartsOfColumns parts() const { return PartsOfColumns::of(rows(), tokens(), columns()); }
    std::uint64_t sums_of(std::uint64_t count) const { return parts().count == 1 ? 0 : parts().count * count * rows(); }
    std::uint64_t bytes_of_sums(std::uint64_t count) const { return Workspace::rounded(sums_of(count) * 4); }
    std::uint64_t tokens_at_once_on_tensor_cores() const { return ArrangedTokens::at_once(X_, Y_); }
    void run_on_tensor_cores() const {
        Workspace workspace(queue_, "gemm", options_.workspace, this->workspace());
        const std::uint64_t most = tokens_at_once_on_tensor_cores();
        const auto sums = workspace.take<float>(sums_of(most));
        const auto each = [&](auto&& work) {
            for (std::uint64_t first = 0; first < tokens(); first += most)
                work(first, std::min(most, tokens() - first));
        };
        if (is_packed()) {
            const TensorView blocks = quantised_tokens(queue_, workspace, X_);
            return each([&](std::uint64_t first, std::uint64_t count) { multiply_packed(blocks, sums, first, count); });
        }
        const ArrangedTokens arranged(workspace, *W_.format, most, columns());
        each([&](std::uint64_t first, std::uint64_t count) {
            arranged.arrange(queue_, X_, first, count);
            multiply(arranged, sums, first, count);
        });
    }
    using Sums = runtime::BufferSlice<float>;
    void multiply(const ArrangedTokens& arranged, const Sums& sums, std::uint64_t first, std::uint64_t count) const {
        const auto add = [&](KernelArguments& arguments, const TensorView& y, const TileWeights& weights) {
            arranged.add_to(arguments, count);
            arguments.add_array(y);
            arguments.add_numbers(weights.rows, std::uint32_t(columns() / 32), weights.slices_of_part, weights.y_pitch,
                                  weights.begin, weights.pitch, weights.end);
        };
        launch_tiles(kernel_of(count), sums, first, count, add);
    }
    void multiply_packed(const TensorView& blocks, const Sums& sums, std::uint64_t first, std::uint64_t count) const {
        const std::uint64_t pitch = blocks.strides[0];
        const auto add = [&](KernelArguments& arguments, const TensorView& y, const TileWeights& weights) {
            arguments.add_array(part_from(blocks, first * pitch));
            arguments.add_array(y);
            arguments.add_numbers(weights.rows, std::uint32_t(count), std::uint32_t(columns() / 32), weights.begin,
                                  weights.pitch, weights.end, std::uint32_t(pitch),
                                  std::uint32_t((count - 1) * pitch + blocks.extents[1]), weights.slices_of_part,
                                  weights.y_pitch);
        };
        launch_tiles(packed_kernel_of(count), sums, first, count, add);
    }
    struct TileWeights {
        std::uint32_t rows, begin, pitch, end, slices_of_part, y_pitch;
    };
    /// A kernel for `count` tokens and all rows, and if there are parts the one that adds them up: add(arguments, y,
    /// weights) adds the arguments after w.
    template <class Kernel>
    void launch_tiles(Kernel is, const Sums& sums, std::uint64_t first, std::uint64_t count, auto&& add) const {
        const TensorView Y = part_from(Y_, first * Y_.strides[0]);
        const auto pitch_of_y = std::uint32_t(count == 1 ? 0 : Y_.strides[0]);
        const PartsOfColumns parts = this->parts();
        const std::uint64_t all = sums.size();
        const TensorView y = parts.count == 1 ? Y : TensorView(ir::Type::F32, sums.part(), {&all, 1});
        is.y = y.type;
        ArrayRows of_y{1, {}};
        of_y.add(rows(), 1);
        RowPairs(call_.rows_of_weights(W_), of_y, columns(), true).each_launch([&](const RowPairs::Launch& launch) {
            const auto [bytes, begin, w_pitch, end] = weights_of_launch(W_, launch);
            is.w_is_aligned = begin == 0 && w_pitch % 16 == 0;
            KernelArguments arguments(is.handle(), where_);
            arguments.add_array(bytes);
            add(arguments, part_from(y, launch.first[1]),
                TileWeights{std::uint32_t(launch.rows), begin, w_pitch, end, parts.slices,
                            parts.count == 1 ? pitch_of_y : std::uint32_t(rows())});
            const std::uint64_t down = (launch.rows - 1) / TensorProductKernel::rows + 1;
            arguments.launch(queue_, parts.count * down * ((count - 1) / is.tokens + 1), TensorProductKernel::threads);
        });
        if (parts.count == 1) return;
        KernelArguments adding(AddPartsKernel{Y_.type}.handle(), where_);
        adding.add_array(y);
        adding.add_array(Y);
        adding.add_numbers(parts.count, std::uint32_t(count), std::uint32_t(rows()), pitch_of_y);
        adding.launch(queue_, (count * rows() - 1) / AddPartsKernel::threads + 1, AddPartsKernel::threads);
    }

    /// Without tensor cores: tokens in groups that a kernel takes at once. X is of floats, or of blocks of Q8_1.
    void run_of(const TensorView& X) const {
        const std::uint64_t most = std::min(tokens_at_once(X), tokens_at_once(Y_));
        for (std::uint64_t first = 0; first < tokens(); first += most)
            run_group(X, first, std::uint32_t(std::min(most, tokens() - first)));
    }
    /// The first row alone.
    static TensorView row_of(TensorView matrix) {
        matrix.part.bytes = matrix.extents[1] * info(matrix.type).bytes;
        matrix.rank = 1;
        matrix.extents = {matrix.extents[1]}, matrix.strides = {1};
        return matrix;
    }
    void run_group(const TensorView& X, std::uint64_t first, std::uint32_t count) const {
        const TokenGroup x(X, first, count);
        const TensorView y = x.rows_of(Y_);
        const bool is_gemv = count == 1 && Y_.type == ir::Type::F32 && (X.type == Y_.type || X.type == ir::Type::U32);
        if (is_gemv) return quantised_gemv(queue_, W_, row_of(x.x), MutableTensorView(row_of(y)));
        ArrayRows of_y{1, {}};
        of_y.add(rows(), 1);
        ProductKernel is{
            .format = *W_.format, .tokens = count, .x = X.type, .y = Y_.type, .x_is_aligned = x.is_aligned};
        RowPairs(call_.rows_of_weights(W_), of_y, columns(), true).each_launch([&](const RowPairs::Launch& launch) {
            const auto [bytes, begin, w_pitch, end] = weights_of_launch(W_, launch);
            is.w_is_aligned = begin == 0;
            KernelArguments arguments(is.handle(), where_);
            arguments.add_array(bytes);
            arguments.add_array(x.x);
            arguments.add_array(part_from(y, launch.first[1]));
            arguments.add_numbers(std::uint32_t(launch.rows), std::uint32_t(columns()), begin, w_pitch, end, x.pitch,
                                  x.pitch_of(Y_));
            arguments.launch(queue_, (launch.rows - 1) / is.rows_of_block() + 1, WarpGroup::block);
        });
    }

    const Queue& queue_;
    const Location where_;
    const TensorView &W_, &X_, &Y_;
    const QuantisedGemmOptions& options_;
    const QuantisedCall call_;
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
