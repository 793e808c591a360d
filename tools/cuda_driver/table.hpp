// SPDX-License-Identifier: Apache-2.0
// The functions of the driver API that are known.
#pragma once
#include <span>

namespace ikat::cuda_driver {

/// A function's name, the first CUDA version that has it in this form, and its code.
struct Entry {
    const char* name;
    int since;
    void (*code)();
    bool is_per_thread;  // a null stream is that of the thread
};
std::span<const Entry> entries();

}  // namespace ikat::cuda_driver
