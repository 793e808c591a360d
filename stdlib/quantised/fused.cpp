// SPDX-License-Identifier: Apache-2.0
#include "stdlib/quantised/fused.hpp"

#include <algorithm>
#include <deque>

#include "stdlib/elementwise/elementwise.hpp"
#include "stdlib/quantised/fused_kernels.hpp"
#include "stdlib/quantised/product_call.hpp"
#include "stdlib/quantised/products.hpp"
#include "stdlib/spec/kernel_arguments.hpp"

namespace ikat::stdlib {
namespace {

/// Calls f(group) for all tokens of X in groups, each for a launch.
void each_group(const TensorView& X, std::uint64_t most, auto&& f) {
    for (std::uint64_t first = 0; first < X.extents[0]; first += most)
        f(TokenGroup(X, first, std::uint32_t(std::min(most, X.extents[0] - first))));
}

/// X as kernels for few tokens take it: as it is, or in Q8_1 in a workspace.
class FewTokens {
public:
    static std::uint64_t bytes(const TensorView& X, Activations activations) {
        return activations == Activations::q8_1 ? quantised_bytes(X) : 0;
    }
    FewTokens(const Queue& queue, std::string_view function, const TensorView& X, const FusedProductOptions& options)
        : view_(X) {
        if (options.activations != Activations::q8_1 || X.extents[1] == 0) return;
        workspace_.emplace(queue, function, options.workspace, quantised_bytes(X));
        view_ = quantised_tokens(queue, *workspace_, X);
    }
    const TensorView& view() const { return view_; }

private:
    std::optional<Workspace> workspace_{};
    TensorView view_;
};

class SwigluCall {
public:
    SwigluCall(const Queue& queue, const TensorView& Wg, const TensorView& Wu, const TensorView& X,
               const MutableTensorView& Y, const FusedProductOptions& options)
        : queue_(queue),
          where_(queue.where()),
          Wg_(Wg),
          Wu_(Wu),
          X_(X),
          Y_(Y),
          options_(options),
          call_("gate_up_swiglu", queue) {
        call_.check().enumerator("activations", std::size_t(options.activations), 2);
        check_product(call_, {"Wg", Wg}, {"X", X}, {"Y", Y});
        check_product(call_, {"Wu", Wu}, {"X", X}, {"Y", Y});
        call_.check_roles({{"Wg", Wg.part, Role::Read},
                           {"Wu", Wu.part, Role::Read},
                           {"X", X.part, Role::Read},
                           {"Y", Y.part, Role::Written},
                           {"workspace", options.workspace.part(), Role::Written}});
    }

    std::uint64_t workspace() const {
        if (is_empty()) return 0;
        if (!are_products()) return FewTokens::bytes(X_, options_.activations);
        if (is_one_product()) return one_product().workspace();
        return buffers() * Workspace::rounded(tokens_at_once_on_tensor_cores() * rows() * 4) + of_products();
    }

    void run() const {
        if (is_empty()) return;
        if (are_products()) return is_one_product() ? one_product().run() : run_products();
        const FewTokens x(queue_, "gate_up_swiglu", X_, options_);
        each_group(x.view(), std::min(tokens_at_once(x.view()), tokens_at_once(Y_)),
                   [&](const TokenGroup& group) { run_group(group); });
    }

private:
    std::uint64_t tokens() const { return Y_.extents[0]; }
    std::uint64_t rows() const { return Y_.extents[1]; }
    bool is_empty() const { return tokens() == 0 || rows() == 0; }

    void run_group(const TokenGroup& group) const {
        const ArrayRows gate_rows = call_.rows_of_weights(Wg_, "Wg"), up_rows = call_.rows_of_weights(Wu_, "Wu");
        const TensorView y = group.rows_of(Y_);
        const std::uint64_t most = std::min(RowPairs::max_rows(gate_rows), RowPairs::max_rows(up_rows));
        for (std::uint64_t first = 0; first < rows(); first += most) {
            const std::uint64_t count = std::min(most, rows() - first);
            const WeightsOfLaunch gate = weights_of_rows(Wg_, gate_rows, first, count),
                                  up = weights_of_rows(Wu_, up_rows, first, count);
            const SwigluKernel is{.formats = {*Wg_.format, *Wu_.format},
                                  .tokens = group.count,
                                  .x = group.x.type,
                                  .y = Y_.type,
                                  .w_are_aligned = {gate.begin == 0, up.begin == 0},
                                  .x_is_aligned = group.is_aligned};
            KernelArguments arguments(is.handle(), where_);
            for (const TensorView& array : {gate.bytes, up.bytes, group.x, part_from(y, first)})
                arguments.add_array(array);
            arguments.add_numbers(std::uint32_t(count), std::uint32_t(X_.extents[1]), group.pitch, group.pitch_of(Y_));
            add_weights(arguments, gate);
            add_weights(arguments, up);
            arguments.launch(queue_, (count - 1) / SwigluKernel::rows_of_block + 1, WarpGroup::block);
        }
    }

