// SPDX-License-Identifier: Apache-2.0
#include "runtime/backends/emulator_device.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cassert>
#include <utility>

#include "codegen/ptx/check/check.hpp"
#include "codegen/ptx/table/target.hpp"
#include "codegen/ptx/text/module.hpp"
#include "codegen/support/environment.hpp"
#include "codegen/support/notes.hpp"
#include "runtime/emulator/agents/bulk/tensor_map.hpp"
#include "runtime/emulator/host/graphs/work_graph.hpp"
#include "runtime/emulator/host/host_device.hpp"
#include "runtime/emulator/tools/progress/progress.hpp"
#include "runtime/graph/device_graph.hpp"

namespace ikat::runtime {
namespace {

namespace work = emulator::work;

/// Prints a progress line on a terminal for long launches.
void tell_terminal(const emulator::Progress& at, std::chrono::seconds time) {
    note(fmt::format("kernel '{}' has run for {} s: {} of {} blocks done, {:.1e} warp instructions\n", at.entry,
                     time.count(), at.blocks_done, at.blocks, double(at.warp_instructions)));
}

emulator::StreamId on(StreamHandle stream) { return emulator::StreamId(stream); }
emulator::EventId id_of(EventHandle event) { return emulator::EventId(event); }

/// Whether each piece of work is done when it is enqueued: IKAT_LAUNCH_BLOCKING=1.
bool is_blocking() {
    const std::string_view text = environment("IKAT_LAUNCH_BLOCKING");
    if (!text.empty() && text != "0" && text != "1")
        throw Error(fmt::format("IKAT_LAUNCH_BLOCKING is '{}'", text), "it is 1: launches wait for their end; or 0");
    return text == "1";
}

work::Copy work_of(const RawCopy& asked) {
    const auto place = [](const RawCopy::Place& given) {
        return given.host ? work::on_host(given.host) : work::on_device(given.address);
    };
    return {.to = place(asked.to),
            .from = place(asked.from),
            .bytes = asked.bytes,
            .rows = asked.rows,
            .planes = asked.planes,
            .to_pitch = {asked.to.row_pitch, asked.to.plane_pitch},
            .from_pitch = {asked.from.row_pitch, asked.from.plane_pitch},
            .where = asked.where,
            .keeps_host = asked.keeps_host};
}

/// Its streams, events and modules are the host's by their numbers; all that it has is in the primary context.
class EmulatorDevice final : public Backend {
public:
    EmulatorDevice(const emulator::HostOptions& options, std::string target)
        : properties_(emulator_properties(options, std::move(target))), host_(options, emulator::Origin::Own) {
        host_.retain_primary();
    }

    const DeviceProperties& properties() const override { return properties_; }

    std::uint64_t allocate(std::size_t bytes, std::string_view name) override {
        return host_.memory().allocate(host_.primary(), bytes, name);
    }
    void release(std::uint64_t address) noexcept override {
        if (host_.is_host_call()) return release(address, default_stream);
        host_.drain();  // as a driver, which waits for the device
        host_.end_grids();
        give_back(address);
    }
    // Addresses are given once, so memory may exist before its point of the stream.
    std::uint64_t allocate(std::size_t bytes, std::string_view name, StreamHandle) override {
        return allocate(bytes, name);
    }
    void release(std::uint64_t address, StreamHandle stream) noexcept override {
        if (is_blocking_) return give_back(address);
        host_.enqueue(on(stream), work::Free{address, host_.memory().buffer(address).bytes});
    }
    void rename(std::uint64_t address, std::string_view name) override { host_.memory().space().name(address, name); }

    std::byte* allocate_host(std::size_t bytes, std::string_view name) override {
        const std::uint64_t address =
            host_.memory().allocate_pinned(host_.primary(), std::max<std::size_t>(bytes, 1), 0);
        if (!name.empty()) rename(address, name);
        return reinterpret_cast<std::byte*>(address);
    }
    void release_host(std::byte* memory) noexcept override {
        host_.drain();
        host_.memory().release_pinned(memory, false);
    }

    using Backend::copy;
    void copy(const RawCopy& asked, StreamHandle stream) override {
        work::Copy work = work_of(asked);
        if (asked.source && asked.source != this) {
            auto* const peer = dynamic_cast<EmulatorDevice*>(asked.source);
            if (!peer) return copy_through_host(asked, stream);
            if (stream == default_stream) peer->synchronize(default_stream);
            host_.link(peer->host_);
            work.from_elsewhere = peer->host_.memory().space().share();
        }
        enqueue(stream, std::move(work));
    }
    void fill(std::uint64_t to, std::span<const std::byte> element, std::size_t count, StreamHandle stream,
              const Location& where) override {
        enqueue(stream,
                work::Fill{.to = to, .element = {element.begin(), element.end()}, .count = count, .where = where});
    }

