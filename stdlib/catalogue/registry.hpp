// SPDX-License-Identifier: Apache-2.0
// The kernels of the standard library by name, for tools: `ikat kernels`, `ikat emit NAME`, `ikat run NAME`, and for
// tests that go over all of them.
#pragma once
#include <span>
#include <string_view>

#include "dsl/record/capture.hpp"
#include "stdlib/spec/recipe.hpp"

namespace ikat::stdlib {

struct Entry {
    std::string_view name;
    std::string_view summary;  // one line
    /// What the arguments mean: shapes, contracts, what is computed. Lines of at most 100 columns.
    std::string_view document;
    const Recipe* recipe;
    const Variant* variant;
    const KernelHandle& (*handle)();

    /// What a launch has to know of the kernel. Throws Error for mistakes in it.
    const KernelInfo& info() const;
    /// The launch for these arguments, whose number and types must fit the kernel, in blocks of `threads` threads; 0:
    /// of the kernel's default. Throws Error for arguments that break the rules in `document`.
    Grid grid(std::span<const runtime::Argument> arguments, std::uint32_t threads) const;
};

/// All recipes, in the order of docs/library.md.
std::span<const Recipe* const> recipes();

/// All kernels, by name in alphabetical order.
std::span<const Entry> registry();

/// The entry of that name, or null.
const Entry* find(std::string_view name);

}  // namespace ikat::stdlib
