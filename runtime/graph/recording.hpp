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
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "runtime/exec/node.hpp"
#include "runtime/exec/queues.hpp"

namespace ikat::runtime {

/// What has been recorded. It holds all kernels and memory that it uses.
struct GraphContents final : Counted {
    /// What decides whether a body is done, or done again.
    struct Control {
        bool is_loop = false;
        BufferPart condition{};
    };
    struct Entry {
        Node work;
        std::vector<std::uint32_t> after;  // entries before it in the list
        std::optional<Control> control{};  // of a body, whose work is a node::Graph of it

        const GraphContents* body() const {
            return control ? std::get<node::Graph>(work.work).contents.get() : nullptr;
        }
    };
    Reference<DeviceState> device{};
    std::vector<Entry> entries;
    std::vector<Reference<MemoryBlock>> memory;  // that it and its bodies allocate, in order

    /// All entries, each before those of its body: the numbers of its nodes.
    std::vector<const Entry*> all() const;
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
    /// Memory of the recording for a condition, that a branch sets to a number. Throws Error if the sink is no branch.
    static BufferPart add_condition(Sink& sink, std::uint32_t number, const Location& where);
    /// Records what a function gives the sink that it is called with, as a body.
    static void add_body(Sink& sink, const GraphContents::Control& control, const Location& where,
                         const std::function<void(const Reference<Sink>&)>& function);
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
