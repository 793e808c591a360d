// SPDX-License-Identifier: Apache-2.0
// How work is done on a stream of a device.
#include <fmt/format.h>

#include "codegen/kernel/kernel_info.hpp"
#include "runtime/exec/node.hpp"
#include "runtime/exec/queues.hpp"
#include "runtime/graph/device_graph.hpp"
#include "runtime/graph/recording.hpp"

namespace ikat::runtime {
namespace {

/// Work of a stream, which is begun.
struct OnStream {
    Backend& device;
    StreamHandle stream;

    void launch(ModuleHandle module, const RawLaunch& launch) const { device.launch(module, launch, stream); }
    void copy(const RawCopy& copy) const { device.copy(copy, stream); }
    void fill(std::uint64_t to, std::span<const std::byte> element, std::size_t count, const Location& where) const {
        device.fill(to, element, count, stream, where);
    }
    void call(const Reference<const HostFunction>& function) const { device.call(function, stream); }
    void begin(MemoryBlock& memory) const { memory.begin(stream); }
    void end(MemoryBlock& memory) const { memory.finish(stream); }
};

/// Work as a node of a graph.
struct IntoGraph {
    GraphNode& out;

    void launch(ModuleHandle module, const RawLaunch& raw) const {
        out.work = GraphNode::Launch{module,
                                     std::string(raw.entry),
                                     raw.grid,
                                     {raw.parameters.begin(), raw.parameters.end()},
                                     {raw.views.begin(), raw.views.end()},
                                     raw.begins_early,
                                     raw.where};
    }
    void copy(const RawCopy& copy) const {
        if (copy.source)
            throw Error(Diagnostic{.where = copy.where,
                                   .message = "a graph copies from another device",
                                   .hint = "a graph is work of one device: copy before it is launched"});
        out.work = copy;
    }
    void fill(std::uint64_t to, std::span<const std::byte> element, std::size_t count, const Location& where) const {
        out.work = GraphNode::Fill{to, {element.begin(), element.end()}, count, where};
    }
    void call(const Reference<const HostFunction>& function) const { out.work = GraphNode::Call{function}; }
    void begin(MemoryBlock& memory) const { out.work = GraphNode::Renew{memory.address(), memory.bytes()}; }
    void end(MemoryBlock& memory) const { begin(memory); }
};

template <class Target>
struct Performer {
    DeviceState& device;
    Target target;
    std::shared_ptr<const LoadedKernel>& kernel;  // of the launch

