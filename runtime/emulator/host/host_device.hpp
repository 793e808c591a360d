// SPDX-License-Identifier: Apache-2.0
// A device as the host has it: contexts, and what is theirs: memory, modules, streams, events; and the work that
// streams are given. Under the runtime's Backend and under the stand-in for the CUDA driver.
//
//     HostDevice device(options, Origin::Own);
//     const ContextId context = device.create_context();
//     const StreamId stream = device.create_stream(context);
//     device.run(stream, work::Launch(device.load(context, text), context, {.entry = "k"}));
//
// Work that is enqueued is done later, one piece at a time, in the order that WorkQueue::next() chooses: when the
// program waits or asks, when much is waiting, and when the program has done nothing with the device for a while. So
// what the order is depends on the seed and on the program's calls. All functions may be called from several threads.
// Devices that have to do with each other (linked_devices.hpp) take turns: whoever waits for one does work of all.
#pragma once
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "runtime/emulator/host/host_options.hpp"
#include "runtime/emulator/host/linked_devices.hpp"
#include "runtime/emulator/host/loaded_module.hpp"
#include "runtime/emulator/host/owned_memory.hpp"
#include "runtime/emulator/host/stream_races.hpp"
#include "runtime/emulator/host/work_queue.hpp"
#include "runtime/emulator/tools/grids/grids.hpp"
#include "runtime/emulator/tools/touched/touched.hpp"

namespace ikat::emulator {

struct Stream {
    ContextId context{};
    bool waits_for_default = true;
    int priority = 0;
    unsigned number = 0;  // among the streams of the device, from 1 on; create_stream() gives it
};

struct Event {
    ContextId context{};
    bool is_timed = true;
    std::optional<std::chrono::steady_clock::time_point> time{};  // of its last recording
    StreamId stream{};                                            // that was given the last recording
};

class HostDevice {
public:
    /// `origin` decides what a copy to the host of unwritten bytes is.
    HostDevice(HostOptions options, Origin origin, std::uint64_t memory_bytes = ~std::uint64_t{0});
    /// Ends when all work is done; says what went wrong if nobody has waited for it.
    ~HostDevice();

    OwnedMemory& memory() { return memory_; }

    /// A number for something new; none is given twice in the process, nor one below 65536.
    static std::uint64_t new_id();

    /// From here on their work is compared, and waiting for one of them does work of both.
    void link(HostDevice& other);
    /// Whether kernels of this device reach memory of the other one. Changing it waits for the work of this device.
    void set_peer_access(HostDevice& other, bool is_enabled);
    bool has_peer_access(const HostDevice& other) const { return memory_.space().sees(other.memory_.space()); }
    /// What becomes true when the last recording of an event is done, for a Wait on another device; null if it is.
    std::shared_ptr<const std::atomic<bool>> done(EventId event);

    /// A context that lives until end().
    ContextId create_context();
    /// The context that its users share: it begins with the first of them and ends with the last. False if there is no
    /// user to leave it.
    ContextId primary() const { return primary_; }
    void retain_primary();
    bool release_primary();
    unsigned primary_users() const;
    /// Ends a context, however many use it: all that it has is freed.
    void end(ContextId context);
    bool is_alive(ContextId context) const;
    /// How much the malloc of kernels has.
    void set_heap_bytes(ContextId context, std::size_t bytes);

    ModuleId load(std::optional<ContextId> context, ModuleText text);
    /// nullptr if it has been unloaded. Work keeps the modules that it needs.
    std::shared_ptr<LoadedModule> find(ModuleId module) const;
    void unload(ModuleId module);

    StreamId create_stream(Stream stream);
    std::optional<Stream> find(StreamId stream) const;
    /// False if there is none. What it was given will be done.
    bool destroy(StreamId stream);

    EventId create_event(Event event);
    std::optional<Event> find(EventId event) const;
    bool destroy(EventId event);

