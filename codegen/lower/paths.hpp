// SPDX-License-Identifier: Apache-2.0
// SSA construction of a kernel's variables, along structured control flow.
//
//     if %c                              branch %c, ^then, ^after(%old)
//       $x = %new                ==>   ^then:
//     ... read $x                          jump ^after(%new)
//                                      ^after(%x):
//
// Control flow is structured, so no dominance frontiers are needed: the walk carries the current value of each
// variable. Where paths meet (after an if, at a loop's latch and exit) every incoming edge has left a snapshot, and a
// variable whose values differ becomes a block parameter. A loop's head takes the variables that its body assigns. A
// variable without a value on some incoming edge has none afterwards: ast::check has made sure that it is not read.
#pragma once
#include <initializer_list>
#include <utility>
#include <vector>

#include "codegen/ast/ast.hpp"
#include "codegen/ast/products.hpp"
#include "codegen/ir/builder.hpp"

namespace ikat::lower {

using Values = std::vector<ir::Value>;  // by ast::Variable; no_value = none on this path

/// A block under construction where paths meet.
struct Join {
    struct Edge {
        ir::Block from;
        std::size_t target;  // index in the terminator
        Values variables;
    };
    ir::Block block;
    std::vector<Edge> edges{};
};

/// The current path of the walk: the block under construction and the value of each variable.
class Paths {
public:
    /// `build` is positioned in the block of this path, and no variable has a value yet.
    Paths(const ast::KernelTree& kernel, const ast::Products& products, ir::Function& fn, ir::Builder& build)
        : kernel_(kernel),
          products_(products),
          fn_(fn),
          build_(build),
          variables_(kernel.variables.size(), ir::no_value) {}

    /// Whether the current point is reachable. If not, nothing is built.
    bool reachable() const { return reachable_; }

    ir::Value& operator[](ast::Variable variable) { return variables_[index(variable)]; }
    const Values& variables() const { return variables_; }
    void set_variables(Values variables) { variables_ = std::move(variables); }

    // ---- the path ends or splits
    /// Ends the path after its block's terminator has been set.
    void end() { reachable_ = false; }
    void terminate(ir::Terminator::Kind kind);
    void jump_to(Join& join);
    /// Target `target` of the current block's terminator leads to `join`, with the current values of the variables.
    void leads_to(Join& join, std::size_t target);

    // ---- the path continues
    Join new_join() { return {fn_.add_block()}; }
    /// Continues in a block with one predecessor, keeping the current variables.
    void enter(ir::Block block);
    /// Continues where the edges of a join meet.
    void enter(const Join& join);

    // ---- loops
    using Carried = std::vector<std::size_t>;  // indices of variables
    /// The variables that the regions assign and that have a value now: the loop carries them.
    Carried carried(std::initializer_list<ast::Region> regions) const;
    /// The current values of the carried variables, as arguments of a jump to the loop's head.
    Values arguments(const Carried& carried) const;
    /// Continues in a new loop head, whose parameters are the carried variables.
    ir::Block enter_head(const Carried& carried);

private:
    void merge(const Join& join, std::size_t variable);
    void mark_assigned(ast::Region region, std::vector<bool>& assigned) const;

    const ast::KernelTree& kernel_;
    const ast::Products& products_;
    ir::Function& fn_;
    ir::Builder& build_;
    bool reachable_ = true;
    Values variables_;  // now
};

}  // namespace ikat::lower
