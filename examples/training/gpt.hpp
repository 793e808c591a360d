// SPDX-License-Identifier: Apache-2.0
// A character transformer on a device, and its training step: rotary positions, RMSNorm before each part, GELU, dropout
// of what each part adds. Parameters are f32, with copies in bf16 that all products take.
#pragma once
#include <ikat/graph.hpp>
#include <ikat/ikat.hpp>
#include <ikat/stdlib.hpp>

#include <cmath>
#include <cstdint>
#include <deque>
#include <string>
#include <vector>

namespace ikat::training {

using Matrix = BufferView<bfloat16, 2>;

struct GptShape {
    static constexpr std::uint32_t head_dim = 64;
    static constexpr float epsilon = 1e-5f, base = 10000;

    std::uint32_t vocabulary = 0, heads = 1, layers = 2, context = 64;
    float dropout = 0.1f;

    std::uint32_t width() const { return heads * head_dim; }
    std::uint32_t hidden() const { return 4 * width(); }
};

/// A tensor of parameters, and what is kept for it.
struct Parameter {
    std::string name;
    std::vector<std::uint64_t> shape;
    Buffer<float> value, gradient, first, second;
    Buffer<bfloat16> copy;

    Parameter(const Device& device, std::string name, std::vector<std::uint64_t> shape, const std::vector<float>& start)
        : name(std::move(name)),
          shape(std::move(shape)),
          value(device.upload(start, this->name)),
          gradient(device.upload(std::vector<float>(start.size()), "gradient")),
          first(device.upload(std::vector<float>(start.size()), "first")),
          second(device.upload(std::vector<float>(start.size()), "second")),
          copy(device.upload(std::vector<bfloat16>(start.begin(), start.end()), this->name)) {}

    Matrix matrix() { return copy.view(rows(), columns()); }
    BufferView<float, 2> matrix_gradient() { return gradient.view(rows(), columns()); }

private:
    std::uint32_t rows() const { return std::uint32_t(shape[0]); }
    std::uint32_t columns() const { return std::uint32_t(shape[1]); }
};

struct GptLayer {
    Parameter norm_1, qkv, out, norm_2, up, down;
};

/// All parameters, in the order of the network.
class GptParameters {
public:
    GptShape shape;
    Parameter embedding;
    std::deque<GptLayer> layers;
    Parameter norm, head;

    GptParameters(const Device& device, const GptShape& shape, std::uint64_t seed)
        : shape(shape),
          embedding(random(device, "embedding", shape.vocabulary, shape.width(), 1, ++seed)),
          norm(ones(device, "norm")),
          head(random(device, "head", shape.vocabulary, shape.width(), root(shape.width()) / 2, ++seed)) {
        // What is added to x grows with the number of layers, unless it begins small.
        const float small = 1 / std::sqrt(2 * float(shape.layers));
        const std::uint32_t width = shape.width(), hidden = shape.hidden();
        for (std::uint32_t i = 0; i < shape.layers; ++i) {
            const auto matrix = [&](const char* name, std::uint32_t rows, std::uint32_t columns, float factor) {
                return random(device, of_layer(i, name), rows, columns, root(rows) * factor, ++seed);
            };
            layers.push_back({ones(device, of_layer(i, "norm_1")), matrix("qkv", width, 3 * width, 1),
                              matrix("out", width, width, small), ones(device, of_layer(i, "norm_2")),
                              matrix("up", width, hidden, 1), matrix("down", hidden, width, small)});
        }
    }

