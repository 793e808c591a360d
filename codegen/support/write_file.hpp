// SPDX-License-Identifier: Apache-2.0
// Files that are written as a whole or not at all: a full disk or an interruption leaves what was there before.
#pragma once
#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace ikat {

/// Writes a file aside, in the folder of the one it replaces, and renames it. The mode of a file that is there is kept,
/// and a link leads where it did. Devices, pipes, /dev/stdout and /dev/fd/N are written in place, and so is a file in a
/// folder where no other can be made. Throws Error.
void write_file(const std::string& path, std::span<const std::byte> contents);
void write_file(const std::string& path, std::string_view text);

/// Throws Error if write_file could not write there, as far as this can be known without writing.
void check_writable(const std::string& path);

/// Of two paths that lead to one file the same text, whether the file is there or not.
std::string resolved(const std::string& path);

}  // namespace ikat
