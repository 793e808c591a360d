// SPDX-License-Identifier: Apache-2.0
#include "runtime/cuda/device.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <tuple>
#include <utility>

#include "runtime/cuda/graph.hpp"
#include "runtime/cuda/handles.hpp"
#include "runtime/cuda/host_calls.hpp"
#include "runtime/cuda/primary_context.hpp"
#include "runtime/emulator/agents/bulk/tensor_map.hpp"

namespace ikat::runtime::cuda {
namespace {

class Device final : public Backend {
public:
    Device(std::shared_ptr<const Driver> driver, int ordinal)
        : driver_(std::move(driver)),
          properties_(device_properties(*driver_, ordinal)),
          context_(driver_, device_id(*driver_, ordinal)) {
        int least = 0;
        enter();
        check(driver_->cuCtxGetStreamPriorityRange(&least, &properties_.greatest_priority),
              "cuCtxGetStreamPriorityRange");
    }
    ~Device() override {
        if (entered()) setter_.reset();
    }

    const DeviceProperties& properties() const override { return properties_; }

    std::uint64_t allocate(std::size_t bytes, std::string_view name) override {
        enter();
        DevicePointer address = 0;
        check_memory(driver_->cuMemAlloc_v2(&address, std::max<std::size_t>(bytes, 1)), "cuMemAlloc", bytes, name);
        return address;
    }
    void release(std::uint64_t address) noexcept override {
        if (entered()) driver_->cuMemFree_v2(address);
    }
    std::uint64_t allocate(std::size_t bytes, std::string_view name, StreamHandle stream) override;
    void release(std::uint64_t address, StreamHandle stream) noexcept override;
    void rename(std::uint64_t, std::string_view) override {}
    std::byte* allocate_host(std::size_t bytes, std::string_view name) override {
        enter();
        void* memory = nullptr;
        const Result result = driver_->cuMemHostAlloc(&memory, std::max<std::size_t>(bytes, 1), 0);
        if (result == Result::OutOfMemory)
            throw Error(fmt::format("no page-locked memory of the host for the {} bytes of buffer '{}'", bytes, name),
                        "a system lets a process lock a part of its memory only");
        check(result, "cuMemHostAlloc");
        std::memset(memory, 0, bytes);
        return static_cast<std::byte*>(memory);
    }
    void release_host(std::byte* memory) noexcept override {
        if (!entered()) return;
        driver_->cuCtxSynchronize();  // a copy may use it
        driver_->cuMemFreeHost(memory);
    }

    using Backend::copy;
    void copy(const RawCopy& asked, StreamHandle stream) override;
    void fill(std::uint64_t to, std::span<const std::byte> element, std::size_t count, StreamHandle stream,
              const Location& where) override;

    ModuleHandle load(const PtxText& ptx) override;
    void unload(ModuleHandle module) noexcept override {
        const std::unique_ptr<const Loaded> loaded(&to_loaded(module));
        if (!entered()) return;
        driver_->cuCtxSynchronize();  // a kernel of it may be running, on any stream
        driver_->cuModuleUnload(loaded->module);
    }
    void launch(ModuleHandle module, const RawLaunch& launch, StreamHandle stream) override;
    void set_variable(ModuleHandle module, std::string_view name, std::span<const std::byte> contents) override;

    TensorMapBytes encode(const emulator::TensorMap& map) override;

    StreamHandle create_stream(int priority) override {
        enter();
        Stream stream = nullptr;
        check(driver_->cuStreamCreateWithPriority(&stream, 0, priority), "cuStreamCreateWithPriority");
        return to_handle<StreamHandle>(stream);
    }
    void destroy_stream(StreamHandle stream) noexcept override {
        if (entered()) driver_->cuStreamDestroy_v2(to_stream(stream));
    }
    /// Work in the default stream waits for that of others; to wait for the default stream alone does not.
    void synchronize(StreamHandle stream) override {
        enter();
        if (stream == default_stream)
            check_work(driver_->cuCtxSynchronize(), "cuCtxSynchronize");
        else
            check_work(driver_->cuStreamSynchronize(to_stream(stream)), "cuStreamSynchronize");
        calls_->rethrow();
    }
    bool query(StreamHandle stream) override {
        enter();
        const Result result = driver_->cuStreamQuery(to_stream(stream));
        if (result == Result::NotReady) return false;
        check_work(result, "cuStreamQuery");
        calls_->rethrow();
        return true;
    }

