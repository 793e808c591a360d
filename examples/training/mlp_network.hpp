// SPDX-License-Identifier: Apache-2.0
// The same network on a device, with its gradients and its optimiser.
#pragma once
#include <ikat/graph.hpp>
#include <ikat/stdlib.hpp>

#include <optional>

#include "examples/training/mlp.hpp"

namespace ikat::training {

/// What a pass through the network has for each row: enough memory for `rows`.
struct Pass {
    Pass(const Device& device, std::uint32_t rows, std::uint32_t width)
        : rows(rows),
          x(device.buffer<float>(rows * inputs, "x")),
          logits(device.buffer<float>(rows * classes, "logits")),
          dlogits(device.buffer<float>(rows * classes, "dlogits")),
          targets(device.buffer<std::int32_t>(rows, "targets")),
          loss(device.buffer<float>(1, "loss")),
          sums(device.buffer<float>(rows * std::max(width, classes), "sums")),
          dactive(device.buffer<float>(rows * width, "dactive")),
          dsums(device.buffer<float>(rows * width, "dsums")) {
        for (std::uint32_t l = 0; l + 1 < layers; ++l) active.push_back(device.buffer<float>(rows * width, "active"));
    }

    std::uint32_t rows;
    Buffer<float> x, logits, dlogits;
    Buffer<std::int32_t> targets;
    Buffer<float> loss, sums, dactive, dsums;  // sums: x W + b, before the activation
    std::vector<Buffer<float>> active{};       // what the hidden layers give
};

struct StepOptions {
    float learning_rate = 0.02f, weight_decay = 1e-4f, max_norm = 1;
    bool on_tensor_cores = false;  // tf32 instead of fma
};

class Network {
public:
    Network(const Device& device, std::uint32_t width, const Tensors& tensors, const StepOptions& options)
        : width_(width),
          options_(options),
          parameters_(make(device, tensors)),
          optimised_(device, table()),
          norm_(device.buffer<float>(1, "norm")),
          scale_(device.buffer<float>(1, "scale")),
          one_(device.upload(std::vector<float>{1}, "one")),
          step_(device.upload(std::vector<std::uint32_t>{0}, "step")) {}
    Network(const Network&) = delete;  // the table has addresses
    Network& operator=(const Network&) = delete;

    /// The logits of the pass's x.
    void forward(const Queue& q, Pass& pass) {
        for (std::uint32_t l = 0; l < layers; ++l) {
            const auto [in, out] = extents(l, width_);
            const bool is_last = l + 1 == layers;
            const auto activation = is_last ? stdlib::Activation::none : stdlib::Activation::relu;
            const auto x = input(pass, l).view(pass.rows, in), w = weight(l).value.view(in, out);
            auto y = (is_last ? pass.logits : pass.active[l]).view(pass.rows, out);
            if (options_.on_tensor_cores) {
                stdlib::gemm_tensor_core(q, x, w, y, {.activation = activation, .bias = bias(l).value});
            } else {
                stdlib::gemm_f32(q, x, w, pass.sums.view(pass.rows, out));
                stdlib::bias_activation(q, activation, pass.sums.view(pass.rows, out), bias(l).value, y);
            }
        }
    }

    /// The loss of the logits, and the gradients of all parameters.
    void backward(const Queue& q, Pass& pass) {
        stdlib::fused_cross_entropy(q, pass.logits.view(pass.rows, classes), pass.targets, pass.loss,
                                    pass.dlogits.view(pass.rows, classes));
        const stdlib::GemmBackwardOptions options{.floats = options_.on_tensor_cores ? stdlib::FloatProduct::tf32
                                                                                     : stdlib::FloatProduct::fma};
        for (std::uint32_t l = layers; l-- > 0;) {
            const auto [in, out] = extents(l, width_);
            const auto dy = (l + 1 == layers ? pass.dlogits : pass.dsums).view(pass.rows, out);
            const auto x = input(pass, l).view(pass.rows, in);
            stdlib::gemm_backward_b(q, x, dy, weight(l).gradient.view(in, out), options);
            stdlib::column_sums(q, dy, bias(l).gradient);
            if (l == 0) break;
            auto dx = pass.dactive.view(pass.rows, in), dsums = pass.dsums.view(pass.rows, in);
            stdlib::gemm_backward_a(q, dy, weight(l).value.view(in, out), dx, options);
            stdlib::elementwise(q, stdlib::Backward::relu_backward, dx, x, dsums);  // relu(s) > 0 where s > 0
        }
    }

    /// A step of AdamW, with gradients clipped by their norm.
    void update(const Queue& q) {
        stdlib::gradient_norm(q, optimised_, norm_);
        stdlib::clip_by_norm(q, norm_, one_, scale_, step_, options_.max_norm);
        stdlib::adamw(q, optimised_, {.step = step_, .scale = scale_},
                      {.learning_rate = options_.learning_rate, .weight_decay = options_.weight_decay});
    }

    Tensors tensors() const { return downloaded(&Parameter::value); }
    Tensors gradients() const { return downloaded(&Parameter::gradient); }

private:
    struct Parameter {
        Buffer<float> value, gradient, first, second;
    };

    static std::vector<Parameter> make(const Device& device, const Tensors& tensors) {
        std::vector<Parameter> out;
        for (std::size_t t = 0; t < tensors.size(); ++t) {
            const std::vector<float> zeros(tensors[t].size(), 0);
            out.push_back({device.upload(tensors[t], tensor_name(t)), device.upload(zeros, "gradient"),
                           device.upload(zeros, "first"), device.upload(zeros, "second")});
        }
        return out;
    }
    std::vector<stdlib::OptimisedTensor> table() {
        std::vector<stdlib::OptimisedTensor> out;
        for (Parameter& p : parameters_)
            out.push_back({.gradient = p.gradient, .parameter = p.value, .first = p.first, .second = p.second});
        return out;
    }
    Tensors downloaded(Buffer<float> Parameter::*which) const {
        Tensors out;
        for (std::size_t t = 0; t < out.size(); ++t) out[t] = (parameters_[t].*which).download();
        return out;
    }
    static Buffer<float>& input(Pass& pass, std::uint32_t layer) {
        return layer == 0 ? pass.x : pass.active[layer - 1];
    }
    Parameter& weight(std::uint32_t layer) { return parameters_[2 * layer]; }
    Parameter& bias(std::uint32_t layer) { return parameters_[2 * layer + 1]; }

    std::uint32_t width_;
    StepOptions options_;
    std::vector<Parameter> parameters_;
    stdlib::OptimisedTensors optimised_;
    Buffer<float> norm_, scale_, one_;
    Buffer<std::uint32_t> step_;
};

/// A step of training as a graph, or, where the device makes none of it, as launches.
class TrainingStep {
public:
    TrainingStep(const Device& device, Network& network, Pass& pass, bool as_graph)
        : device_(device), network_(network), pass_(pass) {
        if (!as_graph) return;
        try {
            exec_ = Graph::record(device, [this](const Queue& q) { enqueue(q); }).instantiate();
        } catch (const Error&) {}  // a driver that has no graphs: every call is checked again when it is launched
    }
    bool is_graph() const { return exec_.has_value(); }

    /// Its loss, before the step.
    float run() {
        if (exec_)
            exec_->launch(device_);
        else
            enqueue(device_);
        return pass_.loss.download()[0];
    }

private:
    void enqueue(const Queue& q) {
        network_.forward(q, pass_);
        network_.backward(q, pass_);
        network_.update(q);
    }

    Device device_;
    Network& network_;
    Pass& pass_;
    std::optional<GraphExec> exec_{};
};

}  // namespace ikat::training
