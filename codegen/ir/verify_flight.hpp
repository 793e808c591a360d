// SPDX-License-Identifier: Apache-2.0
// The part of the verifier that follows work in flight (conduct.hpp): what is started may not be read before it is
// waited for. A walk forward with what is in flight on all ways to a point; only what is surely wrong is found:
//
//     %d0, … = wgmma.f32 …, %a, %b
//     wgmma_commit
//     %v0: f32, … = wgmma_wait 1, %d0, …        leaves the last group unfinished
//     store.f32 global [%y], %v0                refused
//
//     copy_async 16.cg, [%s], [%x], %n
//     %0 = load.f32 shared [%s]                 refused: the copy's own address, and no wait for it
//     %1 = load.f32 shared [%t]                 refused, if $t is an array that only copies write, each way to here has
//                                               begun one, and none, from the beginning of the function on, has waited
//
// Of products, what counts are the values: results, what fences and waits pass on, and block parameters to which every
// jump hands one. Of bulk loads it is the place where one begins, until anything that other threads may have waited
// for: a barrier, an atomic, a test. Not looked at: reads that have a guard, what a product reads by its descriptors,
// the sources of copies that are overwritten, bulk stores, work in flight across calls and at the end, and fences that
// are missing before a product. Capture, which knows the variables, finds more (ast/copies.hpp, ast/products.hpp).
#pragma once
#include <string>
#include <vector>

#include "codegen/ir/function.hpp"

namespace ikat::ir {

struct FlightProblem {
    Block block{};
    Inst inst{};
    std::string what;  // a sentence without a full stop
};

/// Of a function that is otherwise well formed, in the order of the text.
std::vector<FlightProblem> flight_problems(const Function& fn);

}  // namespace ikat::ir
