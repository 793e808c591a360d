// SPDX-License-Identifier: Apache-2.0
// The end of a recording: unused nodes are dropped.
#include <algorithm>
#include <vector>

#include "dsl/record/recorder.hpp"

namespace ikat::trace {

using ast::Kind;
using ast::Node;
using ast::Region;

namespace {

class Finish {
public:
    explicit Finish(ast::KernelTree& from) : from_(from), used_(from.nodes.size()) {}

    ast::KernelTree run() {
        mark(from_.body());
        for (std::size_t i = 0; i < used_.size(); ++i)
            if (!used_[i]) from_.nodes[i] = {};
        for (auto& region : from_.regions) std::erase_if(region, [&](Node node) { return !used_[index(node)]; });
        return std::move(from_);
    }

private:
    /// Whether the node may be dropped if nothing uses it.
    static bool may_go(const ast::NodeInfo& node) {
        switch (node.kind) {
            case Kind::Operation: return ir::effects(node.op).removable();
            case Kind::Load: return ir::effects(ir::Op::Load, node.memory).removable();
            case Kind::Read:
            case Kind::Extract:
            case Kind::Address: return true;
            default: return false;
        }
    }

    void use(Node node) {
        if (node != ast::no_node) used_[index(node)] = true;
    }

    /// Uses come after definitions: one backward walk finds everything that is used. It keeps a list of the regions
    /// that it is in, because they may be nested deeper than this thread's stack would allow.
    void mark(Region body) {
        struct Open {
            Region region;
            std::size_t left;  // nodes that it has not come to
        };
        std::vector<Open> open;
        const auto enter = [&](Region region) {
            if (region != ast::no_region) open.push_back({region, from_.regions[index(region)].size()});
        };
        enter(body);
        while (!open.empty()) {
            Open& now = open.back();
            if (now.left == 0) {
                open.pop_back();
                continue;
            }
            const Node id = from_.regions[index(now.region)][--now.left];
            const ast::NodeInfo& node = from_[id];
            if (may_go(node) && !used_[index(id)]) continue;
            used_[index(id)] = true;
            for (const Node argument : node.arguments) use(argument);
            for (const Node other : node.other) use(other);
            use(node.guard), use(node.place.offset), use(node.place.peer);
            for (const Region region : node.regions) enter(region);  // the last is walked first
        }
    }

    ast::KernelTree& from_;
    std::vector<bool> used_;  // by node
};

}  // namespace

ast::KernelTree Recorder::finish() {
    flush();
    at(kernel.where);  // for diagnostics that no statement followed
    kernel.takes_dynamic_shared = std::ranges::any_of(kernel.symbols, &ir::Symbol::dynamic);
    return Finish(kernel).run();
}

}  // namespace ikat::trace