    ModuleHandle load(const PtxText& ptx) override {
        ptx::Module module = ptx::parse(ptx.text, ptx.name);
        if (ptx.is_checked) ptx::check_or_throw(module, {.is_complete = true});
        return ModuleHandle(
            host_.load(host_.primary(), {.module = std::move(module),
                                         .name = std::string(ptx.name),
                                         .origin = ptx.is_foreign ? emulator::Origin::Foreign : emulator::Origin::Own,
                                         .source_lines = ptx.source_lines}));
    }
    void unload(ModuleHandle module) noexcept override { host_.unload(emulator::ModuleId(module)); }
    void launch(ModuleHandle module, const RawLaunch& launch, StreamHandle stream) override;
    void set_variable(ModuleHandle module, std::string_view name, std::span<const std::byte> contents) override {
        as_kernel_error([&] {
            host_.run(on(default_stream), work::SetVariable{find(module), std::string(name),
                                                            std::vector(contents.begin(), contents.end())});
        });
    }

    TensorMapBytes encode(const emulator::TensorMap& map) override { return emulator::encode(map); }

    StreamHandle create_stream(int priority) override {
        return StreamHandle(host_.create_stream({.context = host_.primary(), .priority = priority}));
    }
    void destroy_stream(StreamHandle stream) noexcept override { host_.destroy(on(stream)); }
    void synchronize(StreamHandle stream) override {
        const bool is_all = stream == default_stream;
        as_kernel_error([&] { is_all ? host_.finish() : host_.finish(on(stream)); });
        host_.end_grids(is_all ? std::nullopt : std::optional(on(stream)));
    }

    bool query(StreamHandle stream) override {
        bool is_done = false;
        as_kernel_error([&] { is_done = host_.query(on(stream)); });
        if (is_done) host_.end_grids(stream == default_stream ? std::nullopt : std::optional(on(stream)));
        return is_done;
    }

    void call(const Reference<const HostFunction>& function, StreamHandle stream) override {
        host_.enqueue(on(stream), work::HostCall{[function] { (*function)(); }});
    }

    Reference<DeviceGraph> instantiate(std::vector<GraphNode> nodes) override;
    /// Throws Error for what cannot be launched.
    emulator::Work work_of_node(const GraphNode& node);
    emulator::WorkGraph graph_of(const std::vector<GraphNode>& nodes);
    void launch(const std::shared_ptr<const emulator::WorkGraph>& graph, StreamHandle stream, const Location& where) {
        enqueue(stream, work::Graph{graph, where});
    }

    EventHandle create_event() override { return EventHandle(host_.create_event({.context = host_.primary()})); }
    void destroy_event(EventHandle event) noexcept override { host_.destroy(id_of(event)); }
    void record(EventHandle event, StreamHandle stream) override { enqueue(stream, work::Record{id_of(event)}); }
    void wait(EventHandle event, StreamHandle stream) override { enqueue(stream, work::Wait{id_of(event)}); }
    void wait_for_peer(Backend& of, EventHandle event, StreamHandle stream) override {
        auto* const peer = dynamic_cast<EmulatorDevice*>(&of);
        if (!peer) return Backend::wait_for_peer(of, event, stream);
        host_.link(peer->host_);
        enqueue(stream, work::Wait{id_of(event), peer->host_.done(id_of(event))});
    }
    bool can_access_peer(const Backend& other) const override { return dynamic_cast<const EmulatorDevice*>(&other); }
    bool has_peer_access(const Backend& other) const override {
        const auto* const peer = dynamic_cast<const EmulatorDevice*>(&other);
        return peer && host_.has_peer_access(peer->host_);
    }
    void set_peer_access(Backend& other, bool is_enabled) override {
        auto* const peer = dynamic_cast<EmulatorDevice*>(&other);
        if (!peer) return Backend::set_peer_access(other, is_enabled);
        host_.set_peer_access(peer->host_, is_enabled);
    }
    void synchronize(EventHandle event) override {
        as_kernel_error([&] { host_.finish(id_of(event)); });
    }
    bool query(EventHandle event) override {
        bool is_done = false;
        as_kernel_error([&] { is_done = host_.query(id_of(event)); });
        return is_done;
    }
    double milliseconds(EventHandle start, EventHandle stop) override {
        synchronize(start), synchronize(stop);
        const auto time = [&](EventHandle event) { return host_.find(id_of(event)).value().time.value(); };
        return std::chrono::duration<double, std::milli>(time(stop) - time(start)).count();
    }

