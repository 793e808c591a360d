// SPDX-License-Identifier: Apache-2.0
// Instances of the left sides of simplify's rules, for programs in which rules match. The kinds of a rule's wildcards
// are derived from the pattern itself.
#pragma once
#include <functional>

#include "codegen/ir/builder.hpp"
#include "codegen/passes/simplify_rules.hpp"

namespace ikat::test {

// The kinds of a pattern's wildcards when the pattern is used at `type`. A comparison inside it compares values of type
// `compared`.
struct Kinds {
    std::array<ir::Type, 4> values{};
    std::array<ir::Type, 2> constants{};
};
template <int I>
void infer(passes::rules::Wildcard<I>, ir::Type type, ir::Type, Kinds& kinds) {
    kinds.values[I] = type;
}
template <int I>
void infer(passes::rules::Constant<I>, ir::Type type, ir::Type, Kinds& kinds) {
    kinds.constants[I] = type;
}
inline void infer(passes::rules::Literal, ir::Type, ir::Type, Kinds&) {}
inline void infer(passes::rules::NegativeZero, ir::Type, ir::Type, Kinds&) {}
template <ir::Op op, class... Args>
void infer(const passes::rules::Node<op, Args...>& node, ir::Type type, ir::Type compared, Kinds& kinds) {
    constexpr ir::Shape shape = ir::info(op).shape;
    const ir::Type at_type = shape.result == ir::Slot::T ? type : compared;
    std::apply(
        [&](const auto&... args) {
            std::size_t i = 0;
            (infer(args, ir::at(shape.arguments[i++], at_type), compared, kinds), ...);
        },
        node.arguments);
}

using Draw = std::function<ir::Value(ir::Type)>;

/// Builds an instance of one left side at the end of the builder's block, with random wildcards. `random` picks its
/// type.
template <const auto& list, std::size_t i>
ir::Value pattern_instance(ir::Builder& build, std::uint32_t random, const Draw& value, const Draw& constant) {
    constexpr auto& rule = std::get<i>(list);
    constexpr ir::Op root = std::remove_cvref_t<decltype(rule.from)>::root;
    std::vector<ir::Type> types, compared;
    for (int t = 1; t < ir::type_count; ++t) {
        if (contains(ir::info(root).domain, ir::Type(t)) && contains(rule.types, ir::Type(t)))
            types.push_back(ir::Type(t));
        if (contains(ir::Num, ir::Type(t))) compared.push_back(ir::Type(t));
    }
    const ir::Type type = types[random % types.size()];
    const ir::Type other = contains(ir::AnyNum, type) ? type : compared[random / 64 % compared.size()];
    const ir::Type result = ir::at(ir::info(root).shape.result, type);
    Kinds kinds;
    infer(rule.from, result, other, kinds);
    std::vector<ir::Inst> made;
    passes::rules::Match m{.fn = build.function(), .made = made, .type = type};
    for (std::size_t w = 0; w < kinds.values.size(); ++w)
        if (kinds.values[w] != ir::Type::Void) m.values[w] = value(kinds.values[w]);
    for (std::size_t c = 0; c < kinds.constants.size(); ++c)
        if (kinds.constants[c] != ir::Type::Void) m.constants[c] = constant(kinds.constants[c]);
    const ir::Value out = rule.from.build(m, result);
    auto& block = build.function()[build.block()].instructions;
    block.insert(block.end(), made.begin(), made.end());
    return out;
}

using PatternInstance = ir::Value (*)(ir::Builder&, std::uint32_t, const Draw&, const Draw&);

template <const auto& list>
void add_patterns(std::vector<PatternInstance>& out) {
    [&]<std::size_t... i>(std::index_sequence<i...>) { (out.push_back(pattern_instance<list, i>), ...); }
    (std::make_index_sequence<std::tuple_size_v<std::remove_cvref_t<decltype(list)>>>{});
}

/// The instances of all rules.
inline const std::vector<PatternInstance>& patterns() {
    static const std::vector<PatternInstance> all = [] {
        std::vector<PatternInstance> out;
        add_patterns<passes::rules::sums>(out);
        add_patterns<passes::rules::products>(out);
        add_patterns<passes::rules::quotients>(out);
        add_patterns<passes::rules::bit_operations>(out);
        add_patterns<passes::rules::shifts>(out);
        add_patterns<passes::rules::comparisons>(out);
        add_patterns<passes::rules::choices>(out);
        return out;
    }();
    return all;
}

}  // namespace ikat::test
