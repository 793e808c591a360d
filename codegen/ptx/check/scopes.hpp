// SPDX-License-Identifier: Apache-2.0
// Lexical scoping: which declaration a name refers to. Scopes are braces; a function's parameters are its outermost
// scope, inside that of the module.
#pragma once
#include <map>
#include <optional>
#include <string_view>
#include <vector>

#include "codegen/ptx/check/declarations.hpp"
#include "codegen/ptx/table/types.hpp"
#include "codegen/ptx/text/module.hpp"

namespace ikat::ptx {

struct Declared {
    enum class Kind : std::uint8_t { Register, Variable, Function, Label, Targets, Prototype };
    Kind kind = Kind::Register;
    Type type{};              // of a register or variable
    std::uint32_t lanes = 1;  // .v4: 4
    Position where{};
    const Function* function = nullptr;
    const Variable* variable = nullptr;  // of a register or variable
    Place place = Place::Body;           // ... and where it is declared
    std::uint64_t bytes = 0;             // of a variable; 0 if not known
};

class Scopes {
public:
    explicit Scopes(const Module& module) : module_(module), open_(1) {}

    void enter() { open_.emplace_back(); }
    void leave() { open_.pop_back(); }

    /// Adds a symbol to the innermost scope; returns one that already has the name there, if any.
    const Declared* declare(Name name, const Declared& symbol);
    /// %r<12>: a name for each number. Returns a symbol that already has one of them there, if any.
    const Declared* declare_range(Name prefix, std::uint32_t count, const Declared& symbol);

    const Declared* find(Name name) const;
    /// "%r<12> ends with %r11", if name is past the end of such a range.
    std::string past_the_end(Name name) const;

private:
    struct Range {
        Name prefix;
        std::uint32_t count;
        Declared symbol;
    };
    struct Scope {
        std::map<Name, Declared> symbols;
        std::vector<Range> ranges;
    };
    struct Numbered {
        std::string_view prefix;
        std::uint64_t number;
    };
    const Declared* in_ranges(const Scope& scope, Name name) const;
    /// Splits %r12.
    std::optional<Numbered> numbered(Name name) const;

    const Module& module_;
    std::vector<Scope> open_;
};

}  // namespace ikat::ptx
