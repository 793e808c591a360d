// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz/shrink.hpp"

#include <algorithm>
#include <span>

#include "codegen/ir/verify.hpp"

namespace ikat::test {
namespace {

using namespace ir;

/// Removes runs of `length` from each list of a program, the last run first, if `take` accepts the rest. `take` may
/// change the program.
bool drop_runs(const auto& program, std::size_t lists, std::size_t length, auto list_of, auto take) {
    bool changed = false;
    for (std::size_t i = 0; i < lists; ++i)
        for (std::size_t end = list_of(program, i).size(); end > 0;) {
            const std::size_t begin = end > length ? end - length : 0;
            auto candidate = program;
            auto& list = list_of(candidate, i);
            list.erase(list.begin() + std::ptrdiff_t(begin), list.begin() + std::ptrdiff_t(end));
            changed |= take(std::move(candidate));
            end = begin;
        }
    return changed;
}

class Shrinking {
public:
    Shrinking(Function fn, const std::function<bool(const Function&)>& fails) : fn_(std::move(fn)), fails_(fails) {}

    Function run() {
        for (bool again = true; again;) {
            again = drop(16);
            again |= drop(1);
            again |= zeros();
            again |= jumps();
        }
        return std::move(fn_);
    }

private:
    bool take(Function&& candidate) {
        if (!complaint(candidate).empty() || !fails_(candidate)) return false;
        fn_ = std::move(candidate);
        return true;
    }

    /// Drops unneeded instructions; the verifier rejects programs without needed ones.
    bool drop(std::size_t length) {
        const auto list_of = [](auto& fn, std::size_t block) -> auto& { return fn[Block(block)].instructions; };
        return drop_runs(fn_, fn_.block_count(), length, list_of, [&](Function&& it) { return take(std::move(it)); });
    }

    bool zeros() {
        bool changed = false;
        for (Block block : fn_.blocks()) {
            const std::vector<Inst> list = fn_[block].instructions;  // fn_ may be another before the walk ends
            for (Inst inst : list) {
                if (fn_[inst].op == Op::Const || fn_.results(inst).size() != 1) continue;
                Function candidate = fn_;
                Instruction& it = candidate[inst];
                it = {.op = Op::Const, .type = fn_.type(fn_.result(inst)), .operands = {}, .results = it.results};
                changed |= take(std::move(candidate));
            }
        }
        return changed;
    }

    bool jumps() {
        bool changed = false;
        for (Block block : fn_.blocks())
            for (std::size_t way = 0; fn_[block].terminator.targets.size() > 1 && way < 2; ++way) {
                Function candidate = fn_;
                const Jump only = fn_[block].terminator.targets[way];
                candidate[block].terminator = {.kind = Terminator::Kind::Jump, .targets = {only}};
                std::vector<bool> reached(candidate.block_count());
                mark(candidate, candidate.entry(), reached);
                candidate.keep_blocks(reached);
                if (!take(std::move(candidate))) continue;
                return jumps(), true;  // blocks have been renumbered
            }
        return changed;
    }
    static void mark(const Function& fn, Block block, std::vector<bool>& reached) {
        if (reached[index(block)]) return;
        reached[index(block)] = true;
        for (const Jump& jump : fn[block].terminator.targets) mark(fn, jump.to, reached);
    }

    Function fn_;
    const std::function<bool(const Function&)>& fails_;
};

/// The same for an AST: nodes are removed from their regions.
class ShrinkingAst {
public:
    ShrinkingAst(ast::KernelTree kernel, const std::function<bool(const ast::KernelTree&)>& fails)
        : kernel_(std::move(kernel)), fails_(fails) {}

    ast::KernelTree run() {
        for (bool again = true; again;) {
            again = drop(8);
            again |= drop(1);
            again |= zeros();
        }
        return std::move(kernel_);
    }

private:
    bool take(ast::KernelTree&& candidate) {
        if (!Scopes(candidate).well_formed() || !check(candidate).empty() || !fails_(candidate)) return false;
        kernel_ = std::move(candidate);
        return true;
    }

    bool drop(std::size_t length) {
        const auto list_of = [](auto& kernel, std::size_t region) -> auto& { return kernel.regions[region]; };
        return drop_runs(kernel_, kernel_.regions.size(), length, list_of,
                         [&](ast::KernelTree&& it) { return take(std::move(it)); });
    }

    bool zeros() {
        bool changed = false;
        for (std::size_t region = 0; region < kernel_.regions.size(); ++region) {
            const std::vector<ast::Node> list = kernel_.regions[region];  // kernel_ may be another before the walk ends
            for (ast::Node node : list) {
                const ast::NodeInfo& info = kernel_[node];
                if (info.type == Type::Void || info.kind == ast::Kind::Store || info.op == Op::Const) continue;
                ast::KernelTree candidate = kernel_;
                candidate[node] = {.op = Op::Const, .type = info.type, .operand_type = info.type};
                changed |= take(std::move(candidate));
            }
        }
        return changed;
    }

    /// Whether each node uses only nodes before it in its region or in an enclosing one.
    class Scopes {
    public:
        explicit Scopes(const ast::KernelTree& kernel) : kernel_(kernel), known_(kernel.nodes.size()) {}
        bool well_formed() { return walk(kernel_.body()); }

    private:
        bool known(ast::Node node) const { return node == ast::no_node || known_[index(node)]; }

        /// If the region is the condition of a `while_`, its values are also visible in the body.
        bool walk(ast::Region region, const ast::NodeInfo* while_node = nullptr) {
            for (ast::Node id : kernel_[region]) {
                const ast::NodeInfo& node = kernel_[id];
                const bool loops = node.kind == ast::Kind::While;
                if (loops ? !walk(node.regions[0], &node) : !uses_known(node)) return false;
                for (ast::Region inner : node.regions)
                    if (!loops && inner != ast::no_region && !walk(inner)) return false;
                known_[index(id)] = true;
            }
            if (while_node && (!uses_known(*while_node) || !walk(while_node->regions[1]))) return false;
            for (ast::Node id : kernel_[region]) known_[index(id)] = false;
            return true;
        }
        bool uses_known(const ast::NodeInfo& node) const {
            const auto is_known = [&](ast::Node used) { return known(used); };
            return std::ranges::all_of(node.arguments, is_known) && std::ranges::all_of(node.other, is_known) &&
                   known(node.guard) && known(node.place.offset);
        }

        const ast::KernelTree& kernel_;
        std::vector<bool> known_;
    };

    ast::KernelTree kernel_;
    const std::function<bool(const ast::KernelTree&)>& fails_;
};

}  // namespace

Function shrunk(Function fn, const std::function<bool(const Function&)>& fails) {
    return Shrinking(std::move(fn), fails).run();
}

ast::KernelTree shrunk(ast::KernelTree kernel, const std::function<bool(const ast::KernelTree&)>& fails) {
    return ShrinkingAst(std::move(kernel), fails).run();
}

}  // namespace ikat::test
