// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz/ast_meaning.hpp"

#include <array>
#include <span>
#include <stdexcept>

#include "codegen/ir/op/evaluate.hpp"
#include "tests/fuzz/random_ast.hpp"

namespace ikat::test {
namespace {

using ast::Kind, ast::Node, ast::NodeInfo, ast::Region;
using ir::Op, ir::Type, ir::Word;
using Memory = std::vector<Word>;

/// One thread. Block executes what the threads of a block do together.
class Thread {
public:
    Thread(const ast::KernelTree& kernel, std::uint32_t block, std::uint32_t thread, Memory& out,
           std::vector<Memory>& shared)
        : kernel_(kernel),
          block_(block),
          thread_(thread),
          out_(out),
          shared_(shared),
          values_(kernel.nodes.size()),
          variables_(kernel.variables.size()) {}

    enum class Way { On, Break, Continue, Leave, Return };

    Way run(Node id) {
        if (steps_++ == 1'000'000) throw std::runtime_error("the kernel does not end");
        const NodeInfo& node = kernel_[id];
        switch (node.kind) {
            case Kind::Operation: value(id) = operation(node); return Way::On;
            case Kind::Read: value(id) = variables_[index(node.variable)]; return Way::On;
            case Kind::Assign: variables_[index(node.variable)] = argument(node, 0); return Way::On;
            case Kind::Load: value(id) = guarded(node) ? place(node) : value(node.other[0]); return Way::On;
            case Kind::Store:
                if (guarded(node)) place(node) = argument(node, 1);
                return Way::On;
            case Kind::Atomic: value(id) = update(node); return Way::On;
            case Kind::Break: return Way::Break;
            case Kind::Continue: return Way::Continue;
            case Kind::Return: return Way::Return;
            case Kind::Leave: return Way::Leave;
            case Kind::Scope: {
                const Way way = run(node.regions[0]);
                return way == Way::Leave ? Way::On : way;
            }
            case Kind::If:
                if (argument(node, 0)) return run(node.regions[0]);
                return node.regions[1] == ast::no_region ? Way::On : run(node.regions[1]);
            case Kind::For: return run_range(node);
            default: return run_while(node);
        }
    }

    Word& value(Node node) { return values_[index(node)]; }
    Word argument(const NodeInfo& node, std::size_t i) { return value(node.arguments[i]); }

private:
    Way run(Region region) {
        for (Node node : kernel_[region])
            if (const Way way = run(node); way != Way::On) return way;
        return Way::On;
    }

    Word operation(const NodeInfo& node) {
        if (node.op == Op::Const) return node.attribute;
        if (node.op == Op::Special)
            return ir::SpecialRegister(ir::Word{node.attribute}) == ir::SpecialRegister::TidX ? thread_ : block_;
        std::vector<Word> arguments;
        for (Node argument : node.arguments) arguments.push_back(value(argument));
        return ir::evaluate(node.op, node.operand_type, node.from, node.fp, arguments, node.attribute);
    }

    bool guarded(const NodeInfo& node) { return node.guard == ast::no_node || value(node.guard) != 0; }
    Word& place(const NodeInfo& node) {
        const bool global = node.place.base == ast::Place::Base::Parameter;
        Word element = argument(node, 0);
        if (node.place.offset != ast::no_node) element += value(node.place.offset);
        return (global ? out_ : shared_[node.place.index]).at(element);
    }
    Word update(const NodeInfo& node) {
        Word& element = place(node);
        const Word old = element, with = argument(node, 1);
        const auto combined = [&](Op op) { return ir::evaluate(op, node.type, Type::Void, {}, std::array{old, with}); };
        switch (node.op) {
            case Op::AtomicAdd: element = combined(Op::Add); break;
            case Op::AtomicMin: element = combined(Op::Min); break;
            case Op::AtomicMax: element = combined(Op::Max); break;
            case Op::AtomicExchange: element = with; break;
            default: element = old == with ? argument(node, 2) : old;  // AtomicCas
        }
        return old;
    }

    /// A number of the range's type, wide enough that sums do not wrap.
    static __int128 number(Word word, Type type) {
        const int above = 64 - int(ir::bits(type));
        return ir::is_signed(type) ? __int128(std::int64_t(word << above) >> above) : __int128(word);
    }
    Way run_range(const NodeInfo& node) {
        const Type type = kernel_[node.variable].type;
        const __int128 end = number(argument(node, 1), type), step = number(argument(node, 2), type);
        const Word all = ~Word{0} >> (64 - ir::bits(type));
        for (__int128 i = number(argument(node, 0), type); i < end; i += step) {
            variables_[index(node.variable)] = Word(i) & all;
            const Way way = run(node.regions[0]);
            if (way == Way::Return || way == Way::Leave) return way;
            if (way == Way::Break) break;
        }
        return Way::On;
    }
    Way run_while(const NodeInfo& node) {
        for (;;) {
            run(node.regions[0]);
            if (!argument(node, 0)) return Way::On;
            const Way way = run(node.regions[1]);
            if (way == Way::Return || way == Way::Leave) return way;
            if (way == Way::Break) return Way::On;
        }
    }

    const ast::KernelTree& kernel_;
    std::uint32_t block_, thread_;
    Memory& out_;
    std::vector<Memory>& shared_;
    std::vector<Word> values_, variables_;
    std::uint64_t steps_ = 0;
};

/// Executes a node that the threads of each warp execute together; sets its value in each thread.
void meet(const ast::KernelTree& kernel, Node id, std::span<Thread> threads) {
    const NodeInfo& node = kernel[id];
    std::vector<Word> given;
    for (Thread& thread : threads) given.push_back(node.arguments.empty() ? 0 : thread.argument(node, 0));
    for (std::size_t i = 0; i < threads.size(); ++i) {
        Word& value = threads[i].value(id);
        if (node.op == Op::Shuffle) value = given[i ^ threads[i].argument(node, 1)];
        if (node.op == Op::Ballot)
            for (std::size_t lane = 0; lane < 32; ++lane) value |= given[i / 32 * 32 + lane] << lane;
    }
}

void run_block(const ast::KernelTree& kernel, std::uint32_t block, std::uint32_t count, Memory& out) {
    std::vector<Memory> shared;
    for (const ir::Symbol& symbol : kernel.symbols) shared.emplace_back(symbol.count);
    std::vector<Thread> threads;
    for (std::uint32_t thread = 0; thread < count; ++thread) threads.emplace_back(kernel, block, thread, out, shared);
    std::vector<bool> returned(count);
    for (Node node : kernel[kernel.body()]) {
        if (kernel[node].kind == Kind::Operation && !ir::effects(kernel[node].op).none()) {
            meet(kernel, node, threads);
            continue;
        }
        for (std::uint32_t i = 0; i < count; ++i)
            if (!returned[i]) returned[i] = threads[i].run(node) == Thread::Way::Return;
    }
}

}  // namespace

std::vector<ir::Word> meaning(const ast::KernelTree& kernel, std::uint32_t blocks, std::uint32_t threads) {
    Memory out(blocks * threads * RandomAst::words);
    for (std::uint32_t block = 0; block < blocks; ++block) run_block(kernel, block, threads, out);
    return out;
}

}  // namespace ikat::test
