// SPDX-License-Identifier: Apache-2.0
// One call of a function of the catalogue: the catalogue says which arrays it takes, and the shapes of those that it
// makes.
#pragma once
#include <cstdint>
#include <optional>
#include <source_location>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "runtime/device.hpp"
#include "runtime/tensor_view.hpp"
#include "stdlib/batch/operand.hpp"

namespace ikat::stdlib {

class FunctionSettings;
class NamedFunction;

/// A function by its name, or itself, and the location of the call.
struct CalledFunction {
    std::string_view name{};
    const NamedFunction* function = nullptr;
    std::source_location where;

    CalledFunction(const char* name, const std::source_location& where = std::source_location::current())
        : name(name), where(where) {}
    CalledFunction(const std::string& name, const std::source_location& where = std::source_location::current())
        : name(name), where(where) {}
    CalledFunction(const NamedFunction& function, const std::source_location& where = std::source_location::current())
        : function(&function), where(where) {}
};

/// An array that a call is given.
struct CallOperand {
    runtime::TensorView array;
    bool may_be_written = false;
};
/// An array of the program, or a view of one.
template <class X>
CallOperand operand_of(X&& x) {
    return {x, detail::is_writable<std::remove_reference_t<X>>};
}
/// Settings by their names; those without text are left out.
using CallSettings = std::vector<std::pair<std::string_view, Setting>>;

/// A call whose arrays and settings fit each other.
class CatalogueCall {
public:
    /// The operands are the function's arrays but those that it makes, in its order; `outputs` are the types of the
    /// elements of those. Throws Error, with the location of the call, if there is no such function, and for arrays,
    /// shapes, types and settings that do not fit it.
    CatalogueCall(const CalledFunction& called, std::vector<CallOperand> operands, const CallSettings& settings,
                  std::span<const ir::Type> outputs);

    /// Of an output: how many elements it has, its extents, its name for messages.
    std::uint64_t size(std::size_t output) const;
    const std::vector<std::uint64_t>& shape(std::size_t output) const { return shapes_[output]; }
    std::string name(std::size_t output) const;

    /// Gives the queue the work, with memory for the outputs.
    void run(const runtime::Queue& queue, std::span<const runtime::BufferPart> outputs) const;

private:
    void choose(const CalledFunction& called, std::size_t outputs);
    FunctionSettings settings() const;
    void check_settings() const;
    std::optional<ir::Type> common_type() const;
    void check_operands() const;
    void find_shapes(std::span<const ir::Type> outputs);
    [[noreturn]] void fail(std::string message, std::string hint) const;

    const NamedFunction* function_ = nullptr;
    std::source_location where_;
    std::vector<CallOperand> operands_;
    std::vector<std::pair<std::string, std::string>> settings_;
    std::vector<ir::Type> types_;                     // of the outputs
    std::vector<std::vector<std::uint64_t>> shapes_;  // ... in elements
};

}  // namespace ikat::stdlib
