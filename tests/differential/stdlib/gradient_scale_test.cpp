// SPDX-License-Identifier: Apache-2.0
// The norm of gradients, clipping, steps that change nothing, the scale of the loss; and a training step as a graph.
#include "runtime/graph/graph.hpp"
#include "stdlib/optimise/optimise.hpp"
#include "tests/differential/stdlib/optimise_model.hpp"

namespace ikat::test::optimise {
namespace {

/// The norm of the gradients of a model, and its largest error.
template <class G>
stdlib::reference::Bounded norm_of(const Model<G>& model) {
    double sum = 0;
    for (const auto& each : model) {
        const auto g = each->g.download();
        for (std::size_t i = each->first; i < each->first + each->n; ++i)
            sum += double(float(g[i])) * double(float(g[i]));
    }
    // A thread adds at most 64 + 3 products and sums of 4, then the block's tree, then the pieces; half of it remains
    // after the root.
    const double relative = (67.0 + 4 + 10 + double(model.size()) + 10) * epsilon / 2 + epsilon;
    return {std::sqrt(sum), std::sqrt(sum) * relative * 1.001};
}

template <class G>
void check_norm(const std::string& schedule, std::uint32_t seed) {
    const Device device = open_device({.schedule = schedule, .check = "strict,registers,races"});
    Model<G> model = make_model<G>(device, seed);
    const stdlib::OptimisedTensors tensors(device, rows_of(model, false));
    auto norm = device.buffer<float>(1, "norm");
    gradient_norm(device, tensors, norm);
    const auto wanted = norm_of(model);
    const float got = norm.download()[0];
    CHECK(std::abs(double(got) - wanted.value) <= wanted.error);
    auto workspace = device.buffer<std::uint8_t>(gradient_norm_workspace(tensors));
    gradient_norm(device, tensors, norm, workspace);
    CHECK(norm.download()[0] == got);
    for (const float bad : {infinity, -infinity, nan})
        for (const std::size_t at : {std::size_t(2), model.size() - 1}) {  // in an element by itself, in a vector
            auto g = model[at]->g.download();
            const std::size_t i = model[at]->first + model[at]->n - 1;
            const G kept = std::exchange(g[i], G(bad));
            model[at]->g.upload(g);
            gradient_norm(device, tensors, norm);
            CHECK(!std::isfinite(norm.download()[0]));
            g[i] = kept;
            model[at]->g.upload(g);
        }
}

}  // namespace

TEST_CASE("optimisers: the norm of gradients, and infinities and NaNs among them") {
    for (const std::uint32_t seed : {1, 2, 3, 4}) {
        check_norm<float>(std::to_string(seed), seed);
        check_norm<half>(std::to_string(seed), seed + 50);
        check_norm<bfloat16>(std::to_string(seed), seed + 90);
    }
    const Device device = open_device();
    auto norm = device.upload(std::vector<float>{5}, "norm");
    gradient_norm(device, stdlib::OptimisedTensors(device, {}), norm);
    CHECK(norm.download()[0] == 0);
}

TEST_CASE("optimisers: after an infinity or a NaN a step changes nothing") {
    const Device device = open_device({.check = "strict,registers,races"});
    for (const Optimiser kind : all_kinds) {
        Model<float> model = make_model<float>(device, 3);
        const stdlib::OptimisedTensors tensors(device, rows_of(model, true));
        auto g = model[6]->g.download();
        g[2] = kind == Optimiser::Adam ? nan : infinity;
        model[6]->g.upload(g);
        std::vector<Tensor<float>::Host> old;
        for (auto& each : model) old.push_back(each->download());
        auto norm = device.buffer<float>(1), scale = device.buffer<float>(1);
        auto loss_scale = device.upload(std::vector<float>{1024});
        auto step = device.upload(std::vector<std::uint32_t>{11}), good = device.upload(std::vector<std::uint32_t>{5});
        gradient_norm(device, tensors, norm);
        clip_by_norm(device, norm, loss_scale, scale, step, 1);
        run_all(kind, device, tensors, {.step = step, .scale = scale});
        loss_scale_update(device, scale, loss_scale, good);
        for (std::size_t i = 0; i < model.size(); ++i) CHECK(same_state(model[i]->download(), old[i]));
        CHECK(step.download()[0] == 11);
        CHECK(std::isnan(scale.download()[0]));
        CHECK(loss_scale.download()[0] == 512);
        CHECK(good.download()[0] == 0);
    }
}

TEST_CASE("optimisers: gradients are clipped by their norm, without their scale") {
    const Device device = open_device();
    const auto check = [&](float of_norm, float of_loss, float most, double wanted) {
        const auto norm = device.upload(std::vector<float>{of_norm}), loss = device.upload(std::vector<float>{of_loss});
        auto scale = device.buffer<float>(1);
        auto step = device.upload(std::vector<std::uint32_t>{4});
        clip_by_norm(device, norm, loss, scale, step, most);
        INFO(of_norm << " " << of_loss << " " << most);
        const float got = scale.download()[0];
        CHECK((std::isnan(wanted) ? std::isnan(got) : std::abs(double(got) - wanted) <= 5 * epsilon * wanted));
        CHECK(step.download()[0] == (std::isnan(wanted) ? 4 : 5));
    };
    check(8, 1, 2, 2 / (8 + double(1e-6f)));
    check(8, 4, 1, 1 / (2 + double(1e-6f)) / 4);
    check(8, 4, 3, 0.25);
    check(8, 1, infinity, 1);
    check(0, 1, 1, 1);
    check(0, 1, 0, 0);
    check(1e-40f, 0.5f, 1, 2);
    check(infinity, 1, 1, double(nan));
    check(nan, 1, infinity, double(nan));
    check(1, 0, 1, double(nan));
    check(1, infinity, infinity, 0);
}

TEST_CASE("optimisers: the scale of the loss grows after good steps, and shrinks after a bad one") {
    const Device device = open_device();
    auto scale = device.buffer<float>(1), loss = device.upload(std::vector<float>{4});
    auto good = device.upload(std::vector<std::uint32_t>{0});
    const auto next = [&](float of_step) {
        scale.fill(of_step);
        loss_scale_update(device, scale, loss, good, {.growth = 2, .backoff = 0.25f, .interval = 3});
        return std::pair{loss.download()[0], good.download()[0]};
    };
    using Pair = std::pair<float, std::uint32_t>;
    CHECK(next(1) == Pair{4, 1});
    CHECK(next(0) == Pair{4, 2});
    CHECK(next(1) == Pair{8, 0});
    CHECK(next(1) == Pair{8, 1});
    CHECK(next(nan) == Pair{2, 0});
    CHECK(next(-infinity) == Pair{0.5f, 0});
    loss.fill(0x1p127f);
    good.fill(2);
    CHECK(next(1) == Pair{0x1p127f, 0});  // twice as much is no f32
}

TEST_CASE("optimisers: a graph of a training step is run again with the step number of the device") {
    const Device device = open_device();
    Model<bfloat16> model = make_model<bfloat16>(device, 1), other = make_model<bfloat16>(device, 1);
    const stdlib::OptimisedTensors tensors(device, rows_of(model, true)), others(device, rows_of(other, true));
    auto norm = device.buffer<float>(1), scale = device.buffer<float>(1);
    const auto loss_scale = device.upload(std::vector<float>{1});
    auto step = device.upload(std::vector<std::uint32_t>{0});
    const auto graph = runtime::Graph::record(device, [&](const runtime::Queue& q) {
        gradient_norm(q, tensors, norm);
        clip_by_norm(q, norm, loss_scale, scale, step, 1);
        adam(q, tensors, {.step = step, .scale = scale});
    });
    const auto exec = graph.instantiate();
    const auto stream = device.stream();
    for (int i = 0; i < 3; ++i) exec.launch(stream);
    stream.synchronize();
    CHECK(step.download()[0] == 3);
    for (std::uint32_t t = 1; t <= 3; ++t) adam(device, others, {.step = t, .scale = scale});
    for (std::size_t i = 0; i < model.size(); ++i) CHECK(same_state(model[i]->download(), other[i]->download()));
}
}  // namespace ikat::test::optimise
