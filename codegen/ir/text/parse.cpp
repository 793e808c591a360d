// SPDX-License-Identifier: Apache-2.0
// The grammar of IR text, in Spirit X3: text to syntax tree. Ends of lines count; other white space and comments do
// not. A rule's name is what an error says was expected.
#include "codegen/ir/text/parse.hpp"

#include <boost/fusion/include/adapt_struct.hpp>
#include <boost/spirit/home/x3.hpp>

#include "codegen/ir/text/print.hpp"
#include "codegen/ir/text/syntax.hpp"

BOOST_FUSION_ADAPT_STRUCT(ikat::ir::syntax::Keyword, word, number)
BOOST_FUSION_ADAPT_STRUCT(ikat::ir::syntax::Parameter, name, access, type, pointer, keywords)
BOOST_FUSION_ADAPT_STRUCT(ikat::ir::syntax::Symbol, dynamic, space, name, type, count, keywords, values)
BOOST_FUSION_ADAPT_STRUCT(ikat::ir::syntax::TypedValue, name, type)
BOOST_FUSION_ADAPT_STRUCT(ikat::ir::syntax::Place, file, line, column)
BOOST_FUSION_ADAPT_STRUCT(ikat::ir::syntax::Argument, address, what, offset)
BOOST_FUSION_ADAPT_STRUCT(ikat::ir::syntax::Guard, negated, value)
BOOST_FUSION_ADAPT_STRUCT(ikat::ir::syntax::Tie, result, operand, count)
BOOST_FUSION_ADAPT_STRUCT(ikat::ir::syntax::Line, results, mnemonic, memory, arguments, guard, otherwise, tie, where)
BOOST_FUSION_ADAPT_STRUCT(ikat::ir::syntax::Jump, block, arguments)
BOOST_FUSION_ADAPT_STRUCT(ikat::ir::syntax::End, mnemonic, condition, targets, unroll, given, where)
BOOST_FUSION_ADAPT_STRUCT(ikat::ir::syntax::Block, name, parameters, lines, end)
BOOST_FUSION_ADAPT_STRUCT(ikat::ir::syntax::Function, kind, name, parameters, result, bounds, symbols, blocks)

