// SPDX-License-Identifier: Apache-2.0
#include "tools/cuda_driver/state.hpp"

#include <fmt/format.h>

#include <charconv>
#include <cstdlib>

#include "codegen/support/environment.hpp"
#include "codegen/support/notes.hpp"
#include "runtime/backends/emulator_device.hpp"
#include "runtime/backends/emulator_options.hpp"
#include "runtime/device.hpp"
#include "tools/cuda_driver/graphs/capture.hpp"
#include "tools/cuda_driver/pool.hpp"

namespace ikat::cuda_driver {
namespace {

/// What the program was compiled for may be newer than the oldest GPU: the device is the newest that PTX without
/// family features runs on.
const ptx::Target& device_target() {
    const std::string_view name = environment("IKAT_CUDA_TARGET");
    return ptx::target(name.empty() ? "sm_90a" : name);
}

/// As many multiprocessors as the target's usual GPU has, so that a program divides its work as it does there.
unsigned multiprocessors(const ptx::Target& target) {
    const std::string_view text = environment("IKAT_CUDA_MULTIPROCESSORS");
    if (text.empty()) return target.multiprocessors;
    unsigned count = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
    if (error != std::errc{} || end != text.data() + text.size() || count == 0 || count > 1024)
        throw Error(fmt::format("IKAT_CUDA_MULTIPROCESSORS is '{}'", text), "it is a number from 1 to 1024");
    return count;
}

runtime::DeviceProperties device_properties(const ptx::Target& target, const emulator::HostOptions& options) {
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
      properties(device_properties(target, options)),
      device(options, emulator::Origin::Foreign, properties.memory_bytes) {
    const char* const blocking = std::getenv("CUDA_LAUNCH_BLOCKING");
    blocking_launches = blocking && std::string_view(blocking) == "1";
    contexts.add(std::uintptr_t(device.primary()), {.id = device.primary()});
    default_pool = current_pool = new_handle();
    Pool pool;
    pool.props.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    pool.props.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
    pools.add(default_pool, pool);
}

Driver& driver() {
    static Driver* const its = new Driver;  // threads may call until the process ends
    return *its;
}

namespace {

/// What a client of the device's memory gets, as a driver calls a lack of it.
template <class Allocate>
CUdeviceptr allocated(std::size_t bytes, Allocate allocate) {
    require(bytes > 0);
    try {
        return allocate();
    } catch (const Error&) { refuse(CUDA_ERROR_OUT_OF_MEMORY); }
}

}  // namespace

CUdeviceptr Driver::allocate(Context& context, std::size_t bytes) {
    return allocated(bytes, [&] { return device.memory().allocate(context.id, bytes); });
}

CUdeviceptr Driver::allocate_managed(Context& context, std::size_t bytes) {
    return allocated(bytes, [&] { return device.memory().allocate_managed(context.id, bytes); });
}

void Driver::release(CUdeviceptr address) {
    require(address == 0 || device.memory().release(address));
    note_freed(address);
    note_pool_free(*this, address);
}

void Driver::forget_functions(const Module& module) {
    functions.remove_if([&](const Function& function) { return function.module == &module; });
}

void Driver::end(Context& context) {
    modules.remove_if([&](const Module& module) {
        if (module.loaded->context() != context.id) return false;
        forget_functions(module);
        return true;
    });
    forget_captured(context);
    device.end(context.id);
    forget_graphs(context);
    context = {.id = context.id};
}

ContextStack& context_stack() {
    thread_local ContextStack stack;
    return stack;
}

void check_usable(const Context& context) {
    collect_failures(driver());
    if (!driver().device.is_alive(context.id)) refuse(CUDA_ERROR_CONTEXT_IS_DESTROYED);
    if (context.failure != CUDA_SUCCESS) refuse(context.failure);
}

Context& current_context() {
    const CUcontext handle = current_handle();
    if (!handle) refuse(CUDA_ERROR_INVALID_CONTEXT);
    Context& context = driver().contexts.at(handle);  // one that was destroyed stays known
    check_usable(context);
    return context;
}

std::optional<emulator::Stream> stream_at(Driver& its, CUstream stream) {
    if (id_of(stream) == emulator::default_stream) return {};
    const auto found = its.device.find(id_of(stream));
    if (!found) refuse(CUDA_ERROR_INVALID_HANDLE);
    return found;
}

emulator::Event event_at(Driver& its, CUevent event) {
    const auto found = its.device.find(id_of(event));
    if (!found) refuse(CUDA_ERROR_INVALID_HANDLE);
    return *found;
}

Context& context_of(Driver& its, CUstream stream) {
    const auto known = stream_at(its, stream);
    if (!known) return current_context();
    Context& context = its.context(known->context);
    check_usable(context);
    return context;
}

namespace {

template <class Wait>
CUresult waited(const char* function, Wait wait) noexcept {
    return translated(function, [&] {
        emulator::HostDevice& device = driver().device;
        if (device.is_host_call())
            refuse(CUDA_ERROR_NOT_PERMITTED, "it is called by a callback", "callbacks must not call the driver");
        wait(device);
    });
}

/// What ends when the program has waited.
CUresult after_waiting(const char* function, CUresult result) noexcept {
    return result == CUDA_SUCCESS ? guarded(function, [] { trim_pools(driver()); }) : result;
}

}  // namespace

CUresult permitted(const char* function) noexcept {
    return waited(function, [](emulator::HostDevice&) {});
}

CUresult settle(const char* function, CUstream stream) noexcept {
    return waited(function, [&](emulator::HostDevice& device) { device.settle(id_of(stream)); });
}

CUresult synchronise(const char* function, CUstream stream) noexcept {
    return after_waiting(function, waited(function, [&](emulator::HostDevice& device) {
                             device.finish(id_of(stream));
                             device.end_grids(id_of(stream));
                         }));
}

CUresult synchronise(const char* function, CUevent event) noexcept {
    return after_waiting(function,
                         waited(function, [&](emulator::HostDevice& device) { device.finish(id_of(event)); }));
}

CUresult synchronise(const char* function) noexcept {
    return after_waiting(function, waited(function, [&](emulator::HostDevice& device) {
                             device.finish();
                             device.end_grids();
                         }));
}

CUresult query(const char* function, CUstream stream) noexcept {
    return after_waiting(function, waited(function, [&](emulator::HostDevice& device) {
                             if (!device.query(id_of(stream))) refuse(CUDA_ERROR_NOT_READY);
                             device.end_grids(id_of(stream));
                         }));
}

CUresult query(const char* function, CUevent event) noexcept {
    return after_waiting(function, waited(function, [&](emulator::HostDevice& device) {
                             if (!device.query(id_of(event))) refuse(CUDA_ERROR_NOT_READY);
                         }));
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