    void operator()(const node::Launch& launch) const;
    void operator()(const node::Copy& copy) const;
    void operator()(const node::Fill& fill) const;
    void operator()(const node::Allocate& allocate) const { target.begin(*allocate.memory); }
    void operator()(const node::Free& free) const { target.end(*free.memory); }
    void operator()(const node::HostCall& call) const { target.call(call.function); }
    void operator()(const node::Record& record) const;
    void operator()(const node::Wait& wait) const;
    void operator()(const node::Graph& graph) const;

private:
    /// The module that the launch needs on this device, and what is known of its entry there, or null.
    std::pair<ModuleHandle, const KernelInfo*> loaded(const node::Launch& launch) const;
    [[noreturn]] static void refuse(const Location& where, const std::string& what, const char* hint) {
        throw Error(Diagnostic{.where = where, .message = what, .hint = hint});
    }
};

template <class Target>
std::pair<ModuleHandle, const KernelInfo*> Performer<Target>::loaded(const node::Launch& launch) const {
    if (launch.kernel) {
        kernel = device.cache.get(*launch.kernel, device.options, device.backend);
        return {kernel->module.handle(), &kernel->compiled.info};
    }
    if (launch.module->device.get() != device.backend.get())
        refuse(launch.where, fmt::format("launch of '{}': its module was loaded by another device", launch.entry),
               "load the PTX on each device that runs it");
    return {launch.module->handle, launch.info()};
}

template <class Target>
void Performer<Target>::operator()(const node::Launch& launch) const {
    const KernelInfo* const info = launch.info();
    for (std::size_t i = 0; i < launch.arguments.size(); ++i) {
        const BufferPart* const part = launch.arguments[i].memory();
        if (!part) continue;
        if (!part->is_there())
            refuse(
                launch.where,
                fmt::format("launch of '{}': the buffer of '{}' has been freed", info->name, info->parameters[i].name),
                freed_hint);
        const Backend* const home = part->memory->device();
        if (home != device.backend.get() && !device.backend->has_peer_access(*home))
            refuse(launch.where,
                   fmt::format("launch of '{}': the buffer of '{}' is on another device, {}", info->name,
                               info->parameters[i].name, home->properties().selector),
                   not_here_hint);
    }
    const auto [module, compiled] = loaded(launch);
    Grid grid = launch.grid;
    if (grid.blocks.count() == 0) return;
    if (compiled) grid.dynamic_shared_bytes += compiled->own_dynamic_shared_bytes;
    if (!info || !launch.parameters.empty())
        return target.launch(
            module, {.entry = launch.entry, .grid = grid, .parameters = launch.parameters, .where = launch.where});
    for (const Argument& argument : launch.arguments)  // a nameless buffer has the parameter's name
        if (const auto& memory = argument.part.memory; memory && memory->name().empty())
            memory->device()->rename(memory->address(),
                                     info->parameters[std::size_t(&argument - launch.arguments.data())].name);
    const std::vector<std::byte> parameters = pack(launch.arguments);
    std::vector<emulator::LaunchView> views;
    if (device.backend->properties().kind == DeviceKind::Emulator) views = views_of(*info, launch.arguments);
    target.launch(module, {info->name, grid, parameters, views, compiled->waits_for_grids, launch.where});
}

template <class Target>
void Performer<Target>::operator()(const node::Copy& copy) const {
    RawCopy raw{.bytes = copy.bytes,
                .rows = copy.rows,
                .planes = copy.planes,
                .keeps_host = bool(copy.host_memory),
                .where = copy.where};
    const auto place = [&](const node::Copy::Place& given) -> RawCopy::Place {
        const BufferPart& part = given.part;
        if (!part.memory) return {0, given.host, given.row_pitch, given.plane_pitch};
        if (part.memory->is_over()) refuse(copy.where, fmt::format("a copy: {}", freed), freed_hint);
        const bool is_empty = copy.bytes == 0 || copy.rows == 0 || copy.planes == 0;
        const std::uint64_t end =
            is_empty ? 0 : (copy.planes - 1) * given.plane_pitch + (copy.rows - 1) * given.row_pitch + copy.bytes;
        if (end > part.bytes)
            refuse(copy.where,
                   fmt::format("a copy of {} bytes for a part of buffer '{}', which has {}", end, part.memory->name(),
                               part.bytes),
                   "make the part large enough");
        return {part.address(), nullptr, given.row_pitch, given.plane_pitch};
    };
    raw.to = place(copy.to), raw.from = place(copy.from);
    if (copy.to.part.memory && copy.to.part.memory->device() != device.backend.get())
        refuse(copy.where,
               fmt::format("a copy to buffer '{}', which is on another device", copy.to.part.memory->name()),
               "memory is written by a queue of its own device");
    if (const auto& memory = copy.from.part.memory; memory && memory->device() != device.backend.get())
        raw.source = memory->device();
    if (raw.source && raw.to.host)
        refuse(copy.where,
               fmt::format("a copy from buffer '{}', which is on another device", copy.from.part.memory->name()),
               "memory is read by a queue of its own device");
    target.copy(raw);
}

template <class Target>
void Performer<Target>::operator()(const node::Fill& fill) const {
    if (!fill.to.is_there()) refuse(fill.where, fmt::format("a fill: {}", freed), freed_hint);
    if (fill.to.memory->device() != device.backend.get())
        refuse(fill.where, fmt::format("a fill of buffer '{}', which is on another device", fill.to.memory->name()),
               "memory is written by a queue of its own device");
    target.fill(fill.to.address(), fill.element, fill.to.bytes / fill.element.size(), fill.where);
}

template <>
void Performer<OnStream>::operator()(const node::Record& record) const {
    if (record.event->device.get() != device.backend.get())
        throw Error("an event is recorded on another device", "make it by record() of the device that records it");
    device.backend->record(record.event->handle, target.stream);
    record.event->is_of_graph = false;
}

template <>
void Performer<OnStream>::operator()(const node::Wait& wait) const {
    wait.event->check_is_of_stream(wait.where);
    Backend& its = *wait.event->device;
    if (&its == device.backend.get())
        device.backend->wait(wait.event->handle, target.stream);
    else
        device.backend->wait_for_peer(its, wait.event->handle, target.stream);
}

template <>
void Performer<OnStream>::operator()(const node::Graph& graph) const {
    if (graph.contents->device.get() != &device)
        refuse(graph.where, "a graph is launched on another device than it was recorded for",
               "record it for each device that runs it");
    graph.graph->launch(target.stream, graph.where);
}

// A recording has made these what nodes come after.
template <>
void Performer<IntoGraph>::operator()(const node::Record&) const {}
template <>
void Performer<IntoGraph>::operator()(const node::Wait&) const {}
template <>
void Performer<IntoGraph>::operator()(const node::Graph&) const {}

}  // namespace

/// Does it, or enqueues it.
static void perform(const Node& work, DeviceState& device, StreamHandle stream) {
    struct Call {
        Backend& of;
        explicit Call(Backend& device) : of(device) { of.begin_call(); }
        ~Call() { of.end_call(); }
    };
    const Call call(*device.backend);
    std::shared_ptr<const LoadedKernel> kernel;
    std::visit(Performer<OnStream>{device, {*device.backend, stream}, kernel}, work.work);
}

GraphNode lowered(const Node& work, DeviceState& device, std::shared_ptr<const LoadedKernel>& kernel) {
    GraphNode out;
    std::visit(Performer<IntoGraph>{device, {out}, kernel}, work.work);
    return out;
}

void DeviceState::begin(const Node& work) {
    Recording::refuse_other(work);
    perform(work, *this, default_stream);
}

void DeviceState::take(const Node& work) {
    begin(work);
    const auto is = [&]<class... N>(N...) { return (std::holds_alternative<N>(work.work) || ...); };
    if (!is(node::Allocate{}, node::Free{}, node::Record{}, node::Wait{})) pool->synchronize(default_stream);
}

void StreamState::take(const Node& work) {
    if (Sink* const branch = Recording::branch_of(*this, work)) return branch->take(work);
    perform(work, *device, handle);
}

}  // namespace ikat::runtime
