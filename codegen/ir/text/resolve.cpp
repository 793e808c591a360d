// SPDX-License-Identifier: Apache-2.0
// Syntax tree to IR: names become ids, spellings become fields. Two walks, because a value may be used in the text
// before the block that defines it: the first makes instructions and results, the second fills in operands.
#include <algorithm>
#include <charconv>
#include <string>
#include <unordered_map>

#include "codegen/ir/op/accesses.hpp"
#include "codegen/ir/op/families.hpp"
#include "codegen/ir/text/literal.hpp"
#include "codegen/ir/text/print.hpp"
#include "codegen/ir/text/syntax.hpp"
#include "codegen/ir/verify_rows.hpp"
#include "codegen/support/names.hpp"

namespace ikat::ir::syntax {

Location Source::location(const char* at) const {
    const std::string_view before(text.data(), std::size_t(at - text.data()));
    const auto line = std::ranges::count(before, '\n');
    return {.file = intern(file),
            .line = std::uint32_t(line + 1),
            .column = std::uint32_t(before.size() - (before.rfind('\n') + 1) + 1)};
}

void Source::fail(const char* at, std::string message, std::string hint) const {
    const Location where = location(at);
    throw Error(Diagnostic{
        .where = where, .message = std::move(message), .hint = std::move(hint), .excerpt = ikat::excerpt(text, where)});
}

namespace {

/// "add.f32.rz" word by word.
class Words {
public:
    explicit Words(Token token) : rest_(token) {}
    Token next() {
        if (rest_.size == 0) return {};
        const std::size_t end = std::min(rest_.text().find('.'), rest_.size);
        const Token word{rest_.begin, end};
        const std::size_t skip = std::min(end + 1, rest_.size);
        rest_ = {rest_.begin + skip, rest_.size - skip};
        return word;
    }

private:
    Token rest_;
};

class Resolver {
public:
    Resolver(const Function& tree, const Source& source) : tree_(tree), source_(source) {}

    ir::Function run() {
        fn_.is_entry = tree_.kind.text() == "kernel";
        fn_.name = tree_.name.text().substr(1);
        for (const Parameter& parameter : tree_.parameters) this->parameter(parameter);
        if (tree_.result) fn_.gives = type(tree_.result);
        for (const Keyword& bound : tree_.bounds) this->bound(bound);
        for (const Symbol& symbol : tree_.symbols) this->symbol(symbol);
        for (std::size_t i = 0; i < tree_.blocks.size(); ++i) declare(tree_.blocks[i], i);
        for (const Block& block : tree_.blocks) define(block);
        for (const Block& block : tree_.blocks) connect(block);
        return std::move(fn_);
    }

private:
    [[noreturn]] void fail(Token at, std::string message, std::string hint = {}) const {
        source_.fail(at.begin, std::move(message), std::move(hint));
    }
    template <class T>
    T number(Token token, int base = 10) const {
        const std::string_view text = token.text().substr(token.text().starts_with('+'));
        T out{};
        const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out, base);
        if (error != std::errc{} || end != text.data() + text.size())
            fail(token, "the number " + std::string(text) + " does not fit here");
        return out;
    }
    Type type(Token token) const {
        if (const auto found = type_named(token.text())) return *found;
        std::vector<std::string_view> names;
        for (const TypeInfo& row : type_table) names.push_back(row.name);
        fail(token, "there is no type " + std::string(token.text()), "types are " + list_names(names));
    }

