// SPDX-License-Identifier: Apache-2.0
#include "runtime/backends/plan.hpp"

#include <algorithm>
#include <atomic>

#include "runtime/emulator/agents/bulk/tensor_map.hpp"
#include "runtime/graph/device_graph.hpp"

namespace ikat::runtime {
namespace {

[[noreturn]] void nothing_runs() {
    throw Error("a device for plans has neither memory nor kernels", "run this on the emulator or on a GPU");
}

class Plan final : public Backend {
public:
    explicit Plan(DeviceProperties properties) : properties_(std::move(properties)) {}

    const DeviceProperties& properties() const override { return properties_; }

    /// An address of its own for each, aligned as those of devices are.
    std::uint64_t allocate(std::size_t bytes, std::string_view) override {
        constexpr std::uint64_t alignment = 256;
        return next_.fetch_add((bytes / alignment + 1) * alignment);
    }
    void release(std::uint64_t) noexcept override {}
    std::uint64_t allocate(std::size_t bytes, std::string_view name, StreamHandle) override {
        return allocate(bytes, name);
    }
    void release(std::uint64_t, StreamHandle) noexcept override {}
    void rename(std::uint64_t, std::string_view) override {}
    std::byte* allocate_host(std::size_t, std::string_view) override { nothing_runs(); }
    void release_host(std::byte*) noexcept override {}

    void copy(const RawCopy& copy, StreamHandle) override {
        if (copy.to.host) nothing_runs();
    }
    void fill(std::uint64_t, std::span<const std::byte>, std::size_t, StreamHandle, const Location&) override {}

    ModuleHandle load(const PtxText&) override { nothing_runs(); }
    void unload(ModuleHandle) noexcept override {}
    void launch(ModuleHandle, const RawLaunch&, StreamHandle) override { nothing_runs(); }
    void set_variable(ModuleHandle, std::string_view, std::span<const std::byte>) override { nothing_runs(); }

    TensorMapBytes encode(const emulator::TensorMap& map) override { return emulator::encode(map); }

    StreamHandle create_stream(int) override { return StreamHandle(1); }
    void destroy_stream(StreamHandle) noexcept override {}
    void synchronize(StreamHandle) override {}
    bool query(StreamHandle) override { return true; }

    void call(const Reference<const HostFunction>&, StreamHandle) override {}

    Reference<DeviceGraph> instantiate(std::vector<GraphNode>) override { nothing_runs(); }

    EventHandle create_event() override { return {}; }
    void destroy_event(EventHandle) noexcept override {}
    void record(EventHandle, StreamHandle) override {}
    void wait(EventHandle, StreamHandle) override {}
    void synchronize(EventHandle) override {}
    bool query(EventHandle) override { return true; }
    double milliseconds(EventHandle, EventHandle) override { return 0; }

private:
    DeviceProperties properties_;
    std::atomic<std::uint64_t> next_ = std::uint64_t{1} << 40;
};

}  // namespace

Reference<Backend> open_plan(DeviceProperties properties) { return make_reference<Plan>(std::move(properties)); }

}  // namespace ikat::runtime
