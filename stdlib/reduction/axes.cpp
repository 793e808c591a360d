// SPDX-License-Identifier: Apache-2.0
#include "stdlib/reduction/axes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "stdlib/reduction/axes_kernels.hpp"
#include "stdlib/spec/kernel_arguments.hpp"
#include "stdlib/spec/named_functions.hpp"

namespace ikat::stdlib {
namespace {

constexpr std::string_view names[reduction_count] = {"sum",   "mean",   "max",    "min", "variance",
                                                     "norm2", "argmax", "argmin", "any", "all"};

bool is_of_bits(Reduction what) { return what == Reduction::any || what == Reduction::all; }
bool is_argument(Reduction what) { return what == Reduction::argmax || what == Reduction::argmin; }
bool has_none(Reduction what) { return is_argument(what) || what == Reduction::max || what == Reduction::min; }

std::string extents_text(const TensorView& view) {
    return fmt::format("{}", fmt::join(view.extents.begin(), view.extents.begin() + view.rank, " x "));
}

struct Dimension {
    std::uint64_t extent = 1, x = 0, y = 0;  // and strides
};
/// Those with several indices, the first of which changes first.
using Dimensions = std::vector<Dimension>;

/// By x; equal ones keep their order. (std::stable_sort of this libstdc++ is deprecated inside, says clang.)
void sort_by_stride(Dimensions& all) {
    for (auto at = all.begin(); at != all.end(); ++at)
        std::rotate(std::ranges::upper_bound(all.begin(), at, at->x, {}, &Dimension::x), at, std::next(at));
}

/// As few as there can be: those whose elements follow those of the one before it become one with it.
Dimensions merged(const Dimensions& all) {
    Dimensions out;
    for (const Dimension& each : all) {
        if (each.extent == 1) continue;
        const auto follows = [&](std::uint64_t Dimension::*stride) {
            return each.*stride == out.back().*stride * out.back().extent;
        };
        if (!out.empty() && follows(&Dimension::x) && follows(&Dimension::y))
            out.back().extent *= each.extent;
        else
            out.push_back(each);
    }
    return out;
}
std::uint64_t product(const Dimensions& all) {
    std::uint64_t out = 1;
    for (const Dimension& each : all) out *= each.extent;
    return out;
}
/// From the first element to the last.
std::uint64_t reach(const Dimensions& all, std::uint64_t Dimension::*stride) {
    std::uint64_t out = 0;
    for (const Dimension& each : all) out += (std::max<std::uint64_t>(each.extent, 1) - 1) * each.*stride;
    return out;
}

/// A call, after its axes have been checked.
class ReductionCall {
public:
    ReductionCall(const SizeCheck& check, Reduction what, const TensorView& x, const Axes& axes)
        : check_(check), what_(what), x_(x) {
        check_.enumerator("what", std::size_t(what), reduction_count);
        find_axes(axes);
        if (x.rank == 0 || x.rank > TensorView::max_dimensions)
            fail(fmt::format("'x' has {} dimensions", x.rank), "it has one to five");
    }

    void set_y(const TensorView& y) { y_ = y; }
    void check_types() const;
    void check_shape() const;
    void plan();
    std::uint64_t workspace_bytes() const {
        if (shares_ == 1) return 0;
        const std::uint64_t arrays = 1u + kernel_.has_second() + kernel_.has_count();
        return arrays * Workspace::rounded(shares_ * results_ * sizeof(float));
    }
    void run(const Queue& queue, const ReductionOptions& options);

private:
    [[noreturn]] void fail(std::string_view message, std::string_view hint) const {
        throw Error(Diagnostic{.where = check_.where,
                               .message = fmt::format("{}: {}", check_.function, message),
                               .hint = std::string(hint)});
    }
    void find_axes(const Axes& axes);
    void choose_kernel();
    void choose_shares();
    std::uint32_t unit() const;
    void add_places(KernelArguments& to) const;

