// SPDX-License-Identifier: Apache-2.0
// Parses the rows of the table at compile time: the program contains the forms, ready to be matched.
#include "codegen/ptx/table/forms.hpp"

#include <algorithm>
#include <array>

#include "codegen/ptx/table/forms/async.hpp"
#include "codegen/ptx/table/forms/matrix.hpp"
#include "codegen/ptx/table/forms/media.hpp"
#include "codegen/ptx/table/forms/scalar.hpp"
#include "codegen/ptx/table/forms/tensor.hpp"

namespace ikat::ptx {
namespace {

static_assert(std::ranges::is_sorted(opcode_rows::rows, {}, &OpcodeInfo::name), "find_opcode does a binary search");

/// The table is written in several parts, which share sets and lists.
struct Part {
    std::span<const table::Set> sets, lists;
    std::span<const table::Row> rows;
};
constexpr Part parts[] = {
    {table::scalar::sets, table::scalar::lists, table::scalar::rows},
    {table::media::sets, table::media::lists, table::media::rows},
    {table::async::sets, table::async::lists, table::async::rows},
    {table::matrix::sets, table::matrix::lists, table::matrix::rows},
    {table::tensor::sets, table::tensor::lists, table::tensor::rows},
};

/// Removes and returns the part of text before the separator.
constexpr std::string_view take(std::string_view& text, char separator) {
    const std::size_t end = std::min(text.find(separator), text.size());
    const std::string_view part = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    return part;
}

constexpr bool drop_suffix(std::string_view& text, char suffix) {
    if (!text.ends_with(suffix)) return false;
    text.remove_suffix(1);
    return true;
}

constexpr std::string_view named(std::span<const table::Set> Part::*sets, std::string_view name) {
    for (const Part& part : parts)
        for (const table::Set& set : part.*sets)
            if (set.name == name) return set.alternatives;
    throw "the table has no set of this name";
}

/// Calls f(alternative) for each of "$round|approx".
constexpr void each_alternative(std::string_view text, auto&& f) {
    while (!text.empty()) {
        const std::string_view word = take(text, '|');
        if (!word.starts_with('$')) {
            f(word);
            continue;
        }
        for (std::string_view set = named(&Part::sets, word.substr(1)); !set.empty();) f(take(set, '|'));
    }
}

/// Calls f(group, its alternatives as written) for each of "$round? f32|f64:t @list".
constexpr void each_group(std::string_view text, auto&& f) {
    while (!text.empty()) {
        std::string_view word = take(text, ' ');
        if (word.starts_with('@')) {
            each_group(named(&Part::lists, word.substr(1)), f);
            continue;
        }
        Group group;
        if (word.size() > 2 && word[word.size() - 2] == ':' && word[word.size() - 3] != ':') {
            group.slot = word.back();
            word.remove_suffix(2);
        }
        group.optional = drop_suffix(word, '?');
        group.rest = word == "*";
        f(group, word);
    }
}

constexpr Modifier known(std::string_view name) {
    const Modifier modifier = find_modifier(name);
    if (modifier == Modifier::Unknown) throw "modifiers.def does not have it";
    return modifier;
}

/// "s:t", "r:b64?", "o:t|q", "v:b32*4", "r:b64@L2::cache_hint"
constexpr OperandRule read_operand(std::string_view text) {
    OperandRule rule;
    if (const std::size_t at = text.find('@'); at != text.npos) {
        rule.modifier = known(text.substr(at + 1));
        text = text.substr(0, at);
    }
    rule.optional = drop_suffix(text, '?');
    if (text.size() > 2 && text[text.size() - 2] == '|') {
        rule.second = text.back();
        text.remove_suffix(2);
    }
    if (text.size() > 2 && text[text.size() - 2] == '*') {
        rule.parts = std::uint32_t(text.back() - '0');
        text.remove_suffix(2);
    }
    rule.letter = text[0];
    if (text.size() > 2) rule.type = text.substr(2);
    return rule;
}

constexpr std::size_t operand_count(std::string_view text) {
    return text.empty() ? 0 : 1 + std::size_t(std::ranges::count(text, ' '));
}

constexpr std::size_t row_count = [] {
    std::size_t count = 0;
    for (const Part& part : parts) count += part.rows.size();
    return count;
}();

/// All rows, sorted by opcode, otherwise in table order.
constexpr auto rows = [] {
    std::array<const table::Row*, row_count> out;
    auto next = out.begin();
    for (std::size_t opcode = 1; opcode < opcode_count; ++opcode)
        for (const Part& part : parts)
            for (const table::Row& row : part.rows)
                if (row.stem.opcode == Opcode(opcode)) *next++ = &row;
    return out;
}();

// The contents of all rows, one array for each kind: a form consists of spans of these.
struct Sizes {
    std::size_t groups = 0, alternatives = 0, operands = 0;
};
constexpr Sizes sizes = [] {
    Sizes out;
    for (const table::Row* row : rows) {
        each_group(row->modifiers, [&](const Group& group, std::string_view text) {
            ++out.groups;
            if (!group.rest) each_alternative(text, [&](std::string_view) { ++out.alternatives; });
        });
        out.operands += operand_count(row->operands);
    }
    return out;
}();

constexpr auto alternatives = [] {
    std::array<Modifier, sizes.alternatives> out{};
    auto next = out.begin();
    for (const table::Row* row : rows)
        each_group(row->modifiers, [&](const Group& group, std::string_view text) {
            if (group.rest) return;
            each_alternative(text, [&](std::string_view each) { *next++ = known(each); });
        });
    return out;
}();

constexpr auto groups = [] {
    std::array<Group, sizes.groups> out;
    auto next = out.begin();
    std::span<const Modifier> left = alternatives;
    for (const table::Row* row : rows)
        each_group(row->modifiers, [&](Group group, std::string_view text) {
            std::size_t count = 0;
            if (!group.rest) each_alternative(text, [&](std::string_view) { ++count; });
            group.alternatives = left.first(count);
            left = left.subspan(count);
            *next++ = group;
        });
    return out;
}();

constexpr auto operands = [] {
    std::array<OperandRule, sizes.operands> out;
    auto next = out.begin();
    for (const table::Row* row : rows)
        for (std::string_view text = row->operands; !text.empty();) *next++ = read_operand(take(text, ' '));
    return out;
}();

constexpr auto forms = [] {
    std::array<Form, row_count> out;
    std::span<const Group> groups_left = groups;
    std::span<const OperandRule> operands_left = operands;
    for (auto next = out.begin(); const table::Row* row : rows) {
        std::size_t count = 0;
        each_group(row->modifiers, [&](const Group&, std::string_view) { ++count; });
        *next++ = {.opcode = row->stem.opcode,
                   .groups = groups_left.first(count),
                   .operands = operands_left.first(operand_count(row->operands)),
                   .feature = row->feature};
        groups_left = groups_left.subspan(count);
        operands_left = operands_left.subspan(operand_count(row->operands));
    }
    return out;
}();

}  // namespace

std::span<const Form> forms_of(Opcode opcode) { return std::ranges::equal_range(forms, opcode, {}, &Form::opcode); }

}  // namespace ikat::ptx