    void call(const Reference<const HostFunction>& function, StreamHandle stream) override;

    Reference<DeviceGraph> instantiate(std::vector<GraphNode> nodes) override {
        enter();
        const auto find = [this](const GraphNode::Launch& launch) -> LaunchedFunction {
            const Loaded::Entry entry = entry_of(to_loaded(launch.module), launch.raw());
            check_parameters(entry, launch.raw());
            return {entry.function, entry.layout ? entry.layout->offsets : std::vector<std::uint64_t>()};
        };
        return make_graph({Reference<Backend>(this), driver_, context_.handle(), calls_, find, *setter_},
                          std::move(nodes));
    }

    EventHandle create_event() override {
        enter();
        Event event = nullptr;
        check(driver_->cuEventCreate(&event, 0), "cuEventCreate");
        return to_handle<EventHandle>(event);
    }
    void record(EventHandle event, StreamHandle stream) override {
        enter();
        check(driver_->cuEventRecord(to_event(event), to_stream(stream)), "cuEventRecord");
    }
    void wait(EventHandle event, StreamHandle stream) override {
        enter();
        check(driver_->cuStreamWaitEvent(to_stream(stream), to_event(event), 0), "cuStreamWaitEvent");
    }
    void wait_for_peer(Backend& of, EventHandle event, StreamHandle stream) override {
        of.properties().kind == DeviceKind::Cuda ? wait(event, stream) : of.synchronize(event);
    }
    void destroy_event(EventHandle event) noexcept override {
        if (entered()) driver_->cuEventDestroy_v2(to_event(event));
    }
    void synchronize(EventHandle event) override {
        enter();
        check_work(driver_->cuEventSynchronize(to_event(event)), "cuEventSynchronize");
    }
    bool query(EventHandle event) override {
        enter();
        const Result result = driver_->cuEventQuery(to_event(event));
        if (result != Result::NotReady) check_work(result, "cuEventQuery");
        return result != Result::NotReady;
    }
    double milliseconds(EventHandle start, EventHandle stop) override {
        synchronize(stop);
        float milliseconds = 0;
        check(driver_->cuEventElapsedTime(&milliseconds, to_event(start), to_event(stop)), "cuEventElapsedTime");
        return milliseconds;
    }

    bool can_access_peer(const Backend& other) const override {
        const auto* const peer = dynamic_cast<const Device*>(&other);
        return peer && context_.can_reach(peer->context_);
    }
    bool has_peer_access(const Backend& other) const override {
        const auto* const peer = dynamic_cast<const Device*>(&other);
        return peer && context_.reaches(peer->context_);
    }
    void set_peer_access(Backend& other, bool is_enabled) override {
        if (is_enabled && !can_access_peer(other)) return Backend::set_peer_access(other, true);
        enter();
        if (const auto* const peer = dynamic_cast<const Device*>(&other))
            context_.set_reach(peer->context_, is_enabled);
    }

private:
    /// The context must be current in each thread that calls the driver.
    void enter() const { check(driver_->cuCtxSetCurrent(context_.handle()), "cuCtxSetCurrent"); }
    bool entered() const noexcept { return driver_->cuCtxSetCurrent(context_.handle()) == Result::Success; }
    void check(Result result, std::string_view doing) const { driver_->check(result, doing); }
    void check_memory(Result result, std::string_view doing, std::size_t bytes, std::string_view name) const {
        if (result == Result::OutOfMemory)
            throw Error(fmt::format("no device memory for the {} bytes of buffer '{}'", bytes, name),
                        fmt::format("{} has {} bytes in all", properties_.name, properties_.memory_bytes));
        check(result, doing);
    }
    void copy_row(const RawCopy& asked, Stream stream) const;
    /// Like check, for failures that may be due to an earlier kernel.
    void check_work(Result result, std::string_view doing) const;
    void allow_dynamic_shared(Loaded::Entry& entry, const RawLaunch& launch) const;
    /// Of an entry whose layout is known.
    static void check_parameters(const Loaded::Entry& entry, const RawLaunch& launch);
    /// The entry of a launch, which may have the memory that this asks for.
    Loaded::Entry entry_of(Loaded& module, const RawLaunch& launch) const;

