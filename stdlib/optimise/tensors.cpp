// SPDX-License-Identifier: Apache-2.0
// Steps of optimisers for many tensors, and the scale of their gradients. A block of threads updates a piece of a
// tensor, whose row of the table says where it is:
//
//     gradient, parameter, first, second, copy      addresses, 0 where there is none
//     number of elements, and 2^32 if all begin at multiples of what vectors need
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "stdlib/math/math.hpp"
#include "stdlib/optimise/update.hpp"
#include "stdlib/reduce/reduce.hpp"
#include "stdlib/spec/families.hpp"
#include "stdlib/spec/kernel_arguments.hpp"
#include "stdlib/spec/kernels.hpp"
#include "stdlib/spec/view_call.hpp"

namespace ikat::stdlib {
namespace {

constexpr std::uint32_t block = 256, words = 6;
constexpr std::uint64_t piece = 16384, aligned = std::uint64_t{1} << 32;

/// The row of this block.
class Piece {
public:
    explicit Piece(const In<std::uint64_t>& table) : table_(table) {
        const auto size = word(5);
        count = value(cast<u32>(size));
        vectors = value(select(size >= aligned, value(count / 4u), 0u));
    }
    template <class E>
    AddressedArray<E> array(std::uint32_t number) const {
        return AddressedArray<E>(word(number));
    }
    /// body(Width<N>, i) for the vectors and elements of this thread.
    void each(auto&& body) const {
        const auto thread = value(thread_id().x);
        for (auto i : range(thread, vectors, block)) body(Width<4>{}, value(i));
        for (auto i : range(value(vectors * 4u + thread), count, block)) body(Width<1>{}, value(i));
    }

private:
    Leaf<std::uint64_t> word(std::uint32_t number) const { return value(table_[block_id().x * words + number]); }

    const In<std::uint64_t>& table_;
    u32 count = 0u, vectors = 0u;
};

/// For one optimiser and the types of gradients and copies.
struct TensorsKernel {
    Optimiser kind;
    ir::Type gradient, copy;

