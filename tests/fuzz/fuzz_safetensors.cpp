// SPDX-License-Identifier: Apache-2.0
// Files of tensors under libFuzzer: any bytes are read or refused. Preset fuzz:
//
//     cmake --preset fuzz && cmake --build --preset fuzz -t fuzz_safetensors
//     build/fuzz/tests/fuzz/fuzz_safetensors FOLDER                       # new inputs go to FOLDER
#include <cstring>

#include "tests/fuzz/safetensors.hpp"

/// With an odd first byte the others are a file; else they are the text of a header and, behind a byte of 0, elements.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size == 0) return 0;
    const std::span bytes(reinterpret_cast<const std::byte*>(data) + 1, size - 1);
    if (data[0] % 2 != 0) {
        ikat::tests::holds_tensors(bytes);
        return 0;
    }
    std::vector<std::byte> file(8);
    const auto* end =
        static_cast<const std::byte*>(bytes.empty() ? nullptr : std::memchr(bytes.data(), 0, bytes.size()));
    const std::uint64_t length = end ? std::uint64_t(end - bytes.data()) : bytes.size();
    std::memcpy(file.data(), &length, 8);
    file.insert(file.end(), bytes.begin(), bytes.begin() + std::ptrdiff_t(length));
    if (end) file.insert(file.end(), end + 1, bytes.data() + bytes.size());
    ikat::tests::holds_tensors(file);
    return 0;
}
