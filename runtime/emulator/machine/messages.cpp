// SPDX-License-Identifier: Apache-2.0
// The messages for findings; see messages.hpp.
#include "runtime/emulator/machine/messages.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <span>
#include <vector>

#include "runtime/emulator/core/checks/wording.hpp"
#include "runtime/emulator/ops/control.hpp"

namespace ikat::emulator {

std::string text_of(const ptx::Module& module, const ptx::Instruction& instruction) {
    constexpr std::size_t max_chars = 160;
    std::string text = ptx::print(module, instruction);
    if (text.size() > max_chars) text.replace(max_chars - 4, text.npos, " ...");
    return text;
}

std::string who(const ThreadBlock& block, const Warp& warp, unsigned lane) {
    return fmt::format("block {} thread {}", tuple(block.coordinates()), tuple(block.thread(warp, lane)));
}

std::string thread_text(const ThreadBlock& block, std::uint32_t number) {
    return fmt::format("thread {}", tuple(block.thread(block.warps()[number / warp_size], number % warp_size)));
}

const ptx::Instruction* instruction_at(const Warp& warp, std::uint32_t pc) {
    const auto& instructions = warp.kernel->instructions;
    return pc < instructions.size() ? instructions[pc] : nullptr;
}

void place(Diagnostic& diagnostic, const ThreadBlock& block, const ptx::Instruction* instruction) {
    if (!instruction) return;
    const LaunchState& state = block.launch_state();
    const Location ptx = location(state.module, instruction->where);
    diagnostic.where = location(state, *instruction);
    diagnostic.excerpt = "    " + text_of(state.module, *instruction);
    if (diagnostic.where != ptx) diagnostic.notes.push_back({ptx, "this instruction of the PTX"});
}

void place(Diagnostic& diagnostic, const ThreadBlock& block, const Warp& warp, std::uint32_t pc) {
    place(diagnostic, block, instruction_at(warp, pc));
}

namespace {

std::string_view space_name(Space space) {
    constexpr std::string_view names[] = {"global", "shared", "local", "param", "const", "generic", "shared::cluster"};
    return names[int(space)];
}

/// "12 bytes past the end of", for an access of `bytes` at `offset` relative to something of `size` bytes.
std::string distance(std::int64_t offset, std::uint32_t bytes, std::uint64_t size) {
    if (offset < 0) return fmt::format("{} before the start of", plural(std::uint64_t(-offset), "byte"));
    if (std::uint64_t(offset) == size) return "right past the end of";
    if (std::uint64_t(offset) > size)
        return fmt::format("{} past the end of", plural(std::uint64_t(offset) - size, "byte"));
    return fmt::format("{} across the end of", plural(std::uint64_t(offset) + bytes - size, "byte"));
}

struct Finding {
    FaultCode code;
    std::string what;
    const char* hint = nullptr;  // instead of the code's
    std::uint32_t line = 0;      // of the PTX, where the variable is declared
};

Finding global_finding(const Fault& fault, const Memory::State& memory) {
    const std::uint64_t address = fault.address;
    if (address >> window_bits == 0) return {FaultCode::NullPointer, fmt::format("at 0x{:x}: a null pointer", address)};
    if (address >> window_bits <= std::uint64_t(Space::Const) && fault.space == Space::Global)
        return {FaultCode::WrongSpace,
                fmt::format("at 0x{:x}, an address of {} memory", address, space_name(Space(address >> window_bits)))};
    const auto buffer = memory.describe(address);
    if (const auto other = buffer ? nullptr : memory.other_device_at(address)) {
        const auto its = other->describe(address);
        return {
            FaultCode::NoBuffer,
            fmt::format("at offset {} of {} ({}), which is on another device, {}", std::int64_t(address - its->address),
                        its->called(), plural(its->bytes, "byte"), other->device()),
            "copy it to the device that the kernel runs on, or enable peer access: "
            "device.enable_peer_access(other), or cuCtxEnablePeerAccess"};
    }
    if (!buffer) return {FaultCode::NoBuffer, fmt::format("at 0x{:x}, where no buffer is", address)};
    const auto offset = std::int64_t(address - buffer->address);
    const std::string name = buffer->called();
    if (buffer->freed)
        return {FaultCode::ReleasedBuffer, fmt::format("at offset {} of {} ({}), which has been released", offset, name,
                                                       plural(buffer->bytes, "byte"))};
    if (offset >= 0 && std::uint64_t(offset) + fault.bytes <= buffer->bytes)
        return {FaultCode::Misaligned,
                fmt::format("at offset {} of {}: misaligned, {} bytes are needed", offset, name, fault.bytes)};
    return {FaultCode::OutOfBounds, fmt::format("{} {} ({})", distance(offset, fault.bytes, buffer->bytes), name,
                                                plural(buffer->bytes, "byte"))};
}

/// "shared memory", "shared memory of block (1,0,0)" for another block of the cluster.
std::string memory_name(Space space, const ThreadBlock& owner, const ThreadBlock& block) {
    if (&owner == &block) return fmt::format("{} memory", space_name(space));
    return fmt::format("{} memory of block {}", space_name(space), tuple(owner.coordinates()));
}

struct Place {
    const ThreadBlock& owner;
    std::uint64_t address;
};
Place place_of(Space space, std::uint64_t address, const ThreadBlock& block) {
    if (space != Space::Shared) return {block, address};
    const auto [owner, place] = block.shared_place(address);
    return {owner, place};
}

Finding window_finding(const Fault& fault, Space space, std::uint64_t address, const ThreadBlock& block,
                       const Warp& warp) {
    const auto [owner, offset] = place_of(space, address, block);
    const std::string memory = memory_name(space, owner, block);
    if (fault.space == Space::Shared && offset != address)
        return {FaultCode::WrongSpace, fmt::format("at 0x{:x}, an address that `mapa` gave", address),
                "use .shared::cluster, or a generic address"};
    if (owner.has_ended())
        return {FaultCode::ExitedBlock, fmt::format("at 0x{:x} of {}, which has exited", offset, memory)};
    const View view = warp.generic[int(space)].at(address);
    if (address - view.base < view.bytes && address - view.base + fault.bytes <= view.bytes)
        return {FaultCode::Misaligned,
                fmt::format("at 0x{:x} of {}: misaligned, {} bytes are needed", offset, memory, fault.bytes)};
    if (space == Space::Param)
        return {FaultCode::OutOfBounds,
                fmt::format("{} the kernel's parameters ({})", distance(std::int64_t(offset), fault.bytes, view.bytes),
                            plural(view.bytes, "byte")),
                "check the offset against the .param list"};
    const NamedRange* const near = block.variables(space).nearest(offset);
    if (!near)
        return {FaultCode::NoBuffer, fmt::format("at 0x{:x} of {}, of which the kernel has none", offset, memory),
                "was the address computed with the wrong base?"};
    const bool dynamic = space == Space::Shared && near == &block.variables(space).ranges.back() &&
                         block.variables(space).ranges.size() > block.launch_state().kernel.shared.ranges.size();
    const bool negative = offset >> 31 && offset <= ~0u;
    const std::uint64_t from = negative ? std::uint64_t(std::int64_t(std::int32_t(offset))) : offset;
    return {FaultCode::OutOfBounds,
            fmt::format("{} '{}' in {} ({})", distance(std::int64_t(from - near->address), fault.bytes, near->bytes),
                        near->name, memory, plural(near->bytes, "byte")),
            dynamic ? "check the index, and the dynamic shared memory given to the launch"
                    : "check the index against the size of the array",
            near->line};
}

Finding access_finding(const ThreadBlock& block, const Warp& warp) {
    const Fault& fault = warp.fault;
    const std::uint64_t id = fault.address >> window_bits;
    if (fault.space != Space::Global && fault.space != Space::Generic)
        return window_finding(fault, fault.space, fault.address, block, warp);
    if (fault.space == Space::Generic && id >= 1 && id <= std::uint64_t(Space::Const))
        return window_finding(fault, Space(id), fault.address & (window_bytes - 1), block, warp);
    return global_finding(fault, block.launch_state().memory);
}

/// If an address is beyond a buffer by 2^32 elements: that the index, below 0, was taken for an unsigned number of 32
/// bits.
std::optional<std::string> wrapped_index(const Fault& fault, const Memory::State& memory) {
    constexpr std::int64_t near = 1 << 20;  // bytes
    for (std::uint64_t element = fault.bytes; element <= 16 && fault.address >= element << 32; element *= 2) {
        const std::uint64_t meant = fault.address - (element << 32);
        const auto buffer = memory.describe(meant);
        if (!buffer || buffer->freed || meant >= buffer->address) continue;
        const auto before = std::int64_t(buffer->address - meant);
        if (before > near || before % std::int64_t(element)) continue;
        return fmt::format("an index has wrapped mod 2^32: it is -{}, of elements of {} in {}",
                           before / std::int64_t(element), plural(element, "byte"), buffer->called());
    }
    return {};
}

/// "mask 0x0000000c, and 0x00000004 in lane 2"
std::string masks(const Fault& fault) {
    const std::string own = fmt::format("mask 0x{:08x}", fault.address);
    if (!fault.lanes) return own;
    if (!fault.other) return own + ": " + lane_list(fault.lanes);
    return fmt::format("{}, and 0x{:08x} in {}", own, fault.other, lane_list(fault.lanes));
}

}  // namespace

std::string bytes_text(const AccessedBytes& at, const ThreadBlock& block) {
    const std::uint64_t id = at.address >> window_bits;
    const bool global = at.space == Space::Global || (at.space == Space::Generic && id > std::uint64_t(Space::Const));
    if (global) {
        const auto buffer = block.launch_state().memory.describe(at.address);
        if (!buffer) return fmt::format("at 0x{:x}", at.address);
        return fmt::format("at offset {} of {} ({})", at.address - buffer->address, buffer->called(),
                           plural(buffer->bytes, "byte"));
    }
    const Space space = at.space == Space::Generic ? Space(id) : at.space;
    const auto [owner, address] = place_of(space, at.address & (window_bytes - 1), block);
    const std::string memory = memory_name(space, owner, block);
    const NamedRange* const range = block.variables(space).nearest(address);
    if (!range) return fmt::format("at 0x{:x} of {}", address, memory);
    return fmt::format("at offset {} of '{}' in {} ({})", address - range->address, range->name, memory,
                       plural(range->bytes, "byte"));
}

Location location(const ptx::Module& module, const ptx::Position& where) {
    return {module.file, where.line, where.column};
}

Location location(const LaunchState& state, const ptx::Instruction& instruction) {
    const std::uint32_t line = instruction.where.line;
    const bool is_known = line < state.source_lines.size() && state.source_lines[line].known();
    return is_known ? state.source_lines[line] : location(state.module, instruction.where);
}

namespace {

/// Where the kernel's source declares an array.
void note_declaration(Diagnostic& diagnostic, const LaunchState& state, std::uint32_t line) {
    if (line < state.source_lines.size() && state.source_lines[line].known())
        diagnostic.notes.push_back({state.source_lines[line], "the array is declared here"});
}

/// Where an undefined value came from, if known.
void note_origin(Diagnostic& diagnostic, const ThreadBlock& block, const Warp& warp) {
    const AccessedBytes& from = warp.definedness->unwritten;
    const ptx::Instruction* const instruction = from.op == ~0u ? nullptr : instruction_at(warp, from.op);
    const auto& module = block.launch_state().module;
    std::string text = "a register that nothing has assigned";
    if (instruction && from.bytes == 0)
        text = fmt::format("the last undefined value came from lane {}, which is not there or not in the mask: {}",
                           from.address, text_of(module, *instruction));
    else if (instruction)
        text = fmt::format("the last undefined value was loaded {}: {}", bytes_text(from, block),
                           text_of(module, *instruction));
    else
        diagnostic.hint = "assign the register on every path that leads here, under every guard";
    diagnostic.notes.push_back({instruction ? location(block.launch_state(), *instruction) : Location{}, text});
}

/// The op that has made what is stored of undefined values.
void note_maker(Diagnostic& diagnostic, const ThreadBlock& block, const Warp& warp) {
    const ptx::Instruction* const maker =
        warp.definedness->stored_of == ~0u ? nullptr : instruction_at(warp, warp.definedness->stored_of);
    if (!maker) return;
    const auto& module = block.launch_state().module;
    diagnostic.notes.push_back(
        {location(block.launch_state(), *maker), fmt::format("computed here: {}", text_of(module, *maker))});
}

/// A load of up to 16 bytes after the block's own dynamic shared memory: a device has more shared memory there.
bool is_in_tail(const Fault& fault, const ThreadBlock& block) {
    constexpr std::uint64_t max_distance = 16;
    const bool is_window =
        fault.space == Space::Generic && fault.address >> window_bits == std::uint64_t(Space::Shared);
    if (fault.store || (fault.space != Space::Shared && !is_window)) return false;
    const auto [owner, address] = block.shared_place(fault.address & (window_bytes - 1));
    const std::vector<NamedRange>& ranges = block.variables(Space::Shared).ranges;
    const bool has_dynamic = ranges.size() > block.launch_state().kernel.shared.ranges.size();
    if (&owner != &block || !has_dynamic || address % fault.bytes) return false;
    const std::uint64_t end = ranges.back().address + ranges.back().bytes;
    return address + fault.bytes > end && address + fault.bytes <= end + max_distance;
}

/// The text that check() wrote before the trap, for the first failing lane; empty if the kernel executed trap itself.
std::string_view failed_check(std::string_view output) {
    constexpr std::string_view begin = "check failed: ";
    std::string_view said;
    while (output.ends_with('\n')) {
        output.remove_suffix(1);
        const std::size_t line = output.rfind('\n') + 1;  // npos + 1 is 0
        if (!output.substr(line).starts_with(begin)) break;
        said = output.substr(line);
        output = output.substr(0, line);
    }
    return said;
}

/// By the agent or the tool that it is about, if there is one.
void describe(Diagnostic& diagnostic, const Fault& fault, const ThreadBlock& block, const std::string& by) {
    for (const auto& agent : block.agents())
        if (agent->describe(diagnostic, fault, by)) return;
    bool is_described = false;
    block.each_tool(
        [&](const BlockTool& tool) { is_described = is_described || tool.describe(diagnostic, fault, by); });
    if (!is_described) diagnostic.message += fmt::format(", by {}", by);
}

}  // namespace

Diagnostic diagnostic_of(FaultCode code) {
    return {.message = info(code).message, .hint = info(code).hint, .code = info(code).name};
}

std::optional<FaultCode> claim_of_agents(const Fault& access, const ThreadBlock& block, bool writes) {
    const bool is_window =
        access.space == Space::Generic && access.address >> window_bits == std::uint64_t(Space::Shared);
    if (access.space != Space::Shared && !is_window) return {};
    const auto [owner, address] = block.shared_place(access.address & (window_bytes - 1));
    for (const auto& agent : owner.agents())
        if (const auto code = agent->claim(address, access.bytes, writes)) return code;
    return {};
}

FaultCode refined_code(const Fault& fault, const ThreadBlock& block) {
    if (fault.code == FaultCode::OutOfBounds && is_in_tail(fault, block)) return FaultCode::SharedTail;
    if (fault.code != FaultCode::Unwritten) return fault.code;
    return claim_of_agents(fault, block, false).value_or(fault.code);
}

namespace {

/// Of an access that is not inside of what it may touch.
void describe_access(Diagnostic& diagnostic, const Fault& fault, const ThreadBlock& block, const ScheduledWarp& warp,
                     const std::string& by) {
    auto [code, what, hint, line] = access_finding(block, warp);
    if (fault.code == FaultCode::SharedTail) code = fault.code;
    diagnostic.code = info(code).name;
    diagnostic.message = fmt::format("{} {} of {}, {}, by {}", space_name(fault.space), fault.store ? "store" : "load",
                                     plural(fault.bytes, "byte"), what, by);
    diagnostic.hint = hint ? hint : info(code).hint;
    note_declaration(diagnostic, block.launch_state(), line);
    if (const auto wrapped = wrapped_index(fault, block.launch_state().memory))
        diagnostic.notes.push_back({{}, *wrapped});
}

}  // namespace

Error fault_error(const ThreadBlock& block, const ScheduledWarp& warp, const ptx::Instruction* at) {
    Fault fault = warp.fault;
    fault.code = refined_code(fault, block);
    Diagnostic diagnostic = diagnostic_of(fault.code);
    place(diagnostic, block, at ? at : instruction_at(warp, warp.pc));
    const std::string by = who(block, warp, fault.lane);
    switch (fault.code) {
        case FaultCode::SharedTail:
        case FaultCode::OutOfBounds: describe_access(diagnostic, fault, block, warp, by); break;
        case FaultCode::BlockNotStarted:
            diagnostic.message = fmt::format(
                "a store of {} {}, by {}, before the blocks of the cluster have met", plural(fault.bytes, "byte"),
                bytes_text({.space = fault.space, .address = fault.address, .bytes = fault.bytes}, block), by);
            break;
        case FaultCode::ReadOnly:
            diagnostic.message = fmt::format("{} store of {} at 0x{:x}, which can only be read, by {}",
                                             space_name(fault.space), plural(fault.bytes, "byte"), fault.address, by);
            break;
        case FaultCode::Unwritten:
            diagnostic.message = fmt::format(
                "{} of {} {}, which nothing has written, by {}", fault.store ? "an atomic" : "a print",
                plural(fault.bytes, "byte"),
                bytes_text({.space = fault.space, .address = fault.address, .bytes = fault.bytes}, block), by);
            break;
        case FaultCode::CopySize:
            diagnostic.message += fmt::format(" ({} of {}), by {}", fault.address, fault.bytes, by);
            break;
        case FaultCode::Trap:
            if (const std::string_view said = failed_check(block.output); !said.empty()) {
                diagnostic = diagnostic_of(FaultCode::CheckFailed);
                place(diagnostic, block, warp, warp.pc);
                diagnostic.message = said;
            }
            diagnostic.message += fmt::format(", in {}", by);
            break;
        case FaultCode::NotOwnMember:
        case FaultCode::MasksDisagree:
        case FaultCode::ExitedMember: diagnostic.message += fmt::format(" ({}), by {}", masks(fault), by); break;
        case FaultCode::PartialWarp:
            diagnostic.message += fmt::format(" (without {}), by {}", lane_list(fault.lanes), by);
            break;
        case FaultCode::ClusterRank:
            diagnostic.message +=
                fmt::format(" (rank {} of {}), by {}", fault.address, plural(warp.cluster_blocks, "block"), by);
            break;
        case FaultCode::NotShared: diagnostic.message += fmt::format(" (0x{:x}), by {}", fault.address, by); break;
        case FaultCode::PrintArguments: diagnostic.message = fmt::format("{}, by {}", block.finding, by); break;
        default: describe(diagnostic, fault, block, by);
    }
    const bool is_undefined = fault.code >= FaultCode::UndefinedAddress && fault.code <= FaultCode::UndefinedShuffle;
    if (fault.code == FaultCode::UndefinedStore) note_maker(diagnostic, block, warp);
    if (is_undefined) note_origin(diagnostic, block, warp);
    return Error(std::move(diagnostic));
}

Error product_error(const ThreadBlock& block, const Warp& warp, FaultCode code, std::string message,
                    const ptx::Instruction* instruction) {
    Diagnostic diagnostic = diagnostic_of(code);
    place(diagnostic, block, instruction);
    diagnostic.message = fmt::format("{}, by {}", message, who(block, warp, 0));
    return Error(std::move(diagnostic));
}

Error barrier_error(const ThreadBlock& block, const ScheduledWarp& warp, FaultCode code, std::string message,
                    const char* hint) {
    Diagnostic diagnostic = diagnostic_of(code);
    const Split& split = warp.splits().front();
    place(diagnostic, block, warp, split.pc);
    diagnostic.message = fmt::format("{}, in {}", message, who(block, warp, unsigned(std::countr_zero(split.mask))));
    if (*hint) diagnostic.hint = hint;
    return Error(std::move(diagnostic));
}

}  // namespace ikat::emulator
