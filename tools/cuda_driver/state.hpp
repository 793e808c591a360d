// SPDX-License-Identifier: Apache-2.0
// What the API adds to the emulator's device: handles, what they say of themselves, and results as a driver has them.
//
// Handles of contexts, streams, events and modules are the device's own names for them, other handles are numbers of
// the same row: none is given twice, so a destroyed one is always found out. All of an API call happens under one lock;
// work is done when it is enqueued, which a driver may do as well. A kernel's failure is reported as a driver does: by
// the calls after the launch, and by all of them until the context is gone.
#pragma once
#include <array>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "codegen/ptx/table/target.hpp"
#include "runtime/backend.hpp"
#include "runtime/emulator/host/host_device.hpp"
#include "tools/cuda_driver/graphs/abi.hpp"
#include "tools/cuda_driver/kept_ptx.hpp"

namespace ikat::cuda_driver {

/// Ends an API call with a result other than CUDA_SUCCESS. The reason, if there is one, goes to standard error: a
/// program sees only the number.
struct Refusal {
    CUresult result = CUDA_ERROR_UNKNOWN;
    std::string reason{};
    std::string hint{};
};
[[noreturn]] void refuse(CUresult result, std::string reason = {}, std::string hint = {});

/// CUDA_ERROR_INVALID_VALUE unless the condition holds.
inline void require(bool condition) {
    if (!condition) refuse(CUDA_ERROR_INVALID_VALUE);
}

/// CUDA_ERROR_INVALID_DEVICE unless there is such a device.
void check_device(CUdevice device);

/// The file's contents. CUDA_ERROR_FILE_NOT_FOUND if it cannot be read.
std::string read_file(const char* path);

struct Context;

/// CUDA 13.0.
inline constexpr int driver_version = 13000;

struct Module {
    std::shared_ptr<emulator::LoadedModule> loaded{};
    std::map<CUdevice, std::shared_ptr<emulator::LoadedModule>> elsewhere{};  // of a library that others have used, too
    CUdevice device = 0;                                                      // that `loaded` is on
    CUlibrary library = nullptr;                                              // its handle, if it is one
    unsigned target = 0;                                                      // 90 of sm_90a
    std::shared_ptr<KeptPtx> ptx{};
    std::map<std::string, std::uintptr_t> functions{};  // handles given out, by entry

    emulator::Program& program() const { return loaded->program(); }
};

/// An entry of a module: what a CUfunction or a CUkernel refers to.
struct Function {
    Module* module = nullptr;
    std::string entry{};
    emulator::Program::Entry facts{};
    int dynamic_shared = 0;  // the most that a launch may ask for
    int carveout = -1;
    bool any_cluster_size = false;
    std::array<std::uint32_t, 3> cluster{};  // of launches that do not say it; 0: none was set
    int cluster_policy = 0;
    // Of cuLaunch, cuLaunchGrid and cuLaunchGridAsync
    std::array<std::uint32_t, 3> block{};
    std::uint32_t dynamic_bytes = 0;
    std::vector<std::byte> parameters{};
};

/// What a CUlinkState refers to: texts that are to be linked, then the result.
struct Link;

struct Pool {
    CUmemPoolProps props{};
    std::array<int, 3> reuse{1, 1, 1};  // attributes 1 to 3
    std::uint64_t threshold = 0;
    std::uint64_t used = 0, used_high = 0, reserved = 0, reserved_high = 0;  // bytes
    bool is_destroyed = false;                                               // but it has memory that is in use
    std::set<CUdevice> users{};                                              // other devices that reach its memory
};

/// What the API keeps of a context. One that was destroyed stays known.
struct Context {
    emulator::ContextId id{};
    CUdevice device = 0;
    unsigned flags = 0;
    CUresult failure = CUDA_SUCCESS;  // of a kernel: every later call returns it
    std::map<unsigned, std::size_t> limits{};
    int cache_config = 0;
    int bank_config = 0;
    unsigned attached = 1;                  // users of cuCtxAttach; cuCtxDetach by the last ends the context
    std::set<emulator::ContextId> peers{};  // of other devices, whose memory its kernels reach
};

/// Objects by handle.
template <class Object>
class Handles {
public:
    template <class Handle>
    Object& at(Handle handle) {
        const auto found = objects_.find(reinterpret_cast<std::uintptr_t>(handle));
        if (found == objects_.end()) refuse(CUDA_ERROR_INVALID_HANDLE);
        return *found->second;
    }
    template <class Handle>
    Object* find(Handle handle) {
        const auto found = objects_.find(reinterpret_cast<std::uintptr_t>(handle));
        return found == objects_.end() ? nullptr : found->second.get();
    }
    Object& add(std::uintptr_t handle, Object object) {
        return *(objects_[handle] = std::make_unique<Object>(std::move(object)));
    }
    template <class Handle>
    void remove(Handle handle) {
        objects_.erase(reinterpret_cast<std::uintptr_t>(handle));
    }
    template <class Do>
    void for_each(Do what) {
        for (const auto& [handle, object] : objects_) what(*object);
    }
    template <class Condition>
    void remove_if(Condition condition) {
        std::erase_if(objects_, [&](const auto& each) { return condition(*each.second); });
    }

private:
    std::map<std::uintptr_t, std::unique_ptr<Object>> objects_;
};

/// One of the devices, as many as IKAT_DEVICES says.
struct Gpu {
    Gpu(CUdevice number, const emulator::HostOptions& options, std::uint64_t memory_bytes)
        : ordinal(number), device(options, emulator::Origin::Foreign, memory_bytes) {}

