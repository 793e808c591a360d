// SPDX-License-Identifier: Apache-2.0
// A recipe: everything but the code of a family of kernels. The family's functions, its rows in the registry, the
// command line and docs/library.md, the checks of sizes, the tests against references and of memory traffic are derived
// from it.
//
//     constexpr Recipe softmax_recipe{
//         .call = "softmax(queue, x, y)",
//         .kernels = {{.summary = "softmax of each row, a warp per row: for up to 1024 columns",
//                      .instances = IKAT_FLOATS(softmax_warp<T>()),                      f32, f16 and bf16
//                      .grid = rows_to<WarpGroup>, .max_columns = 1024}, ...},
//         .operands = {{"x", "... columns"}, {"y", "... columns", Access::Out}},
//         .sizes = {{"x", "rows columns"}, {"y", "rows columns"}}, ...};
//
//     void softmax(const Queue& queue, const TensorView& x, const MutableTensorView& y) {
//         run_rows({queue, softmax_recipe, {x, y}}, {});
//     }
#pragma once
#include <array>
#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "codegen/support/half.hpp"
#include "dsl/record/capture.hpp"
#include "runtime/device.hpp"
#include "runtime/tensor_view.hpp"
#include "stdlib/spec/shape.hpp"
#include "stdlib/spec/shared_rows.hpp"
#include "stdlib/spec/size.hpp"
#include "stdlib/spec/workspace.hpp"

namespace ikat::stdlib {

using runtime::Buffer;
using runtime::BufferSlice;
using runtime::DeviceQueue;
using runtime::Grid;
using runtime::MutableTensorView;
using runtime::Queue;
using runtime::TensorView;

class Example;
class FunctionSettings;
class NamedExtents;
class Steps;

/// The element types that most kernels exist for.
template <class T>
concept Real = std::same_as<T, float> || std::same_as<T, half> || std::same_as<T, bfloat16>;
/// The number of an element type; 0 for types that are none of these.
template <class T>
inline constexpr std::size_t type_number = std::same_as<T, half>       ? 1
                                           : std::same_as<T, bfloat16> ? 2
                                                                       : 0;

/// A kernel for each of its element types, by type_number.
using Instances = std::array<const KernelHandle& (*)(), 3>;

/// The arguments of a launch by the names of the kernel's parameters.
class Call {
public:
    /// The kernel and the arguments, which fit each other, must outlive this. `threads` is the number of threads per
    /// block that was asked for, or 0.
    Call(const KernelInfo& kernel, std::span<const runtime::Argument> arguments, std::uint32_t threads = 0,
         const SizeCheck& check = {})
        : kernel_(kernel), arguments_(arguments), threads_(threads), check_(check) {}

    /// A number, or an extent of a matrix: "from_extent0".
    std::uint32_t operator[](std::string_view name) const { return std::uint32_t(argument(name).bits); }
    const runtime::Argument& argument(std::string_view name) const;
    /// What an integer is a multiple of, by the kernel's contract.
    std::uint64_t multiple(std::string_view name) const;
    std::uint32_t threads(std::uint32_t otherwise) const { return threads_ ? threads_ : otherwise; }
    /// The size of an element of the widest array, in bytes.
    std::size_t widest() const;
    /// Whether the kernel has a parameter of that name.
    bool has(std::string_view name) const;
    /// The number of elements: n, or, without it, rows * columns.
    std::uint64_t count() const;

    /// How many elements an array has at least; nothing for one without a size. Throws Error if a 32-bit index does not
    /// reach them all.
    std::optional<std::uint32_t> elements(const ArraySizes& sizes, std::string_view array) const;

    /// Throws Error.
    [[noreturn]] void fail(std::string_view message, std::string_view hint) const;

    const KernelInfo& kernel() const { return kernel_; }
    std::span<const runtime::Argument> arguments() const { return arguments_; }
    const SizeCheck& check() const { return check_; }

private:
    std::size_t position(std::string_view name) const;

