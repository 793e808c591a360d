// SPDX-License-Identifier: Apache-2.0
// The difference of two texts by lines, short enough to read in a test's log.
#pragma once
#include <string>
#include <string_view>

namespace ikat::golden {

/// Lines only in `expected` begin with "-", lines only in `actual` with "+", and up to two common lines around a change
/// with " "; "@@ line N" (of expected, from 1) opens each group. Empty if the texts are equal. Ends after about sixty
/// lines and says how many more there are.
std::string diff(std::string_view expected, std::string_view actual);

}  // namespace ikat::golden
