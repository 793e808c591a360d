// SPDX-License-Identifier: Apache-2.0
// What holds for any bytes that are read as a file of tensors.
#pragma once
#include <ikat/safetensors.hpp>

#include "codegen/support/diagnostic.hpp"

namespace ikat::tests {

/// Whether the bytes are a file of tensors. If so, it is written and read again, and must be the same but for the order
/// of the tensors; the second file is written as it was read.
inline bool holds_tensors(std::span<const std::byte> bytes) try {
    const safetensors::Tensors tensors = safetensors::parse(bytes, "fuzz.safetensors");
    const std::vector<std::byte> written = safetensors::serialise(tensors);
    const safetensors::Tensors again = safetensors::parse(written, "again.safetensors");
    IKAT_ASSERT(again.metadata == tensors.metadata && again.tensors.size() == tensors.tensors.size(), "");
    for (const safetensors::Tensor& tensor : tensors.tensors) IKAT_ASSERT(again.at(tensor.name) == tensor, tensor.name);
    IKAT_ASSERT(safetensors::serialise(again) == written, "");
    return true;
} catch (const Error& error) {
    IKAT_ASSERT(std::string_view(error.what()).contains("fuzz.safetensors"), error.what());
    return false;  // refused
}

}  // namespace ikat::tests
