// SPDX-License-Identifier: Apache-2.0
// Finds accesses for which the pointer must be aligned.
//
//     if_(i < n / 4, [&] { y.vec<4>(i) = x.vec<4>(i); });      16 bytes of f32: of x and of y
//     x.slice(first).vec<4>(i)                                 nothing: the slice begins where it does
//     if_(n % 4 == 0, [&] { ... x.vec<4>(i) ... })             nothing: the arguments decide whether it happens
//
// A condition in which each part depends on the number of the thread leaves out some threads. Any other may be one that
// the caller has chosen, and what stands under it, or after a return under it, asks nothing.
#include "codegen/ast/alignment.hpp"

#include <algorithm>
#include <vector>

namespace ikat::ast {
namespace {

using ir::SpecialRegister;

bool numbers_threads(SpecialRegister which) {
    switch (which) {
        case SpecialRegister::TidX:
        case SpecialRegister::TidY:
        case SpecialRegister::TidZ:
        case SpecialRegister::CtaidX:
        case SpecialRegister::CtaidY:
        case SpecialRegister::CtaidZ:
        case SpecialRegister::LaneId: return true;
        default: return false;
    }
}

class AccessWalk {
public:
    AccessWalk(const KernelTree& kernel, std::uint32_t parameter)
        : kernel_(kernel),
          parameter_(parameter),
          by_thread_(kernel.nodes.size()),
          variable_by_thread_(kernel.variables.size()) {
        while (finds_more()) {}
    }

    std::optional<WideAccess> run() {
        walk(kernel_.body(), true);
        return widest_;
    }

private:
    /// One round over all nodes: whether any is newly found to depend on the number of the thread.
    bool finds_more() {
        bool more = false;
        for (std::size_t i = 0; i < kernel_.nodes.size(); ++i) {
            const NodeInfo& node = kernel_.nodes[i];
            if (!by_thread_[i] && depends(node)) more = by_thread_[i] = true;
            if (gives_by_thread(node) && !variable_by_thread_[index(node.variable)])
                more = variable_by_thread_[index(node.variable)] = true;
        }
        return more;
    }
    /// Whether it gives its variable a value that does.
    bool gives_by_thread(const NodeInfo& node) const {
        if (node.kind == Kind::Assign) return is_by_thread(node.arguments[0]);
        return node.kind == Kind::For && (is_by_thread(node.arguments[0]) || is_by_thread(node.arguments[2]));
    }
    bool depends(const NodeInfo& node) const {
        if (node.kind == Kind::Read) return variable_by_thread_[index(node.variable)];
        if (node.kind != Kind::Operation) return false;
        if (node.op == ir::Op::Special) return numbers_threads(SpecialRegister(node.attribute));
        return std::ranges::any_of(node.arguments, [this](Node argument) { return is_by_thread(argument); });
    }
    bool is_by_thread(Node node) const { return by_thread_[index(node)]; }

    /// Whether each part of a condition depends on the number of the thread.
    bool selects_threads(Node condition) const {
        const NodeInfo& node = kernel_[condition];
        if (node.kind == Kind::Operation && node.op == ir::Op::And)
            return selects_threads(node.arguments[0]) && selects_threads(node.arguments[1]);
        return is_by_thread(condition);
    }

    void walk(Region region, bool always) {
        if (region == no_region) return;
        for (const Node id : kernel_[region]) visit(kernel_[id], always && !may_have_left_);
    }
    void visit(const NodeInfo& node, bool always) {
        switch (node.kind) {
            case Kind::Load:
            case Kind::Store:
            case Kind::Address:
            case Kind::Atomic: access(node, always && (node.guard == no_node || selects_threads(node.guard))); break;
            case Kind::If:
                for (const Region arm : node.regions) walk(arm, always && selects_threads(node.arguments[0]));
                break;
            case Kind::Return:
            case Kind::Leave:
            case Kind::Break:
            case Kind::Continue: may_have_left_ |= !always; break;
            default:
                for (const Region inner : node.regions) walk(inner, always);
        }
    }
    void access(const NodeInfo& node, bool always) {
        const bool is_here = node.place.base == Place::Base::Parameter && node.place.index == parameter_;
        const std::uint32_t bytes = node.memory.count * std::uint32_t(info(element_type(node)).bytes);
        if (!is_here || !always || node.place.offset != no_node) return;
        if (!widest_ || bytes > widest_->bytes) widest_ = {bytes, node.where};
    }

    const KernelTree& kernel_;
    std::uint32_t parameter_;
    std::vector<bool> by_thread_, variable_by_thread_;  // by node, by variable
    bool may_have_left_ = false;                        // all threads, because of the arguments
    std::optional<WideAccess> widest_;
};

}  // namespace

std::optional<WideAccess> widest_access(const KernelTree& kernel, std::uint32_t parameter) {
    return AccessWalk(kernel, parameter).run();
}

}  // namespace ikat::ast
