// SPDX-License-Identifier: Apache-2.0
// What the user has set in the environment. docs/cli.md lists the variables. Each is the default of an option that a
// program can give instead.
#pragma once
#include <optional>
#include <string>
#include <string_view>

namespace ikat {

/// The variable's text; empty, without data(), if it is not set.
std::string_view environment(const char* name);

/// Whether there is a file that this process may run.
bool is_program(const std::string& path);
/// The path of the first program of this name in the folders of PATH, then in `last_folder`; an empty name in PATH is
/// the current folder.
std::optional<std::string> find_program(std::string_view name, std::string_view last_folder = {});

}  // namespace ikat
