// SPDX-License-Identifier: Apache-2.0
// What work of a device has touched, compared with what other streams do.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "runtime/emulator/core/checks/faults.hpp"
#include "runtime/emulator/core/checks/suppressions.hpp"
#include "runtime/emulator/core/memory/memory.hpp"
#include "runtime/emulator/host/graphs/work_graph.hpp"
#include "runtime/emulator/host/host_device.hpp"

namespace ikat::emulator {

bool HostDevice::is_compared(const Piece& piece) const {
    if (about_races_ == Action::Off) return false;
    const Work& work = piece.work;
    const bool touches = std::visit(
        []<class W>(const W&) {
            return !(std::is_same_v<W, work::SetVariable> || std::is_same_v<W, work::Record> ||
                     std::is_same_v<W, work::Wait> || std::is_same_v<W, work::HostCall>);
        },
        work);
    // Streams of our own programs and the default one wait for each other; those of a client need not, nor do those of
    // another device.
    return touches && (piece.stream != default_stream || origin_ == Origin::Foreign || is_linked_);
}

std::vector<TouchedBytes> HostDevice::touched_by(const Work& work, TouchedMemory& memory) const {
    std::vector<TouchedBytes> out;
    out.reserve(4);
    // A place and its rows, in memory that the device knows, or else of the host.
    const auto box = [&](work::Place place, std::uint64_t bytes, std::uint64_t rows, work::Copy::Pitch pitch,
                         std::uint64_t planes, const std::shared_ptr<Memory::State>& elsewhere = {}) {
        TouchedBytes& its = out.emplace_back();
        if (elsewhere) {
            its.buffer = elsewhere->find(place.device).base;
            return ByteRanges::of_box(place.device, bytes, rows, pitch.row, planes, pitch.plane);
        }
        std::uint64_t address = place.host ? reinterpret_cast<std::uintptr_t>(place.host) : place.device;
        if (place.host)
            if (const auto pinned = memory_.pinned(address)) address = pinned->device + (address - pinned->begin);
        if (const auto buffer = memory_.buffer(address); buffer.bytes > 0)
            its.buffer = buffer.address;
        else if (origin_ == Origin::Foreign)  // pageable: a driver takes its bytes at the call, or waits
            return ByteRanges();
        return ByteRanges::of_box(address, bytes, rows, pitch.row, planes, pitch.plane);
    };
    if (const auto* const copy = std::get_if<work::Copy>(&work)) {
        ByteRanges from =
            box(copy->from, copy->bytes, copy->rows, copy->from_pitch, copy->planes, copy->from_elsewhere);
        out.back().read = std::move(from);
        ByteRanges to = box(copy->to, copy->bytes, copy->rows, copy->to_pitch, copy->planes, copy->to_elsewhere);
        out.back().written = std::move(to);
    } else if (const auto* const fill = std::get_if<work::Fill>(&work)) {
        ByteRanges to =
            box(work::on_device(fill->to), fill->count * fill->element.size(), fill->rows, {fill->pitch, 0}, 1);
        out.back().written = std::move(to);
    } else if (const auto* const allocate = std::get_if<work::Allocate>(&work)) {
        out.push_back({.buffer = allocate->address});
        out.back().written.add(allocate->address, allocate->address + allocate->bytes);
    } else if (const auto* const free = std::get_if<work::Free>(&work)) {
        out.push_back({.buffer = free->address});
        out.back().written.add(free->address, free->address + free->bytes);
    } else if (const auto* const renew = std::get_if<work::Renew>(&work)) {
        if (renew->bytes == 0) return out;
        out.push_back({.buffer = renew->address});
        out.back().written.add(renew->address, renew->address + renew->bytes);
    } else if (const auto* const conditional = std::get_if<work::Conditional>(&work)) {
        ByteRanges from = box(work::on_device(conditional->condition), sizeof(std::uint32_t), 1, {}, 1);
        out.back().read = std::move(from);
    } else {
        add_by_buffer(memory, out);
    }
    return out;
}

/// What a launch has touched.
void HostDevice::add_by_buffer(TouchedMemory& memory, std::vector<TouchedBytes>& out) const {
    for (std::size_t i = 0; i < touches; ++i) {
        TouchedBytes* its = nullptr;
        Memory::Range buffer;
        for (const ByteRanges::Range& range : memory.bytes[i].take()) {
            if (range.begin - buffer.address >= buffer.bytes) {
                buffer = memory_.space().buffer_of(range.begin);
                if (range.begin - buffer.address >= buffer.bytes) continue;  // of a block or a thread
                const auto found = std::ranges::find(out, buffer.address, &TouchedBytes::buffer);
                its = found == out.end() ? &out.emplace_back(TouchedBytes{buffer.address}) : &*found;
            }
            ByteRanges& to = Touch(i) == Touch::Read    ? its->read
                             : Touch(i) == Touch::Write ? its->written
                                                        : its->strong;
            to.add(range.begin, std::min(range.end, buffer.address + buffer.bytes));
        }
    }
}

Deed deed_of(const Work& work) {
    Deed out;
    if (const auto* const launch = std::get_if<work::Launch>(&work))
        out.what = fmt::format("kernel '{}'", launch->entry), out.where = launch->where;
    else if (const auto* const copy = std::get_if<work::Copy>(&work))
        out.what = "a copy", out.where = copy->where;
    else if (const auto* const fill = std::get_if<work::Fill>(&work))
        out.what = "a fill", out.where = fill->where;
    else if (std::holds_alternative<work::Renew>(work))
        out.what = "memory of a graph that begins or ends";
    else if (const auto* const conditional = std::get_if<work::Conditional>(&work))
        out.what = "a conditional node", out.where = conditional->where;
    else if (std::holds_alternative<work::Allocate>(work))
        out.what = "an allocation", out.allocates = true;
    else
        out.what = "a release of memory", out.frees = true;
    return out;
}

namespace {

std::string on_stream(unsigned number) {
    return number ? fmt::format("on stream {}", number) : "on the default stream";
}
std::string on_its_stream(const StreamRaces::Race::Side& side, bool names_device) {
    return on_stream(side.place) + (names_device ? " of " + *side.device : "");
}

}  // namespace

/// A finding with its code, unless it is suppressed or a warning that has been said.
std::optional<Diagnostic> HostDevice::finding(FaultCode code, std::string_view about, Diagnostic what) const {
    if (options_.suppressions && options_.suppressions->has(Check::Streams, what.where)) return {};
    what.severity = severity_of(about_races_);
    what.hint = info(code).hint;
    what.code = info(code).name;
    if (about_races_ != Action::Error && !is_new(options_, about, what)) return {};
    return what;
}

std::optional<Diagnostic> HostDevice::compare(const Piece& piece, const std::shared_ptr<const Deed>& deed,
                                              std::vector<TouchedBytes> touched) {
    std::optional<StreamRaces::Race> race;
    {
        const std::lock_guard lock(shared_.mutex);
        race =
            shared_.races.add({piece.number, {number_, piece.stream}, *piece.known, piece.stream_number, shared_name_},
                              deed, std::move(touched));
    }
    return race ? finding(*race, on_its_stream) : std::nullopt;
}

std::optional<Diagnostic> HostDevice::finding(const StreamRaces::Race& race, PlaceOfSide at) const {
    const auto& [first, second, buffer, bytes] = race;
    std::string where = fmt::format("memory of the host at {:#x}", bytes.begin);
    const auto owner = buffer ? address_windows().owner(buffer) : nullptr;
    if (const auto its = owner ? owner->describe(buffer) : std::nullopt)
        where = fmt::format("bytes {} to {} of {}", bytes.begin - buffer, bytes.end - buffer - 1, its->called());
    const bool differ = first.device != second.device;
    return finding(
        FaultCode::StreamRace, fmt::format("{} {} {} {}", second.deed->what, second.does, first.deed->what, first.does),
        {.where = second.deed->where,
         .message =
             fmt::format("{} {} {} {}, which {} {} {}, and nothing orders the two", second.deed->what,
                         at(second, differ), second.does, where, first.deed->what, at(first, differ), first.does),
         .notes = {{first.deed->where, fmt::format("{} was enqueued here, {}", first.deed->what, at(first, differ))}}});
}

bool may_write_host(const Work& work) {
    if (const auto* const graph = std::get_if<work::Graph>(&work)) return graph->graph->writes_host;
    if (const auto* const conditional = std::get_if<work::Conditional>(&work))
        return std::ranges::any_of(conditional->bodies, &WorkGraph::writes_host);
    const auto* const copy = std::get_if<work::Copy>(&work);
    return std::holds_alternative<work::HostCall>(work) || (copy && copy->to.host);
}

std::optional<std::uint64_t> checksum_of(const Work& work) {
    const auto* const copy = std::get_if<work::Copy>(&work);
    if (!copy || !copy->from.host || !copy->keeps_host) return {};
    std::uint64_t sum = 0;
    const auto add = [&](std::uint64_t word) { sum = (sum ^ word) * 0x9e3779b97f4a7c15u, sum ^= sum >> 32; };
    for (std::size_t plane = 0; plane < copy->planes; ++plane)
        for (std::size_t row = 0; row < copy->rows; ++row) {
            const std::byte* from = copy->from.host + plane * copy->from_pitch.plane + row * copy->from_pitch.row;
            for (std::size_t rest = copy->bytes; rest > 0;) {
                const std::size_t here = std::min(rest, sizeof(std::uint64_t));
                std::uint64_t word = 0;
                std::memcpy(&word, from, here);
                add(word);
                from += here, rest -= here;
            }
        }
    return sum;
}

std::optional<Diagnostic> HostDevice::check_host_memory(const Work& work, std::optional<std::uint64_t> checksum,
                                                        unsigned stream) const {
    if (!checksum || checksum == checksum_of(work)) return {};
    return finding(FaultCode::HostChange, {},
                   {.where = std::get<work::Copy>(work).where,
                    .message = info(FaultCode::HostChange).message,
                    .notes = {{{}, "the copy is " + on_stream(stream)}}});
}

}  // namespace ikat::emulator
