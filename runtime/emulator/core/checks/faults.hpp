// SPDX-License-Identifier: Apache-2.0
// Codes for the emulator's findings: faults.def is the list.
#pragma once
#include <cstdint>
#include <string_view>

namespace ikat::emulator {

enum class FaultCode : std::uint8_t {
#define FAULT(id, ...) id,
#include "runtime/emulator/core/checks/faults.def"
#undef FAULT
};

struct FaultInfo {
    const char* name;     // Diagnostic::code, for programs
    const char* message;  // "" if it varies
    const char* hint;
};

inline constexpr FaultInfo fault_rows[] = {
#define FAULT(id, name, message, hint) {name, message, hint},
#include "runtime/emulator/core/checks/faults.def"
#undef FAULT
};
constexpr const FaultInfo& info(FaultCode code) { return fault_rows[int(code)]; }

}  // namespace ikat::emulator
