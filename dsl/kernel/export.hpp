// SPDX-License-Identifier: Apache-2.0
// Kernels that a program can go over without knowing their names: ikat_add_kernels() compiles them when the program is
// built, and a test may hold the PTX of each against a golden file.
//
//     const auto saxpy = kernel("saxpy", params("a", "x", "y", "n"), [](f32 a, In<float> x, ...) { ... });
//     IKAT_EXPORT_KERNEL(saxpy)
#pragma once
#include <vector>

namespace ikat::ast {
struct Kernel;
}

namespace ikat {

struct ExportedKernel {
    const char* name;             // of the C++ variable
    const ast::Kernel& (*ast)();  // captured at the first call; throws Error with everything that is wrong with it
};

/// Those of all files of the program, by name.
std::vector<ExportedKernel> exported_kernels();

namespace detail {
struct Export {
    Export(const char* name, const ast::Kernel& (*ast)());
};
}  // namespace detail

}  // namespace ikat

/// Behind a kernel at namespace scope.
#define IKAT_EXPORT_KERNEL(kernel)                                             \
    [[maybe_unused]] static const ::ikat::detail::Export ikat_export_##kernel( \
        #kernel, []() -> const ::ikat::ast::Kernel& { return kernel.ast(); });