    std::string name() const {
        constexpr const char* names[] = {"sgd_momentum", "sgd_nesterov", "adam", "adamw", "lion"};
        const std::string with_copy = copy == ir::Type::Void ? "" : fmt::format("_to_{}", info(copy).name);
        return fmt::format("{}_tensors_{}{}", names[std::size_t(kind)], info(gradient).name, with_copy);
    }
    KernelHandle make() const {
        if (copy == ir::Type::F16) return with_copy<half>();
        if (copy == ir::Type::BF16) return with_copy<bfloat16>();
        return with_copy<NoArray>();
    }
    auto operator<=>(const TensorsKernel&) const = default;

private:
    template <class C>
    KernelHandle with_copy() const {
        if (gradient == ir::Type::F16) return of<half, C>();
        if (gradient == ir::Type::BF16) return of<bfloat16, C>();
        return of<float, C>();
    }
    template <class G, class C>
    KernelHandle of() const;
};

/// Of the number t of a step: the rate and the root of Adam.
void correct(UpdateNumbers& of, const auto& learning_rate, const auto& t) {
    const auto correction = [&](const auto& beta) { return value(-expm1(value(t * log(beta)))); };
    of.rate = value(learning_rate / correction(of.beta1));
    of.root = value(sqrt(correction(of.beta2)));
}

template <class G, class C>
KernelHandle TensorsKernel::of() const {
    return kernel(name().c_str(),
                  params("table", "scales", "steps", "step", "rate", "beta1", "beta2", "epsilon", "decay", "scale"),
                  [kind = kind](In<std::uint64_t> table, In<float> scales, In<std::uint32_t> steps, u32 step, f32 rate,
                                f32 beta1, f32 beta2, f32 epsilon, f32 decay, f32 scale) {
                      const auto of_device = value(scales[0]);
                      if_(is_finite(of_device), [&] {
                          const auto usual = value(rate);
                          UpdateNumbers of{usual,
                                           value(beta1),
                                           value(beta2),
                                           value(epsilon),
                                           value(decay),
                                           usual,
                                           value(scale * of_device)};
                          if (has_second_moment(kind)) correct(of, usual, value(cast<f32>(step + steps[0])));
                          const Piece here(table);
                          const auto gradient = here.array<G>(0);
                          const auto parameter = here.array<float>(1), first = here.array<float>(2),
                                     second = here.array<float>(3);
                          here.each([&]<int N>(Width<N>, const auto& i) {
                              if constexpr (std::is_same_v<C, NoArray>)
                                  update_lanes<N>(kind, gradient, parameter, first, second, NoArray{}, i, of);
                              else
                                  update_lanes<N>(kind, gradient, parameter, first, second, here.array<C>(4), i, of);
                          });
                      });
                  })
        .launch_bounds(block)
        .handle();
}

/// The sum of squares of a block's piece of the gradients.
template <class G>
const auto& squares_kernel() {
    static const auto made = kernel(name_of<G>("gradient_squares", "_f32"), params("table", "partial"),
                                    [](In<std::uint64_t> table, Out<float> partial) {
                                        const Piece here(table);
                                        const auto gradient = here.array<G>(0);
                                        f32 sum = 0;
                                        here.each([&]<int N>(Width<N>, const auto& i) {
                                            const auto x = load_lanes<N>(gradient, i);
                                            auto term = value(x[0] * x[0]);
                                            for (std::size_t k = 1; k < N; ++k) term = value(fma(x[k], x[k], term));
                                            sum += term;
                                        });
                                        sum = block_sum(sum);
                                        if_(thread_id().x == 0, [&] { partial[block_id().x] = sum; });
                                    })
                                 .launch_bounds(block);
    return made;
}
const auto& norm_kernel() {
    static const auto made =
        kernel("gradient_norm", params("partial", "norm", "n"), [](In<float> partial, Out<float> norm, u32 n) {
            f32 sum = 0;
            for (auto i : range(value(thread_id().x), n, block)) sum += partial[i];
            sum = block_sum(sum);
            if_(thread_id().x == 0, [&] { norm[0] = sqrt(sum); });
        }).launch_bounds(block);
    return made;
}

[[noreturn]] void refuse(const SizeCheck& check, std::string_view message, std::string_view hint) {
    throw Error(Diagnostic{
        .where = check.where, .message = fmt::format("{}: {}", check.function, message), .hint = std::string(hint)});
}

std::uint64_t elements_of(const TensorView& view) {
    std::uint64_t n = 1;
    for (std::uint32_t d = 0; d < view.rank; ++d) n *= view.extents[d];
    return n;
}

void check_number(const SizeCheck& check, std::string_view name, const TensorView& view, ir::Type type) {
    if (view.format || view.type != type)
        refuse(check, fmt::format("'{}' has elements of {}", name, view.type_name()),
               fmt::format("it is a number, of {}", info(type).name));
    check.at_least(name, elements_of(view), 1);
}

void run_step(const Queue& queue, std::string_view function, const OptimisedTensors& tensors, Optimiser kind,
              const detail::OptimiserNumbers& of, const StepState& state) {
    const SizeCheck check{function, queue.where()};
    tensors.check(check);
    if (has_second_moment(kind)) {
        if (!tensors.has_second()) refuse(check, "the tensors have no 'second'", "Adam keeps a mean of squares");
        if (!state.step.array && state.step.number == 0) refuse(check, "step 0", "steps are counted from 1");
    }
    if (state.step.array) check_number(check, "step", *state.step.array, ir::Type::U32);
    if (state.scale) check_number(check, "scale", *state.scale, ir::Type::F32);
    if (tensors.pieces() == 0) return;
    KernelArguments arguments(Kernels<TensorsKernel>::of({kind, tensors.gradient_type(), tensors.copy_type()}),
                              queue.where());
    arguments.add_array(TensorView(tensors.table()));
    arguments.add_array(state.scale.value_or(tensors.one()));
    arguments.add_array(state.step.array.value_or(tensors.zero()));
    arguments.add_numbers(state.step.number, of.rate, of.beta1, of.beta2, of.epsilon, of.decay, of.scale);
    arguments.launch(queue, tensors.pieces(), block);
}

/// The arrays of a tensor in the order of the table, checked.
struct Arrays {
    std::array<const TensorView*, 5> views;
    std::uint64_t count;

