// SPDX-License-Identifier: Apache-2.0
#include "dsl/record/async/swizzles.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace ikat::trace {

std::string swizzle_text(std::uint32_t swizzle) {
    return swizzle ? fmt::format("swizzled within {} bytes", swizzle) : "not swizzled";
}

namespace {

using ast::Kind;

bool is_of(const ast::NodeInfo& node, std::uint32_t symbol) {
    return node.place.base == ast::Place::Base::Symbol && node.place.index == symbol;
}

/// Whether something else may fill a part of the array: a store, or what is given an address of it.
bool has_other_writers(const ast::KernelTree& kernel, const std::vector<SwizzledPlace>& places, std::uint32_t symbol) {
    for (std::size_t i = 0; i < kernel.nodes.size(); ++i) {
        const ast::NodeInfo& node = kernel.nodes[i];
        const bool writes = node.kind == Kind::Store || node.kind == Kind::Atomic || node.kind == Kind::Address;
        if (!writes || !is_of(node, symbol)) continue;
        if (node.kind != Kind::Address ||
            std::ranges::find(places, ast::Node(i), &SwizzledPlace::address) == places.end())
            return true;
    }
    return false;
}

}  // namespace

std::vector<Diagnostic> wrong_swizzles(const ast::KernelTree& kernel, const std::vector<SwizzledPlace>& places) {
    std::vector<Diagnostic> out;
    for (const SwizzledPlace& read : places) {
        if (read.is_filled || kernel.symbols[read.symbol].dynamic) continue;
        const SwizzledPlace* filled = nullptr;
        bool is_right = false;
        for (const SwizzledPlace& other : places) {
            if (!other.is_filled || other.symbol != read.symbol) continue;
            if (!filled) filled = &other;
            is_right |= other.swizzle == read.swizzle;
        }
        if (!filled || is_right || has_other_writers(kernel, places, read.symbol)) continue;
        Diagnostic found{.where = read.where,
                         .message = fmt::format("{} of a matrix that is {}, in an array of boxes that are {}",
                                                read.what, swizzle_text(read.swizzle), swizzle_text(filled->swizzle)),
                         .hint =
                             "the TensorMap and the matrix have the same swizzle: TensorMap<T, Box<...>, 128> and "
                             "k_major<128>(...)"};
        found.notes.push_back({filled->where, fmt::format("{} of such a box is here", filled->what)});
        const auto is_same = [&](const Diagnostic& other) { return other.where == found.where; };
        if (std::ranges::none_of(out, is_same)) out.push_back(std::move(found));
    }
    return out;
}

}  // namespace ikat::trace
