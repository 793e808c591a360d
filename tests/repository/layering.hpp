// SPDX-License-Identifier: Apache-2.0
// The rules of the source tree that a compiler does not check: which files may include which, how each file begins, and
// which files must not include heavy libraries. docs/architecture.md gives the reasons.
#pragma once
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace ikat::tests {

/// Path from the repository's root, with '/', to contents.
using Tree = std::map<std::string, std::string>;

/// All C++ files (.hpp, .cpp, .def, .inl) below a checkout's source folders.
Tree read_tree(const std::string& root);

/// Every broken rule as "path:line: message". Empty for a correct tree.
std::vector<std::string> broken_rules(const Tree& tree);

/// The layer that a file belongs to ("ir", "ptx", "tools", ...), or "" for a path the table does not know.
std::string_view layer_of(std::string_view path);

}  // namespace ikat::tests