    const KernelInfo& kernel_;
    std::span<const runtime::Argument> arguments_;
    std::uint32_t threads_;
    SizeCheck check_;
};

/// One kernel of a family.
struct Variant {
    std::string_view summary{};  // one line
    Instances instances{};
    /// The launch for these arguments.
    Grid (*grid)(const Call& call) = nullptr;
    /// The family's function takes the first kernel whose rows may have that many columns, unless `shared` says more.
    std::uint32_t max_columns = ~0u;
    /// How many times it moves the unavoidable traffic if rows are too long to be kept; 0: it has no rows.
    double passes = 0;
    /// How many elements its arrays have at least, if it differs from the recipe's.
    ArraySizes sizes{};
    /// The kernels for views whose rows do not follow each other, or begin anywhere; see run_rows.
    Instances pitched{};
    /// Those for the parts of views that take several launches, if it is not these: they are told `before`, how many
    /// elements come before theirs.
    Instances parts{};
    /// If it keeps rows in shared memory, how. It is taken for rows that fit there.
    SharedRows shared{};
    /// As `pitched`, by a cluster of blocks for each row, for rows that do not fit a block.
    Instances clusters{};
};

/// A kernel of a family for some rows, and whether it is the one in `clusters`.
struct ChosenVariant {
    const Variant& variant;
    bool is_by_cluster = false;
};

/// A number that a function takes, or a choice of it, for tools: `--set epsilon=1e-5`.
struct FunctionSetting {
    std::string_view name{}, meaning{};
};
/// Those of a function, at most seven.
class SettingList {
public:
    constexpr SettingList() = default;
    /// Those without a name are left out.
    constexpr SettingList(std::initializer_list<FunctionSetting> list) {
        for (const FunctionSetting& each : list)
            if (!each.name.empty()) list_[count_++] = each;
    }
    constexpr std::span<const FunctionSetting> all() const { return {list_.data(), count_}; }

private:
    std::array<FunctionSetting, 7> list_{};
    std::size_t count_ = 0;
};

/// A family of kernels, and the function that launches one of them.
struct Recipe {
    /// The function that runs the family, as docs/library.md shows it.
    std::string_view call{};
    Variant kernels[std::size(runtime::quantised_formats)]{};  // those of weights have one for each format
    /// The arrays that the function takes, in its order.
    Operands operands{};
    /// What the function takes beside its arrays, in its order.
    SettingList settings{};
    /// Adds the extents of outputs that are computed from others; 0 for what does not fit.
    void (*extents)(NamedExtents& extents, const FunctionSettings& settings) = nullptr;
    /// The function, for tools: with the arrays of `operands`, and its settings. Null: run_rows with these numbers.
    void (*run)(const Queue& queue, std::span<const MutableTensorView> arrays,
                const FunctionSettings& settings) = nullptr;
    /// What the kernels' arguments mean, contracts, what is computed. Lines of at most 100 columns.
    std::string_view document{};
    /// How many elements the arrays of its kernels have at least.
    ArraySizes sizes{};
    /// Throws Error for numbers that do not fit together.
    void (*check)(const Call& call) = nullptr;
    /// The launches, if they are not just one of the kernel; and the bytes of workspace that they need.
    void (*steps)(Steps& steps) = nullptr;
    std::uint64_t (*workspace)(const Call& call) = nullptr;
    /// Computes the expected outputs on the host.
    void (*reference)(Example& example) = nullptr;
    /// The largest magnitude of the random numbers that tests use.
    float magnitude = 1;
    /// The unavoidable traffic, for s elements of E bytes; or, if arithmetic is the limit, why.
    std::string_view traffic{}, bound_by{};
    /// What docs/library.md says about it, beside the call and the kernels.
    std::string_view note{};

