// SPDX-License-Identifier: Apache-2.0
// Finds copies that nobody waits for.
//
//     copy_async<16>(s[i], x[i]);      s is in flight
//     f32 a = s[i];                    a diagnostic: no way from the copy to here waits
//     copy_wait<0>();                  a diagnostic: no way to here commits, so there is no group to wait for
//     bulk_load(s[i], x[i], n, b);     s is in flight until a wait at a barrier
//
// It says only what is surely wrong, in the first round of each loop. So an array counts as in flight if every way to
// here has begun a copy to it, and none, from the beginning of the kernel on, has waited; after a wait, parts of an
// array may be read while others are copied. Arrays that are stored to in other ways, too, are not looked at.
#include "codegen/ast/copies.hpp"

#include <algorithm>
#include <optional>

#include "codegen/ir/op/effects.hpp"
#include "codegen/ir/op/forms/copies.hpp"

namespace ikat::ast {
namespace {

/// The state at a point.
struct Flight {
    bool waited = false, committed = false;  // on some way to it
    std::vector<Node> begun;                 // by symbol: its first copy, if all ways to the point have begun one
};

ir::Flight flight(const NodeInfo& node) {
    const ir::OpInfo& row = info(node.op);
    if (!has_form(node.op)) return {row.starts, row.commits, row.awaits};
    return ir::conduct(node.op, node.attribute).flight;
}
bool begins_copy(const NodeInfo& node) {
    const ir::Work starts = flight(node).starts;
    return starts == ir::Work::Copies || starts == ir::Work::Loads;
}

class CopyWalk {
public:
    explicit CopyWalk(const KernelTree& kernel) : kernel_(kernel), copied_only_(kernel.symbols.size(), true) {
        for (const NodeInfo& node : kernel.nodes) {
            if ((node.kind == Kind::Store || node.kind == Kind::Atomic) && node.place.base == Place::Base::Symbol)
                copied_only_[node.place.index] = false;
            if (node.kind == Kind::Operation && node.op == ir::Op::StoreMatrix)
                copied_only_[kernel[node.arguments[0]].place.index] = false;
        }
    }

    std::vector<Diagnostic> run() {
        now_.emplace().begun.assign(kernel_.symbols.size(), no_node);
        walk(kernel_.body());
        return std::move(diagnostics_);
    }

private:
    void walk(Region region) {
        if (region == no_region) return;
        for (const Node id : kernel_[region]) {
            if (!now_) return;
            visit(id, kernel_[id]);
        }
    }

    void visit(Node id, const NodeInfo& node) {
        switch (node.kind) {
            case Kind::Operation: return operation(id, node);
            case Kind::Load: return read(node, node.place);
            case Kind::If: return visit_if(node);
            case Kind::For:
            case Kind::While:
            case Kind::Scope: return visit_around(node);
            case Kind::Break:
            case Kind::Continue:
            case Kind::Return:
            case Kind::Leave: now_.reset(); return;
            default: return;
        }
    }

    void operation(Node id, const NodeInfo& node) {
        const ir::Flight does = flight(node);
        if (node.op == ir::Op::LoadMatrix) read(node, kernel_[node.arguments[0]].place);
        const bool may_do_all = does.awaits == ir::Work::Loads || node.op == ir::Op::Opaque || node.op == ir::Op::Call;
        if (begins_copy(node)) {
            Node& begun = now_->begun[kernel_[node.arguments[0]].place.index];
            if (begun == no_node) begun = id;
        }
        const bool awaits = does.awaits == ir::Work::Copies;
        if (awaits && node.attribute != ir::all_copies && !now_->committed) report_wait(node);
        if (does.commits == ir::Work::Copies || may_do_all) now_->committed = committed_ = true;
        if (awaits || may_do_all) now_->waited = waited_ = true;
    }

    void report_wait(const NodeInfo& node) {
        const auto begun = std::ranges::find_if(now_->begun, [](Node copy) { return copy != no_node; });
        if (begun == now_->begun.end() || now_->waited) return;
        diagnostics_.push_back({.where = node.where,
                                .message = "copy_wait<N>() waits for groups of copies, and none has been committed",
                                .hint = "call copy_commit() after the copies of a group, or wait for all copies with "
                                        "copy_wait()",
                                .notes = {{kernel_[*begun].where, "a copy begins here"}}});
    }

    void read(const NodeInfo& node, const Place& place) {
        if (place.base != Place::Base::Symbol || place.peer != no_node || now_->waited) return;
        const Node begun = now_->begun[place.index];
        if (begun == no_node || !copied_only_[place.index]) return;
        diagnostics_.push_back(
            {.where = node.where,
             .message = "shared memory is read while a copy to it is in flight",
             .hint = "wait first: copy_commit() and copy_wait<0>(), or at the barrier; and sync_block() if other "
                     "threads have copied, too",
             .notes = {{kernel_[begun].where, "the copy begins here"}}});
        copied_only_[place.index] = false;  // once is enough
    }

    void visit_if(const NodeInfo& node) {
        const std::optional<Flight> before = now_;
        walk(node.regions[0]);
        const std::optional<Flight> after_then = std::exchange(now_, before);
        walk(node.regions[1]);
        if (!now_) now_ = after_then;
        if (!after_then) return;
        now_->waited |= after_then->waited, now_->committed |= after_then->committed;
        for (std::size_t s = 0; s < now_->begun.size(); ++s)
            if (after_then->begun[s] == no_node) now_->begun[s] = no_node;
    }

    /// After a loop or a function that is inlined, which may be left early, what is in it may have happened.
    void visit_around(const NodeInfo& node) {
        const Flight before = *now_;
        const bool waited = std::exchange(waited_, false), committed = std::exchange(committed_, false);
        for (const Region region : node.regions) walk(region);
        now_ = before;
        now_->waited |= waited_, now_->committed |= committed_;
        waited_ |= waited, committed_ |= committed;
    }

    const KernelTree& kernel_;
    std::vector<bool> copied_only_;            // by symbol: nothing else writes it
    std::optional<Flight> now_;                // nothing where no way leads
    bool waited_ = false, committed_ = false;  // somewhere in the innermost loop or function
    std::vector<Diagnostic> diagnostics_;
};

}  // namespace

std::vector<Diagnostic> unfinished_copies(const KernelTree& kernel) {
    const bool any = std::ranges::any_of(
        kernel.nodes, [](const NodeInfo& node) { return node.kind == Kind::Operation && begins_copy(node); });
    return any ? CopyWalk(kernel).run() : std::vector<Diagnostic>{};
}

}  // namespace ikat::ast
