// SPDX-License-Identifier: Apache-2.0
// The command `ikat`. Scripts rely on the exit codes: 0 done, 1 the kernel failed a check, 2 bad usage or input.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <exception>
#include <sstream>
#include <string>

#include "runtime/backend.hpp"
#include "tools/cli/commands/commands.hpp"
#include "tools/cli/text/files.hpp"

namespace ikat::cli {
namespace {

enum Exit { done = 0, kernel_failed = 1, bad_input = 2 };

Exit fail(Exit code, const std::string& what) {
    std::fflush(stdout);
    std::fprintf(stderr, "%s\n", what.c_str());
    return code;
}

/// --help or --version. CLI11 would not notice a failed write.
Exit print_help(const CLI::App& app, const CLI::ParseError& asked) try {
    std::ostringstream out;
    app.exit(asked, out);
    write_text({}, out.str());
    return done;
} catch (const Error& error) { return fail(bad_input, error.what()); }

/// Lost output of kernels and on standard error is noticed only at the end.
Exit finish(Exit code) {
    if (code != done) return code;
    if (std::fflush(stdout) != 0 || std::ferror(stdout))
        return fail(bad_input, "error: cannot write to standard output\n  hint: is the disk full?");
    return std::ferror(stderr) ? bad_input : done;
}

/// CLI11 would only report that a command is required.
void check_command(const CLI::App& app, int argc, char** argv) {
    if (argc < 2 || argv[1][0] == '-') return;
    std::string names;
    for (const CLI::App* command : app.get_subcommands(nullptr)) {
        if (command->get_name() == argv[1]) return;
        names += " " + command->get_name();
    }
    throw Error("there is no command '" + std::string(argv[1]) + "'", "commands are" + names);
}

/// `ikat run A ... --then B ... --then C ...`: cuts argc at the first --then and returns the other parts.
std::vector<std::vector<std::string>> cut_launches(int& argc, char** argv) {
    std::vector<std::vector<std::string>> out;
    if (argc < 2 || (argv[1] != std::string_view("run") && argv[1] != std::string_view("check"))) return out;
    int first = argc;
    for (int i = 2; i < argc; ++i) {
        if (argv[i] == std::string_view("--then")) {
            first = std::min(first, i);
            out.emplace_back();
        } else if (!out.empty()) {
            out.back().emplace_back(argv[i]);
        }
    }
    argc = first;
    return out;
}

/// `ikat check ... -- PROGRAM ARG...`: the same at --.
std::vector<std::string> cut_program(int& argc, char** argv) {
    if (argc < 2 || argv[1] != std::string_view("check")) return {};
    const auto first = std::find(argv + 2, argv + argc, std::string_view("--"));
    if (first == argv + argc) return {};
    std::vector<std::string> out(first + 1, argv + argc);
    argc = int(first - argv);
    return out;
}

Exit run(int argc, char** argv) {
    auto program = cut_program(argc, argv);
    auto then = cut_launches(argc, argv);
    CLI::App app("Kernels from C++ to PTX to results.", "ikat");
    app.set_version_flag("--version", "ikat " IKAT_VERSION);
    app.require_subcommand(1);
    app.footer(
        "`ikat COMMAND --help` tells more. Exit codes: 0 done, 1 the kernel failed a check, 2 bad usage or input.");
    add_kernels(app);
    add_emit(app);
    add_opt(app);
    add_ptx(app);
    add_run(app, then);
    add_check(app, std::move(then), std::move(program));
    add_devices(app);
    add_layout(app);
    add_fragment(app);
    add_pipeline(app);
    add_raster(app);
    add_cuda_env(app);
    try {
        check_command(app, argc, argv);
        app.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
        if (error.get_exit_code() == 0) return print_help(app, error);
        const std::string command = argc > 1 && argv[1][0] != '-' ? argv[1] + std::string(" ") : "";
        return fail(bad_input, "error: " + std::string(error.what()) + "\n  hint: see `ikat " + command + "--help`");
    } catch (const runtime::KernelError& error) {
        return fail(kernel_failed, error.what());
    } catch (const Error& error) { return fail(bad_input, error.what()); } catch (const std::bad_alloc&) {
        return fail(bad_input, "error: the host's memory is exhausted\n  hint: give smaller buffers, or fewer");
    } catch (const std::exception& error) { return fail(bad_input, "error: " + std::string(error.what())); }
    return done;
}

}  // namespace
}  // namespace ikat::cli

int main(int argc, char** argv) {
    using namespace ikat::cli;
    return finish(run(argc, argv));
}
