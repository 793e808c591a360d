// SPDX-License-Identifier: Apache-2.0
#include "stdlib/spec/workspace.hpp"

#include <fmt/format.h>

#include "stdlib/spec/size.hpp"

namespace ikat::stdlib {

Workspace::Workspace(const runtime::Queue& queue, std::string_view function, const WorkspaceSlice& given,
                     std::uint64_t bytes)
    : rest_(given) {
    if (given.size() != 0) {
        SizeCheck{function, queue.where()}.at_least("workspace", given.size(), bytes);
        if (given.part().offset % alignment != 0)
            throw Error(Diagnostic{
                .where = queue.where(),
                .message =
                    fmt::format("{}: 'workspace' begins at byte {} of its buffer", function, given.part().offset),
                .hint = fmt::format("a slice for a workspace begins at a multiple of {} bytes", alignment)});
        return;
    }
    rest_ = own_.emplace(queue.buffer<std::uint8_t>(bytes, "workspace"));
}

runtime::BufferPart Workspace::take_bytes(std::uint64_t bytes) {
    const WorkspaceSlice taken = rest_.slice(0, bytes);
    const std::uint64_t used = std::min(rounded(bytes), rest_.size());
    rest_ = rest_.slice(used, rest_.size() - used);
    return taken.part();
}

}  // namespace ikat::stdlib
