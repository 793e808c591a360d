// SPDX-License-Identifier: Apache-2.0
// Files that are written completely or not at all: a full disk or an interruption leaves the old file.
#pragma once
#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace ikat {

/// Writes a temporary file in the same folder and renames it. An existing file keeps its mode, and a symbolic link
/// stays one. Devices, pipes, /dev/stdout and /dev/fd/N are written in place, and so is a file in a folder where no
/// other can be created. Throws Error.
void write_file(const std::string& path, std::span<const std::byte> contents);
void write_file(const std::string& path, std::string_view text);

/// Throws Error if write_file could not write there, as far as this can be known without writing.
void check_writable(const std::string& path);

/// The canonical form of a path: equal for all paths to the same file, whether it exists or not.
std::string resolved(const std::string& path);

}  // namespace ikat
