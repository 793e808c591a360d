// SPDX-License-Identifier: Apache-2.0
#include "stdlib/optimise/optimise.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "stdlib/optimise/update.hpp"
#include "stdlib/spec/families.hpp"
#include "stdlib/spec/functions.hpp"
#include "stdlib/spec/view_call.hpp"

namespace ikat::stdlib {
namespace {

constexpr std::uint32_t threads = 256;
/// Of these, so many may run in one launch: a 32-bit index reaches them.
constexpr std::uint64_t piece = std::uint64_t{1} << 31;

/// Vectors, or where an array does not begin at a multiple of 16 bytes, elements.
void each_vector(bool is_aligned, const u32& n, auto&& body) {
    require_linear_grid();
    if (is_aligned) return for_each_vec<float>(n, body);
    for (auto i : grid_stride(n)) body(Width<1>{}, value(i));
}

template <class T>
KernelName name_for(std::string_view name, bool is_aligned) {
    const KernelName of_type = name_of<T>(name);
    return {static_cast<const char*>(of_type), is_aligned ? "" : "_unaligned"};
}

template <class T, Optimiser kind, bool is_aligned>
const auto& adam_kernel() {
    static const auto made =
        kernel(name_for<T>(kind == Optimiser::Adam ? "adam" : "adamw", is_aligned),
               params("gradient", "parameter", "first", "second", "rate", "beta1", "beta2", "epsilon", "decay", "root",
                      "scale", "n"),
               [](In<T> gradient, InOut<float> parameter, InOut<float> first, InOut<float> second, f32 rate, f32 beta1,
                  f32 beta2, f32 epsilon, f32 decay, f32 root, f32 scale, u32 n) {
                   const UpdateNumbers of{value(rate),  value(beta1), value(beta2), value(epsilon),
                                          value(decay), value(root),  value(scale)};
                   each_vector(is_aligned, n, [&]<int N>(Width<N>, const auto& i) {
                       update_lanes<N>(kind, gradient, parameter, first, second, NoArray{}, i, of);
                   });
               })
            .launch_bounds(threads);
    return made;
}
template <class T, Optimiser kind, bool is_aligned>
const auto& sgd_kernel() {
    static const auto made =
        kernel(name_for<T>(kind == Optimiser::Sgd ? "sgd_momentum" : "sgd_nesterov", is_aligned),
               params("gradient", "parameter", "velocity", "rate", "beta1", "decay", "scale", "n"),
               [](In<T> gradient, InOut<float> parameter, InOut<float> velocity, f32 rate, f32 beta1, f32 decay,
                  f32 scale, u32 n) {
                   const auto factor = value(beta1);
                   const UpdateNumbers of{value(rate), factor, factor, factor, value(decay), factor, value(scale)};
                   each_vector(is_aligned, n, [&]<int N>(Width<N>, const auto& i) {
                       update_lanes<N>(kind, gradient, parameter, velocity, NoArray{}, NoArray{}, i, of);
                   });
               })
            .launch_bounds(threads);
    return made;
}
template <class T, bool is_aligned>
const auto& lion_kernel() {
    static const auto made =
        kernel(name_for<T>("lion", is_aligned),
               params("gradient", "parameter", "momentum", "rate", "beta1", "beta2", "decay", "scale", "n"),
               [](In<T> gradient, InOut<float> parameter, InOut<float> momentum, f32 rate, f32 beta1, f32 beta2,
                  f32 decay, f32 scale, u32 n) {
                   const auto second = value(beta2);
                   const UpdateNumbers of{value(rate),  value(beta1), second,      second,
                                          value(decay), second,       value(scale)};
                   each_vector(is_aligned, n, [&]<int N>(Width<N>, const auto& i) {
                       update_lanes<N>(Optimiser::Lion, gradient, parameter, momentum, NoArray{}, NoArray{}, i, of);
                   });
               })
            .launch_bounds(threads);
    return made;
}

/// One step for a tensor of any size without gaps.
void run_step(const ViewCall& call, const Variant& variant, const NamedNumbers& numbers) {
    bool is_aligned = true;
    for (std::size_t i = 0; i < call.views().size(); ++i) {
        const TensorView& view = call.views()[i];
        if (!is_packed(view, 1))
            call.fail(fmt::format("'{}' has gaps between its rows", call.recipe().operands.all()[i].name),
                      "copy it to an array without gaps");
        is_aligned = is_aligned && is_packed(view);
    }
    std::uint64_t n = 1;
    const TensorView& first = call.views()[0];
    for (std::uint32_t d = 0; d < first.rank; ++d) n *= first.extents[d];
    const KernelHandle& handle = (is_aligned ? variant.instances : variant.pitched)[call.type()]();
    for (std::uint64_t begin = 0; begin < n; begin += piece) {
        std::vector<TensorView> arrays;
        for (const TensorView& view : call.views()) arrays.push_back(part_from(view, begin));
        NamedNumbers all = numbers;
        all.emplace_back("n", std::uint32_t(std::min(piece, n - begin)));
        run_kernel(call, variant, handle, arrays, all);
    }
}

Grid grid_of(const Call& call) {
    const std::uint64_t vectors = std::max<std::uint64_t>((call.count() + 3) / 4, 1);
    return runtime::grid(vectors, call.threads(threads));
}

void run_adam(const Queue& queue, const Recipe& recipe, const std::vector<TensorView>& arrays, std::uint32_t step,
              const AdamOptions& options) {
    const ViewCall call(queue, recipe, arrays);
    const auto of = detail::numbers_of(call.check(), options, &recipe == &adamw_recipe);
    if (step == 0) call.fail("step 0", "steps are counted from 1");
    const double rate = double(of.rate) / -std::expm1(step * std::log(double(of.beta1)));
    const double root = std::sqrt(-std::expm1(step * std::log(double(of.beta2))));
    run_step(call, recipe.kernels[0],
             {{"rate", float(rate)},
              {"beta1", of.beta1},
              {"beta2", of.beta2},
              {"epsilon", of.epsilon},
              {"decay", of.decay},
              {"root", float(root)},
              {"scale", of.scale}});
}

AdamOptions adam_options(const FunctionSettings& settings, float weight_decay) {
    const AdamOptions usual;
    return {.learning_rate = settings.number("learning_rate").value_or(usual.learning_rate),
            .beta1 = settings.number("beta1").value_or(usual.beta1),
            .beta2 = settings.number("beta2").value_or(usual.beta2),
            .epsilon = settings.number("epsilon").value_or(usual.epsilon),
            .weight_decay = settings.number("weight_decay").value_or(weight_decay),
            .scale = settings.number("scale").value_or(1)};
}

}  // namespace

namespace detail {

/// Throws Error unless the number is finite and, if there is a limit, from 0 to below it.
static void check_number(const SizeCheck& check, std::string_view name, float number, float limit = 0) {
    if (std::isfinite(number) && (limit == 0 || (number >= 0 && number < limit))) return;
    throw Error(Diagnostic{.where = check.where,
                           .message = fmt::format("{}: {} is {}", check.function, name, number),
                           .hint = limit == 0   ? "it is a finite number"
                                   : limit == 1 ? "it is from 0 to below 1"
                                                : "it is finite, and 0 or more"});
}
constexpr float finite = std::numeric_limits<float>::infinity();

OptimiserNumbers numbers_of(const SizeCheck& check, const SgdOptions& o) {
    check_number(check, "learning_rate", o.learning_rate);
    check_number(check, "momentum", o.momentum);
    check_number(check, "weight_decay", o.weight_decay);
    return {.rate = o.learning_rate, .beta1 = o.momentum, .decay = o.weight_decay, .scale = o.scale};
}
OptimiserNumbers numbers_of(const SizeCheck& check, const AdamOptions& o, bool is_decoupled) {
    check_number(check, "learning_rate", o.learning_rate);
    check_number(check, "beta1", o.beta1, 1);
    check_number(check, "beta2", o.beta2, 1);
    check_number(check, "epsilon", o.epsilon, finite);
    check_number(check, "weight_decay", o.weight_decay);
    const double kept = 1 - double(o.learning_rate) * double(o.weight_decay);
    return {.rate = o.learning_rate,
            .beta1 = o.beta1,
            .beta2 = o.beta2,
            .epsilon = o.epsilon,
            .decay = is_decoupled ? float(kept) : o.weight_decay,
            .scale = o.scale};
}
OptimiserNumbers numbers_of(const SizeCheck& check, const LionOptions& o) {
    check_number(check, "learning_rate", o.learning_rate);
    check_number(check, "beta1", o.beta1, 1);
    check_number(check, "beta2", o.beta2, 1);
    check_number(check, "weight_decay", o.weight_decay);
    return {.rate = o.learning_rate,
            .beta1 = o.beta1,
            .beta2 = o.beta2,
            .decay = float(1 - double(o.learning_rate) * double(o.weight_decay)),
            .scale = o.scale};
}

}  // namespace detail

void sgd_momentum(const Queue& queue, const TensorView& gradient, const MutableTensorView& parameter,
                  const MutableTensorView& velocity, const SgdOptions& options) {
    const ViewCall call(queue, sgd_momentum_recipe, {gradient, parameter, velocity});
    const auto of = detail::numbers_of(call.check(), options);
    run_step(call, sgd_momentum_recipe.kernels[options.nesterov],
             {{"rate", of.rate}, {"beta1", of.beta1}, {"decay", of.decay}, {"scale", of.scale}});
}
void adam(const Queue& queue, const TensorView& gradient, const MutableTensorView& parameter,
          const MutableTensorView& first, const MutableTensorView& second, std::uint32_t step,
          const AdamOptions& options) {
    run_adam(queue, adam_recipe, {gradient, parameter, first, second}, step, options);
}
void adamw(const Queue& queue, const TensorView& gradient, const MutableTensorView& parameter,
           const MutableTensorView& first, const MutableTensorView& second, std::uint32_t step,
           const AdamOptions& options) {
    run_adam(queue, adamw_recipe, {gradient, parameter, first, second}, step, options);
}
void lion(const Queue& queue, const TensorView& gradient, const MutableTensorView& parameter,
          const MutableTensorView& momentum, const LionOptions& options) {
    const ViewCall call(queue, lion_recipe, {gradient, parameter, momentum});
    const auto of = detail::numbers_of(call.check(), options);
    run_step(call, lion_recipe.kernels[0],
             {{"rate", of.rate}, {"beta1", of.beta1}, {"beta2", of.beta2}, {"decay", of.decay}, {"scale", of.scale}});
}

// ---- the recipes

#define IKAT_ALIGNED(name, ...)                                             \
    .instances = IKAT_FLOATS(name<T, __VA_ARGS__ true>()), .grid = grid_of, \
    .pitched = IKAT_FLOATS(name<T, __VA_ARGS__ false>())

constexpr std::string_view momentum_document =
    "One step in f32, of n elements; each operation is rounded. rate is the learning rate, beta1 the momentum's "
    "factor,\n"
    "decay the weight decay, scale what gradients are multiplied by first. Arrays begin at multiples of 16 bytes.";
constexpr std::string_view adam_document =
    "One step in f32, of n elements; each operation is rounded. rate is the learning rate / (1 - beta1^step), root\n"
    "sqrt(1 - beta2^step), scale what gradients are multiplied by first. decay is the weight decay, of adamw\n"
    "1 - learning rate * weight decay. Arrays begin at multiples of 16 bytes.";

constexpr Recipe sgd_momentum_recipe{
    .call = "sgd_momentum(queue, gradient, parameter, velocity, options)",
    .kernels = {{.summary = "a step of SGD: v = beta1 v + g, p = p - rate v",
                 IKAT_ALIGNED(sgd_kernel, Optimiser::Sgd, )},
                {.summary = "the same with Nesterov's momentum: p = p - rate (beta1 v + g)",
                 IKAT_ALIGNED(sgd_kernel, Optimiser::Nesterov, )}},
    .operands = {{"gradient", "..."},
                 {"parameter", "...", Access::InOut, ir::Type::F32},
                 {"velocity", "...", Access::InOut, ir::Type::F32}},
    .settings = {{"learning_rate", "1e-3 if it is not said"},
                 {"momentum", "the momentum's factor, 0.9 if it is not said"},
                 {"weight_decay", "0 if it is not said"},
                 {"nesterov", "1: with Nesterov's momentum"},
                 {"scale", "what gradients are multiplied by, 1 if it is not said"}},
    .run =
        [](const Queue& queue, std::span<const MutableTensorView> a, const FunctionSettings& s) {
            sgd_momentum(queue, a[0], a[1], a[2],
                         {.learning_rate = s.number("learning_rate").value_or(1e-3f),
                          .momentum = s.number("momentum").value_or(0.9f),
                          .weight_decay = s.number("weight_decay").value_or(0),
                          .nesterov = s.count("nesterov").value_or(0) != 0,
                          .scale = s.number("scale").value_or(1)});
        },
    .document = momentum_document,
    .sizes = {{"gradient", "n"}, {"parameter", "n"}, {"velocity", "n"}},
    .reference = reference::optimiser,
    .traffic = "(16 + E) s",
    .note = "a step of SGD with momentum; `.nesterov`"};
constexpr Recipe adam_recipe{
    .call = "adam(queue, gradient, parameter, first, second, step, options)",
    .kernels = {{.summary = "a step of Adam", IKAT_ALIGNED(adam_kernel, Optimiser::Adam, )}},
    .operands = {{"gradient", "..."},
                 {"parameter", "...", Access::InOut, ir::Type::F32},
                 {"first", "...", Access::InOut, ir::Type::F32},
                 {"second", "...", Access::InOut, ir::Type::F32}},
    .settings = {{"step", "counted from 1, which it is if it is not said"},
                 {"learning_rate", "1e-3 if it is not said"},
                 {"beta1", "0.9 if it is not said"},
                 {"beta2", "0.999 if it is not said"},
                 {"epsilon", "1e-8 if it is not said"},
                 {"weight_decay", "0 if it is not said, of adamw 0.01"},
                 {"scale", "what gradients are multiplied by, 1 if it is not said"}},
    .run =
        [](const Queue& queue, std::span<const MutableTensorView> a, const FunctionSettings& s) {
            adam(queue, a[0], a[1], a[2], a[3], s.count("step").value_or(1), adam_options(s, 0));
        },
    .document = adam_document,
    .sizes = {{"gradient", "n"}, {"parameter", "n"}, {"first", "n"}, {"second", "n"}},
    .reference = reference::optimiser,
    .traffic = "(24 + E) s",
    .note = "a step of Adam"};
constexpr Recipe adamw_recipe{
    .call = "adamw(queue, gradient, parameter, first, second, step, options)",
    .kernels = {{.summary = "a step of AdamW", IKAT_ALIGNED(adam_kernel, Optimiser::AdamW, )}},
    .operands = adam_recipe.operands,
    .settings = adam_recipe.settings,
    .run =
        [](const Queue& queue, std::span<const MutableTensorView> a, const FunctionSettings& s) {
            adamw(queue, a[0], a[1], a[2], a[3], s.count("step").value_or(1), adam_options(s, 0.01f));
        },
    .document = adam_document,
    .sizes = adam_recipe.sizes,
    .reference = reference::optimiser,
    .traffic = "(24 + E) s",
    .note = "a step of Adam with decoupled weight decay"};
constexpr Recipe lion_recipe{
    .call = "lion(queue, gradient, parameter, momentum, options)",
    .kernels = {{.summary = "a step of Lion: p = decay p - rate sign(...)", IKAT_ALIGNED(lion_kernel, )}},
    .operands = {{"gradient", "..."},
                 {"parameter", "...", Access::InOut, ir::Type::F32},
                 {"momentum", "...", Access::InOut, ir::Type::F32}},
    .settings = {{"learning_rate", "1e-4 if it is not said"},
                 {"beta1", "0.9 if it is not said"},
                 {"beta2", "0.99 if it is not said"},
                 {"weight_decay", "0 if it is not said"},
                 {"scale", "what gradients are multiplied by, 1 if it is not said"}},
    .run =
        [](const Queue& queue, std::span<const MutableTensorView> a, const FunctionSettings& s) {
            lion(queue, a[0], a[1], a[2],
                 {.learning_rate = s.number("learning_rate").value_or(1e-4f),
                  .beta1 = s.number("beta1").value_or(0.9f),
                  .beta2 = s.number("beta2").value_or(0.99f),
                  .weight_decay = s.number("weight_decay").value_or(0),
                  .scale = s.number("scale").value_or(1)});
        },
    .document = momentum_document,
    .sizes = {{"gradient", "n"}, {"parameter", "n"}, {"momentum", "n"}},
    .reference = reference::optimiser,
    .traffic = "(16 + E) s",
    .note = "a step of Lion"};

}  // namespace ikat::stdlib
