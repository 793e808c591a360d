// SPDX-License-Identifier: Apache-2.0
#include "codegen/ir/verify_flight.hpp"

#include <algorithm>
#include <optional>

#include "codegen/ir/cfg.hpp"
#include "codegen/ir/object.hpp"
#include "codegen/ir/op/accesses.hpp"
#include "codegen/support/dominator_tree.hpp"

namespace ikat::ir {
namespace {

constexpr std::uint32_t untracked = ~std::uint32_t{0};
/// Of work that may be done, and the most commits that are counted.
constexpr std::uint8_t done = 255, max_commits = 15;

/// What is tracked: a value of products, or a copy.
struct Item {
    Work work = Work::None;
    Inst copy = no_inst;
    Object to{};
};

/// At a point: by item, how many commits at most are after its work, if that is in flight on all ways there.
struct FlightState {
    std::vector<std::uint8_t> commits;
    bool waited = false;  // for copies, on some way
    bool operator==(const FlightState&) const = default;
};

void meet(std::optional<FlightState>& into, const FlightState& other) {
    if (!into) {
        into = other;
        return;
    }
    for (std::size_t i = 0; i < other.commits.size(); ++i)
        into->commits[i] = std::max(into->commits[i], other.commits[i]);
    into->waited |= other.waited;
}

class FlightWalk {
public:
    explicit FlightWalk(const Function& fn) : fn_(fn), value_item_(fn.value_count(), untracked) {}

    std::vector<FlightProblem> run() {
        if (!find_copies() && !any_products_) return {};
        if (any_products_) find_values();
        const DominatorTree dominators(control_flow(fn_));
        std::vector<std::optional<FlightState>> at(fn_.block_count());
        at[index(fn_.entry())] = FlightState{std::vector<std::uint8_t>(items_.size(), done)};
        for (bool changed = true; changed;) {
            changed = false;
            for (const std::uint32_t b : dominators.reverse_postorder())
                if (at[b]) changed |= walk(Block(b), *at[b], at);
        }
        for (const Block block : fn_.blocks()) {
            if (!at[index(block)]) continue;
            now_ = *at[index(block)];
            for (const Inst inst : fn_[block].instructions) check(block, inst), step(inst);
        }
        return std::move(problems_);
    }

private:
    Flight flight(Inst inst) const { return conduct(fn_[inst].op, fn_[inst].attribute).flight; }

    // ---- what is tracked

    bool find_copies() {
        only_copied_.assign(fn_.symbols.size(), true);
        for (const Block block : fn_.blocks())
            for (const Inst inst : fn_[block].instructions) {
                const Flight its = flight(inst);
                any_products_ |= its.starts == Work::Products;
                any_wait_ |= its.awaits == Work::Copies || its.awaits == Work::Loads;
                if (its.starts == Work::Copies || its.starts == Work::Loads)
                    items_.push_back({its.starts, inst, object_of(fn_, fn_.operands(inst)[0])});
                else
                    written(inst);
            }
        return !items_.empty();
    }
    /// Arrays that are written by something else than copies of these threads.
    void written(Inst inst) {
        const Instruction& it = fn_[inst];
        if (is_anything(it)) return only_copied_.assign(fn_.symbols.size(), false);
        for (const MemoryAccess& access : accesses(it)) {
            if (!access.writes || access.space == Space::Global || access.space == Space::Local) continue;
            const Object to = object_of(fn_, fn_.operands(inst)[access.operand]);
            if (to.kind == Object::Symbol && access.space == Space::Shared)
                only_copied_[to.number] = false;
            else
                only_copied_.assign(fn_.symbols.size(), false);
        }
    }
    /// Text and calls may do whatever instructions can.
    static bool is_anything(const Instruction& it) {
        const Effects does = effects(it);
        return info(it.op).shape.variadic && does.reads && does.writes && !info(it.op).shape.passes_on;
    }

    void track(Value value) {
        if (value_item_[index(value)] != untracked) return;
        value_item_[index(value)] = std::uint32_t(items_.size());
        items_.push_back({Work::Products});
        grown_ = true;
    }
    bool is_tracked(Value value) const { return value_item_[index(value)] != untracked; }
    void find_values() {
        for (grown_ = true; grown_;) {
            grown_ = false;
            for (const Block block : fn_.blocks()) {
                for (const Inst inst : fn_[block].instructions) {
                    const bool starts = info(fn_[inst].op).starts == Work::Products;
                    const bool passes_on = info(fn_[inst].op).shape.passes_on;
                    for (std::size_t i = 0; (starts || passes_on) && i < fn_.results(inst).size(); ++i)
                        if (starts || is_tracked(fn_.operands(inst)[i])) track(fn_.results(inst)[i]);
                }
                for (const Jump& jump : fn_[block].terminator.targets)
                    for (std::size_t i = 0; i < jump.arguments.size(); ++i)
                        if (is_tracked(jump.arguments[i])) track(fn_[jump.to].parameters[i]);
            }
        }
    }

    // ---- the walk

