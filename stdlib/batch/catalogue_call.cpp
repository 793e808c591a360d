// SPDX-License-Identifier: Apache-2.0
#include "stdlib/batch/catalogue_call.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "codegen/support/diagnostic.hpp"
#include "runtime/quantised_format.hpp"
#include "stdlib/spec/functions.hpp"

namespace ikat::stdlib {
namespace {

using Array = NamedFunction::Array;

bool is_made(const Array& array) { return array.access == Access::Out; }

std::string names(const NamedFunction& function, bool made) {
    std::string out;
    for (const Array& array : function.arrays)
        if (is_made(array) == made) out += fmt::format("{}{}", out.empty() ? "" : ", ", array.name);
    return out;
}

/// As NamedFunction counts extents: those of quantised weights in bytes.
std::vector<std::uint64_t> shape_of(const TensorView& array) {
    std::vector<std::uint64_t> out(array.extents.begin(), array.extents.begin() + array.rank);
    if (array.format) {
        const runtime::QuantisedInfo& blocks = *runtime::find_info(*array.format);
        out.back() = out.back() / blocks.weights * blocks.bytes;
    }
    return out;
}

/// The array as the function takes it: bytes of quantised weights with their format.
MutableTensorView view_for(const Array& array, const TensorView& given) {
    if (!array.blocks.format || given.format) return MutableTensorView(given);
    const std::vector<std::uint64_t> shape = shape_of(given);
    return array.view(given.type, given.part, shape, {given.strides.begin(), shape.size() - 1});
}

}  // namespace

void CatalogueCall::fail(std::string message, std::string hint) const {
    throw Error(Diagnostic{.where = Location::of(where_), .message = std::move(message), .hint = std::move(hint)});
}

CatalogueCall::CatalogueCall(const CalledFunction& called, std::vector<CallOperand> operands,
                             const CallSettings& settings, std::span<const ir::Type> outputs)
    : where_(called.where), operands_(std::move(operands)) {
    for (const auto& [name, setting] : settings)
        if (!setting.text().empty()) settings_.emplace_back(name, setting.text());
    choose(called, outputs.size());
    try {
        find_shapes(outputs);
    } catch (const Error& error) { throw error.located(Location::of(where_)); }
}

void CatalogueCall::choose(const CalledFunction& called, std::size_t outputs) {
    function_ = called.function ? called.function : find_function(called.name, operands_.size() + outputs);
    if (!function_) {
        const std::string near = nearest_name(called.name);
        fail(fmt::format("the library has no function '{}'", called.name),
             near.empty() ? "`ikat kernels` lists them; a function of the program is called as call(f, x...)"
                          : fmt::format("'{}' is one", near));
    }
    const auto made = std::size_t(std::ranges::count_if(function_->arrays, is_made));
    const std::size_t taken = function_->arrays.size() - made;
    if (operands_.size() != taken)
        fail(fmt::format("'{}' takes {} array{}, and {} {} given", function_->name, taken, taken == 1 ? "" : "s",
                         operands_.size(), operands_.size() == 1 ? "is" : "are"),
             fmt::format("it takes {}{}", names(*function_, false),
                         made == 0 ? "" : fmt::format(", and makes {}", names(*function_, true))));
    if (outputs != made)
        fail(fmt::format("'{}' makes {} array{}, and {} {} named by type", function_->name, made, made == 1 ? "" : "s",
                         outputs, outputs == 1 ? "is" : "are"),
             made == 0 ? fmt::format("it changes its arrays in place: call<>(\"{}\", ...)", function_->name)
                       : fmt::format("it makes {}: name the type of the elements of each, in this order",
                                     names(*function_, true)));
}

FunctionSettings CatalogueCall::settings() const {
    FunctionSettings out;
    for (const auto& [name, text] : settings_) out.set(name, text);
    return out;
}

void CatalogueCall::check_settings() const {
    const FunctionSettings settings = this->settings();
    function_->check(settings);
    for (const auto& [name, text] : settings_)
        if (name.ends_with("_pitch"))
            fail(fmt::format("'{}' of '{}' is set", name, function_->name),
                 "an array has its own pitch: x.view(rows, columns).pitched(p)");
    for (const Array& array : function_->arrays)
        if (!array.read_if.empty() && settings.number(array.read_if).value_or(0) != 0)
            fail(fmt::format("'{}' of '{}' is read where '{}' is not 0, and this call makes it anew", array.name,
                             function_->name, array.read_if),
                 "call the library's function itself: call([](const Queue& q, ...) { ... }, ...)");
}

/// The type that an array has, if the function or those before it say so.
std::optional<ir::Type> CatalogueCall::common_type() const {
    std::size_t taken = 0;
    for (const Array& array : function_->arrays) {
        if (is_made(array)) continue;
        const TensorView& its = operands_[taken++].array;
        if (array.type == ir::Type::Void && !array.is_of_any_type && !array.blocks.format) return its.type;
    }
    return {};
}

void CatalogueCall::check_operands() const {
    const std::optional<ir::Type> common = common_type();
    constexpr ir::Type reals[] = {ir::Type::F32, ir::Type::F16, ir::Type::BF16};
    std::size_t taken = 0;
    for (const Array& array : function_->arrays) {
        if (is_made(array)) continue;
        const CallOperand& operand = operands_[taken++];
        const TensorView& its = operand.array;
        const auto check = [&](bool is_right, std::string_view wanted) {
            if (!is_right)
                fail(fmt::format("{}: '{}' has elements of {}, not of {}", function_->name, array.name, its.type_name(),
                                 wanted),
                     "give it an array of that type; cast() makes one");
        };
        if (array.blocks.format)
            check(its.format ? its.format == array.blocks.format : its.type == ir::Type::U8, array.blocks.name);
        else if (array.type != ir::Type::Void)
            check(its.type == array.type, ir::info(array.type).name);
        else if (!array.is_of_any_type && std::ranges::find(reals, *common) == std::end(reals))
            check(false, "f32, f16 or bf16");
        else if (!array.is_of_any_type)
            check(its.type == *common, ir::info(*common).name);
        if (array.is_written() && !operand.may_be_written)
            fail(fmt::format("'{}' of '{}' is const, and the function changes it", array.name, function_->name),
                 "give it an array that is not const");
    }
}

void CatalogueCall::find_shapes(std::span<const ir::Type> outputs) {
    check_settings();
    check_operands();
    std::vector<std::optional<std::vector<std::uint64_t>>> given;
    std::size_t taken = 0;
    for (const Array& array : function_->arrays)
        given.push_back(is_made(array) ? std::nullopt : std::optional(shape_of(operands_[taken++].array)));
    const NamedExtents extents = function_->extents(given, settings());
    for (const Array& array : function_->arrays) {
        if (!is_made(array)) continue;
        const ir::Type type = outputs[types_.size()];
        const ir::Type wanted = array.type != ir::Type::Void ? array.type
                                : array.is_of_any_type       ? type
                                                             : common_type().value_or(type);
        if (type != wanted)
            fail(fmt::format("'{}' of '{}' has elements of {}, and the call names {}", array.name, function_->name,
                             ir::info(wanted).name, ir::info(type).name),
                 "name the type that the function makes");
        types_.push_back(type);
        shapes_.push_back(function_->shape(array, extents));
    }
}

std::uint64_t CatalogueCall::size(std::size_t output) const {
    std::uint64_t out = 1;
    for (const std::uint64_t extent : shapes_[output])
        if (__builtin_mul_overflow(out, extent, &out) || out >> 40)
            fail(fmt::format("{} is larger than any memory", name(output)), "call it for smaller arrays");
    return out;
}

std::string CatalogueCall::name(std::size_t output) const {
    for (const Array& array : function_->arrays)
        if (is_made(array) && output-- == 0) return fmt::format("{} of {}", array.name, function_->name);
    return function_->name;
}

void CatalogueCall::run(const Queue& queue, std::span<const runtime::BufferPart> outputs) const {
    std::vector<MutableTensorView> arrays;
    std::size_t taken = 0, made = 0;
    for (const Array& array : function_->arrays) {
        if (is_made(array)) {
            arrays.push_back(array.view(types_[made], outputs[made], shapes_[made], {}));
            ++made;
        } else {
            arrays.push_back(view_for(array, operands_[taken++].array));
        }
    }
    try {
        function_->run(queue, arrays, settings());
    } catch (const runtime::KernelError&) { throw; } catch (const Error& error) {
        throw error.located(Location::of(where_));
    }
}

}  // namespace ikat::stdlib