    /// Puts work after what the stream has. What goes wrong is thrown by the next finish(). A call of the host may only
    /// enqueue calls and Free.
    void enqueue(StreamId stream, Work work);
    /// The same, does it, and throws what goes wrong: KernelFailure if it is the kernel's fault. The program knows that
    /// it is done, unless it `goes_on` as if it were not.
    void run(StreamId stream, Work work, bool goes_on = false);
    /// Waits for the work of a stream, or of all, or before an event, and throws what went wrong there.
    void finish(StreamId stream);
    void finish(EventId event);
    void finish();
    /// The same for all, and what went wrong is left to the next finish(); for a stream, and what new work on it would
    /// wait for, and the program goes on as if it had not waited.
    void drain();
    void settle(StreamId stream);
    /// Does a piece of work if there is any, and tells whether that before the event is done, or that of a stream; of
    /// the default one, all.
    bool query(EventId event);
    bool query(StreamId stream);
    /// The program has waited for a stream, or for all, as a device does: no work after this overlaps what was before.
    void end_grids(std::optional<StreamId> stream = {});
    /// How many entries its lists have: what the program has made, and what is known of work.
    struct Entries {
        std::size_t objects = 0;  // modules, streams and events
        std::size_t work = 0;     // that is not done
        std::size_t known = 0;    // of its order
        std::size_t ranges = 0;   // of bytes that it has touched
        std::size_t streams = 0;  // that launches of or failures are remembered of
    };
    Entries entries() const;
    /// Whether new work on a stream could begin at once; whether there is no work.
    bool is_idle(StreamId stream) const;
    bool is_idle() const;
    /// The program is about to enqueue something: no thread goes on with work by itself.
    void begin_call() noexcept { ++calls_; }
    void end_call() noexcept { --calls_; }
    /// Whether this thread is the one that calls the program: it must not wait for work.
    bool is_host_call() const;

private:
    struct Context {
        bool is_alive = false;
        unsigned users = 0;  // of the primary one
        std::size_t heap_bytes = 0;
    };
    struct Awaited {
        std::uint64_t number;
        std::exception_ptr failure;
    };
    using Lock = std::unique_lock<std::mutex>;

    void begin(Context& context);
    template <class Id, class Object>
    static std::optional<Object> copy_of(const std::map<Id, Object>& objects, Id id);
    void forget_failures(StreamId stream);
    void forget_grids_of_ended(StreamId stream);
    bool waits_for_default(StreamId stream) const;

    const Piece& add(StreamId stream, Work work);
    /// Does a piece of work; false if none can begin.
    bool work_once(Lock& lock);
    /// The same of this device or one that it is linked with, whose turn it is; the lock is given away meanwhile.
    bool work_anywhere(Lock& lock);
    std::optional<std::uint64_t> next_number() const;
    bool step();
    void unlink();
    /// Does work until the condition holds.
    template <class Condition>
    void work_until(Lock& lock, Condition is_met);
    void await_host_calls(Lock& lock);
    /// What became of work.
    struct Done {
        std::exception_ptr failure{};
        std::vector<TouchedBytes> touched{};  // if it is compared
        Statistics statistics{};              // of a launch
        std::uint32_t condition = 0;          // that a conditional node has read
    };
    void perform(Lock& lock, Piece& piece);
    /// These are called with the lock, and return without.
    Done perform_alone(Lock& lock, const Piece& piece, GridsInFlight* grids);
    Done perform_graph(Lock& lock, const Piece& piece);
    Done do_work(const Work& work, GridsInFlight* grids, bool is_compared);
    class Replay;
    void tell(std::optional<Diagnostic> race, std::exception_ptr& failure) const;
    static void add_note(std::exception_ptr& failure, Diagnostic::Note note);
    void serve_host_calls();
    void go_on_when_idle();
    void forbid_in_host_call() const;
    /// Throws what went wrong on these streams, and forgets it.
    void throw_failures(std::optional<StreamId> stream);

