// SPDX-License-Identifier: Apache-2.0
// A layer of one's own, y = f(x w + bias) with f(z) = z / (1 + |z|), in one launch, and its gradients: f and its slope
// are expressions that products apply to their sums. The layer then learns to be another one.
#include <ikat/ikat.hpp>
#include <ikat/stdlib.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <vector>

using namespace ikat;
using namespace ikat::stdlib;

constexpr std::uint32_t rows = 96, inputs = 48, outputs = 40;

const auto f = [](auto sum, auto at, auto bias) {
    const auto z = sum + bias[at.column];
    return z / (1.0f + abs(z));
};
const auto gradient_of_f = [](auto sum, auto at, auto bias, auto dy) {
    const auto z = sum + bias[at.column];
    const auto fall = 1.0f / (1.0f + abs(z));
    return dy[at] * fall * fall;
};

const auto subtract = kernel("subtract", params("y", "wanted", "dy"), [](In<half> y, In<half> wanted, Out<half> dy) {
    const u32 i = global_id().x;
    dy[i] = y[i] - wanted[i];
});

struct Layer {
    Buffer<half> w, bias;                       // what products take
    Buffer<float> dw, dbias;                    // gradients
    Buffer<float> master_w, master_bias, m, v;  // what the optimiser keeps
    Buffer<float> m_bias, v_bias;
};

void forward(const Queue& q, const Layer& layer, const Buffer<half>& x, Buffer<half>& y) {
    gemm_tensor_core(q, x.view(rows, inputs), layer.w.view(inputs, outputs), y.view(rows, outputs),
                     epilogue("softsign", f, layer.bias));
}

// z = x w + bias was not stored: it is computed again, and only dz is written.
void backward(const Queue& q, Layer& layer, const Buffer<half>& x, const Buffer<half>& dy, Buffer<half>& dx) {
    auto dz = q.buffer<half>(rows * outputs, "dz");
    gemm_tensor_core(q, x.view(rows, inputs), layer.w.view(inputs, outputs), dz.view(rows, outputs),
                     epilogue("softsign_backward", gradient_of_f, layer.bias, dy.view(rows, outputs)));
    gemm_backward_a(q, dz.view(rows, outputs), layer.w.view(inputs, outputs), dx.view(rows, inputs));
    gemm_backward_b(q, x.view(rows, inputs), dz.view(rows, outputs), layer.dw.view(inputs, outputs));
    column_sums(q, dz.view(rows, outputs), layer.dbias);
}

using Numbers = std::vector<double>;

Numbers in_double(const Buffer<half>& buffer) {
    const auto elements = buffer.download();
    return Numbers(elements.begin(), elements.end());
}
// The sum of y dy, whose gradients those of the layer are.
double weighted(const Numbers& x, const Numbers& w, const Numbers& bias, const Numbers& dy) {
    double total = 0;
    for (std::uint32_t i = 0; i < rows; ++i)
        for (std::uint32_t j = 0; j < outputs; ++j) {
            double z = bias[j];
            for (std::uint32_t k = 0; k < inputs; ++k) z += x[i * inputs + k] * w[k * outputs + j];
            total += z / (1 + std::abs(z)) * dy[i * outputs + j];
        }
    return total;
}
// Some elements of a gradient, compared with central differences.
bool is_gradient(const char* name, const std::vector<float>& gradient, Numbers& of, auto&& value) {
    double worst = 0, largest = 0;
    for (const float g : gradient) largest = std::max(largest, std::abs(double(g)));
    for (std::size_t i = 0; i < of.size(); i += of.size() / 8) {
        const double old = of[i], step = 1e-5;
        of[i] = old + step;
        const double above = value();
        of[i] = old - step;
        const double slope = (above - value()) / (2 * step);
        of[i] = old;
        worst = std::max(worst, std::abs(slope - double(gradient[i])));
    }
    const bool is_right = worst <= largest / 64;  // dz is rounded to f16, and the errors of 96 rows add up
    std::printf("%s: %s\n", name, is_right ? "right" : "wrong");
    return is_right;
}

std::vector<half> waves(std::uint32_t count, float size, float by) {
    std::vector<half> numbers;
    for (std::uint32_t i = 0; i < count; ++i) numbers.emplace_back(size * std::sin(by * float(i + 1)));
    return numbers;
}
Layer layer_of(const Device& device, float by) {
    const auto w = waves(inputs * outputs, 0.3f, by), bias = waves(outputs, 0.2f, by + 0.1f);
    const auto zeros = [&](std::uint32_t n) { return device.upload(std::vector<float>(n)); };
    return {device.upload(w, "w"),
            device.upload(bias, "bias"),
            zeros(inputs * outputs),
            zeros(outputs),
            device.upload(std::vector<float>(w.begin(), w.end())),
            device.upload(std::vector<float>(bias.begin(), bias.end())),
            zeros(inputs * outputs),
            zeros(inputs * outputs),
            zeros(outputs),
            zeros(outputs)};
}

bool check(const Device& device) {
    Layer layer = layer_of(device, 0.7f);
    const auto x = device.upload(waves(rows * inputs, 1, 0.3f), "x"),
               dy = device.upload(waves(rows * outputs, 1, 0.9f), "dy");
    auto dx = device.buffer<half>(rows * inputs, "dx");
    backward(device, layer, x, dy, dx);
    Numbers of_x = in_double(x), w = in_double(layer.w), bias = in_double(layer.bias);
    const Numbers of_dy = in_double(dy), got = in_double(dx);
    const auto value = [&] { return weighted(of_x, w, bias, of_dy); };
    const bool x_is_right = is_gradient("dx", {got.begin(), got.end()}, of_x, value);
    const bool w_is_right = is_gradient("dw", layer.dw.download(), w, value);
    return is_gradient("dbias", layer.dbias.download(), bias, value) && x_is_right && w_is_right;
}

bool learn(const Device& device) {
    const Layer teacher = layer_of(device, 1.9f);
    Layer layer = layer_of(device, 0.7f);
    const auto x = device.upload(waves(rows * inputs, 1, 0.3f), "x");
    auto y = device.buffer<half>(rows * outputs, "y"), wanted = device.buffer<half>(rows * outputs, "wanted"),
         dy = device.buffer<half>(rows * outputs, "dy"), dx = device.buffer<half>(rows * inputs, "dx");
    forward(device, teacher, x, wanted);
    const OptimisedTensors tensors(device, {{layer.dw, layer.master_w, layer.m, layer.v, layer.w},
                                            {layer.dbias, layer.master_bias, layer.m_bias, layer.v_bias, layer.bias}});
    double first = 0, loss = 0;
    for (std::uint32_t step = 1; step <= 60; ++step) {
        forward(device, layer, x, y);
        device.launch(subtract, grid(rows * outputs, 128), y, wanted, dy);  // of the sum of squares, halved
        loss = 0;
        for (const double d : in_double(dy)) loss += d * d / 2;
        if (step == 1) first = loss;
        backward(device, layer, x, dy, dx);
        adamw(device, tensors, {.step = step}, {.learning_rate = 0.01f});
    }
    std::printf("loss %.1f at first, %.1f after 60 steps\n", first, loss);
    return loss < first / 20;
}

int main() try {
    const Device device = Device::open();
    const bool is_right = check(device);
    return learn(device) && is_right ? 0 : 1;
} catch (const Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
}
