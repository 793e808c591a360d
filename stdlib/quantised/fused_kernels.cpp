// SPDX-License-Identifier: Apache-2.0
#include "stdlib/quantised/fused_kernels.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <limits>

#include "dsl/threads/grids.hpp"
#include "stdlib/math/math.hpp"
#include "stdlib/quantised/kernel_arrays.hpp"
#include "stdlib/spec/kernels.hpp"
#include "stdlib/tile/rows.hpp"

namespace ikat::stdlib {
namespace {

using blocks::F, blocks::U;

std::string_view name_of(runtime::Quantised format) { return runtime::find_info(format)->name; }
std::string_view name_of_activations(ir::Type x) { return x == ir::Type::U32 ? "q8_1" : ir::info(x).name; }

/// As every kernel here begins.
void begin(bool are_packed) {
    require_linear_grid();
    require_threads(WarpGroup::block);
    if (are_packed) grid_wait();  // for the kernel that has quantised the activations
}

Tokens tokens_of(std::uint32_t count, ir::Type type, const LoadFour& x, const u32& columns, const U& pitch) {
    return {count, type == ir::Type::U32, columns,
            [&x, &pitch](const U& token, const U& quad, const U& there) { return x(token, quad, pitch, there); }};
}

/// See ProductKernel; a warp has two rows of weights, also for a single token.
std::uint32_t min_blocks_of_two_rows(std::uint32_t tokens, ir::Type x) {
    return ProductKernel{.tokens = std::max(tokens, 2u), .x = x}.min_blocks();
}

// ---- silu(X Wg') (X Wu')

void store_swiglu(const BlockProduct& product, const Tokens& x, const U& row, const u32& rows, const StoreElement& y,
                  const u32& y_pitch) {
    const F sum = product.sum(), other = value(shuffle_xor(sum, 16));  // the upper half of the lanes has those of Wu
    const std::uint32_t lanes = product.lanes_of_sum();
    const U lane = value(lane_id()), token = value(lane / lanes);
    const auto is_stored = value((lane % lanes == 0u) & (token < x.count) & (row < rows));
    y(is_stored, token, y_pitch, row, value(silu(sum) * other));
}

// ---- W (rmsnorm(x) gamma)

/// What the tokens are multiplied by: x scale factor, where scale is a power of two.
class Norms {
    static constexpr std::uint32_t threads = WarpGroup::block, warps = WarpGroup::rows_of_block;
    static constexpr std::uint32_t max_tokens = ProductKernel::max_tokens;

public:
    /// All threads of a block come here. Where squares overflow, those of x 2^-100 are added.
    Norms(const Tokens& x, const f32& epsilon) : count_(x.count) {
        find(x, 1.0f, epsilon);
        pred overflow = false;
        for (std::uint32_t token = 0; token < count_; ++token) overflow = overflow | !is_finite(value(u32(token)));
        if_(overflow, [&] { find(x, 0x1p-100f, epsilon); });
    }
    F apply(const U& token, const U& word, const U& gamma) const {
        return value(bit_cast<f32>(word) * scales_[token] * factors_[token] * bit_cast<f32>(gamma));
    }

private:
    Leaf<bool> is_finite(const U& token) const { return value(means_[token] <= std::numeric_limits<float>::max()); }
    /// For all tokens, or at a smaller scale for those whose mean is not finite.
    void find(const Tokens& x, float scale, const f32& epsilon) const {
        const std::uint32_t padded = std::bit_ceil(count_), lanes = 32 / padded;
        const F sum = divided_sum(sums_of_squares(x, padded, scale));
        const U lane = value(lane_id()), token = value(thread_id().x);
        sums_.store_if(value(lane % lanes == 0u), value(warp_id() * max_tokens + lane / lanes), sum);
        sync_block();
        if_(token < count_, [&] {
            const auto of_warp = [&](std::uint32_t warp) { return sums_[token + warp * max_tokens]; };
            static_assert(warps == 4);
            const F mean = value(((of_warp(0) + of_warp(1)) + (of_warp(2) + of_warp(3))) / cast<f32>(x.columns));
            const auto store = [&] {
                scales_[token] = scale;
                factors_[token] = rcp(sqrt(mean + epsilon * scale * scale));
            };
            if (scale == 1) {
                means_[token] = mean;
                store();
            } else {
                if_(!is_finite(token), store);
            }
        });
        sync_block();
    }
    /// For each token. A thread has every 128th four of elements.
    static std::vector<F> sums_of_squares(const Tokens& x, std::uint32_t padded, float scale) {
        std::deque<f32> sums;
        for (std::uint32_t i = 0; i < padded; ++i) sums.emplace_back(0.0f);
        const U quads = value(x.columns / 4u), all = value(u32(4u));
        for (auto quad : range(value(thread_id().x), quads, threads))
            for (std::uint32_t token = 0; token < x.count; ++token)
                for (const U& word : x.load(value(u32(token)), value(quad), all)) {
                    const F element = value(bit_cast<f32>(word) * scale);
                    sums[token] = fma(element, element, sums[token]);
                }
        std::vector<F> out;
        for (const f32& sum : sums) out.push_back(value(sum));
        return out;
    }

