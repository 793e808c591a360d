// SPDX-License-Identifier: Apache-2.0
#include "runtime/device.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>

#include "codegen/kernel/section.hpp"
#include "codegen/support/environment.hpp"
#include "runtime/backends/emulator_device.hpp"
#include "runtime/backends/emulator_options.hpp"
#include "runtime/backends/plan.hpp"
#include "runtime/cuda/device.hpp"
#include "runtime/exec/queues.hpp"
#include "runtime/graph/recording.hpp"

namespace ikat::runtime {

namespace {

Reference<Backend> make_emulator(const OpenOptions& options, int ordinal) {
    std::string target = options.target.empty() ? CompileOptions{}.target : std::string(options.target);
    emulator::HostOptions emulator = emulator_options(options, ordinal);
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

/// What the program or the environment chooses: "cuda", "emulator", or empty; and a number, as in "cuda:1".
struct Choice {
    std::string_view kind;
    std::optional<int> ordinal{};
};

/// Throws Error for other names.
Choice chosen(std::string_view given) {
    const std::string_view name = given.empty() ? environment("IKAT_DEVICE") : given;
    const std::size_t colon = name.find(':');
    Choice out{name.substr(0, colon)};
    bool is_good = out.kind.empty() ? colon == name.npos : out.kind == "emulator" || out.kind == "cuda";
    if (colon != name.npos) {
        const std::string_view digits = name.substr(colon + 1);
        const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), out.ordinal.emplace());
        is_good = is_good && error == std::errc{} && end == digits.data() + digits.size() && !digits.starts_with('-');
    }
    if (!is_good)
        throw Error(fmt::format("there is no device '{}'{}", name, given.empty() ? " (from IKAT_DEVICE)" : ""),
                    "a device is cuda or emulator, or one of several: cuda:1");
    return out;
}

/// A number of the environment is for programs that give none.
int ordinal_of(const OpenOptions& options, const Choice& choice) {
    if (!choice.ordinal || (options.device.empty() && options.ordinal != 0)) return options.ordinal;
    if (options.ordinal != 0 && options.ordinal != *choice.ordinal)
        throw Error(fmt::format("device '{}' is opened with ordinal {}", options.device, options.ordinal),
                    "give the number once");
    return *choice.ordinal;
}

Reference<Backend> open_backend(const OpenOptions& options) {
    const Choice choice = chosen(options.device);
    const int ordinal = ordinal_of(options, choice);
    if (choice.kind == "emulator") return make_emulator(options, ordinal);
    if (choice.kind == "cuda") return cuda::open_device(cuda::load_driver(cuda::driver_path()), ordinal);
    if (auto driver = find_driver()) return cuda::open_device(std::move(driver), ordinal);
    return make_emulator(options, ordinal);
}

/// Both must be there.
std::pair<Backend&, Backend&> peers(const Device& device, const Device& other) {
    return {device.backend(), other.backend()};
}

void change_peer_access(const Device& device, const Device& other, bool is_enabled, const std::source_location& where) {
    Recording::refuse_wait("a change of peer access", Location::of(where));
    const auto [its, to] = peers(device, other);
    try {
        if (&its == &to) throw Error("a device is no peer of itself", "its kernels reach its own memory anyway");
        its.set_peer_access(to, is_enabled);
    } catch (const Error& error) { throw error.located(Location::of(where)); }
}

}  // namespace

Device Device::open(const OpenOptions& options, const Location& where) {
    auto state = make_reference<DeviceState>();
    try {
        const PoolKind pool = pool_kind(options.pool);
        state->backend = open_backend(options);
        state->pool = make_reference<PoolObject>(state->backend, pool);
    } catch (const Error& error) { throw error.located(where); }
    state->options.target = options.target.empty() ? state->backend->properties().target : options.target;
    return Device(std::move(state));
}

std::uint32_t Device::count(std::string_view device) {
    const std::string_view kind = chosen(device).kind;
    if (kind == "emulator") return emulated_devices();
    const std::shared_ptr<const cuda::Driver> driver = find_driver();
    if (driver) return std::uint32_t(cuda::device_count(*driver));
    return kind == "cuda" ? 0 : emulated_devices();
}