    const CUdevice ordinal;
    emulator::HostDevice device;
    unsigned primary_flags = 0;
    std::uintptr_t default_pool = 0, current_pool = 0;
};

/// The devices and the handles of what is on them. Lives until the process ends.
struct Driver {
    Driver();

    /// CUDA_ERROR_INVALID_DEVICE if there is none.
    Gpu& gpu(CUdevice ordinal) const;
    Gpu& gpu(const Context& context) const { return *gpus[unsigned(context.device)]; }
    Gpu& gpu(emulator::ContextId id) { return gpu(context(id)); }
    // Without the lock:
    /// That of the current context; without one, the first.
    Gpu& current_gpu() const;
    /// Where a stream, an event or memory is; if it is nowhere, or a default stream, the current one.
    emulator::HostDevice& device_of(emulator::StreamId stream) const;
    emulator::HostDevice& device_of(emulator::EventId event) const;
    Gpu& gpu_at(std::uint64_t address) const;
    /// Says of a copy which of its memory is not of the device that does it, which is linked then with where that is.
    void find_places(emulator::HostDevice& on, emulator::work::Copy& copy) const;

    static std::uintptr_t new_handle() { return emulator::HostDevice::new_id(); }
    /// Adds an object and writes its handle.
    template <class Handle, class Object>
    Object& give(Handle* out, Handles<Object>& among, Object object) {
        require(out);
        const std::uintptr_t handle = new_handle();
        *out = reinterpret_cast<Handle>(handle);
        return among.add(handle, std::move(object));
    }
    Context& context(emulator::ContextId id) { return contexts.at(std::uintptr_t(id)); }
    /// Lets kernels of each device reach memory of those that one of its contexts has as peers, or that have a pool
    /// that it may use. Called in when_idle().
    void update_peers();
    /// Ends a context, and the handles of what it owns. Called in when_idle().
    void end(Context& context);
    /// Device memory. CUDA_ERROR_OUT_OF_MEMORY if there is not so much left.
    CUdeviceptr allocate(Context& context, std::size_t bytes);
    /// The same that the host reaches, too, at the same address.
    CUdeviceptr allocate_managed(Context& context, std::size_t bytes);
    void release(CUdeviceptr address);
    /// Removes a module or a library, and the functions in it.
    template <class Handle>
    void unload(Handles<Module>& among, Handle handle) {
        forget_functions(among.at(handle));
        among.remove(handle);
        for (const auto& each : gpus) each->device.unload(emulator::ModuleId(reinterpret_cast<std::uintptr_t>(handle)));
    }
    void forget_functions(const Module& module);
    /// The module on a device: a library is loaded there when it is first needed.
    std::shared_ptr<emulator::LoadedModule> loaded_on(CUdevice device, Module& module);