    bool walk(Block block, const FlightState& in, std::vector<std::optional<FlightState>>& at) {
        now_ = in;
        for (const Inst inst : fn_[block].instructions) step(inst);
        bool changed = false;
        for (const Jump& jump : fn_[block].terminator.targets) {
            FlightState out = now_;
            for (std::size_t i = 0; i < jump.arguments.size(); ++i)
                if (const std::uint32_t to = value_item_[index(fn_[jump.to].parameters[i])]; to != untracked)
                    out.commits[to] = commits(jump.arguments[i]);
            std::optional<FlightState>& there = at[index(jump.to)];
            const std::optional<FlightState> before = there;
            meet(there, out);
            changed |= there != before;
        }
        return changed;
    }
    std::uint8_t commits(Value value) const {
        return is_tracked(value) ? now_.commits[value_item_[index(value)]] : done;
    }

    void step(Inst inst) {
        const Instruction& it = fn_[inst];
        const Flight its = flight(inst);
        const Effects does = effects(it);
        const bool anything = is_anything(it), is_start = its.starts != Work::None || its.commits != Work::None;
        const bool others = meets_others(it) || (does.orders && !is_start);  // may have waited
        // Who waits at a barrier for what arrives there is not known here.
        const bool arrives = its.commits == Work::Copies && is_address(it.op, 0);
        for (std::uint32_t i = 0; i < items_.size(); ++i) {
            std::uint8_t& later = now_.commits[i];
            const Work work = items_[i].work;
            if (later == done) continue;
            if (its.commits == work) later = later < max_commits ? std::uint8_t(later + 1) : done;
            if (its.awaits == work && (its.all || later > its.groups)) later = done;
            if (anything || (work == Work::Copies && arrives) || (work == Work::Loads && others)) later = done;
            if (items_[i].copy == inst) later = done;
        }
        if (its.awaits == Work::Copies || its.awaits == Work::Loads || anything || arrives || (others && any_wait_))
            now_.waited = true;
        if (its.starts == Work::Copies || its.starts == Work::Loads) begin(inst);
        const auto results = fn_.results(inst);
        for (std::size_t i = 0; i < results.size(); ++i) {
            if (!is_tracked(results[i])) continue;
            const bool starts = its.starts == Work::Products;
            now_.commits[value_item_[index(results[i])]] = starts ? 0 : commits(fn_.operands(inst)[i]);
        }
    }
    void begin(Inst inst) {
        const auto item = std::ranges::find(items_, inst, &Item::copy);
        now_.commits[std::size_t(item - items_.begin())] = 0;
    }
    static bool meets_others(const Instruction& it) {
        const Meeting meets = conduct(it.op, it.attribute).meets;
        return meets == Meeting::Block || meets == Meeting::Cluster || info(it.op).meets == Meeting::Block;
    }

    // ---- what is read

    void check(Block block, Inst inst) {
        const Instruction& it = fn_[inst];
        const bool starts = info(it.op).starts == Work::Products;
        if (any_products_ && !info(it.op).shape.passes_on) {
            const auto operands = fn_.operands(inst);
            for (std::uint32_t i = 0; i < operands.size(); ++i) {
                const bool adds = starts && i >= it.tie.operand && i < std::uint32_t(it.tie.operand + it.tie.count);
                if (!adds && commits(operands[i]) != done)
                    return problem(block, inst, "it reads what a product in flight is still to write");
            }
        }
        if (it.guard != no_value || items_.empty()) return;
        for (const MemoryAccess& access : accesses(it))
            if (access.reads && (access.space == Space::Shared || access.space == Space::Generic) &&
                is_in_flight(inst, access))
                return problem(block, inst, "it reads what a copy in flight is still to write");
    }
    void problem(Block block, Inst inst, const char* what) { problems_.push_back({block, inst, what}); }

    bool is_in_flight(Inst inst, const MemoryAccess& access) const {
        const Value address = fn_.operands(inst)[access.operand];
        const Object from = object_of(fn_, address);
        const bool only_copies = from.kind == Object::Symbol && fn_.symbols[from.number].space == Space::Shared &&
                                 only_copied_[from.number] && !now_.waited;
        for (std::size_t i = 0; i < items_.size(); ++i) {
            if (items_[i].copy == no_inst || now_.commits[i] == done) continue;
            if (only_copies && items_[i].to == from) return true;
            if (fn_.operands(items_[i].copy)[0] == address && overlaps(items_[i], access)) return true;
        }
        return false;
    }
    /// The bytes that a copy surely writes, from the same address on.
    bool overlaps(const Item& item, const MemoryAccess& access) const {
        constexpr std::int64_t min_bytes = 16;  // of a bulk copy
        const MemoryAccesses at = accesses(fn_[item.copy]);
        const std::int64_t begin = at.empty() ? 0 : at[0].offset, bytes = at.empty() ? min_bytes : at[0].bytes;
        return access.offset < begin + bytes && begin < access.offset + std::int64_t(access.bytes);
    }

    const Function& fn_;
    std::vector<Item> items_;
    std::vector<std::uint32_t> value_item_;  // by value: its item
    std::vector<bool> only_copied_;          // by symbol
    bool any_products_ = false, any_wait_ = false, grown_ = false;
    FlightState now_;
    std::vector<FlightProblem> problems_;
};

}  // namespace

std::vector<FlightProblem> flight_problems(const Function& fn) { return FlightWalk(fn).run(); }

}  // namespace ikat::ir
