// SPDX-License-Identifier: Apache-2.0
// The calls of cross_entropy() and its kin: checks, launches, names.
#include "stdlib/loss/cross_entropy.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <vector>

#include "stdlib/epilogue/arguments.hpp"
#include "stdlib/gemm/tensor_core.hpp"
#include "stdlib/loss/cross_entropy_kernels.hpp"
#include "stdlib/quantised/call.hpp"
#include "stdlib/spec/kernel_arguments.hpp"
#include "stdlib/spec/named_functions.hpp"
#include "stdlib/spec/view_call.hpp"

namespace ikat::stdlib {
namespace {

using Step = CrossEntropyKernel::Step;
using Gradient = CrossEntropyKernel::Gradient;

/// Whether both are the same elements, of the same shape.
bool is_same(const TensorView& x, const TensorView& y) {
    return x.part.memory && y.part.memory && x.part.address() == y.part.address() &&
           x.of_rank(3).strides == y.of_rank(3).strides;
}

void check_row(const CallPlace& place, std::string_view name, const TensorView& x) {
    const std::uint64_t stride = x.strides[x.rank - 1];
    if (x.extents[x.rank - 1] > 1 && stride != 1)
        place.fail(fmt::format("the elements of a row of '{}' are {} apart", name, stride), "they follow each other");
}

/// What the functions have in common: rows with targets, of which all or some have their logits in an array.
class CrossEntropyCall {
public:
    CrossEntropyCall(std::string_view function, const Queue& queue, const CrossEntropyOptions& options)
        : place{function, queue.where()}, queue_(queue), options_(options) {
        check().enumerator("reduction", std::size_t(options.reduction), 3);
        const auto in_range = [&](std::string_view what, float number, float most) {
            if (!(number >= 0 && number <= most))
                place.fail(fmt::format("'{}' is {}", what, number), fmt::format("it is a number from 0 to {}", most));
        };
        in_range("smoothing", options.smoothing, 1);
        in_range("z_loss", options.z_loss, std::numeric_limits<float>::max());
        if (options.device_scale) check_number("device_scale", *options.device_scale);
    }

    const CallPlace place;

    SizeCheck check() const { return {place.function, place.where}; }
    /// Of sequences x tokens x ...; two dimensions are rows of one sequence.
    void take_rows(std::string_view name, const TensorView& x) {
        check_real(name, x);
        if (x.rank != 2 && x.rank != 3)
            place.fail(fmt::format("'{}' has {} dimension{}", name, x.rank, x.rank == 1 ? "" : "s"),
                       "it is a view of rows of elements, or sequences of rows");
        check_row(place, name, x);
        const TensorView all = x.of_rank(3);
        sequences_ = all.extents[0], tokens_ = all.extents[1], type_ = x.type;
        rows_ = check().reached(name, sequences_ * tokens_);
        if (rows_ > 0x7fffffff / 8) place.fail(fmt::format("{} rows", rows_), "a call has at most 2^28 - 1 rows");
    }
    void take_classes(std::string_view name, std::uint64_t classes) {
        if (classes == 0) place.fail("there are no classes", "rows have at least one logit");
        classes_ = check().reached(name, classes);
    }
    void take_targets(const TensorView& targets) {
        if (targets.format || (targets.type != ir::Type::U32 && targets.type != ir::Type::I32))
            place.fail(fmt::format("'targets' has elements of {}", targets.type_name()), "they are u32 or i32");
        targets_ = targets;
        // Of rows that follow each other any shape will do.
        if (targets.rank == 1 && targets.extents[0] == rows_ && targets.strides[0] == 1) {
            targets_.rank = 2;
            targets_.extents = {sequences_, tokens_}, targets_.strides = {tokens_, 1};
        }
        if (targets_.rank > 2 || targets_.of_rank(2).shape<2>() != std::array{sequences_, tokens_})
            place.fail(fmt::format("'targets' is {}, and there are {}", extents_text(targets),
                                   sequences_ == 1 ? fmt::format("{} rows", tokens_)
                                                   : fmt::format("{} sequences of {} rows", sequences_, tokens_)),
                       "there is a target for each row");
        targets_ = targets_.of_rank(2);
    }
    void take_loss(const TensorView& loss) {
        const std::uint64_t wanted = options_.reduction == LossReduction::none ? rows_ : 1;
        if (loss.type != ir::Type::F32 || loss.format)
            place.fail(fmt::format("'loss' has elements of {}", loss.type_name()), "a loss is f32");
        if (loss.rank != 1 || loss.extents[0] < wanted || loss.strides[0] != 1)
            place.fail(
                fmt::format("'loss' is {}, and there {} {}", extents_text(loss), wanted == 1 ? "is" : "are", wanted),
                options_.reduction == LossReduction::none ? "it is a Buffer with one for each row"
                                                          : "it is a Buffer of one number");
        loss_ = loss;
    }
    void check_real(std::string_view name, const TensorView& x) const {
        if (x.format || (x.type != ir::Type::F32 && x.type != ir::Type::F16 && x.type != ir::Type::BF16))
            place.fail(fmt::format("'{}' has elements of {}", name, x.type_name()), "they are f32, f16 or bf16");
    }
    /// With those of the call.
    void check_memory(std::vector<OperandRole> roles, const WorkspaceSlice& workspace) const {
        roles.push_back({"targets", targets_.part});
        roles.push_back({"loss", loss_.part, Role::Written});
        if (options_.device_scale) roles.push_back({"device_scale", options_.device_scale->part});
        roles.push_back({"workspace", workspace.part(), Role::Written});
        check_roles(place.function, place.where, roles);
    }

