// SPDX-License-Identifier: Apache-2.0
// What the user has set in the environment. docs/cli.md lists the variables. Each is the default of an option that a
// program can give instead.
#pragma once
#include <string_view>

namespace ikat {

/// The variable's text; empty if it is not set.
std::string_view environment(const char* name);

}  // namespace ikat