    /// Whether what a piece touches is compared with what others do.
    bool is_compared(const Piece& piece) const;
    std::vector<TouchedBytes> touched_by(const Work& work, TouchedMemory& memory) const;
    void add_by_buffer(TouchedMemory& memory, std::vector<TouchedBytes>& out) const;
    /// The race that a piece of work has with others.
    std::optional<Diagnostic> compare(const Piece& piece, const std::shared_ptr<const Deed>& deed,
                                      std::vector<TouchedBytes> touched);
    /// A finding of a race. `at` says where a piece of work is; the devices differ, or are one.
    using PlaceOfSide = std::string (*)(const StreamRaces::Race::Side& side, bool devices_differ);
    std::optional<Diagnostic> finding(const StreamRaces::Race& race, PlaceOfSide at) const;
    std::optional<Diagnostic> finding(FaultCode code, std::string_view about, Diagnostic what) const;
    /// ... or that what it copies from the host has changed.
    std::optional<Diagnostic> check_host_memory(const Work& work, std::optional<std::uint64_t> checksum,
                                                unsigned stream) const;
    /// The program has waited. If no work is left, what it knows is compared with nothing any more.
    void note_wait();
    void note_wait(StreamId stream);
    void note_wait(EventId event);

    /// The grids that a launch may overlap, by its stream. Other work waits for them, except what is about events.
    std::shared_ptr<GridsInFlight> grids_before(const Piece& piece);
    Statistics perform(const work::Launch& launch, GridsInFlight& grids, TouchedMemory* touched);
    void perform(const work::SetVariable& change);
    void perform(const work::Copy& copy);
    void perform(const work::Fill& fill);
    void perform(const work::Allocate& allocate) { memory_.begin(allocate.address); }
    void perform(const work::Free& free) { memory_.release(free.address); }
    void perform(const work::Record& record);
    void perform(const work::Wait&) {}
    void perform(const work::HostCall& call) { call.function(); }
    void perform(const work::Renew& memory);
    /// Its condition. Throws KernelFailure if nothing has set that.
    std::uint32_t perform(const work::Conditional& node);
    void copy_row(const work::Copy& copy, work::Place to, work::Place from);

    /// Tells the trace, if there is one, what the program does until the end of the object.
    class Waiting;

    OwnedMemory memory_;  // outlives the programs
    const HostOptions options_;
    const std::shared_ptr<const std::string> shared_name_ = std::make_shared<const std::string>(options_.name);
    const Origin origin_;
    unsigned last_stream_ = 0;
    std::map<ContextId, Context> contexts_;
    ContextId primary_{};
    std::map<ModuleId, std::shared_ptr<LoadedModule>> modules_;
    std::map<StreamId, Stream> streams_;
    std::map<EventId, Event> events_;
    mutable std::mutex objects_mutex_;  // locked for those above

    SharedOrder& shared_ = shared_order();
    const unsigned number_ = shared_.add_device();
    const std::shared_ptr<LinkedDevice> self_ = std::make_shared<LinkedDevice>(*this);
    std::atomic<bool> is_linked_ = false;
    WorkQueue queue_{number_, shared_.numbers};
    WorkOrder order_;
    const Action about_races_;
    const unsigned traced_as_;  // the number of the device in the trace
    bool is_busy_ = false, is_ending_ = false;
    std::chrono::steady_clock::time_point last_call_{};
    std::uint64_t waited_for_ = 0;  // the number of a host call that takes long: nobody waits for it again
    std::uint64_t bytes_to_free_ = 0;
    std::size_t host_writers_ = 0;  // pieces that may write memory of the host
    std::vector<Awaited> awaited_;  // pieces that run() waits for
    std::map<StreamId, std::shared_ptr<GridsInFlight>> grids_;
    std::map<StreamId, std::exception_ptr> failures_;  // the first of each stream that nobody was told of
    mutable std::mutex work_mutex_;                    // locked for these
    std::condition_variable changed_, first_added_;
    std::thread host_calls_, idle_;
    std::atomic<int> calls_ = 0;  // that the program is in
};

}  // namespace ikat::emulator
