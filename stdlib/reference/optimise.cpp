// SPDX-License-Identifier: Apache-2.0
#include "stdlib/reference/optimise.hpp"

#include <algorithm>
#include <cmath>

#include "stdlib/spec/expected.hpp"

namespace ikat::stdlib::reference {
namespace {

constexpr double unit = 0x1p-24, smallest = 0x1p-149;  // of f32: half an ulp of 1, the smallest number

/// a b and a + b in f32: what the operands are off by, and one rounding.
Bounded rounded(double value, double error) { return {value, error + unit * (std::abs(value) + error) + smallest}; }
Bounded operator*(const Bounded& a, const Bounded& b) {
    return rounded(a.value * b.value, std::abs(a.value) * b.error + std::abs(b.value) * a.error + a.error * b.error);
}
/// fma(a, b, c)
Bounded fused(const Bounded& a, const Bounded& b, const Bounded& c) {
    return rounded(a.value * b.value + c.value,
                   std::abs(a.value) * b.error + std::abs(b.value) * a.error + a.error * b.error + c.error);
}
/// 1 - x, which is exact for x from 0.5 to 1.
Bounded complement(double x) { return {1 - x, x >= 0.5 && x <= 1 ? 0 : unit * std::abs(1 - x)}; }

Bounded average(double beta, const Bounded& m, const Bounded& g) { return fused({beta}, m, complement(beta) * g); }

/// m / (sqrt(v) / root + epsilon), with Adam's v, which is not negative.
Bounded adam_step(const OptimiserStep& of, const Bounded& m, const Bounded& v, double relative) {
    const double sqrt = std::sqrt(v.value);
    const double sqrt_error = v.value > v.error ? v.error / (sqrt + std::sqrt(v.value - v.error)) : std::sqrt(v.error);
    const Bounded quotient = rounded(
        sqrt / of.root, ((sqrt_error + unit * sqrt) / (1 - relative) + relative * sqrt * 2) / std::abs(of.root));
    const Bounded below = rounded(quotient.value + of.epsilon, quotient.error);
    const double least = std::max(below.value - below.error, smallest);
    return rounded(m.value / below.value, m.error / least + std::abs(m.value) * below.error / (least * below.value));
}

}  // namespace

OptimisedElement optimised(Optimiser kind, const OptimiserStep& of, double gradient, double parameter, double first,
                           double second, double relative) {
    const Bounded old{parameter}, scaled = Bounded{of.scale} * Bounded{gradient};
    const Bounded g = is_decoupled(kind) ? scaled : fused({of.decay}, old, scaled);
    const Bounded kept = is_decoupled(kind) ? Bounded{of.decay} * old : old;
    const Bounded rate{-of.rate, std::abs(of.rate) * relative};
    OptimisedElement out{.parameter = {}, .first = {}, .second = {second, 0}};
    if (kind == Optimiser::Lion) {
        const Bounded c = average(of.beta1, {first}, g);
        out.first = average(of.beta2, {first}, g);
        const double sign = c.value > 0 ? 1 : c.value < 0 ? -1 : c.value;
        // Where rounding decides about the sign, either is right.
        out.parameter = fused(rate, {sign, std::abs(c.value) <= c.error && c.value != 0 ? 2.0 : 0.0}, kept);
    } else if (has_second_moment(kind)) {
        out.first = average(of.beta1, {first}, g);
        out.second = fused({of.beta2}, {second}, complement(of.beta2) * g * g);
        out.parameter = fused(rate, adam_step(of, out.first, out.second, relative), kept);
    } else {
        out.first = fused({of.beta1}, {first}, g);
        const Bounded step = kind == Optimiser::Nesterov ? fused({of.beta1}, out.first, g) : out.first;
        out.parameter = fused(rate, step, kept);
    }
    return out;
}

void optimiser(Example& e) {
    const bool is_adam = e.name().starts_with("adam"), is_lion = e.name().starts_with("lion");
    const Optimiser kind = e.name().starts_with("adamw")          ? Optimiser::AdamW
                           : is_adam                              ? Optimiser::Adam
                           : is_lion                              ? Optimiser::Lion
                           : e.name().starts_with("sgd_nesterov") ? Optimiser::Nesterov
                                                                  : Optimiser::Sgd;
    const std::vector<float> g = e["gradient"], p = e["parameter"], v = e["second"];
    const std::string_view name_of_first = is_adam ? "first" : is_lion ? "momentum" : "velocity";
    const std::vector<float> m = e[name_of_first];
    OptimiserStep of{.rate = double(e.real("rate")),
                     .beta1 = double(e.real("beta1")),
                     .decay = double(e.real("decay")),
                     .scale = double(e.real("scale"))};
    if (is_adam || is_lion) of.beta2 = double(e.real("beta2"));
    if (is_adam) of.epsilon = double(e.real("epsilon")), of.root = double(e.real("root"));
    std::vector<double> wanted[3], error[3];
    for (std::size_t i = 0; i < g.size(); ++i) {
        const OptimisedElement x =
            optimised(kind, of, double(g[i]), double(p[i]), double(m[i]), is_adam ? double(v[i]) : 0);
        const Bounded all[] = {x.parameter, x.first, x.second};
        for (std::size_t k = 0; k < 3; ++k) wanted[k].push_back(all[k].value), error[k].push_back(all[k].error);
    }
    if (g.empty())
        for (auto& each : error) each = {0};
    e.expect("parameter", wanted[0], 0, error[0]);
    e.expect(name_of_first, wanted[1], 0, error[1]);
    if (is_adam) e.expect("second", wanted[2], 0, error[2]);
}

void clip_by_norm(Example& e) {
    const double norm = double(e["norm"][0]), of_loss = double(e["loss_scale"][0]);
    const double clip = std::min(1.0, double(e.real("max_norm")) / (norm / of_loss + double(1e-6f)));
    const bool is_good = std::isfinite(norm) && std::isfinite(float(clip / of_loss));
    e.expect("scale", {is_good ? clip / of_loss : double(NAN)}, 5 * unit);
    e.expect("step", {double(e.words("step")[0] + is_good)});
}

void loss_scale_update(Example& e) {
    const bool is_good = std::isfinite(e["scale"][0]);
    const float old = e["loss_scale"][0], grown = old * e.real("growth");
    const std::uint32_t steps = e.words("good_steps")[0] + 1;
    const bool is_full = steps >= e.number("interval");
    e.expect("loss_scale", {double(!is_good                          ? old * e.real("backoff")
                                   : is_full && std::isfinite(grown) ? grown
                                                                     : old)});
    e.expect("good_steps", {is_good && !is_full ? double(steps) : 0});
}

}  // namespace ikat::stdlib::reference
