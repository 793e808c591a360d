// SPDX-License-Identifier: Apache-2.0
#include "codegen/ptx/table/fragments.hpp"

#include <algorithm>

namespace ikat::ptx {
namespace {

/// Narrow elements share a register of 32 bits.
Type register_type(const Element& element) {
    if (element.type == "f32" || element.type == "f64" || element.type == "s32") return find_type(element.type);
    return {Type::Kind::Bits, 32};
}

}  // namespace

std::optional<Fragment> fragment(const Match& match, std::string_view matrix) {
    const auto [m, n, k] = match.shape;
    const auto of = [&](const Element& element, std::uint32_t rows, std::uint32_t columns) -> std::optional<Fragment> {
        const Type type = register_type(element);
        const std::uint32_t threads = m == 64 ? 128 : 32;
        // Volta's m8n8k4 is four products of that shape, one for each eight threads.
        const std::uint32_t products = m * n * k == 8 * 8 * 4 && match.elements[1].type == "f16" ? 4 : 1;
        const std::uint32_t registers = products * rows * columns * element.bits / (threads * type.bits);
        return Fragment{std::max(registers, 1u), type};
    };
    if (matrix == "d") return of(match.elements[0], m, n);
    if (matrix == "a") return of(match.elements[1], m, k);
    if (matrix == "half") return of(match.elements[1], m, k / 2);
    if (matrix == "b") return of(match.elements[2], k, n);
    if (matrix == "c") return of(match.elements[3], m, n);
    return std::nullopt;
}

}  // namespace ikat::ptx
