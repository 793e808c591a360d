// SPDX-License-Identifier: Apache-2.0
// How far op At goes, in bytes: for each element, and besides. "4", "4+16", "4-8"
#pragma once
#include "codegen/ir/op/forms/family.hpp"

namespace ikat::ir {

struct AddressForm {
    std::uint32_t scale = 1;
    std::int32_t constant = 0;

    static constexpr std::string_view noun = "scale";
    static std::string write(const AddressForm& form);
    static bool read(AddressForm& form, std::string_view word);
    template <class F = AddressForm>
    static constexpr auto fields() {
        return std::tuple{
            Spelled{&F::write, &F::read, "it is a number of bytes, such as 4, and a constant, such as 4+16"}};
    }
    constexpr bool exists() const { return true; }
    constexpr Type type(Type row) const { return row; }
    constexpr std::string_view problem(Op, Type) const { return scale ? "" : "its scale is 0"; }
    constexpr Shape shape(const Shape& row) const { return row; }
    constexpr MemoryAccess access(const MemoryAccess& row) const { return row; }
    constexpr bool move(Slot, std::int32_t) { return false; }
    constexpr Conduct conduct(const Conduct& row) const { return row; }
};

}  // namespace ikat::ir
