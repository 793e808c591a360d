// SPDX-License-Identifier: Apache-2.0
// What the emulator finds wrong with a kernel, as codes: faults.def is the list.
#pragma once
#include <cstdint>
#include <string_view>

namespace ikat::emulator {

enum class FaultCode : std::uint8_t {
#define FAULT(id, ...) id,
#include "runtime/emulator/observe/faults.def"
#undef FAULT
};

struct FaultInfo {
    const char* name;     // what programs compare with: Diagnostic::code
    const char* message;  // "" where it depends on more
    const char* hint;
};

inline constexpr FaultInfo fault_rows[] = {
#define FAULT(id, name, message, hint) {name, message, hint},
#include "runtime/emulator/observe/faults.def"
#undef FAULT
};
constexpr const FaultInfo& info(FaultCode code) { return fault_rows[int(code)]; }

}  // namespace ikat::emulator
