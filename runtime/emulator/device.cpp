// SPDX-License-Identifier: Apache-2.0
#include "runtime/emulator/device.hpp"
#include "runtime/emulator/agents/tensor_map.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <map>
#include <mutex>
#include <utility>

#include "codegen/ptx/check/check.hpp"
#include "codegen/ptx/table/target.hpp"
#include "codegen/ptx/text/module.hpp"
#include "codegen/support/notes.hpp"
#include "runtime/emulator/tools/progress/progress.hpp"

namespace ikat::runtime {
namespace {

using Clock = std::chrono::steady_clock;

/// A loaded file, with what a launch checks before it runs.
struct Loaded {
    emulator::Program program;
    std::string name;
    const nvptx::Target* target = nullptr;  // that it names, if it is known
    Origin origin = Origin::Own;
};

const nvptx::Target* target_of(const nvptx::Module& module) {
    return module.target.empty() ? nullptr : nvptx::find_target(module.text(module.target[0]));
}

/// Prints a progress line on a terminal for long launches.
void tell_terminal(const emulator::Progress& at, std::chrono::seconds time) {
    note(fmt::format("kernel '{}' has run for {} s: {} of {} blocks done, {:.1e} warp instructions\n", at.entry,
                     time.count(), at.blocks_done, at.blocks, double(at.warp_instructions)));
}

class Device final : public Backend {
public:
    Device(EmulatorOptions options, std::string target)
        : properties_(emulator_properties(options, std::move(target))), options_(std::move(options)) {
        if (isatty(STDERR_FILENO))
            options_.tools.push_back(emulator::tell_progress(std::chrono::seconds(10), tell_terminal));
    }

    const DeviceProperties& properties() const override { return properties_; }

    std::uint64_t allocate(std::size_t bytes, std::string_view name) override { return memory_.allocate(bytes, name); }
    void release(std::uint64_t address) noexcept override { memory_.release(address); }
    void rename(std::uint64_t address, std::string_view name) override { memory_.name(address, name); }

    void write(std::uint64_t to, std::span<const std::byte> from, StreamHandle) override { memory_.write(to, from); }
    void read(std::uint64_t from, std::span<std::byte> to, StreamHandle) override {
        memory_.read(from, to);
        check_download(options_, Origin::Own, memory_, from, to.size());
    }
    void copy(std::uint64_t to, std::uint64_t from, std::size_t bytes, StreamHandle) override {
        memory_.copy(to, from, bytes);
    }
    void fill(std::uint64_t to, std::span<const std::byte> element, std::size_t count, StreamHandle) override {
        memory_.fill(to, element, count);
    }

    ModuleHandle load(const PtxText& ptx) override {
        nvptx::Module module = nvptx::parse(ptx.text, ptx.name);
        if (ptx.is_checked) nvptx::check_or_throw(module, {.is_complete = true});
        const nvptx::Target* const target = target_of(module);
        auto loaded =
            std::make_unique<Loaded>(emulator::Program(std::move(module), memory_, ptx.source_lines),
                                     std::string(ptx.name), target, ptx.is_foreign ? Origin::Foreign : Origin::Own);
        const auto handle = ModuleHandle(reinterpret_cast<std::uintptr_t>(loaded.get()));
        const std::lock_guard lock(modules_mutex_);
        modules_.emplace(handle, std::move(loaded));
        return handle;
    }
    void unload(ModuleHandle module) noexcept override {
        const std::lock_guard running(run_mutex_), lock(modules_mutex_);
        modules_.erase(module);
    }
    void launch(ModuleHandle module, const RawLaunch& launch, StreamHandle stream) override;

    void set_variable(ModuleHandle module, std::string_view name, std::span<const std::byte> contents) override {
        const std::lock_guard running(run_mutex_);
        find(module).program.set_variable(name, contents);
    }

    TensorMapBytes encode(const emulator::TensorMap& map) override { return emulator::encode(map); }

    StreamHandle create_stream() override { return StreamHandle(++streams_); }
    void destroy_stream(StreamHandle) noexcept override {}
    void synchronize(StreamHandle) override {}

    /// An event is the time of its recording: all earlier work has been done.
    EventHandle record(StreamHandle) override {
        return EventHandle(std::uint64_t(Clock::now().time_since_epoch() / std::chrono::nanoseconds(1)));
    }
    void destroy_event(EventHandle) noexcept override {}
    void synchronize(EventHandle) override {}
    double milliseconds(EventHandle start, EventHandle stop) override {
        return double(std::int64_t(std::uint64_t(stop) - std::uint64_t(start))) * 1e-6;
    }

private:
    Loaded& find(ModuleHandle module) {
        const std::lock_guard lock(modules_mutex_);
        return *modules_.at(module);
    }
    void check(const Loaded& loaded, const RawLaunch& launch) const;

    emulator::Memory memory_;  // outlives the programs
    DeviceProperties properties_;
    EmulatorOptions options_;
    std::map<ModuleHandle, std::unique_ptr<Loaded>> modules_;
    std::mutex modules_mutex_, run_mutex_;
    std::atomic<std::uint64_t> streams_ = 0;
};

/// The checks of a driver before it starts anything.
void Device::check(const Loaded& loaded, const RawLaunch& launch) const {
    const std::vector<std::string> entries = loaded.program.entries();
    if (std::ranges::find(entries, launch.entry) == entries.end())
        throw Error(fmt::format("{} has no entry '{}'", loaded.name, launch.entry),
                    fmt::format("it has: {}", fmt::join(entries, ", ")));
    const emulator::Program::Entry entry = loaded.program.entry(launch.entry);
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
    const bool newer = loaded.target && loaded.target->number > nvptx::target(properties_.target).number;
    const std::uint64_t most = newer ? loaded.target->shared_opt_in : properties_.shared_bytes_optin;
    if (shared > most)
        throw Error(fmt::format("kernel '{}' needs {} bytes of shared memory per block ({} static, {} dynamic)",
                                launch.entry, shared, fixed, launch.grid.dynamic_shared_bytes),
                    newer ? fmt::format("a block of {} has at most {}", loaded.target->name, most)
                          : fmt::format("this device gives a block at most {}", most));
}

void Device::launch(ModuleHandle module, const RawLaunch& launch, StreamHandle) {
    const std::lock_guard running(run_mutex_);
    Loaded& loaded = find(module);
    check(loaded, launch);
    const auto& [blocks, threads, shared] = launch.grid;
    const emulator::Launch work{.entry = launch.entry,
                                .grid = {blocks.x, blocks.y, blocks.z},
                                .block = {threads.x, threads.y, threads.z},
                                .dynamic_shared_bytes = shared,
                                .parameters = launch.parameters};
    loaded.program.check(work);  // before errors become KernelErrors: nothing has run yet
    run(loaded.program, work, options_, loaded.origin);
}

std::uint64_t host_memory_bytes() {
    return std::uint64_t(sysconf(_SC_PHYS_PAGES)) * std::uint64_t(sysconf(_SC_PAGESIZE));
}

}  // namespace

DeviceProperties emulator_properties(const emulator::Options& options, std::string target) {
    const nvptx::Target& limits = nvptx::target(target);
    return {
        .name = fmt::format("ikat emulator ({}, {} thread{})", emulator::instruction_set(), options.threads,
                            options.threads == 1 ? "" : "s"),
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
    };
}

Reference<Backend> open_emulator(EmulatorOptions options, std::string target) {
    return make_reference<Device>(std::move(options), std::move(target));
}

}  // namespace ikat::runtime
