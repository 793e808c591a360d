// SPDX-License-Identifier: Apache-2.0
// Where a program wants to read what the compiler of PTX says.
#pragma once
#include <algorithm>
#include <cstring>
#include <string>

#include "tools/cuda_driver/state.hpp"

namespace ikat::cuda_driver {

/// Buffers for what the compiler says, from the options of a load or a link.
struct Log {
    Log() = default;
    Log(unsigned count, const CUjit_option* options, void** values) {
        require(count == 0 || (options && values));
        for (unsigned i = 0; i < count; ++i) {
            if (options[i] == CU_JIT_ERROR_LOG_BUFFER) buffer = static_cast<char*>(values[i]);
            if (options[i] == CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES) size = &values[i];
            if (options[i] == CU_JIT_INFO_LOG_BUFFER) info = static_cast<char*>(values[i]);
            if (options[i] == CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES) info_size = &values[i];
        }
    }
    /// Writes what fits and how much that is; to standard error if there is no buffer.
    void write(const std::string& text) const {
        const std::size_t room = room_of(size);
        if (!buffer || room == 0) return complain("the compiler of PTX", "\n" + text, {});
        const std::size_t count = std::min(text.size(), room - 1);
        std::memcpy(buffer, text.data(), count);
        buffer[count] = 0;
        *size = reinterpret_cast<void*>(count + 1);
    }
    /// Empty texts where nothing is said: always in the log of remarks.
    void clear() const {
        clear(buffer, size);
        clear(info, info_size);
    }

    char *buffer = nullptr, *info = nullptr;
    void **size = nullptr, **info_size = nullptr;

private:
    static std::size_t room_of(void** bytes) {  // 32 bits of it are given
        return bytes ? std::uint32_t(reinterpret_cast<std::uintptr_t>(*bytes)) : 0;
    }
    static void clear(char* text, void** bytes) {
        if (text && room_of(bytes)) *text = 0;
        if (bytes) *bytes = nullptr;
    }
};

}  // namespace ikat::cuda_driver
