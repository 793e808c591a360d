// SPDX-License-Identifier: Apache-2.0
// What `train_mlp --check` compares: gradients with differences in float64, losses with a twin in NumPy, and bits.
#pragma once
#include "examples/training/central_differences.hpp"
#include "examples/training/mlp_training.hpp"
#include "examples/training/twin.hpp"

namespace ikat::training {

/// The gradients of a batch with central differences of the same network on the host, from the same weights.
///
/// A gradient is a mean over the rows of products of an activation and a gradient of one, which are sums over up to
/// `width` terms, three layers deep: of roundings of 2^-24 one behind the other there are at most rows + 6 width, with
/// 64 for the cross entropy. Errors are in proportion to the terms of the sum, for which their largest mean absolute
/// value stands, and what cancels within a term is taken to be eight times the term at most. tf32 cuts the low 13 bits
/// off both factors of each layer.
inline bool check_gradients(const Settings& settings) {
    const Device device = Device::open({.target = settings.target});
    const Tensors tensors = first_tensors(settings.width, settings.seed);
    Training training(device, settings, tensors);
    const Points batch = training.next_batch();
    Network network(device, settings.width, tensors, settings.step);
    Pass pass(device, settings.batch, settings.width);
    pass.x.upload(batch.at);
    pass.targets.upload(batch.classes);
    network.forward(device, pass);
    network.backward(device, pass);
    const Tensors gradients = network.gradients();

    Mlp host(tensors, settings.width);
    const double roundings = settings.batch + 6.0 * settings.width + 64;
    const double unit = settings.step.on_tensor_cores ? 0x1p-10 * 2 * layers : 0x1p-24 * roundings;
    bool is_right = true;
    for (std::size_t t = 0; t < gradients.size(); ++t) {
        const Slopes slopes = central_differences(host.tensors[t], [&] { return host.losses(batch); });
        const double difference = largest_difference(slopes, gradients[t]);
        const double bound = 8 * unit * slopes.largest + 1e-9;  // that of the differences
        is_right &= report(difference <= bound, "gradient of " + tensor_name(t), difference, bound);
    }
    return is_right;
}

/// The first losses of a training on that device, and the batches.
inline std::vector<double> first_losses(const Device& device, const Settings& settings, std::uint32_t steps) {
    Training training(device, settings, first_tensors(settings.width, settings.seed));
    std::vector<double> out;
    while (out.size() < steps) out.push_back(training.step());
    return out;
}

/// What the twin needs, in a file: the weights, and the points and classes of so many steps.
inline void write_for_twin(const std::filesystem::path& path, const Device& device, const Settings& settings,
                           std::uint32_t steps) {
    Training training(device, settings, first_tensors(settings.width, settings.seed));
    safetensors::Tensors file = training.file();
    std::vector<float> points;
    safetensors::Tensor classes{"classes", ir::Type::I32, {steps, settings.batch}};
    for (std::uint32_t s = 0; s < steps; ++s) {
        const Points batch = training.next_batch();
        points.insert(points.end(), batch.at.begin(), batch.at.end());
        const auto bytes = std::as_bytes(std::span(batch.classes));
        classes.bytes.insert(classes.bytes.end(), bytes.begin(), bytes.end());
    }
    file.tensors.push_back(safetensors::tensor("points", {steps, settings.batch, inputs}, points));
    file.tensors.push_back(std::move(classes));
    const auto number = [](float x) { return text_of(double(x)); };
    file.metadata["learning_rate"] = number(settings.step.learning_rate);
    file.metadata["weight_decay"] = number(settings.step.weight_decay);
    file.metadata["max_norm"] = number(settings.step.max_norm);
    safetensors::write(path, file);
}

/// Bounds that are stated, not derived: Adam divides a gradient by its size, so that of one that is nearly 0 a rounding
/// changes a weight as much as a learning rate. Such weights do little, and twenty steps change a loss by less than
/// 1e-5; with tf32, whose factors are cut to 11 bits, by less than 3e-2.
inline bool check_losses(const Settings& settings, const std::string& python, const std::string& script) {
    constexpr std::uint32_t steps = 20;
    const Device device = Device::open({.target = settings.target});
    return check_twin(python, script, first_losses(device, settings, steps),
                      settings.step.on_tensor_cores ? 3e-2 : 1e-5,
                      [&](const std::filesystem::path& path) { write_for_twin(path, device, settings, steps); });
}

/// Prints what has been compared; gives whether all is right.
inline bool check(const Settings& settings, const std::string& python, const std::string& script) {
    const bool gradients = check_gradients(settings), twin = check_losses(settings, python, script),
               bits = check_bits(settings.target, [&](const Device&device, bool as_graph) {
                   Settings its = settings;
                   its.as_graph = as_graph;
                   return first_losses(device, its, 5);
               });
    return gradients && twin && bits;
}

}  // namespace ikat::training
