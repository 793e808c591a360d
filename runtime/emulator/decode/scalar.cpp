// SPDX-License-Identifier: Apache-2.0
// Rare instructions: bits and masks, saturating products, cvt.pack, and the video instructions with their selectors.
#include <fmt/format.h>

#include <algorithm>

#include "runtime/emulator/decode/lowering.hpp"
#include "runtime/emulator/ops/scalar.hpp"

namespace ikat::emulator {

namespace {

using nvptx::Opcode;

/// The operation of a video instruction, and into how many parts a register is divided.
struct VideoRow {
    Opcode opcode;
    Video::Kind kind;
    int parts;
};
constexpr VideoRow video_rows[] = {
    {Opcode::Vabsdiff, Video::Difference, 1},
    {Opcode::Vabsdiff2, Video::Difference, 2},
    {Opcode::Vabsdiff4, Video::Difference, 4},
    {Opcode::Vadd, Video::Add, 1},
    {Opcode::Vadd2, Video::Add, 2},
    {Opcode::Vadd4, Video::Add, 4},
    {Opcode::Vavrg2, Video::Average, 2},
    {Opcode::Vavrg4, Video::Average, 4},
    {Opcode::Vmad, Video::MultiplyAdd, 1},
    {Opcode::Vmax, Video::Maximum, 1},
    {Opcode::Vmax2, Video::Maximum, 2},
    {Opcode::Vmax4, Video::Maximum, 4},
    {Opcode::Vmin, Video::Minimum, 1},
    {Opcode::Vmin2, Video::Minimum, 2},
    {Opcode::Vmin4, Video::Minimum, 4},
    {Opcode::Vset, Video::Compare, 1},
    {Opcode::Vset2, Video::Compare, 2},
    {Opcode::Vset4, Video::Compare, 4},
    {Opcode::Vshl, Video::ShiftLeft, 1},
    {Opcode::Vshr, Video::ShiftRight, 1},
    {Opcode::Vsub, Video::Subtract, 1},
    {Opcode::Vsub2, Video::Subtract, 2},
    {Opcode::Vsub4, Video::Subtract, 4},
};

/// ".b2", ".h1" of an operand of a scalar video instruction.
std::uint32_t selector(std::string_view suffix) {
    static constexpr std::string_view names[] = {"", ".b0", ".b1", ".b2", ".b3", ".h0", ".h1"};
    for (std::uint32_t i = 0; i < std::size(names); ++i)
        if (suffix == names[i]) return i;
    return ~0u;
}

/// ".b3210", ".h10": which part goes where, the lowest last; 3 bits each.
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

}  // namespace

void Lowering::on_words(Scalar scalar, Operands operands, std::uint32_t x, std::uint32_t y) {
    const Result d = result(operands[0], Type::U32);
    const auto word = [&](std::size_t i) {
        return index(i < operands.size() ? source(operands[i], Type::U32) : constant(0, 4));
    };
    const std::uint32_t a = word(1), b = word(2), c = word(3);
    emit(select_scalar(scalar), D, A | B | C, {index(d.at), a, b, c, x, y});
    finish(d);
}

void Lowering::fns(Form& form, Operands operands) {
    form.take_type();
    on_words(Scalar::FindNthSet, operands);
}

void Lowering::szext(Form& form, Operands operands) {
    const std::uint32_t clamps = form.take(".clamp") ? ExtendClamped : 0;
    form.take(".wrap");
    on_words(Scalar::Extended, operands, clamps | (is_signed_type(form.take_type()) ? ExtendSigned : 0));
}

/// lop3.or.b32 d|p, a, b, c, table, q:   p = (d != 0) or q
void Lowering::lop3_with_predicate(Form& form, Operands operands, std::string_view combine) {
    const Operands targets =
        operands[0].kind == nvptx::Operand::Kind::Pair ? Operands(module_.operands(operands[0].children)) : operands;
    const Result d = result(targets[0], Type::U32), p = result(targets[1], Type::Pred);
    if (operands[4].kind != nvptx::Operand::Kind::Integer) unsupported("only the form with a literal table is known");
    apply(select_integer(Operation::Lop3, Type::U32), d.at,
          {source(operands[1], Type::U32), source(operands[2], Type::U32), source(operands[3], Type::U32)},
          std::uint32_t(operands[4].value) & 255);
    const Value some = temporary(0);
    apply(select_compare(Comparison::Ne, Type::U32, false), some, {d.at, constant(0, 4)});
    apply(combine == ".or"    ? predicate_or
          : combine == ".xor" ? predicate_xor
                              : predicate_and,
          p.at, {some, predicate(operands[5])});
    form.take_type();
    finish(d);
}

/// cvt.pack.sat.u8.s32.b32 d, a, b, c
void Lowering::cvt_pack_integers(Form& form, Operands operands) {
    form.take(".sat");
    const std::string_view to = form.take_any({".u16", ".s16", ".u8", ".s8", ".u4", ".s4", ".u2", ".s2"});
    if (to.empty()) unsupported("its type is not known");
    form.take(".s32");
    form.take(".b32");
    on_words(Scalar::Packed, operands, std::uint32_t(std::stoi(std::string(to.substr(2)))), to[1] == 's');
}

/// vadd.u32.s32.s32.sat.add d, a.b0, b.h1, c and its like; also into a part of c: d.h1.
void Lowering::video(Form& form, Operands operands) {
    const auto row = std::ranges::find(video_rows, current_->opcode, &VideoRow::opcode);
    IKAT_ASSERT(row != std::end(video_rows), std::string(info(current_->opcode).name) + " has no row");
    Video how{.kind = row->kind, .parts = row->parts};
    how.saturates = form.take(".sat");
    how.plus_one = form.take(".po");
    how.wraps = form.take(".wrap");
    form.take(".clamp");
    how.scale = form.take(".shr7") ? 7 : form.take(".shr15") ? 15 : 0;
    const std::string_view comparison = form.take_any({".eq", ".ne", ".lt", ".le", ".gt", ".ge"});
    static constexpr std::string_view comparisons[] = {".eq", ".ne", ".lt", ".le", ".gt", ".ge"};
    for (std::uint32_t i = 0; i < 6; ++i)
        if (comparison == comparisons[i]) how.comparison = i;
    const std::string_view secondary = form.take_any({".add", ".min", ".max"});
    how.secondary = secondary == ".add"   ? Video::ThenAdd
                    : secondary == ".min" ? Video::ThenMinimum
                    : secondary == ".max" ? Video::ThenMaximum
                                          : Video::None;
    if (how.kind != Video::Compare) how.d_signed = is_signed_type(form.take_type());
    how.a_signed = is_signed_type(form.take_type());
    how.b_signed = is_signed_type(form.take_type());

    std::vector<nvptx::Operand> plain(operands.begin(), operands.end());
    if (plain.size() < 3) throw MissingOperand{};
    const auto suffix = [&](std::size_t i) { return module_.text(plain[i].suffix); };
    const bool scalar = how.parts == 1;
    const std::uint32_t into = scalar ? selector(suffix(0)) : written_parts(suffix(0), how.parts);
    const std::uint32_t a = scalar ? selector(suffix(1)) : selectors(suffix(1), how.parts, 0);
    const std::uint32_t b = scalar ? selector(suffix(2)) : selectors(suffix(2), how.parts, std::uint32_t(how.parts));
    if (into == ~0u || a == ~0u || b == ~0u) unsupported("a selector is not known");
    how.negates_product = plain[1].minus != plain[2].minus;
    how.negates_addend = plain.size() > 3 && plain[3].minus;
    for (nvptx::Operand& each : plain) each.suffix = nvptx::no_name, each.minus = false;
    on_words(scalar ? Scalar::Video : Scalar::VideoParts, std::span<const nvptx::Operand>(plain), how.bits(),
             scalar ? a | b << 3 | into << 6 : a | b << 12 | into << 24);
}

}  // namespace ikat::emulator
