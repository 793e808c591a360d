// SPDX-License-Identifier: Apache-2.0
// A row is walked in whole vectors of 16 bytes, wherever it begins; the few elements before and after these, its edge,
// have a thread each. The largest logit and the sum of exponentials are found in one pass: a thread's sum is scaled
// down when a larger logit comes.
#include "stdlib/loss/cross_entropy_kernels.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "dsl/kernel/kernel.hpp"
#include "dsl/kernel/optional.hpp"
#include "dsl/threads/cluster.hpp"
#include "stdlib/math/math.hpp"
#include "stdlib/reduce/reduce.hpp"
#include "stdlib/spec/kernels.hpp"
#include "stdlib/tile/vectors.hpp"

namespace ikat::stdlib {
namespace {

using U = Leaf<std::uint32_t>;
using U64 = Leaf<std::uint64_t>;
using F = Leaf<float>;
using B = Leaf<bool>;
using Numbers = Struct<CrossEntropyNumbers>;
using Of = CrossEntropyNumbers;
using Gradient = CrossEntropyKernel::Gradient;
constexpr float infinity = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();

/// The target of a row, `ignored` for those that are none.
U target_of(const In<std::uint32_t>& targets, const Numbers& with, const U& row, const B& is_there) {
    const U number = value(row + with[&Of::first]), tokens = value(with[&Of::tokens]);
    const U sequence = value(number / tokens), token = value(number - sequence * tokens + with[&Of::shift]);
    const U64 at = value(cast<u64>(sequence) * with[&Of::target_sequence] + cast<u64>(token) * with[&Of::target_token]);
    return value(targets.slice(at).load_if(is_there & (token < tokens), 0u, with[&Of::ignored]));
}

/// A row of an array as whole vectors of N elements, and its edge.
template <int N>
struct Pieces {
    U64 begin;  // the row, in elements
    U head, vectors, edge;

    Pieces(const U64& begin, const auto& first, const U& classes)
        : begin(begin),
          head(value(min((std::uint32_t(N) - value((cast<u32>(begin) + first) % std::uint32_t(N))) % std::uint32_t(N),
                         classes))),
          vectors(value((classes - head) / std::uint32_t(N))),
          edge(value(classes - vectors * std::uint32_t(N))) {}
    auto row(const auto& x) const { return x.slice(begin); }
    auto aligned(const auto& x) const { return x.slice(value(begin + cast<u64>(head))); }
    U column_of_vector(const U& v) const { return value(head + v * std::uint32_t(N)); }
    U column_of_edge(const U& e) const { return value(select(e < head, e, e + vectors * std::uint32_t(N))); }
};

/// The largest logit so far, and the sums of exp(x - largest) and of x.
struct Sums {
    f32 largest = -infinity, scaled = 0, plain = 0;

    /// What is taken off logits: 0 as long as all are -infinity.
    static F base_of(const auto& largest) { return value(select(largest == -infinity, 0.0f, largest)); }
    template <int N>
    void add(const Lanes<N>& x) {
        f32 top = x[0], total = x[0];
        for (std::size_t k = 1; k < N; ++k) top = max(top, x[k]), total += x[k];
        const F next = value(max(largest, top)), base = base_of(next);
        f32 sum = exp(value(x[0] - base));
        for (std::size_t k = 1; k < N; ++k) sum += exp(value(x[k] - base));
        scaled = fma(scaled, exp(value(largest - base)), sum);
        largest = next, plain += total;
    }
};

/// The threads of a row, in their block.
struct Group {
    explicit Group(const CrossEntropyKernel& is) : is_warp(is.threads == 32) {}
    bool is_warp;

    U thread() const { return is_warp ? value(lane_id()) : value(thread_id().x); }
    U number() const { return is_warp ? value(warp_id()) : value(u32(0u)); }
    F sum(const f32& mine) const { return is_warp ? value(warp_sum(mine)) : value(block_sum(mine)); }
    F max(const f32& mine) const { return is_warp ? value(warp_max(mine)) : value(block_max(mine)); }
};

/// What all threads of a row know of it then.
struct OfRow {
    F base, scaled, plain;  // the sum of exp(x - base), and that of x
    F log_of_scaled;

