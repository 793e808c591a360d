// SPDX-License-Identifier: Apache-2.0
// One update of some elements by each optimiser, for kernels that get arrays as parameters and for those that read
// where arrays are from a table. All is in f32; each operation below is rounded, fma once.
//
//     g = fma(decay, p, scale g)                       SGD and Adam: decay is the weight decay
//     SGD      m = fma(beta1, m, g)                    p = fma(-rate, m, p)
//     Nesterov m = fma(beta1, m, g)                    p = fma(-rate, fma(beta1, m, g), p)
//     Adam     m = fma(beta1, m, (1 - beta1) g)        v = fma(beta2, v, ((1 - beta2) g) g)
//              p = fma(-rate, m / (sqrt(v) / root + epsilon), p)
//     AdamW    the same with g = scale g, and p = decay p before: decay is 1 - learning rate * weight decay
//     Lion     u = sign(fma(beta1, m, (1 - beta1) g))  p = fma(-rate, u, decay p)    m = fma(beta2, m, (1 - beta2) g)
#pragma once
#include "dsl/kernel/inline.hpp"
#include "stdlib/optimise/optimise.hpp"
#include "stdlib/tile/vectors.hpp"

namespace ikat::stdlib {

/// Of one launch. For Adam and AdamW rate is the learning rate / (1 - beta1^step), and root = sqrt(1 - beta2^step).
struct UpdateNumbers {
    Leaf<float> rate, beta1, beta2, epsilon, decay, root, scale;
};

/// In place of an array that there is not.
struct NoArray {};

/// Memory of a device whose address a kernel has as a number. Nothing says how many elements there are.
template <class E>
class AddressedArray {
public:
    explicit AddressedArray(const Leaf<std::uint64_t>& address) : address_(global(address)) {}

    /// Of vector i of N elements.
    template <int N>
    auto place(const auto& i) const {
        return value(address_ + cast<u64>(i) * std::uint64_t(N * sizeof(E)));
    }

private:
    static Leaf<std::uint64_t> global(const Leaf<std::uint64_t>& generic) {
        u64 address = std::uint64_t(0);
        inline_ptx("cvta.to.global.u64 {0}, {1};", out(address), in(generic));
        return value(address);
    }

