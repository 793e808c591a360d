// SPDX-License-Identifier: Apache-2.0
// The tokens of PTX as X3 parsers. Each reads its characters by hand and then the blanks and comments after them, so
// the grammar needs no skipper and alternatives do not skip twice. Included only by grammar.hpp.
#pragma once
#include <algorithm>
#include <boost/spirit/home/x3.hpp>
#include <charconv>

#include "codegen/ptx/text/parse/build.hpp"
#include "codegen/ptx/text/parse/expression.hpp"
#include "codegen/ptx/text/parse/number.hpp"

namespace ikat::ptx::grammar {

namespace x3 = boost::spirit::x3;

/// The Build is passed in X3's context.
struct BuildTag;

Build& build_of(const auto& context) { return x3::get<BuildTag>(context).get(); }

/// A parser of characters: Derived::scan(build, first) reads and advances, or returns false without moving first. No
/// parser here has an attribute; values go directly into Build.
template <class Derived>
struct BareToken : x3::parser<Derived> {
    using attribute_type = x3::unused_type;
    static constexpr bool has_attribute = false;

    bool parse(auto& first, const auto&, const auto& context, auto&, auto&) const {
        return this->derived().scan(build_of(context), first);
    }
};

/// A step of Build that takes a token's value: word[to<&Build::label>].
template <auto Member>
struct Step {};
template <auto Member>
constexpr Step<Member> to;

/// Reads a token and passes its value to a step; a step that returns false rejects the token.
template <class Token, auto Member>
struct Given : BareToken<Given<Token, Member>> {
    Token token;
    explicit constexpr Given(const Token& subject) : token(subject) {}
    bool scan(Build& build, const char*& first) const {
        const char* next = first;
        typename Token::Value value{};
        if (!token.scan(build, next, value)) return false;
        if constexpr (std::is_same_v<decltype((build.*Member)(value)), bool>) {
            if (!(build.*Member)(value)) return false;
        } else {
            (build.*Member)(value);
        }
        first = next;
        return true;
    }
};

/// A token with a value: Derived::scan(build, first, value). Adding a step makes it a parser.
template <class Derived, class ValueType>
struct Token {
    using Value = ValueType;
    template <auto Member>
    constexpr auto operator[](Step<Member>) const {
        return Given<Derived, Member>(static_cast<const Derived&>(*this));
    }
};

inline const char* skip_follow(const Build& build, const char* place) {
    while (place != build.source.end() && characters::is(*place, characters::Follow)) ++place;
    return place;
}

inline bool is_start(const Build& build, const char* place) {
    return place != build.source.end() && characters::is(*place, characters::Start);
}

/// ".global", ".L1::no_allocate"; returns its end, or place if there is none.
inline const char* skip_dotted(const Build& build, const char* place) {
    const char* stop = skip_follow(build, place + 1);
    if (stop == place + 1) return place;
    while (build.source.end() - stop > 2 && stop[0] == ':' && stop[1] == ':') {
        const char* next = skip_follow(build, stop + 2);
        if (next == stop + 2) break;
        stop = next;
    }
    return stop;
}

struct Punctuation : BareToken<Punctuation> {
    char character;
    explicit constexpr Punctuation(char c) : character(c) {}
    bool scan(Build& build, const char*& first) const {
        if (!build.source.at(first, character)) return false;
        first = build.source.finish(first + 1);
        return true;
    }
};

/// An identifier: %r1, loop, _ZN3foo, $L__BB0_1.
struct Word : Token<Word, Name> {
    bool scan(Build& build, const char*& first, Name& name) const {
        if (!is_start(build, first)) return false;
        const char* stop = skip_follow(build, first + 1);
        name = build.module.intern({first, stop});
        first = build.source.finish(stop);
        return true;
    }
};

/// An identifier with a suffix: %tid.x, %r1.b0; `_` alone is the sink.
struct SymbolToken : Token<SymbolToken, Operand> {
    bool scan(Build& build, const char*& first, Operand& operand) const {
        if (!is_start(build, first)) return false;
        const char* stop = skip_follow(build, first + 1);
        const std::string_view text(first, stop);
        if (text != "_") {
            operand.kind = Operand::Kind::Symbol;
            operand.name = build.module.intern(text);
        }
        if (build.source.at(stop, '.'))
            if (const char* end = skip_follow(build, stop + 1); end != stop + 1) {
                operand.suffix = build.module.intern({stop, end});
                stop = end;
            }
        first = build.source.finish(stop);
        return true;
    }
};

/// A directive's name or a modifier.
struct Dotted : Token<Dotted, Name> {
    bool scan(Build& build, const char*& first, Name& name) const {
        if (!build.source.at(first, '.')) return false;
        const char* stop = skip_dotted(build, first);
        if (stop == first) return false;
        name = build.module.intern({first, stop});
        first = build.source.finish(stop);
        return true;
    }
};

/// A modifier. After an opcode that needs no operands, a dotted word on a new line that can start a statement is not a
/// modifier, so that a missing ';' is reported in the right place: a directive, or a state space with a separate type
/// (.shared .b32 in contrast to .shared.b32).
struct Modifier : Token<Modifier, Name> {
    bool scan(Build& build, const char*& first, Name& name) const {
        if (!build.source.at(first, '.')) return false;
        if (build.source.on_new_line(first) && build.may_end_here() && begins_statement(build, first)) return false;
        return Dotted{}.scan(build, first, name);
    }