    // The head.
    void parameter(const Parameter& tree) {
        ir::Parameter& parameter = fn_.parameters.emplace_back();
        parameter.name = tree.name.text().substr(1);
        const Type type = this->type(tree.type);
        if (tree.pointer != bool(tree.access))
            fail(tree.type, "a pointer parameter says in, out or inout, and only a pointer does",
                 "write %x: in f32* or %x: f32");
        if (tree.pointer)
            parameter.element = type;
        else
            parameter.type = type;
        for (int i = 1; i < int(std::size(access_names)); ++i)
            if (tree.pointer && tree.access.text() == access_names[i]) parameter.access = ir::Access(i);
        for (const Keyword& keyword : tree.keywords)
            if (keyword.word.text() == "bytes")
                parameter.bytes = number<std::uint32_t>(keyword.number);
            else if (keyword.word.text() == "align")
                parameter.alignment = number<std::uint32_t>(keyword.number);
            else if (keyword.word.text() == "multiple")
                parameter.multiple = number<std::uint64_t>(keyword.number);
            else
                fail(keyword.word, "a parameter has no " + std::string(keyword.word.text()),
                     "it has bytes, align, multiple");
    }
    void bound(const Keyword& keyword) {
        const auto value = number<std::uint32_t>(keyword.number);
        if (keyword.word.text() == "max_threads")
            fn_.bounds.max_threads = value;
        else if (keyword.word.text() == "min_blocks")
            fn_.bounds.min_blocks = value;
        else if (keyword.word.text() == "max_registers")
            fn_.bounds.max_registers = value;
        else if (const auto axis = find_name(cluster_words, keyword.word.text()))
            fn_.bounds.cluster[*axis] = value;
        else
            fail(keyword.word, "a function has no " + std::string(keyword.word.text()),
                 "it has max_threads, min_blocks, max_registers, cluster_x, cluster_y, cluster_z");
    }
    void symbol(const Symbol& tree) {
        ir::Symbol& symbol = fn_.symbols.emplace_back();
        symbol.name = tree.name.text().substr(1);
        symbol.space = space(tree.space);
        symbol.element = type(tree.type);
        symbol.dynamic = tree.dynamic;
        symbol.count = tree.count ? number<std::uint64_t>(tree.count) : 0;
        for (const Keyword& keyword : tree.keywords)
            if (keyword.word.text() == "align")
                symbol.alignment = number<std::uint32_t>(keyword.number);
            else if (keyword.word.text() == "at")
                symbol.offset = number<std::uint32_t>(keyword.number);
            else
                fail(keyword.word, "a symbol has no " + std::string(keyword.word.text()), "it has align, at");
        for (const Token value : tree.values) {
            const auto bits = literal_bits(symbol.element, value.text());
            if (!bits) fail(value, std::string(value.text()) + " is no " + std::string(info(symbol.element).name), {});
            symbol.values.push_back(*bits);
        }
    }
    static Space space(Token token) { return Space(find_name(space_names, token.text()).value_or(0)); }  // "none" is 0

    // The first walk: blocks, then their values and instructions.
    void declare(const Block& tree, std::size_t place) {
        if (number<std::uint64_t>({tree.name.begin + 1, tree.name.size - 1}) != place)
            fail(tree.name, "expected block ^" + std::to_string(place), "blocks are numbered in the order of the text");
        fn_.add_block();
    }
    void name_value(Token name, Value value) {
        if (!values_.emplace(name.text(), value).second)
            fail(name, std::string(name.text()) + " is defined twice", "each value has one definition");
    }
    void define(const Block& tree) {
        const ir::Block block{std::uint32_t(&tree - tree_.blocks.data())};
        for (const TypedValue& parameter : tree.parameters)
            name_value(parameter.name, fn_.add_parameter(block, type(parameter.type)));
        for (const Line& line : tree.lines) {
            const Instruction inst = instruction(line);
            std::vector<Type> types;
            for (std::uint32_t i = 0; i < line.results.size(); ++i)
                types.push_back(result_of(inst, i, line.results[i]));
            const std::vector<Value> operands(inst.operands.count, no_value);
            const Inst made = fn_.append(block, inst, operands, types);
            for (std::uint32_t i = 0; i < types.size(); ++i) name_value(line.results[i].name, fn_.results(made)[i]);
        }
    }
    Type result_of(const Instruction& inst, std::uint32_t i, const TypedValue& tree) const {
        if (tree.type) return type(tree.type);
        const Type by_row = result_type(inst, i);
        if (by_row == Type::Void)
            fail(tree.name, std::string(name(inst.op)) + " does not say the type of this result",
                 "write it: " + std::string(tree.name.text()) + ": f32 = …");
        return by_row;
    }

