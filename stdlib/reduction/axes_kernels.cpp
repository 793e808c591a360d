// SPDX-License-Identifier: Apache-2.0
#include "stdlib/reduction/axes_kernels.hpp"

#include <fmt/format.h>

#include <limits>
#include <type_traits>
#include <vector>

#include "codegen/support/half.hpp"
#include "dsl/kernel/optional.hpp"
#include "stdlib/spec/kernels.hpp"
#include "stdlib/tile/vectors.hpp"

namespace ikat::stdlib {

namespace {

using F = Leaf<float>;
using U = Leaf<std::uint32_t>;
using Places = Struct<ReductionPlaces>;

bool is_sum(Reduction what) { return what == Reduction::sum || what == Reduction::mean || what == Reduction::norm2; }
bool is_argument(Reduction what) { return what == Reduction::argmax || what == Reduction::argmin; }
bool is_largest(Reduction what) {
    return what == Reduction::max || what == Reduction::argmax || what == Reduction::any;
}

/// What is known of some elements. Of a variance: their mean, the sum of squared differences from it, and how many they
/// are. Of an argmax: the maximum, and its index. Else one number.
class Reduced {
    auto is_better(const F& x, const F& than) const {
        const auto beyond = is_largest(what_) ? value(x > than) : value(x < than);
        return value(beyond | (is_nan(x) & !is_nan(than)));
    }
    static auto is_equal(const F& x, const F& y) { return value((x == y) | (is_nan(x) & is_nan(y))); }

public:
    explicit Reduced(Reduction what) : what_(what) { clear(); }
    Reduced(Reduction what, const F& a, const F& b, const U& n) : what_(what) { a_ = a, b_ = b, n_ = n; }

    /// Of no elements.
    void clear() {
        const float infinity = std::numeric_limits<float>::infinity();
        const bool is_bit = what_ == Reduction::any || what_ == Reduction::all;
        a_ = is_sum(what_) || what_ == Reduction::variance || what_ == Reduction::any ? 0.0f
             : is_bit                                                                 ? 1.0f
             : is_largest(what_)                                                      ? -infinity
                                                                                      : infinity;
        b_ = 0.0f;
        n_ = is_argument(what_) ? ~0u : 0u;
    }

    /// A vector of elements, of which the first has that index. Equal ones have no variance: their mean is exact.
    template <int N>
    void add(const Lanes<N>& lanes, const auto& index) {
        if (what_ == Reduction::variance) return merge(of_vector<N>(lanes));
        if (is_sum(what_)) {
            F sum = term(value(lanes[0]));
            for (std::size_t k = 1; k < N; ++k)
                sum = what_ == Reduction::norm2 ? value(fma(value(lanes[k]), value(lanes[k]), sum))
                                                : value(sum + value(lanes[k]));
            a_ += sum;
            return;
        }
        for (std::size_t k = 0; k < N; ++k)
            merge(Reduced(what_, term(value(lanes[k])), value(f32(0.0f)), value(index + std::uint32_t(k))));
    }
    void merge(const Reduced& other) {
        const F a = value(a_), more = value(other.a_);
        if (is_sum(what_)) {
            a_ = a + more;
        } else if (what_ == Reduction::variance) {
            merge_moments(other);
        } else {
            const auto takes = value(is_better(more, a) | (is_equal(more, a) & (other.n_ < n_)));
            a_ = select(takes, more, a);
            if (is_argument(what_)) n_ = select(takes, value(other.n_), value(n_));
        }
    }
    /// With those of the other lanes of the warp.
    void merge_warp() {
        for (unsigned distance = 16; distance > 0; distance /= 2)
            merge(Reduced(what_, value(shuffle_xor(a_, distance)), value(shuffle_xor(b_, distance)),
                          value(shuffle_xor(n_, distance))));
    }

    const f32& a() const { return a_; }
    const f32& b() const { return b_; }
    const u32& n() const { return n_; }
    u32& n() { return n_; }