    static bool begins_statement(Build& build, const char* place) {
        static constexpr std::string_view directives[] = {
            ".visible", ".extern",        ".weak",        ".common", ".hidden",  ".entry",        ".func",
            ".reg",     ".pragma",        ".loc",         ".file",   ".section", ".alias",        ".align",
            ".version", ".branchtargets", ".calltargets", ".target", ".maxntid", ".callprototype"};
        static constexpr std::string_view spaces[] = {".param", ".shared", ".global", ".local", ".const", ".tex"};
        const char* const stop = skip_dotted(build, place);
        const std::string_view word(place, stop);
        if (std::ranges::find(directives, word) != std::end(directives)) return true;
        return std::ranges::find(spaces, word) != std::end(spaces) && !build.source.at(stop, '.');
    }
};

/// One of the directives, its name in full.
template <std::size_t N>
struct Keyword : Token<Keyword<N>, Name>, BareToken<Keyword<N>> {
    std::array<std::string_view, N> names;
    explicit constexpr Keyword(auto... spellings) : names{spellings...} {}

    using Token<Keyword<N>, Name>::operator[];
    bool scan(Build& build, const char*& first, Name& name) const {
        if (!build.source.at(first, '.')) return false;
        const std::string_view found(first, skip_dotted(build, first));
        for (std::string_view each : names)
            if (found == each) {
                name = build.module.intern(found);
                first = build.source.finish(first + found.size());
                return true;
            }
        return false;
    }
    bool scan(Build& build, const char*& first) const {
        Name name;
        return scan(build, first, name);
    }
};
template <class... Spelling>
Keyword(Spelling...) -> Keyword<sizeof...(Spelling)>;

/// A keyword before an opening parenthesis: generic(symbol).
struct Call : BareToken<Call> {
    std::string_view text;
    explicit constexpr Call(std::string_view spelling) : text(spelling) {}
    bool scan(Build& build, const char*& first) const {
        const std::string_view rest(first, build.source.end());
        if (!rest.starts_with(text) || !build.source.at(first + text.size(), '(')) return false;
        first = build.source.finish(first + text.size() + 1);
        return true;
    }
};

struct Number : Token<Number, Operand> {
    bool scan(Build& build, const char*& first, Operand& operand) const { return scan_number(build, first, operand); }
};

struct Expression : Token<Expression, Operand> {
    bool scan(Build& build, const char*& first, Operand& operand) const {
        return scan_expression(build, first, operand);
    }
};

/// Expressions such as WARP_SZ*2, which start like a name. (Names are tried before literals: they are more common.)
struct WarpSizeExpression : Token<WarpSizeExpression, Operand> {
    bool scan(Build& build, const char*& first, Operand& operand) const {
        return build.source.at(first, 'W') && scan_expression(build, first, operand);
    }
};

/// A literal (scan_number) or expression (scan_expression) that is an integer.
template <bool (*Scan)(Build&, const char*&, Operand&)>
struct IntegerOf : Token<IntegerOf<Scan>, Operand> {
    bool scan(Build& build, const char*& first, Operand& operand) const {
        const char* const start = first;
        if (!Scan(build, first, operand)) return false;
        if (operand.kind == Operand::Kind::Integer) return true;
        build.source.fail(start, "a floating-point literal where an integer is needed", {});
    }
};

/// A count or a size.
template <bool (*Scan)(Build&, const char*&, Operand&), int bits = 32>
struct CountOf : Token<CountOf<Scan, bits>, Operand> {
    bool scan(Build& build, const char*& first, Operand& operand) const {
        const char* const start = first;
        if (!IntegerOf<Scan>{}.scan(build, first, operand)) return false;
        if (operand.value >> bits == 0) return true;
        build.source.fail(start, "this number is negative or does not fit in " + std::to_string(bits) + " bits", {});
    }
};

/// 8.0
struct Version : Token<Version, Module::Version> {
    bool scan(Build& build, const char*& first, Module::Version& version) const {
        const char* const end = build.source.end();
        const auto major = std::from_chars(first, end, version.major);
        if (major.ec != std::errc{} || !build.source.at(major.ptr, '.')) return false;
        const auto minor = std::from_chars(major.ptr + 1, end, version.minor);
        if (minor.ec != std::errc{}) return false;
        first = build.source.finish(minor.ptr);
        return true;
    }
};

/// "text", with \" inside; the value is the part between the quotes.
struct Quoted : Token<Quoted, Operand> {
    bool scan(Build& build, const char*& first, Operand& operand) const {
        if (!build.source.at(first, '"')) return false;
        const char* const end = build.source.end();
        const char* stop = first + 1;
        while (stop < end && *stop != '"' && *stop != '\n') stop += *stop == '\\' ? 2 : 1;
        if (stop >= end || *stop != '"')
            build.source.fail(first, "this string does not end on its line", "close it with \"");
        operand.kind = Operand::Kind::String;
        operand.name = build.module.intern({first + 1, stop});
        first = build.source.finish(stop + 1);
        return true;
    }
};

/// ".attribute(.managed)" as one token.
struct Attribute : Token<Attribute, Name> {
    bool scan(Build& build, const char*& first, Name& name) const {
        constexpr std::string_view start = ".attribute(";
        const std::string_view rest(first, build.source.end());
        if (!rest.starts_with(start)) return false;
        int depth = 1;
        std::size_t length = start.size();
        while (length < rest.size() && depth > 0 && rest[length] != '\n') {
            depth += (rest[length] == '(') - (rest[length] == ')');
            ++length;
        }
        if (depth > 0) build.source.fail(first, "this .attribute(...) does not end on its line", "close it with )");
        name = build.module.intern(rest.substr(0, length));
        first = build.source.finish(first + length);
        return true;
    }
};

/// Everything up to and including a closing character, without blanks at the ends; or, if that comes first, up to the
/// end of the line.
struct Raw : Token<Raw, std::string_view> {
    char close;
    bool within_line;
    constexpr Raw(char closing, bool line) : close(closing), within_line(line) {}
    bool scan(Build& build, const char*& first, std::string_view& text) const {
        if (within_line && build.source.on_new_line(first)) return false;
        const std::string_view rest(first, build.source.end());
        const std::size_t stop = rest.find(close);
        const std::size_t line = within_line ? std::min(rest.find('\n'), rest.size()) : rest.npos;
        if (stop == rest.npos && line == rest.npos) return false;
        const std::size_t length = stop < line ? stop + 1 : line;
        text = rest.substr(0, length);
        first = build.source.finish(first + length);
        while (!text.empty() && characters::is(text.back(), characters::Blank)) text.remove_suffix(1);
        return true;
    }
};

/// The text between a pair of braces.
struct Braced : Token<Braced, std::string_view> {
    bool scan(Build& build, const char*& first, std::string_view& text) const {
        if (!build.source.at(first, '{')) return false;
        const std::string_view rest(first, build.source.end());
        const std::size_t stop = rest.find('}');
        if (stop == rest.npos) build.source.fail(first, "this brace is never closed", "each '{' needs its '}'");
        text = rest.substr(1, stop - 1);
        first = build.source.finish(first + stop + 1);
        return true;
    }
};

/// Moves nothing; true at the end of the text.
struct End : BareToken<End> {
    bool scan(Build& build, const char*& first) const { return first == build.source.end(); }
};

/// Subject, or the error "expected what, found ...". '@' in `what` stands for the thing being read.
template <class Subject>
struct Expect : BareToken<Expect<Subject>> {
    Subject subject;
    std::string_view what, hint;

    constexpr Expect(const Subject& parser, std::string_view expected, std::string_view advice)
        : subject(parser), what(expected), hint(advice) {}

    bool parse(auto& first, const auto& last, const auto& context, auto& other, auto& attribute) const {
        if (subject.parse(first, last, context, other, attribute)) return true;
        const Build& build = build_of(context);
        std::string expected(what);
        if (const std::size_t at = expected.find('@'); at != expected.npos) expected.replace(at, 1, build.subject());
        build_of(context).source.fail_expected(first, std::move(expected), std::string(hint));
    }
};

template <class Subject>
constexpr Expect<Subject> expect(const Subject& subject, std::string_view what, std::string_view hint = {}) {
    return {subject, what, hint};
}

}  // namespace ikat::ptx::grammar
