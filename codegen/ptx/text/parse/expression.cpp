// SPDX-License-Identifier: Apache-2.0
// The ISA's rules (Constant Expressions): 64 bits; signed unless an operand is unsigned; C's operators and precedence.
// What is undefined in C is an error (division by zero) or follows ptxas (shift amounts wrap).
#include "codegen/ptx/text/parse/expression.hpp"

#include <bit>
#include <optional>

#include "codegen/ptx/text/parse/number.hpp"

namespace ikat::ptx {
namespace {

using characters::is;

struct Constant {
    enum class Kind : std::uint8_t { Signed, Unsigned, Float } kind = Kind::Signed;
    std::uint64_t bits = 0;
    double number = 0;

    bool is_float() const { return kind == Kind::Float; }
    bool is_signed() const { return kind == Kind::Signed; }
    double as_float() const { return is_float() ? number : is_signed() ? double(std::int64_t(bits)) : double(bits); }
    bool holds() const { return is_float() ? number != 0 : bits != 0; }
};

struct Operator {
    std::string_view text;
    int precedence;
};

/// Longer operators before their prefixes.
constexpr Operator operators[] = {{"||", 1}, {"&&", 2}, {"==", 6}, {"!=", 6}, {"<<", 8}, {">>", 8},
                                  {"<=", 7}, {">=", 7}, {"|", 3},  {"^", 4},  {"&", 5},  {"<", 7},
                                  {">", 7},  {"+", 9},  {"-", 9},  {"*", 10}, {"/", 10}, {"%", 10}};

constexpr int deepest = 32;

std::uint64_t shifted_right(const Constant& a, std::uint64_t n) {
    return a.is_signed() ? std::uint64_t(std::int64_t(a.bits) >> (n & 63)) : a.bits >> (n & 63);
}

class Scanner {
public:
    Scanner(Build& build, const char* first) : build_(build), place_(first) {}

    /// Nothing if there is no expression here.
    std::optional<Constant> conditional();

    const char* place() const { return place_; }
    const std::string& spelling() const { return spelling_; }
    /// Whether there was more than a single literal or pair of parentheses.
    bool has_operator() const { return has_operator_; }

private:
    bool at(char c) const { return build_.source.at(place_, c); }
    bool at_end() const { return place_ == build_.source.end(); }
    void take(std::size_t length) { place_ = build_.source.finish(place_ + length); }
    std::string_view rest() const { return {place_, build_.source.end()}; }
    const Operator* find_operator() const;
    std::optional<Constant> binary(int lowest);
    std::optional<Constant> unary();
    std::optional<Constant> primary();
    std::optional<Constant> literal();
    std::optional<Constant> parenthesised();
    Constant apply(std::string_view op, const Constant& a, const Constant& b, const char* where);
    Constant apply_floats(std::string_view op, double a, double b, const char* where);
    std::uint64_t divide(std::string_view op, const Constant& a, const Constant& b, bool is_signed, const char* where);
    Constant need(std::optional<Constant> value);

