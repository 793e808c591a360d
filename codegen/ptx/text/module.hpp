// SPDX-License-Identifier: Apache-2.0
// A PTX module as data, shared by emitter, parser, printer and emulator: the emitter and the parser build a Module, the
// printer and the emulator read it.
// The model follows the *syntax* of the language (directives, nested scopes, `@p op.mods operands;`) and keeps every
// token in its written order, so that parsed text prints back the same. The valid forms of instructions are not known
// here; see table/forms.hpp.
//
// Names are interned in the module. Operands, modifiers and names of lists live in flat pools and are referred to by
// spans: a 12 MB file is a few large vectors. A Module is a plain value.
#pragma once
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "codegen/ptx/table/opcode.hpp"
#include "codegen/support/id.hpp"

namespace ikat::ptx {

/// An interned token: an identifier ("%r1", "loop"), an opcode stem ("add"), a modifier (".rn"), a literal's spelling.
enum class Name : std::uint32_t {};
inline constexpr Name no_name = no_id<Name>;

/// Elements [first, first + count) of one of the Module's pools.
struct Span {
    std::uint32_t first = 0, count = 0;
    bool operator==(const Span&) const = default;
};

/// A position in the PTX text, counted from 1; line 0 means that the module was built, not parsed.
struct Position {
    std::uint32_t line = 0, column = 0;
};

struct Operand {
    enum class Kind : std::uint8_t {
        Symbol,  // %r1, loop, smem+16, %tid.x (name "%tid", suffix ".x"), WARP_SZ; value = byte offset after '+' or '-'
        Integer,  // 7, -1, 0x1f, 017, 0b1, 5U: value = its two's complement bits
        Float32,  // 0f3F800000: value = the 32 bits
        Float64,  // 0d3FF0000000000000: value = the 64 bits; also decimal literals such as 1.5
        String,   // "text": name = the text between the quotes, escapes kept as written
        Vector,   // {a, b}: children
        List,     // (a, b): children; arguments and results of call
        Address,  // [a, b]: children; the first is the base symbol (with offset) or an integer
        Pair,     // a|b: two children (setp, shfl, vote)
        Sink,     // _
        Generic,  // generic(symbol): one child, in initialisers
        Assign,   // a = b in the initialiser of a sampler: two children
        Element,  // a[4]: two children, the array and the index
        Mask,     // 0xff00(symbol): one child and value = the mask, in initialisers
    };
    Kind kind = Kind::Sink;
    bool negated = false;     // Symbol: !%p
    bool minus = false;       // Symbol: -%r, as in vmad
    bool has_offset = false;  // Symbol, Generic: an offset was written, even +0
    Name name = no_name;      // Symbol and String; for literals their spelling, which the printer uses when present
    Name suffix = no_name;    // Symbol: ".x", ".b0", ".h1"
    std::uint64_t value = 0;
    Span children{};  // into operands; the children of one operand are adjacent
};

/// `@p opcode.mod.mod a, b, c;`
struct Instruction {
    Opcode opcode = Opcode::Unknown;
    Name spelling = no_name;  // of the opcode, "ld", for print and messages
    Span modifiers{};  // into the module's modifiers, each with its dot: ".global", ".v4", ".f32", ".L1::no_allocate"
    Span operands{};   // into Module::operands
    Name guard = no_name;  // the predicate register, if any
    bool guard_negated = false;
    Position where{};
};

/// One declaration: `.shared .align 16 .b8 tile[1024];`, `.reg .b32 %r<12>;`, `.param .u64 x`, `.global .f32 y = 0f0;`
struct Variable {
    struct Declarator {
        Name name = no_name;
        std::uint32_t range = 0;  // %r<12>: 12 registers %r0 ... %r11; 0 = a single name
        bool has_range = false;
        std::vector<std::int64_t> extents{};  // name[4][2]; an empty bracket pair is -1
        Span initialiser{};                   // into operands: none, or one operand (a value or a Vector)
    };
    std::vector<Name> linkage{};  // ".visible", ".extern", ".weak", ".common" as written
    Name space = no_name;         // ".reg", ".shared", ".global", ".const", ".local", ".param"
    std::uint32_t alignment = 0;  // .align before the type: of the variable, in bytes; 0 = natural
    Name attribute = no_name;     // ".attribute(.managed)" as one token
    Name vector = no_name;        // ".v2", ".v4", ".v8"
    Name type = no_name;          // ".b32", ".f32", ".pred", ".texref"
    std::vector<Name> pointer{};  // what follows the type of a pointer parameter: ".ptr" ".global" ".align" "16"
    std::vector<Declarator> declarators{};
    /// The part of dynamic shared memory that an `.extern .shared` array without a size stands for, which a comment
    /// after the declaration tells: "// 65536 bytes at 1024", or for all that is left "// the rest, at 66560".
    struct Part {
        std::uint64_t offset = 0;
        std::uint64_t bytes = 0;  // 0: the rest
    };
    std::optional<Part> part{};
    Position where{};
};

/// A directive that is neither a variable nor a function: .pragma, .loc, .file, .maxntid, .section {...},
/// .branchtargets
struct Directive {
    Name name = no_name;  // ".maxntid"
    Span operands{};      // into operands
    /// Text kept as written: with a body, the part between its braces (.section); without one, the rest of a directive
    /// whose operands are not parsed (.callprototype, unknown ones), including its ';'.
    std::string raw{};
    bool has_body = false;
    Position where{};
};

/// The statements of a body, in order. Scopes are flat: ScopeBegin ... ScopeEnd. `index` is into the function's vector
/// of that kind, or the label's Name.
struct Statement {
    enum class Kind : std::uint8_t { Instruction, Label, Variable, Directive, ScopeBegin, ScopeEnd };
    Kind kind = Kind::Instruction;
    std::uint32_t index = 0;
    Position where{};
};

struct Function {
    std::vector<Name> linkage{};  // ".visible", ".extern", ".weak"
    bool is_entry = false;
    bool has_body = true;      // false: a prototype
    Name attribute = no_name;  // ".attribute(.unified(1, 2))" in one piece
    Name name = no_name;
    std::vector<Variable> results{};      // .func (.param .b32 r) f (...)
    std::vector<Variable> parameters{};   // one declarator each
    std::vector<Directive> directives{};  // such as .maxntid 256, 1, 1, in written order
    std::vector<Statement> body{};
    std::vector<Instruction> instructions{};
    std::vector<Variable> variables{};
    std::vector<Directive> body_directives{};
    Position where{};
};

class Module {
public:
    Name intern(std::string_view text);
    /// Valid as long as the module; "" for no_name.
    std::string_view text(Name name) const;
    /// The name already interned for text, or no_name.
    Name find(std::string_view text) const;

