// SPDX-License-Identifier: Apache-2.0
// A device without work, whose memory and events a test looks at and decides about: for pools of memory.
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <set>
#include <string_view>
#include <utility>

#include "runtime/emulator/agents/bulk/tensor_map.hpp"
#include "runtime/graph/device_graph.hpp"
#include "runtime/pool/pool_object.hpp"

namespace ikat::tests {

class PoolBackend final : public runtime::Backend {
public:
    using StreamHandle = runtime::StreamHandle;
    using EventHandle = runtime::EventHandle;
    struct Recorded {
        StreamHandle stream{};
        std::uint64_t time = 0;  // the number of releases before it
    };

    explicit PoolBackend(runtime::DeviceKind kind = runtime::DeviceKind::Cuda) {
        properties_.kind = kind;
        properties_.name = "a device without work";
    }

    // What a test looks at and sets.
    std::map<std::uint64_t, std::uint64_t> memory{};  // bytes by address
    std::uint64_t most_memory = runtime::no_limit;
    std::uint64_t allocations = 0, releases = 0, waits = 0, queries = 0;
    std::map<EventHandle, Recorded> events{};
    std::map<StreamHandle, std::uint64_t> done{};  // up to which time the work of a stream is done
    std::uint64_t time = 0;
    bool refuses_events = false, has_failed = false;

    const runtime::DeviceProperties& properties() const override { return properties_; }
    std::uint64_t allocate(std::size_t bytes, std::string_view) override {
        const std::lock_guard lock(mutex_);
        std::uint64_t used = 0;
        for (const auto& [address, its] : memory) used += its;
        if (bytes > most_memory - used) throw Error("the device is full", {});
        const std::uint64_t address = next_;
        next_ += bytes + 4096;  // never neighbours
        memory[address] = bytes, ++allocations;
        return address;
    }
    void release(std::uint64_t address) noexcept override {
        const std::lock_guard lock(mutex_);
        memory.erase(address), ++releases;
    }
    std::uint64_t allocate(std::size_t bytes, std::string_view name, StreamHandle) override {
        return allocate(bytes, name);
    }
    void release(std::uint64_t address, StreamHandle) noexcept override { release(address); }
    Reference<runtime::DeviceGraph> instantiate(std::vector<runtime::GraphNode>) override { return {}; }

    EventHandle create_event() override {
        if (refuses_events) throw Error("no more events", {});
        return EventHandle(++last_event_);
    }
    void destroy_event(EventHandle event) noexcept override { events.erase(event); }
    void record(EventHandle event, StreamHandle stream) override { events[event] = {stream, ++time}; }
    bool query(EventHandle event) override {
        ++queries;
        return is_done(events.at(event));
    }
    void synchronize(StreamHandle stream) override {
        if (has_failed) throw runtime::KernelError("a kernel failed", {});
        ++waits;
        if (stream == runtime::default_stream) all_done_ = time;
        done[stream] = time;
    }
    bool is_done(const Recorded& event) const {
        const auto its = done.find(event.stream);
        return event.time <= all_done_ || (its != done.end() && event.time <= its->second);
    }

    // What a pool does not use.
    void rename(std::uint64_t, std::string_view) override {}
    std::byte* allocate_host(std::size_t, std::string_view) override { return nullptr; }
    void release_host(std::byte*) noexcept override {}
    void copy(const runtime::RawCopy&, StreamHandle) override {}
    void fill(std::uint64_t, std::span<const std::byte>, std::size_t, StreamHandle, const Location&) override {}
    runtime::ModuleHandle load(const runtime::PtxText&) override { return {}; }
    void unload(runtime::ModuleHandle) noexcept override {}
    void launch(runtime::ModuleHandle, const runtime::RawLaunch&, StreamHandle) override {}
    void set_variable(runtime::ModuleHandle, std::string_view, std::span<const std::byte>) override {}
    runtime::TensorMapBytes encode(const emulator::TensorMap&) override { return {}; }
    StreamHandle create_stream(int) override { return {}; }
    void destroy_stream(StreamHandle) noexcept override {}
    bool query(StreamHandle) override { return true; }
    void call(const Reference<const runtime::HostFunction>&, StreamHandle) override {}
    void wait(EventHandle, StreamHandle) override {}
    void synchronize(EventHandle) override {}
    double milliseconds(EventHandle, EventHandle) override { return 0; }

private:
    runtime::DeviceProperties properties_;
    std::mutex mutex_;
    std::uint64_t next_ = 1 << 20, last_event_ = 0, all_done_ = 0;
};

}  // namespace ikat::tests
