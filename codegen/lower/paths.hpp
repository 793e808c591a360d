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
// variable without a value on some incoming edge has none after it: ast::check has made sure that nobody reads it.
#pragma once
#include <initializer_list>
#include <utility>
#include <vector>

#include "codegen/ast/ast.hpp"
#include "codegen/ir/builder.hpp"

namespace ikat::lower {

using Values = std::vector<ir::Value>;  // by ast::Variable; no_value = none on this path

/// A block under construction where paths meet.
struct Join {
    struct Edge {
        ir::Block from;
        std::size_t target;  // which of the terminator's
        Values variables;
    };
    ir::Block block;
    std::vector<Edge> edges{};
};

/// The path that the walk is on: the block under construction and what each variable is there.
class Paths {
public:
    /// `build` stands in the block of this path, and no variable has a value yet.
    Paths(const ast::Kernel& kernel, ir::Function& fn, ir::Builder& build)
        : kernel_(kernel), fn_(fn), build_(build), variables_(kernel.variables.size(), ir::no_value) {}

    /// Whether anything leads to where the walk is. If not, it builds nothing.
    bool reachable() const { return reachable_; }

    ir::Value& operator[](ast::Variable variable) { return variables_[index(variable)]; }
    const Values& variables() const { return variables_; }
    void set_variables(Values variables) { variables_ = std::move(variables); }

    // ---- the path ends or parts
    /// The terminator at hand names all ways on.
    void end() { reachable_ = false; }
    void terminate(ir::Terminator::Kind kind);
    void jump_to(Join& join);
    /// Target `target` of the current block's terminator leads to `join`, with the variables as they are now.
    void leads_to(Join& join, std::size_t target);

    // ---- the path goes on
    Join new_join() { return {fn_.add_block()}; }
    /// In a block with one predecessor, whose variables are those at hand.
    void enter(ir::Block block);
    /// Where the edges of a join meet.
    void enter(const Join& join);

    // ---- loops
    using Carried = std::vector<std::size_t>;  // which of the variables
    /// The variables that the regions assign and that have a value now: the loop carries them.
    Carried carried(std::initializer_list<ast::Region> regions) const;
    /// The current values of the carried variables, as arguments of a jump to the loop's head.
    Values arguments(const Carried& carried) const;
    /// In a loop's head: from here on the carried variables are its parameters.
    ir::Block enter_head(const Carried& carried);

private:
    void merge(const Join& join, std::size_t variable);
    void mark_assigned(ast::Region region, std::vector<bool>& assigned) const;

    const ast::Kernel& kernel_;
    ir::Function& fn_;
    ir::Builder& build_;
    bool reachable_ = true;
    Values variables_;  // now
};

}  // namespace ikat::lower
