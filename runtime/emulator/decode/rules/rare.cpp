// SPDX-License-Identifier: Apache-2.0
// Rare instructions: bits and masks, cvt.pack, and the video instructions with their selectors.
#include <algorithm>

#include "runtime/emulator/decode/rules/rules.hpp"
#include "runtime/emulator/ops/scalar.hpp"

namespace ikat::emulator {

void on_words(Lowering& code, Scalar scalar, Operands operands, std::uint32_t x, std::uint32_t y) {
    const Result d = code.result(operands[0], Type::U32);
    const auto word = [&](std::size_t i) {
        return index(i < operands.size() ? code.source(operands[i], Type::U32) : code.constant(0, 4));
    };
    const std::uint32_t a = word(1), b = word(2), c = word(3);
    code.emit(select_scalar(scalar), D, A | B | C, {index(d.at), a, b, c, x, y});
    code.finish(d);
}

namespace {

/// ".b2", ".h1" of an operand of a scalar video instruction.
std::uint32_t selector(std::string_view suffix) {
    static constexpr std::string_view names[] = {"", ".b0", ".b1", ".b2", ".b3", ".h0", ".h1"};
    for (std::uint32_t i = 0; i < std::size(names); ++i)
        if (suffix == names[i]) return i;
    return ~0u;
}

/// ".b3210", ".h10": the source of each part, the lowest last; 3 bits each.
std::uint32_t selectors(std::string_view suffix, int parts, std::uint32_t first) {
    std::uint32_t bits = 0;
    for (int i = 0; i < parts; ++i) {
        std::uint32_t part = first + std::uint32_t(i);
        if (!suffix.empty()) {
            if (suffix.size() != std::size_t(parts) + 2) return ~0u;
            part = std::uint32_t(suffix[suffix.size() - 1 - std::size_t(i)] - '0');
        }
        if (part >= 2 * std::uint32_t(parts)) return ~0u;
        bits |= part << (3 * i);
    }
    return bits;
}

/// ".b20": the parts that are written.
std::uint32_t written_parts(std::string_view suffix, int parts) {
    if (suffix.empty()) return (1u << parts) - 1;
    std::uint32_t bits = 0;
    for (const char digit : suffix.substr(2)) bits |= 1u << ((digit - '0') & 3);
    return bits;
}

bool is_signed_type(std::optional<Type> type) { return type == Type::I32; }

void fns(Lowering& code, Modifiers& modifiers, Operands operands) {
    modifiers.take_type();
    on_words(code, Scalar::FindNthSet, operands);
}

void szext(Lowering& code, Modifiers& modifiers, Operands operands) {
    const std::uint32_t clamps = modifiers.take(Modifier::Clamp) ? ExtendClamped : 0;
    modifiers.take(Modifier::Wrap);
    on_words(code, Scalar::Extended, operands, clamps | (is_signed_type(modifiers.take_type()) ? ExtendSigned : 0));
}

/// cvt.pack.sat.u8.s32.b32 d, a, b, c
void cvt_pack(Lowering& code, Modifiers& modifiers, Operands operands) {
    modifiers.take(Modifier::Pack);
    modifiers.take(Modifier::Sat);
    struct Integer {
        std::uint32_t bits = 0;
        bool is_signed = false;
    };
    static constexpr std::pair<Modifier, Integer> types[] = {{Modifier::U16, {16, false}}, {Modifier::S16, {16, true}},
                                                             {Modifier::U8, {8, false}},   {Modifier::S8, {8, true}},
                                                             {Modifier::U4, {4, false}},   {Modifier::S4, {4, true}},
                                                             {Modifier::U2, {2, false}},   {Modifier::S2, {2, true}}};
    const std::optional<Integer> to = modifiers.take_named(types);
    if (!to) code.unsupported("its type is not supported");
    modifiers.take(Modifier::S32);
    modifiers.take(Modifier::B32);
    on_words(code, Scalar::Packed, operands, to->bits, to->is_signed);
}

/// vadd.u32.s32.s32.sat.add d, a.b0, b.h1, c and others; also into a part of c: d.h1.
template <Video::Kind Kind, int Parts>
void video(Lowering& code, Modifiers& modifiers, Operands operands) {
    Video how{.kind = Kind, .parts = Parts};
    how.saturates = modifiers.take(Modifier::Sat);
    how.plus_one = modifiers.take(Modifier::Po);
    how.wraps = modifiers.take(Modifier::Wrap);
    modifiers.take(Modifier::Clamp);
    how.scale = modifiers.take(Modifier::Shr7) ? 7 : modifiers.take(Modifier::Shr15) ? 15 : 0;
    static constexpr std::pair<Modifier, std::uint32_t> comparisons[] = {{Modifier::Eq, 0}, {Modifier::Ne, 1},
                                                                         {Modifier::Lt, 2}, {Modifier::Le, 3},
                                                                         {Modifier::Gt, 4}, {Modifier::Ge, 5}};
    if (const auto comparison = modifiers.take_named(comparisons)) how.comparison = *comparison;
    how.secondary = modifiers.take(Modifier::Add)   ? Video::ThenAdd
                    : modifiers.take(Modifier::Min) ? Video::ThenMinimum
                    : modifiers.take(Modifier::Max) ? Video::ThenMaximum
                                                    : Video::None;
    if (how.kind != Video::Compare) how.d_signed = is_signed_type(modifiers.take_type());
    how.a_signed = is_signed_type(modifiers.take_type());
    how.b_signed = is_signed_type(modifiers.take_type());

    std::vector<ptx::Operand> plain(operands.begin(), operands.end());
    if (plain.size() < 3) throw MissingOperand{};
    const auto suffix = [&](std::size_t i) { return code.module.text(plain[i].suffix); };
    const bool scalar = how.parts == 1;
    const std::uint32_t into = scalar ? selector(suffix(0)) : written_parts(suffix(0), how.parts);
    const std::uint32_t a = scalar ? selector(suffix(1)) : selectors(suffix(1), how.parts, 0);
    const std::uint32_t b = scalar ? selector(suffix(2)) : selectors(suffix(2), how.parts, std::uint32_t(how.parts));
    if (into == ~0u || a == ~0u || b == ~0u) code.unsupported("a selector is not supported");
    how.negates_product = plain[1].minus != plain[2].minus;
    how.negates_addend = plain.size() > 3 && plain[3].minus;
    for (ptx::Operand& each : plain) each.suffix = ptx::no_name, each.minus = false;
    on_words(code, scalar ? Scalar::Video : Scalar::VideoParts, std::span<const ptx::Operand>(plain), how.bits(),
             scalar ? a | b << 3 | into << 6 : a | b << 12 | into << 24);
}

constexpr RuleRow rare_rows[] = {
    {"fns", fns},
    {"szext", szext},
    {"cvt", "pack", cvt_pack},
    {"vadd", video<Video::Add, 1>},
    {"vadd2", video<Video::Add, 2>},
    {"vadd4", video<Video::Add, 4>},
    {"vsub", video<Video::Subtract, 1>},
    {"vsub2", video<Video::Subtract, 2>},
    {"vsub4", video<Video::Subtract, 4>},
    {"vabsdiff", video<Video::Difference, 1>},
    {"vabsdiff2", video<Video::Difference, 2>},
    {"vabsdiff4", video<Video::Difference, 4>},
    {"vavrg2", video<Video::Average, 2>},
    {"vavrg4", video<Video::Average, 4>},
    {"vmad", video<Video::MultiplyAdd, 1>},
    {"vmax", video<Video::Maximum, 1>},
    {"vmax2", video<Video::Maximum, 2>},
    {"vmax4", video<Video::Maximum, 4>},
    {"vmin", video<Video::Minimum, 1>},
    {"vmin2", video<Video::Minimum, 2>},
    {"vmin4", video<Video::Minimum, 4>},
    {"vset", video<Video::Compare, 1>},
    {"vset2", video<Video::Compare, 2>},
    {"vset4", video<Video::Compare, 4>},
    {"vshl", video<Video::ShiftLeft, 1>},
    {"vshr", video<Video::ShiftRight, 1>},
};

}  // namespace

constinit const Family rare_family{rare_rows};

}  // namespace ikat::emulator
