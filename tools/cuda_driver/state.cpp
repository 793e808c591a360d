// SPDX-License-Identifier: Apache-2.0
#include "tools/cuda_driver/state.hpp"

#include <fmt/format.h>

#include <charconv>
#include <cstdlib>

#include "codegen/support/environment.hpp"
#include "codegen/support/notes.hpp"
#include "runtime/device.hpp"

namespace ikat::cuda_driver {
namespace {

/// What the program was compiled for may be newer than the oldest GPU: the device is the newest that PTX without
/// family features runs on.
const nvptx::Target& device_target() {
    const std::string_view name = environment("IKAT_CUDA_TARGET");
    return nvptx::target(name.empty() ? "sm_90a" : name);
}

/// As many multiprocessors as the target's usual GPU has, so that a program divides its work as it does there.
unsigned multiprocessors(const nvptx::Target& target) {
    const std::string_view text = environment("IKAT_CUDA_MULTIPROCESSORS");
    if (text.empty()) return target.multiprocessors;
    unsigned count = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
    if (error != std::errc{} || end != text.data() + text.size() || count == 0 || count > 1024)
        throw Error(fmt::format("IKAT_CUDA_MULTIPROCESSORS is '{}'", text), "it is a number from 1 to 1024");
    return count;
}

runtime::DeviceProperties device_properties(const nvptx::Target& target, const runtime::EmulatorOptions& options) {
    runtime::DeviceProperties properties = runtime::emulator_properties(options, std::string(target.name));
    properties.multiprocessors = multiprocessors(target);
    return properties;
}

}  // namespace

void refuse(CUresult result, std::string reason, std::string hint) {
    throw Refusal{result, std::move(reason), std::move(hint)};
}

Driver::Driver()
    : target(device_target()),
      options(runtime::emulator_options(runtime::OpenOptions{})),
      properties(device_properties(target, options)) {
    const char* const blocking = std::getenv("CUDA_LAUNCH_BLOCKING");
    blocking_launches = blocking && std::string_view(blocking) == "1";
    primary_handle = new_handle();
    contexts.add(primary_handle, {.handle = reinterpret_cast<CUcontext>(primary_handle), .is_primary = true});
    default_pool = new_handle();
    pools.add(default_pool, {});
}

Driver& driver() {
    static Driver* const its = new Driver;  // threads may call until the process ends
    return *its;
}

Context& Driver::add_context(CUcontext* out, const Context& context) {
    Context& added = give(out, contexts, context);
    added.handle = *out;
    return added;
}

namespace {

CUdeviceptr allocate_by(Driver& its, std::uint64_t (emulator::Memory::*how)(std::size_t, std::string_view),
                        Context& context, std::size_t bytes) {
    require(bytes > 0);
    if (bytes > its.properties.memory_bytes - its.used_bytes) refuse(CUDA_ERROR_OUT_OF_MEMORY);
    CUdeviceptr address = 0;
    try {
        address = (its.memory.*how)(bytes, {});
    } catch (const Error&) { refuse(CUDA_ERROR_OUT_OF_MEMORY); }
    its.allocations.emplace(address, &context);
    its.used_bytes += bytes;
    return address;
}

}  // namespace

CUdeviceptr Driver::allocate(Context& context, std::size_t bytes) {
    return allocate_by(*this, &emulator::Memory::allocate, context, bytes);
}

CUdeviceptr Driver::allocate_managed(Context& context, std::size_t bytes) {
    const CUdeviceptr address = allocate_by(*this, &emulator::Memory::allocate_mapped, context, bytes);
    managed.insert(address);
    return address;
}

void Driver::release(CUdeviceptr address) {
    if (address == 0) return;
    const auto found = allocations.find(address);
    require(found != allocations.end());
    used_bytes -= memory.buffer_of(address).bytes;
    memory.release(address);
    allocations.erase(found);
    managed.erase(address);
}

void Driver::release_host(const HostRange& range) {
    // Of registered memory the whole pages are reachable.
    memory.release(range.is_registered ? memory.buffer_of(range.device).address : range.device);
}

std::map<std::uintptr_t, HostRange>::iterator Driver::host_range(std::uintptr_t address) {
    auto next = host_ranges.upper_bound(address);
    if (next == host_ranges.begin()) return host_ranges.end();
    --next;
    return address - next->first < next->second.bytes ? next : host_ranges.end();
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
    for (auto it = allocations.begin(); it != allocations.end();) {
        const auto [address, owner] = *it++;
        if (owner == &context) release(address);
    }
    std::erase_if(host_ranges, [&](const auto& each) {
        const HostRange& range = each.second;
        if (range.context != &context) return false;
        release_host(range);
        return true;
    });
    context = {.handle = context.handle, .is_primary = context.is_primary};
}

ContextStack& context_stack() {
    thread_local ContextStack stack;
    return stack;
}

void check_usable(const Context& context) {
    if (!context.is_alive) refuse(CUDA_ERROR_CONTEXT_IS_DESTROYED);
    if (context.failure != CUDA_SUCCESS) refuse(context.failure);
}

Context& current_context() {
    const CUcontext handle = current_handle();
    if (!handle) refuse(CUDA_ERROR_INVALID_CONTEXT);
    Context& context = driver().contexts.at(handle);  // one that was destroyed stays known
    check_usable(context);
    return context;
}

Stream* stream_of(CUstream stream) { return always_exists(stream) ? nullptr : &driver().streams.at(stream); }

Context& context_of(CUstream stream) {
    const Stream* const its = stream_of(stream);
    if (!its) return current_context();
    check_usable(*its->context);
    return *its->context;
}

void complain(const char* function, const std::string& reason, const std::string& hint) {
    const std::string text =
        fmt::format("ikat's CUDA driver: {}: {}\n{}", function, reason, hint.empty() ? "" : "  hint: " + hint + "\n");
    note(text);
    log(text);
}

CUresult report(const char* function, const Error& error) {
    complain(function, error.what(), {});
    return CUDA_ERROR_INVALID_VALUE;
}

}  // namespace ikat::cuda_driver
