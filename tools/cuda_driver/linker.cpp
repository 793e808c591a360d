// SPDX-License-Identifier: Apache-2.0
// The linker: it takes PTX, plain or in fat binaries, and gives a fat binary of one PTX text where a driver gives a
// cubin.
#include <fmt/format.h>

#include <algorithm>

#include "tools/cuda_driver/compiler.hpp"
#include "tools/cuda_driver/device_runtime.hpp"
#include "tools/cuda_driver/fat_binary.hpp"
#include "tools/cuda_driver/jit_log.hpp"
#include "tools/cuda_driver/state.hpp"

namespace ikat::cuda_driver {

struct Link {
    Log log;
    std::vector<LinkInput> inputs{};
    std::string result{};
};

namespace {

using CUlinkState = struct CUlinkState_st*;

/// Adds data of any of the kinds that have PTX, or what stands for a library.
void add(Driver& its, Link& link, CUjitInputType type, std::string data, std::string name) {
    require(type <= CU_JIT_INPUT_LIBRARY);
    if (is_library(data)) return link.inputs.push_back({std::move(name), std::string(device_runtime)});
    if (data.size() >= 16 && is_fat_binary(data.data())) {
        try {
            return link.inputs.push_back({std::move(name), ptx_for(its.target, data.data())});
        } catch (const Error& error) { refuse(CUDA_ERROR_NO_BINARY_FOR_GPU, error.what()); }
    }
    if (type != CU_JIT_INPUT_PTX)
        refuse(CUDA_ERROR_NO_BINARY_FOR_GPU, fmt::format("'{}' is machine code: the emulator links PTX", name),
               "compile to PTX: nvcc -ptx -rdc=true");
    data.resize(std::min(data.size(), data.find('\0')));
    link.inputs.push_back({std::move(name), std::move(data)});
}

/// Adds what `read` gives. The program's log has the reason if that is refused.
template <class Read>
CUresult add_input(const char* function, CUlinkState state, CUjitInputType type, const char* name, Read read) {
    return in_context(function, [&](Driver& its, Context&) {
        Link& link = *its.links.at(state);
        try {
            add(its, link, type, read(), name);
        } catch (const Refusal& refusal) {
            if (link.log.buffer) link.log.write(refusal.reason + "\n");
            throw;
        }
    });
}

}  // namespace

API(cuLinkCreate_v2, unsigned count, CUjit_option* options, void** values, CUlinkState* state) {
    return in_context("cuLinkCreate", [&](Driver& its, Context&) {
        its.give(state, its.links, std::make_shared<Link>(Link{Log(count, options, values)}));
    });
}
ALIAS(cuLinkCreate, cuLinkCreate_v2);
API(cuLinkAddData_v2, CUlinkState state, CUjitInputType type, void* data, std::size_t size, const char* name, unsigned,
    CUjit_option*, void**) {
    return add_input("cuLinkAddData", state, type, name ? name : "input", [&] {
        require(data && size > 0);
        return std::string(static_cast<const char*>(data), size);
    });
}
ALIAS(cuLinkAddData, cuLinkAddData_v2);
API(cuLinkAddFile_v2, CUlinkState state, CUjitInputType type, const char* path, unsigned, CUjit_option*, void**) {
    return add_input("cuLinkAddFile", state, type, path ? path : "no file", [&] { return read_file(path); });
}
ALIAS(cuLinkAddFile, cuLinkAddFile_v2);
API(cuLinkComplete, CUlinkState state, void** cubin, std::size_t* size) {
    return in_context("cuLinkComplete", [&](Driver& its, Context&) {
        Link& link = *its.links.at(state);
        require(cubin && !link.inputs.empty());
        try {
            link.result = fat_binary_of(link_texts(its.target, link.inputs), its.target.number);
        } catch (const NotAssembled& refused) {
            link.log.write(refused.log);
            refuse(refused.result);
        }
        link.log.clear();
        *cubin = link.result.data();
        if (size) *size = link.result.size();
    });
}
API(cuLinkDestroy, CUlinkState state) {
    return initialised("cuLinkDestroy", [&](Driver& its) {
        its.links.at(state);
        its.links.remove(state);
    });
}

}  // namespace ikat::cuda_driver
