// SPDX-License-Identifier: Apache-2.0
// The sinks that do work: a device and its streams.
#pragma once
#include <memory>
#include <utility>

#include "codegen/pipeline/compile.hpp"
#include "runtime/backend.hpp"
#include "runtime/cache.hpp"
#include "runtime/exec/sink.hpp"
#include "runtime/pool/pool_object.hpp"

namespace ikat::runtime {

/// What a Device is: its backend and its pool, how kernels are compiled for it, and those that are loaded.
struct DeviceState final : Sink {
    Reference<Backend> backend;
    Reference<PoolObject> pool;
    CompileOptions options;
    ModuleCache cache;

    /// Waits for the work.
    void take(const Node& work) override;
    bool is_asynchronous() const override { return false; }
    /// Begins it, after all other work of the device.
    void begin(const Node& work);
};

struct StreamState final : Sink {
    StreamState(Reference<DeviceState> on, int priority)
        : device(std::move(on)), handle(device->backend->create_stream(priority)) {}
    ~StreamState() override {
        device->pool->end(handle);
        device->backend->destroy_stream(handle);
    }

    void take(const Node& work) override;
    bool is_asynchronous() const override { return true; }

    const Reference<DeviceState> device;
    const StreamHandle handle;
};

/// Work as a node of a graph, without what it comes after. The kernel must be kept as long as the node is used.
GraphNode lowered(const Node& work, DeviceState& device, std::shared_ptr<const LoadedKernel>& kernel);

}  // namespace ikat::runtime