bool cuda_likely_available() {
    // A driver takes the devices before the first number that is none.
    const std::string_view visible = environment("CUDA_VISIBLE_DEVICES");
    if (visible.data() && (visible.empty() || visible.starts_with('-') || visible == "NoDevFiles")) return false;
    const std::string_view named = environment("IKAT_CUDA_DRIVER");
    if (!named.empty()) return named.find('/') == named.npos || std::filesystem::exists(named);
    return std::filesystem::exists("/dev/nvidiactl") || std::filesystem::exists("/dev/dxg");
}

Device::Device(Reference<DeviceState> state) : state_(std::move(state)) {}

const Reference<Sink>& Device::sink() const {
    if (!state_) throw Error(moved_from, moved_from_hint);
    return state_;
}
DeviceState& Device::state() const { return static_cast<DeviceState&>(*sink()); }

Backend& Device::backend() const { return *state().backend; }

const CompileOptions& Device::compile_options() const { return state().options; }
void Device::set_compile_options(const CompileOptions& options) { state().options = options; }

Allocation Device::allocate(std::size_t count, std::size_t element_bytes, std::string_view name) const {
    return Allocation(state().pool, checked_bytes(count, element_bytes, name), name);
}

Reference<const HostMemory> Device::allocate_host(std::size_t count, std::size_t element_bytes,
                                                  std::string_view name) const {
    return make_reference<HostMemory>(state().backend, checked_bytes(count, element_bytes, name), name);
}

Stream Device::stream(int priority) const {
    return Stream(*this, std::clamp(priority, properties().greatest_priority, 0));
}
void Device::synchronize(const std::source_location& where) const {
    Recording::refuse_wait("a wait for the device", Location::of(where));
    state().pool->synchronize(default_stream);
}

bool Device::can_access_peer(const Device& other) const {
    const auto [its, to] = peers(*this, other);
    return &its != &to && its.can_access_peer(to);
}
void Device::enable_peer_access(const Device& other, const std::source_location& where) const {
    change_peer_access(*this, other, true, where);
}
void Device::disable_peer_access(const Device& other, const std::source_location& where) const {
    change_peer_access(*this, other, false, where);
}
bool Device::has_peer_access(const Device& other) const {
    const auto [its, to] = peers(*this, other);
    return &its != &to && its.has_peer_access(to);
}

Pool Device::pool() const { return Pool(state().pool); }

Module Device::load(std::string_view ptx, std::string_view name, bool check) const {
    std::vector<KernelInfo> infos = infos_in(ptx, name);
    return Module(state().backend, backend().load({.text = ptx, .name = name, .is_foreign = true, .is_checked = check}),
                  std::move(infos));
}

void Device::set_variable(const Module& module, std::string_view name, std::span<const std::byte> contents) const {
    if (&module.device() != &backend())
        throw Error(fmt::format("variable '{}': its module was loaded by another device", name),
                    "load the PTX on each device that runs it");
    synchronize();
    backend().set_variable(module.handle(), name, contents);
}

Stream::Stream(Device device, int priority)
    : device_(std::move(device)),
      state_(make_reference<StreamState>(Reference<DeviceState>(&device_.state()), priority)) {}

Sink& Stream::sink() const {
    if (!state_) throw Error(moved_from, moved_from_hint);
    return *state_;
}
void Stream::synchronize(const std::source_location& where) const {
    Recording::refuse_wait("a wait for a stream", Location::of(where));
    const auto& state = static_cast<const StreamState&>(sink());
    state.device->pool->synchronize(state.handle);
}

bool Stream::query(const std::source_location& where) const {
    Recording::refuse_wait("a query of a stream", Location::of(where));
    const auto& state = static_cast<const StreamState&>(sink());
    return state.device->pool->query(state.handle);
}

double elapsed_milliseconds(const Event& start, const Event& stop) {
    Recording::refuse_wait("a wait for an event", {});
    const EventObject &first = *start.object(), &last = *stop.object();
    first.check_is_of_stream({}), last.check_is_of_stream({});
    if (first.device.get() != last.device.get())
        throw Error("the time between events of different devices", "record both on one device");
    return last.device->milliseconds(first.handle, last.handle);
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
    int emulated = 1;  // if it cannot be told, the device says why
    try {
        emulated = int(emulated_devices());
    } catch (const Error&) {}
    for (int i = 0; i < emulated; ++i)
        report(emulated == 1 ? "emulator" : fmt::format("emulator:{}", i),
               [&] { return emulator_properties(emulator_options({}, i), CompileOptions{}.target); });
    return out;
}

}  // namespace ikat::runtime
