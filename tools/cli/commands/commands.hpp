// SPDX-License-Identifier: Apache-2.0
// The subcommands of `ikat`. Each function adds one to the application; the command runs while the command line is
// parsed, and throws Error for bad input and runtime::KernelError for a kernel that failed.
#pragma once
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace ikat::cli {

void add_kernels(CLI::App& app);
void add_emit(CLI::App& app);
void add_opt(CLI::App& app);
void add_ptx(CLI::App& app);
/// `then` has the words after each --then of the command line, which is split there before it is parsed.
void add_run(CLI::App& app, std::vector<std::vector<std::string>> then);
/// The same; `program` has the words after --.
void add_check(CLI::App& app, std::vector<std::vector<std::string>> then, std::vector<std::string> program);
void add_devices(CLI::App& app);
void add_layout(CLI::App& app);
void add_fragment(CLI::App& app);
void add_pipeline(CLI::App& app);
void add_raster(CLI::App& app);
void add_cuda_env(CLI::App& app);
/// Becomes a program with all in its environment that one of the CUDA driver's API needs to run on the emulator.
/// Returns only by throwing Error: it cannot be run.
void run_in_cuda_env(const std::vector<std::string>& command);

}  // namespace ikat::cli
