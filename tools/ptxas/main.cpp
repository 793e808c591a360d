// SPDX-License-Identifier: Apache-2.0
// The command `ikat-ptxas`: it checks PTX as ptxas does, and writes a fat binary of it where ptxas writes machine code.
// The stand-in for the driver loads that, so a program that runs ptxas itself runs on the emulator.
#include <cstdio>
#include <exception>
#include <fstream>
#include <iterator>

#include "codegen/support/diagnostic.hpp"
#include "codegen/support/write_file.hpp"
#include "tools/cuda_driver/compiler.hpp"
#include "tools/cuda_driver/fat_binary.hpp"
#include "tools/ptxas/options.hpp"

namespace ikat::ptxas {
namespace {

constexpr int refused = 255;  // ptxas's exit code

int fail(const std::string& text) {
    std::fputs(text.c_str(), stderr);
    return refused;
}

std::string read(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    std::string text{std::istreambuf_iterator<char>(file), {}};
    if (!file.good() && !file.eof()) throw Error("Could not open input file '" + path + "'", {});
    return text;
}

int run(const Options& options) {
    if (options.asks_version) {
        std::puts("ptxas: ikat " IKAT_VERSION ", which keeps the PTX\nCuda compilation tools, release 13.0, V13.0.88");
        return 0;
    }
    if (options.asks_help) {
        std::puts(
            "ikat-ptxas [ptxas's options] -arch sm_90a -o FILE INPUT.ptx ...\n"
            "Checks PTX as ptxas does and writes it, in a fat binary, for the stand-in for the CUDA driver.");
        return 0;
    }
    if (options.inputs.empty()) return fail("ptxas fatal   : No input files specified\n");
    const ptx::Target& target = ptx::target(options.target);
    std::vector<cuda_driver::LinkInput> inputs;
    for (const std::string& path : options.inputs) inputs.push_back({path, read(path)});
    const std::string ptx = cuda_driver::link_texts(target, inputs, !options.is_part);
    write_file(options.output, cuda_driver::fat_binary_of(ptx, target.number));
    return 0;
}

}  // namespace
}  // namespace ikat::ptxas

int main(int argc, char** argv) try {
    const std::vector<std::string> words(argv + 1, argv + argc);
    return ikat::ptxas::run(ikat::ptxas::parse(words));
} catch (const ikat::cuda_driver::NotAssembled& refused) {
    return ikat::ptxas::fail(refused.log);
} catch (const std::exception& error) {
    return ikat::ptxas::fail(std::string("ptxas fatal   : ") + error.what() + "\n");
}