    void begin_call() noexcept override { host_.begin_call(); }
    void end_call() noexcept override { host_.end_call(); }

private:
    template <class Body>
    void as_kernel_error(Body body) {
        try {
            body();
        } catch (const emulator::KernelFailure& failure) { throw KernelError(failure.diagnostics()); }
    }
    void enqueue(StreamHandle stream, emulator::Work work) {
        as_kernel_error([&] {
            is_blocking_ ? host_.run(on(stream), std::move(work)) : host_.enqueue(on(stream), std::move(work));
        });
    }
    void give_back(std::uint64_t address) noexcept {
        [[maybe_unused]] const bool is_ours = host_.memory().release(address);
        assert(is_ours);
    }
    std::shared_ptr<emulator::LoadedModule> find(ModuleHandle module) { return host_.find(emulator::ModuleId(module)); }
    void check(emulator::LoadedModule& loaded, const RawLaunch& launch) const;
    work::Launch launch_of(ModuleHandle module, const RawLaunch& launch);

    DeviceProperties properties_;
    const bool is_blocking_ = is_blocking();
    emulator::HostDevice host_;
};

/// The checks of a driver before it starts anything.
void EmulatorDevice::check(emulator::LoadedModule& loaded, const RawLaunch& launch) const {
    if (!loaded.program().has_entry(launch.entry))
        throw Error(fmt::format("{} has no entry '{}'", loaded.name(), launch.entry),
                    fmt::format("it has: {}", fmt::join(loaded.program().entries(), ", ")));
    const emulator::Program::Entry entry = loaded.program().entry(launch.entry);
    if (launch.parameters.size() != entry.parameter_bytes)
        throw Error(fmt::format("entry '{}' takes {} bytes of parameters, not {}", launch.entry, entry.parameter_bytes,
                                launch.parameters.size()),
                    {});
    const std::uint64_t fixed = entry.shared_bytes;
    if (fixed > properties_.shared_bytes)
        throw Error(fmt::format("kernel '{}' has {} bytes of static shared memory", launch.entry, fixed),
                    fmt::format("a block has at most {}; dynamic shared memory, which the launch gives, may be more",
                                properties_.shared_bytes));
    const std::uint64_t shared = fixed + launch.grid.dynamic_shared_bytes;
    // A kernel for a newer target would run on a newer device, so that target's limits apply.
    const ptx::Target* const its = loaded.target();
    const bool newer = its && its->number > ptx::target(properties_.target).number;
    const std::uint64_t max_shared = newer ? its->shared_opt_in : properties_.shared_bytes_optin;
    if (shared > max_shared)
        throw Error(fmt::format("kernel '{}' needs {} bytes of shared memory per block ({} static, {} dynamic)",
                                launch.entry, shared, fixed, launch.grid.dynamic_shared_bytes),
                    newer ? fmt::format("a block of {} has at most {}", its->name, max_shared)
                          : fmt::format("this device gives a block at most {}", max_shared));
}

work::Launch EmulatorDevice::launch_of(ModuleHandle module, const RawLaunch& launch) {
    const std::shared_ptr<emulator::LoadedModule> loaded = find(module);
    check(*loaded, launch);
    const auto& [blocks, threads, shared] = launch.grid;
    const emulator::Launch asked{.entry = launch.entry,
                                 .grid = {blocks.x, blocks.y, blocks.z},
                                 .block = {threads.x, threads.y, threads.z},
                                 .dynamic_shared_bytes = shared,
                                 .parameters = launch.parameters,
                                 .begins_early = launch.begins_early,
                                 .views = {launch.views.begin(), launch.views.end()}};
    loaded->program().check(asked);  // before errors become KernelErrors: nothing has run yet
    work::Launch work(loaded, host_.primary(), asked);
    work.where = launch.where;
    return work;
}

void EmulatorDevice::launch(ModuleHandle module, const RawLaunch& launch, StreamHandle stream) {
    enqueue(stream, launch_of(module, launch));
}

/// Work that is enqueued keeps the nodes that it was enqueued with: what changes is another graph at the next launch.
class EmulatorGraph final : public DeviceGraph {
public:
    EmulatorGraph(Reference<EmulatorDevice> device, emulator::WorkGraph graph)
        : device_(std::move(device)), graph_(std::make_shared<const emulator::WorkGraph>(std::move(graph))) {}

