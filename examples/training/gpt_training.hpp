// SPDX-License-Identifier: Apache-2.0
// A training of a character transformer: the text, the batches, a step, and what it writes then.
#pragma once
#include <array>
#include <fstream>
#include <iterator>
#include <optional>
#include <random>
#include <set>

#include "examples/training/gpt.hpp"

namespace ikat::training {

struct GptSettings {
    std::uint32_t steps = 400, batch = 8, context = 64, layers = 2, heads = 1, seed = 1;
    float learning_rate = 4e-3f, dropout = 0.1f;
    std::string target{};
    bool as_graph = true;  // else kernel by kernel
};

/// What AdamW is given, beside the learning rate. The twin has these numbers, too.
inline stdlib::AdamOptions adam_options(float learning_rate) {
    return {.learning_rate = learning_rate, .beta1 = 0.9f, .beta2 = 0.99f, .epsilon = 1e-8f, .weight_decay = 0.01f};
}
inline constexpr float max_norm = 1;

/// A text as numbers of its characters, in two parts.
struct LearntText {
    std::string characters;  // each once, in order
    std::vector<std::uint32_t> training, held_out;

    /// Throws Error for one that cannot be read, or is too short for pieces of so many characters.
    LearntText(const std::string& file, std::uint32_t context) {
        std::ifstream in(file, std::ios::binary);
        const std::string all{std::istreambuf_iterator<char>(in), {}};
        if (all.size() / 10 <= context)
            throw Error(file + ": " + std::to_string(all.size()) + " characters can be read",
                        "a tenth of a text is longer than a piece of it, see --context");
        const std::set<char> each(all.begin(), all.end());
        characters.assign(each.begin(), each.end());
        const std::size_t last_tenth = all.size() / 10;
        for (std::size_t i = 0; i < all.size(); ++i)
            (i < all.size() - last_tenth ? training : held_out).push_back(std::uint32_t(characters.find(all[i])));
    }
    /// The entropy of a character of the training part, in nats: by itself, and after the one before it.
    std::array<double, 2> entropies() const {
        const std::size_t n = characters.size();
        std::vector<double> single(n), pairs(n * n), before(n);
        for (std::size_t i = 0; i < training.size(); ++i) {
            ++single[training[i]];
            if (i > 0) ++pairs[training[i - 1] * n + training[i]], ++before[training[i - 1]];
        }
        std::array<double, 2> out{};
        for (const double count : single)
            if (count > 0) out[0] -= count / double(training.size()) * std::log(count / double(training.size()));
        for (std::size_t i = 0; i < pairs.size(); ++i)
            if (pairs[i] > 0) out[1] -= pairs[i] / double(training.size() - 1) * std::log(pairs[i] / before[i / n]);
        return out;
    }
};

/// The network, its optimiser, and a training step.
class GptTraining {
public:
    GptTraining(const Device& device, const GptSettings& options, const LearntText& text)
        : device_(device),
          options_(options),
          text_(text),
          parameters(device, shape_of(options, text), options.seed),
          network(device, parameters, options.batch),
          tensors_(parameters.table(device)),
          random_(options.seed) {
        if (!options.as_graph) return;
        try {
            const Graph graph = Graph::record(device, [&](const Queue& q) { step(q); });
            graph_ = graph.instantiate();
        } catch (const Error&) {}  // without graphs, its kernels are launched one by one
    }

