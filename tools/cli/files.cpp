// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/files.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

#include "codegen/support/diagnostic.hpp"

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

void write_file(const std::string& path, std::span<const std::byte> contents) {
    File file(std::fopen(path.c_str(), "wb"));
    if (!file) fail("write", path, "the folder must be there, and writable");
    const bool written = std::fwrite(contents.data(), 1, contents.size(), file.get()) == contents.size();
    if (std::fclose(file.release()) != 0 || !written) fail("write", path, "is the disk full?");
}

void write_text(const std::string& path, std::string_view text) {
    if (!path.empty() && path != "-") return write_file(path, std::as_bytes(std::span(text)));
    std::fwrite(text.data(), 1, text.size(), stdout);
    if (std::fflush(stdout) != 0) fail("write", "standard output", {});
}

}  // namespace ikat::cli
