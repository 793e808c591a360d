// SPDX-License-Identifier: Apache-2.0
#include "codegen/ptxas.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>

#include "codegen/support/diagnostic.hpp"
#include "codegen/support/environment.hpp"
#include "codegen/support/write_file.hpp"

namespace ikat::ptxas {
namespace {

namespace fs = std::filesystem;

/// Quoted for the shell: paths here come from the environment.
std::string in_quotes(std::string_view text) {
    std::string out = "'";
    for (char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
    return out + "'";
}

class ScratchFolder {
public:
    ScratchFolder() {
        std::string pattern = (fs::temp_directory_path() / "ikat-ptxas-XXXXXX").string();
        if (!mkdtemp(pattern.data()))
            throw Error("cannot create a folder in the temporary directory", "TMPDIR selects another directory");
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

std::vector<std::byte> contents(const fs::path& path) {
    std::ifstream file(path, std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    const auto* bytes = reinterpret_cast<const std::byte*>(text.data());
    return {bytes, bytes + text.size()};
}

/// The sum of all numbers before `words`, as in "0 bytes spill stores"; 0 if there are none.
std::uint32_t number_before(std::string_view line, std::string_view words) {
    std::uint32_t sum = 0;
    for (std::size_t at = line.find(words); at != line.npos; at = line.find(words, at + 1)) {
        std::size_t first = at;
        while (first > 0 && line[first - 1] >= '0' && line[first - 1] <= '9') --first;
        if (first < at) sum += std::uint32_t(std::stoul(std::string(line.substr(first, at - first))));
    }
    return sum;
}

/// The quoted text after `words`, if the line contains them.
std::string quoted_after(std::string_view line, std::string_view words) {
    const std::size_t at = line.find(words);
    if (at == line.npos) return {};
    const std::size_t first = line.find('\'', at + words.size()) + 1;
    return std::string(line.substr(first, line.find('\'', first) - first));
}

}  // namespace

std::optional<std::string> find() {
    if (const std::string named(environment("IKAT_PTXAS")); !named.empty())
        return is_program(named) ? std::optional(named) : std::nullopt;
    return find_program("ptxas", "/usr/local/cuda/bin");
}

Output assemble(const std::string& program, std::string_view ptx, std::string_view target, std::string_view options) {
    const ScratchFolder scratch;
    const fs::path source = scratch / "kernel.ptx", cubin = scratch / "kernel.cubin";
    write_file(source.string(), ptx);
    const std::string command = in_quotes(program) + " -v -arch=" + in_quotes(target) + ' ' + std::string(options) +
                                " -o " + in_quotes(cubin.string()) + ' ' + in_quotes(source.string()) + " 2>&1";
    FILE* pipe = popen(command.c_str(), "r");
    if (!pipe) throw Error("ptxas cannot be started: " + command, "IKAT_PTXAS selects another one, or none");
    Output out;
    char chunk[4096];
    while (const std::size_t count = fread(chunk, 1, sizeof chunk, pipe)) out.log.append(chunk, count);
    const int status = pclose(pipe);
    out.exit_status = WIFEXITED(status) ? WEXITSTATUS(status) : 1;
    if (out.exit_status == 0) out.cubin = contents(cubin);
    return out;
}

std::vector<Figures> read_log(std::string_view log) {
    std::vector<Figures> out;
    std::stringstream lines{std::string(log)};
    for (std::string line; std::getline(lines, line);) {
        if (std::string entry = quoted_after(line, "Compiling entry function"); !entry.empty())
            out.push_back({.entry = std::move(entry), .target = quoted_after(line, "' for")});
        if (out.empty()) continue;
        Figures& last = out.back();
        last.stack_bytes += number_before(line, " bytes stack frame");
        last.spill_store_bytes += number_before(line, " bytes spill stores");
        last.spill_load_bytes += number_before(line, " bytes spill loads");
        last.registers += number_before(line, " registers");
        last.barriers += number_before(line, " barriers");
        last.shared_bytes += number_before(line, " bytes smem");
        last.constant_bytes += number_before(line, " bytes cmem");
    }
    return out;
}

}  // namespace ikat::ptxas
