// SPDX-License-Identifier: Apache-2.0
//     sync_block(1, 64);        barrier 1 waits for 64 threads
//     arrive_block(1, 128);     diagnostic: with both lines
#include "codegen/ast/barriers.hpp"

#include <array>
#include <optional>
#include <string>

namespace ikat::ast {
namespace {

std::optional<ir::Word> constant_in(const KernelTree& kernel, Node node) {
    const NodeInfo& info = kernel[node];
    const bool is = info.kind == Kind::Operation && info.op == ir::Op::Const;
    return is ? std::optional(info.attribute) : std::nullopt;
}

}  // namespace

std::vector<Diagnostic> unequal_barriers(const KernelTree& kernel) {
    struct Use {
        ir::Word threads = 0;
        Location where{};
    };
    std::array<Use, ir::BarrierForm::max_barriers> first{};
    std::vector<Diagnostic> out;
    for (const NodeInfo& node : kernel.nodes) {
        if (node.kind != Kind::Operation || node.op != ir::Op::Barrier || node.arguments.size() != 2) continue;
        const auto id = constant_in(kernel, node.arguments[0]), threads = constant_in(kernel, node.arguments[1]);
        if (!id || !threads || *id >= first.size()) continue;
        Use& known = first[*id];
        if (known.threads == 0) known = {*threads, node.where};
        if (known.threads == *threads) continue;
        out.push_back({.where = node.where,
                       .message = "barrier " + std::to_string(*id) + " of " + std::to_string(*threads) +
                                  " threads, which elsewhere is of " + std::to_string(known.threads),
                       .hint = "all that wait or arrive at a barrier name the same number of threads: a block has " +
                               std::to_string(ir::BarrierForm::max_barriers) + " barriers",
                       .notes = {{known.where, "it is used here, too"}}});
    }
    return out;
}

}  // namespace ikat::ast
