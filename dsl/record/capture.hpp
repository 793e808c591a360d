// SPDX-License-Identifier: Apache-2.0
// A kernel before and after its capture, without its types: what dsl/kernel/kernel.hpp stores.
#pragma once
#include <concepts>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "codegen/kernel/tensor_map_info.hpp"
#include "codegen/support/reference.hpp"
#include "dsl/record/trace.hpp"

namespace ikat {
struct Digest;
struct KernelInfo;
}  // namespace ikat
namespace ikat::ast {
struct KernelTree;
}

namespace ikat::trace {

/// One parameter of the PTX entry. A view or a struct in the lambda becomes several: the pointer and its extents, or
/// the fields.
struct ParameterType {
    ir::Type type = ir::Type::Void;  // of a scalar, or of a pointer's elements
    bool pointer = false;
    Direction direction = Direction::ReadWrite;
    std::uint32_t rank = 1;                  // of a pointer
    const char* part = nullptr;              // "pitch" of a separate parameter `A_pitch`, which cannot be assigned
    std::uint32_t bytes = 0, alignment = 0;  // of raw bytes
    const TensorMapInfo* map = nullptr;      // if these are the map of a tensor
};

/// The values that a parameter of the lambda is made of.
struct ParameterTypes {
    const ParameterType* first = nullptr;
    std::uint32_t count = 0;
    bool is_optional = false;
};

/// A parameter whose type is data.
struct FurtherParameter {
    std::string name;
    ParameterTypes types;
};

/// A parameter's name in params(), and whether the kernel is made with it; or parameters whose types are data.
struct DeclaredName {
    const char* name = nullptr;
    bool is_there = true;
    const std::vector<FurtherParameter>* further = nullptr;
    DeclaredName(const char* name = nullptr) : name(name) {}
    DeclaredName(const char* name, bool is_there) : name(name), is_there(is_there) {}
    explicit DeclaredName(const std::vector<FurtherParameter>& further) : further(&further) {}
};

/// A parameter of the PTX entry as seen inside the kernel.
struct Argument {
    Variable variable;             // of a scalar
    Recorded value;                // of a part
    Array array;                   // of a pointer, or of raw bytes
    const char* absent = nullptr;  // the name of an optional parameter that the kernel is made without
};

/// The user's lambda.
struct Code {
    Reference<Counted> lambda;
    void (*run)(Counted& lambda, const Argument* arguments) = nullptr;
};

/// A parameter, by its name in params() or by its position, from 0.
struct ParameterName {
    ParameterName(const char* name) : name(name) {}
    template <std::integral Position>
    ParameterName(Position position) : position(std::uint32_t(position)) {}

    const char* name = nullptr;
    std::uint32_t position = 0;
};

/// A promise about an argument.
struct Contract {
    enum class Kind : std::uint8_t { MultipleOf, Aligned, AtLeast, Halo };
    Kind kind{};
    ParameterName parameter;
    std::uint64_t value = 1, per = 1;  // AtLeast: this many elements for each `per` of the product of these
    std::vector<ParameterName> factors{};
    std::vector<std::uint32_t> widths{};  // Halo: for all dimensions, or for each
};

/// A shared handle of one kernel: its body, its contracts and, from the first use on, its captured form.
class KernelHandle {
public:
    KernelHandle(const char* name, const DeclaredName* names, const ParameterTypes* types, std::uint32_t count,
                 Code code, const Where& where);
    KernelHandle(const KernelHandle& other);  // moving is copying: a kernel is never without its state
    KernelHandle& operator=(const KernelHandle& other);
    ~KernelHandle();

    const char* name() const;
    /// Captures and checks the kernel at the first call, in any thread. Throws Error with all mistakes in it; the
    /// reference is valid as long as a handle exists.
    const ast::KernelTree& ast() const;
    /// What a launch has to know of it. Captures it as ast() does.
    const KernelInfo& info() const;
    /// Of all that it is: equal kernels have equal ones. Captures it as ast() does; the first call computes it.
    const Digest& digest() const;

    void require(const Contract& contract);
    void make_function();  // a function that kernels call
    void launch_bounds(std::uint32_t max_threads, std::uint32_t min_blocks);
    void cluster(std::uint32_t x, std::uint32_t y, std::uint32_t z);
    void max_registers(std::uint32_t count);
    void contract();  // products and sums into fma

private:
    friend Recorded call(const KernelHandle& function, ir::Type result, RecordedValues arguments, const Where& where);
    struct State;
    Reference<State> state_;
};

/// Records a call of a function in the kernel, or in that function itself, that is being captured. The result is of
/// type `result`.
Recorded call(const KernelHandle& function, ir::Type result, RecordedValues arguments, const Where& where);
/// Throws Error: the kernel uses an optional parameter that it is made without.
[[noreturn]] void refuse_absent(const char* name);

/// Records a function's result.
void give(Recorded value, const Where& where);

}  // namespace ikat::trace

namespace ikat {

/// A kernel without its types: it can be kept beside others, launched and compiled.
using trace::KernelHandle;
/// A name in params().
using trace::DeclaredName;

/// Whether kernels that are captured from now on are checked for host variables that change inside a region: each
/// outermost region is recorded twice and compared, so its body runs twice. On, unless the environment variable
/// IKAT_CHECK_CAPTURE is 0.
void check_capture(bool on);

}  // namespace ikat
