// SPDX-License-Identifier: Apache-2.0
#include "tests/ptxas.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <vector>

namespace ikat::tests {
namespace {

namespace fs = std::filesystem;

bool is_program(const fs::path& path) { return fs::is_regular_file(path) && access(path.c_str(), X_OK) == 0; }

std::vector<fs::path> candidates() {
    std::vector<fs::path> paths;
    std::stringstream folders(std::getenv("PATH") ? std::getenv("PATH") : "");
    for (std::string folder; std::getline(folders, folder, ':');) paths.push_back(fs::path(folder) / "ptxas");
    paths.emplace_back("/usr/local/cuda/bin/ptxas");
    return paths;
}

/// Quoted for the shell: paths here come from the environment.
std::string quoted(const std::string& text) {
    std::string out = "'";
    for (char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
    return out + "'";
}

/// The number that stands before `words` in the line, or 0: "0 bytes spill stores".
int number_before(std::string_view line, std::string_view words) {
    const std::size_t at = line.find(words);
    if (at == std::string_view::npos) return 0;
    std::size_t first = at;
    while (first > 0 && line[first - 1] >= '0' && line[first - 1] <= '9') --first;
    return first == at ? 0 : std::stoi(std::string(line.substr(first, at - first)));
}

class ScratchFolder {
public:
    ScratchFolder() {
        std::string pattern = (fs::temp_directory_path() / "ikat-ptxas-XXXXXX").string();
        if (!mkdtemp(pattern.data())) throw std::runtime_error("no folder can be made in the temporary directory");
        path_ = pattern;
    }
    ~ScratchFolder() {
        std::error_code ignored;
        fs::remove_all(path_, ignored);
    }
    ScratchFolder(const ScratchFolder&) = delete;
    ScratchFolder& operator=(const ScratchFolder&) = delete;
    fs::path operator/(const char* name) const { return path_ / name; }

private:
    fs::path path_;
};

}  // namespace

std::optional<std::string> find_ptxas() {
    if (const char* named = std::getenv("IKAT_PTXAS"); named && *named)
        return is_program(named) ? std::optional<std::string>(named) : std::nullopt;
    for (const fs::path& path : candidates())
        if (is_program(path)) return path.string();
    return std::nullopt;
}

bool skip_without_ptxas() {
    if (find_ptxas()) return false;
    std::puts("skipped: no ptxas");
    return true;
}

PtxasReport assemble(std::string_view ptx, std::string_view target) {
    const ScratchFolder scratch;
    const fs::path source = scratch / "test.ptx";
    std::ofstream(source, std::ios::binary) << ptx;

    const std::string command = quoted(find_ptxas().value()) + " -v -arch=" + quoted(std::string(target)) + " -o " +
                                quoted((scratch / "test.cubin").string()) + ' ' + quoted(source.string()) + " 2>&1";
    FILE* pipe = popen(command.c_str(), "r");
    if (!pipe) throw std::runtime_error("cannot start " + command);
    std::string log;
    char chunk[4096];
    while (const std::size_t count = fread(chunk, 1, sizeof chunk, pipe)) log.append(chunk, count);
    const int status = pclose(pipe);
    return read_ptxas_log(WIFEXITED(status) ? WEXITSTATUS(status) : 1, std::move(log));
}

PtxasReport read_ptxas_log(int exit_status, std::string log) {
    PtxasReport report{.assembled = exit_status == 0};
    std::stringstream lines(log);
    for (std::string line; std::getline(lines, line);) {
        report.warned |= line.find("warning") != std::string::npos || line.find("(C75") != std::string::npos;
        report.spill_bytes += number_before(line, " bytes spill stores") + number_before(line, " bytes spill loads");
        report.registers = std::max(report.registers, number_before(line, " registers"));
    }
    report.log = std::move(log);
    return report;
}

}  // namespace ikat::tests
