// SPDX-License-Identifier: Apache-2.0
// A form says all that depends on it: here what it is called is missing.
// expect: a form has a noun: static constexpr std::string_view
#include "codegen/ir/op/forms/family.hpp"

using namespace ikat::ir;

struct LoneForm {
    std::uint8_t kind = 0;

    static constexpr auto fields() { return std::tuple{Number{&LoneForm::kind, "a number"}}; }
    constexpr bool exists() const { return true; }
    constexpr Type type(Type row) const { return row; }
    constexpr std::string_view problem(Op, Type) const { return ""; }
    constexpr Shape shape(const Shape& row) const { return row; }
    constexpr MemoryAccess access(const MemoryAccess& row) const { return row; }
    constexpr bool move(Slot, std::int32_t) { return false; }
    constexpr Conduct conduct(const Conduct& row) const { return row; }
};

const bool is_whole = check_form<LoneForm>();
