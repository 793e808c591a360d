// SPDX-License-Identifier: Apache-2.0
#include "tools/cuda_driver/state.hpp"

#include <fmt/format.h>

#include <charconv>
#include <cstdlib>
#include <set>

#include "codegen/support/environment.hpp"
#include "codegen/support/notes.hpp"
#include "runtime/backends/emulator_device.hpp"
#include "runtime/backends/emulator_options.hpp"
#include "runtime/device.hpp"
#include "runtime/emulator/core/memory/address_windows.hpp"
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
      properties(device_properties(target, options)) {
    const char* const blocking = std::getenv("CUDA_LAUNCH_BLOCKING");
    blocking_launches = blocking && std::string_view(blocking) == "1";
    for (CUdevice i = 0; i < CUdevice(runtime::emulated_devices()); ++i) {
        emulator::HostOptions its_options = options;
        its_options.name = fmt::format("device {}", i);
        Gpu& gpu = *gpus.emplace_back(std::make_unique<Gpu>(i, its_options, properties.memory_bytes));
        contexts.add(std::uintptr_t(gpu.device.primary()), {.id = gpu.device.primary(), .device = i});
        gpu.default_pool = gpu.current_pool = new_handle();
        Pool pool;
        pool.props.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
        pool.props.location = {CU_MEM_LOCATION_TYPE_DEVICE, i};
        pools.add(gpu.default_pool, pool);
    }
}

Gpu& Driver::gpu(CUdevice ordinal) const {
    if (ordinal < 0 || std::size_t(ordinal) >= gpus.size()) refuse(CUDA_ERROR_INVALID_DEVICE);
    return *gpus[unsigned(ordinal)];
}

void check_device(CUdevice device) { static_cast<void>(driver().gpu(device)); }

namespace {

template <class Condition>
Gpu* find_gpu(const Driver& its, Condition is_it) {
    for (const auto& each : its.gpus)
        if (is_it(each->device)) return each.get();
    return nullptr;
}

}  // namespace

Gpu& Driver::current_gpu() const {
    const auto id = emulator::ContextId(reinterpret_cast<std::uintptr_t>(current_handle()));
    Gpu* const found = find_gpu(*this, [&](const emulator::HostDevice& device) { return device.is_alive(id); });
    return found ? *found : *gpus.front();
}

emulator::HostDevice& Driver::device_of(emulator::StreamId stream) const {
    Gpu* const found =
        find_gpu(*this, [&](const emulator::HostDevice& device) { return device.find(stream).has_value(); });
    return found ? found->device : current_gpu().device;
}

emulator::HostDevice& Driver::device_of(emulator::EventId event) const {
    Gpu* const found =
        find_gpu(*this, [&](const emulator::HostDevice& device) { return device.find(event).has_value(); });
    return found ? found->device : current_gpu().device;
}

Gpu& Driver::gpu_at(std::uint64_t address) const {
    const auto owner = emulator::address_windows().owner(address);
    Gpu* const found = find_gpu(*this, [&](emulator::HostDevice& device) {
        return device.memory().space().share() == owner || device.memory().pinned(address);
    });
    return found ? *found : current_gpu();
}

void Driver::find_places(emulator::HostDevice& on, emulator::work::Copy& copy) const {
    const auto find = [&](emulator::work::Place place, std::shared_ptr<emulator::Memory::State>& elsewhere) {
        emulator::HostDevice& its = gpu_at(place.device).device;
        if (place.host || &its == &on) return;
        on.link(its);
        elsewhere = its.memory().space().share();
    };
    find(copy.to, copy.to_elsewhere), find(copy.from, copy.from_elsewhere);
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
    return allocated(bytes, [&] { return gpu(context).device.memory().allocate(context.id, bytes); });
}

CUdeviceptr Driver::allocate_managed(Context& context, std::size_t bytes) {
    return allocated(bytes, [&] { return gpu(context).device.memory().allocate_managed(context.id, bytes); });
}

void Driver::release(CUdeviceptr address) {
    require(address == 0 || gpu_at(address).device.memory().release(address));
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
    gpu(context).device.end(context.id);
    forget_graphs(context);
    context = {.id = context.id, .device = context.device};
    contexts.for_each([&](Context& each) { each.peers.erase(context.id); });
    update_peers();
}

