// SPDX-License-Identifier: Apache-2.0
// A network of two hidden layers on the host, in float64: what the device computes is compared with it.
//
//     h1 = relu(x W1 + b1), h2 = relu(h1 W2 + b2), logits = h2 W3 + b3
#pragma once
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "examples/training/two_moons.hpp"

namespace ikat::training {

inline constexpr std::uint32_t inputs = 2, classes = 2, layers = 3;

/// How many numbers go into a layer and come out of it.
inline std::pair<std::uint32_t, std::uint32_t> extents(std::uint32_t layer, std::uint32_t width) {
    return {layer == 0 ? inputs : width, layer + 1 == layers ? classes : width};
}

/// The weights of each layer, in x out by rows, and then its biases.
using Tensors = std::array<std::vector<float>, 2 * layers>;
inline std::string tensor_name(std::size_t tensor) {
    return std::to_string(tensor / 2 + 1) + (tensor % 2 ? ".bias" : ".weight");
}

/// Weights to begin with: between ±sqrt(6 / in), biases of 0.
inline Tensors first_tensors(std::uint32_t width, std::uint32_t seed) {
    Uniform random(seed);
    Tensors out;
    for (std::uint32_t l = 0; l < layers; ++l) {
        const auto [in, made] = extents(l, width);
        for (std::uint32_t i = 0; i < in * made; ++i)
            out[2 * l].push_back(float((2 * random.next() - 1) * std::sqrt(6.0 / in)));
        out[2 * l + 1].assign(made, 0);
    }
    return out;
}

class Mlp {
public:
    Mlp(const Tensors& tensors, std::uint32_t width) : width_(width) {
        for (std::size_t t = 0; t < tensors.size(); ++t) this->tensors[t].assign(tensors[t].begin(), tensors[t].end());
    }

    /// The cross entropy of each point.
    std::vector<double> losses(const Points& points) const {
        std::vector<double> out;
        for (std::uint32_t p = 0; p < points.count(); ++p) {
            std::vector<double> x{points.at[2 * p], points.at[2 * p + 1]};
            for (std::uint32_t l = 0; l < layers; ++l) x = layer(l, x);
            const double largest = std::max(x[0], x[1]);
            const double sum = std::exp(x[0] - largest) + std::exp(x[1] - largest);
            out.push_back(std::log(sum) + largest - x[std::size_t(points.classes[p])]);
        }
        return out;
    }

    std::array<std::vector<double>, 2 * layers> tensors;

private:
    std::vector<double> layer(std::uint32_t l, const std::vector<double>& x) const {
        const auto [in, made] = extents(l, width_);
        std::vector<double> y = tensors[2 * l + 1];
        for (std::uint32_t i = 0; i < in; ++i)
            for (std::uint32_t j = 0; j < made; ++j) y[j] += x[i] * tensors[2 * l][i * made + j];
        if (l + 1 < layers)
            for (double& element : y) element = std::max(element, 0.0);
        return y;
    }

    std::uint32_t width_;
};

}  // namespace ikat::training
