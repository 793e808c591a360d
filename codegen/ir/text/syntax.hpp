// SPDX-License-Identifier: Apache-2.0
// IR text as a tree: what the grammar of parse.cpp recognises and resolve.cpp gives a meaning. Tokens are slices of the
// text, so that an error found later still knows its place; an empty token means that it was omitted.
#pragma once
#include <string_view>
#include <vector>

#include "codegen/ir/function.hpp"
#include "codegen/ir/text/parse.hpp"

namespace ikat::ir::syntax {

struct Token {
    const char* begin = nullptr;
    std::size_t size = 0;

    std::string_view text() const { return {begin, size}; }
    explicit operator bool() const { return size != 0; }
};

struct Keyword {  // align 16
    Token word, number;
};
struct Parameter {  // %x: in f32* align 4
    Token name, access, type;
    bool pointer = false;
    std::vector<Keyword> keywords;
};
struct Symbol {  // dynamic shared $tile: f32[1024] align 16; const $table: f32[2] = 1.0, 2.0
    bool dynamic = false;
    Token space, name, type, count;
    std::vector<Keyword> keywords;
    std::vector<Token> values;
};
struct TypedValue {  // %1: f32
    Token name, type;
};
struct Place {  // loc "saxpy.cpp":12:5
    Token file, line, column;
};
struct Argument {  // %1, [%1+16], 1.5, ctaid.x, $tile, @name, "text"
    bool address = false;
    Token what, offset;
};
struct Guard {  // guard !%9
    bool negated = false;
    Token value;
};
struct Tie {  // tie 0=3 count 4
    Token result, operand, count;
};
struct Line {  // %1 = load.f32 global.nc [%2+16] guard %3 else %4
    std::vector<TypedValue> results;
    Token mnemonic, memory;
    std::vector<Argument> arguments;
    Guard guard;
    std::vector<Token> otherwise;
    Tie tie;
    Place where;
};
struct Jump {  // ^2(%4)
    Token block;
    std::vector<Token> arguments;
};
struct End {  // branch.uniform %9, ^1, ^2(%4) unroll 2; return %5
    Token mnemonic, condition;
    std::vector<Jump> targets;
    Token unroll, given;
    Place where;
};
struct Block {  // ^1(%4: f32): and its lines; a block of an invalid function may have no end
    Token name;
    std::vector<TypedValue> parameters;
    std::vector<Line> lines;
    std::vector<End> end;
};
struct Function {
    Token kind, name;
    std::vector<Parameter> parameters;
    Token result;
    std::vector<Keyword> bounds;
    std::vector<Symbol> symbols;
    std::vector<Block> blocks;
};
using Module = std::vector<Function>;

/// The text the tokens are slices of, and how errors name it.
struct Source {
    std::string_view text, file;
    Lines lines = Lines::Said;

    Location location(const char* at) const;
    [[noreturn]] void fail(const char* at, std::string message, std::string hint = {}) const;
};

/// Gives the tree its meaning (resolve.cpp).
ir::Module resolve(const Module& module, const Source& source);

}  // namespace ikat::ir::syntax
