// SPDX-License-Identifier: Apache-2.0
#include "codegen/support/write_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <optional>
#include <utility>

#include "codegen/support/diagnostic.hpp"

namespace ikat {
namespace {

namespace fs = std::filesystem;

constexpr const char* full_disk = "is the disk full?";

[[noreturn]] void fail(const std::string& path, int problem) {
    const bool no_space = problem == ENOSPC || problem == EDQUOT || problem == EFBIG || problem == EIO;
    throw Error("cannot write '" + path + "': " + std::strerror(problem),
                no_space ? full_disk : "the folder must exist and be writable");
}

/// An open file. close() returns whether all of it was written, which some file systems know only then.
class Descriptor {
public:
    explicit Descriptor(int number) : number_(number) {}
    Descriptor(const Descriptor&) = delete;
    Descriptor& operator=(const Descriptor&) = delete;
    ~Descriptor() {
        if (number_ >= 0) ::close(number_);
    }
    int number() const { return number_; }
    bool write(std::span<const std::byte> bytes) const {
        while (!bytes.empty()) {
            const ssize_t count = ::write(number_, bytes.data(), bytes.size());
            if (count < 0 && errno != EINTR) return false;
            if (count > 0) bytes = bytes.subspan(std::size_t(count));
        }
        return true;
    }
    bool close() { return ::close(std::exchange(number_, -1)) == 0; }

private:
    int number_;
};

/// The number of a descriptor that this process already has open, from its path.
std::optional<int> own_descriptor(std::string_view path) {
    if (path == "/dev/stdout") return STDOUT_FILENO;
    if (path == "/dev/stderr") return STDERR_FILENO;
    for (const std::string_view folder : {"/dev/fd/", "/proc/self/fd/"}) {
        if (!path.starts_with(folder)) continue;
        int number = 0;
        const char* const end = path.data() + path.size();
        const auto [next, error] = std::from_chars(path.data() + folder.size(), end, number);
        if (error == std::errc{} && next == end && number >= 0) return number;
    }
    return std::nullopt;
}

/// Follows symbolic links; the last may lead to a file that does not exist yet.
fs::path followed(fs::path path) {
    constexpr int max_links = 40;  // the system's limit
    for (int i = 0; i < max_links; ++i) {
        std::error_code none;
        const fs::path target = fs::read_symlink(path, none);
        if (none) break;
        path = path.parent_path() / target;
    }
    return path;
}

fs::path folder_of(const fs::path& path) { return path.has_parent_path() ? path.parent_path() : fs::path("."); }

struct Existing {
    struct stat status {};
    bool is_there = false;

    /// Throws for an impossible path.
    Existing(const fs::path& file, const std::string& path) {
        is_there = ::stat(file.c_str(), &status) == 0;
        if (!is_there && errno != ENOENT) fail(path, errno);
        if (is_there && S_ISDIR(status.st_mode)) fail(path, EISDIR);
        if (!is_there && !file.has_filename()) fail(path, path.empty() ? ENOENT : EISDIR);
    }
    bool is_regular() const { return S_ISREG(status.st_mode); }
};

void write_to(Descriptor&& file, const std::string& path, std::span<const std::byte> contents) {
    if (file.number() < 0 || !file.write(contents) || !file.close()) fail(path, errno);
}

void write_in_place(const fs::path& file, const std::string& path, std::span<const std::byte> contents) {
    write_to(Descriptor(::open(file.c_str(), O_WRONLY | O_TRUNC | O_CLOEXEC)), path, contents);
}

/// Removes the temporary file unless it has been renamed.
struct Aside {
    fs::path path;
    ~Aside() {
        if (!path.empty()) ::unlink(path.c_str());
    }
};

void write_aside(const fs::path& file, const Existing& existing, const std::string& path,
                 std::span<const std::byte> contents) {
    static std::atomic<unsigned> count = 0;
    Aside aside{folder_of(file) / (".ikat." + std::to_string(::getpid()) + '.' + std::to_string(count++))};
    Descriptor out(::open(aside.path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
    if (out.number() < 0) {
        const int problem = errno;
        aside.path.clear();
        if (existing.is_there && (problem == EACCES || problem == EPERM || problem == EROFS))
            return write_in_place(file, path, contents);
        fail(path, problem);
    }
    if (existing.is_there) {
        // Only root can keep the owner; otherwise the file belongs to the user.
        [[maybe_unused]] const int kept = ::fchown(out.number(), existing.status.st_uid, existing.status.st_gid);
        if (::fchmod(out.number(), existing.status.st_mode & 07777) != 0) fail(path, errno);
    }
    write_to(std::move(out), path, contents);
    if (::rename(aside.path.c_str(), file.c_str()) != 0) fail(path, errno);
    aside.path.clear();
}

}  // namespace

void check_writable(const std::string& path) {
    if (const std::optional<int> own = own_descriptor(path)) {
        const int flags = ::fcntl(*own, F_GETFL);
        if (flags < 0 || (flags & O_ACCMODE) == O_RDONLY) fail(path, EBADF);
        return;
    }
    const fs::path file = followed(path);
    const Existing existing(file, path);
    const bool allowed =
        existing.is_there ? ::access(file.c_str(), W_OK) == 0 : ::access(folder_of(file).c_str(), W_OK | X_OK) == 0;
    if (!allowed) fail(path, errno);
}

void write_file(const std::string& path, std::span<const std::byte> contents) {
    check_writable(path);
    if (const std::optional<int> own = own_descriptor(path)) {
        std::fflush(nullptr);  // earlier output comes first
        return write_to(Descriptor(::dup(*own)), path, contents);
    }
    const fs::path file = followed(path);
    const Existing existing(file, path);
    if (existing.is_there && !existing.is_regular()) return write_in_place(file, path, contents);
    write_aside(file, existing, path, contents);
}

void write_file(const std::string& path, std::string_view text) { write_file(path, std::as_bytes(std::span(text))); }

std::string resolved(const std::string& path) {
    std::error_code none;
    const fs::path file = followed(path);
    const fs::path folder = fs::weakly_canonical(folder_of(file), none);
    return none ? path : (folder / file.filename()).string();
}

}  // namespace ikat
