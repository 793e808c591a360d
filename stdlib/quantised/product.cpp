// SPDX-License-Identifier: Apache-2.0
#include "stdlib/quantised/product.hpp"

#include <algorithm>
#include <string_view>

#include "stdlib/epilogue/arguments.hpp"
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
    using Sums = runtime::BufferSlice<float>;

public:
    ProductCall(const Queue& queue, const TensorView& W, const TensorView& X, const MutableTensorView& Y,
                const QuantisedGemmOptions& options)
        : queue_(queue), where_(queue.where()), W_(W), X_(X), Y_(Y), options_(options), call_("gemm", queue) {
        call_.check().enumerator("activations", std::size_t(options.activations), 2);
        check_product(call_, {"W", W}, {"X", X}, {"Y", Y});
        std::vector<OperandRole> roles{{"W", W.part, Role::Read},
                                       {"X", X.part, Role::Read},
                                       {"Y", Y.part, Role::Written},
                                       {"workspace", options.workspace.part(), Role::Written}};
        std::optional<EpilogueRoles> of_epilogue;
        if (options.epilogue) {
            code_ = EpilogueCode(*options.epilogue);
            if (code_.sum() != ir::Type::F32)
                call_.fail("an epilogue of i32 sums", "sums of quantised weights are f32: epilogue(...) without <i32>");
            check_epilogue({call_.function(), where_}, *options.epilogue, code_, {1, tokens(), rows()});
            of_epilogue.emplace(*options.epilogue);
            roles.insert(roles.end(), of_epilogue->roles().begin(), of_epilogue->roles().end());
            arguments_.assign(options.epilogue->arguments.begin(), options.epilogue->arguments.end());
        }
        call_.check_roles(roles);
    }

    std::uint64_t workspace() const {
        if (is_empty()) return 0;
        const std::uint64_t most = tokens_at_once();
        const std::uint64_t of_x = is_packed()            ? Workspace::rounded(quantised_bytes(X_))
                                   : is_on_tensor_cores() ? ArrangedTokens::bytes(*W_.format, most, columns())
                                                          : 0;
        return Workspace::rounded(sums_of(most) * 4) + of_x;
    }

    void run() const {
        if (is_empty()) return;
        const std::uint64_t most = tokens_at_once();
        std::optional<Workspace> workspace;
        if (this->workspace() != 0) workspace.emplace(queue_, "gemm", options_.workspace, this->workspace());
        Sums sums;
        if (has_sums()) sums = workspace->take<float>(sums_of(most));
        const auto each = [&](auto&& work) {
            for (std::uint64_t first = 0; first < tokens(); first += most) {
                const std::uint64_t count = std::min(most, tokens() - first);
                work(first, count);
                if (has_sums()) add_up(sums, first, count);
            }
        };
        if (is_on_tensor_cores() && !is_packed()) {
            const ArrangedTokens arranged(*workspace, *W_.format, most, columns());
            return each([&](std::uint64_t first, std::uint64_t count) {
                arranged.arrange(queue_, X_, first, count);
                multiply(arranged, sums, first, count);
            });
        }
        const TensorView x = is_packed() && columns() != 0 ? quantised_tokens(queue_, *workspace, X_) : X_;
        each([&](std::uint64_t first, std::uint64_t count) {
            if (is_on_tensor_cores())
                multiply_packed(x, sums, first, count);
            else
                run_group(x, sums, first, std::uint32_t(count));
        });
    }

