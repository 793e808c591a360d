// SPDX-License-Identifier: Apache-2.0
// Functions of the library that choose their kernels, on the command line: `ikat run gemm_tensor_core_bf16_nt a.npy
// b.npy -o c.npy`, `ikat emit gemm_tensor_core_bf16_nt`.
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

/// What the function launches on a device of that target with this many multiprocessors, for arrays of these sizes:
/// "m=300".
std::vector<runtime::node::Launch> launches_of(const stdlib::NamedFunction& function, std::string_view target,
                                               std::uint32_t multiprocessors, const std::vector<std::string>& sizes,
                                               const std::vector<std::string>& settings);

/// "softmax(x: in TYPE[... x columns], y: out TYPE[... x columns])"
std::string signature(const stdlib::NamedFunction& function);
/// A line for each `--set`.
std::string settings_of(const stdlib::NamedFunction& function);
/// What `ikat kernels` says about it: these, what it computes, and how a program calls it.
std::string description(const stdlib::NamedFunction& function);

}  // namespace ikat::cli
