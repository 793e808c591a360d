// SPDX-License-Identifier: Apache-2.0
// The command `ikat`. Exit codes, on which scripts rely: 0 done, 1 the kernel failed a check, 2 bad usage or input.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <string>

#include "runtime/backend.hpp"
#include "tools/cli/commands.hpp"

namespace ikat::cli {
namespace {

enum Exit { done = 0, kernel_failed = 1, bad_input = 2 };

Exit fail(Exit code, const std::string& what) {
    std::fflush(stdout);
    std::fprintf(stderr, "%s\n", what.c_str());
    return code;
}

/// CLI11 would only say that a command is required.
void check_command(const CLI::App& app, int argc, char** argv) {
    if (argc < 2 || argv[1][0] == '-') return;
    std::string names;
    for (const CLI::App* command : app.get_subcommands(nullptr)) {
        if (command->get_name() == argv[1]) return;
        names += " " + command->get_name();
    }
    throw Error("there is no command '" + std::string(argv[1]) + "'", "commands are" + names);
}

Exit run(int argc, char** argv) {
    CLI::App app("Kernels from C++ to PTX to results.", "ikat");
    app.set_version_flag("--version", "ikat " IKAT_VERSION);
    app.require_subcommand(1);
    app.footer(
        "`ikat COMMAND --help` tells more. Exit codes: 0 done, 1 the kernel failed a check, 2 bad usage or input.");
    add_kernels(app);
    add_emit(app);
    add_opt(app);
    add_ptx(app);
    add_run(app);
    add_devices(app);
    try {
        check_command(app, argc, argv);
        app.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
        if (error.get_exit_code() == 0) return Exit(app.exit(error));  // --help, --version
        const std::string command = argc > 1 && argv[1][0] != '-' ? argv[1] + std::string(" ") : "";
        return fail(bad_input, "error: " + std::string(error.what()) + "\n  hint: see `ikat " + command + "--help`");
    } catch (const runtime::KernelError& error) {
        return fail(kernel_failed, error.what());
    } catch (const Error& error) { return fail(bad_input, error.what()); } catch (const std::exception& error) {
        return fail(bad_input, "error: " + std::string(error.what()));
    }
    return done;
}

}  // namespace
}  // namespace ikat::cli

int main(int argc, char** argv) { return ikat::cli::run(argc, argv); }
