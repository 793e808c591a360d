// SPDX-License-Identifier: Apache-2.0
// What train_gpt --check does: gradients against central differences in double precision, and the first losses of a
// training against a twin in NumPy.
#pragma once
#include <ikat/safetensors.hpp>

#include <cstdio>
#include <filesystem>
#include <random>

#include "examples/training/gpt_in_double.hpp"

namespace ikat::training {

/// What AdamW is given, here and in the twin.
struct Optimised {
    static constexpr float max_norm = 1, beta1 = 0.9f, beta2 = 0.99f, epsilon = 1e-8f, weight_decay = 0.01f;
    static stdlib::AdamOptions options(float learning_rate) {
        return {.learning_rate = learning_rate,
                .beta1 = beta1,
                .beta2 = beta2,
                .epsilon = epsilon,
                .weight_decay = weight_decay};
    }
};

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
    std::printf("  %-18s length of the gradient %.3e, error %.4f of it%s\n", p.name.c_str(), length, worst,
                worst <= bound ? "" : "  <- too large");
    return worst <= bound;
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
    std::printf("loss %.5f, in double precision %.5f\n", loss, wanted);
    bool is_right = std::abs(loss - wanted) <= 0.01 * wanted;
    std::uint32_t seed = 0;
    for (Parameter* p : parameters.all()) is_right = check_gradient(model, *p, ++seed) && is_right;
    return is_right;
}

/// What the twin is given: the parameters at the start, the batches, and the numbers of the optimiser. Prints how far
/// apart the losses are. True without Python or NumPy, which it says.
inline bool check_twin(const std::string& script, safetensors::Tensors start, const std::vector<float>& losses) {
    constexpr double bound = 0.01;
    const std::filesystem::path file = std::filesystem::temp_directory_path() /
                                       ("ikat-twin-" + std::to_string(std::random_device{}()) + ".safetensors");
    safetensors::write(file, start);
    const std::string command = "python3 '" + script + "' '" + file.string() + "'";
    std::FILE* const twin = popen(command.c_str(), "r");
    std::vector<double> others;
    double loss = 0;
    while (twin && std::fscanf(twin, "%lf", &loss) == 1) others.push_back(loss);
    const int status = twin ? pclose(twin) : -1;
    std::filesystem::remove(file);
    if (WIFEXITED(status) && (WEXITSTATUS(status) == 77 || WEXITSTATUS(status) == 127)) {
        std::printf("the twin was not run: it needs python3 with NumPy\n");
        return true;
    }
    if (status != 0 || others.size() != losses.size()) {
        std::printf("the twin failed\n");
        return false;
    }
    double worst = 0;
    for (std::size_t i = 0; i < losses.size(); ++i) worst = std::max(worst, std::abs(double(losses[i]) - others[i]));
    std::printf("the first %zu losses are within %.4f of those of the twin, from %.4f to %.4f\n", losses.size(), worst,
                others.front(), others.back());
    return worst <= bound;
}

}  // namespace ikat::training