    std::mutex mutex;
    bool initialised = false;
    const ptx::Target& target;
    const emulator::HostOptions options;
    const runtime::DeviceProperties properties;
    bool blocking_launches = false;
    std::vector<std::unique_ptr<Gpu>> gpus{};  // by ordinal
    struct Pooled {
        std::uintptr_t pool = 0;
        std::uint64_t bytes = 0;
    };
    std::map<CUdeviceptr, Pooled> pooled{};  // memory of pools

    Handles<Context> contexts;
    Handles<Module> modules, libraries;
    Handles<Function> functions;
    Handles<Pool> pools;
    Handles<std::shared_ptr<Link>> links;
};

/// The one driver of the process. Throws Error if the environment asks for something impossible.
Driver& driver();

/// The contexts of this thread; the last is current. Without a destructor: objects that a program destroys at its end
/// still call the driver.
class ContextStack {
public:
    CUcontext current() const { return reinterpret_cast<CUcontext>(size_ ? handles_[size_ - 1] : 0); }
    bool empty() const { return size_ == 0; }
    void push(CUcontext context) {
        if (size_ == handles_.size()) refuse(CUDA_ERROR_INVALID_VALUE, "too many contexts are pushed", "pop some");
        handles_[size_++] = reinterpret_cast<std::uintptr_t>(context);
    }
    void pop() { --size_; }

private:
    std::array<std::uintptr_t, 256> handles_{};
    std::size_t size_ = 0;
};
ContextStack& context_stack();
/// The current context. CUDA_ERROR_INVALID_CONTEXT if there is none, CUDA_ERROR_CONTEXT_IS_DESTROYED if it was
/// destroyed, and the result of a kernel that failed in it.
Context& current_context();
/// Ends with the result that calls in a context have, if that is not CUDA_SUCCESS.
void check_usable(const Context& context);
inline CUcontext current_handle() { return context_stack().current(); }
inline CUcontext handle_of(emulator::ContextId context) { return reinterpret_cast<CUcontext>(context); }

/// The device's name for a stream. Each thread has a default stream in each context, which is made when it is used.
emulator::StreamId id_of(CUstream stream);
/// The stream that programs mean which have a default stream for each thread.
inline CUstream per_thread(CUstream stream) { return stream ? stream : reinterpret_cast<CUstream>(per_thread_stream); }
inline emulator::EventId id_of(CUevent event) { return emulator::EventId(reinterpret_cast<std::uintptr_t>(event)); }
/// What the device knows of a stream: of the legacy one, nothing. CUDA_ERROR_INVALID_HANDLE if there is none.
std::optional<emulator::Stream> stream_at(Driver& its, CUstream stream);
emulator::Event event_at(Driver& its, CUevent event);
/// The context of a stream; of default streams, the current one.
Context& context_of(Driver& its, CUstream stream);

/// Waits for what a stream has been given: functions of the program may not have ended. CUDA_ERROR_NOT_PERMITTED in one
/// of these.
CUresult settle(const char* function, CUstream stream) noexcept;
/// CUDA_ERROR_NOT_PERMITTED in a function of the program that a stream calls.
CUresult permitted(const char* function) noexcept;
/// Waits for all work of the device that has the memory at an address, or of all devices; what went wrong is left to
/// others.
CUresult drained(const char* function, CUdeviceptr address) noexcept;
CUresult drained(const char* function) noexcept;
/// The same for the program, which knows then that this has ended: a stream, the work before an event, or all.
CUresult synchronise(const char* function, CUstream stream) noexcept;
CUresult synchronise(const char* function, CUevent event) noexcept;
CUresult synchronise(const char* function) noexcept;
/// Whether a stream, or the work before an event, is done: CUDA_ERROR_NOT_READY while a function of the program is not.
CUresult query(const char* function, CUstream stream) noexcept;
CUresult query(const char* function, CUevent event) noexcept;

/// A kernel of a library is a function with this handle.
inline CUfunction function_of(CUkernel kernel) { return reinterpret_cast<CUfunction>(kernel); }
/// How many blocks of a function fit. What registers it needs on a device is not known here: they are left out.
unsigned blocks_per_multiprocessor(const ptx::Target& target, std::uint64_t static_shared, unsigned threads,
                                   std::size_t dynamic_shared);
/// Where the parameters of an entry are in one buffer: each aligned as in the constant bank of the device.
std::vector<std::size_t> offsets_on(const ptx::Target& target,
                                    std::span<const emulator::Program::Parameter> parameters);

/// Says on standard error what a call was refused for.
void complain(const char* function, const std::string& reason, const std::string& hint);
/// The same for an Error of ikat, in all its lines.
CUresult report(const char* function, const Error& error);

/// Runs an API call, or a part of one, with every exception turned into a result.
template <class Body>
CUresult translated(const char* function, Body body) noexcept {
    try {
        body();
        return CUDA_SUCCESS;
    } catch (const Refusal& refusal) {
        if (!refusal.reason.empty()) complain(function, refusal.reason, refusal.hint);
        return refusal.result;
    } catch (const Error& error) { return report(function, error); } catch (const std::bad_alloc&) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    } catch (const std::exception& error) {
        complain(function, error.what(), {});
        return CUDA_ERROR_UNKNOWN;
    }
}

