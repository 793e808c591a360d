// SPDX-License-Identifier: Apache-2.0
#include "runtime/emulator/ops/dispatch.hpp"

#include <fmt/format.h>

#include <atomic>
#include <vector>

#include "codegen/support/diagnostic.hpp"
#include "codegen/support/environment.hpp"

namespace ikat::emulator {
namespace {

/// Checks for the features that Highway's AVX2 and AVX3 functions may use.
std::int64_t detect() {
#if HWY_ARCH_X86
    __builtin_cpu_init();
    const bool avx2 = __builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("pclmul") &&
                      __builtin_cpu_supports("aes") && __builtin_cpu_supports("avx2") &&
                      __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2") &&
                      __builtin_cpu_supports("fma") && __builtin_cpu_supports("f16c");
    const bool avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
                        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw");
    return (avx2 ? HWY_AVX2 : 0) | (avx2 && avx512 ? HWY_AVX3 : 0);
#else
    return 0;
#endif
}

/// Restricts them to the one named by IKAT_INSTRUCTION_SET; "baseline" is the one that every machine has.
std::int64_t chosen(std::int64_t all) {
    const std::string_view name = environment("IKAT_INSTRUCTION_SET");
    if (name.empty()) return all;
    std::vector<std::string_view> names;
    for (const std::int64_t target :
         {std::int64_t(HWY_AVX3), std::int64_t(HWY_AVX2), std::int64_t(HWY_STATIC_TARGET)}) {
        if (target != HWY_STATIC_TARGET && !(all & target)) continue;
        names.push_back(hwy::TargetName(target));
        if (names.back() == name || (target == HWY_STATIC_TARGET && name == "baseline")) return all & target;
    }
    throw Error(fmt::format("IKAT_INSTRUCTION_SET is '{}'", name),
                fmt::format("the emulator has on this machine: {}", fmt::join(names, ", ")));
}

std::atomic<std::int64_t> limit = all_targets;

}  // namespace

std::int64_t machine_targets() {
    static const std::int64_t targets = chosen(detect());
    return targets & limit;
}

void limit_targets(std::int64_t usable) { limit = usable; }

}  // namespace ikat::emulator
