// SPDX-License-Identifier: Apache-2.0
// The loss of the network of gpt.hpp in double precision, by plain loops: what its gradients are checked against.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <numbers>
#include <string>
#include <vector>

#include "examples/training/gpt.hpp"

namespace ikat::training {

class GptInDouble {
public:
    using Numbers = std::vector<double>;

    GptShape shape;
    std::vector<std::uint32_t> ids, targets;
    std::map<std::string, Numbers> parameters{};
    std::vector<Numbers> masks{};  // two for each layer; none if nothing is dropped

    /// The mean over the tokens, of sequences of shape.context.
    double loss() const {
        Numbers x;
        for (const std::uint32_t id : ids) append(x, row(of("embedding"), id));
        for (std::uint32_t i = 0; i < shape.layers; ++i) {
            const auto name = [&](const char* part) { return "layers." + std::to_string(i) + "." + part; };
            Numbers qkv = product(norm(x, of(name("norm_1"))), of(name("qkv")), 3 * shape.width());
            add(x, product(attention(qkv), of(name("out")), shape.width()), 2 * i);
            Numbers raised = product(norm(x, of(name("norm_2"))), of(name("up")), shape.hidden());
            for (double& v : raised) v *= 0.5 * (1 + std::erf(v / std::numbers::sqrt2));
            add(x, product(raised, of(name("down")), shape.width()), 2 * i + 1);
        }
        x = norm(x, of("norm"));
        double total = 0;
        for (std::size_t t = 0; t < ids.size(); ++t) total += loss_of(row(x, t), targets[t]);
        return total / double(ids.size());
    }

private:
    const Numbers& of(const std::string& name) const { return parameters.at(name); }
    Numbers row(const Numbers& x, std::size_t i) const {
        const auto first = x.begin() + std::ptrdiff_t(i * shape.width());
        return Numbers(first, first + shape.width());
    }
    static void append(Numbers& to, const Numbers& from) { to.insert(to.end(), from.begin(), from.end()); }
    static double dot(const double* a, const double* b, std::size_t n) {
        double sum = 0;
        for (std::size_t i = 0; i < n; ++i) sum += a[i] * b[i];
        return sum;
    }

    static Numbers product(const Numbers& a, const Numbers& b, std::size_t columns) {
        const std::size_t depth = b.size() / columns, rows = a.size() / depth;
        Numbers c(rows * columns);
        for (std::size_t i = 0; i < rows; ++i)
            for (std::size_t k = 0; k < depth; ++k)
                for (std::size_t j = 0; j < columns; ++j) c[i * columns + j] += a[i * depth + k] * b[k * columns + j];
        return c;
    }
    void add(Numbers& x, const Numbers& part, std::size_t mask) const {
        for (std::size_t i = 0; i < x.size(); ++i) x[i] += part[i] * (masks.empty() ? 1 : masks[mask][i]);
    }
    static Numbers norm(const Numbers& x, const Numbers& gamma) {
        const std::size_t width = gamma.size();
        Numbers y(x.size());
        for (std::size_t first = 0; first < x.size(); first += width) {
            const double squares = dot(&x[first], &x[first], width);
            const double factor = 1 / std::sqrt(squares / double(width) + double(GptShape::epsilon));
            for (std::size_t c = 0; c < width; ++c) y[first + c] = x[first + c] * factor * gamma[c];
        }
        return y;
    }
    /// Turns a head's Q or K at a position: element i with element i + head_dim / 2.
    static void turn(double* x, std::size_t position) {
        constexpr std::size_t half = GptShape::head_dim / 2;
        for (std::size_t i = 0; i < half; ++i) {
            const double angle = double(position) * std::pow(double(GptShape::base), -double(i) / double(half));
            const double a = x[i], b = x[i + half];
            x[i] = a * std::cos(angle) - b * std::sin(angle), x[i + half] = b * std::cos(angle) + a * std::sin(angle);
        }
    }
    Numbers attention(Numbers& qkv) const {
        constexpr std::size_t d = GptShape::head_dim;
        const std::size_t pitch = 3 * shape.width();
        Numbers out(ids.size() * shape.width());
        for (std::size_t t = 0; t < ids.size(); ++t)
            for (std::size_t h = 0; h < 2 * shape.heads; ++h) turn(&qkv[t * pitch + h * d], t % shape.context);
        for (std::size_t t = 0; t < ids.size(); ++t)
            for (std::size_t h = 0; h < shape.heads; ++h) {
                const std::size_t begin = t / shape.context * shape.context;
                const double* const q = &qkv[t * pitch + h * d];
                Numbers weights;
                for (std::size_t k = begin; k <= t; ++k)
                    weights.push_back(dot(q, &qkv[k * pitch + shape.width() + h * d], d) / std::sqrt(double(d)));
                softmax(weights);
                for (std::size_t k = begin; k <= t; ++k)
                    for (std::size_t c = 0; c < d; ++c)
                        out[t * shape.width() + h * d + c] +=
                            weights[k - begin] * qkv[k * pitch + 2 * shape.width() + h * d + c];
            }
        return out;
    }
    static void softmax(Numbers& x) {
        const double largest = *std::ranges::max_element(x);
        double sum = 0;
        for (double& v : x) sum += v = std::exp(v - largest);
        for (double& v : x) v /= sum;
    }
    double loss_of(const Numbers& x, std::uint32_t target) const {
        const Numbers& head = of("head");
        Numbers p;
        for (std::size_t c = 0; c < shape.vocabulary; ++c) p.push_back(dot(x.data(), &head[c * x.size()], x.size()));
        softmax(p);
        return -std::log(p[target]);
    }
};

}  // namespace ikat::training