    std::vector<Parameter*> all() {
        std::vector<Parameter*> out{&embedding};
        for (GptLayer& each : layers)
            for (Parameter* p : {&each.norm_1, &each.qkv, &each.out, &each.norm_2, &each.up, &each.down})
                out.push_back(p);
        out.push_back(&norm), out.push_back(&head);
        return out;
    }
    stdlib::OptimisedTensors table(const Device& device) {
        std::vector<stdlib::OptimisedTensor> rows;
        for (Parameter* p : all())
            rows.push_back({.gradient = p->gradient,
                            .parameter = p->value,
                            .first = p->first,
                            .second = p->second,
                            .copy = p->copy});
        return {device, rows};
    }

private:
    static float root(std::uint32_t n) { return 1 / std::sqrt(float(n)); }
    static std::string of_layer(std::uint32_t i, const char* name) {
        return "layers." + std::to_string(i) + "." + name;
    }
    Parameter ones(const Device& device, std::string name) const {
        return {device, std::move(name), {shape.width()}, std::vector<float>(shape.width(), 1.0f)};
    }
    static Parameter random(const Device& device, std::string name, std::uint32_t rows, std::uint32_t columns,
                            float deviation, std::uint64_t seed) {
        auto numbers = device.buffer<float>(rows * columns);
        stdlib::fill_normal(device, numbers, 0, deviation, {.seed = seed});
        return {device, std::move(name), {rows, columns}, numbers.download()};
    }
};

/// What a layer keeps of the forward pass for its gradient, of all tokens of a batch.
struct LayerMemory {
    Buffer<bfloat16> x, normed_1, qkv, attended, middle, normed_2, raised, active;
    Buffer<float> log_sum;
};

/// The network for batches of a size.
class Gpt {
public:
    Gpt(const Device& device, GptParameters& parameters, std::uint32_t batch)
        : its(parameters),
          shape_(parameters.shape),
          batch_(batch),
          tokens_(batch * shape_.context),
          ids(device.upload(std::vector<std::uint32_t>(tokens_), "ids")),
          targets(device.upload(std::vector<std::uint32_t>(tokens_), "targets")),
          loss(device.buffer<float>(1, "loss")),
          logits(device.buffer<bfloat16>(tokens_ * shape_.vocabulary, "logits")),
          random(device.upload(std::vector<std::uint32_t>{1, 0, 0, 0}, "random")),
          positions_(device.upload(positions(), "positions")),
          last_(device.buffer<bfloat16>(tokens_ * shape_.width(), "last")),
          normed_(device.buffer<bfloat16>(tokens_ * shape_.width(), "normed")) {
        const auto of = [&](std::uint32_t columns) { return device.buffer<bfloat16>(tokens_ * columns); };
        const std::uint32_t width = shape_.width(), hidden = shape_.hidden();
        for (std::uint32_t i = 0; i < shape_.layers; ++i)
            memory_.push_back({of(width), of(width), of(3 * width), of(width), of(width), of(width), of(hidden),
                               of(hidden), device.buffer<float>(tokens_ * shape_.heads)});
    }

    GptParameters& its;

private:
    GptShape shape_;
    std::uint32_t batch_, tokens_;

public:
    Buffer<std::uint32_t> ids, targets;  // batch x context
    Buffer<float> loss;
    Buffer<bfloat16> logits;
    Buffer<std::uint32_t> random;  // the state of dropout

