// SPDX-License-Identifier: Apache-2.0
// Rewrites a problem so that the chosen values live in memory, with short pieces in registers.
//
//     v0 =                            v0 =            ; stored to its slot immediately
//     = v0                            = v0
//     …                     ==>       …
//     = v0                            v9 = reload v0
//     = v0                            = v9
//                                     = v9            ; kept while there is room, the farthest next use leaves first
// At block boundaries every chosen value is in its slot, so paths need not agree and loops need no special handling. A
// rematerialisable value has no slot; it is recomputed where it would be reloaded. A chosen parameter is written to its
// slot at the end of each block that passes it an argument:
//
//     first    arguments in memory for parameters in registers are reloaded
//     then     slots are copied to slots, one after the other through one register, in an order that sequentialise
//     finds last     arguments in registers for parameters in memory are stored
// A block with several successors stores before it is known which one is next. That is harmless: the parameter belongs
// to a block that is entered only from here, so its slot is not read on other paths.
// Needs: limits are met around the pieces (choose_spilled). The result has the blocks and values of the problem; pieces
// are new values after them. translate() converts its answer back.
#include <algorithm>
#include <array>

#include "codegen/support/diagnostic.hpp"
#include "regalloc/stages.hpp"

namespace ikat::regalloc {
namespace {

using Kind = Spilled::Origin::Kind;

struct Spiller {
    const Problem& problem;
    const Flow& flow;
    const Liveness& liveness;
    const Bitset& chosen;
    Spilled result{};
    StackSlots slots{};
    std::uint32_t cycle_slot = unlimited;  // for cycles among slots; unlimited = not needed yet
    std::vector<LiveRange> piece{};        // by LiveRange: the piece that holds it now; no_id = only in memory
    std::vector<LiveRange> resident{};     // chosen values with a piece, in order of creation
    std::vector<std::pair<LiveRange, std::size_t>> uses{};  // of chosen values in this block, ascending
    std::vector<std::uint32_t> live{};                      // by class: other values in registers
    BasicBlock* block = nullptr;                            // the current one
    std::vector<Spilled::Origin>* origins = nullptr;

    Class class_of(LiveRange v) const { return problem.values[index(v)].register_class; }
    bool is_chosen(LiveRange v) const { return chosen.test(index(v)); }
    std::uint32_t slot(LiveRange v) const { return slots.of[index(v)]; }
    bool has_slot(LiveRange v) const { return is_chosen(v) && !problem.values[index(v)].rematerialisable; }
    std::int64_t room(std::size_t c) const {
        const std::uint32_t limit = c < problem.limits.size() ? problem.limits[c] : unlimited;
        return std::int64_t(limit) - live[c];
    }
    /// Whether the parameter is not passed in a register: it is in memory, or reloaded at the start of its block.
    bool is_dropped(FlowBlock b, std::size_t parameter, const Edge* at_start) const {
        if (b == FlowBlock{0}) return false;
        return is_chosen(problem.blocks[index(b)].parameters[parameter]) ||
               (at_start && is_chosen(at_start->arguments[parameter]));
    }

    // ---- writing --------------------------------------------------------------------------------------------------

    LiveRange new_piece(LiveRange v) {
        result.problem.values.push_back({class_of(v)});
        result.original.push_back(v);
        return LiveRange(result.problem.values.size() - 1);
    }
    void write(Instruction instruction, Spilled::Origin origin) {
        block->instructions.push_back(std::move(instruction));
        origins->push_back(origin);
    }
    void write_load(LiveRange target, LiveRange v) {
        const bool again = problem.values[index(v)].rematerialisable;
        write({.uses = {}, .definitions = {target}},
              {again ? Kind::Rematerialise : Kind::Reload, v, again ? 0 : slot(v)});
    }
    void write_store(std::uint32_t to, LiveRange source, LiveRange v) {
        write({.uses = {source}, .definitions = {}}, {Kind::Spill, v, to});
    }

    // ---- pieces in registers --------------------------------------------------------------------------------------

    std::size_t next_use(LiveRange v, std::size_t from) const {
        const auto found = std::ranges::lower_bound(uses, std::pair(v, from));
        return found != uses.end() && found->first == v ? found->second : no_use;
    }
    static constexpr std::size_t no_use = ~std::size_t{0};

