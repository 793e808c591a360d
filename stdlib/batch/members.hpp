// SPDX-License-Identifier: Apache-2.0
// The functions of the catalogue as members of a class that says what a call of one is: Batch and Async.
#pragma once
#include <cstdint>
#include <source_location>

#include "codegen/support/half.hpp"
#include "stdlib/batch/operand.hpp"

namespace ikat::stdlib {

/// `Self` has operand(x, where), for an array, and make<Outputs...>(function, operands, settings).
template <class Self>
class CatalogueMembers {
public:
    using Where = std::source_location;

#include "stdlib/batch/members.inl"

private:
    const Self& self() const { return static_cast<const Self&>(*this); }
};

}  // namespace ikat::stdlib