    void launch(StreamHandle stream, const Location& where) override {
        if (!changes_.empty()) {
            emulator::WorkGraph changed = *graph_;
            for (auto& [node, work] : changes_) emulator::replace(changed, node, std::move(work));
            graph_ = std::make_shared<const emulator::WorkGraph>(std::move(changed));
            changes_.clear();
        }
        device_->launch(graph_, stream, where);
    }
    void update(std::uint32_t node, GraphNode work) override {
        changes_.emplace_back(node, std::make_shared<const emulator::Work>(device_->work_of_node(work)));
    }

private:
    const Reference<EmulatorDevice> device_;
    std::shared_ptr<const emulator::WorkGraph> graph_;
    std::vector<std::pair<std::uint32_t, std::shared_ptr<const emulator::Work>>> changes_{};
};

emulator::Work EmulatorDevice::work_of_node(const GraphNode& node) {
    struct Translation {
        EmulatorDevice& device;
        emulator::Work operator()(const GraphNode::Empty&) const { return work::Renew{}; }
        emulator::Work operator()(const GraphNode::Launch& launch) const {
            return device.launch_of(launch.module, launch.raw());
        }
        emulator::Work operator()(const RawCopy& copy) const { return runtime::work_of(copy); }
        emulator::Work operator()(const GraphNode::Fill& fill) const {
            return work::Fill{.to = fill.to, .element = fill.element, .count = fill.count, .where = fill.where};
        }
        emulator::Work operator()(const GraphNode::Call& call) const {
            return work::HostCall{[function = call.function] { (*function)(); }};
        }
        emulator::Work operator()(const GraphNode::Renew& memory) const {
            return work::Renew{memory.address, memory.bytes};
        }
        emulator::Work operator()(const GraphNode::Conditional& its) const {
            using Kind = work::Conditional::Kind;
            return work::Conditional{.kind = its.is_loop ? Kind::While : Kind::If,
                                     .condition = its.condition,
                                     .bodies = {std::make_shared<const emulator::WorkGraph>(device.graph_of(its.body))},
                                     .where = its.where};
        }
    };
    return std::visit(Translation{*this}, node.work);
}

emulator::WorkGraph EmulatorDevice::graph_of(const std::vector<GraphNode>& nodes) {
    std::vector<emulator::WorkGraph::Node> all;
    for (const GraphNode& node : nodes)
        all.push_back({.work = std::make_shared<const emulator::Work>(work_of_node(node)), .after = node.after});
    return emulator::make_graph(std::move(all));
}

Reference<DeviceGraph> EmulatorDevice::instantiate(std::vector<GraphNode> nodes) {
    return make_reference<EmulatorGraph>(Reference<EmulatorDevice>(this), graph_of(nodes));
}

std::uint64_t host_memory_bytes() {
    return std::uint64_t(sysconf(_SC_PHYS_PAGES)) * std::uint64_t(sysconf(_SC_PAGESIZE));
}

}  // namespace

DeviceProperties emulator_properties(const emulator::HostOptions& options, std::string target) {
    const ptx::Target& limits = ptx::target(target);
    return {
        .name = fmt::format("ikat emulator ({}, {} thread{})", emulator::instruction_set(), options.threads,
                            options.threads == 1 ? "" : "s"),
        .selector = options.name,
        .kind = DeviceKind::Emulator,
        .compute_major = limits.number / 10,
        .compute_minor = limits.number % 10,
        .target = std::move(target),
        .multiprocessors = options.threads,
        .warp_size = 32,
        .memory_bytes = host_memory_bytes(),
        .max_threads_per_block = limits.threads_per_block,
        .max_blocks = {0x7fffffff, 65535, 65535},
        .max_threads = {1024, 1024, 64},
        .shared_bytes = limits.shared_static,
        .shared_bytes_optin = limits.shared_opt_in,
        .greatest_priority = -5,
    };
}

Reference<Backend> open_emulator(emulator::HostOptions options, std::string target) {
    if (isatty(STDERR_FILENO))
        options.tools.push_back(emulator::tell_progress(std::chrono::seconds(10), tell_terminal));
    return make_reference<EmulatorDevice>(options, std::move(target));
}

}  // namespace ikat::runtime
