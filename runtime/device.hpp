// SPDX-License-Identifier: Apache-2.0
// A device that runs kernels: a GPU through the CUDA driver, or the CPU emulator. The choice only affects a program's
// speed and the checks.
//
//     Device device = Device::open();
//     Buffer<float> x = device.upload(host_x), y = device.upload(host_y);
//     device.launch(saxpy, grid(n, 256), 2.0f, x, y, n);
//     host_y = device.download(y);
// The arguments of a launch are checked: number and types by the C++ compiler, contracts and overlap when it is called.
// A kernel that fails while it runs is a KernelError; all other mistakes are an Error.
#pragma once
#include <cstdint>
#include <source_location>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/backend.hpp"
#include "runtime/buffer.hpp"
#include "runtime/facts/coverage.hpp"
#include "runtime/facts/traffic.hpp"
#include "runtime/host_buffer.hpp"
#include "runtime/pool/pool.hpp"
#include "runtime/queue.hpp"

namespace ikat {
struct CompileOptions;
}

namespace ikat::emulator {
struct SharedSuppressions;
}

namespace ikat::stdlib {
class Async;
}

namespace ikat::runtime {

class Graph;
struct DeviceState;

/// How a device is opened; what is left out is chosen, or comes from the environment (docs/cli.md).
struct OpenOptions {
    // "cuda", "emulator", or with a number as "cuda:1"; empty: IKAT_DEVICE, else CUDA if there is one, else emulator.
    std::string_view device{};
    int ordinal = 0;            // which device of its kind, from 0; emulated ones are as many as IKAT_DEVICES says
    std::string_view target{};  // compile for this target instead of the device's own
    // Of the emulator only what it is: for launches that a Recorder keeps from running, of arrays of any size.
    bool is_plan = false;
    // Where the memory of queues comes from: "own", "driver" or "off"; empty: IKAT_POOL, else own (docs/memory.md).
    std::string_view pool{};
    // For the emulator:
    std::uint32_t threads = 0;  // host threads; 0: IKAT_THREADS, else one per core
    std::uint64_t step_budget =
        0;  // instructions of a warp between two of its barriers; 0: 10^9. More count as endless
    std::uint64_t launch_budget = 0;  // instructions of all warps of a launch; 0: no limit
    // Rounds of all loops of a graph's launch (graph/conditions.hpp); 0: IKAT_GRAPH_ROUNDS, else 100 000.
    std::uint64_t graph_rounds = 0;
    // The order in which warps run: "0" round-robin, "7" by a seed, "7,lanes" also for diverged lanes of a warp,
    // "random" by a random seed that is printed; empty: IKAT_SCHEDULE, else by the launch's number in the process.
    // Kernels of this program also have dynamic shared memory moved on by its alignment, and any lane elected; PTX text
    // has that with "7,moved-shared,any-leader". docs/emulator.md has all words, "7,priorities,late".
    std::string_view schedule{};
    // The severity of findings by class: "registers,bounds=warning,no-heap"; empty: IKAT_CHECK. docs/emulator.md lists
    // the classes; `ikat run --list-checks` prints them. "strict" treats PTX text as kernels of this program.
    std::string_view check{};
    // A file of findings that are known and stay (docs/emulator.md); empty: IKAT_SUPPRESS.
    std::string_view suppressions{};
    // In how many orders each launch runs, on the memory that it finds; 0: IKAT_SCHEDULES, else 1. The results of the
    // first count; a finding in any is an error.
    std::uint32_t schedules = 0;
    // What is found and does not end a launch is appended here, besides being noted (notes.hpp).
    std::vector<Diagnostic>* warnings = nullptr;
    std::string* printed = nullptr;  // output of kernels is appended here instead of going to stdout
    std::vector<emulator::LaunchTraffic>* traffic = nullptr;  // the traffic of each launch is appended here
    std::vector<emulator::Coverage>* coverage = nullptr;      // what has been checked in each launch
    // Those of the file, to ask which have been used.
    emulator::SharedSuppressions* suppressed = nullptr;
};

/// A GPU or the emulator, opened. Launches and copies wait for their end, and throw Error, or KernelError for what a
/// kernel did wrong.
class Device : public Launcher<Device> {
public:
    /// Throws Error if the requested device is not available.
    static Device open(const OpenOptions& options = {},
                       const Location& where = Location::of(std::source_location::current()));

    /// How many devices of a kind there are: "cuda", of which there is none without a driver, or "emulator", of which
    /// there are as many as IKAT_DEVICES says, else one; empty: of the kind that open() takes. Makes no context. Throws
    /// Error for another name.
    static std::uint32_t count(std::string_view device = {});
    static bool is_available(std::string_view device = {}) { return count(device) > 0; }

    const DeviceProperties& properties() const { return backend().properties(); }

    /// How kernels are compiled when they are first launched. Change it before any launch: it is not synchronized with
    /// launches of other threads.
    const CompileOptions& compile_options() const;
    void set_compile_options(const CompileOptions& options);

