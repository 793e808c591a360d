// SPDX-License-Identifier: Apache-2.0
// What train_gpt --check does: gradients against central differences in double precision.
#pragma once
#include <cstdio>
#include <random>

#include "examples/training/gpt_in_double.hpp"
#include "examples/training/twin.hpp"

namespace ikat::training {

/// The slope of the loss along a direction for one tensor of parameters.
inline double slope_along(GptInDouble& model, const std::string& name, const std::vector<double>& direction) {
    constexpr double step = 1e-4;
    std::vector<double>& values = model.parameters.at(name);
    const std::vector<double> old = values;
    const auto loss_at = [&](double distance) {
        for (std::size_t i = 0; i < values.size(); ++i) values[i] = old[i] + distance * direction[i];
        return model.loss();
    };
    const double slope = (loss_at(step) - loss_at(-step)) / (2 * step);
    values = old;
    return slope;
}

/// Whether a gradient, whose products and sums were rounded to bf16, has these slopes: along itself, which is its
/// length, and along random directions of length 1, of which each sees 1 / sqrt(n) of an error.
inline bool check_gradient(GptInDouble& model, Parameter& p, std::uint32_t seed) {
    constexpr double bound = 0.01;
    const std::vector<float> gradient = p.gradient.download();
    double length = 0;
    for (const float g : gradient) length += double(g) * double(g);
    length = std::sqrt(length);
    const auto n = double(gradient.size());
    std::vector<double> direction;
    for (const float g : gradient) direction.push_back(double(g) / length);
    double worst = std::abs(slope_along(model, p.name, direction) - length) / length;
    std::mt19937 random(seed);
    for (int i = 0; i < 4; ++i) {
        double expected = 0;
        for (std::size_t k = 0; k < gradient.size(); ++k) {
            direction[k] = (random() & 1 ? 1 : -1) / std::sqrt(n);
            expected += direction[k] * double(gradient[k]);
        }
        // Four standard deviations of an error of that length in a random direction.
        worst = std::max(worst, std::abs(slope_along(model, p.name, direction) - expected) / length * std::sqrt(n) / 4);
    }
    return report(worst <= bound, "gradient of " + p.name, worst, bound);
}

/// Checks the gradients of all tensors of a small network with random text.
inline bool check_gradients(const Device& device) {
    const GptShape shape{.vocabulary = 11, .heads = 2, .layers = 2, .context = 12, .dropout = 0.2f};
    GptParameters parameters(device, shape, 5);
    Gpt network(device, parameters, 2);
    std::mt19937 random(3);
    GptInDouble model{shape, {}, {}};
    for (std::size_t i = 0; i < network.ids.size(); ++i)
        model.ids.push_back(random() % shape.vocabulary), model.targets.push_back(random() % shape.vocabulary);
    network.ids.upload(model.ids), network.targets.upload(model.targets);
    for (std::uint32_t i = 0; i < 2 * shape.layers; ++i) {
        const std::vector<float> mask = network.mask(device, i / 2, i % 2);
        model.masks.emplace_back(mask.begin(), mask.end());
    }
    for (Parameter* p : parameters.all()) {
        const std::vector<bfloat16> copy = p->copy.download();
        for (const bfloat16 v : copy) model.parameters[p->name].push_back(double(float(v)));
    }
    network.backward(device);
    const double loss = double(network.loss.download()[0]), wanted = model.loss();
    bool is_right = report(std::abs(loss - wanted) <= 0.01 * wanted, "loss", std::abs(loss - wanted), 0.01 * wanted);
    std::uint32_t seed = 0;
    for (Parameter* p : parameters.all()) is_right = check_gradient(model, *p, ++seed) && is_right;
    return is_right;
}

}  // namespace ikat::training
