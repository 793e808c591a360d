// SPDX-License-Identifier: Apache-2.0
// What is known of a function, for those that change it in turn: each fact is found once, when it is first asked for,
// and kept until a change makes it stale. A pass that changes the function reports what it changed; the pipeline passes
// that on (changed), and a pass that queries again after its own change calls changed() itself.
//
//     simplify   dominators()  found          changed Instructions
//     cse        dominators()  the same       changed Instructions
//     cfg                                     changed ControlFlow: gone
//     licm       dominators()  found again
#pragma once
#include <optional>

#include "codegen/analysis/loops.hpp"
#include "codegen/analysis/uniformity.hpp"

namespace ikat::analysis {

/// What a pass has changed in a function; each value includes those before it.
enum class Changed : std::uint8_t {
    Nothing,
    Instructions,  // also block parameters and branch conditions
    ControlFlow,   // blocks, their numbers, or edges
};
constexpr Changed operator|(Changed a, Changed b) { return a > b ? a : b; }
constexpr Changed& operator|=(Changed& a, Changed b) { return a = a | b; }
constexpr Changed instructions_if(bool any) { return any ? Changed::Instructions : Changed::Nothing; }
constexpr Changed control_flow_if(bool any) { return any ? Changed::ControlFlow : Changed::Nothing; }

class Context {
public:
    /// `module`: all functions of the module, callees before their callers.
    explicit Context(const ir::Function& fn, std::span<const ir::Function> module = {}) : fn_(fn), module_(module) {}

    std::span<const ir::Function> module() const { return module_; }

    /// With the control-flow graph. References hold until the next change.
    const Dominators& dominators();
    const Loops& loops();
    const Uniformity& uniformity();

    /// Drops what is stale.
    void changed(Changed what);

    // ---- for verification
    /// Computes every analysis.
    void fill();
    /// The name of a cached analysis that differs from what would be computed now; "" if there is none.
    std::string_view stale() const;

private:
    const ir::Function& fn_;
    std::span<const ir::Function> module_;
    std::optional<Dominators> dominators_;
    std::optional<Loops> loops_;
    std::optional<Uniformity> uniformity_;
};

}  // namespace ikat::analysis