    void leave(LiveRange v) {
        piece[index(v)] = no_id<LiveRange>;
        std::erase(resident, v);
    }
    /// Evicts residents, farthest next use first, until they and `needed` new pieces of class c fit. `kept` stay.
    void make_room(std::size_t c, std::int64_t needed, std::size_t from, std::span<const LiveRange> kept) {
        const auto in_class = [&](LiveRange v) { return class_of(v) == c; };
        for (std::int64_t count = std::ranges::count_if(resident, in_class); count + needed > room(c); --count) {
            LiveRange farthest = no_id<LiveRange>;
            for (LiveRange v : resident)
                if (in_class(v) && std::ranges::find(kept, v) == kept.end() &&
                    (farthest == no_id<LiveRange> || next_use(v, from) > next_use(farthest, from)))
                    farthest = v;
            if (farthest == no_id<LiveRange>) return;
            leave(farthest);
        }
    }
    void make_room_for(std::span<const LiveRange> operands, std::size_t from, const std::vector<std::uint32_t>& extra) {
        for (std::size_t c = 0; c < live.size(); ++c) {
            const auto missing = std::ranges::count_if(
                operands, [&](LiveRange v) { return class_of(v) == c && piece[index(v)] == no_id<LiveRange>; });
            make_room(c, missing + extra[c], from, operands);
        }
    }
    void load_missing(std::span<const LiveRange> operands) {
        for (LiveRange v : operands) {
            if (piece[index(v)] != no_id<LiveRange>) continue;
            piece[index(v)] = new_piece(v);
            resident.push_back(v);
            write_load(piece[index(v)], v);
        }
    }
    static void add_once(std::vector<LiveRange>& values, LiveRange v) {
        if (std::ranges::find(values, v) == values.end()) values.push_back(v);
    }
    template <class Values>
    Values renamed(Values values) const {
        for (LiveRange& v : values)
            if (is_chosen(v)) v = piece[index(v)];
        return values;
    }

    void count(std::span<const LiveRange> values, std::uint32_t change) {
        for (LiveRange v : values)
            if (!is_chosen(v)) live[class_of(v)] += change;
    }

    // ---- one instruction ------------------------------------------------------------------------------------------

    std::vector<std::uint32_t> copies(FlowBlock b, std::size_t i) const {
        const Instruction& instruction = problem.blocks[index(b)].instructions[i];
        const auto copied = liveness.copied(b, i);
        std::vector<std::uint32_t> count(live.size());
        std::vector<LiveRange> spent;  // chosen values whose piece is overwritten by a definition
        for (std::size_t t = 0; t < copied.size(); ++t) {
            const LiveRange use = instruction.uses[instruction.tied[t].use];
            const bool takes_over =
                is_chosen(use) && !reads_late(instruction, use) && std::ranges::find(spent, use) == spent.end();
            if (takes_over)
                spent.push_back(use);
            else
                count[class_of(use)] += is_chosen(use) || copied[t];
        }
        return count;
    }

    void rewrite(FlowBlock b, std::size_t i) {
        const Instruction& instruction = problem.blocks[index(b)].instructions[i];
        std::vector<LiveRange> operands;
        for (LiveRange v : instruction.uses)
            if (is_chosen(v)) add_once(operands, v);
        make_room_for(operands, i, copies(b, i));
        load_missing(operands);
        write({renamed(instruction.uses), instruction.definitions, instruction.tied, instruction.early,
               instruction.preferred},
              {.kind = Kind::Instruction});

        count(liveness.dying(b, i), ~0u);
        for (const Tied& tied : instruction.tied)
            if (const LiveRange v = instruction.uses[tied.use]; is_chosen(v) && !reads_late(instruction, v)) leave(v);
        std::vector<LiveRange> late;
        for (LiveRange v : operands)
            if (reads_late(instruction, v))
                late.push_back(v);
            else if (next_use(v, i + 1) == no_use)
                leave(v);

        count(instruction.definitions, 1);
        std::vector<std::uint32_t> defined(live.size());
        for (LiveRange v : instruction.definitions) defined[class_of(v)] += is_chosen(v);
        for (std::size_t c = 0; c < live.size(); ++c) make_room(c, defined[c], i + 1, late);
        for (LiveRange v : late)
            if (next_use(v, i + 1) == no_use) leave(v);
        count(liveness.dead(b, i), ~0u);
        keep(instruction.definitions, i + 1);
    }

    /// Stores new definitions, and keeps them in registers if this block reads them.
    void keep(std::span<const LiveRange> definitions, std::size_t from) {
        for (LiveRange v : definitions) {
            if (has_slot(v)) write_store(slot(v), v, v);
            if (!is_chosen(v) || next_use(v, from) == no_use) continue;
            piece[index(v)] = v;
            resident.push_back(v);
        }
    }

    // ---- the boundaries of a block
    // -----------------------------------------------------------------------------------

    void rewrite_start(FlowBlock b) {
        const Edge* at_start = edge_at_start(problem, flow, b);
        const auto& parameters = problem.blocks[index(b)].parameters;
        std::ranges::fill(live, 0);
        for (LiveRange v : liveness.in[index(b)]) count({{v}}, 1);
        count(parameters, 1);
        for (std::size_t i = 0; i < parameters.size(); ++i) {
            if (!is_dropped(b, i, at_start))
                block->parameters.push_back(parameters[i]);
            else if (!is_chosen(parameters[i]))
                write_load(parameters[i], at_start->arguments[i]);
        }
        count(liveness.dead_parameters(b), ~0u);
        if (b == FlowBlock{0}) keep(parameters, 0);
    }

    std::vector<LiveRange> operands_at_end(FlowBlock b) const {
        const BasicBlock& from = problem.blocks[index(b)];
        std::vector<LiveRange> operands;
        for (LiveRange v : from.terminator_uses)
            if (is_chosen(v)) add_once(operands, v);
        if (const Edge* edge = edge_at_end(problem, b))
            for (std::size_t i = 0; i < edge->arguments.size(); ++i)
                if (is_chosen(edge->arguments[i]) && !is_dropped(edge->to, i, nullptr))
                    add_once(operands, edge->arguments[i]);
        return operands;
    }