    OfRow(const F& base, const F& scaled, const F& plain)
        : base(base), scaled(scaled), plain(plain), log_of_scaled(value(log(scaled))) {}
    F log_sum() const { return value(base + log_of_scaled); }
};
OfRow combined(const CrossEntropyKernel& is, const Group& group, const Sums& mine) {
    F largest = group.max(mine.largest), base = Sums::base_of(largest);
    F scaled = group.sum(f32(mine.scaled * exp(value(mine.largest - base)))), plain = group.sum(mine.plain);
    if (is.blocks == 1) return {base, scaled, plain};
    Shared<float, 3> of_block;
    if_(thread_id().x == 0, [&] { of_block[0] = largest, of_block[1] = scaled, of_block[2] = plain; });
    cluster_sync();
    f32 top = -infinity, sum = 0, total = 0;
    for (std::uint32_t rank = 0; rank < is.blocks; ++rank) top = max(top, peer(of_block, rank)[0]);
    base = Sums::base_of(top);
    for (std::uint32_t rank = 0; rank < is.blocks; ++rank) {
        const auto its = peer(of_block, rank);
        sum = fma(its[1], exp(value(its[0] - base)), sum);
        total += its[2];
    }
    cluster_sync();
    return {base, value(sum), value(total)};
}

/// The gradient of a logit: exp(x - base) up - even, less hit for the target.
struct Slope {
    F base, up, even, hit;
    U target;

    F operator()(const F& x, const U& column) const {
        const F all = value(fma(exp(value(x - base)), up, -even));
        return value(select(column == target, all - hit, all));
    }
};
Slope slope_of(const Numbers& with, const OfRow& of, const F& factor, const U& target) {
    const F twice = value(with[&Of::z] * 2.0f), of_probability = value(factor * fma(twice, of.log_sum(), 1.0f));
    return {of.base, value(of_probability / of.scaled), value(factor * with[&Of::smoothing_of_class]),
            value(factor * with[&Of::sharp]), target};
}

/// The rows of a launch, of which each group of threads has one.
template <class T, class X, class Y>
class Rows {
    static constexpr int N = lanes_of<T>;
    using P = Pieces<N>;

public:
    Rows(const CrossEntropyKernel& is, const X& x, const Y* dx, const Numbers& with)
        : is_(is),
          group_(is),
          x_(x),
          dx_(dx),
          with_(with),
          capacity_(value((with[&Of::classes] / std::uint32_t(N) + (is.blocks - 1)) / is.blocks)) {
        if (is.keeps) kept_.emplace(dynamic_shared<T>(value(capacity_ * (is.rows_of_block() * std::uint32_t(N)))));
    }

    void run(const In<std::uint32_t>& targets, const In<float>& factors, const Out<float>& losses) const {
        const U row = value(is_.threads == 32 ? value(block_id().x * is_.rows_of_block() + warp_id())
                                              : value(block_id().x / is_.blocks));
        const U rank = is_.blocks == 1 ? value(u32(0u)) : value(cluster_rank());
        const B is_there = value(row < with_[&Of::rows]);
        const U target = target_of(targets, with_, row, is_there),
                classes = value(select(is_there, with_[&Of::classes], 0u));
        const B counts = value(is_there & (target != with_[&Of::ignored]));
        const P pieces = place_of_x(row, classes);
        const Share share(pieces, rank, is_.blocks);
        const B is_first = value((group_.thread() == 0u) & (rank == 0u));
        const F of_target =
            value(cast<f32>(pieces.row(x_).load_if(counts & is_first & (target < classes), target, T(nan))));
        const B has_edge = value((rank == 0u) & (group_.thread() < pieces.edge));
        f32 edge = 0;
        Sums sums;
        if_(counts, [&] { read(pieces, share, has_edge, edge, sums); });
        const OfRow of = combined(is_, group_, sums);
        if_(is_there & is_first,
            [&] { losses[row + with_[&Of::first]] = select(counts, loss_of(of, of_target), 0.0f); });
        if (is_.gradient == Gradient::None) return;
        if (group_.is_warp) sync_warp();  // in place, the target's logit has been read
        const F factor = value(select(target < classes, f32(factors[1]), nan));
        const Slope slope = slope_of(with_, of, factor, target);
        store_gradient(pieces, is_.gradient == Gradient::InPlace ? pieces : place_of_dx(row, classes), share, has_edge,
                       value(edge), counts, slope);
    }

private:
    /// The vectors of a block of the cluster.
    struct Share {
        U from, to;
        Share(const P& pieces, const U& rank, std::uint32_t blocks)
            : from(value(rank * ((pieces.vectors + (blocks - 1)) / blocks))),
              to(value(min(from + (pieces.vectors + (blocks - 1)) / blocks, pieces.vectors))) {}
    };