    Arrays(const OptimisedTensor& of, const SizeCheck& check)
        : views{&of.gradient, &of.parameter, &of.first, of.second ? &*of.second : nullptr,
                of.copy ? &*of.copy : nullptr},
          count(elements_of(of.parameter)) {
        constexpr const char* names[] = {"gradient", "parameter", "first", "second", "copy"};
        for (std::size_t i = 0; i < views.size(); ++i) {
            if (!views[i]) continue;
            const TensorView& view = *views[i];
            const bool is_f32 = view.type == ir::Type::F32 && !view.format;
            const bool is_short = (view.type == ir::Type::F16 || view.type == ir::Type::BF16) && !view.format;
            if (i == 0 ? !is_f32 && !is_short : i == 4 ? !is_short : !is_f32)
                refuse(check, fmt::format("'{}' has elements of {}", names[i], view.type_name()),
                       i == 0   ? "they are f32, f16 or bf16"
                       : i == 4 ? "they are f16 or bf16"
                                : "they are f32");
            const bool is_alike =
                view.rank == of.parameter.rank &&
                std::equal(view.extents.begin(), view.extents.begin() + view.rank, of.parameter.extents.begin());
            if (!is_alike)
                refuse(check, fmt::format("'{}' has another shape than 'parameter'", names[i]), "they have the same");
            if (!is_packed(view, 1))
                refuse(check, fmt::format("'{}' has gaps between its rows", names[i]),
                       "copy it to an array without gaps");
        }
    }