    Instruction instruction(const Line& line) {
        Instruction inst;
        mnemonic(line.mnemonic, inst);
        memory(line.memory, inst.memory);
        const bool attributed = info(inst.op).attribute != Attribute::None;
        if (attributed && line.arguments.empty())
            fail(line.mnemonic, std::string(name(inst.op)) + " needs its first operand");
        if (attributed) inst.attribute = attribute(inst, line.arguments[0].what);
        if (attributed && line.arguments[0].offset) {
            if (info(inst.op).attribute != Attribute::Parameter)
                fail(line.arguments[0].offset, "only a parameter of raw bytes takes an offset");
            inst.attribute =
                parameter_at(std::uint32_t(inst.attribute), number<std::uint32_t>(line.arguments[0].offset));
        }
        const std::size_t operands = line.arguments.size() - attributed;
        inst.operands.count = std::uint32_t(operands + line.otherwise.size());
        for (std::size_t i = 0; i < operands; ++i) address(line.arguments[attributed + i], i, inst);
        if (!line.otherwise.empty()) inst.tie = {0, std::uint16_t(operands), std::uint16_t(line.otherwise.size())};
        if (line.tie.result)
            inst.tie = {number<std::uint16_t>(line.tie.result), number<std::uint16_t>(line.tie.operand),
                        line.tie.count ? number<std::uint16_t>(line.tie.count) : std::uint16_t(1)};
        inst.guard_negated = line.guard.negated;
        inst.where = place(line.where, line.mnemonic);
        return inst;
    }
    void address(const Argument& argument, std::size_t position, Instruction& inst) const {
        if (argument.address != is_address(inst.op, position))
            fail(argument.what, argument.address ? "this operand is not an address" : "expected an address",
                 argument.address ? "" : "write [" + std::string(argument.what.text()) + "]");
        if (argument.offset) set_offset(inst, std::uint32_t(position), number<std::int32_t>(argument.offset));
    }

    void mnemonic(Token token, Instruction& inst) const {
        Words words(token);
        const Token op = words.next();
        const auto found = op_named(op.text());
        if (!found) fail(op, "there is no operation " + std::string(op.text()), "docs/ops.md lists them");
        inst.op = *found;
        for (Token word = words.next(); word; word = words.next()) modifier(word, inst);
    }
    void modifier(Token word, Instruction& inst) const {
        const std::string_view text = word.text();
        if (const auto type = type_named(text))
            (inst.type == Type::Void ? inst.type : inst.from) = *type;
        else if (const auto rounding = find_name(rounding_names, text))
            inst.fp.rounding = Rounding(*rounding);
        else if (text == "ftz")
            inst.fp.ftz = true;
        else if (text == "sat")
            inst.fp.sat = true;
        else if (text == "approx")
            inst.fp.approx = true;
        else if (text == "contract")
            inst.fp.contract = true;
        else if (text[0] == 'v' && text.size() > 1)
            inst.memory.count = number<std::uint8_t>({word.begin + 1, word.size - 1});
        else
            fail(word, "there is no modifier ." + std::string(text), modifiers());
    }
    static std::string modifiers() {
        std::string hint = "modifiers are types, ";
        for (const int count : vector_counts) hint += ".v" + std::to_string(count) + ", ";
        return hint + list_names(rounding_names) + ", ftz, sat, approx, contract";
    }
    void memory(Token token, MemoryInfo& memory) const {
        Words words(token);
        memory.space = space(words.next());
        for (Token word = words.next(); word; word = words.next()) {
            const std::string_view text = word.text();
            if (const auto cache = find_name(cache_operator_names, text))
                memory.cache = CacheOperator(*cache);
            else if (const auto order = find_name(order_names, text))
                memory.order = Order(*order);
            else if (const auto scope = find_name(scope_names, text))
                memory.scope = Scope(*scope);
            else if (text == "volatile")
                memory.is_volatile = true;
            else
                fail(word, "memory has no ." + std::string(text),
                     "cache operators are " + list_names(cache_operator_names) + "; orders " + list_names(order_names) +
                         "; scopes " + list_names(scope_names) + "; volatile");
        }
    }