    P place_of_x(const U& row, const U& classes) const {
        return {begin(row, &Of::x_sequence, &Of::x_token), with_[&Of::x_first], classes};
    }
    P place_of_dx(const U& row, const U& classes) const {
        return {begin(row, &Of::dx_sequence, &Of::dx_token), with_[&Of::dx_first], classes};
    }
    U64 begin(const U& row, auto of_sequence, auto of_token) const {
        const U tokens = value(with_[&Of::x_tokens]), sequence = value(row / tokens),
                token = value(row - sequence * tokens);
        return value(cast<u64>(sequence) * with_[of_sequence] + cast<u64>(token) * with_[of_token]);
    }
    /// body(vector, its place in what is kept)
    void each_vector(const Share& share, auto&& body) const {
        const U own = value(group_.number() * capacity_);
        for (auto v : range(share.from + group_.thread(), share.to, is_.threads).unroll(2))
            body(value(v), value(own + (v - share.from)));
    }

    void read(const P& pieces, const Share& share, const B& has_edge, f32& edge, Sums& sums) const {
        const auto aligned = pieces.aligned(x_);
        each_vector(share, [&](const U& v, const U& place) {
            const auto raw = value(aligned.template vec<N>(v));
            if (is_.keeps) kept_->template vec<N>(place) = raw;
            sums.add<N>(value(cast<f32>(raw)));
        });
        if_(has_edge, [&] {
            edge = cast<f32>(pieces.row(x_)[pieces.column_of_edge(group_.thread())]);
            sums.add<1>(one_lane(value(edge)));
        });
    }
    F loss_of(const OfRow& of, const F& of_target) const {
        const F sharp = value((of.base - of_target) + of.log_of_scaled), log_sum = of.log_sum();
        const F smoothing = value(with_[&Of::smoothing]);
        const F even = value(fma(smoothing, log_sum, -(with_[&Of::smoothing_of_class] * of.plain)));
        const F smooth = value(fma(value(with_[&Of::sharp]), sharp, even));
        return value(fma(value(with_[&Of::z] * log_sum), log_sum, select(smoothing == 0.0f, sharp, smooth)));
    }
    /// Also of rows that do not count, of zeros. A row of dx that begins elsewhere in 16 bytes is stored by elements.
    void store_gradient(const P& x, const P& dx, const Share& share, const B& has_edge, const F& edge, const B& counts,
                        const Slope& slope) const {
        const auto row = dx.row(*dx_), aligned = dx.aligned(*dx_);
        const auto store = [&](const U& v, const Lanes<N>& lanes) {
            if_(dx.head == x.head, [&] { store_lanes(aligned, v, lanes); }).else_([&] {
                for (std::size_t k = 0; k < N; ++k) row[x.column_of_vector(v) + std::uint32_t(k)] = cast<T>(lanes[k]);
            });
        };
        const auto of_row = x.aligned(x_);
        if_(counts, [&] {
            each_vector(share, [&](const U& v, const U& place) {
                const Lanes<N> lanes = is_.keeps ? load_lanes<N>(*kept_, place) : load_lanes<N>(of_row, v);
                Regs<f32, N> out;
                for (std::size_t k = 0; k < N; ++k)
                    out[k] = slope(value(lanes[k]), value(x.column_of_vector(v) + std::uint32_t(k)));
                store(v, value(out));
            });
        }).else_([&] {
            Regs<f32, N> zeros;
            for (std::size_t k = 0; k < N; ++k) zeros[k] = 0;
            each_vector(share, [&](const U& v, const U&) { store(v, value(zeros)); });
        });
        if_(has_edge, [&] {
            const U column = x.column_of_edge(group_.thread());
            row[column] = cast<T>(value(select(counts, slope(edge, column), 0.0f)));
        });
    }