namespace ikat::ir {
namespace {

namespace x3 = boost::spirit::x3;
namespace tree = syntax;
using tree::Token;
using x3::alnum, x3::alpha, x3::attr, x3::char_, x3::digit, x3::eol, x3::lexeme, x3::lit, x3::raw;

template <class Id, class Attribute = Token>
using Rule = x3::rule<Id, Attribute>;
template <class T>
using List = std::vector<T>;

// Tokens: slices of the text.
const auto spelled = [](auto& context) {
    const auto range = x3::_attr(context);
    x3::_val(context) = Token{range.begin(), std::size_t(range.size())};
};
const auto token = [](auto parser) { return raw[lexeme[parser]][spelled]; };
const auto letter = char_("a-zA-Z0-9_$");
const auto word = [](auto words) { return lexeme[words >> !letter]; };

const Rule<class NothingId> nothing = "";
const Rule<class ValueId> value = "a value, such as %3";
const Rule<class BlockNameId> block_name = "a block, such as ^1";
const Rule<class FunctionNameId> function_name = "a name, such as @saxpy";
const Rule<class SymbolNameId> symbol_name = "a symbol, such as $tile";
const Rule<class TextId> text = "a text in quotes";
const Rule<class NumberId> number = "a number";
const Rule<class OffsetId> offset = "an offset, such as +16";
const Rule<class TypeNameId> type = "a type, such as f32";
const Rule<class SpaceNameId> space = "a space, such as shared";
const Rule<class MemoryId> memory = "a space, such as global.nc";
const Rule<class LiteralId> literal = "an operand";
const Rule<class MnemonicId> mnemonic = "an operation, such as add.f32";
const Rule<class EndingId> ending = "a terminator";
const Rule<class ReturningId> returning = "return";
const Rule<class KindId> kind = "a function, such as kernel @name(%n: u32) {";
const Rule<class AccessId> access = "in, out or inout";
const Rule<class KeywordNameId> keyword_name = "a keyword";
const Rule<class LineEndId, x3::unused_type> line_end = "the end of the line";

const auto nothing_def = attr(Token{});
const auto value_def = token('%' >> +letter);
const auto block_name_def = token('^' >> +digit);
const auto function_name_def = token('@' >> +letter);
const auto symbol_name_def = token('$' >> +letter);
const auto text_def = token('"' >> *(('\\' >> char_) | (char_ - '"' - eol)) >> '"');
const auto number_def = token(+digit);
const auto offset_def = token(char_("+-") >> +digit);
const auto type_def = token(alpha >> *alnum);
const auto any_space = lit("none") | "generic" | "global" | "shared" | "local" | "const" | "param" | "peer";
const auto space_def = token(any_space >> !letter);
const auto memory_def = token(any_space >> *('.' >> +(alpha | '_')) >> !letter);
const auto keywords_of_lines = (lit("guard") | "else" | "tie" | "loc") >> !letter;
const auto literal_def = token((('-' >> alnum) | (alnum - keywords_of_lines)) >> *(alnum | char_("_.+-")));
const auto mnemonic_def = token(alpha >> *(alnum | char_("_.")));
const auto ending_def = token((lit("jump") | "branch" | "multiway" | "return" | "trap") >> -lit(".uniform") >> !letter);
const auto returning_def = token(lit("return") >> !letter);
const auto kind_def = token((lit("kernel") | "function") >> !letter);
const auto access_def = token((lit("inout") | "in" | "out") >> !letter);
const auto keyword_name_def = token(alpha >> *letter);
const auto line_end_def = +eol;

BOOST_SPIRIT_DEFINE(nothing, value, block_name, function_name, symbol_name, text, number, offset, type, space, memory,
                    literal, mnemonic, ending, returning, kind, access, keyword_name, line_end)

// One line.
const Rule<class TypedValueId, tree::TypedValue> typed_value = "a value with its type, such as %3: f32";
const Rule<class ResultId, tree::TypedValue> result = "a result";
const Rule<class SomeResultsId, List<tree::TypedValue>> some_results = "a result, such as %3";
const Rule<class ResultsId, List<tree::TypedValue>> results = "results";
const Rule<class ResultTypeId> result_type = "a type";
const Rule<class AddressArgumentId, tree::Argument> address = "an address";
const Rule<class PlainArgumentId, tree::Argument> plain = "an operand";
const Rule<class ArgumentId, tree::Argument> argument = "an operand";
const Rule<class ArgumentsId, List<tree::Argument>> arguments = "operands";
const Rule<class NegationId, bool> negation = "!";
const Rule<class GuardId, tree::Guard> guard = "a guard";
const Rule<class SomeValuesId, List<Token>> some_values = "a value, such as %3";
const Rule<class OtherwiseId, List<Token>> otherwise = "what the guard leaves";
const Rule<class TieCountId> tie_count = "a count";
const Rule<class TieId, tree::Tie> tie = "a tie";
const Rule<class ColumnId> column = "a column";
const Rule<class PlaceId, tree::Place> place = "a location";
const Rule<class LineId, tree::Line> line = "an instruction";
const Rule<class ValuesId, List<Token>> values = "values";
const Rule<class JumpId, tree::Jump> jump = "a block, such as ^1";
const Rule<class JumpsId, List<tree::Jump>> jumps = "blocks";
const Rule<class ConditionId> condition = "a condition";
const Rule<class UnrollId> unroll = "how many rounds a trip makes";
const Rule<class GivenId> given = "a value";
const Rule<class EndId, tree::End> end = "a terminator";

const auto typed_value_def = value > ':' > type;
const auto result_type_def = (':' > type) | nothing;
const auto result_def = value > result_type;
const auto some_results_def = result % ',';
const auto results_def = (&lit('%') > some_results > '=') | attr(List<tree::TypedValue>{});
const auto address_def = '[' > attr(true) > value > (offset | nothing) > ']';
const auto plain_def = attr(false) >> (value | symbol_name | function_name | text | literal) >> nothing;
const auto argument_def = address | plain;
const auto arguments_def = (argument % ',') | attr(List<tree::Argument>{});
const auto negation_def = ('!' >> attr(true)) | attr(false);
const auto guard_def = (word("guard") > negation > value) | attr(tree::Guard{});
const auto some_values_def = value % ',';
const auto otherwise_def = (word("else") > some_values) | attr(List<Token>{});
const auto tie_count_def = (word("count") > number) | nothing;
const auto tie_def = (word("tie") > number > '=' > number > tie_count) | attr(tree::Tie{});
const auto column_def = (':' > number) | nothing;
const auto place_def = (word("loc") > text > ':' > number > column) | attr(tree::Place{});
const auto line_def = (results >> (mnemonic - ending)) > (memory | nothing) > arguments > guard > otherwise > tie
                      > place;
const auto values_def = ('(' > some_values > ')') | attr(List<Token>{});
const auto jump_def = block_name > values;
const auto jumps_def = (jump % ',') | attr(List<tree::Jump>{});
const auto condition_def = (value > ',') | nothing;
const auto unroll_def = (word("unroll") > number) | nothing;
const auto given_def = value | nothing;
const auto end_def = (returning >> attr(Token{}) >> attr(List<tree::Jump>{}) >> attr(Token{}) > given > place) |
                     (ending > condition > jumps > unroll > attr(Token{}) > place);

BOOST_SPIRIT_DEFINE(typed_value, result_type, result, some_results, some_values, results, address, plain, argument,
                    arguments, negation, guard, otherwise, tie_count, tie, column, place, line, values, jump, jumps,
                    condition, unroll, given, end)

// A function.
const Rule<class KeywordId, tree::Keyword> keyword = "a keyword and its number, such as align 16";
const Rule<class KeywordsId, List<tree::Keyword>> keywords = "keywords";
const Rule<class PointerId, bool> pointer = "*";
const Rule<class ParameterId, tree::Parameter> parameter = "a parameter, such as %n: u32";
const Rule<class ParametersId, List<tree::Parameter>> parameters = "parameters";
const Rule<class DynamicId, bool> dynamic = "dynamic";
const Rule<class InitialValuesId, List<Token>> initial_values = "a value of each element, such as 1, 2";
const Rule<class InitialiserId, List<Token>> initialiser = "values";
const Rule<class SymbolId, tree::Symbol> symbol = "a symbol, such as shared $tile: f32[64]";
const Rule<class SymbolsId, List<tree::Symbol>> symbols = "symbols";
const Rule<class SomeParametersId, List<tree::TypedValue>> some_parameters = "a value with its type, such as %3: f32";
const Rule<class BlockParametersId, List<tree::TypedValue>> block_parameters = "parameters";
const Rule<class LinesId, List<tree::Line>> lines = "instructions";
const Rule<class EndsId, List<tree::End>> ends = "a terminator";
const Rule<class BlockId, tree::Block> block = "a block, such as ^0:";
const Rule<class BlocksId, List<tree::Block>> blocks = "blocks";
const Rule<class GivenTypeId> given_type = "a type";
const Rule<class FunctionId, tree::Function> function = "a function";
const Rule<class ModuleId, tree::Module> module = "a module";

const auto keyword_def = keyword_name > number;
const auto keywords_def = *keyword;
const auto pointer_def = ('*' >> attr(true)) | attr(false);
const auto parameter_def = value > ':' > (access | nothing) > type > pointer > keywords;
const auto parameters_def = (parameter % ',') | attr(List<tree::Parameter>{});
const auto dynamic_def = (word("dynamic") >> attr(true)) | attr(false);
const auto initial_values_def = literal % ',';
const auto initialiser_def = ('=' > initial_values) | attr(List<Token>{});
const auto symbol_def = (dynamic >> space) > symbol_name > ':' > type > '[' > (number | nothing) > ']' > keywords
                        > initialiser;
const auto symbols_def = *(symbol > line_end);
const auto some_parameters_def = typed_value % ',';
const auto block_parameters_def = ('(' > some_parameters > ')') | attr(List<tree::TypedValue>{});
const auto lines_def = *(line > line_end);
const auto ends_def = x3::repeat(0, 1)[end > line_end];
const auto block_def = block_name > block_parameters > ':' > line_end > lines > ends;
const auto blocks_def = *block;
const auto function_def =
    kind > function_name > '(' > parameters > ')' > given_type > keywords > '{' > line_end > symbols > blocks > '}';
const auto given_type_def = ("->" > type) | nothing;
const auto module_def = -line_end > *(function > -line_end);

BOOST_SPIRIT_DEFINE(keyword, keywords, pointer, parameter, parameters, dynamic, initial_values, initialiser, symbol,
                    symbols, some_parameters, block_parameters, lines, ends, block, blocks, given_type, function,
                    module)

const auto blank = char_(" \t\r") | ("//" >> *(char_ - eol));

tree::Module parse_tree(const tree::Source& source) {
    tree::Module out;
    const char *first = source.text.data(), *last = first + source.text.size();
    try {
        x3::phrase_parse(first, last, module, blank, out);
    } catch (const x3::expectation_failure<const char*>& failure) {
        source.fail(failure.where(), "expected " + failure.which());
    }
    if (first != last) source.fail(first, std::string("expected ") + kind.name);
    return out;
}

}  // namespace

Module parse(std::string_view text, std::string_view file, Lines lines) {
    const syntax::Source source{text, file, lines};
    return syntax::resolve(parse_tree(source), source);
}

Function parse_function(std::string_view text, std::string_view file) {
    Module module = parse(text, file);
    if (module.functions.size() != 1)
        throw Error("expected one function and not " + std::to_string(module.functions.size()),
                    "a text of several functions is a module");
    return std::move(module.functions[0]);
}

}  // namespace ikat::ir