    std::uint64_t rows() const { return rows_; }
    std::uint64_t classes() const { return classes_; }
    static std::uint64_t workspace(std::uint64_t rows) {
        return Workspace::rounded(2 * sizeof(float)) + Workspace::rounded(rows * sizeof(float));
    }
    void take_workspace(Workspace& workspace) {
        factors_ = workspace.take<float>(2), losses_ = workspace.take<float>(rows_);
        if (options_.reduction == LossReduction::none) losses_ = BufferSlice<float>(loss_.part);
    }

    // The launches, in this order.
    void count() const {
        const bool is_mean = options_.reduction == LossReduction::mean, is_scaled = options_.device_scale.has_value();
        const CrossEntropyKernel kernel{.step = Step::Count, .is_mean = is_mean, .has_scale = is_scaled};
        KernelArguments arguments(kernel.handle(), place.where);
        arguments.add_array(ir::Type::U32, targets_.part), arguments.add_array(ir::Type::F32, factors_.part());
        if (is_scaled) arguments.add_array(*options_.device_scale);
        add_numbers(arguments, {}, nullptr, 0, rows_);
        arguments.launch(queue_, 1, kernel.threads_of_block());
    }
    /// The rows of x from number `first` on; without dx no gradient is wanted.
    void run(const TensorView& x, const TensorView* dx, std::uint64_t first = 0) const {
        const TensorView of_x = x.of_rank(3);
        const std::uint64_t rows = of_x.extents[0] * of_x.extents[1];
        if (rows == 0) return;
        const CrossEntropyKernel kernel = kernel_for(of_x, dx);
        KernelArguments arguments(kernel.handle(), place.where);
        arguments.add_array(ir::Type::U32, targets_.part);
        arguments.add_array(ir::Type::F32, factors_.part()), arguments.add_array(ir::Type::F32, losses_.part());
        arguments.add_array(x);
        if (kernel.gradient == Gradient::Elsewhere) arguments.add_array(*dx);
        add_numbers(arguments, of_x, dx, first, rows);
        const std::uint64_t groups = (rows + kernel.rows_of_block() - 1) / kernel.rows_of_block();
        arguments.launch(queue_, groups * kernel.blocks, kernel.threads_of_block(),
                         std::uint32_t(kernel.kept_bytes(classes_)));
    }
    void sum() const {
        if (options_.reduction == LossReduction::none) return;
        const CrossEntropyKernel kernel{.step = Step::Sum};
        KernelArguments arguments(kernel.handle(), place.where);
        arguments.add_array(ir::Type::F32, losses_.part()), arguments.add_array(ir::Type::F32, factors_.part());
        arguments.add_array(loss_);
        arguments.add_numbers(std::uint32_t(rows_));
        arguments.launch(queue_, 1, kernel.threads_of_block());
    }

private:
    void check_number(std::string_view name, const TensorView& x) const {
        if (x.type != ir::Type::F32 || x.rank != 1 || x.extents[0] == 0)
            place.fail(fmt::format("'{}' is {} of {}", name, extents_text(x), x.type_name()), "it is a number of f32");
    }
    CrossEntropyKernel kernel_for(const TensorView& x, const TensorView* dx) const {
        CrossEntropyKernel out{.type = type_};
        out.threads = classes_ <= 1024 ? 32 : classes_ <= 8192 ? 256 : 1024;
        if (!dx) return out;
        out.gradient = is_same(x, *dx) ? Gradient::InPlace : Gradient::Elsewhere;
        const RowMemory memory(queue_);
        out.keeps = true;
        for (out.blocks = 1; out.blocks <= (memory.has_clusters ? SharedRows::cluster : 1); out.blocks *= 2)
            if (out.kept_bytes(classes_) + SharedRows::other_bytes <= memory.block_bytes) return out;
        out.blocks = 1, out.keeps = false;
        return out;
    }
    static std::uint32_t elements_from_16_bytes(const TensorView& x) {
        const std::uint64_t bytes = ir::info(x.type).bytes;
        return std::uint32_t(x.part.address() / bytes % (16 / bytes));
    }
    void add_numbers(KernelArguments& to, const TensorView& x, const TensorView* dx, std::uint64_t first,
                     std::uint64_t rows) const {
        const TensorView y = dx ? dx->of_rank(3) : x;
        const bool has_logits = x.type != ir::Type::Void;
        to.add_numbers(std::uint32_t(rows), std::uint32_t(first), std::uint32_t(tokens_), std::uint32_t(classes_));
        to.add_numbers(std::uint32_t(options_.shift), std::uint32_t(options_.ignored), targets_.strides[0],
                       targets_.strides[1]);
        to.add_numbers(std::uint32_t(has_logits ? x.extents[1] : 1), has_logits ? elements_from_16_bytes(x) : 0u,
                       x.strides[0], x.strides[1]);
        to.add_numbers(has_logits ? elements_from_16_bytes(y) : 0u, y.strides[0], y.strides[1]);
        to.add_numbers(1 - options_.smoothing, options_.smoothing, options_.smoothing / float(classes_),
                       options_.z_loss, options_.scale);
    }

