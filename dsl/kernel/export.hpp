// SPDX-License-Identifier: Apache-2.0
// Kernels that a program can list without knowing their names: ikat_add_kernels() compiles them at build time, and a
// test may compare the PTX of each with a golden file.
//
//     const auto saxpy = kernel("saxpy", params("a", "x", "y", "n"), [](f32 a, In<float> x, ...) { ... });
//     IKAT_EXPORT_KERNEL(saxpy)
#pragma once
#include <vector>

namespace ikat::trace {
class KernelHandle;
}

namespace ikat {

/// A kernel that ikat_add_kernels() compiles, as IKAT_EXPORT_KERNEL registers it.
struct ExportedKernel {
    const char* name;  // of the C++ variable
    const trace::KernelHandle& (*handle)();
};

/// The exported kernels of all files of the program, sorted by name.
std::vector<ExportedKernel> exported_kernels();

namespace detail {
struct Export {
    Export(const char* name, const trace::KernelHandle& (*handle)());
};
}  // namespace detail

}  // namespace ikat

/// Exports a kernel; goes after its definition at namespace scope.
#define IKAT_EXPORT_KERNEL(kernel)                                             \
    [[maybe_unused]] static const ::ikat::detail::Export ikat_export_##kernel( \
        #kernel, []() -> const ::ikat::trace::KernelHandle& { return kernel.handle(); });
