// SPDX-License-Identifier: Apache-2.0
// The functions of the catalogue as members of a class that says what a call of one is: Batch and Async.
#pragma once
#include <cstdint>
#include <source_location>
#include <type_traits>
#include <utility>
#include <vector>

#include "codegen/support/half.hpp"
#include "stdlib/batch/catalogue_call.hpp"
#include "stdlib/batch/operand.hpp"

namespace ikat::stdlib {

/// `Self` has operand(x, where), for an array, and make<Outputs...>(function, operands, settings).
template <class Self>
class CatalogueMembers {
public:
    using Where = std::source_location;

#include "stdlib/batch/members.inl"

    /// A function of the catalogue by its name, with its arrays and then its settings as arg("alpha", 2.0f). `Outputs`
    /// are the types of the elements of what it makes; several are a tuple.
    template <class... Outputs, class... A>
    auto call(const CalledFunction& function, A&&... arguments) const {
        std::vector<CallOperand> operands;
        CallSettings settings;
        const auto take = [&]<class X>(X&& argument) {
            if constexpr (runtime::detail::is_named<std::remove_cvref_t<X>>)
                settings.emplace_back(argument.name, argument.value);
            else
                operands.push_back(self().operand(std::forward<X>(argument), function.where));
        };
        (take(std::forward<A>(arguments)), ...);
        return self().template make<ArrayOf<Outputs>...>(function, std::move(operands), settings);
    }

private:
    const Self& self() const { return static_cast<const Self&>(*this); }
};

}  // namespace ikat::stdlib
