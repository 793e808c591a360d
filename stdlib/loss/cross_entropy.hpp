// SPDX-License-Identifier: Apache-2.0
// Cross entropy, the loss of classifiers and language models, and its gradient:
//
//     cross_entropy(device, logits.view(rows, classes), targets, loss);                       the loss alone
//     fused_cross_entropy(device, logits.view(rows, classes), targets, loss, dlogits.view(rows, classes));
//     linear_cross_entropy(device, x.view(rows, k), w.view(classes, k), targets, loss, dx.view(rows, k),
//                          dw.view(classes, k));                                              logits are never whole
//
// With l = log(sum of exp(x) over the classes), a row costs l - x[target]. What PyTorch calls label smoothing mixes in
// the mean over all classes, l - mean of x; the z-loss adds z l². Logits are f32, f16 or bf16; all is computed in f32,
// and the gradient is rounded once. Sums have one order: the bits are the same in every run.
#pragma once
#include <optional>

#include "runtime/tensor_view.hpp"
#include "stdlib/spec/recipe.hpp"

namespace ikat::stdlib {

/// What becomes of the losses of rows: their mean over the rows that count, their sum, or each by itself.
enum class LossReduction : std::uint8_t { mean, sum, none };

struct CrossEntropyOptions {
    LossReduction reduction = LossReduction::mean;
    /// Rows with this target cost nothing, are not counted by a mean, and have a gradient of 0. Their logits are not
    /// read. PyTorch's -100.
    std::int32_t ignored = -100;
    /// From 0 to 1: how much of a row's loss is that of a uniform target.
    float smoothing = 0;
    /// What the square of log(sum of exp(x)) is multiplied with and added, of each row that counts; 0 for none.
    float z_loss = 0;
    /// Row t of a sequence has the target of row t + 1, as models that foretell the next token have it; the last row of
    /// each sequence is ignored.
    bool shift = false;
    /// The gradient is multiplied with it, and with a number on the device, if there is one: a loss scale.
    float scale = 1;
    std::optional<TensorView> device_scale{};
    /// cross_entropy_workspace() bytes. Without it, the functions allocate their own.
    WorkspaceSlice workspace{};
};

/// The loss of each row of logits, rows x classes or sequences x tokens x classes, of any number of classes from 1 on;
/// rows may be any number of elements apart. Targets are std::int32_t or std::uint32_t, one for each row: rows, or
/// sequences x tokens, with gaps or not. The loss is one f32, or one for each row. Each logit is read once.
///
/// A row with a NaN, with +infinity, or with nothing but -infinity has a loss of NaN. Another -infinity has probability
/// 0; as the target, or with smoothing, it costs infinitely much. A target that is no class makes the row's loss NaN.
/// The mean of no rows is NaN.
/// Throws Error for sizes, types and options that do not fit.
void cross_entropy(const Queue& queue, const TensorView& logits, const TensorView& targets,
                   const MutableTensorView& loss, const CrossEntropyOptions& options = {});

/// The same, and the gradient of the loss, or of the sum of the rows' losses, in dlogits, which may be the logits
/// themselves, else of the same shape and type. Rows are read once where the shared memory of a block holds them, or,
/// on sm_90 and later, that of a cluster of up to 8; longer ones twice. A row with a bad target has a gradient of NaN.
void fused_cross_entropy(const Queue& queue, const TensorView& logits, const TensorView& targets,
                         const MutableTensorView& loss, const MutableTensorView& dlogits,
                         const CrossEntropyOptions& options = {});

/// The bytes of workspace that a call with so many rows needs.
std::uint64_t cross_entropy_workspace(std::uint64_t rows);

struct LinearCrossEntropyOptions {
    CrossEntropyOptions loss{};  // its workspace is not used
    /// dW += instead of dW =.
    bool accumulate = false;
    /// Of how many rows logits are there at once; 0: so many that they take at most 128 MiB, but 128 at least. dW is
    /// added in chunks: another number gives other roundings.
    std::uint32_t chunk_rows = 0;
    /// linear_cross_entropy_workspace() bytes. Without it, the function allocates its own.
    WorkspaceSlice workspace{};
};

/// The loss of the logits X Wᵀ, and its gradients dX and dW. X and dX are rows x k, or sequences x tokens x k without
/// gaps between sequences; W is classes x k, all of f32, f16 or bf16, and the logits are rounded to it. f32 is
/// multiplied as tf32. dW is f32. Logits are computed for some rows after the others, on tensor cores, and become their
/// own gradient, of which dX and dW are made: no more of them is ever there.
/// Throws Error for sizes, types and options that do not fit.
void linear_cross_entropy(const Queue& queue, const TensorView& X, const TensorView& W, const TensorView& targets,
                          const MutableTensorView& loss, const MutableTensorView& dX, const MutableTensorView& dW,
                          const LinearCrossEntropyOptions& options = {});

/// The bytes of workspace that the same call needs, beside what its products divide.
std::uint64_t linear_cross_entropy_workspace(const TensorView& X, const TensorView& W,
                                             const LinearCrossEntropyOptions& options = {});

}  // namespace ikat::stdlib