    const CrossEntropyKernel& is_;
    Group group_;
    const X& x_;
    const Y* dx_;
    const Numbers& with_;
    U capacity_;
    std::optional<DynamicShared<T>> kept_{};
};

template <class T>
KernelHandle rows_kernel(const CrossEntropyKernel& is) {
    const std::string name = is.name();
    const auto finish = [&](auto&& made) {
        auto bound = std::move(made).launch_bounds(is.threads_of_block());
        return is.blocks == 1 ? bound.handle() : std::move(bound).cluster(is.blocks).handle();
    };
    if (is.gradient == Gradient::InPlace)
        return finish(
            kernel(name.c_str(), params("targets", "factors", "losses", "x", "with"),
                   [is](In<std::uint32_t> targets, In<float> factors, Out<float> losses, InOut<T> x, Numbers with) {
                       require_linear_grid();
                       require_threads(is.threads_of_block());
                       Rows<T, InOut<T>, InOut<T>>(is, x, &x, with).run(targets, factors, losses);
                   }));
    return finish(kernel(
        name.c_str(), params("targets", "factors", "losses", "x", only_if(is.gradient != Gradient::None, "dx"), "with"),
        [is](In<std::uint32_t> targets, In<float> factors, Out<float> losses, In<T> x, Optional<Out<T>> dx,
             Numbers with) {
            require_linear_grid();
            require_threads(is.threads_of_block());
            Rows<T, In<T>, Out<T>>(is, x, dx ? &*dx : nullptr, with).run(targets, factors, losses);
        }));
}

KernelHandle count_kernel(const CrossEntropyKernel& is) {
    return kernel(is.name().c_str(), params("targets", "factors", only_if(is.has_scale, "device_scale"), "with"),
                  [is](In<std::uint32_t> targets, Out<float> factors, Optional<In<float>> device_scale, Numbers with) {
                      require_threads(is.threads_of_block());
                      u32 count = 0;
                      for (auto row : range(thread_id().x, with[&Of::rows], is.threads_of_block()))
                          if_(target_of(targets, with, value(row), value(u32(0u) == 0u)) != with[&Of::ignored],
                              [&] { count += 1; });
                      const U all = value(block_sum(count));
                      if_(thread_id().x == 0, [&] {
                          const F of_loss = is.is_mean ? value(1.0f / cast<f32>(all)) : value(f32(1.0f));
                          factors[0] = of_loss;
                          const F of_gradient = value(of_loss * with[&Of::scale]);
                          factors[1] = device_scale ? value(of_gradient * (*device_scale)[0]) : of_gradient;
                      });
                  })
        .launch_bounds(is.threads_of_block())
        .handle();
}

KernelHandle sum_kernel(const CrossEntropyKernel& is) {
    return kernel(is.name().c_str(), params("losses", "factors", "loss", "rows"),
                  [is](In<float> losses, In<float> factors, Out<float> loss, u32 rows) {
                      require_threads(is.threads_of_block());
                      f32 sum = 0;
                      for (auto row : range(thread_id().x, rows, is.threads_of_block())) sum += losses[row];
                      sum = block_sum(sum);
                      if_(thread_id().x == 0, [&] { loss[0] = sum * factors[0]; });
                  })
        .launch_bounds(is.threads_of_block())
        .handle();
}

}  // namespace

std::uint32_t CrossEntropyKernel::kept_vectors(std::uint32_t classes) const {
    return std::max((classes / std::uint32_t(16 / ir::info(type).bytes) + blocks - 1) / blocks, 1u);
}

std::string CrossEntropyKernel::name() const {
    if (step == Step::Count)
        return fmt::format("cross_entropy_factors{}{}", is_mean ? "_mean" : "", has_scale ? "_scaled" : "");
    if (step == Step::Sum) return "cross_entropy_sum";
    const std::string_view what[] = {"cross_entropy", "fused_cross_entropy", "fused_cross_entropy_in_place"};
    const std::string of_row = blocks == 1 ? fmt::format("_{}", threads) : fmt::format("_{}x{}", blocks, threads);
    return fmt::format("{}{}{}_{}", what[std::size_t(gradient)], of_row, keeps ? "_kept" : "", ir::info(type).name);
}

KernelHandle CrossEntropyKernel::make() const {
    if (step == Step::Count) return count_kernel(*this);
    if (step == Step::Sum) return sum_kernel(*this);
    switch (type) {
        case ir::Type::F16: return rows_kernel<half>(*this);
        case ir::Type::BF16: return rows_kernel<bfloat16>(*this);
        default: return rows_kernel<float>(*this);
    }
}

const KernelHandle& CrossEntropyKernel::handle() const { return Kernels<CrossEntropyKernel>::of(*this); }

}  // namespace ikat::stdlib
