// SPDX-License-Identifier: Apache-2.0
#include "runtime/cuda/driver.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include "codegen/support/environment.hpp"

namespace ikat::runtime::cuda {
namespace {

constexpr const char* emulator_hint = "run on the CPU with IKAT_DEVICE=emulator, or install NVIDIA's driver";

void* open_library(const std::string& path) {
    if (void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)) return library;
    throw Error(fmt::format("no CUDA driver: {}", dlerror()), emulator_hint);
}

template <class Pointer>
void look_up(Pointer& pointer, void* library, const char* symbol, const std::string& path) {
    pointer = reinterpret_cast<Pointer>(dlsym(library, symbol));
    if (!pointer)
        throw Error(fmt::format("the CUDA driver {} has no function {}", path, symbol),
                    "it is older than CUDA 11: update the driver");
}

}  // namespace

std::string Driver::text(Result result) const {
    const char* name = nullptr;
    const char* description = nullptr;
    if (cuGetErrorName(result, &name) != Result::Success || !name)
        return fmt::format("CUDA error {}", static_cast<unsigned>(result));
    if (cuGetErrorString(result, &description) != Result::Success || !description) return name;
    return fmt::format("{} ({})", name, description);
}

bool is_kernel_failure(Result result) {
    switch (result) {
        case Result::IllegalAddress:
        case Result::LaunchTimeout:
        case Result::Assert:
        case Result::HardwareStackError:
        case Result::IllegalInstruction:
        case Result::MisalignedAddress:
        case Result::InvalidAddressSpace:
        case Result::InvalidPc:
        case Result::LaunchFailed: return true;
        default: return false;
    }
}

void Driver::check(Result result, std::string_view doing) const {
    if (result == Result::Success) return;
    const std::string message = fmt::format("{} failed: {}", doing, text(result));
    if (is_kernel_failure(result))
        throw KernelError(
            message, "the emulator names the access, the thread and the line: run again with IKAT_DEVICE=emulator");
    throw Error(message, {});
}

std::string driver_path() {
    const std::string_view path = environment("IKAT_CUDA_DRIVER");
    return std::string(path.empty() ? "libcuda.so.1" : path);
}

std::shared_ptr<const Driver> load_driver(const std::string& path) {
    void* library = open_library(path);
    auto driver = std::make_shared<Driver>();
#define FUNCTION(symbol, ...) look_up(driver->symbol, library, #symbol, path);
#define OPTIONAL(symbol, ...) driver->symbol = reinterpret_cast<decltype(driver->symbol)>(dlsym(library, #symbol));
#include "runtime/cuda/driver.def"
    if (const Result result = driver->cuInit(0); result != Result::Success)
        throw Error(fmt::format("the CUDA driver {} does not initialise: {}", path, driver->text(result)),
                    emulator_hint);
    return driver;
}

}  // namespace ikat::runtime::cuda
