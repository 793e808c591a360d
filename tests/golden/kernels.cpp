// SPDX-License-Identifier: Apache-2.0
#include "tests/golden/kernels.hpp"

#include <map>
#include <string>

#include "codegen/support/diagnostic.hpp"

namespace ikat::tests {
namespace {

std::map<std::string, trace::KernelHandle, std::less<>>& kernels() {
    static std::map<std::string, trace::KernelHandle, std::less<>> all;
    return all;
}

}  // namespace

void KernelRegistration::add(const char* name, const trace::KernelHandle& kernel) { kernels().emplace(name, kernel); }

const trace::KernelHandle& kernel_named(std::string_view name) {
    const auto found = kernels().find(name);
    if (found == kernels().end())
        throw Error("no kernel called " + std::string(name), "tests/golden/kernels_*.cpp register them");
    return found->second;
}

}  // namespace ikat::tests
