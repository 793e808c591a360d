// SPDX-License-Identifier: Apache-2.0
#include "runtime/emulator/decode/modifiers.hpp"

#include <algorithm>

namespace ikat::emulator {

std::optional<Type> type_of(std::string_view modifier) {
    static constexpr std::pair<std::string_view, Type> types[] = {
        {".f32", Type::F32},      {".u32", Type::U32},     {".b32", Type::U32},       {".s32", Type::I32},
        {".u64", Type::U64},      {".b64", Type::U64},     {".s64", Type::I64},       {".pred", Type::Pred},
        {".u8", Type::U8},        {".b8", Type::U8},       {".s8", Type::I8},         {".u16", Type::U16},
        {".b16", Type::U16},      {".s16", Type::I16},     {".f16", Type::F16},       {".f64", Type::F64},
        {".bf16", Type::BF16},    {".f16x2", Type::F16x2}, {".bf16x2", Type::BF16x2}, {".e4m3x2", Type::E4M3x2},
        {".e5m2x2", Type::E5M2x2}};
    const auto found = std::ranges::find(types, modifier, &std::pair<std::string_view, Type>::first);
    if (found == std::end(types)) return {};
    return found->second;
}

Modifiers::Modifiers(const nvptx::Module& module, const nvptx::Instruction& instruction) {
    for (const nvptx::Name name : module.modifiers(instruction.modifiers))
        if (count_ < rest_.size()) rest_[count_++] = module.text(name);
}

void Modifiers::erase(std::size_t i) {
    std::copy(rest_.begin() + std::ptrdiff_t(i) + 1, rest_.begin() + std::ptrdiff_t(count_),
              rest_.begin() + std::ptrdiff_t(i));
    --count_;
}

bool Modifiers::take(std::string_view modifier) {
    for (std::size_t i = 0; i < count_; ++i)
        if (rest_[i] == modifier) return erase(i), true;
    return false;
}

bool Modifiers::has(std::string_view modifier) const { return std::ranges::find(rest(), modifier) != rest().end(); }

std::string_view Modifiers::take_any(std::initializer_list<std::string_view> modifiers) {
    for (const std::string_view modifier : modifiers)
        if (take(modifier)) return modifier;
    return {};
}

std::optional<Type> Modifiers::take_type() {
    for (std::size_t i = 0; i < count_; ++i)
        if (const auto type = type_of(rest_[i])) {
            erase(i);
            return type;
        }
    return {};
}

Rounding Modifiers::take_rounding() {
    if (take(".rz")) return Rounding::Zero;
    if (take(".rm")) return Rounding::Down;
    if (take(".rp")) return Rounding::Up;
    take(".rn");
    return Rounding::Nearest;
}

void Modifiers::take_cache_hints() {
    take_any({".ca", ".cg", ".cs", ".lu", ".cv", ".wb", ".wt"});
    for (std::size_t i = count_; i-- > 0;)
        if (rest_[i].starts_with(".L1::") || rest_[i].starts_with(".L2::") || rest_[i].starts_with(".level::"))
            erase(i);
}

Space Modifiers::take_space() {
    if (take(".global")) return Space::Global;
    if (take_any({".shared", ".shared::cta", ".shared::cluster"}).size()) return Space::Shared;
    if (take(".local")) return Space::Local;
    if (take_any({".param", ".param::entry", ".param::func"}).size()) return Space::Param;
    if (take(".const")) return Space::Const;
    return Space::Generic;
}

}  // namespace ikat::emulator