    /// The opcode that a name spells, or Unknown.
    Opcode opcode(Name spelling);

    std::span<const Operand> operands(Span span) const { return std::span(operands_).subspan(span.first, span.count); }
    std::span<const Name> modifiers(Span span) const { return std::span(modifiers_).subspan(span.first, span.count); }
    Span add_operands(std::span<const Operand> operands);
    Span add_modifiers(std::span<const Name> modifiers);

    /// Its definition, or that of the function it is an .alias of, or else a prototype, or nullptr.
    const Function* find_function(std::string_view name) const;

    struct Version {
        std::uint32_t major = 0, minor = 0;
    } version;
    std::vector<Name> target;         // "sm_90a", then options such as "texmode_independent", "debug"
    std::uint32_t address_size = 64;  // bits

    /// The top level in written order; `index` is into the vector of its kind.
    struct Item {
        enum class Kind : std::uint8_t { Function, Variable, Directive };
        Kind kind;
        std::uint32_t index;
    };
    std::vector<Item> items;
    std::vector<Function> functions;
    std::vector<Variable> variables;
    std::vector<Directive> directives;

    /// The file the module was parsed from, for messages; empty if it was built.
    const char* file = "";

private:
    std::vector<Operand> operands_;
    std::vector<Name> modifiers_;
    struct Slot {
        std::uint32_t hash = 0;
        Name name = no_name;
    };
    std::uint32_t slot_of(std::string_view text, std::uint32_t hash) const;
    void grow();

    std::deque<std::string> texts_;               // by Name; a deque, so that text() stays valid while names are added
    std::vector<Slot> slots_;                     // open addressing; a power of two, at most half full
    std::vector<std::optional<Opcode>> opcodes_;  // by Name; cached on demand
};

/// The module as text. Deterministic; a module that was parsed from text in this printer's layout prints the same
/// bytes. Throws nothing.
std::string print(const Module& module);

/// As above; lines[f][i] is the line of instruction i of function f in the text.
std::string print(const Module& module, std::vector<std::vector<std::uint32_t>>& lines);

/// One instruction as print writes it, without indentation and line end: "@%p1 bra loop;". For messages.
std::string print(const Module& module, const Instruction& instruction);
/// One operand: "[%rd1+4]".
std::string print(const Module& module, const Operand& operand);

/// Parses PTX text. `file` names it in messages. Throws Error with line, column, caret and what was expected.
Module parse(std::string_view text, std::string_view file);

}  // namespace ikat::ptx
