// SPDX-License-Identifier: Apache-2.0
// Whole files, with errors that name them.
#pragma once
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace ikat::cli {

std::vector<std::byte> read_file(const std::string& path);
std::string read_text(const std::string& path);
/// Throws Error unless write_text can write there, as far as this can be known in advance.
void check_output_file(const std::string& path);
/// Writes to a file, completely or not at all, or to standard output if the path is empty or "-". Throws Error.
void write_text(const std::string& path, std::string_view text);

}  // namespace ikat::cli
