// SPDX-License-Identifier: Apache-2.0
// Which of the instruction sets that a family of handlers was compiled for this machine has.
//
// Highway's headers compile the handlers; its library would only choose among them. This chooses instead, so that
// nothing of Highway is linked: HWY_EXPORT(f) makes the table of f's versions, and HWY_DYNAMIC_DISPATCH(f) is the best
// of them that runs here.
#pragma once
#include <hwy/highway.h>

#include <bit>
#include <cstddef>
#include <cstdint>

namespace ikat::emulator {

/// Highway's bits of the instruction sets of this machine, or of the one that IKAT_INSTRUCTION_SET names. Throws Error
/// for a name that is none of them.
std::int64_t machine_targets();
/// For tests: kernels that are decoded from now on are to use only these. all_targets undoes it.
void limit_targets(std::int64_t usable);
inline constexpr std::int64_t all_targets = -1;

/// The table holds a version for each bit of `compiled`, best first, and last the one that runs everywhere.
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
