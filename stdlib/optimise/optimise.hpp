// SPDX-License-Identifier: Apache-2.0
// Optimisers for training: one step of SGD with momentum, Adam, AdamW or Lion, with the formulas of PyTorch's
// documentation; and what a step in mixed precision takes without asking the host: the clipping of gradients by their
// norm, and the scale of the loss.
//
//     adam(device, gradient, parameter, first, second, step, {.learning_rate = 1e-3f});
//
// Parameters and what optimisers keep of earlier steps are f32, gradients f32, f16 or bf16, rounded to f32 first. What
// is kept begins with zeros. Results are the same in every run: nothing is added in an order that changes.
//
// A whole model is a table of tensors on the device, OptimisedTensors, which one launch updates:
//
//     const OptimisedTensors model(device, tensors);
//     gradient_norm(stream, model, norm);                                     of all gradients
//     clip_by_norm(stream, norm, loss_scale, scale, step, 1.0f);              scale: NaN if a gradient is Inf or NaN
//     adamw(stream, model, {.step = step, .scale = scale}, options);          nothing then
//     loss_scale_update(stream, scale, loss_scale, good_steps);
//
// All numbers that change are in memory of the device, so a graph of these calls can be run again and again.
#pragma once
#include <limits>

#include "dsl/kernel/kernel.hpp"
#include "stdlib/spec/recipe.hpp"

namespace ikat::stdlib {

/// How parameters follow from gradients. Nesterov is SGD with Nesterov's momentum.
enum class Optimiser : std::uint8_t { Sgd, Nesterov, Adam, AdamW, Lion };

/// Whether the optimiser keeps a mean of squares beside its momentum.
constexpr bool has_second_moment(Optimiser kind) { return kind == Optimiser::Adam || kind == Optimiser::AdamW; }
/// Whether it multiplies parameters by 1 - learning rate * weight decay, instead of adding the decay to gradients.
constexpr bool is_decoupled(Optimiser kind) { return kind == Optimiser::AdamW || kind == Optimiser::Lion; }

/// v = momentum v + g with g = gradient + weight_decay p; p = p - learning_rate v, or with nesterov
/// p - learning_rate (momentum v + g). v is the velocity.
struct SgdOptions {
    float learning_rate = 1e-3f, momentum = 0.9f, weight_decay = 0;
    bool nesterov = false;
    float scale = 1;  // the gradients are multiplied by it first
};
/// m = beta1 m + (1 - beta1) g and v = beta2 v + (1 - beta2) g^2; p = p - learning_rate m' / (sqrt(v') + epsilon),
/// where m' = m / (1 - beta1^step) and v' = v / (1 - beta2^step). For adam g is gradient + weight_decay p; adamw
/// multiplies p by 1 - learning_rate weight_decay instead, before.
struct AdamOptions {
    float learning_rate = 1e-3f, beta1 = 0.9f, beta2 = 0.999f, epsilon = 1e-8f, weight_decay = 0;
    float scale = 1;
};
/// p = (1 - learning_rate weight_decay) p - learning_rate sign(beta1 m + (1 - beta1) g), then
/// m = beta2 m + (1 - beta2) g. The sign of 0 is 0, that of a NaN a NaN.
struct LionOptions {
    float learning_rate = 1e-4f, beta1 = 0.9f, beta2 = 0.99f, weight_decay = 0;
    float scale = 1;
};

/// For the catalogue: names, launches, checks and references.
extern const Recipe sgd_momentum_recipe, adam_recipe, adamw_recipe, lion_recipe;

// One step for one tensor. Arrays have the same shape, of any size, and no gaps between rows; those that begin at
// multiples of 16 bytes are read in vectors. The functions throw Error for shapes and types that do not fit, and for
// options that no step can have.
void sgd_momentum(const Queue& queue, const TensorView& gradient, const MutableTensorView& parameter,
                  const MutableTensorView& velocity, const SgdOptions& options = {});
/// `step` counts from 1. `first` and `second` are m and v.
void adam(const Queue& queue, const TensorView& gradient, const MutableTensorView& parameter,
          const MutableTensorView& first, const MutableTensorView& second, std::uint32_t step,
          const AdamOptions& options = {});
/// With decoupled weight decay.
void adamw(const Queue& queue, const TensorView& gradient, const MutableTensorView& parameter,
           const MutableTensorView& first, const MutableTensorView& second, std::uint32_t step,
           const AdamOptions& options = {.weight_decay = 0.01f});
void lion(const Queue& queue, const TensorView& gradient, const MutableTensorView& parameter,
          const MutableTensorView& momentum, const LionOptions& options = {});

// ---- many tensors

/// A tensor, its gradient, and what an optimiser keeps for it. All have the same shape, of any size, and no gaps
/// between rows. Vectors are read of those that all begin at multiples of 16 bytes.
struct OptimisedTensor {
    TensorView gradient;                        // f32, f16 or bf16
    MutableTensorView parameter, first;         // f32; `first` is the momentum or the velocity
    std::optional<MutableTensorView> second{};  // f32, the mean of squares, for Adam and AdamW
    std::optional<MutableTensorView> copy{};    // f16 or bf16: the new parameters, rounded to nearest
};

/// A table of tensors on a device. It owns the table, not the tensors, which must outlive it where they are. All
/// gradients have one type, and either all tensors have copies, of one type, or none has; so it is with `second`.
class OptimisedTensors {
public:
    /// Throws Error for tensors that do not fit, and where what is written overlaps another array.
    OptimisedTensors(const runtime::Device& device, const std::vector<OptimisedTensor>& tensors,
                     const Location& where = Location::of(std::source_location::current()));

