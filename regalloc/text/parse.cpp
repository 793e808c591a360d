// SPDX-License-Identifier: Apache-2.0
// Parses a problem. A dozen rules, each a function; the grammar is in text.hpp.
#include <algorithm>
#include <cctype>
#include <utility>

#include "codegen/support/diagnostic.hpp"
#include "regalloc/text/text.hpp"

namespace ikat::regalloc {
namespace {

struct Parser {
    std::string_view text;
    const char* file;
    std::size_t at = 0;
    NamedProblem result{};
    std::vector<bool> defined{};  // by LiveRange

    Location where() const {
        const std::string_view before = text.substr(0, at);
        const std::size_t line_start = before.rfind('\n') + 1;  // npos + 1 is 0
        return {file, std::uint32_t(1 + std::ranges::count(before, '\n')), std::uint32_t(at - line_start + 1)};
    }
    [[noreturn]] void fail(std::string message) const {
        throw Error({.where = where(),
                     .message = std::move(message),
                     .hint = "the grammar is described in regalloc/text/text.hpp",
                     .excerpt = excerpt(text, where())});
    }

    void skip_blanks(bool lines = false) {
        for (; at < text.size(); ++at) {
            if (text.substr(at).starts_with("//")) at = std::min(text.find('\n', at), text.size());
            if (at == text.size() || !std::isspace(static_cast<unsigned char>(text[at]))) return;
            if (text[at] == '\n' && !lines) return;
        }
    }
    void end_of_line() {
        skip_blanks();
        if (at < text.size() && text[at] != '\n') fail("expected the end of the line");
        skip_blanks(true);
    }

    bool accept(std::string_view token) {
        skip_blanks();
        if (!text.substr(at).starts_with(token)) return false;
        at += token.size();
        return true;
    }
    void expect(std::string_view token) {
        if (!accept(token)) fail("expected '" + std::string(token) + '\'');
    }
    bool next_is(std::string_view token) {
        skip_blanks();
        return text.substr(at).starts_with(token);
    }

    std::uint32_t number() {
        const std::size_t start = at;
        while (at < text.size() && std::isdigit(static_cast<unsigned char>(text[at]))) ++at;
        if (at == start || at - start > 7) fail("expected a number below ten million");
        return std::uint32_t(std::stoul(std::string(text.substr(start, at - start))));
    }
    std::string word() {
        skip_blanks();
        const std::size_t start = at;
        while (at < text.size() && (std::isalnum(static_cast<unsigned char>(text[at])) || text[at] == '_')) ++at;
        if (at == start) fail("expected a name");
        return std::string(text.substr(start, at - start));
    }

    LiveRange value() {
        expect("v");
        const LiveRange v{number()};
        if (index(v) >= defined.size()) defined.resize(index(v) + 1), result.problem.values.resize(index(v) + 1);
        return v;
    }
    FlowBlock block() {
        expect("block");
        return FlowBlock{number()};
    }

    LiveRange definition() {
        const LiveRange v = value();
        if (defined[index(v)]) fail('v' + std::to_string(index(v)) + " is defined twice");
        defined[index(v)] = true;
        expect(":");
        const auto found = std::ranges::find(result.classes, word());
        if (found == result.classes.end()) fail("unknown class");
        const bool rematerialisable = accept("!");
        result.problem.values[index(v)] = {Class(found - result.classes.begin()), rematerialisable};
        return v;
    }

    template <class T>
    std::vector<T> list(T (Parser::*item)()) {
        std::vector<T> items;
        do items.push_back((this->*item)());
        while (accept(","));
        return items;
    }
    std::vector<LiveRange> values() { return next_is("v") ? list(&Parser::value) : std::vector<LiveRange>{}; }

    void classes() {
        expect("classes");
        while (skip_blanks(), at < text.size() && text[at] != '\n') {
            result.classes.push_back(word());
            result.problem.limits.push_back(accept("=") ? number() : unlimited);
        }
        if (result.classes.empty() || result.classes.size() > 255) fail("expected between 1 and 255 classes");
        end_of_line();
    }

    std::uint16_t position(std::span<const LiveRange> values, const char* what) {
        const auto found = std::ranges::find(values, value());
        if (found == values.end()) fail(std::string("a pair names no ").append(what));
        return std::uint16_t(found - values.begin());
    }
    void instruction(BasicBlock& block) {
        Instruction instruction;
        if (!next_is("=")) {
            const std::vector<LiveRange> definitions = list(&Parser::definition);
            instruction.definitions.assign(definitions.begin(), definitions.end());
        }
        expect("=");
        const std::vector<LiveRange> uses = values();
        instruction.uses.assign(uses.begin(), uses.end());
        instruction.early = accept("early");
        const auto pairs = [&](const char* word, InlineVector<Tied, 2>& to) {
            if (accept(word)) do {
                    const std::uint16_t defined_at = position(instruction.definitions, "definition");
                    to.push_back({defined_at, position(instruction.uses, "use")});
                } while (accept(","));
        };
        pairs("tied", instruction.tied);
        pairs("prefers", instruction.preferred);
        block.instructions.push_back(std::move(instruction));
        end_of_line();
    }

    Edge edge() {
        Edge edge{block(), {}};
        if (accept("(")) {
            edge.arguments = values();
            expect(")");
        }
        return edge;
    }
    void terminator(BasicBlock& block) {
        const bool returns = accept("return");
        if (!returns) expect("goto"), block.edges = list(&Parser::edge);
        if (returns || accept("on")) block.terminator_uses = values();
        end_of_line();
    }

    void basic_block() {
        if (block() != FlowBlock(result.problem.blocks.size())) fail("blocks are numbered in order");
        BasicBlock& block = result.problem.blocks.emplace_back();
        if (accept("(")) {
            block.parameters = list(&Parser::definition);
            expect(")");
        }
        expect(":");
        end_of_line();
        while (!next_is("goto") && !next_is("return")) instruction(block);
        terminator(block);
    }

    NamedProblem run() {
        skip_blanks(true);
        classes();
        do basic_block();
        while (at < text.size());
        for (const BasicBlock& block : result.problem.blocks)
            for (const Edge& edge : block.edges)
                if (index(edge.to) >= result.problem.blocks.size())
                    fail("an edge leads to a block that does not exist");
        if (const auto missing = std::ranges::find(defined, false); missing != defined.end())
            fail('v' + std::to_string(missing - defined.begin()) + " is never defined");
        return std::move(result);
    }
};

}  // namespace

NamedProblem parse_problem(std::string_view text, std::string_view file) {
    return Parser{.text = text, .file = intern(file)}.run();
}

}  // namespace ikat::regalloc
