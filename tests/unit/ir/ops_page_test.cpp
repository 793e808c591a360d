// SPDX-License-Identifier: Apache-2.0
// docs/ops.md is generated from codegen/ir/op/ops.def: the rows come from the compiled table, and how PTX spells them
// from codegen/nvptx/spelling; the headings and the text below them are the comments of the file. IKAT_BLESS=1 rewrites
// the page, and so does the target `bless`.
#include <cctype>
#include <fstream>
#include <map>
#include <regex>
#include <span>
#include <sstream>

#include "codegen/ir/op/families.hpp"
#include "codegen/nvptx/spelling/mnemonic.hpp"
#include "tests/catch.hpp"
#include "tools/testing/golden.hpp"

using namespace ikat;
using namespace ikat::ir;

namespace {

/// The comments of ops.def.
struct Comments {
    std::string keys;                             // of spellings.def: the last paragraph of its head
    std::map<std::string, std::string> headings;  // by the first row below each
};

bool is_row(const std::string& line) { return line.starts_with("OP(") || line.starts_with("EFFECT("); }

std::string row_name(const std::string& line) {
    const std::size_t begin = line.find('(') + 1;
    return line.substr(begin, line.find(',') - begin);
}

Comments read_comments(std::istream& file) {
    Comments out;
    std::string paragraph, line;
    while (std::getline(file, line)) {
        if (line.starts_with("// ")) {
            (paragraph += paragraph.empty() ? "" : " ") += line.substr(3);
            continue;
        }
        if (is_row(line) && !paragraph.empty()) out.headings[row_name(line)] = paragraph;
        if (paragraph.starts_with("In PTX")) out.keys = paragraph;
        paragraph.clear();
    }
    return out;
}

/// Formats the parts in braces, the keys of spellings, as code.
std::string with_code(const std::string& text) { return std::regex_replace(text, std::regex(R"(\{[^}]*\})"), "`$&`"); }

/// "Memory. The address is …" → the heading "Memory", and below it "The address is …".
std::string heading(const std::string& comment) {
    const std::size_t end = std::min(comment.find(": "), comment.find(". "));
    if (end == comment.npos) return "\n## " + comment + "\n\n";
    std::string text = comment.substr(end + 2);
    const bool word = text.size() > 1 && !std::isdigit(static_cast<unsigned char>(text[1]));  // and not "f32"
    if (word) text[0] = char(std::toupper(static_cast<unsigned char>(text[0])));
    return "\n## " + comment.substr(0, end) + "\n\n" + with_code(text) + (text.ends_with('.') ? "\n\n" : ".\n\n");
}

struct NamedSet {
    const char* name;
    TypeSet types;
};
constexpr NamedSet sets[] = {
    {"Any", Any},   {"Storable", Storable}, {"AnyNum", AnyNum}, {"Num", Num},     {"Signed", Signed},
    {"Bits", Bits}, {"AnyInt", AnyInt},     {"Int", Int},       {"Float", Float},
};

/// "Int f32": the largest named subset, then the remaining types.
std::string in_words(TypeSet types, std::span<const NamedSet> names = sets) {
    std::string out;
    for (const NamedSet& each : names)
        if ((types & each.types) == each.types && out.empty()) {
            out = each.name;
            types &= TypeSet(~each.types);
        }
    for (int t = 0; t < type_count; ++t)
        if (contains(types, Type(t))) (out += out.empty() ? "" : " ") += info(Type(t)).name;
    return out;
}

std::string in_words(Slot slot) {
    constexpr std::string_view names[] = {"nothing",
                                          "T",
                                          "from",
                                          "wide",
                                          "sum",
                                          "lane",
                                          "pred",
                                          "u32",
                                          "address",
                                          "shared address",
                                          "global address",
                                          "shared address",
                                          "barrier's address"};
    return std::string(names[int(slot)]);
}

/// "T, u32 → T"; attributes are in brackets, an ellipsis means one per element of a vector.
std::string in_words(const OpInfo& row) {
    constexpr std::string_view attributes[] = {
        "", "constant", "parameter", "special register", "symbol", "text", "function", "mode", "table"};
    const Shape& shape = row.shape;
    const Op op = Op(&row - op_table);
    switch (row.attribute) {
        case Attribute::Matrix: return "[form], A …, B …, C … → D …";
        case Attribute::Wgmma: return "[form], A …, B, pred, D … → D …";
        case Attribute::Groups:
            if (shape.passes_on) return "[number], D … → D …";
            return "[" + attribute_choice(op).choices + "]";
        case Attribute::Matrices:
            return shape.result == Slot::None ? "[matrices], shared address, T …" : "[matrices], shared address → T …";
        case Attribute::Registers: return "[grow or shrink, a number]";
        case Attribute::Bulk: return "[form], addresses, coordinates, u32, …";
        case Attribute::Mbarrier: return "[use], barrier's address, u32 → u64 or pred";
        case Attribute::Barrier:
        case Attribute::Fence: return "[" + attribute_choice(op).choices + "]";
        default: break;
    }
    std::string out;
    if (!row.modes.empty())
        out = "[" + std::regex_replace(std::string(row.modes), std::regex(R"(\|)"), " ") + "]";
    else if (row.attribute == Attribute::ClusterBarrier)
        out = "[sync arrive wait]";
    else if (has_form(op))
        out = "[" + std::string(row.attribute == Attribute::Shuffle ? "mode" : attribute_choice(op).name) + "]";
    else if (row.attribute != Attribute::None)
        out = "[" + std::string(attributes[int(row.attribute)]) + "]";
    const auto add = [&](const std::string& word) { (out += out.empty() ? "" : ", ") += word; };
    for (std::size_t i = 0; i < shape.arity(); ++i) add(in_words(shape.arguments[i]));
    if (shape.variadic) return out + ", any …";
    if (shape.vector && shape.result == Slot::None) out += " …";
    out += (out.empty() ? "→ " : " → ") + in_words(shape.result);
    if (shape.second != Slot::None) out += ", " + in_words(shape.second);
    return shape.vector && shape.result != Slot::None ? out + " …" : out;
}

std::string in_words(const OpInfo& row, Trait traits) {
    constexpr std::pair<Trait, std::string_view> names[] = {
        {Commutes, "commutes"},
        {Associates, "associates"},
        {Idempotent, "idempotent"},
        {Reads, "reads"},
        {Writes, "writes"},
        {Convergent, "convergent"},
        {Rematerialises, "rematerialises"},
        {AlwaysApprox, "always approximate"},
        {Narrows, "narrows"},
        {Copies, "copies"},
        {Fails, "fails"},
    };
    std::string out;
    for (const auto& [trait, name] : names)
        if (traits & trait) (out += out.empty() ? "" : ", ") += name;
    const auto add = [&](Work work, const char* what) {
        if (work == Work::None) return;
        ((out += out.empty() ? "" : ", ") += what) += work_names[std::size_t(work)];
    };
    add(row.starts, "starts "), add(row.commits, "commits "), add(row.awaits, "awaits ");
    return out;
}

/// Formats code for a table cell, where a bar would end the cell.
std::string cell_of_code(std::string_view text) {
    std::string out;
    for (char c : text) (out += c == '|' ? "\\" : "") += c;
    return out.empty() ? "" : "`" + out + "`";
}

std::string row(Op op) {
    const OpInfo& row = info(op);
    std::ostringstream out;
    out << "| `" << std::string_view(name(op)) << "` | " << in_words(row) << " | " << in_words(row.domain)
        << (row.from ? " from " + in_words(row.from) : "") << " | " << in_words(row, row.traits) << " | "
        << cell_of_code(nvptx::spelling(op)) << " | ";
    if (row.ulp != 0) out << row.ulp << ' ';
    if (row.absolute != 0) out << "±" << row.absolute << ' ';
    out << "|\n";
    return out.str();
}

std::string legend(const Comments& comments) {
    std::string out = R"(# Operations

Every operation of the IR: the table `codegen/ir/op/ops.def` as a page; a test checks that they agree. `cmake --build --preset dev -t bless`
rewrites it. [adding-features.md](adding-features.md) says what a new row needs.

- **Takes → gives**: T is the type that the instruction is written at, `wide` the 64-bit integer signed as T, `from` the second
  type that follows T, `lane` the type of one lane of a packed T, `sum` u32 if both of them are unsigned and else i32, `address` is u64 or u32 by the
  address space. Brackets contain parts of the instruction that are not operands. An ellipsis means one for each element of a vector.
- **Types**: what T may be. In IR text it follows the name, `add.f32`.
- **Traits**: what passes may rely on. What neither reads, writes nor is convergent is pure: it may be removed, merged and moved.
- **ULP**: the error of the approximate form, in units of the last place, or ± the absolute error between −π and π; the other forms are exact or correctly rounded.

| set | types |
|---|---|
)";
    for (const NamedSet& each : sets) out += "| " + std::string(each.name) + " | " + in_words(each.types, {}) + " |\n";
    return out + "\n" + with_code(comments.keys) + "\n";
}

std::string page(const Comments& comments) {
    std::string out = legend(comments);
    for (int i = 0; i < op_count; ++i) {
        if (const auto found = comments.headings.find(std::string(info(Op(i)).row)); found != comments.headings.end())
            out += heading(found->second) +
                   "| operation | takes → gives | types | traits | PTX | ULP |\n|---|---|---|---|---|---|\n";
        out += row(Op(i));
    }
    return out;
}

}  // namespace

TEST_CASE("docs/ops.md is the op table") {
    std::ifstream file(IKAT_SOURCE_DIR "/codegen/ir/op/ops.def");
    REQUIRE(file);
    std::ifstream spellings(IKAT_SOURCE_DIR "/codegen/nvptx/spelling/spellings.def");
    REQUIRE(spellings);
    Comments comments = read_comments(file);
    comments.keys = read_comments(spellings).keys;
    const auto result = golden::compare(IKAT_SOURCE_DIR "/docs/ops.md", page(comments));
    INFO(result.message);
    CHECK(result.passed);
}
