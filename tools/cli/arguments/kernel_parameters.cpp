// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/arguments/kernel_parameters.hpp"

#include <fmt/format.h>

#include "codegen/support/diagnostic.hpp"

namespace ikat::cli {

std::vector<KernelParameter> parameters_of(const KernelInfo& kernel) {
    std::vector<KernelParameter> out;
    for (std::uint32_t i = 0; i < kernel.parameters.size();) {
        const KernelInfo::View* view = kernel.view_at(i);
        out.push_back({kernel.parameters[i].name, i, view});
        i += view ? view->parameters() : 1;
    }
    return out;
}

std::string signature(const KernelInfo& kernel) {
    constexpr std::string_view extents[] = {"",
                                            "",
                                            "rows x columns",
                                            "planes x rows x columns",
                                            "volumes x planes x rows x columns",
                                            "sets x volumes x planes x rows x columns"};
    std::string out = kernel.name + "(";
    for (const KernelParameter& of : parameters_of(kernel)) {
        const ir::Parameter& parameter = kernel.parameters[of.number];
        if (of.number > 0) out += ", ";
        if (parameter.bytes)
            out += fmt::format("{}: {} bytes", of.name, parameter.bytes);
        else if (parameter.access == ir::Access::Value)
            out += fmt::format("{}: {}", of.name, info(parameter.type).name);
        else
            out += fmt::format("{}: {} {}[{}]", of.name, ir::access_names[int(parameter.access)],
                               info(parameter.element).name, extents[of.view ? of.view->rank : 1]);
    }
    return out + ")";
}

void append_shape(const KernelParameter& parameter, const std::string& text, const ParsedArgument& buffer,
                  std::vector<runtime::Argument>& out) {
    const std::vector<std::uint64_t>& shape = buffer.shape;
    if (buffer.kind != ParsedArgument::Kind::Buffer)
        throw Error(fmt::format("argument '{}' is not a buffer, but parameter '{}' is a matrix", text, parameter.name),
                    "its shape gives rows and columns: f32[300x250]");
    if (shape.size() != parameter.view->rank)
        throw Error(fmt::format("argument '{}' has a shape of rank {}, but parameter '{}' is of rank {}", text,
                                shape.size(), parameter.name, parameter.view->rank),
                    parameter.view->rank == 2   ? "give the buffer rows and columns: f32[300x250]"
                    : parameter.view->rank == 3 ? "give the buffer planes, rows and columns: f32[4x300x250]"
                                                : "give the buffer all its extents: f32[2x4x300x250]");
    for (const std::uint64_t extent : shape) out.push_back({.type = ir::Type::U32, .bits = extent});
    for (std::size_t d = 1; d < shape.size(); ++d) {
        std::uint64_t pitch = 1;
        for (std::size_t inner = d; inner < shape.size(); ++inner) pitch *= shape[inner];
        out.push_back({.type = ir::Type::U32, .bits = pitch});
    }
}

}  // namespace ikat::cli
