// SPDX-License-Identifier: Apache-2.0
// Calls functions of the stand-in by their symbols.
#pragma once
#include <dlfcn.h>

#include <stdexcept>
#include <string>

#include "tools/cuda_driver/abi.hpp"

namespace ikat::tests {

using namespace cuda_driver;

inline void* stand_in_symbol(const char* symbol) {
    static void* const library = dlopen(STAND_IN, RTLD_NOW | RTLD_LOCAL);
    if (!library) throw std::runtime_error(dlerror());
    void* const found = dlsym(library, symbol);
    if (!found) throw std::runtime_error(std::string("no symbol ") + symbol);
    return found;
}

/// The arguments must have the types of the function's parameters.
template <class... Arguments>
CUresult call(const char* symbol, Arguments... arguments) {
    return reinterpret_cast<CUresult (*)(Arguments...)>(stand_in_symbol(symbol))(arguments...);
}

/// A context of its own that is current while the object lives.
struct OwnContext {
    OwnContext() {
        call("cuInit", 0u);
        call("cuCtxCreate_v2", &handle, 0u, CUdevice(0));
    }
    ~OwnContext() { call("cuCtxDestroy_v2", handle); }
    OwnContext(const OwnContext&) = delete;
    OwnContext& operator=(const OwnContext&) = delete;

    CUcontext handle = nullptr;
};

/// Loads PTX: `declarations` and one entry with this head and body.
inline CUmodule load(const std::string& parameters, const std::string& body, const std::string& directives = "",
                     const std::string& declarations = "") {
    const std::string text = ".version 8.0\n.target sm_90\n.address_size 64\n" + declarations + "\n.visible .entry k(" +
                             parameters + ") " + directives + " {\n" + body + "\nret;\n}\n";
    CUmodule module = nullptr;
    if (call("cuModuleLoadData", &module, static_cast<const void*>(text.c_str())) != CUDA_SUCCESS)
        throw std::runtime_error("the PTX does not load:\n" + text);
    return module;
}

inline CUfunction function(CUmodule module) {
    CUfunction out = nullptr;
    if (call("cuModuleGetFunction", &out, module, "k") != CUDA_SUCCESS) throw std::runtime_error("no entry k");
    return out;
}

struct LaunchOf {
    unsigned blocks = 1, threads = 1, shared = 0;
};
inline CUresult launch(CUfunction kernel, LaunchOf shape = {}, void** parameters = nullptr, CUstream stream = nullptr) {
    return call("cuLaunchKernel", kernel, shape.blocks, 1u, 1u, shape.threads, 1u, 1u, shape.shared, stream, parameters,
                static_cast<void**>(nullptr));
}

}  // namespace ikat::tests
