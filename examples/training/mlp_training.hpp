// SPDX-License-Identifier: Apache-2.0
// A training of the network on the two moons: the points, the batches, and what comes of it.
#pragma once
#include <ikat/safetensors.hpp>

#include "examples/training/mlp_network.hpp"

namespace ikat::training {

struct Settings {
    std::uint32_t steps = 120, batch = 64, points = 256, width = 16, seed = 1;
    StepOptions step{};
    bool as_graph = true;  // else kernel by kernel
    std::string target{};
};

struct Result {
    std::vector<double> losses{}, accuracies{};  // of each step's batch, before the step
    double train_accuracy = 0, test_accuracy = 0;
    bool is_graph = false;
};

class Training {
public:
    Training(const Device& device, const Settings& settings, const Tensors& tensors)
        : device_(device),
          settings_(settings),
          train_(two_moons(settings.points, noise, settings.seed)),
          test_(two_moons(settings.points / 2, noise, ~settings.seed)),
          random_(settings.seed + 1),
          network_(device, settings.width, tensors, settings.step),
          pass_(device, settings.batch, settings.width),
          step_(device, network_, pass_, settings.as_graph) {}

    /// A step, and its loss. Points are chosen on the host, each by itself.
    double step() {
        const Points batch = next_batch();
        pass_.x.upload(batch.at);
        pass_.targets.upload(batch.classes);
        result_.losses.push_back(step_.run());
        result_.accuracies.push_back(right(pass_.logits.download(), batch.classes, batch.count()));
        return result_.losses.back();
    }
    std::uint32_t steps() const { return std::uint32_t(result_.losses.size()); }

    Result result() {
        Result out = result_;
        out.train_accuracy = accuracy(train_);
        out.test_accuracy = accuracy(test_);
        out.is_graph = step_.is_graph();
        return out;
    }

    /// Whether the network says the second class of each place.
    std::vector<bool> classified(const std::vector<float>& places) {
        std::vector<bool> out;
        const std::uint32_t count = std::uint32_t(places.size() / inputs);
        Pass pass(device_, std::min(count, most_rows), settings_.width);
        std::vector<float> x(pass.rows * inputs);
        for (std::uint32_t from = 0; from < count; from += pass.rows) {
            const std::uint32_t rows = std::min(pass.rows, count - from);
            std::copy_n(places.begin() + from * inputs, rows * inputs, x.begin());
            pass.x.upload(x);
            network_.forward(device_, pass);
            const std::vector<float> logits = pass.logits.download();
            for (std::uint32_t r = 0; r < rows; ++r) out.push_back(logits[2 * r + 1] > logits[2 * r]);
        }
        return out;
    }

    safetensors::Tensors file() const {
        safetensors::Tensors out{
            .metadata = {{"steps", std::to_string(steps())}, {"seed", std::to_string(settings_.seed)}}};
        const Tensors tensors = network_.tensors();
        for (std::size_t t = 0; t < tensors.size(); ++t) {
            const auto [in, made] = extents(std::uint32_t(t / 2), settings_.width);
            const std::vector<std::uint64_t> shape =
                t % 2 ? std::vector<std::uint64_t>{made} : std::vector<std::uint64_t>{in, made};
            out.tensors.push_back(safetensors::tensor(tensor_name(t), shape, tensors[t]));
        }
        return out;
    }

    Points next_batch() {
        Points out;
        for (std::uint32_t i = 0; i < settings_.batch; ++i) {
            const std::uint32_t p = random_.below(train_.count());
            out.at.insert(out.at.end(), {train_.at[2 * p], train_.at[2 * p + 1]});
            out.classes.push_back(train_.classes[p]);
        }
        return out;
    }
    const Points& test() const { return test_; }

private:
    static constexpr double noise = 0.12;
    static constexpr std::uint32_t most_rows = 4096;

    static double right(const std::vector<float>& logits, const std::vector<std::int32_t>& classes,
                        std::uint32_t count) {
        std::uint32_t right = 0;
        for (std::uint32_t r = 0; r < count; ++r) right += (logits[2 * r + 1] > logits[2 * r]) == (classes[r] == 1);
        return double(right) / count;
    }
    double accuracy(const Points& points) {
        const std::vector<bool> is_second = classified(points.at);
        std::uint32_t right = 0;
        for (std::uint32_t p = 0; p < points.count(); ++p) right += is_second[p] == (points.classes[p] == 1);
        return double(right) / points.count();
    }

    Device device_;
    Settings settings_;
    Points train_, test_;
    Uniform random_;
    Network network_;
    Pass pass_;
    TrainingStep step_;
    Result result_{};
};

}  // namespace ikat::training
