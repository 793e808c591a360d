// SPDX-License-Identifier: Apache-2.0
// Problems and answers as text: for golden files, assertions and debugging.
//
//     classes b32 pred=2              names of the classes, optionally with a limit
//     block0(v0:b32, v1:b32):         parameters
//         v2:b32 = v0, v1             definitions = uses
//         v3:b32! =                   rematerialisable
//         v4:b32 = v2, v3 tied v4 v2  v4 gets the register of v2 (several pairs: tied v4 v2, v5 v3)
//         v5:pred = v4, v0 early      v5 is written before v4 and v0 have been read (except tied uses)
//         = v4                        no definition
//         goto block1(v4), block2 on v5
//     block1(v6:b32):
//         return v6                   a terminator without edges
//     block2:
//         return
// An answer is the same text with registers (`v2:b32.1`), and with edits on separate, further indented lines.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "regalloc/regalloc.hpp"

namespace ikat::regalloc {

struct NamedProblem {
    Problem problem;
    std::vector<std::string> classes;  // names, by class
};

/// Throws Error (with `file`, line and column) if the text does not follow the grammar above.
NamedProblem parse_problem(std::string_view text, std::string_view file = "problem");

/// Classes without a name are called c0, c1, …
std::string to_string(const Problem& problem, const std::vector<std::string>& classes = {});
std::string to_string(const Problem& problem, const Allocation& allocation,
                      const std::vector<std::string>& classes = {});

}  // namespace ikat::regalloc
