// SPDX-License-Identifier: Apache-2.0
// Two layers of a network as a batch: the calls are recorded, run together, and give the same bits as the functions
// themselves. Then sums that return at once.
#include <ikat/batch.hpp>
#include <ikat/stdlib.hpp>

#include <cstdio>
#include <vector>

using namespace ikat;

constexpr std::uint32_t tokens = 4, width = 32, hidden = 64;

std::vector<float> numbers(std::size_t count, float step) {
    std::vector<float> out(count);
    for (std::size_t i = 0; i < count; ++i) out[i] = float(i * 7 % 11) * step - 0.1f;
    return out;
}

/// The same by calls of the functions, with buffers for all that is in between.
std::vector<float> directly(const Device& device, const Buffer<float>& x, const Buffer<float>& up,
                            const Buffer<float>& bias, const Buffer<float>& down) {
    auto product = device.buffer<float>(tokens * hidden), active = device.buffer<float>(tokens * hidden),
         result = device.buffer<float>(tokens * width), y = device.buffer<float>(tokens * width);
    stdlib::gemm(device, x.view(tokens, width), up.view(width, hidden), product.view(tokens, hidden));
    stdlib::bias_activation(device, stdlib::Activation::gelu, product.view(tokens, hidden), bias,
                            active.view(tokens, hidden));
    stdlib::gemm(device, active.view(tokens, hidden), down.view(hidden, width), result.view(tokens, width));
    stdlib::softmax(device, result.view(tokens, width), y.view(tokens, width));
    return y.download();
}

int main() try {
    const Device device = Device::open();
    const auto x = device.upload(numbers(tokens * width, 0.02f), "x"),
               up = device.upload(numbers(width * hidden, 0.03f), "up"), bias = device.upload(numbers(hidden, 0.1f)),
               down = device.upload(numbers(hidden * width, 0.01f), "down");

    const Batch b(device);
    const auto active = b.bias_activation(b.gemm(x.view(tokens, width), up.view(width, hidden)), bias, "gelu");
    const auto y = b.softmax(b.gemm(active, down.view(hidden, width)));
    b.execute();
    const std::vector<float> host = y.download();  // tokens x width, as y.shape() says

    Future<float> total = device.async().sum(y.slice());
    auto largest = device.async().argmax(y.slice());
    const float sum = total.get();
    const auto [value, index] = largest.get();
    std::printf("y is %llu x %llu, its rows add up to %.3f\n", static_cast<unsigned long long>(y.shape()[0]),
                static_cast<unsigned long long>(y.shape()[1]), sum);
    std::printf("the largest is y[%u] = %.4f\n", index, value);
    const bool is_right = host == directly(device, x, up, bias, down) && host[index] == value;
    std::printf("%s\n", is_right ? "the same bits as by the functions themselves" : "WRONG");
    return is_right ? 0 : 1;
} catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
}
