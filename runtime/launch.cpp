// SPDX-License-Identifier: Apache-2.0
#include "runtime/launch.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>

#include "codegen/ast/ast.hpp"
#include "runtime/buffer.hpp"
#include "runtime/emulator/agents/tensor_map.hpp"
#include "runtime/typed_launch.hpp"

namespace ikat::runtime {
namespace {

constexpr std::string_view access_words[] = {"", "in", "out", "inout"};

std::string text(const ir::Parameter& parameter) {
    if (parameter.bytes) return fmt::format("{} bytes at {}", parameter.bytes, parameter.alignment);
    if (parameter.access == ir::Access::Value) return std::string(info(parameter.type).name);
    return fmt::format("{} {}[]", access_words[int(parameter.access)], info(parameter.element).name);
}

std::string text(const Argument& argument) {
    if (!argument.raw.empty()) return fmt::format("{} bytes at {}", argument.raw.size(), argument.alignment);
    return fmt::format("{}{}", info(argument.type).name, argument.is_buffer() ? "[]" : "");
}

bool is_written(const ir::Parameter& parameter) {
    return parameter.access == ir::Access::Out || parameter.access == ir::Access::InOut;
}

/// Whether an integer argument is negative.
bool is_negative(const Argument& argument) {
    return ir::is_signed(argument.type) && argument.bits >> (ir::bits(argument.type) - 1) & 1;
}
std::uint64_t magnitude(const Argument& argument) {
    const std::uint64_t mask = ~std::uint64_t{0} >> (64 - ir::bits(argument.type));
    return is_negative(argument) ? (~argument.bits + 1) & mask : argument.bits;
}

/// The buffer that an argument is, or is a map of; null for others.
const Argument* memory_of(const Argument& argument) {
    return argument.is_buffer() ? &argument : argument.mapped ? &argument.mapped->buffer : nullptr;
}

/// Whether two buffers share a byte. The gaps between the rows of views count.
bool overlap(const Argument& a, const Argument& b) {
    return a.address() < b.address() + b.bytes() && b.address() < a.address() + a.bytes();
}

/// Calls report(message, hint) for each limit of the device that a grid exceeds.
void each_exceeded_limit(const Grid& grid, const DeviceProperties& device, auto&& report) {
    const auto& [blocks, threads, shared] = grid;
    if (threads.count() == 0) report("a block has no threads", "every dimension of a block is at least 1");
    const Dim3& widest = device.max_threads;
    if (threads.x > widest.x || threads.y > widest.y || threads.z > widest.z ||
        threads.count() > device.max_threads_per_block)
        report(fmt::format("a block of {} x {} x {} threads", threads.x, threads.y, threads.z),
               fmt::format("{} takes at most {} threads per block and {} x {} x {} per dimension", device.name,
                           device.max_threads_per_block, widest.x, widest.y, widest.z));
    const Dim3& most = device.max_blocks;
    if (blocks.x > most.x || blocks.y > most.y || blocks.z > most.z)
        report(fmt::format("a grid of {} x {} x {} blocks", blocks.x, blocks.y, blocks.z),
               fmt::format("{} takes at most {} x {} x {}", device.name, most.x, most.y, most.z));
}

/// One launch being checked. Findings are collected and thrown together.
struct Check {
    const ast::KernelTree& kernel;
    std::span<const Argument> arguments;
    Location where;
    std::vector<Diagnostic> findings{};

    void report(const std::string& message, std::string hint) {
        findings.push_back({.where = where,
                            .message = fmt::format("launch of '{}': {}", kernel.name, message),
                            .hint = std::move(hint)});
        if (where.known() && kernel.where.known())
            findings.back().notes.emplace_back(kernel.where, "the kernel is here");
    }
    void finish() {
        if (!findings.empty()) throw Error(std::move(findings));
    }