    // Products on tensor cores.
    bool are_products() const {
        return is_on_tensor_cores(queue_, Wg_, tokens(), options_.activations) ||
               is_on_tensor_cores(queue_, Wu_, tokens(), options_.activations);
    }
    /// Of tiles that have both gate and up, where columns are not divided into parts.
    bool is_one_product() const {
        return Wg_.format == Wu_.format && PartsOfColumns::of(2 * rows(), tokens(), X_.extents[1]).count == 1;
    }
    OneProduct::Weights gate() const { return {Wg_, call_.rows_of_weights(Wg_, "Wg")}; }
    OneProduct::Weights up() const { return {Wu_, call_.rows_of_weights(Wu_, "Wu")}; }
    Products one_product() const {
        Products out("gate_up_swiglu", queue_, X_, options_.activations, options_.workspace);
        out.add({.weights = {gate(), up()}, .Y = Y_});
        return out;
    }
    /// Of numbers in f32: both products and, if that is not Y itself, what becomes of them.
    std::uint64_t buffers() const { return Y_.type == ir::Type::F32 ? 2 : 3; }
    /// Whole tiles, and no more than 32 MiB to a buffer where that is possible.
    std::uint64_t tokens_at_once_on_tensor_cores() const {
        return std::min(tokens(), std::max<std::uint64_t>((std::uint64_t{1} << 23) / rows() / 64, 1) * 64);
    }
    TensorView first_tokens(const TensorView& of, std::uint64_t first, std::uint64_t count) const {
        TensorView out = part_from(of, first * of.strides[0]);
        out.extents[0] = count;
        out.part.bytes = ((count - 1) * out.strides[0] + out.extents[1]) * info(of.type).bytes;
        return out;
    }
    /// Both, into matrices in f32.
    Products both(const TensorView& X, const MutableTensorView& of_gate, const MutableTensorView& of_up,
                  const WorkspaceSlice& workspace) const {
        Products out("gate_up_swiglu", queue_, X, options_.activations, workspace, tokens());
        out.add({.weights = {gate()}, .Y = of_gate});
        out.add({.weights = {up()}, .Y = of_up});
        return out;
    }
    /// What they need.
    std::uint64_t of_products() const {
        const std::uint64_t count = tokens_at_once_on_tensor_cores();
        const TensorView X = first_tokens(X_, 0, count);
        TensorView result;  // without memory
        result.type = ir::Type::F32, result.rank = 2;
        result.extents = {count, rows()}, result.strides = {rows(), 1};
        return Workspace::rounded(both(X, MutableTensorView(result), MutableTensorView(result), {}).workspace());
    }
    void run_products() const {
        Workspace workspace(queue_, "gate_up_swiglu", options_.workspace, this->workspace());
        const std::uint64_t most = tokens_at_once_on_tensor_cores();
        std::vector<runtime::BufferSlice<float>> numbers;
        for (std::uint64_t i = 0; i < buffers(); ++i) numbers.push_back(workspace.take<float>(most * rows()));
        const WorkspaceSlice of_both(workspace.take<std::uint8_t>(of_products()));
        for (std::uint64_t first = 0; first < tokens(); first += most) {
            const std::uint64_t count = std::min(most, tokens() - first);
            const std::array<std::uint64_t, 2> extents{count, rows()};
            const auto matrix = [&](std::size_t i) {
                return MutableTensorView(
                    TensorView(ir::Type::F32, numbers[i].slice(0, count * rows()).part(), extents));
            };
            const TensorView X = first_tokens(X_, first, count);
            const MutableTensorView Y(first_tokens(Y_, first, count));
            both(X, matrix(0), matrix(1), of_both).run();
            elementwise(queue_, Binary::fused_swiglu, matrix(0), matrix(1), buffers() == 2 ? Y : matrix(2));
            if (buffers() == 3) cast(queue_, matrix(2), Y);
        }
    }

