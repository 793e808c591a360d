// SPDX-License-Identifier: Apache-2.0
// Cross entropy and its gradient against their formulas, of views, in every order of the warps, of special values.
#include <limits>

#include "codegen/pipeline/compile.hpp"
#include "stdlib/gemm/tensor_core.hpp"
#include "stdlib/loss/cross_entropy_kernels.hpp"
#include "tests/catch.hpp"
#include "tests/device.hpp"
#include "tests/differential/stdlib/cross_entropy_model.hpp"
#include "tests/differential/stdlib/placed.hpp"
#include "tests/message.hpp"
#include "tests/ptxas.hpp"
#include "tests/targets.hpp"

namespace ikat::test {
namespace {
namespace loss {

using namespace ikat::test::loss;
using stdlib::cross_entropy, stdlib::fused_cross_entropy, stdlib::gemm_tensor_core, stdlib::linear_cross_entropy;
using tests::message_of;
constexpr float infinity = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();

/// Random targets, some of which are ignored.
std::vector<std::int32_t> random_targets(std::size_t rows, std::size_t classes, std::uint32_t seed,
                                         std::int32_t ignored) {
    std::vector<std::int32_t> out;
    for (const float number : random_elements<float>(rows, seed, 0, 1)) {
        const auto target = std::int32_t(number * float(classes));
        out.push_back(std::int32_t(number * 1000) % 7 == 3 ? ignored : std::min(target, std::int32_t(classes) - 1));
    }
    if (rows > 1) out[0] = std::int32_t(classes) - 1, out[1] = 0;
    return out;
}

/// The arrays of a call, in some place; rows are all extents but the last.
template <class T>
struct Problem {
    Extents extents;
    std::size_t rows = 1, classes;
    Placed<T> logits, gradient;
    std::vector<std::int32_t> targets;
    runtime::Buffer<std::int32_t> of_device;
    runtime::Buffer<float> loss;

