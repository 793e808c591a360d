// SPDX-License-Identifier: Apache-2.0
#include "codegen/analysis/context.hpp"

namespace ikat::analysis {

const Dominators& Context::dominators() {
    if (!dominators_) dominators_.emplace(fn_);
    return *dominators_;
}

const Loops& Context::loops() {
    if (!loops_) loops_.emplace(fn_, dominators());
    return *loops_;
}

const Uniformity& Context::uniformity() {
    if (!uniformity_) uniformity_.emplace(fn_, dominators());
    return *uniformity_;
}

void Context::changed(Changed what) {
    if (what >= Changed::Instructions) uniformity_.reset();
    if (what < Changed::ControlFlow) return;
    dominators_.reset();
    loops_.reset();
}

void Context::fill() {
    loops();
    uniformity();
}

std::string_view Context::stale() const {
    const Dominators now(fn_);
    if (dominators_ && *dominators_ != now) return "dominators";
    if (loops_ && *loops_ != Loops(fn_, now)) return "loops";
    if (uniformity_ && *uniformity_ != Uniformity(fn_, now)) return "uniformity";
    return "";
}

}  // namespace ikat::analysis
