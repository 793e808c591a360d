// SPDX-License-Identifier: Apache-2.0
// `ikat cuda-env -- COMMAND`: runs a program of the CUDA driver's API on the emulator, with all in its environment that
// it needs. Without a command, the variables are printed, for a shell to take.
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>
#include <utility>

#include "codegen/support/diagnostic.hpp"
#include "codegen/support/environment.hpp"
#include "tools/cli/commands/commands.hpp"

namespace ikat::cli {
namespace {

namespace fs = std::filesystem;

/// The first of these beside this program's folder that is there.
fs::path beside(std::initializer_list<const char*> candidates, const char* what) {
    std::error_code failed;
    const fs::path own = fs::read_symlink("/proc/self/exe", failed).parent_path();
    for (const char* candidate : candidates) {
        const fs::path path = (own / candidate).lexically_normal();
        if (fs::exists(path, failed)) return path;
    }
    throw Error(fmt::format("there is no {} beside {}", what, own.string()),
                "build the targets ikat_cuda_driver and ikat_ptxas, or install ikat");
}

/// The nvcc that programs run; empty if there is none.
std::string nvcc() {
    const std::string_view chosen = environment("IKAT_NVCC");
    if (!chosen.empty()) return std::string(chosen);
    return find_program("nvcc", "/usr/local/cuda/bin").value_or("");
}

using Variable = std::pair<std::string, std::string>;

std::vector<Variable> variables() {
    const fs::path library = beside({"../cuda_driver/libcuda.so.1", "../" IKAT_LIBDIR "/ikat/cuda_driver/libcuda.so.1"},
                                    "stand-in for the CUDA driver");
    const std::string folder = library.parent_path().string(), ptxas = beside({"ikat-ptxas"}, "ikat-ptxas").string();
    const std::string before(environment("LD_LIBRARY_PATH"));
    std::vector<Variable> out = {
        {"LD_LIBRARY_PATH", before.empty() ? folder : folder + ":" + before},
        {"NUMBA_CUDA_DRIVER", library.string()},
        {"TRITON_LIBCUDA_PATH", folder},
        {"TRITON_PTXAS_PATH", ptxas},
        {"TRITON_PTXAS_BLACKWELL_PATH", ptxas},
    };
    if (const std::string program = nvcc(); !program.empty()) {
        out.push_back({"PATH", folder + "/bin:" + std::string(environment("PATH"))});
        out.push_back({"IKAT_NVCC", program});
    }
    return out;
}

/// In single quotes, as a shell reads it.
std::string quoted(const std::string& text) {
    std::string out = "'";
    for (const char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
    return out + "'";
}

}  // namespace

void run_in_cuda_env(const std::vector<std::string>& command) {
    for (const auto& [name, value] : variables()) setenv(name.c_str(), value.c_str(), 1);
    std::vector<char*> words;
    for (const std::string& word : command) words.push_back(const_cast<char*>(word.c_str()));
    words.push_back(nullptr);
    execvp(words[0], words.data());
    throw Error(fmt::format("'{}' cannot be run: {}", command[0], std::strerror(errno)), "is it in PATH?");
}

void add_cuda_env(CLI::App& app) {
    CLI::App* const command = app.add_subcommand(
        "cuda-env", "Run a program of the CUDA driver API on the emulator: ikat cuda-env -- python3 kernel.py");
    const auto words = std::make_shared<std::vector<std::string>>();
    command->add_option("COMMAND", *words,
                        "after --, the program and its arguments; without one, the variables are printed");
    command->callback([words] {
        if (!words->empty()) run_in_cuda_env(*words);
        for (const auto& [name, value] : variables()) fmt::print("export {}={}\n", name, quoted(value));
    });
}

}  // namespace ikat::cli
