// SPDX-License-Identifier: Apache-2.0
#include "codegen/ptx/table/types.hpp"

#include <algorithm>
#include <iterator>

namespace ikat::ptx {
namespace {

using Kind = Type::Kind;

constexpr struct {
    std::string_view name;
    Type type;
} types[] = {
    {"b8", {Kind::Bits, 8}},         {"b16", {Kind::Bits, 16}},
    {"b32", {Kind::Bits, 32}},       {"b64", {Kind::Bits, 64}},
    {"b128", {Kind::Bits, 128}},     {"u8", {Kind::Integer, 8}},
    {"u16", {Kind::Integer, 16}},    {"u32", {Kind::Integer, 32}},
    {"u64", {Kind::Integer, 64}},    {"s8", {Kind::Integer, 8}},
    {"s16", {Kind::Integer, 16}},    {"s32", {Kind::Integer, 32}},
    {"s64", {Kind::Integer, 64}},    {"f16", {Kind::Float, 16}},
    {"f32", {Kind::Float, 32}},      {"f64", {Kind::Float, 64}},
    {"f16x2", {Kind::Packed, 32}},   {"bf16", {Kind::Packed, 16}},
    {"bf16x2", {Kind::Packed, 32}},  {"tf32", {Kind::Packed, 32}},
    {"f32x2", {Kind::Packed, 64}},   {"e4m3", {Kind::Packed, 8}},
    {"e5m2", {Kind::Packed, 8}},     {"e4m3x2", {Kind::Packed, 16}},
    {"e5m2x2", {Kind::Packed, 16}},  {"e4m3x4", {Kind::Packed, 32}},
    {"e5m2x4", {Kind::Packed, 32}},  {"e2m1x2", {Kind::Packed, 8}},
    {"e2m1x4", {Kind::Packed, 16}},  {"e2m3x2", {Kind::Packed, 16}},
    {"e3m2x2", {Kind::Packed, 16}},  {"e2m3x4", {Kind::Packed, 32}},
    {"e3m2x4", {Kind::Packed, 32}},  {"ue8m0x2", {Kind::Packed, 16}},
    {"u16x2", {Kind::Packed, 32}},   {"s16x2", {Kind::Packed, 32}},
    {"pred", {Kind::Predicate, 1}},  {"texref", {Kind::Opaque, 64}},
    {"surfref", {Kind::Opaque, 64}}, {"samplerref", {Kind::Opaque, 64}},
};

}  // namespace

Type find_type(std::string_view modifier) {
    if (modifier.starts_with('.')) modifier.remove_prefix(1);
    for (const auto& [name, type] : types)
        if (name == modifier) return type;
    return {};
}

bool fits(Type declared, Type wanted, bool wider) {
    if (declared.kind == Kind::Predicate || wanted.kind == Kind::Predicate) return declared.kind == wanted.kind;
    const bool is_untyped = declared.kind == Kind::Bits || wanted.kind == Kind::Bits;
    const bool same_kind = is_untyped || declared.kind == wanted.kind || wanted.kind == Kind::Packed;
    if (declared.bits == wanted.bits) return same_kind;
    const bool is_float = declared.kind == Kind::Float && wanted.kind == Kind::Float;
    return wider && declared.bits > wanted.bits && same_kind && !is_float;
}

}  // namespace ikat::ptx
