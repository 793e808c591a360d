// SPDX-License-Identifier: Apache-2.0
// PROGRAM NAME FOLDER PTXAS TARGET...: writes FOLDER/NAME.hpp and FOLDER/NAME.cpp with the kernels that the program
// exports. PTXAS is a path, or "none". Called by ikat_add_kernels().
#include <cstdio>

#include "codegen/support/diagnostic.hpp"
#include "codegen/support/write_file.hpp"
#include "dsl/kernel/export.hpp"
#include "tools/embed/generate.hpp"

namespace ikat::embed {
namespace {

std::vector<Named> exported() {
    std::vector<Named> out;
    for (const ExportedKernel& kernel : exported_kernels()) out.push_back({kernel.name, kernel.handle()});
    if (out.empty())
        throw Error("none of the files exports a kernel", "IKAT_EXPORT_KERNEL(name) after a kernel exports it");
    return out;
}

void run(int argc, char** argv) {
    if (argc < 5) throw Error("too few arguments", "NAME FOLDER PTXAS TARGET...");
    Options options{.name = argv[1], .targets{argv + 4, argv + argc}, .ptxas{}};
    if (argv[3] != std::string_view("none")) options.ptxas = argv[3];
    const Generated generated = generate(exported(), options);
    const std::string path = std::string(argv[2]) + '/' + options.name;
    write_file(path + ".hpp", generated.header);
    write_file(path + ".cpp", generated.source);
}

}  // namespace
}  // namespace ikat::embed

int main(int argc, char** argv) try {
    ikat::embed::run(argc, argv);
    return 0;
} catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 2;
}
