// SPDX-License-Identifier: Apache-2.0
// Modules, libraries and what is in them. An image is PTX text, or a fat binary that has some: it is checked as a
// driver's compiler would.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "tools/cuda_driver/compiler.hpp"
#include "tools/cuda_driver/fat_binary.hpp"
#include "tools/cuda_driver/jit_log.hpp"
#include "tools/cuda_driver/state.hpp"

namespace ikat::cuda_driver {
namespace {

std::string first_entry(const ptx::Module& module) {
    for (const ptx::Function& function : module.functions)
        if (function.is_entry) return std::string(module.text(function.name));
    return "module";
}

/// The PTX text in an image.
std::string text_of(const Driver& its, const void* image) {
    require(image);
    const char* const text = static_cast<const char*>(image);
    if (std::strncmp(text,
                     "\x7f"
                     "ELF",
                     4) == 0)
        refuse(CUDA_ERROR_NO_BINARY_FOR_GPU, "the image is a cubin: the emulator runs PTX",
               "give the PTX: nvcc -ptx, or cuobjdump -ptx");
    if (std::strncmp(text, "\xb1\x43\x62\x46", 4) != 0 && std::strncmp(text, "\x50\xed\x55\xba", 4) != 0) return text;
    try {
        return ptx_for(its.target, image);
    } catch (const Error& error) { refuse(CUDA_ERROR_NO_BINARY_FOR_GPU, error.what()); }
}

/// Writes the handle of a module, or of a library, which has no context.
template <class Handle>
Module& load(Driver& its, Handle* out, Handles<Module>& among, std::optional<emulator::ContextId> context,
             std::string text, const Log& log) {
    require(out);
    try {
        ptx::Module module = assemble(its.target, text, "application ptx input", true);
        const std::string_view named = module.text(module.target[0]);
        Module kept{.target = accepted_number(its.target, named)};
        kept.ptx = std::make_shared<KeptPtx>(std::move(text), first_entry(module));
        module.file = intern(kept.ptx->path());
        Gpu& gpu = context ? its.gpu(*context) : its.current_gpu();
        emulator::HostDevice& device = gpu.device;
        const emulator::ModuleId id =
            device.load(context, {.module = std::move(module), .origin = emulator::Origin::Foreign});
        kept.loaded = device.find(id), kept.device = gpu.ordinal;
        log.clear();
        *out = reinterpret_cast<Handle>(id);
        return among.add(std::uintptr_t(id), std::move(kept));
    } catch (const NotAssembled& refused) {
        log.write(refused.log);
        refuse(refused.result);
    } catch (const Error& error) {
        log.write(log_of(error, "application ptx input"));
        refuse(CUDA_ERROR_INVALID_PTX);
    }
}

CUresult load_module(const char* function, CUmodule* out, const void* image, unsigned count,
                     const CUjit_option* options, void** values) {
    return in_context(function, [&](Driver& its, Context& context) {
        load(its, out, its.modules, context.id, text_of(its, image), Log(count, options, values));
    });
}

void load_library(Driver& its, CUlibrary* out, const void* image, const Log& log) {
    Module& library = load(its, out, its.libraries, {}, text_of(its, image), log);
    library.library = *out;
}

/// The handle of an entry, the same for each call.
std::uintptr_t entry_of(Driver& its, Module& module, const char* name) {
    require(name);
    if (const auto found = module.functions.find(name); found != module.functions.end()) return found->second;
    const auto entries = module.program().entries();
    if (std::ranges::find(entries, name) == entries.end()) refuse(CUDA_ERROR_NOT_FOUND);
    Function function{.module = &module, .entry = name};
    try {
        function.facts = module.program().entry(name);
    } catch (const Error& error) {
        module.ptx->write();
        refuse(CUDA_ERROR_NOT_SUPPORTED, error.what());
    }
    const std::uint64_t max = its.target.shared_static;
    if (function.facts.shared_bytes > max)
        refuse(CUDA_ERROR_INVALID_PTX,
               fmt::format("entry '{}' has {} bytes of static shared memory, {} more than a block may have", name,
                           function.facts.shared_bytes, function.facts.shared_bytes - max),
               "use dynamic shared memory, which a launch gives");
    function.dynamic_shared = int(max - function.facts.shared_bytes);
    const std::uintptr_t handle = its.new_handle();
    its.functions.add(handle, std::move(function));
    return module.functions[name] = handle;
}

/// Writes the handle of the entry of this name.
template <class Handle>
void find_entry(Driver& its, Module& module, const char* name, Handle* out) {
    require(out);
    *out = reinterpret_cast<Handle>(entry_of(its, module, name));
}

/// ... of at most that many entries.
template <class Handle>
void list_entries(Driver& its, Module& module, unsigned max, Handle* out) {
    require(out);
    const auto entries = module.program().entries();
    for (unsigned i = 0; i < std::min<std::size_t>(max, entries.size()); ++i)
        find_entry(its, module, entries[i].c_str(), &out[i]);
}

void count_entries(Module& module, unsigned* out) {
    require(out);
    *out = unsigned(module.program().entries().size());
}

void find_variable(Driver& its, const Context& context, Module& module, const char* name, CUdeviceptr* address,
                   std::size_t* bytes) {
    require(name);
    emulator::Program::Variable found;
    try {
        found = its.loaded_on(context.device, module)->variable(name);
    } catch (const Error&) { refuse(CUDA_ERROR_NOT_FOUND); }
    if (address) *address = found.address;
    if (bytes) *bytes = found.bytes;
}

}  // namespace

std::shared_ptr<emulator::LoadedModule> Driver::loaded_on(CUdevice device, Module& module) {
    if (module.loaded->context() || device == module.device) return module.loaded;
    std::shared_ptr<emulator::LoadedModule>& its = module.elsewhere[device];
    if (!its) {
        ptx::Module again = assemble(target, module.ptx->text(), "application ptx input", true);
        again.file = intern(module.ptx->path());
        emulator::HostDevice& on = gpu(device).device;
        const emulator::ModuleId id = on.load({}, {.module = std::move(again), .origin = emulator::Origin::Foreign});
        its = on.find(id);
        on.unload(id);  // the library keeps it
    }
    return its;
}

std::string read_file(const char* path) {
    require(path);
    std::ifstream file(path, std::ios::binary);
    if (!file || !std::filesystem::is_regular_file(path))
        refuse(CUDA_ERROR_FILE_NOT_FOUND, fmt::format("there is no file '{}'", path));
    return {std::istreambuf_iterator<char>(file), {}};
}

API(cuModuleLoadData, CUmodule* module, const void* image) {
    return load_module("cuModuleLoadData", module, image, 0, nullptr, nullptr);
}
API(cuModuleLoadDataEx, CUmodule* module, const void* image, unsigned count, CUjit_option* options, void** values) {
    return load_module("cuModuleLoadDataEx", module, image, count, options, values);
}
API(cuModuleLoadFatBinary, CUmodule* module, const void* image) {
    return load_module("cuModuleLoadFatBinary", module, image, 0, nullptr, nullptr);
}
API(cuModuleLoad, CUmodule* module, const char* path) {
    return in_context("cuModuleLoad", [&](Driver& its, Context& context) {
        const std::string image = read_file(path);
        load(its, module, its.modules, context.id, text_of(its, image.c_str()), Log());
    });
}
API(cuModuleUnload, CUmodule module) {
    return in_context("cuModuleUnload", [&](Driver& its, Context&) { its.unload(its.modules, module); });
}
API(cuModuleGetFunction, CUfunction* function, CUmodule module, const char* name) {
    return in_context("cuModuleGetFunction",
                      [&](Driver& its, Context&) { find_entry(its, its.modules.at(module), name, function); });
}
API(cuModuleGetFunctionCount, unsigned* count, CUmodule module) {
    return in_context("cuModuleGetFunctionCount",
                      [&](Driver& its, Context&) { count_entries(its.modules.at(module), count); });
}
API(cuModuleEnumerateFunctions, CUfunction* functions, unsigned max, CUmodule module) {
    return in_context("cuModuleEnumerateFunctions",
                      [&](Driver& its, Context&) { list_entries(its, its.modules.at(module), max, functions); });
}
API(cuModuleGetGlobal_v2, CUdeviceptr* address, std::size_t* bytes, CUmodule module, const char* name) {
    return in_context("cuModuleGetGlobal", [&](Driver& its, Context& context) {
        find_variable(its, context, its.modules.at(module), name, address, bytes);
    });
}
API(cuModuleGetLoadingMode, int* mode) {
    return initialised("cuModuleGetLoadingMode", [&](Driver&) {
        require(mode);
        *mode = 1;  // eager
    });
}

API(cuLibraryLoadData, CUlibrary* library, const void* image, CUjit_option* options, void** values, unsigned count,
    void*, void**, unsigned) {
    return initialised("cuLibraryLoadData",
                       [&](Driver& its) { load_library(its, library, image, Log(count, options, values)); });
}
API(cuLibraryLoadFromFile, CUlibrary* library, const char* path, CUjit_option* options, void** values, unsigned count,
    void*, void**, unsigned) {
    return initialised("cuLibraryLoadFromFile", [&](Driver& its) {
        const std::string image = read_file(path);
        load_library(its, library, image.c_str(), Log(count, options, values));
    });
}
API(cuLibraryUnload, CUlibrary library) {
    return initialised("cuLibraryUnload", [&](Driver& its) { its.unload(its.libraries, library); });
}
API(cuLibraryGetKernel, CUkernel* kernel, CUlibrary library, const char* name) {
    return initialised("cuLibraryGetKernel",
                       [&](Driver& its) { find_entry(its, its.libraries.at(library), name, kernel); });
}
API(cuLibraryGetKernelCount, unsigned* count, CUlibrary library) {
    return initialised("cuLibraryGetKernelCount",
                       [&](Driver& its) { count_entries(its.libraries.at(library), count); });
}
API(cuLibraryEnumerateKernels, CUkernel* kernels, unsigned max, CUlibrary library) {
    return initialised("cuLibraryEnumerateKernels",
                       [&](Driver& its) { list_entries(its, its.libraries.at(library), max, kernels); });
}
API(cuLibraryGetGlobal, CUdeviceptr* address, std::size_t* bytes, CUlibrary library, const char* name) {
    return in_context("cuLibraryGetGlobal", [&](Driver& its, Context& context) {
        find_variable(its, context, its.libraries.at(library), name, address, bytes);
    });
}
API(cuKernelGetFunction, CUfunction* function, CUkernel kernel) {
    return in_context("cuKernelGetFunction", [&](Driver& its, Context&) {
        require(function);
        its.functions.at(kernel);
        *function = function_of(kernel);
    });
}
API(cuKernelGetLibrary, CUlibrary* library, CUkernel kernel) {
    return initialised("cuKernelGetLibrary", [&](Driver& its) {
        require(library);
        const CUlibrary its_own = its.functions.at(kernel).module->library;
        if (!its_own) refuse(CUDA_ERROR_INVALID_HANDLE);
        *library = its_own;
    });
}

}  // namespace ikat::cuda_driver
