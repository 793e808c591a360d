// SPDX-License-Identifier: Apache-2.0
#include "stdlib/quantised/products.hpp"

#include <algorithm>

#include "stdlib/epilogue/arguments.hpp"
#include "stdlib/quantised/packed_tensor_product.hpp"
#include "stdlib/quantised/product_call.hpp"
#include "stdlib/quantised/product_kernels.hpp"
#include "stdlib/quantised/tensor_product.hpp"
#include "stdlib/spec/kernel_arguments.hpp"

namespace ikat::stdlib {
namespace {

/// The rows of matrices, `count` of them from number `first` on, as launches take them.
std::vector<WeightsOfLaunch> rows_of(const OneProduct& of, std::uint64_t first, std::uint64_t count) {
    std::vector<WeightsOfLaunch> out;
    for (const auto& [W, rows] : of.weights) out.push_back(weights_of_rows(W, rows, first, count));
    return out;
}
/// f(first row, how many) for launches that each reach all of their rows.
void each_launch(const OneProduct& of, auto&& f) {
    const std::uint64_t all = of.Y.extents[1];
    std::uint64_t most = all;
    for (const auto& [W, rows] : of.weights) most = std::min(most, RowPairs::max_rows(rows));
    for (std::uint64_t first = 0; first < all; first += most) f(first, std::min(most, all - first));
}
void add_epilogue_of(const OneProduct& of, const EpilogueCode& code, KernelArguments& to, std::uint64_t first_token,
                     std::uint64_t first_row) {
    if (!code) return;
    to.add_numbers(std::uint32_t(first_token), std::uint32_t(first_row));
    add_epilogue(to, code, of.arguments);
}
/// Numbers of the first row alone.
TensorView row_of(TensorView matrix, std::uint64_t count) {
    matrix.part.bytes = count * info(matrix.type).bytes;
    matrix.rank = 1;
    matrix.extents = {count}, matrix.strides = {1};
    return matrix;
}

}  // namespace

/// Some tokens: of X as a kernel takes it, and the sums that it may store.
struct Products::Tokens {
    const TensorView& x;             // or its Q8_1
    const ArrangedTokens* arranged;  // the same tokens, if there are any
    const Sums &sums, &shares;
    U64 first, count;

