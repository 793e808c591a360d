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

constexpr std::uint32_t rows = 96, in = 48, out = 40;

const auto f = [](auto sum, auto at, auto bias) {
    const auto z = sum + bias[at.column];
    return z / (1.0f + abs(z));
};
const auto gradient_of_f = [](auto sum, auto at, auto bias, auto dy) {
    const auto z = sum + bias[at.column];
    const auto fall = 1.0f / (1.0f + abs(z));
    return dy[at] * fall * fall;
};

struct Layer {
    Buffer<half> w, bias;                       // what products take
    Buffer<float> dw, dbias;                    // gradients
    Buffer<float> master_w, master_bias, m, v;  // what the optimiser keeps
    Buffer<float> m_bias, v_bias;
};

void forward(const Queue& q, const Layer& layer, const Buffer<half>& x, Buffer<half>& y) {
    gemm_tensor_core(q, x.view(rows, in), layer.w.view(in, out), y.view(rows, out),
                     epilogue("softsign", f, layer.bias));
}

// z = x w + bias was not stored: it is computed again, and only dz is written.
void backward(const Queue& q, Layer& layer, const Buffer<half>& x, const Buffer<half>& dy, Buffer<half>& dx) {
    auto dz = q.buffer<half>(rows * out, "dz");
    gemm_tensor_core(q, x.view(rows, in), layer.w.view(in, out), dz.view(rows, out),
                     epilogue("softsign_backward", gradient_of_f, layer.bias, dy.view(rows, out)));
    gemm_backward_a(q, dz.view(rows, out), layer.w.view(in, out), dx.view(rows, in));
    gemm_backward_b(q, x.view(rows, in), dz.view(rows, out), layer.dw.view(in, out));
    column_sums(q, dz.view(rows, out), layer.dbias);
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
        for (std::uint32_t j = 0; j < out; ++j) {
            double z = bias[j];
            for (std::uint32_t k = 0; k < in; ++k) z += x[i * in + k] * w[k * out + j];
            total += z / (1 + std::abs(z)) * dy[i * out + j];
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
    const bool is_right = worst <= largest / 256;  // of f16: dz is rounded to 2^-11, and so is what is added up
    std::printf("%s: %s\n", name, is_right ? "right" : "wrong");
    return is_right;
}

std::vector<half> waves(std::uint32_t count, float size, float by) {
    std::vector<half> numbers;
    for (std::uint32_t i = 0; i < count; ++i) numbers.emplace_back(size * std::sin(by * float(i + 1)));
    return numbers;
}
Layer layer_of(const Device& device, float by) {
    const auto w = waves(in * out, 0.3f, by), bias = waves(out, 0.2f, by + 0.1f);
    const auto zeros = [&](std::uint32_t n) { return device.upload(std::vector<float>(n)); };
    return {device.upload(w, "w"),
            device.upload(bias, "bias"),
            zeros(in * out),
            zeros(out),
            device.upload(std::vector<float>(w.begin(), w.end())),
            device.upload(std::vector<float>(bias.begin(), bias.end())),
            zeros(in * out),
            zeros(in * out),
            zeros(out),
            zeros(out)};
}

bool check(const Device& device) {
    Layer layer = layer_of(device, 0.7f);
    const auto x = device.upload(waves(rows * in, 1, 0.3f), "x"), dy = device.upload(waves(rows * out, 1, 0.9f), "dy");
    auto dx = device.buffer<half>(rows * in, "dx");
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
    const auto x = device.upload(waves(rows * in, 1, 0.3f), "x");
    auto y = device.buffer<half>(rows * out, "y"), wanted = device.buffer<half>(rows * out, "wanted"),
         dy = device.buffer<half>(rows * out, "dy"), dx = device.buffer<half>(rows * in, "dx");
    forward(device, teacher, x, wanted);
    const OptimisedTensors tensors(device, {{layer.dw, layer.master_w, layer.m, layer.v, layer.w},
                                            {layer.dbias, layer.master_bias, layer.m_bias, layer.v_bias, layer.bias}});
    double first = 0, loss = 0;
    for (std::uint32_t step = 1; step <= 60; ++step) {
        forward(device, layer, x, y);
        elementwise(device, Binary::sub, y, wanted, dy);  // of the sum of squares, halved
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
    return check(device) && learn(device) ? 0 : 1;
} catch (const Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
}