    /// In how many pieces of at most 16384 elements the tensors are cut: a block of threads for each.
    std::uint32_t pieces() const { return pieces_; }
    bool has_second() const { return has_second_; }
    ir::Type gradient_type() const { return gradient_; }
    /// Void without copies.
    ir::Type copy_type() const { return copy_; }
    /// Addresses and sizes, six words for each piece.
    const Buffer<std::uint64_t>& table() const { return table_; }
    /// One number 0 and one number 1, where a call has no step or scale on the device.
    const Buffer<std::uint32_t>& zero() const { return zero_; }
    const Buffer<float>& one() const { return one_; }
    /// Throws Error if a tensor has been freed.
    void check(const SizeCheck& check) const;

private:
    std::uint32_t pieces_ = 0;
    bool has_second_ = false;
    ir::Type gradient_ = ir::Type::F32, copy_ = ir::Type::Void;
    std::vector<runtime::BufferPart> parts_{};
    Buffer<std::uint64_t> table_;
    Buffer<std::uint32_t> zero_;
    Buffer<float> one_;
};

/// The number of a step, counted from 1: on the host or, as the only element of an array of std::uint32_t, on the
/// device.
class StepNumber {
public:
    StepNumber(std::uint32_t number) : number(number) {}
    StepNumber(const TensorView& array) : array(array) {}
    StepNumber(const Buffer<std::uint32_t>& buffer) : array(buffer) {}

    std::uint32_t number = 0;
    std::optional<TensorView> array{};
};
/// What changes from step to step.
struct StepState {
    StepNumber step = 1;  // for Adam and AdamW
    /// A number on the device that gradients are multiplied by. If it is an infinity or a NaN, the call changes
    /// nothing.
    std::optional<TensorView> scale{};
};

// One step for all tensors, in one launch. Throw Error for options that no step can have, and, for Adam, where tensors
// have no `second`.
void sgd_momentum(const Queue& queue, const OptimisedTensors& tensors, const StepState& state,
                  const SgdOptions& options = {});
void adam(const Queue& queue, const OptimisedTensors& tensors, const StepState& state, const AdamOptions& options = {});
void adamw(const Queue& queue, const OptimisedTensors& tensors, const StepState& state,
           const AdamOptions& options = {.weight_decay = 0.01f});
void lion(const Queue& queue, const OptimisedTensors& tensors, const StepState& state, const LionOptions& options = {});

// ---- the scale of gradients

/// norm[0] = the square root of the sum of the squares of all gradients, in f32, in an order that depends on the
/// tensors' sizes only. It is an infinity or a NaN if a gradient is one, or if the sum overflows: from a norm of 1.8e19
/// on. Two launches. The workspace has 4 bytes for each piece, rounded up to 16.
void gradient_norm(const Queue& queue, const OptimisedTensors& tensors, const MutableTensorView& norm,
                   const WorkspaceSlice& workspace = {});
std::uint64_t gradient_norm_workspace(const OptimisedTensors& tensors);

/// For the catalogue.
extern const Recipe clip_by_norm_recipe, loss_scale_update_recipe;
/// Of one number each, on the device: norm is that of gradients which are loss_scale times too large.
/// scale = min(1, max_norm / (norm / loss_scale + 1e-6)) / loss_scale, and step is increased by 1. If the norm or the
/// scale is an infinity or a NaN, scale is a NaN, and step stays. A max_norm of infinity does not clip. Throws Error
/// for one below 0 or NaN.
void clip_by_norm(const Queue& queue, const TensorView& norm, const TensorView& loss_scale,
                  const MutableTensorView& scale, const MutableTensorView& step,
                  float max_norm = std::numeric_limits<float>::infinity());

struct LossScaleOptions {
    float growth = 2, backoff = 0.5f;
    std::uint32_t interval = 2000;  // of good steps, after which the scale grows
};
/// Of one number each, on the device. After a bad step, in which scale is not finite, loss_scale is multiplied by
/// backoff, and good_steps is 0. After a good one good_steps grows by 1; when it has reached the interval, it is 0
/// again and loss_scale is multiplied by growth, unless that overflows. Throws Error for factors that are not positive
/// and finite, and for an interval of 0.
void loss_scale_update(const Queue& queue, const TensorView& scale, const MutableTensorView& loss_scale,
                       const MutableTensorView& good_steps, const LossScaleOptions& options = {});

namespace detail {

/// The numbers of an optimiser's kernels; see stdlib/optimise/update.hpp. Without Adam's corrections.
struct OptimiserNumbers {
    float rate = 0, beta1 = 0, beta2 = 0, epsilon = 0, decay = 0, scale = 1;
};
// These throw Error for options that no step can have.
OptimiserNumbers numbers_of(const SizeCheck& check, const SgdOptions& options);
OptimiserNumbers numbers_of(const SizeCheck& check, const AdamOptions& options, bool is_decoupled);
OptimiserNumbers numbers_of(const SizeCheck& check, const LionOptions& options);

}  // namespace detail
}  // namespace ikat::stdlib