    const Queue& queue_;
    const CrossEntropyOptions& options_;
    TensorView targets_{}, loss_{};
    ir::Type type_ = ir::Type::F32;
    std::uint64_t sequences_ = 0, tokens_ = 0, rows_ = 0, classes_ = 0;
    BufferSlice<float> factors_{}, losses_{};
};

void run_cross_entropy(std::string_view function, const Queue& queue, const TensorView& logits,
                       const TensorView& targets, const MutableTensorView& loss, const MutableTensorView* dlogits,
                       const CrossEntropyOptions& options) {
    CrossEntropyCall call(function, queue, options);
    call.take_rows("logits", logits);
    call.take_classes("logits", logits.extents[logits.rank - 1]);
    call.take_targets(targets), call.take_loss(loss);
    if (dlogits && (dlogits->type != logits.type || dlogits->format || dlogits->rank != logits.rank ||
                    dlogits->extents != logits.extents))
        call.place.fail(fmt::format("'dlogits' is {} of {}, 'logits' is {} of {}", extents_text(*dlogits),
                                    dlogits->type_name(), extents_text(logits), logits.type_name()),
                        "they have the same shape and type");
    if (dlogits) check_row(call.place, "dlogits", *dlogits);
    const bool is_in_place = dlogits && is_same(logits, *dlogits);
    std::vector<OperandRole> roles{{"logits", logits.part, is_in_place ? Role::Written : Role::Read}};
    if (dlogits && !is_in_place) roles.push_back({"dlogits", dlogits->part, Role::Written});
    call.check_memory(std::move(roles), options.workspace);
    Workspace workspace(queue, function, options.workspace, CrossEntropyCall::workspace(call.rows()));
    call.take_workspace(workspace);
    call.count(), call.run(logits, dlogits), call.sum();
}

/// Rows of a view of which all rows are as far apart, as a matrix.
TensorView rows_from(const TensorView& x, std::uint64_t first, std::uint64_t count) {
    const std::uint64_t pitch = x.strides[x.rank - 2];
    TensorView out = part_from(x, first * pitch);
    out.extents = {count, x.extents[x.rank - 1]}, out.strides = {pitch, 1}, out.rank = 2;
    return out;
}

std::uint64_t chunk_of(std::uint64_t rows, std::uint64_t bytes_of_row, std::uint32_t given) {
    constexpr std::uint64_t most = std::uint64_t{128} << 20, step = 128;
    const std::uint64_t chosen = std::max(most / std::max<std::uint64_t>(bytes_of_row, 1) / step * step, step);
    return std::min(given != 0 ? given : chosen, rows);
}

/// The shapes of a call of linear_cross_entropy().
class LinearCall {
public:
    LinearCall(const CallPlace& place, const TensorView& X, const TensorView& W) : place_(place), X_(X), W_(W) {
        if (W.type != X.type || W.format || W.rank != 2 || (W.extents[1] > 1 && W.strides[1] != 1))
            place.fail(fmt::format("'W' is {} of {}, and X has {}", extents_text(W), W.type_name(), X.type_name()),
                       "it is a matrix of classes x k, of X's type");
        if (W.extents[1] != X.extents[X.rank - 1])
            place.fail(fmt::format("'W' is {}, and rows of X have {} elements", extents_text(W), X.extents[X.rank - 1]),
                       "both have k columns");
        check_sequences("X", X);
    }
    void check_gradients(const TensorView& dX, const TensorView& dW) const {
        if (dX.type != X_.type || dX.format || dX.rank != X_.rank || dX.extents != X_.extents)
            place_.fail(fmt::format("'dX' is {} of {}, and X {} of {}", extents_text(dX), dX.type_name(),
                                    extents_text(X_), X_.type_name()),
                        "they have the same shape and type");
        check_row(place_, "dX", dX);
        check_sequences("dX", dX);
        if (dW.type != ir::Type::F32 || dW.rank != 2 || dW.extents != W_.extents)
            place_.fail(fmt::format("'dW' is {} of {}, and W {}", extents_text(dW), dW.type_name(), extents_text(W_)),
                        "it has the shape of W, and is f32");
    }

private:
    void check_sequences(std::string_view name, const TensorView& x) const {
        if (x.rank == 3 && x.extents[0] > 1 && x.strides[0] != x.extents[1] * x.strides[1])
            place_.fail(fmt::format("there are gaps between the sequences of '{}'", name),
                        "all its rows are as far apart");
    }

