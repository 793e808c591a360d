// SPDX-License-Identifier: Apache-2.0
#include "runtime/device.hpp"

#include <fmt/format.h>

#include <limits>
#include <optional>

#include "codegen/ast/ast.hpp"
#include "codegen/pipeline/compile.hpp"
#include "codegen/support/environment.hpp"
#include "runtime/cache.hpp"
#include "runtime/cuda/device.hpp"
#include "runtime/emulator_device.hpp"
#include "runtime/emulator_options.hpp"
#include "runtime/launch_recorder.hpp"
#include "runtime/plan.hpp"

namespace ikat::runtime {

struct Device::State : Counted {
    Reference<Backend> backend;
    CompileOptions options;
    ModuleCache cache;
};

namespace {

Reference<Backend> make_emulator(const OpenOptions& options) {
    std::string target = options.target.empty() ? CompileOptions{}.target : std::string(options.target);
    emulator::HostOptions emulator = emulator_options(options);
    if (options.is_plan) return open_plan(emulator_properties(emulator, std::move(target)));
    return open_emulator(std::move(emulator), std::move(target));
}

/// The driver if it exists and sees a device; else nothing.
std::shared_ptr<const cuda::Driver> find_driver() {
    try {
        auto driver = cuda::load_driver(cuda::driver_path());
        return cuda::device_count(*driver) > 0 ? driver : nullptr;
    } catch (const Error&) { return nullptr; }
}

Reference<Backend> open_backend(const OpenOptions& options) {
    const bool asked = !options.device.empty();
    const std::string_view name = asked ? options.device : environment("IKAT_DEVICE");
    if (name == "emulator") return make_emulator(options);
    if (name == "cuda") return cuda::open_device(cuda::load_driver(cuda::driver_path()), options.ordinal);
    if (!name.empty())
        throw Error(fmt::format("there is no device '{}'{}", name, asked ? "" : " (from IKAT_DEVICE)"),
                    "a device is cuda or emulator");
    if (auto driver = find_driver()) return cuda::open_device(std::move(driver), options.ordinal);
    return make_emulator(options);
}

/// Names nameless buffers after the kernel's parameters.
void name_buffers(const ast::KernelTree& kernel, std::span<const Argument> arguments, Backend& backend) {
    for (std::size_t i = 0; i < arguments.size(); ++i)
        if (arguments[i].is_buffer() && arguments[i].memory->name().empty())
            backend.rename(arguments[i].memory->address(), kernel.parameters[i].name);
}

}  // namespace

Device Device::open(const OpenOptions& options) {
    auto state = make_reference<State>();
    state->backend = open_backend(options);
    state->options.target = options.target.empty() ? state->backend->properties().target : options.target;
    return Device(std::move(state));
}

Device::State& Device::state() const {
    if (!state_) throw Error(moved_from, moved_from_hint);
    return *state_;
}

Backend& Device::backend() const { return *state().backend; }

const CompileOptions& Device::compile_options() const { return state().options; }
void Device::set_compile_options(const CompileOptions& options) { state().options = options; }

Allocation Device::allocate(std::size_t count, std::size_t element_bytes, std::string_view name) const {
    if (count > std::numeric_limits<std::size_t>::max() / element_bytes)
        throw Error(fmt::format("a buffer '{}' of {} elements", name, count), "that is more than an address can reach");
    return Allocation(state().backend, count * element_bytes, name);
}

Stream Device::stream() const { return Stream(*this, OwnedStream(state().backend, backend().create_stream())); }
Event Device::record() const { return Event(state().backend, backend().record(default_stream)); }
void Device::synchronize() const { backend().synchronize(default_stream); }

void Device::launch_on(StreamHandle stream, const CapturedKernel& kernel, const LaunchPoint& point,
                       std::span<const Argument> arguments) const {
    check_launch(kernel.kernel, point, arguments, backend());
    if (!LaunchRecorder::record(kernel.kernel, point.grid)) return;
    const std::shared_ptr<const LoadedKernel> loaded = state().cache.get(kernel, state().options, state().backend);
    if (point.grid.blocks.count() == 0) return;
    name_buffers(kernel.kernel, arguments, backend());
    const std::vector<std::byte> parameters = pack(arguments);
    Grid grid = point.grid;
    grid.dynamic_shared_bytes += loaded->compiled.own_dynamic_shared_bytes;
    std::vector<emulator::LaunchView> views;
    if (backend().properties().kind == DeviceKind::Emulator) views = views_of(kernel.kernel, arguments);
    backend().launch(loaded->module.handle(), {loaded->compiled.name, grid, parameters, views}, stream);
}

Module Device::load(std::string_view ptx, std::string_view name, bool check) const {
    return Module(state().backend,
                  backend().load({.text = ptx, .name = name, .is_foreign = true, .is_checked = check}));
}

void Device::check_home(const Module& module, std::string_view doing) const {
    if (&module.device() != &backend())
        throw Error(fmt::format("{}: its module was loaded by another device", doing),
                    "load the PTX on each device that runs it");
}

void Device::set_variable(const Module& module, std::string_view name, std::span<const std::byte> contents) const {
    check_home(module, fmt::format("variable '{}'", name));
    synchronize();
    backend().set_variable(module.handle(), name, contents);
}

void Device::launch_on(StreamHandle stream, const Module& module, const RawLaunch& launch) const {
    check_home(module, fmt::format("launch of '{}'", launch.entry));
    check_limits(launch.entry, launch.grid, properties());
    if (launch.grid.blocks.count() != 0) backend().launch(module.handle(), launch, stream);
}

Event Stream::record() const { return Event(device_.state().backend, device_.backend().record(handle_.handle())); }

StreamHandle Queue::handle() const { return stream_ ? stream_->handle_.handle() : default_stream; }

void Queue::finish() const {
    if (!stream_) device_->synchronize();
}

void Queue::launch(const CapturedKernel& kernel, const LaunchPoint& point, std::span<const Argument> arguments) const {
    device_->launch_on(handle(), kernel, point, arguments);
    finish();
}

void Queue::launch_list(const CapturedKernel& kernel, const LaunchPoint& point,
                        const std::vector<Argument>& arguments) const {
    launch(kernel, point, arguments);
}

void Queue::launch(const Module& module, std::string_view entry, const Grid& grid,
                   std::span<const std::byte> parameters) const {
    device_->launch_on(handle(), module, {entry, grid, parameters});
    finish();
}

double elapsed_milliseconds(const Event& start, const Event& stop) {
    if (&start.device() != &stop.device())
        throw Error("the time between events of different devices", "record both on one device");
    return stop.device().milliseconds(start.handle(), stop.handle());
}

std::vector<DeviceReport> list_devices() {
    std::vector<DeviceReport> out;
    const auto report = [&](const std::string& selector, auto&& properties) {
        try {
            out.push_back({selector, properties(), {}});
        } catch (const Error& error) { out.push_back({selector, {}, error.diagnostics().front().message}); }
    };
    std::shared_ptr<const cuda::Driver> driver;
    int count = 0;
    try {
        driver = cuda::load_driver(cuda::driver_path());
        count = cuda::device_count(*driver);
        if (count == 0) throw Error("the CUDA driver sees no device", {});
    } catch (const Error& error) { out.push_back({"cuda", {}, error.diagnostics().front().message}); }
    for (int i = 0; i < count; ++i)
        report(fmt::format("cuda:{}", i), [&] { return cuda::device_properties(*driver, i); });
    report("emulator", [] { return emulator_properties(emulator_options({}), CompileOptions{}.target); });
    return out;
}

}  // namespace ikat::runtime