    Leaf<std::uint64_t> address_;
};

template <int N, class E>
Lanes<N> load_lanes(const AddressedArray<E>& x, const auto& i) {
    static_assert(N == 1 || N == 4, "vectors of four elements");
    const auto at = x.template place<N>(i);
    constexpr bool is_wide = sizeof(E) == 4;
    Var<E> a = E(0);
    if constexpr (N == 1) {
        inline_ptx(is_wide ? "ld.global.b32 {0}, [{1}];" : "ld.global.b16 {0}, [{1}];", out(a), in(at));
        return one_lane(value(cast<f32>(a)));
    } else {
        Var<E> b = E(0), c = E(0), d = E(0);
        inline_ptx(
            is_wide ? "ld.global.v4.b32 {{0}, {1}, {2}, {3}}, [{4}];" : "ld.global.v4.b16 {{0}, {1}, {2}, {3}}, [{4}];",
            out(a), out(b), out(c), out(d), in(at));
        return IncomingLanes<float, LaneShape<4>>(value(cast<f32>(a)), value(cast<f32>(b)), value(cast<f32>(c)),
                                                  value(cast<f32>(d)))
            .values();
    }
}

template <class E, Lanewise<float> V>
void store_lanes(const AddressedArray<E>& y, const auto& i, const V& v) {
    constexpr int N = V::lane_shape::lanes;
    const auto at = y.template place<N>(i);
    constexpr bool is_wide = sizeof(E) == 4;
    const auto rounded = [&](std::size_t k) { return in(value(cast<E>(v[k]))); };
    if constexpr (N == 1)
        inline_ptx(is_wide ? "st.global.b32 [{0}], {1};" : "st.global.b16 [{0}], {1};", in(at), rounded(0));
    else
        inline_ptx(
            is_wide ? "st.global.v4.b32 [{0}], {{1}, {2}, {3}, {4}};" : "st.global.v4.b16 [{0}], {{1}, {2}, {3}, {4}};",
            in(at), rounded(0), rounded(1), rounded(2), rounded(3));
}

namespace detail {

/// The gradient that momentum is made of: scaled, and with the weight decay where it is not decoupled.
auto effective_gradient(Optimiser kind, const UpdateNumbers& of, const auto& gradient, const auto& parameter) {
    return each_lane(
        [&](const auto& g, const auto& p) {
            const auto scaled = value(of.scale * g);
            return is_decoupled(kind) ? scaled : value(fma(of.decay, p, scaled));
        },
        gradient, parameter);
}

/// beta m + (1 - beta) g
auto moving_average(const auto& beta, const auto& m, const auto& g) {
    return value(fma(beta, m, value((1.0f - beta) * g)));
}

// The new parameters; what is kept of the gradients is stored.
template <int N>
auto update_adam(Optimiser kind, const auto& first, const auto& second, const auto& at, const auto& g, const auto& p,
                 const UpdateNumbers& of) {
    const auto m = each_lane([&](const auto& old, const auto& now) { return moving_average(of.beta1, old, now); },
                             load_lanes<N>(first, at), g);
    const auto v =
        each_lane([&](const auto& old,
                      const auto& now) { return value(fma(of.beta2, old, value((1.0f - of.beta2) * now) * now)); },
                  load_lanes<N>(second, at), g);
    store_lanes(first, at, m);
    store_lanes(second, at, v);
    return each_lane(
        [&](const auto& old, const auto& mean, const auto& square) {
            const auto kept = is_decoupled(kind) ? value(of.decay * old) : value(old);
            return value(fma(-of.rate, mean / (sqrt(square) / of.root + of.epsilon), kept));
        },
        p, m, v);
}
template <int N>
auto update_lion(const auto& first, const auto& at, const auto& g, const auto& p, const UpdateNumbers& of) {
    const auto old = load_lanes<N>(first, at);
    store_lanes(first, at,
                each_lane([&](const auto& m, const auto& now) { return moving_average(of.beta2, m, now); }, old, g));
    return each_lane(
        [&](const auto& m, const auto& weight, const auto& now) {
            const auto c = moving_average(of.beta1, m, now);
            const auto sign = value(select(c > 0.0f, 1.0f, select(c < 0.0f, -1.0f, c)));
            return value(fma(-of.rate, sign, value(of.decay * weight)));
        },
        old, p, g);
}
template <int N>
auto update_sgd(Optimiser kind, const auto& first, const auto& at, const auto& g, const auto& p,
                const UpdateNumbers& of) {
    const auto m = each_lane([&](const auto& old, const auto& now) { return value(fma(of.beta1, old, now)); },
                             load_lanes<N>(first, at), g);
    store_lanes(first, at, m);
    return each_lane(
        [&](const auto& old, const auto& momentum, const auto& now) {
            const auto step = kind == Optimiser::Nesterov ? value(fma(of.beta1, momentum, now)) : value(momentum);
            return value(fma(-of.rate, step, old));
        },
        p, m, g);
}

}  // namespace detail

/// Vector `at` of N elements of each array. `second` may be NoArray for optimisers without one; `copy` gets the new
/// parameters, too, rounded to its type, unless it is NoArray.
template <int N, class Second, class Copy>
void update_lanes(Optimiser kind, const auto& gradient, const auto& parameter, const auto& first, const Second& second,
                  const Copy& copy, const auto& at, const UpdateNumbers& of) {
    const auto old = load_lanes<N>(parameter, at);
    const auto g = detail::effective_gradient(kind, of, load_lanes<N>(gradient, at), old);
    const auto updated = [&] {
        if constexpr (!std::is_same_v<Second, NoArray>)
            if (has_second_moment(kind)) return detail::update_adam<N>(kind, first, second, at, g, old, of);
        if (kind == Optimiser::Lion) return detail::update_lion<N>(first, at, g, old, of);
        return detail::update_sgd<N>(kind, first, at, g, old, of);
    }();
    store_lanes(parameter, at, updated);
    if constexpr (!std::is_same_v<Copy, NoArray>) store_lanes(copy, at, updated);
}

}  // namespace ikat::stdlib
