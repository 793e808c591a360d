// SPDX-License-Identifier: Apache-2.0
// Whole files, with errors that name them.
#pragma once
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ikat::cli {

std::vector<std::byte> read_file(const std::string& path);
std::string read_text(const std::string& path);
void write_file(const std::string& path, std::span<const std::byte> contents);
/// To a file, or to standard output when the path is empty or "-".
void write_text(const std::string& path, std::string_view text);

}  // namespace ikat::cli
