// SPDX-License-Identifier: Apache-2.0
#include "runtime/launch/launch.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "codegen/kernel/kernel_info.hpp"
#include "runtime/buffer.hpp"
#include "runtime/launch/roles.hpp"

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

bool is_pointer(const ir::Parameter& parameter) { return parameter.access != ir::Access::Value; }

/// Whether an integer argument is negative.
bool is_negative(const Argument& argument) {
    return ir::is_signed(argument.type) && argument.bits >> (ir::bits(argument.type) - 1) & 1;
}
std::uint64_t magnitude(const Argument& argument) {
    const std::uint64_t mask = ~std::uint64_t{0} >> (64 - ir::bits(argument.type));
    return is_negative(argument) ? (~argument.bits + 1) & mask : argument.bits;
}

/// Of a buffer; one that is given as bytes is its address.
std::uint64_t address_of(const Argument& buffer) { return buffer.is_buffer() ? buffer.part.address() : buffer.bits; }

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
    const Dim3& max_blocks = device.max_blocks;
    if (blocks.x > max_blocks.x || blocks.y > max_blocks.y || blocks.z > max_blocks.z)
        report(fmt::format("a grid of {} x {} x {} blocks", blocks.x, blocks.y, blocks.z),
               fmt::format("{} takes at most {} x {} x {}", device.name, max_blocks.x, max_blocks.y, max_blocks.z));
}

/// One launch being checked. Findings are collected and thrown together.
struct Check {
    const KernelInfo& kernel;
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
    void parameter(std::size_t i) {
        const ir::Parameter& its = kernel.parameters[i];
        if (its.multiple > 1) contract(i);
        if (is_pointer(its)) alignment(i);
    }
    void contract(std::size_t i);
    void alignment(std::size_t i);
    void size(const KernelInfo::MinSize& minimum);
    void expectation(const KernelInfo::Expectation& expected);
    std::string words(std::size_t i) const;
    void memory(const Backend& device);
    void view(const KernelInfo::View& view);
    void grid(const Grid& grid, const DeviceProperties& device) {
        each_exceeded_limit(grid, device,
                            [this](const std::string& message, const std::string& hint) { report(message, hint); });
        bounds(grid.threads, grid.blocks);
        shared_memory(grid);
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
    const Argument& argument = arguments[i];
    const bool wants_buffer = is_pointer(parameter);
    const ir::Type wanted = wants_buffer ? parameter.element : parameter.type;
    const bool same_bytes =
        argument.raw.size() == parameter.bytes && (parameter.bytes == 0 || argument.alignment == parameter.alignment);
    if (argument.is_buffer() != wants_buffer || argument.type != wanted || !same_bytes)
        report(fmt::format("parameter '{}' is {}, the argument is {}", parameter.name, text(parameter), text(argument)),
               fmt::format("argument {} (from 0) must be {}", i, text(parameter)));
}

void Check::contract(std::size_t i) {
    const ir::Parameter& parameter = kernel.parameters[i];
    const Argument& argument = arguments[i];
    if (magnitude(argument) % parameter.multiple != 0)
        report(fmt::format("'{}' is {}{}, which is not a multiple of {}", parameter.name,
                           is_negative(argument) ? "-" : "", magnitude(argument), parameter.multiple),
               "the kernel requires it; pad the data or use a kernel without this contract");
}

/// To what the contract says, and to an element.
void Check::alignment(std::size_t i) {
    const ir::Parameter& parameter = kernel.parameters[i];
    const Argument& argument = arguments[i];
    const std::uint64_t element = info(parameter.element).bytes, address = address_of(argument);
    const bool has_elements = argument.part.bytes > 0;
    const auto report_unaligned = [&](std::uint64_t bytes, const std::string& hint) {
        report(fmt::format("buffer '{}' is not aligned to {} bytes", parameter.name, bytes), hint);
    };
    if (parameter.alignment > 1 && address % parameter.alignment != 0)
        report_unaligned(parameter.alignment, "the kernel requires it");
    else if (has_elements && address % element != 0)
        report_unaligned(element, fmt::format("its elements are {}: start at a multiple of their size",
                                              info(parameter.element).name));
}

void Check::size(const KernelInfo::MinSize& minimum) {
    const Argument& buffer = arguments[minimum.pointer];
    std::uint64_t product = 1;
    const auto times = [&](std::uint64_t number) {
        if (__builtin_mul_overflow(product, number, &product)) product = ~std::uint64_t{0};
    };
    for (const std::uint32_t factor : minimum.factors) {
        const std::uint64_t number = is_negative(arguments[factor]) ? 0 : magnitude(arguments[factor]);
        if (number == 0) return;
        times(number);
    }
    product /= minimum.per;
    times(minimum.count);
    if (buffer.elements() >= product) return;
    report(fmt::format("buffer '{}' has {} elements, fewer than {} = {}", kernel.parameters[minimum.pointer].name,
                       buffer.elements(), ikat::product(kernel, minimum), product),
           "the kernel requires it: check the numbers against the buffer's size");
}

void Check::expectation(const KernelInfo::Expectation& expected) {
    const std::string& name = kernel.parameters[expected.parameter].name;
    const Argument& argument = arguments[expected.parameter];
    for (const KernelInfo::View& view : kernel.views)
        for (std::uint32_t d = 0; d + 1 < view.rank; ++d)
            if (view.pitch(d) == expected.parameter && arguments[view.extent(d)].bits <= 1) return;
    const bool is_array = is_pointer(kernel.parameters[expected.parameter]);
    const std::uint64_t given = is_array ? address_of(argument) : magnitude(argument);
    if (given % expected.multiple == 0) return;
    report(is_array ? fmt::format("buffer '{}' is not aligned to {} bytes", name, expected.multiple)
                    : fmt::format("'{}' is {}, which is not a multiple of {}", name, given, expected.multiple),
           expected.hint);
    findings.back().notes.push_back({expected.where, expected.what + " here"});
}

std::string Check::words(std::size_t i) const {
    const TensorMapInfo* const map = kernel.map_at(std::uint32_t(i));
    return map ? fmt::format("map of {}[]", info(map->element).name) : text(kernel.parameters[i]);
}

/// It belongs to the device, and what is read is not written by another name.
void Check::memory(const Backend& device) {
    std::vector<OperandRole> operands;
    operands.reserve(8);
    for (std::uint32_t i = 0; i < arguments.size(); ++i) {
        const BufferPart* const its = arguments[i].memory();
        if (!its) continue;
        operands.emplace_back(kernel.parameters[i].name, *its, kernel.writes(i) ? Role::Written : Role::Read);
        const Backend& home = *its->memory->device();
        if (&home != &device && !device.has_peer_access(home))
            report(fmt::format("the buffer of '{}' is on another device, {}", kernel.parameters[i].name,
                               home.properties().selector),
                   not_here_hint);
    }
    const auto described = [&](const OperandRole& operand) {
        const auto is_its = [&](const ir::Parameter& each) { return each.name.data() == operand.name.data(); };
        const auto parameter = std::ranges::find_if(kernel.parameters, is_its);
        return fmt::format("'{}' ({})", operand.name, words(std::size_t(parameter - kernel.parameters.begin())));
    };
    for (const auto& [read, written] : forbidden_overlaps(operands, Overlaps::OfAKernel))
        report(fmt::format("{} and {} are the same memory", described(operands[read]), described(operands[written])),
               "the kernel reads the first through the read-only path: give them separate buffers, or declare one "
               "InOut parameter");
}

void Check::view(const KernelInfo::View& view) {
    std::array<std::uint64_t, 5> extents{}, pitches{};
    for (std::uint32_t d = 0; d < view.rank; ++d) extents[d] = arguments[view.extent(d)].bits;
    for (std::uint32_t d = 0; d + 1 < view.rank; ++d) pitches[d] = arguments[view.pitch(d)].bits;
    if (const ViewProblem problem =
            view_problem(std::span(extents).first(view.rank), std::span(pitches).first(view.rank - 1),
                         arguments[view.pointer].elements()))
        report(fmt::format("'{}': {}", kernel.parameters[view.pointer].name, problem.message), problem.hint);
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
    if (grid.dynamic_shared_bytes == 0 && kernel.takes_dynamic_shared)
        report("it uses dynamic shared memory, but the launch gives none",
               "give its size in the grid: Grid{{blocks}, {threads}, bytes}");
}

}  // namespace

