// SPDX-License-Identifier: Apache-2.0
// The attribute of an instruction as text: modes, tables, special registers, and the forms of families (forms/), of
// which this includes those that need nothing else.
#pragma once
#include <string>

#include "codegen/ir/op/forms/address.hpp"
#include "codegen/ir/op/forms/barriers.hpp"
#include "codegen/ir/op/forms/copies.hpp"

namespace ikat::ir {

/// The attribute of an op as the IR spells it, if it has a meaning without a function: a special register, a mode, a
/// form, a number. Else empty.
std::string attribute_text(Op op, Form attribute);
/// ... and back.
std::optional<Form> attribute_named(Op op, std::string_view text);
/// The name of the attribute and its choices, for messages.
struct AttributeChoice {
    std::string_view name;
    std::string choices;
};
AttributeChoice attribute_choice(Op op);

}  // namespace ikat::ir
