// SPDX-License-Identifier: Apache-2.0
// The known name that a misspelt one was most likely meant to be.
#pragma once
#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace ikat {

/// How many characters to insert, remove or replace, to make one of the other (Levenshtein).
std::size_t edit_distance(std::string_view a, std::string_view b);

/// The nearest of the known names, the first of equally near ones; "" if none is near: at most a third of its
/// characters are wrong, or two.
std::string_view nearest(std::string_view wanted, std::span<const std::string> known);

}  // namespace ikat