    /// A step with the next batch. Gives its loss.
    double run() {
        const auto [ids, targets] = next_batch();
        network.ids.upload(ids), network.targets.upload(targets);
        if (graph_)
            graph_->launch(device_);
        else
            step(device_);
        return double(network.loss.download()[0]);
    }
    bool is_graph() const { return graph_.has_value(); }
    /// Random pieces of the training part, and the same one character further.
    std::array<std::vector<std::uint32_t>, 2> next_batch() {
        std::array<std::vector<std::uint32_t>, 2> out;
        for (std::uint32_t i = 0; i < options_.batch; ++i) {
            const std::size_t first = random_() % (text_.training.size() - options_.context);
            for (std::size_t t = first; t < first + options_.context; ++t)
                out[0].push_back(text_.training[t]), out[1].push_back(text_.training[t + 1]);
        }
        return out;
    }
    /// The loss of the held-out part, in pieces that do not know what came before them.
    double held_out_loss() {
        const std::vector<std::uint32_t>& all = text_.held_out;
        const std::size_t pieces = (all.size() - 1) / options_.context, count = options_.batch;
        double total = 0;
        for (std::size_t first = 0; first < pieces; first += count) {
            std::vector<std::uint32_t> ids(network.ids.size()), targets(ids.size(), std::uint32_t(-100));
            const std::size_t tokens = std::min(count, pieces - first) * options_.context;
            for (std::size_t t = 0; t < tokens; ++t)
                ids[t] = all[first * options_.context + t], targets[t] = all[first * options_.context + t + 1];
            network.ids.upload(ids), network.targets.upload(targets);
            network.evaluate(device_);
            total += double(network.loss.download()[0]) * double(tokens);
        }
        return total / double(pieces * options_.context);
    }

private:
    static GptShape shape_of(const GptSettings& options, const LearntText& text) {
        return {.vocabulary = std::uint32_t(text.characters.size()),
                .heads = options.heads,
                .layers = options.layers,
                .context = options.context,
                .dropout = options.dropout};
    }
    void step(const Queue& q) {
        network.backward(q);
        stdlib::gradient_norm(q, tensors_, norm_);
        stdlib::clip_by_norm(q, norm_, loss_scale_, scale_, step_, max_norm);
        stdlib::adamw(q, tensors_, {.step = step_, .scale = scale_}, adam_options(options_.learning_rate));
    }

    Device device_;
    const GptSettings& options_;
    const LearntText& text_;

public:
    GptParameters parameters;
    Gpt network;

private:
    stdlib::OptimisedTensors tensors_;
    Buffer<float> norm_ = device_.buffer<float>(1, "norm"), scale_ = device_.buffer<float>(1, "scale"),
                  loss_scale_ = device_.upload(std::vector<float>{1}, "loss_scale");
    Buffer<std::uint32_t> step_ = device_.upload(std::vector<std::uint32_t>{0}, "step");
    std::mt19937 random_;
    std::optional<GraphExec> graph_;
};

/// What the network writes after a line end, one character after the other.
inline std::string sample(const Device& device, GptParameters& parameters, const LearntText& text, std::uint32_t count,
                          std::uint32_t seed) {
    const std::uint32_t context = parameters.shape.context, classes = parameters.shape.vocabulary;
    Gpt network(device, parameters, 1);
    std::vector<std::uint32_t> written{std::uint32_t(std::max<std::size_t>(text.characters.find('\n'), 0) % classes)};
    std::mt19937 random(seed);
    for (std::uint32_t i = 0; i < count; ++i) {
        const std::size_t seen = std::min<std::size_t>(written.size(), context);
        std::vector<std::uint32_t> ids(written.end() - std::ptrdiff_t(seen), written.end());
        ids.resize(context);
        network.ids.upload(ids);
        network.evaluate(device);
        const auto logits = network.logits.download();
        std::vector<double> weights;
        for (std::size_t c = 0; c < classes; ++c)
            weights.push_back(std::exp(double(float(logits[(seen - 1) * classes + c])) / 0.7));
        double total = 0;
        for (const double w : weights) total += w;
        double at = double(random()) / 4294967296.0 * total;
        std::uint32_t next = 0;
        while (next + 1 < classes && (at -= weights[next]) >= 0) ++next;
        written.push_back(next);
    }
    std::string out;
    for (const std::uint32_t number : written) out += text.characters[number];
    return out;
}

}  // namespace ikat::training
