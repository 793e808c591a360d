// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/text/files.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

#include "codegen/support/diagnostic.hpp"
#include "codegen/support/write_file.hpp"

namespace ikat::cli {
namespace {

struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
};
using File = std::unique_ptr<std::FILE, Close>;

[[noreturn]] void fail(std::string_view doing, const std::string& path, std::string hint) {
    throw Error(fmt::format("cannot {} '{}': {}", doing, path, std::strerror(errno)), std::move(hint));
}

template <class Bytes>
Bytes read_whole(const std::string& path) {
    const File file(std::fopen(path.c_str(), "rb"));
    if (!file) fail("open", path, "check the path; it is taken from the current folder");
    Bytes out;
    char piece[65536];
    while (const std::size_t count = std::fread(piece, 1, sizeof piece, file.get())) {
        const std::size_t before = out.size();
        out.resize(before + count);
        std::memcpy(out.data() + before, piece, count);
    }
    if (std::ferror(file.get())) fail("read", path, "it must be a file that can be read to its end");
    return out;
}

}  // namespace

std::vector<std::byte> read_file(const std::string& path) { return read_whole<std::vector<std::byte>>(path); }
std::string read_text(const std::string& path) { return read_whole<std::string>(path); }

void check_output_file(const std::string& path) {
    if (!path.empty() && path != "-") check_writable(path);
}

void write_text(const std::string& path, std::string_view text) {
    if (!path.empty() && path != "-") return write_file(path, text);
    const bool written = std::fwrite(text.data(), 1, text.size(), stdout) == text.size();
    if (std::fflush(stdout) != 0 || !written)
        throw Error(fmt::format("cannot write to standard output: {}", std::strerror(errno)), "is the disk full?");
}

}  // namespace ikat::cli
