// SPDX-License-Identifier: Apache-2.0
#include "tools/embed/generate.hpp"

#include <algorithm>
#include <set>

#include "codegen/pipeline/compile.hpp"
#include "codegen/ptx/table/target.hpp"
#include "codegen/ptxas.hpp"

namespace ikat::embed {
namespace {

constexpr const char* heading = "// Made by ikat_add_kernels(); changes are lost with the next build.\n";

/// One string literal per line of the text.
std::string literal(std::string_view text) {
    std::string out = "\n        \"";
    for (std::size_t i = 0; i < text.size(); ++i) {
        const char c = text[i];
        if (c == '\n')
            out += i + 1 == text.size() ? "\\n" : "\\n\"\n        \"";
        else if (c == '"' || c == '\\')
            (out += '\\') += c;
        else
            out += c;
    }
    return out + '"';
}

std::string bytes(std::span<const std::byte> data) {
    std::string out;
    for (std::size_t i = 0; i < data.size(); ++i)
        out += (i % 24 ? "" : "\n    ") + std::to_string(unsigned(data[i])) + ',';
    return out;
}

std::vector<std::byte> machine_code(const Compiled& compiled, const std::string& target, const Options& options) {
    if (!options.ptxas) return {};
    ptxas::Output output = ptxas::assemble(*options.ptxas, compiled.ptx, target);
    if (output.exit_status != 0)
        throw Error("ptxas refuses kernel '" + compiled.name + "' for " + target + ":\n" + output.log,
                    "without ptxas (IKAT_PTXAS=none when the project is configured) only PTX is embedded");
    return std::move(output.cubin);
}

/// `{"sm_80", "...", saxpy_sm_80}`, and before the table the array that it names.
std::string image(const Named& kernel, const std::string& target, const Options& options, std::string& arrays) {
    const Compiled compiled = compile(*kernel.kernel, {.target = target});
    const std::vector<std::byte> code = machine_code(compiled, target, options);
    const std::string array = kernel.variable + "_" + target;
    if (!code.empty()) arrays += "constexpr unsigned char " + array + "[] = {" + bytes(code) + "};\n";
    return "    {\"" + target + "\"," + literal(compiled.ptx) + ",\n     " + (code.empty() ? "{}" : array) + "},\n";
}

/// Oldest first, which is the order in which an image is looked for.
std::vector<std::string> in_order(std::vector<std::string> targets) {
    for (const std::string& target : targets) nvptx::target(target);
    std::ranges::sort(targets, {}, [](const std::string& target) {
        return std::pair(nvptx::target(target).number, nvptx::target(target).specific);
    });
    return targets;
}

void check_names(std::span<const Named> kernels) {
    std::set<std::string_view> names;
    for (const Named& kernel : kernels)
        if (!names.insert(kernel.variable).second)
            throw Error("two kernels are exported as '" + kernel.variable + "'",
                        "they would have one name in the generated header: rename one of the variables");
}

}  // namespace

Generated generate(std::span<const Named> kernels, const Options& options) {
    check_names(kernels);
    const std::string open = "namespace " + options.name + " {\n";
    Generated out{.header = heading + std::string("#pragma once\n#include <ikat/embedded.hpp>\n\n") + open,
                  .source = heading + ("#include \"" + options.name + ".hpp\"\n\n") + open};
    for (const Named& kernel : kernels) {
        std::string arrays, images;
        for (const std::string& target : in_order(options.targets)) images += image(kernel, target, options, arrays);
        out.header += "extern const ikat::EmbeddedKernel " + kernel.variable + ";\n";
        out.source += "\nnamespace {\n" + arrays + "constexpr ikat::EmbeddedImage " + kernel.variable +
                      "_images[] = {\n" + images + "};\n}\nconst ikat::EmbeddedKernel " + kernel.variable + "{\"" +
                      kernel.kernel->name + "\", " + kernel.variable + "_images};\n";
    }
    out.header += "}\n";
    out.source += "}\n";
    return out;
}

}  // namespace ikat::embed
