// SPDX-License-Identifier: Apache-2.0
#include "runtime/emulator/tools/races/shadow.hpp"

#include <algorithm>

namespace ikat::emulator::races {

void Shadow::clear(std::size_t words, bool exact) {
    exact_ = exact;
    for (auto* const each : {&write_stamps_, &write_whos_, &read_stamps_, &read_whos_, &read_lanes_})
        each->assign(words, 0);
    lists_.clear();
    free_.clear();
}

/// The accesses of a word that are kept.
void Shadow::take(std::size_t word) {
    all_.clear();
    if (write_stamps_[word] == listed) {
        all_ = lists_[write_whos_[word]].accesses;
        release_list(write_whos_[word]);
        write_stamps_[word] = read_stamps_[word] = 0;
        return;
    }
    const auto unpacked = [](std::uint32_t stamp, std::uint32_t who) {
        return Access{.stamp = stamp >> 4,
                      .op = who >> op_at,
                      .lanes = 1u << who % 32,
                      .agent = std::uint8_t(who >> agent_at & 63),
                      .bytes = std::uint8_t(stamp & Access::whole),
                      .is_strong = (who >> strong_at & 1) != 0,
                      .is_of_all = (who >> of_all_at & 1) != 0};
    };
    if (write_stamps_[word]) {
        all_.push_back(unpacked(write_stamps_[word], write_whos_[word]));
        all_.back().writes = true;
    }
    if (read_stamps_[word]) {
        all_.push_back(unpacked(read_stamps_[word], read_whos_[word]));
        all_.back().lanes = read_lanes_[word];
    }
}

void Shadow::put(std::size_t word) {
    const auto writes = std::ranges::count(all_, true, &Access::writes);
    const bool has_one_writer =
        std::ranges::all_of(all_, [](const Access& each) { return !each.writes || std::has_single_bit(each.lanes); });
    if (writes <= 1 && std::ptrdiff_t(all_.size()) - writes <= 1 && has_one_writer) {
        write_stamps_[word] = read_stamps_[word] = 0;
        for (const Access& each : all_) {
            (each.writes ? write_stamps_ : read_stamps_)[word] = each.stamp << 4 | each.bytes;
            (each.writes ? write_whos_ : read_whos_)[word] = who(each);
            if (!each.writes) read_lanes_[word] = each.lanes;
        }
        return;
    }
    const std::uint32_t list = new_list();
    lists_[list].accesses = all_;
    set_state(word, {.write_stamp = listed, .write_who = list});
}

std::uint32_t Shadow::new_list() {
    std::uint32_t list = 0;
    if (free_.empty()) {
        list = std::uint32_t(lists_.size());
        lists_.emplace_back();
    } else {
        list = free_.back();
        free_.pop_back();
    }
    lists_[list].uses = 1;
    return list;
}

void Shadow::release_list(std::uint32_t list) {
    if (--lists_[list].uses != 0) return;
    lists_[list].accesses.clear();
    free_.push_back(list);
}

const Access* Shadow::access_slowly(std::size_t word, const Access& now, const Knower& by) {
    take(word);
    const Access* race = nullptr;
    std::erase_if(all_, [&](const Access& before) {
        if (by.is_known_to_all(before.agent, before.stamp)) return true;
        const bool is_known = !by.unknown(before.agent, before.lanes, before.stamp, before.is_of_all);
        if (!is_known && before.conflicts(now)) found_ = before, race = &found_;
        return is_known && now.subsumes(before);
    });
    const auto same = [&](const Access& each) {
        return each.agent == now.agent && each.stamp == now.stamp && each.op == now.op && each.bytes == now.bytes &&
               each.writes == now.writes && each.is_strong == now.is_strong && each.is_of_all == now.is_of_all;
    };
    const auto found = std::ranges::find_if(all_, same);
    if (found != all_.end())
        found->lanes |= now.lanes;
    else
        all_.push_back(now);
    put(word);
    return race;
}

}  // namespace ikat::emulator::races
