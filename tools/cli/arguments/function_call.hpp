// SPDX-License-Identifier: Apache-2.0
// Functions of the library on the command line: `ikat run softmax x.npy -o y.npy`, `ikat emit
// gemm_tensor_core_bf16_nt`.
#pragma once
#include <string>
#include <vector>

#include "runtime/exec/recorder.hpp"
#include "stdlib/spec/functions.hpp"
#include "tools/cli/arguments/run_arguments.hpp"

namespace ikat::cli {

/// A call with arguments first ... first + count - 1.
class FunctionCall {
public:
    /// Gives outputs that have no shape theirs. Throws Error for arguments that do not fit the function, and settings
    /// that it does not have.
    FunctionCall(const stdlib::NamedFunction& function, const std::vector<std::string>& settings, Arguments& arguments,
                 std::size_t first, std::size_t count);

    std::vector<std::string> names() const;
    /// Runs it; what it launched.
    std::vector<runtime::node::Launch> run(const runtime::Device& device, const Arguments& arguments) const;

private:
    /// Of each array, from those that are given.
    std::vector<ir::Type> types_of(const Arguments& arguments, std::size_t first) const;

    const stdlib::NamedFunction* function_;
    stdlib::FunctionSettings settings_;
    std::size_t first_;
    std::vector<ir::Type> types_{};  // of the arrays
};

/// A call that is not run.
struct PlannedCall {
    std::string_view target;
    std::uint32_t multiprocessors;
    const std::vector<std::string>& sizes;     // "m=300"
    const std::vector<std::string>& settings;  // "alpha=2"
    const std::vector<std::string>& types;     // "f16", of all arrays of TYPE, or "x=f16", of one of any type
};
/// What it launches.
std::vector<runtime::node::Launch> launches_of(const stdlib::NamedFunction& function, const PlannedCall& call);

/// "softmax(x: in TYPE[... x columns], y: out TYPE[... x columns])"
std::string signature(const stdlib::NamedFunction& function);
/// A line for each array of blocks, and for each `--set`.
std::string details_of(const stdlib::NamedFunction& function);
/// What `ikat kernels` says about it: these, what it computes, and how a program calls it.
std::string description(const stdlib::NamedFunction& function);

}  // namespace ikat::cli
