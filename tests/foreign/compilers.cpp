// SPDX-License-Identifier: Apache-2.0
#include "tests/foreign/compilers.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>

#include "tests/ptxas.hpp"

namespace ikat::tests {
namespace {

namespace fs = std::filesystem;

struct Scratch {
    fs::path path;
    Scratch() {
        std::string pattern = (fs::temp_directory_path() / "ikat-foreign-XXXXXX").string();
        if (!mkdtemp(pattern.data())) throw std::runtime_error("cannot create a folder in the temporary directory");
        path = pattern;
    }
    Scratch(const Scratch&) = delete;
    Scratch& operator=(const Scratch&) = delete;
    ~Scratch() {
        std::error_code ignored;
        fs::remove_all(path, ignored);
    }
};

std::string read(const fs::path& path) {
    std::ostringstream out;
    out << std::ifstream(path, std::ios::binary).rdbuf();
    return out.str();
}

std::optional<std::string> find_program(std::string_view name, std::string_view elsewhere) {
    std::stringstream folders(std::getenv("PATH") ? std::getenv("PATH") : "");
    for (std::string folder; std::getline(folders, folder, ':');)
        if (const fs::path path = fs::path(folder) / name; access(path.c_str(), X_OK) == 0) return path.string();
    if (access(std::string(elsewhere).c_str(), X_OK) == 0) return std::string(elsewhere);
    return std::nullopt;
}

/// Runs `program options in.<suffix> -o out` in a separate folder and returns its output file.
std::string run(const std::string& program, std::string_view options, std::string_view suffix, std::string_view text) {
    const Scratch scratch;
    const std::string input = (scratch.path / "in.").string() + std::string(suffix);
    const std::string output = (scratch.path / "out").string(), log = (scratch.path / "log").string();
    std::ofstream(input, std::ios::binary) << text;
    const std::string command =
        program + ' ' + std::string(options) + ' ' + input + " -o " + output + " >" + log + " 2>&1";
    if (std::system(command.c_str()) != 0) throw std::runtime_error(command + "\n" + read(log));
    return read(output);
}

template <class T>
T load(const std::string& bytes, std::size_t at) {
    T value;
    if (at + sizeof(T) > bytes.size()) throw std::runtime_error("a truncated ELF file");
    std::memcpy(&value, bytes.data() + at, sizeof(T));
    return value;
}

/// The sections of an ELF64 file whose names begin with one of these.
std::map<std::string, std::string> sections_of(const std::string& elf, std::initializer_list<std::string_view> wanted) {
    const auto table = load<std::uint64_t>(elf, 0x28);
    const auto size = load<std::uint16_t>(elf, 0x3a), count = load<std::uint16_t>(elf, 0x3c);
    const auto names = load<std::uint64_t>(elf, table + load<std::uint16_t>(elf, 0x3e) * size + 0x18);
    std::map<std::string, std::string> sections;
    for (std::size_t i = 0; i < count; ++i) {
        const std::size_t header = table + i * size;
        const std::string name = elf.c_str() + names + load<std::uint32_t>(elf, header);
        if (std::ranges::any_of(wanted, [&](std::string_view prefix) { return name.starts_with(prefix); }))
            sections[name] =
                elf.substr(load<std::uint64_t>(elf, header + 0x18), load<std::uint64_t>(elf, header + 0x20));
    }
    return sections;
}

}  // namespace

std::optional<std::string> nvcc_ptx(std::string_view source, std::string_view options) {
    const auto nvcc = find_program("nvcc", "/usr/local/cuda/bin/nvcc");
    if (!nvcc) return std::nullopt;
    return run(*nvcc, "-ptx " + std::string(options), "cu", source);
}

std::optional<std::string> cute_ptx(std::string_view source, std::string_view options) {
    const Scratch scratch;
    const std::string found = (scratch.path / "found").string();
    constexpr const char* folder = "import os, cutlass_library as c; print(os.path.dirname(c.__file__) + '/source')";
    const std::string ask = "python3 -c \"" + std::string(folder) + "\" >" + found + " 2>/dev/null";
    const char* given = std::getenv("CUTLASS_PATH");
    if (!given && std::system(ask.c_str()) != 0) return std::nullopt;
    std::string headers = given ? given : read(found);
    while (headers.ends_with('\n')) headers.pop_back();
    return nvcc_ptx(source, "-I" + headers + "/include " + std::string(options));
}

std::optional<std::string> clang_ptx(std::string_view source, std::string_view options) {
    const auto clang = find_program("clang++-19", "/usr/lib/llvm-19/bin/clang++");
    if (!clang) return std::nullopt;
    return run(*clang, "--target=nvptx64-nvidia-cuda -S " + std::string(options), "cpp", source);
}

std::optional<std::map<std::string, std::string>> triton_files(std::string_view script) {
    if (std::system("python3 -c 'import triton' >/dev/null 2>&1") != 0) return std::nullopt;
    const Scratch scratch;
    const std::string log = (scratch.path / "log").string(), folder = (scratch.path / "ptx").string();
    fs::create_directory(folder);
    const std::string command = "TRITON_CACHE_DIR=" + (scratch.path / "cache").string() + " python3 " +
                                IKAT_SOURCE_DIR "/tests/foreign/" + std::string(script) + ' ' + folder + " >" + log +
                                " 2>&1";
    if (std::system(command.c_str()) != 0) throw std::runtime_error(command + "\n" + read(log));
    std::map<std::string, std::string> made;
    for (const auto& entry : fs::directory_iterator(folder)) made[entry.path().filename()] = read(entry.path());
    return made;
}

std::map<std::string, std::string> machine_code(std::string_view ptx, std::string_view target) {
    return sections_of(run(*find_ptxas(), "-c -arch=" + std::string(target), "ptx", ptx), {".text"});
}

std::map<std::string, std::string> initial_values(std::string_view ptx, std::string_view target) {
    return sections_of(run(*find_ptxas(), "-c -arch=" + std::string(target), "ptx", ptx),
                       {".nv.global", ".nv.constant", ".rel"});
}

}  // namespace ikat::tests
