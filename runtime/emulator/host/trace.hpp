// SPDX-License-Identifier: Apache-2.0
// The work of devices as a file that Perfetto and chrome://tracing show, in Chrome's trace event format: a process for
// each device, a track for each thread of the program and for each stream, what the program enqueues and waits for,
// what the device does, and arrows from one to the other. The file is complete JSON whenever the program has waited.
#pragma once
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include "runtime/emulator/host/work_queue.hpp"

namespace ikat::emulator {

/// Says it if the file cannot be written any longer. Thread-safe.
class Trace {
public:
    using Time = std::chrono::steady_clock::time_point;
    static Time now() { return std::chrono::steady_clock::now(); }

    /// Throws Error if the file cannot be created.
    explicit Trace(std::string path);
    ~Trace();
    Trace(const Trace&) = delete;
    Trace& operator=(const Trace&) = delete;

    /// The number of a new device, from 1 on.
    unsigned add_device();

    /// This thread has enqueued a piece, and a device has done it. Bytes are those of global memory. A node of a graph
    /// is a piece without a number.
    void enqueued(unsigned device, const Piece& piece, Time begin);
    void done(unsigned device, const Piece& piece, Time begin, std::uint64_t bytes_read, std::uint64_t bytes_written);
    /// This thread has waited: for "stream 2".
    void waited(unsigned device, std::string_view what, Time begin);

private:
    double microseconds(Time time) const { return std::chrono::duration<double, std::micro>(time - start_).count(); }
    void write(std::string_view event);
    void name_track(unsigned device, std::uint64_t track, std::string_view name);
    /// The track of this thread.
    std::uint64_t track_of_thread(unsigned device);
    void complete();
    void note_result(bool is_good);

    const std::string path_;
    std::FILE* file_;
    const Time start_ = now();
    bool is_first_ = true, is_broken_ = false;
    unsigned devices_ = 0;
    std::set<std::pair<unsigned, std::uint64_t>> named_;
    std::map<std::thread::id, std::uint64_t> threads_;
    std::mutex mutex_;
};

}  // namespace ikat::emulator
