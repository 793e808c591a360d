// SPDX-License-Identifier: Apache-2.0
// The parameters of a library kernel on the command line: a view is one argument, whose shape gives the extents.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "codegen/kernel/kernel_info.hpp"
#include "runtime/launch/launch.hpp"
#include "tools/cli/arguments/argument.hpp"

namespace ikat::cli {

struct KernelParameter {
    std::string name;
    std::uint32_t number;          // of its first parameter in the entry
    const KernelInfo::View* view;  // or null
};

std::vector<KernelParameter> parameters_of(const KernelInfo& kernel);

/// "saxpy(a: f32, x: in f32[], y: inout f32[], n: u32)"
std::string signature(const KernelInfo& kernel);

/// Appends the extents and pitches of a buffer passed as a view: row-major, without gaps. Throws Error for a shape of
/// another rank. `text` is the argument as written.
void append_shape(const KernelParameter& parameter, const std::string& text, const ParsedArgument& buffer,
                  std::vector<runtime::Argument>& out);

}  // namespace ikat::cli
