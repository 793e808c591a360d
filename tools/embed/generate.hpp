// SPDX-License-Identifier: Apache-2.0
// Generates C++ files with compiled kernels:
//
//     app_kernels.hpp    namespace app_kernels { extern const ikat::EmbeddedKernel saxpy; }
//     app_kernels.cpp    its PTX as string literals, its machine code as bytes
#pragma once
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "dsl/record/capture.hpp"

namespace ikat::embed {

struct Options {
    std::string name;                  // of the namespace and the files: "app_kernels"
    std::vector<std::string> targets;  // "sm_80"; each once
    std::optional<std::string> ptxas;  // its path, to embed machine code as well
};

struct Named {
    std::string variable;  // its name in the generated code
    trace::KernelHandle kernel;
};

struct Generated {
    std::string header, source;
};

/// Throws Error for kernels that do not compile and for two kernels of the same name.
Generated generate(std::span<const Named> kernels, const Options& options);

}  // namespace ikat::embed
