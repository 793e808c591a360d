// SPDX-License-Identifier: Apache-2.0
// The device that a test runs on: the emulator, or with IKAT_DEVICE=cuda the GPU. If there is no GPU, the test is
// skipped and ends with status 77.
#pragma once
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "codegen/support/diagnostic.hpp"
#include "runtime/device.hpp"

namespace ikat::test {

inline runtime::Device open_device(runtime::OpenOptions options = {}) {
    const char* wanted = std::getenv("IKAT_DEVICE");
    const bool gpu = wanted && std::string_view(wanted) == "cuda";
    options.device = gpu ? "cuda" : "emulator";
    if (!gpu) return runtime::Device::open(options);
    try {
        return runtime::Device::open(options);
    } catch (const Error& error) {
        std::printf("skipped: no GPU (%s)\n", error.what());
        std::exit(77);
    }
}

}  // namespace ikat::test
