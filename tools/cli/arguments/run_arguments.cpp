// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/arguments/run_arguments.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>

#include "codegen/support/write_file.hpp"
#include "tools/cli/text/files.hpp"

namespace ikat::cli {

using Kind = ParsedArgument::Kind;

namespace {

/// Calls f(at, to, bytes) for each row of a buffer: where it is in an array whose rows follow each other, and where in
/// memory.
void each_row(const ParsedArgument& buffer, const std::function<void(std::uint64_t, std::uint64_t, std::uint64_t)>& f) {
    const std::vector<std::uint64_t>& shape = buffer.shape;
    const std::uint64_t row = shape.back(), size = buffer.type.bytes();
    for (std::uint64_t i = 0; i * row < buffer.elements; ++i) {
        std::uint64_t to = 0, rest = i;
        for (std::size_t d = shape.size() - 1; d-- > 0; rest /= shape[d]) to += rest % shape[d] * (*buffer.pitches)[d];
        f(i * row * size, to * size, row * size);
    }
}

std::string pitch_text(const std::vector<std::uint64_t>& pitches) {
    return pitches.empty() ? "rows that follow each other" : fmt::format("a pitch of {}", fmt::join(pitches, " and "));
}

bool has_pitches(const ParsedArgument& buffer) { return buffer.pitches && !buffer.pitches->empty(); }

}  // namespace

Arguments::Arguments(const std::vector<std::string>& texts) {
    for (const std::string& text : texts) parsed_.push_back(parse_argument(text));
    for (const ParsedArgument& argument : parsed_) {
        if (argument.kind == Kind::Same) check_same(argument, argument.text);
        for (const ParsedArgument& field : argument.fields)
            if (field.kind == Kind::Same) check_same(field, argument.text);
    }
    for (const ParsedArgument& argument : parsed_)
        if (!argument.output.empty()) check_output_file(argument.output);
    check_outputs_differ();
}

void Arguments::check_same(const ParsedArgument& same, const std::string& text) const {
    if (same.same >= size() || parsed_[same.same].kind != Kind::Buffer)
        throw Error(fmt::format("argument '{}': argument {} is not a buffer", text, same.same),
                    "&N names an argument, counted from 0, that is written as a buffer");
    const ParsedArgument& buffer = parsed_[same.same];
    if (buffer.is_made && same.offset > 0)
        throw Error(fmt::format("argument '{}': argument {} gets its shape from its function", text, same.same),
                    fmt::format("write &{} for all of it, or give argument {} a shape", same.same, same.same));
    const std::uint64_t bytes = buffer.elements * buffer.type.bytes();
    if (same.offset > bytes)
        throw Error(fmt::format("argument '{}': the buffer of argument {} has {} bytes", text, same.same, bytes),
                    "&N+BYTES must be inside the buffer");
}

/// Of two outputs to the same file, only the second would remain.
void Arguments::check_outputs_differ() const {
    std::map<std::string, const ParsedArgument*> taken;
    for (const ParsedArgument& argument : parsed_) {
        if (argument.output.empty() || argument.output == "-") continue;
        const auto [earlier, is_new] = taken.emplace(resolved(argument.output), &argument);
        if (!is_new)
            throw Error(fmt::format("arguments '{}' and '{}' are written to the same file", earlier->second->text,
                                    argument.text),
                        "give each its own file");
    }
}

std::uint64_t Arguments::address(const ParsedArgument& same) const {
    return buffers_[same.same]->address() + same.offset;
}

void Arguments::make(std::size_t i, ir::Type type, std::vector<std::uint64_t> shape) {
    ParsedArgument& argument = parsed_[i];
    argument.type = {type};
    argument.elements = 1;
    for (const std::uint64_t extent : shape) argument.elements *= extent;
    argument.shape = std::move(shape);
}

void Arguments::lay_out(std::size_t i, const std::vector<std::uint64_t>& pitches) {
    ParsedArgument& buffer = parsed_[original(i)];
    if (buffer.pitches && *buffer.pitches != pitches)
        throw Error(fmt::format("argument '{}': argument {} has {}, but is taken with {} here", parsed_[i].text,
                                original(i), pitch_text(*buffer.pitches), pitch_text(pitches)),
                    "a buffer has one pitch: --set it for each function that takes it; kernels take none");
    buffer.pitches = pitches;
}

void Arguments::lay_out_in_rows(std::size_t first, std::size_t count) {
    for (std::size_t i = first; i < first + count; ++i) {
        if (parsed_[original(i)].kind == Kind::Buffer) lay_out(i, {});
        for (const ParsedArgument& field : parsed_[i].fields)
            if (field.kind == Kind::Same) lay_out(field.same, {});
    }
}

void Arguments::upload(const runtime::Device& device, const std::vector<std::string>& names) {
    buffers_.resize(size());
    for (std::size_t i = 0; i < size(); ++i) {
        ParsedArgument& argument = parsed_[i];
        if (argument.kind != Kind::Buffer) continue;
        const std::uint64_t elements =
            has_pitches(argument) ? runtime::view_size(argument.shape, *argument.pitches) : argument.elements;
        buffers_[i] = device.buffer<std::uint8_t>(elements * argument.type.bytes(), names[i]);
        if (!argument.has_contents() || argument.elements == 0) continue;
        if (has_pitches(argument)) {
            const std::vector<std::byte> all = contents_of(argument);
            const auto* first = reinterpret_cast<const std::uint8_t*>(all.data());
            each_row(argument, [&](std::uint64_t at, std::uint64_t to, std::uint64_t bytes) {
                buffers_[i]->slice(to, bytes).upload({first + at, bytes});
            });
        } else if (argument.repeats) {
            device.backend().fill(buffers_[i]->address(), *argument.contents, argument.elements,
                                  runtime::default_stream);
            device.synchronize();
        } else {
            each_part(argument, [&](std::uint64_t offset, std::span<const std::byte> bytes) {
                const auto* first = reinterpret_cast<const std::uint8_t*>(bytes.data());
                buffers_[i]->slice(offset, bytes.size()).upload({first, bytes.size()});
            });
        }
        argument.contents.reset(), argument.seed.reset();  // the device has them now
    }
}

void Arguments::sort(std::vector<emulator::BufferTraffic>& buffers) const {
    const auto position = [&](const emulator::BufferTraffic& of) {
        std::size_t i = 0;
        while (i < size() && !(buffer(i) && buffer(i)->address() == of.address)) ++i;
        return std::pair(i, of.address);
    };
    std::ranges::sort(buffers, {}, position);
}

void Arguments::write_outputs() const {
    for (std::size_t i = 0; i < size(); ++i) {
        if (parsed_[i].output.empty()) continue;
        const ParsedArgument& owner = parsed_[original(i)];
        std::vector<std::byte> contents(owner.elements * owner.type.bytes());
        auto* const first = reinterpret_cast<std::uint8_t*>(contents.data());
        const auto read = [&](std::uint64_t at, std::uint64_t from, std::uint64_t bytes) {
            buffer(i)->memory().read(std::as_writable_bytes(std::span(first + at, bytes)), from);
        };
        has_pitches(owner) ? each_row(owner, read) : read(0, 0, contents.size());
        write_output(parsed_[i].output, owner.type, owner.shape, contents);
    }
}

}  // namespace ikat::cli
