// SPDX-License-Identifier: Apache-2.0
// The random inputs of a test: IKAT_FUZZ_COUNT of them from seed IKAT_FUZZ_SEED on, if set in the environment.
#pragma once
#include <cstdint>
#include <cstdlib>

namespace ikat::test {

inline std::uint32_t from_environment(const char* name, std::uint32_t otherwise) {
    const char* text = std::getenv(name);
    return text ? std::uint32_t(std::strtoul(text, nullptr, 10)) : otherwise;
}
inline std::uint32_t first_seed(std::uint32_t otherwise = 0) { return from_environment("IKAT_FUZZ_SEED", otherwise); }
inline std::uint32_t seed_count(std::uint32_t otherwise) { return from_environment("IKAT_FUZZ_COUNT", otherwise); }

}  // namespace ikat::test
