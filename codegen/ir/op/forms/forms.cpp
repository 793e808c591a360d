// SPDX-License-Identifier: Apache-2.0
// What a form says instead of its row.
#include "codegen/ir/op/accesses.hpp"
#include "codegen/ir/op/forms/all.hpp"

namespace ikat::ir {

Shape shape_of_form(Op op, Form form) {
    const Shape& row = info(op).shape;
    return with_form(op, form, row, [&](const auto& it) { return it.shape(row); });
}

Conduct conduct_of_form(Op op, Form form, const Conduct& row) {
    return with_form(op, form, row, [&](const auto& it) { return it.conduct(row); });
}

MemoryAccess access_of_form(Op op, Form form, const MemoryAccess& row) {
    return with_form(op, form, row, [&](const auto& it) { return it.access(row); });
}

std::optional<Form> form_moved(Op op, Form form, std::uint32_t operand, std::int32_t offset) {
    const Slot slot = info(op).shape.arguments[operand];
    return with_form(op, form, std::optional<Form>(),
                     [&](auto it) { return it.move(slot, offset) ? std::optional(pack(it)) : std::nullopt; });
}

FormCheck check_form(Op op, Form form, Type type) {
    return with_form(op, form, FormCheck{}, [&](const auto& it) {
        return FormCheck{it.noun, it.exists() && pack(it) == form, it.type(type), it.problem(op, type)};
    });
}

}  // namespace ikat::ir
