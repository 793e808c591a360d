// SPDX-License-Identifier: Apache-2.0
// The settings that functions of quantised weights have by name.
#pragma once
#include <string_view>

#include "stdlib/quantised/product.hpp"
#include "stdlib/spec/functions.hpp"

namespace ikat::stdlib {

inline constexpr NamedFunction::Setting product_settings[] = {
    {"activations", "exact, or q8_1, rounded to 8 bits; exact if it is not set"},
};
inline Activations activations_of(const FunctionSettings& settings) {
    constexpr std::string_view activations[] = {"exact", "q8_1"};
    return Activations(settings.one_of("activations", activations));
}

}  // namespace ikat::stdlib