    /// The result, for so many elements.
    F result(const auto& elements, bool unbiased) const {
        switch (what_) {
            case Reduction::mean: return value(a_ / cast<f32>(elements));
            case Reduction::norm2: return value(sqrt(a_));
            case Reduction::variance: return value(b_ / (unbiased ? cast<f32>(elements) - 1.0f : cast<f32>(elements)));
            default: return value(a_);
        }
    }

private:
    /// What an element adds.
    F term(const F& x) const {
        if (what_ == Reduction::norm2) return value(x * x);
        if (what_ == Reduction::any || what_ == Reduction::all) return value(select(x == 0.0f, 0.0f, 1.0f));
        return x;
    }
    template <int N>
    Reduced of_vector(const Lanes<N>& lanes) const {
        const auto sum_of = [](auto&& term) {
            std::vector<F> terms;
            for (std::size_t k = 0; k < N; ++k) terms.push_back(term(k));
            for (std::size_t step = 1; step < N; step *= 2)
                for (std::size_t k = 0; k + step < N; k += 2 * step) terms[k] = value(terms[k] + terms[k + step]);
            return terms[0];
        };
        const F mean = sum_of([&](std::size_t k) { return value(lanes[k] * (1.0f / N)); });
        const F squares = sum_of([&](std::size_t k) {
            const F d = value(value(lanes[k]) - mean);
            return value(d * d);
        });
        return {what_, mean, squares, value(u32(std::uint32_t(N)))};
    }
    /// Source: Chan, Golub, LeVeque, "Updating Formulae and a Pairwise Algorithm for Computing Sample Variances".
    void merge_moments(const Reduced& other) {
        const U all = value(n_ + other.n_);
        const F share = value(select(all == 0u, 0.0f, cast<f32>(other.n_) / cast<f32>(all)));
        const F distance = value(other.a_ - a_), step = value(distance * share);
        // Where one side has nothing, its mean is no number to take a distance from.
        const F between = value(distance * step * cast<f32>(n_));
        b_ = b_ + other.b_ + select((n_ == 0u) | (other.n_ == 0u), 0.0f, between);
        a_ = select(n_ == 0u, other.a_, a_ + step);
        n_ = all;
    }

    Reduction what_;
    f32 a_, b_;
    u32 n_;
};

using Field = std::uint32_t ReductionPlaces::*;
constexpr Field kept_extents[] = {&ReductionPlaces::kept0, &ReductionPlaces::kept1, &ReductionPlaces::kept2};
constexpr Field x_strides[] = {&ReductionPlaces::x0, &ReductionPlaces::x1, &ReductionPlaces::x2, &ReductionPlaces::x3};
constexpr Field y_strides[] = {&ReductionPlaces::y0, &ReductionPlaces::y1, &ReductionPlaces::y2, &ReductionPlaces::y3};
constexpr Field reduced_extents[] = {&ReductionPlaces::reduced0, &ReductionPlaces::reduced1, &ReductionPlaces::reduced2,
                                     &ReductionPlaces::reduced3};
constexpr Field r_strides[] = {&ReductionPlaces::r0, &ReductionPlaces::r1, &ReductionPlaces::r2, &ReductionPlaces::r3,
                               &ReductionPlaces::r4};

/// The place of a number that counts along dimensions, of which the last needs no extent.
template <std::size_t n>
U place_of(const Places& places, const auto& number, const Field (&extents)[n], const Field (&strides)[n + 1]) {
    u32 rest = number, at = 0;
    for (std::size_t d = 0; d < n; ++d) {
        const U extent = value(places[extents[d]]), next = value(rest / extent);
        at += (rest - next * extent) * places[strides[d]];
        rest = next;
    }
    return value(at + rest * places[strides[n]]);
}

/// Where a vector of N elements is, which go along the first dimension.
template <int N>
U place_of_vector(const Places& places, const auto& number, bool one_dimension) {
    const auto element = value(number * std::uint32_t(N));
    if (one_dimension) return value(element * places[&ReductionPlaces::r0]);
    return place_of(places, element, reduced_extents, r_strides);
}

/// What a kernel writes.
template <class Y>
struct ReductionOutputs {
    const ReductionKernel& is;
    const Places& places;
    const Optional<Out<Y>>& y;
    const Optional<Out<float>>&a, &b;
    const Optional<Out<std::uint32_t>>& n;

