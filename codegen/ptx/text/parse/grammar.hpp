// SPDX-License-Identifier: Apache-2.0
// The syntax of PTX in Spirit X3. Included only by parse.cpp.
//
//     module     =  top_level* end
//     top_level  =  .version | .target | .address_size | linkage* (function | variable ';') | directive
//     function   =  (.entry | .func) (result)? name (parameters)? directive* (';' | '{' statement* '}')
//     statement  =  '{' | '}' | label ':' | guard? opcode modifier* operands ';' | variable ';' | directive
// The grammar does not know the opcodes: any word is one, any dotted words are its modifiers. It builds no attributes;
// its actions are the steps of Build, in reading order. This works because it looks ahead by one token and never
// backtracks over an action: after a bracket, a comma or a keyword, the continuation is required.
#pragma once
#include "codegen/ptx/text/parse/tokens.hpp"

namespace ikat::ptx::grammar {

// Steps.

/// f(build, place) as a parser that moves nothing.
template <class F>
struct Do : BareToken<Do<F>> {
    F f;
    explicit constexpr Do(F function) : f(function) {}
    bool scan(Build& build, const char*& first) const {
        if constexpr (std::is_void_v<decltype(f(build, first))>) {
            f(build, first);
            return true;
        } else {
            return f(build, first);
        }
    }
};

template <auto Member>
constexpr Do does([](Build& build, const char*) { (build.*Member)(); });
template <Operand::Kind Kind>
constexpr Do close([](Build& build, const char*) { build.close(Kind); });
template <Operand::Kind Kind>
constexpr Do join([](Build& build, const char*) { build.join(Kind); });

constexpr Do mark([](Build& build, const char* place) { build.statement_at(place); });
constexpr Do in_scope([](Build& build, const char*) { return build.in_scope(); });
constexpr Do open([](Build& build, const char* place) {
    if (!build.open()) build.source.fail(place, "brackets are nested too deeply", "at most 32 levels are supported");
});
constexpr Do scope_begin([](Build& build, const char* place) {
    if (!build.scope_begin())
        build.source.fail(place, "scopes are nested too deeply", "at most 256 levels are supported");
});

// Tokens.

constexpr Punctuation comma(','), semicolon(';'), colon(':'), bar('|'), bang('!'), minus('-'), plus('+'), equals('='),
    at('@'), left_brace('{'), right_brace('}'), left_parenthesis('('), right_parenthesis(')'), left_bracket('['),
    right_bracket(']'), less('<'), greater('>');
constexpr Word word;
constexpr SymbolToken symbol;
constexpr Dotted dotted;
constexpr Modifier modifier;
constexpr Number number;
constexpr Expression expression;
constexpr WarpSizeExpression warp_size;
constexpr IntegerOf<scan_number> integer;
constexpr IntegerOf<scan_expression> integer_expression;
constexpr CountOf<scan_number> count;
constexpr CountOf<scan_expression, 63> count_expression;
constexpr Quoted quoted;
constexpr Attribute attribute;

// Operands.

const x3::rule<struct operand_rule> operand("operand");

const auto next_operand =
    expect(operand, "an operand of @", "a register, a literal, a name, [address], {vector}, (list) or _");
const auto offset = (plus >> expect(integer_expression[to<&Build::offset>], "a byte offset")) |
                    (&minus >> expect(integer_expression[to<&Build::offset>], "a byte offset"));
const auto index = expression[to<&Build::push>] | symbol[to<&Build::push>];
const auto element = left_bracket >> expect(index, "an index") >>
                     expect(right_bracket, "']' after the index") >> join<Operand::Kind::Element>;
const auto named = symbol[to<&Build::push>] >> -(offset | element);
const auto generic = Call("generic") >> open >> expect(word[to<&Build::push_word>], "a name in generic()") >>
                     expect(right_parenthesis, "')' after generic(name") >> close<Operand::Kind::Generic> >> -offset;
const auto mask = left_parenthesis >> expect(generic | named, "the name that is masked") >>
                  expect(right_parenthesis, "')' after the masked name") >> does<&Build::mask>;
const auto literal = expression[to<&Build::push>] >> -mask;
const auto negated = bang >> expect(symbol[to<&Build::push_negated>], "a predicate after '!'");
const auto negative = minus >> expect(symbol[to<&Build::push_minus>], "a number or a register after '-'");

const auto field = next_operand >> -(equals >> next_operand >> join<Operand::Kind::Assign>);
const auto vector = left_brace >> open >> -(!right_brace >> field >> *(comma >> field)) >>
                    expect(right_brace, "',' or '}' in the vector") >> close<Operand::Kind::Vector>;
const auto list = left_parenthesis >> open >> -(!right_parenthesis >> next_operand >> *(comma >> next_operand)) >>
                  expect(right_parenthesis, "',' or ')' in the list") >> close<Operand::Kind::List>;
const auto address = left_bracket >> open >> next_operand >> *(comma >> next_operand) >>
                     expect(right_bracket, "',' or ']' in the address") >> close<Operand::Kind::Address>;

const auto single = generic | warp_size[to<&Build::push>] | named | literal | address | vector | list | negated |
                    negative | quoted[to<&Build::push>];
const auto operand_def = single >> -(bar >> expect(single, "an operand of @ after '|'") >> join<Operand::Kind::Pair>);

const auto operands = operand >> *(comma >> next_operand);

// Instructions and labels.

const auto instruction_rest = *modifier[to<&Build::modifier>] >> -operands >>
                              expect(semicolon, "';' after the operands of @",
                                     "operands are separated by ',' and an instruction ends with ';'") >>
                              does<&Build::instruction>;
const auto guard = at >> -(bang >> does<&Build::guard_not>) >>
                   expect(word[to<&Build::guard>], "a predicate register after '@'");
const auto guarded = guard >> expect(word[to<&Build::opcode>], "an opcode after the guard") >> instruction_rest;
const auto plain = word[to<&Build::opcode>] >> (colon >> does<&Build::label> | instruction_rest);

// Declarations.

constexpr Keyword space(".reg", ".param", ".shared", ".global", ".local", ".const", ".tex", ".sreg", ".param::entry",
                        ".param::func", ".shared::cta", ".shared::cluster");
const auto bank = left_bracket >> expect(count[to<&Build::bank>], "a constant bank's number") >>
                  expect(right_bracket, "']'");
const auto specifier =
    (Keyword(".align") >> expect(count[to<&Build::alignment>], "an alignment in bytes after .align")) |
    attribute[to<&Build::attribute>] | dotted[to<&Build::specifier>];
const auto range = less >> expect(count[to<&Build::range>], "a number of registers after '<'") >>
                   expect(greater, "'>'");
const auto extent = left_bracket >> (count_expression[to<&Build::extent>] | does<&Build::open_extent>) >>
                    expect(right_bracket, "']' after the length of @");
const auto initialiser = equals >> next_operand >> does<&Build::initialiser>;
const auto declarator =
    expect(word[to<&Build::declarator>], "a name in the declaration of @") >> -range >> *extent >> -initialiser;
const auto any_space = space[to<&Build::variable>];
const auto variable_start =
    ((attribute[to<&Build::attribute>] >> expect(any_space, "a state space such as .global")) | any_space) >> -bank >>
    *specifier;
const x3::rule<struct declaration_rule> declaration("declaration");
const auto declaration_def = variable_start >> declarator >> *(comma >> declarator);
const auto one_variable = variable_start >> declarator;
const auto declaration_end = expect(semicolon, "';' after the declaration of @");

// Directives.

const auto terminated = Keyword(".pragma", ".alias", ".branchtargets", ".calltargets")[to<&Build::directive>] >>
                        next_operand >> *(comma >> next_operand) >> expect(semicolon, "';' after @");
const auto push_integer = expect(integer[to<&Build::push>], "a number in @");
const auto clause = expect(word[to<&Build::location_clause>], "function_name or inlined_at") >>
                    ((symbol[to<&Build::push>] >> -offset) | +integer[to<&Build::push>]);
const auto loc = Keyword(".loc")[to<&Build::directive>] >> push_integer >> push_integer >> push_integer >>
                 *(comma >> clause);
const auto file_directive = Keyword(".file")[to<&Build::directive>] >> push_integer >>
                            expect(quoted[to<&Build::push>], "a file name in quotes") >> *(comma >> push_integer);
const auto section = Keyword(".section")[to<&Build::directive>] >>
                     expect(dotted[to<&Build::push_word>] | word[to<&Build::push_word>], "a section's name") >>
                     expect(Braced()[to<&Build::raw_body>], "'{' and the lines of the section");
const auto call_prototype = Keyword(".callprototype")[to<&Build::directive>] >>
                            expect(Raw(';', false)[to<&Build::raw>], "a prototype that ends with ';'");
const auto unknown = dotted[to<&Build::directive>] >> -Raw(';', true)[to<&Build::raw>];
const x3::rule<struct directive_rule> directive("directive");
const auto directive_def = loc | terminated | file_directive | section | call_prototype | unknown;

const auto bare = dotted[to<&Build::directive>] >> -(number[to<&Build::push>] >> *(comma >> push_integer));
const auto header_directive = (terminated | bare) >> does<&Build::header_directive>;

// Bodies and functions.

const x3::rule<struct statement_rule> statement("statement");
const auto statement_def = mark >> (plain | guarded | (declaration >> declaration_end) >> does<&Build::body_variable> |
                                    directive >> does<&Build::body_directive> | (left_brace >> scope_begin) |
                                    (in_scope >> right_brace) >> does<&Build::scope_end>);

const auto body = left_brace >> *statement >>
                  expect(right_brace, "an instruction, a label, a declaration or '}'", "each '{' needs its '}'");
const auto result = mark >> one_variable >> does<&Build::result>;
const auto results = left_parenthesis >> -(result >> *(comma >> expect(result, "a result"))) >>
                     expect(right_parenthesis, "')' after the results");
const auto parameter = mark >> one_variable >> does<&Build::parameter>;
const auto parameters = left_parenthesis >> -(parameter >> *(comma >> expect(parameter, "a parameter"))) >>
                        expect(right_parenthesis, "',' or ')' after the parameter @");
const auto function_head =
    (Keyword(".entry") >> does<&Build::entry_begin>) | (Keyword(".func") >> does<&Build::function_begin>);
const auto function = function_head >> -attribute[to<&Build::function_attribute>] >> -results >>
                      expect(word[to<&Build::function_name>], "the name of the function") >> -parameters
                      >> does<&Build::function_named> >> *header_directive >>
                      expect(semicolon >> does<&Build::prototype> | body, "'{' or ';' after the head of @");

// The module.

const auto version = Keyword(".version") >> expect(Version()[to<&Build::version>], "a version such as 8.0");
const auto target_name = expect(word[to<&Build::target>], "a target such as sm_90a");
const auto target = Keyword(".target") >> target_name >> *(comma >> target_name);
const auto address_size = Keyword(".address_size") >> expect(count[to<&Build::address_size>], "32 or 64");
constexpr Keyword linkage(".visible", ".extern", ".weak", ".common", ".hidden");
const auto linked = +linkage[to<&Build::linkage>];
const auto module_variable = (declaration >> declaration_end) >> does<&Build::module_variable>;
const auto top_level = mark >> (function | module_variable |
                                (linked >> expect(function | module_variable, "'.entry', '.func' or a variable")) |
                                version | target | address_size | directive >> does<&Build::module_directive>);
const auto module = *top_level >> expect(End(), "a directive such as .entry, .func or .global",
                                         "instructions belong inside the braces of a function");

BOOST_SPIRIT_DEFINE(operand, declaration, directive, statement)

}  // namespace ikat::ptx::grammar
