// SPDX-License-Identifier: Apache-2.0
// The functions of the library by name, for tools, such as `ikat run NAME`; the types and shapes of arrays are data
// here. Those of recipes have the function's name, "softmax", or, for quantised weights, that of the kernel,
// "gemv_q4_k". Others choose among so many kernels that their names say what they compute:
// "gemm_tensor_core_bf16_nt_bias_gelu", "flash_attention_causal_f16".
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

/// How the elements of an array hold its values, which its extents count: so many elements hold so many values, which
/// are of one row.
struct BlockLayout {
    std::string_view name{};  // "q4_k"; empty if the elements are the values
    std::uint64_t elements = 1, values = 1;
    std::optional<runtime::Quantised> format{};  // of quantised weights
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
        BlockLayout blocks{};

        bool is_written() const { return access != Access::In; }
        /// The setting for its pitch, "A_pitch"; "" if it is a single row.
        std::string pitch_setting() const;
        /// "rows x columns", and how many elements a block has.
        std::string shape_text() const;
        /// What the function takes: an array of this shape and these pitches, in elements of that type.
        MutableTensorView view(ir::Type of_elements, const runtime::BufferPart& part,
                               std::span<const std::uint64_t> shape, std::span<const std::uint64_t> pitches) const;
    };
    using Setting = FunctionSetting;
    /// An extent for `ikat emit`.
    struct Size {
        std::string_view name;
        std::uint64_t usual = 0;  // where it is not said. 0: none
        bool is_more = false;     // one dimension, which "..." stands for
    };
    /// Of the functions whose names differ in what is computed with the result.
    struct Family {
        std::string_view prefix;   // of the names
        std::string_view form;     // "flash_attention[_causal]_TYPE"; the prefix, if there is one function alone
        std::string_view summary;  // empty for functions of recipes, whose kernels have one
        std::string_view document;
        std::span<const Setting> settings;
        std::span<const Size> sizes;  // of arrays, where none are given

        bool has_several() const { return form != prefix; }
    };
    using Run = std::function<void(const runtime::Queue&, std::span<const runtime::MutableTensorView>,
                                   const FunctionSettings&)>;

    std::string name;
    const Family* family = nullptr;
    std::string formula{};        // "C = gelu(alpha A B + beta C + bias)"; a line
    std::string call{};           // as it is written in a program
    std::vector<Array> arrays{};  // those that are written are last
    Run run{};                    // throws Error for what does not fit
    /// What else it is called: names of kernels and aliases.
    std::vector<std::string_view> other_names{};
    /// See Recipe::extents; null if there are no such outputs.
    void (*more_extents)(NamedExtents&, const FunctionSettings&) = nullptr;

    /// Those of its family, and the pitches of its arrays.
    std::vector<std::string> names_of_settings() const;
    /// Throws Error for settings that it does not have.
    void check(const FunctionSettings& settings) const;

    /// The extents of arrays by name, as the given ones have them, or computed from these; those without a value are
    /// left out. Throws Error for arrays of another rank or of parts of blocks, and for two extents of one name that
    /// differ.
    NamedExtents extents(std::span<const std::optional<std::vector<std::uint64_t>>> given,
                         const FunctionSettings& settings = {}) const;
    /// The extents of arrays of these sizes, and of the usual ones where nothing is said. Throws Error for a size that
    /// it does not have, and for one that is neither said nor usual.
    NamedExtents extents_of_sizes(const NamedExtents& sizes, const FunctionSettings& settings = {}) const;
    /// The shape of an array by these names, in elements. Throws Error for what is not whole blocks.
    std::vector<std::uint64_t> shape(const Array& array, const NamedExtents& extents) const;
    /// How many elements an array of this shape has from one index to the next, for each extent but the last; empty if
    /// its rows follow each other. Throws Error for a pitch that is less than a row.
    std::vector<std::uint64_t> pitches(const Array& array, std::span<const std::uint64_t> shape,
                                       const FunctionSettings& settings = {}) const;
};

/// All of them, in alphabetical order.
std::span<const NamedFunction> functions();
/// Theirs, in the same order.
std::span<const NamedFunction::Family* const> function_families();

/// The function of that name, of another name of it, or of a name that says f32 for tf32, i8 for s8, or nn for the
/// orders that are not said. Where there are several, the one with that many arrays. Null if there is none. The same
/// object on each call.
const NamedFunction* find_function(std::string_view name, std::optional<std::size_t> arrays = {});

/// All functions of that name, of which there are several where it is another name of functions for several types.
std::vector<const NamedFunction*> functions_called(std::string_view name);

/// The name of a function or of a kernel that is most like this one; "" if none is.
std::string nearest_name(std::string_view name);

// The sources of functions(): the recipes, and a family each, in the folders of their kernels.
std::vector<NamedFunction> recipe_functions();
std::vector<NamedFunction> tensor_core_functions();
std::vector<NamedFunction> gemm_f32_functions();
std::vector<NamedFunction> gemm_backward_functions();
std::vector<NamedFunction> embedding_functions();
std::vector<NamedFunction> head_functions();
std::vector<NamedFunction> attention_functions();
std::vector<NamedFunction> attention_backward_functions();
std::vector<NamedFunction> incremental_functions();
std::vector<NamedFunction> product_functions();
std::vector<NamedFunction> quantiser_functions();
std::vector<NamedFunction> fused_functions();
std::vector<NamedFunction> cache_functions();
std::vector<NamedFunction> loss_functions();
std::vector<NamedFunction> reduction_functions();

}  // namespace ikat::stdlib
