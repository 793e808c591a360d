// SPDX-License-Identifier: Apache-2.0
// Shared by the tests of the CUDA device: loading and controlling the fake driver.
#pragma once
#include <dlfcn.h>

#include <memory>
#include <string>

#include "runtime/cuda/device.hpp"
#include "tests/message.hpp"
#include "tests/unit/runtime/fake_cuda.hpp"

namespace ikat::tests {

/// The fake driver, fresh for each test.
struct FakeCuda {
    void* library = dlopen(FAKE_CUDA, RTLD_NOW | RTLD_LOCAL);

    FakeCuda() { function<FakeReset>("fake_reset")(); }

    template <class F>
    F* function(const char* name) const {
        return reinterpret_cast<F*>(dlsym(library, name));
    }
    void fail(const char* symbol, unsigned result) const { function<FakeFail>("fake_fail")(symbol, result); }
    void jit_log(const char* text) const { function<FakeJitLog>("fake_jit_log")(text); }
    void devices(int count) const { function<FakeDevices>("fake_devices")(count); }
    /// The calls since the last query.
    std::string log() const {
        std::string out = function<FakeLog>("fake_log")();
        function<FakeReset>("fake_reset")();
        return out;
    }
    Reference<runtime::Backend> open(int ordinal = 0) const {
        auto device = runtime::cuda::open_device(runtime::cuda::load_driver(FAKE_CUDA), ordinal);
        log();
        return device;
    }
};

}  // namespace ikat::tests
