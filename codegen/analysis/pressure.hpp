// SPDX-License-Identifier: Apache-2.0
// How many registers of each width are in use at each instruction: what `ikat explain` shows beside the code, and what
// a pass may ask before it makes live ranges longer.
//
// Constants do not count: they become immediate operands.
#pragma once
#include <array>

#include "codegen/analysis/liveness.hpp"

namespace ikat::analysis {

enum class Width : std::uint8_t { Pred, B16, B32, B64 };
inline constexpr std::array<std::string_view, 4> width_names{"pred", "b16", "b32", "b64"};

/// Values of 8 bits live in registers of 16.
constexpr Width width_of(ir::Type type) {
    switch (ir::bits(type)) {
        case 1: return Width::Pred;
        case 32: return Width::B32;
        case 64: return Width::B64;
        default: return Width::B16;
    }
}

/// Registers by width. A 64-bit one takes two of the 32-bit registers that the hardware has.
struct RegisterCount {
    std::array<std::uint32_t, 4> of{};

    std::uint32_t& operator[](Width width) { return of[std::size_t(width)]; }
    std::uint32_t operator[](Width width) const { return of[std::size_t(width)]; }
    /// In 32-bit registers, as a device counts them; predicates have their own file.
    std::uint32_t words() const { return of[1] + of[2] + 2 * of[3]; }
    bool operator==(const RegisterCount&) const = default;
};

class Pressure {
public:
    Pressure(const ir::Function& fn, const Liveness& liveness);

    /// While inst executes: what is live behind it, its unused results, and what ends in it.
    const RegisterCount& at(ir::Inst inst) const { return at_[index(inst)]; }
    /// The largest count of each width anywhere (not all need be at one place).
    const RegisterCount& peak() const { return peak_; }

private:
    std::vector<RegisterCount> at_;  // by instruction
    RegisterCount peak_;
};

}  // namespace ikat::analysis