    const Queue& queue_;
    const Location where_;
    const TensorView &Wg_, &Wu_, &X_;
    const MutableTensorView& Y_;
    const FusedProductOptions& options_;
    const QuantisedCall call_;
};

class PartsCall {
public:
    PartsCall(const Queue& queue, const TensorView& X, const std::vector<ProductPart>& parts,
              const FusedProductOptions& options)
        : queue_(queue), where_(queue.where()), X_(X), parts_(parts), options_(options), call_("gemm_parts", queue) {
        call_.check().enumerator("activations", std::size_t(options.activations), 2);
        std::deque<std::string> names;
        std::vector<OperandRole> roles{{"X", X.part, Role::Read},
                                       {"workspace", options.workspace.part(), Role::Written}};
        for (std::size_t i = 0; i < parts.size(); ++i) {
            const std::string& W = names.emplace_back(fmt::format("parts[{}].W", i));
            const std::string& Y = names.emplace_back(fmt::format("parts[{}].Y", i));
            check_product(call_, {W, parts[i].W}, {"X", X}, {Y, parts[i].Y});
            rows_.push_back(call_.rows_of_weights(parts[i].W, W));
            roles.push_back({W, parts[i].W.part, Role::Read});
            const TensorView& y = parts[i].Y;
            const std::uint64_t bytes = info(y.type).bytes;
            roles.push_back({Y, y.part, Role::Written, y.extents[1] * bytes, y.strides[0] * bytes});
        }
        call_.check_roles(roles);
    }

    std::uint64_t workspace() const {
        if (is_empty()) return 0;
        if (!are_products()) return FewTokens::bytes(X_, options_.activations);
        return products().workspace();
    }

    void run() const {
        if (is_empty()) return;
        if (are_products()) return products().run();
        const FewTokens x(queue_, "gemm_parts", X_, options_);
        std::uint64_t most = tokens_at_once(x.view());
        for (const ProductPart& part : parts_) most = std::min(most, tokens_at_once(part.Y));
        each_group(x.view(), most, [&](const TokenGroup& group) { run_group(group); });
    }

private:
    /// Rows of a part that a launch reaches.
    struct Piece {
        std::size_t part;
        std::uint64_t first, count;
    };

    bool is_empty() const {
        return std::ranges::all_of(
            parts_, [](const ProductPart& part) { return part.Y.extents[0] == 0 || part.Y.extents[1] == 0; });
    }
    bool are_products() const {
        return std::ranges::any_of(parts_, [&](const ProductPart& part) {
            return is_on_tensor_cores(queue_, part.W, X_.extents[0], options_.activations);
        });
    }
    Products products() const {
        Products out("gemm_parts", queue_, X_, options_.activations, options_.workspace);
        for (std::size_t i = 0; i < parts_.size(); ++i)
            out.add({.weights = {{parts_[i].W, rows_[i]}}, .Y = parts_[i].Y});
        return out;
    }
    std::vector<Piece> pieces() const {
        std::vector<Piece> out;
        for (std::size_t i = 0; i < parts_.size(); ++i) {
            const std::uint64_t rows = parts_[i].Y.extents[1], most = RowPairs::max_rows(rows_[i]);
            for (std::uint64_t first = 0; first < rows; first += most)
                out.push_back({i, first, std::min(most, rows - first)});
        }
        return out;
    }
    void run_group(const TokenGroup& group) const {
        const std::vector<Piece> all = pieces();
        for (std::size_t i = 0; i < all.size(); i += PartsKernel::max_parts)
            launch(group, std::span(all).subspan(i, std::min<std::size_t>(PartsKernel::max_parts, all.size() - i)));
    }
    void launch(const TokenGroup& group, std::span<const Piece> pieces) const {
        PartsKernel is{.tokens = group.count, .x = group.x.type, .x_is_aligned = group.is_aligned};
        std::vector<WeightsOfLaunch> weights;
        std::uint64_t blocks = 0;
        for (const Piece& each : pieces) {
            const ProductPart& part = parts_[each.part];
            weights.push_back(weights_of_rows(part.W, rows_[each.part], each.first, each.count));
            is.parts.push_back({*part.W.format, part.Y.type, weights.back().begin == 0});
            blocks += is.blocks_for(each.count);
        }
        KernelArguments arguments(is.handle(), where_);
        arguments.add_array(group.x);
        arguments.add_numbers(std::uint32_t(X_.extents[1]), group.pitch);
        for (std::size_t i = 0; i < pieces.size(); ++i) {
            const TensorView& Y = parts_[pieces[i].part].Y;
            arguments.add_array(weights[i].bytes);
            arguments.add_array(part_from(group.rows_of(Y), pieces[i].first));
            arguments.add_numbers(std::uint32_t(pieces[i].count));
            add_weights(arguments, weights[i]);
            arguments.add_numbers(group.pitch_of(Y));
        }
        arguments.launch(queue_, blocks, WarpGroup::block);
    }