    /// The logits of all tokens.
    void forward(const Queue& q, bool drops) {
        stdlib::embedding(q, ids, its.embedding.matrix(), view(memory_.empty() ? last_ : memory_[0].x));
        for (std::uint32_t i = 0; i < shape_.layers; ++i)
            layer(q, i, i + 1 < shape_.layers ? memory_[i + 1].x : last_, drops);
        stdlib::rmsnorm(q, view(last_), its.norm.copy, view(normed_), GptShape::epsilon);
    }
    void evaluate(const Queue& q) {
        forward(q, false);
        const auto to = logits.view(tokens_, shape_.vocabulary);
        stdlib::gemm_tensor_core(q, view(normed_), its.head.matrix(), to, {.b = stdlib::MatrixOrder::Columns});
        stdlib::cross_entropy(q, to, targets, loss);
    }
    /// The loss, and the gradients of all parameters.
    void backward(const Queue& q) {
        forward(q, shape_.dropout > 0);
        auto dx = buffer(q, shape_.width()), d_normed = buffer(q, shape_.width());
        stdlib::linear_cross_entropy(q, view(normed_), its.head.matrix(), targets, loss, view(d_normed),
                                     its.head.matrix_gradient());
        stdlib::rmsnorm_backward(q, view(last_), view(d_normed), its.norm.copy, view(dx), its.norm.gradient,
                                 GptShape::epsilon);
        for (std::uint32_t i = shape_.layers; i-- > 0;) layer_backward(q, i, dx);
        stdlib::embedding_backward(q, ids, view(dx), its.embedding.matrix_gradient());
        if (shape_.dropout > 0) stdlib::advance_random(q, random, blocks_of_dropout() * 2 * shape_.layers);
    }
    /// What dropout lets through of a part of a layer, 0 or 1 / (1 - probability).
    std::vector<float> mask(const Device& device, std::uint32_t layer, std::uint32_t part) const {
        auto x = device.upload(std::vector<float>(tokens_ * shape_.width(), 1.0f)), y = device.buffer<float>(x.size());
        stdlib::dropout(device, x, y, dropped(layer, part));
        return y.download();
    }

private:
    std::vector<std::uint32_t> positions() const {
        std::vector<std::uint32_t> out;
        for (std::uint32_t i = 0; i < tokens_; ++i) out.push_back(i % shape_.context);
        return out;
    }
    Matrix view(Buffer<bfloat16>& x) const { return x.view(tokens_, std::uint32_t(x.size() / tokens_)); }
    Buffer<bfloat16> buffer(const Queue& q, std::uint32_t columns) const {
        return q.buffer<bfloat16>(tokens_ * columns);
    }
    std::uint32_t blocks_of_dropout() const { return (tokens_ * shape_.width() + 3) / 4; }
    stdlib::DropoutOptions dropped(std::uint32_t layer, std::uint32_t part) const {
        return {
            .probability = shape_.dropout,
            .random = {.seed = 0, .offset = std::uint64_t(layer * 2 + part) * blocks_of_dropout(), .state = random}};
    }
    /// Q, K or V of each token: sequences of heads of rows.
    auto heads(Buffer<bfloat16>& qkv, std::uint32_t which) const {
        const std::uint32_t width = shape_.width();
        return stdlib::heads_in_rows(
            qkv.view(batch_, shape_.context, 3 * width).columns(which * width, width).split(GptShape::head_dim));
    }
    void turn(const Queue& q, Buffer<bfloat16>& qkv, bool back) const {
        const auto of_both = qkv.view(tokens_, 3 * shape_.width()).columns(0, 2 * shape_.width());
        stdlib::rope(q, stdlib::Rope::Neox, of_both.split(GptShape::head_dim), positions_, GptShape::head_dim,
                     GptShape::base, back);
    }
    auto rows_of_heads(Buffer<bfloat16>& x) const {
        return stdlib::heads_in_rows(x.view(batch_, shape_.context, shape_.heads, GptShape::head_dim));
    }

    /// y = x + dropped(part)
    void add(const Queue& q, Buffer<bfloat16>& x, Buffer<bfloat16>& part, Buffer<bfloat16>& y, std::uint32_t layer,
             std::uint32_t number, bool drops) const {
        if (!drops) return stdlib::elementwise(q, stdlib::Binary::add, x, part, y);
        auto kept = buffer(q, shape_.width());
        stdlib::dropout(q, part, kept, dropped(layer, number));
        stdlib::elementwise(q, stdlib::Binary::add, x, kept, y);
    }
    void layer(const Queue& q, std::uint32_t i, Buffer<bfloat16>& y, bool drops) {
        GptLayer& w = its.layers[i];
        LayerMemory& m = memory_[i];
        auto part = buffer(q, shape_.width());
        stdlib::rmsnorm(q, view(m.x), w.norm_1.copy, view(m.normed_1), GptShape::epsilon);
        stdlib::gemm_tensor_core(q, view(m.normed_1), w.qkv.matrix(), view(m.qkv));
        turn(q, m.qkv, false);
        stdlib::flash_attention(q, heads(m.qkv, 0), heads(m.qkv, 1), heads(m.qkv, 2), rows_of_heads(m.attended),
                                {.causal = true, .log_sum = log_sum(m)});
        stdlib::gemm_tensor_core(q, view(m.attended), w.out.matrix(), view(part));
        add(q, m.x, part, m.middle, i, 0, drops);
        stdlib::rmsnorm(q, view(m.middle), w.norm_2.copy, view(m.normed_2), GptShape::epsilon);
        stdlib::gemm_tensor_core(q, view(m.normed_2), w.up.matrix(), view(m.raised));
        stdlib::elementwise(q, stdlib::Unary::gelu, m.raised, m.active);
        stdlib::gemm_tensor_core(q, view(m.active), w.down.matrix(), view(part));
        add(q, m.middle, part, y, i, 1, drops);
    }
    stdlib::MutableTensorView log_sum(LayerMemory& m) const {
        return m.log_sum.view(batch_, shape_.heads, shape_.context);
    }

