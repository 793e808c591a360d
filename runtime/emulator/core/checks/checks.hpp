// SPDX-License-Identifier: Apache-2.0
// What a launch does about findings: each is of a class, and each class has a severity. What is in no class ends the
// launch: deadlocks and endless loops, traps, wrong calls, and what a device does not define, such as arrivals at what
// is no barrier. After a warning or a note a launch continues as a device does: it sees bytes as they are, reads zeros
// outside of memory, and drops what it stores there.
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "codegen/support/diagnostic.hpp"
#include "runtime/emulator/core/checks/faults.hpp"

namespace ikat::emulator {

enum class Check : std::uint8_t {
#define CHECK_CLASS(id, ...) id,
#include "runtime/emulator/core/checks/checks.def"
#undef CHECK_CLASS
    Always,  // not one that can be set
};
inline constexpr std::size_t check_count = std::size_t(Check::Always);

/// What happens about a finding.
enum class Action : std::uint8_t { Off, Note, Warning, Error };
constexpr Severity severity_of(Action action) {
    return action == Action::Note ? Severity::Note : action == Action::Warning ? Severity::Warning : Severity::Error;
}

struct CheckInfo {
    const char* name;
    Action strict, foreign;
    const char* finds;
};
const CheckInfo& info(Check check);

/// The class of that name; Always: there is none.
Check check_named(std::string_view name);

/// The class of a code.
Check check_of(FaultCode code);

class Checks {
public:
    static Checks strict();
    static Checks foreign();

    Action of(Check check) const { return check == Check::Always ? Action::Error : actions_[std::size_t(check)]; }
    Action of(FaultCode code) const { return of(check_of(code)); }
    void set(Check check, Action action) { actions_[std::size_t(check)] = action; }
    void set_all(Action action) { actions_.fill(action); }

private:
    std::array<Action, check_count> actions_{};
};

/// The checks for kernels of this process and for foreign PTX.
struct CheckSets {
    Checks strict = Checks::strict(), foreign = Checks::foreign();
    bool all_strict = false;  // foreign PTX is run as our own
};

/// "registers,bounds=warning,no-heap": CLASS[=error|warning|note|off], where no-CLASS is CLASS=off, `all` is each
/// class, and `strict` gives foreign PTX the severities of our own kernels; in their order. Throws Error for other
/// words; `source` says where they come from, " (from IKAT_CHECK)" or nothing.
void apply(CheckSets& sets, std::string_view text, std::string_view source);

/// A line for each class: its name, its severity for our own kernels and for foreign PTX, and what it finds.
std::string list_of_checks();

}  // namespace ikat::emulator
