// SPDX-License-Identifier: Apache-2.0
// A row of the compiler's table of stages. The pipeline has those for any target, a target those that lead to it
// (codegen/target.hpp).
#pragma once
#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

#include "codegen/analysis/context.hpp"
#include "codegen/ir/verify.hpp"

namespace ikat {
struct Target;
}

namespace ikat::pipeline {

struct Work;
/// All functions, one after another: what most stages leave.
std::string functions_text(const Work& work);

struct Stage {
    enum class Kind : std::uint8_t {
        Pass,   // from IR to IR, for any target: a user may choose it by name
        Step,   // of lowering to a target, in its order
        Whole,  // of all functions at once
    };
    std::string_view name;  // in options, dumps and texts
    Kind kind = Kind::Pass;
    /// Of a pass, which is given no target, and of a step.
    analysis::Changed (*run)(ir::Function&, analysis::Context&, const Target*) = nullptr;
    bool (*run_whole)(Work&) = nullptr;  // whether it changed anything
    std::string_view does{};             // for the user, a line
    ir::Level leaves = ir::Level::Typed;
    std::string (*text)(const Work&) = functions_text;
    /// Empty, or what is wrong with what it has left, besides what is wrong with IR; builds without NDEBUG always ask.
    std::string (*complaint)(const Work&) = nullptr;
};

/// Stage::run by a function of these arguments, or of fewer.
template <auto f>
analysis::Changed run_stage(ir::Function& fn, analysis::Context& context, const Target* target) {
    if constexpr (std::is_invocable_v<decltype(f), ir::Function&, analysis::Context&, const Target&>)
        return f(fn, context, *target);
    else if constexpr (std::is_invocable_v<decltype(f), ir::Function&, analysis::Context&>)
        return f(fn, context);
    else if constexpr (std::is_invocable_v<decltype(f), ir::Function&, const Target&>)
        return f(fn, *target);
    else
        return f(fn);
}
template <auto f>
constexpr Stage step(std::string_view name, ir::Level leaves) {
    return {.name = name, .kind = Stage::Kind::Step, .run = run_stage<f>, .leaves = leaves};
}

/// A reason for the order of stages: `then` comes after `first`. Checked at compile time and not used otherwise.
struct Order {
    std::string_view first, then, because;
};
/// Whether the list has `first` of each, and `then` somewhere after it.
constexpr bool are_in_order(std::span<const std::string_view> list, std::span<const Order> reasons) {
    return std::ranges::all_of(reasons, [&](const Order& reason) {
        const auto first = std::ranges::find(list, reason.first);
        return first != list.end() && std::find(first + 1, list.end(), reason.then) != list.end();
    });
}

}  // namespace ikat::pipeline