    void count();
    void type(std::size_t i);
    void contract(std::size_t i);
    void alignment(std::size_t i);
    void size(const ast::LeastSize& least);
    void expectation(const ast::Expectation& expected);
    std::string words(std::size_t i) const;
    void overlaps(std::size_t i);
    void home(std::size_t i, const Backend& device);
    void view(const ast::View& view);
    void limits(const Grid& grid, const DeviceProperties& device) {
        each_exceeded_limit(grid, device,
                            [this](const std::string& message, const std::string& hint) { report(message, hint); });
    }
    void bounds(const Dim3& block, const Dim3& blocks);
    void shared_memory(const Grid& grid);
};

void Check::count() {
    const std::size_t wanted = kernel.parameters.size();
    if (arguments.size() != wanted)
        report(fmt::format("it takes {} argument{}, not {}", wanted, wanted == 1 ? "" : "s", arguments.size()), {});
}

void Check::type(std::size_t i) {
    const ir::Parameter& parameter = kernel.parameters[i];
    const bool wants_buffer = parameter.access != ir::Access::Value;
    const ir::Type wanted = wants_buffer ? parameter.element : parameter.type;
    const bool same_bytes = arguments[i].raw.size() == parameter.bytes &&
                            (parameter.bytes == 0 || arguments[i].alignment == parameter.alignment);
    if (arguments[i].is_buffer() != wants_buffer || arguments[i].type != wanted || !same_bytes)
        report(fmt::format("parameter '{}' is {}, the argument is {}", parameter.name, text(parameter),
                           text(arguments[i])),
               fmt::format("argument {} (from 0) must be {}", i, text(parameter)));
}

void Check::contract(std::size_t i) {
    const ir::Parameter& parameter = kernel.parameters[i];
    const Argument& argument = arguments[i];
    if (parameter.multiple > 1 && magnitude(argument) % parameter.multiple != 0)
        report(fmt::format("'{}' is {}{}, which is not a multiple of {}", parameter.name,
                           is_negative(argument) ? "-" : "", magnitude(argument), parameter.multiple),
               "the kernel requires it; pad the data or use a kernel without this contract");
}

/// To what the contract says, and to an element.
void Check::alignment(std::size_t i) {
    const ir::Parameter& parameter = kernel.parameters[i];
    const Argument& argument = arguments[i];
    if (!argument.is_buffer()) return;
    const std::uint64_t element = info(parameter.element).bytes;
    const bool has_elements = argument.bytes() > 0;
    const auto report_unaligned = [&](std::uint64_t bytes, const std::string& hint) {
        report(fmt::format("buffer '{}' is not aligned to {} bytes", parameter.name, bytes), hint);
    };
    if (parameter.alignment > 1 && argument.address() % parameter.alignment != 0)
        report_unaligned(parameter.alignment, "the kernel requires it");
    else if (has_elements && argument.address() % element != 0)
        report_unaligned(element, fmt::format("its elements are {}: start at a multiple of their size",
                                              info(parameter.element).name));
}

void Check::size(const ast::LeastSize& least) {
    const Argument& buffer = arguments[least.pointer];
    if (!buffer.memory->device()) return;  // home() tells
    std::uint64_t product = 1;
    const auto times = [&](std::uint64_t number) {
        if (__builtin_mul_overflow(product, number, &product)) product = ~std::uint64_t{0};
    };
    for (const std::uint32_t factor : least.factors) {
        const std::uint64_t number = is_negative(arguments[factor]) ? 0 : magnitude(arguments[factor]);
        if (number == 0) return;
        times(number);
    }
    product /= least.per;
    times(least.count);
    if (buffer.elements() >= product) return;
    report(fmt::format("buffer '{}' has {} elements, fewer than {} = {}", kernel.parameters[least.pointer].name,
                       buffer.elements(), ast::product(kernel, least), product),
           "the kernel requires it: check the numbers against the buffer's size");
}

void Check::expectation(const ast::Expectation& expected) {
    const std::string& name = kernel.parameters[expected.parameter].name;
    const Argument& argument = arguments[expected.parameter];
    for (const ast::View& view : kernel.views)
        for (std::uint32_t d = 0; d + 1 < view.rank; ++d)
            if (view.pitch(d) == expected.parameter && arguments[view.extent(d)].bits <= 1) return;
    const std::uint64_t given = argument.is_buffer() ? argument.address() : magnitude(argument);
    if (given % expected.multiple == 0) return;
    report(argument.is_buffer()
               ? fmt::format("buffer '{}' is not aligned to {} bytes", name, expected.multiple)
               : fmt::format("'{}' is {}, which is not a multiple of {}", name, given, expected.multiple),
           expected.hint);
    findings.back().notes.push_back({expected.where, expected.what + " here"});
}

std::string Check::words(std::size_t i) const {
    const ast::TensorMap* const map = kernel.map_at(std::uint32_t(i));
    return map ? fmt::format("map of {}[]", info(map->element).name) : text(kernel.parameters[i]);
}

/// Only an `in` parameter, and a map through which nothing is stored, promise that their memory is not written; each
/// pair is reported once, from their side.
void Check::overlaps(std::size_t i) {
    const auto writes = [&](std::size_t j) {
        const ast::TensorMap* const map = kernel.map_at(std::uint32_t(j));
        return map ? map->is_written : is_written(kernel.parameters[j]);
    };
    const Argument* const mine = memory_of(arguments[i]);
    if (!mine || writes(i)) return;
    for (std::size_t j = 0; j < arguments.size(); ++j) {
        const Argument* const other = memory_of(arguments[j]);
        if (!other || !writes(j) || mine->memory->device() != other->memory->device() || !overlap(*mine, *other))
            continue;
        report(fmt::format("'{}' ({}) and '{}' ({}) are the same memory", kernel.parameters[i].name, words(i),
                           kernel.parameters[j].name, words(j)),
               "the kernel reads the first through the read-only path: give them separate buffers, or declare one "
               "InOut parameter");
    }
}

void Check::home(std::size_t i, const Backend& device) {
    const Argument* const mine = memory_of(arguments[i]);
    if (!mine || mine->memory->device() == &device) return;
    if (!mine->memory->device())
        report(fmt::format("the buffer of '{}' was moved from", kernel.parameters[i].name), moved_from_hint);
    else
        report(fmt::format("the buffer of '{}' is on another device", kernel.parameters[i].name),
               "a kernel runs where its buffers are: upload the data to this device");
}

void Check::view(const ast::View& view) {
    std::vector<std::uint64_t> extents, pitches;
    for (std::uint32_t d = 0; d < view.rank; ++d) extents.push_back(arguments[view.extent(d)].bits);
    for (std::uint32_t d = 0; d + 1 < view.rank; ++d) pitches.push_back(arguments[view.pitch(d)].bits);
    const std::string problem = view_problem(extents, pitches, arguments[view.pointer].elements());
    if (!problem.empty())
        report(fmt::format("'{}': {}", kernel.parameters[view.pointer].name, problem),
               "a view must lie inside its buffer");
}

void Check::bounds(const Dim3& block, const Dim3& blocks) {
    if (kernel.bounds.max_threads && block.count() > kernel.bounds.max_threads)
        report(fmt::format("a block of {} threads, but its launch bounds say at most {}", block.count(),
                           kernel.bounds.max_threads),
               "launch smaller blocks or raise launch_bounds()");
    const auto& cluster = kernel.bounds.cluster;
    if (blocks.x % cluster[0] || blocks.y % cluster[1] || blocks.z % cluster[2])
        report(fmt::format("a grid of {} x {} x {} blocks in clusters of {} x {} x {}", blocks.x, blocks.y, blocks.z,
                           cluster[0], cluster[1], cluster[2]),
               "launch a multiple of the cluster's blocks along each axis");
    if (kernel.block.whole_warps && block.count() % 32 != 0)
        report(fmt::format("a block of {} threads, but the kernel needs whole warps", block.count()),
               "it exchanges values between all lanes of a warp: launch a multiple of 32 threads per block");
    if (kernel.block.whole_warpgroups && block.count() % 128 != 0)
        report(fmt::format("a block of {} threads, but the kernel needs whole warpgroups", block.count()),
               "four warps multiply matrices together: launch a multiple of 128 threads per block");
    if (kernel.block.threads && block.count() != kernel.block.threads)
        report(fmt::format("a block of {} threads, but the kernel is laid out for {}", block.count(),
                           kernel.block.threads),
               fmt::format("launch {} threads per block", kernel.block.threads));
    if (kernel.block.linear && (block.y != 1 || block.z != 1))
        report(fmt::format("a block of {} x {} x {} threads, but the kernel needs one-dimensional blocks", block.x,
                           block.y, block.z),
               fmt::format("launch {} x 1 x 1 threads per block", block.count()));
    if (kernel.block.linear_grid && (blocks.y > 1 || blocks.z > 1))
        report(fmt::format("a grid of {} x {} x {} blocks, but the kernel needs a one-dimensional grid", blocks.x,
                           blocks.y, blocks.z),
               fmt::format("a block's work depends only on its x: launch {} x 1 x 1 blocks", blocks.count()));
}

void Check::shared_memory(const Grid& grid) {
    const auto is_dynamic = [](const ir::Symbol& symbol) { return symbol.dynamic; };
    if (grid.dynamic_shared_bytes == 0 && std::ranges::any_of(kernel.symbols, is_dynamic))
        report("it uses dynamic shared memory, but the launch gives none",
               "give its size in the grid: Grid{{blocks}, {threads}, bytes}");
}

}  // namespace

std::uint64_t Argument::address() const { return memory->address() + offset; }
std::uint64_t Argument::bytes() const {
    const std::uint64_t all = memory ? memory->bytes() : 0;
    return std::min(length, all - std::min(offset, all));
}
std::uint64_t Argument::elements() const { return bytes() / info(type).bytes; }

Grid grid(std::uint64_t elements, std::uint32_t threads_per_block) {
    if (threads_per_block == 0) throw Error("a grid of blocks without threads", "give at least 1 thread per block");
    const std::uint64_t blocks = elements / threads_per_block + (elements % threads_per_block != 0);
    if (blocks > std::numeric_limits<std::int32_t>::max())
        throw Error(fmt::format("{} elements need {} blocks of {} threads", elements, blocks, threads_per_block),
                    "a grid has at most 2147483647 blocks: let each thread do several elements (grid_stride)");
    return {.blocks = {std::uint32_t(blocks)}, .threads = {threads_per_block}};
}

void check_arguments(const ast::KernelTree& kernel, std::span<const Argument> arguments, const Location& where) {
    Check check{kernel, arguments, where};
    check.count();
    check.finish();
    for (std::size_t i = 0; i < arguments.size(); ++i) check.type(i);
    check.finish();
}

void check_launch(const ast::KernelTree& kernel, const LaunchPoint& point, std::span<const Argument> arguments,
                  const Backend& device) {
    check_arguments(kernel, arguments, point.where);
    Check check{kernel, arguments, point.where};
    for (std::size_t i = 0; i < arguments.size(); ++i) {
        check.contract(i);
        check.alignment(i);
        check.overlaps(i);
        check.home(i, device);
    }
    for (const ast::View& view : kernel.views) check.view(view);
    for (const ast::LeastSize& least : kernel.sizes) check.size(least);
    for (const ast::Expectation& expected : kernel.expectations) check.expectation(expected);
    check.limits(point.grid, device.properties());
    check.bounds(point.grid.threads, point.grid.blocks);
    check.shared_memory(point.grid);
    check.finish();
}

void check_limits(std::string_view entry, const Grid& grid, const DeviceProperties& device) {
    std::vector<Diagnostic> findings;
    each_exceeded_limit(grid, device, [&](const std::string& message, std::string hint) {
        findings.push_back({.message = fmt::format("launch of '{}': {}", entry, message), .hint = std::move(hint)});
    });
    if (!findings.empty()) throw Error(std::move(findings));
}

namespace {

FloatFormat format_of(ir::Type type) {
    return with_type(type, []<class T>() {
        if constexpr (is_small_float<T>)
            return T::format;
        else
            return sizeof(T) == 4 ? binary32 : binary64;
    });
}

/// The bits of a floating-point number rounded to `type`; nothing if a finite number overflows.
std::optional<std::uint64_t> rounded(double number, ir::Type type) {
    FloatFormat format = format_of(type);
    const std::uint64_t bits = encode(number, format, Rounding::Nearest);
    const std::uint64_t magnitude = bits & format.nan();
    if (std::isfinite(number) && magnitude == format.infinity()) return {};
    if (format.clamps && std::abs(number) > decode(format.beyond() - 1, format)) return {};
    return bits;
}

/// The bits of an integer in `type`; nothing if the type cannot hold its value.
std::optional<std::uint64_t> exact(bool negative, std::uint64_t magnitude, ir::Type type) {
    if (ir::is_float(type)) {
        const FloatFormat format = format_of(type);
        const std::uint64_t down = encode(negative, {magnitude, 0}, format, Rounding::Down);
        const std::uint64_t up = encode(negative, {magnitude, 0}, format, Rounding::Up);
        return down == up ? std::optional(down) : std::nullopt;
    }
    const std::uint64_t sign = std::uint64_t{1} << (ir::bits(type) - 1), mask = sign | (sign - 1);
    const std::uint64_t most = negative ? (ir::is_signed(type) ? sign : 0) : ir::is_signed(type) ? sign - 1 : mask;
    if (magnitude > most) return {};
    return (negative ? 0 - magnitude : magnitude) & mask;
}

}  // namespace

Argument adapt(const HostScalar& number, ir::Type type, const ast::KernelTree& kernel, std::size_t position,
               const Location& where) {
    const bool floating = number.kind == HostScalar::Kind::Floating;
    const bool negative = number.kind == HostScalar::Kind::Signed && number.integer >> 63;
    const std::uint64_t magnitude = negative ? 0 - number.integer : number.integer;
    const ir::Type each = lane(type);  // a number fills both lanes of a packed type
    const auto bits = floating ? rounded(number.floating, each) : exact(negative, magnitude, each);
    if (bits) return {.type = type, .bits = is_packed(type) ? *bits << ir::bits(each) | *bits : *bits};
    const std::string text =
        floating ? fmt::format("{}", number.floating) : fmt::format("{}{}", negative ? "-" : "", magnitude);
    throw Error(
        Diagnostic{.where = where,
                   .message = fmt::format("launch of '{}': {} does not fit parameter '{}', which is {}", kernel.name,
                                          text, kernel.parameters[position].name, info(type).name),
                   .hint = "pass a number that the parameter's type can hold, or give the parameter a wider type"});
}

Argument buffer_argument(ir::Type element, const BufferPart& part, const ast::KernelTree& kernel, std::size_t position,
                         const Location& where) {
    if (part.is_there()) return {.type = element, .memory = part.memory, .offset = part.offset, .length = part.bytes};
    throw Error(Diagnostic{
        .where = where,
        .message = fmt::format("launch of '{}': the buffer of '{}' {}", kernel.name, kernel.parameters[position].name,
                               part.memory ? "has been freed" : "is an empty slice without a buffer"),
        .hint = part.memory ? freed_hint : "give it a buffer, or buffer.slice(first, count)"});
}

namespace {

emulator::MapType map_type(ir::Type type) {
    using ir::Type, emulator::MapType;
    switch (type) {
        case Type::U16:
        case Type::I16: return MapType::U16;
        case Type::U32: return MapType::U32;
        case Type::I32: return MapType::I32;
        case Type::U64: return MapType::U64;
        case Type::I64: return MapType::I64;
        case Type::F16: return MapType::F16;
        case Type::BF16: return MapType::Bf16;
        case Type::F32: return MapType::F32;
        case Type::F64: return MapType::F64;
        default: return MapType::U8;
    }
}

emulator::MapSwizzle map_swizzle(std::uint32_t bytes) {
    using enum emulator::MapSwizzle;
    return bytes == 128 ? B128 : bytes == 64 ? B64 : bytes == 32 ? B32 : None;
}

}  // namespace

Argument map_argument(ir::Type element, const BufferPart& part, std::span<const std::uint64_t> extents,
                      std::span<const std::uint64_t> pitches, const ast::KernelTree& kernel, std::size_t position,
                      const Location& where, std::uint64_t back) {
    const Argument buffer = buffer_argument(element, part, kernel, position, where);
    const auto refuse = [&](const std::string& message, std::string hint) {
        throw Error(Diagnostic{
            .where = where,
            .message = fmt::format("launch of '{}': '{}': {}", kernel.name, kernel.parameters[position].name, message),
            .hint = std::move(hint)});
    };
    if (!part.memory->device()) refuse("its buffer was moved from", moved_from_hint);
    const ast::TensorMap& box = *kernel.map_at(std::uint32_t(position));
    emulator::TensorMap map{.type = map_type(element), .rank = box.rank};
    map.address = buffer.address() - back * info(element).bytes;
    const std::size_t last = box.rank - 1;
    for (std::size_t d = 0; d <= last; ++d) {
        map.extents[d] = extents[last - d];
        map.box[d] = box.box[last - d];
        map.element_strides[d] = box.every[last - d];
        if (d < last) map.strides[d] = pitches[last - 1 - d] * info(element).bytes;
    }
    map.swizzle = map_swizzle(box.swizzle);
    map.fills_with_nan = box.fills_with_nan;
    if (const std::string wrong = problem(map); !wrong.empty())
        refuse("the tensor has no map: " + wrong,
               "a tensor begins at a multiple of 16 bytes, and so do its rows: pad the pitch");
    auto mapped = make_reference<MappedTensor>(buffer, part.memory->device()->encode(map));
    return {.type = ir::Type::U8, .raw = mapped->bytes, .alignment = 64, .mapped = mapped};
}

std::vector<emulator::LaunchView> views_of(const ast::KernelTree& kernel, std::span<const Argument> arguments) {
    std::vector<emulator::LaunchView> views;
    for (std::size_t i = 0; i < arguments.size(); ++i) {
        if (!arguments[i].is_buffer()) continue;
        emulator::LaunchView& given =
            views.emplace_back(emulator::LaunchView{.argument = kernel.parameters[i].name,
                                                    .address = arguments[i].address(),
                                                    .element_bytes = std::uint32_t(info(arguments[i].type).bytes),
                                                    .extents = {arguments[i].elements()},
                                                    .pitches = {}});
        if (const ast::View* const view = kernel.view_at(std::uint32_t(i))) {
            given.extents.clear();
            for (std::uint32_t d = 0; d < view->rank; ++d) given.extents.push_back(arguments[view->extent(d)].bits);
            for (std::uint32_t d = 0; d + 1 < view->rank; ++d) given.pitches.push_back(arguments[view->pitch(d)].bits);
        }
        for (const ast::Halo& halo : kernel.halos)
            if (halo.pointer == i) given.halo.assign(halo.widths.begin(), halo.widths.end());
    }
    return views;
}

std::vector<std::byte> pack(std::span<const Argument> arguments) {
    std::vector<std::byte> out;
    const auto aligned = [&](std::size_t alignment) { return (out.size() + alignment - 1) / alignment * alignment; };
    for (const Argument& argument : arguments) {
        if (!argument.raw.empty()) {
            out.resize(aligned(argument.alignment));
            out.insert(out.end(), argument.raw.begin(), argument.raw.end());
            continue;
        }
        const std::size_t bytes = argument.is_buffer() ? 8 : info(argument.type).bytes;
        const std::size_t offset = aligned(bytes);
        const std::uint64_t bits = argument.is_buffer() ? argument.address() : argument.bits;
        out.resize(offset + bytes);
        std::memcpy(out.data() + offset, &bits, bytes);
    }
    return out;
}

}  // namespace ikat::runtime
