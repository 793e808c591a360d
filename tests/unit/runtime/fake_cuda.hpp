// SPDX-License-Identifier: Apache-2.0
// A fake libcuda.so.1: memory is host memory, every call is logged, nothing is executed. Tests control it through the
// functions below, which they find with dlsym.
#pragma once

extern "C" {
/// The calls since the last reset, one per line: "cuMemAlloc 400".
using FakeLog = const char*();
/// Clears the log and all faults; one device of compute capability 9.0.
using FakeReset = void();
/// The next and all later calls of `symbol` return `result`.
using FakeFail = void(const char* symbol, unsigned result);
/// Sets the compiler's error log; cuModuleLoadDataEx then fails with CUDA_ERROR_INVALID_PTX.
using FakeJitLog = void(const char* text);
using FakeDevices = void(int count);
}
