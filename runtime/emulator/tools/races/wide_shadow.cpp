// SPDX-License-Identifier: Apache-2.0
#include "runtime/emulator/tools/races/wide_shadow.hpp"

#include <algorithm>
#include <bit>

#include "runtime/emulator/tools/races/order.hpp"

namespace ikat::emulator::races {

// ---- contexts

Contexts::Id Contexts::number(const Context& context) {
    Id& last = last_[std::uint64_t(context.agent) << 32 | context.op];
    if (contexts_[last] != context) {
        last = Id(contexts_.size());
        contexts_.push_back(context);
    }
    return last;
}

bool Contexts::is_fine(const Context& one, const Context& other) const {
    if (!one.writes && !other.writes) return true;
    return one.is_strong && other.is_strong && order_.reaches(std::min(one.scope, other.scope), one.block, other.block);
}

Contexts::Id Contexts::with(Id id, Id more, const Knower& by) {
    if (!id || id == more) return more;
    const auto [found, is_new] = grown_.try_emplace(std::uint64_t(id) << 32 | more);
    if (!is_new) return found->second;
    const Context& now = contexts_[more];
    const Knower any = by.any_lane();  // since the result is for all that have the context
    // Where there are many atomics, the last ones stay.
    const bool are_many = (id & is_set) && sets_[id & ~is_set].are_strong && sets_[id & ~is_set].count >= max_strong;
    const int max_looked_at = are_many ? int(max_strong / 2) : 32;
    std::vector<Id> kept;
    const bool is_one_of_several = id & is_set;
    int looked_at = 0;
    Id rest = id;
    bool has_it = false;
    const auto look = [&](Id each) {
        const Context& before = contexts_[each];
        has_it |= each == more;
        // Lanes that do the same again, as those that spin; of which lanes it was, a set does not say.
        if (is_one_of_several && each != more && is_again(now, before)) return;
        if (each == more || !subsumes(now, before) || unknown(before, before.lanes, any)) kept.push_back(each);
    };
    for (; rest & is_set && looked_at < max_looked_at; ++looked_at) {
        const Set set = sets_[rest & ~is_set];
        look(set.context);
        rest = set.rest;
    }
    if (rest && !(rest & is_set)) look(rest), rest = 0;
    if (are_many) rest = 0;
    if (!has_it) kept.insert(kept.begin(), more);
    Id all = rest;
    if (is_one_of_several && kept.size() == 1 && !all) all = grow(0, kept.front()), kept.clear();
    for (auto each = kept.rbegin(); each != kept.rend(); ++each) all = all ? grow(all, *each) : *each;
    return found->second = all;
}

Contexts::Id Contexts::grow(Id rest, Id context) {
    const auto is_plain = [](const Context& each) { return !each.writes && !each.is_strong; };
    const Context& now = contexts_[context];
    const Context& last = !rest ? now : contexts_[rest & is_set ? sets_[rest & ~is_set].context : rest];
    const Set before =
        rest & is_set ? sets_[rest & ~is_set] : Set{.are_strong = is_strong(last), .are_plain = is_plain(last)};
    Set set{rest, context, rest ? before.count + 1 : 1};
    set.are_strong = before.are_strong && is_strong(now);
    set.are_plain = before.are_plain && is_plain(now);
    set.are_of_blocks = set.are_plain && (before.are_of_blocks || last.block != now.block);
    sets_.push_back(set);
    return Id(sets_.size() - 1) | is_set;
}

// ---- cells

void WideShadow::Page::split(int smaller) {
    const std::size_t parts = std::size_t{1} << (shift - smaller);
    std::vector<Cell> split;
    split.reserve(cells.size() * parts);
    for (const Cell& cell : cells) split.insert(split.end(), parts, cell);
    cells = std::move(split);
    shift = smaller;
}

WideShadow::Page& WideShadow::page_of(std::uint64_t address) {
    const std::uint64_t number = address >> page_bits;
    if (number != last_number_) last_ = &pages_[number], last_number_ = number;
    return *last_;
}

void WideShadow::forget(std::uint64_t address, std::uint64_t bytes) {
    for (std::uint64_t number = address >> page_bits; number <= (address + bytes) >> page_bits; ++number)
        pages_.erase(number);
    last_ = nullptr, last_number_ = ~std::uint64_t{0};
}

/// Whether there is a race with any of these.
bool WideShadow::find(Contexts::Id id, std::uint32_t lanes, Contexts::Id context, const Knower& by, Conflict& found) {
    const Context& now = contexts_[context];
    if (!(id & Contexts::is_set)) {
        const Context& before = contexts_[id];
        const std::uint32_t unknown = contexts_.unknown(before, lanes, by);
        if (!unknown || contexts_.is_fine(before, now)) return false;
        found.before = before;
        found.lanes = unknown;
        return true;
    }
    if (contexts_.are_fine(id, now)) return false;
    const Known asked{id, context, by.common};
    if (known_ == asked) return false;
    const Knower any = by.any_lane();
    bool is_race = false, are_known = true;
    contexts_.each(id, [&](const Context& before) {
        const std::uint32_t unknown = contexts_.unknown(before, before.lanes, by);
        are_known &= !contexts_.unknown(before, before.lanes, any);
        if (!unknown || contexts_.is_fine(before, now)) return true;
        is_race = unknown == before.lanes;
        if (!is_race) ++unsure;
        found.before = before;
        found.lanes = unknown;
        return !is_race;
    });
    if (are_known) known_ = asked;
    return is_race;
}

/// Whether all of these come before, so that who is ordered after the access is ordered after them.
bool WideShadow::is_over(Contexts::Id id, std::uint32_t lanes, const Context& now, const Knower& by) const {
    if (!(id & Contexts::is_set))
        return !id || (Contexts::subsumes(now, contexts_[id]) && !contexts_.unknown(contexts_[id], lanes, by));
    bool are_over = true;
    contexts_.each(id, [&](const Context& before) {
        return are_over = Contexts::subsumes(now, before) && !contexts_.unknown(before, before.lanes, by);
    });
    return are_over;
}

bool WideShadow::touch(Cell& cell, Contexts::Id context, const Context& now, std::uint32_t lane, const Knower& by,
                       Conflict& found) {
    const bool is_race = (cell.write && find(cell.write, cell.write_lanes, context, by, found)) ||
                         (now.writes && cell.read && find(cell.read, cell.read_lanes, context, by, found));
    if (now.writes && is_over(cell.write, cell.write_lanes, now, by) && is_over(cell.read, cell.read_lanes, now, by)) {
        cell = {.write = context, .write_lanes = lane};
        return !is_race;
    }
    Contexts::Id& id = now.writes ? cell.write : cell.read;
    std::uint32_t& lanes = now.writes ? cell.write_lanes : cell.read_lanes;
    if (id == context) {
        lanes |= lane;
    } else {
        if (!now.writes && is_over(id, lanes, now, by))
            id = context;
        else
            id = contexts_.with(id, context, by);
        lanes = lane;
    }
    return !is_race;
}

}  // namespace ikat::emulator::races
