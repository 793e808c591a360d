// SPDX-License-Identifier: Apache-2.0
// What a kernel does with what a parameter points to.
#pragma once
#include <cstdint>
#include <string_view>

namespace ikat::ir {

enum class Access : std::uint8_t { Value, In, Out, InOut };  // Value: a scalar
inline constexpr std::string_view access_names[] = {"", "in", "out", "inout"};

}  // namespace ikat::ir
