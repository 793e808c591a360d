// SPDX-License-Identifier: Apache-2.0
#include "runtime/emulator/decode/modifiers.hpp"

#include <algorithm>

namespace ikat::emulator {

std::optional<Type> type_of(Modifier modifier) {
    switch (modifier) {
        case Modifier::Pred: return Type::Pred;
        case Modifier::B8:
        case Modifier::U8: return Type::U8;
        case Modifier::S8: return Type::I8;
        case Modifier::B16:
        case Modifier::U16: return Type::U16;
        case Modifier::S16: return Type::I16;
        case Modifier::B32:
        case Modifier::U32: return Type::U32;
        case Modifier::S32: return Type::I32;
        case Modifier::B64:
        case Modifier::U64: return Type::U64;
        case Modifier::S64: return Type::I64;
        case Modifier::F16: return Type::F16;
        case Modifier::F16x2: return Type::F16x2;
        case Modifier::Bf16: return Type::BF16;
        case Modifier::Bf16x2: return Type::BF16x2;
        case Modifier::F32: return Type::F32;
        case Modifier::F64: return Type::F64;
        case Modifier::E4m3x2: return Type::E4M3x2;
        case Modifier::E5m2x2: return Type::E5M2x2;
        default: return {};
    }
}

Modifiers::Modifiers(KnownModifiers& known, std::span<const ptx::Name> spellings) {
    for (const ptx::Name spelling : spellings)
        if (count_ < rest_.size()) rest_[count_++] = {known.find(spelling), spelling};
}

void Modifiers::erase(std::size_t i) {
    std::copy(rest_.begin() + std::ptrdiff_t(i) + 1, rest_.begin() + std::ptrdiff_t(count_),
              rest_.begin() + std::ptrdiff_t(i));
    --count_;
}

bool Modifiers::take(Modifier modifier) {
    for (std::size_t i = 0; i < count_; ++i)
        if (rest_[i].modifier == modifier) return erase(i), true;
    return false;
}

bool Modifiers::has(Modifier modifier) const {
    return std::ranges::find(rest(), modifier, &Spelled::modifier) != rest().end();
}

Modifier Modifiers::take_any(std::initializer_list<Modifier> modifiers) {
    for (const Modifier modifier : modifiers)
        if (take(modifier)) return modifier;
    return Modifier::Unknown;
}

Modifier Modifiers::take_next(std::initializer_list<Modifier> modifiers) {
    for (std::size_t i = 0; i < count_; ++i)
        if (const Modifier modifier = rest_[i].modifier; std::ranges::find(modifiers, modifier) != modifiers.end()) {
            erase(i);
            return modifier;
        }
    return Modifier::Unknown;
}

std::optional<Type> Modifiers::take_type() {
    for (std::size_t i = 0; i < count_; ++i)
        if (const auto type = type_of(rest_[i].modifier)) {
            erase(i);
            return type;
        }
    return {};
}

Rounding Modifiers::take_rounding() {
    if (take(Modifier::Rz)) return Rounding::Zero;
    if (take(Modifier::Rm)) return Rounding::Down;
    if (take(Modifier::Rp)) return Rounding::Up;
    take(Modifier::Rn);
    return Rounding::Nearest;
}

unsigned Modifiers::take_vector() {
    if (take(Modifier::V2)) return 2;
    if (take(Modifier::V4)) return 4;
    return take(Modifier::V8) ? 8 : 1;
}

void Modifiers::take_cache_hints() {
    using enum Modifier;
    for (const Modifier hint : {Ca,
                                Cg,
                                Cs,
                                Lu,
                                Cv,
                                Wb,
                                Wt,
                                L1EvictNormal,
                                L1EvictUnchanged,
                                L1EvictFirst,
                                L1EvictLast,
                                L1NoAllocate,
                                L2_64B,
                                L2_128B,
                                L2_256B,
                                L2EvictNormal,
                                L2EvictUnchanged,
                                L2EvictFirst,
                                L2EvictLast,
                                L2CacheHint})
        while (take(hint)) {}
}

Space Modifiers::take_space() {
    using enum Modifier;
    if (take(Global)) return Space::Global;
    if (take_any({Shared, SharedCta}) != Unknown) return Space::Shared;
    if (take(SharedCluster)) return Space::Cluster;
    if (take(Local)) return Space::Local;
    if (take_any({Param, ParamEntry, ParamFunc}) != Unknown) return Space::Param;
    if (take(Const)) return Space::Const;
    return Space::Generic;
}

}  // namespace ikat::emulator
