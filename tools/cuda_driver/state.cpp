// SPDX-License-Identifier: Apache-2.0
#include "tools/cuda_driver/state.hpp"

#include <fmt/format.h>

#include <cstdlib>

#include "codegen/support/environment.hpp"
#include "codegen/support/notes.hpp"
#include "runtime/device.hpp"
#include "runtime/emulator/device.hpp"
#include "runtime/emulator_options.hpp"

namespace ikat::cuda_driver {
namespace {

/// What the program was compiled for may be newer than the oldest GPU: the device is the newest that PTX without
/// family features runs on.
const nvptx::Target& device_target() {
    const std::string_view name = environment("IKAT_CUDA_TARGET");
    return nvptx::target(name.empty() ? "sm_90a" : name);
}

}  // namespace

void refuse(CUresult result, std::string reason, std::string hint) {
    throw Refusal{result, std::move(reason), std::move(hint)};
}

Driver::Driver() : target(device_target()) {
    auto [its, by_number] = runtime::emulator_options(runtime::OpenOptions{});
    options = std::move(its);
    orders_by_number = by_number;
    const runtime::DeviceProperties properties = runtime::emulator_properties(options, std::string(target.name));
    multiprocessors = properties.multiprocessors;
    memory_bytes = properties.memory_bytes;
    name = properties.name;
    const char* const blocking = std::getenv("CUDA_LAUNCH_BLOCKING");
    blocking_launches = blocking && std::string_view(blocking) == "1";
    primary_handle = new_handle();
    contexts.add(primary_handle, {.is_primary = true});
    default_pool = new_handle();
    pools.add(default_pool, {});
}

Driver& driver() {
    static Driver* const its = new Driver;  // threads may call until the process ends
    return *its;
}

void Driver::release(Context& context, CUdeviceptr address) {
    memory.release(address);
    context.memory.erase(address);
}

void Driver::forget(Module& module) {
    functions.remove_if([&](const Function& function) { return function.module == &module; });
    for (const auto& [name, address] : module.shadows) memory.release(address);
}

void Driver::clear(Context& context) {
    const auto belongs = [&](const auto& object) { return object.context == &context; };
    modules.remove_if([&](Module& module) { return belongs(module) && (forget(module), true); });
    streams.remove_if(belongs);
    events.remove_if(belongs);
    for (const CUdeviceptr address : context.memory) memory.release(address);
    for (const auto& [address, flags] : context.host_memory) std::free(address);
    context = {.is_primary = context.is_primary};
}

ContextStack& context_stack() {
    thread_local ContextStack stack;
    return stack;
}

Context& current_context() {
    const CUcontext handle = current_handle();
    if (!handle) refuse(CUDA_ERROR_INVALID_CONTEXT);
    Context* const context = driver().contexts.find(handle);
    if (!context || !context->is_alive) refuse(CUDA_ERROR_CONTEXT_IS_DESTROYED);
    if (context->failure != CUDA_SUCCESS) refuse(context->failure);
    return *context;
}

Stream* stream_of(CUstream stream) {
    if (reinterpret_cast<std::uintptr_t>(stream) <= per_thread_stream) return nullptr;
    Stream& its = driver().streams.at(stream);
    if (its.context != &current_context()) refuse(CUDA_ERROR_INVALID_CONTEXT);
    return &its;
}

void complain(const char* function, const std::string& reason, const std::string& hint) {
    note(fmt::format("ikat's CUDA driver: {}: {}\n{}", function, reason, hint.empty() ? "" : "  hint: " + hint + "\n"));
}

CUresult report(const char* function, const Error& error) {
    note(fmt::format("ikat's CUDA driver: {}: {}\n", function, error.what()));
    return CUDA_ERROR_INVALID_VALUE;
}

}  // namespace ikat::cuda_driver
