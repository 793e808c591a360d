// SPDX-License-Identifier: Apache-2.0
// A kernel of a gradient of rows, for recipes.
#pragma once
#include "stdlib/spec/recipe.hpp"

namespace ikat::stdlib {

/// For rows of up to `max_columns`; longer rows take `passes` times the unavoidable traffic.
constexpr Variant row_variant(std::string_view summary, const Instances& instances, const Instances& pitched,
                              Grid (*grid)(const Call&), double passes, std::uint32_t max_columns = ~0u) {
    return {.summary = summary,
            .instances = instances,
            .grid = grid,
            .max_columns = max_columns,
            .passes = passes,
            .pitched = pitched};
}

}  // namespace ikat::stdlib
