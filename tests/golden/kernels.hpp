// SPDX-License-Identifier: Apache-2.0
// Kernels by name, for golden tests whose input is C++ code:
//
//     const auto saxpy = kernel("saxpy", ...);
//     const KernelRegistration registered[] = {{"saxpy", saxpy}};
#pragma once
#include <string_view>

#include <ikat/dsl.hpp>

namespace ikat::tests {

class KernelRegistration {
public:
    template <class... P>
    KernelRegistration(const char* name, const Kernel<P...>& kernel) {
        add(name, kernel.handle());
    }

private:
    static void add(const char* name, const trace::KernelHandle& kernel);
};

/// Throws Error for a name that no kernel has.
const trace::KernelHandle& kernel_named(std::string_view name);

}  // namespace ikat::tests
