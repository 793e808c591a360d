// SPDX-License-Identifier: Apache-2.0
// A character transformer learns a text on ikat alone: forward pass, gradients and optimiser are functions of the
// library, a training step is a graph. It writes text of its own at the end.
//
//     train_gpt --steps 400 --save gpt.safetensors
//     train_gpt --load gpt.safetensors --steps 0 --sample 500
//     train_gpt --check
#include <ikat/safetensors.hpp>

#include <CLI/CLI.hpp>
#include <array>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <optional>
#include <random>
#include <set>

#include "examples/training/gpt.hpp"
#include "examples/training/gpt_check.hpp"
#include "examples/training/progress.hpp"

using namespace ikat;
using namespace ikat::training;

namespace {

struct Options {
    std::uint32_t steps = 400, batch = 8, heads = 1, layers = 2, context = 64, sample = 400, seed = 1;
    float learning_rate = 4e-3f, dropout = 0.1f;
    std::string text = IKAT_SOURCE_DIR "/examples/training/loom.txt", save, load;
    std::string goal;
    bool json = false, check = false;
};

/// A text as numbers of its characters, in two parts.
struct Text {
    std::string characters;  // each once, in order
    std::vector<std::uint32_t> training, held_out;

    explicit Text(const std::string& file) {
        std::ifstream in(file, std::ios::binary);
        const std::string all{std::istreambuf_iterator<char>(in), {}};
        if (all.size() < 1000)
            throw std::runtime_error(file + " has " + std::to_string(all.size()) +
                                     " characters that can be read: at least 1000 are needed");
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
class Training {
public:
    Training(const Device& device, const Options& options, const Text& text)
        : device_(device),
          options_(options),
          text_(text),
          parameters(device, shape_of(options, text), options.seed),
          network(device, parameters, options.batch),
          tensors_(parameters.table(device)),
          random_(options.seed) {
        try {
            const Graph graph = Graph::record(device, [&](const Queue& q) { step(q); });
            graph_ = graph.instantiate();
        } catch (const Error&) {}  // without graphs, its kernels are launched one by one
    }

    /// A step with the next batch. Gives its loss.
    float run() {
        const auto [ids, targets] = next_batch();
        network.ids.upload(ids), network.targets.upload(targets);
        if (graph_)
            graph_->launch(device_);
        else
            step(device_);
        return network.loss.download()[0];
    }
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
    double validation_loss() {
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
    static GptShape shape_of(const Options& options, const Text& text) {
        return {.vocabulary = std::uint32_t(text.characters.size()),
                .heads = options.heads,
                .layers = options.layers,
                .context = options.context,
                .dropout = options.dropout};
    }
    void step(const Queue& q) {
        network.backward(q);
        stdlib::gradient_norm(q, tensors_, norm_);
        stdlib::clip_by_norm(q, norm_, loss_scale_, scale_, step_, Optimised::max_norm);
        stdlib::adamw(q, tensors_, {.step = step_, .scale = scale_}, Optimised::options(options_.learning_rate));
    }

    Device device_;
    const Options& options_;
    const Text& text_;

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

/// The start of a training, and its first batches, for a twin in NumPy.
safetensors::Tensors start_of(Training& training, const Options& options, std::uint32_t steps,
                              std::vector<float>& losses) {
    safetensors::Tensors out;
    for (Parameter* p : training.parameters.all())
        out.tensors.push_back(safetensors::tensor(p->name, p->shape, p->value.download()));
    std::array<std::vector<std::uint32_t>, 2> all;
    for (std::uint32_t i = 0; i < steps; ++i) {
        losses.push_back(training.run());
        for (std::size_t k = 0; k < 2; ++k) {
            const auto batch = (k == 0 ? training.network.ids : training.network.targets).download();
            all[k].insert(all[k].end(), batch.begin(), batch.end());
        }
    }
    for (std::size_t k = 0; k < 2; ++k) {
        const auto bytes = std::as_bytes(std::span(all[k]));
        out.tensors.push_back({k == 0 ? "ids" : "targets",
                               ir::Type::U32,
                               {steps, options.batch, options.context},
                               {bytes.begin(), bytes.end()}});
    }
    const auto add = [&](const char* name, double number) { out.metadata[name] = std::to_string(number); };
    add("layers", options.layers), add("heads", options.heads), add("dropout", double(options.dropout));
    add("learning_rate", double(options.learning_rate));
    return out;
}

int check(const Options& options) {
    const Device device = Device::open();
    bool is_right = check_gradients(device);
    const Text text(options.text);
    Training training(device, options, text);
    std::vector<float> losses;
    const safetensors::Tensors start = start_of(training, options, 20, losses);
    is_right = check_twin(IKAT_SOURCE_DIR "/examples/training/train_gpt_twin.py", start, losses) && is_right;
    std::printf("%s\n", is_right ? "all is as it should be" : "something is wrong");
    return is_right ? 0 : 1;
}

/// What the network writes after a line end, one character after the other.
std::string sample(const Device& device, GptParameters& parameters, const Text& text, std::uint32_t count,
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

void save(const std::string& file, GptParameters& parameters, const Text& text) {
    safetensors::Tensors all;
    for (Parameter* p : parameters.all())
        all.tensors.push_back(safetensors::tensor(p->name, p->shape, p->value.download()));
    all.metadata["characters"] = text.characters;
    all.metadata["context"] = std::to_string(parameters.shape.context);
    safetensors::write(file, all);
}
void load(const std::string& file, GptParameters& parameters, const Text& text) {
    const safetensors::Tensors all = safetensors::read(file);
    const auto characters = all.metadata.find("characters");
    if (characters == all.metadata.end() || characters->second != text.characters)
        throw std::runtime_error(file + " was made from a text with other characters");
    for (Parameter* p : parameters.all()) {
        const safetensors::Tensor& from = all.at(p->name);
        if (from.shape != p->shape)
            throw std::runtime_error(file + ": '" + p->name +
                                     "' has another shape: give --layers, --heads and --context as they were");
        const std::vector<float> value = safetensors::floats(from);
        p->value.upload(value);
        p->copy.upload(std::vector<bfloat16>(value.begin(), value.end()));
    }
}

std::string quoted(const std::string& text) {
    std::string out = "\"";
    for (const char c : text) {
        char code[8];
        std::snprintf(code, sizeof code, "\\u%04x", unsigned(static_cast<unsigned char>(c)));
        out += (c < ' ' || c == '"' || c == '\\' || c == 127) ? std::string(code) : std::string(1, c);
    }
    return out + "\"";
}

CLI::App& describe(CLI::App& app, Options& its) {
    const auto count = [&](const char* name, std::uint32_t& to, const char* what, std::uint32_t least,
                           std::uint32_t most) {
        app.add_option(name, to, what)->check(CLI::Range(least, most))->capture_default_str();
    };
    count("--steps", its.steps, "training steps", 0, 1000000);
    count("--batch", its.batch, "pieces of text in a step", 1, 1024);
    count("--context", its.context, "characters of a piece", 1, 4096);
    count("--layers", its.layers, "layers", 1, 64);
    count("--heads", its.heads, "heads of 64 numbers", 1, 64);
    count("--sample", its.sample, "characters to write at the end", 0, 100000);
    count("--seed", its.seed, "of all random numbers", 0, 1000000000);
    app.add_option("--learning-rate", its.learning_rate, "of AdamW")
        ->check(CLI::Range(0.0f, 1.0f))
        ->capture_default_str();
    app.add_option("--dropout", its.dropout, "the probability of an element")
        ->check(CLI::Range(0.0f, 0.9f))
        ->capture_default_str();
    app.add_option("--text", its.text, "the text to learn; its last tenth is held out")->check(CLI::ExistingFile);
    app.add_option("--save", its.save, "writes the parameters, as safetensors");
    app.add_option("--load", its.load, "begins with these parameters")->check(CLI::ExistingFile);
    app.add_option("--goal", its.goal, "ends with status 1 unless the held-out part costs less than this entropy")
        ->check(CLI::IsMember({"unigram", "bigram"}));
    app.add_flag("--json", its.json, "the results as JSON");
    app.add_flag("--check", its.check, "checks the gradients, and the first losses if there is NumPy");
    return app;
}

int train(const Options& options) {
    const Text text(options.text);
    const Device device = Device::open();
    Training training(device, options, text);
    if (!options.load.empty()) load(options.load, training.parameters, text);
    const auto [unigram, bigram] = text.entropies();
    std::vector<float> losses;
    Progress progress(options.steps, training.network.ids.size(), "tokens");
    for (std::uint32_t step = 0; step < options.steps; ++step) {
        losses.push_back(training.run());
        progress.step(step + 1, double(losses.back()));
    }
    progress.clear();
    const double validation = training.validation_loss();
    const std::string written =
        options.sample ? sample(device, training.parameters, text, options.sample, options.seed) : "";
    if (!options.save.empty()) save(options.save, training.parameters, text);
    const int status = !options.goal.empty() && !(validation < (options.goal == "unigram" ? unigram : bigram));
    if (!options.json) {
        std::printf("loss of the held-out part: %.3f; entropy of a character %.3f, after the one before it %.3f\n",
                    validation, unigram, bigram);
        std::printf("%s%s", written.c_str(), written.empty() ? "" : "\n");
        return status;
    }
    std::string list;
    for (const float loss : losses) list += (list.empty() ? "" : ", ") + std::to_string(loss);
    std::printf(
        "{\"losses\": [%s], \"validation_loss\": %.6f, \"unigram_entropy\": %.6f, \"bigram_entropy\": %.6f, \"text\": "
        "%s}\n",
        list.c_str(), validation, unigram, bigram, quoted(written).c_str());
    return status;
}

}  // namespace

int main(int argc, char** argv) {
    Options options;
    CLI::App app("A character transformer that learns a text.");
    try {
        describe(app, options).parse(argc, argv);
    } catch (const CLI::ParseError& error) { return app.exit(error) == 0 ? 0 : 2; }
    try {
        return options.check ? check(options) : train(options);
    } catch (const std::exception& error) {
        std::fprintf(stderr, "%s\n", error.what());
        return 2;
    }
}
