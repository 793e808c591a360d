// SPDX-License-Identifier: Apache-2.0
#include "stdlib/spec/view_call.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "codegen/kernel/kernel_info.hpp"
#include "codegen/support/diagnostic.hpp"

namespace ikat::stdlib {
namespace {

constexpr std::size_t written = 2, first_of_more = 3;  // see RowPlaces

std::string extents_text(const TensorView& view) {
    return fmt::format("{}", fmt::join(view.extents.begin(), view.extents.begin() + view.rank, " x "));
}

/// The arrays with rows, and which operands they are.
struct RowArrays {
    std::array<const TensorView*, RowLayout::arrays> views{};
    std::array<std::size_t, RowLayout::arrays> operands{};

    explicit RowArrays(const ViewCall& call) {
        const auto all = call.recipe().operands.all();
        std::size_t last = 0, next = 0;
        for (std::size_t i = 0; i < all.size(); ++i)
            if (all[i].shape.has_more()) last = i;
        for (std::size_t i = 0; i <= last; ++i) {
            if (!all[i].shape.has_more()) continue;
            if (next == written) ++next;
            const std::size_t at = i == last && all[i].access != Access::In ? written : next++;
            IKAT_ASSERT(at < views.size(), "a function with too many arrays of rows");
            views[at] = &call.views()[i];
            operands[at] = i;
        }
    }
};

/// The largest power of 2 that divides the numbers and where arrays begin, in elements.
class Unit {
public:
    void add(std::uint64_t number) { all_ |= number; }
    void add(const TensorView& view) {
        if (view.part.bytes) add(view.part.address() / info(view.type).bytes);
    }
    std::uint32_t value() const { return std::uint32_t(all_ & -all_); }

private:
    std::uint64_t all_ = 0;
};

/// One launch of run_rows.
class RowLaunch {
public:
    RowLaunch(const ViewCall& call, const RowArrays& of, const RowLayout& layout)
        : views_(call.views().begin(), call.views().end()), is_by_element_(views_.size()), layout_(layout) {
        for (std::size_t a = 0; a < RowLayout::arrays; ++a)
            if (of.views[a]) {
                views_[of.operands[a]] = part_from(*of.views[a], layout.first[a]);
                is_of_rows_[a] = row_of(*of.views[a]) == row_of(*of.views[of.views[0] ? 0 : written]);
                const ArrayOperand& operand = call.recipe().operands.all()[of.operands[a]];
                is_by_element_[of.operands[a]] = !is_of_rows_[a] && operand.type != ir::Type::Void;
            }
    }

    /// Whether it is one for kernels whose rows follow each other and begin at multiples of 16 bytes.
    bool is_packed() const {
        return layout_.is_packed() && std::ranges::all_of(views_, [](const TensorView& view) {
                   return !view.part.memory || view.part.address() % 16 == 0;
               });
    }

    /// The kernel for these rows, of elements of so many bytes.
    ChosenVariant kernel_for(const Recipe& recipe, std::uint64_t bytes, const RowMemory& memory) const {
        return recipe.kernel_for(std::uint32_t(layout_.columns), bytes, unit() % (16 / bytes) == 0, memory);
    }

