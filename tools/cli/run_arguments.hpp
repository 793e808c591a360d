// SPDX-License-Identifier: Apache-2.0
// The arguments of all launches of one `ikat run`, with their buffers on the device. They are numbered throughout, so
// that a later launch names the buffers of an earlier one.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "runtime/device.hpp"
#include "tools/cli/argument.hpp"

namespace ikat::cli {

class Arguments {
public:
    using Buffer = runtime::Buffer<std::uint8_t>;

    /// Throws Error for what is no argument, and for outputs that cannot be written.
    explicit Arguments(const std::vector<std::string>& texts);

    std::size_t size() const { return parsed_.size(); }
    const ParsedArgument& operator[](std::size_t i) const { return parsed_[i]; }
    /// Argument i, or the one that it says it is the same as.
    std::size_t original(std::size_t i) const {
        return parsed_[i].kind == ParsedArgument::Kind::Same ? parsed_[i].same : i;
    }
    const Buffer* buffer(std::size_t i) const { return buffers_[original(i)] ? &*buffers_[original(i)] : nullptr; }
    /// The address that &N or &N+BYTES stands for.
    std::uint64_t address(const ParsedArgument& same) const;

    /// Makes and fills the buffers; names[i] is what messages call that of argument i.
    void upload(const runtime::Device& device, const std::vector<std::string>& names);

    /// Those of the arguments first, in their order; then others by their addresses.
    void sort(std::vector<emulator::BufferTraffic>& buffers) const;

    void write_outputs() const;

    /// Throws Error unless &N+BYTES names a buffer and is inside of it; `text` is the argument as written.
    void check_same(const ParsedArgument& same, const std::string& text) const;

private:
    void check_outputs_differ() const;

    std::vector<ParsedArgument> parsed_;
    std::vector<std::optional<Buffer>> buffers_;
};

}  // namespace ikat::cli