    Build& build_;
    const char* place_;
    std::string spelling_;
    bool has_operator_ = false;
    int depth_ = 0;
};

const Operator* Scanner::find_operator() const {
    for (const Operator& each : operators) {
        if (!rest().starts_with(each.text)) continue;
        // a register starts like a remainder operator
        if (each.text == "%" && rest().size() > 1 && is(rest()[1], characters::Start | characters::Follow))
            return nullptr;
        return &each;
    }
    return nullptr;
}

Constant Scanner::need(std::optional<Constant> value) {
    if (!value)
        build_.source.fail_expected(place_, "a constant", "a constant expression consists of literals and WARP_SZ");
    return *value;
}

std::optional<Constant> Scanner::conditional() {
    if (++depth_ > deepest)
        build_.source.fail(place_, "an expression is nested too deeply", "at most 32 levels are supported");
    std::optional<Constant> value = binary(1);
    if (value && at('?')) {
        has_operator_ = true;
        take(1);
        spelling_ += " ? ";
        const Constant yes = need(conditional());
        if (!at(':')) build_.source.fail_expected(place_, "':' after the value for a true condition", "");
        take(1);
        spelling_ += " : ";
        const Constant no = need(conditional());
        value = value->holds() ? yes : no;
    }
    --depth_;
    return value;
}

std::optional<Constant> Scanner::binary(int lowest) {
    std::optional<Constant> left = unary();
    while (left) {
        const Operator* const op = find_operator();
        if (!op || op->precedence < lowest) break;
        const char* const where = place_;
        has_operator_ = true;
        take(op->text.size());
        spelling_ += ' ' + std::string(op->text) + ' ';
        left = apply(op->text, *left, need(binary(op->precedence + 1)), where);
    }
    return left;
}

std::optional<Constant> Scanner::unary() {
    if (at_end()) return std::nullopt;
    const char sign = *place_;
    if (sign != '-' && sign != '+' && sign != '!' && sign != '~') return primary();
    const char* const before = place_;
    if (sign == '-')
        if (std::optional<Constant> number = literal()) return number;
    if (++depth_ > deepest)
        build_.source.fail(place_, "an expression is nested too deeply", "at most 32 levels are supported");
    take(1);
    spelling_ += sign;
    std::optional<Constant> value = unary();
    --depth_;
    if (!value) {
        place_ = before;
        return std::nullopt;
    }
    has_operator_ = true;
    if (sign == '-' && value->is_float()) value->number = -value->number;
    if (sign == '-') value->bits = 0 - value->bits;
    if (sign == '~') value->bits = ~value->bits;
    if (sign == '!') value = Constant{.bits = !value->holds()};
    return value;
}

std::optional<Constant> Scanner::primary() {
    constexpr std::string_view warp_size = "WARP_SZ";
    if (at('(')) return parenthesised();
    if (rest().starts_with(warp_size) &&
        (rest().size() == warp_size.size() || !is(rest()[warp_size.size()], characters::Follow))) {
        take(warp_size.size());
        spelling_ += warp_size;
        return Constant{.bits = 32};
    }
    return literal();
}

std::optional<Constant> Scanner::literal() {
    const char* const start = place_;
    Operand operand;
    if (!scan_number(build_, place_, operand)) return std::nullopt;
    const char* stop = start + (*start == '-');
    while (stop != build_.source.end() && is(*stop, characters::Blank)) ++stop;  // between the sign and its digits
    const bool is_unsigned = [&] {
        const char* end = stop;
        while (end != build_.source.end() && is(*end, characters::Follow)) ++end;
        return end != stop && (end[-1] == 'U' || end[-1] == 'u');
    }();
    spelling_ += operand.name == no_name ? std::string(start, build_.source.last_end())
                                         : std::string(build_.module.text(operand.name));
    switch (operand.kind) {
        case Operand::Kind::Float32:
            return Constant{.kind = Constant::Kind::Float,
                            .number = double(std::bit_cast<float>(std::uint32_t(operand.value)))};
        case Operand::Kind::Float64:
            return Constant{.kind = Constant::Kind::Float, .number = std::bit_cast<double>(operand.value)};
        default: break;
    }
    const bool is_large = *start != '-' && std::int64_t(operand.value) < 0;
    return Constant{.kind = is_unsigned || is_large ? Constant::Kind::Unsigned : Constant::Kind::Signed,
                    .bits = operand.value};
}

/// (expression), or a cast: (.u64)expression.
std::optional<Constant> Scanner::parenthesised() {
    const std::string before = spelling_;
    take(1);
    for (const auto& [text, kind] :
         {std::pair(".s64", Constant::Kind::Signed), std::pair(".u64", Constant::Kind::Unsigned)}) {
        if (!rest().starts_with(text)) continue;
        take(4);
        if (!at(')')) return std::nullopt;
        take(1);
        has_operator_ = true;
        spelling_ += '(' + std::string(text) + ')';
        Constant value = need(unary());
        if (value.is_float())
            build_.source.fail(place_, "a floating-point constant cannot be cast", "only integers can");
        value.kind = kind;
        return value;
    }
    spelling_ += '(';
    const std::optional<Constant> value = conditional();
    if (!value || !at(')')) return std::nullopt;
    take(1);
    spelling_ += ')';
    return value;
}

std::uint64_t Scanner::divide(std::string_view op, const Constant& a, const Constant& b, bool is_signed,
                              const char* where) {
    if (b.bits == 0) build_.source.fail(where, "a constant is divided by zero", "");
    if (op == "%") return a.bits % b.bits;  // always unsigned
    if (!is_signed) return a.bits / b.bits;
    if (b.bits == ~std::uint64_t{0}) return 0 - a.bits;
    return std::uint64_t(std::int64_t(a.bits) / std::int64_t(b.bits));
}

Constant Scanner::apply_floats(std::string_view op, double a, double b, const char* where) {
    const auto number = [](double value) { return Constant{.kind = Constant::Kind::Float, .number = value}; };
    const auto truth = [](bool value) { return Constant{.bits = value}; };
    if (op == "+") return number(a + b);
    if (op == "-") return number(a - b);
    if (op == "*") return number(a * b);
    if (op == "/") return number(a / b);
    if (op == "==") return truth(a == b);
    if (op == "!=") return truth(a != b);
    if (op == "<") return truth(a < b);
    if (op == "<=") return truth(a <= b);
    if (op == ">") return truth(a > b);
    if (op == ">=") return truth(a >= b);
    build_.source.fail(where, "this operator does not take floating-point constants", "+ - * / and comparisons do");
}

Constant Scanner::apply(std::string_view op, const Constant& a, const Constant& b, const char* where) {
    if (op == "&&") return {.bits = a.holds() && b.holds()};
    if (op == "||") return {.bits = a.holds() || b.holds()};
    if (a.is_float() || b.is_float()) return apply_floats(op, a.as_float(), b.as_float(), where);
    if (op == "<<") return {.kind = a.kind, .bits = a.bits << (b.bits & 63)};
    if (op == ">>") return {.kind = a.kind, .bits = shifted_right(a, b.bits)};
    const bool is_signed = a.is_signed() && b.is_signed();
    const bool less = is_signed ? std::int64_t(a.bits) < std::int64_t(b.bits) : a.bits < b.bits;
    if (op == "==") return {.bits = a.bits == b.bits};
    if (op == "!=") return {.bits = a.bits != b.bits};
    if (op == "<") return {.bits = less};
    if (op == ">=") return {.bits = !less};
    if (op == ">") return {.bits = !less && a.bits != b.bits};
    if (op == "<=") return {.bits = less || a.bits == b.bits};
    Constant result{.kind = is_signed ? Constant::Kind::Signed : Constant::Kind::Unsigned};
    switch (op[0]) {
        case '+': result.bits = a.bits + b.bits; break;
        case '-': result.bits = a.bits - b.bits; break;
        case '*': result.bits = a.bits * b.bits; break;
        case '&': result.bits = a.bits & b.bits; break;
        case '|': result.bits = a.bits | b.bits; break;
        case '^': result.bits = a.bits ^ b.bits; break;
        default: result.bits = divide(op, a, b, is_signed, where);
    }
    return result;
}

/// Whether an operator or '?' may start here.
bool may_go_on(const Build& build, const char* place) {
    if (place == build.source.end() || *place == ',' || *place == ';' || *place == ']') return false;
    return std::string_view("+-*/%<>=!&^|?").find(*place) != std::string_view::npos;
}

}  // namespace

bool scan_expression(Build& build, const char*& first, Operand& out) {
    if (first == build.source.end() || !may_begin_expression(*first)) return false;
    const char* const start = first;
    const bool is_number = scan_number(build, first, out);
    if (is_number && !may_go_on(build, first)) return true;

    Scanner scanner(build, start);
    const std::optional<Constant> value = scanner.conditional();
    if (is_number && !scanner.has_operator()) return true;
    first = start;
    if (!value || !scanner.has_operator()) return false;
    out = {.kind = value->is_float() ? Operand::Kind::Float64 : Operand::Kind::Integer,
           .name = build.module.intern(scanner.spelling()),
           .value = value->is_float() ? std::bit_cast<std::uint64_t>(value->number) : value->bits};
    first = scanner.place();
    return true;
}

}  // namespace ikat::ptx