    /// The arguments of a kernel.
    std::vector<FunctionOperand> arguments(const KernelInfo& kernel, std::span<const FunctionOperand> numbers) const {
        std::vector<FunctionOperand> out;
        std::size_t array = 0, number = 0;
        for (const ir::Parameter& parameter : kernel.parameters) {
            if (parameter.access != Access::Value)
                out.push_back(views_[array++]);
            else if (const std::optional<std::uint64_t> known = size(parameter.name))
                out.push_back(std::uint32_t(*known));
            else
                out.push_back(numbers[number++]);
        }
        return out;
    }

private:
    static std::uint64_t row_of(const TensorView& view) { return view.extents[view.rank - 1]; }
    /// A parameter that follows from the layout.
    std::optional<std::uint64_t> size(std::string_view name) const {
        if (name == "rows") return layout_.number_of_rows();
        if (name == "columns") return layout_.columns;
        if (name == "n") return layout_.is_empty() ? 0 : layout_.columns;
        if (name == "before") return layout_.before;
        if (name == "first_row") return layout_.columns == 0 ? 0 : layout_.before / layout_.columns;
        const bool is_of_more = name.starts_with("more_");
        if (!is_of_more && !name.starts_with("pitches_")) return {};
        name.remove_prefix(is_of_more ? 5 : 8);
        const bool has_inner = !layout_.rows.empty();
        if (name == "unit") return unit();
        if (name == "inner") return has_inner ? layout_.rows.back().extent : 1;
        const std::size_t a = (is_of_more ? first_of_more : 0) + (name.starts_with("x_")        ? 0
                                                                  : name.starts_with("second_") ? 1
                                                                                                : written);
        if (name.ends_with("_pitch")) return has_inner ? layout_.rows.back().strides[a] : 0;
        return layout_.rows.size() > 1 ? layout_.rows.front().strides[a] : 0;
    }
    /// Of the arrays with rows of the first one's length, and of those that are the same for all rows. Rows of another
    /// length and type, such as two floats for each, are read by element.
    std::uint32_t unit() const {
        Unit out;
        out.add(layout_.columns);
        for (const RowLayout::Dimension& dimension : layout_.rows)
            for (std::size_t a = 0; a < RowLayout::arrays; ++a)
                if (is_of_rows_[a]) out.add(dimension.strides[a]);
        for (std::size_t i = 0; i < views_.size(); ++i)
            if (!is_by_element_[i]) out.add(views_[i]);
        return out.value();
    }