/// The same under the lock.
template <class Body>
CUresult guarded(const char* function, Body body) noexcept {
    return translated(function, [&] {
        const std::lock_guard lock(driver().mutex);
        body();
    });
}

/// The same after cuInit.
template <class Body>
CUresult initialised(const char* function, Body body) noexcept {
    return guarded(function, [&] {
        if (!driver().initialised) refuse(CUDA_ERROR_NOT_INITIALIZED);
        body(driver());
    });
}

/// The same in the current context.
template <class Body>
CUresult in_context(const char* function, Body body) noexcept {
    return initialised(function, [&](Driver& its) { body(its, current_context()); });
}

/// What a call is on a stream that is captured.
enum class InCapture : std::uint8_t { IsForbidden, IsANode };
/// Refuses a call that a capture forbids.
void check_capture(Driver& its, const Context& context, CUstream stream, InCapture what);
/// A call on a stream was refused: if the stream is captured, the capture is invalid.
void note_refusal(CUstream stream) noexcept;

/// The same for work on a stream of the current context, when it has done what it was given before: the device waits
/// for functions of the program, and these for the lock.
template <class Body>
CUresult on_stream(const char* function, CUstream stream, Body body,
                   InCapture in_capture = InCapture::IsForbidden) noexcept {
    for (;;) {
        if (const CUresult result = settle(function, stream); result != CUDA_SUCCESS) return result;
        bool is_idle = true;
        const CUresult result = in_context(function, [&](Driver& its, Context& context) {
            if (&context_of(its, stream) != &context) refuse(CUDA_ERROR_INVALID_HANDLE);
            check_capture(its, context, stream, in_capture);
            is_idle = its.device_of(id_of(stream)).is_idle(id_of(stream));
            if (is_idle) body(its, context);
        });
        if (result != CUDA_SUCCESS) note_refusal(stream);
        if (is_idle) return result;
    }
}

/// The same for a call that changes what work uses, when no device has any: functions of the program wait for the lock.
template <class Body>
CUresult when_idle(const char* function, Body body) noexcept {
    if (const CUresult result = permitted(function); result != CUDA_SUCCESS) return result;
    for (;;) {
        bool is_idle = true;
        const CUresult result = initialised(function, [&](Driver& its) {
            for (const auto& each : its.gpus) is_idle = is_idle && each->device.is_idle();
            if (is_idle) body(its);
        });
        if (is_idle) return result;
        if (const CUresult waiting = drained(function); waiting != CUDA_SUCCESS) return waiting;
    }
}

/// A product or sum of sizes. CUDA_ERROR_INVALID_VALUE if it is more than a size can be.
inline std::size_t product(std::size_t a, std::size_t b) {
    std::size_t out = 0;
    require(!__builtin_mul_overflow(a, b, &out));
    return out;
}
inline std::size_t sum(std::size_t a, std::size_t b) {
    std::size_t out = 0;
    require(!__builtin_add_overflow(a, b, &out));
    return out;
}

}  // namespace ikat::cuda_driver

/// Defines an exported function of the API. `ALIAS` gives it a second symbol.
#define API(symbol, ...) extern "C" __attribute__((visibility("default"))) CUresult symbol(__VA_ARGS__)
#define ALIAS(symbol, of) extern "C" __attribute__((visibility("default"), alias(#of))) decltype(of) symbol
