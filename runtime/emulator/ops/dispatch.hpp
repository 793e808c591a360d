// SPDX-License-Identifier: Apache-2.0
// Chooses among the instruction sets for which a family of handlers was compiled.
// The handlers are compiled with Highway's headers; its library would only do this choice. Doing it here avoids linking
// Highway: HWY_EXPORT(f) makes the table of f's versions, and HWY_DYNAMIC_DISPATCH(f) is the best version for this
// machine.
#pragma once
#include <hwy/highway.h>

#include <bit>
#include <cstddef>
#include <cstdint>

namespace ikat::emulator {

/// Highway's bits of the instruction sets of this machine, or of the one that IKAT_INSTRUCTION_SET names. Throws Error
/// for a name that is none of them.
std::int64_t machine_targets();
/// For tests: kernels decoded from now on use only these. all_targets undoes it.
void limit_targets(std::int64_t usable);
inline constexpr std::int64_t all_targets = -1;

/// The table has a version for each bit of `compiled`, best first; the last one runs everywhere.
template <class F, std::size_t count>
F best_version(F (&table)[count], std::int64_t compiled) {
    const auto usable = std::uint64_t(machine_targets() & compiled) >> (HWY_HIGHEST_TARGET_BIT + 2 - count);
    const auto best = std::size_t(std::countr_zero(usable));
    return best < count - 1 ? table[best] : table[count - 1];
}

}  // namespace ikat::emulator

#undef HWY_EXPORT
#define HWY_EXPORT(f) \
    constexpr decltype(&HWY_STATIC_DISPATCH(f)) f##_versions[] = {HWY_CHOOSE_TARGET_LIST(f), HWY_CHOOSE_FALLBACK(f)}
#undef HWY_DYNAMIC_DISPATCH
#define HWY_DYNAMIC_DISPATCH(f) best_version(f##_versions, HWY_TARGETS)