    std::uint32_t pitch_of(const TensorView& matrix) const { return std::uint32_t(count == 1 ? 0 : matrix.strides[0]); }
    TensorView of(const TensorView& matrix) const { return part_from(matrix, first * matrix.strides[0]); }
};
/// Where a kernel stores: sums, or the elements of Y of these tokens.
struct Products::Target {
    TensorView y;
    std::uint32_t pitch;
    EpilogueCode epilogue;
};

Products::Products(std::string_view function, const Queue& queue, const TensorView& X, Activations activations,
                   const WorkspaceSlice& workspace)
    : Products(function, queue, X, activations, workspace, X.extents[0]) {}
Products::Products(std::string_view function, const Queue& queue, const TensorView& X, Activations activations,
                   const WorkspaceSlice& workspace, std::uint64_t all)
    : function_(function),
      queue_(queue),
      where_(queue.where()),
      X_(X),
      all_tokens_(all),
      activations_(activations),
      workspace_(workspace) {}

void Products::add(OneProduct product) {
    const std::uint64_t rows = product.Y.extents[1];
    if (rows == 0) return;
    const bool is_on_tensor_cores = stdlib::is_on_tensor_cores(queue_, product.weights[0].W, all_tokens_, activations_);
    const bool is_divided = is_on_tensor_cores && product.multiprocessors == 0;
    const PartsOfColumns parts =
        is_divided ? PartsOfColumns::of(product.weights.size() * rows, all_tokens_, columns()) : PartsOfColumns{};
    products_.push_back({std::move(product), is_on_tensor_cores, parts});
}

std::uint64_t Products::workspace() const {
    return is_empty() ? 0 : bytes_of_sums() + bytes_of_shares() + bytes_of_tokens();
}

void Products::run() const {
    if (is_empty()) return;
    std::optional<Workspace> workspace;
    if (this->workspace() != 0) workspace.emplace(queue_, function_, workspace_, this->workspace());
    Sums sums, shares;
    if (bytes_of_sums() != 0) sums = workspace->take<float>(bytes_of_sums() / 4);
    if (bytes_of_shares() != 0) shares = workspace->take<float>(bytes_of_shares() / 4);
    const TensorView x = is_packed() && columns() != 0 ? quantised_tokens(queue_, *workspace, X_) : X_;
    const U64 most = arranged_at_once();
    std::optional<ArrangedTokens> arranged;
    if (are_arranged()) arranged.emplace(*workspace, sums_of_groups(), most, columns());
    for (U64 first = 0; first < tokens(); first += most) {
        const U64 count = std::min(most, tokens() - first);
        if (arranged) arranged->arrange(queue_, X_, first, count);
        for (const Planned& of : products_)
            multiply(of, {.x = x,
                          .arranged = arranged ? &*arranged : nullptr,
                          .sums = sums,
                          .shares = shares,
                          .first = first,
                          .count = count});
    }
}

/// Tokens that all products on tensor cores take at once; all, if there is none.
std::uint64_t Products::arranged_at_once() const {
    U64 out = tokens();
    for (const Planned& of : products_)
        if (of.is_on_tensor_cores) out = std::min(out, at_once(of));
    return out;
}
std::uint32_t Products::sums_of_groups() const {
    std::uint32_t out = 0;
    for (const Planned& of : products_)
        if (of.is_on_tensor_cores) out |= sums_of_slice(*of.weights[0].W.format);
    return out;
}
bool Products::are_arranged() const {
    return !is_packed() && std::ranges::any_of(products_, &Planned::is_on_tensor_cores);
}
std::uint64_t Products::bytes_of_tokens() const {
    if (is_packed()) return Workspace::rounded(quantised_bytes(X_));
    return are_arranged() ? ArrangedTokens::bytes(sums_of_groups(), arranged_at_once(), columns()) : 0;
}
std::uint64_t Products::bytes_of_sums() const {
    U64 out = 0;
    for (const Planned& of : products_) out = std::max(out, of.sums(std::min(at_once(of), arranged_at_once())));
    return Workspace::rounded(out * 4);
}
/// Of the launch with the most tiles; others have as many workers at most, and tiles that are no larger.
std::uint64_t Products::bytes_of_shares() const {
    U64 out = 0;
    for (const Planned& of : products_) {
        if (!of.is_streamed()) continue;
        const U64 count = std::min(at_once(of), arranged_at_once());
        out = std::max(out, stream(of, of.Y.extents[1], count).sums(tokens_of_tile(of, count)));
    }
    return Workspace::rounded(out * 4);
}

/// Tokens of a launch. Sums take no more than 32 MiB where that is possible with whole tiles.
std::uint64_t Products::at_once(const Planned& of) const {
    const U64 most =
        of.is_on_tensor_cores ? ArrangedTokens::at_once(X_, of.Y) : std::min(tokens_at_once(X_), tokens_at_once(of.Y));
    const U64 of_sums = std::max<U64>((U64{1} << 23) / of.Y.extents[1] / 64, 1) * 64;
    return std::min({most, tokens(), of.has_sums() && of.parts.count == 1 ? of_sums : most});
}

Products::Target Products::target(const Planned& of, const Tokens& tokens) const {
    if (!of.has_sums()) return {tokens.of(of.Y), tokens.pitch_of(of.Y), of.epilogue};
    const U64 all = of.sums(tokens.count);
    return {TensorView(ir::Type::F32, tokens.sums.slice(0, all).part(), {&all, 1}), std::uint32_t(of.Y.extents[1]), {}};
}

/// All of the tokens, as many of them at once as a launch takes.
void Products::multiply(const Planned& of, Tokens tokens) const {
    const U64 end = tokens.first + tokens.count, most = at_once(of);
    for (; tokens.first < end; tokens.first += most) {
        tokens.count = std::min(most, end - tokens.first);
        if (of.is_on_tensor_cores)
            launch_tiles(of, tokens);
        else
            launch_few(of, tokens);
        if (of.has_sums()) add_up(of, tokens);
    }
}

/// Of a launch for so many tokens.
std::uint32_t Products::tokens_of_tile(const Planned& of, U64 count) const {
    if (is_packed() || of.weights.size() == 2) return stdlib::tokens_of_tile(count);
    const Quantised format = *of.weights[0].W.format;
    const std::uint32_t out = tokens_of_product_tile(queue_, format, count);
    return of.is_streamed() && out == 64 ? max_tokens_of_stream(format) : out;
}
/// How the tiles of a launch are divided. A multiprocessor has two blocks by mma.sync, or one by wgmma, whatever else
/// the device is like: so the same number of multiprocessors gives the same bits.
StreamOfTiles Products::stream(const Planned& of, U64 rows, U64 count) const {
    const U64 of_tile = tokens_of_tile(of, count);
    const U64 tiles = ((rows - 1) / TensorProductKernel::rows + 1) * ((count - 1) / of_tile + 1);
    return StreamOfTiles::of(tiles, (columns() - 1) / 256 + 1, U64{of.multiprocessors} * (of_tile == 128 ? 1 : 2));
}

void Products::launch_tiles(const Planned& of, const Tokens& tokens) const {
    const Target to = target(of, tokens);
    const Quantised format = *of.weights[0].W.format;
    const std::uint32_t units = std::uint32_t(columns() / 32), of_tile = tokens_of_tile(of, tokens.count);
    each_launch(of, [&](U64 first, U64 count) {
        const std::vector<WeightsOfLaunch> weights = rows_of(of, first, count);
        const StreamOfTiles stream = of.is_streamed() ? this->stream(of, count, tokens.count) : StreamOfTiles{};
        const std::uint32_t division = of.is_streamed() ? std::uint32_t(stream.streamed) : of.parts.slices;
        const auto add_results = [&](KernelArguments& arguments) {
            arguments.add_array(part_from(to.y, first));
            if (of.is_streamed()) arguments.add_array(ir::Type::F32, tokens.shares.part());
        };
        const auto launch = [&]<class Kernel>(Kernel is, auto&& add_rest) {
            is.w_is_aligned = std::ranges::all_of(
                weights, [](const WeightsOfLaunch& each) { return each.begin == 0 && each.pitch % 16 == 0; });
            KernelArguments arguments(is.handle(), where_);
            for (const WeightsOfLaunch& each : weights) arguments.add_array(each.bytes);
            add_rest(arguments);
            add_epilogue_of(of, to.epilogue, arguments, tokens.first, first);
            const U64 tiles = ((count - 1) / is.rows_of_y() + 1) * ((tokens.count - 1) / of_tile + 1);
            arguments.launch(queue_, of.is_streamed() ? stream.workers : of.parts.count * tiles, is.threads());
        };
        const bool is_gated = weights.size() == 2;
        if (is_packed())
            launch(PackedTensorKernel{.format = format,
                                      .tokens = of_tile,
                                      .y = to.y.type,
                                      .is_gated = is_gated,
                                      .epilogue = to.epilogue,
                                      .is_streamed = of.is_streamed()},
                   [&](KernelArguments& arguments) {
                       const U64 pitch = tokens.x.strides[0];
                       arguments.add_array(tokens.of(tokens.x));
                       add_results(arguments);
                       arguments.add_numbers(std::uint32_t(count), std::uint32_t(tokens.count), units);
                       add_weights(arguments, weights[0]);
                       arguments.add_numbers(std::uint32_t(pitch),
                                             std::uint32_t((tokens.count - 1) * pitch + tokens.x.extents[1]), division,
                                             to.pitch);
                       if (is_gated) add_weights(arguments, weights[1]);
                   });
        else
            launch(TensorProductKernel{.format = format,
                                       .tokens = of_tile,
                                       .y = to.y.type,
                                       .is_gated = is_gated,
                                       .epilogue = to.epilogue,
                                       .is_streamed = of.is_streamed()},
                   [&](KernelArguments& arguments) {
                       tokens.arranged->add_to(arguments, format, tokens.count);
                       add_results(arguments);
                       arguments.add_numbers(std::uint32_t(count), units, division, to.pitch);
                       for (const WeightsOfLaunch& each : weights) add_weights(arguments, each);
                   });
        if (stream.streamed != 0) join(of, tokens, stream, first, count);
    });
}

/// Rows of the tiles that several blocks have shared.
void Products::join(const Planned& of, const Tokens& tokens, const StreamOfTiles& stream, U64 first, U64 count) const {
    const Target to = target(of, tokens);
    const std::uint32_t of_tile = tokens_of_tile(of, tokens.count);
    KernelArguments arguments(JoinSharesKernel{to.y.type, to.epilogue}.handle(), where_);
    arguments.add_array(ir::Type::F32, tokens.shares.part());
    arguments.add_array(part_from(to.y, first));
    for (const U64 number : {stream.slices, stream.streamed, stream.workers, U64{of_tile}, tokens.count, count})
        arguments.add_numbers(std::uint32_t(number));
    arguments.add_numbers(to.pitch);
    add_epilogue_of(of, to.epilogue, arguments, tokens.first, first);
    arguments.launch(queue_, JoinSharesKernel::blocks_for(stream, of_tile), JoinSharesKernel::threads);
}

/// Without tensor cores.
void Products::launch_few(const Planned& of, const Tokens& tokens) const {
    const TensorView& W = of.weights[0].W;
    const TokenGroup x(tokens.x, tokens.first, std::uint32_t(tokens.count));
    const auto [y, pitch, epilogue] = target(of, tokens);
    const bool is_gemv =
        tokens.count == 1 && !epilogue && y.type == ir::Type::F32 && (x.x.type == y.type || x.x.type == ir::Type::U32);
    if (is_gemv)
        return quantised_gemv(queue_, W, row_of(x.x, x.x.extents[1]), MutableTensorView(row_of(y, of.Y.extents[1])));
    ProductKernel is{.format = *W.format,
                     .tokens = x.count,
                     .x = x.x.type,
                     .y = y.type,
                     .x_is_aligned = x.is_aligned,
                     .epilogue = epilogue};
    each_launch(of, [&](U64 first, U64 count) {
        const WeightsOfLaunch weights = rows_of(of, first, count)[0];
        is.w_is_aligned = weights.begin == 0;
        KernelArguments arguments(is.handle(), where_);
        arguments.add_array(weights.bytes);
        arguments.add_array(x.x);
        arguments.add_array(part_from(y, first));
        arguments.add_numbers(std::uint32_t(count), std::uint32_t(columns()));
        add_weights(arguments, weights);
        arguments.add_numbers(x.pitch, pitch);
        add_epilogue_of(of, epilogue, arguments, tokens.first, first);
        arguments.launch(queue_, (count - 1) / is.rows_of_block() + 1, WarpGroup::block);
    });
}

void Products::add_up(const Planned& of, const Tokens& tokens) const {
    KernelArguments arguments(AddPartsKernel{of.Y.type, of.epilogue}.handle(), where_);
    arguments.add_array(target(of, tokens).y);
    arguments.add_array(tokens.of(of.Y));
    arguments.add_numbers(of.parts.count, std::uint32_t(tokens.count), std::uint32_t(of.Y.extents[1]),
                          tokens.pitch_of(of.Y));
    add_epilogue_of(of, of.epilogue, arguments, tokens.first, 0);
    arguments.launch(queue_, AddPartsKernel::blocks_for(tokens.count, of.Y.extents[1]), AddPartsKernel::threads);
}

}  // namespace ikat::stdlib
