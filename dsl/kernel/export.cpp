// SPDX-License-Identifier: Apache-2.0
#include "dsl/kernel/export.hpp"

#include <algorithm>
#include <string_view>

namespace ikat {
namespace {

/// Filled before main() begins, by the initialisers of the files in any order.
std::vector<ExportedKernel>& registered() {
    static std::vector<ExportedKernel> kernels;
    return kernels;
}

}  // namespace

detail::Export::Export(const char* name, const trace::KernelHandle& (*handle)()) {
    registered().push_back({name, handle});
}

std::vector<ExportedKernel> exported_kernels() {
    std::vector<ExportedKernel> out = registered();
    std::ranges::sort(out, {}, [](const ExportedKernel& kernel) { return std::string_view(kernel.name); });
    return out;
}

}  // namespace ikat
