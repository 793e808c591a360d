// SPDX-License-Identifier: Apache-2.0
// Pages, sources and outputs as lines, and the blocks of code of a page among them.
#pragma once
#include <filesystem>
#include <istream>
#include <string>
#include <vector>

namespace ikat::tests {

/// The checkout.
inline const std::filesystem::path root = IKAT_SOURCE_DIR;

using Lines = std::vector<std::string>;

/// Without indentation, and without the locations (folder, line, column) of messages.
Lines lines_of(std::istream& in);
Lines lines_of_file(const std::filesystem::path& path);

/// What a shell's command prints, errors included, and whether it succeeded.
struct Output {
    Lines lines;
    bool is_done;
};
Output output_of(const std::string& command);

/// The blocks that open with `fence`: "```cpp".
std::vector<Lines> blocks_of(const Lines& page, const std::string& fence);

/// Whether the block's lines occur in `whole`, one after the other.
bool contains(const Lines& whole, const Lines& block);

}  // namespace ikat::tests