    using Floats = Indexable<float, Direction::ReadWrite>;
    std::uint32_t count_;
    Floats sums_ = Shared<float, warps * max_tokens>().flat();
    Floats means_ = Shared<float, max_tokens>().flat();
    Floats scales_ = Shared<float, max_tokens>().flat(), factors_ = Shared<float, max_tokens>().flat();
};

// ---- X W' of several W

constexpr const char* names_of_weights[PartsKernel::max_parts] = {"w0", "w1", "w2", "w3"};

/// The parameters of a part.
struct PartArguments {
    In<std::uint8_t> w;
    StoreElement y;
    u32 rows, begin, pitch, bytes, y_pitch;

    PartArguments(More& rest, ir::Type type)
        : w(rest.next<In<std::uint8_t>>()),
          y(next_results(rest, type)),
          rows(rest.next<u32>()),
          begin(rest.next<u32>()),
          pitch(rest.next<u32>()),
          bytes(rest.next<u32>()),
          y_pitch(rest.next<u32>()) {}
};

void record_parts(const PartsKernel& is, const Tokens& x, const std::deque<PartArguments>& parts) {
    begin(x.are_packed);
    std::vector<runtime::Quantised> formats;
    for (const auto& part : is.parts) formats.push_back(part.format);
    const std::uint32_t rows = is.product().rows_of_warp(), of_block = is.product().rows_of_block();
    const ProductMemory memory(x, rows, formats);
    const U block = value(block_id().x);
    u32 before = 0;  // the blocks of the parts before
    for (std::size_t i = 0; i < parts.size(); ++i) {
        const PartArguments& of = parts[i];
        const U first = value(before), end = value(before + ((of.rows - 1u) / of_block + 1u));
        if_((block >= first) & (block < end), [&] {
            const ProductArguments product{
                .w = {is.parts[i].format, is.parts[i].w_is_aligned, of.w, of.rows, of.begin, of.pitch, of.bytes},
                .x = x,
                .store = [&](const Leaf<bool>& condition, const U& token, const U& row, const F& sum) {
                    of.y(condition, token, of.y_pitch, row, sum);
                }};
            record_rows(product, rows, memory,
                        [&] { return U(value(((block - first) * WarpGroup::rows_of_block + warp_id()) * rows)); });
        });
        before = end;
    }
}

}  // namespace

std::string SwigluKernel::name() const {
    const std::string_view gate = name_of(formats[0]), up = name_of(formats[1]);
    return fmt::format("gate_up_swiglu_{}_{}_{}_tokens_{}", gate == up ? gate : fmt::format("{}_{}", gate, up),
                       name_of_activations(x), ir::info(y).name, tokens);
}

KernelHandle SwigluKernel::make() const {
    MoreParameters more;
    more.add<In<std::uint8_t>>("gate").add<In<std::uint8_t>>("up");
    add_array<In>(more, "x", x);
    add_array<Out>(more, "y", y);
    add_numbers(more, {"rows", "columns", "x_pitch", "y_pitch", "gate_begin", "gate_pitch", "gate_bytes", "up_begin",
                       "up_pitch", "up_bytes"});
    return kernel(name().c_str(), params(more),
                  [is = *this](More rest) {
                      begin(is.x == ir::Type::U32);
                      const auto gate = rest.next<In<std::uint8_t>>(), up = rest.next<In<std::uint8_t>>();
                      const LoadFour load = next_rows(rest, is.x, is.x_is_aligned);
                      const StoreElement y = next_results(rest, is.y);
                      const auto rows = rest.next<u32>(), columns = rest.next<u32>();
                      const U x_pitch = value(rest.next<u32>());
                      const auto y_pitch = rest.next<u32>(), gate_begin = rest.next<u32>(),
                                 gate_pitch = rest.next<u32>(), gate_bytes = rest.next<u32>(),
                                 up_begin = rest.next<u32>(), up_pitch = rest.next<u32>(), up_bytes = rest.next<u32>();
                      const Tokens x = tokens_of(is.tokens, is.x, load, columns, x_pitch);
                      const WeightRows of_gate{is.formats[0], is.w_are_aligned[0], gate,      rows,
                                               gate_begin,    gate_pitch,          gate_bytes};
                      const WeightRows of_up{is.formats[1], is.w_are_aligned[1], up, rows, up_begin, up_pitch,
                                             up_bytes};
                      BlockProduct product(x, {&of_gate, &of_up}, ProductMemory(x, 2, is.formats));
                      const U row = WarpGroup::row();
                      product.run(row, [&](std::uint32_t) { return row; });
                      store_swiglu(product, x, row, rows, y, y_pitch);
                  })
        .require(multiple_of<32>("columns"), aligned<16>("gate"), aligned<16>("up"))
        .launch_bounds(WarpGroup::block, min_blocks_of_two_rows(tokens, x))
        .handle();
}

std::string NormProductKernel::name() const {
    return fmt::format("rmsnorm_gemv_{}_{}_{}_{}_tokens_{}", name_of(format), ir::info(x).name, ir::info(gamma).name,
                       ir::info(y).name, tokens);
}

KernelHandle NormProductKernel::make() const {
    MoreParameters more;
    more.add<In<std::uint8_t>>("w");
    add_array<In>(more, "x", x);
    add_array<In>(more, "gamma", gamma);
    add_array<Out>(more, "y", y);
    add_numbers(more, {"rows", "columns", "w_begin", "w_pitch", "w_bytes", "x_pitch", "y_pitch"});
    more.add<f32>("epsilon");
    return kernel(name().c_str(), params(more),
                  [is = *this](More rest) {
                      begin(false);
                      const auto w = rest.next<In<std::uint8_t>>();
                      const LoadFour load = next_rows(rest, is.x, is.x_is_aligned);
                      const LoadFour gamma = next_rows(rest, is.gamma, is.gamma_is_aligned);
                      const StoreElement y = next_results(rest, is.y);
                      const auto rows = rest.next<u32>(), columns = rest.next<u32>(), w_begin = rest.next<u32>(),
                                 w_pitch = rest.next<u32>(), w_bytes = rest.next<u32>();
                      const U x_pitch = value(rest.next<u32>()), no = value(u32(0u));
                      const auto y_pitch = rest.next<u32>();
                      const auto epsilon = rest.next<f32>();
                      const Tokens x = tokens_of(is.tokens, is.x, load, columns, x_pitch);
                      const Norms norms(x, epsilon);
                      Tokens normed = x;
                      normed.load = [&](const U& token, const U& quad, const U& count) {
                          std::array<U, 4> out = x.load(token, quad, count);
                          const auto of_gamma = gamma(no, quad, no, count);
                          for (std::size_t e = 0; e < 4; ++e)
                              out[e] = U(value(bit_cast<u32>(norms.apply(token, out[e], of_gamma[e]))));
                          return out;
                      };
                      const ProductArguments product{
                          .w = {is.format, is.w_is_aligned, w, rows, w_begin, w_pitch, w_bytes},
                          .x = normed,
                          .store = [&](const Leaf<bool>& condition, const U& token, const U& row, const F& sum) {
                              y(condition, token, y_pitch, row, sum);
                          }};
                      record_rows(product, rows_of_warp, ProductMemory(normed, rows_of_warp, {&is.format, 1}),
                                  [&] { return U(value(WarpGroup::row() * rows_of_warp)); });
                  })
        .require(multiple_of<32>("columns"), aligned<16>("w"))
        .launch_bounds(WarpGroup::block, min_blocks_of_two_rows(tokens, x))
        .handle();
}

std::string PartsKernel::name() const {
    std::string out = fmt::format("gemm_parts_{}_tokens_{}", name_of_activations(x), tokens);
    for (const Part& part : parts) out += fmt::format("_{}_{}", name_of(part.format), ir::info(part.y).name);
    return out;
}

KernelHandle PartsKernel::make() const {
    MoreParameters more;
    add_array<In>(more, "x", x);
    add_numbers(more, {"columns", "x_pitch"});
    for (std::size_t i = 0; i < parts.size(); ++i) {
        const std::string w = names_of_weights[i], y = fmt::format("y{}", i);
        more.add<In<std::uint8_t>>(w);
        add_array<Out>(more, y, parts[i].y);
        add_numbers(more, {fmt::format("rows{}", i), w + "_begin", w + "_pitch", w + "_bytes", y + "_pitch"});
    }
    KernelHandle out = kernel(name().c_str(), params(more),
                              [is = *this](More rest) {
                                  const LoadFour load = next_rows(rest, is.x, is.x_is_aligned);
                                  const auto columns = rest.next<u32>();
                                  const U x_pitch = value(rest.next<u32>());
                                  std::deque<PartArguments> parts;
                                  for (const Part& part : is.parts) parts.emplace_back(rest, part.y);
                                  record_parts(is, tokens_of(is.tokens, is.x, load, columns, x_pitch), parts);
                              })
                           .require(multiple_of<32>("columns"))
                           .launch_bounds(WarpGroup::block, product().min_blocks())
                           .handle();
    for (std::size_t i = 0; i < parts.size(); ++i) out.require(aligned<16>(names_of_weights[i]));
    return out;
}

const KernelHandle& SwigluKernel::handle() const { return Kernels<SwigluKernel>::of(*this); }
const KernelHandle& NormProductKernel::handle() const { return Kernels<NormProductKernel>::of(*this); }
const KernelHandle& PartsKernel::handle() const { return Kernels<PartsKernel>::of(*this); }

}  // namespace ikat::stdlib