void check_arguments(const KernelInfo& kernel, std::span<const Argument> arguments, const Location& where) {
    Check check{kernel, arguments, where};
    check.count();
    check.finish();
    for (std::size_t i = 0; i < arguments.size(); ++i) check.type(i);
    check.finish();
}

void check_launch(const KernelInfo& kernel, const LaunchPoint& point, std::span<const Argument> arguments,
                  const Backend& device) {
    check_arguments(kernel, arguments, point.where);
    Check check{kernel, arguments, point.where};
    for (std::size_t i = 0; i < arguments.size(); ++i) check.parameter(i);
    check.memory(device);
    for (const KernelInfo::View& view : kernel.views) check.view(view);
    for (const KernelInfo::MinSize& minimum : kernel.sizes) check.size(minimum);
    for (const KernelInfo::Expectation& expected : kernel.expectations) check.expectation(expected);
    check.grid(point.grid, device.properties());
    check.finish();
}

namespace {

/// The parameters as they lie in memory; of arrays, the address alone is known.
std::vector<Argument> unpacked(const KernelInfo& kernel, std::span<const std::byte> bytes) {
    std::vector<Argument> out;
    ParameterLayout layout;
    for (const ir::Parameter& parameter : kernel.parameters) {
        const std::size_t at = layout.add(parameter), size = layout.bytes() - at;
        Argument& argument = out.emplace_back(Argument{.type = parameter.type, .alignment = parameter.alignment});
        if (parameter.bytes)
            argument.raw = bytes.subspan(at, size);
        else
            std::memcpy(&argument.bits, bytes.data() + at, size);
    }
    return out;
}

}  // namespace

void check_launch(const KernelInfo& kernel, const LaunchPoint& point, std::span<const std::byte> parameters,
                  const Backend& device) {
    const std::size_t wanted = parameter_bytes(kernel);
    if (parameters.size() != wanted) {
        Check check{kernel, {}, point.where};
        check.report(fmt::format("it takes {} bytes of parameters, not {}", wanted, parameters.size()), {});
        check.finish();
    }
    const std::vector<Argument> arguments = unpacked(kernel, parameters);
    Check check{kernel, arguments, point.where};
    for (std::size_t i = 0; i < arguments.size(); ++i) check.parameter(i);
    for (const KernelInfo::Expectation& expected : kernel.expectations) check.expectation(expected);
    check.grid(point.grid, device.properties());
    check.finish();
}

void check_limits(std::string_view entry, const Grid& grid, const DeviceProperties& device) {
    std::vector<Diagnostic> findings;
    each_exceeded_limit(grid, device, [&](const std::string& message, std::string hint) {
        findings.push_back({.message = fmt::format("launch of '{}': {}", entry, message), .hint = std::move(hint)});
    });
    if (!findings.empty()) throw Error(std::move(findings));
}

}  // namespace ikat::runtime