    const Queue& queue_;
    const Location where_;
    const TensorView& X_;
    const std::vector<ProductPart>& parts_;
    std::vector<ArrayRows> rows_{};
    const FusedProductOptions& options_;
    const QuantisedCall call_;
};

}  // namespace

void gate_up_swiglu(const Queue& queue, const TensorView& Wg, const TensorView& Wu, const TensorView& X,
                    const MutableTensorView& Y, const FusedProductOptions& options) {
    SwigluCall(queue, Wg, Wu, X, Y, options).run();
}
std::uint64_t gate_up_swiglu_workspace(const Queue& queue, const TensorView& Wg, const TensorView& Wu,
                                       const TensorView& X, const MutableTensorView& Y,
                                       const FusedProductOptions& options) {
    return SwigluCall(queue, Wg, Wu, X, Y, options).workspace();
}

void rmsnorm_gemv(const Queue& queue, const TensorView& W, const TensorView& x, const TensorView& gamma,
                  const MutableTensorView& y, float epsilon) {
    const QuantisedCall call("rmsnorm_gemv", queue);
    const Location where = queue.where();
    const auto matrix = [](const TensorView& view) { return view.rank == 1 ? view.of_rank(2) : view; };
    const TensorView X = matrix(x), Y = matrix(y);
    check_product(call, {"W", W}, {"x", X}, {"y", Y});
    call.check_real("gamma", gamma);
    if (gamma.rank != 1 || gamma.extents[0] != X.extents[1])
        call.fail(fmt::format("'gamma' is {}, and 'x' is {}", extents_text(gamma), extents_text(x)),
                  "gamma has an element for each column");
    call.check_row("gamma", gamma);
    call.check_roles({{"W", W.part, Role::Read},
                      {"x", x.part, Role::Read},
                      {"gamma", gamma.part, Role::Read},
                      {"y", y.part, Role::Written}});
    const std::uint64_t all = Y.extents[1], columns = X.extents[1];
    if (all == 0) return;
    const ArrayRows rows = call.rows_of_weights(W);
    each_group(X, std::min(tokens_at_once(X), tokens_at_once(Y)), [&](const TokenGroup& group) {
        const std::uint64_t most = RowPairs::max_rows(rows);
        for (std::uint64_t first = 0; first < all; first += most) {
            const std::uint64_t count = std::min(most, all - first);
            const WeightsOfLaunch weights = weights_of_rows(W, rows, first, count);
            const NormProductKernel is{.format = *W.format,
                                       .tokens = group.count,
                                       .x = X.type,
                                       .gamma = gamma.type,
                                       .y = Y.type,
                                       .w_is_aligned = weights.begin == 0,
                                       .x_is_aligned = group.is_aligned,
                                       .gamma_is_aligned = unit_of(gamma, 0) == 4};
            KernelArguments arguments(is.handle(), where);
            for (const TensorView& array : {weights.bytes, group.x, gamma, part_from(group.rows_of(Y), first)})
                arguments.add_array(array);
            arguments.add_numbers(std::uint32_t(count), std::uint32_t(columns));
            add_weights(arguments, weights);
            arguments.add_numbers(group.pitch, group.pitch_of(Y), epsilon);
            arguments.launch(queue, (count - 1) / NormProductKernel::rows_of_block + 1, WarpGroup::block);
        }
    });
}

void gemm_parts(const Queue& queue, const TensorView& X, const std::vector<ProductPart>& parts,
                const FusedProductOptions& options) {
    PartsCall(queue, X, parts, options).run();
}
std::uint64_t gemm_parts_workspace(const Queue& queue, const TensorView& X, const std::vector<ProductPart>& parts,
                                   const FusedProductOptions& options) {
    return PartsCall(queue, X, parts, options).workspace();
}

}  // namespace ikat::stdlib
