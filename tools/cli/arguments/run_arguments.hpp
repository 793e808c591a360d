// SPDX-License-Identifier: Apache-2.0
// The arguments of all launches of one `ikat run`, with their buffers on the device. They are numbered consecutively,
// so that a later launch can refer to the buffers of an earlier one.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "runtime/device.hpp"
#include "tools/cli/arguments/argument.hpp"

namespace ikat::cli {

class Arguments {
public:
    using Buffer = runtime::Buffer<std::uint8_t>;

    /// Throws Error for invalid arguments, and for outputs that cannot be written.
    explicit Arguments(const std::vector<std::string>& texts);

    std::size_t size() const { return parsed_.size(); }
    const ParsedArgument& operator[](std::size_t i) const { return parsed_[i]; }
    /// The argument that i refers to by &N, else i itself.
    std::size_t original(std::size_t i) const {
        return parsed_[i].kind == ParsedArgument::Kind::Same ? parsed_[i].same : i;
    }
    const Buffer* buffer(std::size_t i) const { return buffers_[original(i)] ? &*buffers_[original(i)] : nullptr; }
    /// The address of &N or &N+BYTES.
    std::uint64_t address(const ParsedArgument& same) const;

    /// Gives an output that is_made its type and shape.
    void make(std::size_t i, ir::Type type, std::vector<std::uint64_t> shape);

    /// How the elements of an argument's buffer lie in memory, for a launch that takes it: pitches, or none if rows
    /// follow each other. Throws Error if another launch takes the buffer otherwise.
    void lay_out(std::size_t i, const std::vector<std::uint64_t>& pitches);
    /// The same without pitches for the buffers of `count` arguments.
    void lay_out_in_rows(std::size_t first, std::size_t count);

    /// Makes and fills the buffers; messages call that of argument i names[i].
    void upload(const runtime::Device& device, const std::vector<std::string>& names);

    /// Sorts the buffers of arguments first, in order; then others by address.
    void sort(std::vector<emulator::BufferTraffic>& buffers) const;

    void write_outputs() const;

    /// Throws Error unless &N+BYTES refers to a buffer and is inside it; `text` is the argument as written.
    void check_same(const ParsedArgument& same, const std::string& text) const;

private:
    void check_outputs_differ() const;

    std::vector<ParsedArgument> parsed_;
    std::vector<std::optional<Buffer>> buffers_;
};

}  // namespace ikat::cli