/// The memory of a device is seen as a whole.
void Driver::update_peers() {
    std::set<std::pair<CUdevice, CUdevice>> wanted;
    contexts.for_each([&](const Context& each) {
        for (const emulator::ContextId peer : each.peers) wanted.emplace(each.device, context(peer).device);
    });
    pools.for_each([&](const Pool& pool) {
        for (const CUdevice user : pool.users) wanted.emplace(user, pool.props.location.id);
    });
    for (const auto& from : gpus)
        for (const auto& to : gpus) {
            if (from == to) continue;
            const bool is_wanted = wanted.contains({from->ordinal, to->ordinal});
            if (from->device.has_peer_access(to->device) != is_wanted)
                from->device.set_peer_access(to->device, is_wanted);
        }
}

ContextStack& context_stack() {
    thread_local ContextStack stack;
    return stack;
}

void check_usable(const Context& context) {
    collect_failures(driver());
    if (!driver().gpu(context).device.is_alive(context.id)) refuse(CUDA_ERROR_CONTEXT_IS_DESTROYED);
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
    const auto found = its.device_of(id_of(stream)).find(id_of(stream));
    if (!found) refuse(CUDA_ERROR_INVALID_HANDLE);
    return found;
}

emulator::Event event_at(Driver& its, CUevent event) {
    const auto found = its.device_of(id_of(event)).find(id_of(event));
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

void check_no_callback() {
    if (find_gpu(driver(), [](const emulator::HostDevice& device) { return device.is_host_call(); }))
        refuse(CUDA_ERROR_NOT_PERMITTED, "it is called by a callback", "callbacks must not call the driver");
}

/// Waits on the device of a stream or an event.
template <class Handle, class Wait>
CUresult waited(const char* function, Handle handle, Wait wait) noexcept {
    return translated(function, [&] {
        check_no_callback();
        const auto id = id_of(handle);
        wait(driver().device_of(id), id);
    });
}

/// What ends when the program has waited.
CUresult after_waiting(const char* function, CUresult result) noexcept {
    return result == CUDA_SUCCESS ? guarded(function, [] { trim_pools(driver()); }) : result;
}

}  // namespace

CUresult permitted(const char* function) noexcept { return translated(function, check_no_callback); }

CUresult drained(const char* function, CUdeviceptr address) noexcept {
    return translated(function, [&] {
        check_no_callback();
        driver().gpu_at(address).device.drain();
    });
}

CUresult drained(const char* function) noexcept {
    return translated(function, [] {
        check_no_callback();
        for (const auto& each : driver().gpus) each->device.drain();
    });
}

CUresult settle(const char* function, CUstream stream) noexcept {
    return waited(function, stream, [](emulator::HostDevice& device, emulator::StreamId id) { device.settle(id); });
}

CUresult synchronise(const char* function, CUstream stream) noexcept {
    return after_waiting(function, waited(function, stream, [](emulator::HostDevice& device, emulator::StreamId id) {
                             device.finish(id);
                             device.end_grids(id);
                         }));
}

CUresult synchronise(const char* function, CUevent event) noexcept {
    return after_waiting(function, waited(function, event, [](emulator::HostDevice& device, emulator::EventId id) {
                             device.finish(id);
                         }));
}

CUresult synchronise(const char* function) noexcept {
    return after_waiting(function, translated(function, [] {
                             check_no_callback();
                             emulator::HostDevice& device = driver().current_gpu().device;
                             device.finish();
                             device.end_grids();
                         }));
}

CUresult query(const char* function, CUstream stream) noexcept {
    return after_waiting(function, waited(function, stream, [](emulator::HostDevice& device, emulator::StreamId id) {
                             if (!device.query(id)) refuse(CUDA_ERROR_NOT_READY);
                             device.end_grids(id);
                         }));
}

CUresult query(const char* function, CUevent event) noexcept {
    return after_waiting(function, waited(function, event, [](emulator::HostDevice& device, emulator::EventId id) {
                             if (!device.query(id)) refuse(CUDA_ERROR_NOT_READY);
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
