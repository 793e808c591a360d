// SPDX-License-Identifier: Apache-2.0
// All forms, for the few places that ask a form whatever it is.
#pragma once
#include "codegen/ir/op/families.hpp"
#include "codegen/ir/op/forms/matrices.hpp"
#include "codegen/ir/op/forms/mbarrier.hpp"
#include "codegen/ir/op/forms/wgmma.hpp"

namespace ikat::ir {

#define FORM(name) static_assert(check_form<name##Form>());
#include "codegen/ir/op/forms/forms.def"

/// What f gives for the form of an op that has one, else `without`.
template <class Without>
constexpr Without with_form(Op op, Form form, Without without, auto&& f) {
    switch (info(op).attribute) {
        // clang-format off
#define FORM(name) case Attribute::name: return f(unpack<name##Form>(form));
#include "codegen/ir/op/forms/forms.def"
        // clang-format on
        default: return without;
    }
}

}  // namespace ikat::ir
