// SPDX-License-Identifier: Apache-2.0
#include "tools/cuda_driver/compiler.hpp"

#include <fmt/format.h>

#include "codegen/ptx/check/check.hpp"
#include "codegen/ptx/text/link.hpp"
#include "tools/cuda_driver/fat_binary.hpp"

namespace ikat::cuda_driver {
namespace {

[[noreturn]] void fatal(std::string_view input, unsigned line, const std::string& message,
                        CUresult result = CUDA_ERROR_INVALID_PTX) {
    throw NotAssembled{result, fmt::format("ptxas {}, line {}; fatal   : {}\n", input, line, message)};
}

void check_version(const ptx::Module& module, std::string_view input) {
    if (ptx::newest_version.major < module.version.major)
        fatal(input, 1,
              fmt::format("Unsupported .version {}; current version is '{}'", to_text(module.version),
                          to_text(ptx::newest_version)),
              CUDA_ERROR_UNSUPPORTED_PTX_VERSION);
}

void check_target(const ptx::Target& device, const ptx::Module& module, std::string_view input) {
    if (module.address_size != 64) fatal(input, 3, ".address_size is not 64");
    const std::string_view named = module.target.empty() ? "" : module.text(module.target[0]);
    if (accepted_number(device, named) == 0)
        fatal(input, 1, fmt::format(".target {} is not for this device, {}", named, device.name));
}

}  // namespace

std::string log_of(const Error& error, std::string_view input) {
    std::string text;
    for (const Diagnostic& diagnostic : error.diagnostics())
        text += fmt::format("ptxas {}, line {}; {}   : {}{}\n", input, diagnostic.where.line,
                            diagnostic.severity == Severity::Error ? "error" : "warning", diagnostic.message,
                            diagnostic.hint.empty() ? "" : " (" + diagnostic.hint + ")");
    return text + "ptxas fatal   : Ptx assembly aborted due to errors\n";
}

ptx::Module assemble(const ptx::Target& device, std::string_view text, std::string_view input, bool is_complete) {
    try {
        ptx::Module module = ptx::parse(text, "ptx");
        check_version(module, input);
        ptx::check_or_throw(module, {.is_complete = is_complete});
        check_target(device, module, input);
        return module;
    } catch (const Error& error) { throw NotAssembled{.log = log_of(error, input)}; }
}

std::string link_texts(const ptx::Target& device, const std::vector<LinkInput>& inputs, bool is_complete) {
    const bool is_one = inputs.size() == 1;
    std::vector<ptx::Module> modules;
    for (const LinkInput& input : inputs)
        modules.push_back(assemble(device, input.text, input.name, is_one && is_complete));
    if (is_one) return inputs[0].text;  // with the lines that its author knows
    try {
        const ptx::Module linked = ptx::link(modules);
        ptx::check_or_throw(linked, {.is_complete = is_complete});
        return ptx::print(linked);
    } catch (const Error& error) { throw NotAssembled{.log = log_of(error, "the linked program")}; }
}

}  // namespace ikat::cuda_driver
