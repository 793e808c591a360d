// SPDX-License-Identifier: Apache-2.0
// The arguments of an epilogue in a call of a function: what is checked of them, and how a kernel is given them.
#pragma once
#include <array>
#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "codegen/support/diagnostic.hpp"
#include "runtime/launch/roles.hpp"
#include "stdlib/epilogue/bound_epilogue.hpp"
#include "stdlib/spec/kernel_arguments.hpp"

namespace ikat::stdlib {

/// A call of a function at a place of the program, for messages.
struct CallPlace {
    std::string_view function;
    Location where;

    [[noreturn]] void fail(std::string_view message, std::string hint) const;
};

/// A view (rows, columns) or (matrices, rows, columns) as matrices of rows of columns. Throws Error for others, and
/// where the elements of a row do not follow each other, with a hint for these.
runtime::TensorView matrices_of(const CallPlace& call, std::string_view what, const runtime::TensorView& given,
                                std::string_view hint = "they follow each other");

/// Throws Error unless the arrays of an epilogue, of this code, fit a C of matrices x rows x columns.
void check_epilogue(const CallPlace& call, const Epilogue& epilogue, const EpilogueCode& code,
                    const std::array<std::uint64_t, 3>& c);

/// The roles of its arrays, for check_roles(). The epilogue must outlive them.
class EpilogueRoles {
public:
    explicit EpilogueRoles(const Epilogue& epilogue);
    EpilogueRoles(const EpilogueRoles&) = delete;
    const std::vector<runtime::OperandRole>& roles() const { return roles_; }

private:
    std::deque<std::string> names_{};
    std::vector<runtime::OperandRole> roles_{};
};

/// Adds the arguments for the parameters of code.more().
void add_epilogue(KernelArguments& to, const EpilogueCode& code, std::span<const GivenArgument> arguments);

}  // namespace ikat::stdlib