    std::vector<TensorView> views_;
    std::vector<bool> is_by_element_;
    std::array<bool, RowLayout::arrays> is_of_rows_{};
    const RowLayout& layout_;
};

}  // namespace

std::string OperandShape::text() const {
    if (has_more_ && count_ == 0) return "any shape";
    std::string out;
    for (std::size_t i = 0; i < optional_; ++i) out += fmt::format("[{} x] ", names_[i]);
    return fmt::format("{}{}{}", out, has_more_ ? "... x " : "", fmt::join(names().subspan(optional_), " x "));
}

std::string Operands::shapes() const {
    std::string out;
    std::vector<std::string> done;
    for (const ArrayOperand& operand : all()) {
        const std::string shape = operand.shape.text();
        if (operand.shape.is_any() || std::ranges::find(done, shape) != done.end()) continue;
        done.push_back(shape);
        std::string names;
        for (const ArrayOperand& other : all())
            if (other.shape.text() == shape) names += (names.empty() ? "" : ", ") + std::string(other.name);
        out += fmt::format("{}{}: {}", out.empty() ? "" : "; ", names, shape);
    }
    return out;
}

ViewCall::ViewCall(const Queue& queue, const Recipe& recipe, std::vector<TensorView> views,
                   const WorkspaceSlice& workspace)
    : queue_(queue), recipe_(recipe), workspace_(workspace), views_(std::move(views)) {
    IKAT_ASSERT(views_.size() == recipe.operands.all().size(), "a function has a view for each operand");
    check_types();
    check_shapes();
    check_memory();
}

void ViewCall::fail(std::string_view message, std::string_view hint) const {
    throw Error(Diagnostic{.where = queue_.where(),
                           .message = fmt::format("{}: {}", recipe_.function(), message),
                           .hint = std::string(hint)});
}

void ViewCall::check_types() {
    const ArrayOperand* own = nullptr;
    ir::Type of_own{};
    for (std::size_t i = 0; i < views_.size(); ++i) {
        const ArrayOperand& operand = recipe_.operands.all()[i];
        const TensorView& view = views_[i];
        if (operand.is_of_any_type) continue;
        if (operand.type != ir::Type::Void) {
            if (view.format || view.type != operand.type)
                fail(fmt::format("'{}' has elements of {}", operand.name, view.type_name()),
                     fmt::format("they are {}", info(operand.type).name));
            continue;
        }
        const bool is_real =
            !view.format && (view.type == ir::Type::F32 || view.type == ir::Type::F16 || view.type == ir::Type::BF16);
        if (!is_real)
            fail(fmt::format("'{}' has elements of {}", operand.name, view.type_name()), "they are f32, f16 or bf16");
        if (!own) own = &operand, of_own = view.type;
        if (view.type != of_own)
            fail(fmt::format("'{}' has elements of {}, and '{}' of {}", operand.name, view.type_name(), own->name,
                             info(of_own).name),
                 "both have the same type");
    }
    type_ = of_own == ir::Type::F16 ? type_number<half> : of_own == ir::Type::BF16 ? type_number<bfloat16> : 0;
}

void ViewCall::check_shapes() const {
    const TensorView* with_more = nullptr;
    std::string_view of_more;
    struct Known {
        std::string_view name, by;
        std::uint64_t extent;
    };
    std::vector<Known> known;
    for (std::size_t i = 0; i < views_.size(); ++i) {
        const std::string_view name = recipe_.operands.all()[i].name;
        const OperandShape& shape = recipe_.operands.all()[i].shape;
        const TensorView& view = views_[i];
        if (shape.is_any()) continue;
        const auto names = shape.names();
        const std::string hint = fmt::format("'{}' is {}", name, shape.text());
        if (view.rank < names.size() || (view.rank > names.size() && !shape.has_more()))
            fail(fmt::format("'{}' is {}", name, extents_text(view)), hint);
        const std::size_t more = view.rank - names.size();
        if (shape.has_more()) {
            if (!with_more) with_more = &view, of_more = name;
            const auto extents = std::span(view.extents).first(more);
            if (view.rank != with_more->rank || !std::ranges::equal(extents, std::span(with_more->extents).first(more)))
                fail(fmt::format("'{}' is {}, and '{}' is {}", of_more, extents_text(*with_more), name,
                                 extents_text(view)),
                     "both have the same shape");
        }
        for (std::size_t d = 0; d < names.size(); ++d) {
            const std::uint64_t extent = view.extents[more + d];
            const auto before = std::ranges::find(known, names[d], &Known::name);
            if (before == known.end())
                known.push_back({names[d], name, extent});
            else if (before->extent != extent)
                fail(fmt::format("'{}' is {}: its {} is {}, and that of '{}' is {}", name, extents_text(view), names[d],
                                 extent, before->by, before->extent),
                     hint);
        }
        if (!view.format && view.extents[view.rank - 1] > 1 && view.strides[view.rank - 1] != 1)
            fail(fmt::format("the elements of a row of '{}' are {} apart", name, view.strides[view.rank - 1]),
                 "those of the last dimension follow each other");
    }
}

void ViewCall::check_memory() const {
    std::vector<OperandRole> all;
    for (std::size_t i = 0; i < views_.size(); ++i) {
        const ArrayOperand& operand = recipe_.operands.all()[i];
        all.push_back({operand.name, views_[i].part, operand.access == Access::In ? Role::Read : Role::Written});
    }
    all.push_back({"workspace", workspace_.part(), Role::Written});
    check_roles(recipe_.function(), queue_.where(), all);
}

bool ViewCall::writes_nothing() const {
    for (std::size_t i = 0; i < views_.size(); ++i)
        if (recipe_.operands.all()[i].access != Access::In && views_[i].part.bytes != 0) return false;
    return true;
}

std::uint32_t ViewCall::extent(std::string_view name) const {
    for (std::size_t i = 0; i < views_.size(); ++i) {
        const OperandShape& shape = recipe_.operands.all()[i].shape;
        const std::size_t at = shape.position(name);
        if (at < shape.names().size())
            return check().reached(recipe_.operands.all()[i].name,
                                   views_[i].extents[views_[i].rank - shape.names().size() + at]);
    }
    IKAT_ASSERT(false, "no operand has an extent of that name");
}

bool is_packed(const TensorView& view, std::uint64_t alignment) {
    std::uint64_t stride = 1;
    for (std::size_t d = view.rank; d-- > 0;) {
        if (view.extents[d] != 1 && view.strides[d] != stride) return false;
        stride *= view.extents[d];
    }
    return view.part.bytes == 0 || view.part.address() % alignment == 0;
}

TensorView part_from(const TensorView& view, std::uint64_t element) {
    TensorView out = view;
    out.part = view.part.from(element * info(view.type).bytes);
    return out;
}

NamedNumbers with_pitches(NamedNumbers numbers, std::uint64_t columns, const std::array<std::uint64_t, 3>& pitches,
                          std::initializer_list<const TensorView*> arrays) {
    Unit unit;
    unit.add(columns);
    for (const std::uint64_t pitch : pitches) unit.add(pitch);
    for (const TensorView* view : arrays) unit.add(*view);
    numbers.insert(numbers.end(), {{"pitches_unit", unit.value()},
                                   {"pitches_inner", ~0u},
                                   {"pitches_x_outer", 0u},
                                   {"pitches_x_pitch", std::uint32_t(pitches[0])},
                                   {"pitches_second_outer", 0u},
                                   {"pitches_second_pitch", std::uint32_t(pitches[1])},
                                   {"pitches_y_outer", 0u},
                                   {"pitches_y_pitch", std::uint32_t(pitches[2])}});
    return numbers;
}

void run_kernel(const ViewCall& call, const Variant& variant, const KernelHandle& handle, const NamedNumbers& numbers) {
    run_kernel(call, variant, handle, call.views(), numbers);
}
void run_kernel(const ViewCall& call, const Variant& variant, const KernelHandle& handle,
                std::span<const TensorView> arrays, const NamedNumbers& numbers) {
    if (call.writes_nothing()) return;
    std::vector<FunctionOperand> list;
    std::size_t array = 0;
    for (const ir::Parameter& parameter : handle.info().parameters) {
        if (parameter.access != Access::Value) {
            list.push_back(arrays[array++]);
            continue;
        }
        const auto found = std::ranges::find(numbers, parameter.name, [](const auto& each) { return each.first; });
        IKAT_ASSERT(found != numbers.end(), "a number of a kernel of the library is not given");
        list.push_back(found->second);
    }
    run(call.queue(), call.recipe(), variant, handle, list, call.workspace());
}

void run_rows(const ViewCall& call, const std::vector<FunctionOperand>& numbers, std::optional<std::size_t> kernel) {
    const Recipe& recipe = call.recipe();
    const RowArrays of(call);
    const std::size_t first = of.views[0] ? of.operands[0] : of.operands[written];
    const ArrayOperand& operand = recipe.operands.all()[first];
    const RowLayout layout(of.views, !operand.shape.names().empty());
    if (layout.is_empty() && !recipe.steps) return;
    if (!operand.shape.names().empty()) call.check().reached(operand.name, layout.columns);
    if (kernel) call.check().enumerator(recipe.argument(0), *kernel, recipe.variants().size());
    const RowMemory memory(call.queue());
    std::size_t launches = 0;
    layout.each_launch([&](const RowLayout&) { ++launches; });
    std::vector<KernelCall> steps;
    layout.each_launch([&](const RowLayout& part) {
        const RowLaunch launch(call, of, part);
        const ChosenVariant chosen =
            kernel ? ChosenVariant{recipe.kernels[*kernel]} : launch.kernel_for(recipe, call.type_bytes(), memory);
        const Variant& variant = chosen.variant;
        const bool are_parts = launches > 1 && variant.parts[call.type()];
        const auto made = (chosen.is_by_cluster ? variant.clusters
                           : are_parts          ? variant.parts
                           : launch.is_packed() ? variant.instances
                                                : variant.pitched)[call.type()];
        if (!made)
            call.fail(fmt::format("'{}' has gaps between its rows, or does not begin at a multiple of 16 bytes",
                                  operand.name),
                      "copy it to an array without gaps");
        const KernelHandle& handle = made();
        KernelCall of_part{handle, launch.arguments(handle.info(), numbers)};
        if (recipe.steps)
            steps.push_back(std::move(of_part));
        else
            run(call.queue(), recipe, variant, handle, of_part.operands, call.workspace());
    });
    if (recipe.steps) run_steps(call.queue(), recipe, steps, call.workspace());
}

}  // namespace ikat::stdlib
