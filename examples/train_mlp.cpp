// SPDX-License-Identifier: Apache-2.0
// A network of two hidden layers learns to tell two half moons of points apart: forward, cross entropy, backward and
// AdamW, each step one launch of a graph. `train_mlp --help` has the options; docs/training.md explains what it prints.
#include <ikat/safetensors.hpp>

#include <filesystem>
#include <fstream>

#include "examples/training/arguments.hpp"
#include "examples/training/boundary.hpp"
#include "examples/training/mlp_check.hpp"
#include "examples/training/mlp_training.hpp"
#include "examples/training/progress.hpp"
#include "examples/training/text_plot.hpp"

using namespace ikat;
using namespace ikat::training;

namespace {

/// What the program does with the settings of a training.
struct Options {
    Settings settings{};
    bool is_json = false, is_check = false;
    std::string picture{}, save{}, load{}, python{};
};

/// Nothing after --help.
std::optional<Options> options_of(int argc, char** argv) {
    Arguments arguments(argc, argv, "train_mlp: a network of two hidden layers learns the two moons.");
    Options out;
    Settings& s = out.settings;
    s.steps = arguments.number("steps", s.steps, 0u, 1'000'000u, "steps of the optimiser");
    s.batch = arguments.number("batch", s.batch, 1u, 1u << 16, "points of a step, chosen at random");
    s.points = arguments.number("points", s.points, 2u, 1u << 20, "points to learn from, and half as many to test");
    s.width = arguments.number("width", s.width, 1u, 1024u, "numbers of a hidden layer");
    s.step.learning_rate = arguments.number("rate", s.step.learning_rate, 0.0f, 10.0f, "learning rate");
    s.seed = arguments.number("seed", s.seed, 0u, 0xffffffffu, "of the points, the weights and the batches");
    s.step.on_tensor_cores = arguments.choice("product", {"f32", "tf32"}, "how matrices are multiplied") == "tf32";
    s.target = arguments.text("target", "sm_N", "", "compile for this target, on the emulator");
    s.as_graph = !arguments.flag("no-graph", "launch each step kernel by kernel");
    out.picture = arguments.text("picture", "FILE", "", "write the boundary, as .ppm or .svg");
    out.save = arguments.text("save", "FILE", "", "write the weights, as safetensors");
    out.load = arguments.text("load", "FILE", "", "begin with these weights");
    out.is_json = arguments.flag("json", "print one JSON object");
    out.is_check = arguments.flag("check", "compare gradients, losses and bits instead of learning");
    out.python = arguments.text("python", "PATH", "python3", "with NumPy, for --check");
    if (arguments.finish()) return {};
    const std::string ending = std::filesystem::path(out.picture).extension();
    if (!out.picture.empty() && ending != ".ppm" && ending != ".svg")
        throw BadArguments("--picture is " + out.picture + ", but must end with .ppm or .svg");
    check_target(s.target);
    return out;
}

/// The weights of a file, or those to begin with.
Tensors tensors_of(const Options& options) {
    Tensors out = first_tensors(options.settings.width, options.settings.seed);
    if (options.load.empty()) return out;
    const safetensors::Tensors file = safetensors::read(options.load);
    for (std::size_t t = 0; t < out.size(); ++t) {
        const std::string name = tensor_name(t);
        std::vector<float> read = safetensors::floats(file.at(name));
        if (read.size() != out[t].size())
            throw Error(options.load + ": the tensor '" + name + "' has " + std::to_string(read.size()) +
                            " numbers, but the network " + std::to_string(out[t].size()),
                        "give --width as it was when the file was written");
        out[t] = std::move(read);
    }
    return out;
}

void write_text(const std::string& path, const std::string& text) {
    std::ofstream file(path, std::ios::binary);
    file << text;
    file.close();
    if (!file) throw Error(path + ": cannot be written", "the folder must be there, and writable");
}

void print_json(const Options& options, const Result& result, double per_second) {
    std::string losses;
    char number[32];
    for (const double loss : result.losses) {
        std::snprintf(number, sizeof number, "%.9g", loss);
        losses += (losses.empty() ? "" : ", ") + (std::isfinite(loss) ? std::string(number) : "null");
    }
    const Settings& s = options.settings;
    std::printf(
        "{\"steps\": %u, \"batch\": %u, \"width\": %u, \"seed\": %u, \"graph\": %s, \"samples_per_second\": %.0f,\n"
        " \"train_accuracy\": %.4f, \"test_accuracy\": %.4f,\n \"losses\": [%s]}\n",
        s.steps, s.batch, s.width, s.seed, result.is_graph ? "true" : "false", per_second, result.train_accuracy,
        result.test_accuracy, losses.c_str());
}

void learn(const Options& options) {
    const Settings& s = options.settings;
    const Device device = Device::open({.target = s.target});
    Training training(device, s, tensors_of(options));
    // What cannot be written is known before the training.
    if (!options.save.empty()) safetensors::write(options.save, training.file());
    if (!options.picture.empty()) write_text(options.picture, "");
    Progress progress(s.steps, s.batch, "samples", !options.is_json && isatty(STDOUT_FILENO));
    while (training.steps() < s.steps) progress.step(training.steps() + 1, training.step());
    const double per_second = progress.per_second();
    progress.clear();
    const Result result = training.result();

    if (!options.save.empty()) safetensors::write(options.save, training.file());
    if (!options.picture.empty()) {
        const Plane plane{120, 80};
        const std::vector<bool> classes = training.classified(plane.places());
        const bool is_svg = options.picture.ends_with(".svg");
        write_text(options.picture, (is_svg ? svg : ppm)(plane, classes, training.test()));
    }
    if (options.is_json) return print_json(options, result, per_second);
    const Plane plane{72, 22};
    std::printf("%s%s\n%s\n", text_plot("loss", result.losses).c_str(),
                text_plot("accuracy of the batch", result.accuracies).c_str(),
                text_picture(plane, training.classified(plane.places()), training.test()).c_str());
    if (s.steps > 0)
        std::printf("%u steps of %u points, %s: loss %.4f, %.0f samples/s\n", s.steps, s.batch,
                    result.is_graph ? "each a launch of a graph" : "launched kernel by kernel", result.losses.back(),
                    per_second);
    std::printf("accuracy: %.1f %% of the points learnt from, %.1f %% of others\n", 100 * result.train_accuracy,
                100 * result.test_accuracy);
}

}  // namespace

int main(int argc, char** argv) try {
    const std::optional<Options> options = options_of(argc, argv);
    if (!options) return 0;
    if (options->is_check)
        return check(options->settings, options->python, EXAMPLES_FOLDER "/train_mlp_twin.py") ? 0 : 1;
    learn(*options);
    return 0;
} catch (const BadArguments& error) {
    std::fprintf(stderr, "train_mlp: %s\n", error.what());
    return 2;
} catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
}
