// SPDX-License-Identifier: Apache-2.0
// libnvJitLink's interface: the linker that some programs use instead of the driver's. It links PTX, and gives a fat
// binary of it as the cubin. Its version is older than that of which programs expect that it links the compilers'
// intermediate code (12.3): they then give it PTX.
#include <algorithm>
#include <cstring>
#include <fstream>
#include <iterator>

#include "tools/cuda_driver/compiler.hpp"
#include "tools/cuda_driver/device_runtime.hpp"
#include "tools/cuda_driver/fat_binary.hpp"

namespace ikat::cuda_driver {
namespace {

enum Result {
    success = 0,
    unrecognized_option = 1,
    missing_arch = 2,
    invalid_input = 3,
    ptx_compile = 4,
    internal = 6
};
enum InputType { input_ptx = 2, input_ltoir = 3 };

struct Link {
    const ptx::Target* device = nullptr;
    std::vector<LinkInput> inputs{};
    std::string log{}, ptx{}, cubin{};

    Result fail(Result result, std::string text) {
        log = std::move(text);
        return result;
    }
};

template <class Body>
int guarded(Link* link, Body body) {
    if (!link) return invalid_input;
    try {
        return body(*link);
    } catch (const NotAssembled& refused) {
        return link->fail(ptx_compile, refused.log);
    } catch (const std::exception& error) { return link->fail(internal, error.what()); }
}

Result add(Link& link, int type, std::string data, std::string name) {
    if (type == input_ltoir)
        return link.fail(invalid_input, "'" + name + "' is intermediate code: the emulator links PTX\n");
    if (data.size() >= 16 && is_fat_binary(data.data())) {
        data = ptx_for(*link.device, data.data());
    } else if (is_library(data)) {
        data = device_runtime;
    } else if (data.starts_with("\x7f"
                                "ELF")) {
        return link.fail(invalid_input, "'" + name + "' is machine code: the emulator links PTX\n");
    }
    data.resize(std::min(data.size(), data.find('\0')));
    link.inputs.push_back({std::move(name), std::move(data)});
    return success;
}

int create(Link** out, std::uint32_t count, const char** options) {
    constexpr std::string_view arch = "-arch=";
    if (!out || (count && !options)) return invalid_input;
    *out = nullptr;
    const ptx::Target* device = nullptr;
    for (std::uint32_t i = 0; i < count; ++i) {
        const std::string_view option = options[i];
        if (!option.starts_with(arch)) continue;
        device = ptx::find_target(option.substr(arch.size()));
        if (!device) return unrecognized_option;
    }
    if (!device) return missing_arch;
    *out = new Link{.device = device};
    return success;
}

/// Gives a text in two steps: its size, and its bytes.
int give_size(const std::string& text, std::size_t* size) {
    if (!size) return invalid_input;
    *size = text.size();
    return success;
}
int give(const std::string& text, void* to) {
    if (!to) return invalid_input;
    std::memcpy(to, text.data(), text.size());
    return success;
}

}  // namespace
}  // namespace ikat::cuda_driver

using ikat::cuda_driver::Link;
using namespace ikat::cuda_driver;

/// Each function has two symbols: programs in C call that of their header's version.
#define LINKER(name, ...)                                                                             \
    extern "C" __attribute__((visibility("default"))) int name(__VA_ARGS__);                          \
    extern "C" __attribute__((visibility("default"), alias(#name))) int __##name##_13_0(__VA_ARGS__); \
    int name(__VA_ARGS__)

extern "C" __attribute__((visibility("default"))) int nvJitLinkVersion(unsigned* major, unsigned* minor) {
    if (!major || !minor) return invalid_input;
    *major = 12;
    *minor = 0;
    return success;
}
LINKER(nvJitLinkCreate, Link** handle, std::uint32_t count, const char** options) {
    return create(handle, count, options);
}
LINKER(nvJitLinkDestroy, Link** handle) {
    if (!handle) return invalid_input;
    delete *handle;
    *handle = nullptr;
    return success;
}
LINKER(nvJitLinkAddData, Link* handle, int type, const void* data, std::size_t size, const char* name) {
    return guarded(handle, [&](Link& link) -> Result {
        if (!data) return invalid_input;
        return add(link, type, {static_cast<const char*>(data), size}, name ? name : "input");
    });
}
LINKER(nvJitLinkAddFile, Link* handle, int type, const char* path) {
    return guarded(handle, [&](Link& link) {
        std::ifstream file(path ? path : "", std::ios::binary);
        if (!file) return link.fail(invalid_input, "there is no file '" + std::string(path ? path : "") + "'\n");
        return add(link, type, {std::istreambuf_iterator<char>(file), {}}, path);
    });
}
LINKER(nvJitLinkComplete, Link* handle) {
    return guarded(handle, [](Link& link) -> Result {
        if (link.inputs.empty()) return link.fail(invalid_input, "nothing is to be linked\n");
        link.ptx = link_texts(*link.device, link.inputs);
        link.cubin = fat_binary_of(link.ptx, link.device->number);
        return success;
    });
}
LINKER(nvJitLinkGetLinkedCubinSize, Link* handle, std::size_t* size) {
    return guarded(handle, [&](Link& link) { return give_size(link.cubin, size); });
}
LINKER(nvJitLinkGetLinkedCubin, Link* handle, void* cubin) {
    return guarded(handle, [&](Link& link) { return give(link.cubin, cubin); });
}
LINKER(nvJitLinkGetLinkedPtxSize, Link* handle, std::size_t* size) {
    return guarded(handle, [&](Link& link) { return give_size(link.ptx, size); });
}
LINKER(nvJitLinkGetLinkedPtx, Link* handle, char* ptx) {
    return guarded(handle, [&](Link& link) { return give(link.ptx, ptx); });
}
LINKER(nvJitLinkGetErrorLogSize, Link* handle, std::size_t* size) {
    return guarded(handle, [&](Link& link) { return give_size(link.log, size); });
}
LINKER(nvJitLinkGetErrorLog, Link* handle, char* log) {
    return guarded(handle, [&](Link& link) { return give(link.log, log); });
}
LINKER(nvJitLinkGetInfoLogSize, Link* handle, std::size_t* size) {
    return guarded(handle, [&](Link&) { return give_size({}, size); });
}
LINKER(nvJitLinkGetInfoLog, Link* handle, char*) {
    return guarded(handle, [](Link&) { return success; });
}