    const CallPlace& place_;
    const TensorView &X_, &W_;
};

std::uint64_t linear_workspace(const TensorView& X, std::uint64_t classes, std::uint32_t chunk_rows) {
    const std::uint64_t bytes = classes * ir::info(X.type).bytes;
    std::uint64_t rows = 1;
    for (std::size_t d = 0; d + 1 < X.rank; ++d) rows *= X.extents[d];
    return CrossEntropyCall::workspace(rows) + Workspace::rounded(chunk_of(rows, bytes, chunk_rows) * bytes);
}

}  // namespace

void cross_entropy(const Queue& queue, const TensorView& logits, const TensorView& targets,
                   const MutableTensorView& loss, const CrossEntropyOptions& options) {
    run_cross_entropy("cross_entropy", queue, logits, targets, loss, nullptr, options);
}
void fused_cross_entropy(const Queue& queue, const TensorView& logits, const TensorView& targets,
                         const MutableTensorView& loss, const MutableTensorView& dlogits,
                         const CrossEntropyOptions& options) {
    run_cross_entropy("fused_cross_entropy", queue, logits, targets, loss, &dlogits, options);
}
std::uint64_t cross_entropy_workspace(std::uint64_t rows) { return CrossEntropyCall::workspace(rows); }

void linear_cross_entropy(const Queue& queue, const TensorView& X, const TensorView& W, const TensorView& targets,
                          const MutableTensorView& loss, const MutableTensorView& dX, const MutableTensorView& dW,
                          const LinearCrossEntropyOptions& options) {
    constexpr std::string_view function = "linear_cross_entropy";
    CrossEntropyCall call(function, queue, options.loss);
    call.take_rows("X", X);
    LinearCall(call.place, X, W).check_gradients(dX, dW);
    call.take_classes("W", W.extents[0]);
    call.take_targets(targets), call.take_loss(loss);
    call.check_memory({{"X", X.part}, {"W", W.part}, {"dX", dX.part, Role::Written}, {"dW", dW.part, Role::Written}},
                      options.workspace);
    Workspace workspace(queue, function, options.workspace, linear_workspace(X, call.classes(), options.chunk_rows));
    call.take_workspace(workspace);
    const std::uint64_t bytes = call.classes() * ir::info(X.type).bytes;
    const std::uint64_t chunk = chunk_of(call.rows(), bytes, options.chunk_rows);
    const auto memory = workspace.take<std::uint8_t>(chunk * bytes);
    const auto logits_of = [&](std::uint64_t rows) {
        return MutableTensorView(TensorView(X.type, memory.part(), std::array{rows, call.classes()}));
    };
    call.count();
    for (std::uint64_t first = 0; first < call.rows(); first += chunk) {
        const std::uint64_t rows = std::min(chunk, call.rows() - first);
        const MutableTensorView logits = logits_of(rows);
        gemm_tensor_core(queue, rows_from(X, first, rows), W, logits, {.b = MatrixOrder::Columns});
        call.run(logits, &logits, first);
        gemm_tensor_core(queue, logits, W, MutableTensorView(rows_from(dX, first, rows)));
        gemm_tensor_core(queue, logits, rows_from(X, first, rows), dW,
                         {.beta = first != 0 || options.accumulate ? 1.0f : 0.0f, .a = MatrixOrder::Columns});
    }
    if (call.rows() == 0 && !options.accumulate)
        gemm_tensor_core(queue, logits_of(0), rows_from(X, 0, 0), dW, {.a = MatrixOrder::Columns});
    call.sum();
}

std::uint64_t linear_cross_entropy_workspace(const TensorView& X, const TensorView& W,
                                             const LinearCrossEntropyOptions& options) {
    return linear_workspace(X, W.extents[0], options.chunk_rows);
}

// ---- by names

namespace {

constexpr NamedFunction::Size sizes[] = {{"rows", 4096}, {"classes", 32000}, {"k", 4096}};
constexpr NamedFunction::Setting settings[] = {
    {"reduction", "of the rows' losses: mean or sum; mean if it is not set"},
    {"ignored", "rows with this target do not count; -100 if it is not set"},
    {"smoothing", "how much of the loss is that of a uniform target; 0 if it is not set"},
    {"z_loss", "what the square of the logarithm of the sum is multiplied with; 0 if it is not set"},
    {"shift", "1: the target of a row is that of the next one; 0 if it is not set"},
    {"scale", "what the gradient is multiplied with; 1 if it is not set"},
};
constexpr std::string_view rows_document =
    "logits are rows x classes of f32, f16 or bf16, targets u32, the loss is one f32: the mean or the sum of\n"
    "log(sum of exp(x)) - x[target] over the rows. A target that is no class makes it NaN.";
constexpr auto loss_family =
    family_of("cross_entropy", "the cross entropy of rows of logits", rows_document, settings, sizes);
constexpr auto fused_family = family_of("fused_cross_entropy", "the cross entropy of rows of logits, and its gradient",
                                        rows_document, settings, sizes);
constexpr auto linear_family =
    family_of("linear_cross_entropy", "the cross entropy of X Wᵀ, and its gradients",
              "X is rows x k, W classes x k, of f32, f16 or bf16; logits are computed for some rows after the\n"
              "others, so that they are never all there. dW is f32.",
              settings, sizes);

CrossEntropyOptions options_of(const FunctionSettings& given) {
    constexpr std::string_view reductions[] = {"mean", "sum"};
    CrossEntropyOptions out{.reduction = LossReduction(given.one_of("reduction", reductions))};
    if (const auto ignored = given.texts().find("ignored"); ignored != given.texts().end()) {
        // -1 or 4294967295: the same 32 bits.
        const std::string& text = ignored->second;
        std::int64_t number = 0;
        const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
        if (error != std::errc() || end != text.data() + text.size() || number < -0x80000000ll || number > 0xffffffffll)
            throw Error("'ignored' is " + text, "it is a whole number of 32 bits");
        out.ignored = std::int32_t(std::uint32_t(number));
    }
    out.smoothing = given.number("smoothing").value_or(0), out.z_loss = given.number("z_loss").value_or(0);
    out.shift = given.count("shift").value_or(0) != 0, out.scale = given.number("scale").value_or(1);
    return out;
}

}  // namespace

std::vector<NamedFunction> loss_functions() {
    const auto targets = input("targets", "rows", ir::Type::U32), loss = output("loss", {}, ir::Type::F32);
    std::vector<NamedFunction> out(3);
    out[0] = {.name = "cross_entropy",
              .family = &loss_family,
              .formula = "loss = mean of log(sum of exp(x)) - x[target]",
              .call = "cross_entropy(queue, logits, targets, loss, options)",
              .arrays = {input("logits", "rows classes"), targets, loss}};
    out[0].run = [](const Queue& queue, NamedArrays arrays, const FunctionSettings& given) {
        cross_entropy(queue, arrays[0], arrays[1], arrays[2], options_of(given));
    };
    out[1] = {.name = "fused_cross_entropy",
              .family = &fused_family,
              .formula = "loss = mean of log(sum of exp(x)) - x[target], dlogits = its gradient",
              .call = "fused_cross_entropy(queue, logits, targets, loss, dlogits, options)",
              .arrays = {input("logits", "rows classes"), targets, loss, output("dlogits", "rows classes")}};
    out[1].run = [](const Queue& queue, NamedArrays arrays, const FunctionSettings& given) {
        fused_cross_entropy(queue, arrays[0], arrays[1], arrays[2], arrays[3], options_of(given));
    };
    out[2] = {.name = "linear_cross_entropy",
              .family = &linear_family,
              .formula = "the same of the logits X W', and dX, dW",
              .call = "linear_cross_entropy(queue, X, W, targets, loss, dX, dW, options)",
              .arrays = {input("X", "rows k"), input("W", "classes k"), targets, loss, output("dX", "rows k"),
                         output("dW", "classes k", ir::Type::F32)}};
    out[2].run = [](const Queue& queue, NamedArrays arrays, const FunctionSettings& given) {
        linear_cross_entropy(queue, arrays[0], arrays[1], arrays[2], arrays[3], arrays[4], arrays[5],
                             {.loss = options_of(given)});
    };
    return out;
}

}  // namespace ikat::stdlib
