// SPDX-License-Identifier: Apache-2.0
#include "runtime/emulator/core/checks/checks.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <vector>
namespace ikat::emulator {

namespace {

constexpr CheckInfo rows[] = {
#define CHECK_CLASS(id, name, strict, foreign, finds) {name, Action::strict, Action::foreign, finds},
#include "runtime/emulator/core/checks/checks.def"
#undef CHECK_CLASS
};

constexpr std::string_view actions[] = {"off", "note", "warning", "error"};

Checks defaults(Action CheckInfo::*of) {
    Checks checks;
    for (std::size_t i = 0; i < check_count; ++i) checks.set(Check(i), rows[i].*of);
    return checks;
}

}  // namespace

const CheckInfo& info(Check check) { return rows[std::size_t(check)]; }

Check check_of(FaultCode code) {
    switch (code) {
        case FaultCode::OutOfBounds:
        case FaultCode::Misaligned:
        case FaultCode::NullPointer:
        case FaultCode::NoBuffer:
        case FaultCode::ReleasedBuffer:
        case FaultCode::WrongSpace:
        case FaultCode::ReadOnly:
        case FaultCode::ExitedBlock: return Check::Bounds;
        case FaultCode::SharedTail: return Check::SharedTail;
        case FaultCode::OutsideView: return Check::Views;
        case FaultCode::Unwritten:
        case FaultCode::BulkUnwritten:
        case FaultCode::UndefinedAddress:
        case FaultCode::UndefinedBranch:
        case FaultCode::UndefinedGuard:
        case FaultCode::UndefinedBarrier:
        case FaultCode::UndefinedWarp:
        case FaultCode::UndefinedAtomic:
        case FaultCode::UndefinedPrint:
        case FaultCode::UndefinedCall:
        case FaultCode::UndefinedStore:
        case FaultCode::UndefinedCondition:
        case FaultCode::UndefinedShuffle: return Check::Undefined;
        case FaultCode::UndefinedDownload: return Check::Downloads;
        case FaultCode::SharedRace: return Check::SharedRaces;
        case FaultCode::Race: return Check::Races;
        case FaultCode::ShuffleRace: return Check::ShuffleRaces;
        case FaultCode::BenignRace: return Check::BenignRaces;
        case FaultCode::MadeNan:
        case FaultCode::MadeInfinity: return Check::Nan;
        case FaultCode::CopyNotAwaited:
        case FaultCode::CopyOverwritten:
        case FaultCode::CopySourceChanged:
        case FaultCode::BulkAtExit: return Check::Copies;
        case FaultCode::BulkTail: return Check::BoxTails;
        case FaultCode::CopyAtExit: return Check::CopiesAtExit;
        case FaultCode::BulkNotVisible:
        case FaultCode::ProductNotVisible: return Check::ProxyFences;
        case FaultCode::CopyNotVisible: return Check::CopyFences;
        case FaultCode::BulkBarrierNotFenced: return Check::BarrierFences;
        case FaultCode::GridNotAwaited: return Check::Grids;
        case FaultCode::StreamRace:
        case FaultCode::HostChange: return Check::Streams;
        case FaultCode::ProductNotFenced:
        case FaultCode::ProductNotAwaited:
        case FaultCode::ProductSourceChanged:
        case FaultCode::ProductAtExit: return Check::Products;
        case FaultCode::ExitedMember: return Check::ExitedMembers;
        case FaultCode::UniformBranch: return Check::UniformBranches;
        case FaultCode::UnknownRegisters: return Check::UnknownRegisters;
        case FaultCode::HeapFree: return Check::Heap;
        case FaultCode::PrintArguments: return Check::Print;
        default: return Check::Always;
    }
}

Checks Checks::strict() { return defaults(&CheckInfo::strict); }
Checks Checks::foreign() { return defaults(&CheckInfo::foreign); }

void apply(CheckSets& sets, std::string_view text, std::string_view source) {
    const auto unknown = [&](std::string_view what, std::string_view word, std::string hint) {
        return Error(fmt::format("there is no {} '{}'{}", what, word, source), std::move(hint));
    };
    while (!text.empty()) {
        const std::string_view word = text.substr(0, text.find(','));
        text.remove_prefix(std::min(text.size(), word.size() + 1));
        if (word == "strict") {
            sets.foreign = Checks::strict();
            sets.all_strict = true;
            continue;
        }
        std::string_view name = word.substr(0, word.find('='));
        Action action = Action::Error;
        if (name.size() < word.size()) {
            const std::string_view asked = word.substr(name.size() + 1);
            const auto found = std::ranges::find(actions, asked);
            if (found == std::end(actions))
                throw unknown("severity", asked, "severities are error, warning, note and off");
            action = Action(found - actions);
        } else if (name.starts_with("no-")) {
            name.remove_prefix(3);
            action = Action::Off;
        }
        const auto row = std::ranges::find(rows, name, &CheckInfo::name);
        if (name == "all") {
            sets.strict.set_all(action);
            sets.foreign.set_all(action);
        } else if (row != std::end(rows)) {
            sets.strict.set(Check(row - rows), action);
            sets.foreign.set(Check(row - rows), action);
        } else {
            std::vector<std::string_view> names{"all", "strict"};
            for (const CheckInfo& each : rows) names.push_back(each.name);
            throw unknown("check", name,
                          fmt::format("checks are {}; each may be followed by =error, =warning, =note or =off",
                                      fmt::join(names, ", ")));
        }
    }
}

Check check_named(std::string_view name) {
    return Check(std::ranges::find(rows, name, &CheckInfo::name) - std::begin(rows));
}

std::string list_of_checks() {
    std::string text = fmt::format("{:<21}{:<9}{:<9}{}\n", "class", "own", "foreign", "finds");
    for (const CheckInfo& each : rows)
        text += fmt::format("{:<21}{:<9}{:<9}{}\n", each.name, actions[int(each.strict)], actions[int(each.foreign)],
                            each.finds);
    return text +
           "Deadlocks, endless loops, traps, wrong launches and what a device leaves undefined always end a launch.\n";
}

}  // namespace ikat::emulator
