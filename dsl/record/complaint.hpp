// SPDX-License-Identifier: Apache-2.0
// Mistakes that a library in the language finds in the kernel that uses it, and in its launches.
#pragma once
#include <string>
#include <vector>

#include "codegen/support/diagnostic.hpp"
#include "dsl/record/trace.hpp"

namespace ikat::trace {

/// An error of the kernel that is captured: reported with the others at its end.
void complain(std::string message, std::string hint, const Where& where, std::vector<Diagnostic::Note> notes = {});

/// What is to be a multiple, and why.
struct Expected {
    std::uint64_t multiple = 1;
    std::string what, hint;
};
/// An error of a launch, if the number is a parameter and this is not its divisor; of a pitch, if there is more than
/// one row.
void expect_multiple(const Recorded& number, const Expected& expected, const Where& where);
/// The same of the address of an array, in bytes.
void expect_aligned(const Array& array, const Expected& expected, const Where& where);

}  // namespace ikat::trace