    Problem(const runtime::Device& device, Place place, const Extents& extents, std::uint32_t seed,
            const CrossEntropyOptions& options, float largest = 4)
        : extents(extents),
          rows(extents.size() == 2 ? extents[0] : extents[0] * extents[1]),
          classes(extents.back()),
          logits(device, place, extents, seed),
          gradient(device, place == Place::odd ? Place::aligned : place, extents, seed + 1),
          targets(random_targets(rows, classes, seed + 2, options.ignored)),
          of_device(device.upload(targets, "targets")),
          loss(device.buffer<float>(options.reduction == LossReduction::none ? rows : 1, "loss")) {
        logits.set(random_elements<float>(rows * classes, seed, -largest, largest));
    }
    std::size_t tokens() const { return extents[extents.size() - 2]; }
    TensorView view_of_targets() const {
        return extents.size() == 2 ? TensorView(of_device) : TensorView(of_device.view(extents[0], extents[1]));
    }
};

void check_near(double got, const Near& wanted, double of_type, const char* what, std::size_t i) {
    if (std::isnan(wanted.value) && std::isnan(got)) return;
    const double bound = wanted.error + of_type * (std::abs(wanted.value) + wanted.error);
    if (!(std::abs(got - wanted.value) <= bound + (of_type > 0 ? 0x1p-25 : 0x1p-149)))
        FAIL_CHECK(what << " " << i << " is " << got << ", not " << wanted.value << " within " << bound);
}

template <class T>
void check_results(const Problem<T>& of, const CrossEntropyOptions& options, const std::vector<float>& x, double scale,
                   const std::vector<float>* gradient) {
    const Expected wanted = expected(x, of.classes, of.tokens(), of.targets, options, scale);
    const std::vector<float> loss = of.loss.download();
    if (options.reduction == LossReduction::none)
        for (std::size_t r = 0; r < of.rows; ++r) check_near(loss[r], wanted.losses[r], 0, "loss", r);
    else
        check_near(loss[0], wanted.loss, 0, "the loss", 0);
    if (!gradient) return;
    const double of_type = std::is_same_v<T, float> ? 0 : rounding<T>;
    for (std::size_t i = 0; i < gradient->size(); ++i)
        check_near((*gradient)[i], wanted.gradient[i], of_type, "gradient", i);
}

/// The loss alone, the loss and its gradient, and the gradient in place.
template <class T>
void check_all(const runtime::Device& device, Place place, const Extents& extents, std::uint32_t seed,
               CrossEntropyOptions options) {
    INFO(extents[0] << " x " << extents[1] << " x " << extents.back() << ", place " << int(place));
    Problem<T> of(device, place, extents, seed, options);
    const std::vector<float> x = of.logits.elements();
    cross_entropy(device, of.logits, of.view_of_targets(), of.loss, options);
    check_results(of, options, x, 1, nullptr);
    const auto device_scale = device.upload(std::vector<float>{8}, "device_scale");
    options.scale = 0.5f, options.device_scale = device_scale;
    of.loss.fill(0);
    fused_cross_entropy(device, of.logits, of.view_of_targets(), of.loss, of.gradient, options);
    const std::vector<float> gradient = of.gradient.elements();
    check_results(of, options, x, 4, &gradient);
    CHECK(of.gradient.changed_gaps() == 0);
    CHECK(of.logits.elements() == x);
    of.loss.fill(0);
    fused_cross_entropy(device, of.logits, of.view_of_targets(), of.loss, of.logits, options);
    check_results(of, options, x, 4, nullptr);
    CHECK(of.logits.elements() == gradient);
    CHECK(of.logits.changed_gaps() == 0);
}

const CrossEntropyOptions options_to_try[] = {
    {},
    {.reduction = LossReduction::sum, .smoothing = 0.25f},
    {.reduction = LossReduction::none, .ignored = 2, .z_loss = 0.125f},
    {.smoothing = 1, .z_loss = 1e-3f, .shift = true},
};

}  // namespace loss
using namespace loss;
}  // namespace

TEMPLATE_TEST_CASE("cross entropy: losses and gradients are those of the formulas", "", float, half, bfloat16) {
    const runtime::Device device = open_device({.check = "strict,registers,races"});
    std::uint32_t seed = 1;
    for (const CrossEntropyOptions& options : options_to_try)
        for (const Extents& extents : {Extents{1, 1}, Extents{5, 3}, Extents{3, 4, 65}, Extents{6, 1000}})
            for (const Place place : {Place::packed, Place::aligned, Place::odd})
                check_all<TestType>(device, place, extents, ++seed, options);
    check_all<TestType>(device, Place::permuted, {3, 4, 37}, 1, {.shift = true});
}

TEST_CASE("cross entropy: rows of a block, of a cluster, and longer ones") {
    // 1 x 1024 threads, then 2, 4 and 8 blocks of a cluster; without clusters the last ones are read twice.
    for (const char* target : {"sm_80", "sm_90a"}) {
        const runtime::Device device = open_device({.target = target});
        check_all<half>(device, Place::packed, {2, 5000}, 3, {.smoothing = 0.1f});
        check_all<half>(device, Place::odd, {2, 50257}, 4, {.z_loss = 1e-3f});
        check_all<float>(device, Place::odd, {1, 70001}, 5, {});
    }
}

TEST_CASE("cross entropy: 300 000 classes", "[long]") {
    for (const char* target : {"sm_80", "sm_90a"}) {
        const runtime::Device device = open_device({.target = target, .check = "strict,registers,races"});
        check_all<bfloat16>(device, Place::packed, {3, 128256}, 3, {.smoothing = 0.1f});
        check_all<bfloat16>(device, Place::odd, {2, 300000}, 4, {.z_loss = 1e-3f});
        check_all<float>(device, Place::odd, {2, 300000}, 5, {});
        check_all<float>(device, Place::packed, {2, 500000}, 6, {});
    }
}

TEST_CASE("cross entropy: the same bits in every order and by any number of threads") {
    const auto results = [](const runtime::Device& device, const Extents& extents) {
        Problem<bfloat16> of(device, Place::packed, extents, 9, {});
        fused_cross_entropy(device, of.logits, of.of_device, of.loss, of.gradient, {.smoothing = 0.1f});
        std::vector<float> out = of.gradient.elements();
        out.push_back(of.loss.download()[0]);
        return out;
    };
    for (const Extents& extents : {Extents{40, 65}, Extents{5, 1500}, Extents{2, 130000}}) {
        const bool is_long = extents[1] > 100000;
        const runtime::OpenOptions target{.target = is_long ? "sm_90a" : "sm_80"};
        const auto open = [&](std::uint32_t threads, const char* schedule) {
            return open_device({.target = target.target, .threads = threads, .schedule = schedule});
        };
        const auto wanted = results(open(1, ""), extents);
        CHECK(results(open(2, "1"), extents) == wanted);
        if (!is_long) CHECK(results(open(3, "7,lanes"), extents) == wanted);
    }
}

TEST_CASE("cross entropy: special values") {
    const runtime::Device device = open_device();
    const auto run = [&](std::vector<float> x, std::int32_t target, const CrossEntropyOptions& options = {}) {
        auto logits = device.upload(x, "logits");
        const auto targets = device.upload(std::vector<std::int32_t>{target}, "targets");
        auto loss = device.buffer<float>(1, "loss");
        fused_cross_entropy(device, logits.view(1, x.size()), targets, loss, logits.view(1, x.size()), options);
        x = logits.download();
        x.push_back(loss.download()[0]);
        return x;
    };
    // The target has all of the probability, or none.
    CHECK(run({0, 200, 0, -infinity, 1}, 1) == std::vector<float>{0, 0, 0, 0, 0, 0});
    CHECK(run({0, 200, 0, -infinity, 1}, 0) == std::vector<float>{-1, 1, 0, 0, 0, 200});
    CHECK(run({0, 200, 0, -infinity, 1}, 3) == std::vector<float>{0, 1, 0, -1, 0, infinity});
    // Rows all equal; also the largest and the smallest numbers.
    for (const float equal : {0.0f, 3e38f, -3e38f, 1e-40f}) {
        const auto got = run({equal, equal, equal, equal}, 2);
        CHECK(std::vector<float>(got.begin(), got.begin() + 4) == std::vector<float>{0.25f, 0.25f, -0.75f, 0.25f});
        if (std::abs(equal) < 1) CHECK(got[4] == Approx(std::log(4.0)));
    }
    const auto all_are_nan = [](const std::vector<float>& x) {
        return std::ranges::all_of(x, [](float v) { return std::isnan(v); });
    };
    CHECK(all_are_nan(run({1, nan, 2}, 0)));
    CHECK(all_are_nan(run({1, infinity, 2}, 0)));
    CHECK(all_are_nan(run({-infinity, -infinity}, 0)));
    // A target that is no class; one that is ignored, of a row that would be NaN.
    CHECK(all_are_nan(run({1, 2, 3}, 3)));
    CHECK(all_are_nan(run({1, 2, 3}, -7)));
    const auto ignored = run({nan, infinity, 3}, -100, {.reduction = LossReduction::sum});
    CHECK(ignored == std::vector<float>(4));
    CHECK(std::isnan(run({1, 2, 3}, -100).back()));
    CHECK(run({1, 2, 3}, -100).front() == 0);
    // -infinity among the logits costs infinitely much with smoothing, as in PyTorch, and nothing without.
    CHECK(run({0, -infinity}, 0).back() == 0);
    CHECK(run({0, -infinity}, 0, {.smoothing = 0.5f}).back() == infinity);
}

TEST_CASE("cross entropy: no rows") {
    const runtime::Device device = open_device();
    auto logits = device.buffer<float>(0, "logits"), loss = device.upload(std::vector<float>{5}, "loss");
    const auto targets = device.buffer<std::int32_t>(0, "targets");
    cross_entropy(device, logits.view(0, 7), targets, loss, {.reduction = LossReduction::sum});
    CHECK(loss.download()[0] == 0);
    fused_cross_entropy(device, logits.view(0, 7), targets, loss, logits.view(0, 7));
    CHECK(std::isnan(loss.download()[0]));
}

TEST_CASE("cross entropy: each logit is read once, and its gradient written once") {
    std::vector<emulator::LaunchTraffic> traffic;
    const auto check = [&](const char* target, std::size_t classes, double passes) {
        const auto device =
            runtime::Device::open({.device = "emulator", .target = target, .threads = 2, .traffic = &traffic});
        INFO(target << ", " << classes << " classes");
        Problem<half> of(device, Place::packed, {4, classes}, 1, {.ignored = -1});
        for (auto& each : of.targets) each = 1;
        of.of_device.upload(of.targets);
        traffic.clear();
        fused_cross_entropy(device, of.logits, of.of_device, of.loss, of.gradient);
        std::uint64_t moved = 0;
        for (const auto& launch : traffic)
            for (const auto& buffer : launch.buffers) moved += buffer.read.touched + buffer.written.touched;
        CHECK(double(moved) <= 1.05 * passes * double(4 * classes * sizeof(half)));
    };
    check("sm_80", 4096, 2);
    check("sm_80", 32000, 2);
    check("sm_80", 96000, 3);
    check("sm_90a", 96000, 2);
    check("sm_90a", 128256, 2);
}

// ---- of a product

TEST_CASE("cross entropy: of a product in chunks, the loss and both gradients") {
    const runtime::Device device = open_device();
    const std::uint32_t rows = 70, k = 40, classes = 50;
    const CrossEntropyOptions options{.smoothing = 0.1f, .shift = true};
    const auto x = device.upload(random_elements<bfloat16>(rows * k, 1), "x");
    const auto w = device.upload(random_elements<bfloat16>(classes * k, 2), "w");
    const auto targets = device.upload(random_targets(rows, classes, 3, -100), "targets");
    // By single functions.
    auto logits = device.buffer<bfloat16>(rows * classes, "logits"), dx = device.buffer<bfloat16>(rows * k, "dx");
    auto loss = device.buffer<float>(1, "loss"), dw = device.buffer<float>(classes * k, "dw");
    const auto of_logits = logits.view(2, rows / 2, classes);
    gemm_tensor_core(device, x.view(rows, k), w.view(classes, k), logits.view(rows, classes),
                     {.b = stdlib::MatrixOrder::Columns});
    fused_cross_entropy(device, of_logits, targets.view(2, rows / 2), loss, of_logits, options);
    gemm_tensor_core(device, logits.view(rows, classes), w.view(classes, k), dx.view(rows, k));
    gemm_tensor_core(device, logits.view(rows, classes), x.view(rows, k), dw.view(classes, k),
                     {.a = stdlib::MatrixOrder::Columns});
    const auto wanted_dx = dx.download();
    const auto wanted_dw = dw.download();
    const float wanted = loss.download()[0];
    for (const std::uint32_t chunk : {0, 16, 32, 70}) {
        INFO("chunks of " << chunk);
        dx.fill(bfloat16(7)), dw.fill(1), loss.fill(7);
        const bool accumulate = chunk == 32;
        linear_cross_entropy(device, x.view(2, rows / 2, k), w.view(classes, k), targets.view(2, rows / 2), loss,
                             dx.view(2, rows / 2, k), dw.view(classes, k),
                             {.loss = options, .accumulate = accumulate, .chunk_rows = chunk});
        CHECK(loss.download()[0] == wanted);
        CHECK(dx.download() == wanted_dx);
        const auto got = dw.download();
        for (std::size_t i = 0; i < got.size(); ++i)
            if (std::abs(got[i] - (accumulate ? 1 : 0) - wanted_dw[i]) > 1e-6f)
                FAIL_CHECK("dw " << i << ": " << got[i] << ", not " << wanted_dw[i]);
    }
    // Without rows there is no gradient.
    linear_cross_entropy(device, x.view(0, k), w.view(classes, k), targets.slice(0, 0), loss, dx.view(0, k),
                         dw.view(classes, k), {});
    CHECK(dw.download() == std::vector<float>(classes * k));
}

TEST_CASE("cross entropy: kernels are assembled without spills") {
    if (tests::skip_without_ptxas()) return;
    using Kernel = stdlib::CrossEntropyKernel;
    std::vector<Kernel> kernels{{.step = Kernel::Step::Count}, {.step = Kernel::Step::Sum}};
    for (const ir::Type type : {ir::Type::F32, ir::Type::F16, ir::Type::BF16})
        for (const auto gradient : {Kernel::Gradient::None, Kernel::Gradient::Elsewhere, Kernel::Gradient::InPlace})
            for (const std::uint32_t threads : {32, 256, 1024})
                for (const std::uint32_t blocks : {1, 8}) {
                    if (blocks > 1 && (threads < 1024 || gradient == Kernel::Gradient::None)) continue;
                    const bool keeps = gradient != Kernel::Gradient::None;
                    kernels.push_back(
                        {.type = type, .gradient = gradient, .threads = threads, .blocks = blocks, .keeps = keeps});
                    if (keeps && threads == 1024 && blocks == 1)
                        kernels.push_back({.type = type, .gradient = gradient, .threads = threads});
                }
    std::size_t number = 0;
    for (const Kernel& kernel : kernels) {
        const char* const targets[] = {kernel.blocks > 1 ? "sm_90" : "sm_80", "sm_90a"};
        for (std::size_t which = 0; which < std::size(targets); ++which) {
            if (!tests::is_for_target(number, which, std::size(targets))) continue;
            const std::string ptx = file_text(compile(kernel.handle().ast(), {.target = targets[which]}));
            const tests::PtxasReport report = tests::assemble(ptx, targets[which]);
            INFO(kernel.name() << " for " << targets[which] << "\n" << report.log);
            CHECK(report.clean());
        }
        ++number;
    }
}

TEST_CASE("cross entropy: calls that do not fit") {
    const runtime::Device device = open_device();
    auto x = device.buffer<float>(60, "x"), loss = device.buffer<float>(1, "loss");
    const auto targets = device.buffer<std::int32_t>(6, "targets");
    const auto ids = device.buffer<float>(6, "ids");
    const auto logits = x.view(6, 10);
    CHECK_THAT(message_of([&] { cross_entropy(device, logits, ids, loss); }),
               Catch::Contains("'targets' has elements of f32"));
    CHECK_THAT(message_of([&] { cross_entropy(device, logits, targets.slice(0, 5), loss); }),
               Catch::Contains("'targets' is 5, and there are 6 rows"));
    CHECK_THAT(message_of([&] { cross_entropy(device, x.view(6, 0), targets, loss); }),
               Catch::Contains("there are no classes"));
    CHECK_THAT(message_of([&] { cross_entropy(device, logits, targets, loss, {.smoothing = 1.5f}); }),
               Catch::Contains("'smoothing' is 1.5"));
    CHECK_THAT(message_of([&] { cross_entropy(device, logits, targets, loss, {.z_loss = nan}); }),
               Catch::Contains("'z_loss' is nan"));
    CHECK_THAT(message_of([&] { cross_entropy(device, logits, targets, loss, {.reduction = LossReduction::none}); }),
               Catch::Contains("there are 6"));
    CHECK_THAT(message_of([&] { fused_cross_entropy(device, logits, targets, loss, x.view(6, 9)); }),
               Catch::Contains("'dlogits' is 6 x 9 of f32"));
    CHECK_THAT(message_of([&] {
                   fused_cross_entropy(device, x.view(2, 10), targets.slice(0, 2), loss, x.slice(10, 20).view(2, 10));
               }),
               Catch::Contains("dlogits"));
    auto dw = device.buffer<float>(30, "dw"), dx = device.buffer<float>(18, "dx"),
         small = device.buffer<float>(18, "small");
    CHECK_THAT(message_of([&] {
                   linear_cross_entropy(device, small.view(6, 3), x.view(10, 4), targets, loss, dx.view(6, 3),
                                        dw.view(10, 3));
               }),
               Catch::Contains("rows of X have 3"));
    CHECK_THAT(message_of([&] {
                   linear_cross_entropy(device, small.view(6, 3), x.view(20, 3), targets, loss, dx.view(6, 3),
                                        dw.view(10, 3));
               }),
               Catch::Contains("'dW' is 10 x 3"));
}

}  // namespace ikat::test
