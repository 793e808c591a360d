// SPDX-License-Identifier: Apache-2.0
#include "stdlib/spec/recipe.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "codegen/kernel/kernel_info.hpp"
#include "codegen/pipeline/compile.hpp"
#include "codegen/ptx/table/target.hpp"
#include "codegen/support/diagnostic.hpp"
#include "dsl/record/capture.hpp"
#include "runtime/launch/roles.hpp"

namespace ikat::stdlib {
namespace {

/// Removes the part before the separator from the text, and gives it; without a separator, all of it.
std::string_view take_until(std::string_view& text, char separator) {
    const std::size_t end = std::min(text.find(separator), text.size());
    const std::string_view out = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    while (text.starts_with(' ')) text.remove_prefix(1);
    return out;
}

/// For each argument, the least number of elements by the recipe; nothing for numbers.
using Sizes = std::vector<std::optional<std::uint32_t>>;

Sizes checked_sizes(const Recipe& recipe, const Variant& kernel, const Call& call) {
    if (recipe.check) recipe.check(call);
    Sizes out;
    for (const ir::Parameter& parameter : call.kernel().parameters)
        out.push_back(call.elements(recipe.sizes_of(kernel), parameter.name));
    return out;
}

void check_buffers(const Call& call, const Sizes& sizes) {
    for (std::size_t i = 0; i < sizes.size(); ++i)
        if (sizes[i])
            call.check().at_least(call.kernel().parameters[i].name, call.arguments()[i].elements(), *sizes[i]);
}

void check_memory(const Call& call) {
    std::vector<OperandRole> all;
    for (std::size_t i = 0; i < call.arguments().size(); ++i) {
        const ir::Parameter& parameter = call.kernel().parameters[i];
        const runtime::Argument& given = call.arguments()[i];
        if (given.is_buffer())
            all.push_back(
                {parameter.name, given.part, call.kernel().writes(std::uint32_t(i)) ? Role::Written : Role::Read});
    }
    check_roles(call.check().function, call.check().where, all);
}

/// Whether the kernel writes arrays, and none of them has elements by the recipe.
bool writes_nothing(const Call& call, const Sizes& sizes) {
    bool any = false;
    for (std::size_t i = 0; i < sizes.size(); ++i) {
        if (!call.kernel().writes(std::uint32_t(i))) continue;
        if (sizes[i] != 0) return false;
        any = true;
    }
    return any;
}

}  // namespace

std::size_t Call::position(std::string_view name) const {
    const auto found = std::ranges::find(kernel_.parameters, name, &ir::Parameter::name);
    IKAT_ASSERT(found != kernel_.parameters.end(), "a kernel of the library has no parameter of that name");
    return std::size_t(found - kernel_.parameters.begin());
}
const runtime::Argument& Call::argument(std::string_view name) const { return arguments_[position(name)]; }
std::uint64_t Call::multiple(std::string_view name) const { return kernel_.parameters[position(name)].multiple; }

void Call::fail(std::string_view message, std::string_view hint) const {
    throw Error(Diagnostic{.where = check_.where, .message = std::string(message), .hint = std::string(hint)});
}

std::size_t Call::widest() const {
    std::size_t bytes = 1;
    for (const runtime::Argument& argument : arguments_)
        if (argument.is_buffer()) bytes = std::max<std::size_t>(bytes, info(argument.type).bytes);
    return bytes;
}

bool Call::has(std::string_view name) const {
    return std::ranges::find(kernel_.parameters, name, &ir::Parameter::name) != kernel_.parameters.end();
}

std::uint64_t Call::count() const {
    return has("n") ? (*this)["n"] : std::uint64_t((*this)["rows"]) * (*this)["columns"];
}

std::optional<std::uint32_t> Call::elements(const ArraySizes& sizes, std::string_view array) const {
    const SizeProduct* const size = sizes.find(array);
    if (!size) return {};
    const auto number_of = [&](const SizeProduct::Factor& factor) {
        return factor.parameter.empty() ? factor.number : (*this)[factor.parameter];
    };
    for (const SizeProduct::Factor& factor : size->factors())
        if (!factor.divides && number_of(factor) == 0) return 0;
    std::uint64_t product = 1;
    for (const SizeProduct::Factor& factor : size->factors()) {
        const std::uint32_t number = number_of(factor);
        product = check_.reached(array, factor.divides ? product / number : product * number);
    }
    return std::uint32_t(product);
}

ChosenVariant Recipe::kernel_for(std::uint32_t columns, std::uint64_t bytes, bool are_vectors,
                                 const RowMemory& memory) const {
    for (const Variant& kernel : variants())
        if (const std::uint32_t blocks = kernel.shared.blocks_for(columns, bytes, are_vectors, memory); blocks != 0)
            return {kernel, blocks > 1};
    const auto is_for_them = [&](const Variant& kernel) { return !kernel.shared && columns <= kernel.max_columns; };
    return {*std::ranges::find_if(variants(), is_for_them)};
}

RowMemory::RowMemory(const Queue& queue) : block_bytes(queue.device().properties().shared_bytes_optin) {
    const ptx::Target* const target = ptx::find_target(queue.device().compile_options().target);
    has_clusters = target && ptx::supports(*target, ptx::Feature::Clusters);
}

std::string_view Recipe::argument(std::size_t i) const {
    std::string_view rest = call.substr(call.find('(') + 1), out;
    rest.remove_suffix(1);
    for (std::size_t at = 0; at <= i + 1; ++at) out = take_until(rest, ',');
    return out;
}

void check(const Recipe& recipe, const Variant& kernel, const Call& call) { checked_sizes(recipe, kernel, call); }

runtime::Argument FunctionOperand::as_argument(const KernelInfo& kernel, std::size_t position,
                                               const Location& where) const {
    if (array_) return runtime::buffer_argument(type_, array_->part, kernel, position, where);
    return {.type = type_, .bits = bits_};
}

template <class T>
BufferSlice<T> Steps::slice(std::string_view name) const {
    return BufferSlice<T>(argument(name).part);
}
template BufferSlice<float> Steps::slice(std::string_view) const;
template BufferSlice<std::uint32_t> Steps::slice(std::string_view) const;

Workspace& Steps::workspace() {
    if (workspace_) return *workspace_;
    std::uint64_t bytes = 0;
    for (const Part& part : parts_) bytes += recipe_.workspace(part.call);
    return workspace_.emplace(queue_, recipe_.function(), given_, bytes);
}

void Steps::launch(const KernelHandle& kernel, const Grid& grid, std::span<const runtime::Argument> arguments) {
    queue_.launch(kernel, {grid, queue_.where()}, arguments);
}

void Steps::launch(const Part& part, const Grid& grid, Instead instead) {
    const auto arguments = part.call.arguments();
    std::vector<runtime::Argument> list(arguments.begin(), arguments.end());
    for (const auto& [name, operand] : instead) {
        const auto position = std::size_t(&part.call.argument(name) - arguments.data());
        list[position] = operand.as_argument(part.call.kernel(), position, queue_.where());
    }
    launch(part.handle, grid, list);
}

void Steps::launch(const KernelHandle& kernel, const Grid& grid, std::initializer_list<FunctionOperand> operands) {
    std::vector<runtime::Argument> list;
    for (const FunctionOperand& operand : operands)
        list.push_back(operand.as_argument(kernel.info(), list.size(), queue_.where()));
    launch(kernel, grid, list);
}

namespace {

/// The arguments of a kernel. Throws Error for those that do not fit it.
std::vector<runtime::Argument> arguments_of(const Queue& queue, const KernelHandle& handle,
                                            std::span<const FunctionOperand> operands) {
    const Location where = queue.where();
    std::vector<runtime::Argument> out;
    for (const FunctionOperand& operand : operands)
        out.push_back(operand.as_argument(handle.info(), out.size(), where));
    runtime::check_arguments(handle.info(), out, where);
    return out;
}

void launch(const Queue& queue, const Recipe& recipe, const Variant& variant, const KernelHandle& handle,
            const Call& call, const WorkspaceSlice& workspace) {
    const Steps::Part part{handle, call};
    Steps steps(queue, recipe, {&part, 1}, workspace);
    if (recipe.steps)
        recipe.steps(steps);
    else
        steps.launch(variant.grid(call));
}

}  // namespace

void run_steps(const Queue& queue, const Recipe& recipe, std::span<const KernelCall> calls,
               const WorkspaceSlice& workspace) {
    std::vector<std::vector<runtime::Argument>> arguments;
    for (const KernelCall& call : calls) arguments.push_back(arguments_of(queue, call.handle, call.operands));
    std::vector<Steps::Part> parts;
    for (std::size_t i = 0; i < calls.size(); ++i) {
        const KernelHandle& handle = calls[i].handle;
        parts.push_back({handle, Call(handle.info(), arguments[i], 0, {recipe.function(), queue.where()})});
        if (recipe.check) recipe.check(parts.back().call);
    }
    Steps steps(queue, recipe, parts, workspace);
    recipe.steps(steps);
}

void run(const Queue& queue, const Recipe& recipe, const Variant& variant, const KernelHandle& handle,
         std::span<const FunctionOperand> operands, const WorkspaceSlice& workspace) {
    const std::vector<runtime::Argument> arguments = arguments_of(queue, handle, operands);
    const Call call(handle.info(), arguments, 0, {recipe.function(), queue.where()});
    if (recipe.check) recipe.check(call);
    launch(queue, recipe, variant, handle, call, workspace);
}

void run(const Queue& queue, const Recipe& recipe, std::size_t kernel,
         std::initializer_list<FunctionOperand> operands) {
    const Variant& variant = recipe.kernels[kernel];
    const KernelHandle& handle = variant.instances[0]();
    const std::vector<runtime::Argument> arguments = arguments_of(queue, handle, operands);
    const Call call(handle.info(), arguments, 0, {recipe.function(), queue.where()});
    const Sizes sizes = checked_sizes(recipe, variant, call);
    check_buffers(call, sizes);
    check_memory(call);
    if (!writes_nothing(call, sizes)) launch(queue, recipe, variant, handle, call, {});
}

}  // namespace ikat::stdlib