    std::shared_ptr<const Driver> driver_;
    DeviceProperties properties_;
    PrimaryContext context_;
    mutable std::mutex mutex_;
    std::string last_launch_;  // for messages: the possible cause of a later failure
    const Reference<HostCalls> calls_ = make_reference<HostCalls>();
    std::unique_ptr<ConditionSetter> setter_ = std::make_unique<ConditionSetter>(driver_);
};

/// Without memory in the order of a stream, which drivers have since CUDA 11.2, it is there at once, and is freed when
/// the stream has done its work.
std::uint64_t Device::allocate(std::size_t bytes, std::string_view name, StreamHandle stream) {
    if (!driver_->cuMemAllocAsync) return allocate(bytes, name);
    enter();
    DevicePointer address = 0;
    check_memory(driver_->cuMemAllocAsync(&address, std::max<std::size_t>(bytes, 1), to_stream(stream)),
                 "cuMemAllocAsync", bytes, name);
    return address;
}

void Device::release(std::uint64_t address, StreamHandle stream) noexcept {
    if (!entered()) return;
    if (driver_->cuMemFreeAsync && driver_->cuMemFreeAsync(address, to_stream(stream)) == Result::Success) return;
    driver_->cuStreamSynchronize(to_stream(stream));
    driver_->cuMemFree_v2(address);
}

/// A row within the device, or to or from the host.
void Device::copy_row(const RawCopy& asked, Stream stream) const {
    const auto& [to, from] = std::tie(asked.to, asked.from);
    if (to.host)
        check(driver_->cuMemcpyDtoHAsync_v2(to.host, from.address, asked.bytes, stream), "cuMemcpyDtoHAsync");
    else if (from.host)
        check(driver_->cuMemcpyHtoDAsync_v2(to.address, from.host, asked.bytes, stream), "cuMemcpyHtoDAsync");
    else
        check(driver_->cuMemcpyDtoDAsync_v2(to.address, from.address, asked.bytes, stream), "cuMemcpyDtoDAsync");
}

void Device::copy(const RawCopy& asked, StreamHandle on) {
    enter();
    if (asked.bytes == 0 || asked.rows == 0 || asked.planes == 0) return;
    const Stream stream = to_stream(on);
    const bool from_elsewhere = asked.source && asked.source != this;
    if (from_elsewhere && asked.source->properties().kind != DeviceKind::Cuda) return copy_through_host(asked, on);
    if (!from_elsewhere && asked.rows == 1 && asked.planes == 1) return copy_row(asked, stream);
    const auto end = [&](const RawCopy::Place& place, const Device& device) -> BoxCopy::End {
        const std::size_t pitch = asked.rows > 1 ? place.row_pitch : asked.bytes;
        return {.type = place.host ? BoxCopy::MemoryType::Host : BoxCopy::MemoryType::Device,
                .host = place.host,
                .device = place.address,
                .context = from_elsewhere ? device.context_.handle() : nullptr,
                .pitch = pitch,
                .height = asked.rows};
    };
    BoxCopy box{.from = end(asked.from, from_elsewhere ? static_cast<const Device&>(*asked.source) : *this),
                .to = end(asked.to, *this),
                .width = asked.bytes,
                .height = asked.rows};
    // One plane after the other: a plane's pitch need not be a number of rows.
    for (std::uint64_t plane = 0; plane < asked.planes; ++plane) {
        const auto advance = [](BoxCopy::End& place, std::uint64_t bytes) {
            place.host ? void(place.host = static_cast<std::byte*>(place.host) + bytes) : void(place.device += bytes);
        };
        if (plane) advance(box.from, asked.from.plane_pitch), advance(box.to, asked.to.plane_pitch);
        if (from_elsewhere)
            check(driver_->cuMemcpy3DPeerAsync(&box, stream), "cuMemcpy3DPeerAsync");
        else
            check(driver_->cuMemcpy3DAsync_v2(&box, stream), "cuMemcpy3DAsync");
    }
}

void Device::call(const Reference<const HostFunction>& function, StreamHandle stream) {
    enter();
    auto one = std::make_unique<HostCalls::Call>(HostCalls::Call{function, calls_});
    check(driver_->cuLaunchHostFunc(to_stream(stream), HostCalls::run, one.get()), "cuLaunchHostFunc");
    static_cast<void>(one.release());  // run() deletes it
}

void Device::check_work(Result result, std::string_view doing) const {
    if (!is_kernel_failure(result)) return check(result, doing);
    const std::lock_guard lock(mutex_);
    check(result, last_launch_.empty() ? std::string(doing) : "kernel '" + last_launch_ + "', launched last,");
}

template <class Word>
Word as_word(std::span<const std::byte> element) {
    Word word{};
    std::memcpy(&word, element.data(), sizeof word);
    return word;
}

void Device::fill(std::uint64_t to, std::span<const std::byte> element, std::size_t count, StreamHandle stream,
                  const Location&) {
    enter();
    if (count == 0) return;
    const Stream on = to_stream(stream);
    switch (element.size()) {
        case 1:
            return check(driver_->cuMemsetD8Async(to, as_word<unsigned char>(element), count, on), "cuMemsetD8Async");
        case 2:
            return check(driver_->cuMemsetD16Async(to, as_word<unsigned short>(element), count, on),
                         "cuMemsetD16Async");
        case 4: return check(driver_->cuMemsetD32Async(to, as_word<unsigned>(element), count, on), "cuMemsetD32Async");
        default: break;
    }
    // There is no memset of 64-bit words: write one element, then repeatedly double the written part.
    write(to, element, stream);
    const std::size_t bytes = element.size() * count;
    for (std::size_t done = element.size(); done < bytes; done *= 2)
        copy(to + done, to, std::min(done, bytes - done), stream);
}

ModuleHandle Device::load(const PtxText& ptx) {
    enter();
    auto loaded = std::make_unique<Loaded>();
    loaded->layouts = layouts_of(ptx);
    const std::string image(ptx.text);  // the driver needs a terminating zero
    std::string errors(16384, '\0');
    JitOption options[] = {JitOption::ErrorLogBuffer, JitOption::ErrorLogBufferSizeBytes};
    void* values[] = {errors.data(), reinterpret_cast<void*>(std::uintptr_t(errors.size()))};
    const Result result =
        driver_->cuModuleLoadDataEx(&loaded->module, image.c_str(), std::size(options), options, values);
    if (result != Result::Success) throw jit_error(ptx, driver_->text(result), errors.c_str());
    return to_handle<ModuleHandle>(loaded.release());
}

/// Dynamic memory beyond the default must be requested for each function. Always requesting the maximum makes launches
/// from several threads independent.
void Device::allow_dynamic_shared(Loaded::Entry& entry, const RawLaunch& launch) const {
    const std::uint64_t needed = std::uint64_t(entry.fixed_shared) + launch.grid.dynamic_shared_bytes;
    if (needed <= properties_.shared_bytes) return;
    if (needed > properties_.shared_bytes_optin)
        throw Error(fmt::format("kernel '{}' needs {} bytes of shared memory per block ({} static, {} dynamic)",
                                launch.entry, needed, entry.fixed_shared, launch.grid.dynamic_shared_bytes),
                    fmt::format("this device gives a block at most {}", properties_.shared_bytes_optin));
    if (entry.has_dynamic_shared) return;
    check(driver_->cuFuncSetAttribute(entry.function, FunctionAttribute::MaxDynamicSharedSizeBytes,
                                      int(properties_.shared_bytes_optin) - entry.fixed_shared),
          "cuFuncSetAttribute(MAX_DYNAMIC_SHARED_SIZE_BYTES)");
    entry.has_dynamic_shared = true;
}

Loaded::Entry Device::entry_of(Loaded& module, const RawLaunch& launch) const {
    const std::lock_guard lock(module.mutex);
    auto found = module.entries.find(launch.entry);
    if (found == module.entries.end()) {
        const std::string name(launch.entry);
        Loaded::Entry entry;
        const Result result = driver_->cuModuleGetFunction(&entry.function, module.module, name.c_str());
        if (result == Result::NotFound) throw Error(fmt::format("the PTX has no entry '{}'", name), {});
        check(result, "cuModuleGetFunction");
        check(driver_->cuFuncGetAttribute(&entry.fixed_shared, FunctionAttribute::SharedSizeBytes, entry.function),
              "cuFuncGetAttribute");
        if (const auto its = module.layouts.find(name); its != module.layouts.end()) entry.layout = &its->second;
        found = module.entries.emplace(name, entry).first;
    }
    allow_dynamic_shared(found->second, launch);
    return found->second;
}

void Device::check_parameters(const Loaded::Entry& entry, const RawLaunch& launch) {
    if (!entry.layout || launch.parameters.size() == entry.layout->bytes) return;
    throw Error(fmt::format("entry '{}' takes {} bytes of parameters, not {}", launch.entry, entry.layout->bytes,
                            launch.parameters.size()),
                {});
}

void Device::launch(ModuleHandle module, const RawLaunch& launch, StreamHandle stream) {
    enter();
    const Loaded::Entry entry = entry_of(to_loaded(module), launch);
    const Function function = entry.function;
    const auto& [blocks, threads, shared] = launch.grid;
    check_parameters(entry, launch);
    LaunchParameters parameters(launch.parameters,
                                entry.layout ? entry.layout->offsets : std::span<const std::uint64_t>());
    void** const one_by_one = parameters.one_by_one();
    void** const together = parameters.in_one_piece();
    if (launch.begins_early && driver_->cuLaunchKernelEx) {
        LaunchAttribute overlap;
        overlap.id = LaunchAttribute::Id::ProgrammaticStreamSerialization, overlap.number = 1;
        const LaunchConfig config{blocks.x,  blocks.y, blocks.z,          threads.x, threads.y,
                                  threads.z, shared,   to_stream(stream), &overlap,  1};
        check_work(driver_->cuLaunchKernelEx(&config, function, one_by_one, together), "cuLaunchKernelEx");
    } else {
        check_work(driver_->cuLaunchKernel(function, blocks.x, blocks.y, blocks.z, threads.x, threads.y, threads.z,
                                           shared, to_stream(stream), one_by_one, together),
                   "cuLaunchKernel");
    }
    const std::lock_guard lock(mutex_);
    last_launch_ = launch.entry;
}

TensorMapBytes Device::encode(const emulator::TensorMap& map) {
    if (!driver_->cuTensorMapEncodeTiled)
        throw Error("the CUDA driver cannot make maps of tensors", "it is older than CUDA 12: update the driver");
    enter();
    TensorMap out{};
    check(driver_->cuTensorMapEncodeTiled(&out, unsigned(map.type), map.rank,
                                          reinterpret_cast<void*>(std::uintptr_t(map.address)), map.extents.data(),
                                          map.strides.data(), map.box.data(), map.element_strides.data(),
                                          map.interleave, unsigned(map.swizzle), map.l2_promotion, map.fills_with_nan),
          "cuTensorMapEncodeTiled");
    return std::to_array(out.bytes);
}

void Device::set_variable(ModuleHandle module, std::string_view name, std::span<const std::byte> contents) {
    enter();
    DevicePointer address = 0;
    std::size_t bytes = 0;
    const Result found =
        driver_->cuModuleGetGlobal_v2(&address, &bytes, to_loaded(module).module, std::string(name).c_str());
    if (found == Result::NotFound)
        throw Error(fmt::format("the PTX has no variable '{}'", name),
                    "only variables in .global and .const outside functions can be set");
    check(found, "cuModuleGetGlobal");
    if (bytes != contents.size())
        throw Error(fmt::format("variable '{}' has {} bytes, not {}", name, bytes, contents.size()),
                    "give all of its elements");
    write(address, contents, default_stream);
    synchronize(default_stream);
}

}  // namespace

Reference<Backend> open_device(std::shared_ptr<const Driver> driver, int ordinal) {
    return make_reference<Device>(std::move(driver), ordinal);
}

}  // namespace ikat::runtime::cuda
