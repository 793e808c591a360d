// SPDX-License-Identifier: Apache-2.0
// The table of docs/math.md.
#pragma once
#include <string>

namespace ikat::test {

/// Rows of Markdown: each function with its bound, its measured error, and its number of instructions.
std::string table_of_errors();

}  // namespace ikat::test
