// SPDX-License-Identifier: Apache-2.0
// Models of tensors of all sizes, and steps of optimisers for them, for tests.
#pragma once
#include <cmath>
#include <cstring>
#include <memory>
#include <utility>

#include "stdlib/optimise/optimise.hpp"
#include "stdlib/reference/optimise.hpp"
#include "tests/catch.hpp"
#include "tests/device.hpp"
#include "tests/differential/stdlib/case.hpp"

namespace ikat::test::optimise {

using namespace stdlib;
using runtime::Buffer;
using runtime::Device;
inline constexpr Optimiser all_kinds[] = {Optimiser::Sgd, Optimiser::Nesterov, Optimiser::Adam, Optimiser::AdamW,
                                          Optimiser::Lion};
inline constexpr float infinity = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
inline constexpr float rate = 0.01f, beta1 = 0.9f, beta2 = 0.99f, decay = 0.1f, small = 1e-6f;

/// What the kernels get for a step.
inline stdlib::reference::OptimiserStep step_of(Optimiser kind, std::uint32_t t, float scale) {
    stdlib::reference::OptimiserStep out{double(rate), double(beta1), double(beta2), double(small), double(decay), 1,
                                         double(scale)};
    if (stdlib::is_decoupled(kind)) out.decay = double(float(1 - double(rate) * double(decay)));
    if (!stdlib::has_second_moment(kind)) return out;
    out.rate = double(rate) / (1 - std::pow(double(beta1), t));
    out.root = std::sqrt(1 - std::pow(double(beta2), t));
    return out;
}
inline constexpr double of_corrections = 12 * 0x1p-24;  // log, a product, expm1, a quotient or a root

inline void run_one(Optimiser kind, const runtime::Queue& queue, const TensorView& g, const MutableTensorView& p,
                    const MutableTensorView& m, const MutableTensorView& v, std::uint32_t t, float scale) {
    const stdlib::AdamOptions options{rate, beta1, beta2, small, decay, scale};
    switch (kind) {
        case Optimiser::Sgd: return sgd_momentum(queue, g, p, m, {rate, beta1, decay, false, scale});
        case Optimiser::Nesterov: return sgd_momentum(queue, g, p, m, {rate, beta1, decay, true, scale});
        case Optimiser::Adam: return adam(queue, g, p, m, v, t, options);
        case Optimiser::AdamW: return adamw(queue, g, p, m, v, t, options);
        case Optimiser::Lion: return lion(queue, g, p, m, {rate, beta1, beta2, decay, scale});
    }
}
inline void run_all(Optimiser kind, const runtime::Queue& queue, const stdlib::OptimisedTensors& tensors,
                    const stdlib::StepState& state, float scale = 1) {
    const stdlib::AdamOptions options{rate, beta1, beta2, small, decay, scale};
    switch (kind) {
        case Optimiser::Sgd: return sgd_momentum(queue, tensors, state, {rate, beta1, decay, false, scale});
        case Optimiser::Nesterov: return sgd_momentum(queue, tensors, state, {rate, beta1, decay, true, scale});
        case Optimiser::Adam: return adam(queue, tensors, state, options);
        case Optimiser::AdamW: return adamw(queue, tensors, state, options);
        case Optimiser::Lion: return lion(queue, tensors, state, {rate, beta1, beta2, decay, scale});
    }
}

/// A tensor in buffers, from some element on.
template <class G>
struct Tensor {
    std::uint64_t n, first;
    Buffer<G> g;
    Buffer<float> p, m, v;
    Buffer<bfloat16> copy;

    Tensor(const Device& device, std::uint64_t n, std::uint64_t first, std::uint32_t seed)
        : n(n),
          first(first),
          g(device.upload(random_elements<G>(n + first + 3, seed))),
          p(device.upload(random_elements<float>(n + first + 3, seed + 1))),
          m(device.upload(random_elements<float>(n + first + 3, seed + 2))),
          v(device.upload(random_elements<float>(n + first + 3, seed + 3, 0))),
          copy(device.upload(std::vector<bfloat16>(n + first + 3, bfloat16(7)))) {}

    stdlib::OptimisedTensor row(bool has_copy) {
        stdlib::OptimisedTensor out{g.slice(first, n), p.slice(first, n), m.slice(first, n), v.slice(first, n)};
        if (has_copy) out.copy = copy.slice(first, n);
        return out;
    }
    struct Host {
        std::vector<G> g;
        std::vector<float> p, m, v;
        std::vector<bfloat16> copy;
    };
    Host download() const { return {g.download(), p.download(), m.download(), v.download(), copy.download()}; }
};

template <class T>
bool same_bits(const std::vector<T>& a, const std::vector<T>& b) {
    return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0);
}
template <class H>
bool same_state(const H& a, const H& b) {
    return same_bits(a.p, b.p) && same_bits(a.m, b.m) && same_bits(a.v, b.v) && same_bits(a.copy, b.copy);
}

inline void check_close(float got, const stdlib::reference::Bounded& wanted, std::size_t& wrong) {
    wrong += !(std::abs(double(got) - wanted.value) <= wanted.error);
}

/// Whether a tensor is what a step makes of what it was, and the elements around it are as they were.
template <class G>
void check_step(Optimiser kind, const Tensor<G>& tensor, const typename Tensor<G>::Host& old, std::uint32_t t,
                float scale, bool has_copy) {
    const auto now = tensor.download();
    const auto of = step_of(kind, t, scale);
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < old.p.size(); ++i) {
        if (i < tensor.first || i >= tensor.first + tensor.n) {
            wrong += now.p[i] != old.p[i] || now.m[i] != old.m[i] || now.v[i] != old.v[i] || float(now.copy[i]) != 7;
            continue;
        }
        const auto wanted = stdlib::reference::optimised(kind, of, double(float(old.g[i])), double(old.p[i]),
                                                         double(old.m[i]), double(old.v[i]), of_corrections);
        check_close(now.p[i], wanted.parameter, wrong);
        check_close(now.m[i], wanted.first, wrong);
        check_close(now.v[i], wanted.second, wrong);
        wrong += float(now.copy[i]) != (has_copy ? float(bfloat16(now.p[i])) : 7.0f);
    }
    INFO("optimiser " << int(kind) << ", " << tensor.n << " elements from " << tensor.first);
    CHECK(wrong == 0);
}

template <class G>
using Model = std::vector<std::unique_ptr<Tensor<G>>>;
/// Tensors of all sizes: none, tails, several pieces, some that do not begin where vectors do.
template <class G>
Model<G> make_model(const Device& device, std::uint32_t seed) {
    Model<G> out;
    for (const std::uint64_t n : {0, 1, 3, 4, 5, 1023, 16384, 16385, 40001})
        for (const std::uint64_t first : {0, 3}) {
            if (first != 0 && n > 20000) continue;
            out.push_back(std::make_unique<Tensor<G>>(device, n, first, seed += 10));
        }
    return out;
}
template <class G>
std::vector<stdlib::OptimisedTensor> rows_of(Model<G>& model, bool has_copy) {
    std::vector<stdlib::OptimisedTensor> out;
    for (auto& each : model) out.push_back(each->row(has_copy));
    return out;
}

}  // namespace ikat::test::optimise