    SizeCheck check_;
    Reduction what_;
    TensorView x_;
    std::optional<TensorView> y_{};
    std::array<bool, TensorView::max_dimensions> is_reduced_{};
    Dimensions kept_{}, reduced_{};
    std::uint64_t results_ = 1, elements_ = 1, shares_ = 1;
    ReductionKernel kernel_{};
};

void ReductionCall::find_axes(const Axes& axes) {
    if (axes.list().empty()) fail("there are no axes", "name the dimensions to reduce: {1}, {0, -1}");
    const int rank = int(x_.rank);
    for (const int axis : axes.list()) {
        const int at = axis < 0 ? axis + rank : axis;
        if (at < 0 || at >= rank)
            fail(fmt::format("axis {} of 'x', which is {}", axis, extents_text(x_)),
                 fmt::format("its axes are 0 to {}, or -{} to -1", rank - 1, rank));
        if (is_reduced_[std::size_t(at)]) fail(fmt::format("axis {} is there twice", axis), "name each once");
        is_reduced_[std::size_t(at)] = true;
    }
}

void ReductionCall::check_types() const {
    const auto is_real = [](ir::Type type) {
        return type == ir::Type::F32 || type == ir::Type::F16 || type == ir::Type::BF16;
    };
    if (x_.format || (is_of_bits(what_) ? x_.type != ir::Type::U8 : !is_real(x_.type)))
        fail(fmt::format("'x' has elements of {}", x_.type_name()),
             is_of_bits(what_) ? "those of any and all are u8" : "they are f32, f16 or bf16");
    const ir::Type wanted = is_argument(what_) ? ir::Type::U32 : x_.type;
    if (y_->format || y_->type != wanted)
        fail(fmt::format("'y' has elements of {}", y_->type_name()),
             fmt::format("those of {} of {} are {}", names[std::size_t(what_)], x_.type_name(), ir::info(wanted).name));
}

void ReductionCall::check_shape() const {
    std::vector<std::uint64_t> kept, with_ones;
    for (std::size_t d = 0; d < x_.rank; ++d) {
        if (!is_reduced_[d]) kept.push_back(x_.extents[d]);
        with_ones.push_back(is_reduced_[d] ? 1 : x_.extents[d]);
    }
    if (kept.empty()) kept.push_back(1);
    const auto is = std::span(y_->extents).first(y_->rank);
    if (!std::ranges::equal(is, kept) && !std::ranges::equal(is, with_ones))
        fail(fmt::format("'y' is {}", extents_text(*y_)),
             fmt::format("of 'x', which is {}, remains {}, or {}", extents_text(x_), fmt::join(kept, " x "),
                         fmt::join(with_ones, " x ")));
}

void ReductionCall::plan() {
    Dimensions kept, reduced;
    const bool has_ones = y_ && y_->rank == x_.rank;
    std::size_t of_y = 0;
    for (std::size_t d = 0; d < x_.rank; ++d) {
        if (is_reduced_[d])
            reduced.push_back({x_.extents[d], x_.strides[d], 0});
        else
            kept.push_back({x_.extents[d], x_.strides[d], y_ ? y_->strides[has_ones ? d : of_y++] : 0});
    }
    results_ = product(kept), elements_ = product(reduced);
    if (results_ == 0) return;
    if (elements_ == 0 && has_none(what_))
        fail(fmt::format("the {} of no elements", names[std::size_t(what_)]), "an axis that is reduced has elements");
    // Indices count along the last dimension first, as in memory; others are best read by memory, whatever it is.
    std::ranges::reverse(kept), std::ranges::reverse(reduced);
    sort_by_stride(kept);
    if (!is_argument(what_)) sort_by_stride(reduced);
    kept_ = merged(kept);
    if (elements_ != 0) {
        reduced_ = merged(reduced);
        check_.reached("x", reach(kept_, &Dimension::x) + reach(reduced_, &Dimension::x) + 1);
    }
    check_.reached("y", reach(kept_, &Dimension::y) + 1);
    choose_kernel();
    choose_shares();
}

/// Threads go along what follows each other in memory; few elements are no work for a warp.
void ReductionCall::choose_kernel() {
    const bool along_elements = kept_.empty() || (!reduced_.empty() && reduced_[0].x < kept_[0].x && elements_ >= 16);
    kernel_ = {.what = what_, .x = x_.type};
    kernel_.threads = !along_elements     ? ReductionThreads::columns
                      : elements_ <= 1024 ? ReductionThreads::warp
                                          : ReductionThreads::block;
    kernel_.one_dimension = reduced_.size() <= 1;
}

/// So many that a large GPU has a block for each of its multiprocessors, and each share has enough to do.
void ReductionCall::choose_shares() {
    constexpr std::uint64_t wanted_blocks = 256;
    const std::uint64_t blocks = (results_ + kernel_.results_of_block() - 1) / kernel_.results_of_block();
    const std::uint64_t least = kernel_.threads == ReductionThreads::columns ? 256 : 8192;
    shares_ = std::clamp<std::uint64_t>(wanted_blocks / blocks, 1, std::max<std::uint64_t>(elements_ / least, 1));
    kernel_.in_shares = shares_ > 1;
}

/// The largest power of 2 that divides where vectors may begin, and how many elements follow each other.
std::uint32_t ReductionCall::unit() const {
    if (reduced_.empty() || reduced_[0].x != 1) return 1;
    std::uint64_t all = x_.part.address() / ir::info(x_.type).bytes | reduced_[0].extent;
    for (const Dimension& each : kept_) all |= each.x;
    for (std::size_t d = 1; d < reduced_.size(); ++d) all |= reduced_[d].x;
    return std::uint32_t(all & -all);
}

void ReductionCall::add_places(KernelArguments& to) const {
    const auto number = [&](std::uint64_t n) { to.add_numbers(std::uint32_t(n)); };
    for (const std::uint64_t n : {std::uint64_t(unit()), results_, elements_, shares_}) number(n);
    const auto add = [&](const Dimensions& all, std::size_t count, std::uint64_t Dimension::*field) {
        for (std::size_t d = 0; d < count; ++d)
            number(d < all.size() ? all[d].*field : field == &Dimension::extent ? 1 : 0);
    };
    add(kept_, 3, &Dimension::extent), add(kept_, 4, &Dimension::x), add(kept_, 4, &Dimension::y);
    add(reduced_, 4, &Dimension::extent), add(reduced_, 5, &Dimension::x);
}

void ReductionCall::run(const Queue& queue, const ReductionOptions& options) {
    check_roles(check_.function, check_.where,
                std::vector<OperandRole>{{"x", x_.part, Role::Read},
                                         {"y", y_->part, Role::Written},
                                         {"workspace", options.workspace.part(), Role::Written}});
    if (results_ == 0) return;
    const bool unbiased = options.unbiased && what_ == Reduction::variance;
    kernel_.unbiased = unbiased && shares_ == 1;
    const std::uint64_t blocks = (results_ + kernel_.results_of_block() - 1) / kernel_.results_of_block();
    KernelArguments arguments(kernel_.handle(), check_.where);
    arguments.add_array(x_);
    if (shares_ == 1) {
        arguments.add_array(*y_);
        add_places(arguments);
        return arguments.launch(queue, blocks, ReductionKernel::block);
    }
    const ReductionKernel combining{.what = what_, .x = x_.type, .combines = true, .unbiased = unbiased};
    KernelArguments combine(combining.handle(), check_.where);
    Workspace workspace(queue, check_.function, options.workspace, workspace_bytes());
    const auto add = [&]<class T>(T) {
        const auto part = workspace.take<T>(shares_ * results_).part();
        arguments.add_array(ir::type_of<T>, part), combine.add_array(ir::type_of<T>, part);
    };
    add(float());
    if (kernel_.has_second()) add(float());
    if (kernel_.has_count()) add(std::uint32_t());
    combine.add_array(*y_);
    add_places(arguments), add_places(combine);
    arguments.launch(queue, blocks * shares_, ReductionKernel::block);
    combine.launch(queue, (results_ + 7) / 8, ReductionKernel::block);
}

}  // namespace

std::string_view name_of(Reduction what) { return names[std::size_t(what)]; }

std::uint64_t reduce_workspace(Reduction what, const TensorView& x, const Axes& axes) {
    ReductionCall call({"reduce_workspace"}, what, x, axes);
    call.plan();
    return call.workspace_bytes();
}

void reduce(const Queue& queue, Reduction what, const TensorView& x, const MutableTensorView& y, const Axes& axes,
            const ReductionOptions& options) {
    ReductionCall call({"reduce", queue.where()}, what, x, axes);
    call.set_y(y);
    call.check_types(), call.check_shape();
    call.plan();
    call.run(queue, options);
}

// ---- by names

namespace {

constexpr NamedFunction::Size sizes[] = {{"outer", 16}, {"axis", 4096}, {"inner", 64}};
constexpr NamedFunction::Setting settings[] = {
    {"unbiased", "1: a variance is divided by the number of elements less 1; 0 if it is not set"}};
constexpr auto family =
    family_of("reduce_(sum|mean|max|min|variance|norm2|argmax|argmin|any|all)",
              "y = the reduction of x along one of its dimensions",
              "x is outer x axis x inner of f32, f16 or bf16, y is outer x inner, of the same type; of argmax and\n"
              "argmin, the first index of an extremum, it is u32. any and all are of u8. Computed in f32 and rounded\n"
              "once. A NaN is the maximum, and the minimum.",
              settings, sizes);

}  // namespace

std::vector<NamedFunction> reduction_functions() {
    std::vector<NamedFunction> out;
    for (std::size_t i = 0; i < reduction_count; ++i) {
        const auto what = Reduction(i);
        const ir::Type of_x = is_of_bits(what) ? ir::Type::U8 : ir::Type::Void;
        out.push_back({.name = fmt::format("reduce_{}", names[i]), .family = &family});
        out.back().formula = fmt::format("y[i, j] = the {} of x[i, 0 ..., j]", names[i]);
        out.back().call = fmt::format("reduce(queue, Reduction::{}, x, y, axes, options)", names[i]);
        out.back().arrays = {input("x", "outer axis inner", of_x),
                             output("y", "outer inner", is_argument(what) ? ir::Type::U32 : of_x)};
        out.back().run = [what](const Queue& queue, NamedArrays arrays, const FunctionSettings& given) {
            reduce(queue, what, arrays[0], arrays[1], 1, {.unbiased = given.count("unbiased").value_or(0) != 0});
        };
    }
    return out;
}

}  // namespace ikat::stdlib
