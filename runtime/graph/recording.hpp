// SPDX-License-Identifier: Apache-2.0
// What a function gives its queue, as nodes that know what they come after. Work of one branch comes one after the
// other; a stream that waits for an event of the recording becomes a branch of it, and an event joins it again.
//
//     queue          a ── record e ── b ── wait f ── d          nodes a, b, c, d: b and c come after a, d after both
//     other stream          └─ wait e ── c ── record f
//
// A recording belongs to a thread and a device. Until it ends, this thread may give work to its branches alone, and
// wait for nothing.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "runtime/exec/node.hpp"
#include "runtime/exec/queues.hpp"

namespace ikat::runtime {

/// What has been recorded. It holds all kernels and memory that it uses.
struct GraphContents final : Counted {
    struct Entry {
        Node work;
        std::vector<std::uint32_t> after;  // entries before it in the list
    };
    Reference<DeviceState> device{};
    std::vector<Entry> entries;
    std::vector<Reference<MemoryBlock>> memory;  // that it allocates, in order
};

/// What a node is called: "kernel 'scale'", "a copy".
std::string words(const Node& work);

class Recording {
public:
    /// Throws Error if this thread records already. One that is recorded `again` has the memory of before.
    Recording(Reference<DeviceState> device, const Location& where, Reference<const GraphContents> again = {});
    ~Recording();
    Recording(const Recording&) = delete;
    Recording& operator=(const Recording&) = delete;

    /// The first branch, to which others are joined.
    const Reference<Sink>& sink() const { return sink_; }
    /// What the stream is given belongs to the first branch.
    void attach(const StreamState& stream);
    /// Ends it. Throws Error if a branch is not joined.
    Reference<const GraphContents> finish();

    /// Whether this thread records.
    static bool is_active();
    /// The branch that a stream is, or becomes by this work; null if this thread records nothing. Throws Error for work
    /// of other streams while it does.
    static Sink* branch_of(StreamState& stream, const Node& work);
    /// Throws Error for work of a device while this thread records.
    static void refuse_other(const Node& work);
    /// ... and for what waits: "a download".
    static void refuse_wait(const char* what, const Location& where);

    class State;

private:
    Reference<State> state_;
    Reference<Sink> sink_;
};

}  // namespace ikat::runtime
