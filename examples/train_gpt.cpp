// SPDX-License-Identifier: Apache-2.0
// A character transformer learns a text on ikat alone: forward pass, gradients and optimiser are functions of the
// library, each step one launch of a graph. At the end it writes text of its own. `train_gpt --help` has the options;
// docs/training.md explains what it prints.
#include <ikat/safetensors.hpp>

#include <nlohmann/json.hpp>

#include "examples/training/arguments.hpp"
#include "examples/training/gpt_check.hpp"
#include "examples/training/gpt_training.hpp"
#include "examples/training/progress.hpp"
#include "examples/training/text_plot.hpp"

using namespace ikat;
using namespace ikat::training;

namespace {

struct Options {
    GptSettings settings{};
    std::uint32_t sample = 400;
    bool is_json = false, is_check = false;
    std::string text{}, goal{}, save{}, load{}, python{};
};

/// Nothing after --help.
std::optional<Options> options_of(int argc, char** argv) {
    Arguments arguments(argc, argv, "train_gpt: a character transformer learns a text.");
    Options out;
    GptSettings& s = out.settings;
    s.steps = arguments.number("steps", s.steps, 0u, 1'000'000u, "steps of the optimiser");
    s.batch = arguments.number("batch", s.batch, 1u, 1024u, "pieces of text in a step, chosen at random");
    s.context = arguments.number("context", s.context, 1u, 512u, "characters of a piece");
    s.layers = arguments.number("layers", s.layers, 1u, 64u, "layers");
    s.heads = arguments.number("heads", s.heads, 1u, 64u, "heads of 64 numbers");
    s.learning_rate = arguments.number("rate", s.learning_rate, 0.0f, 10.0f, "learning rate");
    s.dropout = arguments.number("dropout", s.dropout, 0.0f, 0.9f, "how much is dropped of what a layer adds");
    s.seed = arguments.number("seed", s.seed, 0u, 0xffffffffu, "of the parameters, the batches and the sample");
    s.target = arguments.text("target", "sm_N", "", "compile for this target, on the emulator");
    out.sample = arguments.number("sample", out.sample, 0u, 100'000u, "characters to write at the end");
    out.text =
        arguments.text("text", "FILE", EXAMPLES_FOLDER "/training/loom.txt", "to learn; its last tenth is held out");
    out.goal = arguments.choice("goal", {"none", "unigram", "bigram"}, "status 1 unless held-out text costs less");
    out.save = arguments.text("save", "FILE", "", "write the parameters, as safetensors");
    out.load = arguments.text("load", "FILE", "", "begin with these parameters");
    s.as_graph = !arguments.flag("no-graph", "launch each step kernel by kernel");
    out.is_json = arguments.flag("json", "print one JSON object");
    out.is_check = arguments.flag("check", "compare gradients, losses and bits instead of learning");
    out.python = arguments.text("python", "PATH", "python3", "with NumPy, for --check");
    if (arguments.finish()) return {};
    check_target(s.target);
    if (std::uint64_t(s.batch) * s.context * s.heads * GptShape::head_dim * 4 >= 1u << 31)
        throw BadArguments("--batch times --context times --heads is too large: an array has 2^31 numbers");
    return out;
}

safetensors::Tensors file_of(GptParameters& parameters, const LearntText& text) {
    safetensors::Tensors out;
    for (Parameter* p : parameters.all())
        out.tensors.push_back(safetensors::tensor(p->name, p->shape, p->value.download()));
    const auto bytes = std::as_bytes(std::span(text.characters));
    out.tensors.push_back({"characters", ir::Type::U8, {bytes.size()}, {bytes.begin(), bytes.end()}});
    return out;
}
void load(const std::string& path, GptParameters& parameters, const LearntText& text) {
    const safetensors::Tensors file = safetensors::read(path);
    const std::vector<std::byte>& characters = file.at("characters").bytes;
    if (!std::ranges::equal(characters, std::as_bytes(std::span(text.characters))))
        throw Error(path + ": was made from a text with other characters", "give the same --text");
    for (Parameter* p : parameters.all()) {
        const safetensors::Tensor& from = file.at(p->name);
        if (from.shape != p->shape)
            throw Error(path + ": the tensor '" + p->name + "' has another shape",
                        "give --layers and --heads as they were when the file was written");
        const std::vector<float> value = safetensors::floats(from);
        p->value.upload(value);
        p->copy.upload(std::vector<bfloat16>(value.begin(), value.end()));
    }
}

/// What the twin needs, in a file: the parameters at the start, and the batches of so many steps.
void write_for_twin(const std::filesystem::path& path, const Device& device, const GptSettings& settings,
                    const LearntText& text, std::uint32_t steps) {
    GptTraining training(device, settings, text);
    safetensors::Tensors file = file_of(training.parameters, text);
    std::array<safetensors::Tensor, 2> batches{{{"ids", ir::Type::U32, {steps, settings.batch, settings.context}},
                                                {"targets", ir::Type::U32, {steps, settings.batch, settings.context}}}};
    for (std::uint32_t s = 0; s < steps; ++s) {
        const auto batch = training.next_batch();
        for (std::size_t k = 0; k < 2; ++k) {
            const auto bytes = std::as_bytes(std::span(batch[k]));
            batches[k].bytes.insert(batches[k].bytes.end(), bytes.begin(), bytes.end());
        }
    }
    for (safetensors::Tensor& each : batches) file.tensors.push_back(std::move(each));
    const auto add = [&](const char* name, double number) { file.metadata[name] = text_of(number); };
    add("layers", settings.layers), add("heads", settings.heads), add("dropout", double(settings.dropout));
    add("learning_rate", double(settings.learning_rate));
    safetensors::write(path, file);
}

/// The bound of the losses is stated, not derived: the twin does not round to bf16.
bool check(const Options& options, const LearntText& text) {
    const GptSettings& s = options.settings;
    const auto losses = [&](const Device& device, const GptSettings& settings, std::uint32_t steps) {
        GptTraining training(device, settings, text);
        std::vector<double> out;
        while (out.size() < steps) out.push_back(training.run());
        return out;
    };
    const Device device = Device::open({.target = s.target});
    const bool gradients = check_gradients(device);
    const bool twin = check_twin(options.python, EXAMPLES_FOLDER "/train_gpt_twin.py", losses(device, s, 20), 0.01,
                                 [&](const std::filesystem::path& path) { write_for_twin(path, device, s, text, 20); });
    GptSettings small = s;
    small.batch = std::min(s.batch, 2u);
    const bool bits = check_bits(s.target, [&](const Device& each, bool as_graph) {
        small.as_graph = as_graph;
        return losses(each, small, 3);
    });
    return gradients && twin && bits;
}

/// As JSON, in ASCII. What is no UTF-8, of characters that are bytes, is U+FFFD.
std::string json_text(const std::string& text) {
    return nlohmann::json(text).dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
}

/// Whether the goal is reached.
bool learn(const Options& options, const LearntText& text) {
    const GptSettings& s = options.settings;
    const Device device = Device::open({.target = s.target});
    GptTraining training(device, s, text);
    if (!options.load.empty()) load(options.load, training.parameters, text);
    // What cannot be written is known before the training.
    if (!options.save.empty()) safetensors::write(options.save, file_of(training.parameters, text));
    std::vector<double> losses;
    Progress progress(s.steps, s.batch * s.context, "tokens", !options.is_json && isatty(STDOUT_FILENO));
    while (losses.size() < s.steps) {
        losses.push_back(training.run());
        progress.step(std::uint32_t(losses.size()), losses.back());
    }
    const double per_second = progress.per_second();
    progress.clear();
    const double held_out = training.held_out_loss();
    const auto [unigram, bigram] = text.entropies();
    const std::string written = sample(device, training.parameters, text, options.sample, s.seed);
    if (!options.save.empty()) safetensors::write(options.save, file_of(training.parameters, text));
    const bool is_reached = options.goal == "none" || held_out < (options.goal == "unigram" ? unigram : bigram);
    if (options.is_json) {
        std::string list;
        char number[32];
        for (const double loss : losses) {
            std::snprintf(number, sizeof number, "%.9g", loss);
            list += (list.empty() ? "" : ", ") + (std::isfinite(loss) ? std::string(number) : "null");
        }
        std::printf(
            "{\"steps\": %u, \"graph\": %s, \"tokens_per_second\": %.0f, \"held_out_loss\": %.6f,\n"
            " \"unigram_entropy\": %.6f, \"bigram_entropy\": %.6f,\n \"losses\": [%s],\n \"text\": %s}\n",
            s.steps, training.is_graph() ? "true" : "false", per_second, held_out, unigram, bigram, list.c_str(),
            json_text(written).c_str());
        return is_reached;
    }
    std::printf("%s\n", text_plot("loss", losses).c_str());
    if (!written.empty()) std::printf("%s\n\n", written.c_str());
    if (s.steps > 0)
        std::printf("%u steps of %u characters, %s: %.0f characters/s\n", s.steps, s.batch * s.context,
                    training.is_graph() ? "each a launch of a graph" : "launched kernel by kernel", per_second);
    std::printf("held-out text: %.3f nats a character; entropy of one %.3f, of one after another %.3f\n", held_out,
                unigram, bigram);
    return is_reached;
}

}  // namespace

int main(int argc, char** argv) try {
    const std::optional<Options> options = options_of(argc, argv);
    if (!options) return 0;
    const LearntText text(options->text, options->settings.context);
    return (options->is_check ? check(*options, text) : learn(*options, text)) ? 0 : 1;
} catch (const BadArguments& error) {
    std::fprintf(stderr, "train_gpt: %s\n", error.what());
    return 2;
} catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
}