private:
    std::uint64_t tokens() const { return Y_.extents[0]; }
    std::uint64_t rows() const { return Y_.extents[1]; }
    std::uint64_t columns() const { return X_.extents[1]; }
    bool is_empty() const { return tokens() == 0 || rows() == 0; }
    bool is_packed() const { return options_.activations == Activations::q8_1; }
    /// The choice by size.
    bool is_on_tensor_cores() const { return stdlib::is_on_tensor_cores(queue_, W_, tokens(), options_.activations); }
    PartsOfColumns parts() const {
        return is_on_tensor_cores() ? PartsOfColumns::of(rows(), tokens(), columns()) : PartsOfColumns{};
    }
    /// Whether kernels give sums, of which another one makes Y.
    bool has_sums() const { return parts().count > 1 || code_.has_row_sums(); }
    std::uint64_t sums_of(std::uint64_t count) const { return has_sums() ? parts().count * count * rows() : 0; }
    /// For a launch. Sums take no more than 32 MiB where that is possible with whole tiles.
    std::uint64_t tokens_at_once() const {
        const std::uint64_t most = is_on_tensor_cores()
                                       ? ArrangedTokens::at_once(X_, Y_)
                                       : std::min(stdlib::tokens_at_once(X_), stdlib::tokens_at_once(Y_));
        const std::uint64_t of_sums = std::max<std::uint64_t>((std::uint64_t{1} << 23) / rows() / 64, 1) * 64;
        return std::min({most, tokens(), has_sums() && parts().count == 1 ? of_sums : most});
    }
    /// Where a kernel stores: sums, or the elements of Y of these tokens.
    struct Target {
        TensorView y;
        std::uint32_t pitch;
        EpilogueCode epilogue;
    };
    void multiply(const ArrangedTokens& arranged, const Sums& sums, std::uint64_t first, std::uint64_t count) const {
        const auto add = [&](KernelArguments& arguments, const TensorView& y, const TileWeights& weights) {
            arranged.add_to(arguments, count);
            arguments.add_array(y);
            arguments.add_numbers(weights.rows, std::uint32_t(columns() / 32), weights.slices_of_part, weights.y_pitch,
                                  weights.begin, weights.pitch, weights.end);
        };
        launch_tiles<TensorProductKernel>(tokens_of_product_tile(queue_, *W_.format, count), sums, first, count, add);
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
        launch_tiles<PackedTensorKernel>(tokens_of_tile(count), sums, first, count, add);
    }
    struct TileWeights {
        std::uint32_t rows, begin, pitch, end, slices_of_part, y_pitch;
    };
    /// A kernel for `count` tokens, so many of each tile, and all rows: add(arguments, y, weights) adds the arguments
    /// after w.
    template <class Kernel>
    void launch_tiles(std::uint32_t of_tile, const Sums& sums, std::uint64_t first, std::uint64_t count,
                      auto&& add) const {
        const Target to = target(sums, first, count);
        Kernel is{.format = *W_.format, .tokens = of_tile, .y = to.y.type, .epilogue = to.epilogue};
        each_launch([&](const RowPairs::Launch& launch) {
            const auto [bytes, begin, w_pitch, end] = weights_of_launch(W_, launch);
            is.w_is_aligned = begin == 0 && w_pitch % 16 == 0;
            KernelArguments arguments(is.handle(), where_);
            arguments.add_array(bytes);
            add(arguments, part_from(to.y, launch.first[1]),
                TileWeights{std::uint32_t(launch.rows), begin, w_pitch, end, parts().slices, to.pitch});
            add_epilogue(arguments, to.epilogue, first, launch.first[1]);
            const std::uint64_t down = (launch.rows - 1) / TensorProductKernel::rows + 1;
            arguments.launch(queue_, parts().count * down * ((count - 1) / is.tokens + 1), is.threads());
        });
    }
    /// Launches that each reach a part of the rows.
    void each_launch(auto&& work) const {
        ArrayRows of_y{1, {}};
        of_y.add(rows(), 1);
        RowPairs(call_.rows_of_weights(W_), of_y, columns(), true).each_launch(work);
    }
    Target target(const Sums& sums, std::uint64_t first, std::uint64_t count) const {
        const TensorView Y = part_from(Y_, first * Y_.strides[0]);
        if (!has_sums()) return {Y, std::uint32_t(count == 1 ? 0 : Y_.strides[0]), code_};
        const std::uint64_t all = sums.size();
        return {TensorView(ir::Type::F32, sums.part(), {&all, 1}), std::uint32_t(rows()), {}};
    }
    void add_epilogue(KernelArguments& to, const EpilogueCode& code, std::uint64_t first_token,
                      std::uint64_t first_row) const {
        if (!code) return;
        to.add_numbers(std::uint32_t(first_token), std::uint32_t(first_row));
        stdlib::add_epilogue(to, code, arguments_);
    }
    void add_up(const Sums& sums, std::uint64_t first, std::uint64_t count) const {
        KernelArguments arguments(AddPartsKernel{Y_.type, code_}.handle(), where_);
        arguments.add_array(target(sums, first, count).y);
        arguments.add_array(part_from(Y_, first * Y_.strides[0]));
        arguments.add_numbers(parts().count, std::uint32_t(count), std::uint32_t(rows()),
                              std::uint32_t(count == 1 ? 0 : Y_.strides[0]));
        add_epilogue(arguments, code_, first, 0);
        arguments.launch(queue_, AddPartsKernel::blocks_for(count, rows()), AddPartsKernel::threads);
    }

    /// Numbers of the first row alone.
    static TensorView row_of(TensorView matrix, std::uint64_t count) {
        matrix.part.bytes = count * info(matrix.type).bytes;
        matrix.rank = 1;
        matrix.extents = {count}, matrix.strides = {1};
        return matrix;
    }
    /// Without tensor cores: a few tokens. X is of floats, or of blocks of Q8_1.
    void run_group(const TensorView& X, const Sums& sums, std::uint64_t first, std::uint32_t count) const {
        const TokenGroup x(X, first, count);
        const auto [y, pitch, epilogue] = target(sums, first, count);
        const bool is_gemv =
            count == 1 && !epilogue && y.type == ir::Type::F32 && (X.type == y.type || X.type == ir::Type::U32);
        if (is_gemv)
            return quantised_gemv(queue_, W_, row_of(x.x, x.x.extents[1]), MutableTensorView(row_of(y, rows())));
        ProductKernel is{.format = *W_.format,
                         .tokens = count,
                         .x = X.type,
                         .y = y.type,
                         .x_is_aligned = x.is_aligned,
                         .epilogue = epilogue};
        each_launch([&](const RowPairs::Launch& launch) {
            const auto [bytes, begin, w_pitch, end] = weights_of_launch(W_, launch);
            is.w_is_aligned = begin == 0;
            KernelArguments arguments(is.handle(), where_);
            arguments.add_array(bytes);
            arguments.add_array(x.x);
            arguments.add_array(part_from(y, launch.first[1]));
            arguments.add_numbers(std::uint32_t(launch.rows), std::uint32_t(columns()), begin, w_pitch, end, x.pitch,
                                  pitch);
            add_epilogue(arguments, epilogue, first, launch.first[1]);
            arguments.launch(queue_, (launch.rows - 1) / is.rows_of_block() + 1, WarpGroup::block);
        });
    }

    const Queue& queue_;
    const Location where_;
    const TensorView &W_, &X_, &Y_;
    const QuantisedGemmOptions& options_;
    const QuantisedCall call_;
    EpilogueCode code_{};
    std::vector<GivenArgument> arguments_{};  // of the epilogue
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
