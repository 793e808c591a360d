// SPDX-License-Identifier: Apache-2.0
// `stdlib NAME TARGET`: the PTX of a kernel of the standard library, as users get it except with one register per
// value, so that an unrelated change does not recolour the file. A further word `colouring` gives the default
// allocation.
#include <sstream>

#include "codegen/pipeline/compile.hpp"
#include "stdlib/registry.hpp"
#include "tools/testing/golden.hpp"

namespace ikat {
namespace {

const ast::Kernel& kernel_of(const std::string& name) {
    const stdlib::Entry* entry = stdlib::find(name);
    if (!entry) throw Error("no kernel called " + name, "stdlib/registry.cpp lists them");
    return entry->kernel();
}

std::string ptx_of(const golden::Case& test) {
    std::istringstream words(test.args);
    std::string name, allocation;
    CompileOptions options{.verify_each = true};
    words >> name >> options.target >> allocation;
    options.allocation = allocation == "colouring" ? regalloc::Method::Colouring : regalloc::Method::Simplest;
    return compile(kernel_of(name), options).ptx;
}

const golden::Registration stdlib_actions({{"stdlib", ptx_of}});

}  // namespace
}  // namespace ikat
