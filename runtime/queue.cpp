// SPDX-License-Identifier: Apache-2.0
// What a program asks of a queue, as nodes for its sink.
#include "runtime/queue.hpp"

#include <fmt/format.h>

#include "codegen/kernel/kernel_info.hpp"
#include "runtime/device.hpp"
#include "runtime/exec/node.hpp"
#include "runtime/host_buffer.hpp"
#include "runtime/tensor_view.hpp"

namespace ikat::runtime {

Queue::Queue(const Device& device, const std::source_location& where)
    : device_(&device), sink_(device.sink().get()), where_(where) {}
Queue::Queue(const Stream& stream, const std::source_location& where)
    : device_(&stream.device_), sink_(&stream.sink()), where_(where) {}

void Queue::submit(const Node& work) const { sink_->take(work); }

void Queue::launch_list(const trace::KernelHandle& kernel, const LaunchPoint& point,
                        std::vector<Argument>&& arguments) const {
    check_launch(kernel.info(), point, arguments, device_->backend());
    for (Argument& argument : arguments) own_bytes(argument);
    Node work;  // filled where it is: this is the way that is gone most often
    node::Launch& launch = std::get<node::Launch>(work.work);
    launch.kernel.emplace(kernel);
    launch.grid = point.grid, launch.arguments = std::move(arguments), launch.where = point.where;
    submit(work);
}

void Queue::launch(const trace::KernelHandle& kernel, const LaunchPoint& point,
                   std::span<const Argument> arguments) const {
    launch_list(kernel, point, {arguments.begin(), arguments.end()});
}

namespace {

/// Said by the call, which a recorder makes, too, and not only when the work is done.
void check_home(const Module& module, std::string_view entry, const Backend& device) {
    if (&module.device() != &device)
        throw Error(fmt::format("launch of '{}': its module was loaded by another device", entry),
                    "load the PTX on each device that runs it");
}

}  // namespace

void Queue::launch_given(const trace::KernelHandle& kernel, const LaunchPoint& point,
                         std::span<const Given> given) const {
    launch_list(kernel, point, match(kernel.info(), given, point.where));
}

void Queue::launch_given(const Module& module, std::string_view entry, const LaunchPoint& point,
                         std::span<const Given> given) const {
    check_home(module, entry, device_->backend());
    const KernelInfo* const kernel = module.info(entry);
    if (!kernel)
        throw Error(
            Diagnostic{.where = point.where,
                       .message = fmt::format("launch of '{}': its PTX does not say what its parameters are", entry),
                       .hint = "give them as bytes, parameters(...): only PTX of ikat has a section that says it"});
    std::vector<Argument> arguments = match(*kernel, given, point.where);
    check_launch(*kernel, point, arguments, device_->backend());
    for (Argument& argument : arguments) own_bytes(argument);
    submit({node::Launch{.module = module.object(),
                         .entry = std::string(entry),
                         .grid = point.grid,
                         .arguments = std::move(arguments),
                         .where = point.where}});
}

void Queue::launch(const Module& module, std::string_view entry, const Grid& grid,
                   std::span<const std::byte> parameters, const Location& where) const {
    check_home(module, entry, device_->backend());
    if (const KernelInfo* const kernel = module.info(entry))
        check_launch(*kernel, {grid, where}, parameters, device_->backend());
    else
        check_limits(entry, grid, device_->properties());
    submit({node::Launch{.module = module.object(),
                         .entry = std::string(entry),
                         .grid = grid,
                         .parameters = {parameters.begin(), parameters.end()},
                         .where = where}});
}

namespace {

/// Rows, planes and pitches of an array, in bytes.
struct Box {
    std::uint64_t bytes = 0, rows = 1, planes = 1, row_pitch = 0, plane_pitch = 0;
};

/// Whether the rows of quantised weights follow each other.
bool is_dense(const TensorView& weights) {
    std::uint64_t stride = weights.extents[weights.rank - 1];
    for (std::size_t d = weights.rank - 1; d-- > 0; stride *= weights.extents[d])
        if (weights.extents[d] != 1 && weights.strides[d] != stride) return false;
    return true;
}

/// Where both arrays are dense, all is one row.
Box box_of(const TensorView& view, bool are_dense, const Location& where) {
    const auto refuse = [&](const char* message, const char* hint) {
        throw Error(Diagnostic{.where = where, .message = message, .hint = hint});
    };
    if (are_dense) return {.bytes = view.part.bytes};
    if (view.rank > 3) refuse("a copy of an array of more than three dimensions", "copy parts of it");
    const TensorView of = view.of_rank(3);
    if (of.extents[2] > 1 && of.strides[2] != 1)
        refuse("a copy of an array whose last dimension is not dense", "elements of a row follow each other");
    const QuantisedInfo* const blocks = view.format ? find_info(*view.format) : nullptr;
    const auto bytes = [&](std::uint64_t elements) {
        return blocks ? elements / blocks->weights * blocks->bytes : elements * ir::info(view.type).bytes;
    };
    return {bytes(of.extents[2]), of.extents[1], of.extents[0], bytes(of.strides[1]), bytes(of.strides[0])};
}

}  // namespace

void Queue::copy(const MutableTensorView& to, const TensorView& from) const {
    const Location where = this->where();
    const auto differs = [&] {
        if (to.type != from.type || to.format != from.format || to.rank != from.rank) return true;
        for (std::uint32_t d = 0; d < to.rank; ++d)
            if (to.extents[d] != from.extents[d]) return true;
        return false;
    };
    if (differs())
        throw Error(Diagnostic{.where = where,
                               .message = "a copy between arrays of different types or extents",
                               .hint = "a view gives an array other extents"});
    const bool are_dense = to.format && is_dense(to) && is_dense(from);
    const Box out = box_of(to, are_dense, where), in = box_of(from, are_dense, where);
    submit({node::Copy{.to = {to.part, nullptr, out.row_pitch, out.plane_pitch},
                       .from = {from.part, nullptr, in.row_pitch, in.plane_pitch},
                       .bytes = in.bytes,
                       .rows = in.rows,
                       .planes = in.planes,
                       .where = where}});
}

namespace {

/// The array as rows of bytes, if the host's part has as many of the same type.
Box box_beside(const HostPart& host, const TensorView& view, const Location& where) {
    const Box box = box_of(view, view.format && is_dense(view), where);
    const std::uint64_t bytes = box.bytes * box.rows * box.planes;
    const bool is_same_type = view.format ? host.type == ir::Type::U8 : host.type == view.type;
    if (!is_same_type || bytes != host.bytes)
        throw Error(Diagnostic{
            .where = where,
            .message = fmt::format("a copy between an array of {} bytes of {} and {} bytes of {} of the host", bytes,
                                   view.type_name(), host.bytes,
                                   host.type == ir::Type::Void ? "structs" : ir::info(host.type).name),
            .hint = "both have the same elements, and quantised weights are bytes: slices and views choose some"});
    return box;
}

node::Copy copy_beside(const HostPart& host, const TensorView& view, const Location& where, bool is_upload) {
    const Box box = box_beside(host, view, where);
    const node::Copy::Place device{view.part, nullptr, box.row_pitch, box.plane_pitch},
        on_host{{}, host.begin, box.bytes, box.bytes * box.rows};
    return {.to = is_upload ? device : on_host,
            .from = is_upload ? on_host : device,
            .bytes = box.bytes,
            .rows = box.rows,
            .planes = box.planes,
            .host_memory = host.memory,
            .where = where};
}

}  // namespace

void Queue::upload_async(const MutableTensorView& to, const HostPart& from) const {
    submit({copy_beside(from, to, where(), true)});
}

void Queue::download_async(const MutableHostPart& to, const TensorView& from) const {
    submit({copy_beside(to, from, where(), false)});
}

void Queue::fill(const BufferPart& to, std::span<const std::byte> element) const {
    submit({node::Fill{.to = to, .element = {element.begin(), element.end()}, .where = where()}});
}

Allocation Queue::allocate(std::size_t count, std::size_t element_bytes, std::string_view name) const {
    auto memory = make_reference<MemoryBlock>(device_->pool().object(), checked_bytes(count, element_bytes, name), name,
                                              Reference<Sink>(sink_));
    submit({node::Allocate{memory}});
    return Allocation(std::move(memory));
}

void Queue::call(Reference<const HostFunction> function) const { submit({node::HostCall{std::move(function)}}); }

Event Queue::record() const {
    Event event(make_reference<EventObject>(Reference<Backend>(&device_->backend())));
    record(event);
    return event;
}
void Queue::record(const Event& event) const { submit({node::Record{event.object()}}); }
void Queue::wait(const Event& event) const { submit({node::Wait{event.object(), where()}}); }

}  // namespace ikat::runtime
