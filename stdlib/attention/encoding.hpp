// SPDX-License-Identifier: Apache-2.0
// Caches of K and V whose elements are not those of Q: how their rows are stored.
#pragma once
#include <cstdint>
#include <string_view>

#include "runtime/tensor_view.hpp"

namespace ikat::stdlib {

/// none: elements are those of Q. Others are decoded to these, each rounded once.
enum class CacheEncoding : std::uint8_t { none, q8_0, e4m3 };

/// Of the elements of K or V; none also for types that no kernel takes.
CacheEncoding encoding_of(const runtime::TensorView& x);
/// The bytes of a row of this many elements, of an encoded cache.
constexpr std::uint32_t encoded_bytes(CacheEncoding encoding, std::uint32_t elements) {
    return encoding == CacheEncoding::q8_0 ? elements / 32 * 34 : elements;
}
/// Rows as rows of bytes: the last extent, and all strides but the last, are in bytes.
runtime::TensorView as_bytes(const runtime::TensorView& x);
/// The same, or x.
runtime::TensorView bytes_if(bool are_bytes, const runtime::TensorView& x);
/// "_q8_0", or "".
std::string_view suffix_of(CacheEncoding encoding);

}  // namespace ikat::stdlib