    /// Calls visit(parameter, argument) for the parameters in memory that b passes on.
    void each_stored(FlowBlock b, auto&& visit) const {
        for (const Edge& edge : problem.blocks[index(b)].edges) {
            const auto& parameters = problem.blocks[index(edge.to)].parameters;
            for (std::size_t i = 0; edge.to != FlowBlock{0} && i < parameters.size(); ++i)
                if (has_slot(parameters[i])) visit(parameters[i], edge.arguments[i]);
        }
    }

    void copy_slots(FlowBlock b) {
        std::vector<Move> parallel;
        std::vector<LiveRange> holds(slots.count + 1, no_id<LiveRange>);  // by slot; the last is the one for cycles
        each_stored(b, [&](LiveRange parameter, LiveRange argument) {
            if (!has_slot(argument)) return;
            parallel.push_back({slot(parameter), slot(argument)});
            holds[slot(argument)] = argument;
        });
        for (const Move& move : sequentialise(parallel, slots.count)) {
            if (move.to == slots.count) cycle_slot = move.to;
            const LiveRange v = holds[move.from], through = new_piece(v);
            write({.uses = {}, .definitions = {through}}, {Kind::Reload, v, move.from});
            write_store(move.to, through, v);
            holds[move.to] = v;
        }
    }

    void store_arguments(FlowBlock b) {
        each_stored(b, [&](LiveRange parameter, LiveRange argument) {
            if (has_slot(argument)) return;
            LiveRange source = argument;
            if (is_chosen(argument)) write_load(source = new_piece(argument), argument);
            write_store(slot(parameter), source, argument);
        });
    }

    void rewrite_end(FlowBlock b) {
        const BasicBlock& from = problem.blocks[index(b)];
        std::vector<std::uint32_t> through_register(live.size());
        each_stored(
            b, [&](LiveRange, LiveRange argument) { through_register[class_of(argument)] |= is_chosen(argument); });
        const std::vector<LiveRange> operands = operands_at_end(b);
        make_room_for(operands, from.instructions.size(), through_register);
        load_missing(operands);
        copy_slots(b);
        store_arguments(b);

        block->terminator_uses = renamed(from.terminator_uses);
        for (const Edge& edge : from.edges) {
            const Edge* at_start = from.edges.size() == 1 ? nullptr : &edge;
            Edge& written = block->edges.emplace_back(edge.to, std::vector<LiveRange>{});
            for (std::size_t i = 0; i < edge.arguments.size(); ++i)
                if (!is_dropped(edge.to, i, at_start))
                    written.arguments.push_back(renamed(std::array{edge.arguments[i]})[0]);
        }
    }

    void collect_uses(FlowBlock b) {
        const BasicBlock& from = problem.blocks[index(b)];
        const std::size_t end = from.instructions.size();
        uses.clear();
        const auto add = [&](std::size_t i, std::span<const LiveRange> values) {
            for (LiveRange v : values)
                if (is_chosen(v)) uses.emplace_back(v, i);
        };
        for (std::size_t i = 0; i < end; ++i) add(i, from.instructions[i].uses);
        add(end, operands_at_end(b));
        std::ranges::sort(uses);
    }

    void rewrite_block(FlowBlock b) {
        collect_uses(b);
        rewrite_start(b);
        for (std::size_t i = 0; i < problem.blocks[index(b)].instructions.size(); ++i) rewrite(b, i);
        rewrite_end(b);
        while (!resident.empty()) leave(resident.back());
    }

    void number_slots() {
        Bitset stored(problem.values.size());
        chosen.each([&](std::size_t v) {
            if (has_slot(LiveRange(v))) stored.set(v);
        });
        slots = share_slots(problem, flow, liveness, stored);
    }

    Spilled run() {
        number_slots();
        piece.assign(problem.values.size(), no_id<LiveRange>);
        live.assign(liveness.classes, 0);
        result.problem.values = problem.values;
        result.problem.limits = problem.limits;
        result.problem.blocks.resize(problem.blocks.size());
        result.origins.resize(problem.blocks.size());
        for (LiveRange v : ids<LiveRange>(problem.values.size())) result.original.push_back(v);
        for (std::uint32_t b = 0; b < problem.blocks.size(); ++b) {
            block = &result.problem.blocks[b];
            origins = &result.origins[b];
            if (flow.reachable[b])
                rewrite_block(FlowBlock{b});
            else
                *block = problem.blocks[b], origins->resize(block->instructions.size());
        }
        result.stack_slots = slots.count + (cycle_slot != unlimited);
        return std::move(result);
    }
};

}  // namespace

Spilled spill(const Problem& problem, const Flow& flow, const Liveness& liveness, const Bitset& chosen) {
    return Spiller{problem, flow, liveness, chosen}.run();
}

}  // namespace ikat::regalloc
