// SPDX-License-Identifier: Apache-2.0
// The examples of docs/training.md about optimisers, compiled and run. pages_test.cpp compares the page with this file.
#include <ikat/graph.hpp>
#include <ikat/ikat.hpp>
#include <ikat/safetensors.hpp>
#include <ikat/stdlib.hpp>

#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <vector>

#include "tests/catch.hpp"

// clang-format off
namespace ikat::optimiser_examples {

TEST_CASE("docs/training.md: cross entropy") {
    const Device device = Device::open({.device = "emulator", .check = "strict,registers,races"});
    const std::uint32_t rows = 3, classes = 4, k = 2;
    auto logits = device.upload(std::vector<bfloat16>(rows * classes, bfloat16(1.0f)));
    const auto x = device.upload(std::vector<bfloat16>(rows * k, bfloat16(0.0f))), w = device.upload(std::vector<bfloat16>(classes * k, bfloat16(1.0f)));
    auto dx = device.buffer<bfloat16>(rows * k);
    auto dw = device.buffer<float>(classes * k), loss = device.buffer<float>(1);
    const auto targets = device.upload(std::vector<std::int32_t>{0, -100, 3});
stdlib::cross_entropy(device, logits.view(rows, classes), targets, loss);                         // the loss alone
stdlib::fused_cross_entropy(device, logits.view(rows, classes), targets, loss, logits.view(rows, classes));  // and its gradient, in place
stdlib::linear_cross_entropy(device, x.view(rows, k), w.view(classes, k), targets, loss, dx.view(rows, k),
                             dw.view(classes, k), {.loss = {.smoothing = 0.1f}});                 // of the logits x w'
    CHECK(float(logits.download()[0]) == -0.375f);
    CHECK(std::abs(loss.download()[0] - std::log(4.0f)) < 1e-6f);
    CHECK(dw.download()[0] == 0);
}

TEST_CASE("docs/training.md: a step of an optimiser") {
    const Device device = Device::open({.device = "emulator", .check = "strict,registers,races"});
    const std::uint32_t step = 1;
    const auto gradient = device.upload(std::vector<half>{half(1.0f), half(-2.0f), half(0.0f)});
    auto parameter = device.upload(std::vector<float>(3, 1.0f));
    auto first = device.upload(std::vector<float>(3, 0.0f)), second = device.upload(std::vector<float>(3, 0.0f));
stdlib::adamw(device, gradient, parameter, first, second, step, {.learning_rate = 1e-3f, .weight_decay = 0.01f});
    const std::vector<float> got = parameter.download();
    CHECK(std::abs(got[0] - (1 - 1e-5f - 1e-3f)) < 1e-6f);
    CHECK(std::abs(got[1] - (1 - 1e-5f + 1e-3f)) < 1e-6f);
    CHECK(std::abs(got[2] - (1 - 1e-5f)) < 1e-6f);
}

TEST_CASE("docs/training.md: a model in one launch") {
    const Device device = Device::open({.device = "emulator", .check = "strict,registers,races"});
    const std::uint32_t n = 1000;
    auto dw = device.upload(std::vector<bfloat16>(n, bfloat16(4.0f))), db = device.upload(std::vector<bfloat16>(7, bfloat16(-4.0f)));
    auto w = device.upload(std::vector<float>(n, 1.0f)), m = device.upload(std::vector<float>(n, 0.0f)), v = device.upload(std::vector<float>(n, 0.0f));
    auto b = device.upload(std::vector<float>(7, 1.0f)), mb = device.upload(std::vector<float>(7, 0.0f)), vb = device.upload(std::vector<float>(7, 0.0f));
    auto w16 = device.buffer<bfloat16>(n), b16 = device.buffer<bfloat16>(7);
    auto norm = device.buffer<float>(1), scale = device.buffer<float>(1), loss_scale = device.upload(std::vector<float>{4});
    auto step = device.upload(std::vector<std::uint32_t>{0}), good_steps = device.upload(std::vector<std::uint32_t>{0});
const stdlib::OptimisedTensors model(device, {{.gradient = dw, .parameter = w, .first = m, .second = v, .copy = w16},
                                              {.gradient = db, .parameter = b, .first = mb, .second = vb, .copy = b16}});
const Graph update = Graph::record(device, [&](const Queue& q) {
    stdlib::gradient_norm(q, model, norm);                                  // of all gradients, in two launches
    stdlib::clip_by_norm(q, norm, loss_scale, scale, step, 1.0f);           // scale = min(1, 1 / norm) / loss_scale; ++step
    stdlib::adamw(q, model, {.step = step, .scale = scale}, {.learning_rate = 0.1f});
    stdlib::loss_scale_update(q, scale, loss_scale, good_steps, {.interval = 2});
});
    const GraphExec exec = update.instantiate();
    const Stream stream = device.stream();
    exec.launch(stream);
    exec.launch(stream);
    stream.synchronize();
    CHECK(step.download()[0] == 2);
    CHECK(loss_scale.download()[0] == 8);
    CHECK(std::abs(norm.download()[0] - 4 * std::sqrt(1007.0f)) < 1e-3f);
    CHECK(std::abs(w.download()[n - 1] - 0.8f) < 1e-3f);
    CHECK(std::abs(b.download()[6] - 1.2f) < 1e-3f);
    CHECK(float(w16.download()[0]) == float(bfloat16(w.download()[0])));

    std::vector<bfloat16> bad(n, bfloat16(4.0f));
    bad[n - 1] = bfloat16(INFINITY);
    dw.upload(bad);
    const std::vector<float> before = w.download();
    exec.launch(device);
    CHECK(w.download() == before);
    CHECK(step.download()[0] == 2);
    CHECK(loss_scale.download()[0] == 4);
}

TEST_CASE("docs/training.md: files of weights") {
    const Device device = Device::open({.device = "emulator", .check = "strict,registers,races"});
    const auto w = device.upload(std::vector<float>{1, 2, 3, 4, 5, 6});
    const std::filesystem::path path = std::filesystem::temp_directory_path() / ("ikat_docs_" + std::to_string(getpid()));
safetensors::write(path, {{safetensors::tensor("layer.weight", {2, 3}, w.download())}, {{"step", "100"}}});
const safetensors::Tensors file = safetensors::read(path);
const auto weight = device.upload(safetensors::floats(file.at("layer.weight")), "layer.weight");
    std::filesystem::remove(path);
    CHECK(weight.download() == w.download());
    CHECK(file.metadata.at("step") == "100");
}

}  // namespace ikat::optimiser_examples