    void store(const Reduced& of, const auto& result, const auto& share) const {
        if (is.in_shares) {
            const auto at = value(share * places[&ReductionPlaces::results] + result);
            (*a)[at] = of.a();
            if (b) (*b)[at] = of.b();
            if (n) (*n)[at] = of.n();
            return;
        }
        const auto at = place_of(places, result, kept_extents, y_strides);
        if constexpr (std::is_same_v<Y, std::uint32_t>)
            (*y)[at] = of.n();
        else if constexpr (std::is_same_v<Y, std::uint8_t>)
            (*y)[at] = cast<u8>(cast<u32>(of.a()));
        else
            (*y)[at] = cast<Y>(of.result(value(places[&ReductionPlaces::elements]), is.unbiased));
    }
};

/// Combines what the warps of a block have of so many results each.
template <std::uint32_t results>
void merge_warps(Reduced& of, Reduction what) {
    constexpr std::uint32_t warps = ReductionKernel::block / 32;
    Shared<float, warps, results> a, b;
    Shared<std::uint32_t, warps, results> n;
    const auto lane = value(lane_id() % results);
    if_(lane_id() < results, [&] {
        a[warp_id(), lane] = of.a();
        b[warp_id(), lane] = of.b();
        n[warp_id(), lane] = of.n();
    });
    sync_block();
    of.clear();
    for (std::uint32_t warp = 0; warp < warps; ++warp)
        of.merge(Reduced(what, value(f32(a[warp, lane])), value(f32(b[warp, lane])), value(u32(n[warp, lane]))));
}

/// A thread's part of the elements of a result.
template <class T>
void add_elements(Reduced& of, const ReductionKernel& is, const Places& places, const In<T>& x, const U& result,
                  const U& share, const auto& active) {
    using enum ReductionThreads;
    const U base = place_of(places, value(select(active, result, 0u)), kept_extents, x_strides);
    const U begin = is.threads == warp    ? U(value(lane_id()))
                    : is.threads == block ? U(value(thread_id().x))
                                          : U(value(warp_id()));
    const std::uint32_t step = is.threads == warp ? 32 : is.threads == block ? ReductionKernel::block : 8;
    const auto read = [&]<int N>(Width<N>) {
        const auto count = value(places[&ReductionPlaces::elements] / std::uint32_t(N)),
                   shares = value(places[&ReductionPlaces::shares]);
        const auto least = value(count / shares), more = value(count - least * shares);
        const auto first = value(share * least + min(share, more));
        const auto last = value(first + least + select(share < more, 1u, 0u));
        for (auto i : range(value(first + begin), value(select(active, last, 0u)), step)) {
            const auto at = value((base + place_of_vector<N>(places, i, is.one_dimension)) / std::uint32_t(N));
            of.add<N>(load_lanes<N>(x, at), value(i * std::uint32_t(N)));
        }
    };
    if (is.threads == columns) return read(Width<1>{});
    const u32 unit = places[&ReductionPlaces::unit];
    with_width<T>(unit, read);
}

template <class T, class Y>
void reduce_elements(const ReductionKernel& is, const Places& places, const In<T>& x,
                     const ReductionOutputs<Y>& outputs) {
    using enum ReductionThreads;
    require_linear_grid();
    require_threads(ReductionKernel::block);
    const std::uint32_t per_block = is.results_of_block();
    const auto results = value(places[&ReductionPlaces::results]);
    const auto groups = value((results + (per_block - 1u)) / per_block);
    const U share = value(block_id().x / groups), group = value(block_id().x - share * groups);
    const U in_block = is.threads == warp      ? U(value(warp_id()))
                       : is.threads == columns ? U(value(lane_id()))
                                               : U(value(u32(0u)));
    const U result = value(group * per_block + in_block);
    const auto active = value(result < results);
    Reduced of(is.what);
    add_elements(of, is, places, x, result, share, active);
    if (is.threads != columns) of.merge_warp();
    if (is.threads == block) merge_warps<1>(of, is.what);
    if (is.threads == columns) merge_warps<32>(of, is.what);
    const U thread = value(is.threads == warp ? u32(lane_id()) : u32(thread_id().x));
    if_(active & (thread < (is.threads == columns ? 32u : 1u)), [&] { outputs.store(of, result, share); });
}

/// Combines the shares of each result.
template <class Y>
void combine_shares(const ReductionKernel& is, const Places& places, const In<float>& a, const Optional<In<float>>& b,
                    const Optional<In<std::uint32_t>>& n, const ReductionOutputs<Y>& outputs) {
    require_linear_grid();
    require_threads(ReductionKernel::block);
    const auto results = value(places[&ReductionPlaces::results]);
    const U result = value(block_id().x * (ReductionKernel::block / 32) + warp_id());
    const auto active = value(result < results);
    Reduced of(is.what);
    for (auto share :
         range(value(lane_id()), value(select(active, value(places[&ReductionPlaces::shares]), 0u)), 32u)) {
        const auto at = value(share * results + result);
        of.merge(Reduced(is.what, value(f32(a[at])), b ? value(f32((*b)[at])) : value(f32(0.0f)),
                         n ? value(u32((*n)[at])) : value(u32(0u))));
    }
    of.merge_warp();
    if_(active & (lane_id() == 0u), [&] { outputs.store(of, result, value(u32(0u))); });
}

template <class T, class Y>
KernelHandle made(const ReductionKernel& is) {
    const std::string name = is.name();
    const bool b = is.has_second(), n = is.has_count();
    if (is.combines)
        return kernel(name.c_str(), params("a", only_if(b, "b"), only_if(n, "n"), "y", "places"),
                      [is](In<float> a, Optional<In<float>> b, Optional<In<std::uint32_t>> n, Out<Y> y, Places places) {
                          const auto none = Optional<Out<float>>::without("a");
                          const auto no_count = Optional<Out<std::uint32_t>>::without("n");
                          const Optional<Out<Y>> to(y);
                          combine_shares<Y>(is, places, a, b, n, {is, places, to, none, none, no_count});
                      })
            .launch_bounds(ReductionKernel::block)
            .handle();
    return kernel(name.c_str(),
                  params("x", only_if(!is.in_shares, "y"), only_if(is.in_shares, "a"), only_if(is.in_shares && b, "b"),
                         only_if(is.in_shares && n, "n"), "places"),
                  [is](In<T> x, Optional<Out<Y>> y, Optional<Out<float>> a, Optional<Out<float>> b,
                       Optional<Out<std::uint32_t>> n, Places places) {
                      reduce_elements<T, Y>(is, places, x, {is, places, y, a, b, n});
                  })
        .launch_bounds(ReductionKernel::block)
        .handle();
}
template <class T>
KernelHandle of_type(const ReductionKernel& is) {
    return is_argument(is.what) ? made<T, std::uint32_t>(is) : made<T, T>(is);
}

}  // namespace

std::string ReductionKernel::name() const {
    constexpr std::string_view of_threads[] = {"warp", "block", "columns"};
    return fmt::format("reduce_{}{}_{}{}{}_{}", name_of(what), unbiased ? "_unbiased" : "",
                       combines ? "combine" : of_threads[std::size_t(threads)],
                       one_dimension || combines ? "" : "_dimensions", in_shares ? "_shares" : "", ir::info(x).name);
}

KernelHandle ReductionKernel::make() const {
    switch (x) {
        case ir::Type::U8: return made<std::uint8_t, std::uint8_t>(*this);
        case ir::Type::F16: return of_type<half>(*this);
        case ir::Type::BF16: return of_type<bfloat16>(*this);
        default: return of_type<float>(*this);
    }
}

const KernelHandle& ReductionKernel::handle() const { return Kernels<ReductionKernel>::of(*this); }

}  // namespace ikat::stdlib
