// SPDX-License-Identifier: Apache-2.0
#include "runtime/device.hpp"

#include <fmt/format.h>

#include <limits>
#include <optional>

#include "codegen/kernel/section.hpp"
#include "codegen/pipeline/compile.hpp"
#include "codegen/support/environment.hpp"
#include "runtime/backends/emulator_device.hpp"
#include "runtime/backends/emulator_options.hpp"
#include "runtime/backends/plan.hpp"
#include "runtime/cache.hpp"
#include "runtime/cuda/device.hpp"
#include "runtime/launch/launch_recorder.hpp"

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
void name_buffers(const KernelInfo& kernel, std::span<const Argument> arguments, Backend& backend) {
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

void Device::launch_on(StreamHandle stream, const trace::KernelHandle& kernel, const LaunchPoint& point,
                       std::span<const Argument> arguments) const {
    const KernelInfo& info = kernel.info();
    check_launch(info, point, arguments, backend());
    if (!LaunchRecorder::record(kernel, point.grid)) return;
    const std::shared_ptr<const LoadedKernel> loaded = state().cache.get(kernel, state().options, state().backend);
    run(stream, loaded->module.handle(), info, point.grid, loaded->compiled.info.own_dynamic_shared_bytes, arguments);
}

void Device::run(StreamHandle stream, ModuleHandle module, const KernelInfo& kernel, const Grid& asked,
                 std::uint32_t own_dynamic_bytes, std::span<const Argument> arguments) const {
    if (asked.blocks.count() == 0) return;
    name_buffers(kernel, arguments, backend());
    const std::vector<std::byte> parameters = pack(arguments);
    Grid grid = asked;
    grid.dynamic_shared_bytes += own_dynamic_bytes;
    std::vector<emulator::LaunchView> views;
    if (backend().properties().kind == DeviceKind::Emulator) views = views_of(kernel, arguments);
    backend().launch(module, {kernel.name, grid, parameters, views}, stream);
}

Module Device::load(std::string_view ptx, std::string_view name, bool check) const {
    std::vector<KernelInfo> infos = infos_in(ptx, name);
    return Module(state().backend, backend().load({.text = ptx, .name = name, .is_foreign = true, .is_checked = check}),
                  std::move(infos));
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

void Device::launch_on(StreamHandle stream, const Module& module, std::string_view entry, const LaunchPoint& point,
                       std::span<const Given> given) const {
    check_home(module, fmt::format("launch of '{}'", entry));
    const KernelInfo* const kernel = module.info(entry);
    if (!kernel)
        throw Error(
            Diagnostic{.where = point.where,
                       .message = fmt::format("launch of '{}': its PTX does not say what its parameters are", entry),
                       .hint = "give them as bytes, parameters(...): only PTX of ikat has a section that says it"});
    const std::vector<Argument> arguments = match(*kernel, given, point.where);
    check_launch(*kernel, point, arguments, backend());
    run(stream, module.handle(), *kernel, point.grid, kernel->own_dynamic_shared_bytes, arguments);
}

void Device::launch_on(StreamHandle stream, const Module& module, std::string_view entry, const LaunchPoint& point,
                       std::span<const std::byte> parameters) const {
    check_home(module, fmt::format("launch of '{}'", entry));
    Grid grid = point.grid;
    if (const KernelInfo* const kernel = module.info(entry)) {
        check_launch(*kernel, point, parameters, backend());
        grid.dynamic_shared_bytes += kernel->own_dynamic_shared_bytes;
    } else {
        check_limits(entry, grid, properties());
    }
    if (grid.blocks.count() != 0) backend().launch(module.handle(), {entry, grid, parameters}, stream);
}

Event Stream::record() const { return Event(device_.state().backend, device_.backend().record(handle_.handle())); }

StreamHandle Queue::handle() const { return stream_ ? stream_->handle_.handle() : default_stream; }

void Queue::finish() const {
    if (!stream_) device_->synchronize();
}

void Queue::launch(const trace::KernelHandle& kernel, const LaunchPoint& point,
                   std::span<const Argument> arguments) const {
    device_->launch_on(handle(), kernel, point, arguments);
    finish();
}

void Queue::launch_list(const trace::KernelHandle& kernel, const LaunchPoint& point,
                        const std::vector<Argument>& arguments) const {
    launch(kernel, point, arguments);
}

void Queue::launch_given(const Module& module, std::string_view entry, const LaunchPoint& point,
                         std::span<const Given> arguments) const {
    device_->launch_on(handle(), module, entry, point, arguments);
    finish();
}

void Queue::launch(const Module& module, std::string_view entry, const Grid& grid,
                   std::span<const std::byte> parameters, const Location& where) const {
    device_->launch_on(handle(), module, entry, {grid, where}, parameters);
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