    /// dx, of what the layer gave, becomes that of what it was given.
    void layer_backward(const Queue& q, std::uint32_t i, Buffer<bfloat16>& dx) {
        GptLayer& w = its.layers[i];
        LayerMemory& m = memory_[i];
        auto d_part = buffer(q, shape_.width()), d_normed = buffer(q, shape_.width()),
             d_middle = buffer(q, shape_.width());
        auto d_active = buffer(q, shape_.hidden()), d_raised = buffer(q, shape_.hidden());
        product_backward(q, m.active, w.down, drop(q, dx, d_part, i, 1), d_active);
        stdlib::elementwise(q, stdlib::Backward::gelu_backward, d_active, m.raised, d_raised);
        product_backward(q, m.normed_2, w.up, d_raised, d_normed);
        norm_backward(q, m.middle, d_normed, w.norm_2, dx, d_middle);
        auto d_attended = buffer(q, shape_.width()), d_qkv = buffer(q, 3 * shape_.width());
        product_backward(q, m.attended, w.out, drop(q, d_middle, d_part, i, 0), d_attended);
        stdlib::attention_backward(q, heads(m.qkv, 0), heads(m.qkv, 1), heads(m.qkv, 2), rows_of_heads(m.attended),
                                   log_sum(m), rows_of_heads(d_attended), heads(d_qkv, 0), heads(d_qkv, 1),
                                   heads(d_qkv, 2), {.causal = true});
        turn(q, d_qkv, true);
        product_backward(q, m.normed_1, w.qkv, d_qkv, d_normed);
        norm_backward(q, m.x, d_normed, w.norm_1, d_middle, dx);
    }
    /// The gradient of a part that was added to x, in `kept` if anything was dropped.
    Buffer<bfloat16>& drop(const Queue& q, Buffer<bfloat16>& dx, Buffer<bfloat16>& kept, std::uint32_t layer,
                           std::uint32_t part) const {
        if (shape_.dropout == 0) return dx;
        stdlib::dropout_backward(q, dx, kept, dropped(layer, part));
        return kept;
    }
    /// Of what comes to x through a norm, dy, and past it.
    void norm_backward(const Queue& q, Buffer<bfloat16>& x, Buffer<bfloat16>& dy, Parameter& gamma,
                       Buffer<bfloat16>& past, Buffer<bfloat16>& dx) const {
        stdlib::rmsnorm_backward(q, view(x), view(dy), gamma.copy, view(dx), gamma.gradient, GptShape::epsilon,
                                 {.residual = view(past)});
    }
    /// Of y = x w, from dy.
    void product_backward(const Queue& q, Buffer<bfloat16>& x, Parameter& w, Buffer<bfloat16>& dy,
                          Buffer<bfloat16>& dx) const {
        stdlib::gemm_backward_b(q, view(x), view(dy), w.matrix_gradient());
        stdlib::gemm_backward_a(q, view(dy), w.matrix(), view(dx));
    }

    Buffer<std::uint32_t> positions_;
    Buffer<bfloat16> last_, normed_;
    std::deque<LayerMemory> memory_;
};

}  // namespace ikat::training
