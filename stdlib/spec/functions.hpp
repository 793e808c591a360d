// SPDX-License-Identifier: Apache-2.0
// The functions of the library by name, for tools, such as `ikat run NAME`; the types and shapes of arrays are data
// here. There are those of recipes, "softmax", and those that choose among so many kernels that their names say what
// they compute: "gemm_tensor_core_bf16_nt_bias_gelu", "flash_attention_causal_f16".
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "codegen/ir/type.hpp"
#include "codegen/support/diagnostic.hpp"
#include "runtime/device.hpp"
#include "runtime/tensor_view.hpp"
#include "stdlib/spec/recipe.hpp"

namespace ikat::stdlib {

/// What was said of a call beside its arrays, as text by name: "alpha" is "2".
class FunctionSettings {
public:
    void set(std::string name, std::string text) { texts_[std::move(name)] = std::move(text); }
    const std::map<std::string, std::string, std::less<>>& texts() const { return texts_; }

    // These throw Error for text that is not one.
    std::optional<float> number(std::string_view name) const;
    std::optional<std::uint32_t> count(std::string_view name) const;
    /// The number; throws Error if it was not said, too.
    float required(std::string_view name) const;
    /// The position among `names`; 0 if it was not said.
    std::size_t one_of(std::string_view name, std::span<const std::string_view> names) const;

private:
    const std::string* find(std::string_view name) const;
    std::map<std::string, std::string, std::less<>> texts_{};
};

/// Extents by their names: "m" is 300.
class NamedExtents : public std::map<std::string, std::uint64_t, std::less<>> {
public:
    using map::map;
};

class NamedFunction {
public:
    struct Array {
        std::string_view name;
        ir::Type type;  // Void: f32, f16 or bf16, the same for all such arrays ...
        OperandShape shape;
        Access access = Access::In;
        std::string_view read_if{};   // of an output: the setting that makes it read, too, unless it is 0
        std::size_t row = 1;          // how many of its last extents are a row
        bool is_of_any_type = false;  // ... but for these, whose types the function checks itself

        bool is_written() const { return access != Access::In; }
        /// The setting for its pitch, "A_pitch"; "" if it is a single row.
        std::string pitch_setting() const;
    };
    using Setting = FunctionSetting;
    struct Size {
        std::string_view name;
        std::uint64_t usual;  // 0: it is left out
    };
    /// Of the functions whose names differ in what is computed with the result.
    struct Family {
        std::string_view prefix;  // of the names
        std::string_view form;    // "flash_attention[_causal]_TYPE"
        std::string_view summary, document;
        std::span<const Setting> settings;
        std::span<const Size> sizes;  // of arrays, where none are given
    };
    using Run = std::function<void(const runtime::Queue&, std::span<const runtime::MutableTensorView>,
                                   const FunctionSettings&)>;

    std::string name;
    const Family* family = nullptr;
    std::string formula{};        // "C = gelu(alpha A B + beta C + bias)"; a line
    std::string call{};           // as it is written in a program
    std::vector<Array> arrays{};  // those that are written are last
    Run run{};                    // throws Error for what does not fit
    /// See Recipe::extents; null if there are no such outputs.
    void (*more_extents)(NamedExtents&, const FunctionSettings&) = nullptr;

    /// Those of its family, and the pitches of its arrays.
    std::vector<std::string> names_of_settings() const;
    /// Throws Error for settings that it does not have.
    void check(const FunctionSettings& settings) const;

    /// The extents of arrays by name, as the given ones have them, or computed from these; those without a value are
    /// left out. Throws Error for arrays of another rank, and for two extents of one name that differ.
    NamedExtents extents(std::span<const std::optional<std::vector<std::uint64_t>>> given,
                         const FunctionSettings& settings = {}) const;
    /// The shape of an array by these names.
    std::vector<std::uint64_t> shape(const Array& array, const NamedExtents& extents) const;
    /// How many elements an array of this shape has from one index to the next, for each extent but the last; empty if
    /// its rows follow each other. Throws Error for a pitch that is less than a row.
    std::vector<std::uint64_t> pitches(const Array& array, std::span<const std::uint64_t> shape,
                                       const FunctionSettings& settings = {}) const;
};

std::span<const NamedFunction::Family* const> function_families();

/// The function of that name, which also may say f32 for tf32, i8 for s8, and nn for the orders that are not said; or
/// null. The same object on each call.
const NamedFunction* find_function(std::string_view name);

/// The functions of recipes, by name in alphabetical order: the C++ function's, or, where several recipes have one
/// function, their kernel's.
std::span<const NamedFunction> recipe_functions();

/// The recipes' function of that name, of that other name, or of the only kernel of that name; where there are several,
/// the one with this many arrays. Null if there is none. The same object on each call.
const NamedFunction* find_recipe_function(std::string_view name, std::optional<std::size_t> arrays = {});

/// The name of a function or of a kernel that is most like this one; "" if none is.
std::string nearest_name(std::string_view name);

// Of a family each, in the folders of their kernels.
std::vector<NamedFunction> tensor_core_functions();
std::vector<NamedFunction> attention_functions();
std::vector<NamedFunction> incremental_functions();

}  // namespace ikat::stdlib
