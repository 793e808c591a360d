// SPDX-License-Identifier: Apache-2.0
// golden_test FOLDER: the PTX of each exported kernel equals FOLDER/<kernel>.ptx. With IKAT_BLESS=1 in the environment
// the files are rewritten; version control then shows what changed.
#include <ikat/dsl.hpp>
#include <ikat/testing.hpp>

#include <cstdio>
#include <filesystem>

int main(int argc, char** argv) {
    if (argc != 2) return 2;
    const std::filesystem::path folder = argv[1];
    bool passed = true;
    for (const ikat::ExportedKernel& kernel : ikat::exported_kernels()) {
        const auto result =
            ikat::golden::compare(folder / (kernel.name + std::string(".ptx")), ikat::golden::ptx(kernel.handle()));
        std::printf("%s %s\n", result.passed ? "passed" : "FAILED", kernel.name);
        if (!result.message.empty()) std::printf("%s\n", result.message.c_str());
        passed = passed && result.passed;
    }
    return passed ? 0 : 1;
}
