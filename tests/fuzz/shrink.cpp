// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz/shrink.hpp"

#include "codegen/ir/verify.hpp"

namespace ikat::test {
namespace {

using namespace ir;

class Shrinking {
public:
    Shrinking(Function fn, const std::function<bool(const Function&)>& fails) : fn_(std::move(fn)), fails_(fails) {}

    Function run() {
        for (bool again = true; again;) {
            again = drop_runs(16) | drop_runs(1);
            again |= zeros();
            again |= jumps();
        }
        return std::move(fn_);
    }

private:
    bool take(Function&& candidate) {
        if (!report(candidate).empty() || !fails_(candidate)) return false;
        fn_ = std::move(candidate);
        return true;
    }

    /// Instructions that nothing needs; the verifier refuses those that something does.
    bool drop_runs(std::size_t length) {
        bool changed = false;
        for (Block block : fn_.blocks())
            for (std::size_t end = fn_[block].instructions.size(); end > 0;) {
                const std::size_t begin = end > length ? end - length : 0;
                Function candidate = fn_;
                auto& list = candidate[block].instructions;
                list.erase(list.begin() + std::ptrdiff_t(begin), list.begin() + std::ptrdiff_t(end));
                changed |= take(std::move(candidate));
                end = begin;
            }
        return changed;
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
                return jumps(), true;  // blocks have other numbers now
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

}  // namespace

Function shrunk(Function fn, const std::function<bool(const Function&)>& fails) {
    return Shrinking(std::move(fn), fails).run();
}

}  // namespace ikat::test
