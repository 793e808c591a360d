// SPDX-License-Identifier: Apache-2.0
#include "runtime/emulator/core/schedule.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <iterator>
#include <random>

namespace ikat::emulator {

namespace {

struct Part {
    std::string_view name;
    std::string_view what;
    void (*say)(Schedule&);
    bool holds(const Schedule& schedule) const {
        Schedule said = schedule;
        say(said);
        return said == schedule;
    }
};

constexpr Part schedule_parts[] = {
    {"lanes", "also the order of diverged lanes of a warp", [](Schedule& s) { s.lanes = true; }},
    {"moved-shared", "dynamic shared memory does not begin at a multiple of 1024",
     [](Schedule& s) { s.moved_shared = true; }},
    {"any-leader", "elect takes any lane", [](Schedule& s) { s.any_leader = true; }},
    {"ascending", "warps take turns by their numbers", [](Schedule& s) { s.turns = Schedule::Turns::Ascending; }},
    {"descending", "the last warp goes first", [](Schedule& s) { s.turns = Schedule::Turns::Descending; }},
    {"priorities", "warps take turns by random priorities, two of which fall on the way",
     [](Schedule& s) { s.turns = Schedule::Turns::Priorities; }},
    {"early", "copies and products complete at once", [](Schedule& s) { s.arrivals = Schedule::Arrivals::Early; }},
    {"late", "they complete as late as they may", [](Schedule& s) { s.arrivals = Schedule::Arrivals::Late; }},
    {"missed-waits", "try_wait answers no before each yes", [](Schedule& s) { s.missed_waits = true; }},
    {"starved-block", "a block of a cluster runs only when the others cannot continue",
     [](Schedule& s) { s.starved_block = true; }},
    {"any-blocks", "blocks start in any order, and several at a time", [](Schedule& s) { s.any_blocks = true; }},
};

}  // namespace

std::string to_string(const Schedule& schedule) {
    std::string text = std::to_string(schedule.seed);
    for (const Part& part : schedule_parts)
        if (part.holds(schedule)) text += fmt::format(",{}", part.name);
    return text;
}

std::optional<Schedule> read_schedule(std::string_view text) {
    const std::string_view number = text.substr(0, text.find(','));
    Schedule out = Schedule::of(0);
    if (number == "random") {
        out.seed = std::random_device()() | 1;
    } else {
        const char* const end = number.data() + number.size();
        const auto [at, error] = std::from_chars(number.data(), end, out.seed);
        if (error != std::errc{} || at != end) return {};
    }
    std::string_view rest = text.substr(number.size());
    const auto each = [&](auto f) {
        for (std::string_view left = rest; !left.empty();) {
            left.remove_prefix(1);
            const std::string_view name = left.substr(0, left.find(','));
            left.remove_prefix(name.size());
            const auto part = std::ranges::find(schedule_parts, name, &Part::name);
            if (part == std::end(schedule_parts) || !f(*part)) return false;
        }
        return true;
    };
    if (!each([&](const Part& part) { return part.say(out), true; })) return {};
    if (!each([&](const Part& part) { return part.holds(out); })) return {};
    return out;
}

std::string schedule_words() {
    std::string text;
    for (const Part& part : schedule_parts)
        text += fmt::format("{}{}: {}", text.empty() ? "" : "; ", part.name, part.what);
    return text;
}

}  // namespace ikat::emulator
