// SPDX-License-Identifier: Apache-2.0
#include "runtime/emulator/host/trace.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>

#include "codegen/support/notes.hpp"
#include "runtime/emulator/core/checks/wording.hpp"
#include "runtime/emulator/host/graphs/work_graph.hpp"

namespace ikat::emulator {

namespace {

constexpr std::uint64_t first_thread = 1000000;  // tracks below are those of streams, by number
constexpr std::string_view end_of_list = "\n]\n";

std::string quoted(std::string_view text) {
    std::string out = "\"";
    for (const char c : text) {
        if (c == '"' || c == '\\') out += '\\';
        if (static_cast<unsigned char>(c) < 0x20)
            out += fmt::format("\\u{:04x}", unsigned(static_cast<unsigned char>(c)));
        else
            out += c;
    }
    return out + '"';
}

std::string name_of(const Work& work) {
    struct Names {
        std::string operator()(const work::Launch& launch) const { return launch.entry; }
        std::string operator()(const work::SetVariable& change) const { return "set " + change.name; }
        std::string operator()(const work::Copy& copy) const {
            return copy.to.host && copy.from.host ? "copy on the host"
                   : copy.to.host                 ? "copy to the host"
                   : copy.from.host               ? "copy to the device"
                                                  : "copy";
        }
        std::string operator()(const work::Fill&) const { return "fill"; }
        std::string operator()(const work::Allocate&) const { return "allocate"; }
        std::string operator()(const work::Free&) const { return "free"; }
        std::string operator()(const work::Record&) const { return "record an event"; }
        std::string operator()(const work::Wait&) const { return "wait for an event"; }
        std::string operator()(const work::HostCall&) const { return "call of the program"; }
        std::string operator()(const work::Renew&) const { return "memory of a graph"; }
        std::string operator()(const work::Conditional& its) const {
            using Kind = work::Conditional::Kind;
            return its.kind == Kind::If ? "if" : its.kind == Kind::While ? "while" : "switch";
        }
        std::string operator()(const work::Graph& graph) const {
            return fmt::format("graph of {} nodes", graph.graph->nodes.size());
        }
    };
    return std::visit(Names{}, work);
}

/// Where it was enqueued, if that is known.
Location where_of(const Work& work) {
    if (const auto* const launch = std::get_if<work::Launch>(&work)) return launch->where;
    if (const auto* const copy = std::get_if<work::Copy>(&work)) return copy->where;
    if (const auto* const fill = std::get_if<work::Fill>(&work)) return fill->where;
    if (const auto* const graph = std::get_if<work::Graph>(&work)) return graph->where;
    if (const auto* const conditional = std::get_if<work::Conditional>(&work)) return conditional->where;
    return {};
}

std::string arguments_of(const Work& work, std::uint64_t bytes_read, std::uint64_t bytes_written) {
    if (const auto* const copy = std::get_if<work::Copy>(&work))
        bytes_read = bytes_written = copy->bytes * copy->rows * copy->planes;
    else if (const auto* const fill = std::get_if<work::Fill>(&work))
        bytes_written = fill->count * fill->element.size() * fill->rows;
    std::string out = fmt::format(R"("bytes read":{},"bytes written":{})", bytes_read, bytes_written);
    if (const auto* const launch = std::get_if<work::Launch>(&work))
        out += fmt::format(R"(,"grid":{},"block":{})", quoted(tuple(launch->launch().grid)),
                           quoted(tuple(launch->launch().block)));
    if (const Location where = where_of(work); where.known())
        out += fmt::format(R"(,"enqueued at":{})", quoted(to_string(where)));
    return out;
}

}  // namespace

Trace::Trace(std::string path) : path_(std::move(path)), file_(std::fopen(path_.c_str(), "w")) {
    if (!file_)
        throw Error(fmt::format("the trace cannot be written to '{}': {}", path_, std::strerror(errno)),
                    "IKAT_TRACE names a file in a folder that exists");
    std::fputs("[", file_);
    complete();
}

Trace::~Trace() {
    complete();
    note_result(std::fclose(file_) == 0);
}

/// The program goes on without a trace.
void Trace::note_result(bool is_good) {
    if (is_good || is_broken_) return;
    is_broken_ = true;
    note(fmt::format("the trace in '{}' is not complete: {}\n", path_, std::strerror(errno)));
}

unsigned Trace::add_device() {
    const std::lock_guard lock(mutex_);
    const unsigned device = ++devices_;
    write(
        fmt::format(R"({{"ph":"M","pid":{},"name":"process_name","args":{{"name":"emulator {}"}}}})", device, device));
    return device;
}

void Trace::write(std::string_view event) {
    if (is_broken_) return;
    note_result(std::fputs(is_first_ ? "\n" : ",\n", file_) >= 0 &&
                std::fwrite(event.data(), 1, event.size(), file_) == event.size());
    is_first_ = false;
}

/// What comes next overwrites the end.
void Trace::complete() {
    if (is_broken_) return;
    const long end = std::ftell(file_);
    note_result(end >= 0 && std::fwrite(end_of_list.data(), 1, end_of_list.size(), file_) == end_of_list.size() &&
                std::fflush(file_) == 0 && std::fseek(file_, end, SEEK_SET) == 0);
}

void Trace::name_track(unsigned device, std::uint64_t track, std::string_view name) {
    if (!named_.emplace(device, track).second) return;
    write(fmt::format(R"({{"ph":"M","pid":{},"tid":{},"name":"thread_name","args":{{"name":{}}}}})", device, track,
                      quoted(name)));
    const std::uint64_t place = track < first_thread ? track + 1000 : track - first_thread;  // threads come first
    write(fmt::format(R"({{"ph":"M","pid":{},"tid":{},"name":"thread_sort_index","args":{{"sort_index":{}}}}})", device,
                      track, place));
}

std::uint64_t Trace::track_of_thread(unsigned device) {
    const std::uint64_t number = threads_.emplace(std::this_thread::get_id(), threads_.size()).first->second;
    name_track(device, first_thread + number, number ? fmt::format("thread {}", number) : "program");
    return first_thread + number;
}

void Trace::enqueued(unsigned device, const Piece& piece, Time begin) {
    const double from = microseconds(begin), to = microseconds(now());
    const std::lock_guard lock(mutex_);
    const std::uint64_t track = track_of_thread(device);
    write(fmt::format(
        R"({{"ph":"X","cat":"program","pid":{},"tid":{},"ts":{:.3f},"dur":{:.3f},"name":{},"args":{{"stream":{}}}}})",
        device, track, from, to - from, quoted("enqueue: " + name_of(piece.work)), piece.stream_number));
    write(fmt::format(R"({{"ph":"s","cat":"work","name":"work","id":"{}.{}","pid":{},"tid":{},"ts":{:.3f}}})", device,
                      piece.number, device, track, from));
}

void Trace::done(unsigned device, const Piece& piece, Time begin, std::uint64_t bytes_read,
                 std::uint64_t bytes_written) {
    const double from = microseconds(begin), to = microseconds(now());
    const std::lock_guard lock(mutex_);
    const unsigned stream = piece.stream_number;
    name_track(device, stream, stream ? fmt::format("stream {}", stream) : "default stream");
    write(fmt::format(
        R"({{"ph":"X","cat":"device","pid":{},"tid":{},"ts":{:.3f},"dur":{:.3f},"name":{},"args":{{{}}}}})", device,
        stream, from, to - from, quoted(name_of(piece.work)), arguments_of(piece.work, bytes_read, bytes_written)));
    if (piece.number == 0) return;  // a node of a graph, which is drawn in that
    write(fmt::format(R"({{"ph":"f","bp":"e","cat":"work","name":"work","id":"{}.{}","pid":{},"tid":{},"ts":{:.3f}}})",
                      device, piece.number, device, stream, from));
}

void Trace::waited(unsigned device, std::string_view what, Time begin) {
    const double from = microseconds(begin), to = microseconds(now());
    const std::lock_guard lock(mutex_);
    write(fmt::format(R"({{"ph":"X","cat":"program","pid":{},"tid":{},"ts":{:.3f},"dur":{:.3f},"name":{}}})", device,
                      track_of_thread(device), from, to - from, quoted(fmt::format("wait for {}", what))));
    complete();
}

}  // namespace ikat::emulator