    Form attribute(const Instruction& inst, Token token) {
        const std::string_view text = token.text();
        const auto known = [&](std::optional<Form> place, const std::string& what, const std::string& hint) {
            if (!place) fail(token, "there is no " + what + ' ' + std::string(text), hint);
            return *place;
        };
        const auto by_name = [&](const auto& named, char sigil) -> std::optional<std::size_t> {
            if (text[0] != sigil) return {};
            const auto found = std::ranges::find(named, text.substr(1), [](const auto& item) { return item.name; });
            if (found == named.end()) return {};
            return std::size_t(found - named.begin());
        };
        switch (info(inst.op).attribute) {
            case Attribute::None: break;
            case Attribute::Constant:
                if (const auto bits = literal_bits(inst.type, text)) return *bits;
                fail(token, std::string(text) + " is not a constant of type " + std::string(info(inst.type).name));
            case Attribute::Parameter: return known(by_name(fn_.parameters, '%'), "parameter", "");
            case Attribute::Symbol: return known(by_name(fn_.symbols, '$'), "symbol", "");
            case Attribute::Text:
                if (text[0] != '"') fail(token, "expected a text in quotes");
                return fn_.add_text(unquoted(token));
            case Attribute::Callee:
                if (text[0] != '@') fail(token, "expected a function, such as @name");
                return fn_.add_text(text.substr(1));
            default: {
                const auto [what, choices] = attribute_choice(inst.op);
                return known(attribute_named(inst.op, text), std::string(what), choices);
            }
        }
        return 0;
    }
    std::string unquoted(Token token) const {
        const std::string_view text = token.text().substr(1, token.size - 2);
        std::string out;
        for (std::size_t i = 0; i < text.size(); ++i) {
            if (text[i] != '\\') {
                out += text[i];
                continue;
            }
            const char c = text[++i];
            if (c == 'x' && i + 2 < text.size()) {
                out += char(number<unsigned char>({text.data() + i + 1, 2}, 16));
                i += 2;
            } else {
                out += c == 'n' ? '\n' : c == 't' ? '\t' : c;
            }
        }
        return out;
    }
    Location place(const Place& tree, Token mnemonic) const {
        if (!tree.file) return source_.lines == Lines::Own ? source_.location(mnemonic.begin) : Location{};
        return {.file = intern(unquoted(tree.file)),
                .line = number<std::uint32_t>(tree.line),
                .column = tree.column ? number<std::uint32_t>(tree.column) : 0};
    }

    // The second walk: uses.
    Value value(Token token) const {
        const auto found = values_.find(token.text());
        if (found == values_.end())
            fail(token, "no line defines " + std::string(token.text()),
                 token.text()[0] == '%' ? "" : "operands are values, such as %3; `const` makes one of a literal");
        return found->second;
    }
    std::vector<Value> values(const std::vector<Token>& tokens) const {
        std::vector<Value> out;
        for (Token token : tokens) out.push_back(value(token));
        return out;
    }
    void connect(const Block& tree) {
        const ir::Block block{std::uint32_t(&tree - tree_.blocks.data())};
        for (std::size_t i = 0; i < tree.lines.size(); ++i) {
            const Inst inst = fn_[block].instructions[i];
            const Line& line = tree.lines[i];
            std::vector<Value> operands;
            for (std::size_t a = info(fn_[inst].op).attribute != Attribute::None; a < line.arguments.size(); ++a)
                operands.push_back(value(line.arguments[a].what));
            for (Token token : line.otherwise) operands.push_back(value(token));
            fn_.set_operands(inst, operands);
            if (line.guard.value) fn_[inst].guard = value(line.guard.value);
        }
        for (const End& end : tree.end) fn_[block].terminator = terminator(end);
    }
    Terminator terminator(const End& tree) const {
        constexpr std::string_view names[] = {"", "jump", "branch", "multiway", "return", "trap"};
        Words words(tree.mnemonic);
        Terminator out;
        out.kind = Terminator::Kind(*find_name(names, words.next().text()));
        out.uniform = bool(words.next());
        if (tree.condition) out.condition = value(tree.condition);
        if (tree.unroll) out.unroll = number<std::uint32_t>(tree.unroll);
        if (tree.given) out.given = value(tree.given);
        for (const Jump& jump : tree.targets) out.targets.push_back({target(jump.block), values(jump.arguments)});
        out.where = place(tree.where, tree.mnemonic);
        return out;
    }
    ir::Block target(Token token) const {
        const auto block = number<std::uint32_t>({token.begin + 1, token.size - 1});
        if (block >= fn_.block_count()) fail(token, "there is no block " + std::string(token.text()));
        return ir::Block(block);
    }

    const Function& tree_;
    const Source& source_;
    ir::Function fn_;
    std::unordered_map<std::string_view, Value> values_;
};

}  // namespace

ir::Module resolve(const Module& module, const Source& source) {
    ir::Module out;
    for (const Function& function : module) out.functions.push_back(Resolver(function, source).run());
    return out;
}

}  // namespace ikat::ir::syntax