    /// `size` uninitialised elements. The name is for messages.
    template <Element T>
    Buffer<T> buffer(std::size_t size, std::string_view name = {}) const {
        return Buffer<T>(allocate(size, sizeof(T), name));
    }
    /// A buffer with the contents of a vector, an array or a span.
    template <class R>
    requires requires(const R& host) { std::data(host) + std::size(host); }
    auto upload(const R& host, std::string_view name = {}) const {
        using T = std::remove_cvref_t<decltype(*std::data(host))>;
        static_assert(
            Element<T>,
            "device memory holds floats, from ikat::e4m3 to double, integers of fixed size, and structs of these");
        if constexpr (Element<T>) {
            Buffer<T> out = buffer<T>(std::size(host), name);
            out.upload(std::span<const T>(std::data(host), std::size(host)));
            return out;
        }
    }
    template <Element T>
    std::vector<T> download(const Buffer<T>& buffer) const {
        return buffer.download();
    }

    /// The memory that queues allocate from: what is in use, limits, what happens when there is none left.
    Pool pool() const;

    /// Page-locked memory of the host for `size` elements, which begin as zeros. The name is for
    /// messages.
    template <Element T>
    HostBuffer<T> host_buffer(std::size_t size, std::string_view name = {}) const {
        return HostBuffer<T>(allocate_host(size, sizeof(T), name));
    }

    /// The lower the priority, the sooner its work begins when several streams have some, as a hint. Priorities go from
    /// 0 down to the device's greatest; others count as the nearest.
    Stream stream(int priority = 0) const;
    Event record() const { return Queue(*this).record(); }
    /// The library's functions as members that return at once: `async().sum(x)` is a Future (<ikat/batch.hpp>).
    template <class A = stdlib::Async>
    A async() const {
        return A(*this);
    }

    /// Whether kernels of this device can be given access to memory of the other one: of two GPUs their driver says it,
    /// of two emulated devices they can.
    bool can_access_peer(const Device& other) const;
    /// From here on kernels of this device, also of work that is waiting, read and write memory of the other one as
    /// their own. Nothing changes if they do already. Throws Error if they cannot, or if it is the same device.
    void enable_peer_access(const Device& other,
                            const std::source_location& where = std::source_location::current()) const;
    /// Ends that, for work that begins later. Nothing changes if they have no access.
    void disable_peer_access(const Device& other,
                             const std::source_location& where = std::source_location::current()) const;
    bool has_peer_access(const Device& other) const;

    /// Waits for all work of the device; throws its errors.
    void synchronize(const std::source_location& where = std::source_location::current()) const;

    /// Loads foreign PTX text. `name` is its file in messages. Throws Error for PTX that the device's assembler would
    /// reject; the emulator checks names, types, features and sizes, unless `check` is false.
    Module load(std::string_view ptx, std::string_view name, bool check = true) const;
    /// Writes a .global or .const variable of loaded PTX, all of its bytes.
    void set_variable(const Module& module, std::string_view name, std::span<const std::byte> contents) const;

    Backend& backend() const;
    /// Where work for this device goes.
    const Reference<Sink>& sink() const;

private:
    friend class Stream;
    explicit Device(Reference<DeviceState> state);
    /// Throws if the device was moved from.
    DeviceState& state() const;
    Allocation allocate(std::size_t count, std::size_t element_bytes, std::string_view name) const;
    Reference<const HostMemory> allocate_host(std::size_t count, std::size_t element_bytes,
                                              std::string_view name) const;

    Reference<Sink> state_;
};

/// Work that is executed in order while the host continues. Errors of a kernel are thrown by synchronize() at the
/// latest.
class Stream : public Launcher<Stream> {
public:
    Event record() const { return Queue(*this).record(); }
    /// What follows on the stream waits for the event's last point, of this stream or another.
    void wait(const Event& event, const std::source_location& where = std::source_location::current()) const {
        Queue(*this, where).wait(event);
    }
    void synchronize(const std::source_location& where = std::source_location::current()) const;
    /// Whether its work is done; throws its errors if it is.
    bool query(const std::source_location& where = std::source_location::current()) const;

    /// What f() gives this stream, and others that wait for events of it, as a graph; nothing of it runs
    /// (runtime/graph/graph.hpp). Throws Error for what cannot be part of a graph, and if another stream is not joined.
    template <std::invocable F, class G = Graph>
    G capture(F f, const std::source_location& where = std::source_location::current()) const {
        return G::capture(*this, std::move(f), where);
    }

private:
    friend class Device;
    friend class Graph;
    friend class Queue;
    Stream(Device device, int priority);
    Sink& sink() const;

    Device device_;
    Reference<Sink> state_;
};

/// Whether there probably is a GPU: there is a device node of NVIDIA's driver or of WSL, or IKAT_CUDA_DRIVER names a
/// driver, and CUDA_VISIBLE_DEVICES does not hide all. Loads no driver; Device::count() asks it.
bool cuda_likely_available();

/// One line of `ikat devices`: a device that can be opened, or why it cannot.
struct DeviceReport {
    std::string selector;         // "cuda:0"; "emulator", or "emulator:0" if there are several
    DeviceProperties properties;  // when problem is empty
    std::string problem;
};
std::vector<DeviceReport> list_devices();

}  // namespace ikat::runtime
