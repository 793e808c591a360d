// SPDX-License-Identifier: Apache-2.0
// How the work of a device is done.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "runtime/emulator/host/graphs/work_graph.hpp"
#include "runtime/emulator/host/host_device.hpp"
#include "runtime/emulator/host/trace.hpp"

namespace ikat::emulator {

class HostDevice::Waiting {
public:
    Waiting(const HostDevice& device, std::string_view what) : device_(device), what_(what) {}
    ~Waiting() {
        if (device_.options_.trace) device_.options_.trace->waited(device_.traced_as_, what_, begin_);
    }
    Waiting(const Waiting&) = delete;
    Waiting& operator=(const Waiting&) = delete;

private:
    const HostDevice& device_;
    const std::string what_;
    const Trace::Time begin_ = Trace::now();
};

void HostDevice::forbid_in_host_call() const {
    if (is_host_call())
        throw Error("a function that a stream calls waits for the device", "it must not use the device");
}

bool HostDevice::is_host_call() const {
    const std::lock_guard lock(work_mutex_);
    return std::this_thread::get_id() == host_calls_.get_id();
}

/// What a program may leave for later, at most: pieces, and bytes that some of them free.
static constexpr std::size_t max_pending = 1024;
static constexpr std::uint64_t max_bytes_to_free = std::uint64_t{256} << 20;

const Piece& HostDevice::add(StreamId stream, Work work) {
    const Trace::Time begin = Trace::now();
    bool waits_for_default = true;
    unsigned number = 0;
    {
        const std::lock_guard lock(objects_mutex_);
        if (const auto found = streams_.find(stream); found != streams_.end())
            waits_for_default = found->second.waits_for_default, number = found->second.number;
        if (const auto* const record = std::get_if<work::Record>(&work))
            if (const auto event = events_.find(record->event); event != events_.end()) event->second.stream = stream;
    }
    if (const auto* const free = std::get_if<work::Free>(&work)) bytes_to_free_ += free->bytes;
    Piece& added = queue_.add(stream, std::move(work), waits_for_default);
    added.stream_number = number;
    {
        const std::lock_guard lock(shared_.mutex);
        const std::uint64_t forgotten = shared_.known.forgotten();
        added.known = shared_.known.add(added, waits_for_default);
        if (shared_.known.forgotten() != forgotten) shared_.races.forget(shared_.known.program());
        ++shared_.pending;
    }
    if (about_races_ != Action::Off && host_writers_ == 0) {
        added.checksum = checksum_of(added.work);
        if (auto* const graph = std::get_if<work::Graph>(&added.work)) graph->checksums = checksums_of(*graph->graph);
    }
    host_writers_ += may_write_host(added.work);
    last_call_ = begin;
    if (options_.trace) options_.trace->enqueued(traced_as_, added, begin);
    if (worker_of(added.work) == Worker::Host) {
        if (!host_calls_.joinable()) host_calls_ = std::thread([this] { serve_host_calls(); });
        changed_.notify_all();
    }
    return added;
}

void HostDevice::enqueue(StreamId stream, Work work) {
    const bool may_be_of_call = worker_of(work) == Worker::Host || std::holds_alternative<work::Free>(work);
    const bool is_of_call = is_host_call();
    if (is_of_call && !may_be_of_call) forbid_in_host_call();
    Lock lock(work_mutex_);
    add(stream, std::move(work));
    if (!idle_.joinable()) idle_ = std::thread([this] { go_on_when_idle(); });
    if (queue_.size() == 1) first_added_.notify_one();
    if (is_of_call || (queue_.size() < max_pending && bytes_to_free_ < max_bytes_to_free)) return;
    do await_host_calls(lock);
    while (work_once(lock));
    last_call_ = std::chrono::steady_clock::now();
}

void HostDevice::run(StreamId stream, Work work, bool goes_on) {
    forbid_in_host_call();
    Lock lock(work_mutex_);
    const std::uint64_t number = add(stream, std::move(work)).number;
    awaited_.push_back({number, nullptr});
    work_until(lock, [&] { return !queue_.has(stream, number); });
    const auto its = std::ranges::find(awaited_, number, &Awaited::number);
    const std::exception_ptr what = std::move(its->failure);
    awaited_.erase(its);
    if (!goes_on) note_wait(stream);
    if (what) std::rethrow_exception(what);
}

void HostDevice::finish(StreamId stream) {
    forbid_in_host_call();
    const Waiting waiting(*this, "a stream");
    Lock lock(work_mutex_);
    work_until(lock, [&] { return !queue_.has(stream); });
    note_wait(stream);
    throw_failures(stream);
}

void HostDevice::finish(EventId event) {
    forbid_in_host_call();
    const Waiting waiting(*this, "an event");
    const std::optional<Event> its = find(event);
    Lock lock(work_mutex_);
    work_until(lock, [&] { return !queue_.has(event); });
    note_wait(event);
    if (its) throw_failures(its->stream);
}

void HostDevice::finish() {
    forbid_in_host_call();
    const Waiting waiting(*this, "the device");
    Lock lock(work_mutex_);
    work_until(lock, [&] { return queue_.empty(); });
    note_wait();
    throw_failures({});
}

void HostDevice::settle(StreamId stream) {
    forbid_in_host_call();
    Lock lock(work_mutex_);
    work_until(lock, [&] { return queue_.is_free(stream, waits_for_default(stream)); });
    throw_failures(stream);
}

void HostDevice::drain() {
    if (is_host_call()) return;
    const Waiting waiting(*this, "the device");
    Lock lock(work_mutex_);
    work_until(lock, [&] { return queue_.empty(); });
    note_wait();
}

bool HostDevice::query(EventId event) {
    forbid_in_host_call();
    Lock lock(work_mutex_);
    await_host_calls(lock);
    if (queue_.has(event)) work_anywhere(lock);
    last_call_ = std::chrono::steady_clock::now();
    if (queue_.has(event)) return false;
    note_wait(event);
    const std::optional<Event> its = find(event);
    if (its) throw_failures(its->stream);
    return true;
}

bool HostDevice::query(StreamId stream) {
    forbid_in_host_call();
    Lock lock(work_mutex_);
    await_host_calls(lock);
    const auto has_work = [&] { return stream == default_stream ? !queue_.empty() : queue_.has(stream); };
    if (has_work()) work_anywhere(lock);
    last_call_ = std::chrono::steady_clock::now();
    if (has_work()) return false;
    stream == default_stream ? note_wait() : note_wait(stream);
    throw_failures(stream == default_stream ? std::nullopt : std::optional(stream));
    return true;
}

/// What kernels did wrong is said together; what the program's own functions threw comes alone, one after the other.
void HostDevice::throw_failures(std::optional<StreamId> stream) {
    std::vector<Diagnostic> all;
    std::exception_ptr other;
    for (auto it = failures_.begin(); it != failures_.end();) {
        const auto its = it++;
        if (stream && its->first != *stream) continue;
        try {
            std::rethrow_exception(its->second);
        } catch (const KernelFailure& failure) {
            all.insert(all.end(), failure.diagnostics().begin(), failure.diagnostics().end());
            failures_.erase(its);
        } catch (...) { other = its->second; }
    }
    if (!all.empty()) throw KernelFailure(std::move(all));
    if (!other) return;
    std::erase_if(failures_, [&](const auto& each) { return each.second == other; });
    std::rethrow_exception(other);
}

void HostDevice::end_grids(std::optional<StreamId> stream) {
    const std::lock_guard lock(work_mutex_);
    std::erase_if(grids_, [&](const auto& each) { return !stream || each.first == *stream; });
    stream ? note_wait(*stream) : note_wait();
}

/// No launch follows on a stream that has ended, when its work is done. Called with the lock.
void HostDevice::forget_grids_of_ended(StreamId stream) {
    if (stream != default_stream && !queue_.has(stream) && !find(stream)) grids_.erase(stream);
}

bool HostDevice::waits_for_default(StreamId stream) const {
    const std::lock_guard lock(objects_mutex_);
    const auto found = streams_.find(stream);
    return found == streams_.end() || found->second.waits_for_default;
}

bool HostDevice::is_idle(StreamId stream) const {
    const std::lock_guard lock(work_mutex_);
    return queue_.is_free(stream, waits_for_default(stream));
}

bool HostDevice::is_idle() const {
    const std::lock_guard lock(work_mutex_);
    return queue_.empty() && !is_busy_;
}

/// How long a call of the host is waited for that may decide which piece is next.
static constexpr std::chrono::milliseconds patience{20};

/// Whether a call of the host has ended may decide which piece is next, so that a program repeats itself only if such a
/// call is waited for: not for long, since it may itself wait for the program.
void HostDevice::await_host_calls(Lock& lock) {
    const auto is_waited_for = [&] {
        const Piece* const call = queue_.first(Worker::Host);
        return call && call->number != waited_for_;
    };
    if (!is_waited_for()) return;
    const auto end = std::chrono::steady_clock::now() + patience;
    if (!changed_.wait_until(lock, end, [&] { return !is_waited_for(); }))
        if (const Piece* const call = queue_.first(Worker::Host)) waited_for_ = call->number;
}

bool HostDevice::work_once(Lock& lock) {
    Piece* const piece = is_busy_ ? nullptr : queue_.next(Worker::Device, order_);
    if (!piece) return false;
    is_busy_ = true;
    perform(lock, *piece);
    is_busy_ = false;
    return true;
}

template <class Condition>
void HostDevice::work_until(Lock& lock, Condition is_met) {
    for (;;) {
        await_host_calls(lock);
        if (is_met()) break;
        if (work_anywhere(lock)) continue;
        if (is_linked_)  // what it waits for may be another device's
            changed_.wait_for(lock, std::chrono::milliseconds(1));
        else
            changed_.wait(lock);
    }
    last_call_ = std::chrono::steady_clock::now();
}

/// For a program that waits by looking at memory.
void HostDevice::go_on_when_idle() {
    Lock lock(work_mutex_);
    while (!is_ending_) {
        const auto due = last_call_ + options_.idle;
        if (queue_.empty())
            first_added_.wait(lock);
        else if (const auto now = std::chrono::steady_clock::now(); now < due)
            first_added_.wait_until(lock, due);
        else if (calls_ > 0)
            first_added_.wait_until(lock, now + options_.idle);
        else if (!work_once(lock))
            changed_.wait_for(lock, options_.idle);
    }
}

void HostDevice::serve_host_calls() {
    Lock lock(work_mutex_);
    for (;;) {
        WorkOrder as_enqueued;
        if (Piece* const piece = queue_.next(Worker::Host, as_enqueued))
            perform(lock, *piece);
        else if (is_ending_)
            return;
        else
            changed_.wait(lock);
    }
}

void HostDevice::perform(Lock& lock, Piece& piece) {
    piece.is_running = true;
    const std::shared_ptr<GridsInFlight> grids = grids_before(piece);
    auto* const graph = std::get_if<work::Graph>(&piece.work);
    const bool may_write = may_write_host(piece.work);
    const Trace::Time begin = Trace::now();
    Done done = graph ? perform_graph(lock, piece) : perform_alone(lock, piece, grids.get());
    if (options_.trace)
        options_.trace->done(traced_as_, piece, begin, done.statistics.global_bytes_read,
                             done.statistics.global_bytes_written);
    if (auto* const call = std::get_if<work::HostCall>(&piece.work)) call->function = {};  // what it holds may end work
    lock.lock();
    if (graph && graph->graph->calls_program) {  // so may what that holds
        auto nothing = std::make_shared<WorkGraph>();
        nothing->calls_program = true;  // it is still this thread's
        const auto held = std::exchange(graph->graph, std::move(nothing));
        lock.unlock();
    }
    if (!lock) lock.lock();
    const std::exception_ptr failure = std::move(done.failure);
    if (const auto awaited = std::ranges::find(awaited_, piece.number, &Awaited::number); awaited != awaited_.end())
        awaited->failure = failure;
    else if (failure)
        failures_.try_emplace(piece.stream, failure);
    if (const auto* const free = std::get_if<work::Free>(&piece.work)) bytes_to_free_ -= free->bytes;
    host_writers_ -= may_write;
    const StreamId stream = piece.stream;
    queue_.remove(piece);
    forget_grids_of_ended(stream);
    {
        const std::lock_guard shared(shared_.mutex);
        --shared_.pending;
    }
    changed_.notify_all();
}

HostDevice::Done HostDevice::perform_alone(Lock& lock, const Piece& piece, GridsInFlight* grids) {
    const bool is_compared = this->is_compared(piece);
    lock.unlock();
    std::optional<Diagnostic> race = check_host_memory(piece.work, piece.checksum, piece.stream_number);
    Done done = do_work(piece.work, grids, is_compared);
    if (const auto* const launch = std::get_if<work::Launch>(&piece.work);
        launch && done.failure && piece.stream_number != 0 && launch->where.known())
        add_note(done.failure, {launch->where, fmt::format("launched here, on stream {}", piece.stream_number)});
    lock.lock();
    if (!done.touched.empty())
        if (auto found = compare(piece, std::make_shared<const Deed>(deed_of(piece.work)), std::move(done.touched));
            found && !race)
            race = std::move(found);
    lock.unlock();
    tell(std::move(race), done.failure);
    return done;
}

/// A race of work that has not failed is its failure, or said.
void HostDevice::tell(std::optional<Diagnostic> race, std::exception_ptr& failure) const {
    if (!race || failure) return;
    if (race->severity == Severity::Error)
        failure = std::make_exception_ptr(KernelFailure(std::vector{*std::move(race)}));
    else
        options_.warning(*race);
}

void HostDevice::add_note(std::exception_ptr& failure, Diagnostic::Note note) {
    try {
        std::rethrow_exception(failure);
    } catch (const KernelFailure& its) {
        std::vector<Diagnostic> diagnostics = its.diagnostics();
        diagnostics.front().notes.push_back(std::move(note));
        failure = std::make_exception_ptr(KernelFailure(std::move(diagnostics)));
    } catch (...) {}  // of the program
}

HostDevice::Done HostDevice::do_work(const Work& work, GridsInFlight* grids, bool is_compared) {
    Done done;
    TouchedMemory memory;
    const TurnOfMemory turn(is_linked_ && !std::holds_alternative<work::HostCall>(work),
                            options_.schedules > 1 && std::holds_alternative<work::Launch>(work));
    try {
        std::visit(
            [&]<class W>(const W& its) {
                if constexpr (std::is_same_v<W, work::Launch>)
                    done.statistics = perform(its, *grids, is_compared ? &memory : nullptr);
                else if constexpr (std::is_same_v<W, work::Conditional>)
                    done.condition = perform(its);
                else if constexpr (!std::is_same_v<W, work::Graph>)
                    perform(its);
            },
            work);
        if (is_compared) done.touched = touched_by(work, memory);
    } catch (...) { done.failure = std::current_exception(); }
    return done;
}

std::shared_ptr<GridsInFlight> HostDevice::grids_before(const Piece& piece) {
    const bool is_launch = std::holds_alternative<work::Launch>(piece.work);
    const bool is_event =
        std::holds_alternative<work::Record>(piece.work) || std::holds_alternative<work::Wait>(piece.work);
    // The default stream and others wait for each other.
    std::erase_if(grids_, [&](const auto& each) {
        const bool is_own = each.first == piece.stream;
        return is_own ? !is_launch && !is_event
                      : !is_event && (each.first == default_stream || piece.stream == default_stream);
    });
    if (!is_launch) return nullptr;
    std::shared_ptr<GridsInFlight>& its = grids_[piece.stream];
    if (!its) its = std::make_shared<GridsInFlight>();
    return its;
}

Statistics HostDevice::perform(const work::Launch& asked, GridsInFlight& grids, TouchedMemory* touched) {
    LoadedModule& module = *asked.module;
    {
        const std::lock_guard lock(objects_mutex_);
        const auto context = contexts_.find(asked.context);
        if (context != contexts_.end()) memory_.space().set_heap_bytes(context->second.heap_bytes);
    }
    module.use_shadows();
    emulator::Launch launch = asked.launch();
    launch.grids = &grids;
    launch.touched = touched;
    if (!launch.begins_early) grids.clear();
    try {
        Statistics statistics = emulator::run(module.program(), launch, options_, module.origin());
        grids.end(launch.begins_early);
        return statistics;
    } catch (...) {
        grids.clear();
        throw;
    }
}

}  // namespace ikat::emulator