    void add_pieces(std::vector<std::uint64_t>& table) const {
        std::uint64_t flag = aligned;
        for (const TensorView* view : views)
            if (view && count != 0 && view->part.address() % (4 * info(view->type).bytes) != 0) flag = 0;
        for (std::uint64_t begin = 0; begin < count; begin += piece) {
            for (const TensorView* view : views)
                table.push_back(view ? view->part.address() + begin * info(view->type).bytes : 0);
            table.push_back(std::min(piece, count - begin) | flag);
        }
    }
};

}  // namespace

OptimisedTensors::OptimisedTensors(const runtime::Device& device, const std::vector<OptimisedTensor>& tensors,
                                   const Location& where)
    : table_(device.buffer<std::uint64_t>(0)),
      zero_(device.upload(std::vector<std::uint32_t>{0}, "zero")),
      one_(device.upload(std::vector<float>{1}, "one")) {
    const SizeCheck check{"OptimisedTensors", where};
    std::vector<std::uint64_t> table;
    std::vector<OperandRole> roles;
    constexpr const char* names[] = {"gradient", "parameter", "first", "second", "copy"};
    for (const OptimisedTensor& each : tensors) {
        const Arrays arrays(each, check);
        const ir::Type copy = each.copy ? each.copy->type : ir::Type::Void;
        const bool is_first = &each == tensors.data();
        if (is_first) gradient_ = each.gradient.type, copy_ = copy, has_second_ = each.second.has_value();
        if (each.gradient.type != gradient_ || copy != copy_ || each.second.has_value() != has_second_)
            refuse(check, "tensors differ in the types of 'gradient' or 'copy', or some have no 'second'",
                   "make a table for each kind");
        for (std::size_t i = 0; i < arrays.views.size(); ++i) {
            if (!arrays.views[i]) continue;
            roles.push_back({names[i], arrays.views[i]->part, i == 0 ? Role::Read : Role::Written});
            parts_.push_back(arrays.views[i]->part);
        }
        arrays.add_pieces(table);
    }
    check_roles(check.function, where, roles);
    pieces_ = check.reached("tensors", table.size() / words);
    if (pieces_ != 0) table_ = device.upload(table, "table");
}

void OptimisedTensors::check(const SizeCheck& check) const {
    for (const runtime::BufferPart& part : parts_)
        if (part.bytes != 0 && !part.is_there())
            refuse(check, "a tensor of the table has been freed", "tensors outlive the table");
}

void sgd_momentum(const Queue& queue, const OptimisedTensors& tensors, const StepState& state,
                  const SgdOptions& options) {
    run_step(queue, "sgd_momentum", tensors, options.nesterov ? Optimiser::Nesterov : Optimiser::Sgd,
             detail::numbers_of({"sgd_momentum", queue.where()}, options), state);
}
void adam(const Queue& queue, const OptimisedTensors& tensors, const StepState& state, const AdamOptions& options) {
    run_step(queue, "adam", tensors, Optimiser::Adam, detail::numbers_of({"adam", queue.where()}, options, false),
             state);
}
void adamw(const Queue& queue, const OptimisedTensors& tensors, const StepState& state, const AdamOptions& options) {
    run_step(queue, "adamw", tensors, Optimiser::AdamW, detail::numbers_of({"adamw", queue.where()}, options, true),
             state);
}
void lion(const Queue& queue, const OptimisedTensors& tensors, const StepState& state, const LionOptions& options) {
    run_step(queue, "lion", tensors, Optimiser::Lion, detail::numbers_of({"lion", queue.where()}, options), state);
}

std::uint64_t gradient_norm_workspace(const OptimisedTensors& tensors) {
    return Workspace::rounded(std::uint64_t(tensors.pieces()) * sizeof(float));
}
void gradient_norm(const Queue& queue, const OptimisedTensors& tensors, const MutableTensorView& norm,
                   const WorkspaceSlice& workspace) {
    const SizeCheck check{"gradient_norm", queue.where()};
    tensors.check(check);
    check_number(check, "norm", norm, ir::Type::F32);
    Workspace memory(queue, check.function, workspace, std::max<std::uint64_t>(gradient_norm_workspace(tensors), 16));
    const auto partial = memory.take<float>(std::max(tensors.pieces(), 1u));
    if (tensors.pieces() != 0) {
        const KernelHandle& squares = tensors.gradient_type() == ir::Type::F16    ? squares_kernel<half>().handle()
                                      : tensors.gradient_type() == ir::Type::BF16 ? squares_kernel<bfloat16>().handle()
                                                                                  : squares_kernel<float>().handle();
        KernelArguments first(squares, queue.where());
        first.add_array(TensorView(tensors.table()));
        first.add_array(partial);
        first.launch(queue, tensors.pieces(), block);
    }
    KernelArguments second(norm_kernel().handle(), queue.where());
    second.add_array(partial);
    second.add_array(norm);
    second.add_numbers(tensors.pieces());
    second.launch(queue, 1, block);
}

// ---- the scale of gradients

namespace {

const auto& clip_kernel() {
    static const auto made =
        kernel("clip_by_norm", params("norm", "loss_scale", "scale", "step", "max_norm"),
               [](In<float> norm, In<float> loss_scale, Out<float> scale, InOut<std::uint32_t> step, f32 max_norm) {
                   require_linear_grid();
                   if_(global_id().x == 0, [&] {
                       const auto of_loss = value(loss_scale[0]), scaled = value(norm[0]);
                       const auto clip = value(min(1.0f, max_norm / (scaled / of_loss + 1e-6f)));
                       const auto all = value(clip / of_loss);
                       const auto is_good = value(is_finite(scaled) & is_finite(all));
                       scale[0] = select(is_good, all, std::numeric_limits<float>::quiet_NaN());
                       step[0] = step[0] + select(is_good, 1u, 0u);
                   });
               })
            .launch_bounds(block);
    return made;
}

const auto& loss_scale_kernel() {
    static const auto made =
        kernel("loss_scale_update", params("scale", "loss_scale", "good_steps", "growth", "backoff", "interval"),
               [](In<float> scale, InOut<float> loss_scale, InOut<std::uint32_t> good_steps, f32 growth, f32 backoff,
                  u32 interval) {
                   require_linear_grid();
                   if_(global_id().x == 0, [&] {
                       const auto is_good = value(is_finite(value(scale[0])));
                       const auto old = value(loss_scale[0]), grown = value(old * growth);
                       const auto steps = value(good_steps[0] + 1u);
                       const auto is_full = value(steps >= interval);
                       const auto after_good = value(select(is_full & is_finite(grown), grown, old));
                       loss_scale[0] = select(is_good, after_good, value(old * backoff));
                       good_steps[0] = select(is_good & !is_full, steps, 0u);
                   });
               })
            .launch_bounds(block);
    return made;
}

/// A launch for one number each.
Grid one_thread(const Call&) { return {{1}, {32}}; }

void run_on_numbers(const Queue& queue, const Recipe& recipe, const std::vector<TensorView>& arrays,
                    const NamedNumbers& numbers) {
    const ViewCall call(queue, recipe, arrays);
    for (std::size_t i = 0; i < arrays.size(); ++i)
        call.check().at_least(recipe.operands.all()[i].name, elements_of(arrays[i]), 1);
    run_kernel(call, recipe.kernels[0], recipe.kernels[0].instances[0](), numbers);
}

}  // namespace

void clip_by_norm(const Queue& queue, const TensorView& norm, const TensorView& loss_scale,
                  const MutableTensorView& scale, const MutableTensorView& step, float max_norm) {
    if (!(max_norm >= 0))
        refuse({"clip_by_norm", queue.where()}, fmt::format("max_norm is {}", max_norm), "it is 0 or more");
    run_on_numbers(queue, clip_by_norm_recipe, {norm, loss_scale, scale, step}, {{"max_norm", max_norm}});
}

void loss_scale_update(const Queue& queue, const TensorView& scale, const MutableTensorView& loss_scale,
                       const MutableTensorView& good_steps, const LossScaleOptions& options) {
    const auto check = [&](std::string_view name, float factor) {
        if (!(factor > 0 && std::isfinite(factor)))
            refuse({"loss_scale_update", queue.where()}, fmt::format("{} is {}", name, factor),
                   "it is a positive, finite number");
    };
    check("growth", options.growth);
    check("backoff", options.backoff);
    if (options.interval == 0)
        refuse({"loss_scale_update", queue.where()}, "an interval of 0 steps", "it is at least 1");
    run_on_numbers(queue, loss_scale_update_recipe, {scale, loss_scale, good_steps},
                   {{"growth", options.growth}, {"backoff", options.backoff}, {"interval", options.interval}});
}

// ---- the recipes

constexpr Recipe clip_by_norm_recipe{
    .call = "clip_by_norm(queue, norm, loss_scale, scale, step, max_norm)",
    .kernels = {{.summary = "what gradients are multiplied by, so that their norm is at most max_norm",
                 .instances = IKAT_KERNEL(clip_kernel()),
                 .grid = one_thread}},
    .operands = {{"norm", {}, Access::In, ir::Type::F32},
                 {"loss_scale", {}, Access::In, ir::Type::F32},
                 {"scale", {}, Access::Out, ir::Type::F32},
                 {"step", {}, Access::InOut, ir::Type::U32}},
    .document =
        "scale = min(1, max_norm / (norm / loss_scale + 1e-6)) / loss_scale, one number each. If the norm or the\n"
        "scale is an infinity or a NaN, scale is a NaN; else step is increased by 1.",
    .sizes = {{"norm", "1"}, {"loss_scale", "1"}, {"scale", "1"}, {"step", "1"}},
    .reference = reference::clip_by_norm,
    .bound_by = "a thread",
    .note = "on the device; of `gradient_norm(queue, tensors, norm, workspace)`"};
constexpr Recipe loss_scale_update_recipe{
    .call = "loss_scale_update(queue, scale, loss_scale, good_steps, options)",
    .kernels = {{.summary = "the next scale of the loss, which follows from whether the step was good",
                 .instances = IKAT_KERNEL(loss_scale_kernel()),
                 .grid = one_thread}},
    .operands = {{"scale", {}, Access::In, ir::Type::F32},
                 {"loss_scale", {}, Access::InOut, ir::Type::F32},
                 {"good_steps", {}, Access::InOut, ir::Type::U32}},
    .document =
        "If scale is not finite, loss_scale is multiplied by backoff, and good_steps is 0. Else good_steps grows\n"
        "by 1; when it has reached interval, it is 0, and loss_scale is multiplied by growth if that is finite.",
    .sizes = {{"scale", "1"}, {"loss_scale", "1"}, {"good_steps", "1"}},
    .reference = reference::loss_scale_update,
    .bound_by = "a thread",
    .note = "on the device"};

}  // namespace ikat::stdlib