    std::string_view function() const { return call.substr(0, call.find('(')); }
    /// The call's argument i, counted after the queue: "x".
    std::string_view argument(std::size_t i) const;
    const ArraySizes& sizes_of(const Variant& kernel) const { return kernel.sizes.is_empty() ? sizes : kernel.sizes; }
    constexpr std::span<const Variant> variants() const {
        std::size_t count = 0;
        while (count < std::size(kernels) && kernels[count].grid) ++count;
        return {kernels, count};
    }
    /// The kernel for rows of that many elements of `bytes` bytes: the one that keeps them in this memory if registers
    /// do not, else the first that takes so many. Rows that are no whole vectors of 16 bytes are not in registers.
    ChosenVariant kernel_for(std::uint32_t columns, std::uint64_t bytes, bool are_vectors,
                             const RowMemory& memory) const;
};

/// Throws Error for arguments that break the recipe's rules.
void check(const Recipe& recipe, const Variant& kernel, const Call& call);

/// An argument of a function that a recipe describes: a number, or an array of one dimension.
class FunctionOperand {
public:
    template <runtime::Element T>
    FunctionOperand(const Buffer<T>& buffer) : array_(buffer), type_(array_->type) {}
    template <runtime::Element T>
    FunctionOperand(const BufferSlice<T>& slice) : array_(slice), type_(array_->type) {}
    FunctionOperand(const TensorView& array) : array_(array), type_(array.type) {}
    FunctionOperand(std::uint32_t number) : type_(ir::Type::U32), bits_(number) {}
    FunctionOperand(std::int32_t number) : type_(ir::Type::I32), bits_(std::uint32_t(number)) {}
    FunctionOperand(float number) : type_(ir::Type::F32), bits_(std::bit_cast<std::uint32_t>(number)) {}

    ir::Type type() const { return type_; }
    /// For the parameter at this place. Throws Error, with the location, if it is of another kind.
    runtime::Argument as_argument(const KernelInfo& kernel, std::size_t position, const Location& where) const;

private:
    std::optional<TensorView> array_{};
    ir::Type type_;
    std::uint64_t bits_ = 0;  // of a number
};

/// For a function with several launches: the launches. As a Call it is that of the first part.
class Steps : public Call {
public:
    /// A kernel of the function, and what it is called with: all elements of the arrays, or, where a launch does not
    /// reach them all, some.
    struct Part {
        const KernelHandle& handle;
        Call call;
    };
    using Instead = std::initializer_list<std::pair<std::string_view, FunctionOperand>>;

    Steps(const Queue& queue, const Recipe& recipe, std::span<const Part> parts, const WorkspaceSlice& workspace)
        : Call(parts[0].call), queue_(queue), recipe_(recipe), parts_(parts), given_(workspace) {}

    /// In the order of the elements.
    std::span<const Part> parts() const { return parts_; }
    /// The function's own kernel, with its arguments or with others in their place: of a part, or of the first one.
    void launch(const Part& part, const Grid& grid, Instead instead = {});
    void launch(const Grid& grid, Instead instead = {}) { launch(parts_[0], grid, instead); }
    void launch(const KernelHandle& kernel, const Grid& grid, std::initializer_list<FunctionOperand> operands);
    /// An argument of the call.
    BufferSlice<float> floats(std::string_view name) const { return slice<float>(name); }
    BufferSlice<std::uint32_t> words(std::string_view name) const { return slice<std::uint32_t>(name); }
    /// A part of the workspace.
    template <runtime::Element T>
    BufferSlice<T> take(std::uint64_t count) {
        return workspace().take<T>(count);
    }

private:
    template <class T>
    BufferSlice<T> slice(std::string_view name) const;
    Workspace& workspace();
    void launch(const KernelHandle& kernel, const Grid& grid, std::span<const runtime::Argument> arguments);

    const Queue& queue_;
    const Recipe& recipe_;
    std::span<const Part> parts_;
    WorkspaceSlice given_;
    std::optional<Workspace> workspace_{};
};

/// A kernel of a function, and its operands.
struct KernelCall {
    const KernelHandle& handle;
    std::vector<FunctionOperand> operands;
};
/// Runs the steps of a recipe, which has some, for the parts of arrays that have been checked.
void run_steps(const Queue& queue, const Recipe& recipe, std::span<const KernelCall> parts,
               const WorkspaceSlice& workspace);
/// Runs a kernel of a function, whose arrays have been checked: by the recipe's steps if it has some.
void run(const Queue& queue, const Recipe& recipe, const Variant& variant, const KernelHandle& handle,
         std::span<const FunctionOperand> operands, const WorkspaceSlice& workspace = {});
/// Runs a kernel by its number, whose operands are checked by the recipe's sizes here.
void run(const Queue& queue, const Recipe& recipe, std::size_t kernel, std::initializer_list<FunctionOperand> operands);

/// The number that compute() stores in a buffer of one element.
template <class R>
R result(const DeviceQueue& queue, auto&& compute) {
    auto out = queue.device().template buffer<R>(1, "result");
    compute(out);
    return out.download()[0];
}

}  // namespace ikat::stdlib
