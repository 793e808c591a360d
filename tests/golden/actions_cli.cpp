// SPDX-License-Identifier: Apache-2.0
// Transcripts of the command line. A golden file holds shell commands, one per line; the output shows each with its
// output and, if not 0, its exit code in brackets. The commands run in a separate folder with the PTX files of
// tests/cli; `ikat` is the built program, and runs on the emulator unless a command says otherwise.
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <sstream>

#include "tools/testing/golden.hpp"

namespace ikat {
namespace {

namespace fs = std::filesystem;

/// The folder in which the commands of one file run; removed afterwards.
class Scratch {
public:
    explicit Scratch(const std::string& name)
        : path_(fs::temp_directory_path() / ("ikat_cli_" + name + "_" + std::to_string(getpid()))) {
        fs::create_directories(path_);
        for (const fs::directory_entry& file : fs::directory_iterator(fs::path(IKAT_SOURCE_DIR) / "tests/cli"))
            if (file.path().extension() == ".ptx") fs::copy(file.path(), path_);
    }
    ~Scratch() { fs::remove_all(path_); }
    std::string string() const { return path_.string(); }

private:
    fs::path path_;
};

/// Output and errors of a command, and its exit code.
std::string run(const std::string& command, const std::string& folder) {
    const std::string line = "cd '" + folder + "' && exec 2>&1 && PATH=" + fs::path(IKAT_CLI).parent_path().string() +
                             ":$PATH IKAT_DEVICE=emulator && export PATH IKAT_DEVICE && " + command;
    std::string out;
    std::FILE* pipe = popen(line.c_str(), "r");
    if (!pipe) return "cannot run a shell\n";
    char piece[4096];
    while (const std::size_t count = std::fread(piece, 1, sizeof piece, pipe)) out.append(piece, count);
    const int status = pclose(pipe);
    if (!WIFEXITED(status)) return out + "[killed]\n";
    return WEXITSTATUS(status) ? out + "[" + std::to_string(WEXITSTATUS(status)) + "]\n" : out;
}

std::string transcript(const golden::Case& test) {
    const Scratch scratch(test.file);
    std::istringstream lines(test.input);
    std::string out;
    for (std::string line; std::getline(lines, line);)
        if (!line.empty() && !line.starts_with("//")) out += "$ " + line + "\n" + run(line, scratch.string());
    return out;
}

const golden::Registration cli({{"cli", transcript}});

}  // namespace
}  // namespace ikat
