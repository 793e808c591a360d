// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "codegen/ir/op/effects.hpp"
#include "runtime/emulator/decode/blocks.hpp"
#include "runtime/emulator/tools/races/note_access.hpp"

namespace ikat::emulator::races {

namespace {

/// Bytes between the accesses of a group count as accessed where lines are compared, so they are few.
constexpr std::int32_t max_gap = 1024;

/// Loads with one base, which the op before the first of them notes.
struct Group {
    std::uint32_t note = 0;  // its micro
    std::int32_t from = 0, to = 0;
    std::vector<GroupedOp> loads{};  // with their offsets from the base
};

/// Whether a load after an op may be noted before it.
bool lets_pass(const Micro& micro) {
    const MicroInfo& info = micro.info;
    const Synchronises& how = info.synchronises;
    if (micro.flow != Flow::Next || how.meets_warp || how.exchanges_in_warp || how.acquires || how.releases)
        return false;
    if (info.access.bytes) return info.access.direction == Direction::Read && !info.access.is_strong;
    if (const auto op = info.operation.of_ir()) {
        const ir::Effects effects = ir::effects(*op);
        return !effects.writes && !effects.orders && !effects.in_flight();
    }
    const OwnOp own = info.operation.own();
    return own == OwnOp::Watch || own == OwnOp::Nothing || own == OwnOp::Count || own == OwnOp::CheckAlignment ||
           (own >= OwnOp::MadHi && own <= OwnOp::RankOfShared);
}

class Joiner {
public:
    explicit Joiner(Lowering& code) : code_(code) {}

    void run(std::uint32_t begin, std::uint32_t end) {
        for (std::uint32_t i = begin; i < end; ++i) {
            const Micro& micro = code_.micros[i];
            if (micro.checks) continue;
            if (is_note(micro)) {
                add(i);
            } else if (!lets_pass(micro)) {
                close_if([](const Group&) { return true; });
            } else {
                each_result(code_, micro, [&](std::uint32_t value) {
                    close_if([&](const Group& group) { return code_.micros[group.note].fields[1] == value; });
                });
            }
        }
        close_if([](const Group&) { return true; });
    }

private:
    /// Whether it is an op of this tool before a load that may be in a group.
    bool is_note(const Micro& micro) const {
        if (micro.info.operation != OwnOp::Watch) return false;
        const AccessForm form = AccessForm::of(micro.fields[3]);
        return form.slot == code_.asked && form.may_be_grouped() && micro.run == select_note_access(form);
    }
    void add(std::uint32_t i) {
        Micro& micro = code_.micros[i];
        const auto from = std::int32_t(micro.fields[4]);
        const std::int32_t to = from + AccessForm::of(micro.fields[3]).bytes;
        const auto takes = [&](const Group& group) {
            const Micro& own = code_.micros[group.note];
            return std::equal(own.fields.begin() + 1, own.fields.begin() + 4, micro.fields.begin() + 1) &&
                   from <= group.to + max_gap && to >= group.from - max_gap;
        };
        std::uint32_t load = i + 1;
        while (!code_.micros[load].info.access.bytes) ++load;
        auto group = std::ranges::find_if(groups_, takes);
        if (group == groups_.end()) group = groups_.insert(group, {.note = i, .from = from, .to = to});
        micro.dropped = group->note != i;
        group->from = std::min(group->from, from), group->to = std::max(group->to, to);
        group->loads.push_back({from, load});
    }
    template <class F>
    void close_if(F f) {
        for (const Group& group : groups_)
            if (group.loads.size() > 1 && f(group)) close(group);
        std::erase_if(groups_, f);
    }
    void close(const Group& group) {
        Micro& note = code_.micros[group.note];
        note.run = select_note_group();
        note.fields[4] = std::uint32_t(group.from);
        note.fields[5] = std::uint32_t(group.to - group.from);
        note.grouped = {std::uint32_t(code_.grouped.size()), std::uint32_t(group.loads.size())};
        for (GroupedOp load : group.loads) {
            load.offset -= group.from;
            code_.grouped.push_back(load);
        }
    }

    Lowering& code_;
    std::vector<Group> groups_;
};

}  // namespace

void join_notes(Lowering& code, std::uint32_t begin, std::uint32_t end) { Joiner(code).run(begin, end); }

}  // namespace ikat::emulator::races
